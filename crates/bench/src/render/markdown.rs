//! The report as Markdown.

use super::number::short;
use super::table::Table;
use crate::report::{Comparison, Goal, Report, Section, Skipped, Unit};
use crate::summary::Better;

const HOW_TO_READ: &str = "\
Everything below comes from one run of one tool. Contenders take turns, in an order that rotates \
from round to round; the first rounds are thrown away. p50 is the median; 95 % of the samples were \
at least as good as p95, and 99 % as p99, so these are the slow ends of times and of rates. 1 MB is \
10⁶ bytes. Ratios are medians divided by medians of the same run, and p95 by p95: they travel to \
other machines better than times do. Goals are for medians; they are shown, never asserted.";

pub fn to_markdown(report: &Report) -> String {
    let mut blocks = vec!["# Benchmarks".to_owned()];
    blocks.extend(warnings(report));
    blocks.push(HOW_TO_READ.to_owned());
    blocks.push(repeat(report));
    blocks.push(machine(report));
    blocks.push(contenders(report));
    blocks.push(summary(report));
    blocks.extend(report.sections.iter().map(section));
    format!("{}\n", joined(&blocks))
}

fn warnings(report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    if report.debug_build {
        warnings.push("> **A debug build was measured: these figures say nothing.**".to_owned());
    }
    if report.quick {
        warnings
            .push("> A quick run with few samples: it shows that all works, no more.".to_owned());
    }
    warnings
}

fn repeat(report: &Report) -> String {
    format!(
        "Measured on {} with sandbank {}, in {:.0} s. To repeat it, run `{}` as root; `make \
         bench` does so with a fresh release build and writes this file.",
        report.measured_on, report.version, report.took_s, report.command
    )
}

fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let kind = if machine.virtual_machine { "virtual machine" } else { "no hypervisor seen" };
    let mut table = Table::new(&["machine", ""]);
    table.row(["processor".into(), format!("{} ({kind})", machine.cpu)]);
    table.row(["cores".into(), machine.cores.to_string()]);
    table.row(["memory".into(), format!("{:.0} GB", machine.memory_gb)]);
    table.row(["system".into(), format!("{}, Linux {}", machine.system, machine.kernel)]);
    table.row(["cgroups".into(), machine.cgroup.clone()]);
    table.row(["workspaces".into(), machine.storage.clone()]);
    table.row(["load before".into(), short(machine.load_before)]);
    table.render()
}

fn contenders(report: &Report) -> String {
    let mut lines: Vec<String> =
        report.contenders.iter().map(|c| format!("- **{}**: {}", c.name, c.what)).collect();
    lines.extend(report.skipped.iter().map(skipped));
    lines.join("\n")
}

fn skipped(skipped: &Skipped) -> String {
    format!("- skipped: {}: {}", skipped.name, skipped.reason)
}

/// Every comparison that has a goal, in one place.
fn summary(report: &Report) -> String {
    let all = report.sections.iter().flat_map(|section| &section.comparisons);
    let table = comparisons(all.filter(|comparison| comparison.goal.is_some()));
    if table.is_empty() {
        return table;
    }
    let unmeasured = report.unmeasured.iter().map(|u| format!("- {}: {}", u.name, u.reason));
    let unmeasured = unmeasured.collect::<Vec<_>>().join("\n");
    joined(&[
        format!("## Against the goals\n\n{table}"),
        if unmeasured.is_empty() { unmeasured } else { format!("Not measured:\n\n{unmeasured}") },
    ])
}

fn section(section: &Section) -> String {
    let mut blocks = vec![format!("## {}", section.title), section.method.clone()];
    blocks.push(series(section));
    blocks.push(comparisons(section.comparisons.iter()));
    blocks.push(facts(section));
    blocks.push(section.skipped.iter().map(skipped).collect::<Vec<_>>().join("\n"));
    joined(&blocks)
}

/// Blocks that say something, an empty line between each.
fn joined(blocks: &[String]) -> String {
    let blocks: Vec<_> = blocks.iter().map(|b| b.trim_end()).filter(|b| !b.is_empty()).collect();
    blocks.join("\n\n")
}

fn series(section: &Section) -> String {
    let mut table = Table::new(&["measure", "who", ">n", ">p50", ">p95", ">p99", "unit"]);
    let mut last = "";
    for series in &section.series {
        let first_row = series.measure != last;
        let measure = if first_row { series.measure.clone() } else { String::new() };
        let (summary, unit) = (series.summary, series.unit.name().to_owned());
        let [p50, p95, p99] = [summary.p50, summary.p95, summary.p99].map(short);
        table.row([measure, series.who.clone(), summary.n.to_string(), p50, p95, p99, unit]);
        last = &series.measure;
    }
    if table.is_empty() { String::new() } else { table.render() }
}

fn comparisons<'a>(all: impl Iterator<Item = &'a Comparison>) -> String {
    let mut table = Table::new(&["comparison", ">value", ">at p95", "better", ">goal", "met"]);
    for each in all {
        let better = match each.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        };
        let met = match each.goal.map(|goal| goal.is_met_by(each.value)) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let goal = each.goal.map(|goal| bound(goal, each.unit)).unwrap_or_default();
        let value = with_unit(each.value, each.unit);
        let p95 = each.p95.map(|p95| with_unit(p95, each.unit)).unwrap_or_default();
        table.row([each.what.clone(), value, p95, better.to_owned(), goal, met.to_owned()]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

fn facts(section: &Section) -> String {
    let mut table = Table::new(&["also", ">"]);
    for fact in &section.facts {
        table.row([fact.name.clone(), with_unit(fact.value, fact.unit)]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

fn bound(goal: Goal, unit: Unit) -> String {
    match goal {
        Goal::AtMost(limit) => format!("≤ {}", with_unit(limit, unit)),
        Goal::AtLeast(limit) => format!("≥ {}", with_unit(limit, unit)),
    }
}

fn with_unit(value: f64, unit: Unit) -> String {
    format!("{} {}", short(value), unit.name()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_report_names_figures_ratios_goals_and_what_was_skipped() {
        let text = to_markdown(&sample::report());
        for expected in [
            "| create to ready | sandbank |",
            "| 4.50 |",
            "create to ready: sandbank ÷ bwrap",
            "0.667 ×",
            "≤ 1 ×",
            "skipped: Docker: not here",
            "Some CPU (virtual machine)",
            "`sandbank bench`",
            "12.3 MB",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
    }

    #[test]
    fn goals_are_told_met_or_not() {
        let text = to_markdown(&sample::report());
        let line = |what: &str| text.lines().find(|l| l.contains(what)).unwrap().to_owned();
        assert!(line("sandbank ÷ bwrap").contains("| yes |"));
        assert!(line("bwrap ÷ sandbank").contains("| no  |"));
    }

    #[test]
    fn debug_and_quick_runs_say_so() {
        let report = sample::report();
        assert!(!to_markdown(&report).contains("\n> "));
        let text = to_markdown(&Report { debug_build: true, quick: true, ..report });
        assert!(text.contains("A debug build") && text.contains("A quick run"));
    }
}
