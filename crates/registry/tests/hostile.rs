//! Registries that answer what no registry would: every answer ends in an error, soon, and in
//! little memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandbank_registry::{Credentials, Digest, Platform, Registry, RegistryError, RegistrySettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a path is answered with.
#[derive(Clone)]
enum Answer {
    Whole(String),
    /// A head, and then the same bytes for ever.
    Endless(String),
    /// A head, and then a byte now and then.
    Dribble(String),
    /// A head, and then nothing.
    Silence(String),
    /// The first one for whoever sends these words, else the second.
    Behind(&'static str, Box<Answer>, Box<Answer>),
}

fn json(body: &str) -> Answer {
    Answer::Whole(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn status(line: &str, headers: &str) -> Answer {
    Answer::Whole(format!("HTTP/1.1 {line}\r\n{headers}content-length: 0\r\n\r\n"))
}

/// How long these registries may send nothing.
const STALL: Duration = Duration::from_millis(300);

struct Fake {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// The first part of a path that fits decides; all else is not found. `{port}` is our own.
    async fn start(answers: Vec<(&'static str, Answer)>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, seen) = (answers.clone(), seen.clone());
                tokio::spawn(async move { _ = serve(stream, port, &answers, &seen).await });
            }
        });
        Self { port, asked }
    }

    async fn find(&self) -> Result<(), RegistryError> {
        self.find_at("127.0.0.1", &[]).await
    }

    async fn find_at(&self, host: &str, insecure: &[String]) -> Result<(), RegistryError> {
        let settings =
            RegistrySettings { stall: STALL, insecure: insecure.to_vec(), ..Default::default() };
        let reference = format!("{host}:{}/app:1", self.port).parse().unwrap();
        let credentials = Credentials { username: "me".to_owned(), password: "secret".to_owned() };
        let platform = Platform::of_this_machine();
        Registry::new(settings).find(&reference, Some(credentials), &platform).await.map(drop)
    }

    async fn fails(&self) -> RegistryError {
        let error = self.find().await.unwrap_err();
        assert!(!error.hint().is_empty());
        assert!(!format!("{error} {}", error.hint()).contains("secret"), "{error}");
        error
    }
}

async fn serve(
    mut stream: TcpStream,
    port: u16,
    answers: &[(&'static str, Answer)],
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let fitting = answers.iter().find(|(part, _)| path.contains(part));
        let answer = match fitting.map(|(_, answer)| answer) {
            Some(Answer::Behind(words, known, _)) if head.contains(words) => (**known).clone(),
            Some(Answer::Behind(_, _, unknown)) => (**unknown).clone(),
            Some(answer) => answer.clone(),
            None => status("404 Not Found", ""),
        };
        seen.lock().unwrap().push(head);
        let filled = |text: &str| text.replace("{port}", &port.to_string()).into_bytes();
        match answer {
            Answer::Whole(text) => stream.write_all(&filled(&text)).await?,
            Answer::Endless(head) => {
                stream.write_all(&filled(&head)).await?;
                loop {
                    stream.write_all(&[b' '; 65536]).await?;
                }
            }
            Answer::Dribble(head) => {
                stream.write_all(&filled(&head)).await?;
                loop {
                    stream.write_all(b" ").await?;
                    tokio::time::sleep(STALL / 3).await;
                }
            }
            Answer::Behind(..) => unreachable!("there is one level of them"),
            Answer::Silence(head) => {
                stream.write_all(&filled(&head)).await?;
                // Until the other side has given up.
                stream.read_u8().await?;
            }
        }
    }
}

const ENDLESS: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

fn image() -> (String, &'static str) {
    let config = "{}";
    let digest = Digest::of(config.as_bytes());
    let kind = "application/vnd.oci.image.config.v1+json";
    let manifest = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"{kind}","digest":"{digest}","size":2}},"layers":[]}}"#
    );
    (manifest, config)
}

#[tokio::test]
async fn an_honest_registry_is_understood() {
    let (manifest, config) = image();
    let fake =
        Fake::start(vec![("/manifests/1", json(&manifest)), ("/blobs/", json(config))]).await;
    fake.find().await.unwrap();
    let asked = fake.asked.lock().unwrap().join("");
    assert!(!asked.to_lowercase().contains("authorization"), "nobody asked for credentials");
}

