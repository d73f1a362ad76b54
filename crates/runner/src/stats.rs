//! `GET /stats`: what is going on in the sandbox right now.

use rustix::fs::fstatvfs;
use sandbank_protocol::Stats;

use crate::commands::Commands;
use crate::files::Workspace;
use crate::http::Counters;

pub(crate) fn collect(commands: &Commands, workspace: &Workspace, counters: &Counters) -> Stats {
    let counts = commands.counts();
    let (disk_used_bytes, disk_total_bytes) = disk(workspace);
    Stats {
        commands_running: counts.running,
        commands_ended: counts.ended,
        processes: processes(),
        tunnels_open: counters.tunnels_open.get(),
        readers_open: counters.readers_open.get(),
        journal_bytes: counts.journal_bytes,
        uptime_s: workspace.open_for().as_secs(),
        disk_used_bytes,
        disk_total_bytes,
    }
}

/// Used and total bytes of the workspace's file system; zeros where it cannot be told.
fn disk(workspace: &Workspace) -> (u64, u64) {
    let Ok(disk) = fstatvfs(workspace) else { return (0, 0) };
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    (bytes(disk.f_blocks.saturating_sub(disk.f_bfree)), bytes(disk.f_blocks))
}

/// All processes of the sandbox that the runner may see; zero without a `/proc`.
fn processes() -> u64 {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let is_pid = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
    let pids =
        entries.filter_map(Result::ok).filter(|entry| is_pid(entry.file_name().as_encoded_bytes()));
    pids.count() as u64
}
