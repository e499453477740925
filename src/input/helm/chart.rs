//! The metadata of a chart: its name, its kind, and the charts that it is made of.

use std::sync::Arc;

use serde_json::Value;

use crate::input::kustomize::{fold_case, sanitize_text};
use crate::manifest::{PlacedEntry, PlacedNode, PlacedValue, TextPosition, float_text, read_first_document};
use crate::object::Diagnostic;

use super::refusal::{self, WHOLE_FILE};

/// The name of the file that makes a folder a chart.
pub(crate) const CHART_FILE: &str = "Chart.yaml";
/// The file in which charts of the first form name their dependencies. Helm reads it in any chart.
pub(super) const REQUIREMENTS_FILE: &str = "requirements.yaml";

/// The two kinds of charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartKind {
    /// It can be installed.
    #[default]
    Application,
    /// Only other charts use it.
    Library,
}

/// A chart that another one is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartDependency {
    /// Its name.
    pub name: String,
    /// The name that it has in the chart; empty where that is its own.
    pub alias: String,
    /// The versions that will do.
    pub version: String,
    /// The place that it comes from.
    pub repository: String,
    /// Indicates whether values may switch it off.
    pub is_conditional: bool,
    /// The place of its entry.
    pub position: TextPosition,
}

impl ChartDependency {
    /// Returns the name that it has in the chart.
    pub(super) fn name_in_chart(&self) -> &str {
        if self.alias.is_empty() { &self.name } else { &self.alias }
    }
}

/// The metadata of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartMetadata {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: ChartKind,
    /// The charts that it is made of, in their order.
    pub dependencies: Vec<ChartDependency>,
}

/// A chart's name and version, for example `podinfo 6.7.1`. Each object that the chart makes has
/// this in its origin, so that it is bounded.
impl std::fmt::Display for ChartMetadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", sanitize_text(&self.name), sanitize_text(&self.version))
    }
}

impl ChartMetadata {
    /// Reads a `Chart.yaml`. A fault in it is a finding of this file.
    pub(super) fn read(file: &Arc<str>, bytes: &[u8]) -> (Self, Vec<Diagnostic>) {
        let read = read_first_document(file, bytes);
        let Some(root) = read.documents.first() else {
            let mut faults: Vec<_> = read.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
            if faults.is_empty() {
                faults.push(refusal::chart_fault(file, WHOLE_FILE, "the file is empty"));
            }
            return (Self::default(), faults);
        };
        let mut faults = Vec::new();
        let mut refuse = |key: &str, message: String| {
            let position = entry(root, key).map_or(WHOLE_FILE, |entry| entry.position);
            faults.push(refusal::chart_fault(file, position, message));
        };
        // helm takes a chart without a form for one of the first. Of other words helm 3 makes the
        // second form, and helm 4 none.
        let is_form = |entry: &PlacedEntry| match &entry.value.node {
            PlacedNode::Scalar(Value::String(word)) => matches!(word.as_str(), "" | "v1" | "v2"),
            _ => false,
        };
        if !text_entry(root, "apiVersion").is_none_or(is_form) {
            let word = text(root, "apiVersion");
            refuse("apiVersion", format!("apiVersion is {word:?}, and may be v1 or v2"));
        }
        for key in ["name", "version"] {
            if scalar_text(root, key).trim().is_empty() {
                refuse(key, format!("{key} must be a text, and is missing or none"));
            }
        }
        let kind = match text(root, "type") {
            "" | "application" => ChartKind::Application,
            "library" => ChartKind::Library,
            other => {
                refuse("type", format!("type is {other:?}, and may be application or library"));
                ChartKind::Application
            }
        };
        let metadata = Self {
            name: scalar_text(root, "name"),
            version: scalar_text(root, "version"),
            kind,
            dependencies: dependencies(root),
        };
        (metadata, faults)
    }

    /// Reads the dependencies of a `requirements.yaml`; none where it names no list of them, so
    /// that those of the `Chart.yaml` stay.
    pub(super) fn read_requirements(file: &Arc<str>, bytes: &[u8]) -> Option<Vec<ChartDependency>> {
        let read = read_first_document(file, bytes);
        read.documents.first().filter(|root| entry(root, "dependencies").is_some()).map(dependencies)
    }
}

