//! The rollout ledger, when somebody else takes it away, empties it or writes garbage into it. Also
//! when the process that wrote into it has ended.

use controlplane::{Answer, Fault, Requests, Rule};
use serde_json::{Value, json};

use crate::failures::{BOUNDS, BUDGET, IMAGE, ONE, at_rest, await_image, narrow, push};
use crate::manifests::{Web, config};
use crate::observer::Observer;
use crate::support::{DEFAULT_TIMEOUT, Repo, TestNamespace, at, eventually, source, until};

const NAME: &str = "rollout-budget.rhumb.dev";

fn budget(site: &TestNamespace<'_>) -> String {
    at("ConfigMap", &site.system(), NAME)
}

/// Returns a list of the ledger that its object records; empty where there is none.
fn entries(object: &Value, key: &str) -> Vec<Value> {
    let text = object.pointer("/data/claims").and_then(Value::as_str);
    let ledger: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    ledger.and_then(|ledger| ledger[key].as_array().cloned()).unwrap_or_default()
}

fn claims(site: &TestNamespace<'_>) -> Vec<Value> {
    entries(&site.api.get(&budget(site)).unwrap_or_default(), "claims")
}

fn await_claim(site: &TestNamespace<'_>, name: &str) {
    eventually(&format!("{name} is claimed"), DEFAULT_TIMEOUT, || {
        let object = format!("Deployment.apps/{}/{name}", site.name);
        let claims = claims(site);
        if claims.iter().any(|claim| claim["object"] == json!(object)) {
            Ok(())
        } else {
            Err(format!("{claims:?}"))
        }
    });
}

/// Takes the claims of two daemons away, which share a budget of one workload. That of the first
/// has begun, and the second knows of it or not.
fn taken_away(name: &str, take: impl FnOnce(&TestNamespace<'_>)) {
    let site = TestNamespace::new(name);
    // A rollout takes longer than the time for which nothing is claimed in a new ledger.
    let files = |web: &str, image: &str| vec![Web::new(web, image).fault("ready-delay: 4s").file()];
    let (one, two) = (Repo::new(&files("one", "app:1")), Repo::new(&files("two", "app:1")));
    let configuration = |source_name: &str, repo: &Repo| {
        let source = source(&format!("{name}-{source_name}"), &site.name, repo.path(), "");
        format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{}\n---\n{source}", narrow(BUDGET))
    };
    let other = site.with_empty_state();
    let _both = (site.configured(&configuration("one", &one)), other.configured(&configuration("two", &two)));
    for name in ["one", "two"] {
        site.await_rollout(name);
    }
    site.await_free_budget();
    let observer = Observer::new(&site);
    push(&one, &files("one", "app:2"), "Change it");
    until("the first one rolls", || site.value("Deployment", "one", IMAGE) == json!("app:2"));
    take(&site);
    push(&two, &files("two", "app:2"), "Change it");
    await_claim(&site, "one");
    for name in ["one", "two"] {
        await_image(&site, name, "app:2");
    }
    site.await_free_budget();
    observer.judge(ONE);
}

#[test]
fn what_is_claimed_is_written_anew_where_the_rollout_ledger_is_deleted() {
    taken_away("ledger-deleted", |site| site.api.delete(&budget(site)));
}

#[test]
fn what_is_claimed_is_written_anew_where_the_rollout_ledger_is_emptied() {
    taken_away("ledger-emptied", |site| {
        site.api.merge(&budget(site), "somebody", &json!({"data": {"claims": "{}"}}));
    });
}

#[test]
fn a_claim_that_cannot_be_read_counts_and_is_reported_with_the_command_that_mends_it() {
    let site = TestNamespace::new("ledger-unread");
    let files = |image: &str| vec![Web::new("web", image).file()];
    let repo = Repo::new(&files("app:1"));
    let daemon = site.configured(&site.configuration(repo.path(), &narrow(BUDGET)));
    site.await_rollout("web");
    let of_tomorrow = json!({"claims": [{"workload": "Deployment.apps/shop/web", "pods": 1}]}).to_string();
    let unread = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"claims": of_tomorrow},
    });
    site.api.apply(&budget(&site), "somebody", &unread);
    push(&repo, &files("app:2"), "Change it");
    let mends = format!("`kubectl -n {} delete configmap {NAME}`", site.system());
    let expected = [NAME, "1 claim cannot be read, and counts", &mends];
    daemon.says(&expected);
    for command in [&["status"][..], &["rollout", "status"], &["why", "deploy/web"]] {
        eventually("it is reported", DEFAULT_TIMEOUT, || {
            let said = site.rhumb(command).all();
            if expected.iter().all(|text| said.contains(text)) { Ok(()) } else { Err(said) }
        });
    }
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:1"));
    // A later version's claim stays, whatever this one writes beside it.
    assert!(claims(&site).iter().any(|claim| claim["workload"] == json!("Deployment.apps/shop/web")));
    site.api.delete(&budget(&site));
    await_image(&site, "web", "app:2");
}