#[tokio::test]
async fn documents_without_end_are_given_up() {
    let (manifest, _) = image();
    let endless = Answer::Endless(ENDLESS.to_owned());
    let fake = Fake::start(vec![("/manifests/1", endless.clone())]).await;
    assert!(matches!(fake.fails().await, RegistryError::TooLarge { .. }));
    let fake =
        Fake::start(vec![("/manifests/1", json(&manifest)), ("/blobs/", endless.clone())]).await;
    assert!(matches!(fake.fails().await, RegistryError::TooLarge { .. }));
    let bearer = "www-authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\"\r\n";
    let refusal = status("401 Unauthorized", bearer);
    let fake = Fake::start(vec![("/manifests/1", refusal), ("/token", endless.clone())]).await;
    assert!(matches!(fake.fails().await, RegistryError::TooLarge { .. }));
    let head = ENDLESS.replace("200 OK", "500 Broken");
    let fake = Fake::start(vec![("/manifests/1", Answer::Endless(head))]).await;
    assert!(matches!(fake.fails().await, RegistryError::Refused { status: 500, .. }));
}

#[tokio::test]
async fn silence_is_given_up() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".to_owned();
    let fake = Fake::start(vec![("/manifests/1", Answer::Silence(head))]).await;
    assert!(matches!(fake.fails().await, RegistryError::Stalled { .. }));
    assert!(fake.asked.lock().unwrap().len() > 1, "it was asked once only");
}

#[tokio::test]
async fn a_registry_that_only_dribbles_is_given_up() {
    let (manifest, _) = image();
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_owned();
    let fake = Fake::start(vec![("/manifests/1", Answer::Dribble(head.clone()))]).await;
    let error = fake.fails().await;
    assert!(matches!(error, RegistryError::Slow { bytes: 1.., .. }), "{error}");
    let blobs = vec![("/manifests/1", json(&manifest)), ("/blobs/", Answer::Dribble(head))];
    let error = Fake::start(blobs).await.fails().await;
    assert!(matches!(error, RegistryError::Slow { .. }), "{error}");
}

