//! The child between clone and exec. It shares the runner's memory: it allocates nothing, calls
//! no libc function with state, and never returns or panics.

use std::ffi::{CStr, c_char};
use std::io;
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, c_long, c_void};

use super::SHELL_ENDS;
use super::program::Pointers;
use crate::{signals, stamp};

/// Everything the child needs, prepared by the parent.
pub(super) struct Task {
    pub(super) program: Pointers,
    pub(super) stdin: RawFd,
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    pub(super) terminal: bool,
    pub(super) cwd: RawFd,
    pub(super) cgroup_file: Option<RawFd>,
    pub(super) identity: Option<Identity>,
    /// Null when commands get no filter of their own.
    pub(super) filter: *const libc::sock_fprog,
    pub(super) oom_score: *const c_char,
    pub(super) open_files: libc::rlimit,
    pub(super) stamp: Option<libc::rlimit>,
    pub(super) shell: Option<Shell>,
    /// Written by the child, read by the parent once it runs again.
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) drop_groups: bool,
    /// The runner is the workload in effect: see [`crate::privileges::FileIdentity`].
    pub(super) is_effective: bool,
}

/// See [`super::ShellEnds`].
#[derive(Clone, Copy)]
pub(super) struct Shell {
    pub(super) terminal: RawFd,
    pub(super) ends: [RawFd; SHELL_ENDS],
    pub(super) first: c_int,
}

