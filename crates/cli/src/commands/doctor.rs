//! `sandbank doctor`: what this machine can enforce, found by trying it.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use clap::builder::styling::AnsiColor;
use sandbank_engine::{Control, ControlReport, Engine, InstanceId, Standing};
use sandbank_server::config::{DiskQuota, EngineKind, Settings};
use serde_json::{Value, json};

use crate::context::Context;
use crate::daemon::choose_engine;
use crate::failure::{Exit, Failure};
use crate::locate;
use crate::scratch::Scratch;
use crate::ui::{Progress, Ui};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo sandbank doctor
  sudo sandbank doctor --attack
  sandbank doctor --json | jq '.controls[] | select(.standing != \"in_force\")'

Ends with 0 when every control that sandboxes rely on is in force, and with 78 otherwise. Needs no
server; it tries each control the way a sandbox would get it. With --attack it ends with 78 when
an attack that should have failed did not.")]
pub(crate) struct DoctorArgs {
    /// Attack a test sandbox from inside and from the host, and show what held
    #[arg(long)]
    attack: bool,
    /// Only this engine: native or docker [default: every one that is configured]
    #[arg(long, value_parser = parse_engine, value_name = "NAME")]
    engine: Option<EngineKind>,
}

fn parse_engine(text: &str) -> Result<EngineKind, String> {
    EngineKind::named(text).ok_or_else(|| "it is native or docker".to_owned())
}

pub(crate) async fn run(context: &Context, args: DoctorArgs) -> Result<u8, Failure> {
    let mut settings = locate::settings()?;
    if let Some(engine) = args.engine {
        (settings.engine, settings.other_engines) = (engine, Vec::new());
    }
    let mut kinds = vec![settings.engine];
    kinds.append(&mut settings.other_engines);
    let is_alone = kinds.len() == 1;
    let (mut documents, mut trouble) = (Vec::new(), None);
    for kind in kinds {
        let settings = Settings { engine: kind, ..settings.clone() };
        let looked = if args.attack {
            attack(context, &settings, is_alone).await
        } else {
            look(context, &settings).await
        };
        match looked {
            Ok(Some((document, found))) => {
                documents.push(document);
                trouble = trouble.or(found);
            }
            Ok(None) => return Ok(Exit::Interrupted as u8),
            Err(failure) if is_alone => return Err(failure),
            // The others are looked at all the same.
            Err(failure) => {
                let name = kind.name().unwrap_or_default();
                if !context.ui.json {
                    context.ui.line(&format!("engine   {name}: {}", failure.message))?;
                }
                let (verdict, rows) =
                    if args.attack { ("contained", "probes") } else { ("ready", "controls") };
                let error = &failure.message;
                documents.push(json!({ verdict: false, "engine": name, "error": error, rows: [] }));
                trouble = trouble.or(Some(failure));
            }
        }
        if !is_alone && !context.ui.json {
            context.ui.line("")?;
        }
    }
    if context.ui.json {
        let mut document = documents.remove(0);
        if !is_alone {
            document["otherEngines"] = documents.into();
        }
        context.ui.document(&document)?;
    }
    trouble.map_or(Ok(0), Err)
}

/// A document, and what is not as it should be; none when a signal came first.
type Looked = Result<Option<(Value, Option<Failure>)>, Failure>;

async fn attack(context: &Context, settings: &Settings, is_alone: bool) -> Looked {
    let (scratch, engine) = engine_near(settings, &settings.data_dir).await?;
    if !is_alone && !context.ui.json {
        context.ui.line(&format!("engine   {}", engine.name()))?;
    }
    let ended = super::attack::run(context, &*engine).await;
    engine.shutdown().await;
    drop(scratch);
    ended
}

async fn look(context: &Context, settings: &Settings) -> Looked {
    let progress = Progress::spinner(&context.ui, "trying every control");
    let examined = examine(settings, &settings.data_dir).await;
    progress.done();
    let examined = examined?;
    if !context.ui.json {
        examined.print(context, settings)?;
    }
    Ok(Some((examined.document(settings), examined.trouble(settings))))
}

/// What a start on this machine would refuse sandboxes for.
pub(crate) async fn missing_controls(
    settings: &Settings,
    near: &Path,
) -> Result<Vec<ControlReport>, Failure> {
    let examined = examine(settings, near).await?;
    Ok(examined.missing(settings).into_iter().cloned().collect())
}

pub(crate) fn lacks(first: &ControlReport, count: usize) -> Failure {
    let name = first.control.name();
    let message = match count {
        1 => format!("the control {name} is not in force: {}", first.detail),
        _ => format!("{count} controls are not in force, first {name}: {}", first.detail),
    };
    let hint = first.fix.clone().unwrap_or_else(|| {
        format!("accept it with SANDBANK_ALLOW_WEAKER={name}, knowing what that means")
    });
    Failure::new(Exit::Unsupported, message).hint(hint)
}

