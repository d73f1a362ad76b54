//! Paths that become others while they are looked at, and writers that meet.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

use futures_util::future::join_all;
use sandbank_test_support::Swapper;
use serde_json::{Value, json};

use super::{Outside, answer, attacked, ready};
use crate::everywhere::everywhere;

/// At least, and at most until both of what may happen has.
const ROUNDS: usize = 4;
const MAX_ROUNDS: usize = 60;

/// Those that take a path of the workspace.
const PATHS: [&str; 11] = [
    "tree",
    "read",
    "search",
    "diff",
    "show",
    "rename from",
    "rename to",
    "move from",
    "move into",
    "write",
    "delete",
];

const WRITERS: usize = 100;
const WRITTEN_BYTES: usize = 100_000;

#[tokio::test]
async fn a_directory_that_turns_into_a_link_leads_nobody_outside_on_any_route() {
    for place in everywhere(&[]).await {
        let outside = Outside::new();
        let workspace = ready(&place).await;
        let (swapped, other) = (workspace.join("swapped"), workspace.join("other"));
        fs::create_dir(&swapped).unwrap();
        symlink(outside.path(), &other).unwrap();
        let inside = fs::File::open(&swapped).unwrap();
        // By descriptor: whatever it is called just now.
        let inside = format!("/proc/self/fd/{}", inside.as_raw_fd());
        let swapper = Swapper::start(vec![(swapped, other)]);
        let (mut had, mut refused) = (0, 0);
        for round in 0..MAX_ROUNDS {
            if round >= ROUNDS && had > 0 && refused > 0 {
                break;
            }
            for path in ["swapped/secret", "swapped/deeper/secret", "swapped/deeper"] {
                for route in PATHS {
                    fs::create_dir_all(format!("{inside}/deeper")).unwrap();
                    fs::write(format!("{inside}/secret"), "inside").unwrap();
                    fs::write(format!("{inside}/deeper/secret"), "inside").unwrap();
                    fs::write(workspace.join("safe"), "safe").unwrap();
                    for name in ["renamed", "secret", "deeper"] {
                        let left = workspace.join(name);
                        let _ = fs::remove_dir_all(&left).or_else(|_| fs::remove_file(&left));
                    }
                    let (status, body) = attacked(&place, route, path).await;
                    if route == "read" && path == "swapped/secret" {
                        match status {
                            200 => had += usize::from(body["content"] == "inside"),
                            _ => refused += 1,
                        }
                    }
                }
                outside.check(&format!("{path} in mode {}", place.mode));
            }
        }
        assert!(swapper.swaps() > 0 && had > 0 && refused > 0, "{had} had, {refused} refused");
        drop(swapper);
        place.end().await;
    }
}

#[tokio::test]
async fn of_a_hundred_writers_one_has_written_all_of_the_file() {
    for place in everywhere(&[]).await {
        ready(&place).await;
        let api = &place.world.api;
        let write = |n: usize| async move {
            let content = char::from(b'a' + (n % 26) as u8).to_string().repeat(WRITTEN_BYTES);
            let write = api.request("PUT", "/api/file?path=contended");
            answer(write.json(&json!({ "content": content }))).await.0
        };
        assert_eq!(write(0).await, 200);
        let is_whole = |read: &Value| {
            let content = read["content"].as_str().unwrap();
            let first = content.chars().next();
            content.len() == WRITTEN_BYTES && content.chars().all(|c| Some(c) == first)
        };
        let reading = async {
            for _ in 0..50 {
                let (status, read) = answer(api.request("GET", "/api/file?path=contended")).await;
                assert!(status == 200 && is_whole(&read), "mode {}: {status}", place.mode);
            }
        };
        let (written, ()) = tokio::join!(join_all((0..WRITERS).map(write)), reading);
        assert!(written.iter().all(|status| *status == 200), "mode {}: {written:?}", place.mode);
        let (_, tree) = attacked(&place, "tree", ".").await;
        let names: Vec<_> =
            tree["entries"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
        assert_eq!(names, ["contended", "safe"], "mode {}: nothing else is left", place.mode);
        place.end().await;
    }
}
