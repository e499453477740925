//! The checks of one object that need no cluster: its names, labels and annotations by the API's
//! rules, and what a manifest must not carry.

mod contents;

use serde_json::Value;

use super::clean;
use super::date;
use super::findings::{FileFindings, ManifestFinding};
use super::names::{self, NameRule};
use super::node_positions::YamlNodeLines;
use super::operator_secrets::is_for_operator;
use super::tree::{DocumentTree, TextMark, YamlNodeId};
use crate::object::{Gvk, SERVER_SET_METADATA, value_at, with_article};

/// Bytes that the keys and values of all annotations of an object may have.
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;

/// The form of an `apiVersion`.
pub(super) const BAD_API_VERSION: &str = "apiVersion must be `version` or `group/version`";

/// Types of the fields of `metadata` that have no check of their own.
const METADATA_TYPES: [(&str, FieldType); 11] = [
    ("creationTimestamp", FieldType::Time),
    ("deletionGracePeriodSeconds", FieldType::Integer),
    ("deletionTimestamp", FieldType::Time),
    ("finalizers", FieldType::Texts),
    ("generateName", FieldType::Text),
    ("generation", FieldType::Integer),
    ("managedFields", FieldType::Mappings),
    ("ownerReferences", FieldType::Mappings),
    ("resourceVersion", FieldType::Text),
    ("selfLink", FieldType::Text),
    ("uid", FieldType::Text),
];

#[derive(Clone, Copy)]
enum FieldType {
    Text,
    /// A date and time as RFC 3339 writes them.
    Time,
    Integer,
    Texts,
    Mappings,
}

impl FieldType {
    fn fits(self, value: &Value) -> bool {
        match self {
            _ if value.is_null() => true,
            Self::Text => value.is_string(),
            Self::Integer => value.is_i64(),
            Self::Time => value.as_str().is_some_and(date::is_zoned),
            Self::Texts => are_all(value, |item| item.is_null() || item.is_string()),
            Self::Mappings => are_all(value, |item| item.is_null() || item.is_object()),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "a whole number",
            Self::Time => "a time (for example 2006-01-02T15:04:05Z)",
            Self::Texts => "a list of texts",
            Self::Mappings => "a list of mappings",
        }
    }
}

fn are_all(list: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|items| items.iter().all(fits))
}

/// The object under check.
pub(super) struct CheckSubject<'s, 'a> {
    pub(super) tree: &'s DocumentTree<'a>,
    pub(super) node: YamlNodeId,
    pub(super) body: &'s Value,
    pub(super) gvk: &'s Gvk,
    /// Its kind is not written, but that of the list it is in.
    pub(super) implied: bool,
}

/// The verdict of the checks beside their findings.
pub(super) struct CheckVerdict {
    /// It is known which object this is and whether rhumb may act for it.
    pub(super) identified: bool,
    /// The types of its metadata are those of the API.
    pub(super) typed: bool,
}

/// Checks one object.
pub(super) fn check(subject: &CheckSubject<'_, '_>, findings: &mut FileFindings) -> CheckVerdict {
    let positions = YamlNodeLines::of(subject.tree, subject.node);
    let mut check = ObjectCheck { subject, positions, findings, identified: true, typed: true };
    check.check_kind();
    if check.has_cluster_identity() {
        check.check_metadata();
        check.check_pods();
        check.check_contents();
        check.report_dropped_fields();
        check.warn_of_owners();
    }
    CheckVerdict { identified: check.identified, typed: check.typed }
}

struct ObjectCheck<'c, 's, 'a> {
    subject: &'c CheckSubject<'s, 'a>,
    positions: YamlNodeLines<'s, 'a>,
    findings: &'c mut FileFindings,
    identified: bool,
    typed: bool,
}

impl<'s> ObjectCheck<'_, 's, '_> {
    /// Returns the place of what is under a path.
    fn position(&mut self, path: &[&str]) -> TextMark {
        if self.findings.is_full() { self.positions.start() } else { self.positions.value(path) }
    }

