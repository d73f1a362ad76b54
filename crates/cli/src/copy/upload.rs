//! From this machine to a sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio_util::io::ReaderStream;

use super::{Copied, Place, links};
use crate::client::{Client, Kind};
use crate::failure::{Exit, Failure};
use crate::limits::{LINKS_PER_COMMAND, MAX_COPY_DEPTH, PARALLEL_COPIES};
use crate::ui::{Progress, Ui};

/// Read from the disk at once; larger reads do not get faster.
const PIECE_BYTES: usize = 256 << 10;

/// Files from standard input have no mode of their own.
const DEFAULT_MODE: u32 = 0o644;

struct Upload<'a> {
    client: &'a Client,
    sandbox: &'a str,
    progress: Progress,
}

#[derive(Default)]
struct Plan {
    directories: Vec<String>,
    files: Vec<LocalFile>,
    /// Target and place.
    links: Vec<(String, String)>,
    skipped: Vec<String>,
}

struct LocalFile {
    local: PathBuf,
    remote: String,
    size: u64,
    mode: u32,
}

pub(crate) async fn upload(
    ui: &Ui,
    client: &Client,
    sandbox: &str,
    from: &Place,
    path: &str,
) -> Result<Copied, Failure> {
    let Place::Local(local) = from else {
        let upload = Upload { client, sandbox, progress: Progress::bytes(ui, "stdin", 0) };
        return upload.standard_input(path).await;
    };
    let found = fs::metadata(local).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read {}: {error}", local.display()))
            .hint("name a file or directory that exists")
    })?;
    let target = target_path(client, sandbox, local, path).await?;
    let plan = if found.is_dir() { plan(local, &target)? } else { one_file(local, target, &found) };
    let label = local.file_name().map_or("files".into(), |name| name.to_string_lossy());
    let total = plan.files.iter().map(|file| file.size).sum();
    let upload = Upload { client, sandbox, progress: Progress::bytes(ui, &label, total) };
    let copied = upload.all(plan).await;
    upload.progress.done();
    copied
}

/// Onto a directory means into it, as with cp.
async fn target_path(
    client: &Client,
    sandbox: &str,
    local: &Path,
    path: &str,
) -> Result<String, Failure> {
    let into = path.ends_with('/')
        || client.stat_file(sandbox, path).await?.is_some_and(|stat| stat.kind == Kind::Directory);
    if !into {
        return Ok(path.to_owned());
    }
    Ok(join(path, &given_name(local)?))
}

/// As the person wrote it, also for a link; only `.` and `..` must be looked up.
fn given_name(local: &Path) -> Result<String, Failure> {
    let named = match local.file_name() {
        Some(_) => local.to_owned(),
        None => {
            local.canonicalize().map_err(Failure::io(format_args!("read {}", local.display())))?
        }
    };
    named.file_name().and_then(|name| name.to_str()).map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{} has no name to copy to", local.display()))
            .hint("name the destination file or directory")
    })
}

fn one_file(local: &Path, remote: String, found: &fs::Metadata) -> Plan {
    let (size, mode) = (found.len(), found.permissions().mode());
    let file = LocalFile { local: local.to_owned(), remote, size, mode };
    Plan { files: vec![file], ..Plan::default() }
}

fn plan(top: &Path, target: &str) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    let mut pending = vec![(top.to_owned(), target.to_owned(), 0)];
    while let Some((local, remote, depth)) = pending.pop() {
        if depth > MAX_COPY_DEPTH {
            let message = format!("directories are nested deeper than {MAX_COPY_DEPTH}");
            return Err(Failure::new(Exit::Refused, message));
        }
        let unreadable = |error| Failure::from_io(&format!("read {}", local.display()), &error);
        for entry in fs::read_dir(&local).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let found = fs::symlink_metadata(&path).map_err(unreadable)?;
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                plan.skipped.push(format!("{}: a name that is not UTF-8", path.display()));
                continue;
            };
            let remote = join(&remote, name);
            if found.is_dir() {
                pending.push((path, remote, depth + 1));
            } else if found.is_file() {
                let (size, mode) = (found.len(), found.permissions().mode());
                plan.files.push(LocalFile { local: path, remote, size, mode });
            } else if found.is_symlink() {
                match fs::read_link(&path)
                    .ok()
                    .and_then(|target| target.to_str().map(str::to_owned))
                {
                    Some(target) => plan.links.push((target, remote)),
                    None => plan.skipped.push(format!("{}: an unreadable link", path.display())),
                }
            } else {
                plan.skipped.push(format!("{}: not a regular file", path.display()));
            }
        }
        plan.directories.push(remote);
    }
    Ok(plan)
}

