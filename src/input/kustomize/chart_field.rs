//! The field `helmCharts` of a kustomization: the charts that it renders, as it is written.

use serde_json::Value;

use crate::manifest::{PlacedNode, PlacedValue, TextPosition};

use super::file::{fields, fold_case, items};

/// The fields of a kustomization that concern charts.
pub(super) const CHART_FIELDS: [&str; 3] = ["helmCharts", "helmGlobals", "helmChartInflationGenerator"];

/// The folder below which charts lie where nothing else is said.
const DEFAULT_CHART_HOME: &str = "charts";

/// A text of a kustomization, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedText {
    /// The text.
    pub text: String,
    /// Its place.
    pub position: TextPosition,
}

/// The way in which values of a kustomization and those of a file become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValuesMerge {
    /// Values of the kustomization win.
    #[default]
    Override,
    /// Values of the file win.
    Merge,
    /// The file does not count.
    Replace,
}

/// One chart that a kustomization renders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartField {
    /// The place of its entry.
    pub position: Option<TextPosition>,
    /// Its name.
    pub name: String,
    /// The server that it comes from; empty where it lies in the revision.
    pub repository: String,
    /// Its version.
    pub version: String,
    /// The name of the release.
    pub release: String,
    /// The template that makes that name.
    pub name_template: String,
    /// The namespace.
    pub namespace: String,
    /// The file of values in the place of the chart's own.
    pub values_file: Option<PlacedText>,
    /// More files of values.
    pub more_values: Vec<PlacedText>,
    /// Values in the kustomization; none where there are none, or no entries in them.
    pub values: Option<Value>,
    /// The way in which they and the file become one.
    pub merge: ValuesMerge,
    /// Indicates whether the definitions in `crds/` are printed.
    pub includes_definitions: bool,
    /// Indicates whether hooks are left out.
    pub skips_hooks: bool,
    /// Indicates whether tests are left out.
    pub skips_tests: bool,
    /// The versions and kinds that the chart is given.
    pub api_versions: Vec<String>,
    /// The version of Kubernetes that the chart is given.
    pub kube_version: String,
}

/// The charts of one kustomization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartFields {
    /// The folder below which charts lie, as seen from the kustomization.
    pub home: String,
    /// The charts, in the order in which they are rendered.
    pub charts: Vec<ChartField>,
    /// The faults for which none is rendered, each with its place.
    pub(super) faults: Vec<(String, TextPosition)>,
}

/// Reads the charts of a kustomization.
pub(super) fn read(root: &PlacedValue) -> ChartFields {
    let mut faults = Vec::new();
    let home = fields(root, "helmGlobals").flat_map(|globals| fields(globals, "chartHome"));
    let home = home.filter_map(PlacedValue::text).filter(|home| !home.is_empty()).last();
    let mut charts: Vec<ChartField> =
        items(root, "helmCharts").map(|item| chart(item, &mut faults)).collect();
    let mut home = home.map(str::to_owned);
    for old in items(root, "helmChartInflationGenerator") {
        charts.push(old_chart(old, &mut faults));
        let old_home = last_text(old, "chartHome");
        if !old_home.is_empty() && fields(root, "helmGlobals").next().is_none() {
            home = Some(old_home);
        }
    }
    ChartFields { home: home.unwrap_or_else(|| DEFAULT_CHART_HOME.to_owned()), charts, faults }
}

fn chart(item: &PlacedValue, faults: &mut Vec<(String, TextPosition)>) -> ChartField {
    const CHART_FIELD_FORMS: [(&str, FieldForm); 17] = [
        ("additionalValuesFiles", FieldForm::Texts),
        ("apiVersions", FieldForm::Texts),
        ("debug", FieldForm::Bool),
        ("devel", FieldForm::Bool),
        ("includeCRDs", FieldForm::Bool),
        ("kubeVersion", FieldForm::Text),
        ("name", FieldForm::Text),
        ("nameTemplate", FieldForm::Text),
        ("namespace", FieldForm::Text),
        ("releaseName", FieldForm::Text),
        ("repo", FieldForm::Text),
        ("skipHooks", FieldForm::Bool),
        ("skipTests", FieldForm::Bool),
        ("valuesFile", FieldForm::Text),
        ("valuesInline", FieldForm::Mapping),
        ("valuesMerge", FieldForm::Text),
        ("version", FieldForm::Text),
    ];
    check_fields(item, &CHART_FIELD_FORMS, faults);
    let is_true = |name| fields(item, name).last().is_some_and(|value| value.to_value() == Value::Bool(true));
    ChartField {
        position: Some(item.position),
        name: last_text(item, "name"),
        repository: last_text(item, "repo"),
        version: last_text(item, "version"),
        release: last_text(item, "releaseName"),
        name_template: last_text(item, "nameTemplate"),
        namespace: last_text(item, "namespace"),
        values_file: placed_text(item, "valuesFile"),
        more_values: items(item, "additionalValuesFiles").filter_map(as_placed).collect(),
        values: values(item, "valuesInline"),
        merge: merge(item, faults),
        includes_definitions: is_true("includeCRDs"),
        skips_hooks: is_true("skipHooks"),
        skips_tests: is_true("skipTests"),
        api_versions: items(item, "apiVersions").filter_map(PlacedValue::text).map(str::to_owned).collect(),
        kube_version: last_text(item, "kubeVersion"),
    }
}

