//! What a token allows, and what a route needs.

use sandbank_store::TokenScope;

/// Each scope but the first allows what the ones before it allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The sessions' routes and no other: what they allow is bounded by the settings of sessions,
    /// which every other route would step around.
    Sessions,
    /// The tools' routes and no other, for the same reason.
    Tools,
    /// Look at everything, change nothing.
    ReadOnly,
    /// Make and use sandboxes.
    Sandbox,
    /// Also images and tokens.
    Admin,
}

/// Who may call a route. Every route names one when it is added to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody who passes the Host and Origin checks.
    Public,
    /// A sandboxd route: no token on a loopback bind, unless that is switched off.
    Sandboxd(Scope),
    /// Always a token.
    Token(Scope),
    /// A route of the sessions: always a token, or their API key.
    Sessions(Scope),
    /// A route of the workspace: a token, unless loopback is opened for it.
    Workspace(Scope),
    /// A route of the tools: a token or theirs, unless they are for everybody on this machine. Their
    /// own gates come after this one.
    Tools(Scope),
    /// The chat: a token or the tools', unless loopback is open.
    Chat(Scope),
}

impl Access {
    /// What a token needs here; none where nothing is needed.
    pub(crate) fn needed(self) -> Option<Scope> {
        match self {
            Self::Public => None,
            Self::Sandboxd(scope)
            | Self::Token(scope)
            | Self::Sessions(scope)
            | Self::Workspace(scope)
            | Self::Tools(scope)
            | Self::Chat(scope) => Some(scope),
        }
    }

    pub(crate) fn allows(self, scope: Scope) -> bool {
        match (self, scope) {
            (Self::Sessions(_), Scope::Sessions)
            | (Self::Tools(_) | Self::Chat(_), Scope::Tools) => true,
            (_, Scope::Sessions | Scope::Tools) => self.needed().is_none(),
            (_, scope) => self.needed().is_none_or(|needed| scope >= needed),
        }
    }
}

impl From<TokenScope> for Scope {
    fn from(scope: TokenScope) -> Self {
        match scope {
            TokenScope::Admin => Self::Admin,
            TokenScope::Sandbox => Self::Sandbox,
            TokenScope::ReadOnly => Self::ReadOnly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_scope_passes_on_their_routes_only() {
        use Scope::{Admin, ReadOnly, Sandbox, Sessions, Tools};
        assert!(Access::Tools(Sandbox).allows(Tools) && Access::Public.allows(Tools));
        assert!(
            !Access::Tools(Sandbox).allows(Sessions) && !Access::Tools(Sandbox).allows(ReadOnly)
        );
        for needed in [ReadOnly, Sandbox, Admin] {
            for access in [
                Access::Token(needed),
                Access::Sandboxd(needed),
                Access::Sessions(needed),
                Access::Workspace(needed),
            ] {
                assert!(!access.allows(Tools), "{access:?}");
            }
        }
    }

    #[test]
    fn the_sessions_scope_passes_on_their_routes_only_and_others_by_size() {
        use Scope::{Admin, ReadOnly, Sandbox, Sessions};
        for needed in [ReadOnly, Sandbox, Admin] {
            assert!(Access::Sessions(needed).allows(Sessions), "{needed:?}");
            assert!(!Access::Token(needed).allows(Sessions), "{needed:?}");
            assert!(!Access::Sandboxd(needed).allows(Sessions), "{needed:?}");
            for has in [ReadOnly, Sandbox, Admin] {
                let accesses =
                    [Access::Sessions(needed), Access::Token(needed), Access::Sandboxd(needed)];
                assert!(accesses.iter().all(|access| access.allows(has) == (has >= needed)));
            }
        }
        assert!(Access::Public.allows(Sessions));
    }
}
