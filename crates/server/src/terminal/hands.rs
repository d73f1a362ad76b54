//! What a viewer does to a terminal: type, change its size, send signals.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandId, FaultCode, PtySize, SignalRequest};

use super::closing::Closing;
use super::{Ground, GroundError};
use crate::app::App;
use crate::dialects::sandboxd::reconnect::Retry;
use crate::request::random_id;

pub(crate) struct Hands {
    app: App,
    ground: Ground,
    command: CommandId,
    /// Whose signals they are.
    by: String,
    /// The runner counts what each writer typed, so that a repeat types nothing twice.
    writer: CommandId,
    typed: AtomicU64,
}

impl Hands {
    pub(super) fn new(app: App, ground: Ground, command: CommandId, by: String) -> Self {
        let writer = format!("w{}", random_id());
        let writer = writer.parse().expect("a random id has the characters of a command's");
        Self { app, ground, command, by, writer, typed: AtomicU64::new(0) }
    }

    /// Every byte arrives once, whatever breaks in between. Waits for the program to take it; one
    /// call at a time.
    pub(crate) async fn write(&self, bytes: Bytes) -> Result<(), Closing> {
        let (command, writer) = (&self.command, &self.writer);
        let offset = self.typed.load(Ordering::Relaxed);
        let typed = self.call(|client| {
            let bytes = bytes.clone();
            async move { client.input(command, writer, offset, bytes).await }
        });
        match typed.await {
            Ok(_) => {
                self.typed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.refused_as(FaultCode::Closed) => Err(Closing::InputClosed),
            Err(error) if error.is_away() => Err(Closing::Unreachable),
            Err(error) => Err(Closing::Internal(error.to_string())),
        }
    }

    pub(crate) async fn resize(&self, size: PtySize) -> Result<(), GroundError> {
        let command = &self.command;
        self.call(|client| async move { client.resize(command, size).await }).await.map(drop)
    }

    /// To the process group.
    pub(crate) async fn signal(&self, signal: i32) -> Result<(), GroundError> {
        let request = &SignalRequest { signal, by: self.by.clone(), tree: false };
        let command = &self.command;
        self.call(|client| async move { client.signal(command, request).await }).await.map(drop)
    }

    /// Again while the channel breaks: all of these can be repeated.
    async fn call<T, F, A>(&self, call: F) -> Result<T, GroundError>
    where
        T: Send,
        F: Fn(RunnerClient) -> A + Send + Sync,
        A: Future<Output = Result<T, sandbank_channel::ChannelError>> + Send,
    {
        let mut retry = Retry::default();
        loop {
            let called = match self.ground.hold(&self.app).await {
                Ok(hold) => hold.run(&call).await,
                Err(error) => Err(error),
            };
            match called {
                Err(error) if error.is_broken() && retry.again().await => {}
                called => return called,
            }
        }
    }
}
