//! Documents to items: `apiVersion` and `kind`, lists taken apart, and what is refused by name.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::check;
use super::clean;
use super::findings::{FileFindings, ManifestFinding};
use super::node_positions::YamlNodeLines;
use super::resolve::{self, ResolvedDocument};
use super::split::{self, DocumentPart, DocumentSplitter};
use super::tree::{DocumentFault, DocumentTree, TextMark, TreeSize, YamlNodeId};
use super::{
    MAX_DOCUMENTS, MAX_MANIFEST_LINES, MAX_MANIFEST_OBJECTS, ManifestFile, ManifestItem, text, yaml,
};
use crate::object::{DiagnosticCode, Gvk, ManifestOrigin, text_at};

/// Reads the items of one file.
pub(super) fn read(file: &Arc<str>, bytes: &[u8]) -> ManifestFile {
    let text = match text::decode_text(bytes, super::MAX_MANIFEST_BYTES as usize) {
        Ok(text) => text,
        Err(length) => return too_large_file(file, length),
    };
    let mut decoder = FileDecoder {
        file,
        findings: FileFindings::of(file),
        items: Vec::new(),
        understood: true,
        before_error: None,
        full: false,
        json: false,
        size: TreeSize::default(),
        expanded: 0,
        text: &text,
        traits: OnceCell::new(),
    };
    decoder.file(&text);
    let before_error = decoder.before_error.unwrap_or(decoder.items.len());
    ManifestFile {
        before_error,
        items: decoder.items,
        understood: decoder.understood,
        diagnostics: decoder.findings.into_diagnostics(&text),
    }
}

/// Returns the diagnostic of a file whose text is too large.
fn too_large_file(file: &Arc<str>, length: usize) -> ManifestFile {
    let diagnostics = vec![super::too_large(file, length as u64)];
    ManifestFile { items: Vec::new(), diagnostics, understood: false, before_error: 0 }
}

struct FileDecoder<'f> {
    file: &'f Arc<str>,
    findings: FileFindings,
    items: Vec<ManifestItem>,
    understood: bool,
    before_error: Option<usize>,
    full: bool,
    /// Documents of JSON were read: any number of them may share a line.
    json: bool,
    size: TreeSize,
    /// Bytes that aliases have expanded to.
    expanded: usize,
    text: &'f str,
    /// Found once for the whole file, because any number of faults may ask for them.
    traits: OnceCell<TextTraits>,
}

/// A mapping that may be an object or a list of them.
struct ObjectCandidate {
    body: Map<String, Value>,
    node: YamlNodeId,
    /// The node after its last one.
    end: YamlNodeId,
    /// Its kind is not written, but that of the list it is in.
    implied: bool,
}

/// The most bytes of each text that says which object this is. Names of most kinds have at most
/// 253.
const MAX_IDENTITY_BYTES: usize = 1024;

/// Returns the path of a text that is too long to be part of an object's identity, and its bytes.
fn overlong_identity(body: &Map<String, Value>) -> Option<(&'static [&'static str], usize)> {
    let paths: [&[&str]; 4] = [&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", "namespace"]];
    let length = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        let found = rest.iter().try_fold(body.get(*first)?, |value, key| value.get(*key));
        found.and_then(Value::as_str).map(str::len)
    };
    paths.into_iter().find_map(|path| {
        let found = length(path).filter(|found| *found > MAX_IDENTITY_BYTES)?;
        Some((path, found))
    })
}

