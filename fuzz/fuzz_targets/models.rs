//! What a model's server streams.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_chat::fuzzing::models(data));
