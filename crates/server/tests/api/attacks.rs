//! Attacks through every route of `/api` that takes a path, wherever the workspace is. Around the
//! workspace lies what must not be read and must not change.

mod races;
mod sizes;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::everywhere::{Everywhere, everywhere};
use crate::log_lines::capture;
use crate::world::World;

const CANARY: &str = "canary-7f3a-contents";

/// Nothing hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// Every route with a path in it, and where in it the path is.
const ROUTES: [&str; 16] = [
    "tree",
    "read",
    "search",
    "diff",
    "show",
    "rename from",
    "rename to",
    "move from",
    "move into",
    "attachment",
    "approval status",
    "approval delete",
    "sandbox",
    "sandbox activate",
    "write",
    "delete",
];

fn request(world: &World, route: &str, path: &str) -> RequestBuilder {
    let api = |method: &str, route: &str| world.api.request(method, route);
    let at = |method: &str, route: &str| api(method, route).query(&[("path", path)]);
    let rename = |body: Value| api("POST", "/api/file/rename").json(&body);
    let move_into = |body: Value| api("POST", "/api/file/move").json(&body);
    let segment = |prefix: &str, suffix: &str| {
        let encoded: String = path.bytes().take(3_000).map(|byte| format!("%{byte:02x}")).collect();
        format!("{prefix}{encoded}{suffix}")
    };
    match route {
        "tree" => at("GET", "/api/tree"),
        "read" => at("GET", "/api/file"),
        "search" => at("GET", "/api/search").query(&[("q", "*")]),
        "diff" => at("GET", "/api/git/diff"),
        "show" => at("GET", "/api/git/show"),
        "rename from" => rename(json!({ "old_path": path, "new_path": "renamed" })),
        "rename to" => rename(json!({ "old_path": "safe", "new_path": path })),
        "move from" => move_into(json!({ "src_path": path, "dest_dir": "." })),
        "move into" => move_into(json!({ "src_path": "safe", "dest_dir": path })),
        "attachment" => {
            let form =
                Form::new().part("file", Part::bytes(b"x".to_vec()).file_name(path.to_owned()));
            api("POST", "/api/attachments").multipart(form)
        }
        "approval status" => api("GET", &segment("/api/approval/status/", "")),
        "approval delete" => api("DELETE", &segment("/api/approval/", "")),
        "sandbox" => api("GET", &segment("/api/sandbox/", "")),
        "sandbox activate" => api("POST", &segment("/api/sandbox/", "/activate")),
        "write" => at("PUT", "/api/file").json(&json!({ "content": "overwritten" })),
        "delete" => at("DELETE", "/api/file"),
        other => panic!("{other} is no route"),
    }
}

