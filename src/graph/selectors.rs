//! Connections by label: who selects, and what can be selected.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{ObjectId, text_at, value_at};

/// The label that a `StatefulSet` gives each of its pods: its own name, and the pod's ordinal.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// The selector target: the kind of object that a selector selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum SelectorTarget {
    /// Pods: those of a template, or one that is by itself.
    Pods,
    /// Services, by their own labels.
    Services,
}

/// The ends of a key and of a value in the text of [`SelectableLabels`]. The API server refuses
/// labels with them, so such labels count for nothing.
const KEY_END: char = '\0';
const VALUE_END: char = '\n';

/// The labels of what can be selected: of the pods that a workload makes, of a Pod, of a Service.
/// A daemon holds those of each workload, so they are in one piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SelectableLabelsForm", into = "SelectableLabelsForm")]
pub(crate) struct SelectableLabels {
    target: SelectorTarget,
    /// Each key with its value, by key.
    text: Box<str>,
}

/// The form of [`SelectableLabels`] in a trace.
#[derive(Serialize, Deserialize)]
struct SelectableLabelsForm {
    target: SelectorTarget,
    labels: Vec<(String, String)>,
}

impl From<SelectableLabels> for SelectableLabelsForm {
    fn from(labels: SelectableLabels) -> Self {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Self { target: labels.target, labels: labels.iter().map(owned).collect() }
    }
}

impl From<SelectableLabelsForm> for SelectableLabels {
    fn from(form: SelectableLabelsForm) -> Self {
        let labels: BTreeMap<Box<str>, Box<str>> =
            form.labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self::new(form.target, &labels)
    }
}

impl SelectableLabels {
    fn new(target: SelectorTarget, labels: &BTreeMap<Box<str>, Box<str>>) -> Self {
        let is_honest = |text: &str| !text.contains([KEY_END, VALUE_END]);
        let mut text = String::new();
        for (key, value) in labels.iter().filter(|(key, value)| is_honest(key) && is_honest(value)) {
            text.push_str(key);
            text.push(KEY_END);
            text.push_str(value);
            text.push(VALUE_END);
        }
        Self { target, text: text.into() }
    }

    /// Reads them off an object; none for what nothing selects, which costs 8 bytes then.
    pub(crate) fn of(id: &ObjectId, body: &Value) -> Option<Box<Self>> {
        let (target, found) = match (id.group(), id.kind()) {
            ("", "Service") => (SelectorTarget::Services, value_at(body, &["metadata", "labels"])),
            ("", "Pod") => (SelectorTarget::Pods, value_at(body, &["metadata", "labels"])),
            ("batch", "CronJob") => (
                SelectorTarget::Pods,
                value_at(body, &["spec", "jobTemplate", "spec", "template", "metadata", "labels"]),
            ),
            _ => {
                // Also a custom kind that makes pods of a template.
                value_at(body, &["spec", "template", "spec", "containers"])?.as_array()?;
                (SelectorTarget::Pods, value_at(body, &["spec", "template", "metadata", "labels"]))
            }
        };
        let mut labels = texts(found);
        if id.is("apps", "StatefulSet") {
            labels.insert(POD_NAME.into(), id.name().into());
        }
        Some(Box::new(Self::new(target, &labels)))
    }

    /// Returns the kind of object with these labels.
    pub(crate) fn target(&self) -> SelectorTarget {
        self.target
    }

    /// Returns each key with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.split_terminator(VALUE_END).filter_map(|label| label.split_once(KEY_END))
    }

    /// Returns the value of a key, by a binary search: somebody may give an object many labels.
    fn get(&self, key: &str) -> Option<&str> {
        let mut rest = &*self.text;
        while !rest.is_empty() {
            let before = rest.as_bytes().get(..rest.len() / 2)?;
            let start = before.iter().rposition(|byte| *byte == VALUE_END as u8).map_or(0, |end| end + 1);
            let (left, right) = rest.split_at(start);
            let (label, after) = right.split_once(VALUE_END)?;
            let (own, value) = label.split_once(KEY_END)?;
            match own.cmp(key) {
                Ordering::Equal => return Some(value),
                Ordering::Less => rest = after,
                Ordering::Greater => rest = left,
            }
        }
        None
    }
}

/// The namespaces that a selector looks into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SelectorNamespaces {
    /// The namespace of the selecting object.
    Own,
    /// All.
    All,
    /// These.
    Named(Box<[Box<str>]>),
}

