//! `rhumb diff`.

use super::args::{DiffArgs, DiffOutput};
use super::{CommandError, Exit, Terminal, session};
use crate::config::Config;
use crate::daemon;
use crate::engine::{Plan, Verdict};
use crate::render;

/// Carries the command out.
pub(super) fn carry_out(args: &DiffArgs, config: Config, terminal: &Terminal) -> Result<Exit, CommandError> {
    let plan = session::runtime()?.block_on(plan(&config))?;
    let palette = terminal.palette();
    let text = match args.output {
        DiffOutput::Text => render::text(&plan, palette),
        DiffOutput::Unified => render::unified(&plan, palette),
        DiffOutput::Json => render::json(&plan),
        DiffOutput::Name => render::names(&plan),
    };
    match args.output {
        DiffOutput::Text => terminal.print(&text)?,
        DiffOutput::Unified | DiffOutput::Json | DiffOutput::Name => terminal.hand_over(&text)?,
    }
    if args.output == DiffOutput::Unified {
        terminal.tell(&render::held_back(&plan, terminal.error_palette()));
    }
    notes(&plan.notes, terminal);
    if args.output != DiffOutput::Json {
        terminal.tell(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
    }
    Ok(exit(&plan))
}

/// Tells what holds for the source as a whole.
pub(super) fn notes(notes: &[String], terminal: &Terminal) {
    for note in notes {
        terminal.tell(&format!("note: {note}\n"));
    }
}

/// One dry run over the only source.
pub(super) async fn plan(config: &Config) -> Result<Plan, CommandError> {
    let cluster = session::connect(config).await?;
    let source = session::only(config)?;
    let state = session::state(config, &cluster).await?;
    let setup = session::once(&source, &state)?;
    Ok(daemon::preview(&cluster, &config.namespace, setup).await?)
}

impl From<daemon::PreviewError> for CommandError {
    fn from(error: daemon::PreviewError) -> Self {
        match error {
            daemon::PreviewError::Cluster(error) => error.into(),
            daemon::PreviewError::Source(error) => error.into(),
        }
    }
}

/// Returns 0 only for a source that was understood whole and does not differ. What could not be read at all is an
/// error before there is a plan.
fn exit(plan: &Plan) -> Exit {
    let misread = !plan.complete || plan.diagnostics.iter().any(crate::object::Diagnostic::is_error);
    let differs = plan.objects.iter().any(|planned| planned.verdict != Verdict::Unchanged);
    if misread || differs { Exit::Differs } else { Exit::Done }
}
