//! Where a workspace's runner is and how it is reached.
//!
//! A [`Place`] is all that a dialect knows of it. [`LocalPlace`] is a runner on a directory of this
//! machine, [`RemotePlace`] one on another machine behind a [`service`], and both give the same
//! typed client, so what is above cannot tell them apart.

mod breaker;
mod error;
mod keys;
mod layout;
mod limits;
mod link;
mod local;
mod place;
mod probe;
mod problem;
mod remote;
mod replay;
mod request_id;
mod routes;
pub mod service;
mod signature;
mod tls;
mod version;

pub use breaker::BreakerState;
pub use error::{PlaceError, PlaceErrorKind};
pub use keys::{KeyFile, Keys, KeysError};
pub use layout::Layout;
pub use local::{LocalPlace, LocalSettings};
pub use place::{Held, Mode, Place, PlaceCalls, PlaceHealth, PlaceState, Retries, Wrong};
pub use probe::probe;
pub use problem::Problem;
pub use remote::{RemoteNames, RemotePlace, RemoteSettings, RemoteTls};
pub use sandbank_channel::{current_request_id, with_request_id};
pub use signature::{Signed, Signer};
pub use version::{API_VERSION, ApiVersion, COMPATIBLE_FROM};
