//! JSON answers of a runner.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_channel::fuzzing::records(data));