/// The answer, which came in time, is no failure of ours and tells nothing from outside.
async fn attacked(place: &Everywhere, route: &str, path: &str) -> (u16, Value) {
    let about = format!("{route} with {path:?} in mode {}", place.mode);
    let sent = tokio::time::timeout(DEADLINE, request(&place.world, route, path).send());
    let response = sent.await.unwrap_or_else(|_| panic!("{about} hangs")).unwrap();
    let status = response.status().as_u16();
    let body = response.text().await.unwrap();
    assert!(status < 500, "{about}: {status} {body}");
    for private in [CANARY, "root:x:0:", place.world.token.as_str()] {
        assert!(!body.contains(private), "{about} told {private}: {body}");
    }
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

/// A directory outside, and what is in it.
struct Outside {
    directory: tempfile::TempDir,
    before: BTreeMap<String, Vec<u8>>,
}

impl Outside {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("secret"), CANARY).unwrap();
        fs::create_dir(directory.path().join("deeper")).unwrap();
        fs::write(directory.path().join("deeper/secret"), CANARY).unwrap();
        let before = contents(directory.path());
        Self { directory, before }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn check(&self, about: &str) {
        assert_eq!(contents(self.path()), self.before, "{about} changed what is outside");
    }
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

async fn ready(place: &Everywhere) -> std::path::PathBuf {
    assert_eq!(attacked(place, "write", "safe").await.0, 200);
    place.directory().await
}

#[tokio::test]
async fn paths_that_lead_outside_are_refused_on_every_route() {
    for place in everywhere(&[]).await {
        let outside = Outside::new();
        let workspace = ready(&place).await;
        let beside = workspace.parent().unwrap().join("beside");
        let secret = outside.path().join("secret").display().to_string();
        let long = "x/".repeat(3_000);
        // The second is whether it leads outside for certain; others are odd names.
        let corpus = [
            ("..", true),
            ("../beside", true),
            ("safe/../../beside", true),
            ("./../beside", true),
            ("../../../../../../../../etc/passwd", true),
            ("/etc/passwd", true),
            ("//etc/passwd", true),
            ("/", true),
            ("/proc/self/environ", true),
            ("/proc/1/root/etc/passwd", true),
            (secret.as_str(), true),
            ("a\0b", true),
            (long.as_str(), true),
            ("", false),
            ("%2e%2e/beside", false),
            ("..%2fbeside", false),
            ("%252e%252e%252fbeside", false),
            ("..\\beside", false),
            ("\u{ff0e}\u{ff0e}/beside", false),
            ("\u{2025}/beside", false),
            (".../beside", false),
            ("~/beside", false),
            ("file:///etc/passwd", false),
        ];
        for (path, leads_out) in corpus {
            for route in ROUTES {
                fs::write(workspace.join("safe"), "safe").unwrap();
                let _ = fs::remove_file(workspace.join("renamed"));
                let (status, body) = attacked(&place, route, path).await;
                let takes_paths = !route.starts_with("approval")
                    && !route.starts_with("sandbox")
                    && route != "attachment";
                if leads_out && takes_paths {
                    let detail = body["detail"].as_str().unwrap_or_default();
                    assert!(
                        status == 400 && detail.starts_with("Path traversal detected: "),
                        "{route} with {path:?} in mode {}: {status} {body}",
                        place.mode
                    );
                }
                assert!(!beside.exists(), "{route} with {path:?} wrote beside the workspace");
                outside.check(route);
            }
        }
        // What is inside is had on the same routes.
        for (route, path) in [("tree", "."), ("read", "safe"), ("search", "."), ("delete", "safe")]
        {
            fs::write(workspace.join("safe"), "safe").unwrap();
            assert_eq!(attacked(&place, route, path).await.0, 200, "{route}");
        }
        place.end().await;
    }
}

#[tokio::test]
async fn links_lead_nowhere_outside_on_any_route() {
    for place in everywhere(&[]).await {
        let outside = Outside::new();
        let workspace = ready(&place).await;
        let links: [(&str, &Path); 7] = [
            ("to-file", &outside.path().join("secret")),
            ("to-directory", outside.path()),
            ("to-root", Path::new("/proc/1/root")),
            ("to-link", Path::new("to-directory")),
            ("up", Path::new("../..")),
            ("round", Path::new("round")),
            ("inside", Path::new("kept")),
        ];
        let below = [
            "to-file",
            "to-directory",
            "to-directory/secret",
            "to-directory/deeper",
            "to-directory/new/file",
            "to-root/etc/passwd",
            "to-link/secret",
            "to-link/deeper/secret",
            "up",
            "up/etc/passwd",
            "round",
            "round/x",
        ];
        for path in below {
            for route in ROUTES {
                for (name, target) in &links {
                    let _ = fs::remove_file(workspace.join(name));
                    symlink(target, workspace.join(name)).unwrap();
                }
                fs::write(workspace.join("safe"), "safe").unwrap();
                fs::write(workspace.join("kept"), "kept").unwrap();
                let _ = fs::remove_file(workspace.join("renamed"));
                for name in ["secret", "deeper", "file", "passwd", "x"] {
                    let _ = fs::remove_file(workspace.join(name));
                }
                let (status, body) = attacked(&place, route, path).await;
                if matches!(route, "read" | "tree")
                    && path.contains('/')
                    && path != "to-directory/new/file"
                {
                    let empty = body["entries"].as_array().is_some_and(Vec::is_empty);
                    assert!(
                        status == 400 || status == 404 || empty,
                        "{route} {path}: {status} {body}"
                    );
                }
                outside.check(&format!("{route} with {path} in mode {}", place.mode));
            }
        }
        assert_eq!(attacked(&place, "read", "inside").await.1["content"], "kept");
        place.end().await;
    }
}

#[tokio::test]
async fn special_files_are_refused_and_nothing_waits_for_them() {
    for place in everywhere(&[]).await {
        let workspace = ready(&place).await;
        let mut names = vec!["fifo", "socket"];
        let make = |name: &str| {
            let path = workspace.join(name);
            let _ = fs::remove_file(&path);
            match name {
                "fifo" => mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).map_err(Into::into),
                "socket" => UnixListener::bind(&path).map(drop),
                _ => mknodat(CWD, &path, FileType::CharacterDevice, Mode::RWXU, makedev(1, 5))
                    .map_err(std::io::Error::from),
            }
        };
        match make("zero") {
            Ok(()) => names.push("zero"),
            Err(error) => println!("skipped: a device cannot be made: {error}"),
        }
        for name in names {
            for route in ROUTES {
                make(name).unwrap();
                fs::write(workspace.join("safe"), "safe").unwrap();
                let _ = fs::remove_file(workspace.join("renamed"));
                let (status, body) = attacked(&place, route, name).await;
                if route == "read" {
                    let detail = json!({ "detail": format!("Not a regular file: {name}") });
                    assert_eq!((status, body), (400, detail), "mode {}", place.mode);
                }
            }
            make(name).unwrap();
            let (_, tree) = attacked(&place, "tree", ".").await;
            let entry = json!({ "name": name, "path": name, "is_dir": false });
            assert!(tree["entries"].as_array().unwrap().contains(&entry), "{tree}");
            fs::remove_file(workspace.join(name)).unwrap();
        }
        place.end().await;
    }
}

