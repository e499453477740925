//! One render of one root: a folder with the files of its closure, a sandboxed program, and the
//! objects that it prints.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::helm::{ChartObject, UnnamedNamespace, translate_hooks};
use super::kustomize::{
    Closure, ExpectedObjects, InflatedChart, ObjectNames, OriginFinder, OriginTracking, PlannedContent,
    RenderTree, can_quote_secret, strip_mark,
};
use super::opened_inputs::{ExtractedValues, OpenedInputs};
use super::origin::{ObjectOrigin, strip_origin, strip_transformations};
use super::paths::{folder_of, relative_to};
use super::printed_root::{PrintedRoot, print_expected, print_with_origins};
use super::render_host::RenderHost;
use super::render_workspace::RenderWorkspace;
use super::rendered_names::RenderedNames;
use super::sandbox::{InstalledProgram, ProgramCommand, SandboxError, SandboxPart};
use super::stderr_texts::stderr_texts;
use super::tree::FileTree;
use super::variables::{VariableFinding, VariableTable, substitute, substitute_documents};
use crate::manifest::{PlacedValue, read_documents};
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::{DUPLICATE_KEY, HOOK_NOT_RUN, SourceError};

/// Go collects garbage only near this many bytes: few renders need as much.
const KUSTOMIZE_GO_MEMORY_BYTES: u64 = 192 << 20;

/// Objects that one root may have: as many as one file may hold.
const MAX_RENDERED_OBJECTS: usize = 20_000;

/// The most warnings of one root that are kept.
const MAX_WARNINGS: usize = 50;

/// An object that was rendered.
#[derive(Clone, PartialEq)]
pub(crate) struct RenderedObject {
    /// Its name among those of its root.
    pub name: String,
    /// Its tree.
    pub body: Value,
    /// The places that it was made of.
    pub origin: ObjectOrigin,
}

/// The result of a render.
#[derive(Debug)]
pub(crate) struct RenderOutput {
    /// The objects.
    pub(crate) objects: Vec<RenderedObject>,
    /// The hooks that are not run.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Leaves the body out, because it may be a Secret.
impl std::fmt::Debug for RenderedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RenderedObject({} from {})", self.name, self.origin)
    }
}

/// The reason for which a root was not rendered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RenderError {
    /// The revision cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The tree could not be written for the program.
    #[error("the files for {program} cannot be written: {error}")]
    Tree {
        /// The program.
        program: &'static str,
        /// The system's message.
        error: io::Error,
    },
    /// The files would be in the open, and no folder is in memory.
    #[error("encrypted files are opened in memory alone, and no folder of this host is there")]
    NoMemoryFolder,
    /// The program is missing.
    #[error("a program that renders it is missing")]
    NoProgram,
    /// The program did not run to its own end.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The program fails.
    #[error("{program} fails: {stderr}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The end of what it said.
        stderr: String,
    },
    /// The program read opened files or Secrets and fails, or prints what is no list of objects.
    #[error("{program} fails, and its words are not shown: they may repeat a value of a Secret")]
    MessageWithheld {
        /// The program.
        program: &'static str,
    },
    /// An encrypted file cannot be opened, or is where it would be read as it is.
    #[error("{}", .0.message)]
    Encrypted(Box<Diagnostic>),
    /// The chart cannot be rendered.
    #[error("{}", .0.first().map(|found| found.message.as_str()).unwrap_or_default())]
    Refused(Vec<Diagnostic>),
    /// Variables cannot be put into some objects.
    #[error("variables are missing or misspelt")]
    Variables(Vec<Diagnostic>),
    /// The output of the program is no list of objects.
    #[error("the output of {program} cannot be read: {detail}")]
    Output {
        /// The program.
        program: &'static str,
        /// The fault.
        detail: String,
    },
}

impl RenderError {
    /// Returns whether another try of the same may do better.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Source(_) | Self::Tree { .. } | Self::NoProgram | Self::NoMemoryFolder => true,
            Self::Sandbox(error) => error.class() != crate::object::ErrorClass::Invalid,
            Self::Failed { .. }
            | Self::Output { .. }
            | Self::MessageWithheld { .. }
            | Self::Encrypted(_)
            | Self::Variables(_)
            | Self::Refused(_) => false,
        }
    }
}

