//! The encrypted Secrets that hold variables, and the seal over what is made of them.
//!
//! **Invariant:** an opened value is in the data of a Secret alone. Each Secret that may have one
//! is sealed before it is stored. Values that the configuration calls no secrets are as those of a
//! file in the clear.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::decryption::{Decrypter, OpenedInput, is_key_missing};
use super::exposure::IDENTITY_PATHS;
use super::render_cipher::{RootCipher, SealFault, is_secret};
use super::sops::{FileSeal, SOPS_KEY, SealingSecret, SopsFormat, is_encrypted, is_encrypted_value};
use super::variables::{HolderBody, is_holder};
use crate::config::{VariableHolder, VariableHolderKind, VariableSecrecy};
use crate::manifest::{listed_objects, read_documents};
use crate::object::{Diagnostic, ManifestOrigin, text_at};
use crate::source::BlobId;

/// The keys for render seals: of the encrypted files from which variables were opened.
#[derive(Clone, Default)]
pub(super) struct SealKeys {
    /// The secrets that seals follow from.
    secrets: Vec<SealingSecret>,
    /// The data keys, encrypted for their recipients.
    holders: Vec<Value>,
}

/// Leaves out all keys.
impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealKeys({})", self.holders.len())
    }
}

impl SealKeys {
    /// Returns these and others, each once: only who opens all of the files opens what is sealed.
    #[must_use]
    pub(super) fn with_keys(mut self, others: &Self) -> Self {
        for (secret, holders) in others.secrets.iter().zip(&others.holders) {
            self.add(FileSeal { secret: secret.clone(), holders: holders.clone() });
        }
        self
    }

    /// Returns how many they are.
    pub(super) const fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Returns who opens what is sealed: the data keys, encrypted for their recipients. None where
    /// nothing is sealed.
    pub(super) fn recipients_text(&self) -> Option<String> {
        (!self.holders.is_empty()).then(|| Value::Array(self.holders.clone()).to_string())
    }

    /// Adds the key of a file. Copies of one file have one key.
    pub(super) fn add(&mut self, FileSeal { secret, holders }: FileSeal) {
        if !self.secrets.contains(&secret) {
            self.secrets.push(secret);
            self.holders.push(holders);
        }
    }

    /// Seals the data of a Secret; leaves any other object as it is, which has no such value.
    ///
    /// # Errors
    /// Fails where its data has another form than the API takes.
    pub(super) fn seal(
        &self,
        object: &mut Value,
        at: impl FnOnce() -> ManifestOrigin,
    ) -> Result<(), Box<Diagnostic>> {
        if self.secrets.is_empty() || !is_secret(object) {
            return Ok(());
        }
        let seal = RootCipher::of(&self.secrets).ok_or(SealFault::Code);
        let sealed = seal.and_then(|seal| seal.seal(object, &Value::Array(self.holders.clone())));
        sealed.map_err(|fault| {
            let message = format!("this Secret cannot be sealed: it {fault}");
            Box::new(Diagnostic::error(at(), "seal-failed", message))
        })
    }
}

/// The manifests of a source, as they are read for variables.
#[derive(Default)]
pub(super) struct HolderReading {
    /// The objects, those that hold variables in the open.
    pub(super) bodies: Vec<HolderBody>,
    /// The keys of the files that were opened.
    pub(super) keys: SealKeys,
    /// The reasons for which others cannot be opened.
    pub(super) faults: Vec<Diagnostic>,
    /// The first file that may hold more of them, as it does not say which objects it has.
    pub(super) unread: Option<Arc<str>>,
}

impl HolderReading {
    /// Notes a file that may hold objects which are not known.
    pub(super) fn add_unread(&mut self, file: &Arc<str>) {
        self.unread.get_or_insert_with(|| file.clone());
    }

