//! `rhumb validate`.

use std::path::Path;

use super::args::{GlobalArgs, ValidateArgs};
use super::configured::SelectedSources;
use super::manifest_set::{ManifestSet, ReadScope, exit_status_of};
use super::rendering::SourceRendering;
use super::{CommandError, ExitStatus, Terminal, diff, settings, source_contents};
use crate::config::{FetchConfig, RendererConfig};
use crate::engine::AllowList;
use crate::object::{Diagnostic, count_text};
use crate::render;

/// Prints what is wrong with manifests, each alone and all together; needs no cluster.
pub(super) fn carry_out(
    args: &ValidateArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    match (&args.config, &args.path) {
        (Some(file), _) => {
            let configured = SelectedSources::read(global, file, terminal)?;
            sources(args, &configured, terminal)
        }
        (None, path) => {
            let path = path.as_deref().unwrap_or(Path::new(""));
            let manifests = {
                let (renderers, fetch) = (RendererConfig::default(), FetchConfig::default());
                let rendering = SourceRendering::automatic(path, &renderers, &fetch);
                ManifestSet::read(path, ReadScope::All, &rendering)?
            };
            let namespace = settings::default_namespace(global);
            check(manifests, namespace.as_str(), &AllowList::default(), terminal)
        }
    }
}

/// Returns the manifests of a file's sources, each read with its own settings.
fn sources(
    args: &ValidateArgs,
    configured: &SelectedSources,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    if let Some(path) = &args.path {
        let source = configured.single_source("files given besides --config are read as one source")?;
        let manifests = ManifestSet::read(path, ReadScope::All, &SourceRendering::of(source))?;
        return check(manifests, &source.namespace, &source.allow, terminal);
    }
    let is_only = configured.selected_sources().nth(1).is_none();
    let mut exit = ExitStatus::Done;
    for (number, source) in configured.selected_sources().enumerate() {
        if !is_only {
            let gap = if number == 0 { "" } else { "\n" };
            terminal.print(&format!("{gap}source {}\n", source.name))?;
        }
        let ended = match source_contents::read_manifests(source) {
            Ok(manifests) => check(manifests, &source.namespace, &source.allow, terminal)?,
            Err(error) if is_only => return Err(error),
            Err(error) => {
                let error = error.of_source(&source.name);
                terminal.complain(&error);
                error.exit
            }
        };
        exit = exit.worst(ended);
    }
    Ok(exit)
}

fn check(
    manifests: ManifestSet,
    namespace: &str,
    allow: &AllowList,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    diff::print_notes(&manifests.versions.note(), terminal);
    let (documents, understood) = (manifests.items.len(), manifests.understood);
    let places = manifests.places.to_string();
    let scopes = manifests.scopes();
    let diagnostics = manifests.into_objects(&scopes, namespace, allow).diagnostics;
    terminal.print(&render::diagnostics(&diagnostics, terminal.palette()))?;
    report_diagnostics(&diagnostics, documents, &places, terminal);
    Ok(if understood { exit_status_of(&diagnostics) } else { ExitStatus::Differs })
}

fn report_diagnostics(found: &[Diagnostic], documents: usize, places: &str, terminal: &Terminal) {
    let summary = Some(render::tally(found)).filter(|tally| !tally.is_empty());
    let summary = summary.as_deref().unwrap_or("no errors");
    terminal.report(&format!("{} in {places}: {summary}\n", count_text(documents, "object")));
}
