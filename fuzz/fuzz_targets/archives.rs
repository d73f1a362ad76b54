//! Image archives: tar, docker save, OCI layout, compressed or not.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_engine_native::fuzzing::archives(data));
