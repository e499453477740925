//! The policy of `examples/admission-policy.yaml`: who may write rhumb's words, and who is not in
//! its way.

use std::fs;
use std::path::Path;

use controlplane::Error;

use crate::support::{DEFAULT_TIMEOUT, DedicatedCluster, Repo, TestNamespace, eventually, yaml};

const RHUMB: &str = "--as=system:serviceaccount:rhumb-system:rhumb";
const EVE: [&str; 2] = ["--as=eve", "--as-group=developers"];
const OPERATOR: [&str; 2] = ["--as=olga", "--as-group=rhumb:operators"];
const REFUSED: &str = "only rhumb and the groups that the policy rhumb-words names";

/// The rights on subresources by which metadata of objects can be written, and on some by which it
/// cannot.
const SUBRESOURCES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: subresources}
rules:
- {apiGroups: [apps], resources: [deployments/status], verbs: [get, patch]}
- {apiGroups: [''], resources: [namespaces/finalize], verbs: [update]}
- {apiGroups: [''], resources: [pods/binding, pods/eviction, serviceaccounts/token], verbs: [create]}
";

/// Runs kubectl as somebody.
fn call(cluster: &DedicatedCluster, who: &[&str], what: &[&str], input: &str) -> Result<String, Error> {
    cluster.kubectl_in(&[&["-n", "default"], who, what].concat(), input)
}

#[track_caller]
fn refuses(cluster: &DedicatedCluster, what: &[&str], input: &str) {
    match call(cluster, &EVE, what, input) {
        Ok(_) => panic!("{what:?} was let through"),
        Err(error) => assert!(error.to_string().contains(REFUSED), "{what:?}: {error}"),
    }
}

#[track_caller]
fn allows(cluster: &DedicatedCluster, who: &[&str], what: &[&str], input: &str) {
    call(cluster, who, what, input).unwrap_or_else(|error| panic!("{who:?} {what:?}: {error}"));
}

fn policy() -> String {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/admission-policy.yaml");
    fs::read_to_string(policy).unwrap()
}

fn put_in_force(cluster: &DedicatedCluster, policy: &str) {
    cluster.kubectl_in(&["apply", "--server-side", "--validate=strict", "-f", "-"], policy).unwrap();
}

