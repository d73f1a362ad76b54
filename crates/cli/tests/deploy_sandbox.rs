//! The scripts of `deploy/sandbox`, on this machine: they may be repeated, and they can fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::{find_program, free_port};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

struct Machine {
    directory: tempfile::TempDir,
    port: u16,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("sandbank-deploy-").tempdir().unwrap();
        Self { directory, port: free_port().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, script: &str, words: &[&str]) -> Output {
        self.run_with(script, words, &[])
    }

    fn run_with(&self, script: &str, words: &[&str], env: &[(&str, &str)]) -> Output {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/sandbox");
        // Its output goes to files: the service that it starts keeps what it inherits.
        let (out, err) = (self.path("out"), self.path("err"));
        let status = Command::new(scripts.join(script))
            .args(words)
            .env("SANDBOX_WORKSPACE_ROOT", self.path("workspace"))
            .env("SANDBOX_SERVICE_ROOT", self.path("service"))
            .env("SANDBOX_SECRETS_DIR", self.path("secrets"))
            .env("WORKSPACE_LISTEN", format!("127.0.0.1:{}", self.port))
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&err).unwrap())
            .status()
            .unwrap();
        Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(err).unwrap() }
    }

    fn pid(&self) -> Option<i32> {
        let text = fs::read_to_string(self.path("service/service.pid")).ok()?;
        text.split(' ').next()?.parse().ok()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(pid) = self.pid().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = Command::new(SANDBANK)
            .arg("workspace-service")
            .arg("--stop-runner")
            .arg("--root")
            .arg(self.path("workspace"))
            .arg("--secret-file")
            .arg(self.path("secrets/workspace.secret"))
            .arg("--data-dir")
            .arg(self.path("service/data"))
            .output();
    }
}

