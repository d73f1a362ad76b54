//! Calls from their input to their last update, with commands that say what a test has written.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::approval::Approver;
use crate::config::Config;
use crate::toolbox::last;
use crate::{Command, Ending, Opened, Piece, Provider, Sandbox, Tools};

/// Pieces of output and when they come, after the one before.
type Script = Vec<(u64, Piece)>;

/// A provider whose commands say what a test has written for them.
#[derive(Default)]
struct Stage {
    script: Mutex<Script>,
    kills: Arc<AtomicUsize>,
    /// How long a command takes to start.
    starting: Duration,
    /// Whether nobody can follow it any more after what it says.
    breaks: bool,
    /// What every file has.
    file: Option<Bytes>,
}

struct Actor {
    pieces: VecDeque<(u64, Piece)>,
    next_at: Option<Instant>,
    kills: Arc<AtomicUsize>,
    killed: bool,
    breaks: bool,
}

#[async_trait]
impl Command for Actor {
    async fn next(&mut self) -> Result<Piece, ToolError> {
        if self.killed {
            return Ok(Piece::Ended(Ending::Exited(137)));
        }
        let Some((pause, _)) = self.pieces.front() else {
            return match self.breaks {
                true => Err(ToolError::Unavailable("the connection broke".into())),
                false => std::future::pending().await,
            };
        };
        let at =
            *self.next_at.get_or_insert_with(|| Instant::now() + Duration::from_millis(*pause));
        tokio::time::sleep_until(at).await;
        self.next_at = None;
        Ok(self.pieces.pop_front().unwrap().1)
    }

    async fn kill(&mut self) -> Result<(), ToolError> {
        self.kills.fetch_add(1, Ordering::SeqCst);
        self.killed = true;
        Ok(())
    }
}

#[async_trait]
impl Sandbox for Arc<Stage> {
    fn id(&self) -> &str {
        "stage"
    }

    async fn start_with(
        &self,
        _: &str,
        _: BTreeMap<String, String>,
        _: Duration,
    ) -> Result<Box<dyn Command>, ToolError> {
        tokio::time::sleep(self.starting).await;
        let (pieces, kills) = (self.script.lock().unwrap().clone().into(), self.kills.clone());
        Ok(Box::new(Actor { pieces, next_at: None, kills, killed: false, breaks: self.breaks }))
    }

    async fn read_file(&self, _: &str, _: u64) -> Result<Bytes, ToolError> {
        Ok(self.file.clone().unwrap_or(Bytes::from_static(b"one two one")))
    }

    async fn write_file(&self, _: &str, content: Bytes) -> Result<(), ToolError> {
        *self.script.lock().unwrap() = vec![(0, Piece::Stdout(content))];
        Ok(())
    }

    async fn unpack(&self, _: BoxStream<'static, io::Result<Bytes>>) -> Result<(), ToolError> {
        Ok(())
    }

    async fn url(&self, _: u16) -> Result<String, ToolError> {
        Ok("http://0.0.0.0:1".into())
    }

    async fn stop(&self) -> Result<(), ToolError> {
        Ok(())
    }
}

#[async_trait]
impl Provider for Arc<Stage> {
    fn name(&self) -> &'static str {
        "stage"
    }

    async fn health(&self) -> Result<(), String> {
        Ok(())
    }

    async fn open(&self, _: &str) -> Result<Opened, ToolError> {
        Ok(Opened { sandbox: Arc::new(self.clone()), created: false })
    }
}

fn out(text: &str) -> Piece {
    Piece::Stdout(Bytes::copy_from_slice(text.as_bytes()))
}

fn stage(script: Script) -> (Arc<Stage>, Arc<dyn Toolbox>) {
    on(Stage { script: Mutex::new(script), ..Stage::default() })
}

fn on(stage: Stage) -> (Arc<Stage>, Arc<dyn Toolbox>) {
    let stage = Arc::new(stage);
    let tools = Tools::new(Config::default(), Arc::new(stage.clone()));
    (stage, tools.toolbox("s", Surface::Mcp, Some("x.example")).unwrap())
}

fn command() -> Value {
    json!({ "command": "whatever" })
}

/// Each update with the moment it came, in milliseconds.
async fn told(toolbox: &Arc<dyn Toolbox>) -> Vec<(u128, Value)> {
    let begin = Instant::now();
    let mut updates = toolbox.call("bash", command(), CancellationToken::new()).await.unwrap();
    let mut told = Vec::new();
    while let Some(update) = updates.recv().await {
        let value = match update {
            Update::Progress(value) | Update::Done(value) => value,
            other => panic!("{other:?}"),
        };
        told.push((begin.elapsed().as_millis(), value));
    }
    told
}

