//! Sources that act as service accounts: whose rights count for what, and who is reported to lack
//! which.

use std::path::PathBuf;

use controlplane::AuditEvent;
use serde_json::{Value, json};

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, ProgramOutput, Repo, TestNamespace, run, source, until, yaml,
};

/// Runs a command with a configuration.
fn rhumb(site: &TestNamespace<'_>, arguments: &[&str], file: &PathBuf) -> ProgramOutput {
    let mut command = site.bare_command();
    command.args(arguments).arg("--config").arg(file);
    run(command)
}

/// Returns the calls about objects of a namespace, without Events and rights.
fn about(calls: &[AuditEvent], namespace: &str) -> Vec<AuditEvent> {
    let here = |call: &&AuditEvent| call.namespace == namespace && call.resource != "events";
    calls.iter().filter(here).cloned().collect()
}

/// Asserts by the audit log that each object was read and written as the account of its source, and
/// what is rhumb's own was not.
#[track_caller]
fn assert_each_acted_as_itself(
    site: &TestNamespace<'_>,
    window: &AuditWindow<'_>,
    [first, second]: [&str; 2],
) {
    let calls = window.calls();
    for (name, account) in [("one", first), ("two", second)] {
        for call in about(&calls, &site.name).iter().filter(|call| call.name.starts_with(name)) {
            assert_eq!(call.acted_as, account, "{call:#?}");
        }
    }
    let asks = |call: &AuditEvent| call.resource == "selfsubjectreviews";
    let writes: Vec<AuditEvent> = window.writes().into_iter().filter(|call| !asks(call)).collect();
    assert!(writes.len() >= 8 && writes.iter().all(|call| !call.acted_as.is_empty()), "{writes:#?}");
    let lists = calls.iter().filter(|call| ["list", "watch"].contains(&call.verb.as_str()));
    for call in lists.filter(|call| call.namespace.is_empty() && call.resource == "secrets") {
        assert!([first, second].contains(&call.acted_as.as_str()), "{call:#?}");
    }
    for call in about(&calls, &site.system()).iter().filter(|call| call.resource != "serviceaccounts") {
        assert_eq!(call.acted_as, "", "{call:#?}");
    }
}

/// Takes from rhumb's own account the right to act as others.
fn take_back_the_right_to_act(site: &TestNamespace<'_>) {
    let role = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{0}/roles/rhumb:{0}", site.system());
    let rules = site.api.value(&role, "/rules");
    let acts = |rule: &&Value| rule["verbs"].as_array().unwrap().contains(&json!("impersonate"));
    let acting: Vec<&Value> = rules.as_array().unwrap().iter().filter(acts).collect();
    assert_eq!(acting.len(), 1, "{rules:#}");
    assert_eq!(acting[0]["resourceNames"], json!(["first", "second"]));
    let others: Vec<&Value> = rules.as_array().unwrap().iter().filter(|rule| !acts(rule)).collect();
    site.api.merge(&role, "admin", &json!({ "rules": others }));
}

