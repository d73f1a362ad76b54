//! All of one connection in one task. Its parts would otherwise run side by side: the head of a
//! request would be written while its body is still being handed over, and each write wakes
//! everybody on the way to the runner.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use hyper::rt::Executor;
use tokio::sync::mpsc;

type Part = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the connection leaves its parts.
#[derive(Clone)]
pub(crate) struct Parts(mpsc::UnboundedSender<Part>);

impl<F> Executor<F> for Parts
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, part: F) {
        // Without a task there is nobody left who could want it.
        let _ = self.0.send(Box::pin(part));
    }
}

/// The task, once the connection is given to it.
pub(crate) struct OneTask {
    arriving: mpsc::UnboundedReceiver<Part>,
    running: FuturesUnordered<Part>,
}

pub(crate) fn one_task() -> (Parts, OneTask) {
    let (parts, arriving) = mpsc::unbounded_channel();
    (Parts(parts), OneTask { arriving, running: FuturesUnordered::new() })
}

impl OneTask {
    /// Until the connection and all its parts are over; `ended` hears of the connection's own end.
    pub(crate) async fn run<C: Future>(mut self, connection: C, ended: impl FnOnce(C::Output)) {
        let mut connection = std::pin::pin!(connection);
        let output = std::future::poll_fn(|context| {
            // First, so that what it hands over is there when the parts write.
            let over = connection.as_mut().poll(context);
            let _ = self.poll_parts(context);
            over
        })
        .await;
        ended(output);
        std::future::poll_fn(|context| self.poll_parts(context)).await;
    }

    /// Ready when there are none.
    fn poll_parts(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            while let Poll::Ready(Some(part)) = self.arriving.poll_recv(context) {
                self.running.push(part);
            }
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }
}
