//! Attempts to get out, from inside. Each refusal has a counterpart that is allowed.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use support::{Output, TestEngine, cannot_run};

sandbank_engine_native::spawner_entry!();

/// Raw system calls need an interpreter that the host has.
fn no_python() -> bool {
    let missing = !std::path::Path::new("/usr/bin/python3").exists();
    if missing {
        println!("skipped: raw system calls are made with python3, which this host lacks");
    }
    missing
}

const PRELUDE: &str = "
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    return 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]
";

async fn python(test: &TestEngine, id: &sandbank_engine::SandboxId, script: &str) -> Output {
    let client = test.client(id).await;
    support::run(&client, &["/usr/bin/python3", "-c", &format!("{PRELUDE}{script}")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_and_namespaces_cannot_be_changed() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let before = test.sh(&machine.id, "cat /proc/self/mountinfo").await.stdout;
    for attempt in [
        "mount -t tmpfs none /tmp",
        "mount -t proc none /tmp",
        "mount --bind /usr /tmp",
        "mount -o remount,rw /",
        "mount -o remount,rw /usr",
        "umount /proc/sys",
        "umount /proc/keys",
        "umount /dev",
        "unshare -Ur true",
        "unshare -m true",
        "unshare -n true",
        "nsenter -t 1 -m true",
        "chroot /tmp /bin/true",
        "hostname other",
    ] {
        let output = test.sh(&machine.id, attempt).await;
        assert_ne!(output.code(), Some(0), "{attempt} worked");
    }
    assert_eq!(test.sh(&machine.id, "cat /proc/self/mountinfo").await.stdout, before);
    let nested = test.sh(&machine.id, "cat /proc/sys/user/max_user_namespaces").await.stdout;
    assert_eq!(nested, "0\n", "the kernel itself counts no nested user namespace");
    for line in before.lines() {
        let options = line.split(' ').nth(5).unwrap();
        assert!(options.split(',').any(|option| option == "nosuid"), "{line}");
    }
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn risky_system_calls_are_refused_and_ordinary_ones_are_not() {
    if cannot_run() || no_python() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let refused = [
        ("add_key", libc::SYS_add_key),
        ("bpf", libc::SYS_bpf),
        ("fsopen", libc::SYS_fsopen),
        ("init_module", libc::SYS_init_module),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("kexec_load", libc::SYS_kexec_load),
        ("keyctl", libc::SYS_keyctl),
        ("mount", libc::SYS_mount),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("open_tree", libc::SYS_open_tree),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("pivot_root", libc::SYS_pivot_root),
        ("setns", libc::SYS_setns),
        ("swapon", libc::SYS_swapon),
        ("syslog", libc::SYS_syslog),
        ("unshare", libc::SYS_unshare),
        ("userfaultfd", libc::SYS_userfaultfd),
    ];
    for (name, number) in refused {
        let script = format!("print(call({number}, 0, 0, 0, 0, 0))");
        assert_eq!(python(&test, &machine.id, &script).await.stdout, "EPERM\n", "{name}");
    }
    let namespace =
        format!("print(call({}, {}, 0, 0, 0, 0))", libc::SYS_clone, libc::CLONE_NEWUSER);
    assert_eq!(python(&test, &machine.id, &namespace).await.stdout, "EPERM\n");
    let clone3 = format!("print(call({}, 0, 0), call(999, 0))", libc::SYS_clone3);
    assert_eq!(python(&test, &machine.id, &clone3).await.stdout, "ENOSYS ENOSYS\n");
    let ordinary = format!("print(call({}), call({}, 0))", libc::SYS_getpid, libc::SYS_umask);
    assert_eq!(python(&test, &machine.id, &ordinary).await.stdout, "ok ok\n");
    let threads = "import threading, subprocess\n\
        t = threading.Thread(target=lambda: print('thread', flush=True)); t.start(); t.join()\n\
        subprocess.run(['echo', 'child'])";
    assert_eq!(python(&test, &machine.id, threads).await.stdout, "thread\nchild\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_local_or_internet_and_nothing_else() {
    if cannot_run() || no_python() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let script =
        format!("print(*[f for f in range(46) if call({}, f, 2, 0) != 'EPERM'])", libc::SYS_socket);
    let allowed = python(&test, &machine.id, &script).await.stdout;
    assert_eq!(allowed, "1 2 10 16\n", "UNIX, INET, INET6, and NETLINK for routes");
    let loopback = "import socket\n\
        s = socket.socket(); s.bind(('127.0.0.1', 80)); s.listen()\n\
        c = socket.create_connection(('127.0.0.1', 80)); print('connected')";
    assert_eq!(python(&test, &machine.id, loopback).await.stdout, "connected\n");
    test.finish().await;
}

#[cfg(target_arch = "x86_64")]
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_foreign_architecture_kill_the_caller() {
    if cannot_run() || no_python() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    let x32 = format!("call({} | 0x40000000)", libc::SYS_getpid);
    let output = python(&test, &machine.id, &x32).await;
    assert_eq!(output.code(), Some(128 + libc::SIGSYS), "{}", output.stderr);
    // mov eax, 20 (getpid of i386); int 0x80; ret
    let i386 = "import mmap\n\
        page = mmap.mmap(-1, 4096, prot=7)\n\
        page.write(bytes.fromhex('b814000000cd80c3'))\n\
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n\
        ctypes.CFUNCTYPE(ctypes.c_long)(address)()";
    let output = python(&test, &machine.id, i386).await;
    assert_eq!(output.code(), Some(128 + libc::SIGSYS), "{}", output.stderr);
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_process_cannot_be_signalled_traced_or_read() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    for signal in ["STOP", "TERM", "KILL", "SEGV"] {
        let output = test.sh(&machine.id, &format!("kill -{signal} 1")).await;
        assert_ne!(output.code(), Some(0), "signal {signal} was sent");
    }
    for file in ["mem", "environ", "maps", "cmdline", "fd", "root", "cwd", "exe"] {
        let output = test.sh(&machine.id, &format!("ls /proc/1/{file}")).await;
        assert_ne!(output.code(), Some(0), "/proc/1/{file} is there");
    }
    assert_eq!(test.sh(&machine.id, "echo alive").await.stdout, "alive\n");
    test.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_from_the_image_gains_nothing_from_being_set_user_id() {
    if cannot_run() {
        return;
    }
    let test = TestEngine::start().await;
    let machine = test.create().await;
    // A copy that the workload itself marks, and the ones of the host.
    let script = "cp /usr/bin/id ./id && chmod 6755 ./id && ./id -u; id -u; \
        for f in /usr/bin/su /usr/bin/sudo /usr/bin/passwd; do \
        test -u $f && timeout 5 $f -c id </dev/null; done; id -u";
    let ids = test.sh(&machine.id, script).await.stdout;
    assert!(!ids.contains("uid=0"), "{ids}");
    assert_eq!(ids.lines().filter(|line| *line == "1000").count(), 3, "{ids}");
    test.finish().await;
}
