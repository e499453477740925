//! A [`DocumentTree`] to a JSON value, as Kubernetes makes it. Plain scalars follow their table,
//! merge keys the order of the document. Keys become text, and aliases are expanded within bounds.
//! It works on a stack of its own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Number, Value};

use super::findings::{DUPLICATE_KEY, FileFindings, ManifestFinding};
use super::number;
use super::scalar::{self, Scalar, ScalarTag};
use super::tree::{DocumentFault, DocumentTree, YamlNodeId, YamlNodeKind};
use super::{MAX_ALIAS_EXPANSION_BYTES, MAX_YAML_DEPTH};

/// The value of a document.
pub(super) struct ResolvedDocument {
    pub(super) value: Value,
    /// Keys that are given twice in one mapping: the later of the two.
    pub(super) duplicates: Vec<YamlNodeId>,
}

/// The value of a key that a mapping has itself, and that is merged into it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeOrder {
    /// The one that is written later, as kubectl reads.
    Written,
    /// Its own.
    OwnFirst,
}

/// Resolves a whole document. Adds to the bytes that the aliases of its file have expanded to.
pub(super) fn resolve(
    tree: &mut DocumentTree<'_>,
    expanded: &mut usize,
    findings: &mut FileFindings,
) -> Result<ResolvedDocument, DocumentFault> {
    resolve_in(MergeOrder::Written, tree, expanded, findings)
}

/// Does the same as [`resolve`], with merges in this order.
pub(super) fn resolve_in(
    order: MergeOrder,
    tree: &mut DocumentTree<'_>,
    expanded: &mut usize,
    findings: &mut FileFindings,
) -> Result<ResolvedDocument, DocumentFault> {
    if tree.is_empty() {
        return Ok(ResolvedDocument { value: Value::Null, duplicates: Vec::new() });
    }
    let mut resolver = Resolver {
        order,
        tree,
        findings,
        stack: Vec::new(),
        depth: 0,
        active: HashSet::new(),
        budget: AliasBudget { bytes: *expanded, ..AliasBudget::default() },
        duplicates: Vec::new(),
    };
    let value = resolver.run();
    *expanded = resolver.budget.bytes;
    Ok(ResolvedDocument { value: value?, duplicates: resolver.duplicates })
}

/// The number of duplicate keys of one document that are traced to their first place.
const MAX_TRACED_DUPLICATES: usize = 20;

/// Work that is not done yet. A value that is done goes to the frame on top.
enum ResolveFrame {
    Sequence {
        next: Option<YamlNodeId>,
        out: Vec<Value>,
    },
    Mapping(Box<MappingFrame>),
    /// A mapping merged into the one at `into`.
    Merge {
        next: Option<YamlNodeId>,
        into: usize,
        key: Option<String>,
    },
    /// Mappings merged into the one at `into`, the last of them first.
    MergeList {
        left: Vec<YamlNodeId>,
        into: usize,
    },
    /// An alias whose target is being read.
    AliasEnd {
        alias: YamlNodeId,
    },
}

struct MappingFrame {
    node: YamlNodeId,
    next: Option<YamlNodeId>,
    key: Option<String>,
    out: Map<String, Value>,
    /// The keys that the mapping has itself, kept only once something was merged into it.
    own: Option<HashMap<String, YamlNodeId>>,
}

impl MappingFrame {
    fn has_own(&self, key: &str) -> bool {
        self.own.as_ref().is_some_and(|own| own.contains_key(key))
    }
}

struct Resolver<'t, 'a, 'f> {
    order: MergeOrder,
    tree: &'t mut DocumentTree<'a>,
    findings: &'f mut FileFindings,
    stack: Vec<ResolveFrame>,
    /// Collections open around the current node.
    depth: usize,
    /// Aliases being expanded.
    active: HashSet<YamlNodeId>,
    budget: AliasBudget,
    duplicates: Vec<YamlNodeId>,
}

