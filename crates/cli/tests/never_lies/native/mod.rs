//! What only the host can do to a machine, or see of it.

mod churn;
mod deaths;
mod host;
mod shutdown;
