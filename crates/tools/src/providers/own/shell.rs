//! The shell that runs a script: a fresh one that has read its profiles.

use crate::Config;
use crate::approval::Verdict;

/// Which profiles are read before a script. Home is the workspace, so those of a login shell's user are
/// files that anybody in the sandbox may have written, and that no rule about commands ever sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Profiles {
    /// The system's and the workspace's, as a login shell does.
    All,
    /// The system's alone.
    OfTheSystem,
}

impl Profiles {
    /// Where calls are judged, nothing runs that was not.
    pub(super) fn of(config: &Config) -> Self {
        let approvals = &config.approvals.config;
        match approvals.rules.is_empty() && approvals.default == Verdict::Allow {
            true => Self::All,
            false => Self::OfTheSystem,
        }
    }

    pub(super) fn shell(self, script: &str) -> Vec<String> {
        match self {
            Self::All => ["bash", "-lc", script].map(str::to_owned).to_vec(),
            Self::OfTheSystem => {
                // No login shell: that one runs `~/.bash_logout` where a script exits. All is on one
                // line, so that the lines bash names in its errors are the script's own.
                let script = format!("[ ! -r /etc/profile ] || . /etc/profile; {script}");
                ["bash", "--noprofile", "--norc", "-c", &script].map(str::to_owned).to_vec()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::config::Environment;

    /// What a script prints whose home has a file of each name that a shell may run.
    fn printed(profiles: Profiles, script: &str) -> (String, String) {
        let home = tempfile::tempdir().unwrap();
        for name in [".bash_profile", ".bash_login", ".profile", ".bashrc", ".bash_logout"] {
            std::fs::write(home.path().join(name), format!("echo {name}\n")).unwrap();
        }
        let words = profiles.shell(script);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().env("HOME", home.path());
        // As if another machine had started it: bash then reads what interactive ones do.
        let output = command.env("SSH_CLIENT", "192.0.2.1 1 22").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    #[test]
    fn no_file_of_the_workspace_runs_before_or_after_a_script_that_was_judged() {
        assert_eq!(printed(Profiles::OfTheSystem, "echo script").0, "script\n");
        assert_eq!(printed(Profiles::OfTheSystem, "echo script; exit 3").0, "script\n");
        let all = printed(Profiles::All, "echo script; exit 3").0;
        assert_eq!(all, ".bash_profile\nscript\n.bash_logout\n", "a login shell reads them");
    }

    #[test]
    fn either_has_the_systems_profile_and_the_same_lines() {
        let path = |profiles| printed(profiles, "echo PATH=$PATH").0.replace(".bash_profile\n", "");
        assert_eq!(path(Profiles::OfTheSystem), path(Profiles::All));
        let said = |profiles| printed(profiles, "true\nno-such-program").1;
        assert!(said(Profiles::All).contains("line 2"), "{}", said(Profiles::All));
        assert_eq!(said(Profiles::OfTheSystem), said(Profiles::All));
    }

    #[test]
    fn calls_are_judged_where_a_rule_or_another_default_is_there() {
        let of = |section: &str| {
            let text = format!("[bash_tools]\nenabled = true\n{section}");
            Profiles::of(
                &Config::read(Some(&text.parse().unwrap()), &Environment::default()).unwrap(),
            )
        };
        assert_eq!(of(""), Profiles::All);
        assert_eq!(of("[bash_tools.approvals]\ntimeout_ms = 5000"), Profiles::All);
        assert_eq!(of("[bash_tools.approvals]\ndefault = \"ask\""), Profiles::OfTheSystem);
        let rule = "[[bash_tools.approvals.rules]]\naction = \"deny\"\ncommand = \"rm\"";
        assert_eq!(of(rule), Profiles::OfTheSystem);
    }
}
