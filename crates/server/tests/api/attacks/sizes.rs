//! Files and directories that are too large to be answered whole.

use std::fs::{self, File};

use serde_json::{Value, json};

use super::answer;
use crate::everywhere::{everywhere, local};

const FILES: usize = 200_000;

/// What one answer has.
const SHOWN: usize = 10_000;

/// Of this process.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_file_of_ten_gigabytes_has_its_size_and_costs_no_memory() {
    const SIZE: u64 = 10 << 30;
    for place in everywhere(&[]).await {
        let workspace = place.workspace().await;
        let attacked = async |route, path| workspace.attacked(route, path).await.unwrap();
        File::create(place.directory().await.join("huge")).unwrap().set_len(SIZE).unwrap();
        let before = resident_bytes();
        let (status, body) = attacked("read", "huge").await;
        assert_eq!(status, 413, "{body}");
        assert!(body["detail"].as_str().unwrap().starts_with("File too large: huge"), "{body}");
        let (_, tree) = attacked("tree", ".").await;
        let entry = json!({ "name": "huge", "path": "huge", "is_dir": false, "size": SIZE });
        assert!(tree["entries"].as_array().unwrap().contains(&entry), "{tree}");
        assert_eq!(attacked("rename from", "huge").await.0, 200);
        assert_eq!(attacked("delete", "renamed").await.0, 200);
        // Other tests run in this process, too.
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 1 << 30, "{grown} bytes more");
        place.end().await;
    }
}

#[tokio::test]
async fn of_two_hundred_thousand_files_what_was_cut_is_said_and_each_is_found() {
    let place = local(&[]).await;
    let workspace = place.workspace().await;
    let attacked = async |route, path| workspace.attacked(route, path).await.unwrap();
    let directory = place.directory().await.join("many");
    fs::create_dir_all(directory.join("few")).unwrap();
    // Links to one file cost less than files do, as far as a file system has them.
    let mut linked = directory.join("n0");
    File::create(&linked).unwrap();
    for n in 1..FILES {
        let name = directory.join(format!("n{n}"));
        if fs::hard_link(&linked, &name).is_err() {
            File::create(&name).unwrap();
            linked = name;
        }
    }
    let (status, tree) = attacked("tree", "many").await;
    let entries = tree["entries"].as_array().unwrap();
    assert_eq!((status, entries.len()), (200, SHOWN));
    let cut = (&tree["truncated"], &tree["truncation_reason"]);
    assert_eq!(cut, (&json!(true), &json!("nodes")));
    let (status, found) = attacked("search", ".").await;
    let results = found["results"].as_array().unwrap();
    assert_eq!((status, results.len()), (200, SHOWN));
    assert_eq!(found["truncated"], true);
    // What is not cut says nothing of it, and nothing hides behind the cut.
    let (_, few) = attacked("tree", "many/few").await;
    assert_eq!(few, json!({ "entries": [], "path": "many/few" }));
    let last = format!("n{}", FILES - 1);
    let search = [("q", last.as_str()), ("path", "many")];
    let (_, found) = answer(place.world.api.request("GET", "/api/search").query(&search)).await;
    let names: Vec<&Value> =
        found["results"].as_array().unwrap().iter().map(|result| &result["name"]).collect();
    assert_eq!(names, [&json!(last)]);
    assert_eq!(found.get("truncated"), None);
    place.end().await;
}
