//! The values of a document on their way into the open, and into the file's MAC.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sha2::{Digest as _, Sha256, Sha512};

use crate::manifest::{DocumentTree, ScalarTag, TextMark, YamlNodeId, YamlNodeKind};

use super::error::{SopsError, text_excerpt};
use super::leaves::{Leaf, LeafVisitor, NamedFile, PlaintextValue};
use super::metadata::SopsMetadata;
use super::positions::{MarkCursor, scalar_range};
use super::rules::{EncryptionRule, ValueState};
use super::value::{DataKey, DecryptedValue, ENCRYPTED_PREFIX, EncryptedValue, EncryptedValueFault};

/// Bytes that are decrypted and authenticated for one file: those of the file, and of key paths.
const MAX_FILE_DECRYPTION_BYTES: usize = 64 << 20;
/// The start of a MAC that leaves out what is not encrypted: the SHA-256 of `sops`. SOPS chose it
/// to keep that MAC apart from one over everything.
const ENCRYPTED_ONLY_MAC_START: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// The surroundings of a value in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafContext {
    /// In brackets or braces.
    Flow,
    /// In a mapping whose keys begin in this column, from 0.
    Mapping(usize),
    /// In a list whose dashes are in this column, from 0.
    Sequence(usize),
}

/// An opened value, and what of the file it takes the place of.
pub(super) struct OpenedLeaf {
    pub(super) value: DecryptedValue,
    pub(super) mark: TextMark,
    /// The keys on the way to it, as messages show them.
    pub(super) path: String,
    pub(super) range: Range<usize>,
    pub(super) context: LeafContext,
    /// Indicates a comment after which its list has no items.
    pub(super) is_last_in_list: bool,
}

/// The state that all documents of a file add to.
pub(super) struct OpeningState {
    mac: Sha512,
    only_encrypted: bool,
    digest: ContentDigest,
    work: WorkBudget,
}

impl OpeningState {
    pub(super) fn new() -> Self {
        Self {
            mac: Sha512::new(),
            only_encrypted: false,
            digest: ContentDigest::new(),
            work: WorkBudget(MAX_FILE_DECRYPTION_BYTES),
        }
    }

    /// Begins the MAC of documents with this metadata.
    pub(super) fn begin_mac(&mut self, metadata: &SopsMetadata) {
        self.mac = Sha512::new();
        self.only_encrypted = metadata.only_encrypted;
        if metadata.only_encrypted {
            self.mac.update(ENCRYPTED_ONLY_MAC_START);
        }
    }

    /// Returns the MAC of the documents since it was begun.
    pub(super) fn take_mac(&mut self) -> Sha512 {
        std::mem::take(&mut self.mac)
    }

    /// Opens the value of a key path, or takes it as it is. Adds it to the MAC.
    pub(super) fn value(
        &mut self,
        text: Option<&str>,
        state: ValueState,
        path: &str,
        key: &DataKey,
    ) -> Result<Option<DecryptedValue>, EncryptedValueFault> {
        let encrypted = text.filter(|text| text.starts_with(ENCRYPTED_PREFIX));
        let opened = match (state, encrypted, text) {
            (ValueState::Encrypted | ValueState::ByForm, Some(encrypted), _) => {
                let encrypted = EncryptedValue::parse(encrypted)?;
                self.work.spend(encrypted.len() + path.len())?;
                Some(key.open(&encrypted, path)?)
            }
            // SOPS leaves an empty text as it is.
            (ValueState::Encrypted, None, text) if text != Some("") => {
                return Err(EncryptedValueFault::Clear);
            }
            _ => None,
        };
        if let Some(opened) = &opened {
            self.mac.update(opened.mac_bytes().as_slice());
        }
        Ok(opened)
    }

    /// Adds a value that is not encrypted to the MAC.
    pub(super) fn add_clear(&mut self, bytes: &[u8]) {
        if !self.only_encrypted {
            self.mac.update(bytes);
        }
    }

    /// Returns the digest of the content.
    pub(super) fn finish(self) -> [u8; 32] {
        self.digest.finish()
    }
}

/// The remaining work for one file.
struct WorkBudget(usize);

impl WorkBudget {
    fn spend(&mut self, bytes: usize) -> Result<(), EncryptedValueFault> {
        self.0 = self.0.checked_sub(bytes).ok_or(EncryptedValueFault::TooMuchWork)?;
        Ok(())
    }
}

/// A digest of what documents say, whatever they look like.
pub(super) struct ContentDigest(Sha256);

impl ContentDigest {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(super) fn add_clear(&mut self, path: &str, value: &PlaintextValue) {
        match value {
            PlaintextValue::Null => self.add(path, b'n', b""),
            PlaintextValue::Text(text) => self.add(path, b't', text),
            PlaintextValue::Other(bytes) => self.add(path, b'o', bytes),
            PlaintextValue::Empty(YamlNodeKind::Sequence) => self.add(path, b's', b""),
            PlaintextValue::Empty(_) => self.add(path, b'm', b""),
        }
    }

    fn add_opened(&mut self, path: &str, value: &DecryptedValue) {
        let kind = match value {
            DecryptedValue::Text(_) | DecryptedValue::Bytes(_) => b't',
            DecryptedValue::Comment(_) => return,
            DecryptedValue::Int(_)
            | DecryptedValue::Float(_)
            | DecryptedValue::Bool(_)
            | DecryptedValue::Time(_) => b'o',
        };
        self.add(path, kind, value.mac_bytes().as_slice());
    }

