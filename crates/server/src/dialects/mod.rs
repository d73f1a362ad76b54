//! Wire protocols. Each translates; none decides.

pub(crate) mod sandboxd;
