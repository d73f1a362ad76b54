//! Scripts, as the approval rules read them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_tools::fuzzing::scripts(data));
