//! The output of helm, as objects with the templates that they come from.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::input::origin::{CHART_SEPARATOR, ObjectOrigin};
use crate::manifest::read_printed_documents;
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::DUPLICATE_KEY;

use super::chart::CHART_FILE;
use super::closure::ChartClosure;
use super::refusal::{WHOLE_FILE, origin_at};
use super::trace::PARTS_FOLDER;

/// The beginning of each document that helm prints. The path of its template follows.
const SOURCE_COMMENT_PREFIX: &str = "---\n# Source: ";
/// Objects that one chart may have: as many as one file may hold.
const MAX_CHART_OBJECTS: usize = 20_000;
/// Notices of one chart that are kept.
const MAX_NOTICES: usize = 100;
/// The folder of a chart with the files that helm prints as they are.
const DEFINITIONS_FOLDER: &str = "crds";

/// An object that a chart makes.
#[derive(Clone, PartialEq)]
pub struct ChartObject {
    /// Its tree.
    pub body: Value,
    /// The chart and template that it comes from.
    pub origin: ObjectOrigin,
    /// The fields that another render gives other values, as JSON pointers.
    pub generated: Vec<String>,
    /// Indicates whether it is of a file in `crds/`, which helm installs as it is.
    pub is_definition: bool,
}

/// Leaves the body out, because it may be a Secret.
impl fmt::Debug for ChartObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChartObject(from {})", self.origin)
    }
}

