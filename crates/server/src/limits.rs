//! Bounds of the HTTP side that are not settings, with what happens at each. The settable ones
//! are in `config/table.rs`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A longer configuration file is refused at start.
pub(crate) const MAX_CONFIG_FILE_BYTES: u64 = 1 << 20;

/// A YAML file that nests deeper is refused at start.
pub(crate) const MAX_YAML_DEPTH: usize = 8;

/// Unknown fields of one body that are named; of more it is only said that there are.
pub(crate) const MAX_FIELD_WARNINGS: usize = 16;

/// The name of an unknown field is shown this long.
pub(crate) const MAX_SHOWN_FIELD_CHARS: usize = 64;

/// Of each stream of a command that is started with `wait=true`, this much of its end is in the
/// answer; what came before is counted.
pub(crate) const MAX_TAIL_BYTES: usize = 64 << 10;

/// Time for that to be read; then the answer is without it.
pub(crate) const TAIL_PATIENCE: Duration = Duration::from_secs(5);

/// What a runner says is cut to this many characters in an error.
pub(crate) const MAX_RUNNER_MESSAGE_CHARS: usize = 1000;

/// `Retry-After` where nothing better is known.
pub(crate) const RETRY_SOON: Duration = Duration::from_secs(1);

/// A request head that needs more is answered 431 and the connection closed. It is also the
/// largest piece in which a body is read: fewer, larger ones are what makes uploads fast.
pub(crate) const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Of a body that its handler did not want, this much more is read and thrown away, so that the
/// client gets to see the answer instead of a reset connection.
pub(crate) const MAX_DISCARDED_BYTES: usize = 256 << 20;

/// For this long at most.
pub(crate) const MAX_DISCARD_TIME: Duration = Duration::from_secs(5);

/// A JSON body that has not arrived whole by then is answered 408, however steadily it drips.
pub(crate) const MAX_BODY_TIME: Duration = Duration::from_secs(300);

/// A longer path is answered 400.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// A longer file is answered 413 by `files:read`, which holds it in memory; the raw route has no
/// limit.
pub(crate) const MAX_READ_JSON_BYTES: u64 = 32 << 20;

/// More files in one `files:write` are answered 400.
pub(crate) const MAX_FILES_PER_WRITE: usize = 10_000;

/// More arguments, or environment variables, of one command are answered 400.
pub(crate) const MAX_WORDS_PER_COMMAND: usize = 10_000;

/// Ports that one sandbox may have; further ones in a request are not kept.
pub(crate) const MAX_PORTS: usize = 4;

/// Once this much output is encoded, a log stream sends it, even if more frames are there.
pub(crate) const LOG_CHUNK_BYTES: usize = 128 * 1024;

/// A silent event stream sends a comment this often, and a silent wait a space.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a start that waits stays with the runner before the command counts as a long one.
pub(crate) const START_PATIENCE: Duration = Duration::from_millis(250);

/// A wait that takes longer has its headers sent, because clients give up on silent servers.
pub(crate) const WAIT_SILENCE: Duration = Duration::from_secs(45);

/// A viewer of a terminal is asked for a sign of life this often, and has so long to give it.
pub(crate) const VIEWER_PING: Duration = Duration::from_secs(30);
pub(crate) const VIEWER_PONG_DEADLINE: Duration = Duration::from_secs(10);

/// A viewer that takes longer for one piece of output is painted the screen instead of all it missed.
pub(crate) const VIEWER_PATIENCE: Duration = Duration::from_secs(1);

/// How long a viewer that is let go may take to read the rest.
pub(crate) const VIEWER_CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// Answers to a viewer's messages on their way; further ones are not sent.
pub(crate) const VIEWER_REPLIES: usize = 16;

/// A longer message of a viewer ends its connection.
pub(crate) const MAX_VIEWER_MESSAGE_BYTES: usize = 256 << 10;

