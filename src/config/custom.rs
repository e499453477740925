//! Sources that stand in the cluster, as objects of kind `Source`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::allow::given;
use super::{
    API_VERSION, AccountName, AllowSpec, BoundCredentials, CredentialUse, Environment, Location, Mode, Name,
    Narrowing, SourceConfig, SourceSpec, UrlPrefix, VerifySpec,
};
use crate::engine::{self, Adopt, AllowList, BlastRadius, Life, OptOut, Prune};
use crate::fields::blurred;

/// What keeps an object with the policy [`DeletionPolicy::Delete`] until all that it has is deleted.
pub const FINALIZER: &str = "rhumb.dev/prune";

/// Which objects of kind `Source` in the system namespace are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CustomSources {
    /// None: the cluster is not asked.
    #[default]
    None,
    /// Those with a repository on a server.
    Remote,
    /// Those with a directory or a repository of this host too: whoever may write them names files that rhumb can
    /// read.
    Any,
}

/// What objects of kind `Source` may ask for: one of the words, or a mapping with a list of prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomSourcePolicy {
    /// Which are followed.
    pub follow: CustomSources,
    /// What they may name; none for all that `follow` lets them.
    pub allow: Option<Vec<UrlPrefix>>,
    /// Which credentials of the host they show where; none are shown elsewhere once anything is listed here or there.
    pub credentials: BoundCredentials,
    /// What they may have at most, whatever their own `allow` says.
    pub objects: Option<AllowSpec>,
    /// Files with keys, by the names under which sources ask for their signatures.
    pub keys: BTreeMap<Name, PathBuf>,
    /// What the commits of each of them must show, whatever it asks for itself.
    pub verify: Option<VerifySpec>,
    /// As which service account one acts that names none; none for rhumb's own.
    pub default_service_account: Option<AccountName>,
    /// The service accounts that they may name, beside that one; none for all as which rhumb may act.
    pub service_accounts: Option<BTreeSet<AccountName>>,
}

impl CustomSourcePolicy {
    /// Says that the cluster is asked for them.
    pub fn is_open(&self) -> bool {
        self.follow != CustomSources::None
    }

    /// The same with its files made independent of the working directory.
    pub(super) fn resolved(mut self, environment: &Environment) -> Self {
        for file in self.keys.values_mut() {
            *file = environment.resolve(file);
        }
        self.verify = self.verify.map(|verify| verify.resolved(environment));
        self
    }

    /// Puts the files of the configuration in place of the names in a spec.
    fn name_keys(&self, spec: &mut SourceSpec) -> Result<(), String> {
        let Some(git) = &mut spec.git else {
            return match &self.verify {
                Some(_) => {
                    Err("a directory carries no signatures, which `customSources.verify` asks for".to_owned())
                }
                None => Ok(()),
            };
        };
        git.verify = match (&self.verify, git.verify.take()) {
            (Some(verify), _) => Some(verify.clone()),
            (None, Some(verify)) => Some(verify.named(&self.keys)?),
            (None, None) => None,
        };
        Ok(())
    }

    /// Which credentials a source shows to its git server. Where no addresses are listed, whoever may write Sources is
    /// trusted with all of them.
    fn credentials(&self, location: &Location) -> CredentialUse {
        if self.allow.is_none() && self.credentials.is_empty() {
            return CredentialUse::Own;
        }
        self.credentials.of(location)
    }

    /// What a source may have, within what all of them may have.
    fn bounded(&self, own: AllowList) -> AllowList {
        match &self.objects {
            Some(all) => own.within(all.clone().into()),
            None => own,
        }
    }

    /// As which account a source acts that names this one, or none; or why it may not, in the words of whoever wrote it.
    fn account(&self, named: Option<AccountName>) -> Result<Option<AccountName>, String> {
        let default = || self.default_service_account.clone();
        let (Some(allowed), is_default) = (&self.service_accounts, named.is_none() || named == default())
        else {
            return Ok(named.or_else(default));
        };
        match named.or_else(default) {
            Some(account) if is_default || allowed.contains(&account) => Ok(Some(account)),
            Some(account) => Err(format!(
                "serviceAccountName: {account} is not allowed: add it to `customSources.serviceAccounts` of the \
                 configuration, or name one that is there"
            )),
            None => Err(
                "it has no serviceAccountName: name one of `customSources.serviceAccounts` of the configuration, or set \
                 `customSources.defaultServiceAccount` there"
                    .to_owned(),
            ),
        }
    }