#[tokio::test]
async fn any_name_goes_round_through_every_route() {
    for place in everywhere(&[]).await {
        let workspace = ready(&place).await;
        place.git(&["init", "-q"]).await;
        let longest = "n".repeat(255);
        for name in
            [longest.as_str(), "new\nline", "-rf", "--help", " ", "a\\b", "\u{202e}txt", "*", "%2e"]
        {
            let about = format!("{name:?} in mode {}", place.mode);
            assert_eq!(attacked(&place, "write", name).await.0, 200, "{about}");
            assert_eq!(fs::read(workspace.join(name)).unwrap(), b"overwritten", "{about}");
            assert_eq!(attacked(&place, "read", name).await.1["content"], "overwritten", "{about}");
            for (route, list) in [("tree", "entries"), ("search", "results")] {
                let (_, found) = attacked(&place, route, ".").await;
                let named = |entry: &Value| entry["name"] == name && entry["path"] == name;
                assert!(found[list].as_array().unwrap().iter().any(named), "{route} of {about}");
            }
            let (_, status) = answer(place.world.api.request("GET", "/api/git/status")).await;
            assert_eq!(status["files"][name], "U", "{about}: {status}");
            assert_eq!(attacked(&place, "diff", name).await.1["diff"], "", "{about}");
            let _ = fs::remove_file(workspace.join("renamed"));
            assert_eq!(attacked(&place, "rename from", name).await.0, 200, "{about}");
            assert!(!workspace.join(name).exists());
            fs::rename(workspace.join("renamed"), workspace.join(name)).unwrap();
            assert_eq!(attacked(&place, "delete", name).await.0, 200, "{about}");
            assert!(!workspace.join(name).exists());
        }
        let too_long = "n".repeat(256);
        assert!((400..500).contains(&attacked(&place, "write", &too_long).await.0));
        let odd = workspace.join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
        fs::write(&odd, "odd").unwrap();
        for (route, list) in [("tree", "entries"), ("search", "results")] {
            let (status, found) = attacked(&place, route, ".").await;
            let named = |entry: &Value| entry["name"].as_str().unwrap().starts_with("odd-");
            assert!(status == 200 && found[list].as_array().unwrap().iter().any(named), "{found}");
        }
        assert_eq!(answer(place.world.api.request("GET", "/api/git/status")).await.0, 200);
        assert_eq!(fs::read(&odd).unwrap(), b"odd");
        place.end().await;
    }
}

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_wrong_token_opens_no_route_and_no_websocket() {
    let world = World::with(&[("workspace.mode", "sandbox")]).await;
    let (_, document) = answer(world.open("GET", "/openapi.json")).await;
    let longer = format!("Bearer {}x", world.token);
    let shorter = format!("Bearer {}", &world.token[..world.token.len() - 1]);
    let wrong = [&longer, &shorter, "Bearer wrong", "Bearer ", "Basic YTpi", &world.token];
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.starts_with("/api/") && !path.starts_with("/ws/") {
            continue;
        }
        let url = path.replace("{id}", "x").replace("{request_id}", "x");
        for method in item.as_object().unwrap().keys() {
            routes += 1;
            for token in wrong {
                let request =
                    world.open(&method.to_uppercase(), &url).header("authorization", token);
                let response = request.send().await.unwrap();
                assert_eq!(response.status(), 401, "{method} {path} with {token}");
                let body = response.text().await.unwrap();
                assert!(!body.contains(&world.token[..8]), "{method} {path}: {body}");
            }
        }
        if path.starts_with("/ws/") {
            for token in wrong {
                let url = format!("ws://127.0.0.1:{}{path}", world.address.port());
                let mut request = url.into_client_request().unwrap();
                request.headers_mut().insert("authorization", token.parse().unwrap());
                let refused = connect_async(request).await.unwrap_err();
                assert!(refused.to_string().contains("401"), "{path}: {refused}");
            }
        }
    }
    assert!(routes > 25, "only {routes} routes");
    assert_eq!(answer(world.api.request("GET", "/api/tree")).await.0, 200);
}

