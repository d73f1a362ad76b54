//! What a command finds itself to be: identity, capabilities, namespaces, descriptors, mounts.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use support::{TestEngine, cannot_run};

sandbank_engine_native::spawner_entry!();

fn fields(status: &str) -> BTreeMap<&str, &str> {
    status.lines().filter_map(|line| line.split_once(':')).map(|(k, v)| (k, v.trim())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_an_ordinary_user_without_any_privilege() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let status = test.sh(&machine.id, "cat /proc/self/status").await.stdout;
    let fields = fields(&status);
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(fields[set], "0000000000000000", "{set}");
    }
    assert_eq!(fields["NoNewPrivs"], "1");
    assert_eq!(fields["Seccomp"], "2");
    assert_eq!(fields["Uid"], "1000\t1000\t1000\t1000");
    assert_eq!(fields["Gid"], "1000\t1000\t1000\t1000");
    assert_eq!(fields["Groups"], "");
    assert_eq!(fields["SigBlk"], "0000000000000000");
    assert_eq!(fields["SigIgn"], "0000000000000000");
    let identity = test.sh(&machine.id, "id -un; pwd; echo $HOME; umask").await.stdout;
    assert_eq!(identity, "user\n/vercel/sandbox/workspace\n/vercel/sandbox/workspace\n0022\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_process_keeps_only_what_it_needs_to_start_commands() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    test.sh(&machine.id, "true").await;
    let pid = machine.pid.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let fields = fields(&status);
    const SETUID_SETGID_KILL: u64 = 1 << 7 | 1 << 6 | 1 << 5;
    let permitted = u64::from_str_radix(fields["CapPrm"], 16).unwrap();
    assert_eq!(permitted & !SETUID_SETGID_KILL, 0, "{permitted:x}");
    assert_eq!(fields["CapBnd"], "0000000000000000");
    assert_eq!(fields["NoNewPrivs"], "1");
    assert_eq!(fields["Seccomp"], "2");
    let uid: u32 = fields["Uid"].split_whitespace().next().unwrap().parse().unwrap();
    assert!(uid >= 0x7000_0000, "root inside is {uid} outside");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert_eq!(environment, b"", "the runner's environment is empty");
    let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert!(executable.to_str().unwrap().starts_with("/memfd:runner"), "{executable:?}");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_namespace_is_shared_with_the_host_or_a_sibling() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let (one, two) = (test.create().await, test.create().await);
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
        let script = format!("readlink /proc/self/ns/{name}");
        let host = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        let first = test.sh(&one.id, &script).await.stdout;
        let second = test.sh(&two.id, &script).await.stdout;
        assert!(first.starts_with(name), "{first}");
        assert_ne!(first.trim(), host.to_str().unwrap(), "{name}");
        assert_ne!(first, second, "{name}");
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_three_descriptors_and_none_of_them_leads_out() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let client = test.client(&machine.id).await;
    let listed = support::run(&client, &["/bin/ls", "/proc/self/fd"]).await.stdout;
    // The fourth is the directory that `ls` itself reads.
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    let cwd = test.sh(&machine.id, "readlink /proc/self/cwd /proc/self/root").await.stdout;
    assert_eq!(cwd, "/vercel/sandbox/workspace\n/\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_workspace_and_scratch_space_are_writable() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let workspace = "/vercel/sandbox/workspace";
    for place in [workspace, "/workspace", "/home/user", "/tmp", "/var/tmp", "/dev/shm"] {
        let script = format!("echo x > {place}/probe && rm {place}/probe");
        let written = test.sh(&machine.id, &script).await;
        assert_eq!(written.code(), Some(0), "{place}: {}", written.stderr);
    }
    for place in
        ["/", "/usr", "/etc", "/proc", "/sys", "/dev", "/var", "/bin", "/vercel", "/opt", "/run"]
    {
        let script = format!("test ! -d {place} || ! touch {place}/probe");
        let refused = test.sh(&machine.id, &script).await;
        assert_eq!(refused.code(), Some(0), "{place} is writable");
    }
    let owner = test.sh(&machine.id, "touch file; stat -c '%u:%g %a' file .").await.stdout;
    assert_eq!(owner, "1000:1000 644\n1000:1000 755\n");
    // On disk, ids are the same whichever range the machine runs in.
    use std::os::unix::fs::MetadataExt;
    let stored = find(&test.settings.data_dir, machine.id.as_str(), "file").expect("on disk");
    let stored = std::fs::metadata(stored).unwrap();
    assert_eq!((stored.uid(), stored.gid()), (1000, 1000));
    test.finish().await;
}

fn find(data: &Path, id: &str, name: &str) -> Option<std::path::PathBuf> {
    let dirs = std::fs::read_dir(data).ok()?.flatten().map(|entry| entry.path());
    dirs.map(|dir| dir.join(id).join(name)).find(|path| path.exists())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernels_files_are_masked_and_cannot_be_written() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let silent = "for f in kcore keys kmsg timer_list sched_debug kallsyms; do
        test -e /proc/$f && head -c 1 /proc/$f; done; ls -A /proc/acpi /proc/scsi /sys/firmware \
        /sys/fs/cgroup /sys/kernel/security 2>/dev/null | grep -v :";
    assert_eq!(test.sh(&machine.id, silent).await.stdout.trim(), "");
    for file in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
    ] {
        let refused = test.sh(&machine.id, &format!("! echo 1 > {file}")).await;
        assert_eq!(refused.code(), Some(0), "{file} was written");
    }
    // The first process cannot be seen, its memory and its program even less.
    let hidden = "ls /proc | grep -x 1; cat /proc/1/environ /proc/1/cmdline; : > /proc/1/exe";
    let hidden = test.sh(&machine.id, hidden).await;
    assert_eq!((hidden.stdout.as_str(), hidden.code() == Some(0)), ("", false));
    let needed = "test -r /proc/meminfo && test -r /proc/cpuinfo && test -d /sys/class/net/lo";
    assert_eq!(test.sh(&machine.id, needed).await.code(), Some(0));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_the_harmless_ones_and_work() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let listed = test.sh(&machine.id, "ls /dev | tr '\\n' ' '").await.stdout;
    let expected = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ";
    assert_eq!(listed, expected);
    let use_them = "head -c 4 /dev/zero | wc -c && head -c 4 /dev/urandom | wc -c && \
        echo lost > /dev/null && ! echo full > /dev/full && echo out > /dev/stdout";
    assert_eq!(test.sh(&machine.id, use_them).await.stdout, "4\n4\nout\n");
    for node in ["mem c 1 1", "sda b 8 0"] {
        let refused = test.sh(&machine.id, &format!("! mknod /tmp/{node}")).await;
        assert_eq!(refused.code(), Some(0), "{node} was made");
    }
    assert_eq!(test.sh(&machine.id, "mkfifo /tmp/pipe && test -p /tmp/pipe").await.code(), Some(0));
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_secrets_and_other_machines_are_not_there() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let (one, two) = (test.create().await, test.create().await);
    let secret = two.id.as_str();
    test.sh(&two.id, &format!("touch {secret}; sleep 1000 > /dev/null 2>&1 &")).await;
    let data = test.settings.data_dir.display().to_string();
    for script in [
        "cat /etc/shadow".to_owned(),
        "ls /root".to_owned(),
        format!("ls {data}"),
        format!("find / -name {secret} 2>/dev/null | grep {secret}"),
        "ls -d /proc/[0-9]* | xargs -n1 readlink 2>/dev/null; pgrep sleep".to_owned(),
        "ls /var/run/docker.sock /run/containerd /run/docker.sock".to_owned(),
    ] {
        let output = test.sh(&one.id, &script).await;
        assert_ne!(output.code(), Some(0), "{script}: {}", output.stdout);
    }
    test.finish().await;
}