impl Resolver<'_, '_, '_> {
    fn run(&mut self) -> Result<Value, DocumentFault> {
        let mut done = self.enter(DocumentTree::ROOT_YAML_NODE)?;
        loop {
            if let Some(value) = done.take() {
                match self.give(value) {
                    Some(value) => return Ok(value),
                    None => continue,
                }
            }
            done = self.step()?;
        }
    }

    /// Hands a finished value to the frame on top; returns it when there is none left.
    fn give(&mut self, value: Value) -> Option<Value> {
        loop {
            match self.stack.last_mut() {
                None => return Some(value),
                Some(ResolveFrame::AliasEnd { alias }) => {
                    let alias = *alias;
                    self.stack.pop();
                    self.leave_alias(alias);
                }
                Some(ResolveFrame::Sequence { out, .. }) => {
                    out.push(value);
                    return None;
                }
                Some(ResolveFrame::Mapping(mapping)) => {
                    if let Some(key) = mapping.key.take() {
                        mapping.out.insert(key, value);
                    }
                    return None;
                }
                Some(ResolveFrame::Merge { into, key, .. }) => {
                    let (into, key) = (*into, key.take());
                    if let (Some(ResolveFrame::Mapping(mapping)), Some(key)) = (self.stack.get_mut(into), key)
                        && (self.order == MergeOrder::Written || !mapping.has_own(&key))
                    {
                        mapping.out.insert(key, value);
                    }
                    return None;
                }
                // Gives nothing itself: its mappings write into the one below.
                Some(ResolveFrame::MergeList { .. }) => return None,
            }
        }
    }

    /// Does the next piece of work of the frame on top. Returns a value when one is done.
    fn step(&mut self) -> Result<Option<Value>, DocumentFault> {
        match self.stack.last_mut() {
            Some(ResolveFrame::Sequence { next: Some(child), .. }) => {
                let child = *child;
                let after = self.tree.next(child);
                if let Some(ResolveFrame::Sequence { next, .. }) = self.stack.last_mut() {
                    *next = after;
                }
                self.enter(child)
            }
            Some(ResolveFrame::Mapping(mapping)) if mapping.next.is_some() => {
                let (key, into) = (mapping.next, self.stack.len() - 1);
                self.entry(key, into)
            }
            Some(ResolveFrame::Merge { next: next @ Some(_), into, .. }) => {
                let (key, into) = (*next, *into);
                self.entry(key, into)
            }
            Some(ResolveFrame::MergeList { left, into }) if !left.is_empty() => {
                let into = *into;
                match left.pop() {
                    Some(source) => self.merge_one(source, into).map(|()| None),
                    None => Ok(None),
                }
            }
            _ => Ok(self.finish()),
        }
    }

    /// Ends the frame on top.
    fn finish(&mut self) -> Option<Value> {
        match self.stack.pop() {
            Some(ResolveFrame::Sequence { out, .. }) => {
                self.depth -= 1;
                Some(Value::Array(out))
            }
            Some(ResolveFrame::Mapping(mapping)) => {
                self.depth -= 1;
                Some(Value::Object(mapping.out))
            }
            Some(ResolveFrame::Merge { .. } | ResolveFrame::MergeList { .. }) => {
                // An alias that named the merged mapping ends with it.
                while let Some(&ResolveFrame::AliasEnd { alias }) = self.stack.last() {
                    self.stack.pop();
                    self.leave_alias(alias);
                }
                None
            }
            Some(ResolveFrame::AliasEnd { .. }) | None => None,
        }
    }

    /// Reads a key and enters its value, on behalf of the mapping at `into`.
    fn entry(&mut self, key: Option<YamlNodeId>, into: usize) -> Result<Option<Value>, DocumentFault> {
        let Some(key) = key else { return Ok(None) };
        let Some(value) = self.tree.next(key) else { return Ok(None) };
        let after = self.tree.next(value);
        match self.stack.last_mut() {
            Some(ResolveFrame::Mapping(mapping)) => mapping.next = after,
            Some(ResolveFrame::Merge { next, .. }) => *next = after,
            _ => {}
        }
        if self.tree.is_merge(key) {
            // The keys that are merged into a merged mapping may be there by now.
            let is_merged = matches!(self.stack.last(), Some(ResolveFrame::Merge { .. }));
            if !is_merged || self.order == MergeOrder::Written {
                self.begin_merge(value, into)?;
            }
            return Ok(None);
        }
        let text = self.key(key)?;
        self.note_own(key, &text);
        match self.stack.last_mut() {
            Some(ResolveFrame::Mapping(mapping)) => mapping.key = Some(text),
            Some(ResolveFrame::Merge { key, .. }) => *key = Some(text),
            _ => {}
        }
        self.enter(value)
    }

    /// Remembers a key that the mapping on top has itself, and reports it when it had it before.
    fn note_own(&mut self, key: YamlNodeId, text: &str) {
        let Some(ResolveFrame::Mapping(mapping)) = self.stack.last_mut() else { return };
        let twice = match &mut mapping.own {
            Some(own) => own.insert(text.to_owned(), key).is_some(),
            None => mapping.out.contains_key(text),
        };
        if !twice {
            return;
        }
        let node = mapping.node;
        let mark = self.tree.mark(key);
        let mut message = format!("key \"{text}\" is given twice in this mapping");
        if self.duplicates.len() < MAX_TRACED_DUPLICATES
            && let Some(first) = self.first_of(node, key, text)
        {
            message = format!(
                "{message}: first in line {}, again in line {}",
                self.tree.mark(first).line,
                mark.line
            );
        }
        if self.duplicates.len() < MAX_TRACED_DUPLICATES * 10 {
            self.duplicates.push(key);
        }
        let finding = ManifestFinding::error(mark, DUPLICATE_KEY, message)
            .hint("remove one of the two: kubectl would silently use the later");
        self.findings.add(finding);
    }

    fn first_of(&self, mapping: YamlNodeId, before: YamlNodeId, text: &str) -> Option<YamlNodeId> {
        let keys = self.tree.children(mapping).step_by(2).take_while(|key| *key != before);
        keys.filter(|key| !self.tree.is_merge(*key))
            .find(|key| key_of(self.tree, *key).is_some_and(|k| k == text))
    }

    fn begin_merge(&mut self, value: YamlNodeId, into: usize) -> Result<(), DocumentFault> {
        if let Some(ResolveFrame::Mapping(mapping)) = self.stack.get_mut(into)
            && mapping.own.is_none()
        {
            // Only what this mapping has itself can be there: nothing was merged before.
            let node = mapping.node;
            mapping.own = Some(mapping.out.keys().map(|key| (key.clone(), node)).collect());
        }
        if self.tree.kind(value) == YamlNodeKind::Sequence {
            let left: Vec<_> = self.tree.children(value).collect();
            self.stack.push(ResolveFrame::MergeList { left, into });
            return Ok(());
        }
        self.merge_one(value, into)
    }

    fn merge_one(&mut self, source: YamlNodeId, into: usize) -> Result<(), DocumentFault> {
        let target = self.tree.target(source);
        if self.tree.kind(target) != YamlNodeKind::Mapping {
            return Err(DocumentFault::new(
                self.tree.mark(source),
                "bad-merge",
                "`<<` merges a mapping, or a list of mappings, and this is neither",
            ));
        }
        if target != source {
            self.enter_alias(source)?;
        }
        self.spend(target, 0)?;
        self.stack.push(ResolveFrame::Merge { next: self.tree.first(target), into, key: None });
        if self.order == MergeOrder::OwnFirst {
            // The keys that are merged into it come before its own keys, which win so.
            let left = self.merge_sources(target);
            self.stack.push(ResolveFrame::MergeList { left, into });
        }
        Ok(())
    }

    /// Returns what is merged into a mapping.
    fn merge_sources(&self, mapping: YamlNodeId) -> Vec<YamlNodeId> {
        let merges = self.tree.pairs(mapping).filter(|(key, _)| self.tree.is_merge(*key));
        let sources = merges.flat_map(|(_, value)| match self.tree.kind(value) {
            YamlNodeKind::Sequence => self.tree.children(value).collect::<Vec<_>>(),
            _ => vec![value],
        });
        sources.collect()
    }

    /// Starts a node: a scalar is done at once, a collection becomes a frame.
    fn enter(&mut self, node: YamlNodeId) -> Result<Option<Value>, DocumentFault> {
        let target = self.tree.target(node);
        if target != node {
            self.enter_alias(node)?;
        }
        match self.tree.kind(target) {
            YamlNodeKind::Sequence => {
                self.open(target)?;
                self.stack.push(ResolveFrame::Sequence { next: self.tree.first(target), out: Vec::new() });
                Ok(None)
            }
            YamlNodeKind::Mapping => {
                self.open(target)?;
                let next = self.tree.first(target);
                let mapping = MappingFrame { node: target, next, key: None, out: Map::new(), own: None };
                self.stack.push(ResolveFrame::Mapping(Box::new(mapping)));
                Ok(None)
            }
            _ => self.value(target).map(Some),
        }
    }

    fn open(&mut self, node: YamlNodeId) -> Result<(), DocumentFault> {
        self.spend(node, 640)?;
        self.depth += 1;
        if self.depth > MAX_YAML_DEPTH {
            let message = format!("nested more than {MAX_YAML_DEPTH} levels deep");
            return Err(DocumentFault::new(self.tree.mark(node), "too-deep", message));
        }
        Ok(())
    }

    fn enter_alias(&mut self, alias: YamlNodeId) -> Result<(), DocumentFault> {
        self.spend(alias, 0)?;
        if !self.active.insert(alias) {
            return Err(DocumentFault::new(
                self.tree.mark(alias),
                "alias-cycle",
                "the anchor of this alias contains itself",
            ));
        }
        self.budget.depth += 1;
        self.stack.push(ResolveFrame::AliasEnd { alias });
        Ok(())
    }

    fn leave_alias(&mut self, alias: YamlNodeId) {
        self.active.remove(&alias);
        self.budget.depth -= 1;
    }

    fn spend(&mut self, node: YamlNodeId, bytes: usize) -> Result<(), DocumentFault> {
        if self.budget.spend(bytes) {
            return Ok(());
        }
        let message = "the aliases up to here expand to far more than the file holds";
        Err(DocumentFault::new(self.tree.mark(node), "alias-bomb", message)
            .hint("write the repeated parts out"))
    }

    /// Returns the value of a scalar.
    fn value(&mut self, node: YamlNodeId) -> Result<Value, DocumentFault> {
        let scalar = scalar_of(self.tree, node)?;
        self.warn(node, &scalar);
        let bytes = if matches!(scalar, Scalar::Text) { self.tree.text(node).len() } else { 0 };
        self.spend(node, bytes)?;
        Ok(match scalar {
            Scalar::Text => Value::String(self.text_of(node)),
            Scalar::Float(float) if self.tree.kind(node) == YamlNodeKind::Literal => {
                Value::Number(number::json_literal(float).ok_or_else(|| self.not_finite(node))?)
            }
            other => json_value(&other).ok_or_else(|| self.not_finite(node))?,
        })
    }

    fn text_of(&mut self, node: YamlNodeId) -> String {
        // A node outside every alias and anchor is read once; an anchored one may be read again.
        if self.budget.depth == 0 && !self.tree.is_shared(node) {
            self.tree.take_text(node)
        } else {
            self.tree.text(node).to_owned()
        }
    }

    fn not_finite(&self, node: YamlNodeId) -> DocumentFault {
        DocumentFault::new(self.tree.mark(node), "not-finite", "infinity and NaN are no values of JSON")
            .hint("quote it if text is meant")
    }

    /// Returns the text of a key, as JSON needs it.
    fn key(&mut self, key: YamlNodeId) -> Result<String, DocumentFault> {
        let target = self.tree.target(key);
        let aliased = target != key;
        if aliased {
            self.spend(key, 0)?;
        }
        let mark = self.tree.mark(key);
        if matches!(self.tree.kind(target), YamlNodeKind::Sequence | YamlNodeKind::Mapping) {
            return Err(DocumentFault::new(mark, "bad-key", "a list or mapping cannot be a key"));
        }
        self.budget.depth += usize::from(aliased);
        let spent = self.spend(key, self.tree.text(target).len());
        self.budget.depth -= usize::from(aliased);
        spent?;
        let scalar = scalar_of(self.tree, target)?;
        let unfit = DocumentFault::new(mark, "bad-key", "null, and numbers beyond 63 bits, cannot be keys")
            .hint("quote the key");
        self.warn(target, &scalar);
        key_text(scalar, self.tree.text(target)).ok_or(unfit)
    }

    /// Warns of what other readers of YAML take for something else.
    fn warn(&mut self, node: YamlNodeId, scalar: &Scalar) {
        if self.budget.depth > 0 {
            return;
        }
        let mark = self.tree.mark(node);
        if self.tree.tag(node) == ScalarTag::Other {
            let message =
                "a word that begins with `!` is a tag, which Kubernetes drops: the value is what follows it";
            let finding = ManifestFinding::warning(mark, "unknown-tag", message);
            return self.findings.add(finding.hint("put a text that begins with `!` in quotes"));
        }
        if self.tree.kind(node) != YamlNodeKind::Plain || self.tree.tag(node) != ScalarTag::None {
            return;
        }
        let text = self.tree.text(node);
        let finding = match scalar {
            Scalar::Bool(truth) if scalar::is_old_boolean(text) => ManifestFinding::warning(
                mark,
                "old-boolean",
                "an unquoted yes, no, on, off, y or n is a boolean here",
            )
            .detail(format!(": `{text}` is read as {truth}"))
            .hint("write true or false, or quote it: other readers, kustomize among them, take it for text"),
            Scalar::Int(int) if scalar::is_leading_zero(text) && !self.is_mode() => {
                ManifestFinding::warning(mark, "leading-zero", "a leading zero makes this number octal")
                    .detail(format!(": `{text}` is read as {int}"))
                    .hint("quote it if text is meant, or write the number in decimal")
            }
            Scalar::Float(float) if scalar::is_leading_zero(text) => ManifestFinding::warning(
                mark,
                "leading-zero",
                "a number with a leading zero that is not octal",
            )
            .detail(format!(": `{text}` is read as {float}"))
            .hint("quote it if text is meant"),
            _ => return,
        };
        self.findings.add(finding);
    }

    /// Returns whether the scalar is the value of a field that holds a file mode.
    fn is_mode(&self) -> bool {
        let key = match self.stack.last() {
            Some(ResolveFrame::Mapping(mapping)) => mapping.key.as_deref(),
            Some(ResolveFrame::Merge { key, .. }) => key.as_deref(),
            _ => None,
        };
        key.is_some_and(|key| key == "mode" || key.ends_with("Mode"))
    }
}

