//! Whole files as their documents, for readers of other things than objects.

use super::split::{self, DocumentPart, DocumentSplitter};
use super::text::line_breaks;
use super::tree::{DocumentFault, DocumentTree, TextMark, TreeSize};
use super::{MAX_DOCUMENTS, MAX_MANIFEST_LINES, json, yaml};

/// A document, and the part of its file that it was read from.
pub(crate) struct PlacedDocument<'a> {
    pub(crate) tree: DocumentTree<'a>,
    /// The part of the text, without the separators around it.
    pub(crate) text: &'a str,
}

/// Reads all documents of a YAML text, but those of nothing but blanks and comments. Stops where
/// Kubernetes would leave something unread.
pub(crate) fn yaml_documents(text: &str) -> Result<Vec<PlacedDocument<'_>>, DocumentFault> {
    check_length(text)?;
    let mut documents = Vec::new();
    let mut size = TreeSize::default();
    for (part, number) in DocumentSplitter::new(text).zip(1..) {
        if number > MAX_DOCUMENTS {
            return Err(too_many(format!("the file has more than {MAX_DOCUMENTS} documents")));
        }
        let (tree, text) = match part {
            // The splitter takes a text for JSON by its first character.
            DocumentPart::Json(_) => return json_document(text).map(|document| vec![document]),
            DocumentPart::Yaml(chunk, _) if split::is_empty(chunk) => continue,
            DocumentPart::Yaml(chunk, line) => {
                let (tree, follows) = yaml::read(chunk, line)?;
                if let Some(mark) = follows {
                    let message = "something follows the end of the document";
                    return Err(DocumentFault::new(mark, "trailing-content", message));
                }
                (tree, chunk)
            }
            DocumentPart::Fault(fault) => return Err(fault),
        };
        size = tree.total_size(size)?;
        if !tree.is_empty() {
            documents.push(PlacedDocument { tree, text });
        }
    }
    Ok(documents)
}

/// Reads a text that is one value of JSON.
pub(crate) fn json_document(text: &str) -> Result<PlacedDocument<'_>, DocumentFault> {
    check_length(text)?;
    let (tree, length) = json::read(text, TextMark { line: 1, column: 1 })?;
    let (text, rest) = text.split_at_checked(length).unwrap_or((text, ""));
    if !rest.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
        let mark = TextMark { line: 1 + line_breaks(text), column: 1 };
        let message = "something follows the end of the document";
        return Err(DocumentFault::new(mark, "trailing-content", message));
    }
    Ok(PlacedDocument { tree, text })
}

fn check_length(text: &str) -> Result<(), DocumentFault> {
    if ['\n', '\r'].iter().any(|end| text.match_indices(*end).nth(MAX_MANIFEST_LINES).is_some()) {
        return Err(too_many(format!("the file has more than {MAX_MANIFEST_LINES} lines")));
    }
    Ok(())
}

fn too_many(message: String) -> DocumentFault {
    DocumentFault::new(TextMark { line: 1, column: 1 }, "too-many-values", message)
}
