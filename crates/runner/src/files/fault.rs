//! File errors as the channel's faults.

use sandbank_protocol::{Fault, FaultCode};
use sandbank_rooted_fs::{InvalidPath, RootedError};

use crate::limits::MAX_NAMED_PATH_CHARS;

pub(super) fn refuse_path(error: InvalidPath) -> Fault {
    let code = if error.leads_outside() { FaultCode::OutsideWorkspace } else { FaultCode::Invalid };
    Fault::new(code, cut(error.to_string()))
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
        E::FileTooLarge(_) | E::TooManyOpenFiles(_) | E::TooWide(_) | E::TooDeep(_) => {
            FaultCode::LimitReached
        }
        E::Changed(_) => FaultCode::PreconditionFailed,
        E::Abandoned(_) => FaultCode::Closed,
        E::Kernel { .. } => FaultCode::Internal,
    };
    Fault::new(code, cut(error.to_string()))
}

/// A path that a walk came to may be longer than any client's; what is said before and after it
/// stays.
fn cut(message: String) -> String {
    let Some((end, _)) = message.char_indices().nth(MAX_NAMED_PATH_CHARS) else { return message };
    let Some((begin, _)) = message.char_indices().rev().nth(MAX_NAMED_PATH_CHARS - 1) else {
        return message;
    };
    if begin <= end { message } else { format!("{}…{}", &message[..end], &message[begin..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_an_endless_path_is_cut_in_its_middle() {
        let short = format!("é{}é", "x".repeat(2 * MAX_NAMED_PATH_CHARS - 2));
        assert_eq!(cut(short.clone()), short);
        let long = cut(format!("the path {} is too deep", "é/".repeat(200_000)));
        assert_eq!(long.chars().count(), 2 * MAX_NAMED_PATH_CHARS + 1);
        assert!(long.starts_with("the path é/") && long.ends_with("/ is too deep"), "{long}");
    }
}
