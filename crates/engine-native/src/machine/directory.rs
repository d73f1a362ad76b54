//! `<data>/machines/<id>/`: the record, the socket and the log of each machine, for root only.
//!
//! A machine's directory is made before anything else of it and removed after everything else, so
//! whatever exists of a machine is found through it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sandbank_engine::{EngineError, SandboxId};

use super::Record;
use crate::limits::LISTEN_BACKLOG;

const RECORD: &str = "machine.json";
const RECORD_DRAFT: &str = "machine.json.new";
const SOCKET: &str = "runner.sock";
const LOG: &str = "runner.log";
const LOG_PIPE: &str = "runner.log.pipe";

pub(crate) struct Directory {
    path: PathBuf,
    /// Open, so that sockets in it have short names: a Unix address ends after 108 bytes.
    fd: OwnedFd,
    /// Locked while a daemon uses the directory.
    _lock: File,
}

impl Directory {
    pub(crate) fn open(data_dir: &Path) -> Result<Self, EngineError> {
        let path = data_dir.join("machines");
        let open = "open the machines' directory";
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(EngineError::io(open))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join(".lock"))
            .map_err(EngineError::io(open))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let text = format!("another daemon uses {}", data_dir.display());
                return Err(EngineError::Unavailable(text));
            }
            Err(fs::TryLockError::Error(error)) => return Err(EngineError::io(open)(error)),
        }
        let fd = File::open(&path).map_err(EngineError::io(open))?.into();
        Ok(Self { path, fd, _lock: lock })
    }

    fn of(&self, id: &SandboxId) -> PathBuf {
        self.path.join(id.as_str())
    }

    pub(crate) fn make(&self, id: &SandboxId) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(self.of(id))
    }

    pub(crate) fn exists(&self, id: &SandboxId) -> bool {
        self.of(id).is_dir()
    }

    /// Replaces the record: a reader sees the old one or the new one.
    pub(crate) fn write(&self, id: &SandboxId, record: &Record) -> io::Result<()> {
        let dir = self.of(id);
        let draft = dir.join(RECORD_DRAFT);
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        fs::rename(draft, dir.join(RECORD))
    }

    /// None when it was never finished. A record that is there but not understood is an error:
    /// the machine behind it may be alive, and only its owner may say that it is not needed.
    pub(crate) fn read(&self, id: &SandboxId) -> io::Result<Option<Record>> {
        let path = self.of(id).join(RECORD);
        let bytes = match fs::read(&path) {
            Ok(bytes) if bytes.is_empty() => return Ok(None),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let unreadable = |why: String| {
            let path = path.display();
            let advice = "use the version of sandbank that wrote it, or remove its directory";
            io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {why}; {advice}"))
        };
        match serde_json::from_slice::<Record>(&bytes) {
            Ok(record) if record.spec.id == *id => Ok(Some(record)),
            Ok(record) => Err(unreadable(format!("it describes {}", record.spec.id))),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// The address of the machine's socket, whatever the length of the data directory's path.
    pub(crate) fn socket(&self, id: &SandboxId) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{id}/{SOCKET}", self.fd.as_raw_fd()))
    }

    /// A listening socket that the runner inherits. It stays reachable by its name, whoever else
    /// comes and goes.
    pub(crate) fn listen(&self, id: &SandboxId) -> io::Result<OwnedFd> {
        use rustix::net::{
            AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
        };
        let kind = SocketType::STREAM;
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new(self.socket(id))?)?;
        listen(&socket, LISTEN_BACKLOG)?;
        Ok(socket)
    }

    /// An empty log, and the pipe that the runner inherits as its stderr. The machine has no
    /// descriptor of the file, so it cannot fill the host's disk. The pipe is found by its name by
    /// whichever daemon is there, and as the runner has both of its ends, it outlives them all.
    pub(crate) fn make_log(&self, id: &SandboxId) -> io::Result<OwnedFd> {
        use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
        let dir = self.of(id);
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(dir.join(LOG))?;
        let pipe = dir.join(LOG_PIPE);
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // A runner whose log nobody reads must not wait for that.
        Ok(open(&pipe, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Where what a machine's runner says comes from, and where it is written.
    pub(crate) fn log(&self, id: &SandboxId) -> (PathBuf, PathBuf) {
        let dir = self.of(id);
        (dir.join(LOG_PIPE), dir.join(LOG))
    }

    pub(crate) fn remove(&self, id: &SandboxId) -> io::Result<()> {
        let dir = self.of(id);
        for file in [RECORD, SOCKET, LOG, LOG_PIPE] {
            // Whatever keeps one from going keeps the directory, too.
            let _ = fs::remove_file(dir.join(file));
        }
        let removed = match fs::remove_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                fs::remove_dir_all(&dir)
            }
            removed => removed,
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Every machine that has a directory, half-made ones too.
    pub(crate) fn list(&self) -> io::Result<Vec<SandboxId>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            if let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbank_engine::{ImageName, Limits, MachineSpec, NetworkMode};

    fn record(id: &SandboxId) -> Record {
        let limits = Limits {
            cpu_millis: 1000,
            memory_bytes: 1 << 28,
            pids: 64,
            disk_bytes: None,
            tmp_bytes: 1 << 20,
        };
        let spec = MachineSpec {
            id: id.clone(),
            image: ImageName::host(),
            limits,
            network: NetworkMode::None,
            env: Default::default(),
            workspace: None,
        };
        Record {
            spec,
            uid_slot: 9,
            network_slot: None,
            boot: "b".into(),
            process: None,
            runner_digest: "d".into(),
        }
    }

    #[test]
    fn a_record_survives_its_writer_and_a_damaged_one_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        let id = SandboxId::random();
        let directory = Directory::open(data.path()).unwrap();
        directory.make(&id).unwrap();
        assert_eq!(directory.read(&id).unwrap(), None);
        directory.write(&id, &record(&id)).unwrap();
        drop(directory);

        let directory = Directory::open(data.path()).unwrap();
        assert_eq!(directory.list().unwrap(), std::slice::from_ref(&id));
        assert_eq!(directory.read(&id).unwrap(), Some(record(&id)));
        fs::write(directory.of(&id).join(RECORD), b"{\"spec\":").unwrap();
        let refusal = directory.read(&id).unwrap_err().to_string();
        assert!(refusal.contains("remove its directory"), "{refusal}");
        directory.remove(&id).unwrap();
        directory.remove(&id).unwrap();
        assert!(directory.list().unwrap().is_empty());
    }

    #[test]
    fn two_daemons_cannot_share_a_directory() {
        let data = tempfile::tempdir().unwrap();
        let _first = Directory::open(data.path()).unwrap();
        assert!(matches!(Directory::open(data.path()), Err(EngineError::Unavailable(_))));
    }

    #[test]
    fn sockets_are_reached_below_a_path_longer_than_an_address() {
        let data = tempfile::tempdir().unwrap();
        let deep = data.path().join("d".repeat(200));
        let directory = Directory::open(&deep).unwrap();
        let id = SandboxId::random();
        directory.make(&id).unwrap();
        let _listener = directory.listen(&id).unwrap();
        std::os::unix::net::UnixStream::connect(directory.socket(&id)).unwrap();
    }
}
