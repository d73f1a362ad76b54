//! boring-ui's HTTP routes, answer by answer.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::RequestBuilder;
use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::everywhere::everywhere;
use crate::world::World;

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    assert!(response.headers().contains_key("x-request-id"));
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(world: &World, path: &str) -> (u16, Value) {
    answer(world.api.request("GET", path)).await
}

async fn send(world: &World, method: &str, path: &str, body: Value) -> (u16, Value) {
    answer(world.api.request(method, path).json(&body)).await
}

fn detail(status: u16, text: &str) -> (u16, Value) {
    (status, json!({ "detail": text }))
}

async fn put(world: &World, path: &str, content: &str) {
    let body = json!({ "content": content });
    let put = send(world, "PUT", &format!("/api/file?path={path}"), body).await;
    assert_eq!(put, (200, json!({ "success": true, "path": path })));
}

#[tokio::test]
async fn what_there_is_is_told_in_the_originals_shapes() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    let (status, health) = answer(world.open("GET", "/health")).await;
    assert_eq!(
        (status, &health["status"], &health["workspace_mode"]),
        (200, &json!("ok"), &json!("sandbox"))
    );
    let (_, capabilities) = get(&world, "/api/capabilities").await;
    assert_eq!(capabilities["version"], "0.1.0");
    assert_eq!(capabilities["features"], health["features"]);
    let prefixes: Vec<&Value> = capabilities["routers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|router| &router["prefix"])
        .collect();
    assert_eq!(prefixes, ["/api", "/api/git", "/ws", "/ws", "/ws", "/api", "/api/sandbox"]);
    let (_, config) = get(&world, "/api/config?config_path=x").await;
    assert_eq!(config["pty_providers"], json!(["shell", "claude"]));
    assert_eq!(config["paths"], json!({ "files": "." }));
    assert_eq!(config["sandbox"]["enabled"], true);
    assert_eq!(
        get(&world, "/api/project").await,
        (200, json!({ "root": config["workspace_root"] }))
    );
    assert_eq!(get(&world, "/api/nothing").await, detail(404, "Not Found"));
    assert_eq!(
        send(&world, "POST", "/api/tree", json!({})).await,
        detail(405, "Method Not Allowed")
    );
}

#[tokio::test]
async fn files_are_written_read_and_deleted_with_the_originals_words() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        put(world, "deep/er/a.txt", "grüße\n").await;
        let read = get(world, "/api/file?path=deep/er/a.txt").await;
        assert_eq!(read, (200, json!({ "content": "grüße\n", "path": "deep/er/a.txt" })));
        // Cleaned by its letters, echoed as given.
        let odd = get(world, "/api/file?path=./deep/x/../er/a.txt").await;
        assert_eq!(odd, (200, json!({ "content": "grüße\n", "path": "./deep/x/../er/a.txt" })));
        assert_eq!(get(world, "/api/file?path=no").await, detail(404, "File not found: no"));
        assert_eq!(
            get(world, "/api/file?path=deep").await,
            detail(400, "Path is a directory: deep")
        );
        let missing = json!([{ "type": "missing", "loc": ["query", "path"], "msg": "Field required", "input": null }]);
        assert_eq!(get(world, "/api/file").await, (422, json!({ "detail": missing })));
        for outside in ["../x", "/etc/passwd", "deep/../../x"] {
            let refused = detail(400, &format!("Path traversal detected: {outside}"));
            assert_eq!(get(world, &format!("/api/file?path={outside}")).await, refused);
            let file = format!("/api/file?path={outside}");
            assert_eq!(send(world, "PUT", &file, json!({ "content": "" })).await, refused);
            assert_eq!(get(world, &format!("/api/tree?path={outside}")).await, refused);
        }
        let (status, body) = send(world, "PUT", "/api/file?path=x", json!({ "text": "" })).await;
        assert_eq!((status, &body["detail"][0]["loc"]), (422, &json!(["body", "content"])));
        assert_eq!(
            send(world, "PUT", "/api/file?path=deep", json!({ "content": "" })).await,
            detail(400, "Path is a directory: deep")
        );
        let deleted = answer(world.api.request("DELETE", "/api/file?path=deep")).await;
        assert_eq!(deleted, (200, json!({ "success": true, "path": "deep" })));
        let again = answer(world.api.request("DELETE", "/api/file?path=deep")).await;
        assert_eq!(again, detail(404, "File not found: deep"));
        let (status, _) = answer(world.api.request("DELETE", "/api/file?path=.")).await;
        assert_eq!(status, 400);
        place.end().await;
    }
}