/// `0.0.0.0` is this machine, too, but nobody takes it for loopback: a registry that is elsewhere.
#[tokio::test]
async fn a_registry_elsewhere_sends_us_neither_to_this_machine_nor_to_its_link() {
    let (manifest, config) = image();
    let inside = Fake::start(vec![("/else", json(&manifest)), ("/token", json("{}"))]).await;
    let port = inside.port;
    let to = |place: &str| status("307 X", &format!("location: {place}/else\r\n"));
    let realm = |place: &str| {
        let header = format!("www-authenticate: Bearer realm=\"{place}/token\"\r\n");
        status("401 Unauthorized", &header)
    };
    for place in [
        format!("http://127.0.0.1:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("https://localhost:{port}"),
        format!("https://127.1:{port}"),
        format!("https://[::ffff:127.0.0.1]:{port}"),
        "http://169.254.169.254".to_owned(),
        "https://169.254.169.254".to_owned(),
        "https://[fe80::1]".to_owned(),
    ] {
        for answer in [to(&place), realm(&place)] {
            let fake = Fake::start(vec![("/manifests/1", answer)]).await;
            let named = [format!("0.0.0.0:{}", fake.port)];
            let error = fake.find_at("0.0.0.0", &named).await.unwrap_err();
            assert!(matches!(error, RegistryError::Inside { .. }), "{place}: {error}");
            assert!(error.hint().contains("images.insecure_registries"));
        }
    }
    assert_eq!(inside.asked.lock().unwrap().len(), 0, "it was asked all the same");
    // What the operator named is meant.
    let place = format!("http://127.0.0.1:{port}");
    let fake = Fake::start(vec![("/manifests/1", to(&place)), ("/blobs/", json(config))]).await;
    let named = [format!("0.0.0.0:{}", fake.port), format!("127.0.0.1:{port}")];
    fake.find_at("0.0.0.0", &named).await.unwrap();
    // A registry on this machine may send us to another one on it, and not to its link.
    let fake = Fake::start(vec![("/manifests/1", to(&place)), ("/blobs/", json(config))]).await;
    fake.find().await.unwrap();
    let fake = Fake::start(vec![("/manifests/1", to("https://169.254.169.254"))]).await;
    assert!(matches!(fake.fails().await, RegistryError::Inside { .. }));
}

#[tokio::test]
async fn redirections_lead_neither_in_circles_nor_to_where_nobody_is_told() {
    let (manifest, config) = image();
    let to = |place: &str| status("307 Temporary Redirect", &format!("location: {place}\r\n"));
    let honest = vec![
        ("/manifests/1", to("/elsewhere")),
        ("/elsewhere", json(&manifest)),
        ("/blobs/", json(config)),
    ];
    Fake::start(honest).await.find().await.unwrap();
    let circle = Fake::start(vec![("/manifests/1", to("/v2/app/manifests/1"))]).await;
    assert!(matches!(circle.fails().await, RegistryError::Malformed { .. }));
    for place in
        ["http://registry.invalid/a", "file:///etc/passwd", "http://169.254.169.254/latest"]
    {
        let fake = Fake::start(vec![("/manifests/1", to(place))]).await;
        let error = fake.fails().await;
        let refused = matches!(
            error,
            RegistryError::WithoutTls { .. }
                | RegistryError::Malformed { .. }
                | RegistryError::Inside { .. }
        );
        assert!(refused, "{place}: {error}");
    }
    let nowhere = Fake::start(vec![("/manifests/1", status("302 Found", ""))]).await;
    assert!(matches!(nowhere.fails().await, RegistryError::Malformed { .. }));
}

#[tokio::test]
async fn credentials_go_to_whom_they_are_for() {
    let (manifest, config) = image();
    // Another host that a registry sends us to sees none.
    let other = Fake::start(vec![("/else", json(&manifest))]).await;
    let basic = status("401 Unauthorized", "www-authenticate: Basic realm=\"x\"\r\n");
    let lead = format!("location: http://127.0.0.1:{}/else\r\n", other.port);
    let fake = Fake::start(vec![("/manifests/1", basic.clone()), ("/blobs/", json(config))]).await;
    assert!(matches!(fake.fails().await, RegistryError::Unauthorized { known: true, .. }));
    assert!(fake.asked.lock().unwrap().last().unwrap().contains("Basic bWU6c2VjcmV0"));
    let fake =
        Fake::start(vec![("/manifests/1", status("307 X", &lead)), ("/blobs/", json(config))])
            .await;
    fake.find().await.unwrap();
    let asked = other.asked.lock().unwrap().join("");
    assert!(asked.contains("/else") && !asked.to_lowercase().contains("authorization"), "{asked}");
    // A realm without TLS that is not this machine is not asked for a token.
    let realm = "www-authenticate: Bearer realm=\"http://auth.invalid/token\"\r\n";
    let fake = Fake::start(vec![("/manifests/1", status("401 Unauthorized", realm))]).await;
    assert!(matches!(fake.fails().await, RegistryError::WithoutTls { .. }));
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_used_for_the_rest() {
    let (manifest, config) = image();
    let bearer =
        "www-authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"a b\"\r\n";
    let behind = |answer: Answer| {
        let refusal = status("401 Unauthorized", bearer);
        Answer::Behind("Bearer t0ken", Box::new(answer), Box::new(refusal))
    };
    let token = json(r#"{"token":"t0ken"}"#);
    let token = Answer::Behind("Basic bWU6c2VjcmV0", Box::new(token), Box::new(json("{}")));
    let fake = Fake::start(vec![
        ("/manifests/1", behind(json(&manifest))),
        ("/token?scope=repository:app:pull&service=a%20b", token),
        ("/blobs/", behind(json(config))),
    ])
    .await;
    fake.find().await.unwrap();
    assert_eq!(fake.asked.lock().unwrap().len(), 4, "{:?}", fake.asked.lock().unwrap());
}

#[tokio::test]
async fn a_manifest_that_is_not_what_its_head_says_is_refused() {
    let (manifest, config) = image();
    let answer = |digest: Digest| {
        Answer::Whole(format!(
            "HTTP/1.1 200 OK\r\ndocker-content-digest: {digest}\r\ncontent-length: {}\r\n\r\n{manifest}",
            manifest.len()
        ))
    };
    let right =
        vec![("/manifests/1", answer(Digest::of(manifest.as_bytes()))), ("/blobs/", json(config))];
    Fake::start(right).await.find().await.unwrap();
    let wrong = vec![("/manifests/1", answer(Digest::of(b"another"))), ("/blobs/", json(config))];
    let error = Fake::start(wrong).await.fails().await;
    assert!(matches!(error, RegistryError::WrongDigest { .. }), "{error}");
}
