//! What terminals show: the screen after a frame, and the frames that follow it.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use commanding::{Heard, fault_code, follow, id, read_until, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_channel::{RunnerClient, TerminalScreen, full_body};
use sandbank_protocol::{CommandSpec, Ending, FaultCode, Frame, PtySize, ShellUse};
use sandbank_terminal::Terminal;
use sandbank_terminal::fuzzing::describe;

const SIZE: PtySize = PtySize { rows: 24, cols: 80 };

fn with_screen(spec: CommandSpec) -> CommandSpec {
    CommandSpec { pty: Some(SIZE), screen: true, ..spec }
}

async fn screen(client: &RunnerClient, name: &str) -> TerminalScreen {
    client.screen(&id(name)).await.unwrap()
}

/// Every frame of a command that has ended.
async fn frames(client: &RunnerClient, name: &str) -> Vec<(u64, bytes::Bytes)> {
    let mut stream = client.output(&id(name), 0, true).await.unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = stream.next().await.unwrap() {
        match frame {
            Frame::Output { seq, data, .. } => frames.push((seq, data)),
            Frame::Ended { .. } => break,
            Frame::Dropped { .. } => panic!("the journal was too small"),
            Frame::Heartbeat { .. } => {}
        }
    }
    frames
}

fn fed<'a>(pieces: impl IntoIterator<Item = &'a bytes::Bytes>) -> Terminal {
    let mut terminal = Terminal::new(SIZE.rows, SIZE.cols);
    pieces.into_iter().for_each(|piece| terminal.feed(piece));
    terminal
}

/// Against a terminal that was there from the beginning.
fn check(seen: &TerminalScreen, frames: &[(u64, bytes::Bytes)]) {
    let seq = seen.screen.seq;
    let until = frames.iter().filter(|(number, _)| *number <= seq).map(|(_, data)| data);
    let mut again = fed([&seen.repaint]);
    assert_eq!(describe(&again), describe(&fed(until)), "after frame {seq}");
    let rest = frames.iter().filter(|(number, _)| *number > seq);
    rest.for_each(|(_, data)| again.feed(data));
    let whole = fed(frames.iter().map(|(_, data)| data));
    assert_eq!(describe(&again), describe(&whole), "all of it, from frame {seq} on");
}

#[tokio::test]
async fn a_line_being_edited_looks_the_same_to_who_comes_later() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut bash = with_screen(spec("c", &["bash", "--norc", "--noprofile", "-i"]));
    bash.env = [("PS1".to_owned(), "\\[\\e[1;32m\\]ready\\[\\e[m\\]$ ".to_owned())].into();
    bash.env.insert("TERM".to_owned(), "xterm-256color".to_owned());
    client.start(&bash).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "ready").await;
    // Typed, moved through, erased, transposed, searched for, and wrapped at the margin.
    let keys = [
        "echo one two",
        "\x1b[D\x1b[D\x1b[D",
        "\x17",
        "\x01",
        "\x1bf",
        "XX",
        "\x05",
        "\x14",
        "\x7f\x7f",
        "\r",
        "printf 'a\\tb\\n\\e[7mc\\e[m'",
        "\x15",
        "\x19",
        "\r",
        "\x10\x10",
        "\x12",
        "one",
        "\x07",
        "\x15",
        "echo ",
        "long long long long long long long long long long long long long long ",
        "long long long",
        "\x01",
        "ä漢",
        "\x05",
        "\r",
        "tput cup 5 5; tput bold; echo x; tput sgr0\r",
        "exit 3\r",
    ];
    let mut offset = 0;
    let mut seen = Vec::new();
    for key in keys {
        client.stdin(&id("c"), offset, false, full_body(key.as_bytes())).await.unwrap();
        offset += key.len() as u64;
        // Before, while and after it has an effect, as it comes.
        for _ in 0..4 {
            seen.push(screen(&client, "c").await);
        }
    }
    heard.take_all(&mut stream).await;
    assert_eq!(heard.ending, Some(Ending::Exited { code: 3 }));
    seen.push(screen(&client, "c").await);
    let frames = frames(&client, "c").await;
    seen.dedup_by_key(|seen| seen.screen.seq);
    assert!(seen.iter().map(|seen| seen.screen.seq).max() > Some(5));
    seen.iter().for_each(|seen| check(seen, &frames));
}

