//! The log of a machine's runner: what it says, in a file that never grows beyond a bound.
//!
//! A runner that has been taken over can say anything, at any pace. It is written down as printable
//! lines, a pipe's worth at a time, and what does not fit meanwhile is lost in the machine.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tokio::net::unix::pipe;
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{LOG_PAUSE, MAX_LOG_BYTES, MAX_LOG_READ_BYTES};

/// Writes down what comes out of the pipe, until the runner has ended, or this is dropped.
pub(crate) fn keep((pipe, log): (PathBuf, PathBuf)) -> io::Result<AbortOnDropHandle<()>> {
    let pipe = pipe::OpenOptions::new().open_receiver(pipe)?;
    Ok(AbortOnDropHandle::new(tokio::spawn(write_down(pipe, log))))
}

async fn write_down(pipe: pipe::Receiver, log: PathBuf) {
    let mut is_failing = false;
    while let Ok(said) = next(&pipe).await {
        let path = log.clone();
        let written = tokio::task::spawn_blocking(move || append(&path, &printable(&said))).await;
        let failed = written.ok().and_then(Result::err);
        if let Some(error) = failed.as_ref().filter(|_| !is_failing) {
            tracing::warn!(log = %log.display(), %error, "what a runner says is not written down");
        }
        is_failing = failed.is_some();
        tokio::time::sleep(LOG_PAUSE).await;
    }
}

/// A machine that says nothing costs no memory for it.
async fn next(pipe: &pipe::Receiver) -> io::Result<Vec<u8>> {
    loop {
        pipe.readable().await?;
        let mut said = vec![0; MAX_LOG_READ_BYTES];
        match pipe.try_read(&mut said) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                said.truncate(length);
                return Ok(said);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whoever looks at it must not be told anything that is not a line.
fn printable(said: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| *byte == b'\n' || *byte == b' ' || byte.is_ascii_graphic();
    said.iter().map(|byte| if is_plain(byte) { *byte } else { b'?' }).collect()
}

/// Never makes the file: a machine that is being removed has none any more.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut log = OpenOptions::new().read(true).append(true).open(path)?;
    if log.metadata()?.len() + lines.len() as u64 > MAX_LOG_BYTES {
        cut(&mut log)?;
    }
    log.write_all(lines)
}

/// Keeps the whole lines of the newer half.
fn cut(log: &mut File) -> io::Result<()> {
    let mut kept = Vec::new();
    let from = log.metadata()?.len().saturating_sub(MAX_LOG_BYTES / 2);
    log.seek(SeekFrom::Start(from))?;
    (&*log).take(MAX_LOG_BYTES / 2).read_to_end(&mut kept)?;
    let begin = kept.iter().position(|byte| *byte == b'\n').map_or(kept.len(), |at| at + 1);
    log.set_len(0)?;
    log.write_all(&kept[begin..])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn a_log_has_the_newest_whole_lines_and_stays_within_its_bound() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        assert_eq!(append(&path, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        File::create(&path).unwrap();
        let lines = 3 * MAX_LOG_BYTES / 100;
        for number in 0..lines {
            append(&path, format!("{number:099}\n").as_bytes()).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() <= MAX_LOG_BYTES);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().all(|line| line.len() == 99), "a line is cut");
        assert!(text.ends_with(&format!("{:099}\n", lines - 1)), "the newest is not there");
        // One line without an end.
        for _ in 0..20 {
            append(&path, &vec![b'x'; MAX_LOG_READ_BYTES]).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() <= MAX_LOG_BYTES);
        }
    }

    #[tokio::test]
    async fn a_full_disk_loses_lines_and_makes_nobody_wait() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        let mut runner = pipe::OpenOptions::new().read_write(true).open_sender(&path).unwrap();
        let full = Path::new("/dev/full");
        assert_eq!(append(full, b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        let kept = keep((path, full.to_owned())).unwrap();
        let all_is_said = async {
            runner.write_all(&vec![b'x'; 8 * MAX_LOG_READ_BYTES]).await.unwrap();
            drop(runner);
            kept.await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(60), all_is_said).await.unwrap();
    }

    #[test]
    fn what_is_no_line_is_not_written_down() {
        assert_eq!(printable(b"a {1}\n\x1b[2J\r\xff"), b"a {1}\n?[2J??");
    }
}
