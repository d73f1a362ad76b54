//! File errors as the channel's faults.

use sandbank_protocol::{Fault, FaultCode};
use sandbank_rooted_fs::{InvalidPath, RootedError};

pub(super) fn refuse_path(error: InvalidPath) -> Fault {
    let code = if error.leads_outside() { FaultCode::OutsideWorkspace } else { FaultCode::Invalid };
    Fault::new(code, error.to_string())
}

pub(crate) fn refuse(error: RootedError) -> Fault {
    use RootedError as E;
    let code = match &error {
        E::NotFound(_) => FaultCode::NotFound,
        E::AlreadyExists(_) | E::NotEmpty(_) | E::Contended(_) => FaultCode::Conflict,
        E::Escapes(_) => FaultCode::OutsideWorkspace,
        E::WrongKind { .. } | E::NotADirectory(_) => FaultCode::WrongKind,
        E::IsRoot | E::IntoItself(_) | E::PathTooLong(_) => FaultCode::Invalid,
        E::PermissionDenied(_) | E::ReadOnly(_) => FaultCode::PermissionDenied,
        E::StorageFull(_) => FaultCode::StorageFull,
        E::FileTooLarge(_) | E::TooManyOpenFiles(_) | E::TooWide(_) => FaultCode::LimitReached,
        E::Changed(_) => FaultCode::PreconditionFailed,
        E::Abandoned(_) => FaultCode::Closed,
        E::Kernel { .. } => FaultCode::Internal,
    };
    Fault::new(code, error.to_string())
}