/// Renders a kustomize root from the files of its closure, with what helm made of its charts.
///
/// # Errors
/// Fails where the program does, where the sandbox stops it, and where its output cannot be read.
pub(crate) async fn render_kustomization<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    kustomization: TracedKustomization<'_>,
    files: &T,
    values: RenderValues<'_>,
) -> Result<RenderOutput, RenderError> {
    let TracedKustomization { closure, charts, names } = kustomization;
    let mut finder = OriginFinder::new(closure, files).with_names(names);
    let expected = match charts {
        [] => ExpectedObjects::of(&mut finder)?,
        _ => None,
    };
    // Variables in a name are put in before it is seen here.
    let expected = expected.filter(|expected| values.variables.is_none() || !expected.has_variables());
    let as_expected = match &expected {
        Some(expected) => print_expected(host, program, closure, files, values, expected).await?,
        None => None,
    };
    let printed = match as_expected {
        Some(printed) => printed,
        None => print_with_origins(host, program, kustomization, files, values).await?,
    };
    let PrintedRoot { documents, charts: paths, tracking, origins } = printed;
    let named = paths.iter().filter_map(|(path, number)| Some((path.clone(), charts.get(*number)?)));
    let mut finder = finder.with_charts(named);
    let chart_folders: Vec<String> =
        paths.keys().map(|path| relative_to(&closure.root, folder_of(path))).collect();
    let (mut objects, mut origins) = (BuiltObjects::default(), origins.into_iter());
    for PrintedDocument { mut body, findings } in documents {
        let annotated = match tracking {
            OriginTracking::Added => strip_origin(&mut body),
            OriginTracking::Requested | OriginTracking::Absent => super::origin::read_origin(&body),
        };
        let origin_annotation = origins.next().or(annotated);
        let origin = finder.find(origin_annotation.as_ref(), &body)?;
        let at = origin.places.first().cloned();
        let at = at.unwrap_or_else(|| ManifestOrigin::of_file(closure.root.clone()));
        let found = findings.iter().map(|finding| finding.diagnostic_at(at.clone()));
        let (faults, warnings): (Vec<_>, Vec<_>) = found.partition(Diagnostic::is_error);
        objects.faults.extend(faults);
        objects.warnings.extend(warnings);
        let chart =
            finder.chart_path(origin_annotation.as_ref(), &body).and_then(|path| paths.get(path)).copied();
        if let Some(inflated) = chart.and_then(|number| charts.get(number)) {
            strip_mark(&mut body);
            strip_transformations(&mut body, &chart_folders);
            if tracking == OriginTracking::Requested {
                super::origin::name_generator(&mut body, &closure.root, &inflated.file);
            }
        }
        let generated = Vec::new();
        objects.add(chart, ChartObject { body, origin, generated, is_definition: false });
    }
    objects.into_rendered(charts)
}

/// The values that take part in a render besides the files of the root.
#[derive(Clone, Copy)]
pub(crate) struct RenderValues<'a> {
    /// The variables that are put into the output.
    pub(super) variables: Option<&'a VariableTable>,
    /// The encrypted files.
    pub(super) opened: &'a OpenedInputs,
}

/// The files of a kustomize root, and what helm made of the charts in them.
#[derive(Clone, Copy)]
pub(crate) struct TracedKustomization<'a> {
    /// The files.
    pub(crate) closure: &'a Closure,
    /// The charts.
    pub(crate) charts: &'a [InflatedChart],
    /// The names of objects that are known from other roots.
    pub(crate) names: &'a ObjectNames,
}