    /// Adds the objects of a plain file. Of one that is encrypted, the Secrets that hold variables
    /// are opened, and nothing else.
    pub(super) fn add_file(
        &mut self,
        file: &Arc<str>,
        bytes: &[u8],
        holders: &[VariableHolder],
        namespace: &str,
        decrypter: &Decrypter,
    ) {
        let HolderFile { mut bodies, is_complete } = HolderFile::read(file, bytes, None);
        if !is_complete {
            self.add_unread(file);
        }
        // Objects are read as YAML whatever the name of their file.
        let format = match SopsFormat::of_name(file) {
            SopsFormat::Dotenv | SopsFormat::Binary => SopsFormat::Yaml,
            format => format,
        };
        let is_closed = is_encrypted(bytes, format);
        // Nothing is put into an encrypted file.
        if !is_closed {
            bodies.iter_mut().for_each(HolderBody::unescape);
        }
        let secrets = || holders.iter().filter(|holder| holder.kind == VariableHolderKind::Secret);
        let is_wanted =
            |body: &HolderBody| secrets().any(|holder| is_holder(holder, &body.object, namespace));
        let is_sensitive = |body: &HolderBody| {
            let mut sensitive = secrets().filter(|holder| holder.secrecy == VariableSecrecy::Secret);
            sensitive.any(|holder| is_holder(holder, &body.object, namespace))
        };
        if is_closed && bodies.iter().any(is_wanted) {
            match decrypter.for_render().open_input(file, bytes, format) {
                Ok(OpenedInput { plaintext, seals, .. }) => {
                    let opened = HolderFile::read(file, &plaintext, Some(BlobId::of(bytes)));
                    // A ConfigMap beside them stays closed: its values may be put in anywhere.
                    bodies.retain(|body| !is_wanted(body));
                    let opened: Vec<HolderBody> = opened.bodies.into_iter().filter(is_wanted).collect();
                    if opened.iter().any(is_sensitive) {
                        for seal in seals {
                            self.keys.add(seal);
                        }
                    }
                    for mut body in opened {
                        if !is_sensitive(&body) {
                            body.opened_from = None;
                        }
                        bodies.push(body);
                    }
                }
                Err(found) => self.faults.push(*found),
            }
        }
        self.bodies.extend(bodies);
    }

    /// Returns the Secrets among these that none of the objects is.
    pub(super) fn missing_secrets(&self, holders: &[VariableHolder], namespace: &str) -> Vec<VariableHolder> {
        let is_there = |holder: &VariableHolder| {
            self.bodies.iter().any(|body| is_holder(holder, &body.object, namespace))
        };
        let secrets = holders.iter().filter(|holder| holder.kind == VariableHolderKind::Secret);
        secrets.filter(|holder| !is_there(holder)).cloned().collect()
    }

    /// Adds the objects of a file that a kustomization names, as they are in git: of all that are in
    /// it, those that hold variables. A file without the name of any is not looked at.
    pub(super) fn add_resource(
        &mut self,
        file: &Arc<str>,
        bytes: &[u8],
        holders: &[VariableHolder],
        namespace: &str,
        decrypter: &Decrypter,
    ) {
        let is_named = |holder: &&VariableHolder| {
            let name = holder.name.as_str().as_bytes();
            bytes.windows(name.len()).any(|part| part == name)
        };
        let named: Vec<VariableHolder> = holders.iter().filter(is_named).cloned().collect();
        if named.is_empty() {
            return;
        }
        let mut read = Self::default();
        read.add_file(file, bytes, &named, namespace, decrypter);
        let is_held =
            |body: &HolderBody| named.iter().any(|holder| is_holder(holder, &body.object, namespace));
        read.bodies.retain(is_held);
        self.append(read);
    }

    /// Adds what was read of another file.
    pub(super) fn append(&mut self, mut other: Self) {
        self.bodies.append(&mut other.bodies);
        self.keys = std::mem::take(&mut self.keys).with_keys(&other.keys);
        self.faults.append(&mut other.faults);
        if let Some(unread) = &other.unread {
            self.add_unread(unread);
        }
    }

    /// Returns whether it has none of these objects, and all was read that may have one.
    pub(super) fn is_idle(&self, holders: &[VariableHolder], namespace: &str) -> bool {
        let is_held =
            |body: &HolderBody| holders.iter().any(|holder| is_holder(holder, &body.object, namespace));
        self.unread.is_none() && self.faults.is_empty() && !self.bodies.iter().any(is_held)
    }

    /// Returns whether an identity may come that opens what could not be opened.
    pub(super) fn is_identity_missing(faults: &[Diagnostic]) -> bool {
        faults.iter().any(is_key_missing)
    }
}

/// The objects of one file.
struct HolderFile {
    bodies: Vec<HolderBody>,
    /// Indicates whether these are all of its objects.
    is_complete: bool,
}

impl HolderFile {
    /// Reads a file, which may have been opened from an encrypted one.
    fn read(file: &Arc<str>, bytes: &[u8], opened_from: Option<BlobId>) -> Self {
        let read = read_documents(file, bytes);
        let objects = read.documents.iter().flat_map(|document| objects_of(document.to_value()));
        let bodies: Vec<HolderBody> = objects.map(|object| HolderBody::new(object, opened_from)).collect();
        let is_named = |body: &HolderBody| {
            !IDENTITY_PATHS.iter().any(|path| is_encrypted_value(text_at(&body.object, path)))
        };
        let is_complete = !read.diagnostics.iter().any(Diagnostic::is_error) && bodies.iter().all(is_named);
        Self { bodies, is_complete }
    }
}