/// Starts a cluster with the policy in force, in which everybody of this test may edit everything.
fn guarded() -> DedicatedCluster {
    let cluster = DedicatedCluster::complete();
    put_in_force(&cluster, &policy());
    let subjects =
        ["--group=developers", "--group=rhumb:operators", "--user=system:serviceaccount:rhumb-system:rhumb"];
    for (number, subject) in subjects.iter().enumerate() {
        let name = format!("edit-{number}");
        cluster.kubectl(&["create", "clusterrolebinding", &name, "--clusterrole=edit", subject]).unwrap();
    }
    cluster.kubectl_in(&["apply", "--server-side", "-f", "-"], SUBRESOURCES).unwrap();
    let bound = ["subresources", "--clusterrole=subresources", "--group=developers"];
    cluster.kubectl(&[&["create", "clusterrolebinding"], &bound[..]].concat()).unwrap();
    let marked = yaml::config_map("probe", "a", "1");
    let marked = marked.replacen("metadata:\n", "metadata:\n  annotations: {rhumb.dev/probe: a}\n", 1);
    eventually("the policy is in force", DEFAULT_TIMEOUT, || {
        let dry = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
        match call(&cluster, &EVE, &dry, &marked) {
            Err(error) if error.to_string().contains(REFUSED) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    cluster
}

#[test]
fn the_words_are_for_rhumb_and_the_named_groups_and_all_else_goes_on() {
    let cluster = guarded();
    let web = yaml::deployment("web", 1, "web:1").replacen(
        "metadata:\n",
        "metadata:\n  annotations: {rhumb.dev/release: a@b}\n  labels: {applyset.kubernetes.io/part-of: applyset-x-v1}\n",
        1,
    );
    let apply = ["apply", "--server-side", "-f", "-"];
    refuses(&cluster, &apply, &web);
    allows(&cluster, &[RHUMB], &apply, &web);
    for words in [
        ["annotate", "rhumb.dev/hold=1-a until=2999-01-01T00:00:00Z x"],
        ["annotate", "rhumb.dev/reconcile=disabled"],
        ["annotate", "rhumb.dev/release-"],
        ["label", "applyset.kubernetes.io/part-of-"],
        ["label", "rhumb.dev/a=b"],
    ] {
        refuses(&cluster, &[words[0], "deployment/web", "--overwrite", words[1]], "");
    }
    let release = r#"{"metadata": {"annotations": {"rhumb.dev/release": "c@d"}}}"#;
    refuses(&cluster, &["patch", "deployment/web", "-p", release], "");
    refuses(&cluster, &["patch", "deployment/web", "--subresource=status", "-p", release], "");
    // An account that leaves them alone may change all else, and delete.
    allows(&cluster, &EVE, &["annotate", "deployment/web", "note=mine"], "");
    allows(&cluster, &EVE, &["set", "image", "deployment/web", "*=web:2"], "");
    allows(&cluster, &EVE, &["scale", "deployment/web", "--replicas=2"], "");
    allows(&cluster, &OPERATOR, &["annotate", "deployment/web", "rhumb.dev/reconcile=disabled"], "");
    allows(&cluster, &OPERATOR, &["annotate", "deployment/web", "rhumb.dev/reconcile-"], "");
    // The controllers copy the annotation to the ReplicaSets, and write the status.
    eventually("its ReplicaSets carry the annotation, and its status is written", DEFAULT_TIMEOUT, || {
        let releases = "jsonpath={.items[*].metadata.annotations.rhumb\\.dev/release}";
        let copied = cluster.kubectl(&["-n", "default", "get", "replicasets", "-o", releases]);
        let copied = copied.map_err(|error| error.to_string())?;
        let status = "jsonpath={.status.observedGeneration} {.metadata.generation} {.status.updatedReplicas}";
        let status_text = cluster.kubectl(&["-n", "default", "get", "deployment/web", "-o", status]);
        let status_text = status_text.map_err(|error| error.to_string())?;
        let parts: Vec<&str> = status_text.split_whitespace().collect();
        let is_done = parts.len() == 3 && parts[0] == parts[1] && parts[2] == "2";
        if is_done && copied.split_whitespace().count() == 2 {
            Ok(())
        } else {
            Err(format!("{copied}; {status_text}"))
        }
    });
    allows(&cluster, &EVE, &["delete", "deployment/web"], "");
}

/// Returns an object that somebody writes with these metadata besides its name.
fn written(kind: &str, version: &str, [name, metadata]: [&str; 2], rest: &str) -> String {
    format!(
        r#"{{"apiVersion": "{version}", "kind": "{kind}", "metadata": {{"name": "{name}", {metadata}}}{rest}}}"#
    )
}

#[test]
fn no_subresource_carries_the_words_along_and_all_go_on_without_them() {
    let cluster = guarded();
    let (word, note) =
        (r#""annotations": {"rhumb.dev/reconcile": "disabled"}"#, r#""annotations": {"note": "mine"}"#);
    let shown = |what: &[&str]| {
        let note = ["-o", "jsonpath={.metadata.annotations.note}"];
        cluster.kubectl(&[&["-n", "default", "get"], what, &note[..]].concat()).unwrap()
    };
    cluster.kubectl(&["create", "namespace", "finalized"]).unwrap();
    let finalize = ["replace", "--raw", "/api/v1/namespaces/finalized/finalize", "-f", "-"];
    let namespace = |metadata: &str| {
        written("Namespace", "v1", ["finalized", metadata], r#", "spec": {"finalizers": ["kubernetes"]}"#)
    };
    refuses(&cluster, &finalize, &namespace(word));
    allows(&cluster, &EVE, &finalize, &namespace(note));
    assert_eq!(shown(&["namespace", "finalized"]), "mine");

    let pod = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{schedulerName: nobody, containers: [{{name: \
             c, image: 'c:1'}}]}}\n"
        )
    };
    let apply = ["apply", "--server-side", "-f", "-"];
    // The account of the namespace is made by a controller.
    eventually("the first Pod is let through", DEFAULT_TIMEOUT, || {
        call(&cluster, &EVE, &apply, &pod("bound")).map(drop).map_err(|error| error.to_string())
    });
    allows(&cluster, &EVE, &apply, &pod("evicted"));
    let bind = ["create", "--raw", "/api/v1/namespaces/default/pods/bound/binding", "-f", "-"];
    let binding = |metadata: &str| {
        let target = r#", "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}"#;
        written("Binding", "v1", ["bound", metadata], target)
    };
    refuses(&cluster, &bind, &binding(word));
    allows(&cluster, &EVE, &bind, &binding(note));
    assert_eq!(shown(&["pod", "bound"]), "mine");

    let evict = ["create", "--raw", "/api/v1/namespaces/default/pods/evicted/eviction", "-f", "-"];
    allows(&cluster, &EVE, &evict, &written("Eviction", "policy/v1", ["evicted", note], ""));
    allows(&cluster, &EVE, &["create", "token", "default"], "");
}

/// Writes the objects of such a source by its account, which is not rhumb's own.
#[test]
fn the_account_of_a_source_writes_the_words_once_the_policy_names_it() {
    let cluster = guarded();
    let site = TestNamespace::on(&cluster, "admission-account");
    let account = format!("system:serviceaccount:{}:worker", site.system());
    let binding = ["create", "clusterrolebinding", "worker", "--clusterrole=edit"];
    let subject = format!("--serviceaccount={}:worker", site.system());
    cluster.kubectl(&[&binding[..], &[&subject]].concat()).unwrap();
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let text = site.configuration(repo.path(), "resync: 2s");
    let text = text.replacen("spec:\n", "spec:\n  serviceAccountName: worker\n", 1);
    let daemon = site.configured(&text);
    daemon.says(&["ConfigMap admission-account/env", REFUSED]);
    assert!(!site.has("ConfigMap", "env"));
    let own = "'system:serviceaccount:rhumb-system:rhumb',";
    let named = policy().replacen(own, &format!("{own}\n          '{account}',"), 1);
    assert!(named.contains(&account), "{named}");
    put_in_force(&cluster, &named);
    site.await_data_within(DEFAULT_TIMEOUT * 2, "env", "a", "1");
    repo.change("env.yaml", &yaml::config_map("env", "a", "2"));
    site.await_data("env", "a", "2");
}
