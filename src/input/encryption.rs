//! Encrypted files among those that a root reads: which its program gets in the open, and which as
//! they are. Their MACs are checked as they are in git.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use zeroize::Zeroizing;

use super::decryption::{Decrypter, OpenedInput, check_rendered, is_encrypted_object};
use super::helm::ChartValues;
use super::kustomize::{Closure, ClosureFolder, FileReference, ReferenceRole};
use super::opened_inputs::{OpenedInputs, OpenedValues};
use super::paths;
use super::plaintext_index::PlaintextIndex;
use super::reading::read_for_operator;
use super::render_cipher::RECIPIENTS_KEY;
use super::root_render::{RenderError, RenderedObject};
use super::sops::{
    SopsFormat, can_be_encrypted, is_encrypted, is_encrypted_ini, is_encrypted_value, text_excerpt,
};
use super::tree::FileTree;
use super::variable_seal::SealKeys;
use crate::manifest::{PlacedValue, is_for_operator, read_documents};
use crate::object::{Diagnostic, ManifestOrigin};

/// The code of an encrypted file in a place where a program would read its ciphertext as the value.
const ENCRYPTED_INPUT: &str = "encrypted-input";
/// The code of an encrypted patch of another kind than Secret.
const ENCRYPTED_KIND: &str = "encrypted-kind";
/// The code of a root with more than can be opened.
pub(super) const TOO_MANY_ENCRYPTED: &str = "too-many-encrypted";
/// The code of an object with a field of our own.
const RESERVED_FIELD: &str = "reserved-field";

/// The formats by which a file is known to be encrypted, whatever its name.
const ALL_FORMATS: [SopsFormat; 2] = [SopsFormat::Yaml, SopsFormat::Dotenv];

/// The remedy for such a file of a kustomization.
const KUSTOMIZATION_HINT: &str =
    "encrypt a Secret instead, and name that file under `resources`; or a file of a `secretGenerator`";
/// The remedy for such a file of a chart, for example a `secrets.yaml` of helm-secrets.
const CHART_HINT: &str = "if it is a file of values, name it in `spec.helm.values`, by which it is opened; if the chart \
                          does not need it, list it in the chart's `.helmignore`";
/// The remedy for such a file of a chart that a kustomization renders.
const INFLATED_CHART_HINT: &str = "charts under `helmCharts` get no encrypted values: if the chart does not need the file, list it \
                                   in the chart's `.helmignore`";

/// Files that are opened for one root. Each Secret of the root keeps the data keys of all.
const MAX_OPENED_FILES: usize = 256;

/// Opens the encrypted files that a generator of Secrets or a patch of the root reads, and finds
/// the keys of those that hold objects.
///
/// # Errors
/// Fails with the first fault: a file that may not be encrypted where it is, or one that cannot be
/// opened.
pub(super) fn open_inputs<T: FileTree>(
    decrypter: &Decrypter,
    root: RootFiles<'_>,
    files: &T,
) -> Result<OpenedInputs, RenderError> {
    let refused = RenderError::Encrypted;
    let closure = root.closure;
    let uses = file_uses(closure);
    let (mut sealed, mut to_open, mut clear) = (Vec::new(), Vec::new(), Vec::new());
    for (path, file) in &closure.files {
        let bytes = files.read(file.file.blob)?;
        let uses = uses.get(&**path).map(Vec::as_slice).unwrap_or_default();
        let treatment = match root.values_format(path).filter(|format| is_encrypted(&bytes, *format)) {
            Some(format) => FileTreatment::Opened(format),
            None => treatment(uses, closure, path, &bytes).map_err(refused)?,
        };
        match treatment {
            FileTreatment::Clear => {}
            FileTreatment::Sealed(format) => sealed.push((&file.source, bytes.clone(), format)),
            FileTreatment::Opened(format) => to_open.push((path, &file.source, bytes.clone(), format)),
        }
        clear.push(bytes);
    }
    clear.extend(root.options.iter().map(|text| Arc::from(text.as_bytes())));
    let decrypter = decrypter.for_render();
    let mut inputs = OpenedInputs::default();
    for (source, bytes, format) in sealed {
        inputs.keys.extend(decrypter.file_keys(source, &bytes, format).map_err(refused)?);
    }
    if to_open.is_empty() {
        return Ok(inputs);
    }
    if to_open.len() > MAX_OPENED_FILES {
        return Err(refused(Box::new(too_many(closure, "files"))));
    }
    let (mut values, mut keys) = (Vec::new(), SealKeys::default());
    for (path, source, bytes, format) in to_open {
        let opened = decrypter.open_input(source, &bytes, format).map_err(refused)?;
        let OpenedInput { plaintext, values: found, seals } = opened;
        if uses.get(&**path).is_some_and(|uses| uses.iter().any(FileUse::is_patch)) {
            check_patch(source, &plaintext).map_err(refused)?;
        }
        values.extend(found.into_iter().map(|value| (source.clone(), value)));
        for seal in seals {
            keys.add(seal);
        }
        inputs.files.insert(path.clone(), plaintext);
    }
    if keys.len() > MAX_OPENED_FILES {
        return Err(refused(Box::new(too_many(closure, "files"))));
    }
    let opened = opened_values(&values, keys, &clear);
    inputs.opened = Some(opened.ok_or_else(|| refused(Box::new(too_many(closure, "values"))))?);
    Ok(inputs)
}

