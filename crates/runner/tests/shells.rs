//! The shell that remembers: what one script leaves is there for the next, and nothing a script
//! does can make the shell lie about it.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;
mod remembering;

use std::time::Duration;

use commanding::{Heard, follow, read_until};
use live_runner::{LiveRunner, wait_for};
use remembering::{evaluate, say, script};
use sandbank_channel::full_body;
use sandbank_protocol::{CommandSpec, Ending, PtySize, ShellKind, SignalRequest, StdinMode};

#[tokio::test]
async fn directory_variables_functions_aliases_options_and_status_persist() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let first = say(&client, "mkdir sub; cd sub; x=5; export Y=6; f() { echo f$1; }; alias ll='echo al'; set -o noclobber; false").await;
    assert_eq!(first.heard.code(), Some(1));
    assert!(first.cwd().ends_with("/workspace/sub"), "{:?}", first.shell);
    assert_eq!(first.shell.kind, ShellKind::Bash);
    let second =
        say(&client, "echo $? $x $Y $(pwd); f 7; ll; echo z >n; echo z >n; sh -c 'echo $Y'").await;
    let lines: Vec<String> = second.text().lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("1 5 6 ") && lines[0].ends_with("/workspace/sub"), "{lines:?}");
    assert_eq!(lines[1..], ["f7", "al", "6"]);
    assert!(second.heard.errors().contains("cannot overwrite"), "{}", second.heard.errors());
    assert!(!second.shell.restarted);
    let other = evaluate(&client, &script("other", "echo [$x]; pwd")).await;
    assert!(other.text().starts_with("[]\n") && other.cwd().ends_with("/workspace"));
}

#[tokio::test]
async fn whatever_a_script_does_its_code_is_true_and_the_shell_goes_on() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let cases: &[(&str, i32, &str)] = &[
        ("exit_code() { return 7; }; exit_code", 7, ""),
        ("echo 'unbalanced", 2, ""),
        ("if true", 2, ""),
        ("cat <<EOF\nheld\nEOF", 0, "held\n"),
        ("cat <<EOF\nunfinished", 0, "unfinished\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("exec 2>&-; echo x >&2; echo y", 0, "y\n"),
        ("exec >/dev/null; echo lost", 0, ""),
        ("echo seen", 0, "seen\n"),
        ("PS1='a> ' PS2='b> ' PROMPT_COMMAND='echo prompted'", 0, ""),
        ("echo next", 0, "next\n"),
        (
            "unset PS1 PROMPT_COMMAND; printf '1\\0000\\000/x\\000\\000'; exit_code 2>&1",
            7,
            "1\u{0}0\u{0}/x\u{0}\u{0}",
        ),
        ("set -u; echo $nothing; echo not reached", 1, ""),
        ("set +u; echo still", 0, "still\n"),
        ("alias builtin=false printf=false .=false; echo fine", 0, "fine\n"),
        ("unalias -a; false | true; echo ${PIPESTATUS[0]}", 0, "1\n"),
        ("sleep 300 & echo $! >job; jobs | wc -l", 0, "1\n"),
        ("kill %1; wait %1; echo $?", 0, "143\n"),
        ("read line; echo [$line]", 0, "[]\n"),
        ("(exit 3)", 3, ""),
        ("nonesuch", 127, ""),
        ("trap 'echo usr' USR1; kill -USR1 $$; echo after", 0, "usr\nafter\n"),
        ("ls -l /proc/self/fd | grep -c -e pipe -e pts", 0, "2\n"),
    ];
    for (text, code, output) in cases {
        let said = say(&client, text).await;
        assert_eq!(
            (said.heard.code(), said.text().as_str()),
            (Some(*code), *output),
            "{text}: {}",
            said.heard.errors()
        );
        assert!(!said.shell.restarted, "{text}");
    }
}

