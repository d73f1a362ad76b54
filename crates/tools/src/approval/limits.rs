//! Bounds of the approvals, and what happens at each.

use std::time::Duration;

/// Of a script that is looked through. A longer one is unknown as a whole.
pub(super) const MAX_SCRIPT_BYTES: usize = 32 << 10;

/// Scripts, parameters, parentheses and loops within each other; what is deeper is unknown.
pub(super) const MAX_NESTING: usize = 60;

/// Commands of a script; more make it unknown.
pub(super) const MAX_PARTS: usize = 1_000;

/// Words of all commands; more make it unknown.
pub(super) const MAX_WORDS: usize = 20_000;

/// Bytes and words that are looked at, however often each; what would take more is unknown.
pub(super) const MAX_STEPS: usize = 64 * MAX_SCRIPT_BYTES;

/// Commands within each other, as in `env nice bash -c …`; what is further in is unknown.
pub(super) const MAX_LEVELS: usize = 16;

/// Signs in a word behind which a path may be; with more, each path may be meant.
pub(super) const MAX_PIECES: usize = 16;

/// Options of `xargs` that say what is replaced; with more of them it is unknown.
pub(super) const MAX_REPLACED: usize = 4;

/// Rules of a configuration; more are refused.
pub(super) const MAX_RULES: usize = 500;

/// Words of one pattern; more are refused.
pub(super) const MAX_PATTERN_WORDS: usize = 32;

/// Questions that wait for a person; a call that would be one more is denied.
pub(super) const MAX_WAITING: usize = 64;

/// Of these, the ones of one session.
pub(super) const MAX_WAITING_OF_SESSION: usize = 16;

/// Of the input of a call that a person is asked about; a larger one is denied.
pub(super) const MAX_QUESTION_BYTES: usize = 256 << 10;

/// Answered questions that are kept, with the beginning of a long input; the oldest go first.
pub(super) const MAX_KEPT: usize = 10_000;

/// How long a question waits unless the configuration says otherwise, and the bounds of that.
pub(super) const DEFAULT_PATIENCE: Duration = Duration::from_secs(300);
pub(super) const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);
pub(super) const LONGEST_PATIENCE: Duration = Duration::from_secs(24 * 3600);
