//! The places of an image where something is mounted. None may be a link, nor be reached through
//! one: Docker follows it and would mount one thing over another, such as a workspace, which
//! others write to, over the runner.
//!
//! An image is looked at once, in a container of it that never starts. Nothing hides what is there:
//! the container has no volume, and what covers those that the image declares is mounted only
//! where something runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptions, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use futures_util::future::{join_all, try_join_all};
use sandbank_engine::{EngineError, ImageName, InstanceId};
use sandbank_protocol::{WORKSPACE, WORKSPACE_ALIASES};

use crate::connection::{Client, status_of};
use crate::container::{self, RUNNER_DIRECTORY};
use crate::image::Facts;
use crate::limits::REMEMBERED_IMAGES;
use crate::naming;

/// Beside the workspace and the runner: ours, and those that every container has.
const MOUNTED: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys"];

/// Made by us, whatever an image declares there.
const OVERRIDDEN: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// Of a file's mode, as Go writes it.
const DIRECTORY: u32 = 1 << 31;
const LINK: u32 = 1 << 27;

/// The volumes of an image that have to be covered, or why no machine is made of it.
type Verdict = Result<Arc<[String]>, String>;

#[derive(Default)]
pub(crate) struct Places {
    /// By the image's digest, under which it never changes.
    known: Mutex<HashMap<String, Verdict>>,
    /// Held while one is looked at: many creates of one image cost one look.
    looking: tokio::sync::Mutex<()>,
}

impl Places {
    /// Volumes that the image declares, and that Docker would make if nothing covered them.
    pub(crate) async fn volumes_to_cover(
        &self,
        client: &Client,
        instance: &InstanceId,
        name: &ImageName,
        image: &Facts,
    ) -> Result<Arc<[String]>, EngineError> {
        let verdict = match self.find(&image.id) {
            Some(verdict) => verdict,
            None => {
                let _looking = self.looking.lock().await;
                match self.find(&image.id) {
                    Some(verdict) => verdict,
                    None => {
                        let verdict = look(client, instance, name, image).await?;
                        self.remember(&image.id, &verdict);
                        verdict
                    }
                }
            }
        };
        verdict.map_err(|why| {
            EngineError::BadImage(format!(
                "{name} {why}; change that in its Dockerfile, or use another image"
            ))
        })
    }

    fn find(&self, id: &str) -> Option<Verdict> {
        self.known().get(id).cloned()
    }

    fn remember(&self, id: &str, verdict: &Verdict) {
        let mut known = self.known();
        if known.len() >= REMEMBERED_IMAGES {
            known.clear();
        }
        known.insert(id.to_owned(), verdict.clone());
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Verdict>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Containers that a daemon which was killed left while it looked.
pub(crate) async fn remove_leftovers(
    client: &Client,
    instance: &InstanceId,
) -> Result<(), EngineError> {
    let mut filters = naming::filter(naming::INSTANCE, Some(instance.as_str()));
    filters.entry("label".to_owned()).or_default().push(naming::LOOKED_AT.to_owned());
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let left = client.api().list_containers(Some(options)).await;
    let left = left.map_err(client.failed("list the containers"))?;
    let ids = left.into_iter().filter_map(|container| container.id);
    join_all(ids.map(async |id| remove(client, &id).await)).await;
    Ok(())
}

async fn look(
    client: &Client,
    instance: &InstanceId,
    name: &ImageName,
    image: &Facts,
) -> Result<Verdict, EngineError> {
    let volumes = match declared(&image.volumes) {
        Ok(volumes) => volumes,
        Err(why) => return Ok(Err(why)),
    };
    let body = body(&image.id, instance, &volumes);
    let made = client.api().create_container(None::<CreateContainerOptions>, body).await;
    let id = match made {
        Ok(made) => made.id,
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
            return Err(EngineError::ImageNotFound(name.clone()));
        }
        Err(error) => return Err(client.failed("look into an image")(error)),
    };
    let found = first_obstacle(client, &id, &volumes).await;
    remove(client, &id).await;
    Ok(match found? {
        Some(why) => Err(why),
        None => Ok(volumes.into()),
    })
}

async fn first_obstacle(
    client: &Client,
    container: &str,
    volumes: &[String],
) -> Result<Option<String>, EngineError> {
    let mut absent = BTreeSet::new();
    for level in levels(volumes) {
        // Below what is not there, there is nothing.
        let is_there = |path: &&String| !absent.contains(parent(path));
        let paths: Vec<&String> = level.iter().filter(is_there).collect();
        let found = try_join_all(paths.iter().map(|path| kind(client, container, path))).await?;
        for (path, found) in paths.into_iter().zip(found) {
            match found {
                Kind::Directory => {}
                Kind::Nothing => drop(absent.insert(path.clone())),
                Kind::Link(target) => {
                    let to = if target.is_empty() { "elsewhere" } else { &target };
                    return Ok(Some(format!(
                        "has a link to {to} at {path}, where Sandbank needs a directory"
                    )));
                }
                Kind::Other => {
                    return Ok(Some(format!(
                        "has no directory at {path}, where Sandbank needs one"
                    )));
                }
            }
        }
        // What is below something that is not there is not there either.
        absent.extend(
            level.iter().filter(|path| absent.contains(parent(path))).cloned().collect::<Vec<_>>(),
        );
    }
    Ok(None)
}

enum Kind {
    Nothing,
    Directory,
    Link(String),
    Other,
}

/// The path itself is not followed; what is above it was found to be directories.
async fn kind(client: &Client, container: &str, path: &str) -> Result<Kind, EngineError> {
    let options = ContainerArchiveInfoOptionsBuilder::default().path(path).build();
    match client.api().get_container_archive_info(container, Some(options)).await {
        Ok(found) if found.file_mode & LINK != 0 => Ok(Kind::Link(found.link_target)),
        Ok(found) if found.file_mode & DIRECTORY != 0 => Ok(Kind::Directory),
        Ok(_) => Ok(Kind::Other),
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
            Ok(Kind::Nothing)
        }
        Err(error) => Err(client.failed("look into an image")(error)),
    }
}

