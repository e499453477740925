//! The variables of one revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::decryption::Decrypter;
use super::holder_files::{HolderMemory, KnownHolders, read_holders};
use super::kustomize::{Closure, ParsedFiles};
use super::roots::RootListing;
use super::tree::FileTree;
use super::variable_seal::{HolderReading, SealKeys};
use super::variables::{
    HolderAnswer, LookupPlan, ObjectVariables, UNKNOWN_VARIABLE, VariableTable, plan_lookups,
};
use crate::config::{
    SubstitutionConfig, VariableHolder, VariableHolderKind, VariableHolderNeed, VariableSecrecy,
};
use crate::object::{Diagnostic, GroupKind, ObjectId, hex_text};
use crate::source::{ClusterFacts, FactUse, KnownClusterFacts, ObjectFact, SnapshotFile, SourceError};

/// The code of variables that cannot be had.
const NO_VARIABLES: &str = "no-variables";
/// The entry of the recipients of a seal among variables: no variable can have this name.
const RECIPIENTS_ENTRY: &str = "!";

/// Indicates whether `${NAME}` in the files of a source is a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VariableMode {
    /// It is a text, which is probably meant for another tool.
    #[default]
    Literal,
    /// It is a variable, whose value was put in before.
    Substituted,
}

impl VariableMode {
    /// Returns the mode for the files of a source with these variables.
    pub(crate) const fn of<T>(variables: Option<&T>) -> Self {
        match variables {
            Some(_) => Self::Substituted,
            None => Self::Literal,
        }
    }
}

/// The variables of a revision, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct RevisionVariables {
    /// The known ones.
    pub table: VariableTable,
    /// The reasons for which others are not known.
    pub faults: Vec<Diagnostic>,
    /// The keys of the encrypted files from which some were opened.
    pub keys: SealKeys,
}

impl RevisionVariables {
    /// Returns the digest of all that objects with variables depend on.
    pub(super) fn digest(&self) -> [u8; 32] {
        digest(format!("{:?} {:?}", self.key_values(), self.faults).as_bytes())
    }

    /// Returns the variables as they enter the key of a render, and who opens what is sealed for
    /// them. A file that gives no variable any more still seals: others may win over all in it.
    pub(super) fn key_values(&self) -> BTreeMap<String, String> {
        let recipients = self.keys.recipients_text();
        let recipients =
            recipients.map(|text| (RECIPIENTS_ENTRY.to_owned(), hex_text(&digest(text.as_bytes()))));
        self.table.key_values(&digest).into_iter().chain(recipients).collect()
    }

    /// Returns whether another try may know more of them.
    pub(super) fn is_interrupted(&self) -> bool {
        HolderReading::is_identity_missing(&self.faults)
    }

    /// Returns the findings about an object, with the reasons for which its variables are not known
    /// in front.
    pub(super) fn explain(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let is_unknown = found.iter().any(|found| found.code == UNKNOWN_VARIABLE);
        let why = self.faults.iter().filter(|_| is_unknown).cloned();
        why.chain(found).collect()
    }
}

/// The settings of a source that its variables follow from.
#[derive(Clone, Copy)]
pub(super) struct VariableSettings<'a> {
    /// The variables, and the objects that hold others.
    pub config: &'a SubstitutionConfig,
    /// The namespace of objects that name none.
    pub namespace: &'a str,
    /// The identities that open encrypted Secrets.
    pub decrypter: &'a Decrypter,
}

/// All that is known before the files of a source are read for its variables.
#[derive(Clone, Copy)]
pub(super) struct VariableFacts<'a> {
    /// The facts of the cluster.
    pub cluster: &'a ClusterFacts,
    /// The files that the pass before has found.
    pub holders: KnownHolders<'a>,
}

/// The variables of a revision, and where they are from.
#[derive(Default)]
pub(super) struct VariableReading {
    /// The variables; none where the source has no setting for them.
    pub variables: Option<Arc<RevisionVariables>>,
    /// The objects of the cluster that hold some, by name.
    pub objects: BTreeSet<ObjectId>,
    /// The files that hold some, for the next pass.
    pub holders: HolderMemory,
}

