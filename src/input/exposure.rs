//! Values that SOPS encrypted beside the data of Secrets. Nothing masks them, so their objects are
//! held back.
//!
//! The reading of an encrypted file is compared with that of the opened one. All that differs was
//! encrypted, by whatever rule. An object is taken from the opened reading where nothing differs
//! but a Secret's data. All else that is shown of it is in the clear in the repository.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::sops::{SOPS_KEY, is_encrypted_comment, is_encrypted_value, text_excerpt};
use crate::fields::{FieldPath, PathElement};
use crate::manifest::{ManifestFile, ManifestItem, PlacedNode, PlacedValue, TextPosition, read_documents};
use crate::object::{Diagnostic, ManifestOrigin, text_at};

/// The code of an encrypted object of another kind than Secret.
const ENCRYPTED_KIND: &str = "encrypted-kind";
/// The code of an encrypted value beside the data of a Secret.
const ENCRYPTED_FIELD: &str = "encrypted-field";

/// The fields of a Secret whose values are masked wherever it is shown.
const MASKED_FIELDS: [&str; 2] = ["data", "stringData"];
/// The fields that say which object it is.
pub(super) const IDENTITY_PATHS: [&[&str]; 4] =
    [&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", "namespace"]];

/// The places of the encrypted values of a file, which is read when the first is asked for.
pub(super) struct SealedPositions<'f> {
    file: &'f Arc<str>,
    /// The encrypted file; none for an object that was rendered.
    bytes: Option<&'f [u8]>,
    positions: OnceCell<HashMap<String, TextPosition>>,
}

impl<'f> SealedPositions<'f> {
    pub(super) const fn of_file(file: &'f Arc<str>, bytes: &'f [u8]) -> Self {
        Self { file, bytes: Some(bytes), positions: OnceCell::new() }
    }

    /// Returns places of which none is known: a rendered object names those that it was made of.
    pub(super) const fn unknown(file: &'f Arc<str>) -> Self {
        Self { file, bytes: None, positions: OnceCell::new() }
    }

    /// Returns the place of a value, else that of its object.
    fn origin(&self, value: Option<&Value>, item: &ManifestItem) -> ManifestOrigin {
        let text = value.and_then(Value::as_str);
        match text.and_then(|text| self.positions.get_or_init(|| self.read()).get(text)) {
            Some(position) => ManifestOrigin::new(self.file.clone(), position.line, position.column),
            None => item.origin.clone(),
        }
    }

    fn read(&self) -> HashMap<String, TextPosition> {
        let mut positions = HashMap::new();
        for document in self.documents() {
            add_positions(&document, &mut positions);
        }
        positions
    }

    fn documents(&self) -> Vec<PlacedValue> {
        self.bytes.map(|bytes| read_documents(self.file, bytes).documents).unwrap_or_default()
    }

    /// Returns the lines of documents that begin with the metadata of SOPS, each with the line in
    /// which the opened one begins.
    fn moved_lines(&self) -> HashMap<u32, u32> {
        let moved = |document: PlacedValue| {
            let (metadata, others): (Vec<_>, Vec<_>) =
                document.entries().iter().partition(|entry| entry.key == SOPS_KEY);
            let is_first = metadata.iter().any(|entry| entry.position == document.position);
            let next = others.iter().map(|entry| entry.position.line).min();
            next.filter(|_| is_first).map(|line| (document.position.line, line))
        };
        self.documents().into_iter().filter_map(moved).collect()
    }
}

/// Adds the places of all encrypted texts in a document. The levels of a document that has places
/// are bounded.
fn add_positions(value: &PlacedValue, positions: &mut HashMap<String, TextPosition>) {
    match &value.node {
        PlacedNode::Scalar(Value::String(text)) if is_encrypted_value(text) => {
            positions.entry(text.clone()).or_insert(value.position);
        }
        PlacedNode::Scalar(_) => {}
        PlacedNode::List(items) => items.iter().for_each(|item| add_positions(item, positions)),
        PlacedNode::Mapping(entries) => {
            for entry in entries {
                add_positions(&entry.value, positions);
            }
        }
    }
}

