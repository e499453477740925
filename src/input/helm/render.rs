//! A render of one chart: helm in the sandbox, over the files of the closure.

use std::fs;
use std::io;
use std::path::Path;

use crate::input::kustomize::ClosureFile;
use crate::input::sandbox::{RunOutput, Sandbox, SandboxError, SandboxPolicy};
use crate::input::tree::FileTree;
use crate::object::{Diagnostic, ErrorClass, text_at};
use crate::source::SourceError;

use super::archive::{is_chart_archive, read_archive};
use super::chart::CHART_FILE;
use super::closure::{ChartClosure, ChartValues};
use super::command::{ChartFolders, command};
use super::definitions::first_definitions;
use super::error_finding::{self, TemplateTexts};
use super::generated;
use super::hooks;
use super::namespaces::name_namespace;
use super::options::{GeneratedPolicy, HelmOptions, UnnamedNamespace};
use super::output::{self, ChartObject};
use super::schema::SCHEMA_FILE;
use super::shifted_time::{ShiftedTree, restore_texts, shifted_values};

/// Bytes that come out of the archives in a chart for the words of an error.
const MAX_UNPACKED_TEXT_BYTES: u64 = 64 << 20;

/// The reason for which a chart was not rendered.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The revision cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The values could not be written for helm.
    #[error("the values for helm cannot be written: {error}")]
    Values {
        /// The system's message.
        error: io::Error,
    },
    /// helm did not run to its own end.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The chart cannot be rendered: the same input gives the same again.
    #[error("{}", first_message(.findings))]
    Refused {
        /// All that is wrong with it.
        findings: Vec<Diagnostic>,
    },
}

impl ChartError {
    /// Returns what kind of error it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Source(error) => error.class(),
            Self::Values { .. } => ErrorClass::Transient,
            Self::Sandbox(error) => error.class(),
            Self::Refused { .. } => ErrorClass::Invalid,
        }
    }
}

fn first_message(findings: &[Diagnostic]) -> String {
    findings.first().map(|found| format!("{}: {}", found.origin, found.message)).unwrap_or_default()
}

/// The sandbox, the program and the folders of a chart's rendering.
#[derive(Clone, Copy, Debug)]
pub struct ChartRenderHost<'a> {
    /// Starts helm.
    pub sandbox: &'a Sandbox,
    /// Its sandbox. It may read the folder of the tree.
    pub policy: &'a SandboxPolicy,
    /// The file of helm.
    pub program: &'a Path,
    /// The folder that holds the files of the closure, and nothing else.
    pub tree: &'a Path,
}

/// The outcome of a render.
#[derive(Debug)]
pub struct ChartRender {
    /// The objects: hooks that run before, the rest in the order of helm, and hooks that run after.
    pub objects: Vec<ChartObject>,
    /// The facts that a person should know, and that keep nothing from being applied.
    pub notices: Vec<Diagnostic>,
}

/// Renders a chart whose files lie in the folder of the host's tree. Its hooks become objects among
/// the others, in their order. Objects that name no namespace get that of the release, where the
/// options ask for it.
///
/// # Errors
/// Fails where the chart cannot be rendered, where the sandbox stops helm, and where helm cannot
/// be run.
pub async fn render_chart<T: FileTree>(
    host: ChartRenderHost<'_>,
    chart: &ChartClosure,
    options: &HelmOptions,
    files: &T,
) -> Result<ChartRender, ChartError> {
    let printed = print_chart(host, chart, options, files).await?;
    let (objects, repeated) = first_definitions(printed.objects);
    let (mut objects, of_hooks) =
        hooks::translate(objects, &options.release, &options.namespace, options.objects)
            .map_err(|findings| ChartError::Refused { findings })?;
    let notices = printed.notices.into_iter().chain(repeated).chain(of_hooks).collect();
    if options.objects == UnnamedNamespace::Release {
        name_namespace(&mut objects, &options.namespace);
    }
    Ok(ChartRender { objects, notices })
}

/// The text that helm printed of a chart, and the objects in it.
pub(crate) struct PrintedChart {
    /// The text. It says what the objects say.
    pub(crate) text: Vec<u8>,
    /// The objects, hooks among them as helm prints them.
    pub(crate) objects: Vec<ChartObject>,
    /// The facts that a person should know of the text.
    pub(crate) notices: Vec<Diagnostic>,
}

