//! What a program writes to its terminal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sandbank_terminal::fuzzing::terminal(data));
