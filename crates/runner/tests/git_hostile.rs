//! Repositories whose settings name programs: whoever looks runs none of them, and what a change
//! starts does not outlive its request.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;
mod repositories;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use commanding::fault_code;
use live_runner::{LiveRunner, wait_for};
use repositories::{command, commit, git, repository, write};
use sandbank_channel::{DiffQuery, LogQuery, RunnerClient, StatusQuery};
use sandbank_protocol::{FaultCode, GitPaths};

/// A program that leaves a mark.
struct Hostile {
    _directory: tempfile::TempDir,
    program: PathBuf,
    mark: PathBuf,
}

impl Hostile {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (program, mark) = (directory.path().join("program"), directory.path().join("mark"));
        executable(&program, &format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n", mark.display()));
        Self { _directory: directory, program, mark }
    }

    fn program(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// Whether it ran since it was last asked.
    fn ran(&self) -> bool {
        std::fs::remove_file(&self.mark).is_ok()
    }
}

fn executable(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// All that only looks, whatever comes of it.
async fn look(client: &RunnerClient) -> Vec<bool> {
    let status = StatusQuery { untracked: Some("all".into()), ignored: true, ..Default::default() };
    let mut answers = vec![client.git_status(&status).await.is_ok()];
    let from = |from: Option<&str>, to: Option<&str>, staged| DiffQuery {
        staged,
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
        ..Default::default()
    };
    for query in [
        from(None, None, false),
        from(None, None, true),
        from(Some("HEAD"), None, false),
        from(Some("HEAD~1"), Some("HEAD"), false),
    ] {
        answers.push(client.git_diff(&query).await.is_ok());
    }
    answers.push(client.git_show("a.txt", None).await.is_ok());
    answers.push(client.git_log(&LogQuery::default()).await.is_ok());
    let log = LogQuery { path: "a.txt".into(), ..Default::default() };
    answers.push(client.git_log(&log).await.is_ok());
    answers.push(client.git_branches("").await.is_ok());
    answers
}

/// A repository in which everything differs, so that Git has reasons to look at contents.
fn busy(top: &Path) {
    repository(top);
    write(top, "a.txt", "second\n");
    commit(top, "second");
    // As long as before: only its content tells that it differs.
    write(top, "a.txt", "thirds\n");
    write(top, "b.txt", "staged\n");
    git(top, &["add", "b.txt"]);
    write(top, "b.txt", "and changed\n");
}

/// `control` shows that the program would run; then everybody may look.
async fn runs_nothing(name: &str, prepare: impl Fn(&Path, &str), control: &[&str], succeed: bool) {
    let runner = LiveRunner::start();
    let (client, top, hostile) = (runner.client().await, runner.inside(""), Hostile::new());
    busy(&top);
    prepare(&top, hostile.program());
    command(&top).args(control).output().unwrap();
    assert!(hostile.ran(), "{name}: without care the program does not run");
    // Git may have put right by now what made it look.
    write(&top, "a.txt", "fourth\n");
    let answers = look(&client).await;
    assert!(!hostile.ran(), "{name}: the program ran");
    if succeed {
        assert!(answers.iter().all(|answer| *answer), "{name}: {answers:?}");
    }
}

fn set(top: &Path, key: &str, value: &str) {
    git(top, &["config", key, value]);
}

#[tokio::test]
async fn who_looks_runs_no_monitor_and_no_hook() {
    let fsmonitor = |top: &Path, program: &str| set(top, "core.fsmonitor", program);
    runs_nothing("fsmonitor", fsmonitor, &["status"], true).await;
    let included = |top: &Path, program: &str| {
        write(top, ".git/more", format!("[core]\n fsmonitor = {program}\n"));
        set(top, "includeIf.gitdir:/.path", "more");
    };
    runs_nothing("includeIf", included, &["status"], true).await;
    let hook = |top: &Path, program: &str| {
        std::fs::copy(program, top.join(".git/hooks/post-index-change")).unwrap();
    };
    runs_nothing("a hook", hook, &["add", "a.txt"], true).await;
    let elsewhere = |top: &Path, program: &str| {
        std::fs::create_dir(top.join("hooks")).unwrap();
        std::fs::copy(program, top.join("hooks/post-index-change")).unwrap();
        set(top, "core.hooksPath", "hooks");
    };
    runs_nothing("hooksPath", elsewhere, &["add", "a.txt"], true).await;
    let alias = |top: &Path, program: &str| {
        set(top, "alias.status", &format!("!{program}"));
        set(top, "alias.hostile", &format!("!{program}"));
    };
    runs_nothing("alias", alias, &["hostile"], true).await;
}

#[tokio::test]
async fn who_looks_runs_no_filter() {
    for key in ["clean", "process"] {
        let filter = |top: &Path, program: &str| {
            write(top, ".gitattributes", "* filter=hostile.name\n");
            set(top, &format!("filter.hostile.name.{key}"), program);
            set(top, "filter.hostile.name.required", "true");
        };
        runs_nothing(key, filter, &["status"], true).await;
        runs_nothing(key, filter, &["diff"], true).await;
    }
    let included = |top: &Path, program: &str| {
        write(top, ".git/info/attributes", "* filter=Hidden\n");
        write(top, ".git/more", format!("[filter \"Hidden\"]\n clean = {program}\n"));
        set(top, "include.path", "more");
    };
    runs_nothing("an included filter", included, &["status"], true).await;
}

#[tokio::test]
async fn a_filter_that_cannot_be_overridden_refuses_the_request() {
    let runner = LiveRunner::start();
    let (client, top, hostile) = (runner.client().await, runner.inside(""), Hostile::new());
    busy(&top);
    write(&top, ".gitattributes", "* filter=a=b\n");
    let program = hostile.program();
    let mut settings = std::fs::read_to_string(top.join(".git/config")).unwrap();
    settings.push_str(&format!("[filter \"a=b\"]\n clean = {program}\n"));
    write(&top, ".git/config", settings);
    command(&top).arg("status").output().unwrap();
    assert!(hostile.ran(), "without care the program does not run");
    let answer = client.git_status(&StatusQuery::default()).await;
    assert_eq!(fault_code(answer), FaultCode::Conflict);
    assert!(!hostile.ran());
}

#[tokio::test]
async fn who_looks_runs_nothing_that_shows_differences() {
    let external = |top: &Path, program: &str| set(top, "diff.external", program);
    runs_nothing("diff.external", external, &["diff"], true).await;
    for key in ["textconv", "command"] {
        let driver = |top: &Path, program: &str| {
            write(top, ".gitattributes", "* diff=hostile\n");
            set(top, &format!("diff.hostile.{key}"), program);
        };
        runs_nothing(key, driver, &["diff"], true).await;
    }
    let textconv = |top: &Path, program: &str| {
        write(top, ".gitattributes", "* diff=hostile\n");
        set(top, "diff.hostile.textconv", program);
    };
    runs_nothing("textconv of an object", textconv, &["show", "--textconv", "HEAD:a.txt"], true)
        .await;
}

#[tokio::test]
async fn who_looks_checks_no_signature_and_opens_no_pager() {
    let signature = |top: &Path, program: &str| {
        set(top, "gpg.program", program);
        set(top, "log.showSignature", "true");
        let tree = git(top, &["rev-parse", "HEAD^{tree}"]);
        let parent = git(top, &["rev-parse", "HEAD"]);
        let person = "ann <ann@example.org> 1700000000 +0000";
        let signed = format!(
            "tree {tree}\nparent {parent}\nauthor {person}\ncommitter {person}\n\
             gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
        );
        write(top, ".git/signed", signed);
        let id = git(top, &["hash-object", "-t", "commit", "-w", ".git/signed"]);
        git(top, &["update-ref", "HEAD", &id]);
    };
    runs_nothing("gpg.program", signature, &["log"], true).await;
    let runner = LiveRunner::start();
    let (client, top, hostile) = (runner.client().await, runner.inside(""), Hostile::new());
    busy(&top);
    set(&top, "core.pager", hostile.program());
    set(&top, "pager.status", "true");
    let terminal = std::process::Command::new("script")
        .args(["-qec", "git log", "/dev/null"])
        .current_dir(&top)
        .stdin(std::process::Stdio::null())
        .output();
    match terminal {
        Ok(_) => assert!(hostile.ran(), "without care the pager does not run"),
        Err(_) => println!("skipped: no `script` to show that the pager would run"),
    }
    assert!(look(&client).await.iter().all(|answer| *answer));
    assert!(!hostile.ran());
}

#[tokio::test]
async fn who_looks_fetches_nothing_that_is_missing() {
    for (name, url) in [
        ("ssh", "ssh://localhost/x".to_owned()),
        ("ext", "ext::PROGRAM".to_owned()),
        ("a local program", "/nonexistent-repository".to_owned()),
    ] {
        let missing = |top: &Path, program: &str| {
            for (key, value) in [
                ("core.repositoryFormatVersion", "1"),
                ("extensions.partialClone", "hostile"),
                ("remote.hostile.promisor", "true"),
                ("remote.hostile.url", &url.replace("PROGRAM", program)),
                ("remote.hostile.uploadpack", program),
                ("core.sshCommand", program),
                ("protocol.ext.allow", "always"),
            ] {
                set(top, key, value);
            }
            let id = git(top, &["rev-parse", "HEAD:a.txt"]);
            std::fs::remove_file(top.join(format!(".git/objects/{}/{}", &id[..2], &id[2..])))
                .unwrap();
        };
        runs_nothing(name, missing, &["cat-file", "blob", "HEAD:a.txt"], false).await;
    }
}

fn sleeping(seconds: u32) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_wanted = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    };
    pids.filter(is_wanted).count()
}

