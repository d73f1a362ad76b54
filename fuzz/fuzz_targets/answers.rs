//! What registries answer, and what their images are called.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_registry::fuzzing::answers(data));
