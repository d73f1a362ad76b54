//! A plain copy over loopback TCP: read, write, nothing else. The most that any server on this
//! machine could do for a file.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

const BUFFER_BYTES: usize = 256 << 10;

/// One end of a copy.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Memory,
    File(PathBuf),
}

/// Moves `total` bytes through one connection, from the first byte sent to the receiver's
/// confirmation that it has them all.
pub(crate) fn copy(from: &End, to: &End, total: u64) -> anyhow::Result<Duration> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let to = to.clone();
    let receiver = std::thread::spawn(move || receive(&listener, &to));
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    match from {
        End::Memory => send_memory(&mut stream, total)?,
        End::File(path) => send_file(&mut stream, path)?,
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut confirmation = [0];
    stream.read_exact(&mut confirmation).context("the receiver confirmed nothing")?;
    let took = begin.elapsed();
    let received = receiver.join().map_err(|_| anyhow::anyhow!("the receiver panicked"))??;
    anyhow::ensure!(received == total, "{received} of {total} bytes arrived");
    Ok(took)
}

fn receive(listener: &TcpListener, to: &End) -> anyhow::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    let mut sink: Box<dyn Write> = match to {
        End::Memory => Box::new(std::io::sink()),
        End::File(path) => Box::new(File::create(path)?),
    };
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut received = 0;
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        sink.write_all(&buffer[..count])?;
        received += count as u64;
    }
    stream.write_all(b"k")?;
    Ok(received)
}

fn send_memory(stream: &mut TcpStream, total: u64) -> std::io::Result<()> {
    let buffer = vec![0; BUFFER_BYTES];
    let mut left = total;
    while left > 0 {
        let count = left.min(BUFFER_BYTES as u64);
        stream.write_all(&buffer[..count as usize])?;
        left -= count;
    }
    Ok(())
}

/// With an own buffer, because `io::copy` would use sendfile or splice: a server that must look
/// at the bytes has no such path.
fn send_file(stream: &mut TcpStream, path: &Path) -> std::io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_from_memory_and_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = End::File(dir.path().join("copy"));
        let total = 3 * BUFFER_BYTES as u64 + 17;
        assert!(copy(&End::Memory, &End::Memory, total).unwrap() > Duration::ZERO);
        copy(&End::Memory, &file, total).unwrap();
        assert_eq!(std::fs::metadata(dir.path().join("copy")).unwrap().len(), total);
        copy(&file, &End::Memory, total).unwrap();
    }
}
