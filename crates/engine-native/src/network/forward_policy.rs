//! Other people's firewalls that drop forwarded packets, above all Docker's.
//!
//! Docker sets the policy of the FORWARD chain to drop. It leaves the chain DOCKER-USER to the
//! administrator and keeps what is in it, so that is where we let our links through; our own
//! table still judges every packet. Where something else drops, we touch nothing and say what
//! would help.

use serde_json::Value;

use super::tool;

/// Whose packets are to pass.
pub(super) struct Passage<'a> {
    pub(super) links: &'a str,
    pub(super) table: &'a str,
}

/// `nft` as the kernel has it now: chains that drop what is forwarded, as (family, table, chain).
fn dropping_chains(own: &str) -> Vec<(String, String, String)> {
    let Ok(text) = tool::checked("nft", &["-j", "list", "chains"], "") else { return Vec::new() };
    let Ok(document) = serde_json::from_str::<Value>(&text) else { return Vec::new() };
    let chains = document["nftables"].as_array().into_iter().flatten().map(|item| &item["chain"]);
    chains
        .filter(|chain| chain["hook"] == "forward" && chain["policy"] == "drop")
        .filter(|chain| {
            chain["table"] != own && (chain["family"] == "ip" || chain["family"] == "inet")
        })
        .map(|chain| {
            let field = |name: &str| chain[name].as_str().unwrap_or_default().to_owned();
            (field("family"), field("table"), field("name"))
        })
        .collect()
}

impl Passage<'_> {
    /// Sees to it that forwarded packets are not dropped, or says why they are.
    pub(super) fn open(&self) -> Result<(), String> {
        if let Ok(chain) = tool::checked("iptables", &["-w", "5", "-S", "FORWARD"], "")
            && chain.contains("-P FORWARD DROP")
        {
            self.open_iptables()?;
        }
        for (family, table, chain) in dropping_chains(self.table) {
            let by_iptables =
                tool::is_installed("iptables") && (&*table, &*chain) == ("filter", "FORWARD");
            if !by_iptables {
                self.open_nft(&family, &table, &chain)?;
            }
        }
        Ok(())
    }

    fn iptables_rules(&self) -> [Vec<String>; 2] {
        let links = format!("{}+", self.links);
        let rule = |parts: &str| {
            let text = format!("{parts} -m comment --comment {} -j ACCEPT", self.table);
            text.split(' ').map(str::to_owned).collect()
        };
        let answers = format!("-o {links} -m conntrack --ctstate RELATED,ESTABLISHED");
        [rule(&format!("-i {links}")), rule(&answers)]
    }

    fn iptables(verb: &str, rule: &[String]) -> Result<String, String> {
        let mut arguments = vec!["-w", "5", verb, "DOCKER-USER"];
        arguments.extend(rule.iter().map(String::as_str));
        tool::checked("iptables", &arguments, "")
    }

    fn open_iptables(&self) -> Result<(), String> {
        if tool::checked("iptables", &["-w", "5", "-S", "DOCKER-USER"], "").is_err() {
            return Err(format!(
                "the host's FORWARD policy drops packets; allow ours with \
                 `iptables -I FORWARD -i {0}+ -j ACCEPT` and \
                 `iptables -I FORWARD -o {0}+ -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`",
                self.links
            ));
        }
        for rule in self.iptables_rules() {
            if Self::iptables("-C", &rule).is_err() {
                Self::iptables("-I", &rule)?;
            }
        }
        Ok(())
    }

    /// For a Docker whose tables are reached without iptables.
    fn open_nft(&self, family: &str, table: &str, chain: &str) -> Result<(), String> {
        let rules = self.nft_rules(family, table);
        match rules {
            None => Err(format!(
                "the chain {chain} of the table {family} {table} drops forwarded packets; allow \
                 ours with `nft insert rule {family} {table} {chain} iifname \"{0}*\" accept` and \
                 `nft insert rule {family} {table} {chain} oifname \"{0}*\" ct state \
                 established,related accept`",
                self.links
            )),
            Some(handles) if handles.len() >= 2 => Ok(()),
            Some(_) => {
                let (links, comment) = (self.links, self.table);
                let to = format!("insert rule {family} {table} DOCKER-USER");
                let input = format!(
                    "{to} iifname \"{links}*\" accept comment \"{comment}\"\n\
                     {to} oifname \"{links}*\" ct state established,related accept \
                     comment \"{comment}\"\n"
                );
                tool::checked("nft", &["-f", "-"], &input).map(drop)
            }
        }
    }

    /// Handles of our rules in that table's DOCKER-USER; none when there is no such chain.
    fn nft_rules(&self, family: &str, table: &str) -> Option<Vec<u64>> {
        let arguments = ["-j", "-a", "list", "chain", family, table, "DOCKER-USER"];
        let text = tool::checked("nft", &arguments, "").ok()?;
        let document: Value = serde_json::from_str(&text).ok()?;
        let rules = document["nftables"].as_array()?.iter().map(|item| &item["rule"]);
        let ours = rules.filter(|rule| rule["comment"] == self.table);
        Some(ours.filter_map(|rule| rule["handle"].as_u64()).collect())
    }

    /// Takes back what `open` added.
    pub(super) fn close(&self) {
        for rule in self.iptables_rules() {
            // Fails when it is not there, which is what is wanted.
            let _ = Self::iptables("-D", &rule);
        }
        for (family, table, _) in dropping_chains(self.table) {
            for handle in self.nft_rules(&family, &table).unwrap_or_default() {
                let handle = handle.to_string();
                let delete = ["delete", "rule", &family, &table, "DOCKER-USER", "handle", &handle];
                let _ = tool::checked("nft", &delete, "");
            }
        }
    }
}
