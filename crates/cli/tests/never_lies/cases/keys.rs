//! A caller's own id for a command: a retry attaches instead of running twice.

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::place::Place;

pub(super) async fn one_run(place: Place) -> anyhow::Result<()> {
    let route = format!("/v1/sandboxes/{}/commands", place.sandbox);
    let start = |body: Value| {
        let (api, route) = (place.api.clone(), route.clone());
        async move { api.try_call("POST", &route, Some(body)).await }
    };
    let script = "echo run >> runs; echo said; sleep 0.2; exit 19";
    let body = json!({ "argv": ["bash", "-c", script], "commandId": "my-key" });
    let answers = try_join_all((0..50).map(|_| start(body.clone()))).await?;
    let fresh = answers.iter().filter(|(_, answer)| answer["attached"] == json!(false)).count();
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    assert!(answers.iter().all(|(_, answer)| answer["commandId"] == "my-key"), "{answers:?}");
    assert_eq!(fresh, 1, "one caller started it");
    let heard = try_join_all((0..10).map(|_| place.hear("my-key"))).await?;
    for heard in heard {
        assert_eq!((heard.text().as_str(), heard.exit_code), ("said\n", Some(19)));
    }
    let (status, after) = start(body).await?;
    assert_eq!((status, &after["attached"]), (200, &json!(true)), "also after its end");
    let other = json!({ "argv": ["bash", "-c", "echo run >> runs"], "commandId": "my-key" });
    let (status, refused) = start(other.clone()).await?;
    assert_eq!(status, 409, "another command under the same key: {refused}");
    assert_eq!(place.inside("cat runs").await?, "run");
    // The positive control: another key runs again.
    let mut again = other;
    again["commandId"] = json!("my-other-key");
    assert_eq!(place.run(again).await?.exit_code, Some(0));
    assert_eq!(place.inside("cat runs").await?, "run\nrun");
    Ok(())
}