    fn add(&mut self, path: &str, kind: u8, bytes: &[u8]) {
        self.0.update((path.len() as u64).to_be_bytes());
        self.0.update(path);
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The opener of the values of one document.
pub(super) struct DocumentOpener<'w, 'f> {
    file: NamedFile<'f>,
    tree: &'w DocumentTree<'f>,
    key: &'w DataKey,
    rule: &'w EncryptionRule,
    state: &'w mut OpeningState,
    cursor: &'w mut MarkCursor<'f>,
    /// The collections in brackets or braces.
    flow: HashSet<YamlNodeId>,
    /// The number of comments that a list has among its items.
    comments: HashMap<YamlNodeId, usize>,
    leaves: Vec<OpenedLeaf>,
}

impl<'w, 'f> DocumentOpener<'w, 'f> {
    pub(super) fn new(
        file: NamedFile<'f>,
        tree: &'w DocumentTree<'f>,
        key: &'w DataKey,
        rule: &'w EncryptionRule,
        state: &'w mut OpeningState,
        cursor: &'w mut MarkCursor<'f>,
    ) -> Self {
        let (flow, comments, leaves) = (HashSet::new(), HashMap::new(), Vec::new());
        Self { file, tree, key, rule, state, cursor, flow, comments, leaves }
    }

    pub(super) fn finish(self) -> Vec<OpenedLeaf> {
        self.leaves
    }

    fn leaf_context(&self, parent: YamlNodeId) -> LeafContext {
        let column = self.tree.mark(parent).column.saturating_sub(1) as usize;
        match self.tree.kind(parent) {
            _ if self.flow.contains(&parent) => LeafContext::Flow,
            YamlNodeKind::Sequence => LeafContext::Sequence(column),
            _ => LeafContext::Mapping(column),
        }
    }

    /// Returns whether a comment is the last item of a list that has nothing but comments.
    fn is_last_in_list(&mut self, leaf: &Leaf<'_>) -> bool {
        let seen = self.comments.entry(leaf.parent).or_default();
        *seen += 1;
        let seen = *seen;
        self.tree.next(leaf.node).is_none() && {
            let items = std::iter::successors(self.tree.first(leaf.parent), |item| self.tree.next(*item));
            items.count() == seen
        }
    }

    fn clear(&mut self, leaf: &Leaf<'_>) -> Result<(), SopsError> {
        let clear = PlaintextValue::of(self.file, self.tree, leaf.node)?;
        if self.state.work.spend(leaf.path.len()).is_err() {
            let at = self.file.at(self.tree.mark(leaf.node));
            return Err(SopsError::TooLarge {
                at,
                limit: MAX_FILE_DECRYPTION_BYTES,
                unit: "bytes of key paths",
            });
        }
        self.state.add_clear(clear.mac_bytes());
        self.state.digest.add_clear(leaf.path, &clear);
        Ok(())
    }
}

impl LeafVisitor for DocumentOpener<'_, '_> {
    fn enter(&mut self, collection: YamlNodeId, _path: &str) {
        let start = self.cursor.offset(self.tree.mark(collection));
        if self.cursor.text().get(start..).is_some_and(|rest| rest.starts_with(['{', '['])) {
            self.flow.insert(collection);
        }
    }

    fn leaf(&mut self, leaf: Leaf<'_>) -> Result<(), SopsError> {
        let tree = self.tree;
        let mark = tree.mark(leaf.node);
        let state = if leaf.met { self.rule.met_state() } else { self.rule.unmet_state() };
        let clear = PlaintextValue::of(self.file, tree, leaf.node)?;
        if matches!(clear, PlaintextValue::Null | PlaintextValue::Empty(_)) {
            return self.clear(&leaf);
        }
        let text = matches!(clear, PlaintextValue::Text(_)).then(|| tree.text(leaf.node));
        let opened = self.state.value(text, state, leaf.path, self.key);
        let fault = |fault| SopsError::Value { at: self.file.at(mark), path: path_excerpt(leaf.path), fault };
        let Some(value) = opened.map_err(fault)? else { return self.clear(&leaf) };
        let is_list = tree.kind(leaf.parent) == YamlNodeKind::Sequence;
        let is_comment = matches!(value, DecryptedValue::Comment(_));
        if is_comment && !is_list {
            return Err(fault(EncryptedValueFault::Type));
        }
        if tree.tag(leaf.node) != ScalarTag::None {
            return Err(self.file.form(mark, "an encrypted value with a tag"));
        }
        self.state.digest.add_opened(leaf.path, &value);
        let is_last_in_list = is_comment && self.is_last_in_list(&leaf);
        if is_last_in_list {
            self.state.digest.add_clear(leaf.path, &PlaintextValue::Empty(YamlNodeKind::Sequence));
        }
        let start = self.cursor.offset(mark);
        let range = scalar_range(self.cursor.text(), start, tree.text(leaf.node))
            .ok_or_else(|| self.file.form(mark, "an encrypted value in an unusual form"))?;
        let (path, context) = (path_excerpt(leaf.path), self.leaf_context(leaf.parent));
        self.leaves.push(OpenedLeaf { value, mark, path, range, context, is_last_in_list });
        Ok(())
    }
}

/// Shows a key path in the form `data.password`.
pub(super) fn path_excerpt(path: &str) -> String {
    text_excerpt(&path.trim_end_matches(':').replace(':', "."))
}
