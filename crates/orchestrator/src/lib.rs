//! Every sandbox's life: identity, state, leases, ports.