/// Reads the variables of a source at a revision.
///
/// # Errors
/// Fails where the revision cannot be read. Fails with [`SourceError::FactsWanted`] where an object
/// of the cluster was not asked for yet. A fault of a variable is in the result.
pub(super) fn read_variables<T: FileTree>(
    settings: VariableSettings<'_>,
    listing: &RootListing,
    start: &str,
    files: &T,
    parsed: &mut ParsedFiles,
    VariableFacts { cluster: facts, holders: known }: VariableFacts<'_>,
) -> Result<VariableReading, SourceError> {
    let VariableSettings { config, namespace, .. } = settings;
    let (read, holders) = read_holders(settings, listing, start, files, parsed, known)?;
    let lookups = plan_lookups(&config.from, &read.bodies, namespace);
    let objects = match facts {
        ClusterFacts::NotQueried => BTreeSet::new(),
        ClusterFacts::Queried(known) => wanted_objects(&lookups, known)?,
    };
    let HolderReading { keys, mut faults, unread, .. } = read;
    let answers = lookups.answers(|holder| {
        if let Some(fault) = lookup_fault(holder, facts) {
            faults.push(fault);
            return HolderAnswer::Unknown;
        }
        match (cluster_answer(holder, facts), &unread) {
            // It may be there, so that no default counts.
            (HolderAnswer::Missing, Some(file)) => {
                faults.push(unread_file_fault(holder, file));
                HolderAnswer::Unknown
            }
            (answer, _) => answer,
        }
    });
    let (table, more) = VariableTable::assemble(config, answers);
    faults.extend(more.iter().map(|fault| {
        let found = Diagnostic::file_error(".", NO_VARIABLES, fault.to_string());
        match fault.hint() {
            Some(hint) => found.hint(hint),
            None => found,
        }
    }));
    let variables = Arc::new(RevisionVariables { table, faults, keys });
    Ok(VariableReading { variables: Some(variables), objects, holders })
}

/// Returns the objects of the cluster that hold variables. It is asked for no secrets, as what is
/// rendered is kept on disk.
///
/// # Errors
/// Fails where the cluster was not asked for all of them.
fn wanted_objects(
    lookups: &LookupPlan,
    known: &KnownClusterFacts,
) -> Result<BTreeSet<ObjectId>, SourceError> {
    let requested = lookups.holders_to_read().filter(|holder| holder.secrecy == VariableSecrecy::Open);
    let objects: BTreeSet<ObjectId> = requested.map(object_id).collect();
    if objects.iter().all(|id| known.objects.contains_key(id)) {
        return Ok(objects);
    }
    Err(SourceError::FactsWanted(FactUse { versions: false, objects }.into()))
}

fn object_id(holder: &VariableHolder) -> ObjectId {
    let kind = GroupKind::new("", holder.kind.as_str());
    ObjectId::new(&kind, Some(holder.namespace.as_str()), holder.name.as_str())
}

/// Returns what the cluster says about an object; none where it is not asked for it.
fn object_fact<'f>(holder: &VariableHolder, facts: &'f ClusterFacts) -> Option<&'f ObjectFact> {
    match (holder.secrecy, facts) {
        (VariableSecrecy::Open, ClusterFacts::Queried(known)) => known.objects.get(&object_id(holder)),
        (VariableSecrecy::Secret, _) | (_, ClusterFacts::NotQueried) => None,
    }
}

/// Returns why an object that the source does not have gives no variables.
fn lookup_fault(holder: &VariableHolder, facts: &ClusterFacts) -> Option<Diagnostic> {
    let is_needed = holder.need == VariableHolderNeed::Required;
    let own = match holder.kind {
        VariableHolderKind::ConfigMap => "plain manifest",
        VariableHolderKind::Secret => "manifest",
    };
    let (message, hint) = match (holder.secrecy, object_fact(holder, facts)) {
        (_, Some(ObjectFact::Found(_))) => return None,
        // Nobody knows whether it is there.
        (_, Some(ObjectFact::Unreadable(why))) => (
            format!("substituteFrom: {holder} cannot be read: {why}"),
            "let the account of the source get it: `rhumb rbac` prints the role",
        ),
        _ if !is_needed => return None,
        (VariableSecrecy::Secret, _) => (
            format!("substituteFrom: no {own} of the source has the {holder}"),
            "commit it, or mark it `optional: true`. It is not read from the cluster, as what is rendered is kept \
             on disk; if all its values may be shown, say so by `sensitive: false`",
        ),
        (_, Some(ObjectFact::Absent)) => (
            format!("substituteFrom: neither the source nor the cluster has the {holder}"),
            "create it, or mark it `optional: true`",
        ),
        (_, None) => (
            format!("substituteFrom: no {own} of the source has the {holder}"),
            "no cluster is asked here: `rhumb diff` asks it",
        ),
    };
    Some(Diagnostic::file_error(".", NO_VARIABLES, message).hint(hint))
}

