//! What is sent to Docker: a root file system as it is, or an archive of our own making with one
//! image that has no name. Whatever else the caller's archive holds or calls itself stays here.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use sandbank_image_archive::{Archive, Member, Plan};
use serde_json::json;
use tokio::sync::mpsc;

use super::checked::Checked;

/// Of the archive, on the way to Docker.
const PIECE_BYTES: usize = 256 << 10;
const PIECES_AHEAD: usize = 4;

type Piece = io::Result<Bytes>;

/// Read by a thread of its own. `tell` hears of every piece that Docker took.
pub(super) fn pieces(
    checked: Arc<Checked>,
    tell: impl Fn(u64) + Send + 'static,
) -> impl Stream<Item = Piece> + Send + 'static {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut pipe = Pipe { sender: sender.clone(), piece: Vec::with_capacity(PIECE_BYTES) };
        let written = match checked.plan.config {
            Some(config) => saved(&checked.archive, &checked.plan, config, &mut pipe),
            None => copy(&mut checked.archive.section(checked.archive.whole()), &mut pipe),
        };
        if let Err(error) = written.and_then(|()| pipe.flush()) {
            // Docker may have had enough, which its answer says better.
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures_util::stream::unfold((receiver, tell), async |(mut receiver, tell)| {
        let piece = receiver.recv().await?;
        tell(piece.as_ref().map_or(0, |piece| piece.len() as u64));
        Some((piece, (receiver, tell)))
    })
}

/// As `docker save` writes one image.
fn saved(archive: &Archive, plan: &Plan, config: Member, out: &mut Pipe) -> io::Result<()> {
    let mut tar = tar::Builder::new(out);
    let names: Vec<String> = (0..plan.layers.len()).map(|at| format!("{at}/layer.tar")).collect();
    let manifest = json!([{ "Config": "config.json", "RepoTags": null, "Layers": names }]);
    let manifest = manifest.to_string();
    append(&mut tar, "manifest.json", manifest.len() as u64, manifest.as_bytes())?;
    append(&mut tar, "config.json", config.size, archive.section(config))?;
    for (name, (member, _)) in names.iter().zip(&plan.layers) {
        append(&mut tar, name, member.size, archive.section(*member))?;
    }
    tar.finish()
}

fn append(
    tar: &mut tar::Builder<&mut Pipe>,
    name: &str,
    size: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, content)
}

fn copy(from: &mut impl Read, to: &mut Pipe) -> io::Result<()> {
    io::copy(from, to).map(drop)
}

struct Pipe {
    sender: mpsc::Sender<Piece>,
    piece: Vec<u8>,
}

impl Write for Pipe {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        let room = PIECE_BYTES - self.piece.len();
        let taken = content.len().min(room);
        self.piece.extend_from_slice(&content[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        let sent = self.sender.blocking_send(Ok(piece.into()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