    /// Why a location is not followed, in the words of whoever wrote it.
    fn refusal(&self, location: &Location) -> Option<String> {
        let here = match location {
            Location::Directory(_) => true,
            Location::Git { url, .. } => {
                !url.is_url() || url.expose().trim_start().to_ascii_lowercase().starts_with("file:")
            }
        };
        if here && self.follow != CustomSources::Any {
            return Some(
                "a source in the cluster names a repository by URL: directories and repositories of the host \
                        are only followed with `customSources: any`"
                    .to_owned(),
            );
        }
        let allow = self.allow.as_ref()?;
        if !allow.iter().any(|prefix| prefix.covers(location)) {
            return Some(
                "its address is not allowed: add a prefix of it to `customSources.allow` of the configuration, \
                 or name a repository below one that is there"
                    .to_owned(),
            );
        }
        let Location::Git { reference: Some(reference), .. } = location else { return None };
        (!is_pushed(reference, here)).then(|| {
            format!(
                "its reference `{reference}` is not allowed: with `customSources.allow` it is a branch or a tag, as \
                 anybody may get commits and other references into a repository; write refs/heads/NAME or \
                 refs/tags/NAME"
            )
        })
    }
}

/// Whether a reference is one that only those can set who may push to the repository itself.
///
/// Servers give the commits of forks by their ids, and what is only proposed under references of their own, as
/// `refs/pull/1/head`. A repository of this host takes the beginning of an id too.
fn is_pushed(reference: &str, here: bool) -> bool {
    let shortest = if here { 4 } else { 40 };
    let is_id =
        (shortest..=40).contains(&reference.len()) && reference.bytes().all(|b| b.is_ascii_hexdigit());
    let is_named = ["refs/heads/", "refs/tags/"].iter().any(|folder| reference.starts_with(folder));
    !is_id && (is_named || !reference.starts_with("refs/"))
}

impl From<CustomSources> for CustomSourcePolicy {
    fn from(follow: CustomSources) -> Self {
        Self { follow, ..Self::default() }
    }
}

impl<'de> Deserialize<'de> for CustomSourcePolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyVisitor)
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = CustomSourcePolicy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none, remote, any, or {follow: remote, allow: [https://git.example.org/team/]}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CustomSourcePolicy, E> {
        let word: StrDeserializer<'_, E> = text.into_deserializer();
        CustomSources::deserialize(word).map(CustomSourcePolicy::from)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CustomSourcePolicy, A::Error> {
        #[derive(Deserialize)]
        #[serde(
            rename_all = "camelCase",
            deny_unknown_fields,
            expecting = "a mapping with follow, allow, credentials, objects, keys, verify, defaultServiceAccount and \
                         serviceAccounts"
        )]
        struct All {
            follow: CustomSources,
            #[serde(default)]
            allow: Option<Vec<UrlPrefix>>,
            #[serde(default)]
            credentials: BoundCredentials,
            // A key without a value must not allow everything.
            #[serde(default, deserialize_with = "given")]
            objects: Option<AllowSpec>,
            #[serde(default)]
            keys: BTreeMap<Name, PathBuf>,
            #[serde(default)]
            verify: Option<VerifySpec>,
            #[serde(default)]
            default_service_account: Option<AccountName>,
            #[serde(default)]
            service_accounts: Option<BTreeSet<AccountName>>,
        }
        let all = All::deserialize(MapAccessDeserializer::new(map))?;
        let verify =
            all.verify.map(|verify| verify.named(&all.keys)).transpose().map_err(de::Error::custom)?;
        Ok(CustomSourcePolicy {
            follow: all.follow,
            allow: all.allow,
            credentials: all.credentials,
            objects: all.objects,
            keys: all.keys,
            verify,
            default_service_account: all.default_service_account,
            service_accounts: all.service_accounts,
        })
    }
}

