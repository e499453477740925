//! The definition of the kind `Source` in the cluster: the schema of
//! [`SourceSpec`](super::SourceSpec) for the API server.

use serde_json::{Value, json};

/// A length of time as Kubernetes' own configuration writes it.
const DURATION_PATTERN: &str = "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$";
/// A DNS label.
const LABEL_PATTERN: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";
/// A kind with its group, or all kinds of a group.
const KIND_PATTERN: &str = "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$|^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[*]$";

/// DNS labels with dots between them.
const ACCOUNT_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Returns the `CustomResourceDefinition`.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "sources.rhumb.dev" },
        "spec": {
            "group": "rhumb.dev",
            "scope": "Namespaced",
            "names": { "kind": "Source", "listKind": "SourceList", "plural": "sources", "singular": "source" },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": object() },
            }],
        },
    })
}

fn columns() -> Value {
    let of = |name, kind, path| json!({ "name": name, "type": kind, "jsonPath": path });
    json!([
        of("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        of("Revision", "string", ".status.revision"),
        of("Objects", "integer", ".status.objects"),
        of("Age", "date", ".metadata.creationTimestamp"),
    ])
}

fn object() -> Value {
    json!({
        "type": "object",
        "description": "The desired state of a cluster: the manifests of a git repository or a directory.",
        "required": ["spec"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object" },
            "spec": spec(),
            "status": status(),
        },
        "x-kubernetes-validations": [{
            "rule": "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
            "message": "metadata.name must be a DNS label of at most 63 characters",
        }],
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn matching(pattern: &str, description: &str) -> Value {
    json!({ "type": "string", "pattern": pattern, "description": description })
}

fn one_of_words(words: &[&str], description: &str) -> Value {
    json!({ "type": "string", "enum": words, "description": description })
}

fn switch(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX, "description": description })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "properties": {
            "git": git(),
            "directory": text("A directory of the host that rhumb runs on; it or `git`. Only followed with `customSources: any`."),
            "render": one_of_words(
                &["auto", "none", "kustomize", "helm"],
                "The folders that are rendered before they are read. Left out: auto, each folder with a kustomization or a chart.",
            ),
            "helm": helm(),
            "namespace": matching(LABEL_PATTERN, "The namespace of objects that name none. Left out: default."),
            "allow": allow(),
            "serviceAccountName": {
                "type": "string",
                "pattern": ACCOUNT_PATTERN,
                "maxLength": 253,
                "description": "The ServiceAccount, in rhumb's own namespace, that reads and writes the objects. Left out: that of the configuration, else rhumb's own.",
            },
            "substitute": {
                "type": "object",
                "description": "Variables that are put in place of ${NAME} in the manifests, with Flux's grammar. Left out, with substituteFrom: ${NAME} stays as it is.",
                "additionalProperties": { "type": "string" },
                "maxProperties": 256,
            },
            "substituteFrom": substitute_from(),
            "prune": switch("Deletes an object that the source no longer names. Left out: true."),
            "adopt": one_of_words(
                &["never", "if-unowned", "always"],
                "Adopts an object that exists already. Left out: if-unowned.",
            ),
            "optOut": one_of_words(
                &["allowed", "denied"],
                "Lets an annotation on a live object, for example rhumb.dev/hold, keep it from being changed and repaired. Left out: allowed.",
            ),
            "blastRadius": {
                "description": "The most that may be pruned without a person's confirmation: a count (10), a percentage (10%), or {count, percent}.",
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "pruneDelay": matching(DURATION_PATTERN, "The time in which other sources of the cluster may take over an object that this one drops, before it is deleted. It applies where there are other sources, and to a source of one folder of a repository. Left out: 30s."),
            "budget": narrowing(),
            "observe": switch("Decides everything and writes nothing. Left out: false."),
            "deletionPolicy": one_of_words(
                &["Orphan", "Delete"],
                "The fate of the objects when this Source is deleted: Orphan leaves them as they are, Delete deletes them first. Left out: Orphan.",
            ),
        },
        "x-kubernetes-validations": [{
            "rule": "has(self.git) != has(self.directory)",
            "message": "exactly one of git and directory must be given",
        }],
    })
}

fn helm() -> Value {
    let list = |description: &str| json!({ "type": "array", "maxItems": 256, "items": { "type": "string" }, "description": description });
    json!({
        "type": "object",
        "description": "The settings with which the charts of the source are rendered.",
        "properties": {
            "release": text("The name of the release. Left out: that of each chart's folder."),
            "namespace": matching(LABEL_PATTERN, "The namespace of the release, and of its objects that name none. Left out: that of the source."),
            "values": list("Files of values, in the chart's folder or else in the source's; later ones win."),
            "valuesInline": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "description": "Values that win over those of all files; up to 256 KiB. They are no place for secrets: many may read them.",
            },
            "kubeVersion": text("The version of Kubernetes that charts are given. Left out: that of the cluster."),
            "apiVersions": list("The versions and kinds that charts are given besides those that helm knows. Left out: those of the cluster."),
            "generated": one_of_words(
                &["refuse", "once"],
                "Values that a chart makes up anew at each render: refuse does not render the chart, once makes them once and leaves them alone. Left out: refuse.",
            ),
            "skipSchemaValidation": {
                "type": "boolean",
                "description": "Renders charts without a look at their schemas for values. Left out: false.",
            },
        },
    })
}