fn dependencies(root: &PlacedValue) -> Vec<ChartDependency> {
    let items = entry(root, "dependencies").map(|entry| entry.value.items()).unwrap_or_default();
    let one = |item: &PlacedValue| ChartDependency {
        name: scalar_text(item, "name"),
        alias: scalar_text(item, "alias"),
        version: scalar_text(item, "version"),
        repository: scalar_text(item, "repository"),
        is_conditional: ["condition", "tags"].iter().any(|key| entry(item, key).is_some()),
        position: item.position,
    };
    items.iter().map(one).filter(|dependency| !dependency.name.is_empty()).collect()
}

/// Returns the entry of a key. Go decodes JSON whatever the case of a key, and so does helm. It has
/// the keys in order by then, and the last one counts.
fn entry<'a>(value: &'a PlacedValue, key: &str) -> Option<&'a PlacedEntry> {
    let is_named = |entry: &&PlacedEntry| entry.key == key || fold_case(&entry.key) == fold_case(key);
    value.entries().iter().filter(is_named).max_by(|a, b| a.key.cmp(&b.key))
}

/// Does the same as [`entry`], where helm needs a text: a null leaves the one that is there, as of
/// a key in another case.
fn text_entry<'a>(value: &'a PlacedValue, key: &str) -> Option<&'a PlacedEntry> {
    let is_set = |entry: &&PlacedEntry| entry.value.node != PlacedNode::Scalar(Value::Null);
    let is_named = |entry: &&PlacedEntry| entry.key == key || fold_case(&entry.key) == fold_case(key);
    value.entries().iter().filter(is_named).filter(is_set).max_by(|a, b| a.key.cmp(&b.key))
}

fn text<'a>(value: &'a PlacedValue, key: &str) -> &'a str {
    text_entry(value, key).and_then(|entry| entry.value.text()).unwrap_or_default()
}

