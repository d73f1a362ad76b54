//! Requests to a runner, one method each.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioIo;
use sandbank_protocol::{
    CommandId, CommandSpec, CommandStatus, DirListing, FILE_STAT_HEADER, Fault, FaultCode,
    FileStat, Hello, MkdirRequest, MoveRequest, PROTOCOL_VERSION, PtySize, SignalRequest, Started,
    Stats, StdinStatus, Written, percent_encoded,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::limits::{
    ANSWER_TIMEOUT, CONNECTION_WINDOW_BYTES, HELLO_TIMEOUT, MAX_FRAME_BYTES, MAX_JSON_BYTES,
    STREAM_WINDOW_BYTES,
};
use crate::one_task::one_task;
use crate::{
    ChannelBody, ChannelError, FileDownload, Guard, OutputStream, RecordStream, empty_body,
    full_body,
};
use crate::{request_id, trace};

/// A byte stream to a port in the sandbox.
pub type Tunnel = TokioIo<hyper::upgrade::Upgraded>;

/// Part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteRange {
    pub offset: u64,
    /// To the end of the file when absent.
    pub length: Option<u64>,
}

/// A connection to one runner. Cheap to clone; requests run side by side.
#[derive(Clone)]
pub struct RunnerClient {
    sender: SendRequest<ChannelBody>,
    /// Turns true when the connection is over.
    over: watch::Receiver<bool>,
    /// Of a runner on another machine.
    guard: Option<Arc<dyn Guard>>,
}

