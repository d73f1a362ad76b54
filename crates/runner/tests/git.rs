//! What is told of repositories in the workspace, and what changes them.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod commanding;
mod live_runner;
mod repositories;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use commanding::fault_code;
use live_runner::LiveRunner;
use repositories::{commit, git, repository, try_git, write};
use sandbank_channel::{DiffQuery, LogQuery, RunnerClient, StatusQuery};
use sandbank_protocol::{
    FaultCode, GitChange, GitCheckout, GitCommitRequest, GitEntry, GitObject, GitPaths, GitPerson,
    GitStatus,
};

async fn status(client: &RunnerClient, path: &str) -> GitStatus {
    client.git_status(&StatusQuery { path: path.into(), ..Default::default() }).await.unwrap()
}

/// By path: index, work tree.
fn changes(status: &GitStatus) -> BTreeMap<&str, (GitChange, GitChange)> {
    let pair = |entry: &GitEntry| (entry.index, entry.worktree);
    status.entries.iter().map(|entry| (entry.path.as_str(), pair(entry))).collect()
}

async fn diff(client: &RunnerClient, query: DiffQuery) -> String {
    client.git_diff(&query).await.unwrap().diff
}

use GitChange as C;

#[tokio::test]
async fn every_kind_of_change_is_told_of() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    git(&top, &["mv", "a.txt", "renamed.txt"]);
    write(&top, "b.txt", "changed");
    write(&top, "staged.txt", "new");
    git(&top, &["add", "staged.txt"]);
    std::fs::remove_file(top.join("d/c.txt")).unwrap();
    write(&top, "untracked/x", "x");
    write(&top, ".gitignore", "ignored\n");
    write(&top, "ignored", "x");
    let told = status(&client, "").await;
    assert!(told.repository.is_repository && !told.truncated);
    assert_eq!(told.repository.root.as_deref(), Some("."));
    assert_eq!(told.head.branch.as_deref(), Some("main"));
    assert_eq!(told.head.commit, Some(git(&top, &["rev-parse", "HEAD"])));
    let expected = [
        ("renamed.txt", (C::Renamed, C::None)),
        ("b.txt", (C::None, C::Modified)),
        ("staged.txt", (C::Added, C::None)),
        ("d/c.txt", (C::None, C::Deleted)),
        ("untracked/", (C::None, C::Untracked)),
        (".gitignore", (C::None, C::Untracked)),
    ];
    assert_eq!(changes(&told), expected.into());
    let renamed = told.entries.iter().find(|entry| entry.index == C::Renamed).unwrap();
    assert_eq!(renamed.from.as_deref(), Some("a.txt"));

    let query = StatusQuery { untracked: Some("all".into()), ignored: true, ..Default::default() };
    let told = client.git_status(&query).await.unwrap();
    assert_eq!(changes(&told)["untracked/x"], (C::None, C::Untracked));
    assert_eq!(changes(&told)["ignored"], (C::None, C::Ignored));
    let told = status(&client, "d").await;
    assert_eq!(changes(&told), [("d/c.txt", (C::None, C::Deleted))].into());
}

#[tokio::test]
async fn a_conflict_is_one_and_has_both_sides() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    git(&top, &["switch", "--quiet", "-c", "other"]);
    write(&top, "a.txt", "theirs\n");
    commit(&top, "theirs");
    git(&top, &["switch", "--quiet", "main"]);
    write(&top, "a.txt", "ours\n");
    git(&top, &["rm", "--quiet", "b.txt"]);
    commit(&top, "ours");
    assert!(!try_git(&top, &["merge", "other"]).status.success());
    let told = status(&client, "").await;
    let conflict = told.entries.iter().find(|entry| entry.path == "a.txt").unwrap();
    assert!(conflict.conflict);
    assert_eq!((conflict.index, conflict.worktree), (C::Unmerged, C::Unmerged));
}

#[tokio::test]
async fn no_repository_is_an_answer_and_the_one_above_is_never_used() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(top.parent().unwrap());
    assert!(try_git(&top, &["status"]).status.success(), "the one above is there");
    for path in ["", "not/there"] {
        let told = status(&client, path).await;
        assert!(!told.repository.is_repository, "{path}");
        assert!(told.repository.reason.unwrap().contains("is a repository"));
    }
    let query = DiffQuery::default();
    assert!(!client.git_diff(&query).await.unwrap().repository.is_repository);
    let shown = client.git_show("a.txt", None).await.unwrap();
    assert!(!shown.repository.is_repository && !shown.found);
    assert!(!client.git_log(&LogQuery::default()).await.unwrap().repository.is_repository);
    assert!(!client.git_branches("").await.unwrap().repository.is_repository);
    let stage = GitPaths { all: true, ..GitPaths::default() };
    assert_eq!(fault_code(client.git_stage(&stage).await), FaultCode::Conflict);
}

