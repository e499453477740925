//! Patches, as far as they say which objects they are for.

use std::sync::Arc;

use crate::manifest::{PlacedValue, TextPosition, read_documents};

use super::file::{PatchUse, fields, is_inline, items};

/// An object as a text names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedObject {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) position: TextPosition,
}

impl NamedObject {
    /// Returns the objects of a file, those of lists one by one.
    pub(super) fn all(bytes: &[u8]) -> Vec<Self> {
        let mut named = Vec::new();
        for document in read_documents(&Arc::from(""), bytes).documents {
            let kind = text(&document, &["kind"]);
            let list = document.entries().iter().find(|entry| entry.key == "items");
            match list.filter(|_| kind.ends_with("List")) {
                Some(list) => named.extend(list.value.items().iter().map(Self::of)),
                None => named.push(Self::of(&document)),
            }
        }
        named
    }

    fn of(document: &PlacedValue) -> Self {
        let version = text(document, &["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(document, &["kind"]).to_owned(),
            name: text(document, &["metadata", "name"]).to_owned(),
            namespace: text(document, &["metadata", "namespace"]).to_owned(),
            position: document.position,
        }
    }
}

fn text<'a>(value: &'a PlacedValue, path: &[&str]) -> &'a str {
    let find = |value: &'a PlacedValue, key: &&str| {
        value.entries().iter().find(|entry| entry.key == **key).map(|entry| &entry.value)
    };
    path.iter().try_fold(value, find).and_then(PlacedValue::text).unwrap_or_default()
}

/// The objects that a patch is for. Each pattern is empty for all, or a regular expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchSelector {
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
    /// Labels or annotations decide too.
    has_selectors: bool,
}

impl PatchSelector {
    fn of(target: &PlacedValue) -> Self {
        let text = |key| {
            let value = fields(target, key).last().and_then(PlacedValue::text);
            value.unwrap_or_default().to_owned()
        };
        Self {
            group: text("group"),
            version: text("version"),
            kind: text("kind"),
            name: text("name"),
            namespace: text("namespace"),
            has_selectors: !(text("labelSelector") + &text("annotationSelector")).is_empty(),
        }
    }

    /// Returns whether it is certain that an object is selected: by the name that it has now, or by
    /// that which it had first.
    pub(super) fn selects(&self, object: &NamedObject, first_name: &str) -> bool {
        !self.has_selectors
            && is_certain_match(&self.group, &object.group)
            && is_certain_match(&self.version, &object.version)
            && is_certain_match(&self.kind, &object.kind)
            && is_certain_match(&self.namespace, &object.namespace)
            && (is_certain_match(&self.name, &object.name) || is_certain_match(&self.name, first_name))
    }
}

/// Returns whether a regular expression matches a whole text for certain. Understands alternatives,
/// and `.*`; of any other expression nothing is certain.
fn is_certain_match(pattern: &str, text: &str) -> bool {
    let plain = |part: &str| part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    pattern.is_empty()
        || pattern.split('|').any(|one| {
            let one = one.strip_prefix('^').unwrap_or(one);
            let one = one.strip_suffix('$').unwrap_or(one);
            one.split(".*").all(plain) && has_parts_in_order(one, text)
        })
}

/// Returns whether a text has these parts in order, the first at its beginning and the last at its
/// end.
fn has_parts_in_order(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once(".*") else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once(".*").unwrap_or(("", rest));
    for part in middle.split(".*") {
        let Some((_, after)) = left.split_once(part).or_else(|| part.is_empty().then_some(("", left))) else {
            return false;
        };
        left = after;
    }
    left.ends_with(last)
}

/// Returns the patches of a kustomization, in the order in which kustomize applies them.
pub(super) fn patches(root: &PlacedValue) -> Vec<PatchUse> {
    let mut patches = Vec::new();
    patches.extend(items(root, "patchesStrategicMerge").filter_map(|patch| text_patch(patch, patch, None)));
    for field in ["patches", "patchesJson6902"] {
        for patch in items(root, field) {
            let selector = fields(patch, "target").last().map(PatchSelector::of);
            let inline = fields(patch, "patch").last();
            let file = fields(patch, "path").last();
            patches.extend(match (inline.filter(|text| text.text() != Some("")), file) {
                (Some(text), _) => text_patch(text, text, selector),
                (None, Some(file)) => file_patch(file, selector),
                (None, None) => text_patch(patch, patch, selector),
            });
        }
    }
    patches
}

/// Returns a patch that is its own text or the name of a file.
fn text_patch(value: &PlacedValue, at: &PlacedValue, selector: Option<PatchSelector>) -> Option<PatchUse> {
    let text = value.text()?;
    if selector.is_none() && !is_inline(text) {
        return file_patch(value, selector);
    }
    let names = NamedObject::all(text.as_bytes());
    Some(PatchUse { file: None, position: at.position, selector, names })
}

fn file_patch(file: &PlacedValue, selector: Option<PatchSelector>) -> Option<PatchUse> {
    let (text, position) = (file.text()?.to_owned(), file.position);
    Some(PatchUse { file: Some(text), position, selector, names: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_where_that_is_certain() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(is_certain_match(pattern, text), expected, "{pattern} {text}");
        };
        check("", "anything", true);
        check("web", "web", true);
        check("web", "web-2", false);
        check("web|api", "api", true);
        check("^web$", "web", true);
        check(".*", "web", true);
        check("web-.*", "web-2", true);
        check("web-.*", "api", false);
        check(".*-web-.*-x", "a-web-b-x", true);
        check(".*-web-.*-x", "a-web-b-y", false);
        check("w[ea]b", "web", false);
        check("(web)", "web", false);
    }
}