    /// Returns the place of the key at the end of a path.
    fn key_position(&mut self, path: &[&str]) -> TextMark {
        if self.findings.is_full() { self.positions.start() } else { self.positions.key(path) }
    }

    fn add_error(&mut self, path: &[&str], code: &'static str, message: impl Into<String>) {
        let mark = self.position(path);
        self.findings.add(ManifestFinding::error(mark, code, message));
    }

    fn add_error_with_hint(
        &mut self,
        path: &[&str],
        code: &'static str,
        message: impl Into<String>,
        hint: &str,
    ) {
        let mark = self.position(path);
        self.findings.add(ManifestFinding::error(mark, code, message).hint(hint));
    }

    fn get(&self, path: &[&str]) -> Option<&'s Value> {
        value_at(self.subject.body, path)
    }

    fn check_kind(&mut self) {
        let gvk = self.subject.gvk;
        let grouped =
            self.get(&["apiVersion"]).and_then(Value::as_str).is_some_and(|text| text.contains('/'));
        if gvk.version.is_empty() || (grouped && gvk.group.is_empty()) {
            self.identified = false;
            self.add_error(&["apiVersion"], "bad-api-version", BAD_API_VERSION);
        } else if !names::is_label(&gvk.version) || !(gvk.group.is_empty() || names::is_subdomain(&gvk.group))
        {
            self.identified = false;
            let message = "apiVersion names a group and a version in lower-case letters, digits, `-` and `.`";
            self.add_error(&["apiVersion"], "bad-api-version", message);
        }
        // Rights, messages and URLs are made of it.
        if !names::is_kind(&gvk.kind) {
            self.identified = false;
            let message = "a kind has at most 63 letters, digits and `-`, and begins with a letter";
            self.add_error(&["kind"], "bad-kind", message);
        }
        if self.get(&["items"]).is_some() {
            let message =
                "Kubernetes takes what has `items` for a list, and the kind of a list ends in `List`";
            let mark = self.key_position(&["items"]);
            let hint = "correct the kind, or move `items` to where it belongs";
            self.findings.add(ManifestFinding::error(mark, "bad-list", message).hint(hint));
        }
    }

    /// Returns false for an object that would be applied wrongly, whatever else is in it.
    fn has_cluster_identity(&mut self) -> bool {
        let gvk = self.subject.gvk;
        let encrypted =
            self.get(&["sops"]).is_some_and(Value::is_object) && !is_for_operator(self.subject.body);
        let kustomization = &*gvk.group == "kustomize.config.k8s.io";
        if encrypted {
            let message = format!(
                "this {} is encrypted by SOPS: applied as it is, it would carry ciphertext",
                gvk.kind
            );
            self.add_error_with_hint(
                &["sops"],
                "sops",
                message,
                "give rhumb an age identity that opens it: `LoadCredential=sops-age:FILE` for the service, SOPS_AGE_KEY_FILE for a command",
            );
        }
        if kustomization {
            self.identified = false;
            self.add_error_with_hint(
                &["kind"],
                "kustomization",
                "a kustomization is input for kustomize, no object of a cluster",
                "render it with `kustomize build` and follow the result, or list the file in .rhumbignore",
            );
        }
        !encrypted && !kustomization
    }

    fn check_metadata(&mut self) {
        match self.get(&["metadata"]) {
            Some(Value::Object(_)) => {
                self.check_name_field();
                self.check_namespace();
                self.check_types();
                self.typed &= self.check_labels(&["metadata"]);
            }
            None | Some(Value::Null) => self.refuse_missing_name(),
            Some(_) => {
                self.identified = false;
                self.typed = false;
                self.add_error(&["metadata"], "wrong-type", "metadata must be a mapping");
            }
        }
    }

    fn check_name_field(&mut self) {
        let path = &["metadata", "name"];
        match self.get(path) {
            Some(Value::String(name)) if !name.is_empty() => self.check_name(name),
            Some(value @ (Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
                self.identified = false;
                self.report_wrong_type("name", value, FieldType::Text);
            }
            None | Some(Value::Null | Value::String(_)) => self.refuse_missing_name(),
        }
    }

    fn check_name(&mut self, name: &str) {
        let path = &["metadata", "name"];
        let gvk = self.subject.gvk;
        if let Some(fault) = NameRule::of(&gvk.group, &gvk.kind).fault(name) {
            let message = format!("\"{name}\" cannot name {}: {fault}", with_article(&gvk.kind));
            self.report_invalid_name(path, "bad-name", message, name);
        } else if gvk.group.is_empty()
            && &*gvk.kind == "Service"
            && name.starts_with(|c: char| c.is_ascii_digit())
        {
            let mark = self.position(path);
            let message = "API servers before Kubernetes 1.36 take no Service whose name begins with a digit";
            self.findings.add(ManifestFinding::warning(mark, "service-name", message));
        }
        if self.has_generated_name() {
            self.add_error_with_hint(
                &["metadata", "generateName"],
                "generate-name",
                "generateName asks the server to make up a name, and this object has one",
                "remove it: metadata.name is there",
            );
        }
    }

    fn refuse_missing_name(&mut self) {
        self.identified = false;
        if self.has_generated_name() {
            return self.add_error_with_hint(
                &["metadata", "generateName"],
                "generate-name",
                "generateName makes a new object at every apply: nothing could be compared with the repository",
                "give it a fixed metadata.name",
            );
        }
        let hint = if self.subject.implied {
            "this is an item of a kind that ends in `List`: Kubernetes reads those that have `items` as lists of objects"
        } else {
            "every object has a name: write `name:` below `metadata:`"
        };
        let path: &[&str] = if self.get(&["metadata"]).is_some() { &["metadata"] } else { &[] };
        self.add_error_with_hint(path, "no-name", "metadata.name is missing", hint);
    }

    fn has_generated_name(&self) -> bool {
        self.get(&["metadata", "generateName"]).is_some_and(|value| !clean::is_empty_field(value))
    }

    /// Reports a name that the API does not take, with what was probably meant.
    fn report_invalid_name(&mut self, path: &[&str], code: &'static str, message: String, name: &str) {
        let near = || names::nearest_valid_name(name).map(|near| format!("a name that fits: {near}"));
        match find_template_sign(name).map(str::to_owned).or_else(near) {
            Some(hint) => self.add_error_with_hint(path, code, message, &hint),
            None => self.add_error(path, code, message),
        }
    }

    fn check_namespace(&mut self) {
        let path = &["metadata", "namespace"];
        match self.get(path) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name.is_empty() || names::is_label(name) => {}
            Some(Value::String(name)) => {
                let message = format!("\"{name}\" cannot name a namespace: {}", names::LABEL_RULE);
                self.report_invalid_name(path, "bad-namespace", message, name);
            }
            Some(value) => {
                self.identified = false;
                self.report_wrong_type("namespace", value, FieldType::Text);
            }
        }
    }

    /// Checks the labels and annotations of a `metadata`; false when their types are wrong.
    fn check_labels(&mut self, metadata: &[&str]) -> bool {
        let body = self.subject.body;
        let field = |name: &'static str| value_at(body, metadata).and_then(|metadata| metadata.get(name));
        let typed = is_texts(field("labels")) && is_texts(field("annotations"));
        if let Some(labels) = self.check_texts(&[metadata, &["labels"]].concat(), field("labels")) {
            for (key, value) in labels {
                if let Some(fault) = names::key_fault(key) {
                    self.add_key_error(&[metadata, &["labels", key]].concat(), || {
                        format!("label key \"{key}\": {fault}")
                    });
                }
                if let Some(fault) = value.as_str().and_then(names::label_value_fault) {
                    if self.findings.count_if_full() {
                        continue;
                    }
                    let path = [metadata, &["labels", key]].concat();
                    let message = format!("label \"{key}\": {fault}");
                    match value.as_str().and_then(find_template_sign) {
                        Some(hint) => self.add_error_with_hint(&path, "bad-label", message, hint),
                        None => self.add_error(&path, "bad-label", message),
                    }
                }
            }
        }
        if let Some(annotations) =
            self.check_texts(&[metadata, &["annotations"]].concat(), field("annotations"))
        {
            let mut size = 0;
            for (key, value) in annotations {
                size += key.len() + value.as_str().map_or(0, str::len);
                if let Some(fault) = names::key_fault(&key.to_lowercase()) {
                    let message = || format!("annotation key \"{key}\": {fault}");
                    self.add_key_error(&[metadata, &["annotations", key]].concat(), message);
                }
            }
            if size > MAX_ANNOTATIONS_BYTES {
                let path = [metadata, &["annotations"]].concat();
                let message = format!(
                    "the annotations have {size} bytes; the API takes at most {MAX_ANNOTATIONS_BYTES}"
                );
                self.add_error(&path, "annotations-too-large", message);
            }
        }
        typed
    }

    fn check_types(&mut self) {
        let body = self.subject.body;
        for (field, wanted) in METADATA_TYPES {
            if let Some(value) = value_at(body, &["metadata", field]).filter(|value| !wanted.fits(value)) {
                self.report_wrong_type(field, value, wanted);
            }
        }
    }

    fn report_wrong_type(&mut self, field: &str, value: &Value, wanted: FieldType) {
        self.typed = false;
        let path = &["metadata", field];
        let message = format!("metadata.{field} must be {}", wanted.name());
        if matches!(wanted, FieldType::Text) && (value.is_number() || value.is_boolean()) {
            self.add_error_with_hint(path, "wrong-type", message, "put it in quotes");
        } else {
            self.add_error(path, "wrong-type", message);
        }
    }

    fn add_key_error(&mut self, path: &[&str], message: impl FnOnce() -> String) {
        if self.findings.count_if_full() {
            return;
        }
        let mark = self.key_position(path);
        self.findings.add(ManifestFinding::error(mark, "bad-key", message()));
    }

    fn report_dropped_fields(&mut self) {
        let kept = |value: Option<&Value>| value.is_some_and(|value| !clean::is_empty_field(value));
        if kept(self.get(&["status"])) {
            self.add_drop_warning(&["status"], "status is the server's to write: it is left out");
        }
        for field in SERVER_SET_METADATA {
            if kept(self.get(&["metadata", field])) {
                let message = format!("metadata.{field} is the server's to write: it is left out");
                self.add_drop_warning(&["metadata", field], &message);
            }
        }
    }

    /// Warns of owners: an owner is named by its uid, which a repository cannot know.
    fn warn_of_owners(&mut self) {
        let owners = self.get(&["metadata", "ownerReferences"]).and_then(Value::as_array);
        if owners.is_some_and(|owners| !owners.is_empty()) {
            let mark = self.key_position(&["metadata", "ownerReferences"]);
            let message = "metadata.ownerReferences: the cluster deletes this object when no owner of that uid is there";
            let finding = ManifestFinding::warning(mark, "owner-references", message);
            self.findings
                .add(finding.hint("remove it from the manifest: a uid changes when the owner is made anew"));
        }
    }

    fn add_drop_warning(&mut self, path: &[&str], message: &str) {
        let mark = self.key_position(path);
        let finding = ManifestFinding::warning(mark, "server-set", message);
        self.findings.add(finding.hint("remove it from the manifest"));
    }
}

/// The hint for what a template engine should have filled in.
pub(super) const TEMPLATE_HINT: &str = "`{{` looks like a template: render it first (for example with `helm template`) and follow the result, or list the file in .rhumbignore";

/// Returns the sign of a text that a program should have filled in.
fn find_template_sign(text: &str) -> Option<&'static str> {
    if text.contains("{{") {
        return Some(TEMPLATE_HINT);
    }
    text.contains("${")
        .then_some("`${` looks like a variable: name its value under `substitute` of the source")
}

/// Returns whether a field maps text to text, or is not there.
fn is_texts(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.values().all(|value| value.is_string() || value.is_null()),
        Some(_) => false,
    }
}