/// Reads a chart in the form before kustomize 4.1.
fn old_chart(item: &PlacedValue, faults: &mut Vec<(String, TextPosition)>) -> ChartField {
    const INFLATOR_FIELD_FORMS: [(&str, FieldForm); 13] = [
        ("chartHome", FieldForm::Text),
        ("chartName", FieldForm::Text),
        ("chartRepoName", FieldForm::Text),
        ("chartRepoUrl", FieldForm::Text),
        ("chartVersion", FieldForm::Text),
        ("extraArgs", FieldForm::Any),
        ("helmBin", FieldForm::Text),
        ("helmHome", FieldForm::Text),
        ("releaseName", FieldForm::Text),
        ("releaseNamespace", FieldForm::Text),
        ("values", FieldForm::Text),
        ("valuesLocal", FieldForm::Mapping),
        ("valuesMerge", FieldForm::Text),
    ];
    check_fields(item, &INFLATOR_FIELD_FORMS, faults);
    // kustomize itself takes neither the namespace nor further arguments over.
    ChartField {
        position: Some(item.position),
        name: last_text(item, "chartName"),
        repository: last_text(item, "chartRepoUrl"),
        version: last_text(item, "chartVersion"),
        release: last_text(item, "releaseName"),
        values_file: placed_text(item, "values"),
        values: values(item, "valuesLocal"),
        merge: merge(item, faults),
        ..ChartField::default()
    }
}

fn merge(item: &PlacedValue, faults: &mut Vec<(String, TextPosition)>) -> ValuesMerge {
    let found = fields(item, "valuesMerge").last();
    match found.and_then(PlacedValue::text).unwrap_or_default() {
        "" | "override" => ValuesMerge::Override,
        "merge" => ValuesMerge::Merge,
        "replace" => ValuesMerge::Replace,
        _ => {
            let position = found.map_or(item.position, |found| found.position);
            faults.push(("valuesMerge must be merge, override or replace".to_owned(), position));
            ValuesMerge::Override
        }
    }
}

/// Refuses fields that kustomize does not know, and values of another form than it takes, as a
/// number for a version.
fn check_fields(item: &PlacedValue, known: &[(&str, FieldForm)], faults: &mut Vec<(String, TextPosition)>) {
    for entry in item.entries() {
        let (key, value) = (super::refusal::sanitize_text(&entry.key), &entry.value);
        match known.iter().find(|(name, _)| fold_case(name) == fold_case(&entry.key)) {
            None => faults.push((format!("{key} is no field of a chart"), entry.position)),
            Some((_, form)) if !form.fits(value) && value.node != PlacedNode::Scalar(Value::Null) => {
                faults.push((format!("{key} must be {}", form.words()), value.position));
            }
            Some(_) => {}
        }
    }
}

/// The form of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldForm {
    Any,
    Bool,
    Mapping,
    Text,
    Texts,
}

impl FieldForm {
    fn fits(self, value: &PlacedValue) -> bool {
        let is_text = |value: &PlacedValue| value.text().is_some();
        match self {
            Self::Any => true,
            Self::Bool => matches!(value.node, PlacedNode::Scalar(Value::Bool(_))),
            Self::Mapping => matches!(value.node, PlacedNode::Mapping(_)),
            Self::Text => is_text(value),
            Self::Texts => matches!(value.node, PlacedNode::List(_)) && value.items().iter().all(is_text),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Bool => "true or false",
            Self::Mapping => "a mapping",
            Self::Text => "a text",
            Self::Texts => "a list of texts",
        }
    }
}

