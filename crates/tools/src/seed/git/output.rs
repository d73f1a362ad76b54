//! What git says while it clones: lines for people, and the end of it for an error, without secrets.

use super::super::Progress;
use super::super::limits::{ERROR_BYTES, PROGRESS_LINE_BYTES};
use super::Credentials;

pub(super) struct Output {
    /// The newest of it.
    text: String,
    /// A line that has not ended.
    line: Vec<u8>,
    secrets: Vec<String>,
}

impl Output {
    pub(super) fn new(credentials: Option<&Credentials>) -> Self {
        let mut secrets = Vec::new();
        if let Some(credentials) = credentials {
            secrets.push(credentials.password.clone());
            secrets.push(encoded(&credentials.password));
        }
        Self { text: String::new(), line: Vec::new(), secrets }
    }

    pub(super) fn read(&mut self, bytes: &[u8], progress: Progress<'_>) {
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => self.ended(*byte == b'\n', Some(progress)),
                _ if self.line.len() < ERROR_BYTES => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// A line that is painted over is progress and no part of an error.
    fn ended(&mut self, kept: bool, progress: Option<Progress<'_>>) {
        let line = std::mem::take(&mut self.line);
        let line = self.redacted(&String::from_utf8_lossy(&line));
        let line: String = line.chars().filter(|char| !char.is_control()).collect();
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if let Some(progress) = progress {
            progress(&line.chars().take(PROGRESS_LINE_BYTES).collect::<String>());
        }
        if kept {
            self.add(&format!("{line}\n"));
        }
    }

    pub(super) fn add(&mut self, text: &str) {
        self.text.push_str(text);
        let over = self.text.len().saturating_sub(ERROR_BYTES);
        let from = (over..=self.text.len()).find(|at| self.text.is_char_boundary(*at));
        self.text.drain(..from.unwrap_or(0));
    }

    pub(super) fn end(mut self) -> String {
        self.ended(true, None);
        self.text.trim().to_owned()
    }

    fn redacted(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            line = line.replace(secret.as_str(), "[redacted]");
        }
        without_user(&line)
    }
}

/// What stands between `://` and `@` is nobody's business, whoever wrote it.
fn without_user(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(['/', ' ', '\'', '"']).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                shown.push_str("[redacted]");
                &after[at..]
            }
            None => after,
        };
    }
    shown + rest
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
