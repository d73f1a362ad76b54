//! What a machine's first process was doing when it failed, in one word that fits a pipe.

use sandbank_engine::{Control, EngineError};

macro_rules! steps {
    ($($name:ident, $text:literal, $control:expr;)*) => {
        /// Steps of putting a machine together, in the order in which they happen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub(crate) enum Step { $($name),* }

        impl Step {
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Reads well after "failed to".
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The control that is not in force when this step fails.
            pub(crate) fn control(self) -> Option<Control> {
                match self { $(Self::$name => $control),* }
            }
        }
    };
}

steps! {
    BecomeRoot, "become root of a user namespace", Some(Control::UserNamespace);
    Scaffold, "leave the host's mounts", Some(Control::Namespaces);
    Clone, "clone the machine's first process", Some(Control::Namespaces);
    JoinCgroup, "enter the machine's cgroups", None;
    CgroupNamespace, "enter a cgroup namespace", Some(Control::Namespaces);
    NetNamespace, "enter the network namespace", Some(Control::Namespaces);
    HostName, "set the host name", None;
    Root, "mount the root", Some(Control::ReadOnlyRoot);
    Bind, "bind a directory of the image", None;
    Proc, "mount /proc", Some(Control::MaskedKernelFiles);
    ProcMask, "mask /proc", Some(Control::MaskedKernelFiles);
    Sys, "mount /sys", Some(Control::MaskedKernelFiles);
    SysMask, "mask /sys", Some(Control::MaskedKernelFiles);
    Dev, "mount /dev", None;
    Tmp, "mount /tmp", None;
    Etc, "write /etc", None;
    Workspace, "mount the workspace", None;
    Pivot, "enter the new root", Some(Control::Namespaces);
    Session, "start a session", None;
    Rlimits, "set resource limits", Some(Control::ResourceLimits);
    Descriptors, "arrange descriptors", None;
    UserNamespace, "enter the user namespace", Some(Control::UserNamespace);
    Identity, "become the namespace's root", Some(Control::SeparateRunnerIdentity);
    NestedNamespaces, "forbid nested user namespaces", Some(Control::UserNamespace);
    RootProbe, "find the root read-only", Some(Control::ReadOnlyRoot);
    WriteProbe, "write to the workspace", None;
    Capabilities, "drop capabilities", Some(Control::NoCapabilities);
    NoNewPrivileges, "give up new privileges", Some(Control::NoNewPrivileges);
    Exec, "start the runner", None;
    UserNamespaceMade, "make a user namespace", Some(Control::UserNamespace);
    Message, "understand the daemon", None;
}

/// A failed step and the kernel's reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: i32,
}

impl Failure {
    pub(crate) const BYTES: usize = 8;

    pub(crate) fn at(step: Step) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self { step, errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&(self.step as u32).to_le_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (step, errno) = bytes.split_at_checked(4)?;
        let step = u32::from_le_bytes(step.try_into().ok()?);
        let errno = i32::from_le_bytes(errno.try_into().ok()?);
        Some(Self { step: *Step::ALL.get(step as usize)?, errno })
    }

    pub(crate) fn into_error(self) -> EngineError {
        let source = std::io::Error::from_raw_os_error(self.errno);
        match (self.errno, self.step.control()) {
            (libc::ENOSPC | libc::EDQUOT, _) => {
                EngineError::StorageFull(format!("{}: {source}", self.step.text()))
            }
            (libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE, _) => {
                EngineError::Exhausted(format!("failed to {}: {source}", self.step.text()))
            }
            (_, Some(control)) => EngineError::ControlUnavailable {
                control,
                reason: format!("failed to {}: {source}", self.step.text()),
            },
            (_, None) => EngineError::Io { step: self.step.text(), source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_survives_the_pipe() {
        for step in Step::ALL {
            let failure = Failure { step: *step, errno: 13 };
            assert_eq!(Failure::from_bytes(&failure.to_bytes()), Some(failure));
        }
        assert_eq!(Failure::from_bytes(&[0xff; 8]), None);
        assert_eq!(Failure::from_bytes(&[0; 3]), None);
    }

    #[test]
    fn a_failed_control_is_named() {
        let failure = Failure { step: Step::UserNamespace, errno: libc::EPERM };
        let error = failure.into_error();
        let EngineError::ControlUnavailable { control, .. } = error else { panic!("{error}") };
        assert_eq!(control, Control::UserNamespace);
    }
}
