//! Every key, range and default of the section, and what is said of a wrong one.

use super::*;

fn read(text: &str, environment: &Environment) -> Result<Config, Vec<String>> {
    let table: Table = text.parse().unwrap();
    Config::read(table.get("app").and_then(toml::Value::as_table), environment)
}

fn problems(text: &str) -> Vec<String> {
    read(text, &Environment::default()).unwrap_err()
}

#[test]
fn off_by_default_and_enabled_alone_suffices() {
    let config = Config::default();
    assert!(!config.enabled && !config.switched_on);
    let config = read("[app.bash_tools]\nenabled = true", &Environment::default()).unwrap();
    assert!(config.enabled);
    assert_eq!((config.provider, config.access), (None, Access::Localhost));
    assert_eq!((config.max_stdout_chars, config.max_stderr_chars), (12_000, 12_000));
    assert_eq!(config.timeout, Duration::from_secs(30));
    assert_eq!((config.max_concurrent_sandboxes, config.idle_ttl.as_secs()), (2, 900));
    assert_eq!((config.sandbox.runtime.as_str(), &*config.sandbox.ports), ("node24", &[3000][..]));
    assert_eq!((config.sandbox.vcpus, config.memory_mb), (2, 2_048));
    assert_eq!((config.network, config.seed), (Network::Default, SeedConfig::None));
}

#[test]
fn the_file_of_a_chat_that_has_them_off_is_never_wrong() {
    let example = r#"
        [app]
        name = "somebody else's"
        [app.web_tools]
        enabled = true
        [app.bash_tools]
        enabled = false
        provider = "vercel"
        access = "lan"
        project_root = ""
        [app.bash_tools.sandbox]
        runtime = "node22"
        [app.bash_tools.docker]
        orchestrator_url = "http://127.0.0.1:8080"
        admin_token_env = "REMCOCHAT_ADMIN_TOKEN"
        [app.bash_tools.seed]
        mode = "git"
        git_url = ""
        git_revision = ""
        upload_include = "**/*"
    "#;
    let config = read(example, &Environment::default()).unwrap();
    assert!(!config.enabled);
    let enabled = example.replace(
        "[app.bash_tools]\n        enabled = false",
        "[app.bash_tools]\n        enabled = true",
    );
    let lines = problems(&enabled);
    assert_eq!(lines.len(), 3, "{lines:#?}");
}

#[test]
fn every_range_is_held_and_every_problem_is_told_at_once() {
    let wrong = r#"
        [app.bash_tools]
        enabled = "yes"
        provider = "podman"
        access = "world"
        max_stdout_chars = 199
        max_stderr_chars = 200001
        timeout_ms = 999
        max_concurrent_sandboxes = 11
        idle_ttl_ms = 9999
        max_sdtout_chars = 1
        [app.bash_tools.sandbox]
        runtime = "node18"
        ports = [1, 2, 3, 4, 5]
        vcpus = 9
        timeout_ms = 29999
        [app.bash_tools.docker]
        orchestrator_url = "http://10.0.0.1:8080"
        network_mode = "host"
        memory_mb = 255
        [app.bash_tools.seed]
        mode = "rsync"
        upload_include = 3
    "#;
    let lines = problems(wrong);
    for (key, part) in [
        ("enabled", "true or false"),
        ("provider", "one of native, docker, vercel"),
        ("access", "one of localhost, lan"),
        ("max_stdout_chars", "from 200 to 200000"),
        ("max_stderr_chars", "from 200 to 200000"),
        ("timeout_ms", "from 1000 to 300000"),
        ("max_concurrent_sandboxes", "from 1 to 10"),
        ("idle_ttl_ms", "from 10000 to 21600000"),
        ("max_sdtout_chars", "did you mean max_stdout_chars?"),
        ("sandbox.runtime", "one of node24, python3.13"),
        ("sandbox.ports", "at most 4 numbers from 1 to 65535"),
        ("sandbox.vcpus", "from 1 to 8"),
        ("sandbox.timeout_ms", "from 30000 to 18000000"),
        ("docker.orchestrator_url", "asks no other; leave it out"),
        ("docker.network_mode", "one of default, none"),
        ("docker.memory_mb", "from 256 to 16384"),
        ("seed.mode", "one of none, git, upload"),
        ("seed.upload_include", "a text"),
    ] {
        let begin = format!("app.bash_tools.{key} is ");
        let found = lines.iter().filter(|line| line.starts_with(&begin)).collect::<Vec<_>>();
        assert_eq!(found.len(), 1, "{key}: {lines:#?}");
        assert!(found[0].contains(part) && !found[0].contains('\n'), "{}", found[0]);
    }
    assert_eq!(lines.len(), 18, "{lines:#?}");
}

