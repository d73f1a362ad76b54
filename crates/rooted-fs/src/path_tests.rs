//! Paths from clients, as written and as a hostile client would write them.

use proptest::prelude::*;

use super::*;

fn names() -> RootNames {
    RootNames::new("/vercel/sandbox/workspace", ["/workspace", "/home/user/"])
}

fn parse(path: &str) -> Result<String, InvalidPath> {
    RelPath::parse(path, &names()).map(|path| String::from_utf8(path.0).unwrap())
}

#[test]
fn relative_paths_and_every_name_of_the_root_mean_the_same_file() {
    for path in [
        "a/b.txt",
        "./a//b.txt",
        "a/./b.txt/",
        "/workspace/a/b.txt",
        "/workspace//a/b.txt",
        "/home/user/a/b.txt",
        "/vercel/sandbox/workspace/a/b.txt",
    ] {
        assert_eq!(parse(path).as_deref(), Ok("a/b.txt"), "{path:?}");
    }
    for path in [".", "./", "/workspace", "/workspace/", "/home/user", "/vercel/sandbox/workspace"]
    {
        assert_eq!(parse(path).as_deref(), Ok(""), "{path:?}");
    }
}

#[test]
fn a_name_of_the_root_matches_only_up_to_a_separator() {
    for path in ["/workspaces/a", "/workspace.bak", "/home/user2", "/home/use", "/vercel/sandbox"] {
        assert!(matches!(parse(path), Err(InvalidPath::Outside(_))), "{path:?}");
    }
}

#[test]
fn the_traversal_corpus_is_refused() {
    for path in
        ["..", "../a", "a/..", "a/../b", "./..", "/workspace/..", "/workspace/../etc/passwd"]
    {
        assert_eq!(parse(path), Err(InvalidPath::ParentComponent), "{path:?}");
    }
    for path in ["/", "//", "/etc/passwd", "//workspace/a", "/proc/self/root", "/./workspace"] {
        assert!(matches!(parse(path), Err(InvalidPath::Outside(_))), "{path:?}");
    }
    assert_eq!(parse(""), Err(InvalidPath::Empty));
    assert_eq!(parse("a\0b"), Err(InvalidPath::Nul));
    assert_eq!(parse(&"x".repeat(256)), Err(InvalidPath::NameTooLong(256)));
    assert_eq!(parse(&"x/".repeat(2049)), Err(InvalidPath::TooLong(4098)));
}

#[test]
fn names_that_only_look_like_traversal_are_names() {
    for path in ["a..b", "...", "..a", "a..", "%2e%2e", "..\\..\\x", "\u{2025}", "\u{ff0e}\u{ff0e}"]
    {
        assert_eq!(parse(path).as_deref(), Ok(path));
    }
    assert!(parse(&"x".repeat(255)).is_ok());
}

#[test]
fn the_longest_name_of_the_root_wins_and_a_root_of_all_is_possible() {
    let nested = RootNames::new("/data/deep", ["/data"]);
    let path = RelPath::parse("/data/deep/a", &nested).unwrap();
    assert_eq!(path.as_bytes(), b"a");
    let whole = RootNames::new("/", [] as [&str; 0]);
    assert_eq!(RelPath::parse("/etc/x", &whole).unwrap().as_bytes(), b"etc/x");
}

fn hostile_path() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"..".to_vec()),
        2 => Just(b".".to_vec()),
        2 => Just(b"".to_vec()),
        2 => Just(b"workspace".to_vec()),
        1 => Just(b"home/user".to_vec()),
        4 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..8)).prop_map(|(absolute, pieces)| {
        let mut path = if absolute { b"/".to_vec() } else { Vec::new() };
        path.extend(pieces.join(&b'/'));
        path
    })
}

proptest! {
    #[test]
    fn whatever_is_accepted_is_clean_and_stays_below(path in hostile_path()) {
        if let Ok(clean) = RelPath::parse(&path, &names()) {
            prop_assert!(!clean.as_bytes().starts_with(b"/"));
            prop_assert!(!clean.as_bytes().contains(&0));
            if !clean.is_root() {
                for name in clean.as_bytes().split(|byte| *byte == b'/') {
                    prop_assert!(!matches!(name, b"" | b"." | b".."));
                }
                prop_assert_eq!(&RelPath::parse(clean.as_bytes(), &names()).unwrap(), &clean);
            }
        }
    }

    #[test]
    fn a_parent_component_is_never_accepted(
        before in "[a-z./]{0,12}",
        after in "[a-z./]{0,12}",
    ) {
        let path = format!("{before}/../{after}");
        prop_assert!(parse(&path).is_err());
    }

    #[test]
    fn split_takes_the_path_apart_again(path in hostile_path()) {
        if let Ok(clean) = RelPath::parse(&path, &names())
            && let Some((directory, name)) = clean.split()
        {
            let mut joined = directory.as_bytes().to_vec();
            if !directory.is_root() {
                joined.push(b'/');
            }
            joined.extend_from_slice(name.as_bytes());
            prop_assert_eq!(joined, clean.as_bytes());
        }
    }
}
