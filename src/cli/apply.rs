//! `rhumb apply`.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::args::{ApplyArgs, ApplyOutput};
use super::{CommandError, Exit, Terminal, diff, session};
use crate::config::Config;
use crate::daemon::{Ending, Pass, Reconciler, Setup, Until};
use crate::engine::{Plan, Prune, Verdict};
use crate::object::ObjectId;
use crate::render::{self, Outcome, Palette, Tense};
use crate::report::Told;

/// How long one pass goes on while something still moves, when health is not waited for.
const PATIENCE: Duration = Duration::from_mins(5);

/// Carries the command out.
pub(super) fn carry_out(args: &ApplyArgs, config: Config, terminal: &Terminal) -> Result<Exit, CommandError> {
    let runtime = session::runtime()?;
    if args.dry_run {
        let mut config = config;
        let prune = if args.prune { Prune::On } else { Prune::Off };
        config.sources.iter_mut().for_each(|source| source.prune = prune);
        let plan = runtime.block_on(diff::plan(&config))?;
        let text = match args.output {
            ApplyOutput::Text => render::text(&plan, terminal.palette()),
            ApplyOutput::Json => render::json(&plan),
        };
        terminal.print(&text)?;
        terminal.tell(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
        return Ok(tried(&plan));
    }
    runtime.block_on(apply(args, &config, terminal))
}

/// As [`exit`], for what would be done.
fn tried(plan: &Plan) -> Exit {
    let open = plan.objects.iter().any(|p| matches!(p.verdict, Verdict::Wait | Verdict::Refuse));
    let unread = !plan.complete || plan.diagnostics.iter().any(crate::object::Diagnostic::is_error);
    if open || unread { Exit::Differs } else { Exit::Done }
}

async fn apply(args: &ApplyArgs, config: &Config, terminal: &Terminal) -> Result<Exit, CommandError> {
    let cluster = session::connect(config).await?;
    let prune = if args.prune { Prune::On } else { Prune::Off };
    let source = session::only_pruning(config, prune)?;
    let state = session::state(config, &cluster).await?;
    let mut setup = session::once(&source, &state)?;
    if args.yes {
        setup.radius = crate::engine::BlastRadius { count: u32::MAX, percent: 100 };
    }
    let until = match args.wait {
        Some(wait) => Until::Healthy(Instant::now() + wait.get()),
        None => Until::Settled(Instant::now() + PATIENCE),
    };
    let setup = Setup {
        cluster,
        namespace: config.namespace.clone(),
        resync: config.resync.get(),
        max_workloads: config.budget.max_workloads,
        concurrency: config.connection.api.concurrency as usize,
        sources: vec![setup],
    };
    let (listener, mut told) = mpsc::unbounded_channel();
    let pass = tokio::spawn(Reconciler::new(setup, until, listener).run(CancellationToken::new()));
    // What was begun is finished, and its exit code holds, whoever stops reading.
    let mut printed = Ok(());
    while let Some((id, told)) = told.recv().await {
        if args.output == ApplyOutput::Text && printed.is_ok() {
            printed = terminal.print(&line(&id, &told, terminal.palette()));
        }
    }
    let pass = match pass.await {
        Ok(pass) => pass,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => return Ok(Exit::TimedOut),
        },
    };
    let printed = printed.and_then(|()| conclude(args, &source.name, &pass, terminal));
    match printed {
        // A closed pipe: nobody reads, but the exit code says what was done.
        Err(error) if error.message.is_empty() => Ok(exit(args, &pass)),
        Err(error) => Err(error),
        Ok(()) => Ok(exit(args, &pass)),
    }
}

fn line(id: &ObjectId, told: &Told, palette: Palette) -> String {
    let text;
    let outcome = match told {
        Told::Created => Outcome::Created,
        Told::Configured => Outcome::Configured,
        Told::Unchanged => Outcome::Unchanged,
        Told::Pruned => Outcome::Pruned,
        Told::Recreating => Outcome::Waiting("deleted, to be created again"),
        Told::Waiting(reason) => {
            text = reason.to_string();
            Outcome::Waiting(&text)
        }
        Told::Refused(reason) => {
            text = reason.to_string();
            Outcome::Refused(&text)
        }
    };
    render::progress(id, outcome, palette)
}

/// What is still open, and what reading found.
fn conclude(args: &ApplyArgs, source: &str, pass: &Pass, terminal: &Terminal) -> Result<(), CommandError> {
    let plan = pass.plan(source);
    match args.output {
        ApplyOutput::Json => terminal.print(&render::json(&plan))?,
        ApplyOutput::Text => {
            for (id, told) in pass.told.iter().filter(|(_, told)| matches!(told, Told::Waiting(_))) {
                terminal.print(&line(id, told, terminal.palette()))?;
            }
            terminal.print(&render::summary(&plan, Tense::Did))?;
            terminal.tell(&render::diagnostics(&pass.diagnostics, terminal.error_palette()));
        }
    }
    for (name, why) in pass.incomplete.iter().filter(|_| !pass.readable) {
        terminal.tell(&format!("error: source {name}: {why}\n"));
    }
    if args.wait.is_some() {
        for (id, health) in &pass.unhealthy {
            terminal.tell(&format!("{} is not healthy: {health}\n", id.resource_name()));
        }
    }
    Ok(())
}

fn exit(args: &ApplyArgs, pass: &Pass) -> Exit {
    if !pass.readable {
        return Exit::Unreadable;
    }
    let guarded = pass.told.values().any(Told::is_guarded);
    let open = pass.told.values().any(|told| matches!(told, Told::Waiting(_) | Told::Refused(_)));
    let unread =
        !pass.incomplete.is_empty() || pass.diagnostics.iter().any(crate::object::Diagnostic::is_error);
    if guarded {
        Exit::Guarded
    } else if open || unread {
        Exit::Differs
    } else if pass.ending == Ending::TimedOut || (args.wait.is_some() && !pass.unhealthy.is_empty()) {
        Exit::TimedOut
    } else {
        Exit::Done
    }
}