/// The objects that kustomize printed.
#[derive(Default)]
struct BuiltObjects {
    plain: Vec<ChartObject>,
    /// Objects of charts, by the number of each chart.
    of_charts: BTreeMap<usize, Vec<ChartObject>>,
    faults: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl BuiltObjects {
    fn add(&mut self, chart: Option<usize>, object: ChartObject) {
        match chart {
            Some(number) => self.of_charts.entry(number).or_default().push(object),
            None => self.plain.push(object),
        }
    }

    /// Returns all of them, with the hooks of each chart in their order.
    fn into_rendered(self, charts: &[InflatedChart]) -> Result<RenderOutput, RenderError> {
        if !self.faults.is_empty() {
            return Err(RenderError::Variables(self.faults));
        }
        let (mut all, mut warnings) = (self.plain, self.warnings);
        for (number, objects) in self.of_charts {
            let namespace = charts.get(number).map(|chart| chart.namespace.clone()).unwrap_or_default();
            // kustomize takes no object without a name, so none is named by its release here.
            let (objects, notices) = translate_hooks(objects, "", &namespace, UnnamedNamespace::Source)
                .map_err(RenderError::Refused)?;
            warnings.extend(log_notices(notices));
            all.extend(objects);
        }
        warnings.truncate(MAX_WARNINGS);
        Ok(RenderOutput { objects: rendered_objects(all), warnings })
    }
}

/// Logs what a chart asks for and gets in another way, or does not get. Returns what is not run,
/// and which keys are printed twice: nobody sees that in the cluster.
pub(super) fn log_notices(notices: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for notice in &notices {
        tracing::info!(place = %notice.origin, "{}", notice.message);
    }
    let mut warnings: Vec<Diagnostic> =
        notices.into_iter().filter(|notice| matches!(notice.code, HOOK_NOT_RUN | DUPLICATE_KEY)).collect();
    warnings.truncate(MAX_WARNINGS);
    warnings
}

/// Returns the objects of a root, each with its name there.
pub(super) fn rendered_objects(objects: Vec<ChartObject>) -> Vec<RenderedObject> {
    let mut names = RenderedNames::default();
    let rendered = objects.into_iter().map(|ChartObject { body, origin, .. }| RenderedObject {
        name: names.name_of(&body),
        body,
        origin,
    });
    rendered.collect()
}

/// Runs the program over a tree, and returns what it prints.
pub(super) async fn build<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    tree: &RenderTree,
    files: &T,
    opened: &OpenedInputs,
) -> Result<Zeroizing<Vec<u8>>, RenderError> {
    let render_workspace = RenderWorkspace::write(host, "kustomize", tree, files, opened)?;
    let command = ProgramCommand::new(&program.path, render_workspace.tree.join(&*tree.root))
        .arguments(["build", "--load-restrictor", "LoadRestrictionsNone", "."])
        .go_runtime(KUSTOMIZE_GO_MEMORY_BYTES, 1);
    let run = match host.sandbox().run(&render_workspace.policy, &command).await {
        Ok(run) => run,
        Err(error) => return Err(with_open_words(error, render_workspace.folder(), tree, files)?.into()),
    };
    if run.is_success() {
        return Ok(Zeroizing::new(run.output));
    }
    // Of a program that has no memory left the last words are where it stopped.
    if run.denied_part() == Some(SandboxPart::Memory) {
        let (program, stderr) = ("kustomize".to_owned(), String::new());
        return Err(SandboxError::Stopped { program, part: SandboxPart::Memory, stderr }.into());
    }
    Err(match open_words(&run.stderr, render_workspace.folder(), tree, files)? {
        Some(stderr) => RenderError::Failed { program: "kustomize", stderr },
        None => RenderError::MessageWithheld { program: "kustomize" },
    })
}

/// Returns the error of a run of kustomize with those of its words alone that quote no value.
fn with_open_words<T: FileTree>(
    mut error: SandboxError,
    folder: &Path,
    tree: &RenderTree,
    files: &T,
) -> Result<SandboxError, RenderError> {
    if let Some(stderr) = error.stderr_mut().filter(|stderr| !stderr.trim().is_empty()) {
        *stderr = open_words(stderr, folder, tree, files)?.unwrap_or_default();
    }
    Ok(error)
}

/// Returns the words of kustomize about its end that quote no value of a Secret; none where all
/// may.
fn open_words<T: FileTree>(
    stderr: &str,
    folder: &Path,
    tree: &RenderTree,
    files: &T,
) -> Result<Option<String>, RenderError> {
    for words in stderr_texts(stderr, folder) {
        if !may_quote(&words, tree, files)? {
            return Ok(Some(words));
        }
    }
    Ok(None)
}