/// The objects that an object selects by labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LabelSelection {
    target: SelectorTarget,
    namespaces: SelectorNamespaces,
    /// All of them must hold; none selects everything.
    requirements: Box<[LabelRequirement]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LabelRequirement {
    key: Box<str>,
    test: RequirementTest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RequirementTest {
    In(Box<[Box<str>]>),
    NotIn(Box<[Box<str>]>),
    Exists,
    DoesNotExist,
    /// An operator that Kubernetes does not know, and refuses.
    Never,
}

impl LabelSelection {
    /// Reads it off an object; none for what selects nothing, which costs 8 bytes then.
    ///
    /// A Service without a selector selects nothing (its endpoints are somebody's own), a policy
    /// with an empty one selects everything. `ServiceMonitor` and `PodMonitor` are Prometheus'
    /// kinds, which others copied.
    pub(crate) fn of(id: &ObjectId, body: &Value) -> Option<Box<Self>> {
        let spec = body.get("spec")?;
        let found = match (id.group(), id.kind()) {
            ("", "Service") => {
                let map = spec.get("selector").filter(|map| !is_empty(map))?;
                Self {
                    target: SelectorTarget::Pods,
                    namespaces: SelectorNamespaces::Own,
                    requirements: parse_match_labels(map),
                }
            }
            ("policy", "PodDisruptionBudget") => Self::by(
                SelectorTarget::Pods,
                SelectorNamespaces::Own,
                Some(spec.get("selector").filter(|s| !s.is_null())?),
            ),
            ("networking.k8s.io", "NetworkPolicy") => {
                Self::by(SelectorTarget::Pods, SelectorNamespaces::Own, spec.get("podSelector"))
            }
            ("monitoring.coreos.com" | "azmonitoring.coreos.com", "PodMonitor")
            | ("operator.victoriametrics.com", "VMPodScrape") => {
                Self::by(SelectorTarget::Pods, namespaces(spec), spec.get("selector"))
            }
            ("monitoring.coreos.com" | "azmonitoring.coreos.com", "ServiceMonitor")
            | ("operator.victoriametrics.com", "VMServiceScrape") => {
                Self::by(SelectorTarget::Services, namespaces(spec), spec.get("selector"))
            }
            _ => return None,
        };
        Some(Box::new(found))
    }

    /// Returns whether an object in the namespace `own` with this selection selects the labels in
    /// `namespace`. Both are empty for a cluster-scoped object.
    pub(crate) fn matches(&self, own: &str, labels: &SelectableLabels, namespace: &str) -> bool {
        let is_near = match &self.namespaces {
            SelectorNamespaces::Own => own == namespace,
            SelectorNamespaces::All => true,
            SelectorNamespaces::Named(names) => names.iter().any(|name| **name == *namespace),
        };
        is_near
            && self.target == labels.target
            && self.requirements.iter().all(|requirement| requirement.holds(labels.get(&requirement.key)))
    }

    /// Returns the kind of object that it selects.
    pub(crate) fn target(&self) -> SelectorTarget {
        self.target
    }

    /// Returns where it looks.
    pub(crate) fn namespaces(&self) -> &SelectorNamespaces {
        &self.namespaces
    }

    /// Returns whether it selects whatever is in its namespaces.
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns a label that all it selects must have, with the only values that it may have; for an
    /// index.
    pub(super) fn equality(&self) -> Option<(&str, &[Box<str>])> {
        self.requirements.iter().find_map(|requirement| match &requirement.test {
            RequirementTest::In(values) if *requirement.key != *POD_NAME => {
                Some((&*requirement.key, &**values))
            }
            _ => None,
        })
    }

    fn by(target: SelectorTarget, namespaces: SelectorNamespaces, selector: Option<&Value>) -> Self {
        Self { target, namespaces, requirements: requirements(selector) }
    }
}

impl LabelRequirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let is_among = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|wanted| self.is_value(value, wanted)))
        };
        match &self.test {
            RequirementTest::In(values) => is_among(values),
            RequirementTest::NotIn(values) => !is_among(values),
            RequirementTest::Exists => value.is_some(),
            RequirementTest::DoesNotExist => value.is_none(),
            RequirementTest::Never => false,
        }
    }

    /// Returns whether a label has a wanted value; of a pod's own name it is known only which set
    /// it belongs to.
    fn is_value(&self, value: &str, wanted: &str) -> bool {
        if *self.key == *POD_NAME {
            return wanted.rsplit_once('-').is_some_and(|(set, _)| set == value);
        }
        value == wanted
    }
}

/// Returns the requirements of a `LabelSelector`.
fn requirements(selector: Option<&Value>) -> Box<[LabelRequirement]> {
    let equal =
        selector.and_then(|selector| selector.get("matchLabels")).map(parse_match_labels).unwrap_or_default();
    let expressions =
        selector.and_then(|selector| selector.get("matchExpressions")).and_then(Value::as_array);
    let expressions = expressions.into_iter().flatten().map(|expression| {
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(Box::from).collect();
        let test = match text_at(expression, &["operator"]) {
            "In" => RequirementTest::In(values),
            "NotIn" => RequirementTest::NotIn(values),
            "Exists" => RequirementTest::Exists,
            "DoesNotExist" => RequirementTest::DoesNotExist,
            _ => RequirementTest::Never,
        };
        LabelRequirement { key: text_at(expression, &["key"]).into(), test }
    });
    equal.into_iter().chain(expressions).collect()
}

fn parse_match_labels(map: &Value) -> Box<[LabelRequirement]> {
    let each = texts(Some(map)).into_iter();
    each.map(|(key, value)| LabelRequirement { key, test: RequirementTest::In([value].into()) }).collect()
}

fn namespaces(spec: &Value) -> SelectorNamespaces {
    let selector = spec.get("namespaceSelector").unwrap_or(&Value::Null);
    let names = selector.get("matchNames").and_then(Value::as_array).into_iter().flatten();
    let names: Box<[Box<str>]> = names.filter_map(Value::as_str).map(Box::from).collect();
    match selector.get("any").and_then(Value::as_bool) {
        Some(true) => SelectorNamespaces::All,
        _ if names.is_empty() => SelectorNamespaces::Own,
        _ => SelectorNamespaces::Named(names),
    }
}

fn texts(map: Option<&Value>) -> BTreeMap<Box<str>, Box<str>> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect()
}

fn is_empty(map: &Value) -> bool {
    map.as_object().is_none_or(serde_json::Map::is_empty)
}