/// Returns the surroundings of opened values; none where they are too many or too much to be looked
/// for.
fn opened_values(
    values: &[(Arc<str>, Zeroizing<Vec<u8>>)],
    keys: SealKeys,
    clear: &[Arc<[u8]>],
) -> Option<OpenedValues> {
    let mut index = PlaintextIndex::new(values).ok()?;
    for text in clear {
        index.add_clear(text);
    }
    (!index.is_exhausted()).then_some(OpenedValues { index, keys })
}

/// Checks that no file of a chart of a kustomization is encrypted: the program would take its
/// ciphertext for the value.
///
/// # Errors
/// Fails with the first that is.
pub(super) fn require_clear<T: FileTree>(closure: &Closure, files: &T) -> Result<(), RenderError> {
    for (path, file) in &closure.files {
        let bytes = files.read(file.file.blob)?;
        if is_encrypted_ini(&bytes) {
            return Err(RenderError::Encrypted(Box::new(ini_input(&file.source))));
        }
        if is_encrypted(&bytes, SopsFormat::of_name(path)) {
            let found = encrypted_input(&file.source).hint(INFLATED_CHART_HINT);
            return Err(RenderError::Encrypted(Box::new(found)));
        }
    }
    Ok(())
}

/// Checks what was rendered, and seals the Secrets in it where files were opened. Each encrypted
/// value must be as it is in a file of the root whose MAC fits, and be beside the metadata that
/// opens it.
///
/// # Errors
/// Fails with the first fault.
pub(super) fn close_objects(
    inputs: &OpenedInputs,
    closure: &Closure,
    mut objects: Vec<RenderedObject>,
) -> Result<Vec<RenderedObject>, RenderError> {
    let refused = RenderError::Encrypted;
    if let Some(marked) = objects.iter().find(|object| object.body.get(RECIPIENTS_KEY).is_some()) {
        return Err(refused(Box::new(reserved_field(object_origin(marked, closure)))));
    }
    for object in objects.iter().filter(|object| is_encrypted_object(&object.body)) {
        let at = object_origin(object, closure);
        check_rendered(&object.body, &at, &inputs.keys).map_err(|error| refused(error.into()))?;
    }
    let is_torn = |object: &&RenderedObject| {
        !is_encrypted_object(&object.body) && !is_for_operator(&object.body) && has_sealed(&object.body)
    };
    if let Some(torn) = objects.iter().filter(|_| !inputs.keys.is_empty()).find(is_torn) {
        return Err(refused(Box::new(without_metadata(object_origin(torn, closure)))));
    }
    inputs.seal(&mut objects)?;
    Ok(objects)
}

/// The files of a root, and what else its program gets in the clear.
#[derive(Clone, Copy)]
pub(super) struct RootFiles<'c> {
    /// All files.
    pub(super) closure: &'c Closure,
    /// The values of a chart.
    pub(super) values: &'c [ChartValues],
    /// The texts that the program gets besides files.
    pub(super) options: &'c [&'c str],
}

