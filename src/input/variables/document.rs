//! Documents with the variables in their scalars.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::evaluate::{Expansion, TemplateFault};
use super::expression_limits::{ExpansionBudget, ExpansionLimit};
use super::finding::{VariableFinding, VariableProblem, shorten};
use super::table::{TableCompleteness, VariableTable};
use crate::manifest::{
    PlacedEntry, PlacedFile, PlacedNode, PlacedValue, ScalarStyle, TextPosition, has_substitution_disabled,
    plain_value, read_documents,
};
use crate::object::{Diagnostic, Severity, count_text, verb_to_be};

/// Findings of one file that are reported; more are counted.
const MAX_FINDINGS: usize = 200;

/// Characters of a path that are shown.
const MAX_PATH_CHARS: usize = 300;

/// A file with the variables in its documents.
#[derive(Debug)]
pub(crate) struct SubstitutedFile {
    /// Documents that could be read, in the order of the file.
    pub(crate) documents: Vec<SubstitutedDocument>,
    /// The faults of the file itself.
    pub(crate) unreadable: Vec<Diagnostic>,
    /// Findings about variables that are not reported.
    pub(crate) left_out: usize,
}

/// A document with the variables in its scalars.
pub(crate) struct SubstitutedDocument {
    /// The value. Where something is wrong with a scalar, it is as it was.
    pub(crate) value: PlacedValue,
    /// The faults, in the order of the document.
    pub(crate) findings: Vec<VariableFinding>,
    /// Indicates whether it can be used.
    pub(crate) usability: DocumentUsability,
}

/// Indicates whether a document can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentUsability {
    /// All its variables are in.
    Sound,
    /// A variable could not be put in: its objects must be held back.
    Faulty,
}

/// Leaves the value out, which may be a Secret.
impl fmt::Debug for SubstitutedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubstitutedDocument")
            .field("place", &self.value.position)
            .field("findings", &self.findings)
            .field("usability", &self.usability)
            .finish_non_exhaustive()
    }
}

impl SubstitutedFile {
    /// Returns all that is wrong, for a file in which the documents are as they were read.
    pub(crate) fn diagnostics(&self, file: &Arc<str>) -> Vec<Diagnostic> {
        let findings = self.documents.iter().flat_map(|document| &document.findings);
        let mut all = self.unreadable.clone();
        all.extend(findings.map(|finding| finding.diagnostic(file)));
        all.sort_by(|one, other| one.origin.cmp(&other.origin));
        if self.left_out > 0 {
            let (count, verb) = (count_text(self.left_out, "more finding"), verb_to_be(self.left_out));
            let message = format!("{count} in this file {verb} not shown");
            let diagnostic = Diagnostic::file_error(file.clone(), "more-findings", message);
            let is_sound = |document: &SubstitutedDocument| document.usability == DocumentUsability::Sound;
            let severity = if self.unreadable.is_empty() && self.documents.iter().all(is_sound) {
                Severity::Warning
            } else {
                Severity::Error
            };
            all.push(Diagnostic { severity, ..diagnostic });
        }
        all
    }
}

/// Reads a file of the repository, or what a program printed, and puts the variables into its
/// documents. Objects that say so are left as they are.
pub(crate) fn substitute(file: &Arc<str>, bytes: &[u8], table: &VariableTable) -> SubstitutedFile {
    substitute_documents(read_documents(file, bytes), table)
}

/// Does the same as [`substitute`] for documents that were read.
pub(crate) fn substitute_documents(read: PlacedFile, table: &VariableTable) -> SubstitutedFile {
    let mut budget = ExpansionBudget::default();
    let (mut reported, mut left_out) = (0, 0);
    let documents = read.documents.into_iter().map(|mut value| {
        let mut substitution = Substitution::new(table, &mut budget, MAX_FINDINGS - reported);
        substitution.object(&mut value, &ParentPath::ROOT);
        let Substitution { findings, left_out: more, usability, .. } = substitution;
        reported += findings.len();
        left_out += more;
        SubstitutedDocument { value, findings, usability }
    });
    SubstitutedFile { documents: documents.collect(), unreadable: read.diagnostics, left_out }
}

/// The path of a value, from the inside out.
struct ParentPath<'p> {
    parent: Option<&'p ParentPath<'p>>,
    step: FieldStep<'p>,
}

enum FieldStep<'p> {
    /// An object begins.
    Object,
    Key(&'p str),
    Item(usize),
}