impl FileDecoder<'_> {
    fn file(&mut self, text: &str) {
        if text.starts_with("version https://git-lfs.github.com/spec/v1") {
            let start = TextMark { line: 1, column: 1 };
            let finding = ManifestFinding::error(
                start,
                "lfs-pointer",
                "this is a Git LFS pointer, not the file itself",
            );
            return self.refuse(finding.hint(
                "store manifests in git itself: take the file out of LFS, or list it in .rhumbignore",
            ));
        }
        if ['\n', '\r'].iter().any(|end| text.match_indices(*end).nth(MAX_MANIFEST_LINES).is_some()) {
            return self.too_many(
                TextMark { line: 0, column: 0 },
                "too-many-lines",
                &format!("{MAX_MANIFEST_LINES} lines"),
            );
        }
        for (part, number) in DocumentSplitter::new(text).zip(1..) {
            if self.full {
                break;
            }
            if number > MAX_DOCUMENTS {
                let last = TextMark { line: 0, column: 0 };
                return self.too_many(last, "too-many-documents", &format!("{MAX_DOCUMENTS} documents"));
            }
            self.findings.begin_document();
            match part {
                DocumentPart::Json(mut tree) => {
                    self.json = true;
                    self.tree(&mut tree, FaultScope::File);
                }
                DocumentPart::Yaml(chunk, _) if split::is_empty(chunk) => {}
                DocumentPart::Yaml(chunk, line) => self.yaml(chunk, line),
                DocumentPart::Fault(fault) => self.refuse_document(fault, FaultScope::File),
            }
        }
    }

    fn keep_secret(&mut self) {
        self.findings.keep_secret();
        if self.json {
            self.findings.keep_file_secret();
        }
    }

    fn yaml(&mut self, chunk: &str, line: u32) {
        // Kubernetes' line reader ends the last line where the file does not.
        let text =
            if chunk.ends_with('\n') { Cow::Borrowed(chunk) } else { Cow::Owned(format!("{chunk}\n")) };
        match yaml::read(&text, line) {
            Ok((mut tree, follows)) => {
                self.tree(&mut tree, FaultScope::Document(&text));
                if let Some(mark) = follows {
                    self.warn_of_unread_text(mark);
                }
            }
            Err(fault) => self.refuse_document(fault, FaultScope::Document(&text)),
        }
    }

    fn tree(&mut self, tree: &mut DocumentTree<'_>, within: FaultScope<'_>) {
        match tree.total_size(self.size) {
            Ok(size) => self.size = size,
            Err(fault) => {
                self.full = true;
                return self.refuse_document(fault, within);
            }
        }
        match resolve::resolve(tree, &mut self.expanded, &mut self.findings) {
            Ok(resolved) => self.document(tree, resolved),
            Err(fault) => self.refuse_document(fault, within),
        }
    }

    /// Warns of text that Kubernetes leaves unread.
    fn warn_of_unread_text(&mut self, mark: TextMark) {
        let message = "Kubernetes stops reading before this: the document ended, and no `---` begins another";
        self.understood = false;
        self.findings.add(
            ManifestFinding::warning(mark, "unread", message)
                .hint("separate documents by a line of `---`, or remove the text"),
        );
    }

    /// Refuses a document that cannot be read at all.
    fn refuse_document(&mut self, fault: DocumentFault, within: FaultScope<'_>) {
        let traits = match within {
            FaultScope::File => *self.traits.get_or_init(|| TextTraits::of(self.text)),
            FaultScope::Document(text) => TextTraits::of(text),
        };
        if traits.secret {
            self.keep_secret();
        }
        // A number that no type holds spoils only its own document.
        if fault.code != "number-range" {
            self.before_error.get_or_insert(self.items.len());
        }
        let finding = ManifestFinding::from(fault);
        self.refuse(match traits.cause {
            Some(hint) => finding.hint(hint),
            None => finding,
        });
    }

    fn too_many(&mut self, mark: TextMark, code: DiagnosticCode, limit: &str) {
        let finding = ManifestFinding::error(mark, code, format!("the file holds more than {limit}"));
        self.refuse(finding.hint("split the file"));
    }

    fn refuse(&mut self, finding: ManifestFinding) {
        self.understood = false;
        self.findings.add(finding);
    }

    fn document(&mut self, tree: &DocumentTree<'_>, resolved: ResolvedDocument) {
        let body = match resolved.value {
            Value::Null => return,
            Value::Object(body) => body,
            _ => {
                let finding = ManifestFinding::error(
                    tree.mark(DocumentTree::ROOT_YAML_NODE),
                    "not-an-object",
                    "a document must be a mapping with apiVersion and kind",
                );
                return self
                    .refuse(finding.hint("list files that are no Kubernetes objects in .rhumbignore"));
            }
        };
        let end = tree.len() as YamlNodeId;
        let mut queue = VecDeque::from([ObjectCandidate {
            body,
            node: DocumentTree::ROOT_YAML_NODE,
            end,
            implied: false,
        }]);
        while let Some(candidate) = queue.pop_front() {
            if is_list(&candidate.body) {
                self.list(tree, candidate, &mut queue);
            } else {
                self.object(tree, candidate, &resolved.duplicates);
            }
        }
    }

    /// Puts the items of a list at the end of the queue, as kubectl does.
    fn list(
        &mut self,
        tree: &DocumentTree<'_>,
        mut list: ObjectCandidate,
        queue: &mut VecDeque<ObjectCandidate>,
    ) {
        let (kind, api_version) = (text_of(&list.body, "kind"), text_of(&list.body, "apiVersion"));
        if list.body.get("apiVersion").is_some_and(|value| !value.is_string() && !value.is_null()) {
            let mark = YamlNodeLines::of(tree, list.node).value(&["apiVersion"]);
            return self.refuse(ManifestFinding::error(mark, "bad-api-version", check::BAD_API_VERSION));
        }
        self.list_metadata(tree, &list);
        let items = match list.body.remove("items") {
            Some(Value::Array(items)) => items,
            Some(Value::Null) | None => return,
            Some(_) => {
                let mark = YamlNodeLines::of(tree, list.node).value(&["items"]);
                return self.refuse(ManifestFinding::error(
                    mark,
                    "bad-list",
                    "the items of a list must be a list",
                ));
            }
        };
        let sequence = tree.entry(list.node, "items").map(|(_, value)| tree.target(value));
        let mut nodes = sequence.into_iter().flat_map(|sequence| tree.children(sequence)).peekable();
        for value in items {
            let node = nodes.next().unwrap_or(list.node);
            let end = nodes.peek().copied().unwrap_or(list.end);
            let Value::Object(mut body) = value else {
                self.refuse(ManifestFinding::error(
                    tree.mark(node),
                    "not-an-object",
                    "an item of a list must be a mapping",
                ));
                continue;
            };
            let implied = implied_kind(&kind, &body);
            let is_implied = implied.is_some();
            if let Some(kind) = implied {
                body.insert("kind".to_owned(), kind.into());
                body.insert("apiVersion".to_owned(), api_version.clone().into());
            }
            queue.push_back(ObjectCandidate { body, node, end, implied: is_implied });
        }
    }

    /// Warns about metadata of a list: Kubernetes ignores it, so a wish in it would be lost in
    /// silence.
    fn list_metadata(&mut self, tree: &DocumentTree<'_>, list: &ObjectCandidate) {
        let metadata = list.body.get("metadata").and_then(Value::as_object);
        for field in ["annotations", "labels", "namespace"] {
            let value = metadata.and_then(|metadata| metadata.get(field));
            if value.is_some_and(|value| !clean::is_empty_field(value)) {
                let mark = YamlNodeLines::of(tree, list.node).key(&["metadata", field]);
                let message = format!("metadata.{field} of a list reaches none of its items: it is left out");
                let finding = ManifestFinding::warning(mark, "list-metadata", message);
                self.findings.add(finding.hint("write it into each item"));
            }
        }
    }

    fn object(&mut self, tree: &DocumentTree<'_>, candidate: ObjectCandidate, duplicates: &[YamlNodeId]) {
        let ObjectCandidate { mut body, node, end, implied } = candidate;
        drop_empty_namespace(&mut body);
        let (kind, api_version) = (text_of(&body, "kind"), text_of(&body, "apiVersion"));
        if kind.eq_ignore_ascii_case("Secret") || body.contains_key("stringData") {
            self.keep_secret();
        }
        if kind.is_empty() || api_version.is_empty() {
            return self.refuse_missing_kind(tree, &body, node);
        }
        if api_version.matches('/').count() > 1 {
            let mark = YamlNodeLines::of(tree, node).value(&["apiVersion"]);
            return self.refuse(ManifestFinding::error(mark, "bad-api-version", check::BAD_API_VERSION));
        }
        if let Some((path, found)) = overlong_identity(&body) {
            let mark = YamlNodeLines::of(tree, node).value(path);
            let message =
                format!("{} has {found} bytes, and at most {MAX_IDENTITY_BYTES} are read", path.join("."));
            return self.refuse(ManifestFinding::error(mark, "too-long", message));
        }
        if api_version == "v1" && kind == "List" {
            let mark = tree.mark(node);
            return self.refuse(
                ManifestFinding::error(mark, "bad-list", "a List without items lists nothing")
                    .hint("put the objects below `items:`"),
            );
        }
        if self.items.len() >= MAX_MANIFEST_OBJECTS {
            self.full = true;
            return self.too_many(
                tree.mark(node),
                "too-many-objects",
                &format!("{MAX_MANIFEST_OBJECTS} objects"),
            );
        }
        let before = self.findings.errors();
        let gvk = Gvk::from_api_version(&api_version, &kind);
        let body = Value::Object(body);
        let mark = tree.mark(node);
        let subject = check::CheckSubject { tree, node, body: &body, gvk: &gvk, implied };
        let verdict = check::check(&subject, &mut self.findings);
        let doubled = duplicate_kind(tree, node, end, duplicates);
        self.understood &= verdict.identified && doubled != DuplicateKind::Identity;
        let namespace = text_at(&body, &["metadata", "namespace"]);
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        self.items.push(ManifestItem {
            namespace,
            name: text_at(&body, &["metadata", "name"]).to_owned(),
            origin: ManifestOrigin::new(self.file.clone(), mark.line, mark.column),
            valid: self.findings.errors() == before && doubled == DuplicateKind::Nothing,
            // Kubernetes decodes the metadata of documents, not that of the items of a list.
            decodes: verdict.typed || node != DocumentTree::ROOT_YAML_NODE,
            index: self.items.len() as u32,
            gvk,
            body,
        });
    }

    fn refuse_missing_kind(&mut self, tree: &DocumentTree<'_>, body: &Map<String, Value>, node: YamlNodeId) {
        let (kind, api_version) = (text_of(body, "kind"), text_of(body, "apiVersion"));
        for key in ["apiVersion", "kind"] {
            let Some(value) = body.get(key).filter(|value| !value.is_null() && !value.is_string()) else {
                continue;
            };
            let quotable = value.is_number() || value.is_boolean();
            let mark = YamlNodeLines::of(tree, node).value(&[key]);
            let finding = ManifestFinding::error(mark, "wrong-type", format!("{key} must be text"));
            return self.refuse(if quotable { finding.hint("put it in quotes") } else { finding });
        }
        let missing = match (kind.is_empty(), api_version.is_empty()) {
            (true, true) => "apiVersion and kind are",
            (true, false) => "kind is",
            (false, _) => "apiVersion is",
        };
        let mark = tree.mark(node);
        let finding = ManifestFinding::error(
            mark,
            "no-kind",
            format!("{missing} missing: this is no Kubernetes object"),
        );
        let hint = if body.contains_key("resources") || body.contains_key("namePrefix") {
            "this looks like a kustomization: render it with `kustomize build` and follow the result, or list the file in .rhumbignore"
        } else if api_version == "v2" || (body.contains_key("name") && body.contains_key("version")) {
            "this looks like a Helm chart: render it with `helm template` and follow the result, or list the file in .rhumbignore"
        } else if kind.is_empty() && api_version.is_empty() {
            "add both, or list the file in .rhumbignore if it is not meant for the cluster"
        } else {
            "add it, or list the file in .rhumbignore if it is not meant for the cluster"
        };
        self.refuse(finding.hint(hint));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DuplicateKind {
    Nothing,
    Content,
    /// The identity of the object is not certain.
    Identity,
}

/// Returns the gravest kind of key that is given twice in this object. Keys outside every object of
/// a list count for all of them.
fn duplicate_kind(
    tree: &DocumentTree<'_>,
    node: YamlNodeId,
    end: YamlNodeId,
    duplicates: &[YamlNodeId],
) -> DuplicateKind {
    let inside = duplicates.iter().filter(|at| **at < end && **at >= node).copied();
    let identity = [Some(node), tree.entry(node, "metadata").map(|(_, value)| value)];
    let mut found = DuplicateKind::Nothing;
    for key in inside {
        let names = matches!(tree.text(key), "apiVersion" | "kind" | "metadata" | "name" | "namespace");
        let near = identity
            .iter()
            .flatten()
            .any(|mapping| tree.children(tree.target(*mapping)).any(|child| child == key));
        if names && near {
            return DuplicateKind::Identity;
        }
        found = DuplicateKind::Content;
    }
    found
}

/// Removes a namespace of no characters, which Kubernetes takes for none at all.
fn drop_empty_namespace(body: &mut Map<String, Value>) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if metadata.get("namespace").is_some_and(|value| value.is_null() || value == "") {
        metadata.remove("namespace");
    }
}

