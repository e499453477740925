//! Sources that stand in the cluster, as objects of kind `Source`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{API_VERSION, Environment, Location, Name, SourceConfig, SourceSpec};
use crate::fields::blurred;

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

/// An object of kind `Source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomSource {
    /// Its name.
    pub name: String,
    /// The generation of its spec.
    pub generation: i64,
    /// What it asks for, or why that cannot be followed.
    pub config: Result<SourceConfig, String>,
    /// Its status as it was read.
    pub status: Value,
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
struct Metadata {
    name: String,
    #[serde(default)]
    generation: i64,
}

impl CustomSource {
    /// Reads an object as the API server shows it; none where it is no object.
    pub fn read(object: Value, allowed: CustomSources) -> Option<Self> {
        let document: Document = serde_json::from_value(object).ok()?;
        let Metadata { name, generation } = document.metadata;
        let config = checked(&name, document.spec, allowed);
        Some(Self { name, generation, config, status: document.status })
    }
}

fn checked(name: &str, spec: Value, allowed: CustomSources) -> Result<SourceConfig, String> {
    let name: Name = name.parse().map_err(|error| format!("metadata.name: {error}"))?;
    // The words of the error may show a value that has a password in it.
    let wrong = |error: serde_json::Error| blurred(&format!("spec: {error}"));
    let spec: SourceSpec = serde_json::from_value(spec).map_err(wrong)?;
    let config = spec.named(&name, &Environment::default()).map_err(|error| blurred(&error.to_string()))?;
    let here = match &config.location {
        Location::Directory(_) => true,
        Location::Git { url, .. } => {
            !url.is_url() || url.expose().trim_start().to_ascii_lowercase().starts_with("file:")
        }
    };
    if here && allowed != CustomSources::Any {
        return Err(
            "a source in the cluster names a repository by URL: directories and repositories of the host \
                    are only followed with `customSources: any`"
                .to_owned(),
        );
    }
    Ok(config)
}

impl super::Config {
    /// The configuration with the sources that stand in the cluster beside its own. A name in both is the file's.
    #[must_use]
    pub fn joined(&self, custom: &[CustomSource]) -> Self {
        let mut joined = self.clone();
        let configs = custom.iter().filter(|custom| !self.names(&custom.name));
        joined.sources.extend(configs.filter_map(|custom| custom.config.as_ref().ok().cloned()));
        joined
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

    fn read(name: &str, spec: Value, allowed: CustomSources) -> Result<SourceConfig, String> {
        let object = json!({ "metadata": { "name": name, "generation": 3 }, "spec": spec });
        let custom = CustomSource::read(object, allowed).unwrap();
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
    fn a_name_in_both_is_the_files() {
        let custom = |name: &str, spec: Value| {
            CustomSource::read(json!({ "metadata": { "name": name }, "spec": spec }), CustomSources::Any)
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
}
