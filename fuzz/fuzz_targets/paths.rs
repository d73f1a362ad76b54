//! Client paths.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_rooted_fs::fuzzing::paths(data));
