//! The battery of attacks where nothing confines it: every probe must say so. A probe that cannot
//! fail proves nothing.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![allow(unsafe_code, reason = "the program is run from a memory file of this test's making")]

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::Command;

use sandbank_protocol::containment::{BatteryPlan, Finding, Outcome, PROBES, Side, WORD};

const RUNNER: &str = env!("CARGO_BIN_EXE_runner");

/// Namespaces of its own keep the host out of reach, and are all that it has. The first process is
/// the shell, and somebody else's process is there to be seen.
const UNCONFINED: &str = "setpriv --reuid=65534 --clear-groups sleep 30 & \
    \"$@\"; code=$?; kill $!; exit $code";

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// The runner in a memory file that nobody sealed.
fn unsealed() -> std::fs::File {
    // SAFETY: the name is a string that ends with NUL, and the descriptor is new.
    let mut file = unsafe {
        std::fs::File::from_raw_fd(libc::memfd_create(c"runner".as_ptr(), libc::MFD_ALLOW_SEALING))
    };
    file.write_all(&std::fs::read(RUNNER).unwrap()).unwrap();
    file
}

/// Its queue is full: whoever else comes hears nothing, as from a rule that drops.
fn silent() -> (TcpListener, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: listen takes plain integers; asked again, it changes the length of the queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let waiting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener, waiting)
}

#[test]
fn every_probe_fails_where_nothing_confines() {
    if !is_root() {
        println!("skipped: being unconfined needs root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (silent, _waiting) = silent();
    let private = [&listener, &silent].map(|listener| listener.local_addr().unwrap());
    let run = |plan: &BatteryPlan| {
        let program = unsealed();
        // SAFETY: without the flag, the descriptor outlives exec.
        unsafe { libc::fcntl(program.as_raw_fd(), libc::F_SETFD, 0) };
        let output = Command::new("unshare")
            .args(["--mount", "--pid", "--ipc", "--uts", "--fork", "--mount-proc"])
            .args(["sh", "-c", UNCONFINED, "sh"])
            .arg(format!("/proc/self/fd/{}", program.as_raw_fd()))
            .arg(WORD)
            .arg(serde_json::to_string(plan).unwrap())
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let findings = text.lines().map(|line| serde_json::from_str::<Finding>(line).unwrap());
        findings.map(|finding| (finding.probe.clone(), finding)).collect::<BTreeMap<_, _>>()
    };
    let findings = run(&BatteryPlan {
        identity: Some((1000, 1000)),
        unreachable: vec![secret.to_str().unwrap().to_owned()],
        hidden: vec!["/proc/keys".to_owned(), "/proc/sys".to_owned()],
        fixed: vec!["/proc/sys".to_owned()],
        limits: vec![("NOFILE".to_owned(), 0)],
        burst: Some(8),
        fill: Some(1 << 20),
        loopback_only: true,
        private: private.to_vec(),
        cgroups_shown: false,
        runner_shown: false,
    });
    for probe in PROBES.iter().filter(|probe| probe.side == Side::Inside) {
        let finding = &findings[probe.name];
        // The loopback of this host may be all that it has.
        if probe.name == "loopback_only" && finding.outcome == Outcome::Held {
            println!("skipped: this host has no network to be found");
            continue;
        }
        let foreign = probe.name == "foreign_calls" && cfg!(not(target_arch = "x86_64"));
        let expected = if foreign { Outcome::NotTried } else { Outcome::Failed };
        assert_eq!(finding.outcome, expected, "{finding:?}");
    }
    for address in private {
        let evidence = &findings["private_addresses"].evidence;
        assert!(evidence.contains(&address.to_string()), "{address} passes: {evidence}");
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "an attack left something: {left:?}");
}

#[test]
fn a_plan_that_is_not_understood_is_refused() {
    for words in [&[WORD, "{\"unknown\":1}"][..], &[WORD, "no plan"], &[WORD]] {
        let refused = Command::new(RUNNER).args(words).output().unwrap();
        assert_eq!(refused.status.code(), Some(64), "{words:?}");
        assert_eq!(refused.stdout, b"", "{words:?}");
    }
}
