//! The program is run on every number, in a small interpreter of the classic BPF it consists of.

use std::collections::BTreeSet;

use super::search::{ALLOW, KILL, REFUSE, UNKNOWN};
use super::*;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

fn verdict_of(architecture: u32, number: i64, arguments: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend((number as u32).to_le_bytes());
    data.extend(architecture.to_le_bytes());
    data.extend(0u64.to_le_bytes());
    arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
    run(&program(), &data)
}

fn verdict(number: i64, arguments: [u64; 6]) -> u32 {
    verdict_of(NATIVE, number, arguments)
}

fn run(program: &[sock_filter], data: &[u8]) -> u32 {
    let (mut at, mut a) = (0usize, 0u32);
    loop {
        let i = &program[at];
        at += 1;
        let jump = |taken: bool| usize::from(if taken { i.jt } else { i.jf });
        match i.code {
            0x20 => {
                let k = i.k as usize;
                a = u32::from_le_bytes(data[k..k + 4].try_into().unwrap());
            }
            0x54 => a &= i.k,
            0x05 => at += i.k as usize,
            0x15 => at += jump(a == i.k),
            0x25 => at += jump(a > i.k),
            0x35 => at += jump(a >= i.k),
            0x06 => return i.k,
            other => panic!("unexpected instruction {other:#x}"),
        }
    }
}

#[test]
fn every_number_gets_the_verdict_of_its_list() {
    let allowed: BTreeSet<i64> = names::allowed_numbers().into_iter().collect();
    let conditional = arguments::numbers();
    for number in 0..names::LAST_KNOWN + 50 {
        if conditional.contains(&number) {
            continue;
        }
        let expected = if allowed.contains(&number) {
            ALLOW
        } else if number > names::LAST_KNOWN {
            UNKNOWN
        } else {
            REFUSE
        };
        assert_eq!(verdict(number, [0; 6]), expected, "system call {number}");
    }
}

#[test]
fn what_breaks_out_of_sandboxes_is_refused() {
    let risky = [
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_delete_module,
        libc::SYS_finit_module,
        libc::SYS_fsopen,
        libc::SYS_init_module,
        libc::SYS_io_uring_setup,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_mount,
        libc::SYS_mount_setattr,
        libc::SYS_move_mount,
        libc::SYS_name_to_handle_at,
        libc::SYS_open_by_handle_at,
        libc::SYS_open_tree,
        libc::SYS_perf_event_open,
        libc::SYS_pivot_root,
        libc::SYS_request_key,
        libc::SYS_setns,
        libc::SYS_swapon,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
    ];
    for number in risky {
        assert_eq!(verdict(number, [0; 6]), REFUSE, "system call {number}");
    }
}

#[test]
fn clone_makes_processes_and_threads_but_no_namespaces() {
    let clone = |flags: i32| verdict(libc::SYS_clone, [flags as u64, 0, 0, 0, 0, 0]);
    assert_eq!(clone(libc::SIGCHLD), ALLOW);
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD), ALLOW);
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID, libc::CLONE_NEWNET] {
        assert_eq!(clone(flag | libc::SIGCHLD), REFUSE, "flag {flag:#x}");
    }
}

#[test]
fn sockets_are_local_or_internet() {
    for family in 0..=46 {
        let expected = match family {
            libc::AF_UNIX | libc::AF_INET | libc::AF_INET6 | libc::AF_NETLINK => ALLOW,
            _ => REFUSE,
        };
        let found = verdict(libc::SYS_socket, [family as u64, 1, 0, 0, 0, 0]);
        assert_eq!(found, expected, "family {family}");
    }
    let audit = [libc::AF_NETLINK as u64, 3, libc::NETLINK_AUDIT as u64, 0, 0, 0];
    assert_eq!(verdict(libc::SYS_socket, audit), REFUSE);
}

#[test]
fn pipes_are_made_and_devices_are_not() {
    let make = |mode: u32| verdict(libc::SYS_mknodat, [0, 0, u64::from(mode), 0, 0, 0]);
    assert_eq!(make(libc::S_IFIFO | 0o644), ALLOW);
    assert_eq!(make(0o644), ALLOW);
    assert_eq!(make(libc::S_IFCHR | 0o666), REFUSE);
    assert_eq!(make(libc::S_IFBLK | 0o666), REFUSE);
}

#[test]
fn nobody_types_into_a_terminal() {
    let control = |request: u64| verdict(libc::SYS_ioctl, [0, request, 0, 0, 0, 0]);
    assert_eq!(control(libc::TIOCGWINSZ), ALLOW);
    assert_eq!(control(libc::TIOCSTI), REFUSE);
    // The kernel looks at 32 bits only, so must the filter.
    assert_eq!(control(libc::TIOCSTI | 1 << 32), REFUSE);
}

/// Subvolumes escape the quota of the workspace; sharing blocks does not.
#[test]
fn btrfs_subvolumes_cannot_be_made() {
    let control = |request: u64| verdict(libc::SYS_ioctl, [0, request, 0, 0, 0, 0]);
    for request in [0x5000_9418, 0x5000_940e, 0x5000_9417, 0x5000_9401, 0xc010_9428, 0x9408] {
        assert_eq!(control(request), REFUSE, "{request:#x}");
    }
    for request in [0x4004_9409, 0x4020_940d, 0xc018_9436, 0x8008_6601, 0x9508, 0x9308, 0x1408] {
        assert_eq!(control(request), ALLOW, "{request:#x}");
    }
}

#[test]
fn foreign_architectures_are_killed() {
    const I386: u32 = 0x4000_0003;
    assert_eq!(verdict_of(I386, libc::SYS_read, [0; 6]), KILL);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(verdict(libc::SYS_read | 0x4000_0000, [0; 6]), KILL);
}

#[test]
fn the_program_is_short() {
    assert!(program().len() < 500, "{} instructions", program().len());
    assert_eq!(program_hex().len(), program().len() * 16);
}

#[test]
fn docker_is_told_the_same_names_and_conditions() {
    let profile: serde_json::Value = serde_json::from_str(&docker_profile(false)).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let calls = profile["syscalls"].as_array().unwrap();
    let named = |name: &str| {
        let has = |call: &&serde_json::Value| {
            call["names"].as_array().unwrap().iter().any(|known| known == name)
        };
        calls.iter().filter(has).collect::<Vec<_>>()
    };
    for name in ["read", "openat", "execve", "futex_waitv", "cachestat"] {
        assert_eq!(named(name).len(), 1, "{name}");
    }
    for name in ["mount", "unshare", "setns", "bpf", "io_uring_setup", "keyctl", "ptrace_"] {
        assert!(named(name).is_empty(), "{name} is allowed");
    }
    assert_eq!(named("socket").len(), 4, "unix, inet, inet6 and routes");
    assert!(named("socket").iter().all(|rule| !rule["args"].as_array().unwrap().is_empty()));
    assert_eq!(named("clone")[0]["args"][0]["op"], "SCMP_CMP_MASKED_EQ");
    let wider: serde_json::Value = serde_json::from_str(&docker_profile(true)).unwrap();
    assert_eq!(wider["syscalls"].as_array().unwrap().len(), calls.len() + 1);
    // Its rules compare one argument several times, which Docker would widen.
    assert_eq!(named("ioctl").len(), 1);
    assert!(named("ioctl")[0]["args"].is_null());
}