/// Returns the kind that a list of this kind gives to an item; none where the item names its own.
pub(super) fn implied_kind<'k>(list: &'k str, item: &Map<String, Value>) -> Option<&'k str> {
    let is_written = ["kind", "apiVersion"].iter().any(|key| !text_of(item, key).is_empty());
    (!is_written && list != "List").then(|| list.strip_suffix("List").unwrap_or(list))
}

pub(super) fn is_list(body: &Map<String, Value>) -> bool {
    body.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && body.contains_key("items")
}

pub(super) fn text_of(body: &Map<String, Value>, key: &str) -> String {
    body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The scope in which a fault was found.
#[derive(Clone, Copy)]
enum FaultScope<'t> {
    /// Somewhere in the file.
    File,
    Document(&'t str),
}

/// The traits of the text around a fault.
#[derive(Clone, Copy)]
struct TextTraits {
    /// It may hold a Secret.
    secret: bool,
    /// The reason for which it does not parse.
    cause: Option<&'static str>,
}

impl TextTraits {
    fn of(text: &str) -> Self {
        Self { secret: SECRET_SIGNS.iter().any(|sign| text.contains(sign)), cause: likely_cause(text) }
    }
}

/// The signs of a text that may be a Secret's.
const SECRET_SIGNS: [&str; 3] = ["Secret", "kind: secret", "stringData"];

/// Returns why a text does not parse, where it looks like something else.
fn likely_cause(text: &str) -> Option<&'static str> {
    if is_binary(text) {
        return Some("this looks like a binary file: list it in .rhumbignore, or give it another extension");
    }
    if text.contains("{{") {
        return Some(check::TEMPLATE_HINT);
    }
    let begins = |mark: &str| text.starts_with(&mark[1..]) || text.contains(mark);
    (begins("\n<<<<<<< ") || begins("\n>>>>>>> "))
        .then_some("the file has the marks of an unresolved git merge")
}

/// The length of the part of a file that decides whether it is text, in characters; git looks at 8
/// 000 bytes.
const SNIFFED_CHARS: usize = 2048;

/// Returns true for archives, images and the like: a NUL, as git has it, or a beginning that is no
/// text for a tenth.
fn is_binary(text: &str) -> bool {
    let head = || text.chars().take(SNIFFED_CHARS);
    let odd = |character: &char| {
        *character == char::REPLACEMENT_CHARACTER || (character.is_control() && !character.is_whitespace())
    };
    head().any(|character| character == '\0') || head().filter(odd).count() * 10 > head().count()
}
