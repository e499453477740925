//! `rhumb rbac` and `rhumb check`: the needs of a source that only observes, that prunes nothing,
//! and that has more than it holds. Also the words where the server does not answer.

use controlplane::{Answer, Fault, Requests, Rule};
use serde_json::{Value, json};

use crate::support::{Daemon, Repo, TestNamespace, at, source, until, yaml};

/// Grants the user exactly what is printed, which takes back what was printed before.
fn grant(site: &TestNamespace<'_>, text: &str) -> String {
    let printed = site.with_config(&["rbac", "--user", &site.user], text).ends(0).stdout;
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
    until("all is granted", || !site.with_config(&["check"], text).stdout.contains("missing the right to"));
    printed
}

/// Returns the data that pods use, and a workload that is not there without them.
fn rolled(image: &str) -> [(&'static str, String); 2] {
    let from = "        envFrom:\n        - configMapRef: {name: env}\n        image:";
    let web = yaml::deployment("web", 1, image).replace("        image:", from);
    [("web.yaml", web), ("env.yaml", yaml::config_map("env", "a", image))]
}

#[test]
fn who_only_observes_may_only_look_and_writes_nothing() {
    let mut site = TestNamespace::new("rights-observed");
    let repo = Repo::new(&rolled("app:1"));
    site.apply(repo.path(), &["--wait=3m"]).ends(0);
    let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
    site.api.delete(&budget);
    for (name, text) in rolled("app:2") {
        repo.write(name, &text);
    }
    repo.commit("Change both");
    site.limited();
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 3s\n---\n{}",
        source(&site.name, &site.name, repo.path(), "  observe: true")
    );
    let printed = grant(&site, &text);
    for verb in ["create", "patch", "delete"] {
        assert!(!printed.contains(&format!("- {verb}\n")), "{printed}");
    }
    site.with_config(&["check"], &text).ends(0).says(&["ok ", "observe: true"]);
    let window = site.window();
    let daemon = Daemon::start(site.command_with_config(&["run", "-v"], &text));
    daemon.says(&["Deployment rights-observed/web", "observe: true"]);
    daemon.says(&["ConfigMap rights-observed/env", "it is released together with"]);
    // A wait is in the rollout ledger within some 2 s; the second resync from now is later than
    // that.
    for _ in 0..2 {
        daemon.says_since(daemon.mark(), &["checked everything"]);
    }
    drop(daemon);
    let calls = window.calls();
    let forbidden: Vec<_> = calls.iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    window.assert_no_writes();
    assert!(site.api.get(&budget).is_none());
}

#[test]
fn who_prunes_nothing_may_delete_nothing_but_what_asks_to_be_made_anew() {
    let mut site = TestNamespace::new("rights-kept");
    let job = |image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: once\n  annotations: {{rhumb.dev/recreate: 'true'}}\n\
             spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: '{image}'}}]}}}}}}\n"
        )
    };
    let old = yaml::config_map("old", "a", "1");
    let repo = Repo::new(&[
        ("env.yaml", yaml::config_map("env", "a", "1")),
        ("old.yaml", old),
        ("job.yaml", job("app:1")),
    ]);
    site.limited();
    let text = source(&site.name, &site.name, repo.path(), "  prune: false");
    grant(&site, &text);
    let role =
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{0}/roles/rhumb:{0}-rhumb:{0}", site.name);
    let rules = site.api.value(&role, "/rules");
    let deletes = |rule: &&Value| rule["verbs"].as_array().unwrap().contains(&json!("delete"));
    let deletable: Vec<&Value> =
        rules.as_array().unwrap().iter().filter(deletes).map(|rule| &rule["resources"]).collect();
    assert_eq!(deletable, [&json!(["jobs"])], "{rules:#}");
    let window = site.window();
    let _daemon = site.configured(&text);
    let uid = || site.value("Job", "once", "/metadata/uid");
    until("both are there", || uid().is_string() && site.has("ConfigMap", "old"));
    let first = uid();
    repo.remove("old.yaml");
    repo.change("job.yaml", &job("app:2"));
    until("the Job is made anew", || uid().is_string() && uid() != first);
    assert!(site.has("ConfigMap", "old"));
    let forbidden: Vec<_> = window.calls().into_iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

