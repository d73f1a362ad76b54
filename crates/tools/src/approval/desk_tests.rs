//! Questions and their ends, over a real store.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use sandbank_store::{ApprovalOutcome, Store, ToolApprovalRow};

const LONG: Duration = Duration::from_secs(60);

async fn desk(directory: &Path, patience: Duration) -> std::sync::Arc<Desk> {
    let store = Store::open(&directory.join("sandbank.db")).await.unwrap();
    Desk::new(store, patience)
}

type Asking = tokio::task::JoinHandle<Result<ApprovalOutcome, DeskError>>;

/// A call that waits, and what a person sees of it.
fn ask(desk: &std::sync::Arc<Desk>, command: &str) -> (Asking, ToolApprovalRow) {
    ask_in(desk, "chat:1", command)
}

fn ask_in(desk: &std::sync::Arc<Desk>, session: &str, command: &str) -> (Asking, ToolApprovalRow) {
    let (tell, told) = mpsc::channel();
    let (desk, input) = (desk.clone(), json!({ "command": command }));
    let session = session.to_owned();
    let asking = tokio::spawn(async move {
        let question = Question { session: &session, tool: "bash", input: &input, rule: "rule 1" };
        desk.ask(question, &move |row| tell.send(row.clone()).unwrap()).await
    });
    (asking, told.recv_timeout(LONG).unwrap())
}

