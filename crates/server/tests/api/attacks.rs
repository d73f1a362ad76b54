//! Attacks through every route of `/api` that takes a path, wherever the workspace is: the list is
//! `sandbank_test_support::workspace`, which real sandboxes are attacked with, too.

mod sizes;

use reqwest::RequestBuilder;
use sandbank_test_support::workspace::{
    ROUTES, Workspace, a_file_that_grows_ends, links_lead_nowhere, names_go_round,
    one_writer_wrote_all, paths_lead_nowhere, special_files_are_refused,
    swapped_paths_lead_nowhere,
};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::everywhere::everywhere;
use crate::log_lines::capture;
use crate::world::World;

async fn withstands<E: std::fmt::Debug>(attack: impl AsyncFn(&Workspace) -> Result<(), E>) {
    for place in everywhere(&[]).await {
        attack(&place.workspace().await).await.unwrap();
        place.end().await;
    }
}

#[tokio::test]
async fn paths_that_lead_outside_are_refused_on_every_route() {
    withstands(paths_lead_nowhere).await;
}

#[tokio::test]
async fn links_lead_nowhere_outside_on_any_route() {
    withstands(links_lead_nowhere).await;
}

#[tokio::test]
async fn special_files_are_refused_and_nothing_waits_for_them() {
    withstands(special_files_are_refused).await;
}

#[tokio::test]
async fn any_name_goes_round_through_every_route() {
    withstands(names_go_round).await;
}

#[tokio::test]
async fn a_directory_that_turns_into_a_link_leads_nobody_outside_on_any_route() {
    withstands(swapped_paths_lead_nowhere).await;
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_read_is_answered_within_its_bounds() {
    withstands(a_file_that_grows_ends).await;
}

#[tokio::test]
async fn of_a_hundred_writers_one_has_written_all_of_the_file() {
    withstands(one_writer_wrote_all).await;
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
        let workspace = place.workspace().await;
        let name = format!("private-name-{}", place.mode);
        for route in ROUTES {
            workspace.attacked(route, &name).await.unwrap();
            workspace.attacked(route, &format!("../{name}")).await.unwrap();
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