#[test]
fn each_source_acts_as_its_own_account_and_holds_up_no_other() {
    let mut site = TestNamespace::new("accounts");
    site.limited();
    let [one, two] = ["one", "two"].map(|name| {
        Repo::new(&[
            ("a.yaml", yaml::config_map(name, "a", "1")),
            ("old.yaml", yaml::config_map(&format!("{name}-old"), "a", "1")),
            ("key.yaml", yaml::secret(&format!("{name}-key"), "token", "right")),
        ])
    });
    let spec = |account: &str| format!("  serviceAccountName: {account}");
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 2s\n---\n{}---\n{}",
        source("one", &site.name, one.path(), &spec("first")),
        source("two", &site.name, two.path(), &spec("second")),
    );
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, &text).unwrap();
    let [first, second] =
        ["first", "second"].map(|name| format!("system:serviceaccount:{}:{name}", site.system()));
    let printed = rhumb(&site, &["rbac", "--user", &site.user], &file).ends(0).stdout;
    let (granted, later) = printed.split_once(&format!("# {second}")).unwrap();
    assert!(later.contains(&format!("name: rhumb:{}:as:second", site.system())), "{later}");
    site.cluster.kubectl_in(&["apply", "-f", "-"], granted).unwrap();
    let right = format!("the right to create configmaps in namespace accounts for {second}");
    until("all but those of one account are granted", || {
        let checked = rhumb(&site, &["check"], &file);
        checked.stdout.contains(&right)
            && !checked.stdout.contains(&first)
            && !checked.stdout.contains("impersonate")
    });

    // One account has no rights at all: the other source goes on, and deletes too.
    let window = site.window();
    let mut daemon = site.configured(&text);
    site.await_data("one", "a", "1");
    daemon.says(&[&second, "cannot watch resource", "configmaps"]);
    one.remove("old.yaml");
    one.change("a.yaml", &yaml::config_map("one", "a", "2"));
    site.await_data("one", "a", "2");
    site.await_absence("ConfigMap", "one-old");
    assert!(!site.has("ConfigMap", "two"));
    let second_role = format!("# {second}{later}");
    site.cluster.kubectl_in(&["apply", "-f", "-"], &second_role).unwrap();
    site.await_data("two", "a", "1");
    two.remove("old.yaml");
    two.change("a.yaml", &yaml::config_map("two", "a", "2"));
    site.await_data("two", "a", "2");
    site.await_absence("ConfigMap", "two-old");
    rhumb(&site, &["check"], &file).ends(0);

    assert_each_acted_as_itself(&site, &window, [&first, &second]);

    // Without the right to act as them, it is rhumb's own account that lacks one.
    take_back_the_right_to_act(&site);
    until("the right counts no more", || {
        let checked = rhumb(&site, &["check"], &file).stdout;
        checked.contains("the right to impersonate serviceaccounts first")
    });
    one.change("a.yaml", &yaml::config_map("one", "a", "3"));
    daemon.says(&["ConfigMap accounts/one", "rhumb's own account may not act as", &first, "`impersonate`"]);
    assert_eq!(site.data("one", "a"), "2");
    assert!(daemon.is_running());
}

/// Lets an account read and write one ConfigMap, by its name.
fn grant_by_name(site: &TestNamespace<'_>, account: &str, name: &str) {
    let text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: by-name, namespace: {0}}}\nrules:\n- \
         {{apiGroups: [''], resources: [configmaps], resourceNames: [{name}], verbs: [get, patch]}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: by-name, namespace: {0}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: by-name}}\n\
         subjects: [{{kind: ServiceAccount, name: {account}, namespace: {1}}}]\n",
        site.name,
        site.system()
    );
    site.cluster.kubectl_in(&["apply", "-f", "-"], &text).unwrap();
}

#[test]
fn an_object_that_moves_between_accounts_stays_the_same_object_whoever_of_them_may_write_it() {
    let mut site = TestNamespace::new("accounts-moves");
    site.limited();
    let other = format!("{}-other", site.name);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}});
    site.api.create("/api/v1/namespaces", "setup", &namespace);
    let moved = |value: &str| {
        yaml::config_map("m", "a", value)
            .replace("metadata:\n", &format!("metadata:\n  namespace: {}\n", site.name))
    };
    let repo = Repo::new(&[
        ("one/keep.yaml", yaml::config_map("keep", "a", "1")),
        ("one/m.yaml", moved("one")),
        ("two/keep.yaml", yaml::config_map("keep", "a", "1")),
    ]);
    let of = |name: &str, namespace: &str, account: &str| {
        let git = format!("git: {{url: {}, path: {name}}}", repo.path().display());
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec: {{{git}, namespace: \
             {namespace}, serviceAccountName: {account}}}\n"
        )
    };
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 2s\n---\n{}---\n{}",
        of("one", &site.name, "first"),
        of("two", &other, "second"),
    );
    let file = site.state.path().join("rhumb.yaml");
    std::fs::write(&file, &text).unwrap();
    // Each account may write in the namespace of its own source.
    let printed = rhumb(&site, &["rbac", "--user", &site.user], &file).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    until("all is granted", || !rhumb(&site, &["check"], &file).stdout.contains("missing the right to"));
    let daemon = site.configured(&text);
    let first = site.await_object("ConfigMap", "m");
    let shows = |pointer: &str| site.value("ConfigMap", "m", pointer);
    let uid = first["metadata"]["uid"].clone();
    let window = site.window();
    let give = |from: &str, to: &str, value: &str| {
        repo.write(&format!("{to}/m.yaml"), &moved(value));
        repo.remove(&format!("{from}/m.yaml"));
        let mark = daemon.mark();
        repo.commit(&format!("Move it to {to}"));
        mark
    };

    // The account that takes it may not write it: it stays as it is, with its owner.
    let mark = give("one", "two", "two");
    let second = format!("system:serviceaccount:{}:second", site.system());
    daemon.says_since(mark, &["accounts-moves/m", &second, "cannot"]);
    repo.change("one/keep.yaml", &yaml::config_map("keep", "a", "2"));
    site.await_data("keep", "a", "2");
    assert_eq!((shows("/metadata/uid"), shows("/data/a")), (uid.clone(), json!("one")));

    // With a right by name it goes over, and so it comes back.
    grant_by_name(&site, "second", "m");
    site.await_data_within(DEFAULT_TIMEOUT * 2, "m", "a", "two");
    assert_ne!(shows("/metadata/labels"), first["metadata"]["labels"], "it is of the other source");
    give("two", "one", "back");
    site.await_data("m", "a", "back");
    assert_eq!(shows("/metadata/labels"), first["metadata"]["labels"]);
    assert_eq!(shows("/metadata/uid"), uid);
    window.assert_no_deletes();
}

