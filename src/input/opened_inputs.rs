//! The encrypted files of one root as they are while its program runs: some in the open, all others
//! as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::encryption::TOO_MANY_ENCRYPTED;
use super::plaintext_index::PlaintextIndex;
use super::render_cipher::{SEALED_FIELDS, is_secret};
use super::root_job::RENDER_FAILED;
use super::root_render::{RenderError, RenderedObject};
use super::secret_exposure::find_exposed;
use super::sops::DataKey;
use super::variable_seal::SealKeys;
use crate::manifest::{PlacedNode, PlacedValue};
use crate::object::{Diagnostic, ManifestOrigin};

/// The text that stands for a value while variables are put in, with its number behind it.
const PLACEHOLDER_PREFIX: &str = "rhumb-taken-value-";
/// The words in the place of those of a program that read opened files.
const HIDDEN_OUTPUT_REASON: &str =
    "it cannot be rendered, and the words on it are not shown: they may repeat what was encrypted";

/// The encrypted files of a root.
#[derive(Default)]
pub(super) struct OpenedInputs {
    /// The keys of the files that the program gets as they are.
    pub(super) keys: Vec<DataKey>,
    /// The files that it gets in the open, by their paths in the closure.
    pub(super) files: BTreeMap<Arc<str>, Zeroizing<Vec<u8>>>,
    /// The surroundings of the opened values; none where nothing was opened.
    pub(super) opened: Option<OpenedValues>,
    /// The keys of encrypted variables that may be in what is rendered.
    pub(super) variables: SealKeys,
}

/// The opened values of a root: where they are found, and what they are sealed with again.
pub(super) struct OpenedValues {
    pub(super) index: PlaintextIndex,
    /// The keys of the files, from which the seal follows.
    pub(super) keys: SealKeys,
}

/// Leaves out all that was opened.
impl fmt::Debug for OpenedInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedInputs({:?})", self.files.keys())
    }
}

impl OpenedInputs {
    /// Returns whether the program gets no file in the open.
    pub(super) const fn is_empty(&self) -> bool {
        self.opened.is_none()
    }

    /// Returns a file in the open; none where the program gets it as it is.
    pub(super) fn plaintext(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|bytes| bytes.as_slice())
    }

    /// Checks that an object which the program made has opened values in the data of a Secret
    /// alone.
    ///
    /// # Errors
    /// Fails with the first other place, and where it cannot be said.
    pub(super) fn check_exposure(&self, object: &Value, at: &ManifestOrigin) -> Result<(), RenderError> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let found = find_exposed(object, &opened.index, at);
        let found = found.or_else(|| opened.index.is_exhausted().then(|| unsearched_root_refusal(at)));
        found.map_or(Ok(()), |found| Err(RenderError::Encrypted(found.into())))
    }

    /// Returns whether a text has an opened value, or may have one.
    pub(super) fn has_opened_value(&self, text: &str) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.index.can_contain(text.as_bytes()))
    }

    /// Takes those opened values out of an object that look as if they had variables: none is put
    /// into what was encrypted.
    pub(super) fn take_values(&self, object: &mut PlacedValue) -> ExtractedValues {
        let mut taken = ExtractedValues::default();
        let is_taken = |_: &&OpenedValues| is_secret(&object.to_value());
        let Some(opened) = self.opened.as_ref().filter(is_taken) else { return taken };
        let is_opened = |text: &str| {
            opened.index.can_contain(text.as_bytes()) || opened.index.is_short_value(text.as_bytes())
        };
        each_placed_text(object, |text| {
            if text.contains('$') && is_opened(text) {
                let name = format!("{PLACEHOLDER_PREFIX}{}", taken.0.len());
                taken.0.push(Zeroizing::new(std::mem::replace(text, name)));
            }
        });
        taken
    }

    /// Seals the Secrets among what was rendered.
    pub(super) fn seal(&self, objects: &mut [RenderedObject]) -> Result<(), RenderError> {
        let keys = match &self.opened {
            Some(opened) => opened.keys.clone().with_keys(&self.variables),
            None => self.variables.clone(),
        };
        for object in objects {
            let RenderedObject { body, origin, .. } = object;
            let root = || ManifestOrigin::of_file(Arc::clone(&origin.root));
            let at = || origin.places.first().cloned().unwrap_or_else(root);
            keys.seal(body, at).map_err(RenderError::Encrypted)?;
        }
        Ok(())
    }

    /// Takes the words of a program out of a finding. Its place stays, and so does what is said of
    /// a chart by names and fields alone.
    fn without_value(&self, found: Diagnostic) -> Diagnostic {
        let message = if found.code == RENDER_FAILED || self.has_opened_value(&found.message) {
            HIDDEN_OUTPUT_REASON.to_owned()
        } else {
            found.message.clone()
        };
        Diagnostic { message, excerpt: None, ..found }
    }

    /// Notes a text that is in the clear.
    pub(super) fn add_clear(&mut self, text: &[u8]) {
        if let Some(opened) = &mut self.opened {
            opened.index.add_clear(text);
        }
    }

    /// Takes the words of a program out of an error, where it may have read what was encrypted.
    pub(super) fn without_words(&self, error: RenderError) -> RenderError {
        if self.is_empty() {
            return error;
        }
        match error {
            RenderError::Failed { program, .. } | RenderError::Output { program, .. } => {
                RenderError::MessageWithheld { program }
            }
            RenderError::Sandbox(error) => error.without_stderr().into(),
            RenderError::Refused(found) => {
                RenderError::Refused(found.into_iter().map(|found| self.without_value(found)).collect())
            }
            other => other,
        }
    }
}

