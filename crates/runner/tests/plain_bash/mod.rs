//! A plain bash that reads scripts with `.`, one after the other, and writes down what it is like
//! after each: what a shell that remembers must agree with.
//!
//! It is interactive and has a terminal, as the shell of a sandbox is, because both change what bash
//! does. The runner only starts it, as any other command on a terminal.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandSpec, Ending, PtySize};

use crate::commanding::{follow, id, run, shell, spec};

const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) struct PlainBash<'a> {
    client: &'a RunnerClient,
    /// Where it works.
    root: PathBuf,
    /// Scripts and what it writes down, out of its sight.
    notes: PathBuf,
    /// The same directory, as this process sees it.
    seen_notes: PathBuf,
    control: File,
    /// Of the process that runs, and of those before it.
    process: usize,
    cwd: PathBuf,
    status: i32,
    turn: usize,
    is_dead: bool,
}

/// What a script did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Did {
    pub(crate) ending: Option<Ending>,
    pub(crate) stdout: Vec<u8>,
    /// Where the next one begins if the shell died and could not tell.
    pub(crate) cwd: Option<String>,
    pub(crate) restarted: bool,
}

impl<'a> PlainBash<'a> {
    /// `root` and `notes` are there, and what is in `notes` can be seen at `seen_notes`.
    pub(crate) async fn start(
        client: &'a RunnerClient,
        root: &Path,
        notes: &Path,
        seen_notes: &Path,
    ) -> Self {
        let made = format!("mkfifo {}/control", notes.display());
        let made = run(client, &shell(&format!("{}-made", name_of(root)), &made)).await;
        assert_eq!(made.code(), Some(0), "{}", made.errors());
        // Both ways, so that neither side waits for the other to open it.
        let control = OpenOptions::new().read(true).write(true).open(seen_notes.join("control"));
        let mut plain = Self {
            client,
            root: root.to_owned(),
            notes: notes.to_owned(),
            seen_notes: seen_notes.to_owned(),
            control: control.unwrap(),
            process: 0,
            cwd: root.parent().unwrap().to_owned(),
            status: 0,
            turn: 0,
            is_dead: false,
        };
        plain.launch().await;
        plain
    }

    /// A new process, where the last one was and with what it had exported.
    async fn launch(&mut self) {
        self.process += 1;
        let notes = self.notes.display();
        let bash = format!(
            "cd \"$1\" || cd {}; unset OLDPWD\n\
             exec bash --norc --noprofile --noediting +H -i <{notes}/control >/dev/null 2>&1",
            self.root.display()
        );
        let cwd = self.cwd.to_str().unwrap();
        let command = CommandSpec {
            pty: Some(PtySize { rows: 24, cols: 80 }),
            ..spec(&self.command(), &["/bin/sh", "-c", &bash, "sh", cwd])
        };
        self.client.start(&command).await.unwrap();
        self.tell(&format!(
            "unset HISTFILE MAILCHECK; set +o history\n\
             plain_status() {{ return $1; }}\n\
             plain_after() {{ export -p >{notes}/exports; \
             {{ printf '%s\\0' \"$1\"; pwd; printf end; }} >{notes}/$2.after; }}\n\
             plain_exit() {{ export -p >{notes}/exports; pwd >{notes}/cwd; }}\n\
             trap plain_exit EXIT\n"
        ));
        if self.seen_notes.join("exports").exists() {
            self.tell(&format!(". {notes}/exports\n"));
        }
    }

    fn command(&self) -> String {
        format!("{}-{}", name_of(&self.root), self.process)
    }

    fn tell(&self, line: &str) {
        (&self.control).write_all(line.as_bytes()).unwrap();
    }

    /// None when it says nothing any more, as bash itself does after some errors in `eval`.
    pub(crate) async fn evaluate(&mut self, script: &str) -> Option<Did> {
        let restarted = std::mem::take(&mut self.is_dead);
        if restarted {
            self.launch().await;
        }
        self.turn += 1;
        let (notes, turn) = (self.seen_notes.clone(), self.turn);
        let note = |what: &str| notes.join(format!("{turn}.{what}"));
        std::fs::write(note("script"), script).unwrap();
        let _ = std::fs::remove_file(notes.join("cwd"));
        let status = match self.status {
            0 => String::new(),
            status => format!("plain_status {status} || "),
        };
        let at = self.notes.display();
        self.tell(&format!(
            "{status}. {at}/{turn}.script </dev/null >{at}/{turn}.out 2>{at}/{turn}.err; \
             plain_after \"$?\" {turn}\n"
        ));
        let after = self.wait(&note("after")).await?;
        let stdout = std::fs::read(note("out")).unwrap_or_default();
        let Some((status, cwd)) = after else {
            let ending = follow(self.client, &self.command(), 0).await.ending;
            (self.is_dead, self.status) = (true, 0);
            let cwd = std::fs::read_to_string(self.seen_notes.join("cwd")).ok();
            let cwd = cwd.map(|cwd| cwd.trim_end_matches('\n').to_owned());
            if let Some(cwd) = cwd {
                self.cwd = cwd.into();
            }
            let cwd = self.cwd.to_str().map(str::to_owned);
            return Some(Did { ending, stdout, cwd, restarted });
        };
        (self.status, self.cwd) = (status, PathBuf::from(&cwd));
        let ending = Some(Ending::Exited { code: status });
        Some(Did { ending, stdout, cwd: Some(cwd), restarted })
    }

    /// Until it has written down what the script left, or is dead. Some errors and an interrupt take
    /// the rest of the line along: once it reads on without having written, it is told again.
    async fn wait(&self, after: &Path) -> Option<Option<(i32, String)>> {
        let until = Instant::now() + DEADLINE;
        let again = [" ".to_owned(), format!("plain_after \"$?\" {}\n", self.turn)];
        let mut again = again.iter();
        loop {
            let has_ended = self.has_ended().await;
            let reads_on = rustix::io::ioctl_fionread(&self.control).unwrap() == 0;
            let text = std::fs::read_to_string(after).unwrap_or_default();
            let fields = text.strip_suffix("\nend").and_then(|text| text.split_once('\0'));
            if let Some((status, cwd)) = fields {
                return Some(Some((status.parse().unwrap(), cwd.to_owned())));
            }
            if has_ended {
                return Some(None);
            }
            if Instant::now() > until {
                return None;
            }
            if reads_on && let Some(words) = again.next() {
                self.tell(words);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn has_ended(&self) -> bool {
        let status = self.client.command(&id(&self.command())).await.unwrap();
        matches!(status.state, sandbank_protocol::CommandState::Ended { .. })
    }
}

/// Of a directory; nobody else's is called so.
fn name_of(root: &Path) -> &str {
    root.file_name().unwrap().to_str().unwrap()
}
