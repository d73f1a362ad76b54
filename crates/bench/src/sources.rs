//! The trees that are walked and searched: text like sources, made by the machine and read by
//! everybody at the same place.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// What is searched for: in few lines, as a name in sources is.
pub(crate) const WANTED: &str = "find_the_wanted_one";

/// Files of a directory, and directories of a directory, where there are many small ones.
const FILES: usize = 100;
const DIRECTORIES: usize = 20;

/// Each so manieth small file has a line with it.
const WANTED_EVERY: usize = 100;

/// Lines of a small file, about a kilobyte.
const SMALL_LINES: usize = 24;

/// Of one large file.
const LARGE_BYTES: u64 = 1 << 20;

/// Each so manieth line of large files has it.
const WANTED_EVERY_LINES: usize = 5_000;

/// What was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    /// Files and directories.
    pub(crate) entries: u64,
    /// Lines with what is searched for.
    pub(crate) wanted: u64,
}

/// `count` small files in directories three deep.
pub(crate) fn small(root: &Path, count: usize) -> anyhow::Result<Made> {
    let mut made = Made { entries: 0, wanted: 0 };
    let mut text = Vec::new();
    for number in 0..count {
        let directory = number / FILES;
        let path = root.join(format!("part{}", directory / DIRECTORIES));
        let path = path.join(format!("module{}", directory % DIRECTORIES));
        if number % FILES == 0 {
            made.entries += 1 + u64::from(directory.is_multiple_of(DIRECTORIES));
            fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
        }
        text.clear();
        let wanted = number % WANTED_EVERY == 0;
        for line in 0..SMALL_LINES {
            let wanted = wanted && line == SMALL_LINES / 2;
            write_line(&mut text, number + line, wanted);
        }
        fs::write(path.join(format!("source_{}.rs", number % FILES)), &text)?;
        made.entries += 1;
        made.wanted += u64::from(wanted);
    }
    Ok(made)
}

/// About `bytes` in large files, all in one directory.
pub(crate) fn large(root: &Path, bytes: u64) -> anyhow::Result<Made> {
    let mut made = Made { entries: 1, wanted: 0 };
    fs::create_dir_all(root)?;
    let mut lines = 0;
    for number in 0..bytes.div_ceil(LARGE_BYTES) {
        let mut text = Vec::new();
        while (text.len() as u64) < LARGE_BYTES {
            lines += 1;
            let wanted = lines % WANTED_EVERY_LINES == 0;
            write_line(&mut text, lines, wanted);
            made.wanted += u64::from(wanted);
        }
        fs::write(root.join(format!("large_{number}.c")), &text)?;
        made.entries += 1;
    }
    Ok(made)
}

fn write_line(text: &mut Vec<u8>, number: usize, wanted: bool) {
    let name = if wanted { WANTED } else { "find_another_one" };
    let line = format!("    let value_{number} = {name}(first, {number});\n");
    text.extend_from_slice(line.as_bytes());
}

/// Where the machine itself sees a sandbox's workspace, whatever its storage is.
pub(crate) fn workspace_of(data_dir: &Path, sandbox: &str) -> anyhow::Result<PathBuf> {
    let places = ["pool/subvolumes", "subvolumes", "workspaces"];
    let mut places = places.map(|place| data_dir.join(place).join(sandbox)).into_iter();
    places.find(|place| place.is_dir()).context("the sandbox's workspace is nowhere to be seen")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(root: &Path) -> (u64, u64) {
        let mut counted = (0, 0);
        for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
            counted.0 += 1;
            if entry.file_type().unwrap().is_dir() {
                let below = count(&entry.path());
                counted = (counted.0 + below.0, counted.1 + below.1);
            } else {
                let text = fs::read_to_string(entry.path()).unwrap();
                counted.1 += text.lines().filter(|line| line.contains(WANTED)).count() as u64;
            }
        }
        counted
    }

    #[test]
    fn trees_have_what_is_said_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let made = small(&dir.path().join("small"), 2_350).unwrap();
        assert_eq!((made.entries, made.wanted), (2_350 + 24 + 2, 24));
        let large = large(&dir.path().join("large"), 2 << 20).unwrap();
        assert!(large.wanted > 0 && large.entries == 3, "{large:?}");
        // And the two directories around them.
        let all = (made.entries + 1 + large.entries, made.wanted + large.wanted);
        assert_eq!(count(dir.path()), all);
    }
}
