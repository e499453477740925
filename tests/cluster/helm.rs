//! Charts in the repository: rendered by the real helm, and followed as plain files are.

use std::time::Duration;

use controlplane::Renderers;
use serde_json::json;

use crate::support::{Folder, Repo, TestNamespace, eventually, run, until, yaml};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.2.3\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-settings\n\
                        data:\n  level: {{ .Values.level | quote }}\n";

/// Returns a configuration with the program, and these lines in the source's spec.
fn configuration(site: &TestNamespace<'_>, repo: &Repo, spec: &str) -> String {
    let programs = format!("programs: {{helm: {}}}", Renderers::find().unwrap().helm.display());
    format!("{}\n{spec}\n", site.configuration(repo.path(), &programs).trim_end())
}

#[test]
fn a_chart_is_followed_commit_by_commit() {
    let site = TestNamespace::new("helm");
    let repo = Repo::new(&[
        ("web/Chart.yaml", CHART.to_owned()),
        ("web/values.yaml", "level: low\n".to_owned()),
        ("web/prod.yaml", "level: high\n".to_owned()),
        ("web/templates/settings.yaml", TEMPLATE.to_owned()),
        ("own.yaml", yaml::config_map("own", "key", "one")),
        // Beside the chart: nobody takes it for a manifest.
        ("common.yaml", "level: lowest\n".to_owned()),
    ]);
    let text = configuration(&site, &repo, "  helm: {values: [common.yaml, prod.yaml]}");
    let mut daemon = site.configured(&text);
    site.await_data("web-settings", "level", "high");
    site.await_data("own", "key", "one");
    repo.change("web/prod.yaml", "level: highest\n");
    site.await_data("web-settings", "level", "highest");
    // Nothing of it is a release of helm's, of which each version would be a Secret.
    let secrets = site.api.list(&format!("/api/v1/namespaces/{}/secrets", site.name));
    assert!(secrets.iter().all(|secret| secret["type"] != "helm.sh/release.v1"), "{secrets:?}");

    // A template that fails keeps what there is, and all else advances.
    let window = site.window();
    repo.write("web/templates/settings.yaml", "{{ fail \"no\" }}\n");
    repo.change("own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    site.api.delete(&site.at("ConfigMap", "web-settings"));
    site.await_data("web-settings", "level", "highest");
    window.assert_no_deletes();
    assert!(daemon.is_running() && !daemon.log().contains("common.yaml"), "{}", daemon.log());
}

/// Loops for longer than any program has.
const LOOP: &str =
    "{{ range until 30000 }}{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}{{ end }}";

#[test]
fn charts_that_never_end_delay_the_rest_of_a_commit_by_one_limit_of_time() {
    let site = TestNamespace::new("helm-loops");
    let repo = Repo::new(&[
        ("web/Chart.yaml", CHART.to_owned()),
        ("web/values.yaml", "level: low\n".to_owned()),
        ("web/templates/settings.yaml", TEMPLATE.to_owned()),
        ("own.yaml", yaml::config_map("own", "key", "one")),
    ]);
    let daemon = site.configured(&configuration(&site, &repo, ""));
    site.await_data("web-settings", "level", "low");
    for number in 0..3 {
        repo.write(&format!("a{number}/Chart.yaml"), CHART);
        repo.write(&format!("a{number}/templates/loop.yaml"), LOOP);
    }
    repo.write("web/values.yaml", "level: high\n");
    let mark = daemon.mark();
    repo.change("own.yaml", &yaml::config_map("own", "key", "two"));
    eventually("the rest of the commit is there", Duration::from_mins(3), || {
        let shown = site.value("ConfigMap", "web-settings", "/data/level");
        if shown == "high" { Ok(()) } else { Err(shown) }
    });
    site.await_data("own", "key", "two");
    let first: Vec<String> = daemon.log().lines().skip(mark).map(str::to_owned).collect();
    let postponed = "it is rendered in the next pass";
    assert!(first.iter().any(|line| line.contains(postponed)), "{first:#?}");
}

#[test]
fn a_hook_runs_before_its_release_and_again_when_that_changes() {
    let site = TestNamespace::new("helm-hook");
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}-migrate\n  annotations:\n    \
                helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-delete-policy: before-hook-creation\nspec:\n  \
                template:\n    spec:\n      restartPolicy: Never\n      \
                containers: [{name: a, image: 'busybox:{{ .Values.tag }}'}]\n";
    let values = |level: &str, tag: &str| format!("level: {level}\ntag: '{tag}'\n");
    let repo = Repo::new(&[
        ("web/Chart.yaml", CHART.to_owned()),
        ("web/values.yaml", values("low", "broken")),
        ("own.yaml", yaml::config_map("own", "key", "one")),
        ("web/templates/settings.yaml", TEMPLATE.to_owned()),
        ("web/templates/migrate.yaml", hook.to_owned()),
        (
            "web/templates/goodbye.yaml",
            hook.replace("migrate", "goodbye").replace("pre-install,pre-upgrade", "pre-delete"),
        ),
    ]);
    let text = configuration(&site, &repo, "");
    let daemon = site.configured(&text);
    let uid = || site.value("Job", "web-migrate", "/metadata/uid");
    // A hook that does not end holds the rest of its release back, and nothing else.
    site.await_object("Job", "web-migrate");
    site.await_data("own", "key", "one");
    eventually("the release waits for its hook", crate::support::DEFAULT_TIMEOUT, || {
        let why = site.rhumb(&["why", "cm/web-settings"]).all();
        if why.contains("needs Job helm-hook/web-migrate") { Ok(()) } else { Err(why) }
    });
    assert!(!site.has("ConfigMap", "web-settings"));
    repo.change("web/values.yaml", &values("low", "1"));
    site.await_data("web-settings", "level", "low");
    assert_eq!(site.value("Job", "web-migrate", "/status/succeeded"), json!(1));
    // A commit that changes nothing of the release does not run it.
    let first = uid();
    repo.change("own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    assert_eq!(uid(), first);
    repo.change("web/values.yaml", &values("high", "1"));
    site.await_data("web-settings", "level", "high");
    let second = uid();
    assert!(second != first && second != json!(null), "the hook ran again, and before the rest: {second}");
    assert_eq!(site.value("Job", "web-migrate", "/status/succeeded"), json!(1));
    // A hook that is not run is nowhere in the cluster, so that it is reported where one looks.
    let reported = "Job web-goodbye: it is a hook for deletion or rollback, which is not run";
    site.with_config(&["diff"], &text).says(&["web/templates/goodbye.yaml", "warning", reported]);
    site.with_config(&["validate"], &text).ends(0).says(&["warning", reported]);
    site.with_config(&["render"], &text).ends(0).says(&["warning", reported]);
    assert!(!site.has("Job", "web-goodbye"));
    drop(daemon);
}

#[test]
fn one_command_names_the_template_that_an_object_comes_from() {
    let site = TestNamespace::new("helm-once");
    let folder = Folder::new(&[
        ("Chart.yaml", CHART),
        ("values.yaml", "level: low\n"),
        ("templates/settings.yaml", TEMPLATE),
    ]);
    let mut command = site.command(&["diff", folder.path().to_str().unwrap()]);
    command.env("PATH", Renderers::find().unwrap().helm.parent().unwrap());
    let diff = run(command).ends(1);
    diff.says(&["+ ConfigMap helm-once/", "-settings"]);
    diff.says(&[". (helm, web 1.2.3) ← templates/settings.yaml"]);
}

#[test]
fn a_chart_of_a_followed_folder_is_not_rendered_without_a_template_that_cannot_be_read() {
    let site = TestNamespace::new("helm-folder");
    let folder = Folder::new(&[
        ("web/Chart.yaml", CHART.to_owned()),
        ("web/templates/a.yaml", yaml::config_map("a", "key", "one")),
        ("shared/b.yaml", yaml::config_map("b", "key", "one")),
        // It is no manifest of its own.
        ("shared/.rhumbignore", "*\n".to_owned()),
    ]);
    std::os::unix::fs::symlink("../../shared/b.yaml", folder.path().join("web/templates/b.yaml")).unwrap();
    let text = format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nresync: 1s\nprograms: {{helm: {helm}}}\n---\n\
         apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec:\n  namespace: {name}\n  \
         pruneDelay: 1s\n  directory: {path}\n",
        helm = Renderers::find().unwrap().helm.display(),
        name = site.name,
        path = folder.path().display(),
    );
    let daemon = site.configured(&text);
    for name in ["a", "b"] {
        site.await_data(name, "key", "one");
    }
    let (window, mark) = (site.window(), daemon.mark());
    let hash = "0".repeat(64);
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize 12345\n");
    // In one go: a chart without the template would give it up.
    let newer = site.state.path().join("b.yaml");
    std::fs::write(&newer, pointer).unwrap();
    std::fs::rename(newer, folder.path().join("web/templates/b.yaml")).unwrap();
    folder.write("own.yaml", &yaml::config_map("own", "key", "one"));
    daemon.says_since(mark, &["WARN", "web/templates/b.yaml", "is a Git LFS pointer"]);
    // The accepted content is defended, and all else goes on.
    site.await_data("own", "key", "one");
    site.api.delete(&site.at("ConfigMap", "b"));
    site.await_data("b", "key", "one");
    window.assert_no_deletes();
}

