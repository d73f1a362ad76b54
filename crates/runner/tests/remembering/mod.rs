//! Scripts for a shell that remembers, and what it said.

#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::atomic::{AtomicU64, Ordering};

use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandSpec, ShellStatus, ShellUse};

use crate::commanding::{Heard, run, spec};

pub(crate) fn script(shell: &str, text: &str) -> CommandSpec {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("s{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let shell = Some(ShellUse { name: shell.parse().unwrap(), merged: false, begin_in: None });
    CommandSpec { shell, timeout_ms: Some(60_000), ..spec(&name, &[text]) }
}

pub(crate) struct Said {
    pub(crate) heard: Heard,
    pub(crate) shell: ShellStatus,
}

impl Said {
    pub(crate) fn text(&self) -> String {
        self.heard.text()
    }

    pub(crate) fn cwd(&self) -> &str {
        self.shell.cwd.as_deref().unwrap_or_default()
    }
}

pub(crate) async fn evaluate(client: &RunnerClient, spec: &CommandSpec) -> Said {
    let heard = run(client, spec).await;
    let shell = client.command(&spec.id).await.unwrap().shell.unwrap();
    Said { heard, shell }
}

pub(crate) async fn say(client: &RunnerClient, text: &str) -> Said {
    evaluate(client, &script("main", text)).await
}
