//! Names that nobody can guess.

/// A prefix and 96 random bits as hexadecimal digits.
pub fn random_id(prefix: &str) -> String {
    let mut bytes = [0u8; 12];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    bytes.iter().fold(prefix.to_owned(), |id, byte| format!("{id}{byte:02x}"))
}
