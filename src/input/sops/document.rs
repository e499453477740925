//! Files of YAML and JSON: their metadata, their data key and their MAC.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha512};
use zeroize::Zeroizing;

use crate::manifest::{
    DocumentFault, DocumentTree, PlacedDocument, YamlNodeId, YamlNodeKind, json_document, yaml_documents,
};
use crate::object::ManifestOrigin;

use super::age::{self, AgeFault, AgeIdentities, AttemptBudget};
use super::error::{MetadataFault, RecipientKinds, SopsError, recipient_names, text_excerpt};
use super::leaves::{NamedFile, SOPS_KEY, walk};
use super::metadata::{AgeEntry, SopsMetadata};
use super::opening::{DocumentOpener, OpenedLeaf, OpeningState};
use super::positions::MarkCursor;
use super::value::{DataKey, DecryptedValue, EncryptedValue};
use super::{FileKey, OpenedContent, OpenedFile, PlaintextLayout, SopsFormat, splice};

/// The key of the only value of a binary file.
const DATA_KEY: &str = "data";
/// The key of the MAC in the metadata.
const MAC_KEY: &str = "mac";
/// Levels below `sops`.
const MAX_METADATA_DEPTH: usize = 6;

/// A decrypted document.
pub(super) struct OpenedDocument<'f> {
    pub(super) source: PlacedDocument<'f>,
    pub(super) leaves: Vec<OpenedLeaf>,
    /// The number of its data key among those of the file.
    key: usize,
}

/// The decrypted documents of a file, and the digest of what they say.
pub(super) struct OpenedDocuments<'f> {
    pub(super) file: NamedFile<'f>,
    pub(super) text: &'f str,
    pub(super) format: SopsFormat,
    pub(super) documents: Vec<OpenedDocument<'f>>,
    /// The values that a reader of the opened file must find.
    pub(super) digest: [u8; 32],
}

impl OpenedDocuments<'_> {
    pub(super) fn values(&self) -> impl Iterator<Item = Zeroizing<Vec<u8>>> {
        let leaves = self.documents.iter().flat_map(|document| &document.leaves);
        leaves.filter_map(|leaf| leaf.value.shown_bytes())
    }

    pub(super) fn plaintext(
        &self,
        keys: &[FileKey],
        layout: PlaintextLayout,
    ) -> Result<Zeroizing<Vec<u8>>, SopsError> {
        splice::plaintext(self, keys, layout)
    }

    /// Returns the key of the document around an offset of the text.
    pub(super) fn key_at<'k>(&self, offset: usize, keys: &'k [FileKey]) -> Option<&'k DataKey> {
        let start =
            |document: &OpenedDocument<'_>| document.source.text.as_ptr().addr() - self.text.as_ptr().addr();
        let next = self.documents.partition_point(|document| start(document) <= offset);
        let document = self.documents.get(next.saturating_sub(1))?;
        keys.get(document.key).map(|key| &key.key)
    }
}

/// Documents of a file that were encrypted together.
struct DocumentGroup {
    metadata: SopsMetadata,
    line: u32,
    /// Their number.
    count: usize,
}

/// Returns the documents of a file in groups. SOPS writes the same metadata into each document of a
/// file. Another MAC begins a file that was encrypted by itself, and put behind the one before.
fn document_groups(
    file: NamedFile<'_>,
    documents: &[PlacedDocument<'_>],
) -> Result<Vec<DocumentGroup>, SopsError> {
    let mut groups: Vec<DocumentGroup> = Vec::new();
    for PlacedDocument { tree, .. } in documents {
        match groups.last_mut() {
            Some(last) if written_mac(tree).is_none_or(|mac| mac == last.metadata.mac) => last.count += 1,
            _ => {
                let (metadata, line) = metadata(file, tree)?;
                groups.push(DocumentGroup { metadata, line, count: 1 });
            }
        }
    }
    if groups.is_empty() {
        return Err(SopsError::Metadata { at: file.line(0), fault: MetadataFault::Missing });
    }
    Ok(groups)
}

/// Returns the MAC in the metadata of a document.
fn written_mac<'t>(tree: &'t DocumentTree<'_>) -> Option<&'t str> {
    let find = |node, name: &str| tree.pairs(node).find(|(key, _)| tree.text(*key) == name);
    let (_, sops) = find(DocumentTree::ROOT_YAML_NODE, SOPS_KEY)?;
    find(sops, MAC_KEY).map(|(_, mac)| tree.text(mac))
}

/// Reads the documents of a file.
pub(super) fn read(text: &str, format: SopsFormat) -> Result<Vec<PlacedDocument<'_>>, DocumentFault> {
    match format {
        SopsFormat::Yaml => yaml_documents(text),
        _ => json_document(text).map(|document| vec![document]),
    }
}

