//! The documents of the configuration file, as serde knows them. [`SourceSpec`] is the one form of
//! a source: of flags, of the file and of the custom resource alike.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::allow::require_value;
use super::duration::parse_interval;
use super::notify::NotifySpec;
use super::serve::ServeSpec;
use super::{
    AllowSpec, CredentialUse, CustomSourcePolicy, DnsLabel, DurationOrZero, Environment, FetchSpec, GitUrl,
    HelmSpec, LeaseMode, PositiveDuration, ProgramSpec, RenderMode, RendererConfig, SandboxMode,
    ServiceAccountName, SourceConfig, SourceLocation, SourceMode, SubstituteFromSpec, SubstitutionConfig,
    TreePath, VariableName, VerifySpec,
};
use crate::engine::{
    self, AdoptPolicy, BlastRadius, OnFailure, OptOutPolicy, PodAmount, PrunePolicy, SourceLifecycle,
};

/// The version of the documents.
pub(crate) const CONFIG_API_VERSION: &str = "rhumb.dev/v1alpha1";

/// The text of a `Source`'s spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    default,
    deny_unknown_fields,
    expecting = "a mapping with git or directory"
)]
pub(crate) struct SourceSpec {
    /// A repository; it or `directory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSpec>,
    /// A directory; it or `git`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The part of it that is rendered before it is read.
    #[serde(skip_serializing_if = "RenderMode::is_default")]
    pub render: RenderMode,
    /// The settings of its charts.
    #[serde(skip_serializing_if = "HelmSpec::is_default")]
    pub helm: HelmSpec,
    /// The charts of servers that it may use; not for a source in the cluster.
    #[serde(skip_serializing_if = "FetchSpec::is_default")]
    pub fetch: FetchSpec,
    /// The namespace of objects that name none.
    pub namespace: DnsLabel,
    /// The allow-list, whatever its manifests say.
    #[serde(skip_serializing_if = "is_open")]
    pub allow: AllowSpec,
    /// The service account, in rhumb's own namespace, as which its objects are read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<ServiceAccountName>,
    /// Variables that are put in place of `${NAME}` in its manifests.
    #[serde(deserialize_with = "require_value", skip_serializing_if = "Option::is_none")]
    pub substitute: Option<BTreeMap<VariableName, String>>,
    /// Objects that hold more of them.
    #[serde(deserialize_with = "require_value", skip_serializing_if = "Option::is_none")]
    pub substitute_from: Option<Vec<SubstituteFromSpec>>,
    /// Indicates whether objects are deleted that the source no longer names.
    pub prune: bool,
    /// The policy for objects that exist already.
    pub adopt: AdoptPolicy,
    /// Indicates whether what somebody puts on a live object may keep it from being changed and
    /// repaired.
    pub opt_out: OptOutPolicy,
    /// The number of objects that may be pruned without a confirmation.
    pub blast_radius: BlastRadius,
    /// The time for which other sources of the cluster may take over an object that this one no
    /// longer names, before it is deleted.
    pub prune_delay: DurationOrZero,
    /// Bounds on its rollouts beside those of the whole cluster.
    #[serde(skip_serializing_if = "is_unset")]
    pub budget: NarrowingSpec,
    /// Indicates whether the source does everything but write.
    pub observe: bool,
}

fn is_open(allow: &AllowSpec) -> bool {
    *allow == AllowSpec::default()
}

fn is_unset(narrowing: &NarrowingSpec) -> bool {
    *narrowing == NarrowingSpec::default()
}

impl Default for SourceSpec {
    fn default() -> Self {
        Self {
            git: None,
            directory: None,
            render: RenderMode::default(),
            helm: HelmSpec::default(),
            fetch: FetchSpec::default(),
            namespace: DnsLabel::unnamed(),
            allow: AllowSpec::default(),
            service_account_name: None,
            substitute: None,
            substitute_from: None,
            prune: true,
            adopt: AdoptPolicy::default(),
            opt_out: OptOutPolicy::default(),
            blast_radius: BlastRadius::default(),
            prune_delay: DurationOrZero::new(engine::PRUNE_DELAY),
            budget: NarrowingSpec::default(),
            observe: false,
        }
    }
}

/// A repository, as a `Source` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with url")]
pub(crate) struct GitSpec {
    /// URL or path.
    pub url: GitUrl,
    /// Branch, tag or commit; none for HEAD.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The folder inside it.
    #[serde(default, skip_serializing_if = "TreePath::is_root")]
    pub path: TreePath,
    /// The polling interval of a remote repository.
    #[serde(default = "GitSpec::default_interval", deserialize_with = "parse_interval")]
    pub interval: PositiveDuration,
    /// The required signatures of commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifySpec>,
}

