//! The table's promises: precedence, ranges, names, and errors that say what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use clap::{Args, FromArgMatches};
use sandbank_engine::Control;

use super::*;

fn with_env(pairs: &[(&str, &str)]) -> Sources {
    let env: BTreeMap<OsString, OsString> =
        pairs.iter().map(|(name, text)| (name.into(), text.into())).collect();
    Sources { env, is_root: true, ..Sources::default() }
}

fn with_file(text: &str) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    let flags = ConfigFlags { config: Some(path), ..ConfigFlags::default() };
    (dir, Sources { flags, is_root: true, ..Sources::default() })
}

fn flags(words: &[&str]) -> ConfigFlags {
    let command = ConfigFlags::augment_args(clap::Command::new("test"));
    let words = std::iter::once("test").chain(words.iter().copied());
    ConfigFlags::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn error(sources: &Sources) -> String {
    load(sources).expect_err("the configuration is wrong").to_string()
}

#[test]
fn the_defaults_are_valid_and_local() {
    let settings = load(&with_env(&[])).unwrap();
    assert_eq!(settings.server.bind.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.data_dir.to_str(), Some("/var/lib/sandbank"));
    assert_eq!(settings.sandboxes.max, 1000);
    assert!(settings.auth.loopback_open);
    assert!(settings.notices.is_empty());
    let quota = settings.sandboxes.default_disk;
    assert_eq!(quota, DiskQuota::WhereEnforced(8192 << 20));
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let (_dir, mut sources) = with_file("[server]\nport = 1001\nmax_streams = 7");
    sources.env.insert("SANDBANK_PORT".into(), "1002".into());
    sources.env.insert("SANDBANK_MAX_CONNECTIONS".into(), "8".into());
    assert_eq!(load(&sources).unwrap().server.bind.port(), 1002);
    sources.flags = sources.flags.with("server.port", "1003");
    let settings = load(&sources).unwrap();
    assert_eq!(settings.server.bind.port(), 1003);
    assert_eq!((settings.server.max_streams, settings.server.max_connections), (7, 8));
}

#[test]
fn sandboxd_names_are_understood_and_ours_win() {
    let mut sources = with_env(&[
        ("SANDBOXD_BIND_HOST", "0.0.0.0"),
        ("SANDBOXD_PORT", "9000"),
        ("SANDBOXD_ADMIN_TOKEN", "0123456789abcdef0123456789abcdef"),
        ("SANDBOXD_MAX_CONCURRENT", "2"),
        ("SANDBOXD_DEFAULT_IDLE_TTL_MS", "10000"),
        ("SANDBOXD_MAX_BODY_BYTES", "1024"),
        ("SANDBOXD_PUBLIC_HOST", "sandbox.example"),
        ("SANDBOXD_PUBLIC_PROTO", "https"),
    ]);
    let settings = load(&sources).unwrap();
    assert_eq!(settings.server.bind.to_string(), "0.0.0.0:9000");
    assert_eq!(settings.sandboxes.max, 2);
    assert_eq!(settings.server.max_body_bytes, 1024);
    assert_eq!(settings.ports.publish_address, IpAddr::from([0, 0, 0, 0]));
    assert_eq!(settings.ports.public_host.as_deref(), Some("sandbox.example"));
    assert_eq!(settings.ports.public_proto, "https");
    assert!(settings.notices.is_empty(), "{:?}", settings.notices);
    sources.env.insert("SANDBANK_MAX_SANDBOXES".into(), "50".into());
    sources.env.insert("SANDBOXD_PUBLISH_HOST_IP".into(), "127.0.0.1".into());
    let settings = load(&sources).unwrap();
    assert_eq!(settings.sandboxes.max, 50);
    assert_eq!(settings.ports.publish_address, IpAddr::from([127, 0, 0, 1]));
}

#[test]
fn names_without_effect_are_accepted_and_reported() {
    let settings = load(&with_env(&[("SANDBOXD_DISABLE_AUTOBUILD", "1")])).unwrap();
    assert_eq!(settings.notices.len(), 1);
    assert!(settings.notices[0].contains("SANDBOXD_DISABLE_AUTOBUILD"));
}

#[test]
fn docker_is_told_where_it_is_also_by_sandboxd_s_names() {
    let settings = load(&with_env(&[])).unwrap();
    assert_eq!((settings.engine, settings.docker.host), (EngineKind::Auto, None));
    let settings = load(&with_env(&[
        ("SANDBANK_ENGINE", "docker"),
        ("SANDBOXD_DOCKER_SOCKET", "/var/run/docker.sock"),
        ("SANDBOXD_NETWORK_NAME", "boxes"),
        ("SANDBANK_DOCKER_IMAGE", "python3.13"),
        ("SANDBANK_DOCKER_HOST_ADDRESSES", "203.0.113.7,203.0.113.8"),
        ("SANDBANK_DOCKER_RESOLVERS", "10.0.0.2"),
    ]))
    .unwrap();
    assert_eq!(settings.engine, EngineKind::Docker);
    assert_eq!(settings.docker.host_addresses.len(), 2);
    assert_eq!(settings.docker.resolvers, [std::net::Ipv4Addr::new(10, 0, 0, 2)]);
    let wrong = error(&with_env(&[("SANDBANK_DOCKER_RESOLVERS", "resolver.lan")]));
    assert!(wrong.contains("IPv4"), "{wrong}");
    assert_eq!(settings.docker.host.as_deref(), Some("/var/run/docker.sock"));
    assert_eq!(settings.docker.network.as_deref(), Some("boxes"));
    assert_eq!(settings.docker.default_image.unwrap().as_str(), "python3.13");
    let wrong = error(&with_env(&[("SANDBANK_DOCKER_HOST", "var/run")]));
    assert!(wrong.contains("SANDBANK_DOCKER_HOST"), "{wrong}");
}

#[test]
fn an_error_names_source_value_range_and_remedy() {
    let from_env = error(&with_env(&[("SANDBOXD_PORT", "70000")]));
    for part in ["SANDBOXD_PORT", "\"70000\"", "0 to 65535", "default (8080)"] {
        assert!(from_env.contains(part), "{part:?} is not in {from_env:?}");
    }
    let (_dir, sources) = with_file("[server]\nport = \"8080\"");
    assert!(error(&sources).contains("the key server.port in "), "{}", error(&sources));
    let flag = Sources { flags: flags(&["--storage", "zfs"]), ..with_env(&[]) };
    assert!(error(&flag).contains("the flag --storage"), "{}", error(&flag));
    assert!(error(&flag).contains("one of auto, btrfs, plain"));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one() {
    let (_dir, sources) = with_file("[server]\nprot = 1");
    assert!(error(&sources).contains("did you mean \"server.port\"?"), "{}", error(&sources));
    let (_dir, sources) = with_file("colour = 1");
    assert!(error(&sources).contains("docs/configuration.md"));
    let (_dir, sources) = with_file("[server\nport = 1");
    assert!(error(&sources).contains("not valid TOML"));
}

#[test]
fn a_misspelt_variable_is_noticed() {
    let settings = load(&with_env(&[("SANDBANK_PROT", "1"), ("SANDBANK_URL", "x")])).unwrap();
    assert_eq!(
        settings.notices,
        ["SANDBANK_PROT is set, but is not a setting; did you mean SANDBANK_PORT?"]
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let settings =
        load(&with_env(&[("SANDBOXD_PORT", ""), ("SANDBOXD_ADMIN_TOKEN", " ")])).unwrap();
    assert_eq!(settings.server.bind.port(), 8080);
    assert!(settings.auth.admin_token.is_none());
}

#[test]
fn a_named_file_must_exist() {
    let flags =
        ConfigFlags { config: Some("/nonexistent/x.toml".into()), ..ConfigFlags::default() };
    let text = error(&Sources { flags, ..with_env(&[]) });
    assert!(text.contains("/nonexistent/x.toml"), "{text}");
}

#[test]
fn controls_are_checked_by_name() {
    let settings = load(&with_env(&[("SANDBANK_ALLOW_WEAKER", "landlock, disk_quota")])).unwrap();
    assert_eq!(settings.allow_weaker, [Control::Landlock, Control::DiskQuota]);
    let text = error(&with_env(&[("SANDBANK_ALLOW_WEAKER", "landlok")]));
    assert!(text.contains("SANDBANK_ALLOW_WEAKER") && text.contains("`landlock`"), "{text}");
}

#[test]
fn a_quota_that_was_asked_for_is_required() {
    let quota = |text| {
        let settings = load(&with_env(&[("SANDBANK_DEFAULT_DISK_MB", text)])).unwrap();
        settings.sandboxes.default_disk
    };
    assert_eq!(quota("1"), DiskQuota::Required(1 << 20));
    assert_eq!(quota("0"), DiskQuota::Off);
}

#[test]
fn flags_take_lists_and_bare_switches() {
    let flags =
        flags(&["--evict-idle", "--allowed-hosts", "a.example,b.example", "--allowed-hosts=c"]);
    let settings = load(&Sources { flags, ..with_env(&[]) }).unwrap();
    assert!(settings.sandboxes.evict_idle);
    assert_eq!(settings.auth.allowed_hosts, ["a.example", "b.example", "c"]);
}

#[test]
fn secrets_never_show_and_have_no_flag() {
    let settings = load(&with_env(&[("SANDBANK_ADMIN_TOKEN", "hunter2")])).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
    let (_dir, sources) = with_file("[auth]\nadmin_token = [\"hunter2\"]");
    assert!(!error(&sources).contains("hunter2"), "{}", error(&sources));
    let secrets = rows().filter(|row| matches!(row.kind, Kind::Secret));
    assert!(secrets.into_iter().all(|row| row.flag.is_none()));
}

#[test]
fn a_short_token_on_an_open_bind_is_noticed() {
    let open = [("SANDBANK_HOST", "0.0.0.0"), ("SANDBANK_ADMIN_TOKEN", "short")];
    assert_eq!(load(&with_env(&open)).unwrap().notices.len(), 1);
    assert!(load(&with_env(&open[1..])).unwrap().notices.is_empty());
}

#[test]
fn a_workspace_setting_that_is_missing_or_contradicts_is_one_line_with_its_name_and_a_fix() {
    let remote = ("WORKSPACE_MODE", "remote");
    let url = ("SANDBANK_WORKSPACE_SERVICE_URL", "https://box:8787");
    let secret = ("SANDBANK_WORKSPACE_SERVICE_SECRET_FILE", "/etc/secret");
    let authorities = ("SANDBANK_WORKSPACE_SERVICE_AUTHORITIES", "/etc/ca.pem");
    let allowed = ("SANDBANK_WORKSPACE_SERVICE_ALLOWED", "box:8787");
    let plain = ("SANDBANK_WORKSPACE_SERVICE_URL", "http://box:8787");
    let tenants = ("MULTI_TENANT", "true");
    let bound = ("AUTH_IDENTITY_BINDING_ENABLED", "true");
    let open = ("SANDBANK_WORKSPACE_LOOPBACK_OPEN", "true");
    let right = load(&with_env(&[remote, url, secret, authorities, allowed])).unwrap().workspace;
    assert_eq!(right.service_authorities.as_deref(), Some(Path::new("/etc/ca.pem")));
    assert_eq!(right.service_allowed.as_deref(), Some("box:8787"));
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (&[("WORKSPACE_MODE", "local")], "WORKSPACE_MODE", "SANDBANK_WORKSPACE_ROOT"),
        (&[remote, secret], "WORKSPACE_MODE", "SANDBANK_WORKSPACE_SERVICE_URL"),
        (&[remote, url], "WORKSPACE_MODE", "SANDBANK_WORKSPACE_SERVICE_SECRET_FILE"),
        (&[remote, plain, secret, authorities], authorities.0, "https://"),
        (&[url], url.0, "WORKSPACE_MODE=remote"),
        (&[("WORKSPACE_MODE", "sandbox"), authorities], authorities.0, "leave it out"),
        (&[("WORKSPACE_MODE", "sandbox"), allowed], allowed.0, "WORKSPACE_MODE=remote"),
        (&[remote, ("SANDBANK_WORKSPACE_SERVICE_URL", "box"), secret], url.0, "http://host:port"),
        (&[remote, url, secret, (authorities.0, "ca.pem")], authorities.0, "an absolute path"),
        (&[tenants], "MULTI_TENANT", "AUTH_IDENTITY_BINDING_ENABLED=true"),
        (&[bound, open], open.0, "AUTH_IDENTITY_BINDING_ENABLED"),
        (&[("ROUTE_BY_USER", "true")], "ROUTE_BY_USER", "start one for each user"),
        (&[("CORS_ORIGINS", "*")], "CORS_ORIGINS", "a list of"),
        (
            &[(
                "SANDBANK_PREVIOUS_SESSION_TOKEN_SECRET",
                "a secret of thirty-two characters or so",
            )],
            "SANDBANK_PREVIOUS_SESSION_TOKEN_SECRET",
            "SESSION_TOKEN_SECRET",
        ),
        (&[("SESSION_TOKEN_SECRET", "short")], "SESSION_TOKEN_SECRET", "at least 32"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318")], "OTEL_EXPORTER_OTLP_ENDPOINT", "http://"),
        (
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c:4318")],
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://",
        ),
        (&[("OTEL_TRACES_SAMPLER", "some")], "OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        (&[("OTEL_TRACES_SAMPLER_ARG", "7")], "OTEL_TRACES_SAMPLER_ARG", "from 0 to 1"),
    ];
    for (given, name, fix) in cases {
        let said = error(&with_env(given));
        assert!(said.contains(name) && said.contains(fix), "{given:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let said = error(&with_env(&[
        ("WORKSPACE_MODE", "remote"),
        ("MULTI_TENANT", "true"),
        ("SESSION_TOKEN_SECRET", "short"),
    ]));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "4 settings cannot be used:", "{said}");
    for (line, fix) in lines[1..].iter().zip([
        "SANDBANK_WORKSPACE_SERVICE_URL",
        "SANDBANK_WORKSPACE_SERVICE_SECRET_FILE",
        "AUTH_IDENTITY_BINDING_ENABLED=true",
        "at least 32",
    ]) {
        assert!(line.contains(fix), "{fix} is not in {line:?}");
    }
    let said = error(&with_env(&[("SANDBANK_PORT", "x"), ("SANDBANK_LOOPBACK_OPEN", "maybe")]));
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn the_more_particular_address_of_traces_counts() {
    let endpoint =
        |env: &[(&str, &str)]| load(&with_env(env)).unwrap().traces.map(|traces| traces.endpoint);
    let collector = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    let exact = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/here");
    assert_eq!(endpoint(&[]), None);
    assert_eq!(endpoint(&[collector]), Some(TraceEndpoint::Collector(collector.1.into())));
    for both in [&[exact][..], &[collector, exact]] {
        assert_eq!(endpoint(both), Some(TraceEndpoint::Exact(exact.1.into())));
    }
}

#[test]
fn plain_http_to_a_service_on_another_machine_is_noticed() {
    let notices = |url| {
        let env = [
            ("WORKSPACE_MODE", "remote"),
            ("SANDBANK_WORKSPACE_SERVICE_URL", url),
            ("SANDBANK_WORKSPACE_SERVICE_SECRET_FILE", "/etc/secret"),
        ];
        load(&with_env(&env)).unwrap().notices
    };
    for far in ["http://10.0.0.7:8787", "http://box", "http://[2001:db8::1]:1/base"] {
        let said = notices(far);
        assert!(said.len() == 1 && said[0].contains("SANDBANK_WORKSPACE_SERVICE_URL"), "{said:?}");
    }
    for fine in ["http://127.0.0.1:8787", "http://localhost:1", "http://[::1]:1", "https://box"] {
        assert_eq!(notices(fine), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn another_programs_variable_stops_a_daemon_and_no_client() {
    let names = rows().flat_map(|row| row.aliases.iter().copied().chain([row.env]));
    let ours = |name: &&str| name.starts_with("SANDBANK_") || name.starts_with("SANDBOXD_");
    let others: Vec<&str> = names.filter(|name| !ours(name)).collect();
    assert!(others.contains(&"CORS_ORIGINS") && others.contains(&"OTEL_TRACES_SAMPLER"));
    let nonsense: Vec<_> = others.iter().map(|name| (*name, "\u{1}")).collect();
    let daemon = with_env(&nonsense);
    assert!(error(&daemon).contains("CORS_ORIGINS"), "{}", error(&daemon));
    load(&Sources { is_client: true, ..daemon }).unwrap();
    // Values that only contradict each other.
    let daemon = with_env(&[("WORKSPACE_MODE", "local"), ("MULTI_TENANT", "true")]);
    assert!(error(&daemon).contains("WORKSPACE_MODE"), "{}", error(&daemon));
    load(&Sources { is_client: true, ..daemon }).unwrap();
    let own = Sources { is_client: true, ..with_env(&[("SANDBANK_PORT", "x")]) };
    assert!(error(&own).contains("SANDBANK_PORT"), "{}", error(&own));
}

#[test]
fn names_in_the_table_are_unique_and_regular() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let ours = row.env.starts_with("SANDBANK_");
        // What OpenTelemetry calls it everywhere.
        assert!(
            ours || row.key.starts_with("traces.") && row.env.starts_with("OTEL_"),
            "{}",
            row.env
        );
        assert!(row.help.ends_with('.'), "{}", row.key);
        let flag = row.flag.map(|flag| format!("--{flag}"));
        let others = row.aliases.iter().copied().map(str::to_owned);
        let names = [row.key, row.env].map(str::to_owned).into_iter().chain(flag).chain(others);
        for name in names {
            assert!(seen.insert(name.clone()), "{name} stands twice");
        }
        if let Preset::Text(text) = row.default {
            assert!(row.parse(text).is_some(), "the default of {} is not allowed", row.key);
        }
    }
}

#[test]
fn a_person_without_a_home_is_told_to_name_a_directory() {
    let sources = Sources { is_root: false, ..Sources::default() };
    assert!(error(&sources).contains("--data-dir"));
    let sources = Sources { is_root: false, ..with_env(&[("HOME", "/home/ada")]) };
    let settings = load(&sources).unwrap();
    assert_eq!(settings.data_dir.to_str(), Some("/home/ada/.local/share/sandbank"));
}

#[test]
fn the_committed_page_matches_the_table() {
    crate::committed::check("docs/configuration.md", &markdown());
}

fn with_yaml(text: &str) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sandkasten.yaml");
    std::fs::write(&path, text).unwrap();
    let flags = ConfigFlags { sandkasten_config: Some(path), ..ConfigFlags::default() };
    (dir, Sources { flags, is_root: true, ..Sources::default() })
}

#[test]
fn sandkastens_file_is_understood() {
    let (_dir, sources) = with_yaml(
        "listen: 127.0.0.1:9999\napi_key: sk-1\ndata_dir: /srv/sk/\ndefault_image: python\n\
         allowed_images: [base, python]\nsession_ttl_seconds: 60\ndefaults:\n  cpu_limit: 1.0\n  \
         mem_limit_mb: 512\n  pids_limit: 256\n  max_exec_timeout_ms: 5000\n  \
         network_mode: bridge\nworkspace:\n  enabled: false\n",
    );
    let settings = load(&sources).unwrap();
    assert_eq!(settings.server.bind.to_string(), "127.0.0.1:9999");
    assert_eq!(settings.data_dir.to_str(), Some("/srv/sk/sandbank"));
    assert_eq!(settings.sandboxes.default_vcpus, 1);
    assert_eq!((settings.sandboxes.default_memory_mb, settings.sandboxes.default_pids), (512, 256));
    let sessions = settings.sessions;
    assert_eq!(sessions.api_key.unwrap().expose(), "sk-1");
    assert_eq!((sessions.default_image.as_str(), sessions.ttl.as_secs()), ("python", 60));
    assert_eq!(sessions.allowed_images, ["base", "python"]);
    assert_eq!(sessions.max_exec_timeout.as_millis(), 5000);
    assert_eq!(sessions.network, sandbank_engine::NetworkMode::Default);
    assert!(!sessions.workspaces);
    assert_eq!(settings.notices.len(), 1, "{:?}", settings.notices);
    assert!(settings.notices[0].contains("is read"), "{:?}", settings.notices);
}

#[test]
fn sandkastens_names_stand_below_ours_and_say_where_they_are_from() {
    let (_dir, mut sources) =
        with_yaml("session_ttl_seconds: 1\nlisten: 127.0.0.1:1001\ndefault_image: node\n");
    let (_other, file) = with_file("[sessions]\nttl_seconds = 2\n");
    sources.flags.config = file.flags.config;
    let ttl = |sources: &Sources| load(sources).unwrap().sessions.ttl.as_secs();
    assert_eq!(ttl(&sources), 2, "our file stands above theirs");
    sources.env.insert("SANDKASTEN_SESSION_TTL_SECONDS".into(), "3".into());
    assert_eq!(ttl(&sources), 3, "their environment stands above our file");
    sources.env.insert("SANDBANK_SESSION_TTL_SECONDS".into(), "4".into());
    assert_eq!(ttl(&sources), 4, "our environment stands above theirs");
    sources.flags = sources.flags.clone().with("sessions.ttl_seconds", "5");
    assert_eq!(ttl(&sources), 5, "a flag stands above all");
    let rows = explain(&sources).unwrap();
    let of = |key: &str| rows.iter().find(|row| row.setting.key == key).unwrap();
    let image = &of("sessions.default_image").origin;
    assert!(matches!(image, Origin::SandkastenFile { key: "default_image", .. }), "{image}");
    assert!(of("server.port").origin.to_string().contains("the key listen in "), "{image}");
}

#[test]
fn sandkastens_pool_is_one_of_sessions() {
    let pool = "pool: {enabled: true, images: {python: 2, base: 1, node: 0}}";
    let (_dir, mut sources) = with_yaml(pool);
    let settings = load(&sources).unwrap();
    assert_eq!(settings.sessions.pool, [("python".to_owned(), 2), ("base".to_owned(), 1)]);
    sources.env.insert("SANDKASTEN_POOL_ENABLED".into(), "false".into());
    assert_eq!(load(&sources).unwrap().sessions.pool, []);
    for (text, part) in [
        ("pool: {enabled: true}", "names no image"),
        ("pool: {images: {python: 2}}", "no effect without pool.enabled"),
    ] {
        let (_dir, sources) = with_yaml(text);
        let found = load(&sources).unwrap().notices[1..].join("\n");
        assert!(found.contains(part), "{text}: {found}");
    }
    let (_dir, sources) = with_yaml("pool: {enabled: true, images: {python: many}}");
    assert!(error(&sources).contains("a number"), "{}", error(&sources));
}

#[test]
fn what_means_nothing_here_is_said_and_what_would_weaken_is_refused() {
    for (text, part) in [
        ("db_path: /x", "the database is in the data directory"),
        ("db_max_open_conns: 4", "db_max_open_conns"),
        ("playground_config_path: x", "no playground"),
        ("security:\n  seccomp: off", "always on"),
        ("defaults: {readonly_rootfs: false}", "always read-only"),
        ("defaults: {exec_mode: stateless}", "keeps the state"),
        ("dashboard: {enabled: true}", "no dashboard"),
        ("auto_pull: {enabled: true}", "sandbank image import"),
        ("sesion_ttl_seconds: 5", "did you mean \"session_ttl_seconds\"?"),
        ("colour: red", "unknown key \"colour\""),
    ] {
        let (_dir, sources) = with_yaml(text);
        let found = load(&sources).unwrap().notices[1..].join("\n");
        assert!(found.contains(part), "{text}: {found}");
    }
    let quiet =
        "security: {seccomp: strict}\ndashboard: {enabled: false}\ndefaults: {exec_mode: stateful}";
    let (_dir, sources) = with_yaml(quiet);
    assert_eq!(load(&sources).unwrap().notices.len(), 1);
    for (text, part) in [
        ("defaults: {network_mode: host}", "never given to a sandbox"),
        ("defaults: {cpu_limit: 0.5}", "whole number of cores"),
        ("listen: everywhere", "an address and a port"),
        ("defaults: {mem_limit_mb: 1}", "defaults.mem_limit_mb"),
        ("a: [", "not usable YAML"),
    ] {
        let (_dir, sources) = with_yaml(text);
        assert!(error(&sources).contains(part), "{text}: {}", error(&sources));
    }
    let text = error(&with_env(&[("SANDKASTEN_NETWORK_MODE", "host")]));
    assert!(text.contains("SANDKASTEN_NETWORK_MODE"), "{text}");
    let slip = load(&with_env(&[("SANDKASTEN_API_KEI", "secret")])).unwrap().notices;
    assert_eq!(
        slip,
        ["SANDKASTEN_API_KEI is set, but is not a setting; did you mean SANDKASTEN_API_KEY?"]
    );
}

#[test]
fn a_file_in_the_working_directory_is_told_of_and_never_read_on_its_own() {
    let (dir, named) = with_yaml("api_key: known\nlisten: 127.0.0.1:9\ndata_dir: /x\n");
    let here = Sources { directory: Some(dir.path().to_owned()), ..with_env(&[]) };
    let settings = load(&here).unwrap();
    assert!(settings.sessions.api_key.is_none());
    assert_eq!(settings.server.bind.port(), 8080);
    assert_eq!(settings.data_dir.to_str(), Some("/var/lib/sandbank"));
    assert_eq!(settings.notices.len(), 1, "{:?}", settings.notices);
    for part in ["./sandkasten.yaml is not read", "--sandkasten-config", "SANDBANK_SANDKASTEN"] {
        assert!(settings.notices[0].contains(part), "{part:?}: {:?}", settings.notices);
    }
    let path = named.flags.sandkasten_config.clone().unwrap();
    let by_env = with_env(&[("SANDBANK_SANDKASTEN_CONFIG", path.to_str().unwrap())]);
    for named in [named, by_env] {
        let named = Sources { directory: here.directory.clone(), ..named };
        let settings = load(&named).unwrap();
        assert_eq!(settings.server.bind.port(), 9, "whoever names it means it");
        let told = settings.notices.iter().any(|notice| notice.contains("is not read"));
        assert!(!told, "{:?}", settings.notices);
    }
    let elsewhere = Sources { directory: Some("/".into()), ..with_env(&[]) };
    assert_eq!(load(&elsewhere).unwrap().notices.len(), 0);
}

#[test]
fn the_machines_file_is_read_by_a_daemon_and_not_by_a_client() {
    let (_dir, named) = with_yaml("session_ttl_seconds: 7\nlisten: 127.0.0.1:9\n");
    let file = named.flags.sandkasten_config.clone();
    let daemon = Sources { sandkasten_file: file, ..with_env(&[]) };
    let settings = load(&daemon).unwrap();
    assert_eq!((settings.sessions.ttl.as_secs(), settings.server.bind.port()), (7, 9));
    let absent = Sources { sandkasten_file: Some("/nonexistent.yaml".into()), ..with_env(&[]) };
    assert_eq!(load(&absent).unwrap().server.bind.port(), 8080);
    let client = Sources::of_a_client();
    assert_eq!((client.sandkasten_file, client.directory), (None, None));
    let process = Sources::of_this_process(ConfigFlags::default());
    assert_eq!(process.sandkasten_file.is_some(), process.is_root);
    assert!(process.directory.is_some());
}
