//! Hooks of charts, as helm prints them and as they are applied.

use rhumb::testing::input::helm::{GeneratedPolicy, HelmOptions, UnnamedNamespace};
use rhumb::testing::object::{annotations, text_at};

use crate::fixture::{Chart, options};

fn job(name: &str, hook: &str, weight: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: {hook}\n    \
         helm.sh/hook-weight: \"{weight}\"\n    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded\nspec:\n  \
         template:\n    spec: {{restartPolicy: Never, containers: [{{name: a, image: {{{{ .Values.image }}}}}}]}}\n---\n"
    )
}

fn chart() -> Chart {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: {{ .Values.image }}}\n";
    let jobs = [
        job("late", "pre-install,pre-upgrade", "5"),
        job("early", "pre-install,pre-upgrade", "-5"),
        job("last", "post-install,post-upgrade", "0"),
        job("goodbye", "pre-delete", "0"),
        job("check", "test", "0"),
        job("smoke", "post-install,post-upgrade,test", "1"),
    ];
    Chart::of(
        &[
            ("web/values.yaml", "image: a\n"),
            ("web/templates/a.yaml", map),
            ("web/templates/jobs.yaml", &jobs.concat()),
        ],
        &[],
    )
}

#[test]
fn hooks_are_objects_in_the_order_of_helm_and_the_others_are_reported() {
    let render = chart().render(&options()).unwrap();
    let waits = |body: &serde_json::Value| {
        let name = text_at(body, &["metadata", "name"]).to_owned();
        let on = text_at(body, &["metadata", "annotations", annotations::DEPENDS_ON]).to_owned();
        (name, on)
    };
    let pair = |name: &str, on: &str| (name.to_owned(), on.to_owned());
    let before = "batch/namespaces//Job/early, batch/namespaces//Job/late";
    assert_eq!(
        render.objects.iter().map(|object| waits(&object.body)).collect::<Vec<_>>(),
        [
            pair("early", ""),
            pair("late", "batch/namespaces//Job/early"),
            pair("config", before),
            pair("last", "/namespaces//ConfigMap/config"),
            pair("smoke", "/namespaces//ConfigMap/config, batch/namespaces//Job/last"),
        ]
    );
    let mut notices: Vec<_> =
        render.notices.iter().map(|found| format!("{}: {}", found.origin, found.message)).collect();
    notices.sort();
    assert_eq!(
        notices,
        [
            "web/templates/jobs.yaml: Job check: it is a test, which is not run",
            "web/templates/jobs.yaml: Job goodbye: it is a hook for deletion or rollback, which is not run",
        ]
    );
    let text = format!("{:?}", render.objects.iter().map(|object| &object.body).collect::<Vec<_>>());
    assert!(!text.contains("helm.sh/hook"), "{text}");
}

#[test]
fn a_job_is_another_one_when_its_release_changes() {
    let hash = |image: &str| {
        let values = rhumb::testing::input::helm::ValuesSource::Inline(format!("image: {image}"));
        let options = rhumb::testing::input::helm::HelmOptions { values: vec![values], ..options() };
        let render = chart().render(&options).unwrap();
        let template = &render.objects[0].body["spec"]["template"]["metadata"]["annotations"];
        template[annotations::HOOK_RELEASE].as_str().unwrap().to_owned()
    };
    assert_eq!(hash("a"), hash("a"));
    assert_ne!(hash("a"), hash("b"));
}

#[test]
fn a_hook_whose_name_the_server_would_make_up_has_the_same_one_in_each_release() {
    let job = job("migrate-", "pre-install,pre-upgrade", "0").replace("  name: ", "  generateName: ");
    let chart = Chart::of(&[("web/values.yaml", "image: a\n"), ("web/templates/job.yaml", &job)], &[]);
    let names = |image: &str| {
        let values = rhumb::testing::input::helm::ValuesSource::Inline(format!("image: {image}"));
        let options = HelmOptions { values: vec![values], ..options() };
        let objects = chart.render(&options).unwrap().objects;
        objects.iter().map(|object| object.body["metadata"]["name"].clone()).collect::<Vec<_>>()
    };
    let found = names("a");
    assert!(found.len() == 1 && found[0].as_str().unwrap().starts_with("migrate-"), "{found:?}");
    assert_eq!(names("b"), found);
}

#[test]
fn items_of_a_list_are_hooks_and_objects_as_others_are() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: key}\n  \
                stringData: {a: {{ randAlphaNum 20 }}}\n- apiVersion: batch/v1\n  kind: Job\n  metadata:\n    \
                name: first\n    annotations: {helm.sh/hook: pre-install}\n  spec: {template: {spec: {}}}\n";
    let chart = Chart::of(&[("web/templates/list.yaml", list)], &[]);
    let refused = crate::fixture::findings(chart.render(&options()));
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("Secret key: /stringData/a differs"), "{refused:?}");
    let once =
        HelmOptions { generated: GeneratedPolicy::Once, objects: UnnamedNamespace::Release, ..options() };
    let objects: Vec<_> =
        chart.render(&once).unwrap().objects.into_iter().map(|object| object.body).collect();
    let names =
        objects.iter().map(|body| (text_at(body, &["kind"]), text_at(body, &["metadata", "namespace"])));
    assert_eq!(names.collect::<Vec<_>>(), [("Job", "prod"), ("Secret", "prod")]);
    let note = |key| text_at(&objects[1], &["metadata", "annotations", key]).to_owned();
    assert_eq!(note(annotations::DEPENDS_ON), "batch/namespaces/prod/Job/first");
    assert_eq!(note(annotations::IGNORE_FIELDS), "/stringData/a, /metadata/annotations/rhumb.dev~1generated");
}