/// Returns the opened reading of a file. An object of which more than a Secret's data was encrypted
/// is held back in it, and is there as it is encrypted.
pub(super) fn hold_exposed_back(
    sealed: &ManifestFile,
    mut opened: ManifestFile,
    sealed_positions: &SealedPositions<'_>,
) -> ManifestFile {
    let mut review = ExposureReview {
        positions: sealed_positions,
        found: Vec::new(),
        newcomer: None,
        lines: Vec::new(),
        is_identity_hidden: false,
    };
    let unmoved = HashMap::new();
    let found_positions: Vec<ItemPosition> = positions(&opened.items, &unmoved).collect();
    let partners_at = |moved: &HashMap<u32, u32>| -> BTreeMap<ItemPosition, &ManifestItem> {
        positions(&sealed.items, moved).zip(&sealed.items).collect()
    };
    let mut partners = partners_at(&unmoved);
    if found_positions.iter().any(|position| !partners.contains_key(position)) {
        partners = partners_at(&sealed_positions.moved_lines());
    }
    let mut fates = Vec::with_capacity(found_positions.len());
    for (position, item) in found_positions.iter().zip(&mut opened.items) {
        fates.push(match partners.remove(position) {
            Some(sealed) => review.pair(sealed, item),
            None => review.without_partner(item),
        });
    }
    for sealed in partners.into_values() {
        review.name_encrypted(sealed);
    }
    let mut fates = fates.into_iter();
    retain_items(&mut opened, |_| fates.next() != Some(ObjectExposure::HeldBack));
    review.finish(opened)
}

/// Takes the objects out of an encrypted reading of which it is encrypted which they are.
pub(super) fn drop_unidentified(sealed: &mut ManifestFile) {
    let before = sealed.items.len();
    retain_items(sealed, |item| !is_identity_hidden(item));
    sealed.understood &= sealed.items.len() == before;
}

/// The line of an object, and the number of those before it in that line. Opening moves neither,
/// but for a document that begins with its metadata.
type ItemPosition = (u32, usize);

fn positions(items: &[ManifestItem], moved: &HashMap<u32, u32>) -> impl Iterator<Item = ItemPosition> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    items.iter().map(move |item| {
        let line = moved.get(&item.origin.line).copied().unwrap_or(item.origin.line);
        let count = counts.entry(line).or_default();
        *count += 1;
        (line, *count)
    })
}

/// Keeps some items, and the count of those before an error.
fn retain_items(reading: &mut ManifestFile, mut keeps: impl FnMut(&ManifestItem) -> bool) {
    let (mut seen, mut kept_before_error) = (0, 0);
    let before_error = reading.before_error;
    reading.items.retain(|item| {
        let kept = keeps(item);
        kept_before_error += usize::from(kept && seen < before_error);
        seen += 1;
        kept
    });
    reading.before_error = kept_before_error;
}

/// The fate of an object of the opened reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ObjectExposure {
    Shown,
    /// It was encrypted which object it is, so not even its name is used.
    HeldBack,
}

/// The objects of one file as they are gone through.
struct ExposureReview<'r> {
    positions: &'r SealedPositions<'r>,
    found: Vec<Diagnostic>,
    /// The place of the first object that is none before the file is opened.
    newcomer: Option<ManifestOrigin>,
    /// The line of each object, with true for one that is held back.
    lines: Vec<(u32, bool)>,
    is_identity_hidden: bool,
}

impl ExposureReview<'_> {
    /// Compares an object with what it is in the open, and puts the encrypted one in its place
    /// where that must not be shown.
    fn pair(&mut self, sealed: &ManifestItem, item: &mut ManifestItem) -> ObjectExposure {
        let found = self.fault(sealed, item);
        self.lines.push((sealed.origin.line, found.is_some()));
        let Some(found) = found else { return ObjectExposure::Shown };
        self.found.push(found);
        if is_identity_hidden(sealed) || !is_same_object(sealed, item) {
            self.is_identity_hidden = true;
            return ObjectExposure::HeldBack;
        }
        let (origin, index) = (item.origin.clone(), item.index);
        *item = ManifestItem { valid: false, origin, index, ..sealed.clone() };
        ObjectExposure::Shown
    }

    fn fault(&self, sealed: &ManifestItem, opened: &ManifestItem) -> Option<Diagnostic> {
        if sealed.gvk == opened.gvk && !is_secret(opened) {
            // SOPS marks each document of a file, also one without any encrypted value.
            let difference = first_difference(&sealed.body, &opened.body, &mut FieldPath::default(), &[]);
            return difference.map(|_| wrong_kind(opened));
        }
        let masked = if sealed.gvk == opened.gvk { MASKED_FIELDS.as_slice() } else { &[] };
        let mut path = FieldPath::default();
        let value = first_difference(&sealed.body, &opened.body, &mut path, masked)?;
        Some(self.encrypted_field(&path, Some(value), sealed))
    }

    fn encrypted_field(&self, path: &FieldPath, value: Option<&Value>, sealed: &ManifestItem) -> Diagnostic {
        let path = path.to_string();
        encrypted_field(self.positions.origin(value, sealed), &text_excerpt(path.trim_start_matches('.')))
    }

    /// Drops an object that was none before it was opened. Its encrypted `apiVersion`, or that of
    /// the list around it, has no form that any reader takes.
    fn without_partner(&mut self, item: &ManifestItem) -> ObjectExposure {
        self.newcomer.get_or_insert_with(|| item.origin.clone());
        self.lines.push((item.origin.line, true));
        self.is_identity_hidden = true;
        ObjectExposure::HeldBack
    }

    /// Names what is encrypted of an object that is none in the open. If that is not its
    /// identity, the finding of the opened reading says why.
    fn name_encrypted(&mut self, sealed: &ManifestItem) {
        let hides = is_identity_hidden(sealed);
        self.lines.push((sealed.origin.line, hides));
        self.is_identity_hidden |= hides;
        let is_hidden = |path: &&&[&str]| is_encrypted_value(text_at(&sealed.body, path));
        if let Some(path) = IDENTITY_PATHS.iter().find(is_hidden) {
            let value = crate::object::value_at(&sealed.body, path);
            self.found.push(self.encrypted_field(&FieldPath::of_keys(path), value, sealed));
        }
    }

    /// Leaves out what was found in the lines of objects that are held back, as it may repeat what
    /// was encrypted. No line is shown.
    fn finish(mut self, mut opened: ManifestFile) -> ManifestFile {
        self.lines.sort_unstable();
        let is_held = |line: u32| {
            let next = self.lines.partition_point(|(begins, _)| *begins <= line);
            next.checked_sub(1).and_then(|last| self.lines.get(last)).is_some_and(|(_, held)| *held)
        };
        opened.diagnostics.retain(|known| !is_held(known.origin.line));
        opened.diagnostics.iter_mut().for_each(|known| known.excerpt = None);
        let newcomer = self.newcomer.filter(|_| self.found.is_empty());
        self.found.extend(newcomer.map(|at| encrypted_field(at, "apiVersion")));
        opened.diagnostics.append(&mut self.found);
        opened.diagnostics.sort();
        opened.understood &= !self.is_identity_hidden;
        opened
    }
}

