//! `sandbank search`, end to end: what it prints, for people and for programs, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Output, Stdio};

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

const TREE: &str = r#"
    mkdir -p src/deep .hidden build
    printf 'first\nlet wanted = 1;\nlast wanted wanted\n' > src/main.rs
    printf 'nothing here\nWanted, with a capital\n' > src/deep/notes.txt
    echo wanted > .hidden/file
    echo wanted > build/out.rs
    echo build/ > .ignore
    printf 'a \033[31mwanted trap\n' > trap
"#;

struct Sought {
    daemon: TestDaemon,
    key: &'static str,
}

impl Sought {
    async fn start() -> anyhow::Result<Self> {
        let daemon = TestDaemon::start(SANDBANK).await?;
        let api = daemon.api()?;
        let id = api.create("sought").await?;
        let (code, _, complaint) = api.run(&id, TREE).await?;
        anyhow::ensure!(code == 0, "{complaint}");
        Ok(Self { daemon, key: "sought" })
    }

    fn search(&self, words: &[&str]) -> Output {
        let mut command = self.daemon.cli();
        command.arg("search").arg(self.key).args(words).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// The lines, sorted: files come as they are found.
    fn found(&self, words: &[&str]) -> Vec<String> {
        let output = self.search(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", err(&output));
        let mut lines: Vec<_> = out(&output).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_and_names_are_found_as_ripgrep_would_print_them() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let sought = Sought::start().await?;
    let in_main = ["src/main.rs:2:let wanted = 1;", "src/main.rs:3:last wanted wanted"];
    let everywhere = [in_main[0], in_main[1], "trap:1:a \u{1b}[31mwanted trap"];
    assert_eq!(sought.found(&["wanted"]), everywhere);
    assert_eq!(sought.found(&["wanted", "src"]), in_main);
    assert_eq!(sought.found(&["-F", "wanted = 1", "-g", "*.rs"]), in_main[..1]);
    let capital = "src/deep/notes.txt:2:Wanted, with a capital";
    assert_eq!(sought.found(&["-i", "wanted,", "src"]), [capital]);
    assert_eq!(sought.found(&["-w", "want(ed)?", "src/main.rs"]), in_main);
    assert!(sought.found(&["wanted", "--hidden"]).contains(&".hidden/file:1:wanted".to_owned()));
    let ignored = sought.found(&["wanted", "--no-ignore"]);
    assert!(ignored.contains(&"build/out.rs:1:wanted".to_owned()), "{ignored:?}");
    let around = out(&sought.search(&["-C", "1", "wanted = 1"]));
    let expected = "src/main.rs-1-first\nsrc/main.rs:2:let wanted = 1;\n\
                    src/main.rs-3-last wanted wanted\n";
    assert_eq!(around, expected);

    assert_eq!(sought.found(&["--names", "e"]), ["src/deep/", "src/deep/notes.txt"]);
    assert_eq!(sought.found(&["--names", "main", "src"]), ["src/main.rs"]);
    sought.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_with_0_1_or_an_error_of_another_code() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut sought = Sought::start().await?;
    let nothing = sought.search(&["no such text anywhere"]);
    assert_eq!((nothing.status.code(), out(&nothing)), (Some(1), String::new()));
    assert_eq!(err(&nothing), "");
    assert_eq!(sought.search(&["--names", "no such name"]).status.code(), Some(1));

    let broken = sought.search(&["wanted("]);
    assert_eq!((broken.status.code(), out(&broken)), (Some(64), String::new()));
    let said = err(&broken);
    assert!(
        said.contains("unclosed group") && said.contains("hint: ") && said.contains("-F"),
        "{said}"
    );
    assert_eq!(sought.found(&["-F", "wanted", "src/main.rs"]).len(), 2);

    let nowhere = sought.search(&["wanted", "no/such/place"]);
    assert_eq!((nowhere.status.code(), out(&nowhere)), (Some(2), String::new()));
    let said = err(&nowhere);
    assert!(said.starts_with("error: ") && said.contains("no/such/place"), "{said}");

    sought.key = "nobody";
    let missing = sought.search(&["wanted"]);
    assert_eq!((missing.status.code(), out(&missing)), (Some(2), String::new()));
    let said = err(&missing);
    assert!(said.contains("nobody") && said.contains("`sandbank ps`"), "{said}");
    sought.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_records_with_an_end_and_nothing_else() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let sought = Sought::start().await?;
    let records = |words: &[&str]| -> (Option<i32>, Vec<Value>) {
        let output = sought.search(words);
        assert_eq!(err(&output), "");
        let lines = out(&output);
        let records = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        (output.status.code(), records.collect())
    };
    let (code, text) = records(&["--json", "wanted wanted"]);
    assert_eq!((code, text.len()), (Some(0), 2));
    assert_eq!(text[0]["match"]["path"], "src/main.rs");
    assert_eq!(text[0]["match"]["ranges"], json!([[5, 18]]));
    assert_eq!(
        (&text[1]["end"]["matches"], &text[1]["end"]["truncated"]),
        (&json!(1), &json!(false))
    );
    let (code, names) = records(&["--json", "--names", "main"]);
    assert_eq!((code, names.len()), (Some(0), 2));
    assert_eq!(names[0], json!({ "path": "src/main.rs", "kind": "file" }));
    let (code, none) = records(&["--json", "no such text"]);
    assert_eq!((code, none.len(), &none[0]["end"]["matches"]), (Some(1), 1, &json!(0)));
    sought.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn colours_are_for_terminals_and_nothing_found_acts_on_one() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let sought = Sought::start().await?;
    let on_terminal = |variables: &[(&str, &str)]| {
        let cli = sought.daemon.cli();
        let words = format!("{} search {} wanted", cli.get_program().to_str().unwrap(), sought.key);
        // util-linux's `script` has a terminal to give.
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &words, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
        for (name, value) in cli.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let output =
            script.envs(variables.iter().copied()).env_remove("LS_COLORS").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    let coloured = on_terminal(&[("NO_COLOR", "")]);
    assert!(coloured.contains("\u{1b}[31mwanted\u{1b}[0m"), "{coloured:?}");
    // What the file has of its own is shown, not done.
    assert!(!coloured.contains("a \u{1b}[31m"), "{coloured:?}");
    let plain = on_terminal(&[("NO_COLOR", "1")]);
    assert!(plain.contains("src/main.rs:2:let wanted = 1;"), "{plain:?}");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert!(sought.found(&["wanted", "src"]).iter().all(|line| !line.contains('\u{1b}')));
    sought.daemon.finish().await
}
