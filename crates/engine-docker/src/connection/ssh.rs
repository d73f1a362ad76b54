//! The engine behind ssh: `docker system dial-stdio` on the other side, as the Docker CLI reaches it.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::OwnedSemaphorePermit;

use super::address::SshTarget;
use crate::limits::{SSH_COMPLAINT_BYTES, SSH_COMPLAINT_DEADLINE};

pub(crate) struct SshPipe {
    output: ChildStdout,
    /// None once it is closed, which nothing but its drop does.
    input: Option<ChildStdin>,
    beginning: Option<Beginning>,
    /// Is killed when this is dropped.
    _ssh: Child,
}

/// Until the first byte comes: whether there is anybody is known only then.
struct Beginning {
    _turn: OwnedSemaphorePermit,
    complaint: Pin<Box<dyn Future<Output = String> + Send>>,
}

pub(super) fn dial(target: &SshTarget, turn: OwnedSemaphorePermit) -> io::Result<SshPipe> {
    let mut command = Command::new("ssh");
    command.args(arguments(target)).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    match (child.stdout.take(), child.stdin.take(), child.stderr.take()) {
        (Some(output), Some(input), Some(errors)) => {
            let complaint = Box::pin(complaint(errors));
            let beginning = Some(Beginning { _turn: turn, complaint });
            Ok(SshPipe { output, input: Some(input), beginning, _ssh: child })
        }
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn arguments(target: &SshTarget) -> Vec<String> {
    let mut words: Vec<String> =
        ["-T", "-o", "ConnectTimeout=10", "-o", "BatchMode=yes"].map(str::to_owned).into();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(user) = &target.user {
        option("-l", user.clone());
    }
    if let Some(port) = target.port {
        option("-p", port.to_string());
    }
    option("--", target.host.clone());
    words.push("docker".to_owned());
    if let Some(socket) = &target.socket {
        words.extend(["--host".to_owned(), quoted(&format!("unix://{socket}"))]);
    }
    words.extend(["system", "dial-stdio"].map(str::to_owned));
    words
}

/// A shell on the other side reads it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Reads all of it from now on, so that ssh never waits, and tells what it was in the end.
fn complaint(mut errors: ChildStderr) -> impl Future<Output = String> + Send {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    let listening = tokio::spawn(async move {
        let mut piece = [0; 512];
        while let Ok(length @ 1..) = errors.read(&mut piece).await {
            let mut heard = hearing.lock().unwrap_or_else(PoisonError::into_inner);
            let room = SSH_COMPLAINT_BYTES.saturating_sub(heard.len());
            heard.extend_from_slice(&piece[..length.min(room)]);
        }
    });
    async move {
        let _ = tokio::time::timeout(SSH_COMPLAINT_DEADLINE, listening).await;
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        one_line(&heard)
    }
}

fn one_line(heard: &[u8]) -> String {
    let text = String::from_utf8_lossy(heard);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join("; ");
    text.chars().filter(|c| !c.is_control()).collect()
}

impl SshPipe {
    pub(super) fn input(&mut self) -> io::Result<&mut ChildStdin> {
        self.input.as_mut().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    pub(super) fn is_write_vectored(&self) -> bool {
        self.input.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    /// An end before the first byte is an error, with ssh's own words.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(cx, buf))?;
        if let Some(beginning) = &mut self.beginning {
            if buf.filled().len() == before && buf.remaining() > 0 {
                let said = ready!(beginning.complaint.as_mut().poll(cx));
                self.beginning = None;
                let said = if said.is_empty() { "no reason was given".to_owned() } else { said };
                return Poll::Ready(Err(io::Error::other(format!("ssh ended: {said}"))));
            }
            self.beginning = None;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_is_asked_as_the_docker_cli_asks_it_and_no_shell_reads_a_path() {
        let mut target =
            SshTarget { user: Some("me".into()), host: "box".into(), port: Some(9), socket: None };
        let asked = arguments(&target).join(" ");
        assert!(asked.ends_with("-l me -p 9 -- box docker system dial-stdio"), "{asked}");
        target.socket = Some("/a'$(b)".to_owned());
        let asked = arguments(&target);
        assert!(asked.contains(&r"'unix:///a'\''$(b)'".to_owned()), "{asked:?}");
    }

    #[test]
    fn a_complaint_is_one_line() {
        assert_eq!(one_line(b"a\x1b[1m\r\n\n b\n"), "a[1m; b");
    }
}
