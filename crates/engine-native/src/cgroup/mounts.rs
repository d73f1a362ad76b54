//! Where the cgroup hierarchies are mounted, and where this process is in each.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One v1 hierarchy; controllers that are mounted together share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) path: PathBuf,
    pub(super) controllers: BTreeSet<String>,
    /// This process's own cgroup in it.
    pub(super) own: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    pub(super) v1: Vec<Hierarchy>,
    pub(super) v2: Option<Hierarchy>,
}

impl Mounts {
    pub(super) fn read() -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let mut found = Self::parse(&mounts, &own);
        if let Some(v2) = &mut found.v2 {
            let controllers = fs::read_to_string(v2.path.join("cgroup.controllers"))?;
            v2.controllers = controllers.split_whitespace().map(str::to_owned).collect();
        }
        Ok(found)
    }

    fn parse(mountinfo: &str, own: &str) -> Self {
        let mut found = Self::default();
        for line in mountinfo.lines() {
            let Some((place, kind)) = line.split_once(" - ") else { continue };
            let Some(path) = place.split(' ').nth(4) else { continue };
            let mut kind = kind.split(' ');
            let (fs, options) = (kind.next(), kind.nth(1).unwrap_or_default());
            let path = PathBuf::from(unescape(path));
            match fs {
                Some("cgroup") => {
                    let controllers = controllers(options);
                    let own = own_cgroup(own, Some(&controllers));
                    found.v1.push(Hierarchy { path, controllers, own });
                }
                Some("cgroup2") if found.v2.is_none() => {
                    let own = own_cgroup(own, None);
                    found.v2 = Some(Hierarchy { path, controllers: BTreeSet::new(), own });
                }
                _ => {}
            }
        }
        found
    }

    pub(super) fn v2_has_all_controllers(&self) -> bool {
        self.v2.as_ref().is_some_and(|v2| {
            ["memory", "cpu", "pids"].iter().all(|name| v2.controllers.contains(*name))
        })
    }

    pub(super) fn v1_with(&self, controller: &str) -> Option<&Hierarchy> {
        self.v1.iter().find(|hierarchy| hierarchy.controllers.contains(controller))
    }
}

/// Mount options that are not controllers are never asked for, so they may stay in the set.
fn controllers(options: &str) -> BTreeSet<String> {
    options.split(',').filter(|option| *option != "rw").map(str::to_owned).collect()
}

fn own_cgroup(own: &str, controllers: Option<&BTreeSet<String>>) -> String {
    let line = own.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        let matches = match controllers {
            None => number == "0",
            Some(wanted) => number != "0" && names.split(',').any(|name| wanted.contains(name)),
        };
        matches.then_some(path)
    });
    line.unwrap_or("/").to_owned()
}

/// mountinfo writes space, tab, newline and backslash as octal.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// `dir` with `sandbank/<instance>` below it made.
pub(super) fn make_base(dir: &Path, instance: &str) -> io::Result<PathBuf> {
    let top = dir.join("sandbank");
    super::files::make_dir(&top)?;
    let base = top.join(instance);
    super::files::make_dir(&base)?;
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
33 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
36 32 0:33 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 32 0:38 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
42 32 0:39 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";
    const OWN: &str =
        "4:memory:/box/7\n2:cpu,cpuacct:/\n1:name=systemd:/a.service\n0::/b.service\n";

    #[test]
    fn a_hybrid_host_is_understood() {
        let found = Mounts::parse(HYBRID, OWN);
        assert_eq!(found.v1_with("cpuacct"), found.v1_with("cpu"));
        assert_eq!(found.v1_with("memory").unwrap().own, "/box/7");
        assert_eq!(found.v1_with("name=systemd").unwrap().own, "/a.service");
        assert_eq!(found.v1_with("pids"), None);
        let v2 = found.v2.as_ref().unwrap();
        assert_eq!(
            (v2.path.to_str(), v2.own.as_str()),
            (Some("/sys/fs/cgroup/unified"), "/b.service")
        );
        assert!(!found.v2_has_all_controllers());
    }
}
