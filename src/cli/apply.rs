//! `rhumb apply`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::args::{ApplyArgs, ApplyOutput};
use super::object_argument::ObjectArgument;
use super::one_shot_input::OneShotSource;
use super::pass_progress::{PassProgress, ProgressPauses};
use super::terminal::Confirmation;
use super::{CommandError, ExitStatus, Terminal, diff, session};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::daemon::{PassEnding, PassResult, Reconciler, RunMode};
use crate::engine::{BlastRadius, PendingPrune, Plan, PlannedAction, Reason, Uid, lossy_kind};
use crate::object::{ErrorClass, ObjectId};
use crate::render::{self, ApplyLine, Palette, SummaryTense};
use crate::report::{ObjectEvent, Outcome, shorten_text};

/// The time limit for a pass without `--wait`, while objects still change.
const PASS_TIMEOUT: Duration = Duration::from_mins(5);

/// Carries the command out.
pub(super) fn carry_out(
    args: &ApplyArgs,
    mut once: OneShotSource,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let runtime = session::start_runtime()?;
    let (cluster, note) = runtime.block_on(once.connect())?;
    diff::print_notes(note.iter().chain(&once.note()), terminal);
    if args.dry_run {
        let plan = runtime.block_on(diff::plan(&once, &cluster, terminal))?;
        let text = match args.output {
            ApplyOutput::Text => render::text(&plan, terminal.palette()),
            ApplyOutput::Json => render::plan_json(&plan),
        };
        terminal.print(&text)?;
        diff::print_notes(&plan.notes, terminal);
        terminal.report(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
        return Ok(dry_run_exit(&plan));
    }
    runtime.block_on(apply(args, &once, &cluster, terminal))
}

/// Returns the exit status of a dry run.
fn dry_run_exit(plan: &Plan) -> ExitStatus {
    let open = plan.objects.iter().any(|p| matches!(p.verdict, PlannedAction::Wait | PlannedAction::Refuse));
    let unread = !plan.complete || plan.diagnostics.iter().any(crate::object::Diagnostic::is_error);
    if plan.guarded {
        ExitStatus::Guarded
    } else if open || unread {
        ExitStatus::Differs
    } else {
        ExitStatus::Done
    }
}

async fn apply(
    args: &ApplyArgs,
    once: &OneShotSource,
    cluster: &Cluster,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let foreseen = match args.output {
        ApplyOutput::Text => None,
        ApplyOutput::Json => Some(diff::plan(once, cluster, terminal).await?),
    };
    let source = once.source()?;
    let mut pass = run_one_pass(args, once, cluster, BTreeSet::new(), terminal).await?;
    let confirmed = confirm_deletions(args, &once.config, &source.name, cluster, &pass, terminal).await?;
    if !confirmed.is_empty() {
        terminal.report(&format!("{} confirmed\n", count_objects(confirmed.len())));
        pass = run_one_pass(args, once, cluster, confirmed, terminal).await?;
    }
    match conclude(args, &pass, &pass.plan(&source.name, foreseen.as_ref()), terminal) {
        // A closed pipe: nobody reads, but the exit code says what was done.
        Err(error) if !error.message.is_empty() => Err(error),
        _ => Ok(exit_status(args, &pass)),
    }
}

async fn run_one_pass(
    args: &ApplyArgs,
    once: &OneShotSource,
    cluster: &Cluster,
    confirmed: BTreeSet<Uid>,
    terminal: &Terminal,
) -> Result<PassResult, CommandError> {
    let mut setup = once.setup(cluster).await?;
    setup.confirmed = confirmed;
    if args.yes {
        setup.radius = BlastRadius { count: u32::MAX, percent: 100 };
    }
    let until = match args.wait {
        Some(wait) => RunMode::UntilHealthy(Instant::now() + wait.get()),
        None => RunMode::UntilSettled(Instant::now() + PASS_TIMEOUT),
    };
    let setup = session::daemon_setup(&once.config, cluster.clone(), vec![setup]);
    let (listener, mut events) = mpsc::unbounded_channel();
    let pass = tokio::spawn(Reconciler::new(setup, until, listener).run(CancellationToken::new()));
    // A pass that was begun is finished even if standard output is closed; the error is returned at
    // the end.
    let mut printed = Ok(());
    let mut progress = PassProgress::default();
    let mut pauses = ProgressPauses::start();
    loop {
        let next = tokio::select! {
            biased;
            next = events.recv() => next,
            () = pauses.end() => {
                terminal.report(&progress.line());
                continue;
            }
        };
        let Some(ObjectEvent { id, outcome, .. }) = next else { break };
        progress.note(&id, &outcome);
        if args.output == ApplyOutput::Text && printed.is_ok() {
            terminal.show_progress("");
            match outcome {
                // No colour: the line is cut at the edge of the terminal, maybe before its reset.
                Outcome::Waiting(_) | Outcome::Unhealthy(_) => {
                    terminal.show_progress(line(&id, &outcome, Palette::Plain).trim_end());
                }
                _ => printed = terminal.print(&line(&id, &outcome, terminal.palette())),
            }
        }
    }
    terminal.show_progress("");
    let ended = pass.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(stopped) => CommandError::new(ErrorClass::Internal, format!("the pass did not end: {stopped}")),
    });
    let pass = ended??;
    // A failed discovery is no fault of the source.
    match pass.undiscovered {
        Some(error) => Err(error.into()),
        None => Ok(pass),
    }
}