/// Lets an account do in the namespace of a test what a role of the cluster says.
fn grant(site: &TestNamespace<'_>, account: &str, role: &str) {
    let name = format!("{}-{account}", site.name);
    let subject = format!("--serviceaccount={}:{account}", site.system());
    site.kubectl(&["create", "rolebinding", &name, &format!("--clusterrole={role}"), &subject]);
}

#[test]
fn what_an_account_may_not_write_holds_up_no_other_source_and_takes_no_name_from_it() {
    let site = TestNamespace::new("accounts-claims");
    // One only names what the other one has, or needs. It may see everything, and write nothing.
    let claims = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "theirs")),
        ("taken.yaml", yaml::config_map("taken", "a", "theirs")),
    ]);
    let image = "image: nginx:1\n        envFrom: [{configMapRef: {name: env, optional: true}}]";
    let web = yaml::deployment("web", 1, "nginx:1").replace("image: nginx:1", image);
    let repo =
        Repo::new(&[("taken.yaml", yaml::config_map("taken", "a", "ours")), ("web.yaml", web.clone())]);
    let spec =
        |account: &str| format!("  serviceAccountName: {account}\n  allow: {{namespaces: [{}]}}", site.name);
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 2s\nserve: {{socket: {}}}\n---\n{}---\n{}",
        site.state.path().join("rhumb.sock").display(),
        source("claims", &site.name, claims.path(), &spec("reader")),
        source("shop", &site.name, repo.path(), &spec("writer")),
    );
    grant(&site, "reader", "view");
    grant(&site, "writer", "admin");
    let mut daemon = site.configured(&text);
    site.await_rollout("web");
    site.await_data("taken", "a", "ours");
    repo.change("web.yaml", &web.replace("nginx:1", "nginx:2"));
    until("the next content is there", || {
        site.value("Deployment", "web", "/spec/template/spec/containers/0/image") == json!("nginx:2")
    });
    let socket = site.state.path().join("rhumb.sock").display().to_string();
    let status = || site.rhumb(&["status", "--socket", &socket, "-o", "json"]);
    let source_status = |name: &str| {
        let status: Value = serde_json::from_str(&status().stdout).unwrap();
        let all = status["sources"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["name"] == json!(name)).unwrap()
    };
    until("the one source is healthy", || source_status("shop")["healthy"] == json!(true));
    let finding = format!("ConfigMap {}/taken is not applied: source shop has it", site.name);
    until("the other one tells why it is not", || source_status("claims").to_string().contains(&finding));
    assert_eq!(source_status("claims")["healthy"], json!(false));
    assert!(!source_status("shop").to_string().contains("2 sources want it"));
    assert!(!site.has("ConfigMap", "env") && daemon.is_running());
}

/// A kind of request that is made by rhumb's own account, whatever account a source acts as.
struct OwnRequest {
    /// A part of its path, or its resource.
    on: &'static str,
    verbs: &'static [&'static str],
    /// Where its object is.
    scope: RequestScope,
    /// The reason for which it is not made as the account.
    why: &'static str,
}

/// The place of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RequestScope {
    /// rhumb's own namespace.
    System,
    /// The whole cluster.
    Cluster,
    /// Anywhere.
    Any,
}

