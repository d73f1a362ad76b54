//! Wire protocols. Each translates; none decides.

pub(crate) mod sandboxd;
pub(crate) mod sessions;

use crate::routes::Routes;

/// Every route of every dialect.
pub(crate) fn routes(routes: Routes) -> Routes {
    sessions::routes(sandboxd::routes(routes))
}
