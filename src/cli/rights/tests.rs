//! The rights that follow from objects.

use std::sync::Arc;

use serde_json::json;

use super::escalation::parameter_kind;
use super::*;
use crate::config::{VariableHolderKind, VariableHolderNeed};
use crate::manifest::{self, KindScopes, assemble};

fn decoded(text: &str) -> Vec<Object> {
    let reading = manifest::read(&"a.yaml".into(), text.as_bytes());
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    let mut scopes = KindScopes::builtin();
    for item in &reading.items {
        scopes.add_definition(item);
    }
    assemble(reading.items, &scopes, "shop").objects
}

/// Returns the rights that a source needs beside those of rhumb itself, a line each.
fn lines(text: &str) -> Vec<String> {
    lines_of(SourceAccess::Prune, text)
}

fn lines_of(access: SourceAccess, text: &str) -> Vec<String> {
    lines_within(access, &WatchedNamespaces::Cluster, text).0
}

/// Returns the rights that a source needs beside those of rhumb itself. Returns also the namespaces
/// that must be there before.
fn lines_within(
    access: SourceAccess,
    watched: &WatchedNamespaces,
    text: &str,
) -> (Vec<String>, BTreeSet<String>) {
    let mut rights = Rights::of_rhumb("rhumb-system", access);
    let own = rights.all.clone();
    let decoded = decoded(text);
    let own_names = defined_plurals(decoded.iter());
    rights.add_source(access, watched, &decoded, &|kind| own_names.get(kind).cloned());
    rights.add_bindings(&[(access, decoded)], &|_| None);
    (new_rights(&rights, &own), rights.namespaces)
}

/// Returns the rights that are not among others, a line each.
fn new_rights(
    rights: &Rights,
    own: &BTreeMap<(RightScope, RightSubject), BTreeMap<String, &'static str>>,
) -> Vec<String> {
    let new = rights.all.iter().filter(|(key, verbs)| own.get(*key) != Some(*verbs));
    let line = |((place, subject), verbs): (&(RightScope, RightSubject), &BTreeMap<String, &str>)| {
        let place = match place {
            RightScope::Cluster => "*",
            RightScope::Namespace(namespace) => namespace,
        };
        let verbs = verbs.keys().cloned().collect::<Vec<_>>().join(",");
        match subject {
            RightSubject::Path(path) => format!("{place} {path} {verbs}"),
            RightSubject::Objects { group, resource, names } => {
                let names = names.iter().flatten().cloned().collect::<Vec<_>>().join(",");
                format!("{place} {resource}.{group} {verbs} {names}").trim_end().to_owned()
            }
        }
    };
    new.map(line).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(lines(text), expected, "{text}");
}

#[test]
fn leases_and_sources_in_the_cluster_have_rights_of_their_own() {
    let mut rights = Rights::default();
    rights.add_leases("rhumb-system");
    rights.add_source_resources("rhumb-system");
    let expected = [
        "rhumb-system leases.coordination.k8s.io create,delete,list,patch",
        "rhumb-system sources.rhumb.dev list,patch",
        "rhumb-system sources/status.rhumb.dev patch",
    ];
    assert_eq!(new_rights(&rights, &BTreeMap::new()), expected);
}

#[test]
fn kinds_are_watched_everywhere_and_written_in_their_namespaces() {
    let two = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, \
               metadata: {name: a, namespace: ops}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: ops}}";
    check(
        two,
        &[
            "* configmaps. list,watch",
            "* namespaces. create,delete,get,list,patch,watch",
            "default events. create,patch",
            "ops configmaps. create,delete,get,patch",
            "ops events. create,patch",
            "shop configmaps. create,delete,get,patch",
            "shop events. create,patch",
        ],
    );
}

