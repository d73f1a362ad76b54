//! Fuzz targets: image archives, as far as they are read without a disk to unpack them to.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::MemfdFlags;
use sandbank_image_archive::{Archive, ImportLimits, Skip, TarStream, compression, machine, plan};

const LIMITS: ImportLimits = ImportLimits { entries: 1000, bytes: 4 << 20, layers: 8 };

/// Recognised, indexed, planned, and each layer read to its end or its first error.
pub(crate) fn archives(data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let memory = rustix::fs::memfd_create("archive", MemfdFlags::CLOEXEC).expect("a memory file");
    let mut file = std::fs::File::from(memory);
    file.write_all(data).expect("memory takes it");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let Ok(archive) = Archive::open(&path, Path::new("/tmp"), LIMITS, |_| {}) else { return };
    let Ok(plan) = plan(&archive, machine()) else { return };
    for (member, _) in plan.layers.iter().take(LIMITS.layers) {
        let section = std::io::BufReader::new(archive.section(*member));
        let Ok(decoded) = compression::decoder(section) else { continue };
        read_all(TarStream::new(Bounded(std::io::Read::take(decoded, LIMITS.bytes)), false));
    }
}

struct Bounded<R>(std::io::Take<R>);

impl<R: std::io::Read> std::io::Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: std::io::Read> Skip for Bounded<R> {}

fn read_all<R: Skip>(mut stream: TarStream<R>) {
    let mut buffer = [0; 4096];
    while let Ok(Some(entry)) = stream.next_entry() {
        assert!(!entry.path.contains(&0) && !entry.link.contains(&0));
        let mut read = 0u64;
        while let Ok(length @ 1..) = stream.read_body(&mut buffer) {
            read += length as u64;
        }
        assert!(read <= entry.size);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_archives_are_handled() {
        sandbank_test_support::replay_corpus("archives", super::archives);
    }
}
