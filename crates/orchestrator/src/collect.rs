//! Gathering a post-mortem while there is somebody to ask: the last commands, the tail of what
//! they printed, and the machine's peaks. Bounded; what cannot be had is left out.

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::{Engine, MachineStats, SandboxId};
use sandbank_protocol::{CommandState, CommandStatus, Ending, Frame};

use crate::limits::{
    POST_MORTEM_ARGUMENT_BYTES, POST_MORTEM_ARGUMENTS, POST_MORTEM_COMMANDS, POST_MORTEM_FRAMES,
    POST_MORTEM_OUTPUT_BYTES, POST_MORTEM_OUTPUTS,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Collected {
    pub(crate) peaks: MachineStats,
    pub(crate) last_commands: Vec<CommandStatus>,
    pub(crate) last_output: String,
}

pub(crate) async fn peaks(engine: &dyn Engine, id: &SandboxId) -> MachineStats {
    engine.stats(id).await.unwrap_or_default()
}

pub(crate) async fn commands(client: &RunnerClient) -> Result<Vec<CommandStatus>, ChannelError> {
    let mut commands = client.commands().await?;
    let surplus = commands.len().saturating_sub(POST_MORTEM_COMMANDS);
    Ok(commands.split_off(surplus).into_iter().map(shortened).collect())
}

/// The tail of what the newest of these commands printed, oldest first.
pub(crate) async fn output(client: &RunnerClient, commands: &[CommandStatus]) -> String {
    let newest = &commands[commands.len().saturating_sub(POST_MORTEM_OUTPUTS)..];
    let mut tail = Vec::new();
    for command in newest {
        if append_output(client, command, &mut tail).await.is_err() {
            break;
        }
    }
    let surplus = tail.len().saturating_sub(POST_MORTEM_OUTPUT_BYTES);
    String::from_utf8_lossy(&tail[surplus..]).into_owned()
}

async fn append_output(
    client: &RunnerClient,
    command: &CommandStatus,
    tail: &mut Vec<u8>,
) -> Result<(), ChannelError> {
    let after = command.last_seq.saturating_sub(POST_MORTEM_FRAMES);
    let mut output = client.output(&command.id, after, false).await?;
    while let Some(frame) = output.next().await? {
        if let Frame::Output { data, .. } = frame {
            tail.extend_from_slice(&data);
            let surplus = tail.len().saturating_sub(2 * POST_MORTEM_OUTPUT_BYTES);
            tail.drain(..surplus);
        }
    }
    Ok(())
}

/// A script can be as long as its caller likes, and a runner may say anything; what is kept of it
/// is bounded.
pub(crate) fn shortened(mut command: CommandStatus) -> CommandStatus {
    command.argv.truncate(POST_MORTEM_ARGUMENTS);
    command.argv.iter_mut().chain(&mut command.cwd).for_each(cut);
    if let CommandState::Ended { ending } = &mut command.state {
        match ending {
            Ending::Killed { by: text, .. } | Ending::Lost { reason: text } => cut(text),
            Ending::Exited { .. }
            | Ending::Signaled { .. }
            | Ending::TimedOut
            | Ending::OomKilled => {}
        }
    }
    command
}

fn cut(text: &mut String) {
    if text.len() > POST_MORTEM_ARGUMENT_BYTES {
        text.truncate(text.floor_char_boundary(POST_MORTEM_ARGUMENT_BYTES));
        text.push('…');
    }
}

/// Commands of a runner that cannot be asked any more: what was running has ended unseen.
pub(crate) fn lost(commands: impl IntoIterator<Item = CommandStatus>) -> Vec<CommandStatus> {
    let ending = || Ending::Lost { reason: "the sandbox ended".to_owned() };
    commands
        .into_iter()
        .map(|mut command| {
            if command.state == CommandState::Running {
                command.state = CommandState::Ended { ending: ending() };
            }
            command
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_script_is_cut_at_a_character() {
        let script = "ü".repeat(POST_MORTEM_ARGUMENT_BYTES);
        let command = CommandStatus {
            id: "c1".parse().unwrap(),
            argv: vec![script.clone(); POST_MORTEM_ARGUMENTS + 1],
            cwd: Some(script.clone()),
            pty: false,
            state: CommandState::Ended { ending: Ending::Lost { reason: script } },
            pid: 2,
            started_at_ms: 0,
            ended_at_ms: None,
            stdout_bytes: 0,
            stderr_bytes: 0,
            dropped_bytes: 0,
            last_seq: 0,
            stdin_offset: 0,
            shell: None,
        };
        let command = shortened(command);
        assert_eq!(command.argv.len(), POST_MORTEM_ARGUMENTS);
        let Some(Ending::Lost { reason }) = command.ending() else { panic!("{command:?}") };
        for kept in [&command.argv[0], command.cwd.as_ref().unwrap(), reason] {
            assert!(kept.ends_with("ü…") && kept.len() < POST_MORTEM_ARGUMENT_BYTES + 4);
        }
    }
}