#[test]
fn the_ends_of_every_range_are_allowed() {
    for (key, low, high) in [
        ("max_stdout_chars", 200, 200_000),
        ("max_stderr_chars", 200, 200_000),
        ("timeout_ms", 1_000, 300_000),
        ("max_concurrent_sandboxes", 1, 10),
        ("idle_ttl_ms", 10_000, 21_600_000),
        ("sandbox.vcpus", 1, 8),
        ("sandbox.timeout_ms", 30_000, 18_000_000),
        ("docker.memory_mb", 256, 16_384),
    ] {
        let reads = |value: i64| {
            read(&format!("app.bash_tools.{key} = {value}"), &Environment::default()).is_ok()
        };
        assert!(reads(low) && reads(high), "{key}");
        assert!(!reads(low - 1) && !reads(high + 1) && !reads(-1), "{key}");
    }
}

#[test]
fn what_fills_the_workspace_follows_from_what_there_is() {
    let seed = |text: &str| {
        let text = format!("[app.bash_tools]\nenabled = true\n{text}");
        read(&text, &Environment::default()).map(|config| config.seed)
    };
    let git = |revision: Option<&str>| SeedConfig::Git {
        url: "https://x.example/r.git".into(),
        revision: revision.map(str::to_owned),
        depth: None,
        submodules: false,
        token_env: None,
    };
    let from = "[app.bash_tools.seed]\ngit_url = \"https://x.example/r.git\"\n";
    assert_eq!(seed(from), Ok(git(None)));
    assert_eq!(seed(&format!("{from}git_revision = \"v1\"")), Ok(git(Some("v1"))));
    let upload = SeedConfig::Upload { root: "/srv/p".into(), include: "**/*".into() };
    assert_eq!(seed("project_root = \"/srv/p\""), Ok(upload));
    assert_eq!(seed("project_root = \"/srv/p\"\nseed.mode = \"none\""), Ok(SeedConfig::None));
    for wrong in ["seed.mode = \"git\"", "seed.mode = \"upload\"", "project_root = \"srv\""] {
        assert_eq!(seed(wrong).unwrap_err().len(), 1, "{wrong}");
    }
}

#[test]
fn the_kill_switch_has_four_words() {
    for (word, on) in
        [("1", true), ("true", true), (" YES ", true), ("on", true), ("2", false), ("", false)]
    {
        let environment = Environment { enable: Some(word.into()), ..Environment::default() };
        assert_eq!(read("", &environment).unwrap().switched_on, on, "{word:?}");
    }
}

#[test]
fn what_is_switched_off_is_told_from_what_nobody_switched_on() {
    let off = |text: &str, word: Option<&str>| {
        let enable = word.map(str::to_owned);
        read(text, &Environment { enable, ..Environment::default() }).unwrap().switched_off
    };
    let (on, no) = ("[app.bash_tools]\nenabled = true", "[app.bash_tools]\nenabled = false");
    assert_eq!([off("", None), off("", Some(" ")), off("", Some("1"))], [None, None, None]);
    assert_eq!([off(on, None), off(on, Some("yes"))], [None, None]);
    assert_eq!(
        [off("", Some("0")), off(on, Some("no"))],
        [(); 2].map(|()| Some(Closed::KillSwitch))
    );
    assert_eq!([off(no, None), off(no, Some("0"))], [(); 2].map(|()| Some(Closed::Configuration)));
}

#[test]
fn lan_needs_a_long_token_and_a_short_one_is_refused_everywhere() {
    let with = |access: &str, length| {
        let text = format!("[app.bash_tools]\nenabled = true\naccess = \"{access}\"");
        read(&text, &Environment { admin_token_chars: length, ..Environment::default() })
    };
    assert!(with("lan", Some(32)).is_ok() && with("localhost", None).is_ok());
    assert!(with("lan", None).unwrap_err()[0].contains("REMCOCHAT_ADMIN_TOKEN is not set"));
    for access in ["lan", "localhost"] {
        let lines = with(access, Some(31)).unwrap_err();
        assert!(lines[0].contains("31 characters long"), "{lines:?}");
    }
}

#[test]
fn only_an_orchestrator_on_this_machine_is_accepted() {
    let with = |url: &str| {
        let text = format!("app.bash_tools.docker.orchestrator_url = \"{url}\"");
        read(&text, &Environment::default())
    };
    for own in ["", "http://127.0.0.1:8080", "http://localhost", "https://[::1]:1/"] {
        assert!(with(own).is_ok(), "{own}");
    }
    for other in ["http://sandboxd:8080", "ftp://localhost", "127.0.0.1:8080", "http://localhost.x"]
    {
        assert!(with(other).is_err(), "{other}");
    }
}

#[test]
fn a_provider_whose_engine_is_not_there_is_refused() {
    let text = "[app.bash_tools]\nenabled = true\nprovider = \"docker\"";
    let with = |engines| read(text, &Environment { engines, ..Environment::default() });
    assert!(with(None).is_ok() && with(Some(vec!["native", "docker"])).is_ok());
    assert!(with(Some(vec!["native"])).unwrap_err()[0].contains("SANDBANK_ENGINE=docker"));
}
