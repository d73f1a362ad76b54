//! Turns an archive into layers and a record: all of it, or nothing.

use std::cell::Cell;
use std::io::{self, BufReader};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sandbank_engine::{EngineError, ImageName, ImportProgress};
use sandbank_image_archive::compression::{self, Counted};
use sandbank_image_archive::{
    Archive, Budget, Format, Hashed, ImportLimits, Member, Plan, TarStream, bad, machine, plan,
};
use tokio_util::sync::CancellationToken;

use super::layers;
use super::record::{LayerRecord, Record};
use super::scratch::{self, Scratch};
use super::unpack::Unpacker;
use crate::storage::remove_tree;

/// Progress in bytes of the archive file: half for uncompressing it where that is needed, the
/// rest for unpacking.
struct Progress<'a> {
    report: &'a dyn Fn(ImportProgress),
    total: u64,
    done: Cell<u64>,
    told: Cell<u64>,
}

/// Reports are at least this many bytes apart.
const REPORT_BYTES: u64 = 1 << 20;

impl Progress<'_> {
    fn add(&self, bytes: u64) {
        let done = self.done.get() + bytes;
        self.done.set(done);
        if done - self.told.get() >= REPORT_BYTES {
            self.tell(done);
        }
    }

    fn tell(&self, done: u64) {
        self.told.set(done);
        (self.report)(ImportProgress { bytes_done: done.min(self.total), bytes_total: self.total });
    }
}

/// Tells the size of a layer that an earlier import unpacked.
pub(super) type KnownLayers<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// One import in progress.
pub(super) struct Import<'a> {
    pub(super) limits: ImportLimits,
    /// Where finished layers are.
    pub(super) layers: &'a Path,
    pub(super) scratch: &'a Scratch,
    pub(super) cancelled: &'a CancellationToken,
}

impl Import<'_> {
    /// Layers are in place when this returns; the record is the caller's to write.
    pub(super) fn run(
        &self,
        name: &ImageName,
        path: &Path,
        report: &dyn Fn(ImportProgress),
        known: KnownLayers<'_>,
    ) -> Result<Record, EngineError> {
        let length = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
        let progress =
            Progress { report, total: 2 * length, done: Cell::new(0), told: Cell::new(0) };
        progress.tell(0);
        let archive =
            Archive::open(path, self.scratch.path(), self.limits, |bytes| progress.add(bytes))?;
        let plan = plan(&archive, machine())?;
        if plan.layers.len() > self.limits.layers {
            return Err(bad(format!("it has more than {} layers", self.limits.layers)));
        }
        self.unpack(name, &archive, &plan, known, length, report)
    }

    /// The second half of an import; `length` is what the first half had to read.
    pub(super) fn unpack(
        &self,
        name: &ImageName,
        archive: &Archive,
        plan: &Plan,
        known: KnownLayers<'_>,
        length: u64,
        report: &dyn Fn(ImportProgress),
    ) -> Result<Record, EngineError> {
        let progress = Progress {
            report,
            total: 2 * length,
            done: Cell::new(length),
            told: Cell::new(length),
        };
        let mut budget = Budget::new(self.limits);
        let stored: u64 = plan.layers.iter().map(|(member, _)| member.size).sum();
        let scale = |bytes: u64| (bytes as f64 * length as f64 / stored.max(1) as f64) as u64;
        let mut records: Vec<LayerRecord> = Vec::new();
        for (index, (member, expected)) in plan.layers.iter().enumerate() {
            let seen = expected.as_deref().and_then(|id| {
                let earlier = records.iter().find(|layer| layer.id == id).map(|layer| layer.bytes);
                earlier.or_else(|| known(id)).map(|bytes| LayerRecord { id: id.to_owned(), bytes })
            });
            let layer = match seen {
                Some(layer) => {
                    progress.add(scale(member.size));
                    layer
                }
                None => {
                    let tell = |bytes| progress.add(scale(bytes));
                    let dir = self.scratch.directory(&index.to_string())?;
                    let expected = expected.as_deref();
                    let layer = self.layer(archive, *member, expected, &dir, &mut budget, tell)?;
                    if known(&layer.id).is_none() {
                        self.publish(&dir, &layer.id)?;
                    }
                    layer
                }
            };
            records.push(layer);
        }
        progress.tell(progress.total);
        let digest = plan.digest.clone().unwrap_or_else(|| records[0].id.clone());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Record {
            name: name.clone(),
            digest,
            layers: records,
            env: plan.env.clone(),
            imported_at_ms: now.as_millis() as u64,
        })
    }

    /// Puts a layer in its place. Without a record, what is there is a leftover.
    fn publish(&self, dir: &Path, id: &str) -> Result<(), EngineError> {
        let place = self.layers.join(id);
        remove_tree(&place).map_err(EngineError::io("remove a leftover layer"))?;
        scratch::publish(dir, &place)
    }

    /// Unpacks one layer into `dir`.
    fn layer(
        &self,
        archive: &Archive,
        member: Member,
        expected: Option<&str>,
        dir: &Path,
        budget: &mut Budget,
        tell: impl FnMut(u64),
    ) -> Result<LayerRecord, EngineError> {
        let section = Counted::new(archive.section(member), tell);
        let section = BufReader::with_capacity(256 << 10, section);
        let inner = compression::decoder(section)?;
        let is_cancelled = || self.cancelled.is_cancelled();
        let hashed = Hashed::new(inner, self.limits.bytes, &is_cancelled);
        // A layer with a digest needs no end mark to show that it is whole.
        let mut stream = TarStream::new(hashed, archive.format == Format::Rootfs);
        let before = budget.bytes();
        Unpacker::new(dir, budget)?.unpack(&mut stream)?;
        let mut rest = stream.into_inner();
        io::copy(&mut rest, &mut io::sink())
            .map_err(|error| bad(format!("it cannot be read to its end: {error}")))?;
        let id = rest.digest();
        if let Some(expected) = expected
            && expected != id
        {
            return Err(bad(format!("a layer is {id}, not {expected} as its image says")));
        }
        layers::check_machine(dir)?;
        Ok(LayerRecord { id, bytes: budget.bytes() - before })
    }
}
