//! Flags that several commands share, and what they mean to the API.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::attach::window_size;
use crate::client::{CommandRequest, PtySize, SandboxRequest};
use crate::client::{Network, Resources};
use crate::failure::Failure;
use crate::limits::MAX_PORTS;
use crate::ui::text;

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalOptions {
    /// Print JSON instead of tables and text
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Address of the server [default: the one running on this machine]
    #[arg(
        long,
        global = true,
        env = "SANDBANK_URL",
        hide_env_values = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub(crate) url: Option<String>,
}

/// What a new sandbox is like.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxOptions {
    /// What its root file system is made of; `sandbank image ls` lists the choices
    #[arg(long, value_name = "NAME")]
    pub(crate) image: Option<String>,
    /// What makes it, where the server has several: native or docker
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// Whom it may reach: `default` is public addresses only, `none` is nobody
    #[arg(long, value_enum, default_value = "default", value_name = "MODE")]
    pub(crate) network: NetworkChoice,
    /// Memory, from 256m to 16g
    #[arg(long, value_parser = parse_memory, value_name = "SIZE")]
    pub(crate) memory: Option<u64>,
    /// Processor cores, from 1 to 8
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=8), value_name = "N")]
    pub(crate) cpus: Option<u64>,
    /// A port in the sandbox that may be published; up to four times
    #[arg(long = "port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: Vec<u16>,
    /// Have the kept workspace of this name, which outlives the sandbox; made if it is not there
    #[arg(long, value_parser = clap::value_parser!(sandbank_engine::WorkspaceId), value_name = "NAME")]
    pub(crate) workspace: Option<sandbank_engine::WorkspaceId>,
    /// Leave the sandbox there afterwards
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkChoice {
    Default,
    None,
}

impl SandboxOptions {
    /// Everything but what clap has checked already.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.ports.len() > MAX_PORTS {
            let message = format!("--port was given {} times", self.ports.len());
            return Err(Failure::usage(message)
                .hint(format!("a sandbox can publish {MAX_PORTS} ports at most")));
        }
        Ok(())
    }

    pub(crate) fn request(&self, key: String) -> SandboxRequest {
        let mode = match self.network {
            NetworkChoice::Default => "default",
            NetworkChoice::None => "none",
        };
        SandboxRequest {
            session_key: key,
            engine: self.engine.clone(),
            image: self.image.clone(),
            workspace: self.workspace.as_ref().map(ToString::to_string),
            idle_ttl_ms: None,
            resources: Resources { vcpus: self.cpus, memory_mb: self.memory },
            network: Network { mode },
            ports: self.ports.clone(),
            env: BTreeMap::new(),
        }
    }
}

/// How a command runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct CommandOptions {
    /// Set a variable, or pass this one on with NAME alone; repeatable
    #[arg(short, long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Directory to start in; relative ones are below the workspace
    #[arg(short, long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,
    /// Kill it and everything it started after this long, as in 30s or 5m; ends with 124
    #[arg(long, value_parser = text::parse_duration, value_name = "TIME")]
    pub(crate) timeout: Option<Duration>,
    /// Pass standard input on, also from a terminal; piped input always is
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Give it a terminal
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// Program and arguments
    // Without `allow_hyphen_values` a mistyped flag is refused; after the first word all is taken.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) argv: Vec<String>,
}

impl CommandOptions {
    /// As when no flag is given.
    pub(crate) fn plain(argv: Vec<String>) -> Self {
        let (env, workdir, timeout) = (Vec::new(), None, None);
        Self { env, workdir, timeout, interactive: false, tty: false, argv }
    }

    pub(crate) fn request(&self, forward_stdin: bool) -> Result<CommandRequest, Failure> {
        let pty = self.tty.then(window_size);
        Ok(CommandRequest {
            command_id: fresh_name("c"),
            argv: self.argv.clone(),
            script: None,
            env: environment(&self.env, pty)?,
            cwd: self.workdir.clone(),
            stdin: if forward_stdin { "open" } else { "null" },
            pty,
            timeout_ms: self
                .timeout
                .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    /// A terminal is only read when asked; a pipe or file is there to be read, the null device
    /// has nothing to read.
    pub(crate) fn forwards_stdin(&self) -> bool {
        use std::io::IsTerminal;
        let stdin = std::io::stdin();
        self.tty || !is_null_device(&stdin) && (self.interactive || !stdin.is_terminal())
    }
}

fn is_null_device(stream: &impl AsFd) -> bool {
    let null = std::fs::metadata("/dev/null");
    let stream = stream.as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    match (stream, null) {
        (Ok(stream), Ok(null)) => {
            stream.file_type().is_char_device() && stream.rdev() == null.rdev()
        }
        _ => false,
    }
}

fn environment(
    assignments: &[String],
    pty: Option<PtySize>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut env = BTreeMap::new();
    // Programs on a terminal draw for the one that shows them.
    if let (Some(_), Ok(term)) = (pty, std::env::var("TERM")) {
        env.insert("TERM".to_owned(), term);
    }
    for assignment in assignments {
        let (name, value) = match assignment.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => match std::env::var(assignment) {
                Ok(value) => (assignment.as_str(), value),
                Err(_) => {
                    let message =
                        format!("--env {assignment} passes on a variable that is not set here");
                    return Err(Failure::usage(message).hint(format!("write {assignment}=VALUE")));
                }
            },
        };
        if name.is_empty() {
            return Err(Failure::usage(format!("--env {assignment:?} has no name"))
                .hint("write NAME=VALUE"));
        }
        env.insert(name.to_owned(), value);
    }
    Ok(env)
}

/// The API takes the nearest allowed size for another; a person should know.
fn parse_memory(text: &str) -> Result<u64, String> {
    match text::parse_mebibytes(text)? {
        size @ 256..=16_384 => Ok(size),
        _ => Err("memory is at least 256m and at most 16g".to_owned()),
    }
}

/// A name nobody else has: a prefix, a dash, 80 random bits.
pub(crate) fn fresh_name(prefix: &str) -> String {
    let mut bytes = [0u8; 10];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}-{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_or_passed_on() {
        let path = std::env::var("PATH").unwrap();
        let env = environment(&["A=1=2".into(), "B=".into(), "PATH".into()], None).unwrap();
        assert_eq!((env["A"].as_str(), env["B"].as_str(), &env["PATH"]), ("1=2", "", &path));
    }

    #[test]
    fn a_variable_without_name_or_value_is_a_usage_error() {
        for bad in ["=x", "SANDBANK_SURELY_NOT_SET"] {
            let failure = environment(&[bad.to_owned()], None).unwrap_err();
            assert_eq!(failure.exit, crate::failure::Exit::Usage);
            assert!(failure.hint.is_some());
        }
    }

    #[test]
    fn the_null_device_is_told_from_what_can_be_read() {
        assert!(is_null_device(&File::open("/dev/null").unwrap()));
        assert!(!is_null_device(&File::open("/dev/zero").unwrap()));
        assert!(!is_null_device(&std::io::pipe().unwrap().0));
    }

    #[test]
    fn fresh_names_are_valid_command_ids_and_differ() {
        assert!(fresh_name("c").parse::<sandbank_protocol::CommandId>().is_ok());
        assert_ne!(fresh_name("c"), fresh_name("c"));
    }
}
