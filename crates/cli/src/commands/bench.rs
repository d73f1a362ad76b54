//! `sandbank bench`: this build measured on this machine, against its peers in the same run.
//!
//! Only the command line is here; what is measured and how is `sandbank-bench`'s.

use std::path::PathBuf;

use clap::Args;
use sandbank_bench::{Interrupted, Options, Part, Report};

use crate::context::Context;
use crate::failure::{Exit, Failure};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo sandbank bench --quick
  sudo sandbank bench --only create,command --json
  sudo sandbank bench --density 1000 --write docs/benchmarks.md

Starts a private server of this program on a temporary directory and removes it afterwards with
everything in it; where they are installed it is measured against bwrap, crun, runc, a private
Docker daemon, find and rg. Caches of the whole machine are emptied, except by --quick. Figures of one run compare with each other; take ratios to other machines.")]
pub(crate) struct BenchArgs {
    /// Few rounds and small sizes: shows that everything works
    #[arg(long)]
    pub(crate) quick: bool,
    /// Parts to run: create, command, shell, docker, stream, files, tree, search, workspace,
    /// terminal, pty, tools, pause, throughput, at-once, growth, density
    /// [default: all]
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// Most idle sandboxes of the density part [default: 3000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(crate) density: Option<u32>,
    /// Write the report to this Markdown file, and a plot beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context, args: BenchArgs) -> Result<u8, Failure> {
    let density = args.density.map(|count| count as usize);
    let (quick, only) = (args.quick, args.only);
    let report = sandbank_bench::run(Options { quick, only, density, ..Options::default() });
    let report = report.await.map_err(|error| failure(&error))?;
    if let Some(path) = &args.write {
        sandbank_bench::write(&report, path)
            .map_err(|error| Failure::new(Exit::CannotWrite, format!("cannot {error:#}")))?;
        context.ui.note(&format!("the report is in {}", path.display()));
    }
    print(context, &report)?;
    Ok(0)
}

fn print(context: &Context, report: &Report) -> Result<(), Failure> {
    if context.ui.json {
        return context.ui.document(report);
    }
    context.ui.bytes(sandbank_bench::to_markdown(report).as_bytes())
}

fn failure(error: &anyhow::Error) -> Failure {
    let message = format!("the benchmark did not finish: {error:#}");
    match error.downcast_ref() {
        Some(Interrupted) => Failure::new(Exit::Interrupted, message),
        None => Failure::new(Exit::Refused, message)
            .hint("`sandbank doctor` tells what sandboxes lack on this machine"),
    }
}