#[tokio::test]
async fn full_screen_programs_are_shown_whenever_one_looks() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = r#"printf 'shell\r\n\033]2;monitor\007\033[?1049h\033[?25l\033[?1002h\033[?1006h\033[2;20r'
        for i in $(seq 1 200); do
            printf '\033[H\033[1;4%dm frame %d \033[K\033[m\033[%d;%dH\033[38;5;%dm漢é\033[0m\r\n\n' $((i%8)) $i $((i%24+1)) $((i%70+1)) $i
        done; read _; printf '\033[r\033[?1006l\033[?1002l\033[?25h\033[?1049lback\r\n'"#;
    client.start(&with_screen(shell("c", script))).await.unwrap();
    let mut seen = vec![screen(&client, "c").await];
    wait_for("the program shows all of its screen", async || {
        seen.push(screen(&client, "c").await);
        seen.last().is_some_and(|seen| seen.screen.alternate)
    })
    .await;
    client.stdin(&id("c"), 0, false, full_body("\n")).await.unwrap();
    wait_for("the program is over", async || {
        seen.push(screen(&client, "c").await);
        client.command(&id("c")).await.unwrap().ending().is_some()
    })
    .await;
    let frames = frames(&client, "c").await;
    seen.push(screen(&client, "c").await);
    seen.dedup_by_key(|seen| seen.screen.seq);
    seen.iter().for_each(|seen| check(seen, &frames));
    let during: Vec<_> = seen.iter().filter(|seen| seen.screen.alternate).collect();
    assert!(!during.is_empty(), "nobody looked in time");
    assert!(
        during.iter().all(|seen| seen.screen.title == "monitor" && !seen.screen.cursor.visible)
    );
    let last = &seen.last().unwrap().screen;
    assert_eq!((last.alternate, last.cursor.visible, last.cursor.row), (false, true, 2));
}

#[tokio::test]
async fn the_last_size_counts_and_is_within_bounds() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done";
    client.start(&with_screen(shell("c", script))).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "ready").await;
    for (rows, cols, counted) in [(50, 132, (50, 132)), (0, 9_999, (1, 500)), (501, 3, (500, 3))] {
        client.resize(&id("c"), PtySize { rows, cols }).await.unwrap();
        let seen = screen(&client, "c").await.screen;
        assert_eq!((seen.rows, seen.cols), counted);
        let told = format!("{} {}", counted.0, counted.1);
        read_until(&mut stream, &mut heard, &told).await;
    }
}

#[tokio::test]
async fn only_commands_that_asked_for_one_have_a_screen() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let plain = CommandSpec { pty: Some(SIZE), ..spec("plain", &["echo", "hi"]) };
    run(&client, &plain).await;
    assert_eq!(fault_code(client.screen(&id("plain")).await), FaultCode::Conflict);
    let piped = CommandSpec { screen: true, ..spec("piped", &["echo", "hi"]) };
    assert_eq!(fault_code(client.start(&piped).await), FaultCode::Invalid);
    assert_eq!(fault_code(client.screen(&id("none")).await), FaultCode::NotFound);
    run(&client, &with_screen(spec("shown", &["echo", "hi"]))).await;
    assert_eq!(screen(&client, "shown").await.screen.cursor.row, 1);
}

#[tokio::test]
async fn a_script_of_a_shell_has_a_screen_too() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let shell = ShellUse { name: "main".parse().unwrap(), merged: false, begin_in: None };
    let script = "printf '\\033[3;5Hhere\\033]0;t\\007'";
    let command = CommandSpec { shell: Some(shell), ..with_screen(spec("c", &[script])) };
    run(&client, &command).await;
    let seen = screen(&client, "c").await;
    assert_eq!((seen.screen.title.as_str(), seen.screen.cursor.row), ("t", 2));
    check(&seen, &frames(&client, "c").await);
}

