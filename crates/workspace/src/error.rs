//! Why a place cannot be used: a stable kind, a status for HTTP, and what to do.

use std::time::Duration;

use sandbank_channel::{ChannelError, Obstacle, ObstacleKind};

use crate::Problem;
use crate::problem::lines;

/// Cloned, since callers that waited for the same attempt share its failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PlaceError {
    /// The runner understood and refused, or was not understood.
    #[error(transparent)]
    Channel(#[from] std::sync::Arc<ChannelError>),
    #[error("{}", lines(.0))]
    Settings(Vec<Problem>),
    #[error("another sandbank has the runner of this workspace ({0})")]
    InUse(String),
    #[error("the workspace's runner cannot be started: {0}")]
    Start(String),
    #[error("the workspace service cannot be reached: {0}")]
    Unreachable(String),
    /// Nobody who is believed vouches for it, or not for the name it was called by.
    #[error("the workspace service's certificate is not believed: {0}")]
    Untrusted(String),
    #[error("the workspace service did not answer within {0:?}")]
    TimedOut(Duration),
}

/// What a person has to look at. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceErrorKind {
    /// The runner's own refusal: a missing file, a conflict.
    Refused,
    Auth,
    Unreachable,
    Certificate,
    BadPath,
    Version,
    TimedOut,
    BadGateway,
    BreakerOpen,
    Forbidden,
    Settings,
    InUse,
    Start,
}

impl PlaceErrorKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Auth => "auth",
            Self::Unreachable => "unreachable",
            Self::Certificate => "certificate",
            Self::BadPath => "bad_path",
            Self::Version => "version",
            Self::TimedOut => "timeout",
            Self::BadGateway => "bad_gateway",
            Self::BreakerOpen => "breaker_open",
            Self::Forbidden => "forbidden",
            Self::Settings => "settings",
            Self::InUse => "in_use",
            Self::Start => "start",
        }
    }

    /// What a control plane answers: a failure behind it is 502, one that cannot be reached 503,
    /// one that takes too long 504. A runner's refusal has a status of its own.
    pub fn status(self) -> u16 {
        match self {
            Self::Refused => 400,
            Self::Auth
            | Self::Certificate
            | Self::BadPath
            | Self::Version
            | Self::BadGateway
            | Self::Start => 502,
            Self::Unreachable | Self::BreakerOpen | Self::InUse => 503,
            Self::TimedOut => 504,
            Self::Forbidden => 403,
            Self::Settings => 500,
        }
    }
}

impl From<ChannelError> for PlaceError {
    fn from(error: ChannelError) -> Self {
        Self::Channel(error.into())
    }
}

impl PlaceError {
    pub(crate) fn obstacle(kind: ObstacleKind, message: impl Into<String>) -> Self {
        ChannelError::Stopped(Obstacle::new(kind, message)).into()
    }

    pub fn kind(&self) -> PlaceErrorKind {
        use PlaceErrorKind as Kind;
        match self {
            Self::Settings(_) => Kind::Settings,
            Self::InUse(_) => Kind::InUse,
            Self::Start(_) => Kind::Start,
            Self::Unreachable(_) => Kind::Unreachable,
            Self::Untrusted(_) => Kind::Certificate,
            Self::TimedOut(_) => Kind::TimedOut,
            Self::Channel(error) => match &**error {
                ChannelError::Refused(_) => Kind::Refused,
                ChannelError::Broken(_) => Kind::Unreachable,
                ChannelError::TimedOut(_) => Kind::TimedOut,
                ChannelError::Violation(_) => Kind::BadGateway,
                ChannelError::Incompatible { .. } => Kind::Version,
                ChannelError::Stopped(obstacle) => of_obstacle(obstacle.kind),
            },
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            Self::Channel(error) => match &**error {
                ChannelError::Refused(fault) => fault.code.status(),
                _ => self.kind().status(),
            },
            _ => self.kind().status(),
        }
    }

    /// Whether the same call may work in a moment, over a new connection.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) => true,
            Self::Channel(error) => match &**error {
                ChannelError::Stopped(obstacle) => matches!(
                    obstacle.kind,
                    ObstacleKind::Unavailable
                        | ObstacleKind::BadGateway
                        | ObstacleKind::GatewayTimeout
                        | ObstacleKind::Stale
                ),
                error => error.is_broken(),
            },
            _ => false,
        }
    }

    pub fn next_step(&self) -> &'static str {
        match self.kind() {
            PlaceErrorKind::Refused => "change the request",
            PlaceErrorKind::Auth => {
                "give both sides the same secret, and set both clocks (timedatectl)"
            }
            PlaceErrorKind::Unreachable => {
                "look whether the workspace service runs, and whether its host, port and firewall are right"
            }
            PlaceErrorKind::Certificate => {
                "name the file of the authority that vouches for it (SANDBANK_WORKSPACE_SERVICE_AUTHORITIES, or \
                 --authorities), and call the service by a name that its certificate has"
            }
            PlaceErrorKind::BadPath => {
                "check the address of the workspace service: its host, port and path, and the proxy before it"
            }
            PlaceErrorKind::Version => "install the same version of sandbank on both machines",
            PlaceErrorKind::TimedOut => "try again; look at the load of that machine",
            PlaceErrorKind::BadGateway => "look at the log of the workspace service",
            PlaceErrorKind::BreakerOpen => "wait; it tries by itself",
            PlaceErrorKind::Forbidden => "ask for it where the workspace is",
            PlaceErrorKind::Settings => "change the settings that are named",
            PlaceErrorKind::InUse => "stop the other one, or name another data directory",
            PlaceErrorKind::Start => "look at runner.log in the data directory",
        }
    }
}

fn of_obstacle(kind: ObstacleKind) -> PlaceErrorKind {
    match kind {
        ObstacleKind::Auth | ObstacleKind::Stale => PlaceErrorKind::Auth,
        ObstacleKind::Version => PlaceErrorKind::Version,
        ObstacleKind::BadPath => PlaceErrorKind::BadPath,
        ObstacleKind::Unavailable => PlaceErrorKind::Unreachable,
        ObstacleKind::BadGateway => PlaceErrorKind::BadGateway,
        ObstacleKind::GatewayTimeout => PlaceErrorKind::TimedOut,
        ObstacleKind::Forbidden => PlaceErrorKind::Forbidden,
        ObstacleKind::BreakerOpen => PlaceErrorKind::BreakerOpen,
    }
}