/// Reads the output of helm, and returns also what a person should know of it. Documents without
/// content are left out. A key that is given twice has its last value, as for helm and kubectl:
/// nobody can mend a chart of somebody else.
///
/// # Errors
/// Fails where a document is no YAML, or where there are too many, with all that is wrong.
pub(super) fn read(
    chart: &ChartClosure,
    output: &[u8],
) -> Result<(Vec<ChartObject>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Ok(text) = std::str::from_utf8(output) else {
        let file = chart_origin(chart);
        return Err(vec![Diagnostic::error(
            file,
            "render-failed",
            "the chart makes objects that are no UTF-8",
        )]);
    };
    let renderer: Arc<str> = format!("helm{CHART_SEPARATOR}{}", chart.chart).into();
    let (mut objects, mut faults, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for (template, part) in parts(&chart.chart.name, text) {
        let is_definition = is_definition_file(template);
        let origin_of_line =
            |line| chart.template_origin(template, line).unwrap_or_else(|| chart_origin(chart));
        let read = read_printed_documents(&Arc::from(template), part.as_bytes());
        let twice = read.diagnostics.iter().filter(|found| found.code == DUPLICATE_KEY);
        notices.extend(twice.map(|found| {
            let message = format!("in what the template makes, {}", found.message);
            Diagnostic::warning(origin_of_line(0), DUPLICATE_KEY, message)
                .hint("its last value counts, as for helm")
        }));
        faults.extend(read.diagnostics.iter().filter(|found| found.is_error()).map(|found| {
            let message = format!("line {} of what the template makes: {}", found.origin.line, found.message);
            Diagnostic::error(origin_of_line(0), "render-failed", message)
                .hint("`helm template --show-only` prints what it makes")
        }));
        for document in read.documents {
            let line = if is_definition { document.position.line } else { 0 };
            let origin = ObjectOrigin {
                root: chart.closure.root.clone(),
                renderer: renderer.clone(),
                places: vec![origin_of_line(line)],
            };
            let (body, generated) = (document.into_value(), Vec::new());
            objects.push(ChartObject { body, origin, generated, is_definition });
        }
        check_count(chart, &objects)?;
    }
    notices.truncate(MAX_NOTICES);
    if faults.is_empty() { Ok((objects, notices)) } else { Err(faults) }
}

/// Returns whether helm prints a file as it is, as it is in the folder `crds/` of a chart or of a
/// subchart.
fn is_definition_file(template: &str) -> bool {
    let mut parts = template.split('/').skip(1);
    loop {
        match parts.next() {
            Some(PARTS_FOLDER) => {
                let _name = parts.next();
            }
            part => return part == Some(DEFINITIONS_FOLDER),
        }
    }
}

/// Refuses more objects than one chart may have.
pub(super) fn check_count(chart: &ChartClosure, objects: &[ChartObject]) -> Result<(), Vec<Diagnostic>> {
    if objects.len() <= MAX_CHART_OBJECTS {
        return Ok(());
    }
    let message = format!("the chart makes more than {MAX_CHART_OBJECTS} objects");
    Err(vec![Diagnostic::error(chart_origin(chart), "render-failed", message)])
}

/// Returns the place of the chart's own file.
pub(super) fn chart_origin(chart: &ChartClosure) -> ManifestOrigin {
    let path = crate::input::paths::append(&chart.closure.root, CHART_FILE);
    origin_at(&path.into(), WHOLE_FILE)
}

/// Divides an output into parts, each with its template. The line of a template's path is the first
/// of its part, as helm prints it before the text: all other lines keep their numbers.
///
/// A file that helm prints as it is may hold such a line itself. It belongs to another chart.
///
/// The text before the first such line is a part without a template. helm takes signs out of the
/// name of a chart that nobody can print, and nothing that it prints may be lost.
fn parts<'a>(chart: &str, text: &'a str) -> Vec<(&'a str, &'a str)> {
    let begins = |at: &usize| {
        let is_line = *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
        let path = text.get(at + SOURCE_COMMENT_PREFIX.len()..).unwrap_or_default();
        is_line && path.strip_prefix(chart).is_some_and(|rest| rest.starts_with('/'))
    };
    let starts: Vec<usize> =
        text.match_indices(SOURCE_COMMENT_PREFIX).map(|(at, _)| at).filter(begins).collect();
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    let part = |(start, end): (&usize, usize)| {
        let part = text.get(start + SOURCE_COMMENT_PREFIX.len()..end)?;
        let (template, body) = part.split_once('\n').unwrap_or((part, ""));
        Some((template.trim_end(), body))
    };
    let before = text.get(..starts.first().copied().unwrap_or(text.len())).unwrap_or_default();
    let unnamed = (!before.trim().is_empty()).then_some(("", before));
    unnamed.into_iter().chain(starts.iter().zip(ends).filter_map(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::helm::{ChartLimits, HelmOptions, find_closure};

    fn closure() -> ChartClosure {
        let tree = MemoryTree::new()
            .file("apps/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
            .file("apps/web/templates/a.yaml", "a")
            .file("apps/web/crds/b.yaml", "b")
            .file("apps/web/charts/cache-folder/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 2.0.0\n")
            .file("apps/web/charts/cache-folder/templates/c.yaml", "c");
        let options =
            HelmOptions { release: "web".into(), namespace: "prod".into(), ..HelmOptions::default() };
        find_closure(&tree, "apps/web", "apps", &options, ChartLimits::default()).unwrap()
    }

    fn origins(output: &str) -> Vec<String> {
        let (objects, _) = read(&closure(), output.as_bytes()).unwrap();
        objects.iter().map(|object| format!("{} {}", object.body["kind"], object.origin.places[0])).collect()
    }

    #[test]
    fn files_in_crds_are_told_from_templates() {
        let check = |template: &str, expected: bool| {
            assert_eq!(is_definition_file(template), expected, "{template}");
        };
        check("web/crds/a.yaml", true);
        check("web/crds/more/a.yaml", true);
        check("web/charts/cache/crds/a.yaml", true);
        check("web/charts/cache/charts/crds/crds/a.yaml", true);
        check("crds/templates/a.yaml", false);
        check("web/templates/crds/a.yaml", false);
        check("web/charts/crds/templates/a.yaml", false);
        check("", false);
    }

    #[test]
    fn each_object_names_its_template() {
        let output = "\n---\n# Source: web/crds/b.yaml\n# a comment\nkind: D\n---\nkind: E\n\
                      ---\n# Source: web/templates/a.yaml\nkind: A\nx: |\n  ---\n  # Source: web/templates/none\n\
                      ---\n# Source: web/templates/a.yaml\n# nothing\n\
                      ---\n# Source: web/charts/cache/templates/c.yaml\nkind: C\n\
                      ---\n# Source: web/templates/unknown.yaml\nkind: U\n";
        assert_eq!(
            origins(output),
            [
                "\"D\" apps/web/crds/b.yaml:2",
                "\"E\" apps/web/crds/b.yaml:4",
                "\"A\" apps/web/templates/a.yaml",
                "\"C\" apps/web/charts/cache-folder/templates/c.yaml",
                "\"U\" apps/web/Chart.yaml",
            ]
        );
        let (objects, notices) = read(&closure(), output.as_bytes()).unwrap();
        assert_eq!(notices, []);
        assert_eq!(objects[2].origin.to_string(), "apps/web (helm, web 1.0.0) ← apps/web/templates/a.yaml");
        assert_eq!(objects[2].body["x"], "---\n# Source: web/templates/none\n");
    }

    #[test]
    fn an_object_of_no_known_template_is_one_too() {
        let other =
            "---\n# Source: wob/templates/a.yaml\nkind: A\n---\n# Source: wob/templates/b.yaml\nkind: B\n";
        assert_eq!(origins(other), ["\"A\" apps/web/Chart.yaml", "\"B\" apps/web/Chart.yaml"]);
        let before = "kind: A\n---\n# Source: web/templates/a.yaml\nkind: B\n";
        assert_eq!(origins(before), ["\"A\" apps/web/Chart.yaml", "\"B\" apps/web/templates/a.yaml"]);
        assert_eq!(origins(" \n"), [""; 0]);
        assert!(read(&closure(), b"kind: [\n").is_err());
    }

    #[test]
    fn a_key_that_a_template_prints_twice_has_its_last_value() {
        let output =
            "---\n# Source: web/templates/a.yaml\nkind: A\nmetadata:\n  labels:\n    app: a\n    app: b\n";
        let (objects, notices) = read(&closure(), output.as_bytes()).unwrap();
        assert_eq!(objects[0].body, serde_json::json!({"kind": "A", "metadata": {"labels": {"app": "b"}}}));
        let found: Vec<_> =
            notices.iter().map(|found| format!("{}: {}", found.origin, found.message)).collect();
        let words = "in what the template makes, key \"app\" is given twice in this mapping: first in line 4, again \
                     in line 5";
        assert_eq!(found, [format!("apps/web/templates/a.yaml: {words}")]);
        assert!(!notices[0].is_error());
        // However many there are, a fault among them is one.
        let many = "  a: 1\n".repeat(5_000);
        let output = format!("---\n# Source: web/templates/a.yaml\nkind: A\nb:\n{many}c: [\n");
        assert!(read(&closure(), output.as_bytes()).is_err());
        let output = format!("---\n# Source: web/templates/a.yaml\nkind: A\nb:\n{many}");
        assert_eq!(read(&closure(), output.as_bytes()).unwrap().1.len(), MAX_NOTICES);
    }

    #[test]
    fn a_chart_that_makes_too_many_objects_is_refused() {
        let read = |count: usize| {
            let output = format!("---\n# Source: web/templates/a.yaml\n{}", "kind: A\n---\n".repeat(count));
            read(&closure(), output.as_bytes()).map(|(objects, _)| objects.len())
        };
        assert_eq!(read(MAX_CHART_OBJECTS), Ok(MAX_CHART_OBJECTS));
        let refused = read(MAX_CHART_OBJECTS + 1).unwrap_err();
        assert_eq!(refused[0].message, "the chart makes more than 20000 objects");
    }

    #[test]
    fn a_path_of_another_chart_begins_no_part() {
        let output =
            "---\n# Source: web/crds/b.yaml\nkind: D\n---\n# Source: other/templates/x.yaml\nkind: E\n";
        assert_eq!(origins(output), ["\"D\" apps/web/crds/b.yaml:1", "\"E\" apps/web/crds/b.yaml:4"]);
        assert_eq!(origins("\n"), [""; 0]);
        assert_eq!(origins(""), [""; 0]);
    }

    #[test]
    fn what_is_no_yaml_is_reported_without_its_text() {
        let output = "---\n# Source: web/templates/a.yaml\nkind: A\npassword: \"canary\n";
        let faults = read(&closure(), output.as_bytes()).unwrap_err();
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert_eq!((&*fault.origin.file, fault.code), ("apps/web/templates/a.yaml", "render-failed"));
        assert!(fault.message.starts_with("line 2 of what the template makes: "), "{}", fault.message);
        assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
        assert!(read(&closure(), b"\xff").is_err());
    }
}
