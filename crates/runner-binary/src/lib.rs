//! The static runner as bytes, so that the daemon stays the one file to install.

mod sealed;

pub use sealed::seal;

/// An ELF executable for this architecture that needs nothing from the image it runs in.
pub static RUNNER: &[u8] = include_bytes!(env!("SANDBANK_RUNNER_PATH"));

#[cfg(test)]
mod tests {
    #[test]
    fn the_runner_is_a_static_executable() {
        assert!(super::RUNNER.starts_with(b"\x7fELF"));
        let dynamic_loader: &[u8] =
            if cfg!(target_arch = "aarch64") { b"/lib/ld-linux" } else { b"/lib64/ld-linux" };
        let needs_loader = super::RUNNER.windows(dynamic_loader.len()).any(|w| w == dynamic_loader);
        assert!(!needs_loader, "the runner names a dynamic loader");
    }
}
