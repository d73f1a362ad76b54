//! What the runner gives up, and what commands get: identity, landlock, seccomp, cgroups.
//!
//! These need root, as the engine has it; without, they have nothing to say and pass.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(unsafe_code, reason = "descriptors are handed over by number")]

mod commanding;
mod live_runner;
mod test_cgroup;

use std::io::{Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use commanding::{Heard, fault_code, follow, id, run, shell, spec};
use live_runner::{LiveRunner, wait_for};
use sandbank_channel::{RunnerClient, full_body};
use sandbank_protocol::{
    CgroupConfig, CgroupVersion, Ending, FaultCode, LandlockConfig, RunnerConfig, SignalRequest,
    StdinMode, WorkloadIdentity,
};
use test_cgroup::{TestCgroup, inheritable};

const WORKLOAD: u32 = 1_000;

/// A filter that allows everything: its presence is what is tested.
const ALLOW_ALL: &str = "060000000000ff7f";

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// As the engine does it: another user, who owns the workspace.
fn confine(config: &mut RunnerConfig) {
    let workspace = Path::new(&config.workspace);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(workspace.parent().unwrap(), open).unwrap();
    std::os::unix::fs::chown(workspace, Some(WORKLOAD), Some(WORKLOAD)).unwrap();
    config.workload = Some(WorkloadIdentity { uid: WORKLOAD, gid: WORKLOAD });
}

#[tokio::test]
async fn the_engine_hands_over_configuration_and_socket_by_descriptor() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let config = RunnerConfig {
        workspace: directory.path().to_str().unwrap().to_owned(),
        listen_fd: Some(inheritable(listener)),
        ..RunnerConfig::default()
    };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&serde_json::to_vec(&config).unwrap()).unwrap();
    file.seek(std::io::SeekFrom::End(0)).unwrap();
    let descriptor = inheritable(file).to_string();
    let stray = inheritable(std::fs::File::open("/dev/null").unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["serve", "--config-fd", &descriptor])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The connection is accepted whenever the runner gets there.
    let stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let (client, hello) = RunnerClient::connect(stream).await.unwrap();
    assert_eq!(hello.workspace, config.workspace);
    assert_eq!(hello.epoch.len(), 32);
    let descriptors = format!("/proc/{}/fd", child.id());
    for gone in [descriptor, stray.to_string()] {
        assert!(!Path::new(&descriptors).join(&gone).exists(), "{gone} is still open");
    }
    assert_eq!(run(&client, &spec("c", &["true"])).await.code(), Some(0));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_runner_that_cannot_begin_says_why() {
    let code = |arguments: &[&str]| {
        let runner = Command::new(env!("CARGO_BIN_EXE_runner")).args(arguments).output().unwrap();
        let said = String::from_utf8(runner.stderr).unwrap();
        assert!(said.starts_with("runner: "), "{said:?}");
        runner.status.code()
    };
    assert_eq!(code(&[]), Some(64));
    assert_eq!(code(&["serve"]), Some(64));
    assert_eq!(code(&["serve", "--config", "{\"listen_fd\":77}"]), Some(64));
    assert_eq!(code(&["serve", "--config", "{\"unknown\":1}"]), Some(64));
    let socket = tempfile::tempdir().unwrap();
    let socket = socket.path().join("s");
    let listen = ["--listen", socket.to_str().unwrap()];
    let bad_filter = "{\"seccomp_hex\":\"0600\",\"workspace\":\"/tmp\"}";
    assert_eq!(code(&[&["serve", "--config", bad_filter], &listen[..]].concat()), Some(70));
    let no_workspace = "{\"workspace\":\"/no/such/place\"}";
    assert_eq!(code(&[&["serve", "--config", no_workspace], &listen[..]].concat()), Some(70));
}

#[tokio::test]
async fn commands_run_as_the_workload_without_any_privilege() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let runner = LiveRunner::start_with(|config| {
        confine(config);
        config.seccomp_hex = Some(ALLOW_ALL.to_owned());
    });
    let client = runner.client().await;
    let heard = run(&client, &spec("s", &["cat", "/proc/self/status"])).await;
    let text = heard.text();
    let expected = [
        "Uid:\t1000\t1000\t1000\t1000",
        "Gid:\t1000\t1000\t1000\t1000",
        "Groups:\t ",
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "Seccomp_filters:\t2",
    ];
    for line in expected {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in {text}");
    }
    let clone3 = "syscall(435, 0, 0); print $!+0";
    let hidden = run(&client, &spec("p", &["perl", "-e", clone3])).await;
    assert_eq!(hidden.text(), libc::ENOSYS.to_string());
    let spy = format!("cat /proc/{pid}/environ || kill -0 {pid}", pid = runner.pid());
    assert_ne!(run(&client, &shell("spy", &spy)).await.code(), Some(0));
}