#[test]
fn a_check_names_what_a_source_has_and_no_longer_holds() {
    let mut site = TestNamespace::new("rights-remains");
    let away = format!("{}-away", site.name);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": away}});
    site.api.create("/api/v1/namespaces", "setup", &namespace);
    let moved = |namespace: &str| {
        yaml::config_map("env", "a", "1")
            .replace("metadata:\n", &format!("metadata:\n  namespace: {namespace}\n"))
    };
    let repo = Repo::new(&[
        ("env.yaml", moved(&away)),
        ("web.yaml", yaml::service("web", "web")),
        ("key.yaml", yaml::secret("key", "token", "right")),
    ]);
    site.apply(repo.path(), &[]).ends(0);
    repo.remove("web.yaml");
    repo.remove("key.yaml");
    repo.write("env.yaml", &moved(&site.name));
    repo.commit("Keep one, elsewhere");
    site.limited();
    let rhumb = |command: &str| site.rhumb(&[command, repo.path().to_str().unwrap()]);
    let printed = site.rhumb(&["rbac", repo.path().to_str().unwrap(), "--user", &site.user]).ends(0);
    printed.says(&["what it has and no longer holds"]);
    site.cluster.kubectl_in(&["apply", "-f", "-"], &printed.stdout).unwrap();
    // Its objects can be seen bit by bit only.
    for lacks in [
        &["list services in the whole cluster", "delete configmaps in namespace rights-remains-away"][..],
        &[],
    ] {
        let mut checked = rhumb("check");
        until("what was granted counts", || {
            checked = rhumb("check");
            checked.code == i32::from(!lacks.is_empty())
        });
        for right in lacks {
            checked.says(&["missing the right to", right, "no longer holds"]);
        }
        if let Some((_, roles)) = checked.stdout.split_once("# Grants what is missing:\n") {
            site.cluster.kubectl_in(&["apply", "-f", "-"], roles).unwrap();
        }
    }
    let window = site.window();
    let daemon = site.daemon(repo.path());
    daemon.says(&["3 pending deletions"]);
    let listed = site.rhumb(&["prune", "list", "-o", "name"]).ends(0).stdout;
    let words: Vec<&str> = ["prune", "confirm"].into_iter().chain(listed.lines()).collect();
    site.rhumb(&words).ends(0);
    for (kind, name) in [("Service", "web"), ("Secret", "key")] {
        site.await_absence(kind, name);
    }
    until("it is gone from there", || site.api.get(&at("ConfigMap", &away, "env")).is_none());
    let forbidden: Vec<_> = window.calls().into_iter().filter(|call| call.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

#[test]
fn a_group_whose_server_is_away_is_no_all_is_well() {
    let site = TestNamespace::new("rights-away");
    let group = "away.rights.example.org";
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nobody"}}});
    site.api.create("/apis/apiregistration.k8s.io/v1/apiservices", "setup", &service);
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let check = || site.rhumb(&["check", repo.path().to_str().unwrap()]);
    until("discovery tells that it is away", || check().stdout.contains(group));
    // Nothing is asked of it.
    let other = check().ends(0);
    other.says(&["warning", "the servers of these API groups do not answer", group]);
    site.apply(repo.path(), &[]).ends(0);
    let kinds = "applyset.kubernetes.io/contains-group-kinds";
    let named = json!({"metadata": {"annotations": {kinds: format!("ConfigMap,Thing.{group}")}}});
    site.api.merge(&at("ConfigMap", &site.system(), &site.name), "somebody", &named);
    check().ends(1).says(&["missing", "nothing is pruned", &format!("Thing.{group}")]);
    let named = json!({"metadata": {"annotations": {kinds: "ConfigMap"}}});
    site.api.merge(&at("ConfigMap", &site.system(), &site.name), "somebody", &named);
    check().ends(0);
    repo.write("thing.yaml", &format!("{{apiVersion: {group}/v1, kind: Thing, metadata: {{name: a}}}}"));
    check().ends(1).says(&[
        "missing",
        &format!("the server of the API group {group} does not answer"),
        "Thing",
    ]);
    site.api.delete(&format!("/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}"));
}

#[test]
fn a_server_that_does_not_tell_is_no_all_is_well() {
    let mut site = TestNamespace::new("rights-silent");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let proxy = site.cluster.fault_proxy(0).unwrap();
    site.through(&proxy);
    let reviews = || Requests::any().path_contains("selfsubjectaccessreviews");
    let discovery = || Requests::any().path_prefix("/apis").path_lacks("/apis/");
    for (requests, words) in [
        (reviews(), "it is not known whether they are granted"),
        (discovery(), "which kinds the server has is not known"),
    ] {
        for code in [403, 500] {
            let rule = proxy.add(Rule::new(requests.clone(), Fault::Replace(Answer::error(code, "Odd"))));
            let checked = site.rhumb(&["check", repo.path().to_str().unwrap()]).ends(1);
            checked.says(&["missing", words]);
            assert!(!checked.stdout.contains("are granted\n"), "{checked:#?}");
            proxy.remove(rule);
        }
    }
    site.rhumb(&["check", repo.path().to_str().unwrap()]).ends(0);
}

#[test]
fn a_binding_whose_policy_nobody_has_is_said_to_be_one() {
    let site = TestNamespace::new("rights-unbound");
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: \
                   rights-unbound}\nspec: {policyName: nobody, validationActions: [Deny], paramRef: {selector: {}, \
                   parameterNotFoundAction: Allow}}\n";
    let repo = Repo::new(&[("binding.yaml", binding)]);
    let rhumb = |command: &str| site.rhumb(&[command, repo.path().to_str().unwrap()]);
    let words = [
        "ValidatingAdmissionPolicyBinding rights-unbound: its policy is in no source",
        "may take the right to list them",
    ];
    rhumb("rbac").ends(0).says(&[&["# "], &words[..]].concat());
    // It may be fine: nobody knows.
    rhumb("check").ends(0).says(&[&["warning "], &words[..]].concat());
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: nobody}\n\
                  spec: {paramKind: {apiVersion: v1, kind: PodTemplate}, validations: [{expression: 'true'}]}\n";
    repo.write("policy.yaml", policy);
    for command in ["rbac", "check"] {
        let checked = rhumb(command).ends(0);
        assert!(!checked.stdout.contains("its policy is in no source"), "{checked:#?}");
    }
}