#[tokio::test]
async fn what_is_no_text_or_too_large_has_a_defined_answer() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    put(&world, "a", "").await;
    let sandboxes = world.api.sandboxes().await.unwrap();
    let id = sandboxes[0]["id"].as_str().unwrap().to_owned();
    let upload = |path: &str, content: Vec<u8>| {
        world.api.request("PUT", &format!("/v1/sandboxes/{id}/files?path={path}")).body(content)
    };
    upload("binary", vec![0, 159, 146, 150]).send().await.unwrap().error_for_status().unwrap();
    upload("large", vec![b'x'; (10 << 20) + 1]).send().await.unwrap().error_for_status().unwrap();
    assert_eq!(
        get(&world, "/api/file?path=binary").await,
        detail(415, "File is not UTF-8 text: binary")
    );
    assert_eq!(get(&world, "/api/file?path=large").await.0, 413);
}

#[tokio::test]
async fn a_file_that_is_cut_while_it_is_read_is_told_to_have_changed() {
    /// As many as may be read at once.
    const WHOLE: usize = 10 << 20;
    const CUT: u64 = 10;
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        put(world, "first", "").await;
        let directory = place.directory().await;
        let sandboxes = world.api.sandboxes().await.unwrap();
        let sandbox = sandboxes.first().map(|one| one["id"].as_str().unwrap().to_owned());
        let mut paths = vec!["/api/file?path=f".to_owned()];
        paths.extend(sandbox.map(|id| format!("/v1/sandboxes/{id}/files:read?path=/workspace/f")));
        for path in paths {
            let told = async {
                // Earlier and later than a read of this machine takes, until it is in the middle.
                let mut longest = Duration::from_millis(10);
                for attempt in 0.. {
                    std::fs::write(directory.join("whole"), vec![b'a'; WHOLE]).unwrap();
                    std::fs::rename(directory.join("whole"), directory.join("f")).unwrap();
                    let cut = async {
                        tokio::time::sleep(longest * (attempt % 50) / 40).await;
                        let file = std::fs::File::options().write(true).open(directory.join("f"));
                        file.unwrap().set_len(CUT).unwrap();
                    };
                    let begun = std::time::Instant::now();
                    let ((status, body), ()) = tokio::join!(get(world, &path), cut);
                    longest = longest.max(begun.elapsed());
                    if status == 409 {
                        return body.to_string();
                    }
                    assert_eq!(status, 200, "{body}");
                    let read = body["content"].as_str().map_or_else(
                        || STANDARD.decode(body["contentBase64"].as_str().unwrap()).unwrap().len(),
                        str::len,
                    );
                    assert!(
                        [WHOLE, CUT as usize].contains(&read),
                        "{read} bytes pass for the file"
                    );
                }
                unreachable!("it is tried for as long as there is time")
            };
            let told = tokio::time::timeout(Duration::from_secs(60), told).await;
            let told = told.expect("it is never cut in the middle");
            assert!(told.contains("changed while it was read"), "{told}");
        }
        place.end().await;
    }
}

