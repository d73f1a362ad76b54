//! Limits of what is taken from a registry.

use std::time::Duration;

/// A manifest, an index or a configuration; a larger one is refused.
pub(crate) const DOCUMENT_BYTES: u64 = 4 << 20;

/// A token's answer. A longer one is refused.
pub(crate) const TOKEN_BYTES: u64 = 256 << 10;

/// What an error's body may say; the rest is not read.
pub(crate) const COMPLAINT_BYTES: u64 = 8 << 10;

/// Of a registry's own words in a message of ours.
pub(crate) const COMPLAINT_CHARS: usize = 200;

/// One answer leads to another at most so often.
pub(crate) const REDIRECTS: u32 = 5;

/// Indexes that point to indexes.
pub(crate) const INDEX_DEPTH: u32 = 3;

/// Layers downloaded at the same time.
pub const CONCURRENT_DOWNLOADS: usize = 4;

/// Attempts that bring less than [`PROGRESS_BYTES`]; then the next source is asked, or the download
/// fails.
pub(crate) const ATTEMPTS: u32 = 3;

/// What an attempt must bring to be worth another: drops would go on for ever.
pub(crate) const PROGRESS_BYTES: u64 = 1 << 20;

/// Before the second attempt; each further wait is twice as long.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(250);

/// For a connection to a registry.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// What a body must bring in [`SLOWEST_STALLS`] times the time that it may stand still, unless it
/// ends; a registry that only dribbles would keep a pull going for ever.
pub(crate) const SLOWEST_BYTES: u64 = 256 << 10;
pub(crate) const SLOWEST_STALLS: u32 = 2;

/// Written to disk at once.
pub(crate) const WRITE_BYTES: usize = 1 << 20;

/// A `config.json` of Docker, and a credential helper's answer.
pub(crate) const DOCKER_CONFIG_BYTES: u64 = 1 << 20;

/// For a credential helper, which may ask a person.
pub(crate) const HELPER_TIMEOUT: Duration = Duration::from_secs(60);