/// What becomes of the objects of a source when a person deletes the object that names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// They stay as they are.
    #[default]
    Orphan,
    /// They are deleted first.
    Delete,
}

/// An object of kind `Source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomSource {
    /// Its name.
    pub name: String,
    /// Its incarnation.
    pub uid: String,
    /// Its version as it was read.
    pub version: String,
    /// The generation of its spec.
    pub generation: i64,
    /// What keeps it from going away.
    pub finalizers: Vec<String>,
    /// Whether a person has deleted it.
    pub deleted: bool,
    /// What that means for its objects.
    pub policy: DeletionPolicy,
    /// What it may have at all, where nothing else of it is understood.
    pub allow: AllowList,
    /// What it asks for, or why that cannot be followed.
    pub config: Result<SourceConfig, String>,
    /// As whom it acts, or why it may not.
    account: Result<Option<AccountName>, String>,
    /// Its status as it was read.
    pub status: Value,
}

/// What is to be done with the finalizer of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// It is as it should be.
    Right,
    /// It is put there; the source is followed from then on.
    Missing,
    /// It is taken off.
    Needless,
    /// It is taken off when nothing is left to delete.
    UntilEmpty,
}

#[derive(Deserialize)]
struct Document {
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    finalizers: Vec<String>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

impl CustomSource {
    /// Reads an object as the API server shows it; none where it is no object.
    pub fn read(object: Value, allowed: &CustomSourcePolicy) -> Option<Self> {
        let document: Document = serde_json::from_value(object).ok()?;
        let Metadata { name, uid, resource_version, generation, finalizers, deletion_timestamp } =
            document.metadata;
        let mut spec = document.spec;
        let policy = policy(&mut spec);
        let allow = allowed.bounded(allow(&spec));
        // As whom it acts is known where nothing else of it is understood.
        let named = spec.get("serviceAccountName").and_then(Value::as_str).map(str::parse);
        let named = named.transpose().map_err(|error| format!("spec.serviceAccountName: {error}"));
        let account = named.and_then(|named| allowed.account(named));
        let config = checked(&name, spec, allowed)
            .and_then(|config| Ok(SourceConfig { service_account: account.clone()?, ..config }))
            .map(|config| SourceConfig {
                allow: allow.clone(),
                credentials: allowed.credentials(&config.location),
                ..config
            });
        Some(Self {
            name,
            uid,
            version: resource_version,
            generation,
            finalizers,
            deleted: deletion_timestamp.is_some(),
            allow,
            policy: *policy.as_ref().unwrap_or(&DeletionPolicy::Orphan),
            config: policy.and(config),
            account,
            status: document.status,
        })
    }

    /// Whether the object waits for the deletion of what it has.
    pub fn is_tied(&self) -> bool {
        self.finalizers.iter().any(|one| one == FINALIZER)
    }

    /// What is to be done with its finalizer. One that only observes has nothing that it could delete, nor has one whose
    /// name no source can have.
    pub fn tie(&self) -> Tie {
        let observes = self.config.as_ref().is_ok_and(|config| config.mode == Mode::Observe);
        let owns = !observes && self.name.parse::<Name>().is_ok();
        match (self.policy, self.is_tied()) {
            (DeletionPolicy::Delete, true) if self.deleted && owns => Tie::UntilEmpty,
            (DeletionPolicy::Delete, true) if owns => Tie::Right,
            // The API server takes none for what is deleted.
            (DeletionPolicy::Delete, false) if !self.deleted && owns && self.config.is_ok() => Tie::Missing,
            (_, true) => Tie::Needless,
            (_, false) => Tie::Right,
        }
    }

    /// The finalizers that it should have instead of those that it has; none where they are right.
    pub fn finalizers(&self, tie: Tie) -> Option<Vec<String>> {
        let mut finalizers = self.finalizers.clone();
        match tie {
            Tie::Right => return None,
            Tie::Missing => finalizers.push(FINALIZER.to_owned()),
            Tie::Needless | Tie::UntilEmpty => finalizers.retain(|one| one != FINALIZER),
        }
        Some(finalizers)
    }

