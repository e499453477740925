//! Sources that stand in the cluster, as objects of kind `Source`.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{API_VERSION, Environment, Location, Mode, Name, Narrowing, SourceConfig, SourceSpec, UrlPrefix};
use crate::engine::{self, Adopt, BlastRadius, Life, OptOut, Prune};
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
}

impl CustomSourcePolicy {
    /// Says that the cluster is asked for them.
    pub fn is_open(&self) -> bool {
        self.follow != CustomSources::None
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
        let covered = allow.iter().any(|prefix| prefix.covers(location));
        (!covered).then(|| {
            "its address is not allowed: add a prefix of it to `customSources.allow` of the configuration, \
             or name a repository below one that is there"
                .to_owned()
        })
    }
}

impl From<CustomSources> for CustomSourcePolicy {
    fn from(follow: CustomSources) -> Self {
        Self { follow, allow: None }
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
        #[serde(deny_unknown_fields, expecting = "a mapping with follow and allow")]
        struct Both {
            follow: CustomSources,
            #[serde(default)]
            allow: Option<Vec<UrlPrefix>>,
        }
        let both = Both::deserialize(MapAccessDeserializer::new(map))?;
        Ok(CustomSourcePolicy { follow: both.follow, allow: both.allow })
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
    /// What it asks for, or why that cannot be followed.
    pub config: Result<SourceConfig, String>,
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
        let config = checked(&name, spec, allowed);
        Some(Self {
            name,
            uid,
            version: resource_version,
            generation,
            finalizers,
            deleted: deletion_timestamp.is_some(),
            policy: *policy.as_ref().unwrap_or(&DeletionPolicy::Orphan),
            config: policy.and(config),
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
                let config = config.cloned().unwrap_or_else(|| nowhere(&name));
                Some(SourceConfig { life: Life::Ends, prune: Prune::On, ..config })
            }
            Tie::Right | Tie::Needless if self.deleted => None,
            Tie::Right | Tie::Needless => config.cloned(),
        }
    }
}

