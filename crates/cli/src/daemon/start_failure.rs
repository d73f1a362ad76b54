//! Everything that can keep a daemon from starting, as one sentence, a next step and a code.

use std::io::ErrorKind;
use std::net::SocketAddr;

use sandbank_engine::EngineError;
use sandbank_orchestrator::OrchestratorError;
use sandbank_server::TokenFileError;
use sandbank_server::config::ConfigError;
use sandbank_store::StoreError;

use crate::failure::{Exit, Failure};

/// The message itself says what to change; the table of settings is the next step.
pub(crate) fn bad_config(error: &ConfigError) -> Failure {
    Failure::usage(error.to_string())
        .hint("`sandbank config example` prints every setting with its default")
}

pub(crate) fn bad_token_file(error: &TokenFileError) -> Failure {
    let message = error.to_string();
    match error {
        TokenFileError::Io { source, .. } => {
            let exit = match source.kind() {
                ErrorKind::NotFound => Exit::NotPermitted,
                _ => Exit::CannotWrite,
            };
            Failure::new(exit, message).hint("the user who started the server can read it")
        }
        TokenFileError::Readable(_) | TokenFileError::Foreign(..) => {
            Failure::new(Exit::NotPermitted, message).hint("only its owner may be able to read it")
        }
        TokenFileError::Empty(_) => {
            Failure::new(Exit::NotPermitted, message).hint("a new one is made at the next start")
        }
    }
}

pub(super) fn no_listener(address: SocketAddr, error: &std::io::Error) -> Failure {
    let port = address.port();
    match error.kind() {
        ErrorKind::AddrInUse => {
            Failure::new(Exit::Temporary, format!("port {port} on {} is in use", address.ip()))
                .hint(format!(
                    "stop what listens there, or choose another with --port {}",
                    next(port)
                ))
        }
        ErrorKind::AddrNotAvailable => {
            let message = format!("this machine does not have the address {}", address.ip());
            Failure::usage(message).hint("`ip address` lists the ones it has; change --host")
        }
        ErrorKind::PermissionDenied => {
            Failure::new(Exit::NotPermitted, format!("port {port} needs more rights than we have"))
                .hint("choose a port of 1024 or more with --port, or run as root")
        }
        _ => Failure::new(Exit::Temporary, format!("cannot listen on {address}: {error}"))
            .hint("choose another address with --host and --port"),
    }
}

fn next(port: u16) -> u16 {
    port.checked_add(1).unwrap_or(8081)
}

pub(super) fn no_store(error: &StoreError) -> Failure {
    let exit = match error {
        StoreError::Corrupt { .. } | StoreError::Newer { .. } | StoreError::BadValue { .. } => {
            Exit::Data
        }
        StoreError::Full { .. } | StoreError::ReadOnly { .. } | StoreError::Io { .. } => {
            Exit::CannotWrite
        }
        StoreError::Locked { .. } => Exit::Temporary,
        StoreError::Exists { .. } => Exit::Internal,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure.hint("look at the file and its directory, or name another with --data-dir"),
    }
}

pub(super) const NATIVE: &str = "native";
pub(super) const DOCKER: &str = "docker";

/// `name` is that of the engine that was to be started or used.
pub(crate) fn no_engine(name: &str, error: &EngineError) -> Failure {
    let message = format!("the {name} engine cannot be used: {error}");
    match error {
        // Its own words have the next step.
        EngineError::Unavailable(_) if name == DOCKER => Failure::new(Exit::Temporary, message)
            .hint("`docker info` shows whether Docker works here; SANDBANK_ENGINE=native does without"),
        EngineError::StorageFull(_) => Failure::new(Exit::CannotWrite, message)
            .hint("free some space on the data directory's file system"),
        EngineError::Io { source, .. } if source.kind() == ErrorKind::ReadOnlyFilesystem => {
            Failure::new(Exit::CannotWrite, message)
                .hint("name a writable data directory with --data-dir")
        }
        EngineError::Exhausted(_) => {
            Failure::new(Exit::Temporary, message).hint("try again in a moment")
        }
        EngineError::Taken(_) => Failure::new(Exit::Temporary, message)
            .hint("stop the other daemon, or name another data directory with --data-dir"),
        _ => Failure::new(Exit::Unsupported, message)
            .hint("`sandbank doctor` shows what this machine lacks and how to get it"),
    }
}

/// There is no canary to attack, or it does not answer.
pub(crate) fn cannot_test(error: &OrchestratorError) -> Failure {
    let exit = match error {
        OrchestratorError::Engine(engine) => no_engine(NATIVE, engine).exit,
        _ => Exit::Temporary,
    };
    let hint = error.hint().unwrap_or_else(|| "`sandbank doctor` tries every control".to_owned());
    Failure::new(exit, format!("containment cannot be tested: {error}")).hint(hint)
}

pub(super) fn no_orchestrator(engine: &str, error: &OrchestratorError) -> Failure {
    match error {
        OrchestratorError::Store(store) => no_store(store),
        OrchestratorError::Engine(error) => no_engine(engine, error),
        OrchestratorError::EngineNotConfigured { .. } => {
            Failure { hint: error.hint(), ..Failure::usage(error.to_string()) }
        }
        other => {
            let failure =
                Failure::new(Exit::Internal, format!("cannot take up sandboxes: {other}"));
            match other.hint() {
                Some(hint) => failure.hint(hint),
                None => {
                    failure.hint("the log has the details; start again with SANDBANK_LOG=debug")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_failure_has_a_code_and_a_next_step() {
        let path = std::path::PathBuf::from("/data/sandbank.db");
        let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let io = |kind: ErrorKind| std::io::Error::from(kind);
        let cases = [
            (no_listener(address, &io(ErrorKind::AddrInUse)), Exit::Temporary),
            (no_listener(address, &io(ErrorKind::PermissionDenied)), Exit::NotPermitted),
            (no_store(&StoreError::Full { path: path.clone() }), Exit::CannotWrite),
            (no_store(&StoreError::ReadOnly { path: path.clone() }), Exit::CannotWrite),
            (no_store(&StoreError::Locked { path: path.clone() }), Exit::Temporary),
            (
                no_store(&StoreError::Newer { path: path.clone(), found: 9, supported: 1 }),
                Exit::Data,
            ),
            (no_store(&StoreError::Corrupt { path, reason: "x".into() }), Exit::Data),
            (
                no_engine(NATIVE, &EngineError::Internal("no user namespaces".into())),
                Exit::Unsupported,
            ),
            (no_engine(NATIVE, &EngineError::StorageFull("pool".into())), Exit::CannotWrite),
        ];
        for (failure, exit) in cases {
            assert_eq!(failure.exit, exit, "{}", failure.message);
            assert!(failure.hint.is_some(), "{} has no hint", failure.message);
        }
    }
}