/// What a viewer typed and its program did not take; more ends the connection with 4413.
pub(crate) const MAX_TYPED_AHEAD_BYTES: usize = 1 << 20;

/// What one message counts for there beside its bytes.
pub(crate) const TYPED_MESSAGE_BYTES: usize = 64;

/// Of that, what is handed to the program at once.
pub(crate) const MAX_TYPED_AT_ONCE_BYTES: usize = 64 << 10;

/// The rate limiter forgets quiet callers when it knows more than this many.
pub(crate) const MAX_RATE_KEYS: usize = 10_000;

/// After a failed accept (no descriptors left), the listener rests this long.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Failed accepts that are less far apart are one line of the log.
pub(crate) const ACCEPT_EPISODE: Duration = Duration::from_secs(10);

/// How long the list of images is believed when a runtime is mapped to one.
pub(crate) const IMAGE_LIST_AGE: Duration = Duration::from_secs(1);

/// How long the state of the data directory is believed before it is looked at again.
pub(crate) const DATA_DIR_AGE: Duration = Duration::from_secs(5);

/// A look at it that takes longer is told as trouble.
pub(crate) const DATA_DIR_PATIENCE: Duration = Duration::from_secs(10);

/// How long the state of the workspace is believed, and how long a look at it is waited for.
pub(crate) const READINESS_AGE: Duration = Duration::from_secs(3);
pub(crate) const READINESS_PATIENCE: Duration = Duration::from_secs(2);

/// A longer name of a token is answered 400.
pub(crate) const MAX_TOKEN_NAME_CHARS: usize = 64;

/// What a sandbox may be given, by its caller or as the configured default. A caller's cores and
/// memory are brought into range, as in sandboxd; anything else out of range is refused.
pub(crate) const VCPUS: RangeInclusive<u64> = 1..=8;
pub(crate) const MEMORY_MB: RangeInclusive<u64> = 256..=16_384;
pub(crate) const DISK_MB: RangeInclusive<u64> = 1..=16_777_216;
pub(crate) const TMP_MB: RangeInclusive<u64> = 1..=65_536;
pub(crate) const PIDS: RangeInclusive<u64> = 16..=32_768;

/// What a caller may ask for a session; anything else is answered 400.
pub(crate) const SESSION_TTL_SECONDS: RangeInclusive<u64> = 0..=86_400;
pub(crate) const EXEC_TIMEOUT_MS: RangeInclusive<u64> = 0..=600_000;

/// A longer command of a session is answered 400.
pub(crate) const MAX_SESSION_COMMAND_BYTES: usize = 1 << 20;

/// Output of a session's command; what follows is read and marked as truncated.
pub(crate) const MAX_SESSION_OUTPUT_BYTES: usize = 5 << 20;

/// What a runner keeps of it: all of that until somebody reads it.
pub(crate) const SESSION_JOURNAL_BYTES: u64 = 6 << 20;

/// Text of one event of a streamed command: so small that it goes out, and comes in, as one piece.
pub(crate) const SESSION_CHUNK_BYTES: usize = 8 << 10;

/// How long an exec stays with its start before the output is followed.
pub(crate) const EXEC_PATIENCE: Duration = Duration::from_millis(50);

/// Sessions in one list, the newest ones.
pub(crate) const MAX_LISTED_SESSIONS: usize = 1_000;

/// Files and their bytes in one upload; more are answered 400 and 413.
pub(crate) const MAX_UPLOADED_FILES: usize = 100;
pub(crate) const MAX_UPLOADED_BYTES: usize = 10 << 20;

/// What an upload may have around its files: boundaries, names and headers.
pub(crate) const UPLOAD_FRAME_BYTES: usize = 256 << 10;

/// A read of a session's file: at most, and where the caller does not say.
pub(crate) const MAX_SESSION_READ_BYTES: u64 = 100 << 20;
pub(crate) const DEFAULT_SESSION_READ_BYTES: u64 = 10 << 20;

