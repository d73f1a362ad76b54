//! Archives that say themselves that they are too much, at the limits that hold on every engine.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::ensure;
use sandbank_test_support::{PrivateDocker, TestDaemon, literal_entry};
use tar::EntryType;

use crate::place::{SANDBANK, Said, Store};

const IMAGE: &str = "sandbank-test";
const MOST_ENTRIES: usize = 1_000_000;
const MOST_BYTES: u64 = 32 << 30;

const END: [u8; 1024] = [0; 1024];

/// One more entry than there may be.
fn many_entries(path: &Path) -> anyhow::Result<()> {
    let entry = literal_entry(EntryType::Directory, "usr/", "", b"");
    let thousand = entry.repeat(1000);
    let mut file = File::create(path)?;
    for _ in 0..MOST_ENTRIES / 1000 {
        file.write_all(&thousand)?;
    }
    file.write_all(&entry)?;
    Ok(file.write_all(&END)?)
}

/// Two files that have one byte more together, most of which is on no disk.
fn many_bytes(path: &Path) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&literal_entry(EntryType::Regular, "usr/small", "", b"x"))?;
    let mut header = tar::Header::new_gnu();
    header.set_path("usr/large")?;
    header.set_mode(0o644);
    header.set_size(MOST_BYTES);
    header.set_cksum();
    file.write_all(header.as_bytes())?;
    let length = file.metadata()?.len() + MOST_BYTES + END.len() as u64;
    Ok(OpenOptions::new().write(true).open(path)?.set_len(length)?)
}

fn import(daemon: &TestDaemon, name: &str, path: &Path) -> anyhow::Result<Said> {
    Ok(Said::from(daemon.cli().args(["image", "import", name]).arg(path).output()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_of_too_many_entries_or_bytes_leaves_nothing_whichever_engine_it_is_for()
-> anyhow::Result<()> {
    let Some(docker) = PrivateDocker::with_busybox(false, IMAGE)? else { return Ok(()) };
    let socket = docker.socket().to_str().unwrap().to_owned();
    let place = tempfile::tempdir()?;
    let at = |name: &str| place.path().join(name);
    many_entries(&at("entries"))?;
    many_bytes(&at("bytes"))?;
    let small = [literal_entry(EntryType::Regular, "usr/small", "", b"x"), END.to_vec()];
    std::fs::write(at("small"), small.concat())?;
    for engine in ["native", "docker"] {
        let settings = [
            ("SANDBANK_ENGINE", engine),
            ("SANDBANK_DOCKER_HOST", &*socket),
            ("SANDBANK_DOCKER_IMAGE", IMAGE),
        ];
        let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
        let there = || anyhow::Ok((Store::of(&daemon), docker.said(&["images", "--all", "-q"])?));
        let before = there()?;
        let entries = ("entries", format!("more than {MOST_ENTRIES} entries"));
        let bytes = ("bytes", format!("more than {MOST_BYTES} bytes"));
        // The list of an archive is read by the same code, and a million headers take a while.
        let too_much = if engine == "native" { vec![entries, bytes] } else { vec![bytes] };
        for (name, reason) in too_much {
            let said = import(&daemon, "refused", &at(name))?;
            ensure!(said.code.is_some_and(|code| code != 0 && code != 101), "{engine}: {said:?}");
            ensure!(said.err.contains(&reason) && said.err.contains("hint: "), "{said:?}");
            ensure!(there()? == before, "{engine}, {name}: {:?}", there()?);
        }
        let said = import(&daemon, "small", &at("small"))?;
        ensure!(said.code == Some(0), "{engine}: {said:?}\n{}", daemon.log_tail());
        let said = Said::from(daemon.cli().args(["image", "rm", "small"]).output()?);
        ensure!(said.code == Some(0), "{engine}: {said:?}");
        daemon.finish().await?;
    }
    Ok(())
}
