//! Long work on threads of its own, whose findings become a response while it goes on.
//!
//! The runner's one thread serves everybody; walking a large tree or searching it would hold all
//! others up. A thread has the rights of the one that starts it, so what holds for the runner's
//! file operations holds here. When the reader goes away, the next finding is refused with
//! [`Gone`] and the work ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use sandbank_protocol::{Fault, FaultCode};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::http::RunnerBody;
use crate::limits::{
    FINDINGS_AHEAD, FINDINGS_BYTES, FINDINGS_PATIENCE, MAX_OFFLOADED, OFFLOAD_STACK_BYTES,
    STANDSTILL,
};

/// The places for it.
#[derive(Debug, Clone)]
pub(crate) struct Offload(Arc<Semaphore>);

impl Default for Offload {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_OFFLOADED)))
    }
}

/// Nobody reads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Where the work puts what it finds: lines of JSON, or raw bytes.
#[derive(Debug)]
pub(crate) struct Findings {
    chunks: mpsc::Sender<io::Result<Bytes>>,
    /// The reader stood still for too long: it is told so, should it go on.
    stood_still: Arc<AtomicBool>,
    pending: Vec<u8>,
    sent: Instant,
}

impl Offload {
    /// Begins the work and returns what it will find as a body.
    pub(crate) fn begin(
        &self,
        name: &str,
        work: impl FnOnce(Findings) + Send + 'static,
    ) -> Result<RunnerBody, Fault> {
        let place = Arc::new(self.place()?);
        let (sender, mut receiver) = mpsc::channel(FINDINGS_AHEAD);
        let stood_still = Arc::new(AtomicBool::new(false));
        let findings = Findings::new(sender, stood_still.clone());
        // A place is free again when the work has ended, which may be later than the reader left.
        let worker = place.clone();
        thread(name, move || {
            work(findings);
            drop(worker);
        })?;
        let chunks = futures_util::stream::poll_fn(move |context| {
            let _held = &place;
            receiver.poll_recv(context).map(|chunk| match chunk {
                Some(data) => Some(data.map(Frame::data)),
                None if stood_still.swap(false, Ordering::Acquire) => {
                    let message = format!("nobody read on for {STANDSTILL:?}");
                    Some(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
                }
                None => None,
            })
        });
        Ok(StreamBody::new(chunks).boxed_unsync())
    }

    /// Begins the work and waits for its answer. The work is told whether anybody still does.
    pub(crate) async fn answer<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let place = self.place()?;
        let (sender, receiver) = oneshot::channel();
        thread(name, move || {
            let answer = work(&|| !sender.is_closed());
            drop(place);
            let _ = sender.send(answer);
        })?;
        let lost = |_| Err(Fault::new(FaultCode::Internal, "the work ended without an answer"));
        receiver.await.unwrap_or_else(lost)
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Fault> {
        self.0.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{MAX_OFFLOADED} searches and walks go on; wait for one to end");
            Fault::new(FaultCode::LimitReached, message)
        })
    }
}

/// Starts a thread; a sandbox that has used up its processes may not have one.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let builder = std::thread::Builder::new().name(name.into()).stack_size(OFFLOAD_STACK_BYTES);
    builder.spawn(work).map(drop).map_err(|error| {
        Fault::new(FaultCode::LimitReached, format!("there is no room for a thread: {error}"))
    })
}

/// Between two looks at a channel, shorter at first.
pub(crate) fn next_pause(before: Duration) -> Duration {
    (before * 2).clamp(Duration::from_micros(100), Duration::from_millis(20))
}

impl Findings {
    fn new(chunks: mpsc::Sender<io::Result<Bytes>>, stood_still: Arc<AtomicBool>) -> Self {
        Self { chunks, stood_still, pending: Vec::new(), sent: Instant::now() }
    }

    /// For another thread of the same work. Lines stay whole; whose come first is open.
    pub(crate) fn for_another_thread(&self) -> Self {
        Self::new(self.chunks.clone(), self.stood_still.clone())
    }

    /// Whether nobody reads on, for work that finds nothing for long.
    pub(crate) fn is_unread(&self) -> bool {
        self.chunks.is_closed()
    }

    /// Adds a line.
    pub(crate) fn record(&mut self, record: &impl Serialize) -> Result<(), Gone> {
        serde_json::to_writer(&mut self.pending, record).expect("protocol types are plain data");
        self.pending.push(b'\n');
        self.send_some()
    }