    /// What is followed of it: nothing before its finalizer is there, as it could not be taken back in time, and
    /// nothing any more of what was deleted and leaves its objects.
    pub fn followed(&self) -> Option<SourceConfig> {
        let config = self.config.as_ref().ok();
        match self.tie() {
            Tie::Missing => None,
            Tie::UntilEmpty => {
                let name: Name = self.name.parse().ok()?;
                // What is its own is deleted with the rights that it has, and with no others.
                let account = self.account.clone().ok()?;
                let ending =
                    || SourceConfig { service_account: account, ..SourceConfig::ending(&name, &self.allow) };
                let config = config.cloned().unwrap_or_else(ending);
                Some(SourceConfig { life: Life::Ends, prune: Prune::On, ..config })
            }
            Tie::Right | Tie::Needless if self.deleted => None,
            Tie::Right | Tie::Needless => config.cloned(),
        }
    }
}

impl SourceConfig {
    /// A source that ends, and of which only the name is understood: what it has is known from the cluster alone.
    pub fn ending(name: &Name, allow: &AllowList) -> Self {
        Self {
            name: name.to_string(),
            location: Location::nowhere(),
            namespace: Name::unnamed().into(),
            allow: allow.clone(),
            service_account: None,
            credentials: CredentialUse::Nothing,
            prune: Prune::On,
            adopt: Adopt::Never,
            opt_out: OptOut::default(),
            blast_radius: BlastRadius::default(),
            prune_delay: super::Pause::new(engine::PRUNE_DELAY),
            budget: Narrowing::default(),
            mode: Mode::Enforce,
            life: Life::Ends,
        }
    }
}

/// What a spec bounds its source to, whatever else stands in it. Where that is not understood nothing is allowed, so that
/// nothing of it is deleted.
fn allow(spec: &Value) -> AllowList {
    let read = spec.get("allow").map_or(Ok(AllowSpec::default()), AllowSpec::deserialize);
    read.map_or_else(|_| AllowList::nothing(), AllowList::from)
}

/// Takes the key out of a spec that the file does not have.
fn policy(spec: &mut Value) -> Result<DeletionPolicy, String> {
    let said = spec.as_object_mut().and_then(|spec| spec.remove("deletionPolicy"));
    let wrong = |error: serde_json::Error| format!("spec.deletionPolicy: {error}");
    said.map_or(Ok(DeletionPolicy::Orphan), |said| serde_json::from_value(said).map_err(wrong))
}

fn checked(name: &str, spec: Value, allowed: &CustomSourcePolicy) -> Result<SourceConfig, String> {
    let name: Name = name.parse().map_err(|error| format!("metadata.name: {error}"))?;
    // The words of the error may show a value that has a password in it.
    let wrong = |error: serde_json::Error| blurred(&format!("spec: {error}"));
    let mut spec: SourceSpec = serde_json::from_value(spec).map_err(wrong)?;
    allowed.name_keys(&mut spec)?;
    let config = spec.named(&name, &Environment::default()).map_err(|error| blurred(&error.to_string()))?;
    match allowed.refusal(&config.location) {
        Some(why) => Err(why),
        None => Ok(config),
    }
}

impl super::Config {
    /// The configuration with the sources that stand in the cluster beside its own. A name in both is the file's.
    #[must_use]
    pub fn joined(&self, custom: &[CustomSource]) -> Self {
        let mut joined = self.clone();
        let configs = custom.iter().filter(|custom| !self.names(&custom.name));
        joined.sources.extend(configs.filter_map(CustomSource::followed));
        joined
    }

    /// Whether nothing is ever written: no source may, and none can come from the cluster that does.
    pub fn only_observes(&self) -> bool {
        !self.custom_sources.is_open() && self.sources.iter().all(|source| source.mode == Mode::Observe)
    }

    /// Whether the file has a source of this name.
    pub fn names(&self, name: &str) -> bool {
        self.sources.iter().any(|source| source.name == name)
    }
}

/// The path of all of them in a namespace.
pub fn custom_path(namespace: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/sources")
}

#[cfg(test)]
mod tests;