const STEPS: &str = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";

/// Holds the step with a content that a newer commit has only scaled.
#[test]
fn an_abort_after_a_commit_that_scales_a_held_step_goes_back() {
    let site = TestNamespace::new("ledger-abort");
    let web = |image: &str, count: u32| {
        let web = Web::new("web", image).word(STEPS).fault("ready-delay: 200ms").strategy(1, 0);
        vec![web.replicas(count).file()]
    };
    let repo = Repo::new(&web("app:1", 3));
    let _held = at_rest(&site, &repo, &["web"]);
    push(&repo, &web("app:2", 3), "Change it");
    until("it is held", || site.rhumb(&["why", "deploy/web"]).all().contains("step 1 of 1"));
    push(&repo, &web("app:2", 5), "Scale it");
    until("it is scaled", || site.value("Deployment", "web", "/spec/replicas") == json!(5));
    site.order(&["rollout", "abort", "deploy/web"], &["goes back"]);
    await_image(&site, "web", "app:1");
    site.await_free_budget();
}

#[test]
fn an_apply_that_has_waited_leaves_no_claim_no_unit_and_no_queue() {
    let site = TestNamespace::new("ledger-apply");
    let files =
        |image: &str, content: &str| vec![Web::new("web", image).uses("env").file(), config("env", content)];
    let repo = Repo::new(&files("app:1", "one"));
    site.apply(repo.path(), &["--wait"]).ends(0);
    push(&repo, &files("app:2", "two"), "Change both");
    let observer = Observer::of(&site, &site.system());
    site.apply(repo.path(), &["--wait=3m"]).ends(0);
    // At once, as nobody is left who would take anything back.
    let left = site.api.get(&budget(&site)).unwrap();
    for key in ["claims", "units", "queue"] {
        assert_eq!(entries(&left, key), Vec::<Value>::new(), "{key}: {left}");
    }
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:2"));
    observer.await_state("both were recorded before", "ConfigMap", |object| {
        object["metadata"]["name"] == NAME
            && !entries(object, "claims").is_empty()
            && !entries(object, "units").is_empty()
    });
}

#[test]
fn a_rollout_that_waits_for_a_ledger_that_cannot_be_read_says_so() {
    let mut site = TestNamespace::new("ledger-away");
    let proxy = site.cluster.fault_proxy(3).unwrap();
    let direct = site.with_empty_state();
    site.through(&proxy);
    let files = |image: &str| vec![Web::new("web", image).file()];
    let repo = Repo::new(&files("app:1"));
    let (_daemon, observer) = at_rest(&site, &repo, &["web"]);
    let ledger = Requests::any().path_suffix(&format!("/configmaps/{NAME}"));
    let away = proxy.add(Rule::new(ledger, Fault::Replace(Answer::error(500, "InternalError"))));
    push(&repo, &files("app:2"), "Change it");
    let expected = "the rollout ledger cannot be read: ConfigMap ledger-away-rhumb/rollout-budget.rhumb.dev";
    eventually("it is the reason", DEFAULT_TIMEOUT, || {
        let why = direct.rhumb(&["why", "deploy/web"]).ends(0).all();
        if why.contains(expected) { Ok(()) } else { Err(why) }
    });
    assert_eq!(site.value("Deployment", "web", IMAGE), json!("app:1"));
    proxy.remove(away);
    await_image(&site, "web", "app:2");
    site.await_free_budget();
    observer.judge(BOUNDS);
}
