//! The instance's nftables table: static rules for all slots, loaded as one transaction.
//!
//! From a sandbox: names are asked of the host's resolvers only; private, link-local, metadata
//! and host addresses and other sandboxes are refused; the rest leaves under the host's address.
//! To a sandbox: answers only. IPv6 is not routed. Other tables of the host still have their
//! say, as an `accept` here ends this table only.

use std::fmt::Write;
use std::net::Ipv4Addr;

use sandbank_protocol::egress::BLOCKED;

use super::limits::CONNECTIONS;
use super::subnet::Subnet;
use super::tool;

/// Beginning of every instance's table.
const TABLE: &str = "sandbank_";

/// What the table is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) table: String,
    /// Beginning of the names of all our links on the host.
    pub(super) links: String,
    pub(super) subnet: Subnet,
    pub(super) resolvers: Vec<Ipv4Addr>,
    /// Links of the host on which we ourselves turned forwarding on: they forward for sandboxes
    /// and for nobody else.
    pub(super) guarded: Vec<String>,
}

impl Rules {
    fn text(&self, limit_connections: bool) -> String {
        let Self { table, links, subnet, .. } = self;
        let refuse = "reject with icmpx type admin-prohibited";
        let blocked: Vec<String> =
            BLOCKED.iter().map(|(address, prefix)| format!("{address}/{prefix}")).collect();
        let resolvers: Vec<String> = self.resolvers.iter().map(Ipv4Addr::to_string).collect();
        let guarded: Vec<String> = self.guarded.iter().map(|name| format!("{name:?}")).collect();
        let elements = |list: &[String]| match list {
            [] => String::new(),
            list => format!("elements = {{ {} }}", list.join(", ")),
        };
        let mut limit = (String::new(), String::new());
        if limit_connections {
            let set = "set connections { type ipv4_addr; size 65535; flags dynamic; }";
            let rule = format!(
                "ct state new add @connections {{ ip saddr ct count over {CONNECTIONS} }} {refuse}"
            );
            limit = (set.to_owned(), rule);
        }
        let (limit_set, limit_rule) = limit;
        let mut text = String::new();
        // Adding before deleting makes the deletion work whether or not the table is there.
        write!(
            text,
            "add table inet {table}
delete table inet {table}
table inet {table} {{
  set blocked {{ type ipv4_addr; flags interval; {blocked} }}
  set resolvers {{ type ipv4_addr; {resolvers} }}
  set guarded {{ type ifname; {guarded} }}
  {limit_set}
  chain input {{
    type filter hook input priority -10; policy accept;
    iifname \"{links}*\" jump to_host
  }}
  chain to_host {{
    ct state established,related accept
    ip daddr @resolvers meta l4proto {{ tcp, udp }} th dport 53 accept
    {refuse}
  }}
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname \"{links}*\" jump from_sandbox
    oifname \"{links}*\" jump to_sandbox
    meta nfproto ipv4 iifname @guarded jump for_others
  }}
  chain from_sandbox {{
    meta nfproto ipv6 drop
    ip saddr != {subnet} drop
    oifname \"{links}*\" {refuse}
    {limit_rule}
    ip daddr @resolvers meta l4proto {{ tcp, udp }} th dport 53 accept
    meta l4proto {{ tcp, udp }} th dport 53 {refuse}
    ip daddr @blocked {refuse}
    accept
  }}
  chain to_sandbox {{
    ct state established,related accept
    drop
  }}
  chain for_others {{
    ct state established,related accept
    ct status dnat accept
    drop
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {subnet} oifname != \"{links}*\" masquerade
  }}
}}
",
            blocked = elements(&blocked),
            resolvers = elements(&resolvers),
            guarded = elements(&guarded),
        )
        .expect("writing to a string does not fail");
        text
    }

    /// Puts the table in force, in place of an earlier one.
    pub(super) fn load(&self) -> Result<(), String> {
        let limited = tool::checked("nft", &["-f", "-"], &self.text(true));
        if limited.is_ok() {
            return Ok(());
        }
        // Kernels without nft_connlimit have everything else.
        tool::checked("nft", &["-f", "-"], &self.text(false)).map_err(|_| {
            let reason = limited.err().unwrap_or_default();
            format!("{reason}; load the kernel's nf_tables and NAT modules, or run as root")
        })?;
        tracing::warn!("the kernel cannot limit a sandbox's connections (nft_connlimit)");
        Ok(())
    }
}

pub(super) fn is_loaded(table: &str) -> bool {
    tool::checked("nft", &["list", "table", "inet", table], "").is_ok()
}

/// Instances that have a table, dead ones included.
pub(super) fn instances() -> Vec<String> {
    let listed = tool::checked("nft", &["list", "tables", "inet"], "").unwrap_or_default();
    let tables = listed.lines().filter_map(|line| line.strip_prefix("table inet "));
    tables.filter_map(|table| table.strip_prefix(TABLE)).map(str::to_owned).collect()
}

pub(super) fn table_of(instance: &str) -> String {
    format!("{TABLE}{instance}")
}

/// Takes the table out of force. None there is fine.
pub(super) fn unload(table: &str) {
    if is_loaded(table)
        && let Err(error) = tool::checked("nft", &["delete", "table", "inet", table], "")
    {
        tracing::warn!(error, "failed to remove the firewall table");
    }
}
