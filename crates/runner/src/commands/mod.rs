//! Every command of the sandbox, running or ended.
//!
//! The registry owns the set of commands, the memory their journals may use, and who is told
//! when a process is reaped. It starts commands but never decides how one ends.

pub(crate) mod aside;
mod buffers;
mod command;
mod death;
mod drive;
mod ending;
pub(crate) mod environment;
mod journal;
mod launch;
mod output;
mod reader;
pub(crate) mod routes;
mod screens;
mod shells;
mod source;
mod stdin;
mod utf8;
mod writers;

pub(crate) use command::Command;
pub(crate) use ending::WaitStatus;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use sandbank_protocol::{
    CommandId, CommandSpec, CommandStatus, Ending, Fault, FaultCode, Started, StreamKind,
};

use crate::clock::now_ms;
use crate::limits::{
    MAX_COMMANDS, MAX_ENDED_SPEC_BYTES, MAX_LISTED_ARGV_BYTES, MAX_RUNNING_COMMANDS,
    MAX_RUNNING_SPEC_BYTES,
};
use crate::log::{Asker, Log};
use buffers::Buffers;
use death::Death;
use environment::Environment;
pub(crate) use launch::Launcher;
use screens::{Model, Screens};
use shells::{Shells, Turn};

/// How many commands run, how many ever ended, and what the journals hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) running: u64,
    pub(crate) ended: u64,
    pub(crate) journal_bytes: u64,
}

pub(crate) struct Commands {
    launcher: Launcher,
    /// By order of start.
    all: RefCell<BTreeMap<u64, Rc<Command>>>,
    numbers: RefCell<HashMap<CommandId, u64>>,
    next_number: Cell<u64>,
    /// See [`aside`].
    next_aside: Cell<u64>,
    /// By the pid of a process that was not reaped yet.
    living: RefCell<HashMap<i32, Rc<Death>>>,
    shells: Shells,
    screens: Screens,
    /// All that ever ended, also those that were forgotten: whoever compares two counts sees every
    /// ending between them.
    ended_count: Cell<u64>,
    /// Ended commands by order of ending: the first is forgotten first.
    ended: RefCell<VecDeque<u64>>,
    /// Ended commands whose journals were not emptied yet, in the same order.
    emptiable: RefCell<VecDeque<u64>>,
    /// Cost of all journals, and the most it may be.
    journal_bytes: Cell<u64>,
    journal_limit: u64,
    /// Size of the specs of running commands, and of those that ended. Each has a limit of its own,
    /// so that what runs never pushes out what has just ended.
    running_spec_bytes: Cell<usize>,
    ended_spec_bytes: Cell<usize>,
    buffers: Buffers,
    log: Rc<Log>,
}

impl Commands {
    pub(crate) fn new(launcher: Launcher, journal_limit: u64, log: Rc<Log>) -> Self {
        Self {
            launcher,
            all: RefCell::default(),
            numbers: RefCell::default(),
            next_number: Cell::new(0),
            next_aside: Cell::new(0),
            living: RefCell::default(),
            shells: Shells::default(),
            screens: Screens::default(),
            ended_count: Cell::new(0),
            ended: RefCell::default(),
            emptiable: RefCell::default(),
            journal_bytes: Cell::new(0),
            journal_limit,
            running_spec_bytes: Cell::new(0),
            ended_spec_bytes: Cell::new(0),
            buffers: Buffers::default(),
            log,
        }
    }

    /// Adds to what every command begins with. Once there was one, its environment is a fact.
    pub(crate) fn set_environment(&self, variables: Environment) -> Result<(), Fault> {
        if self.next_number.get() > 0 {
            let message = "the environment cannot be changed once there was a command";
            return Err(Fault::new(FaultCode::Conflict, message));
        }
        self.launcher.extend_environment(variables);
        Ok(())
    }

