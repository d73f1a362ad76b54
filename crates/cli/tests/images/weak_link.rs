//! A proxy before the registry that cuts or stops the answers it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Between two bytes.
const DRIBBLE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The connection ends.
    Cut,
    /// Nothing comes any more.
    Hang,
    /// A byte now and then, each before anybody would call it silence.
    Dribble,
    /// Nothing comes until the test says so.
    Wait,
}

pub(crate) struct WeakLink {
    pub(crate) port: u16,
    /// Bytes that were passed on of answers that the fault is for.
    pub(crate) passed: Arc<AtomicU64>,
    /// Faults that are still to come.
    pub(crate) faults: Arc<AtomicUsize>,
    /// Ends the waiting.
    pub(crate) released: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl WeakLink {
    /// Each of the first `faults` answers about `marked` is faulty after `after` bytes.
    pub(crate) async fn before(
        registry: u16,
        marked: String,
        fault: Fault,
        after: usize,
        faults: usize,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (passed, faults) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(faults)));
        let released = Arc::new(Notify::new());
        let (counted, left, release) = (passed.clone(), faults.clone(), released.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (marked, counted, left) = (marked.clone(), counted.clone(), left.clone());
                let release = release.clone();
                tokio::spawn(async move {
                    let fault = (fault, after, &*release);
                    let _ = pass(client, registry, &marked, fault, &counted, &left).await;
                });
            }
        });
        Ok(Self { port, passed, faults, released, task })
    }
}

impl Drop for WeakLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request and its answer; then the connection is closed.
async fn pass(
    mut client: TcpStream,
    registry: u16,
    marked: &str,
    (fault, after, release): (Fault, usize, &Notify),
    passed: &AtomicU64,
    faults: &AtomicUsize,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let is_marked = text.lines().next().is_some_and(|line| line.contains(marked));
    let one_fewer = |left: usize| left.checked_sub(1);
    let faulty =
        is_marked && faults.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_fewer).is_ok();
    let mut server = TcpStream::connect(("127.0.0.1", registry)).await?;
    let asked = text.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
    server.write_all(asked.as_bytes()).await?;
    let (mut buffer, mut sent, mut faulty) = (vec![0; 16 << 10], 0, faulty);
    loop {
        let read = server.read(&mut buffer).await?;
        if read == 0 {
            return client.shutdown().await;
        }
        let room = if faulty { after.saturating_sub(sent) } else { read };
        let now = read.min(room);
        client.write_all(&buffer[..now]).await?;
        sent += now;
        if is_marked {
            passed.fetch_add(now as u64, Ordering::SeqCst);
        }
        if now < read {
            match fault {
                Fault::Cut => return client.shutdown().await,
                // Until whoever waits for more has left.
                Fault::Hang => return client.read_u8().await.map(drop),
                Fault::Dribble => {
                    for byte in buffer[now..read].chunks(1) {
                        client.write_all(byte).await?;
                        tokio::time::sleep(DRIBBLE).await;
                    }
                    return Ok(());
                }
                Fault::Wait => {
                    release.notified().await;
                    faulty = false;
                    client.write_all(&buffer[now..read]).await?;
                    sent += read - now;
                    passed.fetch_add((read - now) as u64, Ordering::SeqCst);
                }
            }
        }
    }
}
