//! The head of a tar entry: ustar, with PAX records for what does not fit.

use tar::{EntryType, Header};

/// Longest name in a plain header.
const NAME_BYTES: usize = 100;
/// Largest size that fits the octal field of a header.
const LARGEST_OCTAL: u64 = 0o777_7777_7777;

pub(super) struct TarHeader<'a> {
    pub(super) kind: EntryType,
    pub(super) path: &'a [u8],
    /// Where a link points.
    pub(super) link: &'a [u8],
    pub(super) size: u64,
    pub(super) mode: u32,
    /// Unix time in seconds.
    pub(super) modified: u64,
}

impl TarHeader<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut records = Vec::new();
        let long = [("path", self.path), ("linkpath", self.link)];
        let long = long.into_iter().filter(|(_, value)| value.len() > NAME_BYTES);
        for (key, value) in long.clone() {
            record(&mut records, key, value);
        }
        let mut size = self.size;
        if size > LARGEST_OCTAL {
            record(&mut records, "size", size.to_string().as_bytes());
            size = 0;
        }
        if !records.is_empty() {
            if long.clone().any(|(_, value)| std::str::from_utf8(value).is_err()) {
                // Values are otherwise taken for UTF-8.
                let mut binary = Vec::new();
                record(&mut binary, "hdrcharset", b"BINARY");
                records.splice(..0, binary);
            }
            extension(out, EntryType::XHeader, &records);
        }
        plain(out, self.kind, self.path, self.link, size, self.mode, self.modified);
    }

    /// A header for all that follows, which is nothing, with a comment that readers ignore.
    pub(super) fn write_comment(out: &mut Vec<u8>, comment: &[u8]) {
        let mut records = Vec::new();
        record(&mut records, "comment", comment);
        extension(out, EntryType::XGlobalHeader, &records);
    }
}

fn extension(out: &mut Vec<u8>, kind: EntryType, records: &[u8]) {
    plain(out, kind, b"PaxHeader", b"", records.len() as u64, 0o644, 0);
    out.extend_from_slice(records);
    out.resize(out.len() + records.len().wrapping_neg() % 512, 0);
}

fn plain(
    out: &mut Vec<u8>,
    kind: EntryType,
    path: &[u8],
    link: &[u8],
    size: u64,
    mode: u32,
    modified: u64,
) {
    let mut header = Header::new_ustar();
    let fields = header.as_old_mut();
    for (field, value) in [(&mut fields.name, path), (&mut fields.linkname, link)] {
        let length = value.len().min(NAME_BYTES);
        field[..length].copy_from_slice(&value[..length]);
    }
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(modified.min(LARGEST_OCTAL));
    header.set_cksum();
    out.extend_from_slice(header.as_bytes());
}

/// `length key=value\n`, where the length counts itself.
fn record(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend_from_slice(format!("{length} {key}=").as_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use sandbank_tar_stream::{Kind, Skip, TarStream};

    use super::*;

    struct Bytes<'a>(&'a [u8]);

    impl std::io::Read for Bytes<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Skip for Bytes<'_> {}

    #[test]
    fn names_of_every_length_and_sizes_of_every_magnitude_are_read_back() {
        for length in [1, 99, 100, 101, 255, 985, 986, 987, 9_984, 9_990, 60_000] {
            let path: Vec<u8> = (0..length).map(|at| 200 + (at % 50) as u8).collect();
            let mut out = Vec::new();
            let link = TarHeader {
                kind: EntryType::Symlink,
                path: &path,
                link: &path,
                size: 0,
                mode: 0o751,
                modified: 7,
            };
            link.write(&mut out);
            TarHeader::write_comment(&mut out, &path);
            out.resize(out.len() + 1024, 0);
            let mut stream = TarStream::new(Bytes(&out), true);
            let entry = stream.next_entry().unwrap().unwrap();
            assert_eq!((entry.kind, &entry.path, &entry.link), (Kind::Symlink, &path, &path));
            assert_eq!((entry.mode, entry.mtime), (0o751, 7));
            assert!(stream.next_entry().unwrap().is_none());
        }
        for size in [0, LARGEST_OCTAL, LARGEST_OCTAL + 1, u64::MAX >> 1] {
            let mut out = Vec::new();
            let kind = EntryType::Regular;
            TarHeader { kind, path: b"f", link: b"", size, mode: 0, modified: 0 }.write(&mut out);
            let entry = TarStream::new(Bytes(&out), true).next_entry().unwrap().unwrap();
            assert_eq!(entry.size, size);
        }
    }
}
