//! Runs the host's firewall tools. Never on the way of a create.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Where tools are looked for, whatever environment the daemon was started with.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn is_installed(program: &str) -> bool {
    PATH.split(':').any(|dir| std::path::Path::new(dir).join(program).exists())
}

pub(super) fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // A tool that ends early says why on stderr; a broken pipe here says less.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    match written {
        Some(Err(error)) if output.status.success() => Err(error),
        _ => Ok(output),
    }
}

/// What the tool printed, or a sentence on why it failed.
pub(super) fn checked(program: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let output = run(program, arguments, input)
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let first = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("{program} failed: {first}"))
}
