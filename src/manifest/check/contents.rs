//! Fields of text that a number or a boolean gets into when its quotes are forgotten.

use serde_json::{Map, Value};

use super::ObjectCheck;
use crate::manifest::findings::ManifestFinding;
use crate::manifest::names;
use crate::manifest::scalar::decode_base64;
use crate::object::value_at;

/// The parents of the pod metadata and pod spec, in the kinds that make pods.
const POD_TEMPLATE_PATHS: [&[&str]; 3] =
    [&["spec", "template"], &["spec", "jobTemplate"], &["spec", "jobTemplate", "spec", "template"]];

/// The words of a file that SOPS encrypted: its metadata and an encrypted value.
const SOPS_FILE_WORDS: [&str; 2] = ["sops", "ENC["];

impl<'s> ObjectCheck<'_, 's, '_> {
    /// Returns a field that maps text to text. Reports what else it is or holds.
    pub(super) fn check_texts(
        &mut self,
        path: &[&str],
        value: Option<&'s Value>,
    ) -> Option<&'s Map<String, Value>> {
        let name = path.join(".");
        let secret = self.subject.gvk.group_kind().is("", "Secret");
        match value? {
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(_, value)| !is_text(value)) {
                    let path = [path, &[key]].concat();
                    self.check_text(&path, value, || match names::data_key_fault(key) {
                        Some(_) if secret => format!("{name}: the value of this key"),
                        _ => format!("{name}: the value of \"{key}\""),
                    });
                }
                Some(map)
            }
            Value::Null => None,
            other => {
                let message = format!("{name} must be a mapping of text to text");
                if other.is_string() {
                    let hint = "each entry is a key, `:`, a blank and a value";
                    self.add_error_with_hint(path, "wrong-type", message, hint);
                } else {
                    self.add_error(path, "wrong-type", message);
                }
                None
            }
        }
    }

    fn check_text(&mut self, path: &[&str], value: &Value, subject: impl FnOnce() -> String) {
        let found = match value {
            _ if is_text(value) => return,
            Value::Number(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Array(_) => "a list",
            _ => "a mapping",
        };
        if self.findings.count_if_full() {
            return;
        }
        let message = format!("{} must be text, and this is {found}", subject());
        if value.is_number() || value.is_boolean() {
            self.add_error_with_hint(path, "not-text", message, "put it in quotes");
        } else {
            self.add_error(path, "not-text", message);
        }
    }

    /// Checks the pod templates.
    pub(super) fn check_pods(&mut self) {
        let gvk = self.subject.gvk;
        if !matches!(&*gvk.group, "" | "apps" | "batch") {
            return;
        }
        for template in POD_TEMPLATE_PATHS {
            let metadata = [template, &["metadata"]].concat();
            if self.get(&metadata).is_some_and(Value::is_object) {
                self.check_labels(&metadata);
            }
            self.check_pod_spec(&[template, &["spec"]].concat());
        }
        if gvk.group_kind().is("", "Pod") {
            self.check_pod_spec(&["spec"]);
        }
    }

    fn check_pod_spec(&mut self, spec: &[&str]) {
        let selector = [spec, &["nodeSelector"]].concat();
        self.check_texts(&selector, self.get(&selector));
        for list in ["initContainers", "containers"] {
            let path = [spec, &[list]].concat();
            for (number, container) in items(self.get(&path)) {
                let path = [&path[..], &[&number]].concat();
                for field in ["command", "args"] {
                    let path = [&path[..], &[field]].concat();
                    for (number, word) in items(container.get(field)) {
                        self.check_text(&[&path[..], &[&number]].concat(), word, || {
                            format!("an item of {field}")
                        });
                    }
                }
                for (number, variable) in items(container.get("env")) {
                    let path = [&path[..], &["env", &number, "value"]].concat();
                    let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
                    if let Some(value) = variable.get("value") {
                        self.check_text(&path, value, || format!("env: the value of \"{name}\""));
                    }
                }
            }
        }
    }

    /// Checks the contents of a `ConfigMap` or `Secret`.
    pub(super) fn check_contents(&mut self) {
        let gvk = self.subject.gvk;
        let fields: [&str; 2] = match (&*gvk.group, &*gvk.kind) {
            ("", "ConfigMap") => ["data", "binaryData"],
            ("", "Secret") => ["data", "stringData"],
            _ => return,
        };
        for field in fields {
            let Some(map) = self.check_texts(&[field], value_at(self.subject.body, &[field])) else {
                continue;
            };
            for key in map.keys() {
                // The key is not repeated: `{password:hunter2}` is one.
                if let Some(fault) = names::data_key_fault(key) {
                    self.add_key_error(&[field, key], || format!("{field}: this cannot be a key: {fault}"));
                }
            }
            if &*gvk.kind == "Secret" && field == "data" {
                map.iter().for_each(|(key, value)| self.check_encrypted_file(key, value));
            }
        }
    }

    /// Reports a value of a Secret that is a file as SOPS writes it. Other tools look for these,
    /// and open them before they apply the Secret.
    fn check_encrypted_file(&mut self, key: &str, value: &Value) {
        let decoded = value.as_str().and_then(decode_base64).unwrap_or_default();
        let has = |word: &str| decoded.windows(word.len()).any(|part| part == word.as_bytes());
        if names::data_key_fault(key).is_some() || !SOPS_FILE_WORDS.into_iter().all(has) {
            return;
        }
        let mark = self.position(&["data", key]);
        let message = format!("data: the value of \"{key}\" is a file that SOPS encrypted, and stays closed");
        let hint = "encrypt the Secret itself, or name the encrypted file under `secretGenerator`";
        self.findings.add(ManifestFinding::warning(mark, "sops-file", message).hint(hint));
    }
}

fn is_text(value: &Value) -> bool {
    value.is_string() || value.is_null()
}

/// Returns the items of a list with their numbers.
fn items(list: Option<&Value>) -> impl Iterator<Item = (String, &Value)> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.enumerate().map(|(number, item)| (number.to_string(), item))
}
