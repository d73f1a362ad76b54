//! What to measure and how much of it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone)]
pub struct Options {
    /// Few rounds and small sizes: shows that everything works, measures little.
    pub quick: bool,
    /// All parts when empty.
    pub only: Vec<Part>,
    /// Most idle sandboxes of the density part.
    pub density: Option<usize>,
    /// The `sandbank` program whose `serve` is measured.
    pub binary: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        let binary = PathBuf::from("/proc/self/exe");
        Self { quick: false, only: Vec::new(), density: None, binary }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Create,
    Command,
    Shell,
    Docker,
    Stream,
    Files,
    Tree,
    Search,
    Workspace,
    Terminal,
    Pty,
    Tools,
    Pause,
    Throughput,
    AtOnce,
    Growth,
    Density,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is no part of the benchmark; there are create, command, shell, docker, stream, files, \
     tree, search, workspace, terminal, pty, tools, pause, throughput, at-once, growth, density"
)]
pub struct UnknownPart(String);

impl Part {
    /// In the order they run: density last, because it leaves the most behind in the kernel.
    pub const ALL: [Self; 17] = [
        Self::Create,
        Self::Command,
        Self::Shell,
        Self::Docker,
        Self::Stream,
        Self::Files,
        Self::Tree,
        Self::Search,
        Self::Workspace,
        Self::Terminal,
        Self::Pty,
        Self::Tools,
        Self::Pause,
        Self::Throughput,
        Self::AtOnce,
        Self::Growth,
        Self::Density,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Command => "command",
            Self::Shell => "shell",
            Self::Docker => "docker",
            Self::Stream => "stream",
            Self::Files => "files",
            Self::Tree => "tree",
            Self::Search => "search",
            Self::Workspace => "workspace",
            Self::Terminal => "terminal",
            Self::Pty => "pty",
            Self::Tools => "tools",
            Self::Pause => "pause",
            Self::Throughput => "throughput",
            Self::AtOnce => "at-once",
            Self::Growth => "growth",
            Self::Density => "density",
        }
    }
}

impl FromStr for Part {
    type Err = UnknownPart;

    fn from_str(text: &str) -> Result<Self, UnknownPart> {
        let found = Self::ALL.into_iter().find(|part| part.name() == text.trim());
        found.ok_or_else(|| UnknownPart(text.to_owned()))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Options {
    pub fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The command line that repeats this run.
    pub fn command_line(&self) -> String {
        let mut line = "sandbank bench".to_owned();
        if self.quick {
            line.push_str(" --quick");
        }
        if !self.only.is_empty() {
            let names: Vec<_> = self.only.iter().map(|part| part.name()).collect();
            line.push_str(&format!(" --only {}", names.join(",")));
        }
        if let Some(density) = self.density {
            line.push_str(&format!(" --density {density}"));
        }
        line
    }

    pub(crate) fn scale(&self) -> Scale {
        let scale = if self.quick { Scale::QUICK } else { Scale::FULL };
        match self.density {
            Some(count) => Scale { density: count.max(1), looks: &[], ..scale },
            None => scale,
        }
    }
}

/// Sample counts and sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Rounds thrown away at the start of a part with many short samples.
    pub(crate) warm_up: usize,
    /// Samples of each contender in short measurements: create, command.
    pub(crate) rounds: usize,
    /// How often a contender does it in one turn of those: the first time it pays for what the
    /// one before it left in caches and unfinished work.
    pub(crate) in_a_row: usize,
    /// Rounds of long measurements: stream, files, throughput. One more is thrown away first.
    pub(crate) long_rounds: usize,
    pub(crate) stream_bytes: u64,
    pub(crate) file_bytes: u64,
    /// Of the trees that are walked and searched.
    pub(crate) small_files: usize,
    /// In large files, which are only searched.
    pub(crate) large_bytes: u64,
    /// Rounds for which the whole machine's caches are emptied; a quick run does not.
    pub(crate) cold_rounds: usize,
    /// Sandboxes made in one throughput slice.
    pub(crate) slice: usize,
    /// Sandboxes that are asked for at the same moment.
    pub(crate) at_once: usize,
    /// The same of containers, which take longer.
    pub(crate) containers_at_once: usize,
    pub(crate) density: usize,
    /// With how many alive, on the way to that, everything is looked at; fifths of the way when empty.
    pub(crate) looks: &'static [usize],
    /// Peers that take long have a turn in every so manieth round.
    pub(crate) slow_every: usize,
    /// Terminals open at the same time.
    pub(crate) terminals: usize,
    /// Readers who do not read, each of whom makes the daemon larger.
    pub(crate) idle_readers: usize,
    /// Commands and listings at each step of the density part.
    pub(crate) probes: usize,
}

impl Scale {
    const FULL: Self = Self {
        warm_up: 10,
        rounds: 200,
        in_a_row: 5,
        long_rounds: 5,
        stream_bytes: 2 << 30,
        file_bytes: 256 << 20,
        small_files: 200_000,
        large_bytes: 300 << 20,
        cold_rounds: 3,
        slice: 100,
        at_once: 100,
        containers_at_once: 30,
        density: 3000,
        looks: &[100, 1000, 2000, 3000],
        slow_every: 4,
        terminals: 100,
        idle_readers: 400,
        probes: 40,
    };
    const QUICK: Self = Self {
        warm_up: 3,
        rounds: 15,
        in_a_row: 3,
        long_rounds: 2,
        stream_bytes: 64 << 20,
        file_bytes: 32 << 20,
        small_files: 2_000,
        large_bytes: 8 << 20,
        cold_rounds: 0,
        slice: 10,
        at_once: 20,
        containers_at_once: 6,
        density: 60,
        looks: &[20, 60],
        slow_every: 5,
        terminals: 20,
        idle_readers: 60,
        probes: 5,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found_by_its_name() {
        for part in Part::ALL {
            assert_eq!(part.name().parse(), Ok(part));
        }
        let unknown = "creat".parse::<Part>().unwrap_err().to_string();
        assert!(unknown.contains("\"creat\"") && unknown.contains("density"), "{unknown}");
    }

    #[test]
    fn the_command_line_repeats_the_run() {
        let plain = Options::default();
        assert_eq!(plain.command_line(), "sandbank bench");
        let only = vec![Part::Create, Part::Density];
        let other = Options { quick: true, only, density: Some(1000), ..plain };
        let expected = "sandbank bench --quick --only create,density --density 1000";
        assert_eq!(other.command_line(), expected);
        assert_eq!(other.scale().density, 1000);
    }
}
