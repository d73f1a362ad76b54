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

/// What one argument, of which the kernel looks at 32 bits, must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) argument: u8,
    pub(super) compare: Compare,
    pub(super) value: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Differs,
    /// Of the bits in the mask.
    EqualIn(u64),
}

/// All of its conditions must hold. Of several rules for a call, one must.
pub(super) type Rule = Vec<Condition>;

/// A call with its rules.
pub(super) struct Conditional {
    pub(super) name: &'static str,
    pub(super) number: i64,
    pub(super) rules: Vec<Rule>,
}

fn condition(argument: u8, compare: Compare, value: u64) -> Condition {
    Condition { argument, compare, value }
}

fn one_of(argument: u8, values: impl IntoIterator<Item = u64>) -> Vec<Rule> {
    let equal = |value| vec![condition(argument, Compare::Equal, value)];
    values.into_iter().map(equal).collect()
}

fn none_of_bits(argument: u8, bits: u64) -> Vec<Rule> {
    vec![vec![condition(argument, Compare::EqualIn(bits), 0)]]
}

fn sockets() -> Vec<Rule> {
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    let mut rules = one_of(0, families.map(|family| family as u64));
    rules.push(vec![
        condition(0, Compare::Equal, libc::AF_NETLINK as u64),
        condition(2, Compare::Equal, libc::NETLINK_ROUTE as u64),
    ]);
    rules
}

/// Pipes, files and sockets, but no devices.
fn nodes(mode_argument: u8) -> Vec<Rule> {
    let kind = Compare::EqualIn(u64::from(libc::S_IFMT));
    [libc::S_IFIFO, libc::S_IFREG, libc::S_IFSOCK, 0]
        .map(|mode| vec![condition(mode_argument, kind, u64::from(mode))])
        .to_vec()
}

/// The second byte of every btrfs request.
const BTRFS_TYPE: u64 = 0x94;

/// Requests of that type that every file system has: sharing blocks between files.
const SHARING: [u64; 3] = [0x4004_9409, 0x4020_940d, 0xc018_9436];

/// Everything but typing into a terminal on its owner's behalf, and making btrfs subvolumes: a
/// subvolume in the workspace would not count against its quota.
fn device_controls() -> Vec<Rule> {
    let differs_in = |bit: u64| {
        let (mask, value) = (1 << (8 + bit), (BTRFS_TYPE >> bit & 1) << (8 + bit));
        vec![
            condition(1, Compare::EqualIn(mask), value ^ mask),
            condition(1, Compare::Differs, libc::TIOCSTI),
            condition(1, Compare::Differs, libc::TIOCLINUX),
        ]
    };
    (0..8).map(differs_in).chain(one_of(1, SHARING)).collect()
}

pub(super) fn table() -> Vec<Conditional> {
    macro_rules! call {
        ($name:ident, $rules:expr) => {
            Conditional { name: stringify!($name), number: libc::$name, rules: $rules }
        };
    }
    vec![
        call!(SYS_clone, none_of_bits(0, NAMESPACE_FLAGS)),
        call!(SYS_socket, sockets()),
        call!(SYS_socketpair, one_of(0, [libc::AF_UNIX as u64])),
        call!(SYS_personality, one_of(0, PERSONALITIES)),
        call!(SYS_ioctl, device_controls()),
        call!(SYS_mknodat, nodes(2)),
        #[cfg(target_arch = "x86_64")]
        call!(SYS_mknod, nodes(1)),
    ]
}

pub(super) fn numbers() -> Vec<i64> {
    table().into_iter().map(|call| call.number).collect()
}

pub(super) fn program() -> Vec<sock_filter> {
    let arch: TargetArch =
        std::env::consts::ARCH.try_into().expect("this architecture is supported");
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let rules = table().into_iter().map(|call| (call.number, compiled(call.rules)));
    let filter =
        SeccompFilter::new(rules.collect::<BTreeMap<_, _>>(), refuse, SeccompAction::Allow, arch)
            .expect("the two actions differ");
    BpfProgram::try_from(filter).expect("the rules fit a program")
}

fn compiled(rules: Vec<Rule>) -> Vec<SeccompRule> {
    let one = |condition: Condition| {
        let operator = match condition.compare {
            Compare::Equal => SeccompCmpOp::Eq,
            Compare::Differs => SeccompCmpOp::Ne,
            Compare::EqualIn(mask) => SeccompCmpOp::MaskedEq(mask),
        };
        SeccompCondition::new(
            condition.argument,
            SeccompCmpArgLen::Dword,
            operator,
            condition.value,
        )
        .expect("system calls have at most six arguments")
    };
    let rule = |rule: Rule| {
        SeccompRule::new(rule.into_iter().map(one).collect()).expect("every rule has a condition")
    };
    rules.into_iter().map(rule).collect()
}