#[tokio::test]
async fn the_runner_has_exactly_the_workloads_rights_on_files() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let runner = LiveRunner::start_with(confine);
    let client = runner.client().await;
    client.write_file("made/by-runner", None, full_body("x")).await.unwrap();
    let made = std::fs::metadata(runner.inside("made/by-runner")).unwrap();
    assert_eq!((made.uid(), made.gid()), (WORKLOAD, WORKLOAD));
    std::fs::write(runner.inside("secret"), "root's").unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(runner.inside("secret"), private).unwrap();
    assert!(client.read_file("secret", Default::default()).await.is_err());
    let heard = run(&client, &shell("c", "touch mine; stat -c %u mine")).await;
    assert_eq!(heard.text(), "1000\n");
}

#[tokio::test]
async fn landlock_leaves_only_the_named_trees_writable() {
    if !is_root() || !Path::new("/sys/kernel/security/landlock").exists() && !has_landlock() {
        println!("skipped: needs root and landlock");
        return;
    }
    let runner = LiveRunner::start_with(|config| {
        let mut writable = vec![config.workspace.clone(), "/dev".to_owned()];
        writable.push("/no/such/tree".to_owned());
        config.landlock = Some(LandlockConfig { writable });
    });
    let client = runner.client().await;
    // As root, so that nothing but landlock refuses.
    let outside = runner.canary();
    let outside = outside.to_str().unwrap();
    let script =
        format!("echo in > here && mkdir d && mv here d/ && cat d/here && echo > {outside}");
    let heard = run(&client, &shell("c", &script)).await;
    assert_eq!(heard.text(), "in\n");
    assert_ne!(heard.code(), Some(0));
    assert_eq!(std::fs::read(runner.canary()).unwrap(), live_runner::CANARY);
    let terminal = run(&client, &on_terminal("t", "stty size </dev/tty; echo > /dev/null")).await;
    assert_eq!((terminal.pty.as_slice(), terminal.code()), (&b"24 80\r\n"[..], Some(0)));
}

fn on_terminal(name: &str, script: &str) -> sandbank_protocol::CommandSpec {
    let pty = Some(sandbank_protocol::PtySize { rows: 24, cols: 80 });
    sandbank_protocol::CommandSpec { pty, ..shell(name, script) }
}

fn has_landlock() -> bool {
    std::fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|lsm| lsm.contains("landlock"))
        // SAFETY: asks for the version only.
        || unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) } > 0
}

/// What hides from a walk over processes: own session, no parent, no environment.
const HIDDEN: &str = "(env -i setsid sh -c 'sleep 61 & exec sleep 62' &) ; echo hidden";

async fn cgroups_kill_what_hides(version: CgroupVersion, cgroup: &TestCgroup, confined: bool) {
    let runner = LiveRunner::start_with(|config| {
        if confined {
            confine(config);
        }
        let fd = cgroup.descriptor("");
        config.cgroup = Some(CgroupConfig { version, fd, oom_fd: None });
    });
    let client = runner.client().await;
    let mut timed = shell("timed", &format!("{HIDDEN}; sleep 63"));
    timed.timeout_ms = Some(300);
    let heard = run(&client, &timed).await;
    assert_eq!(heard.ending, Some(Ending::TimedOut));
    assert_eq!(cgroup_members(cgroup), 0, "something outlived its timeout");

    let left = run(&client, &shell("left", &format!("{HIDDEN} >/dev/null 2>&1"))).await;
    assert_eq!(left.ending, Some(Ending::Exited { code: 0 }));
    wait_for("both hide", async || cgroup_members(cgroup) == 2).await;
    // Its cgroup is taken; these get others, one after the other the same.
    for number in 0..10 {
        let heard = run(&client, &shell(&format!("n{number}"), "true")).await;
        assert_eq!(heard.code(), Some(0));
    }
    let kill = SignalRequest { signal: 9, by: "ann".to_owned(), tree: true };
    client.signal(&id("left"), &kill).await.unwrap();
    wait_for("both are gone", async || cgroup_members(cgroup) == 0).await;
    assert!(cgroup.children().len() <= 3, "{:?}", cgroup.children());
    let status = client.command(&id("n9")).await.unwrap();
    assert_eq!(status.ending(), Some(&Ending::Exited { code: 0 }));
}

