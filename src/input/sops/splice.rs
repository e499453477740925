//! The opened file: its text with each encrypted value replaced, and the metadata taken out. The
//! result is read again and compared, so that no form of YAML changes what the values are.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::manifest::{DocumentTree, YamlNodeId, YamlNodeKind};

use super::comments;
use super::document::{OpenedDocument, OpenedDocuments, read};
use super::error::SopsError;
use super::leaves::{Leaf, LeafVisitor, NamedFile, PlaintextValue, SOPS_KEY, walk};
use super::opening::{ContentDigest, LeafContext, OpenedLeaf};
use super::positions::{MarkCursor, line_end, line_start};
use super::rules::EncryptionRule;
use super::value::{DecryptedValue, EncryptedValueFault};
use super::writing::{self, WrittenScalar, YamlContext};
use super::{FileKey, PlaintextLayout, SopsFormat};

/// A part of the text, and what takes its place.
pub(super) struct TextEdit {
    pub(super) range: Range<usize>,
    pub(super) text: Zeroizing<String>,
}

/// Writes the decrypted documents.
pub(super) fn plaintext(
    documents: &OpenedDocuments<'_>,
    keys: &[FileKey],
    layout: PlaintextLayout,
) -> Result<Zeroizing<Vec<u8>>, SopsError> {
    let mut edits = Vec::new();
    let mut cursor = MarkCursor::new(documents.text);
    for document in &documents.documents {
        let start = cursor.offset(document.source.tree.mark(DocumentTree::ROOT_YAML_NODE));
        let braces = documents.text.get(start..).is_some_and(|rest| rest.starts_with('{'));
        let splice = DocumentSplice { documents, document, layout, braces };
        splice.values(&mut edits)?;
        splice.metadata(&mut cursor, &mut edits);
    }
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let with_comments = comments::open_comments(documents, keys, &edits);
    let has_comments = !with_comments.is_empty();
    let attempts = [Some(with_comments).filter(|_| has_comments), Some(Vec::new())];
    for comments in attempts.into_iter().flatten() {
        let mut all: Vec<&TextEdit> = edits.iter().chain(&comments).collect();
        all.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let text = apply_edits(documents.text, &all, layout);
        if is_faithful(documents, &text) {
            return Ok(Zeroizing::new(text.as_bytes().to_vec()));
        }
    }
    match layout {
        // SOPS writes some texts so that nobody reads them as they were.
        PlaintextLayout::Sops => plaintext(documents, keys, PlaintextLayout::SameLines),
        PlaintextLayout::SameLines => Err(SopsError::Unwritable { at: documents.file.line(0) }),
    }
}