#[test]
fn a_chart_that_makes_up_values_is_refused_by_name() {
    let site = TestNamespace::new("helm-generated");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n\
                  stringData: {password: '{{ randAlphaNum 20 }}'}\n";
    let repo = Repo::new(&[
        ("web/Chart.yaml", CHART.to_owned()),
        ("web/templates/login.yaml", secret.to_owned()),
        ("web/templates/token.yaml", secret.replace("login", "token")),
        ("own.yaml", yaml::config_map("own", "key", "one")),
    ]);
    let daemon = site.configured(&configuration(&site, &repo, ""));
    site.await_data("own", "key", "one");
    daemon.says(&["WARN", "web/templates/login.yaml"]);
    assert!(!site.has("Secret", "login"));
    drop(daemon);

    // Made once, they stay as they are.
    let daemon = site.configured(&configuration(&site, &repo, "  helm: {generated: once}"));
    for name in ["login", "token"] {
        site.await_object("Secret", name);
    }
    let password = site.value("Secret", "login", "/data/password");
    // A mark that somebody writes on one of them holds no other one back.
    let forged = json!({"metadata": {"annotations": {"rhumb.dev/generated": "helm-generated/web 0"}}});
    site.api.merge(&site.at("Secret", "token"), "somebody", &forged);
    site.api.delete(&site.at("Secret", "login"));
    site.await_object("Secret", "login");
    assert_eq!(site.value("Secret", "login", "/data/password"), password);
    // The chart is rendered anew, and makes up another value.
    let mark = daemon.mark();
    repo.write("web/values.yaml", "level: high\n");
    repo.change("own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    daemon.says_since(mark, &["settled: revision"]);
    assert_eq!(site.value("Secret", "login", "/data/password"), password);

    // One that is lost would get a value that does not fit the other one, which stays as it is.
    let token = site.value("Secret", "token", "/data/password");
    site.api.delete(&site.at("Secret", "login"));
    let held = || site.rhumb(&["why", "secret/login"]).all();
    let is_held = || held().contains("would not fit those of Secret helm-generated/token");
    until("the lost Secret is held", is_held);
    assert!(!site.has("Secret", "login"));
    assert_eq!(site.value("Secret", "token", "/data/password"), token);
    // Without the other one both are made anew.
    site.api.delete(&site.at("Secret", "token"));
    for name in ["login", "token"] {
        site.await_object("Secret", name);
    }
    let anew =
        [site.value("Secret", "login", "/data/password"), site.value("Secret", "token", "/data/password")];
    assert!(!anew.contains(&password) && !anew.contains(&token));
    drop(daemon);
}

#[test]
fn a_chart_of_a_kustomization_is_followed_commit_by_commit() {
    let site = TestNamespace::new("helm-inflated");
    let kustomization = |level: &str| {
        format!(
            "namePrefix: x-\nhelmCharts: [{{name: web, releaseName: a, valuesInline: {{level: {level}}}}}]\n"
        )
    };
    let repo = Repo::new(&[
        ("top/kustomization.yaml", kustomization("low")),
        ("top/charts/web/Chart.yaml", CHART.to_owned()),
        ("top/charts/web/values.yaml", "level: none\n".to_owned()),
        ("top/charts/web/templates/settings.yaml", TEMPLATE.to_owned()),
    ]);
    let Renderers { kustomize, helm } = Renderers::find().unwrap();
    let programs = format!("programs: {{kustomize: {}, helm: {}}}", kustomize.display(), helm.display());
    let daemon = site.configured(&site.configuration(repo.path(), &programs));
    site.await_data("x-a-settings", "level", "low");
    repo.change("top/kustomization.yaml", &kustomization("high"));
    site.await_data("x-a-settings", "level", "high");
    repo.change(
        "top/charts/web/templates/settings.yaml",
        &TEMPLATE.replace("level:", "other: set\n  level:"),
    );
    site.await_data("x-a-settings", "other", "set");
    drop(daemon);
}

#[test]
fn a_hook_of_a_chart_of_a_kustomization_is_awaited_where_it_is() {
    let site = TestNamespace::new("helm-inflated-hook");
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: \
                'pre-install,pre-upgrade'}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      \
                containers: [{name: a, image: 'busybox:1'}]\n";
    // The release is in another namespace than the source, and the templates name none.
    let chart = "helmCharts: [{name: web, releaseName: a, namespace: elsewhere}]\n";
    let repo = Repo::new(&[
        ("top/kustomization.yaml", chart.to_owned()),
        ("top/charts/web/Chart.yaml", CHART.to_owned()),
        ("top/charts/web/values.yaml", "level: low\n".to_owned()),
        ("top/charts/web/templates/settings.yaml", TEMPLATE.to_owned()),
        ("top/charts/web/templates/migrate.yaml", hook.to_owned()),
    ]);
    let Renderers { kustomize, helm } = Renderers::find().unwrap();
    let programs = format!("programs: {{kustomize: {}, helm: {}}}", kustomize.display(), helm.display());
    let daemon = site.configured(&site.configuration(repo.path(), &programs));
    site.await_data("a-settings", "level", "low");
    assert!(site.has("Job", "migrate"));
    drop(daemon);
}

