//! Who has a sandbox, for how long, and when it is filled; with sandboxes that are only names.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::*;
use crate::limits::UPDATE_INTERVAL;
use crate::{Command, Opened};

/// Sandboxes that are only names; what happens to them is written down.
#[derive(Default)]
struct Book {
    events: Lock<Vec<String>>,
    /// Sessions that have one, with whether its marker is there.
    living: Lock<HashMap<String, Arc<AtomicBool>>>,
    opening: AtomicUsize,
    /// The most that lived at a time.
    peak: AtomicUsize,
    takes: Duration,
    /// How much longer it takes to end one.
    lingers: Duration,
}

impl Book {
    fn note(&self, event: String) {
        self.events.lock().unwrap().push(event);
    }

    fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    fn living(&self) -> Vec<String> {
        let mut names: Vec<_> = self.living.lock().unwrap().keys().cloned().collect();
        names.sort();
        names
    }
}

struct Paper {
    book: Arc<Book>,
    session: String,
    marked: Arc<AtomicBool>,
}

#[async_trait]
impl Sandbox for Paper {
    fn id(&self) -> &str {
        &self.session
    }

    async fn start_with(
        &self,
        _: &str,
        _: BTreeMap<String, String>,
        _: Duration,
    ) -> Result<Box<dyn Command>, ToolError> {
        Err(ToolError::Failed("paper runs nothing".into()))
    }

    async fn read_file(&self, _: &str, _: u64) -> Result<Bytes, ToolError> {
        match self.marked.load(Ordering::SeqCst) {
            true => Ok(Bytes::new()),
            false => Err(ToolError::NotFound("no marker".into())),
        }
    }

    async fn write_file(&self, path: &str, _: Bytes) -> Result<(), ToolError> {
        assert_eq!(path, MARKER);
        self.marked.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn unpack(&self, _: BoxStream<'static, io::Result<Bytes>>) -> Result<(), ToolError> {
        Ok(())
    }

    async fn url(&self, _: u16) -> Result<String, ToolError> {
        Err(ToolError::Failed("paper has no ports".into()))
    }

    async fn is_alive(&self) -> bool {
        self.book.living.lock().unwrap().contains_key(&self.session)
    }

    async fn stop(&self) -> Result<(), ToolError> {
        self.book.close(&self.session).await
    }
}

#[async_trait]
impl Provider for Arc<Book> {
    fn name(&self) -> &'static str {
        "book"
    }

    async fn health(&self) -> Result<(), String> {
        Ok(())
    }

    async fn open(&self, session: &str) -> Result<Opened, ToolError> {
        self.opening.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        let (marked, created) = {
            let mut living = self.living.lock().unwrap();
            let created = !living.contains_key(session);
            let marked = living.entry(session.to_owned()).or_default().clone();
            self.peak.fetch_max(living.len(), Ordering::SeqCst);
            (marked, created)
        };
        if created {
            self.note(format!("made {session}"));
        }
        let paper = Paper { book: self.clone(), session: session.to_owned(), marked };
        Ok(Opened { sandbox: Arc::new(paper), created })
    }

    async fn sessions(&self) -> Vec<String> {
        self.as_ref().living()
    }

    async fn close(&self, session: &str) -> Result<(), ToolError> {
        tokio::time::sleep(self.takes + self.lingers).await;
        if self.living.lock().unwrap().remove(session).is_some() {
            self.note(format!("ended {session}"));
        }
        Ok(())
    }
}

/// Fails as often as it is told to.
#[derive(Default)]
struct Filler {
    calls: AtomicUsize,
    failures: AtomicUsize,
}

#[async_trait]
impl Seed for Filler {
    async fn fill(&self, _: &dyn Sandbox, progress: Progress<'_>) -> Result<(), ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        for percent in 0..100 {
            progress(&format!("{percent} %"));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let left = self.failures.load(Ordering::SeqCst);
        if left == 0 {
            return Ok(());
        }
        self.failures.store(left - 1, Ordering::SeqCst);
        Err(ToolError::Unavailable("the repository does not answer".into()))
    }
}