fn apply_edits(text: &str, edits: &[&TextEdit], layout: PlaintextLayout) -> Zeroizing<String> {
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    // It never grows again, which would leave copies behind.
    let mut out = Zeroizing::new(String::with_capacity(text.len() * 2 + added));
    let mut at = 0;
    for edit in edits {
        let Some(between) = text.get(at..edit.range.start) else { continue };
        out.push_str(between);
        out.push_str(&edit.text);
        at = edit.range.end;
        if layout == PlaintextLayout::SameLines {
            let breaks = |text: &str| text.matches('\n').count();
            let gone = breaks(text.get(edit.range.clone()).unwrap_or_default());
            out.extend(std::iter::repeat_n('\n', gone.saturating_sub(breaks(&edit.text))));
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Returns whether a reader of the text finds what the encrypted file holds.
fn is_faithful(documents: &OpenedDocuments<'_>, text: &str) -> bool {
    struct DigestVisitor<'w> {
        file: NamedFile<'w>,
        tree: &'w DocumentTree<'w>,
        digest: &'w mut ContentDigest,
    }
    impl LeafVisitor for DigestVisitor<'_> {
        fn leaf(&mut self, leaf: Leaf<'_>) -> Result<(), SopsError> {
            let clear = PlaintextValue::of(self.file, self.tree, leaf.node)?;
            self.digest.add_clear(leaf.path, &clear);
            Ok(())
        }
    }
    let Ok(sources) = read(text, documents.format) else { return false };
    let mut digest = ContentDigest::new();
    let (file, rule) = (documents.file, EncryptionRule::Comments);
    let read = sources.iter().all(|source| {
        let mut visitor = DigestVisitor { file, tree: &source.tree, digest: &mut digest };
        walk(file, &source.tree, &rule, &mut visitor).is_ok()
    });
    read && digest.finish() == documents.digest
}

/// One document on its way into the open.
struct DocumentSplice<'w, 'f> {
    documents: &'w OpenedDocuments<'f>,
    document: &'w OpenedDocument<'f>,
    layout: PlaintextLayout,
    /// Indicates that it is in braces from its root on, as JSON is.
    braces: bool,
}

impl DocumentSplice<'_, '_> {
    fn values(&self, edits: &mut Vec<TextEdit>) -> Result<(), SopsError> {
        for leaf in &self.document.leaves {
            if let DecryptedValue::Comment(comment) = &leaf.value {
                edits.push(self.comment(leaf, comment));
            } else if self.braces {
                let text = writing::json(&leaf.value).ok_or_else(|| self.unfit_value_error(leaf))?;
                edits.push(TextEdit { range: leaf.range.clone(), text });
            } else {
                self.value(leaf, edits);
            }
        }
        Ok(())
    }

    /// Returns the fault of a value that JSON does not have.
    fn unfit_value_error(&self, leaf: &OpenedLeaf) -> SopsError {
        let fault = match leaf.value {
            DecryptedValue::Bytes(_) => EncryptedValueFault::Binary,
            _ => EncryptedValueFault::NotFinite,
        };
        SopsError::Value { at: self.documents.file.at(leaf.mark), path: leaf.path.clone(), fault }
    }

    fn value(&self, leaf: &OpenedLeaf, edits: &mut Vec<TextEdit>) {
        let context = match (self.layout, leaf.context) {
            (PlaintextLayout::SameLines, _) | (_, LeafContext::Flow) => YamlContext::Line,
            // SOPS indents by multiples of four, and the items of a list by two.
            (_, LeafContext::Mapping(parent)) => YamlContext::Block { parent, indent: (parent / 4 + 1) * 4 },
            (_, LeafContext::Sequence(parent)) => YamlContext::Block { parent, indent: parent + 2 },
        };
        match writing::yaml(&leaf.value, context) {
            WrittenScalar::Line(text) => edits.push(TextEdit { range: leaf.range.clone(), text }),
            WrittenScalar::Block { header, indent, lines } => {
                let text = Zeroizing::new(header);
                edits.push(TextEdit { range: leaf.range.clone(), text });
                let mut text = Zeroizing::new(String::with_capacity(lines.len() * 2));
                for line in lines.split('\n') {
                    text.push('\n');
                    text.extend(std::iter::repeat_n(' ', if line.is_empty() { 0 } else { indent }));
                    text.push_str(line);
                }
                // A comment may follow the header in its line.
                let end = line_end(self.documents.text, leaf.range.end);
                edits.push(TextEdit { range: end..end, text });
            }
        }
    }

    /// Makes a comment of an item of a list: SOPS encrypts the comments of lists as items.
    fn comment(&self, leaf: &OpenedLeaf, comment: &str) -> TextEdit {
        let text = self.documents.text;
        let Range { start, end } = leaf.range;
        if leaf.context == LeafContext::Flow {
            let blank = [' ', '\t', '\r', '\n'];
            let rest = text.get(end..).unwrap_or_default();
            let after = rest.trim_start_matches(blank);
            if after.starts_with(',') {
                let end = end + rest.len() - after.len() + 1;
                return TextEdit { range: start..end, text: Zeroizing::default() };
            }
            let before = text.get(..start).unwrap_or_default().trim_end_matches(blank);
            let start = before.strip_suffix(',').map_or(start, str::len);
            return TextEdit { range: start..end, text: Zeroizing::default() };
        }
        let before = text.get(line_start(text, start)..start).unwrap_or_default();
        let dash = before.rfind('-').map_or(start, |dash| start - before.len() + dash);
        let list = if leaf.is_last_in_list { "  [] " } else { "" };
        let text = Zeroizing::new(format!("{list}{}", comments::write_comment(comment).as_str()));
        TextEdit { range: dash..end, text }
    }

    fn metadata(&self, cursor: &mut MarkCursor<'_>, edits: &mut Vec<TextEdit>) {
        let tree = &self.document.source.tree;
        let keys: Vec<YamlNodeId> = tree.pairs(DocumentTree::ROOT_YAML_NODE).map(|(key, _)| key).collect();
        if tree.kind(DocumentTree::ROOT_YAML_NODE) != YamlNodeKind::Mapping {
            return;
        }
        let starts: Vec<usize> = keys.iter().map(|key| cursor.offset(tree.mark(*key))).collect();
        for (number, key) in keys.iter().enumerate().filter(|(_, key)| tree.text(**key) == SOPS_KEY) {
            let Some(&start) = starts.get(number) else { continue };
            let next = starts.get(number + 1).copied();
            let edit = if self.braces { self.member(start, next, number) } else { self.block(start, next) };
            let empty = keys.iter().all(|other| other == key || tree.text(*other) == SOPS_KEY);
            let text = match self.layout {
                _ if self.braces => "",
                _ if empty => "{}\n",
                PlaintextLayout::Sops => "",
                // Blank lines would be added to a text before them that keeps its breaks.
                PlaintextLayout::SameLines => "#\n",
            };
            edits.push(TextEdit { range: edit, text: Zeroizing::new(text.to_owned()) });
        }
    }

    /// Returns the end of the document in the file.
    fn end(&self) -> usize {
        let part = self.document.source.text;
        part.as_ptr().addr() - self.documents.text.as_ptr().addr() + part.len()
    }

    /// Returns the lines of a key of the root, up to those of the next.
    fn block(&self, start: usize, next: Option<usize>) -> Range<usize> {
        let text = self.documents.text;
        line_start(text, start)..next.map_or(self.end(), |next| line_start(text, next))
    }

    /// Returns a member of the root in braces, with one of the commas around it.
    fn member(&self, start: usize, next: Option<usize>, number: usize) -> Range<usize> {
        if let Some(next) = next {
            return start..next;
        }
        let text = self.documents.text;
        let inside = self.end().saturating_sub(1);
        let end = text
            .get(start..inside)
            .and_then(|member| member.rfind('}'))
            .map_or(inside, |end| start + end + 1);
        let comma = text.get(..start).and_then(|before| before.rfind(','));
        comma.filter(|_| number > 0).unwrap_or(start)..end
    }
}

/// Returns whether the format is one whose documents may have comments.
pub(super) fn has_comments(format: SopsFormat) -> bool {
    format == SopsFormat::Yaml
}