impl GitSpec {
    /// Returns a source of which nothing but the location is given.
    pub(crate) fn new(url: GitUrl) -> Self {
        Self {
            url,
            reference: None,
            path: TreePath::default(),
            interval: Self::default_interval(),
            verify: None,
        }
    }

    const fn default_interval() -> PositiveDuration {
        PositiveDuration::from_seconds(60)
    }
}

/// The error of a spec whose keys do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpecError {
    /// Neither a repository nor a directory.
    #[error("the source has neither `git` nor `directory`")]
    NoLocation,
    /// Both a repository and a directory.
    #[error("the source has both `git` and `directory`")]
    TwoLocations,
    /// A ConfigMap whose values are to be secrets.
    #[error("`substituteFrom` has a ConfigMap with `sensitive: true`, and its values may be shown")]
    SensitiveConfigMap,
}

impl SpecError {
    /// Returns the code.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::NoLocation | Self::TwoLocations => "config-location",
            Self::SensitiveConfigMap => "config-sensitive",
        }
    }

    /// Returns the remedy.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::NoLocation | Self::TwoLocations => {
                "give one of the two: git for commits, directory for files on disk"
            }
            Self::SensitiveConfigMap => "keep secrets in a Secret, or take `sensitive` away",
        }
    }
}

impl SourceSpec {
    /// Returns the checked form, with paths that are independent of the file's folder.
    ///
    /// # Errors
    ///
    /// Exactly one of `git` and `directory` must be given, and no ConfigMap is sensitive.
    pub(crate) fn into_config(
        self,
        name: &DnsLabel,
        environment: &Environment,
    ) -> Result<SourceConfig, SpecError> {
        let location = match (self.git, self.directory) {
            (None, None) => return Err(SpecError::NoLocation),
            (Some(_), Some(_)) => return Err(SpecError::TwoLocations),
            (None, Some(path)) => SourceLocation::Directory(environment.resolve(&path)),
            (Some(git), None) => SourceLocation::Git {
                url: git.url.resolve(environment),
                reference: git.reference,
                path: git.path,
                interval: git.interval,
                verify: git.verify.map(|verify| verify.resolve(environment)),
            },
        };
        let holders = self.substitute_from.as_deref().unwrap_or_default();
        if holders.iter().any(SubstituteFromSpec::is_sensitive_config_map) {
            return Err(SpecError::SensitiveConfigMap);
        }
        Ok(SourceConfig {
            name: name.to_string(),
            location,
            render: self.render,
            helm: self.helm,
            renderers: RendererConfig::default(),
            fetch: self.fetch.of_file(),
            substitution: SubstitutionConfig::of(self.substitute, self.substitute_from, &self.namespace),
            namespace: self.namespace.into(),
            allow: self.allow.into(),
            credentials: CredentialUse::Own,
            service_account: self.service_account_name,
            prune: if self.prune { PrunePolicy::On } else { PrunePolicy::Off },
            adopt: self.adopt,
            opt_out: self.opt_out,
            blast_radius: self.blast_radius,
            prune_delay: self.prune_delay,
            budget: self.budget,
            mode: if self.observe { SourceMode::Observe } else { SourceMode::Enforce },
            life: SourceLifecycle::Active,
        })
    }
}

/// The limits of requests to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub struct ApiSpec {
    /// Calls per second, on average.
    #[serde(deserialize_with = "positive")]
    pub qps: u32,
    /// Calls at once, above the average.
    #[serde(deserialize_with = "positive")]
    pub burst: u32,
    /// Calls under way at a time.
    #[serde(deserialize_with = "positive")]
    pub concurrency: u32,
    /// The time limit of one call.
    pub timeout: PositiveDuration,
}

impl Default for ApiSpec {
    fn default() -> Self {
        Self { qps: 50, burst: 100, concurrency: 8, timeout: PositiveDuration::from_seconds(30) }
    }
}

/// The rollout budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub struct BudgetSpec {
    /// Workloads whose pods are being replaced at a time.
    #[serde(deserialize_with = "positive")]
    pub max_workloads: u32,
    /// Pods of managed workloads that may be unavailable at a time.
    pub max_unavailable: PodAmount,
    /// Rollouts that may begin in any minute.
    #[serde(deserialize_with = "positive")]
    pub starts_per_minute: u32,
    /// The time for which a workload must be healthy before its rollout succeeds.
    pub soak: DurationOrZero,
    /// The longest time that a rollout may go without any progress.
    pub deadline: PositiveDuration,
    /// The action after a failed rollout.
    pub on_failure: OnFailure,
    /// Narrower bounds, by namespace.
    pub namespaces: BTreeMap<DnsLabel, NarrowingSpec>,
}

