//! What the containers' images are made of, as tar archives.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::peers::{host_root, process};

/// What is run in containers whose image has everything in it.
const PROGRAMS: [&str; 5] = ["true", "cat", "sleep", "sh", "bash"];

/// No more than the host's `/usr` needs to be mounted.
pub(super) fn mount_points(root: &Path) -> anyhow::Result<Vec<u8>> {
    host_root::make(root)?;
    archive(root)
}

/// The same with the programs in it: nothing of the host has to be mounted.
pub(super) fn programs(root: &Path) -> anyhow::Result<Vec<u8>> {
    host_root::make(root)?;
    for name in PROGRAMS {
        let program = process::find(name).with_context(|| format!("there is no {name} here"))?;
        copy(&program, &root.join("usr/bin").join(name))?;
        for library in libraries(&program)? {
            // By the name that programs know it by, below `/usr` as the root's links have it.
            let name = library.strip_prefix("/usr").or_else(|_| library.strip_prefix("/"))?;
            copy(&library, &root.join("usr").join(name))?;
        }
    }
    archive(root)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to.parent().context("a file without a directory")?)?;
    fs::copy(from, to).map(drop).with_context(|| format!("copy {}", from.display()))
}

fn libraries(program: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let said = process::bare(&["ldd"])?.arg(program).output()?;
    Ok(named_in(&String::from_utf8_lossy(&said.stdout)))
}

/// Of a static program `ldd` names none.
fn named_in(text: &str) -> BTreeSet<PathBuf> {
    let path =
        |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(Into::into);
    text.lines().filter_map(path).collect()
}

fn archive(root: &Path) -> anyhow::Result<Vec<u8>> {
    let tar = process::bare(&["tar", "--create", "--directory"])?.arg(root).arg(".").output()?;
    anyhow::ensure!(tar.status.success(), "tar: {}", String::from_utf8_lossy(&tar.stderr));
    Ok(tar.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_with_a_path() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(named_in(text), expected.map(PathBuf::from).into());
        assert!(named_in("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn an_image_of_programs_has_the_libraries_they_need() {
        let dir = tempfile::tempdir().unwrap();
        let archive = programs(dir.path()).unwrap();
        assert!(archive.len() > 100_000, "{} bytes", archive.len());
        for file in ["usr/bin/true", "usr/bin/bash"] {
            assert!(dir.path().join(file).is_file(), "{file}");
        }
        let linked = libraries(&dir.path().join("usr/bin/bash")).unwrap();
        let inside =
            |library: &PathBuf| dir.path().join(library.strip_prefix("/").unwrap()).exists();
        assert!(linked.iter().all(inside), "{linked:?}");
    }
}
