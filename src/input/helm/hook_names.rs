//! Names of hooks that leave theirs to the server by `generateName`.
//!
//! helm creates each hook, and the server makes up a name every time. rhumb applies objects by
//! name, so such a hook gets one that the same release gives again. A Job then runs for each
//! release as one with a name does. A Pod cannot be changed, so another content gets another name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::object::{ContentHash, text_at};

use super::hooks::is_pod;

const NAME_FIELD: &str = "name";
const GENERATE_NAME_FIELD: &str = "generateName";
/// The characters of a name behind its `generateName`.
const SUFFIX_CHARS: usize = 8;
/// The characters of a `generateName` that are kept: a Job has a name of at most 63.
const MAX_PREFIX_CHARS: usize = 63 - SUFFIX_CHARS;

/// The names that the hooks of one release were given.
pub(super) struct HookNames<'a> {
    release: &'a str,
    /// The number of hooks of each kind, namespace and `generateName`.
    given: BTreeMap<[String; 3], usize>,
}

impl<'a> HookNames<'a> {
    pub(super) fn of_release(release: &'a str) -> Self {
        Self { release, given: BTreeMap::new() }
    }

    /// Names a hook with this content that has a `generateName` in place of a name.
    pub(super) fn name(&mut self, body: &mut Value, content: &Value) {
        let Some(prefix) = name_prefix(body) else { return };
        let content = if is_pod(body) { content } else { &Value::Null };
        let kind = [text_at(body, &["kind"]), text_at(body, &["metadata", "namespace"]), &prefix];
        let number = self.given.entry(kind.map(str::to_owned)).or_default();
        let hash = ContentHash::of(&json!([self.release, kind, *number, content])).to_string();
        *number += 1;
        let prefix: String = prefix.chars().take(MAX_PREFIX_CHARS).collect();
        let suffix: String = hash.chars().take(SUFFIX_CHARS).collect();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove(GENERATE_NAME_FIELD);
            metadata.insert(NAME_FIELD.to_owned(), format!("{prefix}{suffix}").into());
        }
    }
}

/// Returns the `generateName` of an object without a name.
fn name_prefix(body: &Value) -> Option<String> {
    let metadata = body.get("metadata")?;
    let has_name = !matches!(metadata.get(NAME_FIELD), None | Some(Value::Null));
    let has_name = has_name && metadata.get(NAME_FIELD).and_then(Value::as_str) != Some("");
    let prefix = metadata.get(GENERATE_NAME_FIELD)?.as_str()?;
    (!has_name && !prefix.is_empty()).then(|| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_names(release: &str, bodies: Vec<Value>) -> Vec<String> {
        let mut names = HookNames::of_release(release);
        let name = |mut body: Value| {
            let content = body.clone();
            names.name(&mut body, &content);
            assert_eq!(body["metadata"].get(GENERATE_NAME_FIELD), None);
            text_at(&body, &["metadata", "name"]).to_owned()
        };
        bodies.into_iter().map(name).collect()
    }

    fn hook(kind: &str, prefix: &str, image: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"generateName": prefix}, "spec": {"image": image}})
    }

    fn name_of(release: &str, body: Value) -> String {
        given_names(release, vec![body]).remove(0)
    }

    #[test]
    fn a_name_depends_on_the_release_and_the_prefix_and_for_a_pod_on_its_content() {
        let job = name_of("web", hook("Job", "migrate-", "a"));
        assert!(job.starts_with("migrate-") && job.len() == "migrate-".len() + SUFFIX_CHARS, "{job}");
        assert_eq!(name_of("web", hook("Job", "migrate-", "b")), job);
        assert_ne!(name_of("other", hook("Job", "migrate-", "a")), job);
        let pod = |image| name_of("web", hook("Pod", "migrate-", image));
        assert_eq!(pod("a"), pod("a"));
        assert_ne!(pod("a"), pod("b"));
    }

    #[test]
    fn hooks_of_one_prefix_get_several_names() {
        let job = || hook("Job", "migrate-", "a");
        let names = given_names("web", vec![job(), job(), hook("Secret", "migrate-", "a")]);
        assert!(names[0] != names[1] && names[0] != names[2] && names[1] != names[2], "{names:?}");
        assert_eq!(given_names("web", vec![job(), job(), hook("Secret", "migrate-", "a")]), names);
    }

    #[test]
    fn a_long_prefix_is_cut_to_what_a_job_takes() {
        assert_eq!(name_of("web", hook("Job", &"a".repeat(80), "a")).len(), 63);
    }

    #[test]
    fn an_object_with_a_name_or_without_a_prefix_stays_as_it_is() {
        for metadata in [
            json!({"name": "a"}),
            json!({"name": "a", "generateName": "b-"}),
            json!({"name": 1, "generateName": "b-"}),
            json!({"generateName": ""}),
            json!({"generateName": 1}),
            json!({}),
        ] {
            let mut body = json!({"kind": "Job", "metadata": metadata});
            HookNames::of_release("web").name(&mut body, &Value::Null);
            assert_eq!(body["metadata"], metadata);
        }
        let mut body = json!({"kind": "Job", "metadata": {"name": null, "generateName": "b-"}});
        HookNames::of_release("web").name(&mut body, &Value::Null);
        assert!(text_at(&body, &["metadata", "name"]).starts_with("b-"));
    }
}
