//! Starting commands: what runs, where, with what, and how often.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;

use std::time::Duration;

use commanding::{fault_code, follow, id, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_protocol::{CommandState, Ending, FaultCode, SignalRequest};

#[tokio::test]
async fn a_command_reports_its_exit_code_and_its_streams_apart() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let heard = run(&client, &shell("c", "echo out; echo err >&2; exit 7")).await;
    assert_eq!(heard.text(), "out\n");
    assert_eq!(heard.errors(), "err\n");
    assert_eq!(heard.ending, Some(Ending::Exited { code: 7 }));
    let status = client.wait(&id("c")).await.unwrap();
    assert_eq!(status.state, CommandState::Ended { ending: Ending::Exited { code: 7 } });
    assert_eq!((status.stdout_bytes, status.stderr_bytes, status.dropped_bytes), (4, 4, 0));
    assert!(status.ended_at_ms.unwrap() >= status.started_at_ms);
}

#[tokio::test]
async fn a_start_that_waits_brings_the_ending_of_a_short_command() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let (short, long) = (shell("s", "exit 4"), spec("l", &["sleep", "60"]));
    for attached in [false, true] {
        let started = client.start_and_wait(&short, Duration::from_secs(10)).await.unwrap();
        assert_eq!(started.attached, attached);
        assert_eq!(started.status.ending(), Some(&Ending::Exited { code: 4 }));
        assert_eq!(started.status, client.wait(&id("s")).await.unwrap());
    }
    let started = client.start_and_wait(&long, Duration::from_millis(1)).await.unwrap();
    assert_eq!(started.status.state, CommandState::Running);
}

