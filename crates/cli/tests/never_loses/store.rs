//! The database on a file system that is full, read-only, or held by somebody else: newcomers are
//! refused with a name and a time to try again, running sandboxes go on, nothing is half there,
//! and all of it ends when the trouble does.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbank_test_support::{Api, TestDaemon, eventually, skip_unless_root};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

use crate::SANDBANK;
use crate::objects::{SETTLED, agree};
use crate::small_disk::{FragileDisk, SmallDisk};

const DATABASE: &str = "sandbank.db";
const LOCK_HELD: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_database_is_told_and_survived() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let disk = SmallDisk::mount()?;
    let mut daemon = over(disk.path()).await?;
    let api = daemon.api()?;
    let (old, doomed) = (api.create("old").await?, api.create("doomed").await?);
    let counting = api.bash(&old, "for i in $(seq 200); do echo line $i; sleep 0.01; done; exit 7");
    let counting = counting.await?;
    let mut known = BTreeSet::from([old.clone()]);
    disk.fill()?;

    let refusal = refused(&api, &mut known).await?;
    ensure!(refusal.status == 507 && refusal.code == "store_full", "{refusal:?}");
    works(&api, &old).await?;
    // Its row cannot be closed, but it is gone.
    api.stop(&doomed).await?;
    ensure!(api.wait(&old, &counting).await? == 7, "a running command has another ending");

    disk.free()?;
    known.insert(recovered(&api).await?);
    // What could be deleted while nothing could be written is deleted.
    exactly(&daemon, &api, &known).await?;
    daemon.terminate().await?;
    sound(&disk.path().join(DATABASE)).await?;
    daemon.launch().await?;
    exactly(&daemon, &api, &known).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_locked_for_ten_seconds_is_told_and_survived() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let old = api.create("old").await?;
    let mut known = BTreeSet::from([old.clone()]);
    let database = daemon.data_dir().join(DATABASE);
    let mut other = connect(&database).await?;
    sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut other).await?;
    let held_until = Instant::now() + LOCK_HELD;

    let refusal = refused(&api, &mut known).await?;
    ensure!(refusal.status == 503 && refusal.code == "store_locked", "{refusal:?}");
    eventually("the lock to be given back", SETTLED, || async {
        works(&api, &old).await.expect("a running sandbox goes on");
        (Instant::now() > held_until).then_some(())
    })
    .await?;
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await?;
    other.close().await?;

    known.insert(recovered(&api).await?);
    exactly(&daemon, &api, &known).await?;
    daemon.terminate().await?;
    sound(&database).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_turns_read_only_is_told_and_survived() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut disk = FragileDisk::mount()?;
    let mut daemon = over(&disk.path()).await?;
    let api = daemon.api()?;
    let old = api.create("old").await?;
    let mut known = BTreeSet::from([old.clone()]);
    disk.break_down()?;

    let refusal = refused(&api, &mut known).await?;
    ensure!(refusal.status == 503 && refusal.code.starts_with("store_"), "{refusal:?}");
    works(&api, &old).await?;

    // Such a file system is repaired unmounted, so without a daemon on it.
    daemon.kill_9()?;
    disk.repair()?;
    daemon.launch().await?;
    known.insert(recovered(&api).await?);
    exactly(&daemon, &api, &known).await?;
    works(&api, &old).await?;
    daemon.terminate().await?;
    sound(&disk.path().join(DATABASE)).await?;
    daemon.finish().await
}

/// A daemon whose database alone is on another file system.
async fn over(disk: &Path) -> anyhow::Result<TestDaemon> {
    let mut daemon = TestDaemon::prepare(SANDBANK, &[("SANDBANK_POOL_SIZE", "1")])?;
    std::os::unix::fs::symlink(disk.join(DATABASE), daemon.data_dir().join(DATABASE))?;
    daemon.launch().await?;
    Ok(daemon)
}

#[derive(Debug)]
struct Refusal {
    status: u16,
    code: String,
}

/// Creates until one is refused; those that are not are known. A refusal says when to try again.
async fn refused(api: &Api, known: &mut BTreeSet<String>) -> anyhow::Result<Refusal> {
    for number in 0..200 {
        let body = json!({ "sessionKey": format!("new {number}"), "network": { "mode": "none" } });
        let response = api.request("POST", "/v1/sandboxes").json(&body).send().await?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after").cloned();
        let answer: Value = response.json().await?;
        if let (200.., Some(id)) = (status, answer["sandboxId"].as_str()) {
            known.insert(id.to_owned());
            continue;
        }
        let seconds: u64 = retry_after
            .with_context(|| format!("no Retry-After: {status} {answer}"))?
            .to_str()?
            .parse()?;
        ensure!(seconds > 0 && answer["retryable"] == true, "{answer}");
        let code = answer["code"].as_str().context("no code")?.to_owned();
        return Ok(Refusal { status, code });
    }
    anyhow::bail!("nobody was refused")
}

/// Nothing half-made, and nothing lost.
async fn exactly(daemon: &TestDaemon, api: &Api, known: &BTreeSet<String>) -> anyhow::Result<()> {
    let found = agree(daemon, api).await?;
    ensure!(found == *known, "{found:?} instead of {known:?}");
    Ok(())
}

async fn works(api: &Api, id: &str) -> anyhow::Result<()> {
    let (code, out, err) = api.run(id, "echo works > file && cat file").await?;
    ensure!((code, out.as_str()) == (0, "works\n"), "{code} {out} {err}");
    Ok(())
}

async fn recovered(api: &Api) -> anyhow::Result<String> {
    eventually("a newcomer to be let in", SETTLED, || async { api.create("after").await.ok() })
        .await
}

async fn connect(database: &Path) -> anyhow::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(database);
    Ok(SqliteConnection::connect_with(&options).await?)
}

async fn sound(database: &Path) -> anyhow::Result<()> {
    let mut connection = connect(database).await?;
    let answer: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await?;
    ensure!(answer == "ok", "integrity_check: {answer}");
    Ok(connection.close().await?)
}
