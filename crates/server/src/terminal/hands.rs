//! What a viewer does to a terminal: type, change its size, send signals.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sandbank_channel::RunnerClient;
use sandbank_orchestrator::OrchestratorError;
use sandbank_protocol::{CommandId, FaultCode, PtySize, SignalRequest};

use super::closing::Closing;
use crate::app::App;
use crate::dialects::sandboxd::reconnect::{Retry, is_broken, refused_as};
use crate::extract::CommandPath;
use crate::request::random_id;

pub(crate) struct Hands {
    app: App,
    path: CommandPath,
    /// Whose signals they are.
    by: String,
    /// The runner counts what each writer typed, so that a repeat types nothing twice.
    writer: CommandId,
    typed: AtomicU64,
}

impl Hands {
    pub(super) fn new(app: App, path: CommandPath, by: String) -> Self {
        let writer = format!("w{}", random_id());
        let writer = writer.parse().expect("a random id has the characters of a command's");
        Self { app, path, by, writer, typed: AtomicU64::new(0) }
    }

    /// Every byte arrives once, whatever breaks in between. Waits for the program to take it; one
    /// call at a time.
    pub(crate) async fn write(&self, bytes: Bytes) -> Result<(), Closing> {
        let (path, writer, offset) = (&self.path, &self.writer, self.typed.load(Ordering::Relaxed));
        let typed = self.call(|client| {
            let bytes = bytes.clone();
            async move { client.input(&path.command, writer, offset, bytes).await }
        });
        match typed.await {
            Ok(_) => {
                self.typed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Ok(())
            }
            Err(OrchestratorError::Channel(error)) if refused_as(&error, FaultCode::Closed) => {
                Err(Closing::InputClosed)
            }
            Err(error) if is_broken(&error) => Err(Closing::Unreachable),
            Err(error) => Err(Closing::Internal(error.to_string())),
        }
    }

    pub(crate) async fn resize(&self, size: PtySize) -> Result<(), OrchestratorError> {
        let command = &self.path.command;
        self.call(|client| async move { client.resize(command, size).await }).await.map(drop)
    }

    /// To the process group.
    pub(crate) async fn signal(&self, signal: i32) -> Result<(), OrchestratorError> {
        let request = &SignalRequest { signal, by: self.by.clone(), tree: false };
        let command = &self.path.command;
        self.call(|client| async move { client.signal(command, request).await }).await.map(drop)
    }

    /// Again while the channel breaks: all of these can be repeated.
    async fn call<T, F, A>(&self, call: F) -> Result<T, OrchestratorError>
    where
        F: Fn(RunnerClient) -> A,
        A: Future<Output = Result<T, sandbank_channel::ChannelError>>,
    {
        let mut retry = Retry::default();
        loop {
            let attached = self.app.orchestrator().attach(&self.path.sandbox).await;
            let called = match attached {
                Ok(attached) => attached.run(&call).await,
                Err(error) => Err(error),
            };
            match called {
                Err(error) if is_broken(&error) && retry.again().await => {}
                called => return called,
            }
        }
    }
}
