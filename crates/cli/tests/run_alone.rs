//! `sandbank run` with no server: its own parts, for as long as it takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use sandbank_test_support::{EngineUnderTest, free_port, skip_over_docker, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Where runs of a test are, and over what.
struct Place {
    engine: EngineUnderTest,
    dir: tempfile::TempDir,
    data: PathBuf,
}

impl Place {
    /// None without root.
    fn make() -> anyhow::Result<Option<Self>> {
        if skip_unless_root() {
            return Ok(None);
        }
        let (engine, dir) = (EngineUnderTest::get()?, tempfile::tempdir()?);
        let data = dir.path().join("data");
        Ok(Some(Self { engine, dir, data }))
    }

    fn alone(&self, words: &[&str]) -> Command {
        let mut command = Command::new(SANDBANK);
        self.prepare(command.args(words));
        command
    }

    fn prepare(&self, command: &mut Command) {
        command
            .env("SANDBANK_DATA_DIR", &self.data)
            .env("TMPDIR", self.dir.path())
            .env("SANDBANK_PORT", free_port().unwrap().to_string())
            .env_remove("SANDBANK_URL")
            .env_remove("SANDBANK_TOKEN")
            .envs(self.engine.settings())
            .stdin(Stdio::null());
    }

    /// The data directory, and temporary ones.
    fn directories(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// A run whose command goes on, when it has begun.
    fn running(&self, script: &str) -> anyhow::Result<Child> {
        let script = format!("echo ready; {script}");
        let mut run = self.alone(&["run", "--network", "none", "--", "sh", "-c", &script]);
        run.env("TMPDIR", self.dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut run = run.spawn()?;
        let mut ready = [0; 6];
        run.stdout.as_mut().unwrap().read_exact(&mut ready)?;
        Ok(run)
    }

    #[track_caller]
    fn clean(&self) {
        let left = self.engine.residue(&self.data).unwrap();
        assert!(left.is_empty(), "left on the host: {left:#?}");
    }
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_command_runs_without_a_server_and_leaves_nothing() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    let output =
        place.alone(&["run", "--network", "none", "python3", "-c", "print(6 * 7)"]).output()?;
    assert_eq!(succeeded(&output), "42\n");
    assert_eq!(text(&output.stderr), "");
    let output = place.alone(&["run", "--network", "none", "--", "sh", "-c", "exit 3"]).output()?;
    assert_eq!(output.status.code(), Some(3));
    place.clean();
    Ok(())
}

#[test]
fn two_runs_at_once_do_not_wait_for_each_other() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    let elsewhere = tempfile::tempdir()?;
    std::fs::create_dir(elsewhere.path().join("etc"))?;
    let archive = elsewhere.path().join("little.tar");
    let mut tar = Command::new("tar");
    tar.arg("cf").arg(&archive).arg("-C").arg(elsewhere.path()).arg("etc");
    assert!(tar.status()?.success());
    succeeded(&place.alone(&["image", "import", "little", archive.to_str().unwrap()]).output()?);
    let mut first = place.running("cat")?;
    let second = place
        .alone(&["run", "--network", "none", "--", "echo", "second"])
        .env("TMPDIR", place.dir.path())
        .output()?;
    assert_eq!(succeeded(&second), "second\n");
    assert!(text(&second.stderr).contains("temporary"), "{}", text(&second.stderr));
    // Nothing is in the image, but it is there.
    for (image, code, said) in
        [("little", 127, "\"nothing\": not found"), ("big", 64, "big is not here")]
    {
        let words = ["run", "--image", image, "--network", "none", "--", "nothing"];
        let output = place.alone(&words).env("TMPDIR", place.dir.path()).output()?;
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    let kept = place.alone(&["run", "--keep", "--", "true"]).output()?;
    assert_eq!(kept.status.code(), Some(75), "{}", text(&kept.stderr));

    drop(first.stdin.take());
    assert!(first.wait()?.success());
    assert_eq!(
        place.directories(),
        std::slice::from_ref(&place.data),
        "the temporary data directory stayed"
    );
    place.clean();
    Ok(())
}

#[test]
fn what_was_kept_is_there_for_the_next_server() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    let keep = ["run", "--keep", "--network", "none", "--", "touch", "kept"];
    let output = place.alone(&keep).output()?;
    succeeded(&output);
    let said = text(&output.stderr);
    let id = said.split("the sandbox ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();

    let port = free_port()?.to_string();
    let mut server = place
        .alone(&["serve"])
        .env("SANDBANK_PORT", &port)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    // The lock says that a server is starting, so the command waits for it.
    let listed = || place.alone(&["exec", id, "--", "ls"]).env("SANDBANK_PORT", &port).output();
    let mut output = listed()?;
    while output.status.code() == Some(69) && server.try_wait()?.is_none() {
        output = listed()?;
    }
    let removed = place.alone(&["rm", "--all"]).env("SANDBANK_PORT", &port).output()?;
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    )?;
    assert!(server.wait()?.success());
    assert_eq!(succeeded(&output), "kept\n");
    assert_eq!(succeeded(&removed).trim(), id);
    place.clean();
    Ok(())
}

#[test]
fn what_was_kept_is_listed_and_removed_without_a_server() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    succeeded(&place.alone(&["run", "--keep", "--network", "none", "--", "true"]).output()?);
    let id = succeeded(&place.alone(&["ps", "-q"]).output()?);
    let id = id.trim();
    let inspected = succeeded(&place.alone(&["inspect", id, "--json"]).output()?);
    assert!(inspected.contains("\"running\""), "{inspected}");
    // Two who look at once wait for each other.
    let mut looks = Vec::new();
    for _ in 0..2 {
        looks.push(place.alone(&["ps", "-q"]).stdout(Stdio::piped()).spawn()?);
    }
    for look in looks {
        assert_eq!(succeeded(&look.wait_with_output()?).trim(), id);
    }
    assert_eq!(succeeded(&place.alone(&["rm", id, id]).output()?).trim(), id);
    let none_left = place.alone(&["ps", "-q"]).output()?;
    assert_eq!(succeeded(&none_left), "");
    // Whoever looks into the wrong directory learns it.
    let said = String::from_utf8_lossy(&none_left.stderr);
    assert!(said.contains("no server has the data directory"), "{said}");
    place.clean();
    Ok(())
}