fn said(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn succeeds(output: &Output, says: &str) {
    let text = said(output);
    assert!(output.status.success() && text.contains(says), "{:?}: {text}", output.status);
}

#[test]
fn a_workspace_service_is_deployed_twice_checked_and_started_again_and_its_checks_can_fail() {
    if find_program("curl").is_none() {
        println!("skipped: there is no curl");
        return;
    }
    let machine = Machine::new();
    let early = machine.run("smoke_check.sh", &["--program", SANDBANK]);
    assert!(!early.status.success(), "{}", said(&early));
    let text = machine.path("text");
    fs::write(&text, "no program").unwrap();
    let bad = machine.run("deploy_workspace_service.sh", &[text.to_str().unwrap()]);
    assert!(!bad.status.success() && said(&bad).contains("is not a program"), "{}", said(&bad));
    assert!(!machine.run("restart_workspace_service.sh", &[]).status.success());

    succeeds(&machine.run("deploy_workspace_service.sh", &[SANDBANK]), "serves");
    let first = machine.pid().unwrap();
    let secret = fs::read(machine.path("secrets/workspace.secret")).unwrap();
    succeeds(&machine.run("smoke_check.sh", &[]), "ok      files and commands work");
    succeeds(&machine.run("deploy_workspace_service.sh", &[SANDBANK]), "nothing has changed");
    assert_eq!(machine.pid(), Some(first), "what is right was started again");
    assert_eq!(fs::read(machine.path("secrets/workspace.secret")).unwrap(), secret);

    // What a deploy leaves that was interrupted once the program had its place.
    fs::rename(machine.path("service/sandbank"), machine.path("service/before")).unwrap();
    fs::copy(SANDBANK, machine.path("service/sandbank")).unwrap();
    succeeds(&machine.run("deploy_workspace_service.sh", &[SANDBANK]), "serves");
    let second = machine.pid();
    assert_ne!(second, Some(first), "the program from before goes on");
    succeeds(&machine.run("deploy_workspace_service.sh", &[SANDBANK]), "nothing has changed");

    succeeds(&machine.run("restart_workspace_service.sh", &[]), "serves");
    assert_ne!(machine.pid(), second);
    succeeds(&machine.run("smoke_check.sh", &[]), "ok      it is healthy");

    kill_process(Pid::from_raw(machine.pid().unwrap()).unwrap(), Signal::KILL).unwrap();
    let down = machine.run("smoke_check.sh", &[]);
    assert!(
        !down.status.success() && said(&down).contains("FAILED  it is healthy"),
        "{}",
        said(&down)
    );
    succeeds(&machine.run("deploy_workspace_service.sh", &[SANDBANK]), "serves");
    // A secret that the service does not have: everything is up, and the check still fails.
    fs::write(machine.path("other"), "o".repeat(40)).unwrap();
    fs::set_permissions(machine.path("other"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let probe = Command::new(SANDBANK)
        .args(["workspace-service", "--probe", &format!("http://127.0.0.1:{}", machine.port)])
        .arg("--secret-file")
        .arg(machine.path("other"))
        .output()
        .unwrap();
    assert_eq!(probe.status.code(), Some(77), "{}", said(&probe));
    assert!(said(&probe).contains("auth: "), "{}", said(&probe));
}

#[test]
fn a_service_that_cannot_start_makes_its_script_fail_with_the_reason() {
    if find_program("curl").is_none() {
        println!("skipped: there is no curl");
        return;
    }
    let machine = Machine::new();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", machine.port)).unwrap();
    let output = machine.run("deploy_workspace_service.sh", &[SANDBANK]);
    let text = said(&output);
    assert!(!output.status.success() && text.contains("cannot listen on"), "{text}");
}

#[test]
fn profiles_are_checked_and_written_once_and_the_server_understands_them() {
    let machine = Machine::new();
    let script = "configure_exec_profiles.sh";
    let configure = |words: &[&str], shell: &str, chat: &str| {
        let env = [("PROFILE_SHELL", shell), ("PROFILE_CHAT", chat)];
        machine.run_with(script, words, &env)
    };
    let early = configure(&[], "bash", "");
    assert!(!early.status.success() && said(&early).contains("deploy_workspace_service.sh first"));
    for directory in ["workspace", "service", "bin"] {
        fs::create_dir(machine.path(directory)).unwrap();
    }
    let written = machine.path("service/exec_profiles.env");
    let agent = machine.path("bin/agent");
    fs::copy("/bin/true", &agent).unwrap();
    let chat = format!("{} --fast mode=1", agent.display());
    let unwritten = configure(&["--check"], "bash -l", &chat);
    assert!(!unwritten.status.success() && said(&unwritten).contains("without --check"));
    assert!(!written.exists());
    succeeds(&configure(&[], "bash -l", &chat), "the profiles were written");
    let first = fs::metadata(&written).unwrap().modified().unwrap();
    succeeds(&configure(&[], "bash -l", &chat), "nothing has changed");
    succeeds(&configure(&["--check"], "bash -l", &chat), "nothing has changed");
    assert_eq!(fs::metadata(&written).unwrap().modified().unwrap(), first);
    let text = fs::read_to_string(&written).unwrap();
    assert!(text.contains(&format!("SANDBANK_CHAT_COMMAND={},--fast,mode=1\n", agent.display())));

    // What the lines say is what the server has.
    let env = text.lines().map(|line| line.split_once('=').unwrap());
    let config = Command::new(SANDBANK).args(["config", "show"]).envs(env).output().unwrap();
    let shown = said(&config);
    assert!(shown.contains("bash, -l") && shown.contains("--fast, mode=1"), "{shown}");

    let inside = machine.path("workspace/agent");
    fs::copy("/bin/true", &inside).unwrap();
    // Links into the workspace, out of it, and through it.
    let [link, out, through] =
        ["bin/link", "workspace/out", "bin/through"].map(|name| machine.path(name));
    symlink(&inside, &link).unwrap();
    symlink("/bin/true", &out).unwrap();
    symlink("../workspace/out", &through).unwrap();
    let detour = machine.path("bin/../workspace/out");
    for (shell, chat, says) in [
        ("bash; true", "", "PROFILE_SHELL: only letters"),
        ("bash $(true)", "", "not a line for a shell"),
        ("bash\ntrue", "", "PROFILE_SHELL: only letters"),
        ("", "", "PROFILE_SHELL: it names no program"),
        ("--login", "", "is an option and no program"),
        ("bin/bash", "", "neither a name nor an absolute path"),
        ("bash", "no-such-agent", "PROFILE_CHAT: there is no no-such-agent"),
        ("bash", "/etc/passwd", "is not a program"),
        ("bash", inside.to_str().unwrap(), "lies in the workspace"),
        ("bash", link.to_str().unwrap(), "lies in the workspace"),
        ("bash", out.to_str().unwrap(), "lies in the workspace"),
        ("bash", through.to_str().unwrap(), "lies in the workspace"),
        ("bash", detour.to_str().unwrap(), "lies in the workspace"),
    ] {
        let refused = configure(&[], shell, chat);
        let text = said(&refused);
        assert!(!refused.status.success() && text.contains(says), "{shell:?} {chat:?}: {text}");
    }
    assert_eq!(fs::read_to_string(&written).unwrap(), text, "what was refused changed nothing");

    // One that is a link somewhere else is run by its own name.
    let restricted = machine.path("bin/rbash");
    symlink("/bin/bash", &restricted).unwrap();
    succeeds(&configure(&[], restricted.to_str().unwrap(), ""), "the profiles were written");
    let line = format!("SANDBANK_PTY_SHELL_COMMAND={}\n", restricted.display());
    assert_eq!(fs::read_to_string(&written).unwrap(), line);
}

#[test]
fn the_scripts_have_no_fault_that_shellcheck_finds() {
    if find_program("shellcheck").is_none() {
        println!("skipped: there is no shellcheck");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = [
        "deploy_workspace_service",
        "restart_workspace_service",
        "configure_exec_profiles",
        "smoke_check",
        "settings",
    ];
    let output = Command::new("shellcheck")
        .arg("--external-sources")
        .args(names.map(|name| format!("deploy/sandbox/{name}.sh")))
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
