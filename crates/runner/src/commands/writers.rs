//! How much of the input of one command came from whom.

use std::collections::VecDeque;

use sandbank_protocol::CommandId;

use crate::limits::MAX_WRITERS;

#[derive(Default)]
pub(super) struct Writers {
    /// Who wrote last is last.
    accepted: VecDeque<(CommandId, u64)>,
}

impl Writers {
    pub(super) fn accepted(&self, writer: &CommandId) -> u64 {
        self.accepted.iter().rev().find(|(known, _)| known == writer).map_or(0, |(_, bytes)| *bytes)
    }

    /// Who has not written for longest is forgotten when there are too many.
    pub(super) fn add(&mut self, writer: &CommandId, bytes: u64) {
        let at = self.accepted.iter().rposition(|(known, _)| known == writer);
        let before = at.and_then(|at| self.accepted.remove(at)).map_or(0, |(_, bytes)| bytes);
        if self.accepted.len() == MAX_WRITERS {
            self.accepted.pop_front();
        }
        self.accepted.push_back((writer.clone(), before + bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_writer_has_its_own_count_and_the_quietest_is_forgotten() {
        let name = |n: usize| -> CommandId { format!("w{n}").parse().unwrap() };
        let mut writers = Writers::default();
        (0..MAX_WRITERS).for_each(|n| writers.add(&name(n), 1));
        writers.add(&name(0), 4);
        writers.add(&name(MAX_WRITERS), 7);
        assert_eq!(writers.accepted(&name(0)), 5);
        assert_eq!(writers.accepted(&name(1)), 0);
        assert_eq!(writers.accepted(&name(2)), 1);
        assert_eq!(writers.accepted(&name(MAX_WRITERS)), 7);
    }
}