/// The step before exec that failed, if one did.
#[derive(Default)]
pub(super) struct Outcome {
    failed: Option<(&'static str, c_int)>,
}

impl Outcome {
    pub(super) fn failure(&self) -> Option<(&'static str, io::Error)> {
        // SAFETY: a plain read; volatile because the child wrote it behind the compiler's back.
        let failed = unsafe { ptr::read_volatile(&raw const self.failed) };
        failed.map(|(step, errno)| (step, io::Error::from_raw_os_error(errno)))
    }
}

/// Of the ids that a process has.
const UNCHANGED: c_long = -1;

const CANNOT_RUN: c_int = 126;
const NOT_FOUND: c_int = 127;

pub(super) extern "C" fn run(task: *mut c_void) -> c_int {
    let task = task.cast::<Task>();
    // SAFETY: the parent passes a valid task, keeps it alive and is suspended meanwhile.
    unsafe {
        let failed = prepare(&*task).err();
        if failed.is_some() {
            ptr::write_volatile(&raw mut (*task).outcome.failed, failed);
            exit(CANNOT_RUN);
        }
        let refused = exec(&(*task).program);
        complain(&(*task).program, &refused);
        exit(if refused.is_not_found() { NOT_FOUND } else { CANNOT_RUN })
    }
}

type Step = Result<(), (&'static str, c_int)>;

/// A raw system call: libc's wrappers of some of these act on all threads of the process.
macro_rules! call {
    ($step:literal, $number:expr $(, $argument:expr)*) => {
        match libc::syscall($number $(, $argument)*) {
            -1 => Err(($step, *libc::__errno_location())),
            result => Ok(result),
        }
    };
}

/// # Safety
/// Only in the child, with a task whose descriptors and pointers are valid.
unsafe fn prepare(task: &Task) -> Step {
    // SAFETY: every pointer passed below is to a live local or to prepared memory.
    unsafe {
        if task.identity.is_some_and(|identity| identity.is_effective) {
            let own = libc::syscall(libc::SYS_getuid);
            call!("be itself", libc::SYS_setresuid, UNCHANGED, own, UNCHANGED)?;
        }
        if let Some(file) = task.cgroup_file {
            call!("enter its cgroup", libc::SYS_write, file, c"0".as_ptr(), 1usize)?;
        }
        prefer_for_oom(task.oom_score);
        call!("start a session", libc::SYS_setsid)?;
        attach(task)?;
        call!(
            "limit its open files",
            libc::SYS_prlimit64,
            0,
            libc::RLIMIT_NOFILE,
            &raw const task.open_files,
            ptr::null::<c_void>()
        )?;
        if let Some(stamp) = &task.stamp {
            // Refused inside of another runner's sandbox; there are other signs.
            let (resource, stamp) = (stamp::RESOURCE, std::ptr::from_ref(stamp));
            libc::syscall(libc::SYS_prlimit64, 0, resource, stamp, ptr::null::<c_void>());
        }
        if let Some(identity) = task.identity {
            become_workload(identity)?;
        }
        call!("enter its directory", libc::SYS_fchdir, task.cwd)?;
        reset_signals()?;
        // All of the runner's descriptors close on exec, but the program's path is resolved before
        // that, and must not lead through one of them. The table is this child's own.
        match task.shell {
            None => {
                call!("close descriptors", libc::SYS_close_range, 3, c_int::MAX, 0).map(drop)?
            }
            Some(shell) => keep_ends(shell)?,
        }
        if !task.filter.is_null() {
            let mode = libc::SECCOMP_MODE_FILTER as c_long;
            call!("filter clone3", libc::SYS_prctl, libc::PR_SET_SECCOMP, mode, task.filter)?;
        }
        Ok(())
    }
}

/// The runner's descriptors are all above 2, so none is overwritten before it is used.
///
/// # Safety
/// As for [`prepare`].
unsafe fn attach(task: &Task) -> Step {
    // SAFETY: plain integers.
    unsafe {
        for (target, source) in [task.stdin, task.stdout, task.stderr].into_iter().enumerate() {
            call!("attach its streams", libc::SYS_dup3, source, target as c_int, 0)?;
        }
        let terminal = match task.shell {
            Some(shell) => Some(shell.terminal),
            None => task.terminal.then_some(0),
        };
        if let Some(terminal) = terminal {
            let take = libc::TIOCSCTTY as c_long;
            call!("take its terminal", libc::SYS_ioctl, terminal, take, 0 as c_long)?;
        }
        Ok(())
    }
}

/// Last, because the numbers may be those of descriptors that were needed until now.
///
/// # Safety
/// As for [`prepare`].
unsafe fn keep_ends(shell: Shell) -> Step {
    let last = shell.first + SHELL_ENDS as c_int - 1;
    // SAFETY: plain integers.
    unsafe {
        for (target, source) in (shell.first..).zip(shell.ends) {
            call!("attach its streams", libc::SYS_dup3, source, target, 0)?;
        }
        call!("close descriptors", libc::SYS_close_range, 3, shell.first - 1, 0)?;
        call!("close descriptors", libc::SYS_close_range, last + 1, c_int::MAX, 0)?;
        Ok(())
    }
}

/// Groups before the user, whose change takes the right to do so. Leaving uid 0 in all three
/// places clears every capability.
///
/// # Safety
/// As for [`prepare`].
unsafe fn become_workload(identity: Identity) -> Step {
    let Identity { uid, gid, drop_groups, .. } = identity;
    // SAFETY: plain integers; an empty list of groups needs no memory.
    unsafe {
        if drop_groups {
            call!("drop groups", libc::SYS_setgroups, 0, ptr::null::<libc::gid_t>())?;
        }
        call!("change its group", libc::SYS_setresgid, gid, gid, gid)?;
        call!("change its user", libc::SYS_setresuid, uid, uid, uid)?;
        Ok(())
    }
}

/// Makes the child die before the runner when memory runs out. The file belongs to the runner's
/// own user, not to the one it does file operations as. Where it cannot be written, commands are
/// as likely to be chosen as the runner.
///
/// # Safety
/// As for [`prepare`].
unsafe fn prefer_for_oom(score: *const c_char) {
    // SAFETY: the strings are null-terminated; the descriptor is the one just opened.
    unsafe {
        let uid = libc::syscall(libc::SYS_geteuid);
        let before = libc::syscall(libc::SYS_setfsuid, uid);
        let path = c"/proc/self/oom_score_adj".as_ptr();
        let flags = libc::O_WRONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags);
        libc::syscall(libc::SYS_setfsuid, before);
        if file >= 0 {
            let length = CStr::from_ptr(score).count_bytes();
            libc::syscall(libc::SYS_write, file, score, length);
            libc::syscall(libc::SYS_close, file);
        }
    }
}

/// Exec resets handlers by itself, but keeps what is ignored and blocked.
///
/// # Safety
/// As for [`prepare`].
unsafe fn reset_signals() -> Step {
    static DEFAULT: signals::KernelAction = signals::DEFAULT;
    static NONE: u64 = 0;
    const SET_BYTES: usize = signals::SET_BYTES;
    // SAFETY: both statics are at least as large as what the kernel reads.
    unsafe {
        for signal in signals::IGNORED {
            let default = DEFAULT.as_ptr();
            let old = ptr::null::<c_void>();
            call!("reset signals", libc::SYS_rt_sigaction, signal, default, old, SET_BYTES)?;
        }
        let (how, old) = (libc::SIG_SETMASK, ptr::null::<c_void>());
        call!("unblock signals", libc::SYS_rt_sigprocmask, how, &raw const NONE, old, SET_BYTES)?;
        Ok(())
    }
}

/// Why no candidate runs.
struct Refused {
    errno: c_int,
    /// One of them is there, and what it names to be run by is not.
    lacks_interpreter: bool,
}

impl Refused {
    fn is_not_found(&self) -> bool {
        matches!(self.errno, libc::ENOENT | libc::ENOTDIR)
    }
}

/// Tries the candidates as execvp does. Returns the error that says most.
///
/// # Safety
/// As for [`prepare`].
unsafe fn exec(program: &Pointers) -> Refused {
    let mut denied = false;
    let mut lacks_interpreter = false;
    let mut errno = libc::ENOENT;
    let mut candidate = program.candidates;
    // SAFETY: all arrays are null-terminated, and `script` has room for the candidate.
    unsafe {
        while !(*candidate).is_null() {
            let (arguments, environment) = (program.arguments, program.environment);
            // Exec prepares a whole process before it looks whether there is a file.
            let found = libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, *candidate, libc::F_OK);
            if found == 0 {
                libc::syscall(libc::SYS_execve, *candidate, arguments, environment);
            }
            errno = *libc::__errno_location();
            match errno {
                libc::EACCES => denied = true,
                libc::ENOENT => lacks_interpreter |= found == 0,
                libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                libc::ENOEXEC => {
                    *program.script.add(1) = *candidate;
                    let script = program.script.cast_const();
                    libc::syscall(libc::SYS_execve, *script, script, environment);
                    return Refused { errno, lacks_interpreter };
                }
                _ => return Refused { errno, lacks_interpreter },
            }
            candidate = candidate.add(1);
        }
    }
    Refused { errno: if denied { libc::EACCES } else { errno }, lacks_interpreter }
}

