//! What a sandbox uses, from outside and from inside.

use sandbank_engine::MachineStats;
use sandbank_orchestrator::SandboxStats;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatsView {
    memory_bytes: u64,
    memory_peak_bytes: u64,
    cpu_usage_us: u64,
    pids: u64,
    disk_bytes: u64,
    oom_kills: u64,
    /// What the runner says; none while the sandbox is paused.
    runner: Option<RunnerStatsView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunnerStatsView {
    commands_running: u64,
    commands_ended: u64,
    processes: u64,
    tunnels_open: u64,
    readers_open: u64,
    journal_bytes: u64,
    uptime_s: u64,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
}

impl From<SandboxStats> for StatsView {
    fn from(stats: SandboxStats) -> Self {
        let MachineStats {
            memory_bytes,
            memory_peak_bytes,
            cpu_usage_us,
            pids,
            disk_bytes,
            oom_kills,
        } = stats.machine;
        let runner = stats.runner.map(|inside| RunnerStatsView {
            commands_running: inside.commands_running,
            commands_ended: inside.commands_ended,
            processes: inside.processes,
            tunnels_open: inside.tunnels_open,
            readers_open: inside.readers_open,
            journal_bytes: inside.journal_bytes,
            uptime_s: inside.uptime_s,
            disk_used_bytes: inside.disk_used_bytes,
            disk_total_bytes: inside.disk_total_bytes,
        });
        Self { memory_bytes, memory_peak_bytes, cpu_usage_us, pids, disk_bytes, oom_kills, runner }
    }
}
