//! Generated scripts in the shell that remembers and in a plain bash: the same output, the same
//! status, the same directory and the same exported environment after every one of them.
//!
//! Each case has a number, which is printed when it fails; `SANDBANK_SEED=<number>` repeats it.
//! `SANDBANK_TORTURE=full` runs for minutes, from a number that nobody chose.
//!
//! What may differ, and why: the text of errors (it names the file that is read); variables that tell
//! where a process comes from (`UNTOLD`); `trap` without a name, which lists the shell's own trap for
//! its end. Nothing else is excused.
//!
//! Where the runner is, `crate::grounds` says: bare, or in a machine of an engine.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use sandbank_channel::RunnerClient;

use crate::commanding::{run, shell};
use crate::grounds::Grounds;
use crate::plain_bash::{Did, PlainBash};
use crate::remembering::{evaluate, script};

const SHORT: Duration = Duration::from_secs(15);
/// The same ones on every machine that is quick enough.
const MAX_SHORT: u64 = 200;
const LONG: Duration = Duration::from_secs(600);

/// How a process was started; `COLUMNS` and `LINES` are the terminal's.
const UNTOLD: [&str; 6] = ["_", "SHLVL", "SANDBANK_COMMAND", "TERM", "COLUMNS", "LINES"];

/// After each script, without changing its status.
const LOOK: &str = "look=$?; command env -0; return $look";

/// `V` is a variable, `W` a word, `N` a number, `D` a directory, `F` a function.
const STEPS: &[&str] = &[
    ":",
    "echo $? W",
    "V=W",
    "export V=W",
    "export V; V+=W",
    "export -n V",
    "unset V",
    "echo [$V] ${V-unset} ${#V}",
    "printf '%q\\n' \"$V\"",
    "printf '\\001\\377\\200\\n%s' W",
    "mkdir -p D; cd D",
    "cd D",
    "cd -",
    "cd ..",
    "cd /; pwd; cd - >/dev/null",
    "pushd D; popd; dirs | wc -w",
    "pwd",
    "(cd D; V=W; export V; exit N)",
    "V=$(echo W; exit N)",
    "V=$(cd D && pwd | wc -l)",
    "F() { echo F W $# $1; return N; }",
    "F a b",
    "F() { local V=W; V2=$V; declare -g V3=N; cd D; }",
    "F() { exit N; }",
    "export -f F 2>/dev/null; bash -c F",
    "unset -f F",
    "alias F='echo alias W'",
    "unalias F",
    "alias echo='echo aliased'",
    "unalias -a",
    "local V=W",
    "declare V=W; declare -i V2=N; V2+=1; echo $V2",
    "declare -x V=W",
    "declare -a A=(a 'b c' W); A[N]=x; echo ${#A[@]} ${A[*]} ${!A[*]}",
    "declare -A M=([a]=1 [W]=N); M[b]=$V; echo ${#M[@]} ${M[a]}",
    "readonly R=W",
    "R=W; echo after",
    "echo $((N * 2 + 1)) $((V2++)) ${V2-}",
    "((N - 1)); echo $?",
    "let V2=N-1",
    "set -e",
    "set +e",
    "set -u",
    "set +u",
    "set -o pipefail",
    "set +o pipefail",
    "set -f; echo *; set +f",
    "set -- a W c; echo $# $2",
    "echo $# $*; shift",
    "shopt -s nullglob; echo *.none",
    "shopt -u nullglob",
    "shopt -s extglob expand_aliases",
    "shopt -u expand_aliases",
    "shopt -s inherit_errexit lastpipe",
    "set +m; echo W | read V; echo $V; set -m",
    "false",
    "! true",
    "(exit N)",
    "true | false | true; echo ${PIPESTATUS[*]}",
    "echo W | (read x; echo got $x; exit N)",
    "false || echo or",
    "true && false && echo and",
    "if F; then echo yes; else echo no $?; fi",
    "for i in 1 2 3; do [ $i = N ] && continue; echo $i; done",
    "while :; do break; done; echo $?",
    "case $V in W) echo one;; *) echo other;; esac",
    "[[ $V == W* ]]",
    "test -n \"$V\"",
    "cat <<E\nhere $V $(echo W)\nE",
    "cat <<'E'\nhere $V\nE",
    "cat <<-E\n\t\there W\n\tE",
    "cat <<<\"$V\"",
    "cat <<'E'\nnever ended",
    "read V <<<W; echo $V",
    "read V; echo $? [$V]",
    "mapfile -t A < <(printf 'a\\nW\\n'); echo ${#A[@]}",
    "trap 'echo usr W $?' USR1",
    "kill -USR1 $BASHPID; echo signalled",
    "trap - USR1; trap -p USR1",
    "trap 'echo err $?' ERR",
    "trap - ERR",
    "trap 'echo bye $?' EXIT",
    "trap - EXIT",
    "trap 'echo ret' RETURN; F; trap - RETURN",
    "(exit N) & wait $!; echo $?",
    "sleep 0.01 & wait; echo $?; jobs",
    "{ echo background; } & wait $!",
    "exec 3>three; echo W >&3; exec 3>&-; cat three",
    "exec >gone; echo W",
    "exec 2>/dev/null",
    "exec {fd}>&1; echo W >&$fd; exec {fd}>&-",
    "echo W >W; ls | head -c 200",
    "eval 'echo W; V=N'",
    "eval 'echo \"unbalanced'",
    "echo 'V2=N; echo sourced; return N' >s; . ./s; echo $?",
    "return N",
    "exit N",
    "F() { return; }; F; echo $-",
    "nonesuch W",
    "./nonesuch",
    "cd /nonexistent",
    "kill -INT $$",
    "kill -9 $$",
    "exec true",
    "exec nonesuch",
    "echo ${V:?gone}",
    "echo ${V:=W} ${V/a/b} ${V^^} ${V@Q}",
    "echo \"unbalanced",
    "if true",
    "done",
    "F() { echo",
    "echo $(",
    "break; continue 2",
    "unset PWD; cd D; echo $PWD",
    "IFS=N; echo $V; IFS=$' \\t\\n'",
    "umask 02N; umask",
    "ulimit -c 0; ulimit -c",
    "echo $LINENO ${FUNCNAME-} ${BASH_SOURCE[0]:+file}",
    "echo ${!V2*}",
    "set -x; : W; set +x",
    "time -p true 2>/dev/null",
    "coproc cat; kill $COPROC_PID; wait $COPROC_PID 2>/dev/null; echo $?",
    "command -v F; type -t F echo",
    "printf -v V '%s-%d' W N; echo $V",
    "select x in a b; do echo $x; done 2>/dev/null",
];

