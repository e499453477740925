//! Sources that are in the cluster, as objects of kind `Source`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::allow::require_value;
use super::{
    AllowSpec, BoundCredentials, CONFIG_API_VERSION, CredentialUse, DnsLabel, Environment, FetchConfig,
    FetchSpec, HelmSpec, NarrowingSpec, RenderMode, RendererConfig, ServiceAccountName, SourceConfig,
    SourceLocation, SourceMode, SourceSpec, UrlPrefix, VariableHolder, VariableHolderKind, VariableSecrecy,
    VerifySpec,
};
use crate::engine::{self, AdoptPolicy, AllowList, BlastRadius, OptOutPolicy, PrunePolicy, SourceLifecycle};
use crate::fields::mask_likely_secrets;
use crate::manifest::KindScope;
use crate::object::{GroupKind, ObjectId};

/// The finalizer of an object with the policy [`DeletionPolicy::Delete`]; it stays until all of the
/// source's objects are deleted.
pub(crate) const SOURCE_FINALIZER: &str = "rhumb.dev/prune";

/// The objects of kind `Source` in the system namespace that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CustomSources {
    /// None: the cluster is not asked.
    #[default]
    None,
    /// Sources with a repository on a server.
    Remote,
    /// Sources of this host's directories and repositories too. Their writers name files that rhumb
    /// can read.
    Any,
}

/// The policy for objects of kind `Source`: one of the words, or a mapping with a list of prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomSourcePolicy {
    /// The objects that are followed.
    pub follow: CustomSources,
    /// The locations that they may name; none for all that `follow` admits.
    pub allow: Option<Vec<UrlPrefix>>,
    /// The credentials of the host, each with its server; with any entry here or there, none are
    /// shown elsewhere.
    pub credentials: BoundCredentials,
    /// The outer allow-list, whatever their own `allow` says.
    pub objects: Option<AllowSpec>,
    /// Files with keys, by the names under which sources ask for their signatures.
    pub keys: BTreeMap<DnsLabel, PathBuf>,
    /// The required signatures of each, whatever its own spec says.
    pub verify: Option<VerifySpec>,
    /// The service account of a source that names none; none for rhumb's own account.
    pub default_service_account: Option<ServiceAccountName>,
    /// The service accounts that they may name, besides that one; none for all as which rhumb may
    /// act.
    pub service_accounts: Option<BTreeSet<ServiceAccountName>>,
    /// The charts of servers that each may use.
    pub fetch: FetchConfig,
}

impl CustomSourcePolicy {
    /// Returns whether the cluster is asked for them.
    pub fn is_open(&self) -> bool {
        self.follow != CustomSources::None
    }

