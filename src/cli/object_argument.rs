//! Objects as people name them.

use std::fmt;
use std::str::FromStr;

use crate::object::ObjectId;

/// An object as people name it: `shop/deployment.apps/web`, or `namespace/shop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectArgument {
    /// Its namespace, where one is named.
    pub namespace: Option<String>,
    /// The kind with its group, lower case: `deployment.apps`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl ObjectArgument {
    /// Returns the name of an object.
    pub(crate) fn of(id: &ObjectId) -> Self {
        Self {
            namespace: id.namespace().map(str::to_owned),
            kind: id.group_kind().to_string().to_ascii_lowercase(),
            name: id.name().to_owned(),
        }
    }

    /// Returns the name of a source where objects are named too: `source/shop`.
    pub(crate) fn of_source(name: &str) -> Self {
        Self { namespace: None, kind: SOURCE_KIND_WORD.to_owned(), name: name.to_owned() }
    }

    /// Returns the name as one word that a shell, `xargs` and a terminal leave as it is. It is read
    /// back as it was.
    pub(crate) fn encoded_text(&self) -> String {
        Self { name: encode_name(&self.name), ..self.clone() }.to_string()
    }

    /// Returns the source that it names, if it names one.
    pub(crate) fn source(&self) -> Option<&str> {
        (self.kind == SOURCE_KIND_WORD && self.namespace.is_none()).then_some(&*self.name)
    }
}

/// Returns a name as in a URL: names of RBAC objects may hold any character but a slash and a
/// percent sign.
pub(super) fn encode_name(name: &str) -> String {
    use std::fmt::Write as _;
    name.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// Returns the text behind [`encode_name`]; none where it is not UTF-8.
fn decode_name(name: &str) -> Option<String> {
    let mut pieces = name.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_number)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The word in place of a kind that names a source.
const SOURCE_KIND_WORD: &str = "source";

/// kubectl's short names and plurals of kinds, and the kinds that need no group.
const KIND_WORDS: [(&str, &[&str]); 24] = [
    ("deployment.apps", &["deploy", "deployment", "deployments", "deployments.apps"]),
    ("statefulset.apps", &["sts", "statefulset", "statefulsets", "statefulsets.apps"]),
    ("daemonset.apps", &["ds", "daemonset", "daemonsets", "daemonsets.apps"]),
    ("replicaset.apps", &["rs", "replicaset", "replicasets", "replicasets.apps"]),
    ("configmap", &["cm", "configmaps"]),
    ("secret", &["secrets"]),
    ("service", &["svc", "services"]),
    ("serviceaccount", &["sa", "serviceaccounts"]),
    ("namespace", &["ns", "namespaces"]),
    ("pod", &["po", "pods"]),
    ("persistentvolumeclaim", &["pvc", "persistentvolumeclaims"]),
    ("persistentvolume", &["pv", "persistentvolumes"]),
    ("resourcequota", &["quota", "resourcequotas"]),
    ("limitrange", &["limits", "limitranges"]),
    ("job.batch", &["job", "jobs", "jobs.batch"]),
    ("cronjob.batch", &["cj", "cronjob", "cronjobs", "cronjobs.batch"]),
    ("ingress.networking.k8s.io", &["ing", "ingress", "ingresses"]),
    ("networkpolicy.networking.k8s.io", &["netpol", "networkpolicy", "networkpolicies"]),
    ("horizontalpodautoscaler.autoscaling", &["hpa", "horizontalpodautoscaler", "horizontalpodautoscalers"]),
    ("poddisruptionbudget.policy", &["pdb", "poddisruptionbudget", "poddisruptionbudgets"]),
    ("priorityclass.scheduling.k8s.io", &["pc", "priorityclass", "priorityclasses"]),
    ("storageclass.storage.k8s.io", &["sc", "storageclass", "storageclasses"]),
    ("customresourcedefinition.apiextensions.k8s.io", &["crd", "crds", "customresourcedefinition"]),
    ("role.rbac.authorization.k8s.io", &["role", "roles"]),
];

/// Returns whether a word is one of kubectl's for a kind of workload, or its full name.
fn is_kind(word: &str) -> bool {
    KIND_WORDS.iter().any(|(kind, others)| *kind == word || others.contains(&word))
}

/// Returns the kind that a word means, with its group.
fn kind(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    let known = KIND_WORDS.iter().find(|(_, others)| others.contains(&&*word));
    known.map_or(word, |(kind, _)| (*kind).to_owned())
}

/// A text that names no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an object's name (for example shop/deployment.apps/web or namespace/shop)")]
pub(crate) struct ParseObjectArgumentError;

impl FromStr for ObjectArgument {
    type Err = ParseObjectArgumentError;

    fn from_str(text: &str) -> Result<Self, ParseObjectArgumentError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [kind, name] => (None, kind, name),
            // Both `shop/deployment.apps/web`, as objects are listed, and `deploy/shop/web`.
            [word, namespace, name] if is_kind(word) && !is_kind(namespace) => {
                (Some(namespace.to_owned()), word, name)
            }
            [namespace, kind, name] => (Some(namespace.to_owned()), kind, name),
            _ => return Err(ParseObjectArgumentError),
        };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(ParseObjectArgumentError);
        }
        Ok(Self {
            namespace,
            kind: self::kind(kind),
            name: decode_name(name).ok_or(ParseObjectArgumentError)?,
        })
    }
}

impl fmt::Display for ObjectArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::GroupKind;

    #[test]
    fn objects_are_named_as_they_are_listed() {
        fn check(text: &str, expected: Option<(Option<&str>, &str, &str)>) {
            let read = text.parse::<ObjectArgument>().ok();
            let parts =
                read.as_ref().map(|name| (name.namespace.as_deref(), name.kind.as_str(), name.name.as_str()));
            assert_eq!(parts, expected, "{text}");
        }
        check("shop/deployment.apps/web", Some((Some("shop"), "deployment.apps", "web")));
        check("Namespace/shop", Some((None, "namespace", "shop")));
        check("deploy/web", Some((None, "deployment.apps", "web")));
        check("sts/shop/db", Some((Some("shop"), "statefulset.apps", "db")));
        check("shop/ds/agent", Some((Some("shop"), "daemonset.apps", "agent")));
        check("widgets.example.org/a", Some((None, "widgets.example.org", "a")));
        assert_eq!(
            "shop/Deployment.apps/web".parse::<ObjectArgument>().unwrap().to_string(),
            "shop/deployment.apps/web"
        );
        for name in ["system:auth~1.a_b", "it's;$(a)", "a b\n\"\\", "%", "\u{e9}\u{202e}", "=a*?!"] {
            let named = ObjectArgument {
                namespace: None,
                kind: "role.example.org".to_owned(),
                name: name.to_owned(),
            };
            let word = named.encoded_text();
            assert!(
                word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/%-._~:".contains(&byte)),
                "{word}"
            );
            assert_eq!(word.parse::<ObjectArgument>(), Ok(named));
        }
        for wrong in [
            "web",
            "",
            "/",
            "a//b",
            "a/b/c/d",
            "/deployment/web",
            "role/a%2",
            "role/%",
            "role/%ff",
            "role/%+1",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn an_object_has_one_name() {
        let web = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let shop = ObjectId::new(&GroupKind::new("", "Namespace"), None, "shop");
        assert_eq!(ObjectArgument::of(&web).to_string(), "shop/deployment.apps/web");
        assert_eq!(ObjectArgument::of(&shop).to_string(), "namespace/shop");
    }
}