#[tokio::test]
async fn a_tree_has_directories_first_and_sizes_of_files() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        for path in ["b.txt", "A.txt", "zdir/x", ".hidden"] {
            put(world, path, "12345678").await;
        }
        let file = |name: &str| json!({ "name": name, "path": name, "is_dir": false, "size": 8 });
        let entries = json!([
            { "name": "zdir", "path": "zdir", "is_dir": true }, file(".hidden"), file("A.txt"), file("b.txt"),
        ]);
        assert_eq!(
            get(world, "/api/tree").await,
            (200, json!({ "entries": entries, "path": "." }))
        );
        let below = json!([{ "name": "x", "path": "zdir/x", "is_dir": false, "size": 8 }]);
        let tree = get(world, "/api/tree?path=zdir").await;
        assert_eq!(tree, (200, json!({ "entries": below, "path": "zdir" })));
        let missing = get(world, "/api/tree?path=none").await;
        assert_eq!(missing, (200, json!({ "entries": [], "path": "none" })));
        assert_eq!(
            get(world, "/api/tree?path=b.txt").await,
            detail(400, "Path is not a directory: b.txt")
        );
        place.end().await;
    }
}

#[tokio::test]
async fn files_are_renamed_and_moved_and_nothing_is_overwritten() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        put(world, "a", "a").await;
        put(world, "b", "b").await;
        put(world, "d/a", "old").await;
        let rename = |old: &str, new: &str| {
            let body = json!({ "old_path": old, "new_path": new });
            world.api.request("POST", "/api/file/rename").json(&body)
        };
        let move_into = |source: &str, directory: &str| {
            let body = json!({ "src_path": source, "dest_dir": directory });
            world.api.request("POST", "/api/file/move").json(&body)
        };
        assert_eq!(answer(rename("a", "b")).await, detail(409, "Target exists: b"));
        assert_eq!(answer(rename("none", "c")).await, detail(404, "File not found: none"));
        assert_eq!(answer(rename("none", "new/c")).await, detail(404, "File not found: none"));
        let renamed = answer(rename("b", "new/c")).await;
        assert_eq!(
            renamed,
            (200, json!({ "success": true, "old_path": "b", "new_path": "new/c" }))
        );
        assert_eq!(
            answer(move_into("a", "d")).await,
            detail(409, "Target exists in destination: d/a")
        );
        assert_eq!(answer(move_into("a", "none")).await, detail(404, "File not found: none"));
        assert_eq!(
            answer(move_into("a", "d/a")).await,
            detail(400, "Destination is not a directory: d/a")
        );
        let moved = answer(move_into("a", "new")).await;
        assert_eq!(moved, (200, json!({ "success": true, "old_path": "a", "dest_path": "new/a" })));
        let root = answer(move_into("new/c", ".")).await;
        assert_eq!(root, (200, json!({ "success": true, "old_path": "new/c", "dest_path": "c" })));
        assert_eq!(get(world, "/api/file?path=c").await.1["content"], "b");
        assert_eq!(get(world, "/api/file?path=d/a").await.1["content"], "old");
        place.end().await;
    }
}

#[tokio::test]
async fn an_approval_is_asked_for_decided_once_and_withdrawn() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        let question = json!({ "tool_name": "bash", "description": "list", "command": "ls" });
        let (status, asked) = send(world, "POST", "/api/approval/request", question).await;
        assert_eq!((status, &asked["status"]), (200, &json!("pending")));
        let id = asked["request_id"].as_str().unwrap();
        let (_, pending) = get(world, "/api/approval/pending").await;
        assert_eq!((&pending["count"], &pending["pending"]), (&json!(1), &pending["requests"]));
        assert_eq!(pending["pending"][0]["command"], "ls");
        let decide = |id: &str, decision: &str| {
            let body = json!({ "request_id": id, "decision": decision, "reason": "fine" });
            world.api.request("POST", "/api/approval/decision").json(&body)
        };
        assert_eq!(
            answer(decide(id, "maybe")).await,
            detail(400, "Decision must be 'approve' or 'deny'")
        );
        assert_eq!(
            answer(decide("no", "deny")).await,
            detail(404, "Approval request not found: no")
        );
        let decided = answer(decide(id, "approve")).await;
        assert_eq!(
            decided,
            (200, json!({ "success": true, "request_id": id, "decision": "approve" }))
        );
        assert_eq!(
            answer(decide(id, "deny")).await,
            detail(409, "Request already decided: approve")
        );
        let (_, status) = get(world, &format!("/api/approval/status/{id}")).await;
        assert_eq!((&status["status"], &status["reason"]), (&json!("approve"), &json!("fine")));
        assert_eq!(get(world, "/api/approval/pending").await.1["count"], 0);
        let path = format!("/api/approval/{id}");
        let deleted = answer(world.api.request("DELETE", &path)).await;
        assert_eq!(deleted, (200, json!({ "success": true, "request_id": id })));
        assert_eq!(answer(world.api.request("DELETE", &path)).await.0, 404);
        place.end().await;
    }
}