/// A source of which only the name can be understood: what it has is known from the cluster alone.
fn nowhere(name: &Name) -> SourceConfig {
    SourceConfig {
        name: name.to_string(),
        location: Location::nowhere(),
        namespace: Name::unnamed().into(),
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
    let spec: SourceSpec = serde_json::from_value(spec).map_err(wrong)?;
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    fn read(name: &str, spec: Value, allowed: impl Into<CustomSourcePolicy>) -> Result<SourceConfig, String> {
        let object = json!({ "metadata": { "name": name, "generation": 3 }, "spec": spec });
        let custom = CustomSource::read(object, &allowed.into()).unwrap();
        assert_eq!((&*custom.name, custom.generation, &custom.status), (name, 3, &Value::Null));
        custom.config
    }

    #[test]
    fn an_object_is_a_source_as_of_the_file() {
        let url = "https://git.example.org/shop.git";
        let spec = json!({ "git": { "url": url, "ref": "main", "interval": "5m" }, "observe": true });
        let config = read("shop", spec, CustomSources::Remote).unwrap();
        assert!(
            matches!(&config.location, Location::Git { url: u, reference: Some(r), .. } if u.expose() == url && r == "main")
        );
        assert_eq!((&*config.name, config.mode), ("shop", crate::config::Mode::Observe));
    }

    #[test]
    fn what_cannot_be_followed_says_why() {
        #[track_caller]
        fn check(name: &str, spec: Value, allowed: CustomSources, why: &str) {
            let found = read(name, spec, allowed).map(|config| config.name);
            assert!(found.as_ref().is_err_and(|text| text.contains(why)), "{found:?}");
        }
        let remote = json!({ "git": { "url": "https://a.example/b" } });
        check("a.b", remote.clone(), CustomSources::Remote, "metadata.name: not a name");
        check("a", Value::Null, CustomSources::Remote, "spec: invalid type");
        check("a", json!({}), CustomSources::Remote, "neither `git` nor `directory`");
        check("a", json!({ "git": remote["git"], "directory": "/a" }), CustomSources::Any, "both");
        check("a", json!({ "prune": "no" }), CustomSources::Remote, "spec: ");
        let secret = read("a", json!({ "git": "https://a:canary@b/c" }), CustomSources::Any).unwrap_err();
        assert!(secret.contains("https://***@b/c") && !secret.contains("canary"), "{secret}");
        for here in [json!({ "directory": "/etc" }), json!({ "git": { "url": "/srv/a.git" } })] {
            check("a", here.clone(), CustomSources::Remote, "`customSources: any`");
            assert!(read("a", here, CustomSources::Any).is_ok());
        }
        for url in ["file:///srv/a.git", "FILE:///srv/a.git", "file:/srv/a.git", "a/b"] {
            check("a", json!({ "git": { "url": url } }), CustomSources::Remote, "`customSources: any`");
        }
    }

    #[test]
    fn only_what_the_configuration_allows_is_named() {
        #[track_caller]
        fn check(follow: CustomSources, allow: &[&str], spec: Value, allowed: bool) {
            let allow = allow.iter().map(|prefix| prefix.parse().unwrap()).collect();
            let found = read("a", spec.clone(), CustomSourcePolicy { follow, allow: Some(allow) });
            assert_eq!(found.is_ok(), allowed, "{spec}: {found:?}");
        }
        let git = |url: &str| json!({ "git": { "url": url } });
        let team = ["https://git.example.org/team-a/", "/srv/git"];
        check(CustomSources::Remote, &team, git("https://git.example.org/team-a/shop.git"), true);
        check(CustomSources::Remote, &team, git("https://git.example.org/team-b/shop.git"), false);
        check(CustomSources::Remote, &team, git("https://git.example.org/team-a/../team-b"), false);
        check(CustomSources::Remote, &team, git("https://token@git.example.org/team-a/shop.git"), false);
        check(CustomSources::Remote, &team, git("file:///srv/git/shop.git"), false);
        check(CustomSources::Any, &team, git("file:///srv/git/shop.git"), true);
        check(CustomSources::Any, &team, json!({ "directory": "/srv/git/shop" }), true);
        check(CustomSources::Any, &team, json!({ "directory": "/etc" }), false);
        check(CustomSources::Any, &[], git("https://git.example.org/team-a/shop.git"), false);
    }

    #[test]
    fn a_name_in_both_is_the_files() {
        let custom = |name: &str, spec: Value| {
            CustomSource::read(
                json!({ "metadata": { "name": name }, "spec": spec }),
                &CustomSources::Any.into(),
            )
            .unwrap()
        };
        let all = [
            custom("a", json!({ "directory": "/cluster" })),
            custom("b", json!({ "directory": "/cluster" })),
            custom("c", json!({})),
        ];
        let mut config = Config::default();
        config.sources.extend(custom("a", json!({ "directory": "/file" })).config);
        let joined = config.joined(&all);
        let places: Vec<_> = joined.sources.iter().map(|source| (&*source.name, &source.location)).collect();
        let (file, cluster) = (Location::Directory("/file".into()), Location::Directory("/cluster".into()));
        assert_eq!(places, [("a", &file), ("b", &cluster)]);
    }

    fn object(metadata: Value, policy: &str, spec: Value) -> CustomSource {
        let mut object =
            json!({ "metadata": { "name": "shop", "uid": "u", "resourceVersion": "7" }, "spec": spec });
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        if !policy.is_empty() {
            object["spec"]["deletionPolicy"] = json!(policy);
        }
        CustomSource::read(object, &CustomSources::Any.into()).unwrap()
    }

    #[test]
    fn the_finalizer_is_there_exactly_as_long_as_something_is_to_be_deleted() {
        #[track_caller]
        fn check(metadata: &Value, policy: &str, observe: bool, tie: Tie, life: Option<Life>) {
            let custom =
                object(metadata.clone(), policy, json!({ "directory": "/shop", "observe": observe }));
            assert_eq!(custom.tie(), tie);
            assert_eq!(custom.followed().map(|config| config.life), life);
        }
        let (lives, ends) = (Some(Life::Lives), Some(Life::Ends));
        let fresh = json!({});
        let tied = json!({ "finalizers": ["a", FINALIZER] });
        let deleted = json!({ "finalizers": ["a"], "deletionTimestamp": "2030-01-01T00:00:00Z" });
        let going = json!({ "finalizers": [FINALIZER], "deletionTimestamp": "2030-01-01T00:00:00Z" });
        for orphan in ["", "Orphan"] {
            check(&fresh, orphan, false, Tie::Right, lives);
            check(&tied, orphan, false, Tie::Needless, lives);
            check(&deleted, orphan, false, Tie::Right, None);
            check(&going, orphan, false, Tie::Needless, None);
        }
        check(&fresh, "Delete", false, Tie::Missing, None);
        check(&tied, "Delete", false, Tie::Right, lives);
        check(&going, "Delete", false, Tie::UntilEmpty, ends);
        // Without its finalizer it was never followed, or a person took it off.
        check(&deleted, "Delete", false, Tie::Right, None);
        check(&fresh, "Delete", true, Tie::Right, lives);
        check(&tied, "Delete", true, Tie::Needless, lives);
        check(&going, "Delete", true, Tie::Needless, None);
        let custom = object(tied, "", json!({}));
        assert_eq!(custom.finalizers(Tie::Needless), Some(vec!["a".to_owned()]));
        assert_eq!(custom.finalizers(Tie::Right), None);
        let both = Some(vec!["a".to_owned(), FINALIZER.to_owned()]);
        assert_eq!(object(deleted, "", json!({})).finalizers(Tie::Missing), both);
    }

    #[test]
    fn what_cannot_be_understood_is_not_begun_and_can_be_deleted() {
        let going = json!({ "finalizers": [FINALIZER], "deletionTimestamp": "2030-01-01T00:00:00Z" });
        let unknown = json!({ "colour": "red" });
        // It came with its finalizer, and was never followed.
        let mut named = going.clone();
        named["name"] = json!("a.b");
        let spec = json!({ "directory": "/shop" });
        assert_eq!(object(named, "Delete", spec).tie(), Tie::Needless);
        assert_eq!(object(json!({}), "Delete", unknown.clone()).tie(), Tie::Right);
        let custom = object(going.clone(), "Delete", unknown);
        let config = custom.followed().unwrap();
        assert_eq!((&*config.name, config.life, config.prune), ("shop", Life::Ends, Prune::On));
        let kept = object(going.clone(), "Delete", json!({ "directory": "/shop", "prune": false }));
        assert_eq!(kept.followed().unwrap().prune, Prune::On);
        // Whoever writes neither word means nothing that could be undone.
        let unclear = object(going, "delete", json!({ "directory": "/shop" }));
        assert_eq!((unclear.policy, unclear.tie()), (DeletionPolicy::Orphan, Tie::Needless));
        assert!(unclear.config.unwrap_err().starts_with("spec.deletionPolicy: unknown variant `delete`"));
    }
}
