//! `.ignore`, `.gitignore` and `.git/info/exclude`, as ripgrep heeds them.
//!
//! A directory with such files has a node whose parents are those above it. The nearest word
//! counts; any `.ignore` before any `.gitignore`. A `.gitignore` counts only in a Git repository,
//! and only up to its top. The files are read by descriptor, so far as they are regular and small:
//! what they contain is hostile, and may make a search slow or useless but nothing else.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sandbank_rooted_fs::Directory;

use crate::limits::{MAX_IGNORE_BYTES, MAX_IGNORE_FILE_BYTES, MAX_IGNORE_NODES};

/// Which of the files a directory has.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Present {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    pub(super) git: bool,
}

impl Present {
    pub(super) fn see(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.gitignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }
}

/// What one search has read of such files, for all of its threads.
#[derive(Debug, Default)]
pub(super) struct Budget {
    used: AtomicUsize,
    nodes: AtomicUsize,
    unheeded: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    /// How much of a path leads to this directory.
    prefix: usize,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// The top of a repository.
    is_top: bool,
    in_repository: bool,
    bytes: usize,
    budget: Arc<Budget>,
}

impl Budget {
    pub(super) fn unheeded(&self) -> u64 {
        self.unheeded.load(Ordering::Relaxed)
    }

    /// The file's bytes, if they may be had.
    fn read(&self, directory: &Directory, name: &str) -> Option<Vec<u8>> {
        let file = directory.open_file(name.as_ref()).ok()?;
        let mut bytes = Vec::new();
        let limit = MAX_IGNORE_FILE_BYTES as u64 + 1;
        file.into_file().take(limit).read_to_end(&mut bytes).ok()?;
        let used = self.used.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if bytes.len() > MAX_IGNORE_FILE_BYTES || used > MAX_IGNORE_BYTES {
            self.used.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.unheeded.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(bytes)
    }
}

impl Rules {
    /// Those of a directory below `above`; the same where it adds none. `prefix` is the length of
    /// its path with the slash behind it.
    pub(super) fn below(
        above: Option<&Arc<Self>>,
        directory: &Directory,
        present: Present,
        prefix: usize,
        budget: &Arc<Budget>,
    ) -> Option<Arc<Self>> {
        if !(present.ignore || present.gitignore || present.git) {
            return above.cloned();
        }
        if budget.nodes.fetch_add(1, Ordering::Relaxed) >= MAX_IGNORE_NODES {
            budget.nodes.fetch_sub(1, Ordering::Relaxed);
            budget.unheeded.fetch_add(1, Ordering::Relaxed);
            return above.cloned();
        }
        let mut bytes = 0;
        let mut load = |directory: &Directory, name| {
            let text = budget.read(directory, name).unwrap_or_default();
            bytes += text.len();
            compile(&text, budget)
        };
        let in_repository = present.git || above.is_some_and(|above| above.in_repository);
        let ignore = if present.ignore { load(directory, ".ignore") } else { Gitignore::empty() };
        let gitignore = if present.gitignore && in_repository {
            load(directory, ".gitignore")
        } else {
            Gitignore::empty()
        };
        let info = present.git.then(|| directory.open_directory(".git/info".as_ref()).ok());
        let exclude = match info.flatten() {
            Some(info) => load(&info, "exclude"),
            None => Gitignore::empty(),
        };
        Some(Arc::new(Self {
            above: above.cloned(),
            prefix,
            ignore,
            gitignore,
            exclude,
            is_top: present.git,
            in_repository,
            bytes,
            budget: budget.clone(),
        }))
    }

    /// What the rules say of a path below the workspace; none when they are silent.
    pub(super) fn says(&self, path: &[u8], is_dir: bool) -> Option<Verdict> {
        let (mut ignore, mut gitignore, mut exclude) = (None, None, None);
        let mut beyond_top = !self.in_repository;
        let mut node = Some(self);
        while let Some(rules) = node {
            let below = Path::new(OsStr::from_bytes(&path[rules.prefix..]));
            ignore = ignore.or_else(|| verdict(&rules.ignore, below, is_dir));
            if ignore.is_some() {
                return ignore;
            }
            if !beyond_top {
                gitignore = gitignore.or_else(|| verdict(&rules.gitignore, below, is_dir));
                exclude = exclude.or_else(|| verdict(&rules.exclude, below, is_dir));
            }
            beyond_top |= rules.is_top;
            node = rules.above.as_deref();
        }
        gitignore.or(exclude)
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.nodes.fetch_sub(1, Ordering::Relaxed);
        // A long chain, each the last holder of the next, must not be let go by recursion.
        let mut above = self.above.take();
        while let Some(rules) = above {
            above = Arc::into_inner(rules).and_then(|mut rules| rules.above.take());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Ignored,
    Wanted,
}

fn verdict(rules: &Gitignore, path: &Path, is_dir: bool) -> Option<Verdict> {
    match rules.matched(path, is_dir) {
        Match::None => None,
        Match::Ignore(_) => Some(Verdict::Ignored),
        Match::Whitelist(_) => Some(Verdict::Wanted),
    }
}

/// Lines that are not understood are passed over, as Git does.
fn compile(text: &[u8], budget: &Budget) -> Gitignore {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.split(|byte| *byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line) {
            let _ = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line));
        }
    }
    builder.build().unwrap_or_else(|_| {
        budget.unheeded.fetch_add(1, Ordering::Relaxed);
        Gitignore::empty()
    })
}
