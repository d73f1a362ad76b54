//! Bytes of the pipe link.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_channel::fuzzing::link(data));
