//! Random choices that can be made again: the seed is printed, and `SANDBANK_SEED` sets it.

use std::time::Duration;

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of this run; what it is printed with says which test it belongs to.
    pub fn announce(what: &str) -> Self {
        let given = std::env::var("SANDBANK_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as u64)
        });
        println!("{what}: SANDBANK_SEED={seed}");
        Self(seed)
    }

    /// Another sequence, which does not depend on how far this one has come.
    pub fn branch(&self, number: u64) -> Self {
        Self(self.0 ^ number.wrapping_add(1).wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}
