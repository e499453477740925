//! The checks of one object that need no cluster: its names, labels and annotations by the API's rules, and
//! what a manifest must not carry.

use serde_json::{Map, Value};

use super::clean;
use super::findings::{Finding, Findings};
use super::names::{self, NameRule};
use super::tree::{Mark, NodeId, Tree};
use crate::object::{Gvk, SERVER_SET, at};

/// Bytes that the keys and values of all annotations of an object may have.
const ANNOTATIONS: usize = 256 << 10;

/// What an `apiVersion` must look like.
pub(super) const BAD_API_VERSION: &str = "apiVersion must be `version` or `group/version`";

/// Types of the fields of `metadata` that have no check of their own.
const TYPES: [(&str, Type); 11] = [
    ("creationTimestamp", Type::Text),
    ("deletionGracePeriodSeconds", Type::Whole),
    ("deletionTimestamp", Type::Text),
    ("finalizers", Type::List),
    ("generateName", Type::Text),
    ("generation", Type::Whole),
    ("managedFields", Type::List),
    ("ownerReferences", Type::List),
    ("resourceVersion", Type::Text),
    ("selfLink", Type::Text),
    ("uid", Type::Text),
];

#[derive(Clone, Copy)]
enum Type {
    Text,
    Whole,
    List,
}

impl Type {
    fn fits(self, value: &Value) -> bool {
        match self {
            _ if value.is_null() => true,
            Self::Text => value.is_string(),
            Self::Whole => value.is_i64(),
            Self::List => value.is_array(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "a whole number",
            Self::List => "a list",
        }
    }
}

/// The object under check.
pub(super) struct Subject<'s, 'a> {
    pub(super) tree: &'s Tree<'a>,
    pub(super) node: NodeId,
    pub(super) body: &'s Value,
    pub(super) gvk: &'s Gvk,
}

/// What the checks say beyond their findings.
pub(super) struct Verdict {
    /// It is known which object this is and whether rhumb may act for it.
    pub(super) identified: bool,
    /// The types of its metadata are those of the API.
    pub(super) typed: bool,
}

/// Checks one object.
pub(super) fn check(subject: &Subject<'_, '_>, findings: &mut Findings) -> Verdict {
    let mut check = Check { subject, findings, identified: true, typed: true };
    check.kind();
    check.refused();
    check.metadata();
    check.templates();
    check.contents();
    check.dropped();
    Verdict { identified: check.identified, typed: check.typed }
}

struct Check<'c, 's, 'a> {
    subject: &'c Subject<'s, 'a>,
    findings: &'c mut Findings,
    identified: bool,
    typed: bool,
}

