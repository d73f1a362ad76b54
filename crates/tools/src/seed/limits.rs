//! Bounds of filling a workspace, and what happens at each.

use std::time::Duration;

/// Of a repository's URL and of a revision; longer ones are refused.
pub(super) const MAX_URL_BYTES: usize = 2_048;
pub(super) const MAX_REVISION_BYTES: usize = 255;

/// The end of what git said on its standard error that an error shows.
pub(super) const ERROR_BYTES: usize = 4 << 10;

/// Of one line of progress; the rest of it is left out.
pub(super) const PROGRESS_LINE_BYTES: usize = 200;

/// How long clearing up after a clone that was killed may take; what is left is cleared by the next.
pub(super) const CLEARING: Duration = Duration::from_secs(30);

/// Files of an upload; one more and nothing is uploaded.
pub(super) const MAX_FILES: usize = 2_000;

/// Bytes of one file and of all; more and nothing is uploaded.
pub(super) const MAX_FILE_BYTES: u64 = 256 << 20;
pub(super) const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// Entries that are looked at for an upload; more and nothing is uploaded.
pub(super) const MAX_ENTRIES: u64 = 500_000;

/// Of one path; longer ones are left out and counted.
pub(super) const MAX_PATH_BYTES: usize = 4_095;

/// Files up to this are read before they are announced, so that their size is right whatever happens
/// to them.
pub(super) const READ_AT_ONCE: u64 = 1 << 20;

/// A piece of an archive on its way, and how many wait.
pub(super) const PIECE_BYTES: usize = 64 << 10;
pub(super) const PIECES_WAITING: usize = 8;

/// How often an upload is begun again because a file became shorter while it was read.
pub(super) const UPLOAD_ATTEMPTS: usize = 3;

/// What git may say about the files it tracks, and how long it may take.
pub(super) const TRACKED_BYTES: u64 = 64 << 20;
pub(super) const TRACKED_PATIENCE: Duration = Duration::from_secs(60);
