//! A committed table: what of it may be missing on this host, and how a new one is written.

/// Which kernel files there are to mask, and what an image of this host needs of it, differs from
/// host to host. What is not there needs no mount; whatever is mounted must be in the table.
pub(crate) fn may_be_missing(line: &str) -> bool {
    let Some((kind, rest)) = line.split_once(' ') else { return false };
    let path = rest.split(':').next().unwrap_or_default();
    let found = std::fs::symlink_metadata(path);
    match kind {
        "mask" => found.is_err(),
        // Of versioned names, whether one is there.
        "bind" if path.ends_with('*') => !any_with_prefix(path.trim_end_matches('*')),
        // Links are made anew, and files are copied.
        "bind" => !OWN_ETC.contains(&path) && !found.is_ok_and(|found| found.is_dir()),
        _ => false,
    }
}

/// Mounted in every sandbox, whatever the host has.
const OWN_ETC: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

fn any_with_prefix(prefix: &str) -> bool {
    let (directory, name) = prefix.rsplit_once('/').expect("a path has a slash");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .any(|entry| entry.file_name().to_string_lossy().starts_with(name))
}

/// What was seen, with the lines of the old table that this host has nothing for.
pub(crate) fn blessed(seen: &[String], table: &str) -> String {
    let mut lines: Vec<&str> = seen.iter().map(String::as_str).collect();
    let kept = table.lines().filter(|line| may_be_missing(line) && !lines.contains(line));
    let kept: Vec<&str> = kept.collect();
    let conditional = |line: &&str| line.starts_with("mask ") || line.starts_with("bind ");
    let place = lines.iter().position(conditional).unwrap_or(lines.len());
    let end = lines.iter().rposition(conditional).map_or(place, |last| last + 1);
    let mut section: Vec<&str> = lines.drain(place..end).chain(kept).collect();
    section.sort_unstable();
    lines.splice(place..place, section);
    lines.join("\n") + "\n"
}