#[tokio::test]
async fn screens_are_few_enough_and_those_of_ended_commands_make_room() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let huge = |name: &str, argv: &[&str]| {
        let pty = Some(PtySize { rows: 500, cols: 500 });
        CommandSpec { pty, ..with_screen(spec(name, argv)) }
    };
    for n in 0..6 {
        let name = format!("ended{n}");
        run(&client, &huge(&name, &["echo", "hi"])).await;
    }
    assert_eq!(fault_code(client.screen(&id("ended0")).await), FaultCode::Closed);
    assert_eq!(screen(&client, "ended5").await.screen.rows, 500);
    for n in 0..4 {
        client.start(&huge(&format!("runs{n}"), &["sleep", "60"])).await.unwrap();
    }
    assert_eq!(fault_code(client.screen(&id("ended5")).await), FaultCode::Closed);
    let refused = client.start(&huge("more", &["sleep", "60"])).await;
    assert_eq!(fault_code(refused), FaultCode::LimitReached);
    client.resize(&id("runs0"), SIZE).await.unwrap();
    client.start(&with_screen(spec("small", &["sleep", "60"]))).await.unwrap();
    let large = PtySize { rows: 500, cols: 500 };
    assert_eq!(fault_code(client.resize(&id("small"), large).await), FaultCode::LimitReached);
}

/// The most expensive terminal: the largest, full of what costs most.
#[tokio::test]
async fn a_flood_of_nonsense_leaves_the_runner_small_and_alive() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = r#"dd if=/dev/urandom bs=64k count=200 2>/dev/null; printf '\033[2J'; \
        for i in $(seq 40); do printf '\033]2;%0100000d' 1; done; printf '\033P%0100000d' 1"#;
    let pty = Some(PtySize { rows: 500, cols: 500 });
    let command = CommandSpec { pty, ..with_screen(shell("c", script)) };
    client.start(&command).await.unwrap();
    let ending = follow(&client, "c", 0).await.ending;
    assert_eq!(ending, Some(Ending::Exited { code: 0 }));
    assert!(screen(&client, "c").await.repaint.len() < 9 << 20);
    let status = std::fs::read_to_string(format!("/proc/{}/status", runner.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kib < 100 << 10, "the runner took {kib} KiB");
}

#[tokio::test]
async fn several_writers_type_at_once_and_each_byte_arrives_once() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = "stty raw -echo; echo ready; exec head -c 3000";
    client.start(&with_screen(shell("c", script))).await.unwrap();
    let mut stream = client.output(&id("c"), 0, true).await.unwrap();
    let mut heard = Heard::default();
    read_until(&mut stream, &mut heard, "ready").await;
    let typing = ["a", "b", "c"].map(|letter| {
        let client = client.clone();
        async move {
            for offset in 0..1_000 {
                for _ in 0..1 + offset % 3 {
                    // Again, as after an answer that was lost.
                    let typed = client.input(&id("c"), &id(letter), offset, letter.into()).await;
                    let accepted = typed.map(|status| status.next_offset);
                    assert!(accepted.is_err() || accepted.unwrap() == offset + 1, "{letter}");
                }
            }
        }
    });
    futures_util::future::join_all(typing).await;
    heard.take_all(&mut stream).await;
    let text = String::from_utf8(heard.pty).unwrap();
    let typed = text.split_once("ready").unwrap().1.trim();
    for letter in ['a', 'b', 'c'] {
        assert_eq!(typed.matches(letter).count(), 1_000, "{letter}");
    }
    client.start(&with_screen(spec("d", &["cat"]))).await.unwrap();
    let gap = client.input(&id("d"), &id("new"), 5, "x".into()).await;
    assert_eq!(fault_code(gap), FaultCode::Conflict);
}

/// A program is not held up by those who only look on, even if they stand still.
#[tokio::test]
async fn nobody_waits_for_an_onlooker_who_then_sees_what_it_missed_as_dropped() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut flood = with_screen(shell("c", "seq 1 2000000; echo done"));
    flood.journal_bytes = Some(256 << 10);
    client.start(&flood).await.unwrap();
    let mut still = client.look_on(&id("c"), 0).await.unwrap();
    wait_for("the flood is over", async || {
        client.command(&id("c")).await.unwrap().ending().is_some()
    })
    .await;
    let mut dropped = 0;
    let mut last = 0;
    while let Some(frame) = still.next().await.unwrap() {
        if let Frame::Dropped { frames, .. } = &frame {
            dropped += frames;
        }
        last = frame.seq();
    }
    assert!(dropped > 0, "it was waited for");
    assert_eq!(last, screen(&client, "c").await.screen.seq);
}