impl PrintedChart {
    /// Takes the words for hooks off the files in `crds/`, and puts the items of lists in the place
    /// of these.
    fn simplify(mut self, chart: &ChartClosure) -> Result<Self, ChartError> {
        let taken = self.objects.iter_mut().map(hooks::take_hook_of_definition);
        if taken.filter(|was_hook| *was_hook).count() > 0 {
            self.write_text();
        }
        let is_list = |object: &ChartObject| {
            text_at(&object.body, &["kind"]).ends_with("List") && object.body.get("items").is_some()
        };
        if self.objects.iter().any(is_list) {
            self.objects = self.objects.into_iter().flat_map(hooks::listed_objects).collect();
            output::check_count(chart, &self.objects).map_err(|findings| ChartError::Refused { findings })?;
            self.write_text();
        }
        Ok(self)
    }

    /// Makes the text say what the objects say.
    fn write_text(&mut self) {
        let documents: Vec<String> = self.objects.iter().map(|object| object.body.to_string()).collect();
        self.text = documents.join("\n---\n").into_bytes();
    }
}

/// Renders a chart, and leaves its hooks as they are. Values that it makes up are refused, or left
/// alone.
///
/// # Errors
/// As [`render_chart`].
pub(crate) async fn print_chart<T: FileTree>(
    host: ChartRenderHost<'_>,
    chart: &ChartClosure,
    options: &HelmOptions,
    files: &T,
) -> Result<PrintedChart, ChartError> {
    let mut printed = template(host, chart, options, files).await?.simplify(chart)?;
    if !generated::may_generate(chart, files, host.tree)? {
        return Ok(printed);
    }
    let again = match template_at_another_time(host, chart, options, files).await? {
        Some(again) => again,
        None => template(host, chart, options, files).await?.simplify(chart)?.objects,
    };
    judge_generated(&mut printed.objects, &again, options)
        .map_err(|findings| ChartError::Refused { findings })?;
    if printed.objects.iter().any(|object| !object.generated.is_empty()) {
        printed.write_text();
    }
    Ok(printed)
}

/// Returns the objects of a chart as helm prints them.
///
/// # Errors
/// As [`render_chart`].
pub async fn template_chart<T: FileTree>(
    host: ChartRenderHost<'_>,
    chart: &ChartClosure,
    options: &HelmOptions,
    files: &T,
) -> Result<Vec<ChartObject>, ChartError> {
    template(host, chart, options, files).await.map(|printed| printed.objects)
}

async fn template<T: FileTree>(
    host: ChartRenderHost<'_>,
    chart: &ChartClosure,
    options: &HelmOptions,
    files: &T,
) -> Result<PrintedChart, ChartError> {
    if !chart.is_renderable() {
        let findings = chart.closure.diagnostics.iter().filter(|found| found.is_error()).cloned().collect();
        return Err(ChartError::Refused { findings });
    }
    let folders = ChartFolders { tree: host.tree, private: &host.policy.private };
    write_values(chart, folders)?;
    let run = host.sandbox.run(host.policy, &command(host.program, chart, options, folders)).await;
    // Its words may hold values, and those about an error alone are looked through.
    let run = run.map_err(SandboxError::without_stderr)?;
    let (objects, notices) = objects_of(chart, options, &run, files)?;
    Ok(PrintedChart { text: run.output, objects, notices })
}