/// Never comes to an end.
struct Endless;

#[async_trait]
impl Seed for Endless {
    async fn fill(&self, _: &dyn Sandbox, _: Progress<'_>) -> Result<(), ToolError> {
        std::future::pending().await
    }
}

impl Sessions {
    async fn get(self: &Arc<Self>, session: &str) -> Result<InUse, ToolError> {
        self.get_telling(session, &|_| {}).await
    }
}

fn sessions(book: &Arc<Book>, seed: Option<Arc<dyn Seed>>) -> Arc<Sessions> {
    let config = Config { idle_ttl: Duration::from_secs(60), ..Config::default() };
    Arc::new(Sessions::new(&config, Arc::new(book.clone()), seed))
}

fn book() -> Arc<Book> {
    Arc::new(Book { takes: Duration::from_millis(10), ..Book::default() })
}

#[tokio::test(start_paused = true)]
async fn many_calls_of_a_session_at_once_have_one_sandbox() {
    let book = book();
    let sessions = sessions(&book, None);
    let calls = (0..50).map(|_| sessions.get("a"));
    let held = futures_util::future::join_all(calls).await;
    assert!(held.iter().all(Result::is_ok));
    assert_eq!(
        (book.events(), book.opening.load(Ordering::SeqCst)),
        (vec!["made a".to_owned()], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn the_one_used_least_makes_room_and_a_busy_one_never_does() {
    let book = book();
    let sessions = sessions(&book, None);
    let a = sessions.get("a").await.unwrap();
    drop(sessions.get("b").await.unwrap());
    tokio::time::advance(Duration::from_secs(1)).await;
    drop(sessions.get("c").await.unwrap());
    assert_eq!(book.living(), ["a", "c"]);
    let c = sessions.get("c").await.unwrap();
    let error = sessions.get("d").await.err().unwrap();
    assert!(error.to_string().contains("all 2 sandboxes of the tools are busy"), "{error}");
    assert_eq!(book.living(), ["a", "c"]);
    let waiting = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.get("d").await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!waiting.is_finished());
    drop(a);
    waiting.await.unwrap().unwrap();
    assert_eq!(book.living(), ["c", "d"]);
    drop(c);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_than_allowed_also_while_one_makes_room_or_is_reset() {
    let book = book();
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    drop(sessions.get("b").await.unwrap());
    let calls = ["c", "c", "c", "d", "c"].map(|session| sessions.get(session));
    let got = futures_util::future::join_all(calls).await;
    assert!(got.iter().all(Result::is_ok));
    drop(got);
    assert_eq!(book.living(), ["c", "d"]);
    let (reset, got) = tokio::join!(sessions.reset("c"), async {
        tokio::task::yield_now().await;
        sessions.get("e").await.map(drop)
    });
    reset.unwrap();
    got.unwrap();
    assert_eq!(book.living(), ["d", "e"], "the one that was reset made the room");
    assert_eq!(book.peak.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_another_sandbox_than_before_is_told_once_unless_it_asked_for_it() {
    let book = book();
    let sessions = sessions(&book, None);
    // As a call that is told does.
    let is_news = async |session: &str| {
        let held = sessions.get(session).await.unwrap();
        let is_news = held.is_news();
        held.set_told();
        is_news
    };
    for session in ["a", "b", "c"] {
        assert!(!is_news(session).await, "it has none before");
    }
    assert!(is_news("a").await, "it made room");
    assert!(!is_news("a").await, "it was told");
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert!(is_news("a").await, "nobody used it for long");
    book.living.lock().unwrap().clear();
    assert!(is_news("a").await, "it ended by itself");
    sessions.reset("a").await.unwrap();
    sessions.reset("b").await.unwrap();
    assert!(!is_news("a").await && !is_news("b").await, "that is what they asked for");
}

#[tokio::test(start_paused = true)]
async fn nobody_makes_room_for_a_sandbox_that_is_opened_ahead() {
    let book = book();
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    sessions.prewarm("b");
    sessions.prewarm("c");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(book.events(), ["made a", "made b"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_with_fewer_allowed_all_that_are_too_many_make_room() {
    let book = book();
    for session in ["a", "b", "c", "d", "e"] {
        book.living.lock().unwrap().insert(session.to_owned(), Arc::default());
    }
    let sessions = sessions(&book, None);
    let busy = sessions.get("a").await.unwrap();
    drop(sessions.get("new").await.unwrap());
    assert_eq!(book.living(), ["a", "new"]);
    drop(busy);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_sandbox_that_does_not_end_is_told_so() {
    let book = Arc::new(Book { lingers: Duration::from_secs(40), ..Book::default() });
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    drop(sessions.get("b").await.unwrap());
    let ending = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.reset("a").await }
    });
    tokio::task::yield_now().await;
    let refused = async |session| sessions.get(session).await.err().unwrap().to_string();
    let (own, other) = tokio::join!(refused("a"), refused("c"));
    assert!(own.contains("that this session had is still being ended"), "{own}");
    assert!(other.contains("that makes room for this session is still being ended"), "{other}");
    ending.await.unwrap().unwrap();
    drop(sessions.get("a").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn idle_time_begins_anew_with_every_use_and_never_for_a_busy_one() {
    let book = book();
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    let busy = sessions.get("b").await.unwrap();
    tokio::time::sleep(Duration::from_secs(59)).await;
    drop(sessions.get("a").await.unwrap());
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(book.living(), ["a", "b"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(book.living(), ["b"]);
    drop(busy);
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert!(book.living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_ended_by_itself_is_made_again() {
    let book = book();
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    book.living.lock().unwrap().clear();
    drop(sessions.get("a").await.unwrap());
    assert_eq!(book.events(), ["made a", "made a"]);
}

#[tokio::test(start_paused = true)]
async fn those_of_an_earlier_daemon_are_found_counted_and_ended() {
    let book = book();
    for session in ["old", "older"] {
        book.living.lock().unwrap().insert(session.to_owned(), Arc::default());
    }
    let sessions = sessions(&book, None);
    drop(sessions.get("old").await.unwrap());
    drop(sessions.get("new").await.unwrap());
    assert_eq!(book.living(), ["new", "old"]);
    assert_eq!(book.events(), ["ended older", "made new"]);
}

#[tokio::test(start_paused = true)]
async fn a_workspace_is_filled_once_and_where_that_did_not_come_to_its_end_there_is_a_new_one() {
    let book = book();
    let filler = Arc::new(Filler::default());
    let first = sessions(&book, Some(filler.clone()));
    drop(first.get("a").await.unwrap());
    drop(first.get("a").await.unwrap());
    assert_eq!(filler.calls.load(Ordering::SeqCst), 1);
    let after_restart = sessions(&book, Some(filler.clone()));
    drop(after_restart.get("a").await.unwrap());
    assert_eq!(filler.calls.load(Ordering::SeqCst), 1);
    // As after a crash between the create and the end of the filling, or where somebody removed it.
    book.living.lock().unwrap()["a"].store(false, Ordering::SeqCst);
    let after_crash = sessions(&book, Some(filler.clone()));
    drop(after_crash.get("a").await.unwrap());
    assert_eq!(filler.calls.load(Ordering::SeqCst), 2);
    assert_eq!(book.events(), ["made a", "ended a", "made a"], "the old one was filled");
}

#[tokio::test(start_paused = true)]
async fn a_workspace_that_cannot_be_filled_gives_no_tools_and_leaves_nothing() {
    let book = book();
    let filler = Arc::new(Filler::default());
    filler.failures.store(1, Ordering::SeqCst);
    let sessions = sessions(&book, Some(filler));
    let error = sessions.get("a").await.err().unwrap();
    assert_eq!(error.to_string(), "the repository does not answer");
    assert!(book.living().is_empty());
    drop(sessions.get("a").await.unwrap());
    assert_eq!(book.events(), ["made a", "ended a", "made a"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_reset_while_it_waits_for_room_has_a_sandbox_that_ends() {
    let book = book();
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    drop(sessions.get("b").await.unwrap());
    let (got, reset) = tokio::join!(sessions.get("c"), async {
        tokio::task::yield_now().await;
        sessions.reset("c").await
    });
    reset.unwrap();
    drop(got.unwrap());
    assert_eq!(book.living(), ["b", "c"]);
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert!(book.living().is_empty(), "{:?}", book.living());
}

#[tokio::test(start_paused = true)]
async fn two_resets_of_a_session_that_is_being_filled_end_nothing_that_comes_after_them() {
    let book = book();
    let sessions = sessions(&book, Some(Arc::new(Filler::default())));
    let again = |sessions: &Arc<Sessions>| {
        let sessions = sessions.clone();
        tokio::spawn(async move { sessions.get("a").await.map(drop) })
    };
    let _filling = again(&sessions);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let first = {
        let sessions = sessions.clone();
        tokio::spawn(async move { sessions.reset("a").await })
    };
    tokio::time::sleep(Duration::from_millis(10)).await;
    sessions.reset("a").await.unwrap();
    again(&sessions).await.unwrap().unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(book.living(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_reset_does_not_wait_for_a_workspace_that_is_being_filled() {
    let book = book();
    let sessions = sessions(&book, Some(Arc::new(Endless)));
    let filling = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.get("a").await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(book.living(), ["a"]);
    let reset = tokio::time::timeout(Duration::from_secs(1), sessions.reset("a"));
    reset.await.expect("it waits for nothing").unwrap();
    assert!(book.living().is_empty());
    let error = filling.await.unwrap().unwrap_err();
    assert!(
        error.to_string().contains("was reset while its workspace was being filled"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn filling_that_takes_too_long_is_given_up_and_leaves_nothing() {
    let book = book();
    let sessions = sessions(&book, Some(Arc::new(Endless)));
    let (begin, most) = (Instant::now(), Config::default().sandbox.timeout);
    let error = sessions.get("a").await.err().unwrap();
    assert!(error.to_string().contains("took longer than 900 s"), "{error}");
    assert!(matches!(error, ToolError::Unavailable(_)));
    assert!(begin.elapsed() >= most && begin.elapsed() < most + Duration::from_secs(60));
    assert!(book.living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_told_how_far_the_filling_is_and_not_too_often() {
    let book = book();
    let sessions = sessions(&book, Some(Arc::new(Filler::default())));
    let heard = [(); 2].map(|()| Lock::new(Vec::new()));
    let told = |at: usize| {
        let heard = &heard[at];
        move |line: &str| heard.lock().unwrap().push((Instant::now(), line.to_owned()))
    };
    let (first, second) = (told(0), told(1));
    let (one, two) =
        tokio::join!(sessions.get_telling("a", &first), sessions.get_telling("a", &second));
    assert!(one.is_ok() && two.is_ok());
    for heard in &heard {
        let heard = heard.lock().unwrap();
        assert_eq!(heard[0].1, "0 %");
        assert!((6..=9).contains(&heard.len()), "a second has so many pauses: {heard:?}");
        let (last, others) = heard.split_last().unwrap();
        assert!(others.windows(2).all(|two| two[1].0 - two[0].0 >= UPDATE_INTERVAL), "{heard:?}");
        assert_eq!(last.1, "99 %");
    }
    let silent = Lock::new(0);
    drop(sessions.get_telling("a", &|_| *silent.lock().unwrap() += 1).await.unwrap());
    assert_eq!(*silent.lock().unwrap(), 0, "it is filled");
    assert_eq!((sessions.seeds.read(), sessions.count()), ([("done", 1)].into(), 1));
}

#[tokio::test(start_paused = true)]
async fn after_a_reset_there_is_a_new_one_even_for_who_comes_meanwhile() {
    let book = book();
    let sessions = sessions(&book, None);
    drop(sessions.get("a").await.unwrap());
    let (reset, got) = tokio::join!(sessions.reset("a"), async {
        tokio::task::yield_now().await;
        sessions.get("a").await.map(drop)
    });
    reset.unwrap();
    got.unwrap();
    assert_eq!(book.events(), ["made a", "ended a", "made a"]);
    sessions.reset("never-was").await.unwrap();
}
