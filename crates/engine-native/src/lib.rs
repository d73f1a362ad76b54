//! Machines made of namespaces on this host.