/// Returns the refusal of a root of which it cannot be said whether it shows an opened value.
fn unsearched_root_refusal(at: &ManifestOrigin) -> Diagnostic {
    let message = "what is rendered is too alike to long values that are encrypted: to look for them would take \
                   too long";
    let hint = "encrypt values that do not repeat themselves, or split the root";
    Diagnostic::error(at.clone(), TOO_MANY_ENCRYPTED, message).hint(hint)
}

/// Values that were taken out of an object.
#[derive(Default)]
pub(super) struct ExtractedValues(Vec<Zeroizing<String>>);

impl ExtractedValues {
    /// Puts them back.
    pub(super) fn put_back(&self, object: &mut Value) {
        each_text(object, |text| {
            let number =
                text.strip_prefix(PLACEHOLDER_PREFIX).and_then(|number| number.parse::<usize>().ok());
            if let Some(taken) = number.and_then(|number| self.0.get(number)) {
                taken.as_str().clone_into(text);
            }
        });
    }
}

/// Comes to each text in the data of a Secret.
fn each_text(object: &mut Value, mut visit: impl FnMut(&mut String)) {
    for field in SEALED_FIELDS {
        let members = object.get_mut(field).and_then(Value::as_object_mut);
        for value in members.into_iter().flat_map(serde_json::Map::values_mut) {
            if let Value::String(text) = value {
                visit(text);
            }
        }
    }
}

/// Does the same as [`each_text`] in a document that has places.
fn each_placed_text(object: &mut PlacedValue, mut visit: impl FnMut(&mut String)) {
    let PlacedNode::Mapping(entries) = &mut object.node else { return };
    for field in entries.iter_mut().filter(|entry| SEALED_FIELDS.contains(&entry.key.as_str())) {
        let PlacedNode::Mapping(members) = &mut field.value.node else { continue };
        for member in members {
            if let PlacedNode::Scalar(Value::String(text)) = &mut member.value.node {
                visit(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::read_documents;

    #[test]
    fn opened_values_are_taken_out_while_variables_are_put_in_however_short_they_are() {
        let values = ["$$", "${", "canary-${STAGE}", "${a}"]
            .map(|value| (Arc::from("patch.yaml"), Zeroizing::new(value.as_bytes().to_vec())));
        let index = PlaintextIndex::new(&values).unwrap();
        let opened = Some(OpenedValues { index, keys: SealKeys::default() });
        let inputs = OpenedInputs { opened, ..OpenedInputs::default() };
        let original = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "$$"},
            "stringData": {"a": "$$", "b": "${", "c": "canary-${STAGE}", "d": "${STAGE}", "e": "x$$y", "f": "${a}"}});
        let mut read = read_documents(&Arc::from("output"), original.to_string().as_bytes());
        let taken = inputs.take_values(&mut read.documents[0]);
        let mut object = read.documents[0].to_value();
        let left: Vec<&Value> = ["d", "e"]
            .iter()
            .map(|key| &object["stringData"][*key])
            .chain([&object["metadata"]["name"]])
            .collect();
        assert_eq!(left, ["${STAGE}", "x$$y", "$$"]);
        for key in ["a", "b", "c", "f"] {
            let text = object["stringData"][key].as_str().unwrap();
            assert!(text.starts_with(PLACEHOLDER_PREFIX), "{key}");
        }
        taken.put_back(&mut object);
        assert_eq!(object, original);
    }
}