#[test]
fn a_source_of_some_namespaces_watches_each_of_them_and_no_other() {
    let manifests = "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: \
                {name: shop}}";
    let names = ["jobs", "shop"];
    let watched = WatchedNamespaces::Namespaces(names.map(Arc::from).into());
    let (lines, namespaces) = lines_within(SourceAccess::Prune, &watched, manifests);
    let expected = [
        "* namespaces. create,delete,get,list,patch,watch",
        "default events. create,patch",
        "jobs secrets. list,watch",
        "shop events. create,patch",
        "shop secrets. create,delete,get,list,patch,watch",
    ];
    assert_eq!(lines, expected);
    assert_eq!(namespaces, names.map(str::to_owned).into());
    // Objects that the source no longer holds are looked for in the same namespaces.
    let mut rights = Rights::default();
    for (scope, kind, resource) in
        [(KindScope::Namespaced, "ConfigMap", "configmaps"), (KindScope::Cluster, "Node", "nodes")]
    {
        rights.add_remaining_kind(&watched, scope, &GroupKind::new("", kind), resource);
    }
    let expected = ["* nodes. list,watch", "jobs configmaps. list,watch", "shop configmaps. list,watch"];
    assert_eq!(new_rights(&rights, &BTreeMap::new()), expected);
}

#[test]
fn a_source_that_writes_may_create_the_key_and_one_that_observes_may_read_it() {
    let check = |access, expected: &[&str]| {
        let mut own = new_rights(&Rights::of_rhumb("rhumb-system", access), &BTreeMap::new());
        own.retain(|line| line.contains("secrets"));
        assert_eq!(own, expected, "{access:?}");
    };
    let read = "rhumb-system secrets. get config-key.rhumb.dev";
    check(SourceAccess::Prune, &["rhumb-system secrets. create", read]);
    check(SourceAccess::Apply, &["rhumb-system secrets. create", read]);
    check(SourceAccess::Observe, &[read]);
}

#[test]
fn secrets_take_no_other_rights_than_other_kinds() {
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: a}}";
    check(
        secret,
        &["* secrets. list,watch", "shop events. create,patch", "shop secrets. create,delete,get,patch"],
    );
}

fn workload(kind: &str, annotations: &str, container: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: a, annotations: {annotations}}}, spec: {{selector: \
         {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{{container}}}]}}}}}}}}"
    )
}

#[test]
fn only_what_pods_use_is_read_for_restarts() {
    let lines = |container: &str| {
        let text = workload("Deployment", "{rhumb.dev/restart-on-change: 'true'}", container);
        let mut lines = lines(&text);
        lines.retain(|line| line.contains("configmaps") || line.contains("secrets"));
        lines
    };
    assert_eq!(lines("name: a"), [""; 0]);
    let envs = lines("name: a, envFrom: [{configMapRef: {name: env}}]");
    assert_eq!(envs, ["shop configmaps. get,list,watch"]);
    let keys = lines("name: a, envFrom: [{secretRef: {name: key, optional: true}}]");
    assert_eq!(keys, ["shop secrets. get,list,watch"]);
}

#[test]
fn a_writer_of_policies_may_read_their_parameters() {
    let policy = |kind: &str, rest: &str| {
        format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: {kind}, metadata: {{name: a}}, spec: {{{rest}}}}}"
        )
    };
    let of = "paramKind: {apiVersion: example.org/v1, kind: Limit}";
    let read = |texts: &[String]| {
        let mut lines = lines(&texts.join("\n---\n"));
        lines.retain(|line| line.contains("limits"));
        lines
    };
    for sort in ["Validating", "Mutating"] {
        let (kind, binding) = (format!("{sort}AdmissionPolicy"), format!("{sort}AdmissionPolicyBinding"));
        let full_policy = policy(&kind, of);
        assert_eq!(read(std::slice::from_ref(&full_policy)), ["* limits.example.org get"]);
        assert_eq!(read(&[policy(&kind, "")]), [""; 0]);
        let bound = |param: &str| policy(&binding, &format!("policyName: a{param}"));
        for (param, expected) in [
            ("", &["* limits.example.org get"][..]),
            (", paramRef: {name: one, namespace: ops}", &["* limits.example.org get"]),
            (", paramRef: {selector: {}}", &["* limits.example.org get,list"]),
            (
                ", paramRef: {selector: {}, namespace: ops}",
                &["* limits.example.org get", "ops limits.example.org list"],
            ),
        ] {
            assert_eq!(read(&[full_policy.clone(), bound(param)]), expected, "{param}");
        }
        // Only the policy names the kind of the parameters, in whichever source it is.
        let lone = bound(", paramRef: {selector: {}}");
        assert_eq!(read(std::slice::from_ref(&lone)), [""; 0]);
        let (mut rights, lone) = (Rights::default(), decoded(&lone));
        rights.add_bindings(&[(SourceAccess::Apply, lone.clone())], &|_| None);
        assert_eq!(rights.unbound, [format!("{binding} a")].into());
        // Another source has it, whatever that one does.
        let observed = (SourceAccess::Observe, decoded(&full_policy));
        rights = Rights::default();
        rights.add_bindings(&[(SourceAccess::Apply, lone.clone()), observed], &|_| None);
        assert_eq!(rights.unbound, BTreeSet::new());
        assert!(!rights.all.is_empty());
        // Nobody writes it.
        rights = Rights::default();
        rights.add_bindings(&[(SourceAccess::Observe, lone)], &|_| None);
        assert_eq!(rights, Rights::default());
    }
}