/// Asks the person at the terminal to confirm deletions beyond the blast radius. An object that is
/// deleted only by name is left to `prune confirm`.
async fn confirm_deletions(
    args: &ApplyArgs,
    config: &Config,
    source: &str,
    cluster: &Cluster,
    pass: &PassResult,
    terminal: &Terminal,
) -> Result<BTreeSet<Uid>, CommandError> {
    let nothing = BTreeSet::new();
    if args.output == ApplyOutput::Json || !pass.outcomes.values().any(Outcome::is_guarded) {
        return Ok(nothing);
    }
    let Some(inventory) = cluster.read_inventory(&config.namespace, source).await? else {
        return Ok(nothing);
    };
    let pending = inventory.pending_prunes();
    let pending: Vec<_> = pending.iter().filter(|pending| lossy_kind(&pending.id).is_none()).collect();
    let Some(first) = pending.first() else { return Ok(nothing) };
    let is_same = pending.iter().all(|pending| pending.reason == first.reason);
    let name = |pending: &&PendingPrune| match ObjectArgument::of(&pending.id) {
        name if is_same => name.to_string(),
        name => format!("{name}: {}", pending.reason),
    };
    let names: Vec<String> = pending.iter().map(name).collect();
    let why = if is_same { &first.reason } else { "they wait for a confirmation" };
    let question = format!("{why}:\n  {}\nDelete {}?", names.join("\n  "), count_objects(pending.len()));
    if terminal.ask(&question) != Some(Confirmation::Confirmed) {
        return Ok(nothing);
    }
    Ok(pending.iter().map(|pending| pending.uid.clone()).collect())
}

fn count_objects(objects: usize) -> String {
    if objects == 1 { "this object".to_owned() } else { format!("these {objects} objects") }
}

pub(super) fn line(id: &ObjectId, outcome: &Outcome, palette: Palette) -> String {
    let text;
    let outcome = match outcome {
        Outcome::Created => ApplyLine::Created,
        Outcome::Adopted(owner) => ApplyLine::Adopted(owner),
        Outcome::Configured | Outcome::Repaired(_) => ApplyLine::Configured,
        Outcome::Unchanged => ApplyLine::Unchanged,
        Outcome::Pruned => ApplyLine::Pruned,
        Outcome::Recreated => ApplyLine::Recreated,
        Outcome::Recreating => ApplyLine::Waiting("deleted, to be created again"),
        Outcome::Unhealthy(_) => {
            text = outcome.to_string();
            ApplyLine::Waiting(&text)
        }
        Outcome::Waiting(Reason::Kept(cause)) => {
            text = cause.to_string();
            ApplyLine::Kept(&text)
        }
        Outcome::Waiting(reason) => {
            text = reason.to_string();
            if reason.is_requested() { ApplyLine::LeftAlone(&text) } else { ApplyLine::Waiting(&text) }
        }
        Outcome::Refused(Reason::Rejected(rejected)) => {
            text = format!("{}; `rhumb why` says all of it", shorten_text(&rejected.to_string()));
            ApplyLine::Failed(&text)
        }
        Outcome::Refused(reason) => {
            text = reason.to_string();
            ApplyLine::Refused(&text)
        }
    };
    render::progress_line(id, outcome, palette)
}

/// Prints the open objects and the findings.
fn conclude(
    args: &ApplyArgs,
    pass: &PassResult,
    plan: &Plan,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    match args.output {
        ApplyOutput::Json => terminal.write_output(&render::plan_json(plan))?,
        ApplyOutput::Text => {
            for (id, outcome) in
                pass.outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Waiting(_)))
            {
                terminal.print(&line(id, outcome, terminal.palette()))?;
            }
            terminal.print(&render::summary(plan, SummaryTense::Did))?;
            terminal.print(&describe_unfinished(pass))?;
            terminal.report(&render::diagnostics(&pass.diagnostics, terminal.error_palette()));
        }
    }
    if args.output == ApplyOutput::Text && plan.guarded {
        let name = &plan.source;
        terminal.report(&format!(
            "hint: `rhumb prune confirm --source {name} OBJECT…` releases what `rhumb prune list --source {name}` shows; --yes lifts the blast radius\n"
        ));
    }
    diff::print_notes(&pass.notes, terminal);
    for (name, why) in pass.incomplete.iter().filter(|_| !pass.readable) {
        terminal.report(&format!("error: source {name}: {why}\n"));
    }
    if args.wait.is_some() {
        for (id, health) in &pass.unhealthy {
            terminal.report(&format!("{} is not healthy: {health}\n", id.resource_name()));
        }
    }
    Ok(())
}

/// Returns the work that continues only while a process stays, or after a person's order.
fn describe_unfinished(pass: &PassResult) -> String {
    let line = |(id, step): (&ObjectId, &String)| format!("unfinished: {}: {step}\n", ObjectArgument::of(id));
    let lines: String = pass.held.iter().map(line).collect();
    let Some((first, _)) = pass.held.first_key_value() else { return lines };
    format!(
        "{lines}hint: `rhumb run` continues it; `rhumb rollout promote {}` then ends a step by hand\n",
        ObjectArgument::of(first)
    )
}

fn exit_status(args: &ApplyArgs, pass: &PassResult) -> ExitStatus {
    if !pass.readable {
        return ExitStatus::Unreadable;
    }
    let guarded = pass.outcomes.values().any(Outcome::is_guarded);
    let open = pass.outcomes.values().any(Outcome::is_open);
    let unread =
        !pass.incomplete.is_empty() || pass.diagnostics.iter().any(crate::object::Diagnostic::is_error);
    if guarded {
        ExitStatus::Guarded
    } else if open || unread {
        ExitStatus::Differs
    } else if pass.ending == PassEnding::TimedOut || (args.wait.is_some() && !pass.unhealthy.is_empty()) {
        ExitStatus::TimedOut
    } else {
        ExitStatus::Done
    }
}
