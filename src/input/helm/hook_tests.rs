//! Hooks as objects among others.

use serde_json::json;

use super::hook_events::HOOK_ANNOTATION;
use super::hooks::{
    HOOK_WEIGHT_ANNOTATION, LEFT_ALONE_ANNOTATION, annotate, listed_objects, take_hook_of_definition,
    translate,
};
use super::options::UnnamedNamespace;
use super::output::ChartObject;
use crate::engine::{self, ARGO_HOOK, ARGO_HOOK_DELETE_POLICY};
use crate::input::origin::ObjectOrigin;
use crate::object::annotations::{DEPENDS_ON, HOOK_RELEASE, RECREATE, WAVE};
use crate::object::{Diagnostic, annotation_text, text_at};

fn object(kind: &str, name: &str, hook: &str, weight: &str) -> ChartObject {
    let version = match kind {
        "Job" => "batch/v1",
        "Deployment" => "apps/v1",
        "RoleBinding" => "rbac.authorization.k8s.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "Order" => "example.com/v1",
        _ => "v1",
    };
    let mut body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    for (key, text) in [(HOOK_ANNOTATION, hook), (HOOK_WEIGHT_ANNOTATION, weight)] {
        if !text.is_empty() {
            annotate(&mut body, key, text);
        }
    }
    if kind == "Job" {
        body["spec"] = json!({"ttlSecondsAfterFinished": 5, "template": {"spec": {"containers": []}}});
    }
    let origin = ObjectOrigin { root: "web".into(), renderer: "helm".into(), places: Vec::new() };
    ChartObject { body, origin, generated: Vec::new(), is_definition: false }
}

/// Returns each object by its name, with the names of those that it waits for.
fn order(objects: Vec<ChartObject>) -> Vec<String> {
    let (objects, _) = translate(objects, "web", "prod", UnnamedNamespace::Release).unwrap();
    let waits = |object: &ChartObject| {
        let names = annotation_text(&object.body, DEPENDS_ON);
        let names = names.split(", ").map(|name| name.rsplit('/').next().unwrap());
        format!("{}: {}", text_at(&object.body, &["metadata", "name"]), names.collect::<Vec<_>>().join(" "))
    };
    objects.iter().map(waits).collect()
}

fn translated(objects: Vec<ChartObject>) -> Result<Vec<ChartObject>, String> {
    let translated = translate(objects, "web", "prod", UnnamedNamespace::Release);
    let text = |found: &Diagnostic| format!("{}: {}", found.code, found.message);
    translated.map(|(objects, _)| objects).map_err(|found| found.iter().map(text).collect())
}

#[test]
fn hooks_run_in_the_steps_of_helm() {
    let (pre, post) = ("pre-install,pre-upgrade", "post-install,post-upgrade");
    assert_eq!(
        order(vec![
            object("CustomResourceDefinition", "crd", "", ""),
            object("ConfigMap", "config", "", ""),
            object("Deployment", "web", "", ""),
            object("ServiceAccount", "account", pre, "-5"),
            object("ConfigMap", "script", pre, "-5"),
            object("Job", "second", pre, "5"),
            object("Job", "first", pre, ""),
            object("Job", "first-too", pre, "0"),
            object("Job", "after", post, "x"),
            object("ConfigMap", "last", post, "1"),
        ]),
        [
            "account: ",
            "script: ",
            "first: account script",
            "first-too: account script first",
            "second: account script first first-too",
            "crd: ",
            "config: account script first first-too second",
            "web: account script first first-too second",
            "after: crd config web",
            "last: crd config web after",
        ]
    );
}

#[test]
fn hooks_of_one_weight_run_by_their_names() {
    assert_eq!(
        order(vec![
            object("ConfigMap", "b", "pre-install", ""),
            object("Secret", "c", "pre-install", "-1"),
            object("Job", "z", "pre-install", ""),
            object("Job", "a", "pre-install", "0"),
            object("Job", "b", "pre-install", "0"),
        ]),
        ["c: ", "a: c", "b: c a", "b: c a b", "z: c a b b"]
    );
}