/// A filter that never ends, and something it starts that hides.
fn hang(top: &Path, seconds: u32) {
    repository(top);
    let hidden = format!("(env -i setsid sleep {seconds} >/dev/null 2>&1 &)");
    executable(&top.join("hang"), &format!("#!/bin/sh\n{hidden}\nexec sleep {seconds}\n"));
    write(top, ".gitattributes", "a.txt filter=hang\n");
    set(top, "filter.hang.clean", top.join("hang").to_str().unwrap());
    write(top, "a.txt", "changed\n");
}

#[tokio::test]
async fn a_git_that_hangs_is_ended_in_time_with_all_it_started() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    hang(&runner.inside(""), 8301);
    let stage = GitPaths { all: true, ..GitPaths::default() };
    assert_eq!(fault_code(client.git_stage(&stage).await), FaultCode::TimedOut);
    assert_eq!(sleeping(8301), 0, "something outlived its request");
    assert!(!runner.inside(".git/index.lock").exists(), "it left its lock");
    assert!(client.git_status(&StatusQuery::default()).await.unwrap().repository.is_repository);
}

#[tokio::test]
async fn a_change_is_brought_to_its_end_though_nobody_waits_for_it() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let top = runner.inside("");
    repository(&top);
    let (begun, go) = (top.join("begun"), top.join("go"));
    let wait = format!(
        "#!/bin/sh\ntouch {}\nuntil [ -e {} ]; do sleep 0.05; done\nexec cat\n",
        begun.display(),
        go.display()
    );
    executable(&top.join("wait"), &wait);
    write(&top, ".gitattributes", "a.txt filter=wait\n");
    set(&top, "filter.wait.clean", top.join("wait").to_str().unwrap());
    write(&top, "a.txt", "changed\n");
    let stage = GitPaths { paths: vec!["a.txt".into()], ..GitPaths::default() };
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.git_stage(&stage).await }
    });
    wait_for("the filter runs", async || begun.exists()).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    // Whoever asks after that is answered when the runner knows that the other one has left.
    client.git_log(&LogQuery::default()).await.unwrap();
    std::fs::write(&go, "").unwrap();
    let staged = async || !git(&top, &["diff", "--cached", "--name-only"]).is_empty();
    wait_for("it is staged", staged).await;
    wait_for("no lock is left", async || !top.join(".git/index.lock").exists()).await;
}

/// Programs at work on this repository.
fn working_on(top: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let wanted = format!("--git-dir={}", top.canonicalize().unwrap().display());
    let is_wanted = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&wanted))
    };
    pids.filter(is_wanted).count()
}

#[tokio::test]
async fn no_look_goes_on_that_nobody_waits_for() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let top = runner.inside("");
    repository(&top);
    std::fs::remove_file(top.join(".git/index")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(top.join(".git/index")).status();
    assert!(made.unwrap().success());
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.git_status(&StatusQuery::default()).await }
    });
    wait_for("it waits for its index", async || working_on(&top) == 1).await;
    asking.abort();
    wait_for("nothing is left", async || working_on(&top) == 0).await;
}

#[tokio::test]
async fn more_than_a_few_wait_for_their_turn_and_none_is_lost() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    repository(&runner.inside(""));
    let asked = (0..40).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.git_status(&StatusQuery::default()).await })
    });
    let asked: Vec<_> = asked.collect();
    let answers = futures_util::future::join_all(asked);
    let answers = tokio::time::timeout(Duration::from_secs(60), answers).await.unwrap();
    assert!(answers.into_iter().all(|answer| answer.unwrap().unwrap().repository.is_repository));
}