/// Returns whether words of kustomize may quote a value of a Secret in its files.
fn may_quote<T: FileTree>(output: &str, tree: &RenderTree, files: &T) -> Result<bool, RenderError> {
    let mut texts = Vec::new();
    for planned in &tree.files {
        let bytes = match &planned.content {
            PlannedContent::Blob(blob) => files.read(*blob)?,
            PlannedContent::Text(text) => text.clone(),
        };
        texts.push((&*planned.path, String::from_utf8_lossy(&bytes).into_owned()));
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, &**text)).collect();
    Ok(can_quote_secret(output, &texts))
}

/// A document that a program printed.
pub(super) struct PrintedDocument {
    /// Its value, with the variables in it.
    pub(super) body: Value,
    /// The findings about its variables.
    pub(super) findings: Vec<VariableFinding>,
}

/// Reads the documents that a program printed. Each is read by itself, so that the bounds of a file
/// are those of an object.
pub(super) fn documents(
    program: &'static str,
    output: &[u8],
    values: RenderValues<'_>,
    at: &ManifestOrigin,
) -> Result<Vec<PrintedDocument>, RenderError> {
    let unreadable = |detail: String| RenderError::Output { program, detail };
    let text = std::str::from_utf8(output).map_err(|error| unreadable(error.to_string()))?;
    let name: Arc<str> = "output".into();
    let mut documents = Vec::new();
    for part in text.split("\n---\n") {
        let part = part.strip_prefix("---\n").unwrap_or(part);
        let (found, read) = if values.opened.is_empty() {
            printed_part(&name, part, values.variables)
        } else {
            opened_part(&name, part, values, at)?
        };
        if let Some(fault) = found.iter().find(|found| found.is_error()) {
            return Err(unreadable(format!("line {}: {}", fault.origin.line, fault.message)));
        }
        documents.extend(read.into_iter().filter(|document| !document.body.is_null()));
        if documents.len() > MAX_RENDERED_OBJECTS {
            return Err(unreadable(format!("it has more than {MAX_RENDERED_OBJECTS} objects")));
        }
    }
    Ok(documents)
}

/// Reads one part of what was printed, and puts the variables into it.
fn printed_part(
    name: &Arc<str>,
    part: &str,
    variables: Option<&VariableTable>,
) -> (Vec<Diagnostic>, Vec<PrintedDocument>) {
    if let Some(table) = variables.filter(|_| part.contains('$')) {
        let read = substitute(name, part.as_bytes(), table);
        return (read.unreadable, read.documents.into_iter().map(printed_document).collect());
    }
    let read = read_documents(name, part.as_bytes());
    (read.diagnostics, read.documents.into_iter().map(plain_document).collect())
}

/// Does the same as [`printed_part`] for a program that read opened files. Their values must be in
/// the data of Secrets alone, and get no variables.
fn opened_part(
    name: &Arc<str>,
    part: &str,
    values: RenderValues<'_>,
    at: &ManifestOrigin,
) -> Result<(Vec<Diagnostic>, Vec<PrintedDocument>), RenderError> {
    let mut read = read_documents(name, part.as_bytes());
    // Nothing else may be said of a text before this.
    for document in &read.documents {
        values.opened.check_exposure(&document.to_value(), at)?;
    }
    let has_error = read.diagnostics.iter().any(Diagnostic::is_error);
    let Some(table) = values.variables.filter(|_| !has_error) else {
        return Ok((read.diagnostics, read.documents.into_iter().map(plain_document).collect()));
    };
    let taken: Vec<ExtractedValues> =
        read.documents.iter_mut().map(|document| values.opened.take_values(document)).collect();
    let substituted = substitute_documents(read, table);
    let documents = substituted.documents.into_iter().zip(taken).map(|(document, taken)| {
        let mut printed = printed_document(document);
        taken.put_back(&mut printed.body);
        printed
    });
    Ok((substituted.unreadable, documents.collect()))
}

