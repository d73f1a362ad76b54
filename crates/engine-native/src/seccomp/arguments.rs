//! System calls that are allowed with some arguments only.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Every flag of `clone` that makes a namespace. `CLONE_NEWTIME` shares its bit with the exit
/// signal and works with `clone3` only.
const NAMESPACE_FLAGS: u64 = (libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS) as u64;

/// Personalities that debuggers and build tools ask for: plain Linux, without address
/// randomisation, as an old kernel, and the question which one is set.
const PERSONALITIES: [u64; 6] = [0x0, 0x0004_0000, 0x0008, 0x0002_0000, 0x0002_0008, 0xffff_ffff];

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> SeccompCondition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .expect("system calls have at most six arguments")
}

fn rule(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).expect("every rule has a condition")
}

fn one_of(argument: u8, values: impl IntoIterator<Item = u64>) -> Vec<SeccompRule> {
    let equal = |value| rule(vec![condition(argument, SeccompCmpOp::Eq, value)]);
    values.into_iter().map(equal).collect()
}

fn none_of_bits(argument: u8, bits: u64) -> Vec<SeccompRule> {
    vec![rule(vec![condition(argument, SeccompCmpOp::MaskedEq(bits), 0)])]
}

fn sockets() -> Vec<SeccompRule> {
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    let mut rules = one_of(0, families.map(|family| family as u64));
    rules.push(rule(vec![
        condition(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64),
        condition(2, SeccompCmpOp::Eq, libc::NETLINK_ROUTE as u64),
    ]));
    rules
}

/// Pipes, files and sockets, but no devices.
fn nodes(mode_argument: u8) -> Vec<SeccompRule> {
    let kind = SeccompCmpOp::MaskedEq(u64::from(libc::S_IFMT));
    [libc::S_IFIFO, libc::S_IFREG, libc::S_IFSOCK, 0]
        .map(|mode| rule(vec![condition(mode_argument, kind.clone(), u64::from(mode))]))
        .to_vec()
}

/// The second byte of every btrfs request.
const BTRFS_TYPE: u64 = 0x94;

/// Requests of that type that every file system has: sharing blocks between files.
const SHARING: [u64; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// Everything but typing into a terminal on its owner's behalf, and making btrfs subvolumes: a
/// subvolume in the workspace would not count against its quota.
fn device_controls() -> Vec<SeccompRule> {
    let differs_in = |bit: u64| {
        let (mask, value) = (1 << (8 + bit), (BTRFS_TYPE >> bit & 1) << (8 + bit));
        rule(vec![
            condition(1, SeccompCmpOp::MaskedEq(mask), value ^ mask),
            condition(1, SeccompCmpOp::Ne, libc::TIOCSTI),
            condition(1, SeccompCmpOp::Ne, libc::TIOCLINUX),
        ])
    };
    (0..8).map(differs_in).chain(one_of(1, SHARING)).collect()
}

fn rules() -> BTreeMap<i64, Vec<SeccompRule>> {
    BTreeMap::from([
        (libc::SYS_clone, none_of_bits(0, NAMESPACE_FLAGS)),
        (libc::SYS_socket, sockets()),
        (libc::SYS_socketpair, one_of(0, [libc::AF_UNIX as u64])),
        (libc::SYS_personality, one_of(0, PERSONALITIES)),
        (libc::SYS_ioctl, device_controls()),
        (libc::SYS_mknodat, nodes(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, nodes(1)),
    ])
}

pub(super) fn numbers() -> Vec<i64> {
    rules().into_keys().collect()
}

pub(super) fn program() -> Vec<sock_filter> {
    let arch: TargetArch =
        std::env::consts::ARCH.try_into().expect("this architecture is supported");
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules(), refuse, SeccompAction::Allow, arch)
        .expect("the two actions differ");
    BpfProgram::try_from(filter).expect("the rules fit a program")
}