#[tokio::test]
async fn nothing_secret_is_in_the_log_whatever_a_request_carries() {
    let (log, _guard) = capture();
    let mut secrets = Vec::new();
    for place in everywhere(&[]).await {
        let world = &place.world;
        ready(&place).await;
        let name = format!("private-name-{}", place.mode);
        for route in ROUTES {
            attacked(&place, route, &name).await;
            attacked(&place, route, &format!("../{name}")).await;
        }
        let question = json!({ "tool_name": "private-tool", "description": "private-words" });
        let asked = world.api.request("POST", "/api/approval/request").json(&question);
        assert_eq!(answer(asked).await.0, 200);
        let note = json!({ "name": "private-record", "target_base_url": "http://private-host" });
        assert_eq!(answer(world.api.request("POST", "/api/sandbox").json(&note)).await.0, 200);
        let refused =
            world.open("GET", "/api/tree").header("authorization", "Bearer private-token");
        assert_eq!(answer(refused).await.0, 401);
        secrets.push(world.token.clone());
        place.end().await;
    }
    let text = log.text();
    let ours = text.lines().filter(|line| line.contains("\"target\":\"sandbank"));
    let ours: Vec<&str> = ours.collect();
    assert!(ours.iter().any(|line| line.contains("answered")), "the log is looked at");
    secrets.extend(["private-".to_owned(), "overwritten".to_owned(), "s".repeat(40)]);
    for secret in secrets {
        let found: Vec<_> = ours.iter().filter(|line| line.contains(&secret)).collect();
        assert!(found.is_empty(), "{secret}: {found:#?}");
    }
}