struct Asker<'a>(&'a World, String);

impl<'a> Asker<'a> {
    async fn named(world: &'a World, name: &str) -> Self {
        let body = json!({ "name": name, "scope": "sandbox" });
        let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
        Self(world, made["token"].as_str().unwrap().to_owned())
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.0.open(method, path).bearer_auth(&self.1)
    }

    async fn ask(&self) -> String {
        let question = json!({ "tool_name": "bash", "description": "list" });
        let asked = answer(self.request("POST", "/api/approval/request").json(&question)).await.1;
        asked["request_id"].as_str().unwrap().to_owned()
    }

    async fn decide(&self, id: &str) -> (u16, Value) {
        let body = json!({ "request_id": id, "decision": "approve" });
        answer(self.request("POST", "/api/approval/decision").json(&body)).await
    }

    async fn status(&self, id: &str) -> (u16, Value) {
        answer(self.request("GET", &format!("/api/approval/status/{id}"))).await
    }

    async fn pending(&self) -> Value {
        answer(self.request("GET", "/api/approval/pending")).await.1["count"].clone()
    }
}

#[tokio::test]
async fn an_approval_is_of_who_asked() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    let (ann, bob) = (Asker::named(&world, "ann").await, Asker::named(&world, "bob").await);
    let id = ann.ask().await;
    // Others see and do nothing; who asked and who may do everything do.
    assert_eq!(bob.pending().await, 0);
    assert_eq!(bob.status(&id).await.0, 404);
    assert_eq!(bob.decide(&id).await.0, 404);
    let delete = bob.request("DELETE", &format!("/api/approval/{id}"));
    assert_eq!(answer(delete).await.0, 404);
    assert_eq!(ann.pending().await, 1);
    let admin = Asker(&world, world.token.clone());
    assert_eq!(admin.pending().await, 1);
    assert_eq!(ann.decide(&id).await.0, 200);
    assert_eq!(ann.status(&id).await.1["status"], "approve");
    let of_admin = ann.ask().await;
    assert_eq!(admin.decide(&of_admin).await.0, 200);
}

#[tokio::test]
async fn an_approval_is_denied_when_nobody_decides_in_time() {
    let settings = [("workspace.mode", "sandbox"), ("workspace.approval_seconds", "2")];
    let world = World::with(&settings).await;
    let ann = Asker::named(&world, "ann").await;
    let late = ann.ask().await;
    let asked = ann.status(&late).await.1;
    assert!(asked["expires_at"].as_str().unwrap() > asked["created_at"].as_str().unwrap());
    wait_for("its time to be over", Duration::from_secs(20), || async {
        ann.status(&late).await.1["status"] == "deny"
    })
    .await
    .unwrap();
    assert_eq!(ann.decide(&late).await, detail(409, "Request already decided: deny"));
    assert_eq!(ann.status(&late).await.1["reason"], "nobody decided in time");
    assert_eq!(ann.pending().await, 0);
}