impl<'p> ParentPath<'p> {
    const ROOT: ParentPath<'static> = ParentPath { parent: None, step: FieldStep::Object };

    fn child(&'p self, step: FieldStep<'p>) -> Self {
        Self { parent: Some(self), step }
    }

    /// Returns the keys from the object to here, where they are no more than three and no list is
    /// among them.
    fn keys(&self) -> Option<Vec<&str>> {
        let mut keys = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            match path.step {
                FieldStep::Object => break,
                FieldStep::Key(key) if keys.len() < 3 => keys.push(key),
                FieldStep::Key(_) | FieldStep::Item(_) => return None,
            }
            at = path.parent;
        }
        keys.reverse();
        Some(keys)
    }
}

impl fmt::Display for ParentPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps: Vec<&FieldStep<'_>> = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            steps.push(&path.step);
            at = path.parent;
        }
        let mut dot = "";
        for step in steps.iter().rev() {
            match step {
                FieldStep::Object => continue,
                FieldStep::Key(key) => write!(f, "{dot}{}", shorten(key))?,
                FieldStep::Item(index) => write!(f, "[{index}]")?,
            }
            dot = ".";
        }
        Ok(())
    }
}

/// The types that the API takes in the fields of an object.
#[derive(Clone, Copy)]
struct ObjectFieldTypes {
    /// It is a Secret of the core group.
    is_secret: bool,
    /// Its `data` and `stringData` are texts.
    has_texts: bool,
}

impl ObjectFieldTypes {
    fn of(object: &PlacedValue) -> Self {
        let text = |key| entry(object, key).and_then(PlacedValue::text).unwrap_or_default();
        let is_core = text("apiVersion") == "v1";
        let is_secret = is_core && text("kind") == "Secret";
        Self { is_secret, has_texts: is_secret || is_core && text("kind") == "ConfigMap" }
    }

    /// Returns whether the data of a Secret is there.
    fn is_secret_data(self, path: &ParentPath<'_>) -> bool {
        self.is_secret && matches!(path.keys().as_deref(), Some(["data" | "stringData", _]))
    }

    /// Returns whether the API takes nothing but text there.
    fn is_text(self, path: &ParentPath<'_>) -> bool {
        match path.keys().as_deref() {
            Some(["data" | "stringData", _]) => self.has_texts,
            Some(["metadata", "labels" | "annotations", _]) => true,
            _ => false,
        }
    }
}

struct Substitution<'s> {
    table: &'s VariableTable,
    budget: &'s mut ExpansionBudget,
    findings: Vec<VariableFinding>,
    max_findings: usize,
    left_out: usize,
    usability: DocumentUsability,
    /// Is set once the document or file makes too much.
    is_full: bool,
}

impl<'s> Substitution<'s> {
    fn new(table: &'s VariableTable, budget: &'s mut ExpansionBudget, max_findings: usize) -> Self {
        budget.begin_document();
        let usability = DocumentUsability::Sound;
        Self { table, budget, findings: Vec::new(), max_findings, left_out: 0, usability, is_full: false }
    }

    fn find(&mut self, position: TextPosition, path: &ParentPath<'_>, problem: VariableProblem) {
        if problem.severity() == Severity::Error {
            self.usability = DocumentUsability::Faulty;
        }
        if self.findings.len() >= self.max_findings {
            self.left_out += 1;
            return;
        }
        let mut path = path.to_string();
        if let Some((end, _)) = path.char_indices().nth(MAX_PATH_CHARS) {
            path.truncate(end);
            path.push('…');
        }
        self.findings.push(VariableFinding { position, path, problem });
    }