fn plain_document(value: PlacedValue) -> PrintedDocument {
    PrintedDocument { body: value.into_value(), findings: Vec::new() }
}

fn printed_document(document: super::variables::SubstitutedDocument) -> PrintedDocument {
    PrintedDocument { body: document.value.into_value(), findings: document.findings }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::kustomize::{ClosureLimits, ParsedFiles, find_closure};
    use crate::input::opened_inputs::OpenedValues;
    use crate::input::plaintext_index::PlaintextIndex;
    use crate::input::variable_seal::SealKeys;

    #[test]
    fn variables_beside_opened_values_get_their_type_anew() {
        let values = [(Arc::from("db.env"), Zeroizing::new(b"canary-${B}".to_vec()))];
        let index = PlaintextIndex::new(&values).unwrap();
        let opened = OpenedInputs {
            opened: Some(OpenedValues { index, keys: SealKeys::default() }),
            ..OpenedInputs::default()
        };
        let output = "apiVersion: v1\nimmutable: ${B}\nkind: Secret\nmetadata:\n  name: \"${B}\"\n\
                      stringData:\n  password: canary-${B}\n  plain: ${B}\n";
        let rendered = |variables: Option<&VariableTable>| {
            let values = RenderValues { variables, opened: &opened };
            let read = documents("kustomize", output.as_bytes(), values, &ManifestOrigin::of_file("a"));
            read.unwrap().remove(0).body
        };
        let expected = |immutable: Value, name: &str, plain: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "immutable": immutable,
                "stringData": {"password": "canary-${B}", "plain": plain},
            })
        };
        let table = VariableTable::open([("B", "true")]);
        assert_eq!(rendered(Some(&table)), expected(json!(true), "true", "true"));
        assert_eq!(rendered(None), expected(json!("${B}"), "${B}", "${B}"));
    }

    #[test]
    fn the_words_of_a_program_that_was_ended_show_no_value_of_a_secret() {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  a: canary-k7\n";
        let files = MemoryTree::new()
            .file("web/kustomization.yaml", "resources: [secret.yaml]\n")
            .file("web/secret.yaml", secret);
        let limits = ClosureLimits::default();
        let closure = find_closure(&files, "web", limits, &mut ParsedFiles::default()).unwrap();
        let tree = RenderTree::plain(&closure);
        let check = |stderr: &str, expected: &str| {
            let texts = || ("kustomize".to_owned(), stderr.to_owned());
            let (program, stderr) = texts();
            let stopped = SandboxError::Stopped { program, part: SandboxPart::Output, stderr };
            let (program, stderr) = texts();
            let killed = SandboxError::Killed { program, signal: 11, stderr };
            for error in [stopped, killed] {
                let before = error.to_string();
                let shown = with_open_words(error, Path::new("/run/a"), &tree, &files).unwrap().to_string();
                let words = shown.split_once("; it said: ").map_or("", |(_, words)| words);
                assert_eq!(words, expected, "{before}");
            }
        };
        check("", "");
        check("\n", "");
        check("fatal error: stack overflow\n", "fatal error: stack overflow");
        check("Error: open /run/a/tree/web/none.yaml\n", "open web/none.yaml");
        check("bad value canary-k7", "");
        check("Error: bad value canary-k7\nstopped", "stopped");
    }

    /// Prints more small objects than anybody applies, within the bytes of an output.
    #[test]
    fn a_program_that_prints_too_many_objects_is_refused() {
        let opened = OpenedInputs::default();
        let values = RenderValues { variables: None, opened: &opened };
        let printed = |count: usize| {
            let output = "kind: A\n---\n".repeat(count);
            documents("kustomize", output.as_bytes(), values, &ManifestOrigin::of_file("a"))
        };
        assert_eq!(printed(MAX_RENDERED_OBJECTS).map(|read| read.len()).ok(), Some(MAX_RENDERED_OBJECTS));
        let refused =
            printed(MAX_RENDERED_OBJECTS + 1).err().map(|error| (error.to_string(), error.is_passing()));
        let text = "the output of kustomize cannot be read: it has more than 20000 objects";
        assert_eq!(refused, Some((text.to_owned(), false)));
    }
}
