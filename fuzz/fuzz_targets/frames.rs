//! Frames of a command's output.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_protocol::fuzzing::frames(data));