const VARIABLES: &[&str] = &["V", "W1", "LONG_name", "x"];
const WORDS: &[&str] =
    &["plain", "'a  b'", "''", "'x\ny'", "$'\\t\\e'", "'é\"$'", "\"$(echo n)\"", "'*'"];
const DIRECTORIES: &[&str] = &["d", "'d e'", "d/../e", "$'new\\nline'"];
const FUNCTIONS: &[&str] = &["f", "ll"];

fn step() -> impl Strategy<Value = String> {
    use proptest::sample::select;
    let parts = (select(VARIABLES), select(WORDS), 0..4u8, select(DIRECTORIES), select(FUNCTIONS));
    (select(STEPS), parts).prop_map(|(step, (variable, word, number, directory, function))| {
        let number = number.to_string();
        let places = [
            ("V", variable),
            ("W", word),
            ("N", number.as_str()),
            ("D", directory),
            ("F", function),
        ];
        fill(step, &places)
    })
}

/// Only letters that stand alone, or before a number, are places.
fn fill(step: &str, places: &[(&str, &str)]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut filled = String::new();
    let mut rest = step;
    while let Some(begin) = rest.find(is_word) {
        filled.push_str(&rest[..begin]);
        let end = rest[begin..].find(|c| !is_word(c)).map_or(rest.len(), |length| begin + length);
        let word = &rest[begin..end];
        let place = places.iter().find(|(name, _)| *name == word);
        filled.push_str(place.map_or(word, |(_, text)| text));
        rest = &rest[end..];
    }
    filled + rest
}

fn scripts() -> impl Strategy<Value = Vec<String>> {
    let script = prop::collection::vec(step(), 1..6).prop_map(|steps| steps.join("\n"));
    prop::collection::vec(script, 1..6)
}

