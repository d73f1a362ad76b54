//! The packet filter of a closed network: an nftables table in the runner's own namespace.
//!
//! Loopback is free. Otherwise there is no IPv6, resolvers are asked on port 53, and nothing is
//! sent to a refused network, whatever device or source a program asks for. Made and counted as
//! one transaction; without the capability to administer the network nobody changes it later.

use std::io;
use std::net::Ipv4Addr;

use super::PrepareError;
use super::netlink::{
    ACK, APPEND, Attributes, CREATE, DUMP, EXCLUSIVE, Message, Socket, text_value,
};
use super::route::LOOPBACK;

const TABLE: &str = "sandbank";
const CHAIN: &str = "egress";

// From linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NFTABLES: u16 = 10;
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
const GET_RULE: u16 = NFTABLES << 8 | 7;
const FAMILY_ANY: u8 = 0;
const FAMILY_INET: u8 = 1;
const HOOK_OUTPUT: u32 = 3;
const ACCEPT: u32 = 1;
const DROP: u32 = 0;
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;
const META_OUTPUT_DEVICE: u32 = 5;
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;

const IPV4: u8 = libc::AF_INET as u8;
const DESTINATION_OFFSET: u32 = 16;
const PORT_OFFSET: u32 = 2;
const NAMES: u16 = 53;

pub(super) fn load(refused: &[(Ipv4Addr, u8)], resolvers: &[Ipv4Addr]) -> Result<(), PrepareError> {
    let failed = |step| move |error| PrepareError::Kernel { step, error };
    let mut socket =
        Socket::open(libc::NETLINK_NETFILTER).map_err(failed("speak with the packet filter"))?;
    let rules = rules(refused, resolvers);
    let expected = rules.len();
    let mut batch = vec![message(BATCH_BEGIN, 0, FAMILY_ANY), table(), chain()];
    batch.extend(rules.into_iter().map(Rule::message));
    batch.push(message(BATCH_END, 0, FAMILY_ANY));
    socket.change_together(batch).map_err(failed("load the packet filter (nf_tables)"))?;
    let loaded = count(&mut socket).map_err(failed("read the packet filter"))?;
    match loaded == expected {
        true => Ok(()),
        false => Err(PrepareError::NotAsAsked(format!("{loaded} of {expected} rules are there"))),
    }
}

fn rules(refused: &[(Ipv4Addr, u8)], resolvers: &[Ipv4Addr]) -> Vec<Rule> {
    let mut rules = vec![
        Rule::default().meta(META_OUTPUT_DEVICE).is(EQUAL, &LOOPBACK.to_ne_bytes()).then(ACCEPT),
        Rule::default().meta(META_FAMILY).is(UNEQUAL, &[IPV4]).then(DROP),
    ];
    for resolver in resolvers {
        for protocol in [libc::IPPROTO_UDP, libc::IPPROTO_TCP] {
            let rule = Rule::default()
                .to(*resolver, 32)
                .meta(META_PROTOCOL)
                .is(EQUAL, &[protocol as u8])
                .payload(TRANSPORT_HEADER, PORT_OFFSET, 2)
                .is(EQUAL, &NAMES.to_be_bytes());
            rules.push(rule.then(ACCEPT));
        }
    }
    rules.extend(
        refused.iter().map(|(address, prefix)| Rule::default().to(*address, *prefix).then(DROP)),
    );
    rules
}

/// Everything behind `struct nfgenmsg`: family, version, and for a batch whose it is.
fn message(kind: u16, flags: u16, family: u8) -> Message {
    let [high, low] = NFTABLES.to_be_bytes();
    let resource = if kind <= BATCH_END { [high, low] } else { [0, 0] };
    Message::new(kind, flags, &[family, 0, resource[0], resource[1]])
}

fn table() -> Message {
    message(NEW_TABLE, ACK | CREATE | EXCLUSIVE, FAMILY_INET).attribute(1, &text_value(TABLE))
}

fn chain() -> Message {
    let priority = 0;
    let hook = Attributes::default().with_number(1, HOOK_OUTPUT).with_number(2, priority);
    message(NEW_CHAIN, ACK | CREATE | EXCLUSIVE, FAMILY_INET)
        .attribute(1, &text_value(TABLE))
        .attribute(3, &text_value(CHAIN))
        .nested(4, &hook)
        .attribute(5, &ACCEPT.to_be_bytes())
        .attribute(7, &text_value("filter"))
}

fn count(socket: &mut Socket) -> io::Result<usize> {
    let query = message(GET_RULE, DUMP, FAMILY_INET)
        .attribute(1, &text_value(TABLE))
        .attribute(2, &text_value(CHAIN));
    let answers = socket.dump(query)?;
    Ok(answers.iter().filter(|(kind, _)| *kind == NEW_RULE).count())
}

/// Expressions, evaluated in order until one does not hold.
#[derive(Default)]
struct Rule(Attributes);

impl Rule {
    fn message(self) -> Message {
        message(NEW_RULE, ACK | CREATE | APPEND, FAMILY_INET)
            .attribute(1, &text_value(TABLE))
            .attribute(2, &text_value(CHAIN))
            .nested(4, &self.0)
    }

    fn expression(self, name: &str, data: &Attributes) -> Self {
        let expression = Attributes::default().with_text(1, name).with_nested(2, data);
        Self(self.0.with_nested(1, &expression))
    }

    fn meta(self, key: u32) -> Self {
        let data = Attributes::default().with_number(1, REGISTER).with_number(2, key);
        self.expression("meta", &data)
    }

    fn payload(self, base: u32, offset: u32, length: u32) -> Self {
        let data = Attributes::default()
            .with_number(1, REGISTER)
            .with_number(2, base)
            .with_number(3, offset)
            .with_number(4, length);
        self.expression("payload", &data)
    }

    fn is(self, comparison: u32, value: &[u8]) -> Self {
        let value = Attributes::default().with(1, value);
        let data = Attributes::default()
            .with_number(1, REGISTER)
            .with_number(2, comparison)
            .with_nested(3, &value);
        self.expression("cmp", &data)
    }

    /// For packets of IPv4 to this network.
    fn to(self, address: Ipv4Addr, prefix: u8) -> Self {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        let data = Attributes::default()
            .with_number(1, REGISTER)
            .with_number(2, REGISTER)
            .with_number(3, 4)
            .with_nested(4, &Attributes::default().with(1, &mask.to_be_bytes()))
            .with_nested(5, &Attributes::default().with(1, &[0; 4]));
        self.payload(NETWORK_HEADER, DESTINATION_OFFSET, 4)
            .expression("bitwise", &data)
            .is(EQUAL, &(address.to_bits() & mask).to_be_bytes())
    }

    fn then(self, verdict: u32) -> Self {
        let code = Attributes::default().with_number(1, verdict);
        let value = Attributes::default().with_nested(2, &code);
        let data = Attributes::default().with_number(1, VERDICT).with_nested(2, &value);
        self.expression("immediate", &data)
    }
}
