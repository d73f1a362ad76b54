//! Names that lead elsewhere on every parameter that takes one (T49), and odd names that are
//! nothing but names (T57).

use std::fmt::Write;

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::json;

use crate::SANDBANK;
use crate::routes;
use crate::wire::{envelope, status, until_closed};

const CANARY: &str = "the canary sings outside";

/// Every byte but plain letters, so that no client library tidies the path up.
fn encoded(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() {
            text.push(*byte as char);
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// What is not a name, each as the bytes a handler gets to see.
fn hostile(outside: &str) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "..",
        "../..",
        "../../../../../../../../etc/passwd",
        "/",
        "//",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/1/root/etc/passwd",
        "%2e%2e",
        "%2e%2e%2fetc%2fpasswd",
        "%252e%252e%252f",
        "..%2f..",
        "..\\..\\etc",
        "\\\\host\\share",
        "a\0b",
        "\0",
        "\u{ff0e}\u{ff0e}",
        "\u{2025}/etc",
        "\u{202e}txt",
        "a/../../b",
        "workspace/../../x",
        "/workspace/../etc/passwd",
        "/workspace/../../etc/passwd",
        "/workspacex",
        "~root",
        "$(id)",
        "`id`",
        "a\nb",
        "a\r\nX: y",
        "file:///etc/passwd",
        "http://localhost/",
        "sbaaaaaaaaaaaaaaaa/../x",
        "-rf",
        "..;/",
        ".%00.",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.push(outside.as_bytes().to_vec());
    names.push(format!("../../../../../../../..{outside}").into());
    names.push(b"a".repeat(4097));
    names.push(b"a/".repeat(3000));
    names.push(b"../".repeat(1300));
    names.push(b"\xff\xfe".to_vec());
    names.push(b"\xc0\xae\xc0\xae/".to_vec());
    names
}

struct Outside {
    directory: tempfile::TempDir,
}

impl Outside {
    fn new() -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("sandbank-outside-").tempdir()?;
        std::fs::write(directory.path().join("canary"), CANARY)?;
        Ok(Self { directory })
    }

    fn canary(&self) -> String {
        self.directory.path().join("canary").display().to_string()
    }

    fn assert_untouched(&self) -> anyhow::Result<()> {
        assert_eq!(std::fs::read_to_string(self.canary())?, CANARY);
        assert_eq!(std::fs::read_dir(self.directory.path())?.count(), 1);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_id_tag_or_path_leads_anywhere_else() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("names").await?;
    let outside = Outside::new()?;
    let token = daemon.token()?;
    let mut tried = 0;
    for route in routes::all(&api).await? {
        for name in hostile(&outside.canary()) {
            let text = encoded(&name);
            let mut urls = Vec::new();
            for parameter in ["{id}", "{commandId}", "{port}", "{name}"] {
                if route.path.contains(parameter) {
                    let path = route.path.replace(parameter, &text);
                    let filled = path.replace("{id}", &id).replace("{commandId}", "c1");
                    urls.push(filled.replace("{port}", "3000").replace("{name}", "x"));
                }
            }
            if route.query.iter().any(|parameter| parameter == "path") {
                urls.push(format!("{}?path={text}&recursive=true", route.url(&id, "c1")));
            }
            for url in urls {
                // By hand, because client libraries resolve dots before they send.
                let request = format!(
                    "{} {url} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
                     Content-Length: 11\r\nConnection: close\r\n\r\noverwritten",
                    route.method
                );
                let answer = until_closed(&daemon, request.as_bytes()).await;
                let (status, body) = (status(&answer), answer.split_once("\r\n\r\n").unwrap().1);
                tried += 1;
                assert!(!body.contains(CANARY) && !body.contains("root:x:0:0"), "{url}: {body}");
                assert!(status < 500, "{} {url}: {status} {body}", route.method);
                if status >= 400 && route.method != "HEAD" {
                    envelope(body);
                }
            }
        }
    }
    assert!(tried > 1500, "only {tried} requests were sent");
    outside.assert_untouched()?;
    assert_eq!(api.run(&id, "echo alive").await?.1, "alive\n");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_in_a_body_leads_outside() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("names").await?;
    let outside = Outside::new()?;
    api.run(&id, &format!("ln -s {} out; ln -s / root; echo x > f", outside.canary())).await?;
    let mut paths = hostile(&outside.canary());
    for link in ["root/etc/passwd", "out/x", "/workspace/out", "/workspace/root/tmp/x"] {
        paths.push(link.as_bytes().to_vec());
    }
    let base = format!("/v1/sandboxes/{id}");
    for path in paths {
        let Ok(path) = String::from_utf8(path) else { continue };
        let cases = [
            ("files:write", json!({ "files": [{ "path": path, "contentBase64": "eA==" }] })),
            ("files:mkdir", json!({ "path": path, "parents": true })),
            ("files:move", json!({ "from": "f", "to": path, "overwrite": true })),
            ("files:move", json!({ "from": path, "to": "g" })),
            ("commands", json!({ "argv": ["true"], "cwd": path })),
            ("commands", json!({ "argv": ["true"], "commandId": path })),
        ];
        for (verb, body) in cases {
            let (status, answer) =
                api.try_call("POST", &format!("{base}/{verb}"), Some(body.clone())).await?;
            assert!(status < 500, "{verb} {body}: {status} {answer}");
        }
        api.run(&id, "test -e f || echo x > f; rm -rf g").await?;
        let body = json!({ "sessionKey": "names", "image": path });
        let (status, answer) = api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
        assert!(status < 500, "{path:?} as an image: {status} {answer}");
        let body = json!({ "name": path, "path": "/nothing" });
        let (status, answer) = api.try_call("POST", "/v1/images:import", Some(body)).await?;
        assert_eq!(status, 400, "{path:?}: {answer}");
        let body = json!({ "name": path, "scope": "read_only" });
        let (status, answer) = api.try_call("POST", "/v1/tokens", Some(body)).await?;
        assert_eq!(status, 400, "{path:?} as a token's name: {answer}");
    }
    outside.assert_untouched()?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_names_go_round_through_list_read_move_and_delete() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("odd").await?;
    let names: [String; 9] = [
        "-rf".to_owned(),
        "--help".to_owned(),
        "new\nline".to_owned(),
        "tab\tand\u{1b}[31mred".to_owned(),
        " spaces ".to_owned(),
        "back\\slash".to_owned(),
        "%2e%2e".to_owned(),
        "ünï\u{202e}cödé".to_owned(),
        "n".repeat(255),
    ];
    let base = format!("/v1/sandboxes/{id}");
    for name in &names {
        let path = encoded(name.as_bytes());
        let put = api.request("PUT", &format!("{base}/files?path={path}")).body(name.clone());
        assert_eq!(put.send().await?.status(), 200, "{name:?}");
    }
    let listing = api.call("GET", &format!("{base}/files:list"), None).await?;
    let mut listed: Vec<&str> = listing["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    for name in &names {
        let path = encoded(name.as_bytes());
        let read = api.request("GET", &format!("{base}/files?path={path}")).send().await?;
        assert_eq!(read.text().await?, *name);
        let to = format!("d/{name}");
        let body = json!({ "from": name, "to": to });
        api.call(
            "POST",
            &format!("{base}/files:mkdir"),
            Some(json!({ "path": "d", "parents": true })),
        )
        .await?;
        api.call("POST", &format!("{base}/files:move"), Some(body)).await?;
        let path = encoded(to.as_bytes());
        api.call("DELETE", &format!("{base}/files?path={path}"), None).await?;
    }
    // A name that is no text is listed with its bytes, and cleaned up with its directory.
    let (code, _, err) = api.run(&id, "mkdir bytes; : > bytes/$'\\xff\\xfe'").await?;
    assert_eq!(code, 0, "{err}");
    let listing = api.call("GET", &format!("{base}/files:list?path=bytes"), None).await?;
    assert_eq!(listing["entries"][0]["nameHex"], "fffe", "{listing}");
    api.call("DELETE", &format!("{base}/files?path=bytes&recursive=true"), None).await?;
    let listing = api.call("GET", &format!("{base}/files:list?path=d"), None).await?;
    assert_eq!(listing["entries"], json!([]));
    daemon.finish().await
}
