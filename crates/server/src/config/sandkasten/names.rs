//! Every name of Sandkasten's, and what it means here.

use super::super::table;

/// One setting of Sandkasten's under both its names.
#[derive(Debug)]
pub(crate) struct Name {
    /// A name that ends in `.*` stands for all below it.
    pub(crate) yaml: &'static str,
    pub(crate) env: Option<&'static str>,
    pub(crate) meaning: Meaning,
}

#[derive(Debug)]
pub(crate) enum Meaning {
    /// The same as this setting of ours.
    Same(&'static str),
    /// Address and port in one text.
    Listen,
    /// A directory of our own below it, because what Sandkasten keeps there is not ours.
    DataDir,
    /// A number of cores, written with or without a fraction.
    Cores(&'static str),
    /// Words that are called otherwise here; those that are missing are refused with the reason.
    Words {
        key: &'static str,
        known: &'static [(&'static str, &'static str)],
        refused: &'static str,
    },
    /// Whether what [`Meaning::PoolImage`] names is kept ready.
    PoolSwitch,
    /// So many machines of the image that the rest of the key names.
    PoolImage,
    /// No effect, for this reason. The values named first are what is done anyhow, and need no notice.
    Nothing { unless: &'static [&'static str], why: &'static str },
}

impl Name {
    pub(crate) fn is(&self, key: &str) -> bool {
        match self.yaml.strip_suffix('*') {
            Some(start) => key.starts_with(start),
            None => key == self.yaml,
        }
    }

    /// For the documentation.
    pub(crate) fn here(&self) -> String {
        match &self.meaning {
            Meaning::Same(key) | Meaning::Cores(key) => format!("`{key}`"),
            Meaning::Listen => "`server.host` and `server.port`".to_owned(),
            Meaning::DataDir => "`data_dir`, in a directory `sandbank` below it".to_owned(),
            Meaning::Words { key, known, refused } => {
                let words: Vec<String> =
                    known.iter().map(|(theirs, ours)| format!("{theirs} = {ours}")).collect();
                format!("`{key}` ({}); {refused}", words.join(", "))
            }
            Meaning::PoolSwitch => "without it, `pool.images` has no effect".to_owned(),
            Meaning::PoolImage => "`sessions.pool`".to_owned(),
            Meaning::Nothing { why, .. } => format!("accepted, no effect; the log says so: {why}"),
        }
    }
}

const ON: &[&str] = &["true", "1", "yes", "on"];
const OFF: &[&str] = &["false", "0", "no", "off"];

const fn same(yaml: &'static str, env: &'static str, key: &'static str) -> Name {
    Name { yaml, env: Some(env), meaning: Meaning::Same(key) }
}

const fn nothing(
    yaml: &'static str,
    env: Option<&'static str>,
    unless: &'static [&'static str],
    why: &'static str,
) -> Name {
    Name { yaml, env, meaning: Meaning::Nothing { unless, why } }
}

pub(crate) const NAMES: &[Name] = &[
    Name { yaml: "listen", env: Some("SANDKASTEN_LISTEN"), meaning: Meaning::Listen },
    same("api_key", "SANDKASTEN_API_KEY", "sessions.api_key"),
    Name { yaml: "data_dir", env: Some("SANDKASTEN_DATA_DIR"), meaning: Meaning::DataDir },
    same("default_image", "SANDKASTEN_DEFAULT_IMAGE", "sessions.default_image"),
    same("allowed_images", "SANDKASTEN_ALLOWED_IMAGES", "sessions.allowed_images"),
    nothing("db_path", Some("SANDKASTEN_DB_PATH"), &[], "the database is in the data directory"),
    nothing(
        "db_max_open_conns",
        Some("SANDKASTEN_DB_MAX_OPEN_CONNS"),
        &[],
        "how many connections the database has is not for people to set",
    ),
    same("session_ttl_seconds", "SANDKASTEN_SESSION_TTL_SECONDS", "sessions.ttl_seconds"),
    Name {
        yaml: "defaults.cpu_limit",
        env: Some("SANDKASTEN_CPU_LIMIT"),
        meaning: Meaning::Cores(table::DEFAULT_VCPUS),
    },
    same("defaults.mem_limit_mb", "SANDKASTEN_MEM_LIMIT_MB", "sandboxes.default_memory_mb"),
    same("defaults.pids_limit", "SANDKASTEN_PIDS_LIMIT", "sandboxes.default_pids"),
    same(
        "defaults.max_exec_timeout_ms",
        "SANDKASTEN_MAX_EXEC_TIMEOUT_MS",
        "sessions.max_exec_timeout_ms",
    ),
    Name {
        yaml: "defaults.network_mode",
        env: Some("SANDKASTEN_NETWORK_MODE"),
        meaning: Meaning::Words {
            key: "sessions.network",
            known: &[("none", "none"), ("bridge", "default")],
            refused: "the host's own network is never given to a sandbox",
        },
    },
    nothing(
        "defaults.readonly_rootfs",
        Some("SANDKASTEN_READONLY_ROOTFS"),
        ON,
        "the root of a sandbox is always read-only; its workspace and /tmp are writable",
    ),
    nothing(
        "defaults.exec_mode",
        Some("SANDKASTEN_EXEC_MODE"),
        &["stateful"],
        "every session keeps the state of its shell",
    ),
    nothing(
        "defaults.shell_prefer",
        Some("SANDKASTEN_SHELL_PREFER"),
        &["bash"],
        "a session's shell is bash where the image has it, else sh",
    ),
    Name {
        yaml: "pool.enabled",
        env: Some("SANDKASTEN_POOL_ENABLED"),
        meaning: Meaning::PoolSwitch,
    },
    Name { yaml: "pool.images.*", env: None, meaning: Meaning::PoolImage },
    Name { yaml: "workspace.enabled", env: None, meaning: Meaning::Same("sessions.workspaces") },
    nothing(
        "workspace.persist_by_default",
        None,
        OFF,
        "a workspace is kept when a session names it",
    ),
    nothing(
        "security.seccomp",
        Some("SANDKASTEN_SECCOMP"),
        &["mvp", "strict"],
        "the system call filter is always on, and stricter than either profile",
    ),
    nothing(
        "dashboard.enabled",
        Some("SANDKASTEN_DASHBOARD_ENABLED"),
        OFF,
        "there is no dashboard",
    ),
    nothing(
        "auto_pull.enabled",
        Some("SANDKASTEN_AUTO_PULL"),
        OFF,
        "images are imported by `sandbank image import`, never fetched on their own",
    ),
    nothing("playground_config_path", None, &[], "there is no playground"),
    same("log", "SANDKASTEN_LOG", "log.level"),
];
