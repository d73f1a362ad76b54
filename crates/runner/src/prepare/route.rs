//! One route, as rtnetlink writes it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::netlink::{Message, attributes};

pub(super) const LOOPBACK: u32 = 1;

const ADD: u16 = libc::RTM_NEWROUTE;
const DELETE: u16 = libc::RTM_DELROUTE;
/// `struct rtmsg`.
const FIXED_BYTES: usize = 12;
const ONLINK: u32 = 4;
const MULTIPATH: u16 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) destination: IpAddr,
    pub(super) prefix: u8,
    pub(super) table: u32,
    /// One of `RTN_*`.
    pub(super) kind: u8,
    pub(super) gateway: Option<IpAddr>,
    pub(super) device: Option<u32>,
    /// The gateway is on the device, whatever other routes say.
    pub(super) onlink: bool,
    pub(super) priority: u32,
    /// Has more than one next hop.
    pub(super) several: bool,
}

impl Route {
    /// Refuses everything there at once.
    pub(super) fn prohibit(destination: Ipv4Addr, prefix: u8, priority: u32) -> Self {
        Self {
            destination: destination.into(),
            prefix,
            table: libc::RT_TABLE_MAIN.into(),
            kind: libc::RTN_PROHIBIT,
            gateway: None,
            device: None,
            onlink: false,
            priority,
            several: false,
        }
    }

    /// None for what is no route, or not one that packets are sent by.
    pub(super) fn parse(kind: u16, body: &[u8]) -> Option<Self> {
        let (fixed, rest) = body.split_at_checked(FIXED_BYTES)?;
        let unspecified: IpAddr = match libc::c_int::from(fixed[0]) {
            libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
            libc::AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => return None,
        };
        let flags = u32::from_ne_bytes(*fixed.last_chunk()?);
        if kind != ADD || flags & libc::RTM_F_CLONED != 0 {
            return None;
        }
        let mut route = Self {
            destination: unspecified,
            prefix: fixed[1],
            table: fixed[4].into(),
            kind: fixed[7],
            gateway: None,
            device: None,
            onlink: flags & ONLINK != 0,
            priority: 0,
            several: false,
        };
        for (kind, value) in attributes(rest) {
            match kind {
                libc::RTA_DST => route.destination = address(value)?,
                libc::RTA_GATEWAY => route.gateway = address(value),
                libc::RTA_OIF => route.device = number(value),
                libc::RTA_PRIORITY => route.priority = number(value)?,
                libc::RTA_TABLE => route.table = number(value)?,
                MULTIPATH => route.several = true,
                _ => {}
            }
        }
        Some(route)
    }

    pub(super) fn is_main(&self) -> bool {
        self.table == u32::from(libc::RT_TABLE_MAIN)
    }

    pub(super) fn add(&self, flags: u16) -> Message {
        self.message(ADD, flags)
    }

    pub(super) fn delete(&self, flags: u16) -> Message {
        self.message(DELETE, flags)
    }

    fn message(&self, kind: u16, flags: u16) -> Message {
        let family = if self.destination.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut fixed = [0; FIXED_BYTES];
        fixed[0] = family as u8;
        fixed[1] = self.prefix;
        fixed[4] = libc::RT_TABLE_UNSPEC;
        fixed[5] = if kind == ADD { libc::RTPROT_STATIC } else { libc::RTPROT_UNSPEC };
        fixed[6] = if kind == ADD { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_NOWHERE };
        fixed[7] = self.kind;
        let onlink = if self.onlink { ONLINK } else { 0 };
        fixed[8..].copy_from_slice(&onlink.to_ne_bytes());
        let mut message = Message::new(kind, flags, &fixed)
            .attribute(libc::RTA_TABLE, &self.table.to_ne_bytes())
            .attribute(libc::RTA_PRIORITY, &self.priority.to_ne_bytes());
        if self.prefix > 0 {
            message = message.attribute(libc::RTA_DST, &octets(self.destination));
        }
        if let Some(gateway) = self.gateway {
            message = message.attribute(libc::RTA_GATEWAY, &octets(gateway));
        }
        match self.device {
            Some(device) => message.attribute(libc::RTA_OIF, &device.to_ne_bytes()),
            None => message,
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}
