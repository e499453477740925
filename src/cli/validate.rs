//! `rhumb validate`.

use std::collections::BTreeSet;
use std::path::Path;

use super::args::{GlobalArgs, ValidateArgs};
use super::configured::SelectedSources;
use super::manifest_set::{CheckedObjects, ManifestSet, ReadScope, exit_status_of};
use super::rendering::SourceRendering;
use super::{CommandError, ExitStatus, Terminal, diff, settings, source_contents};
use crate::config::{FetchConfig, RendererConfig, SourceConfig};
use crate::engine::{AllowList, KnownSources, find_absent_dependencies};
use crate::object::{Diagnostic, ObjectId, count_text};
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
            let read = ReadSource::of(manifests, namespace.as_str(), &AllowList::default());
            report_single(read, terminal)
        }
    }
}

/// Prints what is wrong with the manifests of a file's sources, each read with its own settings.
fn sources(
    args: &ValidateArgs,
    configured: &SelectedSources,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    if let Some(path) = &args.path {
        let source = configured.single_source("files given besides --config are read as one source")?;
        let manifests = ManifestSet::read(path, ReadScope::All, &SourceRendering::of(source))?;
        return report_single(ReadSource::of(manifests, &source.namespace, &source.allow), terminal);
    }
    let is_only = configured.selected_sources().nth(1).is_none();
    let read = |source: &SourceConfig| {
        let manifests = source_contents::read_manifests(source)?;
        Ok(ReadSource::of(manifests, &source.namespace, &source.allow))
    };
    let all: Vec<_> = configured.selected_sources().map(|source| (source, read(source))).collect();
    let named = NamedObjects::of(all.iter().map(|(_, read)| read.as_ref().ok()), configured.known_sources());
    let mut exit = ExitStatus::Done;
    for (number, (source, read)) in all.into_iter().enumerate() {
        if !is_only {
            let gap = if number == 0 { "" } else { "\n" };
            terminal.print(&format!("{gap}source {}\n", source.name))?;
        }
        let ended = match read {
            Ok(read) => read.report(&named, terminal)?,
            Err(error) if is_only => return Err(error),
            Err(error) => {
                let error = error.of_source(&source.name);
                terminal.print_error(&error);
                error.exit
            }
        };
        exit = exit.worst(ended);
    }
    Ok(exit)
}

fn report_single(read: ReadSource, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
    let named = NamedObjects::of([Some(&read)].into_iter(), KnownSources::Some);
    read.report(&named, terminal)
}

/// The objects of all sources that were read.
struct NamedObjects {
    ids: BTreeSet<ObjectId>,
    sources: KnownSources,
    /// Indicates whether nothing is missing among them.
    is_complete: bool,
}

impl NamedObjects {
    /// Returns those of sources; none stands for one that cannot be read.
    fn of<'a>(all: impl Iterator<Item = Option<&'a ReadSource>>, sources: KnownSources) -> Self {
        let mut named = Self { ids: BTreeSet::new(), sources, is_complete: true };
        for read in all {
            named.is_complete &= read.is_some_and(|read| read.understood);
            named.ids.extend(read.into_iter().flat_map(|read| read.checked.ids().cloned()));
        }
        named
    }
}

/// A source that was read, and all that is wrong with it alone.
struct ReadSource {
    note: Option<String>,
    documents: usize,
    counts_text: String,
    understood: bool,
    checked: CheckedObjects,
}

impl ReadSource {
    fn of(manifests: ManifestSet, namespace: &str, allow: &AllowList) -> Self {
        let scopes = manifests.scopes();
        Self {
            note: manifests.versions.note(),
            documents: manifests.items.len(),
            counts_text: manifests.counts.to_string(),
            understood: manifests.understood,
            checked: manifests.into_objects(&scopes, namespace, allow),
        }
    }

    fn report(self, named: &NamedObjects, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
        let CheckedObjects { assembled, mut diagnostics, .. } = self.checked;
        if named.is_complete {
            diagnostics.extend(find_absent_dependencies(&assembled.objects, &named.ids, named.sources));
            diagnostics.sort();
        }
        diff::print_notes(&self.note, terminal);
        terminal.print(&render::diagnostics(&diagnostics, terminal.palette()))?;
        report_diagnostics(&diagnostics, self.documents, &self.counts_text, terminal);
        Ok(if self.understood { exit_status_of(&diagnostics) } else { ExitStatus::Differs })
    }
}

fn report_diagnostics(found: &[Diagnostic], documents: usize, counts_text: &str, terminal: &Terminal) {
    let summary = Some(render::tally(found)).filter(|tally| !tally.is_empty());
    let summary = summary.as_deref().unwrap_or("no errors");
    terminal.report(&format!("{} in {counts_text}: {summary}\n", count_text(documents, "object")));
}