#[test]
fn objects_that_wait_for_too_much_refuse_their_chart() {
    let hooks = (0..2_000).map(|number| object("ConfigMap", &format!("hook-{number}"), "pre-install", ""));
    let others = (0..2_000).map(|number| object("ConfigMap", &format!("other-{number}"), "", ""));
    let refused = translated(hooks.clone().chain(others).collect()).unwrap_err();
    assert_eq!(
        refused,
        "too-large: the hooks of this chart make its objects wait for each other in more than 16777216 bytes of names"
    );
    assert!(translated(hooks.collect()).is_ok());
}

// A binding of many accounts: each of them compared with all that gives rights would take minutes.
#[test]
fn what_gives_rights_to_many_accounts_is_found_at_once() {
    let mut binding = object("RoleBinding", "all", "", "");
    let subject =
        |number| json!({"kind": "ServiceAccount", "name": format!("a{number}"), "namespace": "prod"});
    binding.body["subjects"] = (0..9_000).map(subject).collect();
    let mut job = object("Job", "migrate", "pre-install", "");
    job.body["spec"]["template"]["spec"] = json!({"serviceAccountName": "a0", "containers": []});
    let accounts = (0..9_000).map(|number| object("ServiceAccount", &format!("a{number}"), "", ""));
    let others = (0..9_000).map(|number| object("RoleBinding", &format!("b{number}"), "", ""));
    let objects = accounts.chain(others).chain([binding, job]).collect();
    let waits = |object: &&ChartObject| !annotation_text(&object.body, DEPENDS_ON).is_empty();
    assert_eq!(translated(objects).unwrap().iter().filter(waits).count(), 9_000);
}

#[test]
fn what_a_hook_needs_does_not_wait_for_it() {
    let mut job = object("Job", "migrate", "pre-upgrade", "");
    job.body["spec"]["template"]["spec"] = json!({"serviceAccountName": "web",
        "containers": [{"envFrom": [{"secretRef": {"name": "login"}}]}]});
    let mut binding = object("RoleBinding", "rights", "", "");
    binding.body["subjects"] = json!([{"kind": "ServiceAccount", "name": "web", "namespace": "prod"}]);
    binding.body["roleRef"] = json!({"kind": "Role", "name": "elsewhere"});
    assert_eq!(
        order(vec![
            object("ServiceAccount", "web", "", ""),
            object("Secret", "login", "", ""),
            object("Secret", "other", "", ""),
            binding,
            job,
        ]),
        ["migrate: ", "web: ", "login: ", "other: migrate", "rights: "]
    );
}

#[test]
fn what_a_hook_needs_comes_in_no_later_wave_than_the_hook() {
    let check = |map: &str, expected: [i32; 3]| {
        let mut job = object("Job", "migrate", "pre-upgrade", "");
        job.body["spec"]["template"]["spec"] = json!({"serviceAccountName": "web", "containers": []});
        let mut binding = object("RoleBinding", "rights", "", "");
        binding.body["subjects"] = json!([{"kind": "ServiceAccount", "name": "web", "namespace": "prod"}]);
        let mut other = object("ConfigMap", "other", "", "");
        annotate(&mut other.body, WAVE, map);
        let account = object("ServiceAccount", "web", "", "");
        let objects = translated(vec![account, binding, other, job]).unwrap();
        let wave_of = |kind: &str| {
            let of_kind = objects.iter().find(|object| text_at(&object.body, &["kind"]) == kind);
            engine::wave(&of_kind.unwrap().body)
        };
        assert_eq!(["Job", "RoleBinding", "ServiceAccount"].map(wave_of), expected, "{map}");
    };
    check("-1", [-1, -1, -1]);
    check("2", [2, 0, 0]);
}

// A Deployment waits for its ConfigMap, which would wait for the Deployment.
#[test]
fn a_hook_that_runs_after_does_not_wait_for_what_needs_it() {
    let post = "post-install,post-upgrade";
    let mut web = object("Deployment", "web", "", "");
    web.body["spec"] = json!({"template": {"spec": {"serviceAccountName": "account",
        "containers": [{"envFrom": [{"configMapRef": {"name": "env"}}]}]}}});
    let mut account = object("ServiceAccount", "account", post, "");
    account.body["imagePullSecrets"] = json!([{"name": "pull"}]);
    assert_eq!(
        order(vec![
            web,
            account,
            object("ConfigMap", "env", post, ""),
            object("ConfigMap", "other", post, ""),
            object("Secret", "pull", post, ""),
            object("Job", "last", post, "1"),
        ]),
        [
            "web: ",
            "account: ",
            "env: ",
            "pull: ",
            "other: web account env pull",
            "last: web account env pull other",
        ]
    );
}

