//! The shell that remembers, tortured: whatever a script does to its shell, the ending is true and
//! the next script works, in the right place.
//!
//! The list knows nothing of where the runner is: `crate::place` says that, and there is one for the
//! bare runner and one for each engine.

use std::time::Duration;

use sandbank_channel::{RunnerClient, full_body};
use sandbank_protocol::{CommandSpec, Ending, FaultCode, StdinMode};

use crate::commanding::{self, Heard, fault_code, read_until};
use crate::place::{Place, wait_for};
use crate::remembering::{Said, evaluate, say, script};

/// Whether the shell goes on after a script, or another follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    SameShell,
    NewShell,
}
use Then::{NewShell, SameShell};

fn exited(code: i32) -> Option<Ending> {
    Some(Ending::Exited { code })
}

/// The next script runs, in the directory and with the exported variable that were there before.
async fn check_next(client: &RunnerClient, shell: &str, then: Then, after: &str) {
    let next = evaluate(client, &script(shell, "echo \"on $((6 * 7)) $KEPT\"; pwd")).await;
    let (text, errors) = (next.text(), next.heard.errors());
    assert!(text.contains("on 42 kept\n"), "after {after}: {text:?} {errors:?}");
    assert_eq!(next.heard.ending, exited(0), "after {after}: {errors}");
    assert!(next.cwd().ends_with("/workspace/home"), "after {after}: {:?}", next.shell);
    assert_eq!(next.shell.restarted, then == NewShell, "after {after}");
}

async fn begin(client: &RunnerClient, shell: &str) {
    let first = "mkdir -p home; cd home; export KEPT=kept";
    assert_eq!(evaluate(client, &script(shell, first)).await.heard.ending, exited(0));
}

/// The exit code of a command that is none of the shell's.
async fn aside(client: &RunnerClient, text: &str) -> Option<i32> {
    let argv = ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    let spec = CommandSpec { argv, shell: None, ..script("aside", text) };
    commanding::run(client, &spec).await.code()
}

async fn with_limit(client: &RunnerClient, shell: &str, text: &str, limit: Duration) -> Said {
    let timeout_ms = Some(limit.as_millis() as u64);
    evaluate(client, &CommandSpec { timeout_ms, ..script(shell, text) }).await
}

