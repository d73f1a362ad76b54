//! How often the kernel killed a process of this sandbox because memory ran out.

use std::os::fd::OwnedFd;

pub(crate) struct OomCounter {
    file: OwnedFd,
}

impl OomCounter {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self { file }
    }

    /// None when the file does not tell.
    pub(crate) fn kills(&self) -> Option<u64> {
        let mut text = [0; 1024];
        let length = rustix::io::pread(&self.file, &mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// v1 `memory.oom_control` and v2 `memory.events` both have a line `oom_kill N`.
fn parse(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_file_are_understood() {
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        let v2 = "low 0\nhigh 0\nmax 12\noom 4\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(parse(v1), Some(3));
        assert_eq!(parse(v2), Some(2));
        assert_eq!(parse("something else"), None);
    }
}