/// Every place and everything above it, by depth.
fn levels(volumes: &[String]) -> Vec<BTreeSet<String>> {
    let ours = [RUNNER_DIRECTORY, WORKSPACE].into_iter().chain(WORKSPACE_ALIASES).chain(MOUNTED);
    let mut levels: Vec<BTreeSet<String>> = Vec::new();
    for place in ours.chain(volumes.iter().map(String::as_str)) {
        let ends = place.match_indices('/').map(|(at, _)| at).skip(1).chain([place.len()]);
        for (depth, end) in ends.enumerate() {
            if levels.len() == depth {
                levels.push(BTreeSet::new());
            }
            levels[depth].insert(place[..end].to_owned());
        }
    }
    levels
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The volumes that an image declares, without those in whose place we have something anyway.
/// In the runner's place, or among files that a sandbox may have left, there is none.
fn declared(volumes: &[String]) -> Result<Vec<String>, String> {
    let mut found = BTreeSet::new();
    for volume in volumes {
        let path = clean(volume).ok_or_else(|| format!("declares {volume:?} as a volume"))?;
        let is_in =
            |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
        let mut workspaces = [WORKSPACE].into_iter().chain(WORKSPACE_ALIASES);
        if path == RUNNER_DIRECTORY || is_in(RUNNER_DIRECTORY) || workspaces.clone().any(is_in) {
            return Err(format!("declares a volume at {path}, which is a place of Sandbank's own"));
        }
        if !workspaces.any(|place| place == path) && !OVERRIDDEN.contains(&path.as_str()) {
            found.insert(path);
        }
    }
    Ok(found.into_iter().collect())
}

/// As Docker reads it. None for the root, and for what leads upwards or begins nowhere.
fn clean(path: &str) -> Option<String> {
    let parts = path.strip_prefix('/')?.split('/').filter(|part| !matches!(*part, "" | "."));
    let mut clean = String::new();
    for part in parts {
        if part == ".." {
            return None;
        }
        clean = format!("{clean}/{part}");
    }
    (!clean.is_empty()).then_some(clean)
}

fn body(image: &str, instance: &InstanceId, volumes: &[String]) -> ContainerCreateBody {
    let labels = [(naming::INSTANCE, instance.as_str()), (naming::LOOKED_AT, image)];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    container::unstarted(image, labels.into(), container::covers(volumes))
}

/// What stays is found by the next start.
async fn remove(client: &Client, container: &str) {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    if let Err(error) = client.api().remove_container(container, Some(options)).await {
        tracing::warn!(%error, container, "what an image was looked at in stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_looked_at_from_the_top() {
        let levels = levels(&["/var/lib/data".to_owned()]);
        let at = |depth: usize, path: &str| levels[depth].contains(path);
        assert!(at(0, "/.sandbank") && at(0, "/tmp") && at(0, "/vercel") && at(0, "/var"));
        assert!(at(1, "/vercel/sandbox") && at(1, "/home/user") && at(1, "/var/lib"));
        assert!(at(2, "/vercel/sandbox/workspace") && at(2, "/var/lib/data"));
        assert_eq!((parent("/a/b"), parent("/a")), ("/a", ""));
    }

    #[test]
    fn volumes_in_our_places_are_overridden_or_refused() {
        let of =
            |paths: &[&str]| declared(&paths.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["/data/", "/data", "//a/./b"]).unwrap(), ["/a/b", "/data"]);
        assert_eq!(of(&["/workspace", "/tmp", "/dev/shm/", "/home/user"]).unwrap(), [""; 0]);
        assert_eq!(of(&["/home", "/tmp/x"]).unwrap(), ["/home", "/tmp/x"]);
        for bad in
            ["/.sandbank", "/.sandbank/runner", "/workspace/x", "/", "data", "/a/../.sandbank"]
        {
            assert!(of(&[bad]).is_err(), "{bad}");
        }
    }
}
