//! The secrets that the two sides of a workspace service share: the first signs, all verify.
//!
//! The only code that holds their text. A file of them is read again when it changes, so that a
//! secret is exchanged without a restart: add the new one below on both sides, then move it up.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::time::Instant;

use crate::Problem;
use crate::limits::{KEYS_LOOK, MAX_SECRET_FILE_BYTES, MAX_SECRETS, MIN_SECRET_CHARS};

type HmacSha256 = Hmac<Sha256>;

/// Shows as a number of secrets in every format.
#[derive(Clone)]
pub struct Keys {
    /// Ready to sign; never empty.
    macs: Arc<[HmacSha256]>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secrets [redacted]", self.macs.len())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::Error),
    #[error("others than its owner may use it (its mode is {0:o})")]
    Open(u32),
    #[error("it holds no secret")]
    None,
    #[error("its line {0} has fewer than {MIN_SECRET_CHARS} characters")]
    Short(usize),
    #[error("it is no text, or has more than {MAX_SECRETS} secrets")]
    Malformed,
}

impl KeysError {
    fn fix(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Unreadable(_) => {
                format!("make one that this user can read: openssl rand -hex 32 >{path}")
            }
            Self::Open(_) => format!("chmod 600 {path}"),
            _ => "give it one secret per line, the one that signs first: openssl rand -hex 32"
                .to_owned(),
        }
    }

    /// The line for whoever set it.
    pub fn problem(&self, setting: &str, path: &Path) -> Problem {
        Problem::new(setting, format!("{}: {self}", path.display()), self.fix(path))
    }
}

impl Keys {
    /// One secret per line; empty lines and those that begin with `#` do not count.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let lines = text.lines().map(str::trim).enumerate();
        let mut macs = Vec::new();
        for (index, secret) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        {
            if secret.chars().count() < MIN_SECRET_CHARS {
                return Err(KeysError::Short(index + 1));
            }
            let mac = HmacSha256::new_from_slice(secret.as_bytes());
            macs.push(mac.map_err(|_| KeysError::Malformed)?);
        }
        match macs.len() {
            0 => Err(KeysError::None),
            count if count > MAX_SECRETS => Err(KeysError::Malformed),
            _ => Ok(Self { macs: macs.into() }),
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 32] {
        let mut mac = self.macs[0].clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }

    /// In the same time whatever is wrong, but for the number of secrets.
    pub(crate) fn verify(&self, message: &[u8], tag: &[u8; 32]) -> bool {
        self.macs.iter().fold(false, |found, mac| {
            let mut mac = mac.clone();
            mac.update(message);
            mac.verify_slice(tag).is_ok() | found
        })
    }
}

/// A file of secrets that may change.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keys: Keys,
    /// What the file looked like when it was read.
    seen: Option<Look>,
    looked: Instant,
}

/// Device, inode, size, change time.
type Look = (u64, u64, u64, i64, i64);

impl KeyFile {
    pub fn open(path: &Path) -> Result<Self, KeysError> {
        let seen = look(path);
        let state = State { keys: read(path)?, seen, looked: Instant::now() };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// Secrets without a file, which never change.
    pub fn fixed(keys: Keys) -> Self {
        let state = State { keys, seen: None, looked: Instant::now() };
        Self { path: PathBuf::new(), state: Mutex::new(state) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The secrets of now.
    pub fn current(&self) -> Keys {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.seen.is_some() && state.looked.elapsed() >= KEYS_LOOK {
            state.looked = Instant::now();
            let found = look(&self.path);
            if found.is_some() && found != state.seen {
                self.reread(&mut state, found);
            }
        }
        state.keys.clone()
    }

    /// Reads the file again at once.
    pub fn reload(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.seen.is_some() {
            let found = look(&self.path);
            self.reread(&mut state, found);
        }
    }

    /// What makes no sense changes nothing: an editor may have written half of it.
    fn reread(&self, state: &mut State, found: Option<Look>) {
        let path = self.path.display();
        match read(&self.path) {
            Ok(keys) => {
                tracing::info!(%path, secrets = keys.macs.len(), "the secrets were read again");
                (state.keys, state.seen) = (keys, found.or(state.seen));
            }
            Err(error) => {
                tracing::error!(%path, %error, "the secrets stay as they were");
                // Said once for each change.
                state.seen = found.or(state.seen);
            }
        }
    }
}

fn look(path: &Path) -> Option<Look> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec()))
}

fn read(path: &Path) -> Result<Keys, KeysError> {
    let mut file = File::open(path).map_err(KeysError::Unreadable)?;
    let mode = file.metadata().map_err(KeysError::Unreadable)?.mode();
    if mode & 0o077 != 0 {
        return Err(KeysError::Open(mode & 0o777));
    }
    let mut text = String::new();
    let read = Read::by_ref(&mut file).take(MAX_SECRET_FILE_BYTES).read_to_string(&mut text);
    match read {
        Ok(_) => Keys::parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(KeysError::Malformed),
        Err(error) => Err(KeysError::Unreadable(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const OLD: &str = "an old secret of forty characters 000000";
    const NEW: &str = "a new secret of forty characters 0000000";

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    #[test]
    fn the_first_secret_signs_and_all_verify() {
        let both = Keys::parse(&format!("# rotated\n{NEW}\n\n{OLD}\n")).unwrap();
        let (old, new) = (Keys::parse(OLD).unwrap(), Keys::parse(NEW).unwrap());
        let tag = both.sign(b"x");
        assert!(new.verify(b"x", &tag) && both.verify(b"x", &tag) && !old.verify(b"x", &tag));
        assert!(both.verify(b"x", &old.sign(b"x")));
        assert!(!both.verify(b"y", &tag));
    }

    #[test]
    fn secrets_are_never_shown_and_short_ones_are_refused() {
        let keys = Keys::parse(OLD).unwrap();
        assert_eq!(format!("{keys:?}"), "1 secrets [redacted]");
        for bad in ["", "# nothing", "short", &"x\n".repeat(40), &format!("{OLD}\n").repeat(17)] {
            let error = Keys::parse(bad).unwrap_err().to_string();
            assert!(!error.contains("short\n") && !error.contains(OLD), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_read_again_when_it_changed_or_when_told_and_half_of_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        assert!(matches!(KeyFile::open(&path), Err(KeysError::Unreadable(_))));
        write(&path, OLD);
        let file = KeyFile::open(&path).unwrap();
        let tag = Keys::parse(NEW).unwrap().sign(b"x");
        assert!(!file.current().verify(b"x", &tag));
        write(&path, &format!("{OLD}\n{NEW}"));
        tokio::time::advance(KEYS_LOOK).await;
        assert!(file.current().verify(b"x", &tag), "it was not read again");
        write(&path, "half");
        file.reload();
        assert!(file.current().verify(b"x", &tag), "half a file was taken");
        write(&path, OLD);
        file.reload();
        assert!(!file.current().verify(b"x", &tag), "a secret that is gone is still taken");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let error = KeyFile::open(&path).unwrap_err();
        let line = error.problem("--secret-file", &path).to_string();
        assert!(line.contains("--secret-file: ") && line.contains("chmod 600"), "{line}");
    }
}
