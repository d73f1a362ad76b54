//! Names that a sandbox gives, judged before they become local paths.

/// The name when it is one plain path component.
pub(super) fn plain(name: &str) -> Option<&str> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    plain.then_some(name)
}

/// Whether a link at this depth below the copy's top stays below the top.
pub(super) fn link_stays_inside(target: &str, depth: usize) -> bool {
    if target.is_empty() || target.starts_with('/') || target.contains('\0') {
        return false;
    }
    let mut level = depth;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if level == 0 => return false,
            ".." => level -= 1,
            _ => level += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_become_files() {
        assert_eq!(plain("a b.txt"), Some("a b.txt"));
        for bad in ["", ".", "..", "a/b", "../x", "/etc/passwd", "a\0b"] {
            assert_eq!(plain(bad), None, "{bad:?} was accepted");
        }
    }

    #[test]
    fn links_that_leave_the_copy_are_seen() {
        assert!(link_stays_inside("b", 0));
        assert!(link_stays_inside("../b/./c", 1));
        assert!(link_stays_inside("x/../../b", 1));
        for (target, depth) in [("/etc", 3), ("..", 0), ("../..", 1), ("a/../../x", 0), ("", 2)] {
            assert!(!link_stays_inside(target, depth), "{target:?} at {depth} was accepted");
        }
    }
}