fn kill_9(mut run: Child) -> anyhow::Result<()> {
    run.kill()?;
    run.wait()?;
    Ok(())
}

#[test]
fn what_a_killed_run_left_goes_with_whoever_has_the_directory_next() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    // Another run, and somebody who only looks.
    for words in [&["run", "--network", "none", "--", "true"][..], &["ps", "-q"]] {
        kill_9(place.running("exec sleep 1000")?)?;
        assert_ne!(place.engine.residue(&place.data)?, Vec::<String>::new(), "it was killed");
        assert_eq!(succeeded(&place.alone(words).output()?), "");
        place.clean();
    }
    // What somebody wants to keep is no leftover.
    succeeded(&place.alone(&["run", "--keep", "--network", "none", "--", "true"]).output()?);
    kill_9(place.running("exec sleep 1000")?)?;
    let removed = succeeded(&place.alone(&["rm", "--all"]).output()?);
    assert_eq!(removed.lines().count(), 1, "{removed}");
    place.clean();
    Ok(())
}

#[test]
fn what_a_killed_run_left_in_a_temporary_directory_goes_with_the_next_run() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    let mut first = place.running("cat")?;
    let killed = place.running("exec sleep 1000")?;
    let living = place.running("cat")?;
    let is_of = |directory: &PathBuf, run: &Child| {
        let open = std::fs::read_dir(format!("/proc/{}/fd", run.id())).unwrap().flatten();
        let mut open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        open.any(|path| path == directory.join("lock"))
    };
    let of = |run: &Child| place.directories().into_iter().find(|one| is_of(one, run)).unwrap();
    let (forsaken, lived_in) = (of(&killed), of(&living));
    let instance = std::fs::read_to_string(forsaken.join("instance"))?;
    kill_9(killed)?;
    assert_ne!(place.engine.residue(&forsaken)?, Vec::<String>::new(), "it was killed");

    let next = place
        .alone(&["run", "--network", "none", "--", "echo", "next"])
        .env("TMPDIR", place.dir.path())
        .output()?;
    assert_eq!(succeeded(&next), "next\n");
    let mut left = place.directories();
    left.sort();
    let mut expected = vec![place.data.clone(), lived_in];
    expected.sort();
    assert_eq!(left, expected, "those that somebody has, and no other");
    // Whose machines and containers there are is asked by the same name.
    std::fs::create_dir(&forsaken)?;
    std::fs::write(forsaken.join("instance"), instance)?;
    assert_eq!(place.engine.residue(&forsaken)?, Vec::<String>::new());
    std::fs::remove_dir_all(&forsaken)?;

    for run in [&mut first, &mut { living }] {
        drop(run.stdin.take());
        assert!(run.wait()?.success());
    }
    assert_eq!(place.directories(), std::slice::from_ref(&place.data));
    place.clean();
    Ok(())
}