#[tokio::test]
async fn what_leads_out_of_the_workspace_is_no_repository_of_it() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    let outside = tempfile::tempdir().unwrap();
    repository(&outside.path().join("secret"));
    let git_dir = outside.path().join("secret/.git");
    write(&runner.inside(""), "file/.git", format!("gitdir: {}\n", git_dir.display()));
    std::fs::create_dir(runner.inside("link")).unwrap();
    std::os::unix::fs::symlink(&git_dir, runner.inside("link/.git")).unwrap();
    repository(&runner.inside("tree"));
    let place = outside.path().to_str().unwrap();
    git(&runner.inside("tree"), &["config", "core.worktree", place]);
    for path in ["file", "link", "tree"] {
        let told = status(&client, path).await;
        assert!(!told.repository.is_repository, "{path}");
        assert!(told.repository.reason.unwrap().contains("not all in the workspace"), "{path}");
        let shown = client.git_show(&format!("{path}/a.txt"), None).await.unwrap();
        assert!(!shown.found, "{path}");
    }
    // Elsewhere in the workspace is fine: so it is with worktrees and submodules.
    git(&runner.inside("tree"), &["config", "--unset", "core.worktree"]);
    git(&runner.inside("tree"), &["worktree", "add", "--quiet", "../second", "-b", "second"]);
    let told = status(&client, "second").await;
    assert_eq!(told.repository.root.as_deref(), Some("second"));
    assert_eq!(told.head.branch.as_deref(), Some("second"));
}

#[tokio::test]
async fn repositories_in_the_workspace_have_paths_from_the_workspace() {
    let runner = LiveRunner::start();
    let client = runner.client().await;
    repository(&runner.inside("one"));
    repository(&runner.inside("deep/two"));
    write(&runner.inside("deep/two"), "d/c.txt", "changed\n");
    std::os::unix::fs::symlink("deep/two", runner.inside("link")).unwrap();
    assert!(status(&client, "one").await.entries.is_empty());
    for path in ["deep/two", "deep/two/d", "deep/two/d/c.txt", "link/d", "/workspace/deep/two"] {
        let told = status(&client, path).await;
        assert_eq!(told.repository.root.as_deref(), Some("deep/two"), "{path}");
        assert_eq!(changes(&told), [("deep/two/d/c.txt", (C::None, C::Modified))].into());
    }
    let query = DiffQuery { path: "deep/two/d/c.txt".into(), ..Default::default() };
    assert!(diff(&client, query).await.contains("+changed"));
    let shown = client.git_show("deep/two/d/c.txt", None).await.unwrap();
    assert!(shown.content.unwrap().starts_with("d/c.txt\none"));
}

#[tokio::test]
async fn submodules_are_told_of_and_have_their_own_state() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside("super"));
    repository(&runner.inside("origin"));
    repository(&top);
    git(&top, &["submodule", "--quiet", "add", "../origin", "sub"]);
    commit(&top, "with a submodule");
    write(&top, "sub/a.txt", "changed\n");
    assert!(status(&client, "super").await.entries.is_empty(), "only commits of it count");
    assert_eq!(changes(&status(&client, "super/sub").await)["super/sub/a.txt"].1, C::Modified);
    commit(&top.join("sub"), "second");
    let told = status(&client, "super").await;
    let entry = &told.entries[0];
    assert_eq!(
        (entry.path.as_str(), entry.submodule, entry.worktree),
        ("super/sub", true, C::Modified)
    );
    let shown = client.git_show("super/sub", None).await.unwrap();
    assert_eq!((shown.kind, shown.content), (Some(GitObject::Submodule), None));
}

