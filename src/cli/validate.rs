//! `rhumb validate`.

use std::path::Path;

use super::args::{GlobalArgs, ValidateArgs};
use super::configured::SelectedSources;
use super::reading::{ManifestSet, ReadScope, exit_status_of};
use super::rendering::SourceRendering;
use super::{CommandError, ExitStatus, Terminal, diff, session, settings, source_contents};
use crate::config::{FetchConfig, RendererConfig, SourceConfig, SourceLocation};
use crate::engine::{AllowList, check_annotations, find_self_waits};
use crate::manifest::{KindScopes, assemble};
use crate::object::Diagnostic;
use crate::render;

/// Prints what is wrong with manifests, each alone and all together; needs no cluster.
pub(super) fn carry_out(
    args: &ValidateArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    match (&args.config, &args.path) {
        (Some(file), _) => {
            let configured = SelectedSources::read(global, file, args.named.as_ref(), terminal)?;
            sources(args, &configured, terminal)
        }
        (None, path) => {
            let manifests = {
                let rendering =
                    SourceRendering::automatic(&RendererConfig::default(), &FetchConfig::default());
                ManifestSet::read(path.as_deref().unwrap_or(Path::new("")), ReadScope::All, &rendering)?
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
        let source = configured.single_source("files given beside --config are read as one source")?;
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
        let ended = match read_manifests(source) {
            Ok(manifests) => check(manifests, &source.namespace, &source.allow, terminal)?,
            Err(error) if is_only => return Err(error),
            Err(error) => {
                let message = format!("source {}: {error}", source.name);
                terminal.complain(&CommandError { message, ..error });
                error.exit
            }
        };
        exit = exit.worst(ended);
    }
    Ok(exit)
}

/// Returns the manifests of a source. Of a repository that is the newest commit, which must be
/// signed where the source requires it.
fn read_manifests(source: &SourceConfig) -> Result<ManifestSet, CommandError> {
    match &source.location {
        SourceLocation::Directory(path) => {
            ManifestSet::read(path, ReadScope::All, &SourceRendering::of(source))
        }
        SourceLocation::Git { path, .. } => session::start_runtime()?.block_on(async {
            let clone = source_contents::temporary_folder()?;
            let decrypter = SourceRendering::of(source).decrypter();
            let newest = source_contents::open_newest(source, clone.path())?;
            ManifestSet::read_newest(newest, path.as_str(), &decrypter).await
        }),
    }
}

fn check(
    manifests: ManifestSet,
    namespace: &str,
    allow: &AllowList,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let ManifestSet { items, mut diagnostics, files, understood, versions } = manifests;
    diff::print_notes(&versions.note(), terminal);
    let (documents, mut scopes) = (items.len(), KindScopes::builtin());
    for item in &items {
        scopes.learn(item);
    }
    let assembled = assemble(items, &scopes, namespace);
    diagnostics.extend(assembled.diagnostics);
    diagnostics.extend(assembled.objects.iter().flat_map(check_annotations));
    diagnostics.extend(find_self_waits(&assembled.objects));
    let objects = assembled.objects.iter().map(|object| (&object.id, &object.origin));
    let held = assembled.held.iter().map(|held| (&held.id, &held.origin));
    let refused = |(id, origin)| allow.finding(id, scopes.get(&id.group_kind()), origin);
    diagnostics.extend(objects.chain(held).filter_map(refused));
    diagnostics.sort();
    terminal.print(&render::diagnostics(&diagnostics, terminal.palette()))?;
    report_diagnostics(&diagnostics, documents, files, terminal);
    Ok(if understood { exit_status_of(&diagnostics) } else { ExitStatus::Differs })
}

fn report_diagnostics(found: &[Diagnostic], documents: usize, files: usize, terminal: &Terminal) {
    let told = Some(render::tally(found)).filter(|tally| !tally.is_empty());
    let told = told.as_deref().unwrap_or("no errors");
    terminal.report(&format!(
        "{} in {}: {told}\n",
        count_words(documents, "object"),
        count_words(files, "file")
    ));
}

fn count_words(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
