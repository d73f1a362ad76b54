//! One request's runs of Git.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use sandbank_protocol::{Fault, FaultCode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::environment::{self, Purpose};
use super::failure;
use super::repository::Repository;
use crate::commands::Commands;
use crate::commands::aside::{Aside, Captured};
use crate::commands::environment::Environment;
use crate::files::Workspace;
use crate::limits::MAX_GIT_COMPLAINT_BYTES;

pub(super) struct Session<'a> {
    commands: &'a Rc<Commands>,
    pub(super) workspace: &'a Rc<Workspace>,
    base: Environment,
    /// The workspace without links: Git speaks of paths like this one.
    pub(super) real: PathBuf,
    deadline: Instant,
    place: Rc<OwnedSemaphorePermit>,
}

/// One of them.
pub(super) struct Run {
    purpose: Purpose,
    cwd: Rc<OwnedFd>,
    filters: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    stdin: Vec<u8>,
    limit: usize,
    variables: Vec<(String, String)>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        commands: &'a Rc<Commands>,
        workspace: &'a Rc<Workspace>,
        deadline: Instant,
        place: Rc<OwnedSemaphorePermit>,
    ) -> Result<Self, Fault> {
        let real = commands.real_workspace().map_err(|error| {
            Fault::new(FaultCode::Internal, format!("the workspace has no path: {error}"))
        })?;
        Ok(Self { commands, workspace, base: commands.base_environment(), real, deadline, place })
    }

    /// Whatever it answers.
    pub(super) async fn try_run(&self, run: Run) -> Result<Captured, Fault> {
        let Run { purpose, cwd, filters, words, stdin, limit, variables } = run;
        let mut argv = environment::words(&self.base, purpose, &filters);
        argv.extend(words);
        let mut environment = environment::variables(&self.base, self.real.parent(), purpose);
        environment.extend(variables);
        let aside = Aside {
            argv,
            environment,
            cwd,
            stdin,
            deadline: self.deadline,
            stdout_limit: limit,
            stderr_limit: MAX_GIT_COMPLAINT_BYTES,
            changes: purpose != Purpose::Look,
            place: self.place.clone(),
        };
        let captured = self.commands.run_aside(aside).await.map_err(failure::of_run)?;
        failure::if_missing(&captured)?;
        Ok(captured)
    }

    /// Anything but success refuses the request with Git's own words.
    pub(super) async fn run(&self, run: Run) -> Result<Captured, Fault> {
        let captured = self.try_run(run).await?;
        match captured.code {
            Some(0) => Ok(captured),
            None if captured.truncated => Ok(captured),
            _ => Err(failure::of(&captured)),
        }
    }
}

impl Run {
    /// In a directory where it is not known yet whether there is a repository.
    pub(super) fn anywhere(cwd: &Rc<OwnedFd>, words: &[&str], limit: usize) -> Self {
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let cwd = cwd.clone();
        Self {
            purpose: Purpose::Look,
            cwd,
            filters: Vec::new(),
            words,
            stdin: Vec::new(),
            limit,
            variables: Vec::new(),
        }
    }

    pub(super) fn look(repository: &Repository, words: &[&str], limit: usize) -> Self {
        Self::of(repository, Purpose::Look, words, limit)
    }

    /// The repository is named, so that Git does not look for it again and find another one.
    pub(super) fn of(
        repository: &Repository,
        purpose: Purpose,
        words: &[&str],
        limit: usize,
    ) -> Self {
        let git_dir = [b"--git-dir=", &repository.git_dir[..]].concat();
        let work_tree = [b"--work-tree=", &repository.work_tree[..]].concat();
        let mut all = vec![git_dir, work_tree];
        all.extend(words.iter().map(|word| word.as_bytes().to_vec()));
        Self {
            purpose,
            cwd: repository.cwd.clone(),
            filters: repository.filters.clone(),
            words: all,
            stdin: Vec::new(),
            limit,
            variables: Vec::new(),
        }
    }

    pub(super) fn word(mut self, word: impl Into<Vec<u8>>) -> Self {
        self.words.push(word.into());
        self
    }

    pub(super) fn word_if(self, condition: bool, word: &str) -> Self {
        if condition { self.word(word) } else { self }
    }

    /// What a client named, which never becomes an option.
    pub(super) fn path(self, path: &[u8]) -> Self {
        if path.is_empty() { self } else { self.word("--").word(path) }
    }

    pub(super) fn stdin(self, stdin: Vec<u8>) -> Self {
        Self { stdin, ..self }
    }

    pub(super) fn within(self, cwd: Rc<OwnedFd>) -> Self {
        Self { cwd, ..self }
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }
}