/// All requests that are not made as the account of a source. docs/security.md names them too, and
/// the look at workloads of sources that others serve: there are none here.
const OWN_REQUESTS: [OwnRequest; 7] = [
    OwnRequest {
        on: "",
        verbs: &["get"],
        scope: RequestScope::Cluster,
        why: "kinds and versions are those of all",
    },
    OwnRequest {
        on: "namespaces",
        verbs: &["get"],
        scope: RequestScope::Any,
        why: "`kube-system` names the cluster",
    },
    OwnRequest { on: "namespaces", verbs: &["create"], scope: RequestScope::Any, why: "its own namespace" },
    OwnRequest {
        on: "configmaps",
        verbs: &["get", "list", "watch", "create", "patch"],
        scope: RequestScope::System,
        why: "inventories, orders and the budget",
    },
    OwnRequest {
        on: "secrets",
        verbs: &["get", "create"],
        scope: RequestScope::System,
        why: "the key of seals",
    },
    OwnRequest {
        on: "events",
        verbs: &["create", "patch"],
        scope: RequestScope::Any,
        why: "Events are rhumb's",
    },
    OwnRequest {
        on: "horizontalpodautoscalers nodes",
        verbs: &["list", "watch"],
        scope: RequestScope::Cluster,
        why: "they scale and hold the workloads of all",
    },
];

impl OwnRequest {
    fn is(&self, call: &AuditEvent, system: &str) -> bool {
        let here = match self.scope {
            RequestScope::System => call.namespace == system,
            RequestScope::Cluster => call.namespace.is_empty(),
            RequestScope::Any => true,
        };
        let named = self.on.split(' ').any(|resource| resource == call.resource);
        here && named && self.verbs.contains(&&*call.verb)
    }
}

#[test]
fn every_request_for_a_source_is_made_as_its_account_but_for_those_that_are_named() {
    let site = TestNamespace::new("accounts-all");
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: \
               gadgets.accounts-all.example}\nspec:\n  group: accounts-all.example\n  names: {kind: Gadget, plural: \
               gadgets, singular: gadget}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, storage: \
               true, schema: {openAPIV3Schema: {type: object}}}\n";
    let gadget = "apiVersion: accounts-all.example/v1\nkind: Gadget\nmetadata: {name: it}\n";
    let web = |image: &str| yaml::deployment("web", 2, image);
    let repo = Repo::new(&[
        ("crd.yaml", crd.to_owned()),
        ("gadget.yaml", gadget.to_owned()),
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("old.yaml", yaml::config_map("old", "a", "1")),
        ("key.yaml", yaml::secret("key", "token", "right")),
        ("web.yaml", web("app:1")),
        ("db.yaml", yaml::workload("StatefulSet", "db", 2, "app:1", "{}")),
        ("service.yaml", yaml::service("web", "web")),
    ]);
    let account = format!("system:serviceaccount:{}:actor", site.system());
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "accounts-all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": account}],
    });
    site.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "setup", &binding);
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 2s\nbudget: {{soak: 0s, maxUnavailable: 100%, \
         deadline: 20s}}\n---\n{}",
        source("accounts-all", &site.name, repo.path(), "  serviceAccountName: actor"),
    );
    let window = site.window();
    let mut daemon = site.configured(&text);
    site.await_rollout("web");
    let gadgets = format!("/apis/accounts-all.example/v1/namespaces/{}/gadgets/it", site.name);
    until("the custom object is there", || site.api.value(&gadgets, "/metadata/uid").is_string());
    // A rollout, one that goes back, drift, a prune, a hint, an order.
    repo.change("web.yaml", &web("app:2"));
    site.await_rollout("web");
    site.await_free_budget();
    repo.change("db.yaml", &yaml::workload("StatefulSet", "db", 2, "app:broken", "{}"));
    until("it went back", || daemon.log().contains("rolled back: revision"));
    site.api.merge(&site.at("ConfigMap", "env"), "somebody", &json!({"data": {"a": "foreign"}}));
    site.await_data("env", "a", "1");
    repo.remove("old.yaml");
    repo.commit("Drop it");
    site.await_absence("ConfigMap", "old");
    assert!(daemon.stop().success());
    let system = site.system();
    let own = window.calls();
    let acted = own.iter().filter(|call| call.acted_as == account).count();
    assert!(acted > 50, "{acted} of {}", own.len());
    let unnamed: Vec<String> = own
        .iter()
        .filter(|call| call.acted_as.is_empty())
        .filter(|call| !OWN_REQUESTS.iter().any(|known| known.is(call, &system)))
        .map(|call| format!("{} {} in {:?}: {}", call.verb, call.resource, call.namespace, call.uri))
        .collect();
    assert_eq!(unnamed, [""; 0]);
    let is_made = |known: &&OwnRequest| own.iter().any(|call| known.is(call, &system));
    let unmade: Vec<&str> =
        OWN_REQUESTS.iter().filter(|known| !is_made(known)).map(|known| known.why).collect();
    assert_eq!(unmade, [""; 0]);
}