// Charts for helm and for Argo CD have the words of both.
#[test]
fn a_hook_of_argo_cd_too_is_one_by_the_words_of_helm() {
    let release = |argo: &str| {
        let mut job = object("Job", "migrate", "pre-install,pre-upgrade", "");
        annotate(&mut job.body, ARGO_HOOK, argo);
        annotate(&mut job.body, ARGO_HOOK_DELETE_POLICY, "HookSucceeded");
        vec![object("Deployment", "web", "", ""), job]
    };
    for argo in ["PreSync", "PostSync,SyncFail"] {
        assert_eq!(order(release(argo)), ["migrate: ", "web: migrate"], "{argo}");
        let job = &translated(release(argo)).unwrap()[0].body;
        let words = [HOOK_ANNOTATION, ARGO_HOOK, ARGO_HOOK_DELETE_POLICY];
        assert_eq!(words.map(|word| annotation_text(job, word)), [""; 3], "{argo}");
    }
    // One that both leave alone holds nothing up.
    assert_eq!(order(release("Skip")), ["web: ", "migrate: "]);
    let skipped = &translated(release("Skip")).unwrap()[1].body;
    let words = [HOOK_ANNOTATION, ARGO_HOOK];
    assert_eq!(words.map(|word| annotation_text(skipped, word)), ["", "Skip"]);
}

#[test]
fn nothing_waits_for_a_hook_of_a_later_wave_and_no_hook_for_a_later_wave() {
    const ARGO_WAVE: &str = "argocd.argoproj.io/sync-wave";
    #[track_caller]
    fn check(hook: &str, rest: &[&str], own: Option<(&str, &str)>, expected: i32) {
        let mut job = object("Job", "job", hook, "");
        if let Some((word, wave)) = own {
            annotate(&mut job.body, word, wave);
        }
        let others = rest.iter().enumerate().map(|(number, wave)| {
            let mut map = object("ConfigMap", &format!("map-{number}"), "", "");
            annotate(&mut map.body, ARGO_WAVE, wave);
            map
        });
        let objects = translated(others.chain([job]).collect()).unwrap();
        let job = objects.iter().find(|object| text_at(&object.body, &["kind"]) == "Job").unwrap();
        assert_eq!(engine::wave(&job.body), expected, "{hook} {rest:?} {own:?}");
    }
    check("pre-install", &["-1", "2"], None, -1);
    check("post-install", &["-1", "2"], None, 2);
    check("pre-install", &["3", "4"], None, 3);
    check("post-install", &["-2"], None, -2);
    check("pre-install", &["0"], Some((ARGO_WAVE, "5")), 0);
    check("post-install", &["0"], Some((ARGO_WAVE, "-5")), 0);
    // A wave of rhumb's own counts as far as the order allows it.
    check("pre-install", &["0"], Some((WAVE, "-3")), -3);
    check("pre-install", &["0"], Some((WAVE, "3")), 0);
    check("post-install", &["0"], Some((WAVE, "3")), 3);
    check("pre-install", &[], Some((WAVE, "3")), 3);
}

// Each waits for the one before it, whatever its own wave is.
#[test]
fn no_hook_waits_for_a_hook_of_a_later_wave() {
    #[track_caller]
    fn check(hook: &str, rest: &[&str], own: [Option<&str>; 2], expected: [i32; 2]) {
        let job = |name: &str, wave: Option<&str>| {
            let mut job = object("Job", name, hook, "");
            if let Some(wave) = wave {
                annotate(&mut job.body, WAVE, wave);
            }
            job
        };
        let others = rest.iter().map(|wave| {
            let mut map = object("ConfigMap", "map", "", "");
            annotate(&mut map.body, WAVE, wave);
            map
        });
        let hooks = [job("a", own[0]), job("b", own[1])];
        let objects = translated(others.chain(hooks).collect()).unwrap();
        let wave_of = |name: &str| {
            let named = objects.iter().find(|object| text_at(&object.body, &["metadata", "name"]) == name);
            engine::wave(&named.unwrap().body)
        };
        assert_eq!(["a", "b"].map(wave_of), expected, "{hook} {rest:?} {own:?}");
    }
    check("pre-install", &["0"], [None, Some("-3")], [-3, -3]);
    check("pre-install", &["0"], [Some("-5"), Some("-3")], [-5, -3]);
    check("post-install", &["0"], [Some("3"), None], [3, 3]);
    check("post-install", &["0"], [Some("3"), Some("5")], [3, 5]);
    check("pre-install", &[], [Some("2"), Some("1")], [1, 1]);
    check("post-install", &[], [Some("2"), Some("1")], [2, 2]);
}

