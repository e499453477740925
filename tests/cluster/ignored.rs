//! Fields that are left to others, and objects that are left alone.

use serde_json::{Value, json};

use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, eventually, until, yaml};

/// Returns a ConfigMap with annotations in flow style, and two keys.
fn marked(name: &str, annotations: &str, a: &str, b: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\ndata:\n  \
         a: \"{a}\"\n  b: \"{b}\"\n"
    )
}

const IGNORE_A: &str = "rhumb.dev/ignore-fields: .data.a";

/// Writes into a ConfigMap as somebody else.
fn theirs(site: &TestNamespace<'_>, name: &str, data: &Value) {
    site.api.merge(&site.at("ConfigMap", name), "somebody", &json!({ "data": data }));
}

/// Waits until all that was written to ConfigMaps before has been seen and answered.
fn pass(site: &TestNamespace<'_>, repo: &Repo, turn: &str) {
    repo.change("other.yaml", &yaml::config_map("other", "a", turn));
    site.await_data("other", "a", turn);
    theirs(site, "other", &json!({"a": "drift"}));
    site.await_data("other", "a", turn);
}

/// Puts an annotation on a ConfigMap, or takes it off.
fn annotate(site: &TestNamespace<'_>, name: &str, key: &str, value: &Value) {
    let change = json!({"metadata": {"annotations": {key: value}}});
    site.api.merge(&site.at("ConfigMap", name), "kubectl-annotate", &change);
}

#[test]
fn another_writer_keeps_an_ignored_field_and_all_else_is_repaired() {
    let site = TestNamespace::new("ignored-field");
    let repo = Repo::new(&[("map.yaml", marked("map", IGNORE_A, "ours", "1"))]);
    let _daemon = site.daemon(repo.path());
    // It is made as its manifest has it.
    site.await_data("map", "a", "ours");
    let window = site.window();
    theirs(&site, "map", &json!({"a": "theirs"}));
    pass(&site, &repo, "1");
    assert!(window.to("configmaps", "map").is_empty(), "{:#?}", window.to("configmaps", "map"));
    assert_eq!(site.data("map", "a"), "theirs");
    // Another value in git is nobody's business either.
    repo.change("map.yaml", &marked("map", IGNORE_A, "newer", "1"));
    pass(&site, &repo, "2");
    assert!(window.to("configmaps", "map").is_empty(), "{:#?}", window.to("configmaps", "map"));
    site.diff(repo.path(), &[]).ends(0);
    // A repair and a change leave it out.
    theirs(&site, "map", &json!({"b": "drift"}));
    site.await_data("map", "b", "1");
    repo.change("map.yaml", &marked("map", IGNORE_A, "newer", "2"));
    site.await_data("map", "b", "2");
    assert_eq!(site.data("map", "a"), "theirs");
    assert_eq!(window.to("configmaps", "map").len(), 2);
    // It is theirs to take away, too.
    theirs(&site, "map", &json!({"a": null}));
    pass(&site, &repo, "3");
    assert_eq!(window.to("configmaps", "map").len(), 2);
    assert_eq!(site.data("map", "a"), "");
    // Without the annotation it is as git has it.
    repo.change("map.yaml", &marked("map", "", "newer", "2"));
    site.await_data("map", "a", "newer");
}

