//! What went wrong with the engine, in words that name the path, the cause and the next step.

use std::io::{self, ErrorKind};

use bollard::errors::Error;
use sandbank_engine::EngineError;

use super::address::Address;
use super::tls;

/// The engine answered, and said no.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
}

/// The engine's answer, if it gave one.
pub(crate) fn status_of(error: &Error) -> Option<Refusal> {
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            Some(Refusal { status: *status_code, message: message.clone() })
        }
        _ => None,
    }
}

/// The next step where only Docker knows what is wrong.
pub(crate) const SEE_LOG: &str = "Docker's log says more (`journalctl -u docker` on its host)";

/// What Go's servers answer, in the clear, to whom they expected to speak TLS.
const NOT_IN_THE_CLEAR: &str = "HTTP request to an HTTPS server";

pub(super) fn translate(address: &Address, step: &'static str, error: Error) -> EngineError {
    if let Some(refusal) = status_of(&error) {
        if refusal.message.contains(NOT_IN_THE_CLEAR) {
            return EngineError::Unavailable(format!(
                "Docker at {address} speaks TLS only: set DOCKER_TLS_VERIFY=1, and \
                 DOCKER_CERT_PATH to the directory of ca.pem, cert.pem and key.pem"
            ));
        }
        return refused(step, &refusal);
    }
    match error {
        Error::IOError { err } => unreachable(address, &err),
        Error::RequestTimeoutError => EngineError::Unavailable(format!(
            "Docker at {address} did not answer in time when asked to {step}; {SEE_LOG}"
        )),
        Error::DockerStreamError { error } => {
            refused(step, &Refusal { status: 500, message: error })
        }
        Error::JsonDataError { message, .. } => EngineError::Internal(format!(
            "Docker's answer is not understood: {message}; see whether `docker version` works \
                 with {address}"
        )),
        other => match transport_error(&other) {
            // The other side of a handshake may say no after ours is done.
            Some(error) if !matches!(address, Address::Unix(_)) => unreachable(address, error),
            _ => EngineError::Unavailable(format!(
                "the connection to Docker at {address} broke when it was asked to {step}: {other}"
            )),
        },
    }
}

/// What became of the connection, below the words of HTTP.
fn transport_error(error: &Error) -> Option<&io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

pub(crate) fn refused(step: &'static str, refusal: &Refusal) -> EngineError {
    let message = &refusal.message;
    if message.contains("no space left on device") || message.contains("disk quota exceeded") {
        return EngineError::StorageFull(format!("{step}: {message}"));
    }
    EngineError::Internal(format!("Docker refused to {step}: {message}; {SEE_LOG}"))
}

/// Nobody is there, or nobody answers us.
pub(super) fn unreachable(address: &Address, error: &io::Error) -> EngineError {
    let next = match (error.kind(), address) {
        (ErrorKind::NotFound, Address::Unix(_)) => {
            "there is no such socket: start Docker (`systemctl start docker`, a rootless one with \
             `systemctl --user start docker`), or name its socket with SANDBANK_DOCKER_HOST"
        }
        (ErrorKind::NotFound, Address::Ssh(_)) => "there is no ssh here: install openssh-client",
        (_, Address::Ssh(_)) => {
            "see whether `docker version` works there, in `ssh` without a password"
        }
        (ErrorKind::PermissionDenied, _) => {
            "this user may not use it: add it to the group docker, or run as root; deploy/README.md \
             says how a server in a container gets that group"
        }
        (ErrorKind::ConnectionRefused, Address::Unix(_)) => {
            "nobody listens there, so Docker is not running: start it (`systemctl start docker`)"
        }
        (ErrorKind::ConnectionRefused, _) => {
            "nobody listens there: start Docker, or check host and port"
        }
        (ErrorKind::TimedOut, _) => "it does not answer: check host, port and network",
        _ => "see whether `docker info` works here",
    };
    let of_tls = matches!(address, Address::Tls { .. }).then(|| tls::next_step(error)).flatten();
    let next = of_tls.unwrap_or(next);
    EngineError::Unavailable(format!("Docker at {address} cannot be reached ({error}): {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_is_not_there_is_named_with_the_cause_and_the_next_step() {
        let address = Address::Unix("/run/x.sock".into());
        for (kind, words) in [
            (ErrorKind::NotFound, "SANDBANK_DOCKER_HOST"),
            (ErrorKind::PermissionDenied, "group docker"),
            (ErrorKind::ConnectionRefused, "systemctl start docker"),
        ] {
            let error = translate(&address, "list", Error::IOError { err: kind.into() });
            assert!(matches!(error, EngineError::Unavailable(_)), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("/run/x.sock") && text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_full_disk_is_told_from_other_refusals() {
        let refusal = |message: &str| Error::DockerResponseServerError {
            status_code: 500,
            message: message.to_owned(),
        };
        let address = Address::Unix("/run/x.sock".into());
        let full = translate(&address, "write", refusal("write /x: no space left on device"));
        assert!(matches!(full, EngineError::StorageFull(_)), "{full:?}");
        let other = translate(&address, "write", refusal("no such network"));
        assert!(matches!(other, EngineError::Internal(_)), "{other:?}");
        let late = translate(&address, "write", Error::RequestTimeoutError);
        for error in [other, late] {
            assert!(error.to_string().ends_with(SEE_LOG), "it says where to look: {error}");
        }
    }
}
