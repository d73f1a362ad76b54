//! The workspace of `/api`, over HTTP and WebSockets, in every place that it can have: a directory
//! of this machine, a sandbox of either engine, another machine. What is recorded is compared with
//! `golden.json`, so that it is the same everywhere, and stays so. What is drawn by chance, the
//! attacks on paths and what is kept are about a sandbox of whichever engine the tests are about.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kept;
mod places;
mod recorded;
mod settled;
mod withstands;

use std::path::{Path, PathBuf};

use serde_json::Value;

use places::Place;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// When this is set, what a directory answers is the new record.
const BLESS: &str = "SANDBANK_BLESS";

/// Says nothing by itself, and does what it is told.
const TERMINAL: &str =
    "bash,-c,stty -echo; echo ready; while read -r line; do eval \"$line\"; done";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workspace_modes/golden.json")
}

async fn heard(place: Place) -> anyhow::Result<Vec<Value>> {
    let heard = settled::settled(recorded::all(&place).await?, &place);
    place.end().await.map(|()| heard)
}

async fn is_as_recorded(place: Place) -> anyhow::Result<()> {
    let heard = heard(place).await?;
    let golden: Vec<Value> = serde_json::from_slice(&std::fs::read(golden())?)?;
    for (expected, heard) in golden.iter().zip(&heard) {
        assert_eq!(heard, expected, "left is what was heard");
    }
    assert_eq!(heard.len(), golden.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_this_machine_answers_as_recorded() -> anyhow::Result<()> {
    match Place::local().await? {
        Some(place) if std::env::var_os(BLESS).is_some() => {
            let heard = Value::Array(heard(place).await?);
            Ok(std::fs::write(golden(), format!("{heard:#}\n"))?)
        }
        Some(place) => is_as_recorded(place).await,
        None => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_of_the_native_engine_answers_as_recorded() -> anyhow::Result<()> {
    match Place::native().await? {
        Some(place) => is_as_recorded(place).await,
        None => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_in_docker_answers_as_recorded() -> anyhow::Result<()> {
    match Place::docker().await? {
        Some(place) => is_as_recorded(place).await,
        None => Ok(()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_machine_answers_as_recorded() -> anyhow::Result<()> {
    match Place::remote().await? {
        Some(place) => is_as_recorded(place).await,
        None => Ok(()),
    }
}
