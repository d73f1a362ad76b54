//! `listFiles`, `search` and `editFile`, as agents call them over MCP: what they find and change, and what they refuse.

use anyhow::Context;
use reqwest::Client;
use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use crate::SANDBANK;

/// One MCP session, which has a sandbox of its own.
struct Session {
    daemon: TestDaemon,
    id: String,
}

impl Session {
    async fn begin() -> anyhow::Result<Self> {
        let daemon = TestDaemon::start(SANDBANK).await?;
        let mut session = Self { daemon, id: String::new() };
        let client = json!({ "name": "files", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let response = session.send("initialize", &params).await?;
        let id = response.headers().get("mcp-session-id").context("a session has an id")?;
        session.id = id.to_str()?.to_owned();
        Ok(session)
    }

    async fn send(&self, method: &str, params: &Value) -> anyhow::Result<reqwest::Response> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = Client::new().post(format!("{}/mcp", self.daemon.url()));
        let request = request.bearer_auth(self.daemon.token()?).json(&body);
        Ok(match self.id.as_str() {
            "" => request.send().await?,
            id => request.header("mcp-session-id", id).send().await?,
        })
    }

    async fn result(&self, tool: &str, input: &Value) -> anyhow::Result<Value> {
        let params = json!({ "name": tool, "arguments": input });
        let answer: Value = self.send("tools/call", &params).await?.json().await?;
        anyhow::ensure!(answer["result"].is_object(), "{tool} {input}: {answer}");
        Ok(answer["result"].clone())
    }

    /// What the tool gave.
    async fn call(&self, tool: &str, input: Value) -> anyhow::Result<Value> {
        let result = self.result(tool, &input).await?;
        anyhow::ensure!(result["isError"] == false, "{tool} {input}: {result}");
        Ok(result["structuredContent"].clone())
    }

    /// Why it gave nothing.
    async fn refused(&self, tool: &str, input: Value) -> anyhow::Result<String> {
        let result = self.result(tool, &input).await?;
        anyhow::ensure!(result["isError"] == true, "{tool} {input}: {result}");
        Ok(result["content"][0]["text"].as_str().context("a sentence")?.to_owned())
    }

    async fn bash(&self, command: &str) -> anyhow::Result<String> {
        let output = self.call("bash", json!({ "command": command })).await?;
        anyhow::ensure!(output["exitCode"] == 0, "{command}: {output}");
        Ok(output["stdout"].as_str().context("text")?.to_owned())
    }

    async fn edit(&self, path: &str, old: &str, new: &str) -> anyhow::Result<Value> {
        self.call("editFile", json!({ "path": path, "old": old, "new": new })).await
    }
}

fn paths(listing: &Value) -> Vec<&str> {
    let entries = listing["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

fn lines(found: &Value) -> Vec<(&str, u64, &str)> {
    let matches = found["matches"].as_array().unwrap().iter();
    let line = |line: &'_ Value| line["line"].as_u64().unwrap();
    matches
        .map(|each| (each["path"].as_str().unwrap(), line(each), each["text"].as_str().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_listed_in_order_to_a_depth_and_within_bounds() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let session = Session::begin().await?;
    session
        .bash(
            "mkdir -p tree/a/b/c tree/.hidden empty && echo 12345 > tree/a/b/c/deep && touch tree/x && \
             ln -s /etc/passwd tree/link && mkfifo tree/pipe && printf odd > $'tree/odd\\xff'",
        )
        .await?;
    let shallow = session.call("listFiles", json!({ "path": "tree", "depth": 1 })).await?;
    let names = ["tree/.hidden", "tree/a", "tree/link", "tree/odd\u{fffd}", "tree/pipe", "tree/x"];
    assert_eq!(paths(&shallow), names, "what has more below it is not cut off by a depth");
    assert_eq!(shallow["untrusted"], true);
    let kinds: Vec<&Value> =
        shallow["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["directory", "directory", "symlink", "file", "other", "file"]);
    let deep = session.call("listFiles", json!({ "path": "tree/a", "depth": 20 })).await?;
    assert_eq!(paths(&deep), ["tree/a/b", "tree/a/b/c", "tree/a/b/c/deep"]);
    assert_eq!((&deep["entries"][2]["size"], &deep["truncated"]), (&json!(6), &json!(false)));
    let usual = session.call("listFiles", json!({})).await?;
    assert!(paths(&usual).contains(&"tree/a/b") && !paths(&usual).contains(&"tree/a/b/c/deep"));
    let absolute = json!({ "path": "/vercel/sandbox/workspace/empty" });
    assert_eq!(session.call("listFiles", absolute).await?["entries"], json!([]));

    session.bash("mkdir many && cd many && seq -f 'file%04g' 1500 | xargs touch").await?;
    let many = session.call("listFiles", json!({ "path": "many" })).await?;
    assert_eq!((paths(&many).len(), &many["truncated"]), (1000, &json!(true)));

    for (path, words) in [
        ("..", "`..` component"),
        ("tree/../..", "`..` component"),
        ("/etc", "is not below /vercel/sandbox/workspace"),
        ("/vercel/sandbox", "is not below /vercel/sandbox/workspace"),
    ] {
        let why = session.refused("listFiles", json!({ "path": path })).await?;
        assert!(why.contains(words), "{path}: {why}");
    }
    session.bash("ln -s / out").await?;
    for path in ["out", "out/etc", "nowhere", "tree/x"] {
        session.refused("listFiles", json!({ "path": path })).await?;
    }
    for depth in [json!(0), json!(21), json!("1")] {
        let why = session.refused("listFiles", json!({ "depth": depth })).await?;
        assert!(why.contains("depth must be a whole number from 1 to 20"), "{why}");
    }
    session.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_found_as_ripgrep_finds_them_and_within_bounds() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let session = Session::begin().await?;
    session
        .bash(
            "mkdir src build && printf 'one\\nlet wanted = 1;\\n' > src/a.rs && \
             printf 'wanted, grüße\\n' > src/b.txt && echo wanted > build/out && echo build/ > .ignore && \
             printf 'wanted\\0wanted\\n' > src/binary && printf 'wanted \\xff\\n' > src/latin && \
             printf 'wanted\\n' > $'src/odd\\xff' && echo wanted > .hidden && ln -s /etc/passwd src/link",
        )
        .await?;
    let found = session.call("search", json!({ "pattern": "wan.ed" })).await?;
    let wanted = [
        ("src/a.rs", 2, "let wanted = 1;"),
        ("src/b.txt", 1, "wanted, grüße"),
        ("src/latin", 1, "wanted \u{fffd}"),
        ("src/odd\u{fffd}", 1, "wanted"),
    ];
    assert_eq!(lines(&found), wanted);
    assert_eq!((&found["truncated"], &found["untrusted"]), (&json!(false), &json!(true)));
    let some = json!({ "pattern": "wanted", "path": "src", "glob": "*.rs" });
    assert_eq!(lines(&session.call("search", some).await?), wanted[..1]);
    let one = json!({ "pattern": "^wanted", "path": "src/b.txt" });
    assert_eq!(lines(&session.call("search", one).await?), wanted[1..2]);
    let nothing = session.call("search", json!({ "pattern": "no such text" })).await?;
    assert_eq!((&nothing["matches"], &nothing["truncated"]), (&json!([]), &json!(false)));

    session
        .bash("seq -f 'many %g' 100000 > many; head -c 3000000 /dev/zero | tr '\\0' x > long")
        .await?;
    session.bash("echo needle >> long").await?;
    let many = session.call("search", json!({ "pattern": "^many" })).await?;
    assert_eq!((lines(&many).len(), &many["truncated"]), (200, &json!(true)));
    assert_eq!(lines(&many)[199], ("many", 200, "many 200"));
    let long = session.call("search", json!({ "pattern": "needle", "path": "long" })).await?;
    let shown = lines(&long);
    assert!(shown.len() == 1 && shown[0].2.len() <= 400 && shown[0].2.contains("needle"), "{long}");

    let why = session.refused("search", json!({ "pattern": "wanted(" })).await?;
    assert!(why.contains("unclosed group"), "{why}");
    for (path, words) in [
        ("..", "`..`"),
        ("src/../../x", "`..`"),
        ("/etc", "is not below /vercel/sandbox/workspace"),
    ] {
        let why = session.refused("search", json!({ "pattern": "root", "path": path })).await?;
        assert!(why.contains(words), "{path}: {why}");
    }
    let through = json!({ "pattern": "root", "path": "src/link" });
    session.refused("search", through).await?;
    session.refused("search", json!({ "pattern": "x", "path": "nowhere" })).await?;
    let why = session.refused("search", json!({ "pattern": "x", "glob": "[" })).await?;
    assert!(why.contains('['), "{why}");
    session.daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_changes_one_place_or_all_or_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let session = Session::begin().await?;
    session
        .bash(
            "mkdir d && printf 'grüße one\\r\\ntwo two\\n' > d/text && chmod 750 d/text && \
             printf 'one\\xff\\n' > latin && ln -s /etc/passwd link && ln -s d/text inner && \
             printf 'one\\n' > $'odd\\xff' && head -c 1048577 /dev/zero | tr '\\0' x > huge",
        )
        .await?;
    let done = session.edit("d/text", "one\r\n", "1\r\n").await?;
    assert_eq!(done, json!({ "success": true, "replaced": 1 }));
    assert_eq!(session.bash("cat d/text").await?, "grüße 1\r\ntwo two\n");
    assert_eq!(session.bash("stat -c %a d/text").await?, "750\n", "it may still be run");

    let before = session.bash("sha256sum d/text huge latin").await?;
    let refused = async |path: &str, old: &str, new: &str| {
        session.refused("editFile", json!({ "path": path, "old": old, "new": new })).await
    };
    let why = refused("d/text", "three", "x").await?;
    assert!(why.contains("not in d/text"), "{why}");
    let why = refused("d/text", "two", "x").await?;
    assert!(why.contains("2 times in d/text") && why.contains("set all to true"), "{why}");
    let why = refused("latin", "one", "x").await?;
    assert!(why.contains("latin is not UTF-8"), "{why}");
    let why = refused("huge", "x", "y").await?;
    assert!(why.contains("1048577 bytes long, more than 1048576"), "{why}");
    for path in ["../x", "/etc/passwd", "link"] {
        let why = refused(path, "root", "x").await?;
        assert!(!why.contains("root:"), "{path}: {why}");
    }
    // A name that is shown is not one that can be written.
    refused("odd\u{fffd}", "one", "x").await?;
    refused("d", "one", "x").await?;
    refused("nowhere", "one", "x").await?;
    let why = refused("d/text", "", "x").await?;
    assert!(why.contains("old must be a text of 1 to"), "{why}");
    let growing = json!({ "path": "grown", "content": "x".repeat(1 << 20) });
    session.call("writeFile", growing).await?;
    let input = json!({ "path": "grown", "old": "x", "new": "12345", "all": true });
    let why = session.refused("editFile", input).await?;
    assert!(why.contains("grown would become too long"), "{why}");
    assert_eq!(session.bash("sha256sum d/text huge latin").await?, before, "nothing was changed");
    assert_eq!(session.bash("tr -d x < grown | wc -c").await?.trim(), "0");

    let all = json!({ "path": "d/text", "old": "two", "new": "", "all": true });
    let done = session.call("editFile", all).await?;
    assert_eq!(done, json!({ "success": true, "replaced": 2 }));
    assert_eq!(session.bash("cat d/text").await?, "grüße 1\r\n \n");
    session.daemon.finish().await
}