    /// Makes the paths of its files independent of the working directory.
    pub(super) fn resolve(mut self, environment: &Environment) -> Self {
        for file in self.keys.values_mut() {
            *file = environment.resolve(file);
        }
        self.verify = self.verify.map(|verify| verify.resolve(environment));
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
            (None, Some(verify)) => Some(verify.with_named_keys(&self.keys)?),
            (None, None) => None,
        };
        Ok(())
    }

    /// Returns the credentials that a source shows to its git server. Without a list of addresses,
    /// anybody who may write a Source is trusted with all of them.
    fn credentials(&self, location: &SourceLocation) -> CredentialUse {
        if self.allow.is_none() && self.credentials.is_empty() {
            return CredentialUse::Own;
        }
        self.credentials.of(location)
    }

    /// Returns the allow-list of a source, bounded by the policy's.
    fn bound_allow_list(&self, own: AllowList) -> AllowList {
        match &self.objects {
            Some(all) => own.intersect(all.clone().into()),
            None => own,
        }
    }

    /// Returns the account as which a source acts that names this one, or none. Fails where that is
    /// not allowed, in words for whoever wrote it.
    fn account(&self, named: Option<ServiceAccountName>) -> Result<Option<ServiceAccountName>, String> {
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

    /// Returns why an object that holds variables is not read: whoever may write a Source would
    /// otherwise read what its objects may not be.
    fn holder_refusal(&self, config: &SourceConfig) -> Option<String> {
        let allowed = AllowList::from(self.objects.clone()?);
        let mut holders = config.substitution.iter().flat_map(|substitution| &substitution.from);
        holders.find_map(|holder| {
            let kind = GroupKind::new("", holder.kind.as_str());
            let id = ObjectId::new(&kind, Some(holder.namespace.as_str()), holder.name.as_str());
            allowed.violation(&id, Some(KindScope::Namespaced))?;
            Some(format!(
                "substituteFrom: {holder} is not allowed: add its kind and namespace to `customSources.objects` of the \
                 configuration, or name one that is there"
            ))
        })
    }

    /// Returns the reason for which a location is not followed, in its author's terms.
    fn refusal(&self, location: &SourceLocation) -> Option<String> {
        let here = match location {
            SourceLocation::Directory(_) => true,
            SourceLocation::Git { url, .. } => {
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
        if let SourceLocation::Git { url, .. } = location
            && !url.has_used_transport()
        {
            return Some(
                "its transport is not used: write https://, ssh:// or user@host:path; a remote helper such as `ext::` \
                 is a program and never run, and http:// and git:// do not tell who answers"
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
        let SourceLocation::Git { reference: Some(reference), .. } = location else { return None };
        (!is_pushed(reference, here)).then(|| {
            format!(
                "its reference `{reference}` is not allowed: with `customSources.allow` it is a branch or a tag, as \
                 anybody may get commits and other references into a repository; write refs/heads/NAME or \
                 refs/tags/NAME"
            )
        })
    }
}

/// Returns whether only those who may push to the repository itself can set a reference.
///
/// Servers serve the commits of forks by their ids, and proposals under references such as
/// `refs/pull/1/head`. A repository on this host accepts an abbreviated id too. The short name
/// `fork/main` may mean a branch there that was fetched from somewhere else.
fn is_pushed(reference: &str, here: bool) -> bool {
    let shortest = if here { 4 } else { 40 };
    let is_id =
        (shortest..=40).contains(&reference.len()) && reference.bytes().all(|b| b.is_ascii_hexdigit());
    let is_named = ["refs/heads/", "refs/tags/"].iter().any(|folder| reference.starts_with(folder));
    let may_be_fetched = reference.starts_with("refs/") || here && reference.contains('/');
    !is_id && (is_named || !may_be_fetched)
}

impl From<CustomSources> for CustomSourcePolicy {
    fn from(follow: CustomSources) -> Self {
        Self { follow, fetch: FetchSpec::default().of_custom_sources(), ..Self::default() }
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
            expecting = "a mapping with follow, allow, credentials, objects, keys, verify, defaultServiceAccount, \
                         serviceAccounts and fetch"
        )]
        struct CustomSourcePolicySpec {
            follow: CustomSources,
            #[serde(default)]
            allow: Option<Vec<UrlPrefix>>,
            #[serde(default)]
            credentials: BoundCredentials,
            // A key without a value must not allow everything.
            #[serde(default, deserialize_with = "require_value")]
            objects: Option<AllowSpec>,
            #[serde(default)]
            keys: BTreeMap<DnsLabel, PathBuf>,
            #[serde(default)]
            verify: Option<VerifySpec>,
            #[serde(default)]
            default_service_account: Option<ServiceAccountName>,
            #[serde(default)]
            service_accounts: Option<BTreeSet<ServiceAccountName>>,
            #[serde(default)]
            fetch: FetchSpec,
        }
        let all = CustomSourcePolicySpec::deserialize(MapAccessDeserializer::new(map))?;
        let verify = all
            .verify
            .map(|verify| verify.with_named_keys(&all.keys))
            .transpose()
            .map_err(de::Error::custom)?;
        Ok(CustomSourcePolicy {
            follow: all.follow,
            allow: all.allow,
            credentials: all.credentials,
            objects: all.objects,
            keys: all.keys,
            verify,
            default_service_account: all.default_service_account,
            service_accounts: all.service_accounts,
            fetch: all.fetch.of_custom_sources(),
        })
    }
}

/// The policy for the objects of a source whose declaring object is deleted.
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
    /// The finalizers.
    pub finalizers: Vec<String>,
    /// Is set once it is being deleted.
    pub deleted: bool,
    /// The policy for its objects on deletion.
    pub policy: DeletionPolicy,
    /// The allow-list, valid even where nothing else of it is understood.
    pub allow: AllowList,
    /// The configuration, or the reason for which it cannot be followed.
    pub config: Result<SourceConfig, String>,
    /// The service account that it acts as, or why it may not.
    account: Result<Option<ServiceAccountName>, String>,
    /// Its status as it was read.
    pub status: Value,
}

/// The state of an object's finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerState {
    /// It is as it should be.
    Correct,
    /// It is put there; the source is followed from then on.
    Missing,
    /// It is taken off.
    Unneeded,
    /// It is taken off when nothing is left to delete.
    KeptUntilEmpty,
}

