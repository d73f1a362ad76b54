//! The same scripts given to the real bash: whatever it runs was found, or something was unknown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use super::hostile_tests::HIDDEN;
use super::*;

/// Of the scripts drawn by chance; bash is asked about the ones in which nothing was seen.
const CASES: usize = 10_000;

/// Bash finds no program but `danger` and what runs others, so that nothing else can happen.
const LEAVES: &[&str] = &[
    "danger",
    "danger",
    "danger",
    "danger x",
    "true",
    "x",
    "echo a",
    "x=1",
    "",
    "E",
    "\"",
    "'",
    "`",
    "\\",
    "#",
    "(",
    ")",
    "$",
    "{",
    "}",
    "<<E",
    "<<2",
    "]",
    "esac",
    "in",
    "*",
    "\\\n",
    "a#b",
    "1<<2",
    "case",
    "$x",
    "\t",
    "'a[$(danger)]'",
    "a[$(danger)]",
    "x='a[$(danger)]'",
    "-v",
    "--",
    "-",
    "+",
    "\\;",
    "{}",
    "'{}'",
    "-c",
    "-exec",
    "$",
    "-x",
    "x='$(danger)'",
    "=",
    "a=",
    "-eq",
    "<",
    ">",
    "&",
    "|",
    ";",
    "[",
    "\"$x\"",
    "$1",
    "\"$@\"",
    "E$",
    "''",
    "~",
    "!",
    "x='-v a[$(danger)]'",
    "x='danger '",
    "=~",
    "]]",
    "[[",
    "-n",
    "$!",
    "1",
];

