//! An image of this machine's own programs, for engines that have no image of the host itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// What the suites' scripts call. Those that are not here are left out.
const PROGRAMS: &str = "awk base64 basename bash cat chmod chown cksum cmp comm cp curl cut date dd \
    df diff dirname du echo env expand expr factor false find flock fold free getent git grep \
    groups gzip head hexdump hostname id install ip join kill less link ln ls lsof md5sum mkdir \
    mkfifo mknod mktemp mount mv nice nl nohup nproc numfmt od openssl paste perl pgrep pkill \
    printenv printf prlimit ps pwd python3 readlink realpath rev rm rmdir script sed seq setsid sh \
    sha256sum shred shuf sleep sort split ss stat stdbuf stty sum sync tac tail tar tee test time \
    timeout touch tr true truncate tsort tty umount uname uniq unlink unshare uptime wc wget which \
    who xargs xz yes";

/// Below `/usr/lib`, whatever begins with one of these: what interpreters need beside themselves.
const LIBRARIES: [&str; 3] =
    ["python3", "x86_64-linux-gnu/perl-base", "aarch64-linux-gnu/perl-base"];

/// Started by `git` for itself.
const GIT_REMOTE: &str = "/usr/lib/git-core/git-remote-http";

const LINKS: [(&str, &str); 4] =
    [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];
const DIRECTORIES: [&str; 10] =
    ["etc", "tmp", "var", "proc", "sys", "dev", "root", "run", "usr/bin", "usr/lib64"];

/// The root of a file system with this machine's programs, as a tar archive at `path`.
pub fn suite_root(path: &Path) -> anyhow::Result<()> {
    let mut archive = tar::Builder::new(File::create(path)?);
    archive.follow_symlinks(false);
    for directory in DIRECTORIES {
        entry(&mut archive, directory, tar::EntryType::Directory, 0o755, b"", None)?;
    }
    for (name, target) in LINKS {
        entry(&mut archive, name, tar::EntryType::Symlink, 0o777, b"", Some(target))?;
    }
    let passwd = b"root:x:0:0:root:/root:/bin/bash\nsandbox:x:1000:1000::/workspace:/bin/bash\n";
    entry(&mut archive, "etc/passwd", tar::EntryType::Regular, 0o644, passwd, None)?;
    entry(
        &mut archive,
        "etc/group",
        tar::EntryType::Regular,
        0o644,
        b"root:x:0:\nsandbox:x:1000:\n",
        None,
    )?;
    let mut libraries = BTreeSet::new();
    for name in PROGRAMS.split_whitespace() {
        let Some(program) = found(name) else { continue };
        append(&mut archive, &program, &format!("usr/bin/{name}"))?;
        libraries.extend(libraries_of(&program)?);
    }
    if Path::new(GIT_REMOTE).is_file() {
        append(&mut archive, Path::new(GIT_REMOTE), GIT_REMOTE.trim_start_matches('/'))?;
        libraries.extend(libraries_of(Path::new(GIT_REMOTE))?);
    }
    for start in LIBRARIES {
        let (parent, prefix) = start.rsplit_once('/').unwrap_or(("", start));
        let parent = Path::new("/usr/lib").join(parent);
        for directory in fs::read_dir(&parent).into_iter().flatten().flatten() {
            let name = directory.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) && directory.path().is_dir() {
                let inside = directory.path();
                let inside = inside.strip_prefix("/")?.to_owned();
                archive.append_dir_all(&inside, directory.path())?;
                libraries.extend(modules_in(&directory.path())?);
            }
        }
    }
    // `/lib` is a link to `/usr/lib`, and linkers name either.
    let inside = |library: &Path| match library.strip_prefix("/usr") {
        Ok(below) => Path::new("usr").join(below),
        Err(_) => Path::new("usr").join(library.strip_prefix("/").unwrap_or(library)),
    };
    let named: BTreeMap<PathBuf, PathBuf> =
        libraries.into_iter().map(|library| (inside(&library), library)).collect();
    for (name, library) in named {
        append(&mut archive, &library, &name.to_string_lossy())?;
    }
    archive.finish()?;
    Ok(())
}

type Archive = tar::Builder<File>;

fn entry(
    archive: &mut Archive,
    name: &str,
    kind: tar::EntryType,
    mode: u32,
    content: &[u8],
    target: Option<&str>,
) -> anyhow::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    match target {
        Some(target) => archive.append_link(&mut header, name, target)?,
        None => archive.append_data(&mut header, name, content)?,
    }
    Ok(())
}

/// What a name leads to in the end, under that name.
fn append(archive: &mut Archive, path: &Path, name: &str) -> anyhow::Result<()> {
    let path = fs::canonicalize(path)?;
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(fs::metadata(&path)?.len());
    archive.append_data(&mut header, name, File::open(&path)?).with_context(|| name.to_owned())
}

fn found(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file())
}

/// Loaded by programs only when they are needed.
fn modules_in(directory: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut libraries = BTreeSet::new();
    for entry in fs::read_dir(directory)?.flatten() {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            libraries.extend(modules_in(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "so") {
            libraries.extend(libraries_of(&path)?);
        }
    }
    Ok(libraries)
}

fn libraries_of(program: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let said = Command::new("ldd").arg(program).output().context("ldd")?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let paths =
        text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    // Of a script or a static program it says something else.
    Ok(paths.map(PathBuf::from).filter(|path| path.is_file() && path != program).collect())
}
