//! Markdown tables whose columns line up, so that they can be read as they are.

pub(super) struct Table {
    /// Whether each column holds figures, which stand at the right.
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A heading that begins with `>` marks a column of figures.
    pub(super) fn new(headings: &[&str]) -> Self {
        let right = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let names = headings.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        Self { right, rows: vec![names] }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).to_vec());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub(super) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            out.push('|');
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                let width = *width;
                let text = if *right {
                    format!(" {cell:>width$} |")
                } else {
                    format!(" {cell:<width$} |")
                };
                out.push_str(&text);
            }
            out.push('\n');
            if number == 0 {
                out.push_str(&self.rule(&widths));
            }
        }
        out
    }

    fn rule(&self, widths: &[usize]) -> String {
        let cell = |(width, right): (&usize, &bool)| match right {
            true => format!("{}:|", "-".repeat(width + 1)),
            false => format!("{}|", "-".repeat(width + 2)),
        };
        let cells: String = widths.iter().zip(&self.right).map(cell).collect();
        format!("|{cells}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(&["who", ">p50"]);
        table.row(["sandbank".into(), "3.21".into()]);
        table.row(["a|b".into(), "12×".into()]);
        let expected = "\
| who      |  p50 |
|----------|-----:|
| sandbank | 3.21 |
| a\\|b     |  12× |
";
        assert_eq!(table.render(), expected);
        assert!(!table.is_empty() && Table::new(&["x"]).is_empty());
    }
}