#[test]
fn a_binding_names_no_namespace_that_none_can_have() {
    for namespace in ["ops\\n---\\napiVersion: v1", "ops, kube-system", "*", "../ops"] {
        let binding = format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {{name: \
             a}}, spec: {{policyName: a, paramRef: {{selector: {{}}, namespace: \"{namespace}\"}}}}}}"
        );
        let (lines, namespaces) = lines_within(SourceAccess::Prune, &WatchedNamespaces::Cluster, &binding);
        // They are written as a comment above the roles.
        assert_eq!(namespaces, BTreeSet::new(), "{namespace}");
        assert!(lines.iter().all(|line| !line.contains("ops")), "{lines:?}");
    }
}

#[test]
fn a_writer_of_cluster_trust_bundles_may_attest_for_their_signer() {
    let bundle = |spec: &str| {
        let all = lines(&format!(
            "{{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {{name: a}}, spec: {{{spec}}}}}"
        ));
        all.into_iter().filter(|line| line.contains("signers")).collect::<Vec<_>>()
    };
    assert_eq!(bundle("signerName: example.org/a"), ["* signers.certificates.k8s.io attest example.org/a"]);
    assert_eq!(bundle(""), [""; 0]);
}

#[test]
fn workloads_need_what_tells_of_their_rollouts() {
    let set = |annotations: &str, kind: &str| workload(kind, annotations, "name: a");
    let plain = lines(&set("{}", "StatefulSet"));
    for line in [
        "* daemonsets.apps list",
        "* deployments.apps list",
        "shop controllerrevisions.apps list",
        "shop events. create,list,patch,watch",
        "shop pods. delete,get,list,watch",
    ] {
        assert!(plain.contains(&line.to_owned()), "{line} is not in {plain:#?}");
    }
    assert!(plain.iter().all(|line| !line.contains("nodes") && !line.contains("secrets")), "{plain:#?}");
    let stepped = lines(&set("{rhumb.dev/steps: '1'}", "DaemonSet"));
    for line in ["* nodes. list,watch", "shop pods/eviction. create", "shop pods. get,list,watch"] {
        assert!(stepped.contains(&line.to_owned()), "{line} is not in {stepped:#?}");
    }
    let stepped_lines = lines(&set("{rhumb.dev/steps: '1'}", "Deployment"));
    assert!(stepped_lines.contains(&"shop replicasets/scale.apps patch".to_owned()), "{stepped_lines:#?}");
    let rolled = lines(&set("{}", "Deployment"));
    assert!(rolled.iter().all(|line| !line.contains("scale")), "{rolled:#?}");
    for line in
        ["shop replicasets.apps list,watch", "shop events. create,list,patch", "shop pods. list,watch"]
    {
        assert!(rolled.contains(&line.to_owned()), "{line} is not in {rolled:#?}");
    }
}

#[test]
fn autoscalers_are_watched_for_whatever_sets_a_count() {
    let watched = |kind: &str, api: &str, spec: &str| {
        let text = format!("{{apiVersion: {api}, kind: {kind}, metadata: {{name: a}}, spec: {spec}}}");
        lines(&text).contains(&"* horizontalpodautoscalers.autoscaling list,watch".to_owned())
    };
    for (kind, api) in [("Deployment", "apps/v1"), ("ReplicaSet", "apps/v1"), ("Ox", "example.org/v1")] {
        assert!(watched(kind, api, "{replicas: 2}"), "{kind}");
        assert!(!watched(kind, api, "{}"), "{kind}");
        assert!(!watched(kind, api, "{replicas: null}"), "{kind}");
    }
    assert!(!watched("DaemonSet", "apps/v1", "{replicas: 2}"));
}

#[test]
fn a_source_that_observes_has_no_right_to_change_anything() {
    let everything = [
        &workload(
            "StatefulSet",
            "{rhumb.dev/restart-on-change: 'true'}",
            "name: a, envFrom: [{secretRef: {name: key}}]",
        ),
        &workload("DaemonSet", "{rhumb.dev/steps: '1', rhumb.dev/recreate: 'true'}", "name: a"),
        "{apiVersion: v1, kind: Secret, metadata: {name: key}}",
        "{apiVersion: example.org/v1, kind: Ox, metadata: {name: a}}",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{apiGroups: [''], resources: \
         [pods], verbs: [create]}]}",
    ];
    let mut rights = Rights::of_rhumb("rhumb-system", SourceAccess::Observe);
    rights.add_source(
        SourceAccess::Observe,
        &WatchedNamespaces::Cluster,
        &decoded(&everything.join("\n---\n")),
        &|_| None,
    );
    rights.add_remaining_kind(
        &WatchedNamespaces::Cluster,
        KindScope::Namespaced,
        &GroupKind::new("", "Service"),
        "services",
    );
    rights.add_remaining(SourceAccess::Observe, &GroupKind::new("", "Service"), "services", Some("shop"));
    let verbs: BTreeSet<&str> =
        rights.all.values().flat_map(|verbs| verbs.keys().map(String::as_str)).collect();
    assert_eq!(verbs, ["get", "list", "watch"].into());
}

#[test]
fn a_source_without_prune_may_delete_only_objects_that_ask_for_recreation() {
    let map = |annotations: &str| {
        let text =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, annotations: {annotations}}}}}");
        lines_of(SourceAccess::Apply, &text)
            .into_iter()
            .filter(|line| line.starts_with("shop configmaps"))
            .collect::<Vec<_>>()
    };
    assert_eq!(map("{}"), ["shop configmaps. create,get,patch"]);
    for word in ["rhumb.dev/recreate: 'true'", "kustomize.toolkit.fluxcd.io/force: enabled"] {
        assert_eq!(map(&format!("{{{word}}}")), ["shop configmaps. create,delete,get,patch"], "{word}");
    }
}