/// Returns the text of a key that has already been read once.
pub(super) fn key_of<'t>(tree: &'t DocumentTree<'_>, key: YamlNodeId) -> Option<Cow<'t, str>> {
    let target = tree.target(key);
    let text = tree.text(target);
    match scalar_of(tree, target).ok()? {
        Scalar::Text => Some(Cow::Borrowed(text)),
        other => key_text(other, text).map(Cow::Owned),
    }
}

/// Returns the value of a scalar node.
pub(crate) fn scalar_of(tree: &DocumentTree<'_>, node: YamlNodeId) -> Result<Scalar, DocumentFault> {
    let (text, tag) = (tree.text(node), tree.tag(node));
    match tree.kind(node) {
        YamlNodeKind::Literal => number::literal(text)
            .ok_or_else(|| DocumentFault::new(tree.mark(node), "number-range", "the number is out of range")),
        YamlNodeKind::Quoted if tag == ScalarTag::None => Ok(Scalar::Text),
        _ => scalar::resolve(tag, text).map_err(|mismatch| {
            DocumentFault::new(tree.mark(node), "bad-tag", mismatch.0)
                .hint("remove the tag, or write a value that fits it")
        }),
    }
}

/// Returns the value of a scalar that is no text; none for infinity and NaN.
pub(super) fn json_value(scalar: &Scalar) -> Option<Value> {
    Some(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(truth) => Value::Bool(*truth),
        Scalar::Int(int) => Value::Number((*int).into()),
        Scalar::Uint(uint) => Number::from_f64(*uint as f64).map_or(Value::Null, Value::Number),
        Scalar::Float(float) => Value::Number(number::json_number(*float)?),
        Scalar::Bytes(bytes) => Value::String(number::lossy_text(bytes)),
        Scalar::Text => return None,
    })
}