#[tokio::test]
async fn odd_names_are_told_exactly_and_never_become_options() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    let odd =
        ["-rf", "--output=pwned", "new\nline", ":(top)x", "*", "sp ace", "tab\t\"quote\"", "é"];
    for name in odd {
        write(&top, name, "one\n");
    }
    write(&top, OsStr::from_bytes(b"no\xfftext"), "one\n");
    let told = status(&client, "").await;
    assert_eq!(told.entries.len(), odd.len() + 1);
    for name in odd {
        assert_eq!(changes(&told)[name], (C::None, C::Untracked), "{name:?}");
    }
    let bytes = told.entries.iter().find(|entry| entry.path_hex.is_some()).unwrap();
    assert_eq!(bytes.path_hex.as_deref(), Some("6e6fff74657874"));
    let paths: Vec<String> = odd.iter().map(|name| (*name).to_owned()).collect();
    client.git_stage(&GitPaths { paths, ..GitPaths::default() }).await.unwrap();
    let told = status(&client, "").await;
    let staged = told.entries.iter().filter(|entry| entry.index == C::Added);
    assert_eq!(staged.count(), odd.len(), "a star is a name and no pattern");
    commit(&top, "odd");
    for name in odd {
        write(&top, name, "two\n");
        let query = DiffQuery { path: name.into(), ..Default::default() };
        let text = diff(&client, query).await;
        assert_eq!(text.matches("diff --git").count(), 1, "{name:?}: {text}");
        let shown = client.git_show(name, None).await.unwrap();
        assert_eq!(shown.content.as_deref(), Some("one\n"), "{name:?}");
        let query = LogQuery { path: name.into(), ..Default::default() };
        assert_eq!(client.git_log(&query).await.unwrap().commits.len(), 1, "{name:?}");
    }
    assert!(!runner.inside("pwned").exists());
    for revision in ["-h", "--output=pwned", "HEAD:x", "a..b", "x\ny", ""] {
        let shown = client.git_show("a.txt", Some(revision)).await;
        assert_eq!(fault_code(shown), FaultCode::Invalid, "{revision:?}");
    }
    assert!(!runner.inside("pwned").exists());
}

#[tokio::test]
async fn differences_are_of_what_was_asked_for() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    let first = git(&top, &["rev-parse", "HEAD"]);
    write(&top, "a.txt", "second\n");
    let second = commit(&top, "second");
    write(&top, "a.txt", "staged\n");
    git(&top, &["add", "a.txt"]);
    write(&top, "a.txt", "unstaged\n");
    let of = |staged, from: Option<&str>, to: Option<&str>| DiffQuery {
        path: "a.txt".into(),
        staged,
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
    };
    for (query, removed, added) in [
        (of(false, None, None), "-staged", "+unstaged"),
        (of(true, None, None), "-second", "+staged"),
        (of(false, Some("HEAD"), None), "-second", "+unstaged"),
        (of(true, Some(&first), None), "-a.txt", "+staged"),
        (of(false, Some("HEAD~1"), Some(&second)), "-a.txt", "+second"),
    ] {
        let text = diff(&client, query.clone()).await;
        assert!(text.contains(removed) && text.contains(added), "{query:?}: {text}");
    }
    assert_eq!(
        fault_code(client.git_diff(&of(false, Some("nope"), None)).await),
        FaultCode::NotFound
    );
    assert_eq!(
        fault_code(client.git_diff(&of(false, None, Some("HEAD"))).await),
        FaultCode::Invalid
    );
    let untracked =
        DiffQuery { path: "untracked".into(), from: Some("HEAD".into()), ..Default::default() };
    write(&top, "untracked", "x\n");
    assert_eq!(diff(&client, untracked).await, "");

    write(&top, "b.txt", b"\0binary");
    let query = DiffQuery { path: "b.txt".into(), ..Default::default() };
    let told = client.git_diff(&query).await.unwrap();
    assert!(told.binary && !told.truncated && told.diff.contains("Binary files"));
    write(&top, "b.txt", "Binary files are no sign of themselves\n".repeat(200_000));
    let told = client.git_diff(&query).await.unwrap();
    assert!(told.truncated && !told.binary);
}

#[tokio::test]
async fn before_the_first_commit_there_is_nothing_to_compare_with_and_that_is_fine() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    git(&top, &["init", "--quiet"]);
    write(&top, "a.txt", "new\n");
    let told = status(&client, "").await;
    assert_eq!((told.head.branch.as_deref(), told.head.commit), (Some("main"), None));
    let stage = GitPaths { paths: vec!["a.txt".into()], ..GitPaths::default() };
    client.git_stage(&stage).await.unwrap();
    let query = DiffQuery { from: Some("HEAD".into()), ..Default::default() };
    assert!(diff(&client, query).await.contains("+new"));
    assert!(client.git_log(&LogQuery::default()).await.unwrap().commits.is_empty());
    let shown = client.git_show("a.txt", None).await.unwrap();
    assert!(shown.repository.is_repository && !shown.found && shown.commit.is_none());
    client.git_unstage(&stage).await.unwrap();
    assert_eq!(changes(&status(&client, "").await)["a.txt"], (C::None, C::Untracked));
}