impl Upload<'_> {
    async fn all(&self, plan: Plan) -> Result<Copied, Failure> {
        for directory in &plan.directories {
            self.client.make_dir(self.sandbox, directory).await?;
        }
        let copies = plan.files.iter().map(|file| self.send(file));
        let sizes: Vec<u64> =
            stream::iter(copies).buffer_unordered(PARALLEL_COPIES).try_collect().await?;
        let mut copied = Copied {
            files: plan.files.len() as u64,
            directories: plan.directories.len() as u64,
            bytes: sizes.iter().sum(),
            skipped: plan.skipped,
        };
        for some in plan.links.chunks(LINKS_PER_COMMAND) {
            match links::make(self.client, self.sandbox, some).await {
                Ok(()) => copied.files += some.len() as u64,
                Err(failure) => {
                    copied.skipped.extend(some.iter().map(|(_, at)| format!("{at}: {failure}")));
                }
            }
        }
        Ok(copied)
    }

    async fn send(&self, file: &LocalFile) -> Result<u64, Failure> {
        let opened = tokio::fs::File::open(&file.local).await;
        let opened = opened.map_err(Failure::io(format_args!("read {}", file.local.display())))?;
        let progress = self.progress.clone();
        let content = ReaderStream::with_capacity(opened, PIECE_BYTES).inspect_ok(move |piece| {
            progress.add(piece.len() as u64);
        });
        self.client.write_file(self.sandbox, &file.remote, file.mode, content).await?;
        Ok(file.size)
    }

    async fn standard_input(&self, path: &str) -> Result<Copied, Failure> {
        let counted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counter = counted.clone();
        let progress = self.progress.clone();
        let content = ReaderStream::with_capacity(tokio::io::stdin(), PIECE_BYTES);
        let content = content.inspect_ok(move |piece| {
            progress.add(piece.len() as u64);
            counter.fetch_add(piece.len() as u64, std::sync::atomic::Ordering::Relaxed);
        });
        self.client.write_file(self.sandbox, path, DEFAULT_MODE, content).await?;
        let bytes = counted.load(std::sync::atomic::Ordering::Relaxed);
        Ok(Copied { files: 1, bytes, ..Copied::default() })
    }
}

fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_called_what_the_person_called_it() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("lnk");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert_eq!(given_name(&link).unwrap(), "lnk");
        assert_eq!(given_name(Path::new("a/b/")).unwrap(), "b");
        fs::create_dir_all(dir.path().join("real/sub")).unwrap();
        assert_eq!(given_name(&dir.path().join("real/sub/..")).unwrap(), "real");
        assert_eq!(given_name(Path::new("/")).unwrap_err().exit, Exit::Usage);
    }

    #[test]
    fn a_tree_is_planned_with_its_empty_directories_and_its_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/empty")).unwrap();
        fs::write(dir.path().join("a/f"), "12345").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("a/link")).unwrap();
        let plan = plan(dir.path(), "app/").unwrap();
        let mut directories = plan.directories;
        directories.sort();
        assert_eq!(directories, ["app/", "app/a", "app/a/empty"]);
        assert_eq!(plan.files.len(), 1);
        assert_eq!((plan.files[0].remote.as_str(), plan.files[0].size), ("app/a/f", 5));
        assert_eq!(plan.links, [("/etc/passwd".to_owned(), "app/a/link".to_owned())]);
        assert!(plan.skipped.is_empty());
    }
}
