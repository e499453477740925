//! `rhumb diff`.

use std::path::Path;

use super::args::{DiffArgs, DiffOutput, GlobalArgs};
use super::configured::SelectedSources;
use super::one_shot_input::OneShotSource;
use super::pass_progress::await_plan;
use super::{CommandError, ExitStatus, Terminal, revisions, session};
use crate::cluster::Cluster;
use crate::daemon::{self, PreviewProgress};
use crate::engine::{Plan, PlannedAction};
use crate::render;

/// Carries the command out.
pub(super) fn carry_out(
    args: &DiffArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    if let Some(from) = &args.from {
        return revisions::carry_out(args, from, global, terminal);
    }
    match &args.source.config {
        Some(file) => diff_configured(args, global, file, terminal),
        None => diff_single(args, OneShotSource::for_diff(global, args)?, terminal),
    }
}

fn diff_single(
    args: &DiffArgs,
    mut once: OneShotSource,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let (plan, note) = session::start_runtime()?.block_on(async {
        let (cluster, note) = once.connect().await?;
        Ok::<_, CommandError>((plan(&once, &cluster, terminal).await?, note))
    })?;
    show(args.output, &plan, note.iter().chain(&once.note()), terminal)?;
    Ok(exit_status(&plan))
}

/// Returns the sources of a file as one daemon would follow them, each under its heading where
/// several are shown.
fn diff_configured(
    args: &DiffArgs,
    global: &GlobalArgs,
    file: &Path,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let configured = SelectedSources::for_diff(global, &args.source, file, terminal)?;
    let progress = PreviewProgress::default();
    let planned = Box::pin(plan_sources(&configured, &progress));
    let (plans, notes) = session::start_runtime()?.block_on(await_plan(planned, &progress, terminal))?;
    let is_only = plans.len() == 1;
    let mut exit = ExitStatus::Done;
    for (number, (name, plan)) in plans.into_iter().enumerate() {
        if !is_only {
            terminal.print(&source_heading(args.output, &name, number))?;
        }
        let ended = match plan {
            Ok(plan) => {
                show(args.output, &plan, &notes, terminal)?;
                self::exit_status(&plan)
            }
            Err(error) if is_only => return Err(error),
            Err(error) => {
                let error = error.of_source(&name);
                terminal.print_error(&error);
                error.exit
            }
        };
        exit = exit.worst(ended);
    }
    Ok(exit)
}

/// Returns the line above the difference of one source of several.
pub(super) fn source_heading(output: DiffOutput, name: &str, number: usize) -> String {
    let gap = if number == 0 { "" } else { "\n" };
    match output {
        DiffOutput::Text => format!("{gap}source {name}\n\n"),
        // No patch begins so, and whoever applies one passes over it.
        DiffOutput::Unified => format!("# source {name}\n"),
        DiffOutput::Json | DiffOutput::Name => String::new(),
    }
}

/// A plan of each source that is meant, or why there is none, and the notes about them
/// all.
type SourcePlans = (Vec<(String, Result<Plan, CommandError>)>, Vec<String>);

async fn plan_sources(
    configured: &SelectedSources,
    progress: &PreviewProgress,
) -> Result<SourcePlans, CommandError> {
    let config = &configured.config;
    let cluster = session::connect(config).await?;
    let state = session::state(config, &cluster).await?;
    let (mut setups, mut failed) = (Vec::new(), Vec::new());
    for source in &config.sources {
        match configured.setup(source, &state, &cluster).await {
            Ok(setup) => setups.push(setup),
            Err(error) => failed.push((source.name.clone(), Err(error))),
        }
    }
    let is_chosen = |name: &str| configured.is_chosen(name);
    let planned = daemon::preview_all(&cluster, &config.namespace, setups, is_chosen, progress).await?;
    let planned = planned.into_iter().map(|(name, plan)| (name, plan.map_err(CommandError::from)));
    let (mut plans, others): (Vec<_>, Vec<_>) =
        planned.chain(failed).partition(|(name, _)| configured.is_chosen(name));
    let position = |name: &str| config.sources.iter().position(|source| source.name == name);
    plans.sort_by_key(|(name, _)| position(name));
    let mut notes = configured.notes();
    let unread = others.into_iter().filter_map(|(name, plan)| Some((name, plan.err()?)));
    notes.extend(unread.map(|(name, error)| format!("it is not known what source {name} wants: {error}")));
    Ok((plans, notes))
}

/// Prints a plan, and the notes about it.
pub(super) fn show<'a>(
    output: DiffOutput,
    plan: &'a Plan,
    notes: impl IntoIterator<Item = &'a String>,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let palette = terminal.palette();
    let text = match output {
        DiffOutput::Text => render::text(plan, palette),
        DiffOutput::Unified => render::unified_diff(plan, palette),
        DiffOutput::Json => render::plan_json(plan),
        DiffOutput::Name => render::names(plan),
    };
    match output {
        DiffOutput::Text => terminal.print(&text)?,
        DiffOutput::Unified | DiffOutput::Json | DiffOutput::Name => terminal.write_output(&text)?,
    }
    if output == DiffOutput::Unified {
        terminal.report(&render::held_back_text(plan, terminal.error_palette()));
    }
    print_notes(notes.into_iter().chain(&plan.notes), terminal);
    if output != DiffOutput::Json {
        terminal.report(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
    }
    Ok(())
}

/// Prints what holds for the source as a whole.
pub(super) fn print_notes<'a>(notes: impl IntoIterator<Item = &'a String>, terminal: &Terminal) {
    for note in notes {
        terminal.report(&format!("note: {note}\n"));
    }
}

/// Runs one dry run over the only source.
pub(super) async fn plan(
    once: &OneShotSource,
    cluster: &Cluster,
    terminal: &Terminal,
) -> Result<Plan, CommandError> {
    let progress = PreviewProgress::default();
    let setup = Box::pin(once.setup(cluster));
    let planned = Box::pin(daemon::preview(cluster, &once.config.namespace, setup, &progress));
    await_plan(planned, &progress, terminal).await
}

impl From<daemon::PreviewError> for CommandError {
    fn from(error: daemon::PreviewError) -> Self {
        match error {
            daemon::PreviewError::Cluster(error) => error.into(),
            daemon::PreviewError::Source(error) => error.into(),
        }
    }
}

/// Returns 0 only for a source that was understood whole and does not differ. A source that cannot
/// be read is an error before there is a plan.
pub(super) fn exit_status(plan: &Plan) -> ExitStatus {
    let misread = !plan.complete || plan.diagnostics.iter().any(crate::object::Diagnostic::is_error);
    let differs = plan.objects.iter().any(|planned| planned.verdict != PlannedAction::Unchanged);
    if misread || differs { ExitStatus::Differs } else { ExitStatus::Done }
}