/// Runs them in both and compares after every one.
async fn compare(grounds: &mut Grounds, scripts: &[String]) -> Result<(), TestCaseError> {
    let ground = grounds.next().await;
    let (client, number) = (&ground.client, ground.number);
    let [ours, plain, notes] =
        ["ours", "plain", "notes"].map(|name| ground.inside.join(format!("{name}-{number}")));
    let made = format!("mkdir {} {} {}", ours.display(), plain.display(), notes.display());
    let made = run(client, &shell(&format!("ground-{number}"), &made)).await;
    assert_eq!(made.code(), Some(0), "{}", made.errors());
    let seen_notes = ground.seen.join(notes.file_name().unwrap());
    let mut plain_bash = PlainBash::start(client, &plain, &notes, &seen_notes).await;
    let (ours, plain) = (ours.to_str().unwrap(), plain.to_str().unwrap());
    let main = format!("main-{number}");
    let in_ours = async |text: &str| in_ours(client, &main, text).await;
    in_ours(&format!("cd {ours}")).await;
    plain_bash.evaluate(&format!("cd {plain}")).await.expect("it begins by answering");
    for text in scripts {
        for (text, is_look) in [(text.as_str(), false), (LOOK, true)] {
            let here = in_ours(text).await;
            let Some(there) = plain_bash.evaluate(text).await else {
                println!("left out: plain bash says nothing any more after {text:?}");
                return Err(TestCaseError::reject("there is nothing to compare with"));
            };
            let (here, there) = (seen(here, ours, is_look), seen(there, plain, is_look));
            let what = if is_look { "what is exported after" } else { "" };
            prop_assert_eq!(here, there, "ours and plain bash differ: {} {}", what, text);
        }
    }
    Ok(())
}

async fn in_ours(client: &RunnerClient, shell: &str, text: &str) -> Did {
    let said = evaluate(client, &script(shell, text)).await;
    Did {
        restarted: said.shell.restarted,
        cwd: said.shell.cwd,
        ending: said.heard.ending,
        stdout: said.heard.stdout,
    }
}

/// As text, without what may differ.
fn seen(did: Did, root: &str, is_look: bool) -> String {
    let mut parts: Vec<&[u8]> = did.stdout.split(|byte| *byte == 0).collect();
    if is_look {
        parts.retain(|part| {
            let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
            !UNTOLD.iter().any(|untold| name == untold.as_bytes())
        });
        parts.sort_unstable();
    }
    let stdout: Vec<String> = parts.iter().map(|part| part.escape_ascii().to_string()).collect();
    let Did { ending, cwd, restarted, .. } = &did;
    format!("{ending:?} {cwd:?} {restarted} {stdout:#?}").replace(root, "ROOT")
}

#[test]
fn generated_scripts_do_in_ours_what_they_do_in_a_plain_bash() {
    let is_full = std::env::var("SANDBANK_TORTURE").as_deref() == Ok("full");
    let chosen: Option<u64> = std::env::var("SANDBANK_SEED").ok().map(|seed| seed.parse().unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let first = chosen.unwrap_or(if is_full { now } else { 1 });
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let Some(grounds) = tokio.block_on(Grounds::start()) else { return };
    let grounds = RefCell::new(grounds);
    let until = Instant::now() + if is_full { LONG } else { SHORT };
    for seed in first.. {
        println!("SANDBANK_SEED={seed}");
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = ProptestConfig {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: 60,
            ..ProptestConfig::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let checked = TestRunner::new_with_rng(config, rng).run(&scripts(), |scripts| {
            tokio.block_on(compare(&mut grounds.borrow_mut(), &scripts))
        });
        match checked {
            Ok(()) => {}
            Err(TestError::Fail(reason, scripts)) => {
                panic!("SANDBANK_SEED={seed} repeats it. {reason}\nall scripts: {scripts:#?}")
            }
            Err(error) => panic!("SANDBANK_SEED={seed} repeats it. {error}"),
        }
        let enough = !is_full && seed >= MAX_SHORT;
        if chosen.is_some() || enough || Instant::now() > until {
            println!("cases {first} to {seed}");
            return tokio.block_on(grounds.into_inner().finish());
        }
    }
}
