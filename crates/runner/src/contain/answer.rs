//! What an attack came to, and the words for it.

/// Evidence that the control held, or why that cannot be said.
pub(super) type Answer = Result<String, Miss>;

#[derive(Debug)]
pub(super) enum Miss {
    Failed(String),
    NotTried(String),
}

pub(super) fn failed<T>(evidence: impl Into<String>) -> Result<T, Miss> {
    Err(Miss::Failed(evidence.into()))
}

pub(super) fn not_tried<T>(reason: impl Into<String>) -> Result<T, Miss> {
    Err(Miss::NotTried(reason.into()))
}

/// Held when no attack of several had another answer than expected.
pub(super) fn all_refused(surprises: &[String], evidence: impl Into<String>) -> Answer {
    if surprises.is_empty() { Ok(evidence.into()) } else { failed(surprises.join("; ")) }
}

/// A raw system call: a value that is not negative, or the error number.
pub(super) fn call(number: libc::c_long, arguments: [usize; 5]) -> Result<usize, i32> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: callers pass pointers that are valid for the call, or ones that the kernel refuses.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, 0usize) };
    if result < 0 { Err(last_error()) } else { Ok(result as usize) }
}

pub(super) fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// `EPERM` rather than a sentence.
pub(super) fn errno(number: i32) -> String {
    let name = match number {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EINVAL => "EINVAL",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENOSYS => "ENOSYS",
        libc::ETXTBSY => "ETXTBSY",
        libc::EDQUOT => "EDQUOT",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::E2BIG => "E2BIG",
        other => return std::io::Error::from_raw_os_error(other).to_string(),
    };
    name.to_owned()
}

/// What a call answered, for evidence.
pub(super) fn answered<T>(result: &Result<T, i32>) -> String {
    match result {
        Ok(_) => "worked".to_owned(),
        Err(number) => format!("gave {}", errno(*number)),
    }
}