#[tokio::test]
async fn a_shell_that_dies_is_followed_by_one_with_its_directory_and_exports() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    say(&client, "mkdir -p d; cd d; export KEPT='a b\n\"c'; gone=1").await;
    for (text, ending) in [
        ("exit 3", Ending::Exited { code: 3 }),
        ("kill -9 $$", Ending::Signaled { signal: 9 }),
        ("exec true", Ending::Exited { code: 0 }),
        ("set -e; false; echo never", Ending::Exited { code: 1 }),
    ] {
        let said = say(&client, text).await;
        assert_eq!(said.heard.ending, Some(ending), "{text}");
        let next = say(&client, "echo [$KEPT] [$gone]; pwd").await;
        assert!(next.shell.restarted, "{text}");
        assert!(next.text().starts_with("[a b \"c] []\n"), "{text}: {}", next.text());
        assert!(next.cwd().ends_with("/workspace/d"), "{text}: {:?}", next.shell);
        assert!(!say(&client, "true").await.shell.restarted);
    }
}

#[tokio::test]
async fn a_timeout_ends_the_script_and_neither_the_shell_nor_earlier_jobs() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    say(&client, "x=kept; sleep 1000 & echo $! >earlier").await;
    for text in [
        "sleep 100",
        "while :; do :; done",
        "while :; do sleep 1; done",
        "f() { while :; do :; done; }; f; echo no",
        "trap '' TERM; sh -c 'trap \"\" INT TERM; sleep 100'",
        "setsid sleep 100 & sleep 100",
        "cat /dev/zero >/dev/null",
    ] {
        let late = CommandSpec { timeout_ms: Some(300), ..script("main", text) };
        let said = evaluate(&client, &late).await;
        assert_eq!(said.heard.ending, Some(Ending::TimedOut), "{text}");
        let next = say(&client, "trap - TERM; echo $x; kill -0 $(cat earlier) && echo there").await;
        assert_eq!(next.text(), "kept\nthere\n", "{text}: {}", next.heard.errors());
        assert!(!next.shell.restarted, "{text}");
        let left = say(&client, "pgrep -g 0 sleep | wc -l; pgrep -P $$ sleep | wc -l").await;
        assert!(left.text().ends_with("1\n"), "{text}: {}", left.text());
    }
    say(&client, "kill $(cat earlier)").await;
}

#[tokio::test]
async fn a_signal_ends_what_runs_and_says_by_whom() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for (signal, tree) in [(2, false), (15, true), (9, true)] {
        for text in ["echo begun; sleep 100", "echo begun; while :; do :; done"] {
            let spec = script("main", text);
            client.start(&spec).await.unwrap();
            let mut stream = client.output(&spec.id, 0, true).await.unwrap();
            let mut heard = Heard::default();
            read_until(&mut stream, &mut heard, "begun").await;
            let request = SignalRequest { signal, by: "ann".into(), tree };
            client.signal(&spec.id, &request).await.unwrap();
            heard.take_all(&mut stream).await;
            let killed = Ending::Killed { by: "ann".into(), signal };
            assert_eq!(heard.ending, Some(killed), "{signal} {text}");
            assert_eq!(say(&client, "echo on").await.text(), "on\n");
        }
    }
}

#[tokio::test]
async fn input_is_passed_on_and_a_terminal_is_one() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let spec = CommandSpec {
        stdin: StdinMode::Open,
        ..script("main", "echo ask; read v; echo got $v; cat")
    };
    client.start(&spec).await.unwrap();
    let mut stream = client.output(&spec.id, 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "ask").await;
    client.stdin(&spec.id, 0, true, full_body("word\nrest\n")).await.unwrap();
    heard.take_all(&mut stream).await;
    assert_eq!((heard.text().as_str(), heard.code()), ("ask\ngot word\nrest\n", Some(0)));
    assert_eq!(String::from_utf8_lossy(&heard.pty), "");

    let size = Some(PtySize { rows: 40, cols: 120 });
    let spec = CommandSpec { pty: size, ..script("main", "[ -t 1 ] && stty size; seq 1 2000") };
    let said = evaluate(&client, &spec).await;
    let expected: String = (1..=2000).map(|n| format!("{n}\r\n")).collect();
    assert_eq!(String::from_utf8_lossy(&said.heard.pty), format!("40 120\r\n{expected}"));
    assert_eq!(said.heard.code(), Some(0));
}

