//! Models of terminals: which commands have one, and what all of them may cost.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sandbank_protocol::{CommandSpec, Fault, FaultCode, PtySize, Screen, ScreenCursor};
use sandbank_terminal::{Cursor, Terminal};

use crate::limits::{MAX_ENDED_SCREENS, MAX_SCREEN_CELLS};

/// What the models of a sandbox share.
#[derive(Default)]
pub(super) struct Screens {
    /// Places of all models.
    cells: Rc<Cell<usize>>,
    /// Ended commands that still have theirs, by order of ending.
    ended: RefCell<VecDeque<u64>>,
}

/// The model of one terminal, fed with every byte that is numbered.
pub(super) struct Model {
    terminal: Terminal,
    size: PtySize,
    cells: Rc<Cell<usize>>,
}

impl Screens {
    /// None when the spec does not ask for one. `forget` drops the model of an ended command.
    pub(super) fn model(
        &self,
        spec: &CommandSpec,
        forget: impl Fn(u64),
    ) -> Result<Option<Model>, Fault> {
        if !spec.screen {
            return Ok(None);
        }
        let Some(size) = spec.pty.map(PtySize::clamped) else {
            let message = "only a command on a terminal has a screen";
            return Err(Fault::new(FaultCode::Invalid, message));
        };
        while self.cells.get() + places(size) > MAX_SCREEN_CELLS {
            let Some(oldest) = self.ended.borrow_mut().pop_front() else {
                return Err(too_many());
            };
            forget(oldest);
        }
        self.cells.set(self.cells.get() + places(size));
        let terminal = Terminal::new(size.rows, size.cols);
        Ok(Some(Model { terminal, size, cells: self.cells.clone() }))
    }

    /// Which command's model goes because this one ended.
    pub(super) fn ended(&self, number: u64) -> Option<u64> {
        let mut ended = self.ended.borrow_mut();
        ended.push_back(number);
        if ended.len() > MAX_ENDED_SCREENS { ended.pop_front() } else { None }
    }
}

impl Model {
    pub(super) fn feed(&mut self, output: &[u8]) {
        self.terminal.feed(output);
    }

    /// Whether all models together may have it at that size.
    pub(super) fn admit(&self, size: PtySize) -> Result<(), Fault> {
        let others = self.cells.get() - places(self.size);
        if others + places(size) > MAX_SCREEN_CELLS { Err(too_many()) } else { Ok(()) }
    }

    pub(super) fn resize(&mut self, size: PtySize) {
        self.cells.set(self.cells.get() - places(self.size) + places(size));
        self.size = size;
        self.terminal.resize(size.rows, size.cols);
    }

    /// As it is after frame `seq`.
    pub(super) fn screen(&self, seq: u64) -> Screen {
        let Cursor { row, col, visible } = self.terminal.cursor();
        Screen {
            seq,
            rows: self.size.rows,
            cols: self.size.cols,
            title: self.terminal.title().to_owned(),
            alternate: self.terminal.alternate(),
            cursor: ScreenCursor { row, col, visible },
            repaint: STANDARD.encode(self.terminal.repaint()),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.cells.set(self.cells.get() - places(self.size));
    }
}

/// Of both screens.
fn places(size: PtySize) -> usize {
    2 * usize::from(size.rows) * usize::from(size.cols)
}

fn too_many() -> Fault {
    let message = format!("all screens together would have more than {MAX_SCREEN_CELLS} places");
    Fault::new(FaultCode::LimitReached, message)
}
