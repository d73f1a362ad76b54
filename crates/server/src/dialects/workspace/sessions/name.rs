//! A session as a command of the runner: all that must be known of it after the daemon has been
//! killed is in the command's id.

use std::fmt::{self, Display, Formatter};

use sandbank_protocol::CommandId;
use uuid::Uuid;

use super::token::Kind;

/// Which session, and whose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Name {
    pub(in super::super) kind: Kind,
    pub(in super::super) id: Uuid,
    /// Of the user's name: enough to tell users apart, and not to tell who they are.
    owner: String,
}

impl Name {
    pub(in super::super) fn new(kind: Kind, id: Uuid, user: &str) -> Self {
        let mut owner = sandbank_engine::sha256_hex(user.as_bytes());
        owner.truncate(OWNER_DIGITS);
        Self { kind, id, owner }
    }

    pub(in super::super) fn is_of(&self, user: &str) -> bool {
        *self == Self::new(self.kind, self.id, user)
    }

    /// The command of a generation: a program that was started again is a new one.
    pub(in super::super) fn command(&self, generation: u32) -> CommandId {
        format!("{self}-{generation}").parse().expect("short and plain")
    }

    /// None for commands that are no sessions.
    pub(in super::super) fn of(command: &CommandId) -> Option<(Self, u32)> {
        let mut parts = command.as_str().split('-');
        let kind = match parts.next()? {
            "pty" => Kind::Pty,
            "chat" => Kind::Chat,
            _ => return None,
        };
        let id = Uuid::try_parse(parts.next()?).ok()?;
        let owner = parts.next().filter(|owner| owner.len() == OWNER_DIGITS)?.to_owned();
        let generation = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some((Self { kind, id, owner }, generation))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", word(self.kind), self.id.simple(), self.owner)
    }
}

const OWNER_DIGITS: usize = 12;

pub(in super::super) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Pty => "pty",
        Kind::Chat => "chat",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_from_its_command() {
        let id = Uuid::new_v4();
        for kind in [Kind::Pty, Kind::Chat] {
            let name = Name::new(kind, id, "admin");
            for generation in [0, 7, u32::MAX] {
                assert_eq!(Name::of(&name.command(generation)), Some((name.clone(), generation)));
            }
        }
        assert_ne!(Name::new(Kind::Pty, id, "a"), Name::new(Kind::Pty, id, "b"));
        for other in ["pty", "pty-x-y-0", "build", "chat-00-000000000000-1"] {
            assert_eq!(Name::of(&other.parse().unwrap()), None, "{other}");
        }
    }
}
