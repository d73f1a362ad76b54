//! What a token allows, and what a route needs.

use sandbank_store::TokenScope;

/// Each scope allows what the ones before it allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
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
}

impl Scope {
    pub(crate) fn allows(self, needed: Scope) -> bool {
        self >= needed
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