#[tokio::test]
async fn without_a_token_only_an_opened_loopback_is_let_in() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    let (status, body) = answer(world.open("GET", "/api/tree")).await;
    assert_eq!(status, 401);
    assert!(body["detail"].as_str().unwrap().contains("Authorization: Bearer"), "{body}");
    assert_eq!(answer(world.open("GET", "/api/nothing")).await.0, 401);
    let opened = World::with(&[("workspace.mode", "sandbox"), ("workspace.loopback_open", "true")]);
    let opened = opened.await;
    assert_eq!(answer(opened.open("GET", "/api/tree")).await.0, 200);
    // What is not the workspace's stays closed.
    assert_eq!(opened.open("GET", "/v1/sandboxes").send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_workspace_that_is_switched_off_says_how_to_have_it() {
    let world = World::start().await;
    for path in ["/health", "/api/tree", "/api/config"] {
        let (status, body) = get(&world, path).await;
        assert_eq!(status, 404, "{path}");
        assert!(body["detail"].as_str().unwrap().contains("WORKSPACE_MODE"), "{body}");
    }
}

#[tokio::test]
async fn names_are_found_by_globs_and_by_their_parts_in_any_case() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        for path in ["Read.me", "src/readme.txt", "src/deep/other.rs", ".hidden/README"] {
            put(world, path, "").await;
        }
        let (status, found) = get(world, "/api/search?q=*READ*").await;
        let paths: Vec<&Value> =
            found["results"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
        assert_eq!(
            (status, paths),
            (200, vec![&json!(".hidden/README"), &json!("Read.me"), &json!("src/readme.txt")])
        );
        assert_eq!((&found["pattern"], &found["path"]), (&json!("*READ*"), &json!(".")));
        let (_, found) = get(world, "/api/search?q=adme&path=src").await;
        let one = json!({ "name": "readme.txt", "path": "src/readme.txt", "dir": "src" });
        assert_eq!(found, json!({ "results": [one], "pattern": "adme", "path": "src" }));
        let (_, found) = get(world, "/api/search?q=deep").await;
        assert_eq!(found["results"], json!([{ "name": "deep", "path": "src/deep", "dir": "src" }]));
        let (_, found) = get(world, "/api/search?q=read.me").await;
        assert_eq!(found["results"][0]["dir"], "");
        let (status, body) = get(world, "/api/search").await;
        assert_eq!((status, &body["detail"][0]["loc"]), (422, &json!(["query", "q"])));
        let (status, body) = get(world, "/api/search?q=").await;
        assert_eq!((status, &body["detail"][0]["type"]), (422, &json!("string_too_short")));
        assert_eq!(
            get(world, "/api/search?q=x&path=../y").await,
            detail(400, "Path traversal detected: ../y")
        );
        place.end().await;
    }
}

#[tokio::test]
async fn a_repository_is_told_as_the_original_tells_it() {
    for place in everywhere(&[]).await {
        println!("in a workspace of mode {}", place.mode);
        let world = &place.world;
        put(world, "a.txt", "one\n").await;
        assert_eq!(
            get(world, "/api/git/status").await,
            (200, json!({ "is_repo": false, "files": [] }))
        );
        place.git(&["init", "-q"]).await;
        place.git(&["add", "."]).await;
        place.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]).await;
        let clean = json!({ "is_repo": true, "available": true, "files": {} });
        assert_eq!(get(world, "/api/git/status").await, (200, clean));
        put(world, "a.txt", "two\n").await;
        put(world, "d/new", "").await;
        put(world, "untracked.txt", "").await;
        let files = json!({ "a.txt": "M", "d/": "U", "untracked.txt": "U" });
        let status = json!({ "is_repo": true, "available": true, "files": files });
        assert_eq!(get(world, "/api/git/status").await, (200, status));
        let (_, diff) = get(world, "/api/git/diff?path=a.txt").await;
        assert!(diff["diff"].as_str().unwrap().contains("-one\n+two"), "{diff}");
        let untracked = json!({ "diff": "", "path": "untracked.txt" });
        assert_eq!(get(world, "/api/git/diff?path=untracked.txt").await, (200, untracked));
        let show = get(world, "/api/git/show?path=a.txt").await;
        assert_eq!(show, (200, json!({ "content": "one\n", "path": "a.txt" })));
        let show = get(world, "/api/git/show?path=untracked.txt").await;
        let nothing = json!({ "content": null, "path": "untracked.txt", "error": "Not in HEAD" });
        assert_eq!(show, (200, nothing));
        place.end().await;
    }
}
