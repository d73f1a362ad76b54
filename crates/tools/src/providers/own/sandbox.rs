//! One sandbox of the daemon, through its runner.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use sandbank_channel::{ByteRange, full_body, stream_body};
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{Attached, FollowedCommand, Orchestrator, OrchestratorError};
use sandbank_protocol::{CommandSpec, FaultCode};

use super::command::OwnCommand;
use super::shell::Profiles;
use super::{Template, failed, look};
use crate::limits::JOURNAL_BYTES;
use crate::random::random_id;
use crate::{Command, Found, Listing, Sandbox, Search, ToolError};

pub(super) struct OwnSandbox {
    pub(super) orchestrator: Orchestrator,
    pub(super) id: SandboxId,
    pub(super) name: String,
    pub(super) template: Arc<Template>,
    pub(super) profiles: Profiles,
}

impl OwnSandbox {
    async fn attach(&self) -> Result<Attached, ToolError> {
        self.orchestrator.attach(&self.id).await.map_err(failed)
    }
}

#[async_trait]
impl Sandbox for OwnSandbox {
    fn id(&self) -> &str {
        &self.name
    }

    async fn start_with(
        &self,
        script: &str,
        variables: BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<Box<dyn Command>, ToolError> {
        let id = random_id("t").parse().expect("hexadecimal digits are plain characters");
        let spec = CommandSpec {
            env: variables,
            timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            journal_bytes: Some(JOURNAL_BYTES),
            ..CommandSpec::new(id, self.profiles.shell(script))
        };
        let attached = self.attach().await?;
        let orchestrator = self.orchestrator.clone();
        let started = FollowedCommand::start(orchestrator, attached, &spec, None).await;
        let (_, running) = started.map_err(|error| match error {
            error if error.is_refused_as(FaultCode::ProgramMissing) => {
                ToolError::Failed("the sandbox's image has no bash".to_owned())
            }
            error => failed(error),
        })?;
        tracing::debug!(sandbox = %self.id, command = %spec.id, "a tool's command started");
        Ok(Box::new(OwnCommand::new(spec.id, running)))
    }

    async fn read_file(&self, path: &str, limit: u64) -> Result<Bytes, ToolError> {
        let attached = self.attach().await?;
        // One more than allowed, so that a file that grows meanwhile is noticed.
        let range = ByteRange { offset: 0, length: Some(limit.saturating_add(1)) };
        let opened = attached.run(|client| async move { client.read_file(path, range).await });
        let mut file = opened.await.map_err(failed)?;
        let too_long = |size: u64| {
            ToolError::InvalidInput(format!(
                "the file is {size} bytes long, more than {limit}; look at a part of it, as with \
                 head or sed"
            ))
        };
        if file.stat.size > limit {
            return Err(too_long(file.stat.size));
        }
        let mut content = BytesMut::new();
        while let Some(chunk) =
            file.chunk().await.map_err(|error| failed(OrchestratorError::from(error)))?
        {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > limit {
                return Err(too_long(content.len() as u64));
            }
        }
        Ok(content.freeze())
    }

    async fn write_file(&self, path: &str, content: Bytes) -> Result<(), ToolError> {
        let attached = self.attach().await?;
        let content = &content;
        let call = attached.run(|client| async move {
            client.write_file(path, None, full_body(content.clone())).await
        });
        call.await.map(drop).map_err(failed)
    }

    async fn unpack(
        &self,
        archive: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), ToolError> {
        let attached = self.attach().await?;
        let unpacked = attached.unpack(".", stream_body(archive)).await;
        unpacked.map(drop).map_err(|error| failed(OrchestratorError::from(error)))
    }

    async fn url(&self, port: u16) -> Result<String, ToolError> {
        let published = self.orchestrator.publish(&self.id, port).await.map_err(failed)?;
        let Some(published) = published else {
            return Err(ToolError::InvalidInput(format!(
                "Port {port} is not published for this sandbox. Set app.bash_tools.sandbox.ports = \
                 [{port}] and recreate the sandbox."
            )));
        };
        let Template { public_proto, public_host, .. } = &*self.template;
        let address = published.address;
        Ok(url_of(public_proto, public_host.as_deref(), address, published.host_port))
    }

    async fn list(&self, path: &str, depth: u64, limit: u64) -> Result<Listing, ToolError> {
        look::list(&self.attach().await?, path, depth, limit).await
    }

    async fn search(&self, search: &Search) -> Result<Found, ToolError> {
        look::search(&self.attach().await?, search).await
    }

    async fn is_alive(&self) -> bool {
        let info = self.orchestrator.find_living(&self.id);
        info.is_some_and(|info| info.cause.is_none() && !info.state.is_over())
    }

    async fn stop(&self) -> Result<(), ToolError> {
        self.orchestrator.stop(&self.id, "tools").await.map(drop).map_err(failed)
    }
}

fn url_of(proto: &str, public: Option<&str>, address: IpAddr, port: u16) -> String {
    let host = public.map_or_else(|| address.to_string(), str::to_owned);
    let bare = host.trim_matches(['[', ']']);
    match bare.contains(':') {
        true => format!("{proto}://[{bare}]:{port}"),
        false => format!("{proto}://{bare}:{port}"),
    }
}