#[tokio::test]
async fn background_jobs_never_stand_still_and_are_heard_by_the_next_script() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    say(&client, "(sleep 0.2; seq 1 200000; echo done >finished) &").await;
    wait_for("the job to finish though nobody reads it", async || {
        runner.inside("finished").exists()
    })
    .await;
    let next = say(&client, "wait; echo mine").await;
    assert!(next.text().contains("200000\n") && next.text().ends_with("mine\n"));
}

#[tokio::test]
async fn large_scripts_many_scripts_and_many_shells_at_once() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let large = format!("x='{}'; echo ${{#x}}", "y".repeat(1_000_000));
    assert_eq!(say(&client, &large).await.text(), "1000000\n");
    for n in 0..1000 {
        assert_eq!(say(&client, &format!("n={n}; echo $n")).await.text(), format!("{n}\n"));
    }
    let many = (0..10).map(|n| {
        let (client, shell) = (client.clone(), format!("shell-{n}"));
        async move {
            for round in 0..20 {
                let text = format!("t=$((t+{n})); echo $t");
                let said = evaluate(&client, &script(&shell, &text)).await;
                assert_eq!(said.text(), format!("{}\n", n * (round + 1)));
            }
        }
    });
    futures_util::future::join_all(many).await;
    // In the order in which they came.
    let queued: Vec<_> = (0..5).map(|n| script("main", &format!("echo {n} >>order"))).collect();
    for spec in &queued {
        client.start(spec).await.unwrap();
    }
    for spec in &queued {
        follow(&client, spec.id.as_str(), 0).await;
    }
    assert_eq!(say(&client, "cat order").await.text(), "0\n1\n2\n3\n4\n");
}

#[tokio::test]
async fn output_and_errors_come_apart_or_in_one_stream_in_order() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let text = "for n in 1 2 3; do echo o$n; echo e$n >&2; done";
    let apart = say(&client, text).await.heard;
    assert_eq!((apart.text().as_str(), apart.errors().as_str()), ("o1\no2\no3\n", "e1\ne2\ne3\n"));
    let mut merged = script("main", text);
    merged.shell.as_mut().unwrap().merged = true;
    let merged = evaluate(&client, &merged).await.heard;
    assert_eq!(merged.text(), "o1\ne1\no2\ne2\no3\ne3\n");
    assert_eq!(merged.errors(), "");
}

/// Where there is no bash.
#[tokio::test]
async fn a_plain_sh_remembers_too_and_says_what_it_is() {
    let tools = tempfile::tempdir().unwrap();
    for tool in ["sh", "cat", "sleep", "true", "mkdir"] {
        let found = ["/bin", "/usr/bin"].map(|dir| format!("{dir}/{tool}"));
        let found = found.iter().find(|path| std::path::Path::new(path).exists()).unwrap();
        std::os::unix::fs::symlink(found, tools.path().join(tool)).unwrap();
    }
    let path = tools.path().to_str().unwrap().to_owned();
    let runner = LiveRunner::start_with(|config| {
        config.env.insert("PATH".to_owned(), path);
    });
    let client = runner.client().await;
    let first = say(&client, "mkdir d; cd d; x=5; export Y=6; f() { echo f$1; }; false").await;
    assert_eq!(
        (first.heard.code(), first.shell.kind),
        (Some(1), ShellKind::Sh),
        "{}",
        first.heard.errors()
    );
    let second = say(&client, "echo $? $x $Y; f 1; echo e >&2").await;
    assert_eq!((second.text().as_str(), second.heard.errors().as_str()), ("1 5 6\nf1\n", "e\n"));
    let late = CommandSpec { timeout_ms: Some(300), ..script("main", "while :; do sleep 1; done") };
    assert_eq!(evaluate(&client, &late).await.heard.ending, Some(Ending::TimedOut));
    assert_eq!(say(&client, "exit 4").await.heard.code(), Some(4));
    let after = say(&client, "echo $Y [$x]").await;
    assert_eq!((after.text().as_str(), after.shell.restarted), ("6 []\n", true));
    tokio::time::timeout(Duration::from_secs(30), say(&client, "true")).await.unwrap();
}
