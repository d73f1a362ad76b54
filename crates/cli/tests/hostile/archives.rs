//! Archives that are too much, of entries or of bytes (T54).

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sandbank_test_support::{TestDaemon, literal_entry, literal_tar, skip_unless_root};
use serde_json::{Value, json};
use tar::EntryType;

use crate::SANDBANK;

const MOST_ENTRIES: usize = 1_000_000;
const MOST_BYTES: u64 = 64 << 30;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Half a gigabyte when it is uncompressed, member by member.
fn of_entries(count: usize) -> Vec<u8> {
    let entry = literal_entry(EntryType::Directory, "./", "", b"");
    let thousand = gzip(&entry.repeat(1000)).repeat(count / 1000);
    [thousand, gzip(&entry.repeat(count % 1000)), gzip(&[0; 1024])].concat()
}

/// A file that promises as many bytes, and has none of them.
fn promise(name: &str, bytes: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path(name).unwrap();
    header.set_mode(0o644);
    header.set_size(bytes);
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_of_too_many_entries_or_bytes_is_refused_before_they_are_written()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("archives").await?;
    let put = async |archive: Vec<u8>| -> anyhow::Result<(u16, Value)> {
        let path = format!("/v1/sandboxes/{id}/files:archive?path=p");
        let answer = api.request("PUT", &path).body(archive).send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    };
    let (status, done) = put(of_entries(MOST_ENTRIES)).await?;
    assert_eq!((status, &done), (200, &json!({ "entries": MOST_ENTRIES, "bytes": 0 })));
    let (status, refused) = put(of_entries(MOST_ENTRIES + 1)).await?;
    assert_eq!((status, &refused["code"]), (429, &json!("limit_reached")), "{refused}");
    let said = refused["error"].as_str().unwrap();
    assert!(said.contains("entry 1000001") && said.contains("at most 1000000 entries"), "{said}");

    let good = literal_entry(EntryType::Regular, "good", "", b"good");
    for archive in [
        literal_tar(&[promise("huge", MOST_BYTES + 1)]),
        literal_tar(&[good.clone(), promise("together", MOST_BYTES - 3)]),
    ] {
        let (status, refused) = put(archive).await?;
        assert_eq!((status, &refused["code"]), (429, &json!("limit_reached")), "{refused}");
        let said = refused["error"].as_str().unwrap();
        assert!(said.contains(&format!("at most {MOST_BYTES} bytes")), "{said}");
    }
    assert_eq!(api.run(&id, "ls -A p; cat p/good").await?.1, "good\ngood", "and nothing else");
    daemon.finish().await
}