#[test]
fn objects_that_are_no_longer_wanted_have_rights_where_they_are() {
    let mut rights = Rights::default();
    let (thing, service) = (GroupKind::new("example.org", "Thing"), GroupKind::new("", "Service"));
    rights.add_remaining_kind(&WatchedNamespaces::Cluster, KindScope::Namespaced, &thing, "things");
    rights.add_remaining(SourceAccess::Prune, &thing, "things", None);
    rights.add_remaining(SourceAccess::Apply, &service, "services", Some("shop"));
    let expected = [
        "* customresourcedefinitions.apiextensions.k8s.io list",
        "* apiservices.apiregistration.k8s.io list",
        "* things.example.org create,delete,get,list,patch,watch",
        "default events. create,patch",
        "shop events. create,patch",
        "shop services. create,get,patch",
    ];
    assert_eq!(new_rights(&rights, &BTreeMap::new()), expected);
}

#[test]
fn a_writer_of_roles_needs_the_rights_that_they_grant() {
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    let role = format!(
        "{rbac}\nkind: Role\nmetadata: {{name: a}}\nrules:\n- {{apiGroups: [''], resources: [pods], verbs: [get]}}\n- \
         {{apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: [patch]}}\n---\n{rbac}\nkind: \
         RoleBinding\nmetadata: {{name: a}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}\n---\n\
         {rbac}\nkind: ClusterRole\nmetadata: {{name: b}}\nrules:\n- {{nonResourceURLs: [/healthz], verbs: [get]}}\n---\n\
         {rbac}\nkind: ClusterRole\nmetadata: {{name: c}}\naggregationRule: {{clusterRoleSelectors: []}}\n"
    );
    let lines = lines(&role);
    for line in [
        "shop pods. get",
        "shop deployments.apps patch web",
        "shop roles.rbac.authorization.k8s.io bind a",
        "* /healthz get",
        "* clusterroles.rbac.authorization.k8s.io escalate c",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line} is not in {lines:#?}");
    }
}