/// Returns whether a document of a file has the metadata of SOPS.
pub(super) fn is_encrypted(text: &str, format: SopsFormat) -> bool {
    let Ok(documents) = read(text, format) else { return false };
    documents.iter().any(|document| {
        let tree = &document.tree;
        let sops = tree.pairs(DocumentTree::ROOT_YAML_NODE).find(|(key, _)| tree.text(*key) == SOPS_KEY);
        sops.is_some_and(|(_, value)| {
            tree.pairs(value).any(|(key, _)| matches!(tree.text(key), "mac" | "lastmodified" | "version"))
        })
    })
}

/// Opens a file. Documents that were encrypted each by itself are opened so.
pub(super) fn open<'f>(
    file: NamedFile<'f>,
    text: &'f str,
    format: SopsFormat,
    identities: &AgeIdentities,
) -> Result<OpenedFile<'f>, SopsError> {
    let sources = read(text, format).map_err(|fault| file.syntax(fault))?;
    let groups = document_groups(file, &sources)?;
    let (mut state, mut cursor) = (OpeningState::new(), MarkCursor::new(text));
    let (mut documents, mut keys) = (Vec::with_capacity(sources.len()), Vec::new());
    let (mut sources, mut budget) = (sources.into_iter(), AttemptBudget::new());
    for DocumentGroup { metadata, line, count } in groups {
        let key = data_key(file, line, &metadata, identities, &mut budget)?;
        state.begin_mac(&metadata);
        for source in sources.by_ref().take(count) {
            let mut opener =
                DocumentOpener::new(file, &source.tree, &key, &metadata.rule, &mut state, &mut cursor);
            walk(file, &source.tree, &metadata.rule, &mut opener)?;
            let leaves = opener.finish();
            documents.push(OpenedDocument { source, leaves, key: keys.len() });
        }
        verify_mac(file, line, &metadata, &key, state.take_mac())?;
        keys.push(FileKey { key, entries: metadata.entries });
    }
    let documents = OpenedDocuments { file, text, format, documents, digest: state.finish() };
    Ok(OpenedFile { keys, content: OpenedContent::Documents(documents) })
}

/// Opens a file that is one value in an object of JSON.
pub(super) fn open_binary<'f>(
    file: NamedFile<'f>,
    text: &'f str,
    identities: &AgeIdentities,
) -> Result<OpenedFile<'f>, SopsError> {
    let OpenedFile { keys, content } = open(file, text, SopsFormat::Binary, identities)?;
    let OpenedContent::Documents(mut documents) = content else {
        return Ok(OpenedFile { keys, content });
    };
    let form = || SopsError::Form { at: file.line(0), form: "no binary data below `data`" };
    let document = documents.documents.first_mut().ok_or_else(form)?;
    let tree = &document.source.tree;
    let (_, data) = tree
        .pairs(DocumentTree::ROOT_YAML_NODE)
        .find(|(key, _)| tree.text(*key) == DATA_KEY)
        .ok_or_else(form)?;
    if matches!(tree.kind(data), YamlNodeKind::Mapping | YamlNodeKind::Sequence) {
        return Err(form());
    }
    let clear = tree.text(data).as_bytes().to_vec();
    let bytes = match document.leaves.drain(..).find(|leaf| leaf.path == DATA_KEY).map(|leaf| leaf.value) {
        // An empty text is not encrypted.
        None => Zeroizing::new(clear),
        Some(DecryptedValue::Text(text)) => Zeroizing::new(text.as_bytes().to_vec()),
        Some(DecryptedValue::Bytes(bytes)) => bytes,
        Some(_) => return Err(form()),
    };
    let values = vec![bytes.clone()];
    Ok(OpenedFile { keys, content: OpenedContent::Bytes { bytes, values } })
}

