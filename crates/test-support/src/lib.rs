//! What tests share: a real daemon, waiting, residue checks.