async fn until_ended(desk: &Desk, id: &str) -> ToolApprovalRow {
    let deadline = Instant::now() + LONG;
    loop {
        let row = desk.find(id).await.unwrap().unwrap();
        if row.outcome != ApprovalOutcome::Waiting {
            return row;
        }
        assert!(Instant::now() < deadline, "it still waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_allows_or_denies_once_and_it_is_kept_who_did() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), LONG).await;
    for (answer, outcome) in
        [(Answer::Allow, ApprovalOutcome::Allowed), (Answer::Deny, ApprovalOutcome::Denied)]
    {
        let (asking, row) = ask(&desk, "git push");
        assert_eq!(row.digest, digest("chat:1", "bash", &json!({ "command": "git push" })));
        let decided = desk.decide(&row.id, answer, &row.digest, "alice").await.unwrap();
        assert_eq!((decided.outcome, decided.decided_by.as_deref()), (outcome, Some("alice")));
        assert!(decided.decided_at_ms.unwrap() >= row.asked_at_ms);
        assert_eq!(asking.await.unwrap().unwrap(), outcome);
        for again in [Answer::Allow, Answer::Deny] {
            let error = desk.decide(&row.id, again, &row.digest, "bob").await.unwrap_err();
            assert!(matches!(error, DeskError::Ended(before) if before == outcome), "{error}");
        }
        let kept = desk.find(&row.id).await.unwrap().unwrap();
        assert_eq!((kept.outcome, kept.decided_by.as_deref()), (outcome, Some("alice")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_about_other_bytes_is_refused_and_the_question_still_waits() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), LONG).await;
    let (asking, row) = ask(&desk, "git push");
    let others = [
        digest("chat:1", "bash", &json!({ "command": "git push --force" })),
        digest("chat:2", "bash", &json!({ "command": "git push" })),
        String::new(),
    ];
    for other in others {
        let error = desk.decide(&row.id, Answer::Allow, &other, "alice").await.unwrap_err();
        assert!(matches!(error, DeskError::OtherDigest), "{error}");
    }
    let error = desk.decide("nobody", Answer::Allow, &row.digest, "alice").await.unwrap_err();
    assert!(matches!(error, DeskError::NotFound), "{error}");
    assert!(!asking.is_finished());
    desk.decide(&row.id, Answer::Allow, &row.digest, "alice").await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), ApprovalOutcome::Allowed);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_in_time_and_that_is_a_no() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), Duration::from_millis(50)).await;
    let (asking, row) = ask(&desk, "git push");
    assert_eq!(asking.await.unwrap().unwrap(), ApprovalOutcome::Expired);
    let error = desk.decide(&row.id, Answer::Allow, &row.digest, "alice").await.unwrap_err();
    assert!(matches!(error, DeskError::Ended(ApprovalOutcome::Expired)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_goes_away_withdraws_the_question() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), LONG).await;
    let (asking, row) = ask(&desk, "git push");
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert_eq!(until_ended(&desk, &row.id).await.outcome, ApprovalOutcome::Withdrawn);
    let error = desk.decide(&row.id, Answer::Allow, &row.digest, "alice").await.unwrap_err();
    assert!(error.to_string().contains("went away"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_when_the_server_ended_is_never_allowed_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("sandbank.db")).await.unwrap();
    let first = Desk::new(store.clone(), LONG);
    let (asking, row) = ask(&first, "git push");
    // As after a kill: nothing of the first one gets to say anything.
    let second = Desk::new(store, LONG);
    let error = second.decide(&row.id, Answer::Allow, &row.digest, "alice").await.unwrap_err();
    assert!(matches!(error, DeskError::Ended(ApprovalOutcome::Abandoned)), "{error}");
    assert!(error.to_string().contains("restarted"), "{error}");
    assert!(!asking.is_finished());
    asking.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_bounded_in_number_and_size() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), LONG).await;
    let input = json!({});
    let question = Question { session: "s", tool: "bash", input: &input, rule: "r" };
    let mut open: Vec<_> = (0..limits::MAX_WAITING_OF_SESSION)
        .map(|number| ask_in(&desk, "s", &number.to_string()))
        .collect();
    let error = desk.ask(question, &|_| {}).await.unwrap_err();
    assert!(matches!(error, DeskError::TooManyOfSession), "{error}");
    open.extend(
        (open.len()..limits::MAX_WAITING)
            .map(|number| ask_in(&desk, &(number / 8).to_string(), &number.to_string())),
    );
    let error = desk.ask(question, &|_| {}).await.unwrap_err();
    assert!(matches!(error, DeskError::TooMany), "{error}");
    for (asking, row) in open {
        desk.decide(&row.id, Answer::Deny, &row.digest, "alice").await.unwrap();
        assert_eq!(asking.await.unwrap().unwrap(), ApprovalOutcome::Denied);
    }
    let large = json!({ "content": "x".repeat(limits::MAX_QUESTION_BYTES) });
    let error = desk.ask(Question { input: &large, ..question }, &|_| {}).await.unwrap_err();
    assert!(matches!(error, DeskError::TooLarge), "{error}");
    desk.note_denied(Question { input: &large, ..question }).await.unwrap();
    let kept = desk.list(1_000).await.unwrap();
    assert!(kept.iter().any(|row| row.digest == digest("s", "bash", &large)));
    let (asking, row) = ask(&desk, "one more");
    desk.decide(&row.id, Answer::Allow, &row.digest, "alice").await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), ApprovalOutcome::Allowed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_input_is_kept_as_long_as_it_is_asked_about_and_then_its_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), LONG).await;
    let long = "\"x".repeat(50_000);
    let (asking, row) = ask(&desk, &long);
    assert_eq!(desk.find(&row.id).await.unwrap().unwrap().input, json!({ "command": long }));
    desk.decide(&row.id, Answer::Deny, &row.digest, "alice").await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), ApprovalOutcome::Denied);
    let input = json!({ "command": long });
    let question = Question { session: "s", tool: "bash", input: &input, rule: "r" };
    desk.note_denied(question).await.unwrap();
    for kept in desk.list(10).await.unwrap() {
        assert!(kept.input.to_string().len() < 10_000, "{}", kept.input.to_string().len());
        let clipped = kept.input["clipped"].as_str().unwrap();
        assert!(input.to_string().starts_with(clipped), "{clipped}");
        assert_eq!(kept.digest, digest(&kept.session, "bash", &input));
    }
}