impl<'c> RootFiles<'c> {
    /// Returns the files of a root that gets no values and no other texts.
    pub(super) const fn of(closure: &'c Closure) -> Self {
        Self { closure, values: &[], options: &[] }
    }

    /// Returns the format of a file of values, which helm reads as YAML; none for another file.
    fn values_format(&self, path: &str) -> Option<SopsFormat> {
        let is_it = |values: &ChartValues| matches!(values, ChartValues::File(file) if **file == *path);
        self.values.iter().any(is_it).then(|| match SopsFormat::of_name(path) {
            SopsFormat::Json => SopsFormat::Json,
            _ => SopsFormat::Yaml,
        })
    }
}

/// One reference to a file, and the kustomization that it is in.
struct FileUse<'c> {
    folder: &'c ClosureFolder,
    reference: &'c FileReference,
}

impl FileUse<'_> {
    fn is_resource(&self) -> bool {
        self.reference.role == ReferenceRole::Resource
    }

    fn is_patch(&self) -> bool {
        self.reference.role == ReferenceRole::Patch
    }

    /// Returns whether the program may get the file in the open: what is made of it is a Secret, or
    /// is looked at again.
    fn can_be_opened(&self) -> bool {
        self.is_patch() || self.reference.field == "secretGenerator"
    }

    /// Returns whether it may be of any format: all that is in it is data.
    fn can_be_data(&self) -> bool {
        matches!(self.reference.role, ReferenceRole::File | ReferenceRole::Variables | ReferenceRole::Patch)
    }

    /// Returns the format of the file, by the rule of Flux. Objects are read as YAML whatever the
    /// name of their file.
    fn format(&self) -> SopsFormat {
        let target = self.reference.target.as_str();
        match SopsFormat::of_name(target) {
            SopsFormat::Dotenv | SopsFormat::Binary if self.is_resource() => SopsFormat::Yaml,
            SopsFormat::Binary if self.reference.role == ReferenceRole::Variables => SopsFormat::Dotenv,
            SopsFormat::Binary if target.ends_with(".dockerconfigjson") => SopsFormat::Json,
            format => format,
        }
    }
}

/// Returns the references to each file, by its path in the closure.
fn file_uses(closure: &Closure) -> BTreeMap<String, Vec<FileUse<'_>>> {
    let mut uses: BTreeMap<String, Vec<FileUse<'_>>> = BTreeMap::new();
    for folder in &closure.folders {
        for reference in &folder.kustomization.references {
            if let Some(path) = paths::join(&folder.path, &reference.target) {
                uses.entry(path).or_default().push(FileUse { folder, reference });
            }
        }
    }
    uses
}

/// The way in which the program gets a file.
enum FileTreatment {
    /// It is not encrypted, or for an operator in the cluster.
    Clear,
    /// As it is: its values are opened when they are read to be sent.
    Sealed(SopsFormat),
    Opened(SopsFormat),
}

