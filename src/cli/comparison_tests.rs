use serde_json::json;

use super::*;
use crate::cli::manifest_set::ManifestSet;
use crate::input::NO_KEY;
use crate::manifest;
use crate::object::DiagnosticCode;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {level: '1'}\n";
const OTHER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
const BROKEN: &str = "a: [\n";

/// Returns a revision of these files, whose names are letters.
fn revision(name: &str, files: &[&str]) -> RevisionObjects {
    let mut manifests = ManifestSet::default();
    for (number, text) in (b'a'..).zip(files) {
        let path: Arc<str> = format!("{}.yaml", char::from(number)).into();
        let read = manifest::read(&path, text.as_bytes());
        manifests.understood &= read.understood;
        manifests.items.extend(read.items);
        manifests.diagnostics.extend(read.diagnostics);
    }
    let scopes = manifests.scopes();
    RevisionObjects::new(name, manifests, &scopes, "shop", &AllowList::default())
}

fn verdicts(plan: &Plan) -> Vec<String> {
    plan.objects.iter().map(|planned| format!("{} {}", planned.verdict.label(), planned.id)).collect()
}

#[test]
fn objects_are_matched_by_what_names_them() {
    let check = |from: &[&str], to: &[&str], expected: &[&str]| {
        let plan = compare(&revision("main", from), &revision("pr", to));
        assert_eq!(verdicts(&plan), expected, "{from:?} {to:?}");
        assert_eq!((plan.complete, &plan.notes), (true, &Vec::new()));
    };
    check(&[MAP], &[MAP], &["unchanged ConfigMap shop/a"]);
    // Another file, and the namespace that it gets anyway.
    check(
        &[MAP, OTHER],
        &[OTHER, &MAP.replace("name: a", "name: a, namespace: shop")],
        &["unchanged ConfigMap shop/a", "unchanged ConfigMap shop/b"],
    );
    check(&[MAP], &[&MAP.replace("'1'", "'2'")], &["configure ConfigMap shop/a"]);
    check(&[MAP, OTHER], &[MAP], &["unchanged ConfigMap shop/a", "delete ConfigMap shop/b"]);
    check(&[OTHER], &[OTHER, MAP], &["create ConfigMap shop/a", "unchanged ConfigMap shop/b"]);
    let beta = "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n";
    let stable = beta.replace("v2beta2", "v2");
    check(&[beta], &[&stable], &["configure HorizontalPodAutoscaler shop/a"]);
}

#[test]
fn what_both_revisions_leave_to_others_is_no_change() {
    let check = |from: &str, to: &str, expected: &[&str]| {
        let plan = compare(&revision("main", &[from]), &revision("pr", &[to]));
        let [planned] = &*plan.objects else { panic!("one object") };
        let fields: Vec<&str> = planned.fields.iter().map(|field| &*field.path).collect();
        assert_eq!(fields, expected, "{from} {to}");
        assert_eq!(planned.verdict == PlannedAction::Unchanged, expected.is_empty());
    };
    let object = |kind: &str, annotations: &str, data: &str| {
        let metadata = format!("{{name: a, annotations: {{{annotations}}}}}");
        format!("{{apiVersion: v1, kind: {kind}, metadata: {metadata}, {data}}}")
    };
    let map = |ignored: &str, one: &str, two: &str| {
        let annotations = format!("rhumb.dev/ignore-fields: '{ignored}'");
        object("ConfigMap", &annotations, &format!("data: {{one: {one}, two: {two}}}"))
    };
    check(&map("/data/one", "a", "b"), &map("/data/one", "c", "b"), &[]);
    check(&map("/data/one", "a", "b"), &map("/data/one", "c", "d"), &[".data.two"]);
    check(&map("/data/none", "a", "b"), &map("/data/none", "c", "b"), &[".data.one"]);
    let secret = |data: &str| object("Secret", "rhumb.dev/ignore-fields: '/stringData/one, /data/two'", data);
    check(&secret("stringData: {one: a}"), &secret("stringData: {one: b}"), &[]);
    check(&secret("data: {two: YQ==}"), &secret("stringData: {two: b}"), &[]);
    // The mark of made-up values names the render.
    let made = |mark: &str| {
        let ignored = "/data/one, /metadata/annotations/rhumb.dev~1generated";
        let annotations =
            format!("rhumb.dev/ignore-fields: '{ignored}', rhumb.dev/generated: prod/web {mark}");
        object("ConfigMap", &annotations, &format!("data: {{one: value-{mark}}}"))
    };
    check(&made("1"), &made("2"), &[]);
    // Only one of them leaves it to others.
    let plan =
        compare(&revision("main", &[&map("", "a", "b")]), &revision("pr", &[&map("/data/one", "c", "b")]));
    assert!(plan.objects[0].fields.iter().any(|field| &*field.path == ".data.one"));
}

#[test]
fn absence_counts_only_where_the_whole_revision_was_read() {
    let check = |from: &[&str], to: &[&str], expected: &[&str], note: &str| {
        let plan = compare(&revision("main", from), &revision("pr", to));
        assert_eq!(verdicts(&plan), expected, "{from:?} {to:?}");
        assert_eq!((plan.complete, plan.notes), (false, vec![note.to_owned()]));
    };
    check(
        &[MAP, OTHER],
        &[MAP, BROKEN],
        &["unchanged ConfigMap shop/a"],
        "pr was not read completely, so it is not known whether these objects of main are removed: ConfigMap shop/b",
    );
    check(
        &[MAP, BROKEN],
        &[MAP, OTHER],
        &["unchanged ConfigMap shop/a"],
        "main was not read completely, so it is not known whether these objects of pr are added: ConfigMap shop/b",
    );
}

