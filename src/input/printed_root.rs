//! The output of kustomize for a root, with the origins of its objects where they can be had.
//!
//! **Invariant:** what a root prints does not depend on whether it is asked for origins.

use std::collections::BTreeMap;

use super::kustomize::{Closure, ExpectedObjects, OriginTracking, RenderTree};
use super::origin::{OriginAnnotation, strip_origin};
use super::render_host::RenderHost;
use super::root_render::{PrintedDocument, RenderError, RenderValues, TracedKustomization, build, documents};
use super::sandbox::InstalledProgram;
use super::tree::FileTree;
use crate::object::ManifestOrigin;

/// The output of kustomize for a root, and what is known of the origins in it.
pub(super) struct PrintedRoot {
    /// The documents.
    pub(super) documents: Vec<PrintedDocument>,
    /// The numbers of the charts, by the paths of the files that hold their objects.
    pub(super) charts: BTreeMap<String, usize>,
    /// The words on origins in them.
    pub(super) tracking: OriginTracking,
    /// The expected origin of each document; empty where none was expected.
    pub(super) origins: Vec<OriginAnnotation>,
}

/// Prints a root without asking for origins. None where the output is another than expected.
pub(super) async fn print_expected<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    closure: &Closure,
    files: &T,
    values: RenderValues<'_>,
    expected: &ExpectedObjects,
) -> Result<Option<PrintedRoot>, RenderError> {
    let printed = print_tree(host, program, closure, RenderTree::plain(closure), files, values).await?;
    let origins = expected.origins(printed.documents.iter().map(|document| &document.body));
    Ok(origins.map(|origins| PrintedRoot { origins, ..printed }))
}

/// Prints a root with the origins that kustomize writes, where it can, and where they change
/// nothing else.
pub(super) async fn print_with_origins<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    kustomization: TracedKustomization<'_>,
    files: &T,
    values: RenderValues<'_>,
) -> Result<PrintedRoot, RenderError> {
    let TracedKustomization { closure, charts, .. } = kustomization;
    let tree = RenderTree::with_charts(closure, files, charts)?;
    let (is_added, is_seen) = (tree.origins == OriginTracking::Added, tree.depends_on_origins);
    let named = print_tree(host, program, closure, tree, files, values).await;
    let can_differ = is_added
        && match &named {
            // Origins are worth nothing where they are what the program fails for.
            Err(error) => matches!(error, RenderError::Failed { .. }),
            Ok(_) => is_seen,
        };
    if !can_differ {
        return named;
    }
    let tree = RenderTree::plain_with_charts(closure, files, charts)?;
    let plain = print_tree(host, program, closure, tree, files, values).await?;
    Ok(named.ok().filter(|named| is_same_but_for_origins(named, &plain)).unwrap_or(plain))
}

/// Prints a root from its files.
async fn print_tree<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    closure: &Closure,
    tree: RenderTree,
    files: &T,
    values: RenderValues<'_>,
) -> Result<PrintedRoot, RenderError> {
    let output = build(host, program, &tree, files, values.opened).await?;
    let documents = documents("kustomize", &output, values, &root_place(closure))?;
    let (charts, tracking) = (tree.charts, tree.origins);
    Ok(PrintedRoot { documents, charts, tracking, origins: Vec::new() })
}

/// Returns whether an output says the same as another one, but for the origins in it.
fn is_same_but_for_origins(named: &PrintedRoot, plain: &PrintedRoot) -> bool {
    let is_same = |(named, plain): (&PrintedDocument, &PrintedDocument)| {
        let mut body = named.body.clone();
        strip_origin(&mut body);
        body == plain.body
    };
    let (named, plain) = (&named.documents, &plain.documents);
    named.len() == plain.len() && named.iter().zip(plain).all(is_same)
}

/// Returns the place of the file that makes its folder a root.
fn root_place(closure: &Closure) -> ManifestOrigin {
    let file = closure.folders.first().and_then(|folder| closure.files.get(&folder.file));
    ManifestOrigin::of_file(file.map_or_else(|| closure.root.clone(), |file| file.source.clone()))
}
