//! Bounds of the tools, and what happens at each.

use std::time::Duration;

/// How long the engine may take to say that it is well; then the tools are not offered.
pub(crate) const HEALTH_PATIENCE: Duration = Duration::from_millis(800);

/// How long its word is believed.
pub(crate) const HEALTH_AGE: Duration = Duration::from_secs(5);

/// A shorter admin token is refused at start.
pub const MIN_ADMIN_TOKEN_CHARS: usize = 32;

/// A longer name of a session is refused. One of a chat has its token's name and its own.
pub(crate) const MAX_SESSION_CHARS: usize = 200;

/// How long a call waits for room where every sandbox is busy; then it is refused.
pub(crate) const ROOM_PATIENCE: Duration = Duration::from_secs(10);

/// How long it waits for sandboxes that are just being ended; then it is refused.
pub(crate) const ENDING_PATIENCE: Duration = Duration::from_secs(30);

/// Beyond the time for filling a workspace, for a clone that was killed to be cleared away and to say
/// so itself; then the filling is given up.
pub(crate) const FILLING_MARGIN: Duration = Duration::from_secs(45);

/// Sessions of an earlier daemon that are taken up again.
pub(crate) const MAX_FOUND_SESSIONS: usize = 100;

/// Sessions that are told that their sandbox is not the one they had; of more, the first ones are not.
pub(crate) const MAX_LOST: usize = 256;

/// An update follows the one before after so much time, or so many more characters.
pub(crate) const UPDATE_INTERVAL: Duration = Duration::from_millis(150);
pub(crate) const UPDATE_CHARS: usize = 512;

/// Updates that nobody has taken yet; further ones are left out, but for the last.
pub(crate) const UPDATES_WAITING: usize = 8;

/// Beyond a command's time, for the sandbox to say that it killed it; then it is killed from here.
pub(crate) const TIMEOUT_MARGIN: Duration = Duration::from_secs(5);

/// How long a killed command may take to be gone; then nobody waits for it.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Output of a command that the runner keeps for a reader that was cut off.
pub(crate) const JOURNAL_BYTES: u64 = 4 << 20;

/// A longer command is refused: the kernel takes no longer word of a program.
pub(crate) const MAX_SCRIPT_BYTES: usize = 120 << 10;

/// Characters of a command, a path and a file's content in a call; more are refused.
pub(crate) const MAX_COMMAND_CHARS: usize = 100_000;
pub(crate) const MAX_PATH_CHARS: usize = 4_096;
pub(crate) const MAX_CONTENT_CHARS: usize = 4 << 20;

/// A longer file is not read: the model is told to look at a part of it.
pub(crate) const MAX_READ_BYTES: u64 = 1 << 20;

/// Entries in a list of files and lines that a search finds; then it says that there are more.
pub(crate) const MAX_LISTED: u64 = 1_000;
pub(crate) const MAX_FOUND: u64 = 200;

/// Levels of a list of files where nobody says.
pub(crate) const LIST_DEPTH: u64 = 3;

/// How long a look at files may take; then it tells what it has.
pub(crate) const LOOK_MS: u64 = 5_000;

/// Bytes of a line that a search found; longer ones are cut around the match.
pub(crate) const MAX_FOUND_LINE_BYTES: u64 = 400;

/// A longer marker of a filled workspace is none of ours.
pub(crate) const MAX_MARKER_BYTES: u64 = 4 << 10;

/// Characters of an error of the sandbox's own that are passed on.
pub(crate) const MAX_REASON_CHARS: usize = 500;