fn treatment(
    uses: &[FileUse<'_>],
    closure: &Closure,
    path: &str,
    bytes: &[u8],
) -> Result<FileTreatment, Box<Diagnostic>> {
    let source = |path: &str| {
        let file = closure.files.get(path);
        file.map_or_else(|| Arc::from(path), |file| Arc::clone(&file.source))
    };
    // Most files are looked through once, not for each format.
    if !can_be_encrypted(bytes) {
        return Ok(FileTreatment::Clear);
    }
    if is_encrypted_ini(bytes) {
        return Err(Box::new(ini_input(&source(path))));
    }
    let is_of = |format| is_encrypted(bytes, format);
    let is_known = is_of(SopsFormat::of_name(path)) || uses.iter().any(|one| is_of(one.format()));
    // A plugin may read its file in any format, and no kustomization says in which.
    let is_of_plugin = uses.is_empty() && !closure.folders.is_empty();
    let can_be_data = is_of_plugin || uses.iter().any(FileUse::can_be_data);
    // A reader of YAML takes JSON too.
    let is_other = || can_be_data && ALL_FORMATS.into_iter().any(is_of);
    if !is_known && !is_other() {
        return Ok(FileTreatment::Clear);
    }
    let config_map =
        |one: &&FileUse<'_>| matches!(one.reference.field, "configMapGenerator" | "ConfigMapGenerator");
    if let Some(one) = uses.iter().find(config_map) {
        let position = one.reference.position;
        let at = ManifestOrigin::new(source(&one.folder.file), position.line, position.column);
        return Err(Box::new(config_map_input(at, &one.reference.target)));
    }
    // A chart has no kustomizations.
    let hint = if closure.folders.is_empty() { CHART_HINT } else { KUSTOMIZATION_HINT };
    let other = || Box::new(encrypted_input(&source(path)).hint(hint));
    let first = uses.first().ok_or_else(other)?;
    if uses.iter().all(FileUse::is_resource) {
        if read_for_operator(&source(path), bytes).is_some() {
            return Ok(FileTreatment::Clear);
        }
        return Ok(FileTreatment::Sealed(first.format()));
    }
    if !uses.iter().all(FileUse::can_be_opened) {
        return Err(if uses.iter().any(FileUse::is_resource) {
            Box::new(mixed_input(&source(path)))
        } else {
            other()
        });
    }
    let format = first.format();
    if uses.iter().any(|one| one.format() != format) {
        return Err(Box::new(mixed_input(&source(path))));
    }
    if !is_of(format) {
        return Err(Box::new(wrong_format(&source(path), format)));
    }
    Ok(FileTreatment::Opened(format))
}

/// Checks that an opened patch is for Secrets, as far as it says for what it is.
fn check_patch(file: &Arc<str>, plaintext: &[u8]) -> Result<(), Box<Diagnostic>> {
    let kind = |document: &PlacedValue| {
        let entry = document.entries().iter().find(|entry| entry.key == "kind")?;
        entry.value.text().map(str::to_owned)
    };
    let documents = read_documents(file, plaintext).documents;
    match documents.iter().filter_map(kind).find(|kind| kind != "Secret") {
        Some(_) => Err(Box::new(wrong_kind(file))),
        None => Ok(()),
    }
}

/// Returns the place of an object, else the folder of the root.
fn object_origin(object: &RenderedObject, closure: &Closure) -> ManifestOrigin {
    let origin = object.origin.places.first().cloned();
    origin.unwrap_or_else(|| ManifestOrigin::of_file(Arc::clone(&closure.root)))
}

/// Returns whether a tree has an encrypted value. The reader of the output bounds its depth.
fn has_sealed(value: &Value) -> bool {
    match value {
        Value::String(text) => is_encrypted_value(text),
        Value::Array(items) => items.iter().any(has_sealed),
        Value::Object(members) => members.values().any(has_sealed),
        _ => false,
    }
}

/// Returns the finding about an item of an encrypted list: it has lost the metadata, which is
/// beside the items.
fn without_metadata(at: ManifestOrigin) -> Diagnostic {
    let message =
        "kustomize took this object out of an encrypted list, and without `sops` nothing opens its values";
    let hint = "make each item of the list a document of its own, and encrypt the file again";
    Diagnostic::error(at, ENCRYPTED_INPUT, message).hint(hint)
}

fn encrypted_input(file: &Arc<str>) -> Diagnostic {
    let message = "this file is encrypted by SOPS, and its ciphertext would be read as what it says";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_INPUT, message)
}

fn ini_input(file: &Arc<str>) -> Diagnostic {
    let message = "this file is encrypted in the format INI, which rhumb does not read";
    let hint =
        "decrypt it, and encrypt it as dotenv, as YAML, or as a whole: `sops encrypt --input-type binary`";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_INPUT, message).hint(hint)
}

fn config_map_input(at: ManifestOrigin, target: &str) -> Diagnostic {
    let target = text_excerpt(target);
    let message = format!("{target} is encrypted by SOPS, and a ConfigMap would show what it says");
    Diagnostic::error(at, ENCRYPTED_INPUT, message).hint("generate a Secret from it: `secretGenerator`")
}

