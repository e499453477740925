//! Encrypted comments of YAML. They are no data: one that cannot be opened stays as it is.

use zeroize::Zeroizing;

use crate::manifest::YamlNodeId;

use super::FileKey;
use super::document::OpenedDocuments;
use super::error::SopsError;
use super::leaves::{Leaf, LeafVisitor, walk};
use super::rules::EncryptionRule;
use super::splice::{TextEdit, has_comments};
use super::value::{DecryptedValue, ENCRYPTED_PREFIX, EncryptedValue};

/// Key paths that are tried for one comment. It belongs to a mapping before or behind it.
const MAX_COMMENT_ATTEMPTS: usize = 64;
/// The key path of a comment at the root.
pub(super) const ROOT_KEY_PATH: &str = ":";
/// Bytes of key paths that are remembered, and that are tried.
const MAX_KEY_PATH_BYTES: usize = 16 << 20;

/// Writes a comment on one line, whatever it holds.
pub(super) fn write_comment(comment: &str) -> Zeroizing<String> {
    let fits = |character: char| {
        character == '\t' || !(character.is_control() || ('\u{2028}'..='\u{2029}').contains(&character))
    };
    let text = if comment.chars().all(fits) { comment } else { "" };
    Zeroizing::new(format!("#{text}"))
}

/// Opens the comments of a file that are outside what is replaced already.
pub(super) fn open_comments(
    documents: &OpenedDocuments<'_>,
    keys: &[FileKey],
    edits: &[TextEdit],
) -> Vec<TextEdit> {
    let text = documents.text;
    let start = format!("#{ENCRYPTED_PREFIX}");
    if !has_comments(documents.format) || !text.contains(&start) {
        return Vec::new();
    }
    let Some(paths) = CollectionPaths::of(documents) else { return Vec::new() };
    let (mut found, mut line, mut counted, mut work) = (Vec::new(), 1, 0, MAX_KEY_PATH_BYTES);
    for (at, _) in text.match_indices(&start) {
        line += text.get(counted..at).unwrap_or_default().matches('\n').count() as u32;
        counted = at;
        let rest = text.get(at + 1..).unwrap_or_default();
        let encrypted = rest.lines().next().unwrap_or_default().trim_end();
        let edited = edits.partition_point(|edit| edit.range.start <= at);
        let inside =
            edited.checked_sub(1).and_then(|last| edits.get(last)).is_some_and(|edit| edit.range.end > at);
        let begins = text
            .get(..at)
            .is_none_or(|before| before.is_empty() || before.ends_with([' ', '\t', '\n', '\r']));
        let Ok(value) = EncryptedValue::parse(encrypted) else { continue };
        let Some(key) = documents.key_at(at, keys) else { continue };
        if inside || !begins {
            continue;
        }
        for path in paths.enclosing_paths(line) {
            let path = if path.is_empty() { ROOT_KEY_PATH } else { path };
            let Some(left) = work.checked_sub(path.len() + value.len()) else { return found };
            work = left;
            if let Ok(DecryptedValue::Comment(comment)) = key.open(&value, path) {
                found.push(TextEdit { range: at..at + 1 + encrypted.len(), text: write_comment(&comment) });
                break;
            }
        }
    }
    found
}

/// The key paths of all collections, by the lines that they begin in.
struct CollectionPaths(Vec<(u32, String)>);

impl CollectionPaths {
    /// Returns none when there is too much of them.
    fn of(documents: &OpenedDocuments<'_>) -> Option<Self> {
        struct PathVisitor<'w, F: Fn(YamlNodeId) -> u32> {
            line: F,
            paths: &'w mut Vec<(u32, String)>,
            work: &'w mut Option<usize>,
        }
        impl<F: Fn(YamlNodeId) -> u32> LeafVisitor for PathVisitor<'_, F> {
            fn enter(&mut self, collection: YamlNodeId, path: &str) {
                *self.work = self.work.and_then(|left| left.checked_sub(path.len() + size_of::<String>()));
                if self.work.is_some() {
                    self.paths.push(((self.line)(collection), path.to_owned()));
                }
            }

            fn leaf(&mut self, _leaf: Leaf<'_>) -> Result<(), SopsError> {
                Ok(())
            }
        }
        let (mut paths, mut work) = (Vec::new(), Some(MAX_KEY_PATH_BYTES));
        for document in &documents.documents {
            let tree = &document.source.tree;
            let line = |node| tree.mark(node).line;
            let mut visitor = PathVisitor { line, paths: &mut paths, work: &mut work };
            walk(documents.file, tree, &EncryptionRule::Comments, &mut visitor).ok()?;
        }
        work.map(|_| Self(paths))
    }

    /// Returns the paths that a comment in a line may belong to: those of the collections before
    /// and behind it, and of all around these.
    fn enclosing_paths(&self, line: u32) -> impl Iterator<Item = &str> {
        let next = self.0.partition_point(|(begins, _)| *begins <= line);
        let near = [next.checked_sub(1), Some(next)].into_iter().flatten();
        let paths = near.filter_map(|at| self.0.get(at)).map(|(_, path)| path.as_str());
        paths.flat_map(|path| {
            let ends = path.rmatch_indices(':').map(|(at, _)| at + 1).chain([0]);
            ends.filter_map(|end| path.get(..end)).take(MAX_COMMENT_ATTEMPTS)
        })
    }
}
