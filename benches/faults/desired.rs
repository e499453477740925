//! The desired state of a run, and how the cluster differs from it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use serde_json::Value;

use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::support::yaml;

/// The value of the Secret: with letters that each encoding changes.
pub(crate) const CANARY: &str = "c4nary/+s3cret=of?run";

/// The folder of the source that has everything.
pub(crate) const FIRST: &str = "a";

/// The object that a live annotation keeps as it is.
pub(crate) const RESTING: &str = "resting";

/// Returns the files of a version of the source, by name.
pub(crate) fn files(version: u32) -> Vec<(String, String)> {
    let (image, text) = (format!("app:{version}"), format!("v{version}"));
    let web = |name: &str| Web::new(name, &image).replicas(2);
    let all = [
        web("web").uses("env").file(),
        web("api").file(),
        config("env", &text),
        config("counter", &version.to_string()),
        config("shared", &text),
        config(RESTING, &text),
        ("front.yaml".to_owned(), yaml::service("front", "web")),
        ("key.yaml".to_owned(), yaml::secret("key", "token", CANARY)),
    ];
    all.into_iter().map(|(name, text)| (format!("{FIRST}/{name}"), text)).collect()
}

/// The files that git has, and the objects that it does not have any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct DesiredFiles {
    files: BTreeMap<String, String>,
    removed: BTreeSet<(String, String)>,
    /// The objects that stay as they are, whatever git says.
    kept: BTreeSet<String>,
}

fn documents(text: &str) -> Vec<Value> {
    text.split("---\n").filter_map(|document| serde_yaml::from_str(document).ok()).collect()
}

fn identity(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

impl DesiredFiles {
    /// Sets a file.
    pub(crate) fn write(&mut self, file: &str, text: &str) {
        let before = self.objects();
        self.files.insert(file.to_owned(), text.to_owned());
        self.note_removals(&before);
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, file: &str) {
        let before = self.objects();
        self.files.remove(file);
        self.note_removals(&before);
    }

    fn note_removals(&mut self, before: &BTreeMap<(String, String), Value>) {
        let now = self.objects();
        self.removed.extend(before.keys().filter(|object| !now.contains_key(*object)).cloned());
        self.removed.retain(|object| !now.contains_key(object));
    }

    /// Lets an object stay as it is, whatever git says.
    pub(crate) fn keep(&mut self, name: &str) {
        self.kept.insert(name.to_owned());
    }

    /// Returns the text of a file.
    pub(crate) fn text(&self, file: &str) -> String {
        self.files.get(file).cloned().unwrap_or_default()
    }

    /// Returns the objects, by kind and name.
    pub(crate) fn objects(&self) -> BTreeMap<(String, String), Value> {
        let all = self.files.values().flat_map(|text| documents(text));
        all.map(|object| (identity(&object), object)).collect()
    }

    /// Returns the names of all that is, or was, in git.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let objects = self.objects();
        objects.keys().chain(&self.removed).map(|(_, name)| name.clone()).collect()
    }

    /// Returns the names of the objects that git does not have any more.
    pub(crate) fn removed(&self) -> BTreeSet<String> {
        self.removed.iter().map(|(_, name)| name.clone()).collect()
    }

    /// Returns the first difference between the cluster and git, by the watches of the observer.
    pub(crate) fn difference(&self, observer: &Observer) -> Option<String> {
        let there = self
            .removed
            .iter()
            .find(|(kind, name)| observer.live(kind, name).is_some() && !self.kept.contains(name));
        if let Some((kind, name)) = there {
            return Some(format!("{kind} {name} is still there"));
        }
        let mut objects = self.objects().into_iter();
        objects.find_map(|((kind, name), desired)| {
            if self.kept.contains(&name) {
                return None;
            }
            let Some(live) = observer.live(&kind, &name) else {
                return Some(format!("{kind} {name} is missing"));
            };
            first_difference(&comparable(desired), &live, "")
                .map(|path| format!("{kind} {name} differs at {path}"))
                .or_else(|| (kind == "Deployment").then(|| unfinished(&live)).flatten())
        })
    }
}

/// Returns a manifest in the form in which the server stores it.
fn comparable(mut desired: Value) -> Value {
    if let Some(Value::Object(texts)) = desired.as_object_mut().and_then(|object| object.remove("stringData"))
    {
        let encode = |text: &Value| {
            let text = text.as_str().unwrap_or_default();
            Value::String(base64::engine::general_purpose::STANDARD.encode(text))
        };
        desired["data"] = texts.iter().map(|(key, text)| (key.clone(), encode(text))).collect();
    }
    desired
}

/// Returns the path of the first field of a manifest that the live object does not show.
fn first_difference(desired: &Value, live: &Value, path: &str) -> Option<String> {
    match (desired, live) {
        // An empty one is stored as none.
        (Value::Object(fields), Value::Null) if fields.is_empty() => None,
        (Value::Object(fields), Value::Object(_)) => fields
            .iter()
            .find_map(|(key, value)| first_difference(value, &live[key.as_str()], &format!("{path}/{key}"))),
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            let mut pairs = values.iter().zip(others).enumerate();
            pairs.find_map(|(index, (value, other))| {
                first_difference(value, other, &format!("{path}/{index}"))
            })
        }
        _ if desired == live => None,
        _ => Some(format!("{path}: {live}")),
    }
}

/// Returns how far the rollout of a Deployment is, where it is not over.
fn unfinished(live: &Value) -> Option<String> {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let wanted = number("/spec/replicas");
    let is_done = number("/status/observedGeneration") == number("/metadata/generation")
        && ["updatedReplicas", "availableReplicas", "replicas"]
            .iter()
            .all(|count| number(&format!("/status/{count}")) == wanted);
    (!is_done)
        .then(|| format!("Deployment {} is not rolled out: {}", live["metadata"]["name"], live["status"]))
}