#[derive(Deserialize)]
struct CustomSourceDocument {
    metadata: CustomSourceMetadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomSourceMetadata {
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
        let document: CustomSourceDocument = serde_json::from_value(object).ok()?;
        let CustomSourceMetadata { name, uid, resource_version, generation, finalizers, deletion_timestamp } =
            document.metadata;
        let mut spec = document.spec;
        let policy = take_policy(&mut spec);
        let allow = allowed.bound_allow_list(allow(&spec));
        // As whom it acts is known where nothing else of it is understood.
        let named = spec.get("serviceAccountName").and_then(Value::as_str).map(str::parse);
        let named = named.transpose().map_err(|error| format!("spec.serviceAccountName: {error}"));
        let account = named.and_then(|named| allowed.account(named));
        let config = check_spec(&name, spec, allowed)
            .and_then(|config| Ok(SourceConfig { service_account: account.clone()?, ..config }))
            .and_then(require_account_for_secrets)
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

    /// Returns whether the object waits for the deletion of its source's objects.
    pub fn is_waiting_for_deletion(&self) -> bool {
        self.finalizers.iter().any(|one| one == SOURCE_FINALIZER)
    }

    /// Returns the state of its finalizer. A source that only observes has nothing to delete, nor
    /// has one whose name no source can have.
    pub fn finalizer_state(&self) -> FinalizerState {
        let observes = self.config.as_ref().is_ok_and(|config| config.mode == SourceMode::Observe);
        let owns = !observes && self.name.parse::<DnsLabel>().is_ok();
        match (self.policy, self.is_waiting_for_deletion()) {
            (DeletionPolicy::Delete, true) if self.deleted && owns => FinalizerState::KeptUntilEmpty,
            (DeletionPolicy::Delete, true) if owns => FinalizerState::Correct,
            // The API server takes none for what is deleted.
            (DeletionPolicy::Delete, false) if !self.deleted && owns && self.config.is_ok() => {
                FinalizerState::Missing
            }
            (_, true) => FinalizerState::Unneeded,
            (_, false) => FinalizerState::Correct,
        }
    }

    /// Returns the finalizers that it should have; none where they are right.
    pub fn finalizers(&self, tie: FinalizerState) -> Option<Vec<String>> {
        let mut finalizers = self.finalizers.clone();
        match tie {
            FinalizerState::Correct => return None,
            FinalizerState::Missing => finalizers.push(SOURCE_FINALIZER.to_owned()),
            FinalizerState::Unneeded | FinalizerState::KeptUntilEmpty => {
                finalizers.retain(|one| one != SOURCE_FINALIZER);
            }
        }
        Some(finalizers)
    }

    /// Returns the configuration to follow. None before the finalizer is there, as the objects
    /// could not be deleted in time. None of a deleted source that leaves its objects.
    pub fn followed_config(&self) -> Option<SourceConfig> {
        let config = self.config.as_ref().ok();
        match self.finalizer_state() {
            FinalizerState::Missing => None,
            FinalizerState::KeptUntilEmpty => {
                let name: DnsLabel = self.name.parse().ok()?;
                // Its objects are deleted with its own rights and no others.
                let account = self.account.clone().ok()?;
                let ending = || SourceConfig {
                    service_account: account,
                    ..SourceConfig::ending_config(&name, &self.allow)
                };
                let config = config.cloned().unwrap_or_else(ending);
                Some(SourceConfig { life: SourceLifecycle::Deleting, prune: PrunePolicy::On, ..config })
            }
            FinalizerState::Correct | FinalizerState::Unneeded if self.deleted => None,
            FinalizerState::Correct | FinalizerState::Unneeded => config.cloned(),
        }
    }
}

impl SourceConfig {
    /// Returns a source that ends, and of which only the name is understood. Its objects are known
    /// from the cluster alone.
    pub fn ending_config(name: &DnsLabel, allow: &AllowList) -> Self {
        Self {
            name: name.to_string(),
            location: SourceLocation::unset(),
            render: RenderMode::None,
            helm: HelmSpec::default(),
            renderers: RendererConfig::default(),
            fetch: FetchConfig::default(),
            namespace: DnsLabel::unnamed().into(),
            allow: allow.clone(),
            service_account: None,
            credentials: CredentialUse::Nothing,
            substitution: None,
            prune: PrunePolicy::On,
            adopt: AdoptPolicy::Never,
            opt_out: OptOutPolicy::default(),
            blast_radius: BlastRadius::default(),
            prune_delay: super::DurationOrZero::new(engine::PRUNE_DELAY),
            budget: NarrowingSpec::default(),
            mode: SourceMode::Enforce,
            life: SourceLifecycle::Deleting,
        }
    }
}

/// Returns the allow-list of a spec, whatever else is in it. One that is not understood allows
/// nothing, so that nothing is deleted.
fn allow(spec: &Value) -> AllowList {
    let read = spec.get("allow").map_or(Ok(AllowSpec::default()), AllowSpec::deserialize);
    read.map_or_else(|_| AllowList::deny_all(), AllowList::from)
}

/// Returns a source that shows no values of Secrets by rhumb's own rights. By those, whoever may
/// write a Source would put any Secret that rhumb may read into a ConfigMap.
fn require_account_for_secrets(config: SourceConfig) -> Result<SourceConfig, String> {
    if config.service_account.is_some() {
        return Ok(config);
    }
    let is_shown = |holder: &&VariableHolder| {
        holder.kind == VariableHolderKind::Secret && holder.secrecy == VariableSecrecy::Open
    };
    let mut holders = config.substitution.iter().flat_map(|substitution| &substitution.from);
    if let Some(holder) = holders.find(is_shown) {
        return Err(format!(
            "substituteFrom: {holder} with `sensitive: false` is not allowed without a service account, whose rights \
             say which Secrets it may show: name one as serviceAccountName, or write the source into the file of the \
             configuration"
        ));
    }
    Ok(config)
}

/// Takes the key out of a spec that the file does not have.
fn take_policy(spec: &mut Value) -> Result<DeletionPolicy, String> {
    let policy = spec.as_object_mut().and_then(|spec| spec.remove("deletionPolicy"));
    let wrong = |error: serde_json::Error| format!("spec.deletionPolicy: {error}");
    policy.map_or(Ok(DeletionPolicy::Orphan), |policy| serde_json::from_value(policy).map_err(wrong))
}

fn check_spec(name: &str, spec: Value, allowed: &CustomSourcePolicy) -> Result<SourceConfig, String> {
    let name: DnsLabel = name.parse().map_err(|error| format!("metadata.name: {error}"))?;
    // The words of the error may show a value that has a password in it.
    let wrong = |error: serde_json::Error| mask_likely_secrets(&format!("spec: {error}"));
    let mut spec: SourceSpec = serde_json::from_value(spec).map_err(wrong)?;
    if spec.fetch != FetchSpec::default() {
        return Err(
            "spec.fetch: a source in the cluster does not say what may be fetched: `customSources.fetch` of the \
             configuration does"
                .to_owned(),
        );
    }
    allowed.name_keys(&mut spec)?;
    let config = spec
        .into_config(&name, &Environment::default())
        .map_err(|error| mask_likely_secrets(&error.to_string()))?;
    match allowed.refusal(&config.location).or_else(|| allowed.holder_refusal(&config)) {
        Some(why) => Err(why),
        None => Ok(SourceConfig { fetch: allowed.fetch.clone(), ..config }),
    }
}

impl super::Config {
    /// Returns the configuration with the sources in the cluster beside its own. All are rendered by
    /// its programs. A name in both is the file's.
    #[must_use]
    pub fn with_custom_sources(&self, custom: &[CustomSource]) -> Self {
        let mut joined = self.clone();
        let configs = custom.iter().filter(|custom| !self.has_source(&custom.name));
        let rendered = |source| SourceConfig { renderers: self.renderers.clone(), ..source };
        joined.sources.extend(configs.filter_map(CustomSource::followed_config).map(rendered));
        joined
    }

    /// Returns whether nothing is ever written: no source writes, and none can come from the
    /// cluster that does.
    pub fn is_observe_only(&self) -> bool {
        !self.custom_sources.is_open() && self.sources.iter().all(|source| source.mode == SourceMode::Observe)
    }

    /// Returns whether the file has a source of this name.
    pub fn has_source(&self, name: &str) -> bool {
        self.sources.iter().any(|source| source.name == name)
    }
}

/// Returns the path of all of them in a namespace.
pub(crate) fn custom_path(namespace: &str) -> String {
    format!("/apis/{CONFIG_API_VERSION}/namespaces/{namespace}/sources")
}

#[cfg(test)]
mod tests;
