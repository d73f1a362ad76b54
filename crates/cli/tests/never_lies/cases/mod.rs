//! The promises, by what they are about.

mod background;
mod bytes;
mod crossing;
mod crowd;
mod flood;
mod keys;
mod last_line;
mod memory;
mod readers;
mod script;
mod stdin;
mod stubborn;

use crate::conformance::{Case, cases};

pub(crate) const ANSWERS: &[Case] = cases![
    "a heredoc arrives as it was written" => script::heredocs,
    "every exit code is its own" => script::exit_codes,
    "set -e stops at the first failure" => script::set_e,
    "a pipeline fails as the shell says" => script::pipelines,
    "a command starts with no signal blocked or ignored" => script::pristine_signals,
    "a script that cannot be read, replaces itself or traps its exit ends as in a shell" => script::odd_ends,
    "output that looks like an ending is output" => script::forged_endings,
    "every view of an ending is the same" => script::one_ending,
    "any byte is recoverable" => bytes::any_byte,
    "a character cut anywhere by its writer is never cut in the stream" => bytes::cut_characters,
    "closed streams end nothing but themselves" => background::closed_streams,
    "a child that holds stdout delays nothing and what it says later is counted" => background::holds_stdout,
    "nohup, setsid and a daemon outlive the command that started them" => background::outlives,
    "a child that never stops writing delays no ending, however slow a reader is" => background::chatters,
    "a timeout leaves nothing of the command" => stubborn::timeout,
    "a stopped command has not ended" => stubborn::stopped,
    "who ignores TERM is killed by KILL and by the one who asked" => stubborn::ignores_term,
    "out of memory is told from every other kill" => memory::out_of_memory,
    "one key runs once" => keys::one_run,
    "the last line comes before the ending" => last_line::race,
    "crossing operations get documented answers" => crossing::delete_and_exec,
    "a delete that crosses a delete finds it deleted" => crossing::delete_and_delete,
    "a stream whose sandbox is stopped is told so" => crossing::stop_and_stream,
    "a key that is deleted and created at once names one sandbox" => crossing::delete_and_create,
    "whatever crosses a delete at once is answered" => crossing::stop_and_everything,
];

pub(crate) const FLOODS: &[Case] = cases![
    "gigabytes of output have exact counts, the right exit code and flat memory" => flood::huge_output,
    "one endless line is cut into valid records" => flood::endless_line,
    "stdin resumes after every lost connection without loss or doubling" => stdin::lost_connections,
    "a gap in stdin is refused and changes nothing" => stdin::gap,
    "readers that stand still or vanish cost neither memory nor other readers" => readers::slow_and_vanished,
];

pub(crate) const CROWDS: &[Case] = cases![
    "a thousand streams all hear everything" => readers::a_thousand,
    "ten thousand quick commands all end with their own code" => crowd::quick_commands,
    "ten thousand orphans leave no zombie" => crowd::orphans,
];