fn mixed_input(file: &Arc<str>) -> Diagnostic {
    let message = "this encrypted file is named in several ways, by some to be opened and by others as it is";
    let hint = "make it two files: one under `resources`, and one for the generator or the patch";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_INPUT, message).hint(hint)
}

fn wrong_kind(file: &Arc<str>) -> Diagnostic {
    let message =
        "this encrypted patch is for another kind than Secret, and only a Secret's values are never shown";
    let hint = "move the values into a Secret, or commit the patch as it is";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_KIND, message).hint(hint)
}

fn wrong_format(file: &Arc<str>, format: SopsFormat) -> Diagnostic {
    let word = match format {
        SopsFormat::Yaml => "yaml",
        SopsFormat::Json => "json",
        SopsFormat::Dotenv => "dotenv",
        SopsFormat::Binary => "binary",
    };
    let message = format!("this file is encrypted in another format than {word}, as it is read here");
    let hint = "decrypt it, and encrypt it again with `--input-type` and `--output-type` of that format";
    Diagnostic::file_error(Arc::clone(file), ENCRYPTED_INPUT, message).hint(hint)
}

fn too_many(closure: &Closure, subject: &str) -> Diagnostic {
    let root = if closure.root.is_empty() { Arc::from(".") } else { Arc::clone(&closure.root) };
    let message = format!("more encrypted {subject} would have to be opened than are for one root");
    Diagnostic::file_error(root, TOO_MANY_ENCRYPTED, message).hint("split the root")
}

