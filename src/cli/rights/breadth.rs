//! Rights that amount to the whole cluster, or nearly: whoever grants them is warned.

use std::collections::{BTreeMap, BTreeSet};

use super::{ADMISSION_GROUP, CERTIFICATES_GROUP, RBAC_GROUP, RightScope, RightSubject, Rights};

const READ_VERBS: &[&str] = &["get", "list", "watch"];
const WRITE_VERBS: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
const ALL_VERBS: &[&str] =
    &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const CHANGE_VERBS: &[&str] = &["update", "patch"];

/// The core group.
const CORE_GROUP: &str = "";

/// Resources with the verbs that count, and what follows from them wherever they hold.
const BROAD_RIGHTS: &[(&str, &[&str], &[&str], &str)] = &[
    (
        RBAC_GROUP,
        &["roles", "clusterroles"],
        &["escalate"],
        "`escalate` on roles: any right can be put into them",
    ),
    (
        CORE_GROUP,
        &["serviceaccounts/token"],
        &["create"],
        "tokens of service accounts: all that those accounts may",
    ),
    (CORE_GROUP, &["nodes"], WRITE_VERBS, "to change nodes: where pods run, and what they reach there"),
    (
        CORE_GROUP,
        &["nodes/proxy"],
        ALL_VERBS,
        "nodes/proxy: to run commands in all pods of a node, past admission",
    ),
    (
        CORE_GROUP,
        &["persistentvolumes"],
        &["create"],
        "to create PersistentVolumes: they may show the files of nodes",
    ),
    (
        CORE_GROUP,
        &["namespaces"],
        CHANGE_VERBS,
        "to change namespaces: their labels say how privileged pods may be",
    ),
    (
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
        WRITE_VERBS,
        "to write definitions of kinds: all objects of a kind go with its definition",
    ),
    (
        "apiregistration.k8s.io",
        &["apiservices"],
        WRITE_VERBS,
        "to write APIServices: whoever answers for a group sees what is sent to it",
    ),
    (
        ADMISSION_GROUP,
        &[
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
        WRITE_VERBS,
        "to write webhooks and policies of admission: they see and change whatever is written, Secrets among it",
    ),
    (
        CERTIFICATES_GROUP,
        &["certificatesigningrequests/approval", "signers"],
        &["update", "patch", "approve", "sign", "attest"],
        "to approve or sign certificates: to be anybody",
    ),
];

/// The resources that create pods.
const POD_CREATORS: &[(&str, &[&str])] = &[
    (CORE_GROUP, &["pods", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "replicationcontrollers"]),
    ("apps", &["deployments", "statefulsets", "daemonsets", "replicasets"]),
    ("batch", &["jobs", "cronjobs"]),
];

impl Rights {
    /// Returns warnings about rights that amount to the whole cluster. They hold no text of a
    /// manifest.
    pub(in crate::cli) fn breadth_warnings(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for ((right_scope, subject), verbs) in &self.all {
            warn_of(right_scope, subject, verbs, &mut found);
        }
        found
    }
}

fn warn_of(
    right_scope: &RightScope,
    subject: &RightSubject,
    verbs: &BTreeMap<String, &'static str>,
    found: &mut BTreeSet<String>,
) {
    let mut warn = |text: &str| {
        found.insert(format!("{text} ({})", scope_text(right_scope)));
    };
    let may = |wanted: &[&str]| verbs.keys().any(|verb| verb == "*" || wanted.contains(&verb.as_str()));
    let (group, resource, names) = match subject {
        RightSubject::Path(path) => {
            if path.contains('*') {
                warn("`*` in a path of the server");
            }
            return;
        }
        RightSubject::Objects { group, resource, names } => {
            (group.as_str(), resource.as_str(), names.as_ref())
        }
    };
    if [group, resource].iter().any(|text| text.contains('*')) || verbs.contains_key("*") {
        warn("`*`: whatever it stands for now and in future");
    }
    if may(&["impersonate"]) {
        warn("`impersonate`: to be somebody else");
    }
    let is = |one: &str, resources: &[&str]| {
        (group == one || group == "*") && (resources.contains(&resource) || resource == "*")
    };
    let is_root = |names: &BTreeSet<String>| names.contains("cluster-admin");
    if is(RBAC_GROUP, &["roles", "clusterroles"]) && may(&["bind"]) && names.is_none_or(is_root) {
        warn("`bind` of any role, or of cluster-admin: any right there is");
    }
    let central = matches!(right_scope, RightScope::Namespace(name) if name == "kube-system");
    let everywhere = *right_scope == RightScope::Cluster;
    if is(CORE_GROUP, &["secrets"]) && may(READ_VERBS) && names.is_none() && (everywhere || central) {
        warn("to read Secrets: every password and token that is in them");
    }
    let makes_pods = POD_CREATORS.iter().any(|(group, resources)| is(group, resources));
    if makes_pods && may(&["create", "update", "patch"]) && (everywhere || central) {
        warn(
            "to write pods or workloads: they may run as any service account there, and as the node where admission lets them",
        );
    }
    for (group, resources, wanted, text) in BROAD_RIGHTS {
        if is(group, resources) && may(wanted) {
            warn(text);
        }
    }
}

/// Returns where a right holds. A namespace's name is a label, as reading the manifests has seen
/// to.
fn scope_text(right_scope: &RightScope) -> String {
    match right_scope {
        RightScope::Cluster => "in the whole cluster".to_owned(),
        RightScope::Namespace(name) => {
            let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            format!("in namespace {plain}")
        }
    }
}