/// Whoever reads it may be a model that has only these words to go by, in an image that has next to
/// nothing.
///
/// # Safety
/// As for [`prepare`].
unsafe fn not_found(program: &Pointers, lacks_interpreter: bool) -> &'static CStr {
    if lacks_interpreter {
        return c"not found: it is there, but the interpreter or loader that it names is not\n";
    }
    if program.is_path {
        return c"not found: there is no such file\n";
    }
    let shell = c"/bin/sh".as_ptr();
    // SAFETY: looks at a path that is null-terminated.
    match unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, shell, libc::F_OK) } {
        0 => {
            c"not found: nothing on PATH has that name. Run a program that is there, such as sh, or \
              use an image that has this one\n"
        }
        _ => {
            c"not found: nothing on PATH has that name, and there is no sh. Run a program that is \
              there, with its arguments as a list, or use an image that has this one\n"
        }
    }
}

/// # Safety
/// As for [`prepare`].
unsafe fn complain(program: &Pointers, refused: &Refused) {
    let reason = match refused.errno {
        // SAFETY: as for this.
        libc::ENOENT | libc::ENOTDIR => unsafe { not_found(program, refused.lacks_interpreter) },
        libc::EACCES => c"permission denied, or not a program\n",
        libc::ENOEXEC => c"not in an executable format\n",
        libc::E2BIG => c"argument list too long\n",
        libc::ENOMEM => c"not enough memory\n",
        libc::ETXTBSY => c"it is being written\n",
        libc::ELOOP => c"too many symbolic links\n",
        libc::ENAMETOOLONG => c"name too long\n",
        _ => c"refused by the kernel\n",
    };
    // SAFETY: both strings are null-terminated and outlive the call.
    unsafe {
        let parts = [part(CStr::from_ptr(program.complaint)), part(reason)];
        libc::syscall(libc::SYS_writev, 2, parts.as_ptr(), parts.len());
    }
}

fn part(text: &CStr) -> libc::iovec {
    libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.count_bytes() }
}

/// # Safety
/// Only in the child.
unsafe fn exit(code: c_int) -> ! {
    loop {
        // SAFETY: ends this process; memory stays the parent's.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}
