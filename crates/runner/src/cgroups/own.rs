//! The cgroup that the runner itself was put into by somebody else, which it can only look at.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

/// Where cgroups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The file that counts the out-of-memory kills in the runner's own cgroup, if one can be read. A
/// container may see the whole hierarchy, or its own part in place of it.
pub(crate) fn oom_file() -> Option<OwnedFd> {
    let memberships = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    candidates(&memberships).into_iter().find_map(|path| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        super::oom::tells(&file).then_some(file)
    })
}

/// From lines of `number:controllers:path`; the unified hierarchy names no controllers.
fn candidates(memberships: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in memberships.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => (ROOT.to_owned(), "memory.events"),
            controllers if controllers.split(',').any(|name| name == "memory") => {
                (format!("{ROOT}/{controllers}"), "memory.oom_control")
            }
            _ => continue,
        };
        // A path out of what is mounted leads to nobody we know.
        if path != "/" && !path.starts_with("/..") {
            paths.push(format!("{root}{path}/{file}"));
        }
        paths.push(format!("{root}/{file}"));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_and_both_views_are_looked_at() {
        let own_view = candidates("0::/\n");
        assert_eq!(own_view, ["/sys/fs/cgroup/memory.events"]);
        let whole = candidates("0::/system.slice/docker-1.scope\n");
        let expected = "/sys/fs/cgroup/system.slice/docker-1.scope/memory.events";
        assert_eq!(whole, [expected, "/sys/fs/cgroup/memory.events"]);
        let v1 = candidates("9:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n");
        let expected = "/sys/fs/cgroup/memory/docker/1/memory.oom_control";
        assert_eq!(v1, [expected, "/sys/fs/cgroup/memory/memory.oom_control"]);
        assert_eq!(candidates("nonsense\n0::/../x\n"), ["/sys/fs/cgroup/memory.events"]);
    }
}
