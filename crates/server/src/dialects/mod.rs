//! Wire protocols. Each translates; none decides.

pub(crate) mod reserved_keys;
pub(crate) mod sandboxd;
pub(crate) mod sessions;

pub(crate) use sessions::pool_entries as session_pool;

use crate::routes::Routes;

/// Every route of every dialect.
pub(crate) fn routes(routes: Routes) -> Routes {
    sessions::routes(sandboxd::routes(routes))
}