#[test]
fn findings_of_the_older_revision_bear_its_name() {
    let check = |from: &[&str], to: &[&str], expected: &[&str]| {
        let plan = compare(&revision("main", from), &revision("pr", to));
        let files: Vec<&str> = plan.diagnostics.iter().map(|found| &*found.origin.file).collect();
        assert_eq!(files, expected, "{from:?} {to:?}");
    };
    check(&[MAP, BROKEN], &[MAP], &["main:b.yaml"]);
    check(&[MAP], &[MAP, BROKEN], &["b.yaml"]);
    // Both have it.
    check(&[MAP, BROKEN], &[MAP, BROKEN], &["b.yaml"]);
}

#[test]
fn values_of_secrets_are_in_no_part_of_a_plan() {
    let secret = |value: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\nstringData: {{password: {value}}}\n")
    };
    let (old, new) = (secret("canary-before"), secret("canary-after"));
    let check = |from: &[&str], to: &[&str], expected: &str| {
        let plan = compare(&revision("main", from), &revision("pr", to));
        assert_eq!(verdicts(&plan), [expected]);
        let shown = format!("{plan:?}");
        assert!(!shown.contains("canary"), "{shown}");
    };
    check(&[&old], &[&new], "configure Secret shop/key");
    check(&[&old], &[], "delete Secret shop/key");
    check(&[], &[&new], "create Secret shop/key");
    check(&[&old], &[&old], "unchanged Secret shop/key");
}

#[test]
fn what_no_identity_opens_is_compared_as_it_is_encrypted() {
    let sealed = |value: &str, code: DiagnosticCode| {
        let mut manifests = ManifestSet::default();
        let text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\ndata: {{password: {value}}}\nsops: {{mac: {value}}}\n"
        );
        let path: Arc<str> = "key.yaml".into();
        let mut read = manifest::read(&path, text.as_bytes());
        read.items.iter_mut().for_each(|item| item.valid = false);
        manifests.items = read.items;
        manifests.diagnostics = vec![Diagnostic::file_error(path, code, "cannot be opened")];
        let scopes = manifests.scopes();
        RevisionObjects::new("main", manifests, &scopes, "shop", &AllowList::default())
    };
    let check_code = |from: &str, to: &str, expected: &str, code: DiagnosticCode| {
        let plan = compare(&sealed(from, code), &sealed(to, code));
        assert_eq!((verdicts(&plan), plan.diagnostics.len()), (vec![expected.to_owned()], 0));
        assert_eq!(plan.notes, ["1 encrypted file was compared as encrypted, as no identity opens it"]);
        let paths: Vec<&str> = plan.objects[0].fields.iter().map(|field| &*field.path).collect();
        assert!(!paths.iter().any(|path| path.contains("sops")), "{paths:?}");
    };
    let check = |from: &str, to: &str, expected: &str| {
        check_code(from, to, expected, NO_KEY);
        check_code(from, to, expected, "not-supported");
    };
    check("YQ==", "YQ==", "unchanged Secret shop/key");
    check("YQ==", "Yg==", "configure Secret shop/key");
}

#[test]
fn what_could_not_be_applied_is_refused() {
    let allow = AllowList { kinds: Some(std::collections::BTreeSet::new()), ..AllowList::default() };
    let manifests = |text: &str| {
        let read = manifest::read(&"a.yaml".into(), text.as_bytes());
        ManifestSet { items: read.items, ..ManifestSet::default() }
    };
    let side = |name: &str, allow: &AllowList| {
        RevisionObjects::new(name, manifests(MAP), &KindScopes::builtin(), "shop", allow)
    };
    let check = |from: &AllowList, to: &AllowList, verdict: PlannedAction, reason: &str| {
        let plan = compare(&side("main", from), &side("pr", to));
        let planned = &plan.objects[0];
        assert_eq!(planned.verdict, verdict);
        assert!(
            planned.reason.as_deref().is_some_and(|text| text.starts_with(reason)),
            "{:?}",
            planned.reason
        );
    };
    let any = AllowList::default();
    check(&any, &allow, PlannedAction::Refuse, "ConfigMap shop/a is not allowed");
    check(&allow, &any, PlannedAction::Configure, "it could not be applied in main: ");
}

#[test]
fn pods_are_counted_as_manifests_tell_and_nothing_is_said_to_be_made_anew() {
    let id = ObjectId::new(&crate::object::GroupKind::new("apps", "Deployment"), Some("shop"), "web");
    let web = |image: &str, label: &str| json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"app": label}}, "template": {"spec": {"containers": [{"name": "a", "image": image}]}}}});
    let check = |before: &Value, after: &Value, kind: ImpactKind, pods: u32, is_warned: bool| {
        let (found, refusal) = impact(&id, Some(before), Some(after));
        assert_eq!((found, refusal.is_some()), (Impact { kind, pods }, is_warned));
    };
    check(&web("a:1", "a"), &web("a:2", "a"), ImpactKind::Restart, 3, false);
    check(&web("a:1", "a"), &web("a:1", "b"), ImpactKind::InPlace, 0, true);
}
