//! The task that owns one sandbox. It takes one message at a time, decides, starts what follows
//! from the decision, and shows the new state. It never waits for an effect: effects run beside
//! it and report to its mailbox.

mod answers;
mod perform;

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sandbank_engine::MachineSpec;
use sandbank_protocol::{CommandState, CommandStatus};
use serde_json::json;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use self::answers::Waiting;
use crate::OrchestratorError;
use crate::acquire::acquire;
use crate::clock::lease_row;
use crate::collect::{self, Collected, shortened};
use crate::context::Context;
use crate::effects;
use crate::lifecycle::{Action, Ending, Event, Phase, Standing, State, Step, decide, next_wakeup};
use crate::limits::POST_MORTEM_COMMANDS;
use crate::link::{Link, Reached};
use crate::pool::Member;
use crate::ports::PortTable;
use crate::provider::Provider;
use crate::sandbox::{Facts, Hold, Message, Sandbox, SharedSandbox, View};
use crate::scripts::Scripts;

pub(crate) struct Driver {
    context: Arc<Context>,
    sandbox: SharedSandbox,
    inbox: mpsc::UnboundedReceiver<Message>,
    state: State,
    view: watch::Sender<View>,
    failure: Option<OrchestratorError>,
    /// What is being done to the machine. The next thing stops it first.
    work: Option<JoinHandle<()>>,
    /// Held by whatever is done to the machine, so that two such things never overlap.
    machine: Arc<Mutex<()>>,
    /// The question to the runner that is out.
    question: Option<JoinHandle<()>>,
    /// Waits for the machine's death.
    watcher: Option<JoinHandle<()>>,
    waiting: Waiting,
    /// Paused when it was last standing: its runner cannot answer.
    frozen: bool,
    /// The newest commands, for a post-mortem of a runner that cannot be asked.
    commands: VecDeque<CommandStatus>,
    collected: Collected,
}

/// What a driver begins with.
pub(crate) enum Beginning {
    /// From the pool's member where there is one.
    Create(Box<MachineSpec>, Option<Member>),
    /// The machine is there already.
    Adopt,
    /// The daemon before this one did not get to the end.
    Finish,
}

/// A sandbox and the driver that is to own it; `reached` when its runner was.
pub(crate) fn sandbox(
    context: &Arc<Context>,
    provider: &Arc<Provider>,
    facts: Facts,
    state: State,
    reached: Option<Reached>,
) -> (SharedSandbox, Driver) {
    let (mailbox, inbox) = mpsc::unbounded_channel();
    let (view, seen) = watch::channel(View { state: state.clone(), failure: None });
    let link = Link::new(facts.id.clone(), provider.engine.clone(), mailbox.clone(), reached);
    let (ports, source) = (PortTable::default(), OnceLock::new());
    let sandbox = Arc::new(Sandbox {
        facts,
        provider: provider.clone(),
        link,
        ports,
        source,
        makes_workspace: AtomicBool::new(false),
        scripts: Scripts::default(),
        mailbox,
        view: seen,
    });
    let frozen = state.phase == Phase::Paused;
    let driver = Driver {
        context: context.clone(),
        sandbox: sandbox.clone(),
        inbox,
        state,
        view,
        failure: None,
        work: None,
        machine: Arc::default(),
        question: None,
        watcher: None,
        waiting: Waiting::default(),
        frozen,
        commands: VecDeque::new(),
        collected: Collected::default(),
    };
    (sandbox, driver)
}

impl Driver {
    pub(crate) fn spawn(self, beginning: Beginning) {
        tokio::spawn(self.run(beginning));
    }

    async fn run(mut self, beginning: Beginning) {
        self.begin(beginning);
        while !self.state.is_ended() {
            let message = match self.time_left() {
                Some(left) => match tokio::time::timeout(left, self.inbox.recv()).await {
                    Ok(message) => message,
                    Err(_) => Some(Message::Event(Event::Tick)),
                },
                None => self.inbox.recv().await,
            };
            match message {
                Some(Message::Leave(done)) => {
                    self.leave().await;
                    let _ = done.send(());
                    return;
                }
                Some(message) => self.handle(message),
                None => return,
            }
        }
        self.sandbox.link.close().await;
    }

    fn begin(&mut self, beginning: Beginning) {
        match beginning {
            Beginning::Create(spec, member) => {
                let row = effects::row(&self.context, &self.sandbox, &self.state);
                let (context, sandbox) = (self.context.clone(), self.sandbox.clone());
                self.work(acquire(context, sandbox, *spec, row, member));
            }
            Beginning::Adopt => {
                self.context.events.emit("sandbox.adopted", Some(self.sandbox.id()), json!({}));
                self.watch_death();
                self.step(Event::Tick);
            }
            Beginning::Finish => {
                self.perform(Action::Release);
                if let Phase::Ending(Ending { step, attempt, .. }) = self.state.phase {
                    self.perform(match step {
                        Step::Collect => Action::Collect,
                        Step::Destroy => Action::Destroy { attempt },
                        Step::Record => Action::Record { attempt },
                    });
                }
            }
        }
    }

