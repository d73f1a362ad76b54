//! Combining characters, apart from the cells: few cells have any.

use crate::limits::{MAX_MARKED_CELLS, MAX_MARKS};

#[derive(Default)]
pub(crate) struct Marks {
    /// Entry n is that of mark n + 1; unused places are NUL.
    entries: Vec<[char; MAX_MARKS]>,
    /// Entries no cell has any more.
    free: Vec<u16>,
}

impl Marks {
    pub(crate) fn of(&self, id: u16) -> &[char] {
        let Some(entry) = usize::from(id).checked_sub(1).and_then(|at| self.entries.get(at)) else {
            return &[];
        };
        let used = entry.iter().position(|mark| *mark == '\0').unwrap_or(MAX_MARKS);
        &entry[..used]
    }

    /// Adds to an entry, or to a new one; none when there is no room for another.
    pub(crate) fn add(&mut self, id: u16, mark: char) -> Option<u16> {
        let id = if id == 0 { self.make()? } else { id };
        let used = self.of(id).len();
        if let Some(place) = self.entries[usize::from(id) - 1].get_mut(used) {
            *place = mark;
        }
        Some(id)
    }

    fn make(&mut self) -> Option<u16> {
        if let Some(id) = self.free.pop() {
            self.entries[usize::from(id) - 1] = ['\0'; MAX_MARKS];
            return Some(id);
        }
        if self.entries.len() == MAX_MARKED_CELLS {
            return None;
        }
        self.entries.push(['\0'; MAX_MARKS]);
        Some(self.entries.len() as u16)
    }

    /// Takes back every entry that is not among the used ones.
    pub(crate) fn keep(&mut self, used: impl Iterator<Item = u16>) {
        let mut kept = vec![false; self.entries.len() + 1];
        used.for_each(|id| kept[usize::from(id)] = true);
        self.free = (1..kept.len()).filter(|id| !kept[*id]).map(|id| id as u16).collect();
    }
}