/// Returns the objects of a document. The items of an encrypted list are encrypted each.
fn objects_of(document: Value) -> Vec<Value> {
    let is_encrypted = document.get(SOPS_KEY).is_some();
    let mut objects = listed_objects(document);
    for object in objects.iter_mut().filter(|_| is_encrypted).filter_map(Value::as_object_mut) {
        object.entry(SOPS_KEY).or_insert(Value::Null);
    }
    objects
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::config::VariableHolderNeed;
    use crate::input::sops::sealing;
    use crate::input::variables::{HolderAnswer, plan_lookups};

    /// Returns a document whose data has this value in encrypted form.
    fn document(kind: &str, name: &str, field: &str, value: &str) -> String {
        let sealed = sealing::seal(&format!("{field}:A:"), "str", value);
        format!("apiVersion: v1\nkind: {kind}\nmetadata:\n    name: {name}\n{field}:\n    A: {sealed}\n")
    }

    #[test]
    fn a_file_that_does_not_say_which_objects_it_has_is_noted() {
        let noted = |text: &str| {
            let mut read = HolderReading::default();
            read.add_file(&Arc::from("a.yaml"), text.as_bytes(), &[], "shop", &Decrypter::default());
            (read.bodies.len(), read.unread.is_some())
        };
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        assert_eq!(noted(map), (1, false));
        assert_eq!(noted("# nothing\n"), (0, false));
        assert_eq!(noted(&format!("{map}---\na: [\n")), (1, true));
        assert_eq!(noted(&format!("{map}...\n{map}")), (1, true));
        let hidden = "apiVersion: v1\nkind: Secret\nmetadata: {name: 'ENC[AES256_GCM,data:x]'}\n";
        assert_eq!(noted(hidden), (1, true));
    }

    #[test]
    fn an_item_of_a_list_holds_variables_as_any_object_does() {
        let item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: vars}, data: {A: b}}";
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {item}\n");
        let holder = VariableHolder {
            kind: VariableHolderKind::ConfigMap,
            namespace: "shop".parse().unwrap(),
            name: "vars".parse().unwrap(),
            need: VariableHolderNeed::Required,
            secrecy: VariableSecrecy::Open,
        };
        let check = |text: &str, expected: &str| {
            let mut read = HolderReading::default();
            let holders = [holder.clone()];
            read.add_file(&Arc::from("a.yaml"), text.as_bytes(), &holders, "shop", &Decrypter::default());
            let answers = plan_lookups(&holders, &read.bodies, "shop").answers(|_| HolderAnswer::Missing);
            assert_eq!(format!("{answers:?}"), expected, "{text}");
        };
        check(&list, r#"[Found({"A"})]"#);
        check(&format!("{list}sops: {{mac: x}}\n"), "[Unusable(Encrypted)]");
    }

    #[test]
    fn of_a_file_that_gets_variables_two_signs_are_one() {
        let check = |text: &str, expected: &str| {
            let holder = VariableHolder {
                kind: VariableHolderKind::Secret,
                namespace: "shop".parse().unwrap(),
                name: "vars".parse().unwrap(),
                need: VariableHolderNeed::Required,
                secrecy: VariableSecrecy::Open,
            };
            let decrypter = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
            let mut read = HolderReading::default();
            read.add_file(&Arc::from("a.yaml"), text.as_bytes(), &[holder], "shop", &decrypter);
            let token = |body: &HolderBody| text_at(&body.object, &["stringData", "TOKEN"]).to_owned();
            assert_eq!(read.bodies.iter().map(token).collect::<Vec<_>>(), [expected], "{text}");
        };
        check("apiVersion: v1\nkind: Secret\nmetadata: {name: vars}\nstringData: {TOKEN: 'a$$b'}\n", "a$b");
        check(&sealing::sealed_secret("vars", "a$$b"), "a$$b");
    }

    #[test]
    fn an_encrypted_resource_is_opened_whatever_its_file_is_called() {
        for file in ["vars.yaml", "vars.enc", "vars.env", "vars"] {
            let holder = VariableHolder {
                kind: VariableHolderKind::Secret,
                namespace: "shop".parse().unwrap(),
                name: "vars".parse().unwrap(),
                need: VariableHolderNeed::Required,
                secrecy: VariableSecrecy::Secret,
            };
            let sealed = sealing::sealed_secret("vars", "token");
            let decrypter = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
            let mut read = HolderReading::default();
            read.add_resource(&Arc::from(file), sealed.as_bytes(), &[holder], "shop", &decrypter);
            let opened = read.bodies.iter().filter(|body| body.opened_from.is_some()).count();
            assert_eq!((opened, read.keys.len()), (1, 1), "{file}");
        }
    }

    #[test]
    fn of_an_encrypted_file_the_secrets_that_hold_variables_alone_are_opened() {
        let mut coded = Sha256::digest("sops").to_vec();
        coded.extend_from_slice(b"tokencanary-mapcanary-other");
        let rules = "    mac_only_encrypted: true\n    encrypted_regex: ^(data|stringData)$\n";
        let first = sealing::sops_file(&document("Secret", "vars", "stringData", "token"), &coded, rules);
        // SOPS repeats its metadata in each document.
        let others = [
            document("ConfigMap", "vars", "data", "canary-map"),
            document("Secret", "other", "stringData", "canary-other"),
        ]
        .map(|other| format!("---\n{other}sops:\n    version: 3.13.3\n"));
        let file = first + &others.concat();

        let holder = |kind, secrecy| VariableHolder {
            kind,
            namespace: "shop".parse().unwrap(),
            name: "vars".parse().unwrap(),
            need: VariableHolderNeed::Required,
            secrecy,
        };
        let map = || holder(VariableHolderKind::ConfigMap, VariableSecrecy::Open);
        let secret = |secrecy| holder(VariableHolderKind::Secret, secrecy);
        let decrypter = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
        let (sensitive, shown) = (secret(VariableSecrecy::Secret), secret(VariableSecrecy::Open));
        // Nothing is sealed for values that are no secrets.
        for (secrets, keys) in [
            (vec![sensitive.clone()], 1),
            (vec![shown.clone()], 0),
            (vec![shown.clone(), sensitive.clone()], 1),
        ] {
            let holders: Vec<VariableHolder> = secrets.into_iter().chain([map()]).collect();
            let mut read = HolderReading::default();
            read.add_file(&Arc::from("a.yaml"), file.as_bytes(), &holders, "shop", &decrypter);

            assert!(read.faults.is_empty(), "{:?}", read.faults);
            let bodies: String = read.bodies.iter().map(|body| body.object.to_string()).collect();
            assert!(bodies.contains("token") && !bodies.contains("canary"), "{bodies}");
            let is_opened = |body: &HolderBody| body.opened_from.is_some();
            assert_eq!((read.keys.len(), read.bodies.iter().any(is_opened)), (keys, keys > 0));
            let answers = plan_lookups(&holders, &read.bodies, "shop").answers(|_| HolderAnswer::Missing);
            let found = vec![r#"Found({"A"})"#; holders.len() - 1].join(", ");
            assert_eq!(format!("{answers:?}"), format!("[{found}, Unusable(Encrypted)]"));
        }
    }

    #[test]
    fn of_what_a_kustomization_names_the_wanted_objects_alone_are_taken() {
        let holder = VariableHolder {
            kind: VariableHolderKind::Secret,
            namespace: "shop".parse().unwrap(),
            name: "vars".parse().unwrap(),
            need: VariableHolderNeed::Required,
            secrecy: VariableSecrecy::Secret,
        };
        let object = |kind: &str, name: &str| {
            format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: {name}}}, stringData: {{A: b}}}}\n")
        };
        let check = |text: &str, taken: &[&str], is_unread: bool| {
            let mut read = HolderReading::default();
            let holders = [holder.clone()];
            let decrypter = Decrypter::default();
            read.add_resource(&Arc::from("a.yaml"), text.as_bytes(), &holders, "shop", &decrypter);
            let names: Vec<&str> =
                read.bodies.iter().map(|body| text_at(&body.object, &["metadata", "name"])).collect();
            assert_eq!((&names[..], read.unread.is_some()), (taken, is_unread), "{text}");
            assert_eq!(read.missing_secrets(&holders, "shop").len(), 1 - taken.len(), "{text}");
        };
        check(&object("Secret", "vars"), &["vars"], false);
        check(&format!("{}---\n{}", object("Secret", "other"), object("Secret", "vars")), &["vars"], false);
        check(&object("ConfigMap", "vars"), &[], false);
        check(&object("Secret", "vars-of-another"), &[], false);
        // It is not known of a broken file that names it, and of no other.
        check("metadata: {name: vars}\na: [\n", &[], true);
        check("a: [\n", &[], false);
    }
}
