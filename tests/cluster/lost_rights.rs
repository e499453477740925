//! Rights that are taken away in the middle of something, and given back.

use controlplane::{FaultProxy, Requests, ResponseCut};
use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, run, source, yaml};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A daemon with the rights that are printed, whose streams can be cut.
struct LimitedDaemon {
    site: TestNamespace<'static>,
    proxy: FaultProxy,
    text: String,
}

impl LimitedDaemon {
    fn new(name: &str, text: impl Fn(&TestNamespace<'_>) -> String) -> Self {
        let mut site = TestNamespace::new(name);
        site.limited();
        let text = text(&site);
        let limited = |arguments: &[&str]| run(site.command_with_config(arguments, &text));
        let printed = limited(&["rbac", "--user", &site.user]).ends(0).stdout;
        site.cluster.kubectl_in(&["apply", "-f", "-"], &printed).unwrap();
        eventually("all is granted", DEFAULT_TIMEOUT, || {
            let told = limited(&["check"]);
            if told.stdout.contains("missing the right") { Err(told.all()) } else { Ok(()) }
        });
        let proxy = site.cluster.fault_proxy(7).unwrap();
        let kubeconfig = proxy.kubeconfig_limited(&site.user).unwrap();
        site.through_file(kubeconfig);
        Self { site, proxy, text }
    }

    fn start(&self) -> Daemon {
        self.site.configured(&self.text)
    }

    /// Takes verbs on a resource out of every role that has them; returns what gives them back.
    fn take(&self, resource: &str, verbs: &[&str]) -> Vec<(String, Value)> {
        let mut taken = Vec::new();
        let name = &self.site.name;
        let mut roles: Vec<String> = self
            .site
            .api
            .list(&format!("{GROUP}/clusterroles"))
            .iter()
            .map(|role| format!("{GROUP}/clusterroles/{}", role["metadata"]["name"].as_str().unwrap()))
            .filter(|path| path.contains(&format!("rhumb:{name}-rhumb")))
            .collect();
        for role in self.site.api.list(&format!("{GROUP}/namespaces/{name}/roles")) {
            roles.push(format!(
                "{GROUP}/namespaces/{name}/roles/{}",
                role["metadata"]["name"].as_str().unwrap()
            ));
        }
        for path in roles {
            let whole = self.site.api.value(&path, "/rules");
            let mut rules = whole.as_array().unwrap().clone();
            for rule in &mut rules {
                let holds = rule["resources"].as_array().is_some_and(|all| all.contains(&json!(resource)));
                if holds {
                    let left: Vec<Value> = rule["verbs"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .filter(|verb| !verbs.contains(&verb.as_str().unwrap()))
                        .cloned()
                        .collect();
                    rule["verbs"] = json!(left);
                }
            }
            rules.retain(|rule| !rule["verbs"].as_array().unwrap().is_empty());
            if json!(rules) != whole {
                self.site.api.merge(&path, "setup", &json!({"rules": rules}));
                taken.push((path, whole));
            }
        }
        assert!(!taken.is_empty(), "{resource} {verbs:?} are in no role");
        for verb in verbs {
            let asked = format!("--as={}", self.site.user);
            eventually("the right is gone", DEFAULT_TIMEOUT, || {
                let told = self.site.cluster.kubectl(&["auth", "can-i", verb, resource, "-n", name, &asked]);
                match told {
                    Ok(yes) if yes.trim() == "yes" => Err(yes),
                    _ => Ok(()),
                }
            });
        }
        taken
    }

    fn give(&self, taken: Vec<(String, Value)>) {
        for (path, rules) in taken {
            self.site.api.merge(&path, "setup", &json!({"rules": rules}));
        }
    }

    fn cut(&self, resource: &str) {
        self.proxy
            .end_open(&Requests::any().watches().path_suffix(&format!("/{resource}")), ResponseCut::Close);
    }
}

fn maps(count: usize) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("c{n:02}.yaml"), yaml::config_map(&format!("c{n:02}"), "a", "1"))).collect()
}

#[test]
fn who_loses_the_right_to_delete_in_a_prune_is_told_so_and_goes_on_when_it_is_back() {
    let repo = Repo::new(&maps(40));
    let path = repo.path().to_owned();
    let fixture = LimitedDaemon::new("lost-delete", |site| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n---\n{}",
            source(&site.name, &site.name, &path, "")
        )
    });
    let site = &fixture.site;
    let daemon = fixture.start();
    site.await_data("c39", "a", "1");
    let taken = fixture.take("configmaps", &["delete"]);
    for n in 0..3 {
        repo.remove(&format!("c{n:02}.yaml"));
    }
    repo.change("c10.yaml", &yaml::config_map("c10", "a", "2"));
    site.await_data("c10", "a", "2");
    daemon.says(&["ConfigMap lost-delete/c00", "may not"]);
    let why = |texts: &[&str], command: &[&str]| {
        eventually(&format!("{command:?}"), DEFAULT_TIMEOUT, || {
            let told = site.rhumb(command).all();
            if texts.iter().all(|text| told.contains(text)) { Ok(()) } else { Err(told) }
        });
    };
    why(&["may not", "delete"], &["why", "configmap/c00"]);
    why(&["may not"], &["status"]);
    assert!(site.has("ConfigMap", "c00"));
    eprintln!("LIST {}", site.rhumb(&["prune", "list"]).all());
    eprintln!("STATUS {}", site.rhumb(&["status"]).all());
    fixture.give(taken);
    for n in 0..3 {
        site.await_absence("ConfigMap", &format!("c{n:02}"));
    }
    drop(daemon);
}