/// How long the sandbox stays through which a workspace is reached that no session has.
pub(crate) const CARETAKER_TTL: Duration = Duration::from_secs(30);

/// How long a runner may take to say where its session's shell is; then it is told as unknown.
pub(crate) const CWD_PATIENCE: Duration = Duration::from_secs(1);

/// Runners that a list of sessions asks for it at a time, and how long it asks at all.
pub(crate) const CWDS_AT_ONCE: usize = 32;
pub(crate) const CWDS_PATIENCE: Duration = Duration::from_secs(5);

/// A terminal's control sequence that is longer was none, and what follows is text again.
pub(crate) const MAX_SEQUENCE_CHARS: usize = 4096;

/// A longer field `path` of an upload's form is answered 400.
pub(crate) const MAX_PATH_FIELD_BYTES: usize = 16 << 10;

/// A longer file is answered 413 by `/api/file`, which holds it in memory.
pub(crate) const MAX_WORKSPACE_FILE_BYTES: u64 = 10 << 20;

/// Links of a directory whose targets are looked at side by side for `/api/tree`.
pub(crate) const LINKS_AT_ONCE: usize = 16;

/// A longer approval request is answered 413; a longer reason of a decision is cut.
pub(crate) const MAX_APPROVAL_BYTES: usize = 64 << 10;

/// Further requests for approval are answered 429 while so many wait.
pub(crate) const MAX_PENDING_APPROVALS: usize = 100;

/// Of decided approvals, the newest are kept.
pub(crate) const MAX_DECIDED_APPROVALS: usize = 1_000;

/// Calls of tools that wait for a person or did, in one answer; those that wait come first.
pub(crate) const MAX_LISTED_APPROVALS: usize = 100;

/// A larger attachment is answered 413, and one beyond so many 409. Longer names are cut.
pub(crate) const MAX_ATTACHMENT_BYTES: usize = 10 << 20;
pub(crate) const MAX_ATTACHMENTS: usize = 1_000;
pub(crate) const MAX_ATTACHMENT_NAME_BYTES: usize = 120;

/// A longer record of a sandbox is answered 413. Beyond so many, stopped ones are forgotten, and
/// where there is none a further one is answered 409.
pub(crate) const MAX_SANDBOX_RECORD_BYTES: usize = 64 << 10;
pub(crate) const MAX_SANDBOX_RECORDS: usize = 1_000;

/// How long the token of a terminal or a chat is good, and how often it may be renewed.
pub(crate) const SESSION_TOKEN_SECONDS: u64 = 3_600;
pub(crate) const SESSION_TOKEN_RENEWALS: u32 = 24;

/// A longer one is none.
pub(crate) const MAX_SESSION_TOKEN_BYTES: usize = 2_048;

/// A shorter secret for them is refused at start.
pub(crate) const MIN_SESSION_SECRET_CHARS: usize = 32;

/// Messages of the server to everybody in a session that somebody has yet to take; older ones are
/// then missed.
pub(crate) const SESSION_NOTICES: usize = 64;

/// One caller's connections to `/ws/pty` may come at once as far as those of so many seconds.
pub(crate) const CONNECTS_BURST_SECONDS: u32 = 5;

/// What a runner keeps of a terminal's output: what a viewer that was cut off is shown later.
pub(crate) const PTY_JOURNAL_BYTES: u64 = 1 << 20;

/// A longer name of a provider is cut where it is told.
pub(crate) const MAX_SHOWN_PROVIDER_CHARS: usize = 32;

/// Frames before the one a viewer has seen that are looked at for the beginning of a character: one
/// has four bytes at most, and a frame one at least.
pub(crate) const LOOK_BACK_FRAMES: u64 = 3;

/// A longer message of a chat's client ends its connection.
pub(crate) const MAX_CHAT_MESSAGE_BYTES: usize = 32 << 20;

/// A longer line of an agent is passed on in parts.
pub(crate) const MAX_CHAT_LINE_BYTES: usize = 16 << 20;