/// Returns the metadata of a document, and its line.
fn metadata(file: NamedFile<'_>, tree: &DocumentTree<'_>) -> Result<(SopsMetadata, u32), SopsError> {
    let missing = SopsError::Metadata { at: file.line(0), fault: MetadataFault::Missing };
    let mut found = tree.pairs(DocumentTree::ROOT_YAML_NODE).filter(|(key, _)| tree.text(*key) == SOPS_KEY);
    let Some((key, value)) = found.next() else { return Err(missing) };
    let line = tree.mark(key).line;
    let fault = |fault| SopsError::Metadata { at: file.line(line), fault };
    if found.next().is_some() {
        return Err(fault(MetadataFault::Twice));
    }
    let texts = texts(tree, value, MAX_METADATA_DEPTH).ok_or(fault(MetadataFault::Shape))?;
    if !texts.is_object() {
        return Err(fault(MetadataFault::Shape));
    }
    Ok((SopsMetadata::read(&texts).map_err(fault)?, line))
}

/// Returns a tree whose scalars are all texts. None when it is too deep, or has aliases.
fn texts(tree: &DocumentTree<'_>, node: YamlNodeId, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let first = tree.first(node);
    Some(match tree.kind(node) {
        YamlNodeKind::Alias => return None,
        YamlNodeKind::Sequence => {
            let items = std::iter::successors(first, |item| tree.next(*item));
            Value::Array(items.map(|item| texts(tree, item, depth)).collect::<Option<_>>()?)
        }
        YamlNodeKind::Mapping => {
            let entry = |(key, value)| Some((tree.text(key).to_owned(), texts(tree, value, depth)?));
            Value::Object(tree.pairs(node).map(entry).collect::<Option<Map<_, _>>>()?)
        }
        _ => Value::String(tree.text(node).to_owned()),
    })
}

/// Finds the data key of a file: by the entries for the identities' own recipients, then by the
/// others, whose recipients may be written wrongly.
pub(super) fn data_key(
    file: NamedFile<'_>,
    line: u32,
    metadata: &SopsMetadata,
    identities: &AgeIdentities,
    budget: &mut AttemptBudget,
) -> Result<DataKey, SopsError> {
    if metadata.entries.is_empty() {
        return Err(SopsError::NotSupported { at: file.line(line), names: metadata.others.join(" and ") });
    }
    entry_key(&file.line(line), &metadata.entries, identities, budget)
}

/// Finds the data key among the entries for its recipients.
pub(super) fn entry_key(
    at: &ManifestOrigin,
    entries: &[AgeEntry],
    identities: &AgeIdentities,
    budget: &mut AttemptBudget,
) -> Result<DataKey, SopsError> {
    let at = || at.clone();
    let own: Vec<String> = identities.recipients().collect();
    let is_own = |recipient: &str| own.iter().any(|own| own == recipient);
    let (first, then): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| is_own(&entry.recipient));
    let mut broken = None;
    for entry in first.into_iter().chain(then) {
        match age::open(&entry.armored, identities, budget) {
            Ok(Some(key)) => {
                let fault = SopsError::Metadata { at: at(), fault: MetadataFault::DataKey };
                return DataKey::new(&key).ok_or(fault);
            }
            Err(fault) if is_own(&entry.recipient) || fault == AgeFault::TooManyAttempts => {
                let recipient = text_excerpt(&entry.recipient);
                broken.get_or_insert(SopsError::DataKey { at: at(), recipient, fault });
            }
            Ok(None) | Err(_) => {}
        }
    }
    let recipients = entries.iter().map(|entry| entry.recipient.as_str());
    Err(broken.unwrap_or_else(|| SopsError::NoKey {
        at: at(),
        kinds: RecipientKinds::of(recipients.clone()),
        recipients: recipient_names(recipients),
    }))
}

/// Verifies the MAC over the values of a file.
pub(super) fn verify_mac(
    file: NamedFile<'_>,
    line: u32,
    metadata: &SopsMetadata,
    key: &DataKey,
    mac: Sha512,
) -> Result<(), SopsError> {
    let decrypted =
        EncryptedValue::parse(&metadata.mac).and_then(|mac| key.open(&mac, &metadata.last_modified));
    let Ok(DecryptedValue::Text(expected)) = decrypted else {
        return Err(SopsError::Metadata { at: file.line(line), fault: MetadataFault::Code });
    };
    let found = mac.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02X}"));
    if *expected == found { Ok(()) } else { Err(SopsError::Code { at: file.line(line) }) }
}