/// Returns a scalar as helm reads it where a text is needed. A number is its text, in the digits
/// that a float of 32 bits needs. Thus `1.10` is 1.1. A truth value is none here: no name and no
/// version is one.
pub(crate) fn scalar_text(value: &PlacedValue, key: &str) -> String {
    match text_entry(value, key).map(|entry| &entry.value.node) {
        Some(PlacedNode::Scalar(Value::String(text))) => text.clone(),
        Some(PlacedNode::Scalar(Value::Number(number))) => match number.as_i64() {
            Some(int) => int.to_string(),
            None => number.as_f64().map(float_text).unwrap_or_default(),
        },
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (ChartMetadata, Vec<String>) {
        let (metadata, faults) = ChartMetadata::read(&Arc::from("Chart.yaml"), text.as_bytes());
        (metadata, faults.iter().map(|fault| format!("{}: {}", fault.origin, fault.message)).collect())
    }

    #[test]
    fn a_chart_tells_its_name_kind_and_parts() {
        let text = "apiVersion: v2\nname: web\nversion: 1.2.0\ndependencies:\n\
                    - name: redis\n  version: ~1\n  repository: oci://x\n  alias: cache\n  condition: redis.enabled\n\
                    - name: common\n  version: 2.x\n";
        let (metadata, faults) = read(text);
        assert_eq!(
            (metadata.to_string(), metadata.kind, faults),
            ("web 1.2.0".into(), ChartKind::Application, vec![])
        );
        let parts: Vec<_> = metadata
            .dependencies
            .iter()
            .map(|part| (&*part.name, &*part.alias, part.is_conditional, part.position.line))
            .collect();
        assert_eq!(parts, [("redis", "cache", true, 5), ("common", "", false, 10)]);
        let (library, faults) = read("apiVersion: v2\nname: a\nversion: 1.0.0\ntype: library\n");
        assert_eq!((library.kind, faults), (ChartKind::Library, vec![]));
    }

    #[test]
    fn a_key_is_known_in_any_case() {
        let parts = "Dependencies: [{Name: b, VERSION: 2.0.0, Alias: c}]\n";
        let (chart, faults) = read(&format!("Name: a\nVersion: 1.0.0\nType: library\n{parts}"));
        assert_eq!((chart.to_string(), chart.kind, faults), ("a 1.0.0".into(), ChartKind::Library, vec![]));
        let part = &chart.dependencies[0];
        assert_eq!((&*part.name, &*part.version, part.name_in_chart()), ("b", "2.0.0", "c"));
        let name = |text: &str| read(&format!("{text}version: 1.0.0\n")).0.name;
        assert_eq!(name("Name: a\nname: b\n"), "b");
        assert_eq!(name("name: b\nName: a\n"), "b");
        // A null sets no text, and empties a list.
        assert_eq!(name("Name: a\nname: null\n"), "a");
        let emptied = read("name: a\nversion: 1.0.0\nDependencies: [{name: b}]\ndependencies: null\n").0;
        assert_eq!(emptied.dependencies, []);
        // One of the two letters beyond ASCII that fold into it.
        assert_eq!(read("name: a\nver\u{17f}ion: 1.0.0\n").0.version, "1.0.0");
    }

    /// Compares with what helm 3.22 makes of each text, as `.Chart.Version` shows it.
    #[test]
    fn a_number_is_a_version_as_helm_reads_it() {
        let check = |text: &str, expected: &str| {
            let one = format!("- {{name: b, version: {text}}}\n");
            let (chart, faults) = read(&format!("name: a\nversion: {text}\ndependencies:\n{one}"));
            let found = (&*chart.version, &*chart.dependencies[0].version, faults.as_slice());
            assert_eq!(found, (expected, expected, &[][..]), "{text}");
        };
        check("0.1", "0.1");
        check("1", "1");
        check("1.10", "1.1");
        check("1.0", "1");
        check("\"1.10\"", "1.10");
        check("'1'", "1");
        check("1e3", "1000");
        check("0x10", "16");
        check("010", "8");
        check("1_000", "1000");
        check(".5", "0.5");
        check("1.23456789012345678901", "1.2345679");
        check("2024-01-01", "2024-01-01");
        check("1.2.3", "1.2.3");
        assert_eq!(
            read("name: 5\nversion: 1.0.0\n"),
            (ChartMetadata { name: "5".into(), version: "1.0.0".into(), ..ChartMetadata::default() }, vec![])
        );
    }

    #[test]
    fn a_name_and_a_version_are_shown_within_bounds() {
        let (chart, _) = read(&format!("name: \"we\\tb\"\nversion: 1.0.0-{}\n", "a".repeat(10_000)));
        let shown = chart.to_string();
        assert!(shown.starts_with("we\u{fffd}b 1.0.0-aaa") && shown.len() < 300, "{shown}");
    }

    #[test]
    fn what_helm_would_not_take_is_reported_with_its_line() {
        let check = |text: &str, expected: &[&str]| assert_eq!(read(text).1, expected, "{text}");
        check("name: a\nversion: 1.0.0\n", &[]);
        for form in ["v1", "v2", "", "''", "null", "~"] {
            check(&format!("apiVersion: {form}\nname: a\nversion: 1.0.0\n"), &[]);
        }
        check(
            "apiVersion: 2\nname: a\nversion: 1.0.0\n",
            &["Chart.yaml:1: apiVersion is \"\", and may be v1 or v2"],
        );
        check(
            "apiVersion: v3\nname: a\nversion: 1.0.0\n",
            &["Chart.yaml:1: apiVersion is \"v3\", and may be v1 or v2"],
        );
        check(
            "name: a\nversion: x\ntype: plugin\n",
            &["Chart.yaml:3: type is \"plugin\", and may be application or library"],
        );
        check("name: a\nversion: true\n", &["Chart.yaml:2: version must be a text, and is missing or none"]);
        check("name: a\nversion: [1]\n", &["Chart.yaml:2: version must be a text, and is missing or none"]);
        check("name: a\nversion:\n", &["Chart.yaml:2: version must be a text, and is missing or none"]);
        check("version: 1.0.0\n", &["Chart.yaml: name must be a text, and is missing or none"]);
        check("", &["Chart.yaml: the file is empty"]);
        assert_eq!(read("a: [\n").1.len(), 1);
    }
}