fn key_text(scalar: Scalar, text: &str) -> Option<String> {
    Some(match scalar {
        Scalar::Null | Scalar::Uint(_) => return None,
        Scalar::Bool(truth) => truth.to_string(),
        Scalar::Int(int) => int.to_string(),
        Scalar::Float(float) => number::float_text(float),
        Scalar::Text => text.to_owned(),
        Scalar::Bytes(bytes) => number::lossy_text(&bytes),
    })
}

/// The budget that keeps the aliased part of a document in proportion, by the rule of kubectl's
/// YAML library. It bounds it in bytes, too, where that rule would allow hundreds of megabytes.
#[derive(Default)]
struct AliasBudget {
    /// Aliases around the current node.
    depth: usize,
    reads: u64,
    aliased: u64,
    bytes: usize,
}

impl AliasBudget {
    const LOW: u64 = 400_000;
    const HIGH: u64 = 4_000_000;

    /// Counts one node. False when the document asks for too much.
    fn spend(&mut self, bytes: usize) -> bool {
        self.reads += 1;
        if self.depth > 0 {
            self.aliased += 1;
            self.bytes += bytes + 32;
        }
        let ratio = self.aliased as f64 / self.reads as f64;
        let excessive = self.aliased > 100 && self.reads > 1000 && ratio > Self::allowed_ratio(self.reads);
        !excessive && self.bytes <= MAX_ALIAS_EXPANSION_BYTES
    }

    fn allowed_ratio(reads: u64) -> f64 {
        match reads {
            0..=Self::LOW => 0.99,
            Self::HIGH.. => 0.10,
            _ => 0.99 - 0.89 * ((reads - Self::LOW) as f64 / (Self::HIGH - Self::LOW) as f64),
        }
    }
}