#[test]
fn an_object_is_named_as_the_annotation_wants_it() {
    let mut elsewhere = object("ConfigMap", "b", "pre-install", "");
    elsewhere.body["metadata"]["namespace"] = "elsewhere".into();
    let mut definition = object("CustomResourceDefinition", "orders", "", "");
    definition.body["spec"] =
        json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Order"}});
    let mut web = object("Deployment", "web", "", "");
    annotate(&mut web.body, DEPENDS_ON, "Secret/own");
    let hooks = vec![
        object("Job", "a", "pre-install", ""),
        object("Namespace", "d", "pre-install", ""),
        object("Order", "c", "pre-install", ""),
        object("Unknown", "u", "pre-install", ""),
        elsewhere,
        definition,
        web,
    ];
    let (objects, _) = translate(hooks, "web", "prod", UnnamedNamespace::Release).unwrap();
    assert_eq!(
        annotation_text(&objects[6].body, DEPENDS_ON),
        "Secret/own, batch/namespaces/prod/Job/a, /namespaces/elsewhere/ConfigMap/b, \
         example.com/namespaces/prod/Order/c, /Namespace/d"
    );
}

#[test]
fn a_job_runs_again_when_its_release_changes() {
    let run = |image: &str, password: &str| {
        let mut web = object("Deployment", "web", "", "");
        web.body["spec"] = json!({"image": image});
        let mut secret = object("Secret", "login", "", "");
        secret.body["data"] = json!({"password": password});
        let mut config = object("ConfigMap", "made-up", "", "");
        config.body["data"] = json!({"token": password});
        config.generated = vec!["/data/token".to_owned()];
        let job = object("Job", "migrate", "pre-install,pre-upgrade", "");
        let (objects, notices) =
            translate(vec![web, secret, config, job], "web", "prod", UnnamedNamespace::Release).unwrap();
        assert_eq!(notices, []);
        objects[0].body.clone()
    };
    let job = run("a", "x");
    assert_eq!(annotation_text(&job, RECREATE), "true");
    assert_eq!(job["metadata"]["annotations"].as_object().unwrap().len(), 1);
    assert_eq!(job["spec"].as_object().unwrap().len(), 1);
    assert_eq!(annotation_text(&job["spec"]["template"], HOOK_RELEASE).len(), 32);
    assert_ne!(job, run("b", "x"));
    // The hash depends on nothing of a Secret, and on nothing that is another one each time.
    assert_eq!(job, run("a", "y"));
}

#[test]
fn a_hook_without_a_name_gets_one_that_the_others_wait_for() {
    let nameless = |kind: &str, hook: &str| {
        let mut object = object(kind, "", hook, "");
        object.body["metadata"]["generateName"] = "migrate-".into();
        object.body["metadata"].as_object_mut().unwrap().remove("name");
        object
    };
    let run = |image: &str| {
        let mut web = object("Deployment", "web", "", "");
        web.body["spec"] = json!({"image": image});
        let hooks = ["pre-install,pre-upgrade", "pre-install"].map(|hook| nameless("Job", hook));
        translated([web].into_iter().chain(hooks).collect()).unwrap()
    };
    let objects = run("a");
    let names = |objects: &[ChartObject]| {
        let name = |object: &ChartObject| text_at(&object.body, &["metadata", "name"]).to_owned();
        objects.iter().map(name).collect::<Vec<_>>()
    };
    let found = names(&objects);
    assert!(found[0].starts_with("migrate-") && found[1].starts_with("migrate-"), "{found:?}");
    assert!(found[0] != found[1] && found[2] == "web", "{found:?}");
    assert_eq!(objects[0].body["metadata"].get("generateName"), None);
    let awaited = format!("batch/namespaces/prod/Job/{}, batch/namespaces/prod/Job/{}", found[0], found[1]);
    assert_eq!(annotation_text(&objects[2].body, DEPENDS_ON), awaited);
    // The next release has the same Jobs. The first of them runs again, and the second does not.
    let next = run("b");
    assert_eq!(names(&next), found);
    let is_same = |number: usize| {
        let template = |objects: &[ChartObject]| objects[number].body["spec"]["template"].clone();
        template(&objects) == template(&next)
    };
    assert_eq!([is_same(0), is_same(1)], [false, true]);
    // An object that is no hook keeps its own way: helm takes none without a name.
    let mut plain = nameless("Job", "");
    plain.body["metadata"].as_object_mut().unwrap().remove("annotations");
    let body = plain.body.clone();
    assert_eq!(translated(vec![plain]).unwrap()[0].body, body);
}