    /// Starts a command, or attaches to the one that has this id and spec already.
    pub(crate) fn start(
        self: &Rc<Self>,
        spec: CommandSpec,
        asker: Asker,
    ) -> Result<Started, Fault> {
        if let Ok(known) = self.get(&spec.id) {
            if *known.spec() == spec {
                return Ok(Started { attached: true, status: known.status() });
            }
            let message = format!("the command id {} belongs to another command", spec.id);
            return Err(Fault::new(FaultCode::Conflict, message));
        }
        self.admit(&spec)?;
        let forget =
            |number| self.all.borrow().get(&number).into_iter().for_each(|c| c.forget_screen());
        let model = self.screens.model(&spec, forget)?;
        let number = self.next_number.replace(self.next_number.get() + 1);
        if let Some(turn) = self.shells.turn(&spec)?.map(Rc::new) {
            self.log.started(number, &spec.id, asker);
            return Ok(self.queue(spec, number, turn, model));
        }
        let launched = self.launcher.launch(spec, number)?;
        let command = Rc::new(launched.command);
        self.log.started(number, &command.spec().id, asker);
        command.set_screen(model);
        self.living.borrow_mut().insert(command.pid(), command.death().clone());
        self.remember(&command);
        let driver = drive::Driver::new(
            self.clone(),
            command.clone(),
            launched.oom_mark,
            launched.kept_open,
        );
        tokio::task::spawn_local(driver.run(launched.sources));
        Ok(Started { attached: false, status: command.status() })
    }

    fn queue(
        self: &Rc<Self>,
        spec: CommandSpec,
        number: u64,
        turn: Rc<Turn>,
        model: Option<Model>,
    ) -> Started {
        let command = Rc::new(self.launcher.queue(spec, number, turn.clone()));
        command.set_screen(model);
        self.remember(&command);
        tokio::task::spawn_local(turn.run(self.clone(), command.clone()));
        Started { attached: false, status: command.status() }
    }

    fn admit(&self, spec: &CommandSpec) -> Result<(), Fault> {
        let refused = |message| Err(Fault::new(FaultCode::LimitReached, message));
        if self.living.borrow().len() >= MAX_RUNNING_COMMANDS {
            return refused(format!("{MAX_RUNNING_COMMANDS} commands are running already"));
        }
        if self.running_spec_bytes.get() + spec_bytes(spec) > MAX_RUNNING_SPEC_BYTES {
            return refused(format!(
                "arguments and environments of running commands would exceed \
                 {MAX_RUNNING_SPEC_BYTES} bytes"
            ));
        }
        Ok(())
    }

    pub(crate) fn get(&self, id: &CommandId) -> Result<Rc<Command>, Fault> {
        let number = self.numbers.borrow().get(id).copied();
        let command = number.and_then(|number| self.all.borrow().get(&number).cloned());
        command.ok_or_else(|| Fault::new(FaultCode::NotFound, format!("there is no command {id}")))
    }

