//! Processes that are started, asked for a sign of life, and ended, each step timed.
//!
//! `std::process::Command` uses posix_spawn as long as nothing is to run in the child before
//! exec, which is the case for everything here.

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// Size of the reads from a peer's output.
const READ_BYTES: usize = 1 << 20;

pub(crate) struct Ready {
    child: Child,
    pub(crate) took: Duration,
}

/// Starts `command`, which must copy its stdin to its stdout as `cat` does, and waits until the
/// first byte has come back: then it is known to run.
pub(crate) fn start(command: &mut Command) -> anyhow::Result<Ready> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let begin = Instant::now();
    let child = command.spawn().context("start a peer")?;
    let mut ready = Ready { child, took: Duration::ZERO };
    let (stdin, stdout) = (&mut ready.child.stdin, &mut ready.child.stdout);
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        anyhow::bail!("a peer without pipes");
    };
    stdin.write_all(b"r").context("greet a peer")?;
    let mut byte = [0];
    stdout.read_exact(&mut byte).context("a peer ended before it was ready")?;
    ready.took = begin.elapsed();
    Ok(ready)
}

impl Ready {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its input and waits until it has ended by itself and its output is closed.
    pub(crate) fn end_input(mut self) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "a peer ended with {status}");
        Ok(begin.elapsed())
    }

    /// Kills it and waits until every process that held its output is gone.
    pub(crate) fn end(mut self) -> anyhow::Result<Duration> {
        let begin = Instant::now();
        self.child.kill()?;
        self.child.wait()?;
        if let Some(mut stdout) = self.child.stdout.take() {
            let mut rest = [0; 64];
            while stdout.read(&mut rest)? > 0 {}
        }
        Ok(begin.elapsed())
    }
}

/// Start to exit of a program that must succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let status = command.spawn().context("start a peer")?.wait()?;
    let took = begin.elapsed();
    anyhow::ensure!(status.success(), "a peer ended with {status}");
    Ok(took)
}

/// Reads all the output of a program and says how much it was and how long it took.
pub(crate) fn drain(command: &mut Command) -> anyhow::Result<(u64, Duration)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut buffer = vec![0; READ_BYTES];
    let begin = Instant::now();
    let mut child = command.spawn().context("start a peer")?;
    let mut total = 0;
    if let Some(stdout) = &mut child.stdout {
        loop {
            match stdout.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => total += count as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("read a peer's output"),
            }
        }
    }
    let status = child.wait()?;
    let took = begin.elapsed();
    anyhow::ensure!(status.success(), "a peer ended with {status}");
    Ok((total, took))
}

/// The whole path of a program, so that no search is part of a measurement.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let administration = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let dirs = std::env::split_paths(&path).chain(administration);
    dirs.map(|dir| dir.join(program)).find(|file| file.is_file())
}

pub(crate) fn bare(argv: &[&str]) -> anyhow::Result<Command> {
    let (program, arguments) = argv.split_first().context("an empty command line")?;
    let path = find(program).with_context(|| format!("there is no {program} here"))?;
    let mut command = Command::new(path);
    command.args(arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_ready_when_its_byte_is_back_and_gone_when_its_output_is_closed() {
        let ready = start(&mut bare(&["cat"]).unwrap()).unwrap();
        assert!(ready.took > Duration::ZERO);
        assert!(ready.end().unwrap() > Duration::ZERO);
    }

    #[test]
    fn a_peer_ends_by_itself_when_its_input_is_closed() {
        let ready = start(&mut bare(&["cat"]).unwrap()).unwrap();
        assert!(ready.end_input().unwrap() > Duration::ZERO);
    }

    #[test]
    fn a_peer_that_cannot_run_is_an_error() {
        assert!(start(&mut bare(&["false"]).unwrap()).is_err());
        assert!(run(&mut bare(&["false"]).unwrap()).is_err());
        assert!(bare(&["no-such-program-here"]).is_err());
    }

    #[test]
    fn all_output_is_counted() {
        let (total, _) =
            drain(&mut bare(&["head", "-c", "3000000", "/dev/zero"]).unwrap()).unwrap();
        assert_eq!(total, 3_000_000);
    }
}
