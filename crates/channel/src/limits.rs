//! Bounds on what one runner can cost the daemon.

use std::time::Duration;

/// Largest JSON answer read from a runner; a longer one fails the request.
pub(crate) const MAX_JSON_BYTES: usize = 16 << 20;

/// How long a runner may take to answer anything but `wait` and streams.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a new connection may take until `hello` is answered.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Unread bytes a single stream may buffer in the daemon before the runner has to wait.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// The same for all streams of one runner together. So large that readers that stopped reading
/// do not hold up the other requests to the sandbox.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 512 << 20;

/// Largest HTTP/2 frame taken from a runner: output comes in frames of 128 KiB, and splitting
/// them into the default 16 KiB costs a system call each.
pub(crate) const MAX_FRAME_BYTES: u32 = 256 << 10;

/// What an error says of a runner's answer is cut to this many characters.
pub(crate) const MAX_ERROR_CHARS: usize = 500;

/// How long a runner may take to answer an open of the pipe link; whatever it says meanwhile is
/// dropped.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes on their way out of the pipe link that had to be escaped; a writer waits at the limit. As
/// much as a pipe holds.
pub(crate) const LINK_BUFFER_BYTES: usize = 64 << 10;

/// Bytes of the pipe link looked through at once for an open.
pub(crate) const LINK_SEARCH_BYTES: usize = 16 << 10;

/// Longest line of a streamed answer; a longer one fails the request.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 20;

/// How long a runner may take to answer about Git, which it ends itself before.
pub(crate) const GIT_TIMEOUT: Duration = Duration::from_secs(45);