#[test]
fn what_only_an_installation_runs_is_left_alone_afterwards() {
    let (objects, notices) =
        translate(vec![object("Job", "a", "pre-install", "")], "web", "prod", UnnamedNamespace::Release)
            .unwrap();
    assert_eq!(notices, []);
    assert_eq!(
        objects[0].body,
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "a", "annotations": {LEFT_ALONE_ANNOTATION.0: LEFT_ALONE_ANNOTATION.1}},
            "spec": {"template": {"spec": {"containers": []}}}})
    );
}

/// Checks which Jobs a new release changes, so that they run again.
#[test]
fn a_new_release_runs_each_hook_again_but_those_of_an_installation_alone() {
    let job_of = |hook: &str, image: &str| {
        let mut web = object("Deployment", "web", "", "");
        web.body["spec"] = json!({"image": image});
        let objects = translated(vec![web, object("Job", "job", hook, "")]).unwrap();
        objects.into_iter().find(|object| text_at(&object.body, &["kind"]) == "Job").unwrap().body
    };
    for (hook, runs_again) in [
        ("pre-install", false),
        ("post-install", false),
        ("pre-install,post-install", false),
        ("pre-upgrade", true),
        ("post-upgrade", true),
        ("pre-install,pre-upgrade", true),
        ("post-install,pre-upgrade", true),
    ] {
        assert_eq!(job_of(hook, "a") != job_of(hook, "b"), runs_again, "{hook}");
    }
}

#[test]
fn what_is_not_run_as_by_helm_is_reported() {
    let check = |hook: &str, order: &[&str], notices: &[&str]| {
        let (objects, findings) = translate(
            vec![object("Secret", "web", "", ""), object("ConfigMap", "a", hook, "")],
            "web",
            "prod",
            UnnamedNamespace::Release,
        )
        .unwrap();
        let names: Vec<_> =
            objects.iter().map(|object| text_at(&object.body, &["metadata", "name"])).collect();
        assert_eq!(names, order, "{hook}");
        let findings: Vec<_> =
            findings.iter().map(|found| format!("{} {}", found.code, found.message)).collect();
        assert_eq!(findings, notices, "{hook}");
    };
    check("pre-install, Pre-Upgrade,pre-delete", &["a", "web"], &[]);
    check("post-install,post-upgrade", &["web", "a"], &[]);
    check(
        "post-install,pre-upgrade",
        &["web", "a"],
        &[
            "hook-order ConfigMap a: it asks to run before an upgrade, and runs after the rest, as at an installation",
        ],
    );
    check(
        "pre-install,post-upgrade",
        &["a", "web"],
        &[
            "hook-order ConfigMap a: it asks to run after an upgrade, and runs before the rest, as at an installation",
        ],
    );
    check(
        "pre-install,post-install",
        &["a", "web"],
        &["hook-order ConfigMap a: it asks to run before and after the rest, and runs once, before"],
    );
    check(
        "pre-upgrade",
        &["a", "web"],
        &["hook-order ConfigMap a: it asks to run at upgrades alone, and runs when the release is new too"],
    );
    check(
        "post-upgrade",
        &["web", "a"],
        &["hook-order ConfigMap a: it asks to run at upgrades alone, and runs when the release is new too"],
    );
    for hook in ["pre-delete", "post-delete,post-rollback"] {
        check(
            hook,
            &["web"],
            &["hook-not-run ConfigMap a: it is a hook for deletion or rollback, which is not run"],
        );
    }
    for hook in ["test", "test-success", "pre-delete,test"] {
        check(hook, &["web"], &["hook-not-run ConfigMap a: it is a test, which is not run"]);
    }
    // helm runs it at an installation, and again as a test.
    check("post-install,test", &["web", "a"], &[]);
    check("test,pre-install,pre-upgrade", &["a", "web"], &[]);
}