fn values(item: &PlacedValue, field: &str) -> Option<Value> {
    let values = fields(item, field).last()?.to_value();
    values.as_object().is_some_and(|values| !values.is_empty()).then_some(values)
}

fn last_text(item: &PlacedValue, field: &str) -> String {
    fields(item, field).last().and_then(PlacedValue::text).unwrap_or_default().to_owned()
}

fn placed_text(item: &PlacedValue, field: &str) -> Option<PlacedText> {
    fields(item, field).last().and_then(as_placed).filter(|found| !found.text.is_empty())
}

fn as_placed(value: &PlacedValue) -> Option<PlacedText> {
    Some(PlacedText { text: value.text()?.to_owned(), position: value.position })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::manifest::read_first_document;

    fn charts(text: &str) -> ChartFields {
        let file = read_first_document(&Arc::from(""), text.as_bytes());
        read(&file.documents[0])
    }

    #[test]
    fn every_field_of_a_chart_is_read() {
        let read = charts(
            "helmGlobals: {chartHome: ../charts}\nhelmCharts:\n- name: web\n  repo: https://x\n  version: 1.0.0\n  \
             releaseName: a\n  nameTemplate: b\n  namespace: c\n  valuesFile: d.yaml\n  additionalValuesFiles: [e.yaml]\n  \
             valuesInline: {f: yes}\n  valuesMerge: merge\n  includeCRDs: true\n  skipHooks: true\n  skipTests: true\n  \
             apiVersions: [g/v1]\n  kubeVersion: 1.34.0\n",
        );
        let at = |line, column| TextPosition { line, column };
        let expected = ChartField {
            position: Some(at(3, 3)),
            name: "web".into(),
            repository: "https://x".into(),
            version: "1.0.0".into(),
            release: "a".into(),
            name_template: "b".into(),
            namespace: "c".into(),
            values_file: Some(PlacedText { text: "d.yaml".into(), position: at(9, 15) }),
            more_values: vec![PlacedText { text: "e.yaml".into(), position: at(10, 27) }],
            values: Some(json!({"f": true})),
            merge: ValuesMerge::Merge,
            includes_definitions: true,
            skips_hooks: true,
            skips_tests: true,
            api_versions: vec!["g/v1".into()],
            kube_version: "1.34.0".into(),
        };
        assert_eq!((read.home.as_str(), read.charts, read.faults), ("../charts", vec![expected], vec![]));
    }

    #[test]
    fn what_is_not_said_is_as_kustomize_takes_it() {
        let read = charts("HelmCharts: [{Name: web, valuesInline: {}}]\n");
        assert_eq!(read.home, "charts");
        assert_eq!((read.charts[0].name.as_str(), &read.charts[0].values), ("web", &None));
        assert_eq!(read.charts[0].merge, ValuesMerge::Override);
        assert_eq!(charts("resources: []\n").charts, []);
    }

    #[test]
    fn the_form_of_old_is_read_too() {
        let read = charts(
            "helmChartInflationGenerator:\n- chartName: web\n  chartRepoUrl: https://x\n  chartVersion: 1.0.0\n  \
             values: v.yaml\n  chartHome: ./here\n  releaseName: a\n",
        );
        let chart = &read.charts[0];
        assert_eq!(
            (&*read.home, &*chart.name, &*chart.repository, &*chart.version, &*chart.release),
            ("./here", "web", "https://x", "1.0.0", "a")
        );
        assert_eq!(chart.values_file.as_ref().map(|file| &*file.text), Some("v.yaml"));
    }

    #[test]
    fn what_kustomize_would_not_take_is_a_fault() {
        let check = |text: &str, expected: &str| {
            let faults = charts(text).faults;
            assert_eq!(faults.iter().map(|(message, _)| message.as_str()).collect::<Vec<_>>(), [expected]);
        };
        check("helmCharts: [{name: a, release: b}]\n", "release is no field of a chart");
        check("helmCharts: [{version: 1.0}]\n", "version must be a text");
        check("helmCharts: [{namespace: y}]\n", "namespace must be a text");
        check("helmCharts: [{apiVersions: a}]\n", "apiVersions must be a list of texts");
        check("helmCharts: [{includeCRDs: 'true'}]\n", "includeCRDs must be true or false");
        check("helmCharts: [{valuesInline: [a]}]\n", "valuesInline must be a mapping");
        check("helmChartInflationGenerator: [{chartVersion: 1}]\n", "chartVersion must be a text");
        check("helmCharts: [{valuesMerge: both}]\n", "valuesMerge must be merge, override or replace");
    }
}
