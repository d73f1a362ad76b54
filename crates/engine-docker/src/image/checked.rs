//! An archive as it is before Docker hears of it: one image, for Docker's machine, whole, and no
//! larger than an image may be.
//!
//! Docker would find most of this out itself, but only after it has stored what it refuses, and
//! some of it never: it knows no bound.

use std::io::{self, BufReader};
use std::path::Path;

use sandbank_engine::EngineError;
use sandbank_image_archive::compression::{self, Counted};
use sandbank_image_archive::{
    Archive, Budget, Entry, Format, Hashed, ImportLimits, Kind, Member, PROGRAMS, Plan, TarStream,
    bad, damaged, elf_machine, plan,
};

pub(super) struct Checked {
    pub(super) archive: Archive,
    pub(super) plan: Plan,
}

/// What is wanted, and where an archive that is compressed can be uncompressed.
pub(super) struct Rules<'a> {
    pub(super) machine: &'a str,
    pub(super) limits: ImportLimits,
    pub(super) scratch: &'a Path,
}

impl Checked {
    /// Blocking. `tell` hears how many bytes of layers were looked at, and of how many.
    pub(super) fn open(
        path: &Path,
        rules: &Rules<'_>,
        tell: &dyn Fn(u64, u64),
    ) -> Result<Self, EngineError> {
        let archive = Archive::open(path, rules.scratch, rules.limits, |_| {})?;
        let plan = plan(&archive, rules.machine)?;
        if plan.layers.len() > rules.limits.layers {
            return Err(bad(format!("it has more than {} layers", rules.limits.layers)));
        }
        let total = plan.layers.iter().map(|(member, _)| member.size).sum();
        let (mut looked, mut left) = (0, rules.limits.bytes);
        let mut budget = Budget::new(rules.limits);
        for (member, expected) in &plan.layers {
            let tell = |bytes| tell(looked + bytes, total);
            let layer = Layer { archive: &archive, member: *member, machine: rules.machine };
            left = layer.check(expected.as_deref(), left, &mut budget, tell)?;
            looked += member.size;
        }
        Ok(Self { archive, plan })
    }
}

struct Layer<'a> {
    archive: &'a Archive,
    member: Member,
    machine: &'a str,
}

impl Layer<'_> {
    /// What is left of the bytes that all layers may have.
    fn check(
        &self,
        expected: Option<&str>,
        most: u64,
        budget: &mut Budget,
        tell: impl Fn(u64),
    ) -> Result<u64, EngineError> {
        let mut read = 0;
        let section = Counted::new(self.archive.section(self.member), |bytes| {
            read += bytes;
            tell(read);
        });
        let inner = compression::decoder(BufReader::with_capacity(256 << 10, section))?;
        let hashed = Hashed::new(inner, most, &|| false);
        // A layer with a digest needs no end mark to show that it is whole.
        let mut stream = TarStream::new(hashed, self.archive.format == Format::Rootfs);
        while let Some(entry) = stream.next_entry().map_err(damaged)? {
            budget.take_entry()?;
            budget.promise_bytes(entry.size)?;
            stays_inside(&entry)?;
            if is_program(&entry) {
                let mut head = [0; 20];
                let mut filled = 0;
                while filled < head.len() && filled < usize::try_from(entry.size).unwrap_or(20) {
                    filled += stream.read_body(&mut head[filled..]).map_err(damaged)?;
                }
                self.fits(&entry, &head)?;
            }
        }
        let mut rest = stream.into_inner();
        io::copy(&mut rest, &mut io::sink())
            .map_err(|error| bad(format!("it cannot be read to its end: {error}")))?;
        let left = rest.left();
        let id = rest.digest();
        match expected {
            Some(expected) if expected != id => {
                Err(bad(format!("a layer is {id}, not {expected} as its image says")))
            }
            _ => Ok(left),
        }
    }

    fn fits(&self, entry: &Entry, head: &[u8; 20]) -> Result<(), EngineError> {
        let found = elf_machine(head);
        if !head.starts_with(b"\x7fELF") || found == self.machine {
            return Ok(());
        }
        let program = String::from_utf8_lossy(&entry.path);
        Err(bad(format!("its {program} is for {found}, not for {}", self.machine)))
    }
}

/// Docker refuses it, too, in the middle of unpacking.
fn stays_inside(entry: &Entry) -> Result<(), EngineError> {
    if entry.path.split(|byte| *byte == b'/').any(|name| name == b"..") {
        let shown = String::from_utf8_lossy(&entry.path[..entry.path.len().min(200)]).into_owned();
        return Err(bad(format!("the name {shown:?} leads out of the image")));
    }
    Ok(())
}

fn is_program(entry: &Entry) -> bool {
    let path = entry.path.strip_prefix(b"./").unwrap_or(&entry.path);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    entry.kind == Kind::File && PROGRAMS.iter().any(|program| program.as_bytes() == path)
}