// helm prints the files in `crds/` as they are, with what an older version took for a hook.
#[test]
fn a_word_that_helm_does_not_know_makes_no_hook() {
    for hook in ["crd-install", "pre-install,crd-install", "pre-install,"] {
        let definition = object("CustomResourceDefinition", "orders.example.com", hook, "1");
        let translated = translate(vec![definition], "web", "prod", UnnamedNamespace::Release);
        let (objects, notices) = translated.unwrap();
        assert_eq!(notices, [], "{hook}");
        let metadata: Vec<_> = objects.iter().map(|object| &object.body["metadata"]).collect();
        assert_eq!(metadata, [&json!({"name": "orders.example.com"})], "{hook}");
    }
}

#[test]
fn a_file_in_crds_is_no_hook_whatever_it_says() {
    let check = |is_definition: bool, hook: &str, expected: bool, left: &str| {
        let mut definition = object("CustomResourceDefinition", "orders.example.com", hook, "1");
        definition.is_definition = is_definition;
        assert_eq!(take_hook_of_definition(&mut definition), expected, "{is_definition} {hook}");
        assert_eq!(annotation_text(&definition.body, HOOK_ANNOTATION), left, "{is_definition} {hook}");
    };
    check(true, "pre-delete", true, "");
    check(true, "pre-install,post-upgrade", true, "");
    check(false, "pre-delete", false, "pre-delete");
    check(true, "crd-install", false, "crd-install");
}

#[test]
fn a_release_without_hooks_stays_as_it_is() {
    let mut kept = object("Secret", "kept", "", "");
    annotate(&mut kept.body, "helm.sh/resource-policy", "keep");
    let objects = vec![object("Deployment", "web", "", ""), kept];
    assert_eq!(
        translate(objects.clone(), "web", "prod", UnnamedNamespace::Release),
        Ok((objects, Vec::new()))
    );
}

#[test]
fn a_name_leaves_the_namespace_open_where_the_source_gives_it() {
    let check = |unnamed, namespace: &str, expected: &str| {
        let mut first = object("Job", "a", "pre-install", "");
        if !namespace.is_empty() {
            first.body["metadata"]["namespace"] = namespace.into();
        }
        let (objects, _) =
            translate(vec![object("ConfigMap", "b", "", ""), first], "web", "prod", unnamed).unwrap();
        assert_eq!(annotation_text(&objects[1].body, DEPENDS_ON), expected, "{unnamed:?} {namespace}");
    };
    check(UnnamedNamespace::Source, "", "batch/namespaces//Job/a");
    check(UnnamedNamespace::Source, "other", "batch/namespaces/other/Job/a");
    check(UnnamedNamespace::Release, "", "batch/namespaces/prod/Job/a");
    check(UnnamedNamespace::Release, "other", "batch/namespaces/other/Job/a");
}

#[test]
fn items_of_a_list_are_hooks_as_other_objects_are() {
    let listed = |items: Vec<ChartObject>, hook: &str| {
        let mut list = object("List", "", hook, "");
        list.body["items"] = items.into_iter().map(|item| item.body).collect();
        listed_objects(list).collect::<Vec<_>>()
    };
    let mut objects =
        listed(vec![object("ConfigMap", "web", "", ""), object("Job", "a", "pre-install", "")], "");
    assert_eq!(order(objects.clone()), ["a: ", "web: a"]);
    // A list that is a hook makes hooks of its items, but of those that are others.
    objects =
        listed(vec![object("ConfigMap", "b", "", ""), object("Job", "c", "post-install", "")], "pre-install");
    objects.push(object("Secret", "web", "", ""));
    assert_eq!(order(objects), ["b: ", "web: b", "c: web"]);
}