impl Check<'_, '_, '_> {
    /// The place of what stands under a path.
    fn place(&self, path: &[&str]) -> Mark {
        let Subject { tree, node, .. } = self.subject;
        if self.findings.is_full() { tree.mark(*node) } else { tree.locate(*node, path) }
    }

    /// The place of the key at the end of a path.
    fn key_place(&self, path: &[&str]) -> Mark {
        let Subject { tree, node, .. } = self.subject;
        if self.findings.is_full() { tree.mark(*node) } else { tree.locate_key(*node, path) }
    }

    fn error(&mut self, path: &[&str], code: &'static str, message: impl Into<String>) {
        let mark = self.place(path);
        self.findings.add(Finding::error(mark, code, message));
    }

    fn hinted(&mut self, path: &[&str], code: &'static str, message: impl Into<String>, hint: &str) {
        let mark = self.place(path);
        self.findings.add(Finding::error(mark, code, message).hint(hint));
    }

    fn get(&self, path: &[&str]) -> Option<&Value> {
        at(self.subject.body, path)
    }

    fn kind(&mut self) {
        let gvk = self.subject.gvk;
        let grouped =
            self.get(&["apiVersion"]).and_then(Value::as_str).is_some_and(|text| text.contains('/'));
        if gvk.version.is_empty() || (grouped && gvk.group.is_empty()) {
            self.identified = false;
            self.error(&["apiVersion"], "bad-api-version", BAD_API_VERSION);
        }
    }

    /// What would be applied wrongly.
    fn refused(&mut self) {
        let gvk = self.subject.gvk;
        if self.get(&["sops"]).is_some_and(Value::is_object) {
            self.identified = false;
            let message = format!(
                "this {} is encrypted by SOPS: applied as it is, it would carry ciphertext",
                gvk.kind
            );
            self.hinted(
                &["sops"],
                "sops",
                message,
                "rhumb decrypts nothing: use a controller that does (external-secrets, sealed-secrets), or list the file in .rhumbignore",
            );
        }
        if &*gvk.group == "kustomize.config.k8s.io" {
            self.identified = false;
            self.hinted(
                &["kind"],
                "kustomization",
                "a kustomization is input for kustomize, no object of a cluster",
                "render it with `kustomize build` and follow the result, or list the file in .rhumbignore",
            );
        }
    }

    fn metadata(&mut self) {
        match self.get(&["metadata"]) {
            Some(Value::Object(_)) => {
                self.name();
                self.namespace();
                self.types();
                self.typed &= self.labels(&["metadata"]);
            }
            None | Some(Value::Null) => {
                self.identified = false;
                self.error(&[], "no-name", "metadata.name is missing");
            }
            Some(_) => {
                self.identified = false;
                self.typed = false;
                self.error(&["metadata"], "wrong-type", "metadata must be a mapping");
            }
        }
    }

    fn name(&mut self) {
        let path = &["metadata", "name"];
        let gvk = self.subject.gvk;
        match self.get(path) {
            Some(Value::String(name)) if !name.is_empty() => {
                if let Some(fault) = NameRule::of(&gvk.group, &gvk.kind).fault(name) {
                    let message = format!("\"{name}\" cannot name a {}: {fault}", gvk.kind);
                    self.error(path, "bad-name", message);
                } else if (*gvk.group).is_empty()
                    && &*gvk.kind == "Service"
                    && name.starts_with(|c: char| c.is_ascii_digit())
                {
                    let mark = self.place(path);
                    let message =
                        "API servers before Kubernetes 1.36 take no Service whose name begins with a digit";
                    self.findings.add(Finding::warning(mark, "service-name", message));
                }
            }
            Some(Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                self.identified = false;
                self.typed = false;
                self.hinted(path, "wrong-type", "metadata.name must be text", "put it in quotes");
            }
            None | Some(Value::Null | Value::String(_)) => {
                self.identified = false;
                if self.get(&["metadata", "generateName"]).is_some() {
                    return self.hinted(
                        &["metadata", "generateName"],
                        "generate-name",
                        "generateName makes a new object at every apply: nothing could be compared with the repository",
                        "give it a fixed metadata.name",
                    );
                }
                self.error(&["metadata"], "no-name", "metadata.name is missing");
            }
        }
        if self.get(path).and_then(Value::as_str).is_some_and(|name| !name.is_empty())
            && self.get(&["metadata", "generateName"]).is_some_and(|value| !clean::is_husk(value))
        {
            self.hinted(
                &["metadata", "generateName"],
                "generate-name",
                "generateName makes a new object at every apply: nothing could be compared with the repository",
                "remove it: metadata.name is there",
            );
        }
    }

    fn namespace(&mut self) {
        let path = &["metadata", "namespace"];
        match self.get(path) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name.is_empty() || names::is_label(name) => {}
            Some(Value::String(name)) => {
                let message = format!("\"{name}\" cannot name a namespace: {}", names::LABEL);
                self.error(path, "bad-namespace", message);
            }
            Some(_) => {
                self.identified = false;
                self.typed = false;
                self.hinted(path, "wrong-type", "metadata.namespace must be text", "put it in quotes");
            }
        }
    }

    /// The labels and annotations of a `metadata`. False when their types are wrong.
    fn labels(&mut self, metadata: &[&str]) -> bool {
        let body = self.subject.body;
        let field = |name: &'static str| at(body, metadata).and_then(|metadata| metadata.get(name));
        let typed = is_texts(field("labels")) && is_texts(field("annotations"));
        if let Some(labels) = self.texts(metadata, "labels", field("labels")) {
            for (key, value) in labels {
                if let Some(fault) = names::key_fault(key) {
                    self.key_error(metadata, "labels", key, || format!("label key \"{key}\": {fault}"));
                }
                if let Some(fault) = value.as_str().and_then(names::label_value_fault) {
                    if self.findings.is_full() {
                        self.findings.count_error();
                        continue;
                    }
                    let path = [metadata, &["labels", key]].concat();
                    self.error(&path, "bad-label", format!("label \"{key}\": {fault}"));
                }
            }
        }
        if let Some(annotations) = self.texts(metadata, "annotations", field("annotations")) {
            let mut size = 0;
            for (key, value) in annotations {
                size += key.len() + value.as_str().map_or(0, str::len);
                if let Some(fault) = names::key_fault(&key.to_lowercase()) {
                    let message = || format!("annotation key \"{key}\": {fault}");
                    self.key_error(metadata, "annotations", key, message);
                }
            }
            if size > ANNOTATIONS {
                let path = [metadata, &["annotations"]].concat();
                let message =
                    format!("the annotations have {size} bytes; the API takes at most {ANNOTATIONS}");
                self.error(&path, "annotations-too-large", message);
            }
        }
        typed
    }

    fn types(&mut self) {
        let body = self.subject.body;
        for (field, wanted) in TYPES {
            let path = &["metadata", field];
            let Some(value) = at(body, path).filter(|value| !wanted.fits(value)) else { continue };
            self.typed = false;
            let message = format!("metadata.{field} must be {}", wanted.name());
            let quotable = matches!(wanted, Type::Text) && (value.is_number() || value.is_boolean());
            if quotable {
                self.hinted(path, "wrong-type", message, "put it in quotes");
            } else {
                self.error(path, "wrong-type", message);
            }
        }
    }

    fn key_error(&mut self, metadata: &[&str], field: &str, key: &str, message: impl FnOnce() -> String) {
        if self.findings.is_full() {
            return self.findings.count_error();
        }
        let path = [metadata, &[field, key]].concat();
        let mark = self.key_place(&path);
        self.findings.add(Finding::error(mark, "bad-key", message()));
    }

    /// A field that maps text to text. Reports what else it is or holds.
    fn texts<'v>(
        &mut self,
        parent: &[&str],
        field: &str,
        value: Option<&'v Value>,
    ) -> Option<&'v Map<String, Value>> {
        let path = [parent, &[field]].concat();
        let name = path.join(".");
        match value? {
            Value::Object(map) => {
                for (key, value) in map {
                    let path = [&path[..], &[key]].concat();
                    let what = match value {
                        Value::String(_) | Value::Null => continue,
                        Value::Number(_) => "a number",
                        Value::Bool(_) => "a boolean",
                        Value::Array(_) => "a list",
                        Value::Object(_) => "a mapping",
                    };
                    let message = format!("{name}: the value of \"{key}\" must be text, and this is {what}");
                    if value.is_number() || value.is_boolean() {
                        self.hinted(&path, "not-text", message, "put it in quotes");
                    } else {
                        self.error(&path, "not-text", message);
                    }
                }
                Some(map)
            }
            Value::Null => None,
            _ => {
                self.error(&path, "wrong-type", format!("{name} must be a mapping of text to text"));
                None
            }
        }
    }

    /// The metadata of pods that a workload makes.
    fn templates(&mut self) {
        let paths: [&[&str]; 3] = [
            &["spec", "template", "metadata"],
            &["spec", "jobTemplate", "metadata"],
            &["spec", "jobTemplate", "spec", "template", "metadata"],
        ];
        if !matches!(&*self.subject.gvk.group, "" | "apps" | "batch") {
            return;
        }
        for path in paths {
            if self.get(path).is_some_and(Value::is_object) {
                self.labels(path);
            }
        }
    }

    /// Fields of text that a number gets into when its quotes are forgotten.
    fn contents(&mut self) {
        let gvk = self.subject.gvk;
        let fields: &[&str] = match (&*gvk.group, &*gvk.kind) {
            ("", "ConfigMap") => &["data", "binaryData"],
            ("", "Secret") => &["data", "stringData"],
            _ => return,
        };
        let body = self.subject.body;
        for field in fields {
            self.texts(&[], field, body.get(*field));
        }
    }

    fn dropped(&mut self) {
        let kept = |value: Option<&Value>| value.is_some_and(|value| !clean::is_husk(value));
        if kept(self.get(&["status"])) {
            self.drop_warning(&["status"], "status is the server's to write: it is left out");
        }
        for field in SERVER_SET {
            if kept(self.get(&["metadata", field])) {
                let message = format!("metadata.{field} is the server's to write: it is left out");
                self.drop_warning(&["metadata", field], &message);
            }
        }
    }

    fn drop_warning(&mut self, path: &[&str], message: &str) {
        let mark = self.key_place(path);
        let finding = Finding::warning(mark, "server-set", message);
        self.findings.add(finding.hint("remove it from the manifest"));
    }
}

/// Whether a field maps text to text, or is not there.
fn is_texts(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.values().all(|value| value.is_string() || value.is_null()),
        Some(_) => false,
    }
}
