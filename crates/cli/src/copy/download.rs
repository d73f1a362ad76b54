//! From a sandbox to this machine.

use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::entry_name::{link_stays_inside, plain};
use super::local_file::{Pending, real_directory};
use super::{Copied, Place};
use crate::client::{Client, Kind, Stat};
use crate::failure::{Exit, Failure};
use crate::limits::{MAX_COPY_DEPTH, PARALLEL_COPIES};
use crate::ui::{Progress, Ui, text};

struct Download<'a> {
    client: &'a Client,
    sandbox: &'a str,
    progress: Progress,
}

/// Everything below a directory, found before anything is copied so that progress has an end.
#[derive(Default)]
struct Plan {
    directories: Vec<PathBuf>,
    files: Vec<(String, PathBuf, Stat)>,
    links: Vec<(String, PathBuf)>,
    skipped: Vec<String>,
}

pub(crate) async fn download(
    ui: &Ui,
    client: &Client,
    sandbox: &str,
    path: &str,
    to: &Place,
) -> Result<Copied, Failure> {
    let shown = text::printable(path);
    let stat = client.stat_file(sandbox, path).await?.ok_or_else(|| {
        Failure::new(Exit::Refused, format!("{shown} does not exist in {sandbox}"))
            .hint(format!("`sandbank exec {sandbox} -- ls -la` shows the workspace"))
    })?;
    let label = shown.rsplit('/').find(|part| !part.is_empty()).unwrap_or("workspace").to_owned();
    let download = Download { client, sandbox, progress: Progress::bytes(ui, &label, stat.size) };
    let copied = match (stat.kind, to) {
        (Kind::File, Place::Local(to)) => download.one_file(path, &stat, to).await,
        (Kind::File, _) => download.to_stdout(ui, path, &stat).await,
        (Kind::Directory, Place::Local(to)) => download.directory(path, to).await,
        (Kind::Directory, _) => Err(Failure::usage(format!("{shown} is a directory"))
            .hint(format!("`sandbank exec {sandbox} -- tar c {shown}` streams one"))),
        _ => Err(Failure::new(Exit::Refused, format!("{shown} is neither file nor directory"))),
    };
    download.progress.done();
    copied
}

impl Download<'_> {
    async fn one_file(&self, path: &str, stat: &Stat, to: &Path) -> Result<Copied, Failure> {
        let place = if to.is_dir() || ends_with_slash(to) {
            to.join(base_name(path)?)
        } else {
            to.to_owned()
        };
        let bytes = self.fetch(path, stat.mode, &place).await?;
        Ok(Copied { files: 1, bytes, ..Copied::default() })
    }

    async fn to_stdout(&self, ui: &Ui, path: &str, stat: &Stat) -> Result<Copied, Failure> {
        let mut response = self.client.read_file(self.sandbox, path).await?;
        let mut bytes = 0;
        while let Some(chunk) = self.client.chunk(&mut response).await? {
            ui.bytes(&chunk)?;
            bytes += chunk.len() as u64;
            self.progress.add(chunk.len() as u64);
        }
        complete(path, stat.size, bytes)?;
        Ok(Copied { files: 1, bytes, ..Copied::default() })
    }

    /// Into `to` when it exists, as `to` when it does not.
    async fn directory(&self, path: &str, to: &Path) -> Result<Copied, Failure> {
        let top = match (to.is_dir(), base_name(path)) {
            (true, Ok(name)) => to.join(name),
            _ => to.to_owned(),
        };
        let plan = self.plan(path, &top).await?;
        let total = plan.files.iter().map(|(_, _, stat)| stat.size).sum();
        self.progress.set(0, total);
        // What the user named may be a link of their own; everything below must be real.
        if !top.is_dir() {
            real_directory(&top)?;
        }
        for directory in &plan.directories {
            real_directory(directory)?;
        }
        let copies =
            plan.files.iter().map(|(from, place, stat)| self.fetch(from, stat.mode, place));
        let sizes: Vec<u64> =
            stream::iter(copies).buffer_unordered(PARALLEL_COPIES).try_collect().await?;
        let mut copied = Copied {
            files: plan.files.len() as u64,
            directories: plan.directories.len() as u64 + 1,
            bytes: sizes.iter().sum(),
            skipped: plan.skipped,
        };
        for (target, place) in plan.links {
            match std::os::unix::fs::symlink(&target, &place) {
                Ok(()) => copied.files += 1,
                Err(error) => copied.skipped.push(format!("{}: {error}", place.display())),
            }
        }
        Ok(copied)
    }

    async fn plan(&self, path: &str, top: &Path) -> Result<Plan, Failure> {
        let mut plan = Plan::default();
        let mut pending = vec![(path.trim_end_matches('/').to_owned(), top.to_owned(), 0)];
        if path.starts_with('/') && path.trim_end_matches('/').is_empty() {
            pending[0].0 = "/".to_owned();
        }
        while let Some((directory, local, depth)) = pending.pop() {
            if depth > MAX_COPY_DEPTH {
                let message = format!("directories are nested deeper than {MAX_COPY_DEPTH}");
                return Err(Failure::new(Exit::Refused, message));
            }
            for entry in self.client.list_files(self.sandbox, &directory).await? {
                let from = format!("{directory}/{}", entry.name);
                let name = match (plain(&entry.name), &entry.name_hex) {
                    (Some(name), None) => name,
                    _ => {
                        plan.skipped.push(format!("{from}: a name that cannot be used here"));
                        continue;
                    }
                };
                let place = local.join(name);
                match (entry.stat.kind, entry.target) {
                    (Kind::File, _) => plan.files.push((from, place, entry.stat)),
                    (Kind::Directory, _) => {
                        plan.directories.push(place.clone());
                        pending.push((from, place, depth + 1));
                    }
                    (Kind::Symlink, Some(target)) if link_stays_inside(&target, depth) => {
                        plan.links.push((target, place));
                    }
                    (Kind::Symlink, _) => {
                        plan.skipped.push(format!("{from}: a link that leads out of the copy"));
                    }
                    (Kind::Other, _) => plan.skipped.push(format!("{from}: not a regular file")),
                }
            }
        }
        Ok(plan)
    }

    async fn fetch(&self, path: &str, mode: u32, place: &Path) -> Result<u64, Failure> {
        let mut response = self.client.read_file(self.sandbox, path).await?;
        let expected = response.content_length();
        let mut pending = Pending::new(place)?;
        let mut bytes = 0;
        while let Some(chunk) = self.client.chunk(&mut response).await? {
            pending.write(&chunk)?;
            bytes += chunk.len() as u64;
            self.progress.add(chunk.len() as u64);
        }
        complete(path, expected.unwrap_or(bytes), bytes)?;
        pending.finish(mode)?;
        Ok(bytes)
    }
}

fn complete(path: &str, expected: u64, got: u64) -> Result<(), Failure> {
    if expected == got {
        return Ok(());
    }
    let path = text::printable(path);
    let message = format!("{path} changed while it was copied: {got} of {expected} bytes came");
    Err(Failure::new(Exit::Refused, message).hint("copy it again when nothing writes to it"))
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The last component, which must be a name.
fn base_name(path: &str) -> Result<&str, Failure> {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    plain(last).ok_or_else(|| {
        Failure::usage(format!("{} has no name to copy to", text::printable(path)))
            .hint("name the destination file or directory")
    })
}
