//! Imports over a slow way to a real Docker daemon: what moves may take its time, what stands still
//! is given up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbank_engine::EngineError;
use sandbank_image_archive::ImportLimits;
use sandbank_test_support::{PrivateDocker, busybox_root};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::{Importing, import};
use crate::connection::{Address, Client, Found};

/// How long an answer may take to begin, for these clients.
const DEADLINE: Duration = Duration::from_secs(3);

/// Of a request, on the way to Docker.
const CHUNK: usize = 64 << 10;

/// What comes after the first chunk of a connection.
#[derive(Clone, Copy)]
enum Way {
    /// Each further chunk waits this long.
    Slow(Duration),
    Blocked,
    /// All passes but what would name an image.
    Nameless,
}

async fn pass(client: UnixStream, docker: PathBuf, way: Way) -> std::io::Result<()> {
    let (mut asking, mut asked) = client.into_split();
    let (mut answering, mut taking) = UnixStream::connect(docker).await?.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut answering, &mut asked).await });
    let mut buffer = vec![0; CHUNK];
    let mut passed = 0;
    loop {
        let length = asking.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let names = buffer[..length].windows(5).any(|part| part == b"/tag?");
        if matches!(way, Way::Nameless) && names {
            std::future::pending::<()>().await;
        }
        taking.write_all(&buffer[..length]).await?;
        passed += length;
        match way {
            _ if passed < CHUNK => {}
            Way::Slow(pause) => tokio::time::sleep(pause).await,
            Way::Blocked => std::future::pending().await,
            Way::Nameless => {}
        }
    }
}

async fn client_over(docker: &PrivateDocker, place: &Path, way: Way) -> Client {
    let listener = UnixListener::bind(place).unwrap();
    let socket = docker.socket();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(client, socket.clone(), way));
        }
    });
    let found = Found { address: Address::Unix(place.to_owned()), source: "the test".to_owned() };
    Client::connect_within(found, DEADLINE).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_may_take_longer_than_an_answer_and_not_stand_still() {
    let Some(docker) = PrivateDocker::start(false).unwrap() else { return };
    let archive = docker.dir().join("root.tar");
    if busybox_root(&archive).unwrap().is_none() {
        return;
    }
    let chunks = archive.metadata().unwrap().len() / CHUNK as u64;
    let pause = DEADLINE * 2 / u32::try_from(chunks).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let slow = client_over(&docker, &dir.path().join("slow"), Way::Slow(pause)).await;
    let limits = ImportLimits::default();
    let importing = Importing { limits, scratch: dir.path(), stall: Duration::from_secs(60) };
    let begun = std::time::Instant::now();
    import(&slow, &"slow".parse().unwrap(), &archive, &importing, &|_| {}).await.unwrap();
    assert!(begun.elapsed() > DEADLINE, "the way was not slow: this tests nothing");
    let there = docker.said(&["images", "--format", "{{.Repository}}:{{.Tag}}"]).unwrap();
    assert_eq!(there, "slow:latest");

    let blocked = client_over(&docker, &dir.path().join("blocked"), Way::Blocked).await;
    let importing = Importing { limits, scratch: dir.path(), stall: Duration::from_secs(1) };
    let name = "blocked".parse().unwrap();
    let refused = import(&blocked, &name, &archive, &importing, &|_| {}).await.unwrap_err();
    assert!(matches!(&refused, EngineError::Unavailable(text) if text.contains("said nothing")));
    let there = docker.said(&["images", "-a", "--format", "{{.Repository}}:{{.Tag}}"]).unwrap();
    assert_eq!(there, "slow:latest");

    // It is all there, and Docker goes silent before it has a name.
    docker.said(&["image", "rm", "slow"]).unwrap();
    let nameless = client_over(&docker, &dir.path().join("nameless"), Way::Nameless).await;
    let name = "nameless".parse().unwrap();
    let refused = import(&nameless, &name, &archive, &importing, &|_| {}).await.unwrap_err();
    assert!(matches!(&refused, EngineError::Unavailable(text) if text.contains("said nothing")));
    assert_eq!(docker.said(&["images", "-a", "--quiet"]).unwrap(), "");
}