#[test]
fn kinds_that_the_source_defines_are_named_by_it() {
    let text = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "oxen.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
        "names": {"kind": "Ox", "plural": "oxen"}, "versions": []}});
    let lines =
        lines(&format!("{text}\n---\n{{apiVersion: example.org/v1, kind: Ox, metadata: {{name: a}}}}"));
    for line in ["* oxen.example.org list,watch", "shop oxen.example.org create,delete,get,patch"] {
        assert!(lines.contains(&line.to_owned()), "{line} is not in {lines:#?}");
    }
}

#[test]
fn kinds_that_kubernetes_does_not_bring_along_may_be_proven_gone() {
    let proof = "* customresourcedefinitions.apiextensions.k8s.io list".to_owned();
    let object =
        |api: &str, kind: &str| lines(&format!("{{apiVersion: {api}, kind: {kind}, metadata: {{name: a}}}}"));
    for (api, kind) in [("gateway.networking.k8s.io/v1", "Gateway"), ("example.org/v1", "Ox")] {
        assert!(object(api, kind).contains(&proof), "{kind}");
    }
    for (api, kind) in
        [("v1", "ConfigMap"), ("networking.k8s.io/v1", "Ingress"), ("policy/v1", "PodDisruptionBudget")]
    {
        assert!(!object(api, kind).contains(&proof), "{kind}");
    }
}

#[test]
fn names_in_urls_are_guessed_as_kubernetes_does() {
    for (kind, expected) in [
        ("Deployment", "deployments"),
        ("NetworkPolicy", "networkpolicies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Endpoints", "endpoints"),
        ("StorageClass", "storageclasses"),
    ] {
        assert_eq!(guess_plural(kind), expected);
    }
}

#[test]
fn objects_with_variables_are_read_by_name_where_the_source_does_not_hold_them() {
    let holder = |kind, name: &str, secrecy| VariableHolder {
        kind,
        namespace: "shop".parse().unwrap(),
        name: name.parse().unwrap(),
        need: VariableHolderNeed::Required,
        secrecy,
    };
    let from = vec![
        holder(VariableHolderKind::ConfigMap, "cluster-vars", VariableSecrecy::Open),
        holder(VariableHolderKind::ConfigMap, "own", VariableSecrecy::Open),
        holder(VariableHolderKind::Secret, "tokens", VariableSecrecy::Secret),
        holder(VariableHolderKind::Secret, "cluster-secrets", VariableSecrecy::Open),
    ];
    let config = SubstitutionConfig { values: BTreeMap::new(), from };
    let own = decoded("{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: shop}}");
    let mut rights = Rights::default();
    rights.add_variables(&config, &own);
    assert_eq!(
        new_rights(&rights, &BTreeMap::new()),
        ["shop configmaps. get cluster-vars", "shop secrets. get cluster-secrets"]
    );
    assert!(rights.breadth_warnings().is_empty());
}

#[test]
fn denied_rights_are_lacking_and_no_others() {
    let mut rights = Rights::of_rhumb("rhumb-system", SourceAccess::Prune);
    let secret = decoded("{apiVersion: v1, kind: Secret, metadata: {name: a}}");
    rights.add_source(SourceAccess::Prune, &WatchedNamespaces::Cluster, &secret, &|_| None);
    assert!(rights.denied_rights(&BTreeSet::new()).all.is_empty());
    let reviews = rights.access_reviews();
    let denied: BTreeSet<AccessRequest> = reviews.iter().map(|(access, _)| access.clone()).collect();
    assert_eq!(rights.denied_rights(&denied), rights);
    for one in denied {
        let lacking = rights.denied_rights(&[one.clone()].into());
        let asked: Vec<AccessRequest> =
            lacking.access_reviews().into_iter().map(|(access, _)| access).collect();
        assert_eq!(asked, [one]);
    }
}