    /// Adds what `write` appends to the bytes before it.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Gone> {
        write(&mut self.pending);
        self.send_some()
    }

    /// Adds bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.pending.extend_from_slice(bytes);
        self.send_some()
    }

    /// Many small findings travel together, unless the reader has waited for long.
    fn send_some(&mut self) -> Result<(), Gone> {
        if self.pending.len() < FINDINGS_BYTES && self.sent.elapsed() < FINDINGS_PATIENCE {
            return Ok(());
        }
        self.send()
    }

    /// Sends what there is, once there is room.
    pub(crate) fn send(&mut self) -> Result<(), Gone> {
        self.sent = Instant::now();
        if self.pending.is_empty() {
            return if self.is_unread() { Err(Gone) } else { Ok(()) };
        }
        let full = std::mem::replace(&mut self.pending, Vec::with_capacity(FINDINGS_BYTES));
        self.deliver(Ok(full.into()))
    }

    /// Once there is room. A reader that makes none for long is as good as gone.
    fn deliver(&self, mut chunk: io::Result<Bytes>) -> Result<(), Gone> {
        let began = Instant::now();
        let mut pause = Duration::ZERO;
        loop {
            chunk = match self.chunks.try_send(chunk) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(Gone),
                Err(mpsc::error::TrySendError::Full(chunk)) => chunk,
            };
            // What was left out once is missing: nothing follows it.
            if self.stood_still.load(Ordering::Acquire) || began.elapsed() >= STANDSTILL {
                self.stood_still.store(true, Ordering::Release);
                return Err(Gone);
            }
            pause = next_pause(pause);
            std::thread::sleep(pause);
        }
    }

    /// Breaks the response off, so that nobody takes a part for the whole.
    pub(crate) fn fail(mut self, error: io::Error) {
        if self.send().is_ok() {
            let _ = self.deliver(Err(error));
        }
    }
}

impl Drop for Findings {
    /// What was found last is sent, too.
    fn drop(&mut self) {
        let _ = self.send();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn findings_arrive_in_order_and_the_place_is_given_back() {
        let offload = Offload::default();
        let body = offload
            .begin("test", |mut findings| {
                for number in 0..50_000 {
                    findings.record(&json!({ "number": number })).unwrap();
                }
            })
            .unwrap();
        let text = body.collect().await.unwrap().to_bytes();
        let numbers: Vec<u64> = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap())
            .map(|line| line["number"].as_u64().unwrap())
            .collect();
        assert!(numbers.iter().copied().eq(0..50_000));
        while offload.0.available_permits() != MAX_OFFLOADED {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_work_has_ended_and_not_when_its_reader_has_left() {
        let offload = Offload::default();
        let (go, wait) = channel::<()>();
        let body = offload.begin("test", move |_findings| wait.recv().unwrap()).unwrap();
        drop(body);
        assert_eq!(offload.0.available_permits(), MAX_OFFLOADED - 1);
        go.send(()).unwrap();
        while offload.0.available_permits() != MAX_OFFLOADED {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_reader_that_stood_still_is_told_that_something_is_missing() {
        let (told, ended) = channel();
        let body = Offload::default().begin("test", move |mut findings| {
            // As if the time were over.
            findings.stood_still.store(true, Ordering::Release);
            while findings.bytes(&[b'x'; FINDINGS_BYTES]).is_ok() {}
            drop(findings);
            told.send(()).unwrap();
        });
        tokio::task::spawn_blocking(move || ended.recv().unwrap()).await.unwrap();
        assert!(body.unwrap().collect().await.is_err());
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_ends_the_work() {
        let (told, ended) = channel();
        let body = Offload::default().begin("test", move |mut findings| {
            while findings.bytes(b"more\n").is_ok() {}
            told.send(()).unwrap();
        });
        drop(body.unwrap());
        tokio::task::spawn_blocking(move || ended.recv().unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn no_more_work_goes_on_at_once_than_there_are_places() {
        let offload = Offload::default();
        let endless = |mut findings: Findings| while findings.bytes(b"more\n").is_ok() {};
        let mut bodies: Vec<_> =
            (0..MAX_OFFLOADED).map(|_| offload.begin("test", endless).unwrap()).collect();
        let Err(fault) = offload.begin("test", endless) else { panic!("one too many") };
        assert_eq!(fault.code, FaultCode::LimitReached);
        bodies.pop();
        // Once the work has noticed.
        while offload.begin("test", endless).is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_answer_is_waited_for_and_work_that_nobody_waits_for_is_told_so() {
        let offload = Offload::default();
        let answer = offload.answer("test", |wanted| Ok(wanted()));
        assert_eq!(answer.await, Ok(true));
        let (told, ended) = channel();
        let endless = offload.answer("test", move |wanted| {
            while wanted() {
                std::thread::yield_now();
            }
            told.send(()).unwrap();
            Ok(())
        });
        let patience = std::time::Duration::from_millis(10);
        assert!(tokio::time::timeout(patience, endless).await.is_err());
        tokio::task::spawn_blocking(move || ended.recv().unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn a_failure_breaks_the_response_off() {
        let body = Offload::default().begin("test", |mut findings| {
            findings.bytes(b"part").unwrap();
            findings.fail(io::ErrorKind::UnexpectedEof.into());
        });
        assert!(body.unwrap().collect().await.is_err());
    }
}