impl RunnerClient {
    /// Shakes hands over a fresh stream and drives the connection in a task of its own.
    pub async fn connect<S>(stream: S) -> Result<(Self, Hello), ChannelError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::connect_past(None, stream).await
    }

    /// [`Self::connect`], with every request and answer passing the guard.
    pub async fn connect_past<S>(
        guard: Option<Arc<dyn Guard>>,
        stream: S,
    ) -> Result<(Self, Hello), ChannelError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (parts, task) = one_task();
        let handshake = http2::Builder::new(parts)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(MAX_FRAME_BYTES)
            .max_send_buf_size(1 << 20)
            .handshake(TokioIo::new(stream));
        let (sender, connection) = timed(HELLO_TIMEOUT, handshake).await??;
        let (ended, over) = watch::channel(false);
        tokio::spawn(task.run(connection, move |result| {
            if let Err(error) = result {
                tracing::debug!(%error, "a channel ended");
            }
            let _ = ended.send(true);
        }));
        let client = Self { sender, over, guard };
        let hello: Hello = timed(HELLO_TIMEOUT, client.get("/hello")).await??;
        if hello.is_compatible() {
            Ok((client, hello))
        } else {
            Err(ChannelError::Incompatible { theirs: hello.protocol, ours: PROTOCOL_VERSION })
        }
    }

    pub fn is_closed(&self) -> bool {
        *self.over.borrow() || self.sender.is_closed()
    }

    /// Resolves when the connection is over.
    pub async fn closed(&self) {
        let mut over = self.over.clone();
        let _ = over.wait_for(|over| *over).await;
    }

    /// Adds to the base environment of every command; refused once there was a command.
    pub async fn set_environment(
        &self,
        variables: &BTreeMap<String, String>,
    ) -> Result<(), ChannelError> {
        let body = serde_json::to_vec(variables).expect("texts are plain data");
        let call = self.call(Method::PUT, "/environment", full_body(body));
        timed(ANSWER_TIMEOUT, call).await?.map(drop)
    }

    pub async fn start(&self, spec: &CommandSpec) -> Result<Started, ChannelError> {
        let started: Started = self.post("/commands", spec).await?;
        about(&spec.id, &started.status)?;
        Ok(started)
    }

    /// Starts a command and stays for its ending, at most for `patience`: a short command takes
    /// one request. The status says whether it has ended.
    pub async fn start_and_wait(
        &self,
        spec: &CommandSpec,
        patience: Duration,
    ) -> Result<Started, ChannelError> {
        let path = format!("/commands?wait_ms={}", patience.as_millis());
        let started: Started = self.post_within(ANSWER_TIMEOUT + patience, &path, spec).await?;
        about(&spec.id, &started.status)?;
        Ok(started)
    }

    pub async fn commands(&self) -> Result<Vec<CommandStatus>, ChannelError> {
        self.answer(self.get("/commands")).await
    }

    pub async fn command(&self, id: &CommandId) -> Result<CommandStatus, ChannelError> {
        checked(id, self.answer(self.get(&format!("/commands/{id}"))).await?)
    }

    /// Resolves when the command has ended, however long that takes.
    pub async fn wait(&self, id: &CommandId) -> Result<CommandStatus, ChannelError> {
        checked(id, self.get(&format!("/commands/{id}/wait")).await?)
    }

    /// Frames numbered above `after`; with `follow` until the command's ending.
    pub async fn output(
        &self,
        id: &CommandId,
        after: u64,
        follow: bool,
    ) -> Result<OutputStream, ChannelError> {
        let path = format!("/commands/{id}/output?after={after}&follow={follow}");
        let response = timed(ANSWER_TIMEOUT, self.call(Method::GET, &path, empty_body())).await??;
        Ok(OutputStream::new(response.into_body()))
    }

    /// Sends stdin from `offset` on. Bytes that were accepted before are skipped by the runner.
    pub async fn stdin(
        &self,
        id: &CommandId,
        offset: u64,
        eof: bool,
        body: ChannelBody,
    ) -> Result<StdinStatus, ChannelError> {
        let path = format!("/commands/{id}/stdin?offset={offset}&eof={eof}");
        json(self.call(Method::POST, &path, body).await?).await
    }

    pub async fn signal(
        &self,
        id: &CommandId,
        request: &SignalRequest,
    ) -> Result<CommandStatus, ChannelError> {
        checked(id, self.post(&format!("/commands/{id}/signal"), request).await?)
    }

    pub async fn resize(
        &self,
        id: &CommandId,
        size: PtySize,
    ) -> Result<CommandStatus, ChannelError> {
        checked(id, self.post(&format!("/commands/{id}/resize"), &size).await?)
    }

    pub async fn read_file(
        &self,
        path: &str,
        range: ByteRange,
    ) -> Result<FileDownload, ChannelError> {
        let mut target = format!("/files?path={}&offset={}", encode(path), range.offset);
        if let Some(length) = range.length {
            let _ = write!(target, "&length={length}");
        }
        let call = self.call(Method::GET, &target, empty_body());
        let response = timed(ANSWER_TIMEOUT, call).await??;
        let header = response.headers().get(FILE_STAT_HEADER);
        let stat = header
            .and_then(|value| serde_json::from_slice(value.as_bytes()).ok())
            .ok_or_else(|| ChannelError::Violation("a file came without its description".into()))?;
        Ok(FileDownload::new(stat, response.into_body()))
    }

    /// Replaces the whole file atomically, making missing parents.
    pub async fn write_file(
        &self,
        path: &str,
        mode: Option<u32>,
        body: ChannelBody,
    ) -> Result<FileStat, ChannelError> {
        let mode = mode.map(|mode| format!("&mode={mode}")).unwrap_or_default();
        let target = format!("/files?path={}{mode}", encode(path));
        json(self.call(Method::PUT, &target, body).await?).await
    }

    /// Writes into an existing file from `offset` on.
    pub async fn write_file_at(
        &self,
        path: &str,
        offset: u64,
        body: ChannelBody,
    ) -> Result<FileStat, ChannelError> {
        let target = format!("/files?path={}&offset={offset}", encode(path));
        json(self.call(Method::PUT, &target, body).await?).await
    }

    /// Writes all files of a [`sandbank_protocol::file_batch`] body, or none.
    pub async fn write_many(&self, body: ChannelBody) -> Result<Written, ChannelError> {
        json(self.call(Method::POST, "/files/write-many", body).await?).await
    }

    pub async fn stat(&self, path: &str) -> Result<FileStat, ChannelError> {
        self.answer(self.get(&format!("/files/stat?path={}", encode(path)))).await
    }

    /// Of what a link leads to.
    pub async fn stat_target(&self, path: &str) -> Result<FileStat, ChannelError> {
        self.answer(self.get(&format!("/files/stat?path={}&follow=true", encode(path)))).await
    }

    /// Whether a file is another version than it was, or none any more. One that became shorter
    /// breaks its download off, as a channel does that breaks.
    pub async fn has_changed(&self, path: &str, was: &FileStat) -> Result<bool, ChannelError> {
        match self.stat_target(path).await {
            Ok(now) => Ok(now != *was),
            Err(ChannelError::Refused(fault))
                if matches!(fault.code, FaultCode::NotFound | FaultCode::WrongKind) =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    pub async fn list(&self, path: &str) -> Result<DirListing, ChannelError> {
        self.answer(self.get(&format!("/files/list?path={}", encode(path)))).await
    }

    pub async fn mkdir(&self, request: &MkdirRequest) -> Result<FileStat, ChannelError> {
        self.post("/files/mkdir", request).await
    }

    pub async fn rename(&self, request: &MoveRequest) -> Result<FileStat, ChannelError> {
        self.post("/files/move", request).await
    }

    pub async fn remove(&self, path: &str, recursive: bool) -> Result<(), ChannelError> {
        let target = format!("/files?path={}&recursive={recursive}", encode(path));
        self.call(Method::DELETE, &target, empty_body()).await.map(drop)
    }

    /// A connection to whatever listens on `port` in the sandbox.
    pub async fn tunnel(&self, port: u16) -> Result<Tunnel, ChannelError> {
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri(format!("127.0.0.1:{port}"))
            .body(empty_body())
            .expect("a port makes a valid authority");
        let response = timed(ANSWER_TIMEOUT, self.send(request)).await??;
        Ok(TokioIo::new(hyper::upgrade::on(response).await?))
    }

    pub async fn stats(&self) -> Result<Stats, ChannelError> {
        self.answer(self.get("/stats")).await
    }

    /// A streamed answer of JSON lines, however long it takes once it has begun.
    pub(crate) async fn records<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: ChannelBody,
    ) -> Result<RecordStream<T>, ChannelError> {
        let response = timed(ANSWER_TIMEOUT, self.call(method, path, body)).await??;
        Ok(RecordStream::new(response.into_body()))
    }

    pub(crate) async fn answer<T>(
        &self,
        call: impl Future<Output = Result<T, ChannelError>>,
    ) -> Result<T, ChannelError> {
        timed(ANSWER_TIMEOUT, call).await?
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ChannelError> {
        json(self.call(Method::GET, path, empty_body()).await?).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ChannelError> {
        self.post_within(ANSWER_TIMEOUT, path, body).await
    }

    pub(crate) async fn post_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ChannelError> {
        let body = serde_json::to_vec(body).expect("protocol types are plain data");
        let call = async { json(self.call(Method::POST, path, full_body(body)).await?).await };
        timed(limit, call).await?
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: ChannelBody,
    ) -> Result<Response<Incoming>, ChannelError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://runner{path}"))
            .body(body)
            .map_err(|error| ChannelError::violation(&error.to_string()))?;
        self.send(request).await
    }

    async fn send(
        &self,
        request: Request<ChannelBody>,
    ) -> Result<Response<Incoming>, ChannelError> {
        let response = match &self.guard {
            None => self.transmit(request).await?,
            Some(guard) => self.send_guarded(guard, request).await?,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = bounded(response.into_body()).await.unwrap_or_default();
        Err(ChannelError::Refused(fault(status, &body)))
    }

    pub(crate) async fn transmit(
        &self,
        mut request: Request<ChannelBody>,
    ) -> Result<Response<Incoming>, ChannelError> {
        request_id::stamp(request.headers_mut());
        let mut sender = self.sender.clone();
        let send = |request| async move {
            sender.ready().await?;
            Ok(sender.send_request(request).await?)
        };
        match trace::Call::begin(&mut request) {
            None => send(request).await,
            Some(call) => call.over(send(request)).await,
        }
    }
}

/// An answer about another command than the one that was asked for is none.
fn about(id: &CommandId, status: &CommandStatus) -> Result<(), ChannelError> {
    if status.id == *id {
        return Ok(());
    }
    Err(ChannelError::violation(&format!("asked about {id}, it answered about {}", status.id)))
}

fn checked(id: &CommandId, status: CommandStatus) -> Result<CommandStatus, ChannelError> {
    about(id, &status).map(|()| status)
}

fn fault(status: StatusCode, body: &[u8]) -> Fault {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        Fault::new(FaultCode::Internal, format!("the runner answered {status}"))
    })
}

pub(crate) async fn json<T: DeserializeOwned>(
    response: Response<Incoming>,
) -> Result<T, ChannelError> {
    let body = bounded(response.into_body()).await?;
    serde_json::from_slice(&body).map_err(|error| ChannelError::violation(&error.to_string()))
}

async fn bounded(body: Incoming) -> Result<Bytes, ChannelError> {
    match Limited::new(body, MAX_JSON_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(ChannelError::Violation(format!("an answer has more than {MAX_JSON_BYTES} bytes")))
        }
        Err(error) => Err(ChannelError::broken(&error.to_string())),
    }
}

pub(crate) async fn timed<T>(
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ChannelError> {
    tokio::time::timeout(limit, work).await.map_err(|_| ChannelError::TimedOut(limit))
}

/// A path as part of a query.
pub(crate) fn encode(path: &str) -> String {
    percent_encoded(path, b"/")
}