/// Returns the objects of a chart as helm prints them at another time. None where no template asks
/// for the time, and where the chart does not render at that time.
async fn template_at_another_time<T: FileTree>(
    host: ChartRenderHost<'_>,
    chart: &ChartClosure,
    options: &HelmOptions,
    files: &T,
) -> Result<Option<Vec<ChartObject>>, ChartError> {
    let failed = |error| ChartError::Values { error };
    let shifted = ShiftedTree::write(host.tree, chart).map_err(failed)?;
    let values = shifted_values(chart);
    if shifted.is_empty() && values.is_none() {
        return Ok(None);
    }
    let outcome = template(host, values.as_ref().unwrap_or(chart), options, files).await;
    shifted.restore().map_err(failed)?;
    match outcome {
        Ok(printed) => {
            let mut printed = printed.simplify(chart)?;
            printed.objects.iter_mut().for_each(|object| restore_texts(&mut object.body));
            Ok(Some(printed.objects))
        }
        Err(ChartError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds what is made up anew at each render, and refuses it or leaves it alone.
fn judge_generated(
    objects: &mut [ChartObject],
    again: &[ChartObject],
    options: &HelmOptions,
) -> Result<(), Vec<Diagnostic>> {
    generated::compare(objects, again)?;
    match options.generated {
        GeneratedPolicy::Once => generated::leave_alone(objects, &generated::new_mark(options)),
        GeneratedPolicy::Refuse => match generated::refusals(objects) {
            refusals if refusals.is_empty() => Ok(()),
            refusals => Err(refusals),
        },
    }
}

/// Writes values that are in no file of the revision.
fn write_values(chart: &ChartClosure, folders: ChartFolders<'_>) -> Result<(), ChartError> {
    for (values, number) in chart.values.iter().zip(0..) {
        if let ChartValues::Inline(text) = values {
            let written = fs::write(folders.inline_values(number), text.as_bytes());
            written.map_err(|error| ChartError::Values { error })?;
        }
    }
    Ok(())
}

/// Returns the objects that helm printed, and what a person should know of its text.
fn objects_of<T: FileTree>(
    chart: &ChartClosure,
    options: &HelmOptions,
    run: &RunOutput,
    files: &T,
) -> Result<(Vec<ChartObject>, Vec<Diagnostic>), ChartError> {
    if run.is_success() {
        return output::read(chart, &run.output).map_err(|findings| ChartError::Refused { findings });
    }
    let mut texts = template_texts(chart, files)?;
    texts.try_add_words(options.kube_version.as_deref().unwrap_or_default());
    let found = error_finding::finding(chart, run, &texts);
    Err(ChartError::Refused { findings: vec![found] })
}

/// Returns the texts of all templates, and the words of schemas and of the charts' own files.
fn template_texts<T: FileTree>(chart: &ChartClosure, files: &T) -> Result<TemplateTexts, SourceError> {
    let read = |file: &ClosureFile| {
        files.read(file.file.blob).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut texts = TemplateTexts::default();
    for file in templates(chart) {
        texts.add_template(&read(file)?);
    }
    let is_named = |path: &str| path.ends_with(SCHEMA_FILE) || path.ends_with(CHART_FILE);
    for (_, file) in chart.closure.files.iter().filter(|(path, _)| is_named(path)) {
        texts.try_add_words(&read(file)?);
    }
    let mut unpackable = MAX_UNPACKED_TEXT_BYTES;
    for (_, file) in chart.closure.files.iter().filter(|(path, _)| is_chart_archive(path)) {
        // helm itself says what is wrong with one that cannot be read.
        let packed = read_archive(&files.read(file.file.blob)?, &mut unpackable).unwrap_or_default();
        for (path, bytes) in packed {
            let text = String::from_utf8_lossy(&bytes);
            if is_template(&path) {
                texts.add_template(&text);
            } else if is_named(&path) {
                texts.try_add_words(&text);
            }
        }
    }
    Ok(texts)
}

fn templates(chart: &ChartClosure) -> impl Iterator<Item = &ClosureFile> {
    let files = chart.closure.files.iter();
    files.filter(|(path, _)| is_template(path)).map(|(_, file)| file)
}

fn is_template(path: &str) -> bool {
    path.contains("templates/")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::archive::write_archive;
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::helm::{ChartLimits, find_closure};

    #[test]
    fn the_words_of_a_chart_in_an_archive_are_shown_too() {
        let template = ("redis/templates/a.yaml".to_owned(), &b"{{ fail \"a password is required\" }}"[..]);
        let tree = MemoryTree::new()
            .file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
            .file("web/charts/redis-1.0.0.tgz", write_archive([template].into_iter()).unwrap())
            .file("web/charts/other-1.0.0.tgz", "none");
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let chart = find_closure(&tree, "web", "", &options, ChartLimits::default()).unwrap();
        let texts = template_texts(&chart, &tree).unwrap();
        let stderr =
            "Error: execution error at (web/charts/redis/templates/a.yaml:1:3): a password is required";
        let (output, stderr) = (Vec::new(), stderr.to_owned());
        let run = RunOutput { code: 1, output, stderr, processor: Duration::ZERO };
        let message = error_finding::finding(&chart, &run, &texts).message;
        assert_eq!(message, "helm does not render it: execution error: a password is required");
    }
}