/// Returns a definition of a kind that charts look for.
fn definition(group: &str) -> serde_json::Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced",
            "versions": [version]}})
}

#[test]
fn charts_are_given_the_versions_of_the_cluster_and_those_alone_are_rendered_anew() {
    let site = TestNamespace::new("helm-versions");
    let group = format!("{}.example.org", site.name);
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: told}}\ndata:\n  \
         server: {{{{ .Capabilities.KubeVersion.Version | quote }}}}\n  \
         widgets: {{{{ .Capabilities.APIVersions.Has \"{group}/v1/Widget\" | quote }}}}\n"
    );
    let repo = Repo::new(&[
        ("web/Chart.yaml", CHART.to_owned()),
        ("web/templates/told.yaml", template),
        ("top/kustomization.yaml", "resources: [own.yaml]\n".to_owned()),
        ("top/own.yaml", yaml::config_map("own", "key", "one")),
    ]);
    let Renderers { kustomize, helm } = Renderers::find().unwrap();
    let programs = format!("programs: {{kustomize: {}, helm: {}}}", kustomize.display(), helm.display());
    let text = site.configuration(repo.path(), &programs);
    let mut daemon = site.configured(&text);
    let server = site.api.value("/version", "/gitVersion");
    site.await_data("told", "server", server.as_str().unwrap());
    site.await_data("own", "key", "one");
    assert_eq!(site.data("told", "widgets"), "false");

    // Only discovery reports the kind to rhumb.
    let mark = daemon.mark();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    site.api.create(definitions, "setup", &definition(&group));
    let limit = Duration::from_secs(150);
    site.await_data_within(limit, "told", "widgets", "true");
    daemon.says_since(mark, &["rendered in", "roots=1"]);

    // Commands get the same, for a commit and for a folder.
    site.with_config(&["diff"], &text).ends(0);
    site.with_config(&["diff", repo.path().to_str().unwrap()], &text).ends(0);
    // Without a cluster they say what is assumed; what the configuration names counts everywhere.
    let offline = site.with_config(&["validate"], &text).ends(0);
    offline.says(&["note: charts are given Kubernetes v1.36.0, as no cluster is asked"]);
    let named =
        format!("{}\n  helm: {{kubeVersion: v1.30.1, apiVersions: [example.org/v1]}}\n", text.trim_end());
    let offline = site.with_config(&["validate"], &named).ends(0);
    assert!(!offline.all().contains("no cluster is asked"), "{offline:#?}");
    let planned = site.with_config(&["diff"], &named).ends(1);
    planned.says(&["+   server: v1.30.1"]);
    planned.says(&["+   widgets: 'false'"]);

    site.api.delete(&format!("{definitions}/widgets.{group}"));
    site.await_data_within(limit, "told", "widgets", "false");
    assert!(daemon.is_running());
}
