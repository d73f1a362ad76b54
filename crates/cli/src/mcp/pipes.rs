//! Standard output: one message a line, and nothing else.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncWriteExt, Stdout};
use tokio::sync::Mutex;

use crate::failure::Failure;

#[derive(Clone)]
pub(crate) struct Output(Arc<Mutex<Stdout>>);

impl Default for Output {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(tokio::io::stdout())))
    }
}

impl Output {
    pub(crate) async fn write(&self, message: &Value) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(message).expect("plain data");
        line.push(b'\n');
        let mut out = self.0.lock().await;
        let written = async {
            out.write_all(&line).await?;
            out.flush().await
        };
        written.await.map_err(Failure::io("write to the host"))
    }
}
