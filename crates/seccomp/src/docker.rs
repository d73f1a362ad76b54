//! The same table in Docker's words. It stands from before the runner's first instruction, and the
//! runner then adds the program itself, so what cannot be said here is still refused.

use serde_json::{Value, json};

use super::arguments::{self, Compare, Conditional, Rule};
use super::names;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &str = "SCMP_ARCH_X86_64";
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: &str = "SCMP_ARCH_AARCH64";

const ALLOW: &str = "SCMP_ACT_ALLOW";

/// A profile as Docker's option `seccomp=` takes it. Names that an older engine does not know are
/// passed over by it, which refuses them. With `packet_filter` there is one more socket, by which
/// the runner closes its network before it puts itself under the program, which refuses it.
pub fn docker_profile(packet_filter: bool) -> String {
    let mut calls = vec![json!({ "names": names::allowed_names(), "action": ALLOW })];
    for conditional in arguments::table() {
        calls.extend(rules(&conditional));
    }
    if packet_filter {
        let equal = |argument, value: i32| {
            let (compare, value) = (Compare::Equal, u64::from(value.unsigned_abs()));
            condition(&arguments::Condition { argument, compare, value })
        };
        let both = [equal(0, libc::AF_NETLINK), equal(2, libc::NETLINK_NETFILTER)];
        calls.push(json!({ "names": ["socket"], "action": ALLOW, "args": both }));
    }
    let profile = json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        // Calls of any other are killed.
        "architectures": [ARCHITECTURE],
        "syscalls": calls,
    });
    profile.to_string()
}

/// An OCI runtime takes two conditions on one argument for alternatives, which would allow more
/// than the rule: such a call is left to the runner's program as a whole.
fn rules(call: &Conditional) -> Vec<Value> {
    let name = names::plain(call.name);
    if call.rules.iter().any(repeats_an_argument) {
        return vec![json!({ "names": [name], "action": ALLOW })];
    }
    let entry = |rule: &Rule| {
        let conditions: Vec<Value> = rule.iter().map(condition).collect();
        json!({ "names": [name], "action": ALLOW, "args": conditions })
    };
    call.rules.iter().map(entry).collect()
}

fn repeats_an_argument(rule: &Rule) -> bool {
    let mut seen = [false; 6];
    rule.iter().any(|condition| std::mem::replace(&mut seen[usize::from(condition.argument)], true))
}

fn condition(condition: &arguments::Condition) -> Value {
    let (argument, value) = (condition.argument, condition.value);
    match condition.compare {
        Compare::Equal => json!({ "index": argument, "value": value, "op": "SCMP_CMP_EQ" }),
        Compare::Differs => json!({ "index": argument, "value": value, "op": "SCMP_CMP_NE" }),
        Compare::EqualIn(mask) => {
            let op = "SCMP_CMP_MASKED_EQ";
            json!({ "index": argument, "value": mask, "valueTwo": value, "op": op })
        }
    }
}
