//! Work of a fixed size for `make instructions`, which counts what `counted_channel` executes: a
//! small request, and output frames, through HTTP/2 in one process and one thread.

use std::convert::Infallible;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandId, Frame, Hello, PROTOCOL_VERSION, StreamKind};
use tokio::runtime::Runtime;

const REQUESTS: usize = 50;
const FRAMES: u64 = 64;
const FRAME_BYTES: usize = 4096;

/// Between the two ends; larger than what is ever under way.
const PIPE_BYTES: usize = 1 << 20;

#[inline(never)]
fn counted_channel(runtime: &Runtime, client: &RunnerClient, id: &CommandId) -> u64 {
    runtime.block_on(read_outputs(client, id))
}

async fn read_outputs(client: &RunnerClient, id: &CommandId) -> u64 {
    let mut bytes = 0;
    for _ in 0..REQUESTS {
        let mut output = client.output(id, 0, false).await.expect("the output begins");
        while let Some(frame) = output.next().await.expect("the output goes on") {
            if let Frame::Output { data, .. } = frame {
                bytes += data.len() as u64;
            }
        }
    }
    bytes
}

#[test]
fn every_byte_of_the_counted_work_comes_through_the_channel() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        tokio::spawn(async move {
            let service = service_fn(answer);
            let server = http2::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(far), service).await;
        });
        RunnerClient::connect(near).await.unwrap().0
    });
    let id: CommandId = "counted".parse().unwrap();
    let bytes = counted_channel(&runtime, &client, &id);
    assert_eq!(bytes, REQUESTS as u64 * FRAMES * FRAME_BYTES as u64);
}

/// A runner as far as this needs one.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.uri().path() {
        "/hello" => Bytes::from(serde_json::json!(hello()).to_string()),
        _ => frames(),
    };
    Ok(Response::new(Full::new(body)))
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL_VERSION,
        runner_version: "counted".to_owned(),
        epoch: "counted".to_owned(),
        started_at_ms: 0,
        workspace: sandbank_protocol::WORKSPACE.to_owned(),
    }
}

fn frames() -> Bytes {
    let data = Bytes::from(vec![b'x'; FRAME_BYTES]);
    let mut wire = BytesMut::new();
    for seq in 1..=FRAMES {
        let frame =
            Frame::Output { seq, time_ms: 0, stream: StreamKind::Stdout, data: data.clone() };
        let (head, rest) = frame.encode();
        wire.extend_from_slice(&head);
        wire.extend_from_slice(&rest.unwrap_or_default());
    }
    wire.freeze()
}
