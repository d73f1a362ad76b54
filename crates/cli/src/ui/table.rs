//! Rows for people: aligned columns on a terminal, tab-separated text everywhere else.

use clap::builder::styling::AnsiColor;
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ContentArrangement};

use super::{Ui, text};
use crate::failure::Failure;

pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

struct Value {
    text: String,
    colour: Option<AnsiColor>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Cells may hold what a sandbox chose, so control characters are shown, not obeyed.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Option<AnsiColor>); N]) {
        let value = |(cell, colour): (String, _)| Value { text: text::printable(&cell), colour };
        self.rows.push(cells.into_iter().map(value).collect());
    }

    pub(crate) fn print(&self, ui: &Ui) -> Result<(), Failure> {
        if ui.stdout_is_terminal { self.print_aligned(ui) } else { self.print_tabs(ui) }
    }

    fn print_aligned(&self, ui: &Ui) -> Result<(), Failure> {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        let coloured = ui.colours_stdout();
        table.set_header(self.header.iter().map(|name| match coloured {
            true => Cell::new(name).add_attribute(Attribute::Bold),
            false => Cell::new(name),
        }));
        for row in &self.rows {
            table.add_row(row.iter().map(|value| match value.colour {
                Some(colour) if coloured => Cell::new(&value.text).fg(as_cell_colour(colour)),
                _ => Cell::new(&value.text),
            }));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for line in table.lines() {
            ui.line(line.trim_end())?;
        }
        Ok(())
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