#[test]
fn who_loses_the_right_to_list_in_a_prune_deletes_nothing_and_goes_on_when_it_is_back() {
    let repo = Repo::new(&maps(40));
    repo.change("web.yaml", &yaml::service("web", "web"));
    let path = repo.path().to_owned();
    let fixture = LimitedDaemon::new("lost-list", |site| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n---\n{}",
            source(&site.name, &site.name, &path, "")
        )
    });
    let site = &fixture.site;
    let daemon = fixture.start();
    site.await_data("c39", "a", "1");
    site.await_object("Service", "web");
    daemon.says(&["settled"]);
    let taken = fixture.take("configmaps", &["list", "watch"]);
    fixture.cut("configmaps");
    let window = site.window();
    daemon.says(&["WARN", "configmaps"]);
    repo.remove("c00.yaml");
    repo.change("web.yaml", &yaml::service("web", "other"));
    eventually("the Service follows", DEFAULT_TIMEOUT, || {
        let app = site.value("Service", "web", "/spec/selector/app");
        if app == json!("other") { Ok(()) } else { Err(app.to_string()) }
    });
    eventually("it is told", DEFAULT_TIMEOUT, || {
        let told = site.rhumb(&["status"]).all();
        let is_told =
            told.contains("cannot be listed") || told.contains("cannot list") || told.contains("may not");
        if is_told && !told.contains(" healthy") { Ok(()) } else { Err(told) }
    });
    eprintln!("STATUS {}", site.rhumb(&["status"]).all());
    eprintln!("LIST {}", site.rhumb(&["prune", "list"]).all());
    eprintln!("WHY {}", site.rhumb(&["why", "configmap/c00"]).all());
    std::thread::sleep(std::time::Duration::from_secs(8));
    window.assert_no_deletes();
    assert!(site.has("ConfigMap", "c00"));
    fixture.give(taken);
    eventually("it is pruned", DEFAULT_TIMEOUT * 2, || {
        if site.has("ConfigMap", "c00") { Err("there") } else { Ok(()) }
    });
    assert_eq!(window.deletes().iter().filter(|call| call.code == 200).count(), 1);
}

#[test]
fn who_loses_the_right_to_patch_in_a_rollout_is_told_so_and_goes_on_when_it_is_back() {
    let repo = Repo::new(&[
        ("web.yaml", yaml::deployment("web", 2, "app:1")),
        ("env.yaml", yaml::config_map("env", "a", "1")),
    ]);
    let other = Repo::new(&[("db.yaml", yaml::workload("StatefulSet", "db", 1, "app:1", "{}"))]);
    let (path, second) = (repo.path().to_owned(), other.path().to_owned());
    let fixture = LimitedDaemon::new("lost-patch", |site| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nbudget: {{maxWorkloads: 1, soak: 0s, maxUnavailable: 100%}}\n---\n{}---\n{}",
            source(&site.name, &site.name, &path, ""),
            source(&format!("{}-other", site.name), &site.name, &second, "")
        )
    });
    let site = &fixture.site;
    let daemon = fixture.start();
    site.await_rollout("web");
    site.await_free_budget();
    let taken = fixture.take("deployments", &["patch"]);
    repo.change("web.yaml", &yaml::deployment("web", 2, "app:2"));
    daemon.says(&["Deployment lost-patch/web", "may not"]);
    // The other source is not held up by the claim of the one that may not.
    other.change("db.yaml", &yaml::workload("StatefulSet", "db", 1, "app:2", "{}"));
    eventually("the other one rolls", DEFAULT_TIMEOUT, || {
        let image = site.value("StatefulSet", "db", "/spec/template/spec/containers/0/image");
        if image == json!("app:2") {
            Ok(())
        } else {
            Err(format!("{image} {}", site.rhumb(&["rollout", "status"]).all()))
        }
    });
    eprintln!("WHY {}", site.rhumb(&["why", "deploy/web"]).all());
    fixture.give(taken);
    eventually("it goes on", DEFAULT_TIMEOUT, || {
        let image = site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
        if image == json!("app:2") { Ok(()) } else { Err(image.to_string()) }
    });
    site.await_free_budget();
    let _ = at;
}

#[test]
fn who_loses_the_right_to_patch_in_a_move_between_sources_keeps_the_object() {
    let one = Repo::new(&[
        ("m.yaml", yaml::config_map("m", "a", "one")),
        ("k.yaml", yaml::config_map("k", "a", "1")),
    ]);
    let two = Repo::new(&[("l.yaml", yaml::config_map("l", "a", "1"))]);
    let (first, second) = (one.path().to_owned(), two.path().to_owned());
    let fixture = LimitedDaemon::new("lost-move", |site| {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\npruneDelay: 2s\n---\n{}---\n{}",
            source("lost-move-one", &site.name, &first, ""),
            source("lost-move-two", &site.name, &second, "")
        )
    });
    let site = &fixture.site;
    let daemon = fixture.start();
    site.await_data("m", "a", "one");
    site.await_data("l", "a", "1");
    let uid = site.value("ConfigMap", "m", "/metadata/uid");
    let window = site.window();
    let taken = fixture.take("configmaps", &["patch"]);
    let mark = daemon.mark();
    one.remove("m.yaml");
    one.commit("Give it away");
    two.change("m.yaml", &yaml::config_map("m", "a", "two"));
    daemon.says_since(mark, &["ConfigMap lost-move/m", "may not"]);
    std::thread::sleep(std::time::Duration::from_secs(10));
    window.assert_no_deletes();
    fixture.give(taken);
    site.await_data_within(DEFAULT_TIMEOUT * 2, "m", "a", "two");
    assert_eq!(site.value("ConfigMap", "m", "/metadata/uid"), uid);
    window.assert_no_deletes();
}
