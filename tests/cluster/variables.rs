//! Variables that a source puts into its manifests.

use controlplane::Renderers;
use serde_json::json;

use crate::support::{Repo, TestNamespace, until, yaml};

#[test]
fn variables_are_put_into_plain_files_and_rendered_ones() {
    let site = TestNamespace::new("variables");
    let repo = Repo::new(&[
        ("plain.yaml", yaml::config_map("plain", "cluster", "${CLUSTER}")),
        ("default.yaml", yaml::config_map("default", "zone", "${ZONE:-a}")),
        ("literal.yaml", yaml::config_map("literal", "text", "$${CLUSTER}")),
        ("app/kustomization.yaml", "resources: [web.yaml]\n".to_owned()),
        (
            "app/web.yaml",
            yaml::deployment("web", 7, "nginx:1").replace("replicas: 7", "replicas: ${REPLICAS}"),
        ),
        ("vars.yaml", yaml::config_map("vars", "ZONE", "b")),
    ]);
    let programs = format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display());
    let text = site.configuration(repo.path(), &programs);
    let text = format!(
        "{}\n  substitute: {{CLUSTER: prod, REPLICAS: '2'}}\n  substituteFrom: [{{kind: ConfigMap, name: vars}}]\n",
        text.trim_end()
    );
    let mut daemon = site.configured(&text);
    site.await_data("plain", "cluster", "prod");
    site.await_data("default", "zone", "b");
    site.await_data("literal", "text", "${CLUSTER}");
    until("the number is a number", || site.value("Deployment", "web", "/spec/replicas") == json!(2));

    // An unset variable holds up its own file alone, which stays as it was.
    repo.write("plain.yaml", &yaml::config_map("plain", "cluster", "${UNKNOWN}"));
    repo.change("vars.yaml", &yaml::config_map("vars", "ZONE", "c"));
    site.await_data("default", "zone", "c");
    daemon.says(&["WARN", "UNKNOWN"]);
    assert_eq!(site.data("plain", "cluster"), "prod");
    assert!(daemon.is_running());
}