#[tokio::test(start_paused = true)]
async fn updates_come_at_once_then_by_time_or_by_amount() {
    let script = vec![
        (0, out("a")),
        (10, out("b")),
        (300, out("c")),
        (1, out(&"x".repeat(600))),
        (5, Piece::Ended(Ending::Exited(0))),
    ];
    let (_, toolbox) = stage(script);
    let told = told(&toolbox).await;
    let seen: Vec<_> = told
        .iter()
        .map(|(at, view)| (*at, view["stdout"].as_str().unwrap().len(), view["exitCode"].clone()))
        .collect();
    let wanted = vec![
        (0, 0, json!(-1)),
        (150, 2, json!(-1)),
        (310, 3, json!(-1)),
        (311, 603, json!(-1)),
        (316, 603, json!(0)),
    ];
    assert_eq!(seen, wanted);
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_told_apart_from_a_timeout() {
    let (stage, toolbox) = stage(vec![(10, out("begun"))]);
    let cancel = CancellationToken::new();
    let mut updates = toolbox.call("bash", command(), cancel.clone()).await.unwrap();
    updates.recv().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    cancel.cancel();
    let wanted = json!({
        "stdout": "begun", "stderr": "Command aborted.", "exitCode": 130,
        "untrusted": true,
    });
    assert_eq!(last(&mut updates).await, Ok(wanted));
    assert_eq!(stage.kills.load(Ordering::SeqCst), 1);

    // The sandbox never says that the time is over, so it is said here.
    let told = told(&toolbox).await;
    let (at, view) = told.last().unwrap();
    assert_eq!(
        (&view["exitCode"], &view["stderr"]),
        (&json!(124), &json!("Command timed out after 30000ms."))
    );
    assert_eq!((*at, stage.kills.load(Ordering::SeqCst)), (35_000, 2));
}

#[tokio::test(start_paused = true)]
async fn who_drops_the_updates_has_the_command_killed() {
    let (stage, toolbox) = stage(vec![(10, out("begun"))]);
    let mut updates = toolbox.call("bash", command(), CancellationToken::new()).await.unwrap();
    updates.recv().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.kills.load(Ordering::SeqCst), 0);
    drop(updates);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.kills.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_the_command_starts_has_it_killed_as_soon_as_it_runs() {
    let (stage, toolbox) = on(Stage { starting: Duration::from_secs(2), ..Stage::default() });
    let cancel = CancellationToken::new();
    let updates = toolbox.call("bash", command(), CancellationToken::new()).await.unwrap();
    let mut cancelled = toolbox.call("bash", command(), cancel.clone()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(updates);
    cancel.cancel();
    assert_eq!(last(&mut cancelled).await.unwrap()["exitCode"], 130);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.kills.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_cannot_be_followed_any_more_is_killed() {
    let script = Mutex::new(vec![(10, out("begun"))]);
    let (stage, toolbox) = on(Stage { script, breaks: true, ..Stage::default() });
    let error = toolbox.run("bash", command(), CancellationToken::new()).await;
    assert_eq!(error, Err(ToolError::Unavailable("the connection broke".into())));
    assert_eq!(stage.kills.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn who_takes_no_updates_still_gets_the_last_one() {
    let mut script: Script = (0..1_000).map(|_| (200, out("line\n"))).collect();
    script.push((0, Piece::Ended(Ending::Exited(4))));
    let (_, toolbox) = stage(script);
    let mut updates = toolbox.call("bash", command(), CancellationToken::new()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut count = 0;
    let last = loop {
        match updates.recv().await.unwrap() {
            Update::Progress(_) => count += 1,
            last => break last,
        }
    };
    assert!(count <= 100, "{count}");
    assert!(matches!(last, Update::Done(_)), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_nobody_can_speak_for_is_a_failure() {
    let (_, toolbox) = stage(vec![(0, Piece::Ended(Ending::Lost("the sandbox is gone".into())))]);
    let error = toolbox.run("bash", command(), CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().ends_with("the sandbox is gone"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_needs_a_text_that_is_there_once_or_all_of_them() {
    let (stage, toolbox) = stage(Vec::new());
    let edit = |input: Value| toolbox.run("editFile", input, CancellationToken::new());
    let twice = edit(json!({ "path": "f", "old": "one", "new": "1" })).await.unwrap_err();
    assert!(twice.to_string().contains("2 times"), "{twice}");
    let never = edit(json!({ "path": "f", "old": "three", "new": "3" })).await.unwrap_err();
    assert!(never.to_string().contains("is not in f"), "{never}");
    let once = edit(json!({ "path": "f", "old": "two", "new": "2" })).await.unwrap();
    assert_eq!(once, json!({ "success": true, "replaced": 1 }));
    assert_eq!(stage.script.lock().unwrap()[0].1, out("one 2 one"));
    let all = edit(json!({ "path": "f", "old": "one", "new": "1", "all": true })).await.unwrap();
    assert_eq!(all["replaced"], 2);
}

/// The text would have a tebibyte: where it is made, this test is killed.
#[tokio::test(start_paused = true)]
async fn an_edit_that_would_become_too_long_is_refused_before_its_text_is_made() {
    let file = Some(Bytes::from("x".repeat(1 << 20)));
    let (stage, toolbox) = on(Stage { file, ..Stage::default() });
    let edit = |new: String| {
        let input = json!({ "path": "f", "old": "x", "new": new, "all": true });
        toolbox.run("editFile", input, CancellationToken::new())
    };
    for new in ["y".repeat(1 << 20), "12345".to_owned()] {
        let error = edit(new).await.unwrap_err();
        assert_eq!(error, ToolError::InvalidInput("f would become too long".into()));
    }
    assert!(stage.script.lock().unwrap().is_empty(), "nothing was written");
    assert_eq!(edit("1234".to_owned()).await.unwrap()["replaced"], 1 << 20);
}

#[tokio::test(start_paused = true)]
async fn only_mcp_is_offered_all_of_them() {
    let (stage, all) = stage(Vec::new());
    let names = |toolbox: &Arc<dyn Toolbox>| -> Vec<_> {
        toolbox.tools().iter().map(|tool| tool.name).collect()
    };
    let four = ["bash", "readFile", "writeFile", "sandboxUrl"];
    assert_eq!(names(&all), [&four[..], &["editFile", "listFiles", "search"]].concat());
    let tools = Tools::new(Config::default(), Arc::new(stage));
    let chat = tools.toolbox("s", Surface::Chat, None).unwrap();
    assert_eq!(names(&chat), four);
    let error = chat.run("search", json!({ "pattern": "x" }), CancellationToken::new()).await;
    assert_eq!(error, Err(ToolError::UnknownTool("search".into())));
}

struct Never;

#[async_trait]
impl Approver for Never {
    async fn allow(&self, call: &Call<'_>) -> Result<(), ToolError> {
        match call.tool {
            "readFile" => Ok(()),
            _ => Err(ToolError::Denied(format!("{} is not allowed", call.tool))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_is_approved_before_it_is_made() {
    let stage = Arc::new(Stage::default());
    let provider = Arc::new(stage.clone());
    let tools = Tools::with(Config::default(), provider, None, Arc::new(Never));
    let toolbox = tools.toolbox("s", Surface::Http, None).unwrap();
    let write = json!({ "path": "f", "content": "x" });
    let denied = toolbox.run("writeFile", write, CancellationToken::new()).await;
    assert_eq!(denied, Err(ToolError::Denied("writeFile is not allowed".into())));
    assert!(stage.script.lock().unwrap().is_empty());
    let read = toolbox.run("readFile", json!({ "path": "f" }), CancellationToken::new()).await;
    assert_eq!(read.unwrap()["content"], "one two one");
}

/// Says yes to whatever is asked.
struct Kind;

#[async_trait]
impl Approver for Kind {
    async fn allow(&self, call: &Call<'_>) -> Result<(), ToolError> {
        (call.waiting)(json!({ "approval_id": "ta1" }));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_asked_about_is_told_that_it_was_allowed_before_anything_else() {
    let provider = Arc::new(Arc::new(Stage::default()));
    let tools = Tools::with(Config::default(), provider, None, Arc::new(Kind));
    let toolbox = tools.toolbox("s", Surface::Http, None).unwrap();
    let input = json!({ "path": "f" });
    let mut updates = toolbox.call("readFile", input, CancellationToken::new()).await.unwrap();
    assert!(matches!(updates.recv().await, Some(Update::Asked(_))));
    assert_eq!(updates.recv().await, Some(Update::Allowed));
    assert!(matches!(updates.recv().await, Some(Update::Done(_))));
}
