//! System calls that are allowed whatever their arguments, because ordinary programs need them
//! and the kernel checks them well.
//!
//! Not here on purpose: the mount family, namespaces (`unshare`, `setns`), keys, `bpf`,
//! `perf_event_open`, `userfaultfd`, `io_uring`, `kexec`, modules, clocks, swap, accounting, file
//! handles, `fanotify`, NUMA policy, raw ports. `clone3` is here for the runner, which answers it
//! with ENOSYS for every command because its flags cannot be seen from here.

/// The newest number this list was made with; later ones get ENOSYS.
pub(super) const LAST_KNOWN: i64 = 470;

/// A call by the name it has in libc and by its number.
pub(super) type Call = (&'static str, i64);

macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

/// What libc writes before every name.
const PREFIX: &str = "SYS_";

/// Numbers that libc has no name for yet; the same on every architecture.
const NEW: &[Call] = &[
    ("SYS_cachestat", 451),
    ("SYS_fchmodat2", 452),
    ("SYS_map_shadow_stack", 453),
    ("SYS_futex_wake", 454),
    ("SYS_futex_wait", 455),
    ("SYS_futex_requeue", 456),
    ("SYS_statmount", 457),
    ("SYS_listmount", 458),
];

#[rustfmt::skip]
const COMMON: &[Call] = calls! {
    // Files
    SYS_close SYS_close_range SYS_copy_file_range SYS_dup SYS_dup3 SYS_faccessat SYS_faccessat2
    SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat
    SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr SYS_flock SYS_fremovexattr SYS_fsetxattr
    SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_getcwd SYS_getdents64 SYS_getxattr
    SYS_lgetxattr SYS_linkat SYS_listxattr SYS_llistxattr SYS_lremovexattr SYS_lseek SYS_lsetxattr
    SYS_mkdirat SYS_newfstatat SYS_openat SYS_openat2 SYS_pread64 SYS_preadv SYS_preadv2
    SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read SYS_readahead SYS_readlinkat SYS_readv
    SYS_removexattr SYS_renameat SYS_renameat2 SYS_sendfile SYS_setxattr SYS_splice SYS_statfs
    SYS_statx SYS_symlinkat SYS_sync SYS_sync_file_range SYS_syncfs SYS_tee SYS_truncate SYS_umask
    SYS_unlinkat SYS_utimensat SYS_vmsplice SYS_write SYS_writev SYS_chdir
    // Memory
    SYS_brk SYS_madvise SYS_membarrier SYS_memfd_create SYS_mincore SYS_mlock SYS_mlock2
    SYS_mlockall SYS_mmap SYS_mprotect SYS_mremap SYS_mseal SYS_msync SYS_munlock SYS_munlockall
    SYS_munmap SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_process_madvise
    SYS_process_mrelease SYS_remap_file_pages
    // Processes
    SYS_capget SYS_capset SYS_clone3 SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_getegid
    SYS_geteuid SYS_getgid SYS_getgroups SYS_getpgid SYS_getpid SYS_getppid SYS_getpriority
    SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage SYS_getsid SYS_gettid SYS_getuid
    SYS_ioprio_get SYS_ioprio_set SYS_kcmp SYS_kill SYS_landlock_add_rule
    SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_pidfd_getfd SYS_pidfd_open
    SYS_pidfd_send_signal SYS_prctl SYS_prlimit64 SYS_process_vm_readv SYS_process_vm_writev
    SYS_ptrace SYS_rseq SYS_seccomp SYS_set_tid_address SYS_setfsgid SYS_setfsuid SYS_setgid
    SYS_setgroups SYS_setpgid SYS_setpriority SYS_setregid SYS_setresgid SYS_setresuid
    SYS_setreuid SYS_setrlimit SYS_setsid SYS_setuid SYS_tgkill SYS_times SYS_tkill SYS_wait4
    SYS_waitid
    // Scheduling and synchronisation
    SYS_futex SYS_futex_waitv SYS_get_robust_list SYS_getcpu SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam
    SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_sched_setaffinity SYS_sched_setattr
    SYS_sched_setparam SYS_sched_setscheduler SYS_sched_yield SYS_set_robust_list
    // Signals and time
    SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_getitimer SYS_gettimeofday
    SYS_nanosleep SYS_restart_syscall SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask
    SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait
    SYS_rt_tgsigqueueinfo SYS_setitimer SYS_sigaltstack SYS_timer_create SYS_timer_delete
    SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime SYS_timerfd_create
    SYS_timerfd_gettime SYS_timerfd_settime
    // Waiting and events
    SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2
    SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch SYS_io_cancel SYS_io_destroy
    SYS_io_getevents SYS_io_setup SYS_io_submit SYS_pipe2 SYS_ppoll
    SYS_pselect6 SYS_signalfd4
    // Sockets and interprocess communication
    SYS_accept SYS_accept4 SYS_bind SYS_connect SYS_getpeername SYS_getsockname SYS_getsockopt
    SYS_listen SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend
    SYS_mq_unlink SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_recvfrom SYS_recvmmsg
    SYS_recvmsg SYS_semctl SYS_semget SYS_semop SYS_semtimedop SYS_sendmmsg SYS_sendmsg SYS_sendto
    SYS_setsockopt SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown
    // The system, read only
    SYS_getrandom SYS_sysinfo SYS_uname
};

/// Older spellings that only this architecture still has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[Call] = calls! {
    SYS_access SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create
    SYS_epoll_ctl_old SYS_epoll_wait SYS_epoll_wait_old SYS_eventfd SYS_fork SYS_futimesat
    SYS_getdents SYS_getpgrp SYS_inotify_init SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_open
    SYS_pause SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select SYS_signalfd SYS_stat
    SYS_symlink SYS_time SYS_unlink SYS_utime SYS_utimes SYS_vfork
};
#[cfg(target_arch = "aarch64")]
const OLD: &[Call] = &[];

fn allowed() -> impl Iterator<Item = &'static Call> {
    [COMMON, NEW, OLD].into_iter().flatten()
}

pub(super) fn allowed_numbers() -> Vec<i64> {
    allowed().map(|(_, number)| *number).collect()
}

/// As everybody but libc writes them.
pub(super) fn allowed_names() -> Vec<&'static str> {
    allowed().map(|(name, _)| plain(name)).collect()
}

pub(super) fn plain(name: &'static str) -> &'static str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}