/// A longer parameter of an agent is left out, and so are further files.
pub(crate) const MAX_CHAT_WORD_BYTES: usize = 1_024;
pub(crate) const MAX_CHAT_FILES: usize = 64;

/// A WebSocket's client is asked for a sign of life so often, and given up when it says nothing for
/// so much longer.
pub(crate) const SOCKET_HEARTBEAT: Duration = Duration::from_secs(30);
pub(crate) const SOCKET_PATIENCE: Duration = Duration::from_secs(10);

/// How long a WebSocket's client may take nothing; then its connection is closed.
pub(crate) const SOCKET_SEND_PATIENCE: Duration = Duration::from_secs(30);

/// Versions named in one `If-Match`; more are answered 400.
pub(crate) const MAX_CONDITION_TAGS: usize = 16;

/// How far `files:tree` goes where the request does not say; the runner has the highest limits.
pub(crate) const DEFAULT_TREE_DEPTH: u64 = 20;
pub(crate) const DEFAULT_TREE_NODES: u64 = 10_000;
pub(crate) const DEFAULT_TREE_MS: u64 = 5_000;

/// Levels that `/api/search` goes down, and how many it finds; then its answer is marked as cut.
pub(crate) const WORKSPACE_SEARCH_DEPTH: u64 = 10;
pub(crate) const MAX_WORKSPACE_FOUND: u64 = 10_000;

/// A WebSocket that does not take a message for so long is closed with 1013, and has a little more
/// time to take that.
pub(crate) const SOCKET_SEND_TIME: Duration = Duration::from_secs(10);
pub(crate) const SOCKET_CLOSE_TIME: Duration = Duration::from_secs(5);

/// Who watches has nothing to say; a longer message closes the WebSocket.
pub(crate) const MAX_WATCH_MESSAGE_BYTES: usize = 4 << 10;

/// Between two looks for sessions that nobody attends in a workspace that does not answer.
pub(crate) const FIRST_LOOK_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const LONGEST_LOOK_PAUSE: Duration = Duration::from_secs(60);

/// Messages of a chat's client that wait for its agent to read; one more is refused.
pub(crate) const MAX_CHAT_WAITING: usize = 64;

/// How long an agent that was killed may take to be gone before it is started again.
pub(crate) const CHAT_END_PATIENCE: Duration = Duration::from_secs(10);

/// An answer that is longer, or whose length is not known, is cut when the caller's token is revoked.
pub(crate) const LONG_ANSWER_BYTES: u64 = 64 << 10;

/// Chats whose settings are remembered for the next start of their program; the one that was set
/// longest ago is forgotten first.
pub(crate) const MAX_REMEMBERED_CHATS: usize = 256;

/// A longer message of an MCP client is answered 413, and more of them at once are refused.
pub(crate) const MAX_MCP_BYTES: usize = 8 << 20;
pub(crate) const MAX_MCP_BATCH: usize = 32;

/// Sessions of MCP clients, in all and of one token. One more takes the place of the one that the
/// same caller has not used for longest, unless all are busy.
pub(crate) const MAX_MCP_SESSIONS: usize = 512;
pub(crate) const MAX_MCP_SESSIONS_OF_ONE: usize = 128;

/// One that nobody uses for so long is forgotten.
pub(crate) const MCP_SESSION_IDLE: Duration = Duration::from_secs(3_600);

/// Calls of one session at a time; further ones are refused.
pub(crate) const MAX_MCP_CALLS: usize = 32;

/// A longer name of a sandbox is answered 400.
pub(crate) const MAX_MCP_SANDBOX_NAME_BYTES: usize = 64;

/// Progress of a call is told this often at most, and not at all to who has not read so much.
pub(crate) const MCP_PROGRESS_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const MCP_EVENTS: usize = 16;

/// Parts of a chat that its reader has yet to take; more are waited with.
pub(crate) const CHAT_PARTS: usize = 64;