fn cgroup_members(cgroup: &TestCgroup) -> usize {
    let members = |path: std::path::PathBuf| {
        std::fs::read_to_string(path.join("cgroup.procs")).unwrap().lines().count()
    };
    cgroup.children().into_iter().map(members).sum()
}

#[tokio::test]
async fn a_v1_cgroup_kills_what_hides_from_a_timeout() {
    let Some(cgroup) = TestCgroup::v1("freezer") else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    cgroups_kill_what_hides(CgroupVersion::V1, &cgroup, true).await;
}

#[tokio::test]
async fn a_v2_cgroup_kills_what_hides_from_a_timeout() {
    let Some(cgroup) = TestCgroup::v2() else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    cgroups_kill_what_hides(CgroupVersion::V2, &cgroup, true).await;
}

#[tokio::test]
async fn cgroups_work_without_a_workload_identity() {
    let Some(cgroup) = TestCgroup::v2() else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    cgroups_kill_what_hides(CgroupVersion::V2, &cgroup, false).await;
}

#[tokio::test]
async fn an_out_of_memory_kill_is_told_from_any_other() {
    let (Some(memory), Some(freezer)) = (TestCgroup::v1("memory"), TestCgroup::v1("freezer"))
    else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    memory.write("memory.limit_in_bytes", "67108864");
    let runner = LiveRunner::start_with(|config| {
        let (fd, oom_fd) = (freezer.descriptor(""), Some(memory.descriptor("memory.oom_control")));
        config.cgroup = Some(CgroupConfig { version: CgroupVersion::V1, fd, oom_fd });
    });
    memory.write("cgroup.procs", &runner.pid().to_string());
    let client = runner.client().await;
    let mut early = shell("early", "read line; kill -9 $$");
    early.stdin = StdinMode::Open;
    client.start(&early).await.unwrap();
    let hog: Heard = run(&client, &spec("hog", &["tail", "/dev/zero"])).await;
    assert_eq!(hog.ending, Some(Ending::OomKilled), "{}", memory.read("memory.oom_control"));
    let suicide = run(&client, &shell("suicide", "kill -9 $$")).await;
    assert_eq!(suicide.ending, Some(Ending::Signaled { signal: 9 }));
    let alive = client.command(&id("early")).await.unwrap();
    assert_eq!(alive.ending(), None);
    // It ran while the kernel killed, but was not the one that was killed.
    client.stdin(&id("early"), 0, true, full_body("\n")).await.unwrap();
    let early = follow(&client, "early", 0).await;
    assert_eq!(early.ending, Some(Ending::Signaled { signal: 9 }));
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_timeout_and_the_runner_goes_on() {
    let (Some(pids), Some(freezer)) = (TestCgroup::v1("pids"), TestCgroup::v1("freezer")) else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    pids.write("pids.max", "150");
    let runner = LiveRunner::start_with(|config| {
        let fd = freezer.descriptor("");
        config.cgroup = Some(CgroupConfig { version: CgroupVersion::V1, fd, oom_fd: None });
    });
    pids.write("cgroup.procs", &runner.pid().to_string());
    let client = runner.client().await;
    let mut bomb = shell("bomb", "trap '' TERM; bomb() { bomb | bomb & }; bomb; sleep 60");
    bomb.timeout_ms = Some(500);
    client.start(&bomb).await.unwrap();
    let full = async || pids.read("pids.events").trim() != "max 0";
    wait_for("there is no room for another process", full).await;
    let ended = client.wait(&id("bomb")).await.unwrap();
    assert_eq!(ended.ending(), Some(&Ending::TimedOut));
    assert_eq!(cgroup_members(&freezer), 0);
    assert_eq!(run(&client, &spec("after", &["true"])).await.code(), Some(0));
}

#[tokio::test]
async fn a_sandbox_without_room_for_a_process_refuses_commands_by_that_limit() {
    let Some(pids) = TestCgroup::v1("pids") else {
        println!("skipped: needs root and that cgroup hierarchy");
        return;
    };
    pids.write("pids.max", "5");
    let runner = LiveRunner::start();
    pids.write("cgroup.procs", &runner.pid().to_string());
    let client = runner.client().await;
    for number in 0..4 {
        client.start(&spec(&format!("s{number}"), &["sleep", "60"])).await.unwrap();
    }
    let refused = client.start(&spec("refused", &["true"])).await;
    assert_eq!(fault_code(refused), FaultCode::LimitReached);
    let kill = SignalRequest { signal: 9, by: "ann".to_owned(), tree: false };
    client.signal(&id("s0"), &kill).await.unwrap();
    client.wait(&id("s0")).await.unwrap();
    assert_eq!(run(&client, &spec("refused", &["true"])).await.code(), Some(0));
}