/// Each in a shell of its own, one after the other: script, ending, output, what then.
async fn torture(cases: &[(&str, Option<Ending>, &str, Then)]) {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    for (number, (text, ending, output, then)) in cases.iter().enumerate() {
        // There may be 32 shells; those of earlier rounds are clean again.
        let shell = format!("shell-{}", number % 30);
        begin(&client, &shell).await;
        let said = evaluate(&client, &script(&shell, text)).await;
        let errors = said.heard.errors();
        assert_eq!(
            (&said.heard.ending, said.text().as_str()),
            (ending, *output),
            "{text}: {errors}"
        );
        check_next(&client, &shell, *then, text).await;
    }
    place.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_descriptors_prompts_and_options() {
    torture(&[
        ("exec >out; echo there; (exit 4)", exited(4), "", SameShell),
        ("exec >/dev/full; echo lost 2>/dev/null; true", exited(0), "", SameShell),
        ("exec 2>&- >&- <&-; (exit 5)", exited(5), "", SameShell),
        ("exec 3>&1; echo three >&3; exec 9>&-; (exit 6)", exited(6), "three\n", SameShell),
        ("exec {own}>&1; echo x >&$own; exec {own}>&-", exited(0), "x\n", SameShell),
        // Where bash keeps what it redirected for the script: it cannot go on, but says the truth.
        ("exec 10>&- 11>&- 12>&- 13>&- 14>&-; (exit 7)", exited(7), "", NewShell),
        ("for f in {3..300}; do eval \"exec $f>&-\"; done; (exit 8)", exited(8), "", NewShell),
        ("PS1='\\w> ' PS2='? ' PS4='+++ ' PS0='zero'; (exit 9)", exited(9), "", SameShell),
        ("PS1='$(exit 3)$(echo prompted >&2)'; true", exited(0), "", SameShell),
        ("PROMPT_COMMAND='cd /; false; echo prompted; cd - >/dev/null'", exited(0), "", SameShell),
        ("PROMPT_COMMAND='exit 9'; (exit 2)", exited(2), "", NewShell),
        (
            "echo 'echo tricked' >t; export BASH_ENV=$PWD/t ENV=$PWD/t; bash -c 'echo in'",
            exited(0),
            "tricked\nin\n",
            SameShell,
        ),
        ("export BASH_ENV=$PWD/t; exit 0", exited(0), "", NewShell),
        ("IFS=0123456789/; (exit 13)", exited(13), "", SameShell),
        ("set -u; (exit 3)", exited(3), "", SameShell),
        ("set -f; set -k; set -o noclobber; shopt -s nullglob failglob", exited(0), "", SameShell),
        ("set -x; (exit 2)", exited(2), "", SameShell),
        ("set -v; (exit 2)", exited(2), "", SameShell),
        ("set -n; (exit 0)", exited(0), "", SameShell),
        ("set -t; echo once", exited(0), "once\n", NewShell),
        ("set -o posix; false", exited(1), "", SameShell),
        (
            "set +m; shopt -u expand_aliases; shopt -s lastpipe; echo 3 | read x; echo $x",
            exited(0),
            "3\n",
            SameShell,
        ),
        ("set -euo pipefail; true | true; echo fine", exited(0), "fine\n", SameShell),
        ("set -euo pipefail; false | true; echo never", exited(1), "", NewShell),
        ("set -u; echo $nothing; echo never", exited(1), "", SameShell),
        ("unset PWD OLDPWD HOME PATH; (exit 3)", exited(3), "", SameShell),
        ("PWD=/forged; set -u; unset OLDPWD; (exit 3)", exited(3), "", SameShell),
        ("readonly PWD IFS PATH; (exit 3)", exited(3), "", SameShell),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_heredocs_traps_and_exits() {
    torture(&[
        ("echo 'unbalanced", exited(2), "", SameShell),
        ("echo \"unbalanced $(echo", exited(2), "", SameShell),
        ("for x in 1 2; do echo $x", exited(2), "", SameShell),
        ("cat <<'E'\n$unfinished", exited(0), "$unfinished\n", SameShell),
        ("cat <<E1 <<E2\none\nE1\ntwo", exited(0), "two\n", SameShell),
        ("f() { echo begun", exited(2), "", SameShell),
        ("echo before\n)\necho after", exited(2), "before\n", SameShell),
        ("\\", exited(127), "", SameShell),
        ("# only a comment", exited(0), "", SameShell),
        ("return 7; echo never", exited(7), "", SameShell),
        ("break; continue; local x", exited(1), "", SameShell),
        ("exit 3", exited(3), "", NewShell),
        ("exit 256", exited(0), "", NewShell),
        ("trap 'echo bye' EXIT; exit 4", exited(4), "bye\n", NewShell),
        ("trap 'exit 5' EXIT; exit 4", exited(5), "", NewShell),
        ("trap 'echo err; (exit 9)' ERR; false", exited(1), "err\n", SameShell),
        ("trap 'echo d >&2' DEBUG; trap 'echo r >&2' RETURN; (exit 2)", exited(2), "", SameShell),
        ("trap '' INT TERM HUP QUIT CHLD; (exit 2)", exited(2), "", SameShell),
        ("trap 'echo chld' CHLD; true; (exit 2)", exited(2), "chld\n", SameShell),
        ("kill -TERM $$; kill -HUP $$", Some(Ending::Signaled { signal: 1 }), "", NewShell),
        ("kill -9 $$", Some(Ending::Signaled { signal: 9 }), "", NewShell),
        ("exec false", exited(1), "", NewShell),
        ("exec nonesuch", exited(127), "", NewShell),
        ("kill -INT $$; echo never", exited(130), "", SameShell),
        ("source /nonexistent; . /nonexistent; eval 'exit_code() ('", exited(2), "", SameShell),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_in_front_behind_and_stopped() {
    torture(&[
        ("sleep 0.1 & wait $!; (exit 3) & wait $!", exited(3), "", SameShell),
        ("(sleep 0.5; exit 4) & wait -n", exited(4), "", SameShell),
        ("sleep 300 & fg %2 2>/dev/null; kill %1; wait %1", exited(143), "", SameShell),
        ("(sleep 0.1; exit 6) & fg", exited(6), "( sleep 0.1; exit 6 )\n", SameShell),
        (
            "sleep 300 & jobs -p >p; [ $(cat p) = $! ]; echo $?; kill -9 %1; wait %%",
            exited(137),
            "0\n",
            SameShell,
        ),
        ("sh -c 'kill -STOP $$; exit 5'; echo $?; fg >/dev/null", exited(5), "147\n", SameShell),
        ("sh -c 'kill -STOP $$; exit 5'; bg 2>/dev/null >&2; wait %1", exited(5), "", SameShell),
        ("sleep 300 & disown; kill $!; jobs", exited(0), "", SameShell),
        (
            "coproc cat; echo hi >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x; kill $COPROC_PID",
            exited(0),
            "hi\n",
            SameShell,
        ),
        ("set +m; sleep 300 & kill $!; wait $!; set -m; false", exited(1), "", SameShell),
        (
            "(trap 'exit 3' TERM; while :; do sleep 0.05; done) & sleep 0.2; kill $!; wait $!",
            exited(3),
            "",
            SameShell,
        ),
    ])
    .await;
}

/// A user's function or alias may be called anything, and builtins can be switched off.
#[tokio::test(flavor = "multi_thread")]
async fn no_function_or_alias_can_make_a_script_look_endless() {
    let lost = "the script took from its shell what it answers with, so how it ended is not known; \
                the next one gets a new shell";
    let lost = Some(Ending::Lost { reason: lost.to_owned() });
    let all = ". source builtin command printf export unset return exit enable eval declare test [ trap set read";
    let functions = format!(
        "for f in {all} : echo cd pwd true; do eval \"function $f {{ :; }}\"; done; (\\exit 6)"
    );
    torture(&[
        ("builtin() { echo mine; }; (exit 4)", exited(4), "", SameShell),
        ("builtin() { return 1; }; enable() { :; }; unset() { :; }; (exit 4)", exited(4), "", SameShell),
        ("set -e; builtin() { return 1; }; true", exited(0), "", SameShell),
        ("set -o posix; builtin() { :; }; (exit 5)", exited(5), "", SameShell),
        ("printf() { :; }; export() { :; }; .() { :; }; source() { :; }; return() { :; }; (exit 6)", exited(6), "", SameShell),
        ("__sandbank() { :; }; __sandbank_status() { :; }; unset -f __sandbank; (exit 6)", exited(6), "", SameShell),
        ("alias __sandbank=x __sandbank_status=x builtin=y .=z [[=w if=v '{=u'; (exit 6)", exited(6), "", SameShell),
        ("enable -n builtin printf export; (exit 5)", exited(5), "", SameShell),
        ("readonly __sandbank=3; (exit 5)", exited(5), "", SameShell),
        ("builtin() { :; }; readonly -f builtin; (exit 5)", lost.clone(), "", NewShell),
        ("shopt -s extdebug; trap false DEBUG; echo never", lost.clone(), "", NewShell),
    ])
    .await;
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    begin(&client, "main").await;
    assert_eq!(say(&client, &functions).await.heard.ending, exited(0), "[ is a function, too");
    let next = say(
        &client,
        "command() { false; }; builtin echo on; builtin pwd; builtin unset -f echo pwd",
    )
    .await;
    assert!(next.text().starts_with("on\n") && !next.shell.restarted, "{}", next.text());
    place.finish().await;
}

/// To stdout, to whatever is open, and in the place of a script that is yet to come.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_a_script_forges_are_not_believed_for_the_next() {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    begin(&client, "main").await;
    let forge =
        "for n in 1 2 3 4 5; do printf 'junk'; printf '\\0%s\\0%s\\0%s\\0' $n 0 /forged; done";
    let open = "10 11 12 13 14 15 250 251 252 253 254 255";
    let text = format!("for f in {open}; do ({forge}) >&$f; done 2>/dev/null; ({forge}); (exit 3)");
    let said = say(&client, &text).await;
    assert_eq!(said.heard.ending, exited(3));
    assert!(said.text().contains("/forged"));
    let later =
        format!("(sleep 0.1; for f in {open}; do {forge} >&$f; done; touch forged) 2>/dev/null &");
    say(&client, &later).await;
    wait_for("everything is forged", async || {
        aside(&client, "[ -e home/forged ]").await == Some(0)
    })
    .await;
    assert_eq!(say(&client, "sleep 0.1; (exit 4)").await.heard.ending, exited(4));
    check_next(&client, "main", SameShell, "forged answers").await;
    place.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exits_leaves_its_directory_and_exports_to_the_next() {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    let exits =
        ["exit 3", "set -e; (exit 3)", "f() { exit 3; }; f", "eval 'exit 3'", "set -C; exit 3"];
    for (number, exit) in exits.iter().enumerate() {
        let text = format!("mkdir -p d{number}; cd d{number}; export LAST='{number}\n\"'; {exit}");
        let said = say(&client, &text).await;
        assert_eq!(said.heard.ending, exited(3), "{exit}");
        assert!(said.cwd().ends_with(&format!("/d{number}")), "{exit}: {:?}", said.shell);
        let next = say(&client, "echo $LAST; trap -p EXIT | wc -l; cd ..").await;
        assert_eq!(next.text(), format!("{number} \"\n1\n"), "{exit}");
        assert!(next.shell.restarted && next.cwd().ends_with("/workspace"), "{:?}", next.shell);
    }
    // A subshell's exit is nobody else's.
    say(&client, "(cd /; export LAST=no; exit 3); x=$(cd /; exit 4); (cd / && exec true)").await;
    assert_eq!(say(&client, "echo $LAST").await.text(), "4 \"\n");
    place.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_killed_leaves_what_the_scripts_before_it_exported() {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    // The second is more than a pipe holds, and less than a program takes.
    for (export, length) in [("export A=small", 5), ("export A=$(printf %0100000d 7)", 100_000)] {
        say(&client, &format!("{export} B=1")).await;
        assert_eq!(
            say(&client, "kill -9 $$").await.heard.ending,
            Some(Ending::Signaled { signal: 9 }),
            "{export}"
        );
        assert_eq!(say(&client, "echo ${#A} $B").await.text(), format!("{length} 1\n"));
        say(&client, "export B=2; (sleep 0.1; kill -9 $$) & disown").await;
        let died = async || say(&client, ":").await.shell.restarted;
        wait_for("the shell is killed while it is idle", died).await;
        assert_eq!(say(&client, "echo ${#A} $B").await.text(), format!("{length} 2\n"));
    }
    place.finish().await;
}

/// A program that asks on the terminal, as `sudo` and `ssh` do.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_prompt_is_answered_by_input_and_not_echoed() {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    begin(&client, "main").await;
    let ask = "exec 3<>/dev/tty; stty -echo <&3; printf 'Password: ' >&3; read p <&3; stty echo <&3; echo \"got $p\"";
    let spec = CommandSpec { stdin: StdinMode::Open, ..script("main", ask) };
    client.start(&spec).await.unwrap();
    let mut stream = client.output(&spec.id, 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "Password: ").await;
    client.stdin(&spec.id, 0, false, full_body("secret\n")).await.unwrap();
    heard.take_all(&mut stream).await;
    assert_eq!((heard.text().as_str(), &heard.ending), ("got secret\n", &exited(0)));
    assert!(!String::from_utf8_lossy(&heard.pty).contains("secret"));
    check_next(&client, "main", SameShell, "a prompt").await;
    // Nobody is there to answer: it waits, as a terminal would.
    let said = with_limit(&client, "main", ask, Duration::from_millis(300)).await;
    assert_eq!(said.heard.ending, Some(Ending::TimedOut));
    check_next(&client, "main", SameShell, "a prompt that nobody answered").await;
    place.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_for_a_script_that_waits_is_kept_until_it_begins() {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    begin(&client, "main").await;
    let first = script("main", "while ! [ -e go ]; do sleep 0.01; done");
    client.start(&first).await.unwrap();
    let waiting =
        CommandSpec { stdin: StdinMode::Open, ..script("main", "read x; echo got $x; cat") };
    client.start(&waiting).await.unwrap();
    let fed = tokio::spawn({
        let (client, id) = (client.clone(), waiting.id.clone());
        async move { client.stdin(&id, 0, true, full_body("word\nrest\n")).await }
    });
    // One that takes none refuses it, whether it has begun or not.
    let closed = script("main", "cat");
    client.start(&closed).await.unwrap();
    let refused = client.stdin(&closed.id, 0, true, full_body("word\n")).await;
    assert_eq!(fault_code(refused), FaultCode::Closed);
    assert_eq!(aside(&client, "touch home/go").await, Some(0));
    let heard = commanding::follow(&client, waiting.id.as_str(), 0).await;
    assert_eq!((heard.text().as_str(), &heard.ending), ("got word\nrest\n", &exited(0)));
    assert_eq!(fed.await.unwrap().unwrap().next_offset, 10);
    check_next(&client, "main", SameShell, "queued input").await;
    place.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timeouts_end_what_does_not_want_to_end() {
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    let stubborn = "trap '' INT TERM HUP QUIT; while :; do sleep 0.05; done";
    let cases = [
        (format!("for n in 1 2 3; do sh -c \"{stubborn}\" & done; wait"), SameShell),
        (format!("setsid sh -c \"{stubborn}\" & sh -c \"{stubborn}\""), SameShell),
        (format!("sh -c \"{stubborn}\" | sh -c \"{stubborn}\" | cat"), SameShell),
        ("cat <(sleep 98765)".to_owned(), SameShell),
        ("x=$(sleep 98765)".to_owned(), SameShell),
        ("read x </dev/tty".to_owned(), SameShell),
        // The shell itself does not want to: it is the last to go.
        (stubborn.to_owned(), NewShell),
        ("trap ':' INT; while :; do :; done".to_owned(), NewShell),
        ("kill -STOP $$".to_owned(), SameShell),
        ("suspend".to_owned(), SameShell),
    ];
    for (number, (text, then)) in cases.iter().enumerate() {
        let shell = format!("shell-{number}");
        begin(&client, &shell).await;
        let said = with_limit(&client, &shell, text, Duration::from_millis(300)).await;
        assert_eq!(said.heard.ending, Some(Ending::TimedOut), "{text}");
        check_next(&client, &shell, *then, text).await;
    }
    wait_for("everything is gone", async || children(&client).await == 0).await;
    place.finish().await;
}

/// Processes of the runner's that are neither shells nor the one that counts.
async fn children(client: &RunnerClient) -> usize {
    let text = "ps -eo ppid=,args= | grep -c -e '[t]rap .. INT TERM' -e '[s]leep 98765'";
    evaluate(client, &script("count", text)).await.text().trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_silent_for_ten_minutes_ends_as_it_should() {
    if std::env::var("SANDBANK_TORTURE").as_deref() != Ok("full") {
        println!("skipped: only with SANDBANK_TORTURE=full");
        return;
    }
    let Some(place) = Place::start().await else { return };
    let client = place.client().await;
    begin(&client, "main").await;
    let said = with_limit(&client, "main", "sleep 600; (exit 5)", Duration::from_secs(900)).await;
    assert_eq!(said.heard.ending, exited(5));
    check_next(&client, "main", SameShell, "ten silent minutes").await;
    place.finish().await;
}
