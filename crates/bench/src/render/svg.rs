//! The report as a plot: one group of bars per measure, each scaled to its longest bar.

use std::fmt::Write;

use super::number::short;
use crate::report::{Report, SUBJECT, Series};

const WIDTH: usize = 860;
const MARGIN: usize = 20;
const LABELS: usize = 230;
/// Room for the figure behind a bar.
const FIGURES: usize = 120;
const BAR: usize = 14;
const ROW: usize = 20;
const TITLE: usize = 30;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}.note{fill:#656d76}\
.paper{fill:#fff}.ours{fill:#c77d1e}.peer{fill:#9aa4af}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.paper{fill:#0d1117}\
.ours{fill:#e3a448}.peer{fill:#59636e}}";

pub fn to_svg(report: &Report) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    for section in &report.sections {
        for group in section.series.chunk_by(|a, b| a.measure == b.measure) {
            draw(&mut body, &mut y, &section.title, group);
        }
    }
    let height = y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"Medians of every measure\">\n\
         <style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

fn draw(out: &mut String, y: &mut usize, section: &str, group: &[Series]) {
    let longest = group.iter().map(|series| series.summary.p50).fold(0.0, f64::max);
    let Some(unit) = group.first().map(|series| series.unit) else { return };
    let measure = escape(&group[0].measure);
    let better = match unit.better() {
        crate::Better::Lower => "lower is better",
        crate::Better::Higher => "higher is better",
    };
    let note = format!("{}, {}, {better}", escape(section), unit.name());
    let base = *y + 16;
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{base}\">{measure} \
         <tspan class=\"note\" font-weight=\"400\">({note})</tspan></text>"
    );
    *y += TITLE;
    for series in group {
        bar(out, *y, series, longest);
        *y += ROW;
    }
    *y += ROW / 2;
}

fn bar(out: &mut String, y: usize, series: &Series, longest: f64) {
    let room = (WIDTH - 2 * MARGIN - LABELS - FIGURES) as f64;
    let value = series.summary.p50;
    let share = if longest > 0.0 { (value / longest).clamp(0.0, 1.0) } else { 0.0 };
    let (x, length) = (MARGIN + LABELS, (room * share).max(1.0));
    let class = if series.who.starts_with(SUBJECT) { "ours" } else { "peer" };
    let (label, base) = (MARGIN + LABELS - 8, y + BAR - 3);
    let (who, figure) = (escape(&series.who), short(value));
    let after = x as f64 + length + 6.0;
    let _ = writeln!(
        out,
        "<text x=\"{label}\" y=\"{base}\" text-anchor=\"end\">{who}</text>\
         <rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"2\"/>\
         <text x=\"{after:.1}\" y=\"{base}\">{figure} {}</text>",
        series.unit.name()
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_series_has_a_bar_and_ours_stand_out() {
        let svg = to_svg(&sample::report());
        assert_eq!(svg.matches("class=\"ours\"").count(), 2);
        assert_eq!(svg.matches("class=\"peer\"").count(), 1);
        assert_eq!(svg.matches("class=\"title\"").count(), 2);
    }

    #[test]
    fn the_longest_bar_fills_the_room_and_others_are_in_proportion() {
        let svg = to_svg(&sample::report());
        let room = (WIDTH - 2 * MARGIN - LABELS - FIGURES) as f64;
        assert!(svg.contains(&format!("width=\"{room:.1}\"")), "{svg}");
        assert!(svg.contains(&format!("width=\"{:.1}\"", room / 1.5)), "{svg}");
    }

    #[test]
    fn names_cannot_break_the_drawing() {
        let svg = to_svg(&sample::report());
        assert!(svg.contains("Create &lt;and&gt; destroy") && !svg.contains("<and>"));
    }
}
