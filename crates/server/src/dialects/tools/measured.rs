//! What the tools did, in numbers: over HTTP, MCP and in chats.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sandbank_tools::Counted;

type Labels = Vec<(&'static str, &'static str)>;
type Counters = Family<Labels, Counter>;

/// Beside the daemon's own numbers.
pub(in crate::dialects) fn register(registry: &mut Registry, counted: &Counted) {
    let calls = Counters::default();
    for ((tool, outcome), times) in &counted.calls {
        let labels = vec![("tool", *tool), ("outcome", *outcome)];
        calls.get_or_create(&labels).inc_by(*times);
    }
    let by = |label: &'static str, counts: &std::collections::BTreeMap<&'static str, u64>| {
        let counters = Counters::default();
        for (word, times) in counts {
            counters.get_or_create(&vec![(label, *word)]).inc_by(*times);
        }
        counters
    };
    let now = |count: usize| {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        gauge
    };
    registry.register("tool_calls", "Calls of tools, by tool and how they ended", calls);
    registry.register(
        "tool_refusals",
        "Callers that have no tools, by the gate that is closed",
        by("reason", &counted.refusals),
    );
    registry.register(
        "tool_sessions",
        "Sessions of the tools that have a sandbox",
        now(counted.sessions),
    );
    registry.register(
        "tool_seeds",
        "Workspaces that were to be filled, by how that ended",
        by("outcome", &counted.seeds),
    );
    registry.register(
        "tool_approvals",
        "Calls that a rule or a person decided about, by how that ended",
        by("outcome", &counted.approvals),
    );
    registry.register(
        "tool_approvals_waiting",
        "Calls that wait for a person",
        now(counted.approvals_waiting),
    );
}