/// What an engine says about its controls.
struct Examined {
    /// Its name and version.
    engine: String,
    reports: Vec<ControlReport>,
    /// Those that its machines are meant to have.
    relied_on: Vec<Control>,
}

impl Examined {
    fn judge<'a>(&'a self, settings: &'a Settings) -> Judge<'a> {
        Judge { settings, relied_on: &self.relied_on }
    }

    /// What sandboxes would be refused for.
    fn missing(&self, settings: &Settings) -> Vec<&ControlReport> {
        let judge = self.judge(settings);
        self.reports.iter().filter(|report| judge.is_lacking(report)).collect()
    }

    fn trouble(&self, settings: &Settings) -> Option<Failure> {
        let missing = self.missing(settings);
        missing.first().map(|first| lacks(first, missing.len()))
    }

    fn document(&self, settings: &Settings) -> Value {
        let judge = self.judge(settings);
        let rows: Vec<_> = self.reports.iter().map(|report| judge.row(report)).collect();
        let ready = self.missing(settings).is_empty();
        json!({ "ready": ready, "engine": self.engine, "controls": rows })
    }

    fn print(&self, context: &Context, settings: &Settings) -> Result<(), Failure> {
        context.ui.line(&format!("engine   {}", self.engine))?;
        self.judge(settings).print(&context.ui, &self.reports)
    }
}

async fn examine(settings: &Settings, near: &Path) -> Result<Examined, Failure> {
    let (scratch, engine) = engine_near(settings, near).await?;
    let reports = engine.controls().await;
    let relied_on = Control::ALL.into_iter().filter(|control| engine.relies_on(*control));
    let (relied_on, name) = (relied_on.collect(), engine.name());
    let version = engine.version();
    engine.shutdown().await;
    drop(scratch);
    Ok(Examined { engine: format!("{name} {version}"), reports, relied_on })
}

/// An engine on a directory of its own, on the file system where the data will be.
async fn engine_near(
    settings: &Settings,
    near: &Path,
) -> Result<(Scratch, Arc<dyn Engine>), Failure> {
    let mut settings = settings.clone();
    let existing = near.ancestors().find(|place| place.is_dir());
    let elsewhere = std::env::temp_dir();
    let places: Vec<&Path> = existing.into_iter().chain([elsewhere.as_path()]).collect();
    let scratch = Scratch::make(".sandbank-doctor", &places)?;
    settings.data_dir = scratch.path().to_owned();
    settings.network.pool_size = 0;
    let engine = choose_engine(&mut settings, InstanceId::random(), None, None).await?;
    Ok((scratch, engine))
}

/// What of a report matters here.
struct Judge<'a> {
    settings: &'a Settings,
    relied_on: &'a [Control],
}

impl Judge<'_> {
    /// Whether sandboxes with the usual settings would be refused for it.
    fn is_lacking(&self, report: &ControlReport) -> bool {
        let accepted = self.settings.allow_weaker.contains(&report.control);
        report.standing != Standing::InForce && self.is_required(report.control) && !accepted
    }

    /// A quota is only needed where one was configured, egress only by sandboxes that ask for it.
    fn is_required(&self, control: Control) -> bool {
        match control {
            Control::DiskQuota => {
                matches!(self.settings.sandboxes.default_disk, DiskQuota::Required(_))
            }
            Control::NetworkEgress => false,
            _ => self.relied_on.contains(&control),
        }
    }

    fn row(&self, report: &ControlReport) -> Value {
        json!({
            "control": report.control.name(),
            "standing": report.standing,
            "required": self.is_required(report.control),
            "accepted": self.settings.allow_weaker.contains(&report.control),
            "detail": report.detail,
            "fix": report.fix,
        })
    }

    fn print(&self, ui: &Ui, reports: &[ControlReport]) -> Result<(), Failure> {
        for report in reports {
            let (word, colour) = match report.standing {
                Standing::InForce => ("in force", AnsiColor::Green),
                Standing::Weaker => ("weaker", AnsiColor::Yellow),
                Standing::Missing => ("missing", AnsiColor::Red),
            };
            let word = ui.coloured(&format!("{word:<8}"), colour);
            let name = ui.bold(&format!("{:<24}", report.control.name()));
            ui.line(&format!("{word} {name} {}", report.detail))?;
            if report.standing == Standing::InForce {
                continue;
            }
            if let Some(fix) = &report.fix {
                ui.line(&format!("{:33} fix: {fix}", ""))?;
            }
            if !self.is_required(report.control) {
                ui.line(&format!("{:33} sandboxes that do not ask for it work", ""))?;
            }
        }
        Ok(())
    }
}