#[tokio::test]
async fn files_are_shown_as_a_commit_has_them() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    write(&top, "bytes", b"\xff\0\x01");
    std::os::unix::fs::symlink("/etc/passwd", top.join("link")).unwrap();
    write(&top, "large", "é".repeat(2 << 20));
    commit(&top, "more");
    std::fs::remove_dir_all(top.join("d")).unwrap();
    std::fs::remove_file(top.join("a.txt")).unwrap();
    write(&top, "a.txt/now-a-directory", "x");
    let show = async |path: &str| client.git_show(path, None).await.unwrap();
    assert!(
        show("d/c.txt").await.content.unwrap().starts_with("d/c.txt"),
        "deleted with its directory"
    );
    assert!(show("a.txt").await.content.unwrap().starts_with("a.txt"), "now a directory");
    assert_eq!(show("bytes").await.content_base64.as_deref(), Some("/wAB"));
    let link = show("link").await;
    assert_eq!(
        (link.kind, link.content.as_deref()),
        (Some(GitObject::Symlink), Some("/etc/passwd"))
    );
    assert_eq!(show("d").await.kind, Some(GitObject::Directory));
    let large = show("large").await;
    assert!(large.truncated && large.content.unwrap().ends_with('é'));
    assert_eq!(large.size, 4 << 20);
    for path in ["nothing", "d/nothing", "not/there/at/all"] {
        let shown = show(path).await;
        assert!(!shown.found && shown.commit.is_some(), "{path}");
    }
    let unknown = client.git_show("b.txt", Some("no-such")).await.unwrap();
    assert!(!unknown.found && unknown.commit.is_none());
}

#[tokio::test]
async fn a_log_goes_on_where_it_stopped_whatever_is_committed_meanwhile() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    for number in 0..9 {
        commit(&top, &format!("number {number}\n\nwith a body"));
    }
    let query = LogQuery { limit: Some(4), ..Default::default() };
    let page = client.git_log(&query).await.unwrap();
    assert_eq!((page.commits.len(), page.more), (4, true));
    assert_eq!(page.commits[0].message, "number 8\n\nwith a body");
    assert_eq!(page.commits[0].author.email, "ann@example.org");
    assert_eq!(page.commits[0].parents, [page.commits[1].id.clone()]);
    commit(&top, "meanwhile");
    let query =
        LogQuery { revision: page.start.clone(), limit: Some(100), after: 4, ..Default::default() };
    let rest = client.git_log(&query).await.unwrap();
    assert_eq!((rest.commits.len(), rest.more), (6, false));
    assert_eq!(rest.commits[0].message, "number 4\n\nwith a body");
    let query = LogQuery { path: "d/c.txt".into(), ..Default::default() };
    assert_eq!(client.git_log(&query).await.unwrap().commits.len(), 1);
}

#[tokio::test]
async fn branches_are_listed_made_and_checked_out() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside("clone"));
    repository(&runner.inside("origin"));
    git(&runner.inside(""), &["clone", "--quiet", "origin", "clone"]);
    let path = || Some("clone".to_owned());
    let make = GitCheckout { path: path(), branch: "feature/x".into(), create: true };
    client.git_checkout(&make).await.unwrap();
    commit(&top, "on it");
    let list = client.git_branches("clone").await.unwrap().branches;
    let seen: Vec<_> = list.iter().map(|b| (b.name.as_str(), b.remote, b.current)).collect();
    assert_eq!(
        seen,
        [("feature/x", false, true), ("main", false, false), ("origin/main", true, false)]
    );
    assert_eq!(list[1].upstream.as_deref(), Some("origin/main"));
    let back = GitCheckout { path: path(), branch: "main".into(), create: false };
    client.git_checkout(&back).await.unwrap();
    commit(&top, "ahead");
    let head = status(&client, "clone").await.head;
    assert_eq!(
        (head.ahead, head.behind, head.upstream.as_deref()),
        (Some(1), Some(0), Some("origin/main"))
    );
    let missing = GitCheckout { path: path(), branch: "nope".into(), create: false };
    assert_eq!(fault_code(client.git_checkout(&missing).await), FaultCode::Conflict);
    let option = GitCheckout { path: path(), branch: "--detach".into(), create: false };
    assert_eq!(fault_code(client.git_checkout(&option).await), FaultCode::Invalid);
}

