//! One visit of a client: every route, a terminal and a chat, with all that is answered.

use anyhow::Context;
use sandbank_test_support::{Api, Pty, PtySeen};
use serde_json::{Value, json};

use super::places::Place;
use super::settled::CHOSEN;

/// Says its arguments first, then each line that it is given; `die` ends it.
const AGENT: &str = r#"
trap '' INT
printf '{"type":"system","subtype":"init","args":"%s"}\n' "$*"
while read -r line; do
    case $line in
        *die*) echo last words >&2; exit 7 ;;
        *plain*) echo no json ;;
        *) printf '{"type":"assistant","heard":%s}\n' "$line" ;;
    esac
done
"#;

struct Visit {
    api: Api,
    url: String,
    token: String,
    heard: Vec<Value>,
}

pub(crate) async fn all(place: &Place) -> anyhow::Result<Vec<Value>> {
    let (url, token) = (place.daemon.url(), place.daemon.token()?);
    let mut visit = Visit { api: place.daemon.api()?, url, token, heard: Vec::new() };
    visit.about().await?;
    visit.files().await?;
    visit.terminal().await?;
    visit.git().await?;
    visit.chat().await?;
    visit.approvals().await?;
    visit.records().await?;
    Ok(visit.heard)
}

impl Visit {
    async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let (status, answer) = self.api.try_call(method, path, body.clone()).await?;
        let asked = format!("{method} {path}");
        self.heard.push(json!({
            "asked": asked, "with": body, "status": status, "body": answer,
        }));
        Ok(answer)
    }

    async fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        self.call("GET", path, None).await
    }

    async fn put(&mut self, path: &str, content: &str) -> anyhow::Result<()> {
        let body = json!({ "content": content });
        self.call("PUT", &format!("/api/file?path={path}"), Some(body)).await.map(drop)
    }

    fn told(&mut self, by: &str, frames: Vec<Value>) {
        self.heard.push(json!({ "asked": by, "frames": frames }));
    }

    async fn about(&mut self) -> anyhow::Result<()> {
        for path in ["/api/config", "/health", "/api/capabilities", "/api/project", "/api/nothing"]
        {
            self.get(path).await?;
        }
        self.call("POST", "/api/tree", Some(json!({}))).await?;
        let stranger = Api::new(self.url.clone(), "wrong".to_owned());
        let (status, body) = stranger.try_call("GET", "/api/tree", None).await?;
        self.heard.push(json!({ "asked": "a stranger's tree", "status": status, "body": body }));
        Ok(())
    }

    async fn files(&mut self) -> anyhow::Result<()> {
        self.put("deep/er/a.txt", "gr\u{fc}\u{df}e\n").await?;
        self.put("B.txt", "b").await?;
        self.put(".hidden", "").await?;
        self.put("deep", "").await?;
        self.put("../x", "").await?;
        self.call("PUT", "/api/file?path=x", Some(json!({ "text": "" }))).await?;
        for path in [
            "/api/file?path=deep/er/a.txt",
            "/api/file?path=./deep/x/../er/a.txt",
            "/api/file?path=no",
            "/api/file?path=deep",
            "/api/file?path=/etc/passwd",
            "/api/file",
            "/api/tree",
            "/api/tree?path=deep",
            "/api/tree?path=no",
            "/api/tree?path=B.txt",
            "/api/tree?path=..",
            "/api/search?q=*.TXT",
            "/api/search?q=er&path=deep",
            "/api/search?q=",
            "/api/search?q=x&path=../..",
            "/api/git/status",
        ] {
            self.get(path).await?;
        }
        for (from, to) in [("B.txt", "c.txt"), ("no", "d"), ("c.txt", "deep"), ("c.txt", "../c")] {
            let body = json!({ "old_path": from, "new_path": to });
            self.call("POST", "/api/file/rename", Some(body)).await?;
        }
        for (from, to) in
            [("c.txt", "deep"), ("c.txt", "deep"), ("deep/c.txt", "no"), ("deep", ".hidden")]
        {
            let body = json!({ "src_path": from, "dest_dir": to });
            self.call("POST", "/api/file/move", Some(body)).await?;
        }
        for path in ["deep/er", "deep/er", ".", "../x"] {
            self.call("DELETE", &format!("/api/file?path={path}"), None).await?;
        }
        self.attachment().await
    }

    async fn attachment(&mut self) -> anyhow::Result<()> {
        let form = "--cut\r\ncontent-disposition: form-data; name=\"file\"; filename=\"../a b.txt\"\r\n\
                    content-type: text/plain\r\n\r\nattached\r\n--cut--\r\n";
        let sent = self.api.request("POST", "/api/attachments");
        let sent = sent.header("content-type", "multipart/form-data; boundary=cut").body(form);
        let answer = sent.send().await?;
        let status = answer.status().as_u16();
        let body: Value = serde_json::from_slice(&answer.bytes().await?)?;
        self.heard
            .push(json!({ "asked": "POST /api/attachments", "status": status, "body": body }));
        let path = body["relative_path"].as_str().context("no path")?.to_owned();
        self.get(&format!("/api/file?path={path}")).await.map(drop)
    }

    async fn terminal(&mut self) -> anyhow::Result<()> {
        let id = CHOSEN[0];
        let mut frames = Frames::of(self.pty(&format!("provider=shell&session_id={id}")).await?);
        frames.until_output("ready\r\n").await?;
        frames.socket.say(json!({ "type": "resize", "rows": 30, "cols": 100 })).await?;
        frames.socket.say(json!({ "type": "unheard of" })).await?;
        frames.socket.say(json!({ "type": "ping" })).await?;
        frames.until("pong").await?;
        frames.socket.raw("ls -d deep; stty size; echo $TERM\n").await?;
        frames.until_output("xterm-256color\r\n").await?;
        frames.socket.input("echo and then\n").await?;
        frames.until_output("and then\r\n").await?;
        frames.socket.input("printf '<\\xe2\\x82'; sleep 0.2; printf '\\xac>'\n").await?;
        frames.until_output("\u{20ac}>").await?;
        let list = self.get("/api/sessions").await?;
        anyhow::ensure!(list["sessions"].as_array().is_some_and(|all| all.len() == 1), "{list}");
        self.told("a terminal", frames.heard);
        drop(frames.socket);

        let mut again = Frames::of(self.pty(&format!("session_id={id}&resume=1")).await?);
        again.until("history").await?;
        again.socket.input("git init -q --template= -b main; git config user.email a@b; git config user.name a; \
            git add deep; git commit -q -m one; printf '\\xff\\xfe' > binary; printf more >> deep/c.txt; \
            echo don''e\n").await?;
        again.until_output("done\r\n").await?;
        again.socket.input("exit 5\n").await?;
        again.until("exit").await?;
        again.socket.say(json!({ "type": "ping" })).await?;
        again.until("pong").await?;
        self.told("who comes back to it", again.heard);
        for query in [
            "provider=nope",
            "session_id=x",
            "after=x",
            "resume=1&session_id=33333333-3333-4333-8333-333333333333",
        ] {
            let mut frames = Frames::of(self.pty(query).await?);
            frames.until_closed().await?;
            self.told(query, frames.heard);
        }
        // A name that the server gives.
        let mut named = Frames::of(self.pty("").await?);
        named.until_output("ready\r\n").await?;
        named.socket.input("exit\n").await?;
        named.until("exit").await?;
        self.told("a terminal without a name", named.heard);
        self.call("POST", "/api/sessions", None).await.map(drop)
    }

    async fn git(&mut self) -> anyhow::Result<()> {
        for path in [
            "/api/file?path=binary",
            "/api/git/status",
            "/api/git/diff?path=deep/c.txt",
            "/api/git/diff?path=binary",
            "/api/git/diff?path=..",
            "/api/git/show?path=deep/c.txt",
            "/api/git/show?path=binary",
            "/api/git/show",
        ] {
            self.get(path).await?;
        }
        Ok(())
    }

    async fn chat(&mut self) -> anyhow::Result<()> {
        self.put("agent.sh", AGENT).await?;
        let id = CHOSEN[1];
        let query = format!("session_id={id}&model=opus&max_turns=3");
        let mut frames = Frames::of(self.chat_at(&query).await?);
        frames.until("init").await?;
        frames.socket.say(json!({ "type": "control", "subtype": "initialize" })).await?;
        frames.until("echo").await?;
        let user = json!({ "type": "user", "message": "hi", "context_files": ["a.txt"] });
        frames.socket.say(user).await?;
        frames.until("assistant").await?;
        frames.socket.raw("no JSON at all").await?;
        frames.until("assistant").await?;
        frames.socket.say(json!({ "type": "user", "message": "plain" })).await?;
        frames.until("raw").await?;
        let decided = json!({ "type": "control_response", "request_id": "r", "decision": "deny",
            "message": "no" });
        frames.socket.say(decided).await?;
        frames.until("assistant").await?;
        frames.socket.say(json!({ "type": "ping" })).await?;
        frames.until("pong").await?;
        frames.socket.say(json!({ "type": "interrupt" })).await?;
        frames.until("interrupted").await?;
        self.told("a chat", frames.heard);
        drop(frames.socket);

        let mut again = Frames::of(self.chat_at(&format!("{query}&resume=1")).await?);
        for _ in 0..3 {
            again.until("assistant").await?;
        }
        again.socket.say(json!({ "type": "user", "message": "die" })).await?;
        again.until_closed().await?;
        self.told("who comes back to it", again.heard);
        let mut unknown = Frames::of(self.chat_at("session_id=nonsense&test_events=1").await?);
        unknown.until("init").await?;
        let canned = json!({ "type": "user", "message": "__emit_permission__" });
        unknown.socket.say(canned).await?;
        unknown.until("control_request").await?;
        unknown.socket.say(json!({ "type": "user", "message": "die" })).await?;
        unknown.until_closed().await?;
        // Its arguments have the id, which is another one each time.
        self.told("a chat that is not there", unknown.heard);
        Ok(())
    }

    async fn approvals(&mut self) -> anyhow::Result<()> {
        let ask = json!({ "tool_name": "Bash", "description": "list", "command": "ls" });
        let asked = self.call("POST", "/api/approval/request", Some(ask)).await?;
        let id = asked["request_id"].as_str().context("no id")?.to_owned();
        self.get("/api/approval/pending").await?;
        for decision in ["maybe", "approve", "deny"] {
            let body = json!({ "request_id": id, "decision": decision });
            self.call("POST", "/api/approval/decision", Some(body)).await?;
        }
        self.get(&format!("/api/approval/status/{id}")).await?;
        self.call("DELETE", &format!("/api/approval/{id}"), None).await?;
        self.get(&format!("/api/approval/status/{id}")).await?;
        self.call("POST", "/api/approval/request", Some(json!({}))).await.map(drop)
    }

    async fn records(&mut self) -> anyhow::Result<()> {
        self.get("/api/sandbox/target").await?;
        let note = json!({ "name": "one", "target_base_url": "http://one.example" });
        let made = self.call("POST", "/api/sandbox", Some(note)).await?;
        let id = made["sandbox"]["id"].as_str().context("no id")?.to_owned();
        self.call("POST", &format!("/api/sandbox/{id}/activate"), None).await?;
        for path in
            ["/api/sandbox", "/api/sandbox/active", "/api/sandbox/target", "/api/sandbox/no"]
        {
            self.get(path).await?;
        }
        self.call("POST", &format!("/api/sandbox/{id}/stop"), None).await.map(drop)
    }

    async fn pty(&self, query: &str) -> anyhow::Result<Pty> {
        Pty::open(&self.url, &self.token, query).await
    }

    async fn chat_at(&self, query: &str) -> anyhow::Result<Pty> {
        Pty::chat(&self.url, &self.token, query).await
    }
}

