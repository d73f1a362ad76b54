//! The first process of a machine, which nobody inside can look at, as its host sees it.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Context;
use sandbank_test_support::TestDaemon;

const STATUS: [&str; 7] =
    ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
const LIMITS: [(&str, &str); 3] = [
    ("CORE", "Max core file size"),
    ("MEMLOCK", "Max locked memory"),
    ("NICE", "Max nice priority"),
];

/// What a program says where the machines are: on this host, or on that of a private Docker.
fn said(daemon: &TestDaemon, program: &str, words: &[&str]) -> anyhow::Result<String> {
    let mut command = match daemon.docker() {
        Some(docker) => docker.enter(program)?,
        None => Command::new(program),
    };
    let output = command.args(words).output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program} {words:?}: {complaint}");
    Ok(String::from_utf8(output.stdout)?)
}

/// As `ls` shows them, such as `net:[4026531840]`.
pub(crate) fn host_namespaces(daemon: &TestDaemon) -> anyhow::Result<Vec<String>> {
    let listed = said(daemon, "ls", &["-l", "/proc/self/ns"])?;
    Ok(targets(&listed).map(str::to_owned).collect())
}

/// Names of those that are not among the others.
pub(crate) fn apart<'a>(
    whom: &str,
    own: impl Iterator<Item = &'a str>,
    others: &[String],
) -> String {
    let apart = own.filter(|name| !others.iter().any(|other| other == name));
    let names: BTreeSet<&str> = apart.filter_map(|name| name.split(':').next()).collect();
    let names: Vec<_> = names.into_iter().collect();
    format!("namespaces apart from {whom}: {}", names.join(" "))
}

pub(crate) fn posture(
    daemon: &TestDaemon,
    sandbox: &str,
    host: &[String],
) -> anyhow::Result<Vec<String>> {
    let process = format!("/proc/{}", pid(daemon, sandbox)?);
    let read = |name: &str| said(daemon, "cat", &[&format!("{process}/{name}")]);
    let (status, limits) = (read("status")?, read("limits")?);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).with_context(|| format!("no {name} in {status}"))
    };
    let mut lines = Vec::new();
    for name in STATUS {
        lines.push(format!("{name}: {}", field(name)?));
    }
    for (name, map) in [("Uid", "uid_map"), ("Gid", "gid_map"), ("Groups", "gid_map")] {
        lines.push(format!("{name}: {}", inside(field(name)?, &read(map)?)?));
    }
    for (name, long) in LIMITS {
        let line = limits.lines().find_map(|line| line.strip_prefix(long)).context(long)?;
        let mut both = line.split_whitespace();
        let (soft, hard) = (both.next().unwrap_or_default(), both.next().unwrap_or_default());
        lines.push(format!("rlimit {name}: {soft}, {hard}"));
    }
    let open = said(daemon, "ls", &["-l", &format!("{process}/fd")])?;
    // How many there are of a kind is a matter of the moment.
    let kinds: BTreeSet<&str> = targets(&open).map(kind).collect();
    lines.push(format!("descriptors: {}", kinds.into_iter().collect::<Vec<_>>().join(" ")));
    let environment = read("environ")?;
    let names: BTreeSet<&str> =
        environment.split('\0').filter_map(|one| one.split('=').next()).collect();
    lines.push(format!("environment: {}", names.into_iter().collect::<Vec<_>>().join(" ").trim()));
    let namespaces = said(daemon, "ls", &["-l", &format!("{process}/ns")])?;
    let named = targets(&namespaces).filter(|name| !name.starts_with("time"));
    lines.push(apart("the host", named, host));
    Ok(lines)
}

/// On the host of the machines.
fn pid(daemon: &TestDaemon, sandbox: &str) -> anyhow::Result<String> {
    if let Some(docker) = daemon.docker() {
        let name = format!("sandbank-{sandbox}");
        return docker.said(&["inspect", "--format", "{{.State.Pid}}", &name]);
    }
    let path = daemon.data_dir().join("machines").join(sandbox).join("machine.json");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    Ok(record["process"]["pid"].as_i64().context("no pid in the record")?.to_string())
}

/// Users or groups by the numbers that they have in the machine.
fn inside(ids: &str, map: &str) -> anyhow::Result<String> {
    let first = map.lines().next().context("nobody is mapped")?;
    let mut numbers = first.split_whitespace().map(str::parse::<u64>);
    let mut next = || anyhow::Ok(numbers.next().context("a short line")??);
    let (inner, outer) = (next()?, next()?);
    let ids = ids.split_whitespace().map(|id| anyhow::Ok(id.parse::<u64>()? - outer + inner));
    let ids: anyhow::Result<Vec<u64>> = ids.collect();
    Ok(ids?.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
}

/// Where the links of a long listing lead.
fn targets(listing: &str) -> impl Iterator<Item = &str> {
    listing.lines().filter_map(|line| Some(line.split_once(" -> ")?.1))
}

/// Without what is new each time, and without which hierarchies of cgroups this host has.
fn kind(target: &str) -> &str {
    let own_group = |rest: &str| rest.starts_with(|next: char| next.is_ascii_digit());
    match target {
        _ if target.starts_with("/sys/fs/cgroup/") => "cgroups",
        _ if target.strip_prefix("/c").is_some_and(own_group) => "cgroups",
        _ if target.ends_with("/runner.log.pipe") => "log",
        _ => target.split_once(':').map_or(target, |(kind, _)| kind),
    }
}