    fn time_left(&self) -> Option<Duration> {
        let at = next_wakeup(&self.state, &self.context.rules)?;
        let left = at.saturating_sub(self.context.clock.boot_ms());
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.step(event),
            Message::Open(reply) => self.open(reply),
            Message::Look(reply) => {
                self.waiting.lookers.push(reply);
                self.step(Event::Look);
            }
            Message::Evict(reply) => {
                if self.state.cause().is_some() {
                    let _ = reply.send(false);
                } else {
                    self.waiting.evictors.push(reply);
                    self.step(Event::Evict);
                }
            }
            Message::Change(to, reply) => {
                self.waiting.changers.push((to, reply));
                self.step(match to {
                    Standing::Paused => Event::Pause,
                    Standing::Running => Event::Resume,
                });
            }
            Message::ChangeFailed(error) => {
                self.waiting.change_error = Some(error);
                self.step(Event::ChangeFailed);
            }
            Message::CreateFailed(error) => {
                let reason = error.to_string();
                self.failure = Some(error);
                self.step(Event::CreateFailed { reason });
            }
            Message::CommandStarted(status) => {
                let runs = status.state == CommandState::Running;
                self.commands.push_back(shortened(*status));
                let surplus = self.commands.len().saturating_sub(POST_MORTEM_COMMANDS);
                self.commands.drain(..surplus);
                if runs {
                    self.step(Event::CommandStarted);
                }
            }
            Message::RunnerRestarted => {
                self.context.events.emit("runner.restarted", Some(self.sandbox.id()), json!({}));
                self.commands = collect::lost(self.commands.drain(..)).into();
                self.step(Event::RunnerRestarted);
            }
            Message::Collected(collected) => {
                self.collected = *collected;
                self.step(Event::Collected);
            }
            Message::Leave(_) => unreachable!("handled by the loop"),
        }
    }

    fn open(&mut self, reply: oneshot::Sender<Result<Hold, OrchestratorError>>) {
        let id = self.sandbox.id().clone();
        let answer = match &self.state.phase {
            Phase::Running => {
                self.step(Event::Opened);
                Ok(Hold { mailbox: self.sandbox.mailbox.clone() })
            }
            Phase::Changing { .. } | Phase::Paused => Err(OrchestratorError::Paused(id)),
            Phase::Ending(Ending { cause, .. }) | Phase::Ended { cause } => {
                Err(OrchestratorError::Gone { id, cause: cause.clone() })
            }
            Phase::Creating { .. } => {
                Err(OrchestratorError::Conflict(format!("sandbox {id} is still being made")))
            }
        };
        // A caller that is gone drops the answer, and with it the hold.
        let _ = reply.send(answer);
    }

    fn step(&mut self, event: Event) {
        let now = self.context.clock.boot_ms();
        let was_creating = matches!(self.state.phase, Phase::Creating { .. });
        let (state, actions) = decide(self.state.clone(), event, now, &self.context.rules);
        self.state = state;
        match self.state.phase {
            Phase::Running => self.frozen = false,
            Phase::Paused => self.frozen = true,
            _ => {}
        }
        if let (true, None, Some(cause)) = (was_creating, &self.failure, self.state.cause()) {
            self.failure = Some(self.failure_of(cause));
        }
        for action in actions {
            self.perform(action);
        }
        if self.state.is_ended() {
            self.end();
        }
        let shown = View { state: self.state.clone(), failure: self.failure.clone() };
        // Whoever waits, waits for a phase. Every caller that comes or goes changes the lease, and
        // must not wake all the others.
        self.view.send_if_modified(|view| {
            let news = view.state.phase != shown.state.phase
                || view.failure.is_some() != shown.failure.is_some();
            *view = shown;
            news
        });
        self.answer();
    }

    /// The daemon goes: the sandbox's lease is written down, and nothing else is done to it.
    async fn leave(&mut self) {
        self.stop_tasks();
        self.sandbox.ports.leave();
        if matches!(self.state.phase, Phase::Running | Phase::Changing { .. } | Phase::Paused) {
            let lease = lease_row(&*self.context.clock, &self.state.lease);
            effects::save_lease(self.context.clone(), self.sandbox.clone(), lease).await;
        }
        self.sandbox.link.close().await;
    }
}
