//! Trees as tar archives, both ways.

use sandbank_test_support::{literal_entry, literal_tar};
use serde_json::{Value, json};
use tar::EntryType;

use crate::world::{World, code, refusal, refused};

#[tokio::test]
async fn an_archive_makes_the_round_trip_between_two_sandboxes() {
    let world = World::start().await;
    let (one, other) = (world.sandbox().await, world.api.create("other").await.unwrap());
    let make = "mkdir -p a/b; echo 1 > a/b/f; ln -s b a/l; chmod 700 a/b; mkfifo a/pipe";
    world.api.run(&one, make).await.unwrap();
    let packed = world.api.request("GET", &format!("/v1/sandboxes/{one}/files:archive?path=a"));
    let packed = packed.send().await.unwrap();
    assert_eq!(packed.status(), 200);
    assert_eq!(packed.headers()["content-type"], "application/x-tar");
    assert_eq!(packed.headers()["content-disposition"], "attachment");
    let archive = packed.bytes().await.unwrap();
    let said = String::from_utf8_lossy(&archive).into_owned();
    assert!(said.contains(r#""skipped":{"count":1,"paths":["a/pipe"]}"#), "the pipe is named");
    let path = format!("/v1/sandboxes/{other}/files:archive?path=new/place");
    let unpacked = world.api.request("PUT", &path).body(archive).send().await.unwrap();
    let unpacked: Value = unpacked.json().await.unwrap();
    assert_eq!(unpacked, json!({ "entries": 3, "bytes": 2 }));
    let seen = world.api.run(&other, "cd new/place; cat l/f; stat -c %a b; ls").await.unwrap().1;
    assert_eq!(seen, "1\n700\nb\nl\n");
}

#[tokio::test]
async fn a_hostile_archive_is_refused_with_the_name_of_its_entry() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let put = |entries: &[Vec<u8>]| {
        let path = format!("/v1/sandboxes/{id}/files:archive?path=p");
        world.api.request("PUT", &path).body(literal_tar(entries))
    };
    let good = literal_entry(EntryType::Regular, "good", "", b"good");
    let evil = literal_entry(EntryType::Regular, "../evil", "", b"evil");
    let response = put(&[good.clone(), evil]).send().await.unwrap();
    let (status, told, body) = refusal(response).await;
    assert_eq!((status.as_u16(), told.as_str()), (400, "outside_workspace"));
    assert!(body["error"].as_str().unwrap().starts_with("entry 2, \"../evil\""), "{body}");
    let device = literal_entry(EntryType::Block, "device", "", b"");
    assert_eq!(refused(put(&[device])).await, code(409, "wrong_kind"));
    let cut = world.api.request("PUT", &format!("/v1/sandboxes/{id}/files:archive?path=p"));
    assert_eq!(refused(cut.body("no archive")).await, code(400, "invalid"));
    let above = world.api.request("GET", &format!("/v1/sandboxes/{id}/files:archive?path=../x"));
    assert_eq!(refused(above).await, code(400, "invalid_path"));
    assert_eq!(world.api.run(&id, "ls; ls p").await.unwrap().1, "p\ngood\n");
}