/// With a script, or anything else, for every `@`.
const TEMPLATES: &[&str] = &[
    "@; @",
    "@ && @",
    "@ || @",
    "@\n@",
    "@\n@",
    "@ | @",
    "@ & @",
    "@ @",
    "@@",
    "(@)",
    "{ @\n}",
    "echo @",
    "echo $(@)",
    "$(@)",
    "\"@\"",
    "echo \"@\"",
    "echo \"$(@)\"",
    "'@'",
    "`@`",
    "echo `@`",
    "if @; then @; fi",
    "for x in @; do @; done",
    "for x do @; done",
    "while @; do break; done",
    "case @ in x) @;; esac",
    "case x in x) @;; esac",
    "case x in\n(y) @;;\n*) @\nesac",
    "f() { @\n}; f",
    "function f { @\n}; f",
    ": <<E\n@\nE\n@",
    ": <<'E'\n@\nE\n@",
    ": <<-E\n@\n\tE\n@",
    ": <<E; @\n@\nE\n@",
    "[[ @ ]]",
    "[[ x =~ @ ]]; @",
    "x=@",
    "x=(@)",
    "a[@]=1",
    "echo ${x:-@}",
    "echo \"${x:-@}\"",
    "$((@))",
    "((@))",
    "echo $((@)); @",
    "eval '@'",
    "bash -c '@'",
    "bash -c \"@\"",
    "# @\n@",
    "@ # @\n@",
    "@ #@\n@",
    "@\\\n@",
    "trap '@' EXIT",
    "command @",
    "exec @",
    "! @",
    "time @",
    "@ >/dev/null",
    ": <(@)",
    ": <<<@",
    "@ 2>&1",
    "$'@'",
    "x=1 @",
    "{ @; }",
    "select x in @; do @; done",
    ": <<\\\n-E\n@\nE\n@\n-E",
    ": <<$\n@\n$\n@",
    ": <<@\n@\nE\n@",
    "[[ @ -eq @ ]]",
    "[[ -v @ ]]",
    "[ @ ]",
    "[ @ @ ]",
    "[ @ @ @ ]",
    "test @ @",
    "for x in @; do ((x)); done",
    "for @ in @; do @; done",
    "for ((@; @; @)); do @; break; done",
    "echo ${x:@}",
    "echo ${x@}",
    "echo ${@}",
    "echo ${@:-@}",
    "echo \"${x@P}\"",
    "@; echo $((x))",
    "@; echo $(($x))",
    "echo $((@=1)); @",
    "let @",
    "printf @ @ x",
    "printf -v @ x",
    "unset @",
    "read @ <<< x",
    "read -r @ @ <<< x",
    "export @; @",
    "export x=@; @",
    "command export x=@; @",
    "declare @ @; @",
    "local @",
    "x=([@]=@)",
    "x=(@ @); @",
    "{@}>/dev/null @",
    "{x}>/dev/null @",
    "2>/dev/null @",
    "${@}x=1",
    "@=1 @",
    "@x=1",
    "env @ @",
    "env - @",
    "env a-b=1 @",
    "env @=1 @",
    "env -i PATH=$PATH @",
    "env 'BASH_FUNC_x%%=() { @; }' bash -c x",
    "eval -- '@'",
    "eval @ @",
    "trap -- '@' EXIT",
    "trap @ EXIT",
    "echo '@' | xargs -I{} bash -c '{}'",
    "echo '@' | xargs @ bash -c @",
    "echo '@' | xargs @",
    "find . -maxdepth 0 -exec @ + @ \\;",
    "find . -maxdepth 0 -exec @ \\; -exec @ \\;",
    "find . -maxdepth 0 -name @ -exec @ {} +",
    "find @ @ @",
    "x=@; find . -maxdepth 0 $x @",
    "bash @ @ @",
    "bash -ooc errexit pipefail '@'",
    "bash -eo pipefail -c '@'",
    "bash -rcfile /dev/null -c '@'",
    "bash -@ '@'",
    "PS4='$(@)'; set -x; :",
    "PS4=@ bash -xc @",
    "BASH_ENV='$(@)' bash -c :",
    "x='$(@)'; echo ${x@P}",
    "BASH_CMDS=([x]=danger); x",
    "BASH_ALIASES=([x]=danger); shopt -s expand_aliases\nx",
    "RANDOM=@",
    "set @ @; @",
    "set -- @; \"$@\"",
    "shopt @ @; @",
    "@ &\\\n& @",
    "@ |\\\n| @",
    "@ ;\\\n@",
    "@ @\\\n@",
    "@ |& @",
    "@ &> /dev/null; @",
    "@ <&@",
    "@ >&@",
    "(@) @",
    "{ @; } @",
    "if @; then @; elif @; then @; else @; fi",
    "until @; do @; done",
    "f() @; f",
    "function f () { @; }; f @",
    "@() { @; }; @",
    "coproc @",
    "[[ @ == @ ]]",
    "[[ @ && ( @ ) ]]; @",
    "[[ x =~ (@) ]]; @",
    "[[ x < @ ]]; @",
    "((@)); @",
    "( (@) )",
    "((@) )",
    "$(@; (@))",
    "echo $(: <<E\n@\nE\n); @",
    "echo \"$(: <<'E'\n@\nE\n)\"; @",
    ": <<E <<'F'\n@\nE\n@\nF\n@",
    "echo `: <<E\n@\nE\n`; @",
    "echo \"`@`\" @",
    "echo ${x:-@} \"${x:-@}\" @",
    "echo ${x%@} ${x##@}; @",
    "case @ in @|@) @;; (@) @;& *) @;;& esac",
    "wait @ @",
    "mapfile -C @ -c 1 <<< x",
    "hash -p @ x; x",
    "! ! @",
    "time -p @",
    "builtin @ @",
    "command -p @",
    "command -v @; @",
    "exec @ @",
    "exec -a @ @ @",
    "env -u @ @ @",
    "x=@; env -u $x @ @",
    "env -u $! @ @",
    "env -C @ . @",
    "nice -n @ @ @",
    "timeout -k @ @ @",
    "timeout -s @ 5 @",
    "IFS=@; timeout -k $((515)) @",
    "echo '@ @' | xargs env -u",
    "echo @ | xargs -n @ @ @",
    "echo @ | xargs -I @ @ @",
    "sudo A=1 -u root @",
    "set -- @ @; env A=\"${x:-$@}\" @",
    "set -- @ @; [ \"${x:-$@}\" ]",
    ": > X; : > danger; find X danger -exec env @ {} +",
    "[[ @ @ ]] && @ && [[ @ ]]",
    "[[ =~ @ ]] && @ && [[ x ]]",
    "[[ @ =~ ]] || @ || [[ x ]]",
    "[[ @ == =~ ]] || @ || [[ y ]]",
    ": <<E\n`echo \\\"@; @; echo \\\"@`\nE",
    "((: <<-E\n@\n\tE\n@) )",
    "((: <<E\n@\nE\n@) )",
    "csh -c '@'",
];