#[test]
fn a_shell_without_a_server_is_removed_when_it_is_left() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    // `script` has a terminal to give.
    let mut shell = Command::new("script");
    let line = format!("exec {SANDBANK} shell --network none");
    place.prepare(shell.args(["-qec", &line, "/dev/null"]));
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut said = Vec::new();
    let mut stdout = shell.stdout.take().unwrap();
    let mut byte = [0];
    while !said.ends_with(b"$ ") && stdout.read(&mut byte)? == 1 {
        said.push(byte[0]);
    }
    let mut typed = shell.stdin.take().unwrap();
    typed.write_all(b"echo $((6 * 7)); exit 4\r")?;
    stdout.read_to_end(&mut said)?;
    assert_eq!(shell.wait()?.code(), Some(4), "{}", text(&said));
    assert!(text(&said).contains("42\r\n"), "{}", text(&said));
    place.clean();
    Ok(())
}

#[test]
fn a_check_says_whether_a_server_would_start() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    let output = place.alone(&["serve", "--check"]).output()?;
    assert!(succeeded(&output).contains("ready"), "{}", text(&output.stderr));
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port().to_string();
    let output = place.alone(&["serve", "--check"]).env("SANDBANK_PORT", &port).output()?;
    assert_eq!(output.status.code(), Some(75), "{}", text(&output.stderr));
    place.clean();
    Ok(())
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_kept() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    succeeded(&place.alone(&["run", "--network", "none", "--", "true"]).output()?);
    let database = place.data.join("sandbank.db");
    let mut bytes = std::fs::read(&database)?;
    // SQLite keeps `user_version` here, big-endian.
    bytes[60..64].copy_from_slice(&999u32.to_be_bytes());
    std::fs::write(&database, &bytes)?;
    let output = place.alone(&["serve"]).output()?;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(65), "{said}");
    assert!(said.contains("999") && said.contains("hint: "), "{said}");
    assert_eq!(std::fs::read(&database)?, bytes);
    place.clean();
    Ok(())
}

#[test]
fn doctor_tries_every_control_and_leaves_nothing() -> anyhow::Result<()> {
    let Some(place) = Place::make()? else { return Ok(()) };
    let output = place.alone(&["doctor", "--json"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let controls = report["controls"].as_array().unwrap();
    assert!(controls.len() >= 10, "{report}");
    let lacking =
        controls.iter().any(|row| row["standing"] != "in_force" && row["required"] == true);
    let code = if lacking { 78 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    assert_eq!(report["ready"], !lacking);
    assert_eq!(place.directories(), Vec::<PathBuf>::new(), "doctor left something behind");
    place.clean();
    Ok(())
}

#[test]
fn without_the_rights_to_make_machines_the_reason_and_the_next_step_are_said() -> anyhow::Result<()>
{
    if skip_unless_root() || skip_over_docker("who may use its socket has all rights") {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534))?;
    let binary = dir.path().join("sandbank");
    std::fs::copy(SANDBANK, &binary)?;
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["run", "--", "true"])
        .env("SANDBANK_DATA_DIR", dir.path().join("data"))
        .env("SANDBANK_PORT", free_port()?.to_string())
        .env_remove("SANDBANK_URL")
        .env_remove("SANDBANK_TOKEN")
        .stdin(Stdio::null())
        .output()?;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("hint: ") && said.contains("doctor"), "{said}");
    Ok(())
}