    /// Puts the variables into an object, or into the items of a list of objects.
    fn object(&mut self, object: &mut PlacedValue, path: &ParentPath<'_>) {
        let metadata = entry(object, "metadata").map(PlacedValue::to_value);
        if metadata.is_some_and(|metadata| has_substitution_disabled(&json!({ "metadata": metadata }))) {
            return;
        }
        let traits = ObjectFieldTypes::of(object);
        let kind = entry(object, "kind").and_then(PlacedValue::text).unwrap_or_default();
        if !kind.ends_with("List") {
            return self.value(object, traits, path);
        }
        let PlacedNode::Mapping(entries) = &mut object.node else { return };
        for PlacedEntry { key, position, value, .. } in entries {
            self.key(key, *position, path);
            let path = path.child(FieldStep::Key(key));
            match &mut value.node {
                // Nobody takes a list apart of which some item is no object.
                PlacedNode::List(items) if key == "items" && items.iter().all(is_mapping) => {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.object(item, &path.child(FieldStep::Item(index)).child(FieldStep::Object));
                    }
                }
                _ => self.value(value, traits, &path),
            }
        }
    }

    /// Goes as deep as values have places, which is bounded.
    fn value(&mut self, value: &mut PlacedValue, traits: ObjectFieldTypes, path: &ParentPath<'_>) {
        let (position, style) = (value.position, value.style);
        match &mut value.node {
            PlacedNode::Scalar(Value::String(text)) if has_expression(text) => {
                if let Some(new) = self.scalar(text, ScalarSite { position, style, traits, path }) {
                    value.node = PlacedNode::Scalar(new);
                }
            }
            PlacedNode::Scalar(scalar) => {
                if (scalar.is_array() || scalar.is_object()) && has_any_expression(scalar) {
                    self.find(position, path, VariableProblem::TooDeep);
                }
            }
            PlacedNode::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, traits, &path.child(FieldStep::Item(index)));
                }
            }
            PlacedNode::Mapping(entries) => {
                for PlacedEntry { key, position, value, .. } in entries {
                    self.key(key, *position, path);
                    self.value(value, traits, &path.child(FieldStep::Key(key)));
                }
            }
        }
    }

    fn key(&mut self, key: &str, position: TextPosition, path: &ParentPath<'_>) {
        if has_expression(key) {
            self.find(position, path, VariableProblem::Key(key.to_owned()));
        }
    }

    /// Returns what a scalar becomes; none where something is wrong with it.
    fn scalar(&mut self, text: &str, site: ScalarSite<'_>) -> Option<Value> {
        let ScalarSite { position, style, traits, path } = site;
        if self.is_full {
            return None;
        }
        let mut expansion = Expansion::default();
        let new = match expansion.text(text, self.table, self.budget) {
            Ok(new) => new,
            Err(fault) => {
                self.is_full =
                    matches!(fault, TemplateFault::Limit(limit) if limit != ExpansionLimit::Scalar);
                self.find(position, path, VariableProblem::Template(fault));
                return None;
            }
        };
        let mut is_sound = expansion.unset.is_empty();
        let unset = match self.table.completeness() {
            TableCompleteness::Whole => VariableProblem::Unset,
            TableCompleteness::Partial => VariableProblem::Unknown,
        };
        for name in expansion.unset {
            self.find(position, path, unset(name));
        }
        if !traits.is_secret_data(path) {
            for name in expansion.secrets {
                is_sound = false;
                self.find(position, path, VariableProblem::Secret(name));
            }
        }
        if !is_sound {
            return None;
        }
        if style == ScalarStyle::Fixed {
            return Some(Value::String(new));
        }
        if traits.is_text(path) {
            return Some(Value::String(plain_text(&new)));
        }
        if new.trim_start().starts_with(['[', '{']) {
            self.find(position, path, VariableProblem::Collection);
        }
        let value = plain_value(&new);
        if value.is_none() {
            self.find(position, path, VariableProblem::NotFinite);
        }
        value
    }
}

/// A scalar with an expression in it: its place and its style.
struct ScalarSite<'p> {
    position: TextPosition,
    style: ScalarStyle,
    traits: ObjectFieldTypes,
    path: &'p ParentPath<'p>,
}

/// Returns a scalar without quotes as the text that it is, whatever type it has. Quotes that its
/// variables put around it are taken off, and so are blanks.
fn plain_text(text: &str) -> String {
    match plain_value(text) {
        Some(Value::String(text)) => text,
        _ => text.trim_matches([' ', '\t', '\n', '\r']).to_owned(),
    }
}

fn is_mapping(value: &PlacedValue) -> bool {
    matches!(value.node, PlacedNode::Mapping(_))
}

fn entry<'v>(mapping: &'v PlacedValue, key: &str) -> Option<&'v PlacedValue> {
    mapping.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

/// Returns whether a text would be another with variables.
fn has_expression(text: &str) -> bool {
    text.contains("${") || text.contains("$$")
}

fn has_any_expression(value: &Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if has_expression(text) => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(map) if map.keys().any(|key| has_expression(key)) => return true,
            Value::Object(map) => open.extend(map.values()),
            _ => {}
        }
    }
    false
}
