//! Hooks of charts, as helm prints them and as they are applied.

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
    let before = "batch/namespaces/prod/Job/early, batch/namespaces/prod/Job/late";
    assert_eq!(
        render.objects.iter().map(|object| waits(&object.body)).collect::<Vec<_>>(),
        [
            pair("early", ""),
            pair("late", "batch/namespaces/prod/Job/early"),
            pair("config", before),
            pair("last", "/namespaces/prod/ConfigMap/config"),
        ]
    );
    let mut notices: Vec<_> =
        render.notices.iter().map(|found| format!("{}: {}", found.origin, found.message)).collect();
    notices.sort();
    assert_eq!(
        notices,
        [
            "web/templates/jobs.yaml: Job goodbye: it is a hook for deletion or rollback, which is not run",
            "web/templates/jobs.yaml:54: this template makes a test, which is not run",
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
