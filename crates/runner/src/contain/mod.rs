//! The battery of attacks, run as an ordinary command of the sandbox that is to withstand them.
//!
//! The table of probes, with what each proves, is [`sandbank_protocol::containment`]. Each attack
//! is harmless where it succeeds: arguments are invalid, files are only opened, and what was made
//! is removed. One thread, no runtime: probes fork.

mod answer;
mod calls;
mod child;
mod devices;
mod files;
mod foreign;
mod identity;
mod landlock;
mod limits;
mod mounts;
mod network;
mod program;
mod sockets;
mod status;

use std::io::Write;

use sandbank_protocol::containment::{BatteryPlan, Finding, Outcome};

use answer::{Answer, Miss};

type Attack = fn(&BatteryPlan) -> Answer;

/// The probes of the inside, by the names of the table.
const ATTACKS: &[(&str, Attack)] = &[
    ("capability_sets", status::capability_sets),
    ("raw_socket", sockets::raw),
    ("device_nodes", devices::nodes),
    ("no_new_privileges", status::no_new_privileges),
    ("seccomp_filter", status::seccomp_filter),
    ("mount_calls", mounts::calls),
    ("namespace_calls", calls::namespaces),
    ("kernel_calls", calls::kernel),
    ("socket_families", sockets::families),
    ("foreign_calls", foreign::calls),
    ("landlock_domain", landlock::domain),
    ("nested_user_namespace", identity::nested_user_namespace),
    ("workload_identity", identity::workload),
    ("first_process", identity::first_process),
    ("runner_program", program::runner),
    ("read_only_root", files::read_only_root),
    ("kernel_files", files::kernel_files),
    ("kernel_settings", files::kernel_settings),
    ("cgroup_files", mounts::cgroups),
    ("other_processes", status::other_processes),
    ("leaked_descriptors", files::leaked_descriptors),
    ("host_paths", files::host_paths),
    ("resource_limits", limits::resources),
    ("process_burst", limits::burst),
    ("disk_fill", limits::fill),
    ("loopback_only", network::loopback_only),
    ("private_addresses", network::private_addresses),
];

/// Exit code when the plan is not understood.
const USAGE: u8 = 64;

/// Prints one finding per line and exits with 0 however they ended; the daemon judges.
pub(crate) fn run(words: &[String]) -> u8 {
    let plan = match words.get(1).map(|text| serde_json::from_str::<BatteryPlan>(text)) {
        Some(Ok(plan)) => plan,
        Some(Err(error)) => return complain(&error.to_string()),
        None => return complain("the plan is missing"),
    };
    // Other commands of the sandbox have this user's rights, and no business in here.
    // SAFETY: PR_SET_DUMPABLE takes plain integers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    for (name, attack) in ATTACKS {
        let (outcome, evidence) = match attack(&plan) {
            Ok(evidence) => (Outcome::Held, evidence),
            Err(Miss::Failed(evidence)) => (Outcome::Failed, evidence),
            Err(Miss::NotTried(reason)) => (Outcome::NotTried, reason),
        };
        let finding = Finding::new(name, outcome, evidence);
        let line = serde_json::to_string(&finding).expect("a finding is plain data");
        // At once: what is printed counts even if a later attack is the end of this process.
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            return 1;
        }
    }
    0
}

fn complain(error: &str) -> u8 {
    eprintln!("runner: {error}");
    USAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbank_protocol::containment::{PROBES, Side};

    #[test]
    fn the_attacks_are_those_of_the_table() {
        let inside = PROBES.iter().filter(|probe| probe.side == Side::Inside);
        let table: Vec<_> = inside.map(|probe| probe.name).collect();
        assert_eq!(ATTACKS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), table);
    }
}