fn git() -> Value {
    json!({
        "type": "object",
        "description": "A git repository, whose commits are followed; it or `directory`.",
        "required": ["url"],
        "properties": {
            "url": {
                "type": "string",
                "minLength": 1,
                "pattern": "^\\P{Cc}*$",
                "description": "https://, ssh:// or user@host:path. It is no place for a password: many may read it.",
            },
            "ref": text("Branch, tag or commit. Left out: the repository's own HEAD."),
            "path": text("The folder inside it. Left out: all of it."),
            "interval": interval(),
            "verify": verify(),
        },
    })
}

fn verify() -> Value {
    json!({
        "type": "object",
        "description": "The signatures that commits must carry before they are followed. Left out: none, or those of `customSources.verify`.",
        "required": ["keys"],
        "properties": {
            "keys": matching(LABEL_PATTERN, "The keys whose signatures count: one of the names under `customSources.keys` of the configuration."),
            "mode": one_of_words(
                &["head", "range"],
                "The commits that must be signed: the newest (head), or each since the one that was accepted last (range). Left out: head.",
            ),
        },
    })
}

fn allow() -> Value {
    let list = |pattern: &str, description: &str| {
        let items = json!({ "type": "string", "pattern": pattern, "maxLength": 317 });
        json!({ "type": "array", "items": items, "maxItems": 256, "description": description })
    };
    json!({
        "type": "object",
        "description": "The most that the source may have, whatever its manifests say. An object that is not allowed is refused by name, and neither written, read nor deleted.",
        "properties": {
            "namespaces": list(LABEL_PATTERN, "The namespaces of its objects. Left out: any."),
            "kinds": list(KIND_PATTERN, "Their kinds: apps/Deployment, ConfigMap for one without a group, apps/* for all of a group. Left out: any."),
            "clusterScoped": {
                "description": "Cluster-scoped objects that it may have: true, false, or a list of kinds, for example [Namespace]. Left out: none where namespaces are named, else any.",
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

fn substitute_from() -> Value {
    json!({
        "type": "array",
        "description": "Objects with more variables. A later one wins over an earlier one, and substitute over all. They are in the source's own manifests. A ConfigMap that is not there is read from the cluster, and so is a Secret with sensitive set to false.",
        "maxItems": 64,
        "items": {
            "type": "object",
            "required": ["kind", "name"],
            "properties": {
                "kind": one_of_words(&["ConfigMap", "Secret"], "The kind. A variable of a Secret can only be used in Secrets, unless sensitive is false."),
                "name": {
                    "type": "string",
                    "pattern": ACCOUNT_PATTERN,
                    "maxLength": 253,
                    "description": "The name.",
                },
                "namespace": matching(LABEL_PATTERN, "The namespace. Left out: that of objects that name none."),
                "optional": switch("Accepts that the object is missing. Left out: false."),
                "sensitive": switch("Keeps the values of a Secret secret. With false they are used and shown anywhere, which takes a serviceAccountName. Left out: true."),
            },
        },
    })
}

fn interval() -> Value {
    json!({
        "type": "string",
        "pattern": DURATION_PATTERN,
        "maxLength": 64,
        "description": "The interval at which a remote repository is polled, at least 1s. Left out: 1m.",
        "x-kubernetes-validations": [{
            "rule": "duration(self) >= duration('1s')",
            "message": "interval must be at least 1s (for example 1m)",
        }],
    })
}

fn narrowing() -> Value {
    json!({
        "type": "object",
        "description": "Narrower bounds for the rollouts of this source.",
        "properties": {
            "maxWorkloads": count("Workloads whose pods are being replaced at a time."),
            "maxUnavailable": {
                "description": "Pods that may be unavailable at a time: a number, or a percentage.",
                "x-kubernetes-int-or-string": true,
            },
            "startsPerMinute": count("Rollouts that may begin in any minute."),
            "soak": matching(DURATION_PATTERN, "The time that a workload must stay available before its rollout counts as a success."),
            "deadline": matching(DURATION_PATTERN, "The longest time that a rollout may go without progress."),
            "onFailure": one_of_words(&["rollback", "quarantine"], "The action after a failed rollout: rollback puts the last good content back, quarantine leaves the failed one and waits for a person."),
        },
    })
}

fn status() -> Value {
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": { "type": "integer", "format": "int64" },
            "revision": text("The newest revision that was read."),
            "objects": { "type": "integer", "description": "The number of its objects." },
            "phases": {
                "type": "object",
                "description": "The number of its objects in each phase.",
                "additionalProperties": { "type": "integer" },
            },
            "conditions": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
                    "properties": {
                        "type": { "type": "string" },
                        "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                        "observedGeneration": { "type": "integer", "format": "int64" },
                        "lastTransitionTime": { "type": "string", "format": "date-time" },
                        "reason": { "type": "string" },
                        "message": { "type": "string" },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::Deserialize;
    use serde::de::value::Error;
    use serde::de::{Deserializer, Error as _, Visitor};
    use serde::forward_to_deserialize_any;

    use super::*;
    use crate::config::{
        AllowSpec, DeletionPolicy, GitSpec, HelmSpec, NarrowingSpec, SourceSpec, SubstituteFromSpec,
        VerifyMode, VerifySpec,
    };

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/in-cluster/crd.yaml");
    const HEAD: &str = "# The kind `Source`, for sources in the cluster. `INSTA_UPDATE=always cargo test schema` writes this file.\n";

    #[test]
    fn the_definition_in_the_examples_is_this_one() {
        let expected = format!("{HEAD}{}", serde_yaml::to_string(&definition()).unwrap());
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(FILE, &expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(FILE).unwrap(), expected);
    }

    /// A collector of the keys that a type knows, which it returns as an error.
    struct KeyCollector;

    impl<'de> Deserializer<'de> for KeyCollector {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(Error::custom("no struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            keys: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Error> {
            Err(Error::custom(keys.join(" ")))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
            unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn check<'de, T: Deserialize<'de> + std::fmt::Debug>(schema: &Value) {
        let keys = T::deserialize(KeyCollector).unwrap_err().to_string();
        let keys: BTreeSet<&str> = keys.split(' ').collect();
        let described: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, keys);
    }

    #[test]
    fn the_schema_has_exactly_the_keys_of_the_file() {
        let mut of_the_file = spec();
        // There is no object of the file that could be deleted.
        of_the_file["properties"].as_object_mut().unwrap().remove("deletionPolicy").unwrap();
        // Nobody widens what may be fetched by an object in the cluster.
        of_the_file["properties"].as_object_mut().unwrap().insert("fetch".to_owned(), json!({}));
        check::<SourceSpec>(&of_the_file);
        check::<GitSpec>(&git());
        check::<VerifySpec>(&verify());
        check::<HelmSpec>(&helm());
        check::<NarrowingSpec>(&narrowing());
        check::<AllowSpec>(&allow());
        check::<SubstituteFromSpec>(&substitute_from()["items"]);
    }

    #[test]
    fn words_and_forms_are_those_of_the_file() {
        let source_spec = json!({
            "git": { "url": "https://a.example/b", "ref": "main", "path": "a", "interval": "1h30m", "verify": { "keys": "ours", "mode": "range" } },
            "helm": {
                "release": "web", "namespace": "web", "values": ["a.yaml"], "valuesInline": { "a": { "b": [1, true, null] } },
                "kubeVersion": "1.36.0", "apiVersions": ["a.example/v1"], "generated": "once",
            },
            "namespace": "shop", "serviceAccountName": "shop.eu", "prune": false,
            "allow": { "namespaces": ["shop"], "kinds": ["apps/*", "ConfigMap"], "clusterScoped": ["Namespace"] },
            "substitute": { "CLUSTER": "prod", "_1": "" },
            "substituteFrom": [
                { "kind": "ConfigMap", "name": "a.b", "namespace": "shop", "optional": true },
                { "kind": "Secret", "name": "a", "sensitive": false },
            ],
            "blastRadius": "10%", "pruneDelay": "0s", "observe": true,
            "budget": {
                "maxWorkloads": 1, "maxUnavailable": "10%", "startsPerMinute": 2, "soak": "0s", "deadline": "500ms",
            },
        });
        serde_json::from_value::<SourceSpec>(source_spec).unwrap();
        let words = |schema: &Value| schema["enum"].as_array().unwrap().clone();
        for word in words(&spec()["properties"]["adopt"]) {
            serde_json::from_value::<SourceSpec>(json!({ "adopt": word })).unwrap();
        }
        for word in words(&spec()["properties"]["optOut"]) {
            serde_json::from_value::<SourceSpec>(json!({ "optOut": word })).unwrap();
        }
        for word in words(&verify()["properties"]["mode"]) {
            serde_json::from_value::<VerifyMode>(word).unwrap();
        }
        for word in words(&spec()["properties"]["deletionPolicy"]) {
            serde_json::from_value::<DeletionPolicy>(word).unwrap();
        }
        for word in words(&substitute_from()["items"]["properties"]["kind"]) {
            let from = json!({ "substituteFrom": [{ "kind": word, "name": "a" }] });
            serde_json::from_value::<SourceSpec>(from).unwrap();
        }
        for word in words(&narrowing()["properties"]["onFailure"]) {
            serde_json::from_value::<NarrowingSpec>(json!({ "onFailure": word })).unwrap();
        }
    }
}
