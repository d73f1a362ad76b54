//! The body of `POST …/commands` as a command: sandboxd's `bash -lc` form, any argv, or a script for
//! a shell that remembers.

use std::collections::BTreeMap;

use sandbank_protocol::{
    CommandId, CommandSpec, CommandStatus, Ending, PtySize, ShellName, ShellUse, Started, StdinMode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::command_tail::Printed;
use super::command_view::ShellView;
use super::create::optional;
use super::number::Clamp;
use super::{environment, wait};
use crate::error::{ApiError, ApiResult};
use crate::fields::Known;
use crate::limits::MAX_WORDS_PER_COMMAND;
use crate::request::random_id;

/// sandboxd's bounds.
const TIMEOUT: Clamp = Clamp { min: 1_000, max: 300_000, default: 30_000 };

/// Only for the documentation; see [`read`].
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body; `read` takes it apart")]
pub(super) struct StartBody {
    /// sandboxd's form: must be `bash`.
    cmd: Option<String>,
    /// With `cmd`: must contain `-lc` and then the script.
    args: Option<Vec<String>>,
    /// With `cmd`: 1 000 to 300 000, default 30 000. With `argv`: any; none or 0 means no limit.
    timeout_ms: Option<u64>,
    /// Program and arguments, instead of `cmd` and `args`.
    argv: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    /// Absolute, or relative to the workspace.
    cwd: Option<String>,
    /// `open` to feed it by `POST …/stdin`, or `null`.
    stdin: Option<String>,
    /// Run on a terminal of this size, 1 to 500 each.
    pty: Option<Pty>,
    /// With `pty`: keep what the terminal shows, for `screen` and `attach`.
    screen: Option<bool>,
    /// Name of a shell that remembers: directory, variables, functions and jobs of one script are
    /// there for the next. Made when it is first used.
    shell: Option<String>,
    /// With `shell`: what it evaluates, instead of `argv`.
    script: Option<String>,
    /// With `shell`: errors come in the stream of the output, in the order they were written.
    merged: Option<bool>,
    /// The caller's own id: the same one again attaches instead of running twice.
    command_id: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pty {
    pub(super) rows: u16,
    pub(super) cols: u16,
}

impl From<Pty> for PtySize {
    fn from(size: Pty) -> Self {
        Self { rows: size.rows, cols: size.cols }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartReply {
    pub(super) command_id: String,
    /// True when a command with this id was there already.
    pub(super) attached: bool,
    /// With `wait=true`, as `wait` tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// With `wait=true`: `{"kind": …}`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    ending: Option<Ending>,
    /// With `wait=true`, of a script: the shell it ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<ShellView>,
    /// With `wait=true`: what it printed, of more than 64 KiB the end; on a terminal, all of it.
    /// Bytes that are no text are replaced: `logs` has them as they are. Absent when it could not
    /// be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    /// The same of its errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    /// How much came before the end that is told. Absent when nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_truncated_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_truncated_bytes: Option<u64>,
    /// Fields of the request that there are not, each with the one that was probably meant. Absent
    /// when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

/// Whatever else is in the body is told of, and has no effect: sandboxd ignores it.
const FIELDS: Known = Known(&[
    "cmd",
    "args",
    "timeoutMs",
    "detached",
    "argv",
    "env",
    "cwd",
    "stdin",
    "pty",
    "screen",
    "shell",
    "script",
    "merged",
    "commandId",
]);

impl StartReply {
    pub(super) fn new(started: &Started, body: &Map<String, Value>) -> Self {
        Self {
            command_id: started.status.id.to_string(),
            attached: started.attached,
            exit_code: None,
            ending: None,
            shell: None,
            stdout: None,
            stderr: None,
            stdout_truncated_bytes: None,
            stderr_truncated_bytes: None,
            warnings: FIELDS.warnings(body),
        }
    }

    pub(super) fn ended(
        self,
        ending: Ending,
        status: CommandStatus,
        printed: Option<Printed>,
    ) -> Self {
        let shell = status.shell.map(ShellView::from);
        let (exit_code, ending) = (Some(wait::exit_code(&ending)), Some(ending));
        let reply = Self { exit_code, ending, shell, ..self };
        let Some(Printed { stdout, stderr }) = printed else { return reply };
        let more = |bytes: u64| (bytes > 0).then_some(bytes);
        Self {
            stdout_truncated_bytes: more(stdout.truncated_bytes),
            stderr_truncated_bytes: more(stderr.truncated_bytes),
            stdout: Some(stdout.text),
            stderr: Some(stderr.text),
            ..reply
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StartQuery {
    /// Answer when the command has ended, with its ending.
    #[serde(default)]
    pub(super) wait: bool,
}

pub(super) fn read(body: &Map<String, Value>) -> ApiResult<CommandSpec> {
    let shell = shell(body)?;
    let (argv, timeout_ms) = match (&shell, optional::<Vec<String>>(body, "argv")?) {
        (Some(_), None) => (vec![script(body)?], own_limit(body)?),
        (Some(_), Some(_)) => {
            let message = "a shell takes a script, not argv";
            return Err(ApiError::bad_request("bad_field", message));
        }
        (None, Some(argv)) => (argv, own_limit(body)?),
        (None, None) => (bash(body)?, Some(TIMEOUT.read(body.get("timeoutMs")))),
    };
    if shell.is_none() {
        check_argv(&argv)?;
    }
    let env: BTreeMap<String, String> = optional(body, "env")?.unwrap_or_default();
    environment::check(&env)?;
    Ok(CommandSpec {
        id: command_id(body)?,
        argv,
        env,
        cwd: cwd(body)?,
        stdin: stdin(body)?,
        pty: optional::<Pty>(body, "pty")?.map(Into::into),
        timeout_ms,
        journal_bytes: None,
        screen: screen(body)?,
        shell,
    })
}

fn screen(body: &Map<String, Value>) -> ApiResult<bool> {
    let screen = optional(body, "screen")?.unwrap_or(false);
    if screen && body.get("pty").is_none_or(Value::is_null) {
        let error = ApiError::bad_request("bad_field", "only a command on a terminal has a screen");
        return Err(error.with_hint("send its size, too: {\"pty\":{\"rows\":24,\"cols\":80}}"));
    }
    Ok(screen)
}

/// None or 0 means no limit.
fn own_limit(body: &Map<String, Value>) -> ApiResult<Option<u64>> {
    Ok(optional::<u64>(body, "timeoutMs")?.filter(|limit| *limit > 0))
}

fn shell(body: &Map<String, Value>) -> ApiResult<Option<ShellUse>> {
    let Some(name) = optional::<String>(body, "shell")? else { return Ok(None) };
    let name = name
        .parse::<ShellName>()
        .map_err(|error| ApiError::bad_request("invalid_shell_name", error.to_string()))?;
    let merged = optional(body, "merged")?.unwrap_or(false);
    Ok(Some(ShellUse { name, merged, begin_in: None }))
}

fn script(body: &Map<String, Value>) -> ApiResult<String> {
    match optional::<String>(body, "script")? {
        Some(script) if script.contains('\0') => {
            Err(ApiError::bad_request("bad_field", "the script contains a NUL byte"))
        }
        Some(script) => Ok(script),
        None => Err(ApiError::bad_request("script_required", "a shell needs a script")),
    }
}

fn bash(body: &Map<String, Value>) -> ApiResult<Vec<String>> {
    let cmd = body.get("cmd");
    if cmd.and_then(Value::as_str) != Some("bash") {
        let error = ApiError::bad_request("unsupported_command", "Only cmd=\"bash\" is supported.");
        return Err(error.with_hint(match cmd {
            None => "the body has neither argv nor cmd: send {\"argv\":[\"ls\",\"-l\"]} to run any program",
            Some(_) => "send the program and its arguments as argv, a list, to run any program",
        }));
    }
    let args = body.get("args").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let words: Vec<String> = args.iter().map(text).collect();
    let script = words.iter().position(|word| word == "-lc").and_then(|at| words.get(at + 1));
    match script {
        Some(script) => Ok(vec!["bash".into(), "-lc".into(), script.clone()]),
        None => {
            Err(ApiError::bad_request("script_required", "bash args must include -lc <script>."))
        }
    }
}

/// JavaScript's `String(value)`, as far as it makes sense for an argument.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn check_argv(argv: &[String]) -> ApiResult<()> {
    let bad = |message: String| Err(ApiError::bad_request("bad_argv", message));
    match argv.first() {
        None => return bad("argv must name a program".to_owned()),
        Some(program) if program.is_empty() => return bad("the program has no name".to_owned()),
        Some(_) => {}
    }
    if argv.len() > MAX_WORDS_PER_COMMAND {
        return bad(format!("argv has at most {MAX_WORDS_PER_COMMAND} words"));
    }
    match argv.iter().position(|word| word.contains('\0')) {
        Some(at) => bad(format!("word {at} of the command contains a NUL byte")),
        None => Ok(()),
    }
}

fn command_id(body: &Map<String, Value>) -> ApiResult<CommandId> {
    let id = optional::<String>(body, "commandId")?.unwrap_or_else(|| format!("c{}", random_id()));
    id.parse::<CommandId>()
        .map_err(|error| ApiError::bad_request("invalid_command_id", error.to_string()))
}

fn cwd(body: &Map<String, Value>) -> ApiResult<Option<String>> {
    let cwd = optional::<String>(body, "cwd")?.filter(|cwd| !cwd.is_empty());
    match cwd {
        Some(cwd) if cwd.contains('\0') || cwd.len() > crate::limits::MAX_PATH_BYTES => {
            Err(ApiError::bad_request("invalid_path", "cwd is not a usable path"))
        }
        cwd => Ok(cwd),
    }
}

fn stdin(body: &Map<String, Value>) -> ApiResult<StdinMode> {
    match optional::<String>(body, "stdin")?.as_deref() {
        None | Some("null") => Ok(StdinMode::Null),
        Some("open") => Ok(StdinMode::Open),
        Some(_) => Err(ApiError::bad_request("bad_field", "stdin must be \"open\" or \"null\"")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> ApiResult<CommandSpec> {
        read(value.as_object().unwrap())
    }

    #[test]
    fn sandboxds_form_runs_a_login_bash_with_its_timeout() {
        let body = json!({"cmd":"bash","args":["-x","-lc","echo hi","more"],"detached":true});
        let spec = spec(body).unwrap();
        assert_eq!(spec.argv, ["bash", "-lc", "echo hi"]);
        assert_eq!((spec.timeout_ms, spec.stdin, spec.pty), (Some(30_000), StdinMode::Null, None));
        assert_eq!(spec.id.as_str().len(), 21);
        let timeout = |value| {
            let body = json!({"cmd":"bash","args":["-lc","x"],"timeoutMs":value});
            self::spec(body).unwrap().timeout_ms
        };
        assert_eq!(timeout(json!(900_000)), Some(300_000));
        assert_eq!(timeout(json!(null)), Some(1_000));
    }

    #[test]
    fn sandboxds_refusals_keep_their_words() {
        let message = |value| spec(value).unwrap_err().message;
        assert_eq!(
            message(json!({"cmd":"sh","args":["-lc","x"]})),
            "Only cmd=\"bash\" is supported."
        );
        assert_eq!(message(json!({})), "Only cmd=\"bash\" is supported.");
        for args in [json!([]), json!(["-lc"]), json!("x"), json!(null)] {
            let body = json!({"cmd":"bash","args":args});
            assert_eq!(message(body), "bash args must include -lc <script>.");
        }
    }

    #[test]
    fn argv_runs_anything_without_a_timeout() {
        let spec = spec(json!({
            "argv": ["python3", "-c", "1"], "env": {"A": "b"}, "cwd": "sub", "stdin": "open",
            "pty": {"rows": 24, "cols": 80}, "commandId": "mine", "timeoutMs": 0,
        }))
        .unwrap();
        assert_eq!((spec.id.as_str(), spec.timeout_ms), ("mine", None));
        assert_eq!((spec.stdin, spec.pty), (StdinMode::Open, Some(PtySize { rows: 24, cols: 80 })));
        assert_eq!((spec.cwd.as_deref(), spec.env["A"].as_str()), (Some("sub"), "b"));
    }

    #[test]
    fn a_shell_takes_a_script_of_any_text() {
        let spec = spec(json!({"shell": "main", "script": "cd /tmp", "merged": true})).unwrap();
        let shell = spec.shell.unwrap();
        assert_eq!((shell.name.as_str(), shell.merged), ("main", true));
        assert_eq!((spec.argv, spec.timeout_ms), (vec!["cd /tmp".to_owned()], None));
        assert!(self::spec(json!({"shell": "main", "script": ""})).is_ok());
    }

    #[test]
    fn what_no_program_could_receive_is_refused() {
        for bad in [
            json!({"argv": []}),
            json!({"argv": [""]}),
            json!({"argv": ["a\0b"]}),
            json!({"argv": "ls"}),
            json!({"argv": [1]}),
            json!({"argv": ["ls"], "timeoutMs": -1}),
            json!({"argv": ["ls"], "stdin": "maybe"}),
            json!({"argv": ["ls"], "commandId": "../x"}),
            json!({"argv": ["ls"], "env": {"A=B": "x"}}),
            json!({"argv": ["ls"], "pty": {"rows": 70000, "cols": 1}}),
            json!({"argv": ["ls"], "cwd": "a\0"}),
            json!({"shell": "main"}),
            json!({"shell": "main", "argv": ["ls"]}),
            json!({"shell": "../x", "script": "ls"}),
            json!({"shell": "main", "script": "a\0"}),
        ] {
            assert!(spec(bad.clone()).is_err(), "{bad} was accepted");
        }
    }
}
