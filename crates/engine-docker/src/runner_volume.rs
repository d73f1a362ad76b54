//! The runner in a volume of its own, which every machine mounts read-only: filled once per version
//! through a container that is never started, and compared byte for byte before it is used.
//!
//! The helper container's name is the lock: an engine gives a name to one container at a time, so
//! whoever made it is alone with the volume, be it of this daemon or of another. Its label says
//! whose it is: one that this daemon's predecessor left when it was killed is removed at once.

use std::collections::HashMap;
use std::io::Read;
use std::sync::OnceLock;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, ListVolumesOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveVolumeOptions, UploadToContainerOptionsBuilder,
};
use futures_util::TryStreamExt;
use sandbank_engine::{EngineError, InstanceId, sha256_hex};
use sandbank_runner_binary::RUNNER;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connection::{Client, status_of};
use crate::container::{RUNNER_DIRECTORY, RUNNER_FILE, bare_volume, covers, unstarted};
use crate::limits::{ENGINE_POLL, REMOVAL_DEADLINE};
use crate::naming;

/// Another daemon's helper this old, by the engine's own clock, is one whose daemon died.
const STALE: Duration = Duration::from_secs(60);

/// Of the digest that is part of names.
const NAME_CHARACTERS: usize = 16;

/// Of the runner that this daemon brings.
pub(crate) fn digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| sha256_hex(RUNNER))
}

#[derive(Default)]
pub(crate) struct RunnerVolume {
    /// Whether it was found whole; held while somebody looks.
    whole: Mutex<bool>,
}

impl RunnerVolume {
    pub(crate) fn name() -> String {
        naming::runner_volume(&digest()[..NAME_CHARACTERS])
    }

    /// It is there and whole, or an error says why not. Any image will do whose places are in
    /// order: nothing of it is used. `volumes` are those that it declares.
    pub(crate) async fn ensure(
        &self,
        client: &Client,
        instance: &InstanceId,
        image: &str,
        volumes: &[String],
    ) -> Result<(), EngineError> {
        let mut whole = self.whole.lock().await;
        if !*whole {
            fill(client, instance, image, volumes).await?;
            remove_old(client).await;
            *whole = true;
        }
        Ok(())
    }

    /// What this daemon's predecessor left when it was killed. Nobody needs it to be gone already.
    pub(crate) async fn take_back(client: &Client, instance: &InstanceId) {
        let found = async {
            forsaken(client, instance, &helper(), &EngineClock::read(client).await?).await
        };
        match found.await {
            Ok(None) => {}
            Ok(Some(id)) => {
                if let Err(error) = remove(client, &id).await {
                    tracing::debug!(%error, "a helper that nobody needs stays");
                }
            }
            Err(error) => tracing::debug!(%error, "no helper is looked for"),
        }
    }

    /// Somebody may have removed it.
    pub(crate) async fn forget(&self) {
        *self.whole.lock().await = false;
    }
}

/// Those of earlier versions that no container uses, which Docker itself makes sure of. A daemon of
/// such a version that is about to use one makes it again.
async fn remove_old(client: &Client) {
    let mut filters = naming::filter(naming::RUNNER, None);
    filters.insert("dangling".to_owned(), vec!["true".to_owned()]);
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let listed = match client.api().list_volumes(Some(options)).await {
        Ok(listed) => listed.volumes.unwrap_or_default(),
        Err(error) => return tracing::debug!(%error, "old runners are not looked for"),
    };
    let current = RunnerVolume::name();
    let is_old = |name: &String| *name != current && naming::is_runner_volume(name);
    for name in listed.into_iter().map(|volume| volume.name).filter(is_old) {
        match client.api().remove_volume(&name, None::<RemoveVolumeOptions>).await {
            Ok(()) => tracing::info!(volume = name, "removed the runner of another version"),
            Err(error) => tracing::debug!(volume = name, %error, "an old runner stays"),
        }
    }
}

fn helper() -> String {
    format!("{}-helper", RunnerVolume::name())
}

