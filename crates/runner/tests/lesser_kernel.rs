//! A runner on a kernel that has less than Linux, as gVisor's has: what it does otherwise there
//! leaves it as confined, and its files the workload's.
//!
//! These need root, as a container engine has it; without, they have nothing to say and pass.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(unsafe_code, reason = "a filter of system calls is set between fork and exec")]

mod commanding;
#[path = "../../rooted-fs/tests/fewer_calls/mod.rs"]
mod fewer_calls;
mod live_runner;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use commanding::{run, shell};
use fewer_calls::{When, refuse};
use live_runner::{LiveRunner, wait_for};
use sandbank_channel::{ByteRange, ChannelError, full_body};
use sandbank_protocol::{
    Ending, FaultCode, MoveRequest, PrepareConfig, RunnerConfig, SignalRequest, WorkloadIdentity,
};
use sandbank_test_support::skip_unless_root;

const WORKLOAD: u32 = 1_000;

/// What the kernel of gVisor, or its file system, answers.
fn have_less() {
    const FCHMODAT2: libc::c_long = 452;
    const FLAGS_OF_RENAME: u32 = 4;
    for call in [libc::SYS_openat2, libc::SYS_setfsuid, libc::SYS_setfsgid, FCHMODAT2] {
        refuse(call, When::Always, libc::ENOSYS);
    }
    refuse(libc::SYS_renameat2, When::With(FLAGS_OF_RENAME), libc::EINVAL);
}

/// As a container engine starts it: root with these capabilities and no others.
fn start() -> LiveRunner {
    let mut command = Command::new("setpriv");
    let few = "-all,+chown,+setuid,+setgid,+setpcap,+kill";
    command.args(["--inh-caps=-all", &format!("--bounding-set={few}"), "--"]);
    command.arg(env!("CARGO_BIN_EXE_runner"));
    // SAFETY: a filter is all that is made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            have_less();
            Ok(())
        });
    }
    LiveRunner::start_by(&mut command, |config: &mut RunnerConfig| {
        let open = Permissions::from_mode(0o755);
        fs::set_permissions(Path::new(&config.workspace).parent().unwrap(), open).unwrap();
        config.workload = Some(WorkloadIdentity { uid: WORKLOAD, gid: WORKLOAD });
        config.prepare = Some(PrepareConfig { own_workspace: true, ..PrepareConfig::default() });
    })
}

fn code<T: std::fmt::Debug>(answer: Result<T, ChannelError>) -> FaultCode {
    match answer {
        Err(ChannelError::Refused(fault)) => fault.code,
        other => panic!("expected a refusal, not {other:?}"),
    }
}

#[tokio::test]
async fn files_are_made_and_opened_with_the_workloads_rights_and_no_others() {
    if skip_unless_root() {
        return;
    }
    let runner = start();
    let client = runner.client().await;
    client.write_file("made/here", None, full_body("content")).await.unwrap();
    let made = fs::metadata(runner.inside("made/here")).unwrap();
    assert_eq!((made.uid(), made.gid()), (WORKLOAD, WORKLOAD));
    let request = MoveRequest { from: "made/here".into(), to: "moved".into(), overwrite: false };
    client.rename(&request).await.unwrap();
    client.write_file("made/here", None, full_body("again")).await.unwrap();
    assert_eq!(code(client.rename(&request).await), FaultCode::Conflict, "it replaces nothing");
    assert_eq!(runner.names("made"), ["here"]);

    // What belongs to root stays root's, whoever root's runner is.
    fs::create_dir(runner.inside("closed")).unwrap();
    fs::write(runner.inside("closed/file"), "root's").unwrap();
    fs::set_permissions(runner.inside("closed"), Permissions::from_mode(0o700)).unwrap();
    fs::write(runner.inside("fixed"), "root's").unwrap();
    let read = client.read_file("closed/file", ByteRange::default()).await;
    assert_eq!(code(read.map(drop)), FaultCode::PermissionDenied);
    let written = client.write_file_at("fixed", 0, full_body("x")).await;
    assert_eq!(code(written), FaultCode::PermissionDenied);
    symlink(runner.canary(), runner.inside("out")).unwrap();
    let read = client.read_file("out", ByteRange::default()).await;
    assert_eq!(code(read.map(drop)), FaultCode::OutsideWorkspace);
}

#[tokio::test]
async fn commands_are_the_workload_and_cannot_touch_the_runner() {
    if skip_unless_root() {
        return;
    }
    let runner = start();
    let client = runner.client().await;
    let script = "id -u; id -g; id -G; grep -E '^(Uid|Gid|Cap)' /proc/self/status; pwd";
    let heard = run(&client, &shell("who", script)).await;
    let said = heard.text();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["1000"; 3], "{said}");
    assert_eq!(lines[3], "Uid:\t1000\t1000\t1000\t1000");
    assert_eq!(lines[4], "Gid:\t1000\t1000\t1000\t1000");
    let sets = &lines[5..lines.len() - 1];
    assert_eq!(sets.len(), 5, "{said}");
    assert!(sets.iter().all(|set| set.ends_with("\t0000000000000000")), "{said}");
    assert_eq!(Path::new(lines[lines.len() - 1]), runner.inside(""), "{said}");

    let pid = runner.pid();
    for (name, attempt) in [
        ("signal", format!("kill -0 {pid}")),
        ("environ", format!("cat /proc/{pid}/environ")),
        ("streams", format!("ls /proc/{pid}/fd/")),
        ("memory", format!("head -c 1 /proc/{pid}/mem")),
    ] {
        let heard = run(&client, &shell(name, &attempt)).await;
        assert_ne!(heard.code(), Some(0), "{attempt}: {}", heard.text());
    }
    let own = run(&client, &shell("own", "sleep 60 & kill $! && cat /proc/self/environ")).await;
    assert_eq!(own.code(), Some(0), "the control: {}", own.errors());
}

#[tokio::test]
async fn commands_are_still_signalled_and_reaped() {
    if skip_unless_root() {
        return;
    }
    let runner = start();
    let client = runner.client().await;
    let command = shell("sleeper", "echo begun > begun; sleep 600");
    client.start(&command).await.unwrap();
    wait_for("it has begun", async || runner.inside("begun").exists()).await;
    let kill = SignalRequest { signal: libc::SIGKILL, by: "a test".into(), tree: true };
    client.signal(&command.id, &kill).await.unwrap();
    let status = client.wait(&command.id).await.unwrap();
    assert!(matches!(status.ending(), Some(Ending::Killed { .. })), "{status:?}");
}