/// A connection, and what came over it.
struct Frames {
    socket: Pty,
    heard: Vec<Value>,
}

impl Frames {
    fn of(socket: Pty) -> Self {
        Self { socket, heard: Vec::new() }
    }

    /// Pieces of output are one: where they are cut is chance.
    async fn next(&mut self) -> anyhow::Result<Value> {
        let frame = match self.socket.next().await? {
            PtySeen::Frame(frame) => frame,
            PtySeen::Closed(code, reason) => json!({ "closed": code, "reason": reason }),
        };
        match self.heard.last_mut() {
            Some(last) if last["type"] == "output" && frame["type"] == "output" => {
                let both = [&last["data"], &frame["data"]].map(|data| data.as_str().unwrap());
                last["data"] = json!(both.concat());
            }
            _ => self.heard.push(frame.clone()),
        }
        Ok(frame)
    }

    async fn until(&mut self, word: &str) -> anyhow::Result<()> {
        loop {
            let frame =
                self.next().await.with_context(|| format!("{word} after {:?}", self.heard))?;
            anyhow::ensure!(frame.get("closed").is_none(), "{word} after {:?}", self.heard);
            if frame["type"] == word || frame["subtype"] == word {
                return Ok(());
            }
        }
    }

    async fn until_output(&mut self, text: &str) -> anyhow::Result<()> {
        while !self
            .heard
            .last()
            .is_some_and(|last| last["data"].as_str().unwrap_or_default().ends_with(text))
        {
            self.next().await.with_context(|| format!("{text:?} after {:?}", self.heard))?;
        }
        Ok(())
    }

    async fn until_closed(&mut self) -> anyhow::Result<()> {
        while self
            .next()
            .await
            .with_context(|| format!("after {:?}", self.heard))?
            .get("closed")
            .is_none()
        {}
        Ok(())
    }
}