#[tokio::test]
async fn a_program_that_cannot_run_ends_as_in_a_shell() {
    use std::os::unix::fs::PermissionsExt;
    let runner = LiveRunner::start();
    std::fs::write(runner.inside("plain"), "not a program").unwrap();
    let client = runner.client().await;
    let missing = run(&client, &spec("m", &["no-such-program"])).await;
    assert_eq!(missing.ending, Some(Ending::Exited { code: 127 }));
    let said = missing.errors();
    assert!(said.starts_with("sandbank: cannot run \"no-such-program\": not found: "), "{said}");
    assert!(said.contains("such as sh, or use an image that has this one"), "{said}");
    let not_a_directory = run(&client, &spec("n", &["./plain/x"])).await;
    assert_eq!(not_a_directory.code(), Some(127));
    assert!(not_a_directory.errors().ends_with("there is no such file\n"));
    let script = runner.inside("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let orphan = run(&client, &spec("o", &["./script"])).await;
    assert_eq!(orphan.code(), Some(127));
    assert!(orphan.errors().contains("it is there, but the interpreter"), "{}", orphan.errors());
    let denied = run(&client, &spec("d", &["./plain"])).await;
    assert_eq!(denied.ending, Some(Ending::Exited { code: 126 }));
    assert!(denied.errors().contains("permission denied"), "{}", denied.errors());
    let directory = run(&client, &spec("e", &["/"])).await;
    assert_eq!(directory.code(), Some(126));
}

#[tokio::test]
async fn a_script_without_an_interpreter_line_runs_in_sh() {
    use std::os::unix::fs::PermissionsExt;
    let runner = LiveRunner::start();
    let script = runner.inside("script");
    std::fs::write(&script, "echo \"got $1\"").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let heard = run(&runner.client().await, &spec("s", &["./script", "it"])).await;
    assert_eq!(heard.text(), "got it\n");
}

#[tokio::test]
async fn commands_have_the_base_environment_and_what_the_caller_adds() {
    let runner = LiveRunner::start_with(|config| {
        config.env = [("FROM_ENGINE".to_owned(), "e".to_owned())].into();
    });
    let mut printenv = spec("c", &["env"]);
    printenv.env =
        [("MINE".to_owned(), "m".to_owned()), ("TERM".to_owned(), "dumb".to_owned())].into();
    let heard = run(&runner.client().await, &printenv).await;
    let text = heard.text();
    let workspace = runner.inside("");
    let workspace = workspace.to_str().unwrap().trim_end_matches('/');
    let expected = [
        "FROM_ENGINE=e".to_owned(),
        "MINE=m".to_owned(),
        "TERM=dumb".to_owned(),
        "LANG=C.UTF-8".to_owned(),
        "SANDBANK_COMMAND=c".to_owned(),
        format!("HOME={workspace}"),
        format!("PWD={workspace}"),
    ];
    for line in expected {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn commands_start_in_the_directory_that_was_asked_for() {
    let runner = LiveRunner::start();
    std::fs::create_dir(runner.inside("sub")).unwrap();
    let client = runner.client().await;
    let root = runner.inside("").canonicalize().unwrap();
    let cases = [
        (None, root.clone()),
        (Some("sub"), root.join("sub")),
        (Some("/workspace/sub"), root.join("sub")),
        (Some("/"), "/".into()),
    ];
    for (number, (cwd, expected)) in cases.into_iter().enumerate() {
        let mut pwd = spec(&format!("c{number}"), &["/bin/pwd", "-P"]);
        pwd.cwd = cwd.map(str::to_owned);
        assert_eq!(run(&client, &pwd).await.text().trim_end(), expected.to_str().unwrap());
    }
    for bad in ["missing", "/no/such/place"] {
        let mut pwd = spec("bad", &["pwd"]);
        pwd.cwd = Some(bad.to_owned());
        assert_eq!(fault_code(client.start(&pwd).await), FaultCode::Invalid);
        assert_eq!(fault_code(client.command(&id("bad")).await), FaultCode::NotFound);
    }
}

#[tokio::test]
async fn specs_that_make_no_sense_are_refused() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut no_time = spec("t", &["true"]);
    no_time.timeout_ms = Some(0);
    let mut bad_name = spec("e", &["true"]);
    bad_name.env = [("A=B".to_owned(), String::new())].into();
    for bad in [spec("a", &[]), spec("b", &[""]), spec("n", &["a\0b"]), no_time, bad_name] {
        assert_eq!(fault_code(client.start(&bad).await), FaultCode::Invalid, "{bad:?}");
    }
    assert_eq!(client.commands().await.unwrap(), []);
}

#[tokio::test]
async fn the_same_id_runs_once_however_many_ask_at_once() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let script = shell("once", "echo ran >> ran; sleep 0.05");
    let starts = (0..20).map(|_| {
        let (client, script) = (client.clone(), script.clone());
        tokio::spawn(async move { client.start(&script).await.unwrap().attached })
    });
    let mut fresh = 0;
    for start in starts.collect::<Vec<_>>() {
        fresh += usize::from(!start.await.unwrap());
    }
    assert_eq!(fresh, 1);
    client.wait(&id("once")).await.unwrap();
    let again = client.start(&script).await.unwrap();
    assert!(again.attached && again.status.ending().is_some());
    assert_eq!(std::fs::read_to_string(runner.inside("ran")).unwrap(), "ran\n");
    let other = shell("once", "echo something else");
    assert_eq!(fault_code(client.start(&other).await), FaultCode::Conflict);
}

#[tokio::test]
async fn commands_are_listed_oldest_first_and_survive_a_lost_connection() {
    let runner = LiveRunner::start();
    let first = runner.client().await;
    first.start(&shell("long", "sleep 0.2; echo done")).await.unwrap();
    first.start(&spec("short", &["true"])).await.unwrap();
    drop(first);
    let second = runner.client().await;
    let listed = second.commands().await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|status| status.id.as_str()).collect();
    assert_eq!(ids, ["long", "short"]);
    assert_eq!(follow(&second, "long", 0).await.text(), "done\n");
}

#[tokio::test]
async fn a_thousand_quick_commands_all_report() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let client = client.clone();
        tasks.spawn(async move {
            for number in 0..125 {
                let name = format!("q-{worker}-{number}");
                let code = number % 7;
                let heard = run(&client, &shell(&name, &format!("echo {name}; exit {code}"))).await;
                assert_eq!(heard.text(), format!("{name}\n"));
                assert_eq!(heard.ending, Some(Ending::Exited { code }));
            }
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert_eq!(client.commands().await.unwrap().len(), 1_000);
    let stats = client.stats().await.unwrap();
    assert_eq!((stats.commands_running, stats.commands_ended), (0, 1_000));
    wait_for("no descriptor is left open", async || open_descriptors(&runner) < 20).await;
}

fn open_descriptors(runner: &LiveRunner) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", runner.pid())).map_or(usize::MAX, Iterator::count)
}

#[tokio::test]
async fn no_descriptor_of_the_runner_reaches_a_command() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    client.start(&shell("other", "sleep 30")).await.unwrap();
    let heard = run(&client, &spec("c", &["ls", "-l", "/proc/self/fd"])).await;
    let text = heard.text();
    let others = text.lines().filter(|line| line.contains(" -> ") && !line.contains("/proc/"));
    assert_eq!(others.count(), 3, "stdin, stdout, stderr and ls's own directory only: {text}");
}