impl Default for BudgetSpec {
    fn default() -> Self {
        let engine::Budget {
            max_workloads,
            max_unavailable,
            starts_per_minute,
            soak,
            deadline,
            on_failure,
            ..
        } = engine::Budget::default();
        Self {
            max_workloads,
            max_unavailable,
            starts_per_minute,
            soak: DurationOrZero::new(soak),
            deadline: PositiveDuration::from_seconds(deadline.as_secs()),
            on_failure,
            namespaces: BTreeMap::new(),
        }
    }
}

impl From<&BudgetSpec> for engine::Budget {
    fn from(budget: &BudgetSpec) -> Self {
        let namespaces = budget.namespaces.iter();
        Self {
            max_workloads: budget.max_workloads,
            max_unavailable: budget.max_unavailable,
            starts_per_minute: budget.starts_per_minute,
            soak: budget.soak.get(),
            deadline: budget.deadline.get(),
            on_failure: budget.on_failure,
            namespaces: namespaces
                .map(|(name, narrowing)| (name.as_str().into(), narrowing.into()))
                .collect(),
        }
    }
}

/// Bounds of one source or namespace, beside those of the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub struct NarrowingSpec {
    /// As [`BudgetSpec::max_workloads`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_workloads: Option<NonZeroU32>,
    /// As [`BudgetSpec::max_unavailable`], of the pods of this source or namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<PodAmount>,
    /// As [`BudgetSpec::starts_per_minute`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_per_minute: Option<NonZeroU32>,
    /// Longer than [`BudgetSpec::soak`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<DurationOrZero>,
    /// Shorter than [`BudgetSpec::deadline`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<PositiveDuration>,
    /// `quarantine` where [`BudgetSpec::on_failure`] is `rollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

impl From<&NarrowingSpec> for engine::BudgetNarrowing {
    fn from(narrowing: &NarrowingSpec) -> Self {
        Self {
            max_workloads: narrowing.max_workloads.map(NonZeroU32::get),
            max_unavailable: narrowing.max_unavailable,
            starts_per_minute: narrowing.starts_per_minute.map(NonZeroU32::get),
            soak: narrowing.soak.map(DurationOrZero::get),
            deadline: narrowing.deadline.map(PositiveDuration::get),
            on_failure: narrowing.on_failure,
        }
    }
}

/// A document of kind `Configuration`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping")]
pub(super) struct ConfigurationDocument {
    #[serde(rename = "apiVersion")]
    _version: ApiVersion,
    #[serde(rename = "kind")]
    _kind: String,
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) context: Option<String>,
    pub(super) state_directory: Option<PathBuf>,
    #[serde(default = "DnsLabel::system_namespace")]
    pub(super) namespace: DnsLabel,
    #[serde(default = "default_resync", deserialize_with = "parse_interval")]
    pub(super) resync: PositiveDuration,
    #[serde(default)]
    pub(super) api: ApiSpec,
    #[serde(default)]
    pub(super) budget: BudgetSpec,
    #[serde(default)]
    pub(super) notify: Vec<NotifySpec>,
    #[serde(default)]
    pub(super) leases: LeaseMode,
    #[serde(default)]
    pub(super) custom_sources: CustomSourcePolicy,
    #[serde(default)]
    pub(super) serve: ServeSpec,
    #[serde(default)]
    pub(super) programs: ProgramSpec,
    #[serde(default)]
    pub(super) sandbox: SandboxMode,
}

/// A document of kind `Source`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(super) struct SourceDocument {
    #[serde(rename = "apiVersion")]
    _version: ApiVersion,
    #[serde(rename = "kind")]
    _kind: String,
    pub(super) metadata: SourceMetadata,
    pub(super) spec: SourceSpec,
}

/// The metadata of a `Source`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping with name")]
pub(super) struct SourceMetadata {
    pub(super) name: DnsLabel,
}

/// Returns the default resync interval.
pub(super) const fn default_resync() -> PositiveDuration {
    PositiveDuration::from_seconds(5 * 60)
}

#[derive(Debug)]
struct ApiVersion;

impl<'de> Deserialize<'de> for ApiVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == CONFIG_API_VERSION {
            return Ok(Self);
        }
        Err(de::Error::invalid_value(de::Unexpected::Str(&text), &CONFIG_API_VERSION))
    }
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_u32(PositiveNumberVisitor)
}

struct PositiveNumberVisitor;

impl Visitor<'_> for PositiveNumberVisitor {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 1")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u32, E> {
        let right = u32::try_from(number).ok().filter(|number| *number > 0);
        right.ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u32, E> {
        let right = u32::try_from(number).ok().filter(|number| *number > 0);
        right.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
    }
}