fn reserved_field(at: ManifestOrigin) -> Diagnostic {
    let message = format!("the field {RECIPIENTS_KEY} is rhumb's own, and no object may bring it");
    Diagnostic::error(at, RESERVED_FIELD, message).hint("remove it")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::helm::{self, ChartLimits, HelmOptions, ValuesSource};
    use crate::input::kustomize::{ClosureLimits, ParsedFiles, find_closure};
    use crate::input::origin::ObjectOrigin;
    use crate::input::sops::sealing;

    /// Returns a Secret that is encrypted for key 1.
    fn encrypted_secret() -> String {
        let sealed = sealing::seal("stringData:A:", "str", "a");
        let secret =
            format!("apiVersion: v1\nkind: Secret\nmetadata:\n    name: a\nstringData:\n    A: {sealed}\n");
        let mut coded = Sha256::digest("sops").to_vec();
        coded.push(b'a');
        let rules = "    mac_only_encrypted: true\n    encrypted_regex: ^(data|stringData)$\n";
        sealing::sops_file(&secret, &coded, rules)
    }

    #[test]
    fn an_encrypted_resource_is_opened_as_yaml_whatever_its_file_is_called() {
        let file = encrypted_secret();
        let decrypter = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
        for name in ["secret.yaml", "secret.enc", "secret"] {
            let kustomization = format!("resources: [{name}]\n");
            let tree = MemoryTree::new().file("kustomization.yaml", kustomization).file(name, &file);
            let parsed = &mut ParsedFiles::default();
            let closure = find_closure(&tree, "", ClosureLimits::default(), parsed).unwrap();
            let inputs = open_inputs(&decrypter, RootFiles::of(&closure), &tree).unwrap();
            assert_eq!((inputs.keys.len(), inputs.is_empty()), (1, true), "{name}");
        }
    }

    #[test]
    fn a_resource_for_an_operator_goes_through_a_kustomization_as_it_is() {
        let body = json!({
            "apiVersion": "isindir.github.com/v1alpha3", "kind": "SopsSecret", "metadata": {"name": "a"},
            "spec": {"secretTemplates": [{"name": "b", "stringData": {"p": "ENC[AES256_GCM,data:x]"}}]},
            "sops": {"kms": [{"arn": "a", "enc": "x"}], "mac": "ENC[AES256_GCM,data:x]", "version": "3.10.0"},
        });
        let origin = ObjectOrigin { root: "".into(), renderer: "kustomize".into(), places: Vec::new() };
        let object = RenderedObject { name: "SopsSecret//a".to_owned(), body, origin };
        let opener = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
        // Alone, and beside a Secret that is opened.
        for (resources, decrypter, keys) in
            [("[a.yaml]", Decrypter::default(), 0), ("[a.yaml, secret.yaml]", opener, 1)]
        {
            let tree = MemoryTree::new()
                .file("kustomization.yaml", format!("resources: {resources}\n"))
                .file("a.yaml", object.body.to_string())
                .file("secret.yaml", encrypted_secret());
            let parsed = &mut ParsedFiles::default();
            let closure = find_closure(&tree, "", ClosureLimits::default(), parsed).unwrap();
            let inputs = open_inputs(&decrypter, RootFiles::of(&closure), &tree).unwrap();
            assert_eq!(inputs.keys.len(), keys, "{resources}");
            let closed = close_objects(&inputs, &closure, vec![object.clone()]).unwrap();
            assert!(closed == [object.clone()], "{resources}");
        }
    }

    #[test]
    fn an_encrypted_file_of_a_chart_says_how_the_chart_renders() {
        let sealed =
            "a: ENC[AES256_GCM,data:x]\nsops:\n    mac: ENC[AES256_GCM,data:x]\n    version: 3.13.3\n";
        let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
        let tree = MemoryTree::new().file("web/Chart.yaml", chart).file("web/secrets.yaml", sealed);
        let closure_of = |tree: &MemoryTree, options: &HelmOptions| {
            helm::find_closure(tree, "web", "", options, ChartLimits::default()).unwrap()
        };
        let open = |tree: &MemoryTree, options: &HelmOptions| {
            let chart = closure_of(tree, options);
            let root = RootFiles { closure: &chart.closure, values: &chart.values, options: &[] };
            match open_inputs(&Decrypter::default(), root, tree) {
                Ok(_) => None,
                Err(RenderError::Encrypted(found)) => {
                    Some((found.code, found.origin.file.to_string(), found.hint.unwrap_or_default()))
                }
                Err(error) => panic!("{error}"),
            }
        };
        let plain = HelmOptions::default();
        let refused = |hint: &str| Some((ENCRYPTED_INPUT, "web/secrets.yaml".to_owned(), hint.to_owned()));
        assert_eq!(open(&tree, &plain), refused(CHART_HINT));
        let inflated = require_clear(&closure_of(&tree, &plain).closure, &tree);
        let Err(RenderError::Encrypted(found)) = inflated else { panic!("it is not refused") };
        assert_eq!(found.hint.as_deref(), Some(INFLATED_CHART_HINT));
        // Both remedies lead on.
        let named = HelmOptions {
            values: vec![ValuesSource::File("secrets.yaml".to_owned())],
            ..HelmOptions::default()
        };
        let opened = open(&tree, &named).map(|(code, ..)| code);
        assert_eq!(opened, Some("sops-metadata"), "it is read to be opened, and names no keys");
        let ignored = tree.file("web/.helmignore", "secrets.yaml\n");
        assert_eq!(open(&ignored, &plain), None);
    }

    #[test]
    fn a_plugin_gets_no_ciphertext_whatever_its_file_is_called() {
        let sealed = "A=ENC[AES256_GCM,data:x]\nsops_mac=ENC[AES256_GCM,data:x]\nsops_version=3.13.3\n";
        for kind in ["ConfigMapGenerator", "SecretGenerator"] {
            for name in ["db.env", "db.secret"] {
                let plugin =
                    format!("apiVersion: builtin\nkind: {kind}\nmetadata: {{name: db}}\nenvs: [{name}]\n");
                let tree = MemoryTree::new()
                    .file("kustomization.yaml", "generators: [plugin.yaml]\n")
                    .file("plugin.yaml", plugin)
                    .file(name, sealed);
                let parsed = &mut ParsedFiles::default();
                let closure = find_closure(&tree, "", ClosureLimits::default(), parsed).unwrap();
                let opened = open_inputs(&Decrypter::default(), RootFiles::of(&closure), &tree);
                let Err(RenderError::Encrypted(found)) = opened else { panic!("{kind} {name}") };
                assert_eq!((found.code, &*found.origin.file), (ENCRYPTED_INPUT, name), "{kind}");
            }
        }
    }
}
