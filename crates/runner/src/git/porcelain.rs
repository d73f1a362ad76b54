//! What `git status --porcelain=v2 --branch -z` says. Pure.

use sandbank_protocol::{GitChange, GitEntry, GitHead};

use crate::files::hex;
use crate::limits::{MAX_GIT_ENTRIES, MAX_GIT_TEXT_BYTES};

#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) head: GitHead,
    pub(super) entries: Vec<GitEntry>,
    pub(super) truncated: bool,
}

/// `root` is where the repository is in the workspace. Of words that were cut, the last is dropped;
/// so is what is not understood, since newer versions may say more.
pub(super) fn parse(said: &[u8], root: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut text_bytes = 0;
    let end = said.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let mut words = said[..end].split(|byte| *byte == 0);
    while let Some(word) = words.next() {
        if let Some(header) = word.strip_prefix(b"# branch.") {
            branch(&mut parsed.head, &String::from_utf8_lossy(header));
            continue;
        }
        let renamed = word.starts_with(b"2 ");
        let from = if renamed { words.next() } else { None };
        if renamed && from.is_none() {
            // Cut between its two names: the other one would be missing.
            parsed.truncated = true;
            break;
        }
        let Some(entry) = entry(word, from, root) else { continue };
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        text_bytes += entry.path.len()
            + optional(&entry.path_hex)
            + optional(&entry.from)
            + optional(&entry.from_hex);
        if parsed.entries.len() == MAX_GIT_ENTRIES || text_bytes > MAX_GIT_TEXT_BYTES {
            parsed.truncated = true;
            return parsed;
        }
        parsed.entries.push(entry);
    }
    parsed
}

fn branch(head: &mut GitHead, header: &str) {
    match header.split_once(' ') {
        Some(("oid", id)) => head.commit = (id != "(initial)").then(|| id.to_owned()),
        Some(("head", name)) => head.branch = (name != "(detached)").then(|| name.to_owned()),
        Some(("upstream", name)) => head.upstream = Some(name.to_owned()),
        Some(("ab", counts)) => {
            let mut counts = counts.split(' ').map(|count| count.get(1..)?.parse().ok());
            (head.ahead, head.behind) = (counts.next().flatten(), counts.next().flatten());
        }
        _ => {}
    }
}

fn entry(word: &[u8], from: Option<&[u8]>, root: &[u8]) -> Option<GitEntry> {
    let (kind, rest) = (*word.first()?, word.get(2..)?);
    // How many fields come before the path.
    let fields = match kind {
        b'1' => 7,
        b'2' => 8,
        b'u' => 9,
        b'?' => return Some(unknown(rest, GitChange::Untracked, root)),
        b'!' => return Some(unknown(rest, GitChange::Ignored, root)),
        _ => return None,
    };
    let mut parts = rest.splitn(fields + 1, |byte| *byte == b' ');
    let [index, worktree] = parts.next()?.try_into().ok()?;
    let submodule = parts.next()?.starts_with(b"S");
    let path = parts.nth(fields - 2)?;
    let (path, path_hex) = named(path, root);
    let from = from.map(|from| named(from, root));
    let (from, from_hex) = from.map_or((None, None), |(from, hex)| (Some(from), hex));
    Some(GitEntry {
        path,
        path_hex,
        from,
        from_hex,
        index: change(index)?,
        worktree: change(worktree)?,
        conflict: kind == b'u',
        submodule,
    })
}

fn unknown(path: &[u8], change: GitChange, root: &[u8]) -> GitEntry {
    let (path, path_hex) = named(path, root);
    GitEntry {
        path,
        path_hex,
        from: None,
        from_hex: None,
        index: GitChange::None,
        worktree: change,
        conflict: false,
        submodule: false,
    }
}

fn change(letter: u8) -> Option<GitChange> {
    Some(match letter {
        b'.' => GitChange::None,
        b'M' => GitChange::Modified,
        b'T' => GitChange::TypeChanged,
        b'A' => GitChange::Added,
        b'D' => GitChange::Deleted,
        b'R' => GitChange::Renamed,
        b'C' => GitChange::Copied,
        b'U' => GitChange::Unmerged,
        _ => return None,
    })
}

/// From the workspace, as text and where that is not exact as bytes.
fn named(path: &[u8], root: &[u8]) -> (String, Option<String>) {
    let path = match root {
        b"" => path.to_vec(),
        root => [root, b"/", path].concat(),
    };
    match String::from_utf8(path) {
        Ok(path) => (path, None),
        Err(error) => {
            let exact = hex(error.as_bytes());
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(exact))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_is_understood() {
        let oid = "0".repeat(40);
        let said = format!(
            "# branch.oid {oid}\0# branch.head main\0# branch.upstream o/main\0# branch.ab +2 -1\0\
             1 .M N... 100644 100644 100644 {oid} {oid} a b\n\0\
             2 R. N... 100644 100644 100644 {oid} {oid} R100 new name\0old name\0\
             u UU N... 100644 100644 100644 100644 {oid} {oid} {oid} both\0\
             1 M. SC.. 160000 160000 160000 {oid} {oid} sub\0? d/\0! i\0x odd\0? cu"
        );
        let Parsed { head, entries, truncated } = parse(said.as_bytes(), b"repo");
        assert!(!truncated);
        assert_eq!((head.branch.as_deref(), head.commit), (Some("main"), Some(oid)));
        assert_eq!((head.ahead, head.behind), (Some(2), Some(1)));
        let seen: Vec<_> = entries
            .iter()
            .map(|entry| (entry.path.as_str(), entry.index, entry.worktree, entry.conflict))
            .collect();
        use GitChange as C;
        let expected = [
            ("repo/a b\n", C::None, C::Modified, false),
            ("repo/new name", C::Renamed, C::None, false),
            ("repo/both", C::Unmerged, C::Unmerged, true),
            ("repo/sub", C::Modified, C::None, false),
            ("repo/d/", C::None, C::Untracked, false),
            ("repo/i", C::None, C::Ignored, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(entries[1].from.as_deref(), Some("repo/old name"));
        assert!(entries[3].submodule && !entries[0].submodule);
    }

    #[test]
    fn what_is_no_text_has_its_bytes_and_what_is_no_status_is_nothing() {
        let entries = parse(b"? a\xffb\0", b"").entries;
        assert_eq!(
            (entries[0].path.as_str(), entries[0].path_hex.as_deref()),
            ("a\u{fffd}b", Some("61ff62"))
        );
        let odd: [&[u8]; 7] =
            [b"", b"\0", b"1\0", b"1 \0", b"2 R.\0\0", b"# branch.ab \0", b"u UU N\0"];
        for odd in odd {
            assert!(parse(odd, b"").entries.is_empty());
        }
        let oid = "0".repeat(40);
        let cut = format!("? a\02 R. N... 100644 100644 100644 {oid} {oid} R100 new\0ol");
        let parsed = parse(cut.as_bytes(), b"");
        assert_eq!((parsed.entries.len(), parsed.truncated), (1, true), "half of a rename");
        let many = b"? x\0".repeat(MAX_GIT_ENTRIES + 1);
        let parsed = parse(&many, b"");
        assert_eq!((parsed.entries.len(), parsed.truncated), (MAX_GIT_ENTRIES, true));
    }
}