#[tokio::test]
async fn changes_are_staged_unstaged_committed_and_amended() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside("repo"));
    repository(&top);
    write(&top, "a.txt", "changed\n");
    write(&top, "new", "new\n");
    std::fs::remove_file(top.join("b.txt")).unwrap();
    let some = |paths: &[&str]| GitPaths {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..GitPaths::default()
    };
    let all = GitPaths { path: Some("repo".into()), all: true, ..GitPaths::default() };
    client.git_stage(&some(&["repo/a.txt", "repo/b.txt"])).await.unwrap();
    let told = status(&client, "repo").await;
    assert_eq!(changes(&told)["repo/a.txt"], (C::Modified, C::None));
    assert_eq!(changes(&told)["repo/b.txt"], (C::Deleted, C::None));
    assert_eq!(changes(&told)["repo/new"], (C::None, C::Untracked));
    client.git_unstage(&some(&["repo/a.txt"])).await.unwrap();
    assert_eq!(changes(&status(&client, "repo").await)["repo/a.txt"], (C::None, C::Modified));
    client.git_stage(&all).await.unwrap();
    client.git_unstage(&all).await.unwrap();
    assert_eq!(changes(&status(&client, "repo").await)["repo/new"], (C::None, C::Untracked));
    client.git_stage(&all).await.unwrap();

    let author = GitPerson { name: "Bob B".into(), email: "bob@example.org".into() };
    let request = GitCommitRequest {
        path: Some("repo".into()),
        message: "-m is no option\n\nbody\n".into(),
        author: Some(author.clone()),
        amend: false,
    };
    let made = client.git_commit(&request).await.unwrap();
    assert_eq!(made.commit, git(&top, &["rev-parse", "HEAD"]));
    assert_eq!(
        git(&top, &["log", "-1", "--format=%an|%ae|%B"]),
        "Bob B|bob@example.org|-m is no option\n\nbody"
    );
    assert!(status(&client, "repo").await.entries.is_empty());
    assert_eq!(
        fault_code(client.git_commit(&request).await),
        FaultCode::Conflict,
        "nothing is staged"
    );
    let amended = GitCommitRequest { message: "better".into(), amend: true, ..request.clone() };
    client.git_commit(&amended).await.unwrap();
    assert_eq!(git(&top, &["rev-list", "--count", "HEAD"]), "2");

    for odd in [
        GitCommitRequest { message: " \n".into(), ..request.clone() },
        GitCommitRequest {
            author: Some(GitPerson { name: "x <y>".into(), ..author.clone() }),
            ..request.clone()
        },
    ] {
        assert_eq!(fault_code(client.git_commit(&odd).await), FaultCode::Invalid);
    }
    for odd in
        [GitPaths::default(), GitPaths { all: true, ..some(&["repo/a.txt"]) }, some(&["../x"])]
    {
        assert!(matches!(
            fault_code(client.git_stage(&odd).await),
            FaultCode::Invalid | FaultCode::OutsideWorkspace
        ));
    }
    assert_eq!(fault_code(client.git_stage(&some(&["repo/nothing"])).await), FaultCode::Conflict);
    assert!(client.commands().await.unwrap().is_empty(), "none of it is a command");
}

#[tokio::test]
async fn a_lock_is_named_and_hinders_nobody_who_only_looks() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    write(&top, "a.txt", "changed\n");
    write(&top, ".git/index.lock", "");
    assert_eq!(changes(&status(&client, "").await)["a.txt"].1, C::Modified);
    let stage = GitPaths { all: true, ..GitPaths::default() };
    let Err(sandbank_channel::ChannelError::Refused(fault)) = client.git_stage(&stage).await else {
        panic!("it was staged");
    };
    assert_eq!(fault.code, FaultCode::Conflict);
    assert!(fault.message.contains("index.lock") && fault.message.contains("remove that file"));
    std::fs::remove_file(top.join(".git/index.lock")).unwrap();
    client.git_stage(&stage).await.unwrap();
}

#[tokio::test]
async fn without_git_the_answer_says_what_to_do() {
    let runner = LiveRunner::start_with(|config| {
        config.env.insert("PATH".into(), "/nonexistent".into());
    });
    let client = runner.client().await;
    let Err(sandbank_channel::ChannelError::Refused(fault)) =
        client.git_status(&StatusQuery::default()).await
    else {
        panic!("there is a git");
    };
    assert_eq!(fault.code, FaultCode::ProgramMissing);
    assert!(fault.message.contains("use an image that has it"));
}

#[tokio::test]
async fn a_huge_status_is_cut_and_marked() {
    let runner = LiveRunner::start();
    let (client, top) = (runner.client().await, runner.inside(""));
    repository(&top);
    std::fs::create_dir(top.join("many")).unwrap();
    for number in 0..10_100 {
        std::fs::write(top.join(format!("many/{number:0>120}")), "").unwrap();
    }
    let query = StatusQuery { untracked: Some("all".into()), ..Default::default() };
    let told = client.git_status(&query).await.unwrap();
    assert!(told.truncated);
    assert_eq!(told.entries.len(), 10_000);
    assert!(!status(&client, "").await.truncated, "as a directory it is one entry");
}
