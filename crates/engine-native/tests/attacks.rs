//! Ways out that need more than one machine, an image, or the API: what the battery of attacks
//! cannot try from inside one canary.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use sandbank_engine::{Engine, ImageName, SandboxId};
use sandbank_protocol::CommandSpec;
use sandbank_protocol::containment::{BatteryPlan, Finding, Outcome, WORD};
use support::{Output, TestEngine, battery, cannot_run};

sandbank_engine_native::spawner_entry!();

/// As a client may ask for it; an error is a refusal.
async fn run_in(test: &TestEngine, id: &SandboxId, cwd: &str, script: &str) -> Option<Output> {
    let client = test.client(id).await;
    let spec = CommandSpec {
        cwd: Some(cwd.to_owned()),
        timeout_ms: Some(10_000),
        ..CommandSpec::new(
            SandboxId::random().as_str().parse().unwrap(),
            ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        )
    };
    support::run_spec(&client, &spec).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_working_directory_leads_out() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    // The top of what can be climbed to must be the machine's own root.
    let climb = "up=.; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do up=$up/..; done; \
        [ \"$(stat -Lc %d:%i $up)\" = \"$(stat -Lc %d:%i /)\" ] && echo inside";
    let allowed = run_in(&test, &machine.id, "/usr", climb).await.unwrap();
    assert_eq!(allowed.stdout, "inside\n", "{}", allowed.stderr);

    let mut tricks: Vec<String> =
        (0..280).map(|number| format!("/proc/self/fd/{number}")).collect();
    for process in ["1", "self", "thread-self"] {
        for link in ["root", "cwd", "root/..", "cwd/../../../.."] {
            tricks.push(format!("/proc/{process}/{link}"));
        }
    }
    for trick in &tricks {
        if let Some(output) = run_in(&test, &machine.id, trick, climb).await {
            assert_eq!(output.stdout, "inside\n", "{trick}: {}", output.stderr);
        }
    }
    let removed = "mkdir gone && cd gone && rmdir ../gone && \
        (cd .. 2>/dev/null; pwd -P; stat -c %d:%i . >/dev/null && echo inside)";
    let output = test.sh(&machine.id, removed).await;
    assert!(output.stdout.ends_with("inside\n"), "{} {}", output.stdout, output.stderr);
    assert!(run_in(&test, &machine.id, "/vercel/sandbox/workspace/gone", "true").await.is_none());
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_is_found_through_the_runners_descriptors() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let client = test.client(&machine.id).await;
    let host = std::fs::canonicalize("/bin/true").unwrap();
    for number in 3..280 {
        let up = "../".repeat(12);
        let program = format!("/proc/self/fd/{number}/{up}{}", host.display());
        let output = support::run(&client, &[&program]).await;
        assert!(matches!(output.code(), Some(126 | 127)), "{program} ran: {:?}", output.ending);
    }
    assert_eq!(support::run(&client, &["/bin/true"]).await.code(), Some(0));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runners_program_survives_and_the_next_machine_starts() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let overwrite = "for f in /proc/1/exe /proc/self/exe; do : > $f; echo x >> $f; mv -f /bin/sh $f; \
        ln -sf /tmp/x $f; truncate -s 0 $f; dd if=/dev/zero of=$f count=1; done 2>&1 | wc -l";
    assert_ne!(test.sh(&machine.id, overwrite).await.stdout.trim(), "0", "each was refused");
    let findings = battery::attack(&test, &machine.id).await;
    for probe in ["runner_program", "host_runner_program"] {
        let finding = findings.iter().find(|finding| finding.probe == probe).unwrap();
        assert_eq!(finding.outcome, Outcome::Held, "{finding:?}");
    }
    let next = test.create().await;
    assert_eq!(test.sh(&next.id, "echo alive").await.stdout, "alive\n");
    test.finish().await;
}

/// What a cgroup v1 would run as the host's root, of every hierarchy.
fn release_agents() -> BTreeMap<String, String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = mounts.lines().filter(|line| line.contains(" - cgroup "));
    let agents = places.filter_map(|line| {
        let path = Path::new(line.split(' ').nth(4)?).join("release_agent");
        Some((path.display().to_string(), std::fs::read_to_string(path).ok()?))
    });
    agents.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_cgroup_can_be_mounted_and_no_limit_be_changed() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let agents = release_agents();
    for attempt in [
        "mkdir c && mount -t cgroup -o memory none c",
        "mkdir d && mount -t cgroup2 none d",
        "unshare -UrmC sh -c 'mount -t cgroup -o rdma none /tmp'",
        "echo 1 > /sys/fs/cgroup/memory/notify_on_release",
        "echo $$ > /sys/fs/cgroup/cgroup.procs",
        "echo max > /sys/fs/cgroup/pids.max",
    ] {
        let output = test.sh(&machine.id, attempt).await;
        assert_ne!(output.code(), Some(0), "{attempt} worked");
    }
    assert_eq!(release_agents(), agents);
    let seen = test.engine.confinement(&machine.id).await.unwrap().seen;
    for probe in ["host_memory_limit", "host_cpu_limit", "host_pids_limit"] {
        let finding = seen.iter().find(|finding| finding.probe == probe).unwrap();
        assert!(finding.held, "{finding:?}");
    }
    test.finish().await;
}

/// The battery's program with the set-user-id bit, and with every file capability.
fn privileged_image(path: &Path) {
    const ALL: [u8; 20] = {
        // Version 2, effective; permitted all; inheritable none.
        let mut bytes = [0; 20];
        bytes[0] = 1;
        bytes[3] = 2;
        let mut place = 4;
        while place < 8 {
            bytes[place] = 0xff;
            place += 1;
        }
        bytes[12] = 0xff;
        bytes
    };
    let mut tar = tar::Builder::new(std::fs::File::create(path).unwrap());
    for (name, mode) in [("bin/suid", 0o6755), ("bin/capable", 0o755), ("bin/plain", 0o755)] {
        if name == "bin/capable" {
            tar.append_pax_extensions([("SCHILY.xattr.security.capability", &ALL[..])]).unwrap();
        }
        let program = sandbank_runner_binary::RUNNER;
        let mut header = tar::Header::new_gnu();
        header.set_size(program.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        tar.append_data(&mut header, name, program).unwrap();
    }
    tar.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn privileged_programs_of_an_image_run_without_privilege() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let archive = test.settings.data_dir.join("privileged.tar");
    privileged_image(&archive);
    let name: ImageName = "privileged".parse().unwrap();
    test.engine.import_image(&name, &archive, &|_| {}).await.unwrap();
    let machine = test.create_with(|spec| spec.image = name.clone()).await;
    let plan = BatteryPlan { identity: Some((1000, 1000)), ..BatteryPlan::default() };
    let plan = serde_json::to_string(&plan).unwrap();
    let client = test.client(&machine.id).await;
    for program in ["/bin/plain", "/bin/suid", "/bin/capable"] {
        let output = support::run(&client, &[program, WORD, &plan]).await;
        assert_eq!(output.code(), Some(0), "{program}: {}", output.stderr);
        let findings: Vec<Finding> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for probe in ["capability_sets", "workload_identity", "no_new_privileges", "raw_socket"] {
            let finding = findings.iter().find(|finding| finding.probe == probe).unwrap();
            assert_eq!(finding.outcome, Outcome::Held, "{program}: {finding:?}");
        }
    }
    test.finish().await;
}