async fn fill(
    client: &Client,
    instance: &InstanceId,
    image: &str,
    volumes: &[String],
) -> Result<(), EngineError> {
    let helper = helper();
    lock(client, instance, &helper, image, volumes).await?;
    let filled = async {
        if holds_runner(client, &helper).await? {
            return Ok(());
        }
        tracing::info!(volume = RunnerVolume::name(), "the runner is copied to Docker");
        upload(client, &helper).await?;
        match holds_runner(client, &helper).await? {
            true => Ok(()),
            false => Err(EngineError::Internal(format!(
                "the volume {0} does not hold what was written to it; see whether Docker's disk is \
                 well, then remove it: `docker volume rm {0}`",
                RunnerVolume::name()
            ))),
        }
    }
    .await;
    let removed = remove(client, &helper).await;
    filled.and(removed)
}

/// Makes the helper, which only one can.
async fn lock(
    client: &Client,
    instance: &InstanceId,
    helper: &str,
    image: &str,
    volumes: &[String],
) -> Result<(), EngineError> {
    let deadline = Instant::now() + STALE + REMOVAL_DEADLINE;
    let failed = |error| client.failed("make the helper that holds the runner")(error);
    let mut clock = None;
    loop {
        let options = CreateContainerOptionsBuilder::default().name(helper).build();
        let made =
            client.api().create_container(Some(options), body(instance, image, volumes)).await;
        match made {
            Ok(_) => return Ok(()),
            Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 409) => {
                if Instant::now() > deadline {
                    return Err(failed(error));
                }
                let clock = match &clock {
                    Some(clock) => clock,
                    None => clock.insert(EngineClock::read(client).await?),
                };
                if let Some(stale) = forsaken(client, instance, helper, clock).await? {
                    tracing::warn!(helper, "removed what a dead daemon left while it copied");
                    remove(client, &stale).await?;
                }
                tokio::time::sleep(ENGINE_POLL).await;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The engine's time: it need not be ours.
struct EngineClock {
    said: Option<u64>,
    read: Instant,
}

impl EngineClock {
    async fn read(client: &Client) -> Result<Self, EngineError> {
        let info = client.api().info().await.map_err(client.failed("tell its time"))?;
        let said = info.system_time.as_ref().and_then(|text| unix_seconds(&text.to_string()));
        Ok(Self { said, read: Instant::now() })
    }

    /// Whether what the engine made at a time of its own is as old as that.
    fn is_stale(&self, made: &str) -> bool {
        let now = self.said.map(|said| said + self.read.elapsed().as_secs());
        now.zip(unix_seconds(made)).is_some_and(|(now, made)| now > made + STALE.as_secs())
    }
}

fn body(instance: &InstanceId, image: &str, volumes: &[String]) -> ContainerCreateBody {
    let labels = HashMap::from([(naming::RUNNER.to_owned(), digest().to_owned())]);
    let mut whose = labels.clone();
    whose.insert(naming::INSTANCE.to_owned(), instance.to_string());
    let volume = bare_volume(RunnerVolume::name(), RUNNER_DIRECTORY, Some(labels));
    unstarted(image, whose, [vec![volume], covers(volumes)].concat())
}

/// The id of the helper if nobody uses it: no other process is of this instance, and within this one
/// whoever asks is alone. Another's is judged by its age.
async fn forsaken(
    client: &Client,
    instance: &InstanceId,
    helper: &str,
    clock: &EngineClock,
) -> Result<Option<String>, EngineError> {
    match client.api().inspect_container(helper, None).await {
        Ok(found) => {
            let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
            let is_ours =
                labels.get(naming::INSTANCE).is_some_and(|whose| *whose == instance.to_string());
            let made = found.created.as_ref().map(ToString::to_string).unwrap_or_default();
            Ok(found.id.filter(|_| is_ours || clock.is_stale(&made)))
        }
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => Ok(None),
        Err(error) => Err(client.failed("look at the helper that holds the runner")(error)),
    }
}

/// Of a time like `2026-11-16T08:45:00.123Z`.
pub(crate) fn unix_seconds(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = time.get(..8)?.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // Days since 1970 of a Gregorian date, with March as the first month.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second;
    u64::try_from(seconds).ok()
}

async fn holds_runner(client: &Client, helper: &str) -> Result<bool, EngineError> {
    let path = format!("{RUNNER_DIRECTORY}/{RUNNER_FILE}");
    let options = DownloadFromContainerOptionsBuilder::default().path(&path).build();
    let mut stream = client.api().download_from_container(helper, Some(options));
    let mut archive = Vec::with_capacity(RUNNER.len() + 4096);
    loop {
        match stream.try_next().await {
            Ok(Some(piece)) if archive.len() < 2 * RUNNER.len() + (1 << 20) => {
                archive.extend_from_slice(&piece);
            }
            // More than there can be in it.
            Ok(Some(_)) => return Ok(false),
            Ok(None) => break,
            Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
                return Ok(false);
            }
            Err(error) => return Err(client.failed("read the runner's volume")(error)),
        }
    }
    Ok(is_runner(&archive))
}

fn is_runner(archive: &[u8]) -> bool {
    let mut archive = tar::Archive::new(archive);
    let Ok(mut entries) = archive.entries() else { return false };
    let Some(Ok(mut entry)) = entries.next() else { return false };
    let mode = entry.header().mode().unwrap_or(0);
    let mut content = Vec::with_capacity(RUNNER.len());
    entry.header().entry_type().is_file()
        && mode & 0o777 == 0o555
        && entry.read_to_end(&mut content).is_ok()
        && content == RUNNER
}

async fn upload(client: &Client, helper: &str) -> Result<(), EngineError> {
    let mut header = tar::Header::new_gnu();
    header.set_size(RUNNER.len() as u64);
    header.set_mode(0o555);
    header.set_entry_type(tar::EntryType::Regular);
    let mut archive = tar::Builder::new(Vec::with_capacity(RUNNER.len() + 4096));
    let packed = archive.append_data(&mut header, RUNNER_FILE, RUNNER);
    let packed = packed.and_then(|()| archive.into_inner()).map_err(EngineError::io("pack"))?;
    let options = UploadToContainerOptionsBuilder::default().path(RUNNER_DIRECTORY).build();
    let uploaded =
        client.api().upload_to_container(helper, Some(options), bollard::body_full(packed.into()));
    uploaded.await.map_err(client.failed("write the runner's volume"))
}

async fn remove(client: &Client, helper: &str) -> Result<(), EngineError> {
    // With what the image's own volumes became; ours has a name and stays.
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match client.api().remove_container(helper, Some(options)).await {
        Ok(()) => Ok(()),
        Err(error)
            if status_of(&error).is_some_and(|refusal| matches!(refusal.status, 404 | 409)) =>
        {
            Ok(())
        }
        Err(error) => Err(client.failed("remove the helper that holds the runner")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_runner_counts() {
        let pack = |content: &[u8], mode: u32| {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(mode);
            let mut archive = tar::Builder::new(Vec::new());
            archive.append_data(&mut header, RUNNER_FILE, content).unwrap();
            archive.into_inner().unwrap()
        };
        assert!(is_runner(&pack(RUNNER, 0o555)));
        assert!(!is_runner(&pack(RUNNER, 0o755)), "somebody may write to it");
        assert!(!is_runner(&pack(&RUNNER[..RUNNER.len() - 1], 0o555)));
        assert!(!is_runner(b""));
    }

    #[tokio::test]
    async fn how_old_a_helper_is_goes_by_the_engine_s_clock_alone() {
        // An engine that is years ahead of us, or behind.
        for day in ["2031-01-01", "2001-01-01"] {
            let at = |time: &str| format!("{day}T{time}Z");
            let clock = EngineClock { said: unix_seconds(&at("12:01:30")), read: Instant::now() };
            assert!(!clock.is_stale(&at("12:01:29.5")));
            assert!(!clock.is_stale(&at("12:00:45")), "its daemon may be at it");
            assert!(clock.is_stale(&at("12:00:00")));
            assert!(!clock.is_stale("once"));
        }
    }

    #[test]
    fn the_engine_s_times_are_read() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2026-11-16T08:45:01.123456789Z"), Some(1_794_818_701));
        assert_eq!(unix_seconds("2024-02-29T23:59:59Z"), Some(1_709_251_199));
        assert_eq!(unix_seconds("yesterday"), None);
    }
}