#[test]
fn a_field_that_is_ignored_from_now_on_is_not_reset() {
    let site = TestNamespace::new("ignored-later");
    let scaled = |annotations: &str, replicas: &str, image: &str| {
        let text = yaml::deployment("web", 2, &format!("registry.example/web:{image}"));
        let text = text
            .replace("  name: web\nspec", &format!("  name: web\n  annotations: {{{annotations}}}\nspec"));
        text.replace("  replicas: 2\n", replicas)
    };
    let ignores = "rhumb.dev/ignore-fields: /spec/replicas";
    let repo = Repo::new(&[("web.yaml", scaled("", "  replicas: 3\n", "1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_rollout("web");
    let replicas = || site.value("Deployment", "web", "/spec/replicas");
    let image = |tag: &str| {
        let wanted = format!("registry.example/web:{tag}");
        eventually("the image is there", DEFAULT_TIMEOUT, || {
            let image = site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
            if image == wanted.as_str() { Ok(()) } else { Err(image.to_string()) }
        });
    };
    // The annotation comes, and the field goes from the manifest at once: of its only owner it
    // would become 1.
    repo.change("web.yaml", &scaled(ignores, "", "2"));
    image("2");
    assert_eq!(replicas(), 3);
    repo.change("web.yaml", &scaled(ignores, "  replicas: 5\n", "3"));
    image("3");
    assert_eq!(replicas(), 3);
    let scale = json!({"spec": {"replicas": 4}});
    site.api.merge(&format!("{}/scale", site.at("Deployment", "web")), "scaler", &scale);
    repo.change("web.yaml", &scaled(ignores, "  replicas: 5\n", "4"));
    image("4");
    assert_eq!(replicas(), 4);
    let owners = site.value("Deployment", "web", "/metadata/managedFields");
    let ours = owners.as_array().unwrap().iter().find(|entry| entry["manager"] == "rhumb").unwrap();
    assert!(ours["fieldsV1"]["f:spec"]["f:replicas"].is_null(), "{ours}");
    repo.change("web.yaml", &scaled("", "  replicas: 5\n", "4"));
    eventually("git's count is there", DEFAULT_TIMEOUT, || match replicas() {
        count if count == 5 => Ok(()),
        count => Err(count.to_string()),
    });
}

#[test]
fn what_was_applied_by_kubectl_keeps_its_ignored_fields_when_it_is_taken_over() {
    let site = TestNamespace::new("ignored-adopted");
    let repo = Repo::new(&[("map.yaml", marked("map", IGNORE_A, "ours", "1"))]);
    let file = site.state.path().join("map.yaml");
    std::fs::write(&file, marked("map", "", "theirs", "0")).unwrap();
    site.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    site.apply(repo.path(), &[]).ends(0).says(&["configmap/map", "configured"]);
    assert_eq!((site.data("map", "a"), site.data("map", "b")), ("theirs".to_owned(), "1".to_owned()));
}

#[test]
fn a_diff_says_which_fields_it_does_not_look_at() {
    let site = TestNamespace::new("ignored-shown");
    let repo = Repo::new(&[("map.yaml", marked("map", IGNORE_A, "ours", "1"))]);
    site.apply(repo.path(), &[]).ends(0);
    theirs(&site, "map", &json!({"a": "theirs"}));
    let planned = |run: &Value| {
        let objects = run["objects"].as_array().unwrap();
        let map = objects.iter().find(|object| object.to_string().contains("map.yaml")).unwrap();
        (map["action"].clone(), map["reason"].clone(), map["fields"].clone())
    };
    let same = site.diff(repo.path(), &["-o", "json"]).ends(0).json();
    assert_eq!(planned(&same), (json!("unchanged"), json!("left to others: .data.a"), json!([])));
    repo.change("map.yaml", &marked("map", IGNORE_A, "newer", "2"));
    let changed = site.diff(repo.path(), &["-o", "json"]).ends(1).json();
    let (verdict, reason, fields) = planned(&changed);
    assert_eq!((verdict, reason), (json!("configure"), json!("left to others: .data.a")));
    assert!(fields.to_string().contains("data.b") && !fields.to_string().contains("data.a"), "{fields}");
    site.diff(repo.path(), &[]).ends(1).says(&["left to others: .data.a"]);
}

#[test]
fn what_is_disabled_is_left_alone_until_it_is_enabled_again() {
    let site = TestNamespace::new("left-alone");
    let off = "rhumb.dev/reconcile: disabled";
    let repo = Repo::new(&[
        ("map.yaml", marked("map", "", "1", "1")),
        ("flux.yaml", marked("flux", "", "1", "1")),
        ("never.yaml", marked("never", "kustomize.toolkit.fluxcd.io/reconcile: disabled", "1", "1")),
    ]);
    let _daemon = site.daemon(repo.path());
    site.await_data("map", "a", "1");
    site.await_data("flux", "a", "1");
    // By its manifest, and by a mark on the object.
    annotate(&site, "flux", "kustomize.toolkit.fluxcd.io/reconcile", &json!("disabled"));
    repo.change("map.yaml", &marked("map", off, "2", "2"));
    pass(&site, &repo, "1");
    let window = site.window();
    theirs(&site, "map", &json!({"a": "drift"}));
    theirs(&site, "flux", &json!({"a": "drift"}));
    repo.change("flux.yaml", &marked("flux", "", "2", "2"));
    pass(&site, &repo, "2");
    for name in ["map", "flux", "never"] {
        assert!(window.to("configmaps", name).is_empty(), "{:#?}", window.to("configmaps", name));
    }
    assert_eq!((site.data("map", "a"), site.data("map", "b")), ("drift".to_owned(), "1".to_owned()));
    assert!(!site.has("ConfigMap", "never"));
    let diff = site.diff(repo.path(), &[]).ends(0);
    diff.says(&["1 unchanged, 3 left alone by annotation"]);
    diff.says(&["its annotation asks not to reconcile it"]);
    diff.says(&["kustomize.toolkit.fluxcd.io/reconcile is set on the live object"]);
    // No source names it any more, and it stays.
    repo.remove("flux.yaml");
    repo.commit("Remove");
    pass(&site, &repo, "3");
    window.assert_no_deletes();
    assert_eq!(site.data("flux", "a"), "drift");
    repo.change("flux.yaml", &marked("flux", "", "3", "3"));
    repo.change("map.yaml", &marked("map", "rhumb.dev/reconcile: enabled", "1", "1"));
    site.await_data("map", "a", "1");
    annotate(&site, "flux", "kustomize.toolkit.fluxcd.io/reconcile", &json!("enabled"));
    site.await_data("flux", "a", "3");
    repo.change("never.yaml", &marked("never", "", "1", "1"));
    site.await_data("never", "a", "1");
}

/// Returns the reasons of the Events on a ConfigMap, each with its message.
pub(crate) fn events(site: &TestNamespace<'_>, name: &str) -> Vec<String> {
    let all = site.api.list(&format!("/api/v1/namespaces/{}/events", site.name));
    let of = all.iter().filter(|event| event["involvedObject"]["name"] == json!(name));
    of.map(|event| format!("{} {}", event["reason"], event["message"])).collect()
}

pub(crate) fn status(site: &TestNamespace<'_>) -> String {
    let inventory = site.inventory().unwrap_or_default();
    inventory.pointer("/data/status").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[test]
fn what_somebody_takes_out_of_its_hands_is_counted_and_reported_and_not_called_healthy() {
    let site = TestNamespace::new("opted-out");
    let repo = Repo::new(&[("a.yaml", marked("a", "", "1", "1")), ("b.yaml", marked("b", "", "1", "1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_data("b", "a", "1");
    until("all is well", || status(&site).ends_with("2 objects, applied and healthy"));
    annotate(&site, "a", "rhumb.dev/reconcile", &json!("disabled"));
    until("it is counted", || status(&site).ends_with("2 objects: 1 Settled, 1 OptedOut"));
    until("an Event names the annotation", || {
        let messages = events(&site, "a");
        // No author is behind it: nobody knows who it was.
        let words = "\"rhumb.dev/reconcile is set on the live object: it is neither changed nor repaired until that is \
                     removed\"";
        messages.contains(&format!("\"OptedOut\" {words}"))
    });
    let shown = site.rhumb(&["status"]).ends(0);
    shown.says(&["opted-out", "1 left alone by annotation"]);
    shown.says(&["configmap/a", "OptedOut", "rhumb.dev/reconcile is set on the live object"]);
    annotate(&site, "a", "rhumb.dev/reconcile", &Value::Null);
    until("its end is reported", || events(&site, "a").iter().any(|event| event.contains("\"OptOutEnded\"")));
    until("all is well again", || status(&site).ends_with("2 objects, applied and healthy"));
}

#[test]
fn a_hold_and_a_pause_of_an_object_are_reported_by_events() {
    let site = TestNamespace::new("opted-out-by-hand");
    let repo = Repo::new(&[("a.yaml", marked("a", "", "1", "1")), ("b.yaml", marked("b", "", "1", "1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_data("b", "a", "1");
    until("all is well", || status(&site).ends_with("2 objects, applied and healthy"));
    let (hold, paused) = ("1-a until=2999-01-01T00:00:00Z heap dump", "1-b looking at it");
    let words = [("a", "rhumb.dev/hold", hold), ("b", "rhumb.dev/paused", paused)];
    for (name, key, value) in words {
        annotate(&site, name, key, &json!(value));
    }
    let is_told = |name: &str, reason: &str, text: &str| {
        let all = events(&site, name);
        if all.iter().any(|event| event.contains(reason) && event.contains(text)) {
            Ok(())
        } else {
            Err(all.join("\n"))
        }
    };
    for (name, key, _) in words {
        let begun = format!("{key} is set on the live object");
        eventually("its begin is reported", DEFAULT_TIMEOUT, || is_told(name, "OptedOut", &begun));
    }
    until("both are counted", || status(&site).ends_with("2 objects: 1 Held, 1 Paused"));
    for (name, key, _) in words {
        annotate(&site, name, key, &Value::Null);
        let ended = format!("{key} does not keep rhumb away any more");
        eventually("its end is reported", DEFAULT_TIMEOUT, || is_told(name, "OptOutEnded", &ended));
    }
}

#[test]
fn an_opt_out_that_lasts_is_reported_once_and_not_again_by_the_next_process() {
    let site = TestNamespace::new("opted-out-once");
    let repo = Repo::new(&[("a.yaml", marked("a", "", "1", "1")), ("b.yaml", marked("b", "", "1", "1"))]);
    let mut first = site.daemon(repo.path());
    for name in ["a", "b"] {
        site.await_data(name, "a", "1");
    }
    annotate(&site, "a", "rhumb.dev/reconcile", &json!("disabled"));
    first.says(&["opted out: rhumb.dev/reconcile is set on the live object"]);
    until("it is recorded that it was reported", || {
        site.inventory().unwrap().pointer("/data/told-opt-outs").is_some()
    });
    first.stop();
    let second = site.daemon(repo.path());
    // It sees both, and reports what is new alone.
    annotate(&site, "b", "rhumb.dev/reconcile", &json!("disabled"));
    second.says(&["opted out: rhumb.dev/reconcile is set on the live object", "opted-out-once/b"]);
    until("both are counted", || status(&site).ends_with("2 objects: 2 OptedOut"));
    let log = second.log();
    assert_eq!(log.matches("opted out: ").count(), 1, "{log}");
}

#[test]
fn where_opting_out_is_denied_it_is_reported_and_repaired_all_the_same() {
    let site = TestNamespace::new("opt-out-denied");
    let repo = Repo::new(&[("map.yaml", marked("map", "", "1", "1"))]);
    let settings = site.configuration(repo.path(), "budget: {soak: 0s}");
    let settings = settings.replacen("spec:\n", "spec:\n  optOut: denied\n", 1);
    assert!(settings.contains("optOut: denied"), "{settings}");
    let _daemon = site.configured(&settings);
    site.await_data("map", "a", "1");
    annotate(&site, "map", "rhumb.dev/reconcile", &json!("disabled"));
    let hold = json!("1-a until=2999-01-01T00:00:00Z mine");
    annotate(&site, "map", "rhumb.dev/hold", &hold);
    theirs(&site, "map", &json!({"a": "theirs"}));
    site.await_data("map", "a", "1");
    repo.change("map.yaml", &marked("map", "", "2", "1"));
    site.await_data("map", "a", "2");
    until("that it has no effect is reported", || {
        events(&site, "map")
            .iter()
            .any(|event| event.contains("OptedOut") && event.contains("`optOut: denied`"))
    });
    annotate(&site, "map", "rhumb.dev/paused", &json!("1-b mine too"));
    eventually("it is reported to be settled", DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "cm/map"]).ends(0).all();
        if why.contains("phase    Settled") { Ok(()) } else { Err(why) }
    });
    let why = site.rhumb(&["why", "cm/map"]).ends(0).all();
    assert!(!why.contains("  reason "), "{why}");
}

#[test]
fn what_is_denied_is_no_pause_for_whoever_asks_for_the_rollout() {
    let site = TestNamespace::new("opt-out-rollout");
    let repo = Repo::new(&[("web.yaml", yaml::deployment("web", 1, "app:1"))]);
    let settings = site.configuration(repo.path(), "budget: {soak: 0s}");
    let _daemon = site.configured(&settings.replacen("spec:\n", "spec:\n  optOut: denied\n", 1));
    site.await_rollout("web");
    let words = json!({
        "rhumb.dev/hold": "1-a until=2999-01-01T00:00:00Z mine", "rhumb.dev/paused": "1-b mine too",
        "rhumb.dev/reconcile": "disabled",
    });
    site.api.merge(&site.at("Deployment", "web"), "somebody", &json!({"metadata": {"annotations": words}}));
    repo.change("web.yaml", &yaml::deployment("web", 1, "app:2"));
    let image = || site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
    until("it rolls out all the same", || image() == json!("app:2"));
    site.await_rollout("web");
    site.await_free_budget();
    let reported = site.rhumb(&["rollout", "status", "deploy/web"]).ends(0).all();
    assert!(["paused", "hold", "left alone"].iter().all(|word| !reported.contains(word)), "{reported}");
}

#[test]
fn a_pass_over_what_is_left_alone_ends_well_and_says_so() {
    let site = TestNamespace::new("left-alone-pass");
    let off = marked("map", "rhumb.dev/reconcile: disabled", "1", "1");
    let repo = Repo::new(&[("map.yaml", off), ("other.yaml", yaml::config_map("other", "a", "1"))]);
    let run = site.apply(repo.path(), &["--wait"]).ends(0);
    run.says(&["configmap/map", "left alone: its annotation asks not to reconcile it"]);
    run.says(&["1 created, 0 configured, 0 pruned, 0 unchanged, 1 left alone by annotation"]);
    assert!(site.has("ConfigMap", "other") && !site.has("ConfigMap", "map"));
}

#[test]
fn what_is_only_to_be_created_is_made_again_and_never_changed() {
    let site = TestNamespace::new("only-created");
    let once = "kustomize.toolkit.fluxcd.io/ssa: IfNotPresent";
    let repo = Repo::new(&[("map.yaml", marked("map", once, "1", "1"))]);
    let _daemon = site.daemon(repo.path());
    site.await_data("map", "a", "1");
    let window = site.window();
    theirs(&site, "map", &json!({"a": "theirs"}));
    repo.change("map.yaml", &marked("map", once, "2", "2"));
    pass(&site, &repo, "1");
    assert!(window.to("configmaps", "map").is_empty(), "{:#?}", window.to("configmaps", "map"));
    assert_eq!((site.data("map", "a"), site.data("map", "b")), ("theirs".to_owned(), "1".to_owned()));
    site.api.delete(&site.at("ConfigMap", "map"));
    site.await_data("map", "a", "2");
    // Its mark on the object is our own: the manifest's word is the newer one.
    repo.change("map.yaml", &marked("map", "", "3", "3"));
    site.await_data("map", "a", "3");
}
