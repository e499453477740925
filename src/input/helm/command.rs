//! The arguments of helm, and the key of its answer.

use std::path::{Path, PathBuf};

use crate::input::key::{ProgramIdentity, RenderInputs};
use crate::input::sandbox::ProgramCommand;

use super::closure::{ChartClosure, ChartValues};
use super::options::HelmOptions;

/// Go collects garbage only near this many bytes: few charts need as much.
const HELM_GO_MEMORY_BYTES: u64 = 192 << 20;

/// The folders of one render.
#[derive(Clone, Copy, Debug)]
pub struct ChartFolders<'a> {
    /// Holds the files of the closure, and nothing else.
    pub tree: &'a Path,
    /// The only one that helm may write.
    pub private: &'a Path,
}

impl ChartFolders<'_> {
    /// Returns the file that values without a file are written to, by their number among all
    /// values.
    pub(super) fn inline_values(&self, number: usize) -> PathBuf {
        self.private.join(format!("values-{number}.yaml"))
    }
}

/// Returns what helm is asked. It never asks a cluster, fetches nothing, runs no other program and
/// finds no plugin.
pub(crate) fn command(
    program: &Path,
    chart: &ChartClosure,
    options: &HelmOptions,
    folders: ChartFolders<'_>,
) -> ProgramCommand {
    let mut arguments = options.arguments();
    for (values, number) in chart.values.iter().zip(0..) {
        let path = match values {
            ChartValues::File(path) => folders.tree.join(&**path),
            ChartValues::Inline(_) => folders.inline_values(number),
        };
        arguments.push(format!("--values={}", csv_field(&path.display().to_string())));
    }
    let mut command = ProgramCommand::new(program, folders.tree.join(&*chart.closure.root))
        .arguments(arguments)
        .variable("HELM_NO_PLUGINS", "1")
        .go_runtime(HELM_GO_MEMORY_BYTES, 1);
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"] {
        command = command.variable(name, folders.private.join("helm"));
    }
    command
}

/// Returns a path as helm reads it in its lists of files, which are lines of CSV.
fn csv_field(path: &str) -> String {
    if path.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", path.replace('"', "\"\""))
    } else {
        path.to_owned()
    }
}

/// Returns all that the outcome of a render depends on.
pub(crate) fn render_inputs<'a>(
    program: &'a ProgramIdentity,
    chart: &'a ChartClosure,
    options: &HelmOptions,
) -> RenderInputs<'a> {
    let mut inputs = RenderInputs::of(program, &chart.closure);
    inputs.arguments = options.arguments();
    inputs.options.insert("generated".to_owned(), options.generated.word().to_owned());
    inputs.options.insert("unnamed".to_owned(), options.objects.word().to_owned());
    for values in &chart.values {
        inputs.arguments.push(match values {
            ChartValues::File(path) => format!("--values={path}"),
            ChartValues::Inline(text) => format!("--values\n{text}"),
        });
    }
    inputs.kube_version.clone_from(&options.kube_version);
    inputs.api_versions.clone_from(&options.api_versions);
    inputs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::input::helm::{GeneratedPolicy, SchemaUse};

    fn chart(values: &[ChartValues]) -> ChartClosure {
        let mut chart = ChartClosure { values: values.to_vec(), ..ChartClosure::default() };
        chart.closure.root = "apps/web".into();
        chart
    }

    fn file(path: &str) -> ChartValues {
        ChartValues::File(path.into())
    }

    fn inline(text: &str) -> ChartValues {
        ChartValues::Inline(Arc::from(text))
    }

    #[test]
    fn helm_is_asked_in_the_folder_of_the_chart() {
        let chart = chart(&[file("apps/web/prod.yaml"), inline("a: 1")]);
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let folders = ChartFolders { tree: Path::new("/t"), private: Path::new("/p") };
        let command = command(Path::new("/bin/helm"), &chart, &options, folders);
        assert_eq!(command.directory, Path::new("/t/apps/web"));
        assert_eq!(command.arguments[..3], ["template", "web", "."]);
        assert_eq!(command.arguments[5..], ["--values=/t/apps/web/prod.yaml", "--values=/p/values-1.yaml"]);
        for name in ["--validate", "--dependency-update", "--enable-dns", "--post-renderer"] {
            assert!(!command.arguments.iter().any(|argument| argument.to_string_lossy().starts_with(name)));
        }
        let outside = |value: &Path| value.is_absolute() && !value.starts_with("/p");
        assert!(!command.environment.iter().any(|(_, value)| outside(Path::new(value))));
        assert!(command.environment.contains(&("HELM_NO_PLUGINS".into(), "1".into())));
    }

    /// Checks the form in which helm reads a list of files: as a line of CSV.
    #[test]
    fn a_file_of_values_may_have_any_name() {
        let check = |path: &str, expected: &str| {
            let options = HelmOptions::default();
            let folders = ChartFolders { tree: Path::new("/t"), private: Path::new("/p") };
            let command = command(Path::new("/bin/helm"), &chart(&[file(path)]), &options, folders);
            assert_eq!(command.arguments.last().unwrap(), expected, "{path}");
        };
        check("a/b c.yaml", "--values=/t/a/b c.yaml");
        check("a,b.yaml", "--values=\"/t/a,b.yaml\"");
        check("a\"b.yaml", "--values=\"/t/a\"\"b.yaml\"");
        check("a\nb.yaml", "--values=\"/t/a\nb.yaml\"");
    }

    /// Checks that each option alone gives another key.
    #[test]
    fn every_option_is_in_the_key() {
        let base = HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        let options = [
            base.clone(),
            HelmOptions { release: "b".into(), ..base.clone() },
            HelmOptions { namespace: "b".into(), ..base.clone() },
            HelmOptions { kube_version: Some("1.34.0".into()), ..base.clone() },
            HelmOptions { api_versions: ["apps/v1".into()].into(), ..base.clone() },
            HelmOptions { generated: GeneratedPolicy::Once, ..base.clone() },
            HelmOptions { schemas: SchemaUse::Skip, ..base.clone() },
        ];
        let charts = [
            chart(&[file("a"), file("b")]),
            chart(&[file("b"), file("a")]),
            chart(&[inline("a: 1")]),
            chart(&[inline("a: 2")]),
            chart(&[inline("a"), inline("b")]),
        ];
        let program = ProgramIdentity { name: "helm".into(), version: "3.18.0".into(), digest: [0; 32] };
        let empty = chart(&[]);
        let mut keys: BTreeSet<_> =
            options.iter().map(|options| render_inputs(&program, &empty, options).key()).collect();
        keys.extend(charts.iter().map(|chart| render_inputs(&program, chart, &base).key()));
        assert_eq!(keys.len(), options.len() + charts.len());
    }
}