#[test]
fn rights_that_amount_to_the_whole_cluster_are_reported() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut rights = Rights::default();
        rights.add_source(SourceAccess::Prune, &WatchedNamespaces::Cluster, &decoded(text), &|_| None);
        let warnings: Vec<String> = rights.breadth_warnings().into_iter().collect();
        let fits = warnings.iter().zip(expected).all(|(warnings, part)| warnings.contains(part));
        assert!(fits && warnings.len() == expected.len(), "{text}: {warnings:#?}");
    }
    let role = |rule: &str| {
        format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: a}}, rules: [{rule}]}}"
        )
    };
    let object =
        |api: &str, kind: &str| format!("{{apiVersion: {api}, kind: {kind}, metadata: {{name: a}}}}");
    let in_kube_system = |kind: &str| {
        format!("{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: a, namespace: kube-system}}}}")
    };
    check(&object("v1", "ConfigMap"), &[]);
    check(&object("apps/v1", "Deployment"), &[]);
    check(
        &object("v1", "Secret"),
        &["to read Secrets: every password and token that is in them (in the whole cluster)"],
    );
    check(&in_kube_system("DaemonSet"), &["to write pods or workloads"]);
    check(&object("v1", "Namespace"), &["to change namespaces"]);
    check(&object("v1", "PersistentVolume"), &["to create PersistentVolumes"]);
    check(&object("apiregistration.k8s.io/v1", "APIService"), &["to write APIServices"]);
    check(&object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"), &["to write webhooks"]);
    check(&role("{apiGroups: [''], resources: [pods], verbs: [get]}"), &[]);
    check(&role("{apiGroups: [''], resources: [users], verbs: [impersonate]}"), &["`impersonate`"]);
    check(
        &role("{apiGroups: [''], resources: [serviceaccounts/token], verbs: [create]}"),
        &["tokens of service"],
    );
    check(&role("{apiGroups: [example.org], resources: ['*'], verbs: [get]}"), &["`*`: whatever"]);
    check(&role("{nonResourceURLs: ['/*'], verbs: [get]}"), &["`*` in a path"]);
    let binding = |name: &str| {
        format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: a}}, \
             roleRef: {{kind: ClusterRole, name: {name}}}}}"
        )
    };
    check(&binding("view"), &[]);
    check(&binding("cluster-admin"), &["`bind` of any role, or of cluster-admin"]);
}

#[test]
fn no_text_of_a_manifest_becomes_a_wildcard_or_the_name_of_another_kind() {
    #[track_caller]
    fn check(group: &str, kind: &str, plural: &str, expected: bool) {
        let text = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "oxen.example.org"}, "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural}, "versions": []}});
        let own = defined_plurals(decoded(&text.to_string()).iter());
        assert_eq!(own.contains_key(&GroupKind::new(group, kind)), expected, "{group} {kind} {plural}");
    }
    check("example.org", "Ox", "oxen", true);
    check("example.org", "Ox", "*", false);
    check("example.org", "Ox", "oxen/status", false);
    check("*.org", "Ox", "oxen", false);
    check("", "Ox", "secrets", false);
    check("apps", "Deployment", "daemonsets", false);
    check("rbac.authorization.k8s.io", "Ox", "clusterroles", false);
    let policy = |version: &str, kind: &str| {
        let text = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "a"}, "spec": {"paramKind": {"apiVersion": version, "kind": kind}}});
        parameter_kind(&decoded(&text.to_string())[0])
    };
    assert_eq!(policy("example.org/v1", "Limit"), Some(GroupKind::new("example.org", "Limit")));
    assert_eq!((policy("*/v1", "Secret"), policy("v1", "*")), (None, None));
}