fn filled(template: &str, parts: &[String]) -> String {
    let mut parts = parts.iter().cycle();
    let slot = |piece: char| match piece {
        '@' => parts.next().cloned().unwrap_or_default(),
        piece => piece.to_string(),
    };
    template.chars().map(slot).collect()
}

fn scripts() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(LEAVES).prop_map(str::to_owned);
    let grown = leaf.prop_recursive(3, 16, 3, |inner| {
        let parts = prop::collection::vec(inner, 3);
        (prop::sample::select(TEMPLATES), parts)
            .prop_map(|(template, parts)| filled(template, &parts))
    });
    prop_oneof![grown, bent()]
}

/// A script that hides something, with a few places changed.
fn bent() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), 0..4_usize, prop::sample::select(LEAVES));
    let changes = prop::collection::vec(change, 1..4);
    (prop::sample::select(HIDDEN), changes).prop_map(|(script, changes)| {
        let mut script: Vec<char> = script.chars().collect();
        for (place, removed, leaf) in changes {
            let at = place.index(script.len() + 1);
            let end = (at + removed).min(script.len());
            let put = if removed % 2 == 0 { leaf } else { "" };
            script.splice(at..end, put.chars());
        }
        script.into_iter().collect()
    })
}

/// What every script may find: `danger`, which leaves a mark beside its directory, and programs that
/// run others.
fn programs_in(bin: &Path) {
    fs::create_dir_all(bin).unwrap();
    let danger = bin.join("danger");
    fs::write(&danger, "#!/bin/sh\n: > \"${0%/bin/danger}/mark\"\n").unwrap();
    fs::set_permissions(&danger, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["bash", "env", "find", "nice", "timeout", "xargs"] {
        let real = ["/bin", "/usr/bin"].map(|directory| Path::new(directory).join(name));
        let real = real.into_iter().find(|path| path.exists()).expect("it is on every machine");
        std::os::unix::fs::symlink(real, bin.join(name)).unwrap();
    }
}

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    /// None where there is no bash.
    fn new() -> Option<Self> {
        if !Path::new("/bin/bash").exists() {
            println!("skipped: there is no bash here");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        programs_in(&directory.path().join("bin"));
        Some(Self { directory })
    }

    /// Those in which bash runs it, each in a place of its own: what one left in the background says nothing
    /// about the others.
    fn run_danger<'s>(&self, scripts: &[&'s str]) -> Vec<&'s str> {
        const AT_ONCE: usize = 4;
        std::thread::scope(|scope| {
            let run = |first: usize| {
                let mine = scripts.iter().enumerate().skip(first).step_by(AT_ONCE);
                mine.filter(|(index, script)| self.runs_danger(*index, script))
                    .map(|(_, script)| *script)
                    .collect::<Vec<_>>()
            };
            let threads = [0, 1, 2, 3].map(|first| scope.spawn(move || run(first)));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn runs_danger(&self, index: usize, script: &str) -> bool {
        let place = self.directory.path().join(index.to_string());
        // Where the script is, so that `> x` writes nowhere else.
        fs::create_dir_all(place.join("here")).unwrap();
        std::os::unix::fs::symlink(self.directory.path().join("bin"), place.join("bin")).unwrap();
        let status = Command::new("/usr/bin/timeout")
            .args(["-s", "KILL", "5", "/bin/bash", "--norc", "-c"])
            // As a model's command is run.
            .arg(format!("ulimit -u 2000 -f 1000; enable -n kill; eval -- {}", quoted(script)))
            .current_dir(place.join("here"))
            .env_clear()
            .env("PATH", place.join("bin"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok() && place.join("mark").exists()
    }
}

fn is_seen(script: &str) -> bool {
    let found = read(script);
    let danger = |part: &Part| part.words.first().is_some_and(|word| word.text == "danger");
    !found.unknown.is_empty() || found.parts.iter().any(danger)
}

#[test]
fn whatever_bash_runs_was_seen() {
    let Some(bench) = Bench::new() else { return };
    let cases = std::env::var("SANDBANK_CASES").ok().and_then(|text| text.parse().ok());
    let mut runner = TestRunner::new(Config::default());
    let mut drawn: Vec<String> = Vec::new();
    for _ in 0..cases.unwrap_or(CASES) {
        let script = scripts().new_tree(&mut runner).unwrap().current();
        // Bash has nothing to add where something was seen, or where there is nothing to run.
        if script.contains("danger") && !is_seen(&script) {
            drawn.push(script);
        }
    }
    println!("bash is asked about {} scripts", drawn.len());
    assert!(drawn.len() > 50, "too few say anything: {}", drawn.len());
    let control = "x=1; danger";
    let asked: Vec<&str> = drawn.iter().map(String::as_str).chain([control]).collect();
    assert_eq!(bench.run_danger(&asked), [control], "bash ran what was not seen, or nothing");
}

/// Else a list of tricks may hold nothing but mistakes.
#[test]
fn the_hidden_commands_are_ones_that_bash_runs() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run_danger(HIDDEN).len();
    println!("bash ran {ran} of {} hidden commands", HIDDEN.len());
    assert!(ran * 10 > HIDDEN.len() * 7, "bash ran {ran} of {}", HIDDEN.len());
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_text_makes_it_panic_or_loses_its_bounds(script in ".{0,300}") {
        let found = read(&script);
        prop_assert!(found.parts.len() <= super::MAX_PARTS);
    }

    #[test]
    fn no_script_makes_it_panic(script in scripts()) {
        read(&script);
    }

    /// However it is wrapped, it is found, or something is unknown.
    #[test]
    fn a_command_is_found_in_any_wrapping(layers in prop::collection::vec(0..WRAPPINGS.len(), 0..6)) {
        let mut script = "danger x".to_owned();
        for layer in &layers {
            script = WRAPPINGS[*layer](&script);
        }
        let found = read(&script);
        let danger = |part: &Part| part.words.first().is_some_and(|word| word.text == "danger");
        prop_assert!(found.parts.iter().any(danger) || !found.unknown.is_empty(), "{script}");
    }
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}

type Wrapping = fn(&str) -> String;

const WRAPPINGS: [Wrapping; 14] = [
    |script| format!("({script}\n)"),
    |script| format!("{{ {script}\n}}"),
    |script| format!("echo $({script}\n)"),
    |script| format!("echo \"$({script}\n)\""),
    |script| format!("bash -c {}", quoted(script)),
    |script| format!("sudo -u root bash -lc {}", quoted(script)),
    |script| format!("eval {}", quoted(script)),
    |script| format!("true && {script}"),
    |script| format!("true; {script} | cat"),
    |script| format!("if true; then\n{script}\nfi"),
    |script| format!("for x in 1 2; do {script}\ndone"),
    |script| format!("f() {{ {script}\n}}; f"),
    |script| format!("# about it\n{script}"),
    |script| format!("find . -exec sh -c {} \\;", quoted(script)),
];