fn is_secret(item: &ManifestItem) -> bool {
    item.gvk.group.is_empty() && &*item.gvk.kind == "Secret"
}

fn is_same_object(one: &ManifestItem, other: &ManifestItem) -> bool {
    let identity = |item: &ManifestItem| (item.gvk.clone(), item.namespace.clone(), item.name.clone());
    identity(one) == identity(other)
}

/// Returns whether it is encrypted which object it is, or not said.
fn is_identity_hidden(sealed: &ManifestItem) -> bool {
    sealed.name.is_empty()
        || IDENTITY_PATHS.iter().any(|path| is_encrypted_value(text_at(&sealed.body, path)))
}

fn wrong_kind(item: &ManifestItem) -> Diagnostic {
    let message =
        format!("this {} is encrypted, and only the values of a Secret are never shown", item.gvk.kind);
    let hint = "move the values into a Secret, or commit the object as it is";
    Diagnostic::error(item.origin.clone(), ENCRYPTED_KIND, message).hint(hint)
}

fn encrypted_field(at: ManifestOrigin, field: &str) -> Diagnostic {
    let message = format!("{field} is encrypted, and only data and stringData of a Secret are never shown");
    let hint = "decrypt the file, and encrypt its values alone: \
                `sops encrypt -i --encrypted-regex '^(data|stringData)$' FILE`";
    Diagnostic::error(at, ENCRYPTED_FIELD, message).hint(hint)
}

/// Finds the first place in which two trees differ, and returns what the encrypted one has there.
/// Passes over the metadata of SOPS, these keys of the root, and encrypted comments. The reader of
/// manifests bounds the depth of what comes here.
fn first_difference<'v>(
    sealed: &'v Value,
    opened: &Value,
    path: &mut FieldPath,
    passed_over: &[&str],
) -> Option<&'v Value> {
    let is_root = path.elements().is_empty();
    let mut inside = |step: PathElement, (before, after): (&'v Value, &Value)| {
        path.push(step);
        let found = first_difference(before, after, path, passed_over);
        if found.is_none() {
            path.pop();
        }
        found
    };
    match (sealed, opened) {
        (Value::Object(before), Value::Object(after)) => {
            let counts = |key: &str| !(is_root && (key == SOPS_KEY || passed_over.contains(&key)));
            if after.keys().any(|key| counts(key) && !before.contains_key(key)) {
                return Some(sealed);
            }
            let mut pairs = before.iter().filter(|(key, _)| counts(key));
            pairs.find_map(|(key, value)| {
                inside(PathElement::key(key), (value, after.get(key).unwrap_or(&Value::Null)))
            })
        }
        (Value::Array(before), Value::Array(after)) => {
            let is_comment = |item: &Value| item.as_str().is_some_and(is_encrypted_comment);
            let before: Vec<&Value> = before.iter().filter(|item| !is_comment(item)).collect();
            if before.len() != after.len() {
                return Some(sealed);
            }
            let mut pairs = before.into_iter().zip(after).enumerate();
            pairs.find_map(|(index, pair)| inside(PathElement::Index(index), pair))
        }
        _ => (sealed != opened).then_some(sealed),
    }
}

#[cfg(test)]
mod tests;