/// Returns the fault of an optional object that nothing has, as far as the source can be read.
fn unread_file_fault(holder: &VariableHolder, file: &Arc<str>) -> Diagnostic {
    let message = format!("substituteFrom: {holder} may be in this file, which cannot be read as a whole");
    Diagnostic::file_error(file.clone(), NO_VARIABLES, message).hint("mend the file, or take it away")
}

fn cluster_answer(holder: &VariableHolder, facts: &ClusterFacts) -> HolderAnswer {
    match object_fact(holder, facts) {
        Some(ObjectFact::Found(body)) => match ObjectVariables::read(holder.kind, body) {
            Ok(held) => HolderAnswer::Found(held),
            Err(fault) => HolderAnswer::Unusable(fault),
        },
        Some(ObjectFact::Absent | ObjectFact::Unreadable(_)) | None => HolderAnswer::Missing,
    }
}

/// Returns the digest of a secret variable for the key of a render, which never leaves this host.
fn digest(value: &[u8]) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// Returns whether what kustomize makes of a closure may name a variable. It may make a value of
/// the name of a folder too.
///
/// # Errors
/// Fails where the files cannot be read.
pub(super) fn names_variables<T: FileTree>(closure: &Closure, files: &T) -> Result<bool, SourceError> {
    for (path, file) in &closure.files {
        if path.contains('$') || has_dollar(&files.read(file.file.blob)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a text has the sign before a name, or an escape of YAML for it.
pub(super) fn has_dollar(bytes: &[u8]) -> bool {
    let escapes = ["\\x24", "\\u0024", "\\U00000024"].map(str::as_bytes);
    let has = |escape: &[u8]| bytes.windows(escape.len()).any(|part| part == escape);
    bytes.contains(&b'$') || bytes.contains(&b'\\') && escapes.into_iter().any(has)
}

/// Returns the bytes of a plain file, by the way over its path: only what was looked at is read
/// from a disk.
pub(super) fn file_bytes<T: FileTree>(
    file: &SnapshotFile,
    start: &str,
    files: &T,
) -> Result<Option<Arc<[u8]>>, SourceError> {
    files.entry(&super::paths::append(start, &file.path))?;
    files.read(file.blob).map(Some).or_else(|error| match error {
        SourceError::Unreadable { .. } => Ok(None),
        error => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::roots::{RenderRoot, RootForm};
    use crate::input::sops::sealing::{self, sealed_secret};
    use crate::object::Revision;
    use crate::source::{BlobId, Snapshot};

    fn read_listing(
        settings: VariableSettings<'_>,
        listing: &RootListing,
        tree: &MemoryTree,
    ) -> Arc<RevisionVariables> {
        let parsed = &mut ParsedFiles::default();
        let facts = VariableFacts { cluster: &ClusterFacts::NotQueried, holders: KnownHolders::default() };
        read_variables(settings, listing, "", tree, parsed, facts).unwrap().variables.unwrap()
    }

    #[test]
    fn an_optional_object_that_may_be_in_a_file_which_cannot_be_read_is_not_missing() {
        let check = |text: &str, refused: &[&'static str], expected: &[&str]| {
            let tree = MemoryTree::new().file("other.yaml", text);
            let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
            let file = SnapshotFile { path: "other.yaml".into(), blob, size, origin: None };
            let refused = refused.iter().map(|file| Diagnostic::file_error(*file, "too-large", ""));
            let plain = Snapshot::of_files(Revision::new("0"), vec![file], refused.collect());
            let listing = RootListing { roots: Vec::new(), plain };
            let from = vec![VariableHolder {
                kind: VariableHolderKind::Secret,
                namespace: "shop".parse().unwrap(),
                name: "vars".parse().unwrap(),
                need: VariableHolderNeed::Optional,
                secrecy: VariableSecrecy::Secret,
            }];
            let config = SubstitutionConfig { values: BTreeMap::new(), from };
            let decrypter = Decrypter::default();
            let settings = VariableSettings { config: &config, namespace: "shop", decrypter: &decrypter };
            let read = read_listing(settings, &listing, &tree);
            let faults = read.faults.iter();
            let faults: Vec<String> =
                faults.map(|found| format!("{}: {}", found.origin, found.message)).collect();
            assert_eq!(faults, expected, "{text}");
        };
        let words = "substituteFrom: Secret shop/vars may be in this file, which cannot be read as a whole";
        check("a: 1\n", &[], &[]);
        check("a: [\n", &[], &[&format!("other.yaml: {words}")]);
        check("a: 1\n", &["large.yaml"], &[&format!("large.yaml: {words}")]);
    }

    /// Returns the value of `TOKEN`, or the words of the first fault.
    fn token_of(kind: VariableHolderKind, secrecy: VariableSecrecy, files: &[(&str, &str)]) -> String {
        let (mut tree, mut plain) = (MemoryTree::new(), Vec::new());
        let mut folders = BTreeSet::new();
        for (path, text) in files {
            tree = tree.file(path, text);
            if let Some((folder, _)) = path.split_once('/') {
                folders.insert(folder);
                continue;
            }
            let (blob, size) = (BlobId::of(text.as_bytes()), text.len() as u64);
            plain.push(SnapshotFile { path: (*path).into(), blob, size, origin: None });
        }
        let root = |folder: &str| RenderRoot { folder: folder.into(), form: RootForm::Kustomize };
        let listing = RootListing {
            roots: folders.into_iter().map(root).collect(),
            plain: Snapshot::of_files(Revision::new("0"), plain, Vec::new()),
        };
        let (namespace, name) = ("shop".parse().unwrap(), "vars".parse().unwrap());
        let need = VariableHolderNeed::Required;
        let from = vec![VariableHolder { kind, namespace, name, need, secrecy }];
        let config = SubstitutionConfig { values: BTreeMap::new(), from };
        let decrypter = Decrypter::new(Vec::new(), Some(sealing::identity(1)));
        let settings = VariableSettings { config: &config, namespace: "shop", decrypter: &decrypter };
        let variables = read_listing(settings, &listing, &tree);
        match variables.faults.first() {
            Some(fault) => fault.message.clone(),
            None => variables.table.key_values(&digest)["TOKEN"].clone(),
        }
    }

    #[test]
    fn a_secret_among_the_resources_of_a_kustomization_gives_variables_as_it_is_in_git() {
        use VariableHolderKind::{ConfigMap, Secret};
        use VariableSecrecy::Open;
        let kustomization = ("app/kustomization.yaml", "namePrefix: a-\nresources: [vars.yaml]\n");
        let plain = |kind: &str, field: &str, value: &str| {
            format!(
                "{{apiVersion: v1, kind: {kind}, metadata: {{name: vars}}, {field}: {{TOKEN: '{value}'}}}}"
            )
        };
        let (first, second) = (plain("Secret", "stringData", "one"), plain("Secret", "stringData", "two"));
        let (sealed, map) = (sealed_secret("vars", "canary"), plain("ConfigMap", "data", "one"));
        let (first, second, sealed) = (first.as_str(), second.as_str(), sealed.as_str());
        let check = |files: &[(&str, &str)], expected: &str| {
            assert_eq!(token_of(Secret, Open, files), expected, "{files:?}");
        };
        check(&[kustomization, ("app/vars.yaml", first)], "open:one");
        check(&[kustomization, ("app/vars.yaml", sealed)], "open:canary");
        let secret = token_of(Secret, VariableSecrecy::Secret, &[kustomization, ("app/vars.yaml", sealed)]);
        assert_eq!(secret, format!("sealed:{}", BlobId::of(sealed.as_bytes())));
        // A plain file comes first.
        check(&[kustomization, ("app/vars.yaml", first), ("vars.yaml", second)], "open:two");
        let other = ("other/kustomization.yaml", "resources: [vars.yaml]\n");
        check(
            &[kustomization, ("app/vars.yaml", first), other, ("other/vars.yaml", second)],
            "Secret shop/vars gives no variables: it is defined more than once in the source",
        );
        let lost = |kind: &str| format!("substituteFrom: no {kind} of the source has the ");
        check(
            &[("app/kustomization.yaml", "resources: []\n"), ("app/vars.yaml", first)],
            &format!("{}Secret shop/vars", lost("manifest")),
        );
        let files = [kustomization, ("app/vars.yaml", map.as_str())];
        assert_eq!(
            token_of(ConfigMap, Open, &files),
            format!("{}ConfigMap shop/vars", lost("plain manifest")),
            "others may patch it before it is applied"
        );
    }
}
