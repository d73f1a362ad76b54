//! A workspace service as a stranger, an eavesdropper and an owner of the secret meet it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ground;
mod plain_http;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use ground::{Ground, SECRET, Serving, wait_for};
use plain_http::{Wire, send, served, signed, signer, unsigned};
use sandbank_workspace::{KeyFile, Keys, Signer};

const FORBIDDEN: &str = "Forbidden: invalid internal credentials";

#[tokio::test(flavor = "multi_thread")]
async fn health_and_version_are_for_everybody_and_nothing_else_is() {
    let served = served().await;
    let health = served.send(&unsigned("GET", "/healthz")).await;
    assert_eq!(
        (health.status, &health.body),
        (200, &serde_json::json!({"status": "ok", "version": "0.1.0"}))
    );
    let version = served.send(&unsigned("GET", "/__meta/version")).await;
    let expected = serde_json::json!({"version": "0.1.0", "compatible_from": "0.1.0"});
    assert_eq!((version.status, version.body), (200, expected));
    for (method, path) in [
        ("GET", "/hello"),
        ("GET", "/files?path=a"),
        ("PUT", "/files?path=a"),
        ("POST", "/commands"),
        ("POST", "/healthz"),
        ("GET", "/healthz/../hello"),
        ("GET", "/nothing"),
        ("OPTIONS", "/hello"),
    ] {
        let answer = served.send(&unsigned(method, path)).await;
        assert_eq!(answer.status, 403, "{method} {path}");
        assert_eq!(answer.body, serde_json::json!({ "detail": FORBIDDEN }), "{method} {path}");
    }
    let hello = served.send(&signed(&signer(), "GET", "/hello", b"")).await;
    assert_eq!(hello.status, 200, "{}", hello.head);
    assert_eq!(hello.body["workspace"], served.ground.root().to_str().unwrap());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_changed_on_its_way_is_refused_and_has_done_nothing() {
    let served = served().await;
    let right = signed(&signer(), "PUT", "/files?path=a", b"right");
    let other = Signer::new(Keys::parse(&"y".repeat(40)).unwrap());
    let wrong_secret = signed(&other, "PUT", "/files?path=a", b"right");
    let body = Wire { body: b"wrong".to_vec(), ..right.clone() };
    let longer = Wire { body: b"right and more".to_vec(), ..right.clone() };
    let path = Wire { path: "/files?path=b".into(), ..right.clone() };
    let method = Wire { method: "DELETE".into(), ..right.clone() };
    for (what, wire) in [
        ("secret", wrong_secret),
        ("body", body),
        ("longer", longer),
        ("path", path),
        ("method", method),
    ] {
        let answer = served.send(&wire).await;
        assert_eq!((answer.status, answer.detail()), (403, FORBIDDEN), "{what}");
    }
    assert_eq!(std::fs::read_dir(served.ground.root()).unwrap().count(), 0);
    let answer = served.send(&right).await;
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert_eq!(std::fs::read(served.ground.root().join("a")).unwrap(), b"right");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_changes_something_is_taken_once() {
    let served = served().await;
    let write = signed(&signer(), "PUT", "/files?path=a", b"first");
    assert_eq!(served.send(&write).await.status, 200);
    assert_eq!(
        served.send(&signed(&signer(), "PUT", "/files?path=a", b"second")).await.status,
        200
    );
    let again = served.send(&write).await;
    assert_eq!((again.status, again.detail()), (403, "Forbidden: this request was made before"));
    assert_eq!(std::fs::read(served.ground.root().join("a")).unwrap(), b"second");
    // One that only looks may come twice.
    let look = signed(&signer(), "GET", "/files/stat?path=a", b"");
    assert_eq!(served.send(&look).await.status, 200);
    assert_eq!(served.send(&look).await.status, 200);
    // And what was caught before the service was started again is not taken by the new one.
    let early = Signer::new(Keys::parse(SECRET).unwrap()).with_clock_off(-100);
    let early = served.send(&signed(&early, "DELETE", "/files?path=a", b"")).await;
    assert_eq!(early.status, 403);
    assert!(early.detail().contains("before this service began"), "{}", early.detail());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_differs_too_much_is_refused_with_by_how_much() {
    let served = served().await;
    for (off, says) in [(-400, "behind"), (400, "ahead of")] {
        let answer =
            served.send(&signed(&signer().with_clock_off(off), "GET", "/hello", b"")).await;
        assert_eq!(answer.status, 403);
        let detail = answer.detail();
        assert!(
            detail.contains(says)
                && (detail.contains("400 s")
                    || detail.contains("401 s")
                    || detail.contains("399 s")),
            "{detail}"
        );
    }
    let answer = served.send(&signed(&signer().with_clock_off(250), "GET", "/hello", b"")).await;
    assert_eq!(answer.status, 200);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_exchanged_without_a_restart() {
    let ground = Ground::new();
    let file = ground.path("secret");
    let write = |text: &str| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    };
    let new = "n".repeat(40);
    write(SECRET);
    let place = Arc::new(ground.open());
    let keys = Arc::new(KeyFile::open(&file).unwrap());
    let serving = Serving::start(place.clone(), keys.clone()).await;
    let new_signer = Signer::new(Keys::parse(&new).unwrap());
    let ask = async |signer: &Signer| {
        send(serving.address, &signed(signer, "GET", "/hello", b"")).await.status
    };
    assert_eq!((ask(&signer()).await, ask(&new_signer).await), (200, 403));
    write(&format!("{new}\n{SECRET}\n"));
    // By itself, since the file changed.
    wait_for("the new secret is taken", async || ask(&new_signer).await == 200).await;
    assert_eq!(ask(&signer()).await, 200, "the old one is gone too early");
    write(&new);
    keys.reload();
    assert_eq!((ask(&signer()).await, ask(&new_signer).await), (403, 200));
    serving.stop().await;
    place.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_signed_and_still_not_allowed_is_refused_as_what_it_is() {
    let served = served().await;
    let route = served.send(&signed(&signer(), "GET", "/nothing", b"")).await;
    assert_eq!((route.status, route.detail()), (404, "there is no such route"));
    assert!(route.head.contains("x-workspace-refusal: route"), "{}", route.head);
    let large = signed(&signer(), "PUT", "/files?path=a", &vec![0; (10 << 20) + 1]);
    let large = served.send(&large).await;
    assert_eq!(large.status, 413);
    let fits = signed(&signer(), "PUT", "/files?path=a", &vec![7; 10 << 20]);
    assert_eq!(served.send(&fits).await.status, 200);
    // The runner's own refusal comes through as it is.
    let missing = served.send(&signed(&signer(), "GET", "/files/stat?path=missing", b"")).await;
    assert_eq!((missing.status, missing.body["code"].as_str()), (404, Some("not_found")));
    assert!(!missing.head.contains("x-workspace-refusal"), "{}", missing.head);
    served.end().await;
}
