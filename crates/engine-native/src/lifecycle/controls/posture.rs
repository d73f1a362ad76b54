//! A machine's first process, looked at from the host.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::limits::{UID_BASE, UID_RANGE};
use crate::machine::WORKLOAD_ID;

const NAMESPACES: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// What `/proc/<pid>` says.
#[derive(Debug, Clone)]
pub(super) struct Posture {
    /// Namespaces that it shares with the daemon.
    pub(super) shared_namespaces: Vec<&'static str>,
    /// Real user id on the host.
    pub(super) uid: u32,
    pub(super) no_new_privileges: bool,
    pub(super) seccomp_filter: bool,
    pub(super) bounding_set: u64,
    pub(super) core_limit: u64,
    pub(super) mounts: Vec<Mount>,
    /// Who owns `/` and the workspace, as seen on the host.
    pub(super) root_owner: u32,
    pub(super) workspace_owner: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) target: String,
    pub(super) options: Vec<String>,
    pub(super) idmapped: bool,
}

impl Posture {
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let root = format!("/proc/{pid}/root");
        Ok(Self {
            shared_namespaces: shared_namespaces(pid),
            uid: number(&status, "Uid:", 10) as u32,
            no_new_privileges: number(&status, "NoNewPrivs:", 10) == 1,
            seccomp_filter: number(&status, "Seccomp:", 10) == 2,
            bounding_set: number(&status, "CapBnd:", 16),
            core_limit: core_limit(&fs::read_to_string(format!("/proc/{pid}/limits"))?),
            mounts: mounts(&fs::read_to_string(format!("/proc/{pid}/mountinfo"))?),
            root_owner: fs::metadata(format!("{root}/"))?.uid(),
            workspace_owner: fs::metadata(format!("{root}{}", sandbank_protocol::WORKSPACE))?.uid(),
        })
    }

    pub(super) fn runs_as_own_root(&self) -> bool {
        self.uid >= UID_BASE
    }

    /// The workspace is its workload's, whether by mapping or by owner.
    pub(super) fn owns_workspace(&self) -> bool {
        self.workspace_owner == self.uid - self.uid % UID_RANGE + WORKLOAD_ID
    }

    /// Files on disk keep canonical owners.
    pub(super) fn ids_are_mapped(&self) -> bool {
        let workspace = self.mount(sandbank_protocol::WORKSPACE);
        self.root_owner >= UID_BASE
            && self.owns_workspace()
            && workspace.is_some_and(|mount| mount.idmapped)
    }

    pub(super) fn mount(&self, target: &str) -> Option<&Mount> {
        // The last one covers those before it.
        self.mounts.iter().rev().find(|mount| mount.target == target)
    }

    pub(super) fn is_read_only(&self, target: &str) -> bool {
        self.mount(target).is_some_and(|mount| mount.options.iter().any(|option| option == "ro"))
    }
}

fn shared_namespaces(pid: i32) -> Vec<&'static str> {
    let link = |who: &str, name: &str| fs::read_link(format!("/proc/{who}/ns/{name}")).ok();
    let shared = |name: &&str| link(&pid.to_string(), name) == link("self", name);
    NAMESPACES.into_iter().filter(shared).collect()
}

fn number(status: &str, key: &str, radix: u32) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let first = line.and_then(|line| line.split_whitespace().next());
    first.and_then(|text| u64::from_str_radix(text, radix).ok()).unwrap_or(u64::MAX)
}

fn core_limit(limits: &str) -> u64 {
    let line = limits.lines().find(|line| line.starts_with("Max core file size"));
    let hard = line.and_then(|line| line.split_whitespace().nth(5));
    hard.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

fn mounts(mountinfo: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let mut fields = line.split(' ');
        let target = fields.nth(4)?.to_owned();
        let options: Vec<String> = fields.next()?.split(',').map(str::to_owned).collect();
        let idmapped = options.iter().any(|option| option == "idmapped");
        Some(Mount { target, options, idmapped })
    };
    mountinfo.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_as_the_kernel_writes_them() {
        let status = "Uid:\t1879048192\t5\t5\t5\nCapBnd:\t00000000000000e0\nNoNewPrivs:\t1\n";
        assert_eq!(number(status, "Uid:", 10), 0x7000_0000);
        assert_eq!(number(status, "CapBnd:", 16), 0xe0);
        assert_eq!(number(status, "Seccomp:", 10), u64::MAX);
        let limits = "Max core file size        0                    0                    bytes \n";
        assert_eq!(core_limit(limits), 0);
        let line = "5 1 0:3 / /a ro,nosuid,idmapped - ext4 /dev/x rw\n";
        let mount = &mounts(line)[0];
        assert!(mount.idmapped && mount.target == "/a" && mount.options[0] == "ro");
    }
}
