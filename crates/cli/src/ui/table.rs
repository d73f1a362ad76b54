//! Rows for people: aligned columns on a terminal, tab-separated text everywhere else.

use clap::builder::styling::AnsiColor;
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row};

use super::{Ui, text};
use crate::failure::Failure;

pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
    /// Cut what does not fit the terminal, rather than wrap it.
    one_line: bool,
    /// The place of a column that rows have and the table has not.
    left_out: Option<usize>,
}

struct Value {
    text: String,
    colour: Option<AnsiColor>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new(), one_line: false, left_out: None }
    }

    /// For rows whose first cell says where the rest can be read in full.
    #[must_use]
    pub(crate) fn one_line(self) -> Self {
        Self { one_line: true, ..self }
    }

    /// A column less, also of the rows to come.
    #[must_use]
    pub(crate) fn without(mut self, column: &'static str) -> Self {
        self.left_out = self.header.iter().position(|name| *name == column);
        self.header.retain(|name| *name != column);
        self
    }

    /// Cells may hold what a sandbox chose, so control characters are shown, not obeyed.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Option<AnsiColor>); N]) {
        let value = |(cell, colour): (String, _)| Value { text: text::printable(&cell), colour };
        let mut row: Vec<_> = cells.into_iter().map(value).collect();
        if let Some(place) = self.left_out {
            row.remove(place);
        }
        self.rows.push(row);
    }

    pub(crate) fn print(&self, ui: &Ui) -> Result<(), Failure> {
        if ui.stdout_is_terminal { self.print_aligned(ui) } else { self.print_tabs(ui) }
    }

    fn print_aligned(&self, ui: &Ui) -> Result<(), Failure> {
        for line in self.aligned(ui.colours_stdout(), None) {
            ui.line(line.trim_end())?;
        }
        Ok(())
    }

    /// To the terminal's width, or another.
    fn aligned(&self, coloured: bool, width: Option<u16>) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if let Some(width) = width {
            table.set_width(width);
        }
        table.set_header(self.header.iter().map(|name| match coloured {
            true => Cell::new(name).add_attribute(Attribute::Bold),
            false => Cell::new(name),
        }));
        for row in &self.rows {
            let mut row = Row::from(row.iter().map(|value| match value.colour {
                Some(colour) if coloured => Cell::new(&value.text).fg(as_cell_colour(colour)),
                _ => Cell::new(&value.text),
            }));
            if self.one_line {
                row.max_height(1);
            }
            table.add_row(row);
        }
        // What a row is about is what people copy.
        if let Some(first) = table.column_mut(0) {
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.lines().collect()
    }

    fn print_tabs(&self, ui: &Ui) -> Result<(), Failure> {
        ui.line(&self.header.join("\t"))?;
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(|value| value.text.as_str()).collect();
            ui.line(&cells.join("\t"))?;
        }
        Ok(())
    }
}

fn as_cell_colour(colour: AnsiColor) -> Color {
    match colour {
        AnsiColor::Green => Color::DarkGreen,
        AnsiColor::Yellow => Color::DarkYellow,
        AnsiColor::Red => Color::DarkRed,
        _ => Color::Reset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_narrow_terminal_ids_stay_whole_and_each_row_on_its_line() {
        let id = "sb0123456789abcdef";
        let mut table = Table::new(&["ID", "KEY", "STATE", "IMAGE"]).one_line();
        for _ in 0..2 {
            let long = "a word that is long ".repeat(4);
            table.row([id.to_owned(), long.clone(), "running".to_owned(), long].map(|c| (c, None)));
        }
        let lines = table.aligned(false, Some(60));
        let rows: Vec<_> = lines.iter().filter(|line| line.starts_with(id)).collect();
        assert_eq!(rows.len(), 2, "{lines:#?}");
        assert!(lines.iter().all(|line| line.trim_end().chars().count() <= 60), "{lines:#?}");
    }
}
