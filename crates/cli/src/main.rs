//! The sandbank program.
fn main() {}
