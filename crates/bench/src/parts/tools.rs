//! The first call of a model's tool after the server's start, and the ones that follow.

use std::ffi::OsString;
use std::time::Instant;

use super::{Run, turns};
use crate::daemon::{EngineChoice, PrivateDaemon};
use crate::peers::docker::Kind;
use crate::report::{Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;

const FIRST: &str = "first call";
const NEXT: &str = "next call";
const FIRST_GOAL_MS: f64 = 50.0;
const DOCKER: &str = "Docker, container and exec";

const SETTINGS: &str = "[app.bash_tools]\nenabled = true\n";

/// Room for the sandbox of the tools, and for those that a daemon tests itself with.
const SANDBOXES: usize = 16;

const COMMAND: &str = "echo ok";

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    run.progress.begin("tools", 2 * run.scale.long_rounds);
    let mut samples = Samples::default();
    for round in 0..run.scale.long_rounds {
        for who in turns(&[SUBJECT, DOCKER], round) {
            match *who {
                SUBJECT => ours(run, &mut samples).await?,
                _ => theirs(run, &mut samples).await?,
            }
            run.progress.step();
        }
    }
    let mut section = Section::new("Tools", METHOD.to_owned());
    section.series = samples.into_series();
    if let Some(p50) = section.median(FIRST, SUBJECT) {
        let goal = Goal::AtMost(FIRST_GOAL_MS);
        section.figure(FIRST.to_owned(), p50, Unit::Milliseconds, goal);
    }
    section.compare(FIRST, SUBJECT, DOCKER, None);
    section.compare(NEXT, SUBJECT, DOCKER, None);
    Ok(section)
}

const METHOD: &str = "\
    A daemon on an empty data directory, as it is configured by default; as soon as it says that it is \
    healthy, `POST /api/tools/bash` with `echo ok` in a session that nobody has used: its gates are \
    judged, its sandbox is had, and the command runs in a fresh shell. Then the same again, several \
    times. A model's own time is not in it. Docker's is a container made and started and one exec in it, \
    and then execs.";

async fn ours(run: &Run<'_>, samples: &mut Samples) -> anyhow::Result<()> {
    let file = tempfile::Builder::new().prefix("sandbank-bench-").suffix(".toml").tempfile()?;
    std::fs::write(file.path(), SETTINGS)?;
    let settings: [(&str, OsString); 2] =
        [("SANDBANK_CONFIG", file.path().into()), ("REMCOCHAT_ENABLE_BASH_TOOL", "1".into())];
    let engine = EngineChoice::Native;
    let daemon = PrivateDaemon::start_with(run.binary, engine, SANDBOXES, &settings, None).await?;
    let called = call(run, &daemon, samples).await;
    daemon.finish().await?;
    called
}

async fn call(run: &Run<'_>, daemon: &PrivateDaemon, samples: &mut Samples) -> anyhow::Result<()> {
    for number in 0..=run.scale.in_a_row {
        let begin = Instant::now();
        let result = daemon.api.call_bash(COMMAND).await?;
        let took = begin.elapsed();
        let right = result["exitCode"] == 0 && result["stdout"].as_str() == Some("ok");
        anyhow::ensure!(right, "the tool answered {result}");
        samples.add_time(if number == 0 { FIRST } else { NEXT }, SUBJECT, took);
    }
    Ok(())
}

async fn theirs(run: &Run<'_>, samples: &mut Samples) -> anyhow::Result<()> {
    let Some(docker) = run.peers.docker() else { return Ok(()) };
    let begin = Instant::now();
    let container = docker.create(Kind::Host).await?;
    docker.exec(&container, &["bash", "-c", COMMAND]).await?;
    samples.add_time(FIRST, DOCKER, begin.elapsed());
    for _ in 0..run.scale.in_a_row {
        let begin = Instant::now();
        docker.exec(&container, &["bash", "-c", COMMAND]).await?;
        samples.add_time(NEXT, DOCKER, begin.elapsed());
    }
    docker.remove(&container).await
}