#[tokio::test]
async fn commands_begin_with_default_signals() {
    let runner = LiveRunner::start();
    let heard = run(&runner.client().await, &spec("c", &["cat", "/proc/self/status"])).await;
    let text = heard.text();
    for line in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn a_command_is_killed_before_the_runner_when_memory_runs_out() {
    let runner = LiveRunner::start();
    let own = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", runner.pid())).unwrap();
    let client = runner.client().await;
    let heard = run(&client, &spec("c", &["cat", "/proc/self/oom_score_adj"])).await;
    let score = |text: &str| text.trim().parse::<i32>().unwrap();
    assert!(score(&heard.text()) > score(&own));
}

#[tokio::test]
async fn one_command_too_many_is_refused_until_another_ends() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    for number in 0..1_000 {
        client.start(&spec(&format!("s{number}"), &["sleep", "600"])).await.unwrap();
    }
    let one_more = spec("more", &["true"]);
    assert_eq!(fault_code(client.start(&one_more).await), FaultCode::LimitReached);
    let kill = SignalRequest { signal: 9, by: "ann".to_owned(), tree: false };
    client.signal(&id("s500"), &kill).await.unwrap();
    client.wait(&id("s500")).await.unwrap();
    assert_eq!(run(&client, &one_more).await.code(), Some(0));
}

#[tokio::test]
async fn the_command_that_ended_first_is_forgotten_when_there_is_too_much_to_remember() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    // Too long for the kernel, so each ends at once, and remembered with all its arguments.
    let long = "x".repeat(2_000_000);
    for number in 0..10 {
        let heard = run(&client, &spec(&format!("l{number}"), &["echo", &long])).await;
        assert_eq!(heard.code(), Some(126));
        assert!(heard.errors().contains("argument list too long"), "{}", heard.errors());
    }
    assert_eq!(fault_code(client.command(&id("l0")).await), FaultCode::NotFound);
    assert!(client.command(&id("l9")).await.is_ok());
    let listed = client.commands().await.unwrap();
    assert!(listed.len() < 10 && listed.iter().all(|status| status.argv[1].len() < 1_000));
    assert_eq!(client.stats().await.unwrap().commands_ended, 10, "forgotten ones count, too");
}

#[tokio::test]
async fn large_running_commands_refuse_more_of_them_and_push_out_none_that_ended() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let mut started = 0;
    let large = |number: u32| {
        let mut large = spec(&format!("r{number}"), &["sleep", "600"]);
        // Just below what the kernel takes, in one variable and in all of them.
        large.env = (0..12).map(|name| (format!("V{name}"), "x".repeat(125_000))).collect();
        large
    };
    while started < 100 {
        match client.start(&large(started)).await {
            Ok(_) => started += 1,
            refused => {
                assert_eq!(fault_code(refused), FaultCode::LimitReached);
                break;
            }
        }
    }
    assert!((10..12).contains(&started), "{started} of them fit into 16 MiB");
    for number in 0..100 {
        assert_eq!(run(&client, &spec(&format!("e{number}"), &["true"])).await.code(), Some(0));
    }
    let kill = SignalRequest { signal: 9, by: "ann".to_owned(), tree: false };
    client.signal(&id("r0"), &kill).await.unwrap();
    client.wait(&id("r0")).await.unwrap();
    client.start(&large(started)).await.expect("there is room again");
    assert!(client.command(&id("r0")).await.unwrap().ending().is_some());
    assert!(client.command(&id("e0")).await.is_ok());
}

#[tokio::test]
async fn paths_below_commands_that_do_not_exist_are_not_found() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    assert_eq!(fault_code(client.command(&id("nobody")).await), FaultCode::NotFound);
    assert_eq!(fault_code(client.wait(&id("nobody")).await), FaultCode::NotFound);
}

#[tokio::test]
async fn an_environment_can_be_added_until_there_was_a_command() {
    let configure = |config: &mut sandbank_protocol::RunnerConfig| {
        config.env =
            [("IMAGE", "kept"), ("BOTH", "engine")].map(|(n, v)| (n.into(), v.into())).into();
    };
    let runner = LiveRunner::start_with(configure);
    let client = runner.client().await;
    let added = [("BOTH", "caller"), ("OWN", "x=y z")].map(|(n, v)| (n.into(), v.into())).into();
    client.set_environment(&added).await.unwrap();
    // The same again, as after an answer that was lost.
    client.set_environment(&added).await.unwrap();
    let heard = run(&client, &shell("c", "echo \"$IMAGE,$BOTH,$OWN,$USER\"")).await;
    assert_eq!(heard.text(), "kept,caller,x=y z,user\n");
    let refused = client.set_environment(&added).await;
    assert_eq!(fault_code(refused), FaultCode::Conflict);
}