    /// Oldest first, with long arguments cut.
    pub(crate) fn list(&self) -> Vec<CommandStatus> {
        let mut statuses: Vec<_> =
            self.all.borrow().values().map(|command| command.status()).collect();
        statuses.iter_mut().for_each(|status| shorten(&mut status.argv));
        statuses
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            running: (self.all.borrow().len() - self.ended.borrow().len()) as u64,
            ended: self.ended_count.get(),
            journal_bytes: self.journal_bytes.get(),
        }
    }

    /// The reaper's word; of no interest when the process was neither a command nor a shell.
    pub(crate) fn reaped(&self, pid: i32, status: WaitStatus) {
        if let Some(death) = self.living.borrow_mut().remove(&pid) {
            death.tell(status);
        }
    }

    fn remember(&self, command: &Rc<Command>) {
        let running = self.running_spec_bytes.get() + spec_bytes(command.spec());
        self.running_spec_bytes.set(running);
        self.numbers.borrow_mut().insert(command.spec().id.clone(), command.number());
        self.all.borrow_mut().insert(command.number(), command.clone());
        self.forget_surplus();
    }

    /// Appends output, then makes room if all journals together have become too large.
    fn record(&self, command: &Command, stream: StreamKind, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let before = command.output().journal().cost();
        command.feed_screen(&data);
        command.output().append(now_ms(), stream, data, |data| self.buffers.recycle(data));
        let after = command.output().journal().cost();
        self.journal_bytes.set(self.journal_bytes.get() + after - before);
        self.empty_surplus();
    }

    /// The command's one ending, after its last output.
    fn finish(&self, command: &Rc<Command>, ending: Ending) {
        let time_ms = now_ms();
        let json = serde_json::to_vec(&ending).expect("an ending is plain data");
        if !command.output().end(time_ms, json.into()) {
            return;
        }
        let took_ms = time_ms.saturating_sub(command.started_at_ms());
        self.log.ended(command.number(), &command.spec().id, &ending, took_ms);
        command.set_ended(ending, time_ms);
        if command.spec().screen
            && let Some(number) = self.screens.ended(command.number())
            && let Some(oldest) = self.all.borrow().get(&number)
        {
            oldest.forget_screen();
        }
        let spec = spec_bytes(command.spec());
        self.running_spec_bytes.set(self.running_spec_bytes.get() - spec);
        self.ended_spec_bytes.set(self.ended_spec_bytes.get() + spec);
        self.ended_count.set(self.ended_count.get() + 1);
        self.ended.borrow_mut().push_back(command.number());
        self.emptiable.borrow_mut().push_back(command.number());
        self.forget_surplus();
    }

    /// Drops journals of ended commands, the first to end first; then, while running commands
    /// alone are too many, the oldest frames of the largest journal.
    fn empty_surplus(&self) {
        while self.journal_bytes.get() > self.journal_limit {
            let ended = self.emptiable.borrow_mut().pop_front();
            let freed = match ended {
                Some(number) => self.all.borrow().get(&number).map_or(0, |command| empty(command)),
                None => self.shrink_largest(),
            };
            self.journal_bytes.set(self.journal_bytes.get().saturating_sub(freed));
            if ended.is_none() && freed == 0 {
                return;
            }
        }
    }

    fn shrink_largest(&self) -> u64 {
        let all = self.all.borrow();
        let cost = |command: &&Rc<Command>| command.output().journal().cost();
        let Some(largest) = all.values().max_by_key(cost) else { return 0 };
        let before = cost(&largest);
        largest.output().drop_oldest().into_iter().for_each(|data| self.buffers.recycle(data));
        before - cost(&largest)
    }

    fn forget_surplus(&self) {
        let too_many = || self.all.borrow().len() > MAX_COMMANDS;
        let too_large = || self.ended_spec_bytes.get() > MAX_ENDED_SPEC_BYTES;
        while too_many() || too_large() {
            let Some(number) = self.ended.borrow_mut().pop_front() else { return };
            let Some(command) = self.all.borrow_mut().remove(&number) else { continue };
            self.numbers.borrow_mut().remove(&command.spec().id);
            let ended = self.ended_spec_bytes.get() - spec_bytes(command.spec());
            self.ended_spec_bytes.set(ended);
            let freed = empty(&command);
            self.journal_bytes.set(self.journal_bytes.get() - freed);
        }
    }
}

/// Forgets a journal's frames and returns what they cost.
fn empty(command: &Command) -> u64 {
    let cost = command.output().journal().cost();
    command.output().clear();
    cost
}

fn spec_bytes(spec: &CommandSpec) -> usize {
    let argv: usize = spec.argv.iter().map(String::len).sum();
    let env: usize = spec.env.iter().map(|(name, value)| name.len() + value.len()).sum();
    size_of::<Command>() + argv + env + spec.cwd.as_ref().map_or(0, String::len)
}

fn shorten(argv: &mut Vec<String>) {
    let mut room = MAX_LISTED_ARGV_BYTES;
    for (index, argument) in argv.iter_mut().enumerate() {
        if argument.len() > room {
            argument.truncate(argument.floor_char_boundary(room));
            argument.push('…');
            return argv.truncate(index + 1);
        }
        room -= argument.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_are_cut_in_lists_at_a_character() {
        let mut short = vec!["ls".to_owned(), "-l".to_owned()];
        shorten(&mut short);
        assert_eq!(short, ["ls", "-l"]);
        let mut long = vec!["x".repeat(MAX_LISTED_ARGV_BYTES - 1), "é".repeat(3), "z".to_owned()];
        shorten(&mut long);
        assert_eq!(long[1..], ["…"]);
    }
}
