//! Folders with a kustomization: rendered by the real program, and followed as plain files are.

use std::sync::OnceLock;

use controlplane::Renderers;
use serde_json::json;

use crate::support::{Daemon, Folder, Repo, TestNamespace, ask, run, until, yaml};

/// Returns the `Configuration`'s line that names the program.
fn programs() -> String {
    static RENDERERS: OnceLock<Renderers> = OnceLock::new();
    let renderers = RENDERERS.get_or_init(|| Renderers::find().unwrap());
    format!("programs: {{kustomize: {}}}", renderers.kustomize.display())
}

/// Returns a base with one ConfigMap, an overlay that patches it, and a plain file beside them.
fn shop() -> Vec<(&'static str, String)> {
    vec![
        ("base/kustomization.yaml", "resources: [settings.yaml]\n".to_owned()),
        ("base/settings.yaml", yaml::config_map("settings", "level", "base")),
        (
            "overlays/prod/kustomization.yaml",
            "resources: [../../base]\nnamePrefix: prod-\npatches: [{path: patch.yaml}]\n".to_owned(),
        ),
        ("overlays/prod/patch.yaml", yaml::config_map("settings", "mode", "prod")),
        ("plain/own.yaml", yaml::config_map("own", "key", "one")),
        (".rhumbignore", "base\n".to_owned()),
    ]
}

#[test]
fn an_overlay_is_followed_commit_by_commit() {
    let site = TestNamespace::new("kustomize");
    let repo = Repo::new(&shop());
    let text = site.configuration(repo.path(), &programs());
    let mut daemon = site.configured(&text);
    site.await_data("prod-settings", "level", "base");
    site.await_data("prod-settings", "mode", "prod");
    site.await_data("own", "key", "one");
    assert!(!site.has("ConfigMap", "settings"), "the base is applied for itself");

    // A file that the overlay reads, outside its folder.
    repo.change("base/settings.yaml", &yaml::config_map("settings", "level", "two"));
    site.await_data("prod-settings", "level", "two");

    // Drift is repaired from the store.
    site.api.merge(&site.at("ConfigMap", "prod-settings"), "somebody", &json!({"data": {"mode": "x"}}));
    site.await_data("prod-settings", "mode", "prod");

    // An object that leaves the root is deleted, and a new one comes.
    repo.write("base/more.yaml", &yaml::config_map("more", "key", "one"));
    repo.change("base/kustomization.yaml", "resources: [more.yaml]\n");
    // The patch for an object that is gone keeps the root from being rendered: nothing is deleted.
    daemon.says(&["WARN", "kustomize fails"]);
    let window = site.window();
    let renders = || daemon.log().matches(" rendered in ").count();
    let before = renders();
    repo.change("plain/own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    assert_eq!(renders(), before, "what does not render is rendered again without a change of its files");
    site.api.delete(&site.at("ConfigMap", "prod-settings"));
    site.await_data("prod-settings", "level", "two");
    window.assert_no_deletes();
    repo.change("overlays/prod/kustomization.yaml", "resources: [../../base]\nnamePrefix: prod-\n");
    site.await_data("prod-more", "key", "one");
    site.await_absence("ConfigMap", "prod-settings");
    assert!(daemon.is_running());
}

#[test]
fn what_was_rendered_outlives_the_program() {
    let site = TestNamespace::new("kustomize-gone");
    let repo = Repo::new(&shop());
    let daemon = site.configured(&site.configuration(repo.path(), &programs()));
    site.await_data("prod-settings", "level", "base");
    drop(daemon);

    // A start without the program goes on defending what is in force, and says what is missing.
    let daemon =
        site.configured(&site.configuration(repo.path(), "programs: {kustomize: /nonexistent/kustomize}"));
    daemon.says(&["WARN", "/nonexistent/kustomize"]);
    site.api.delete(&site.at("ConfigMap", "prod-settings"));
    site.await_data("prod-settings", "level", "base");
    // Files that need no program advance.
    repo.change("plain/own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    let window = site.window();
    site.api.delete(&site.at("ConfigMap", "prod-settings"));
    site.await_data("prod-settings", "level", "base");
    window.assert_no_deletes();
}

#[test]
fn a_failed_rollout_of_an_overlay_goes_back() {
    let site = TestNamespace::new("kustomize-back");
    let deployment = |image: &str| yaml::deployment("web", 1, image);
    let repo = Repo::new(&[
        ("kustomization.yaml", "resources: [web.yaml]\n".to_owned()),
        ("web.yaml", deployment("registry.example.org/web:1")),
    ]);
    let settings = format!("{}\nbudget: {{soak: 0s}}", programs());
    let daemon = site.configured(&site.configuration(repo.path(), &settings));
    site.await_rollout("web");
    let image = || site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
    repo.change("web.yaml", &deployment("registry.example.org/web:broken"));
    daemon.says(&["rolled back", "it is back at revision"]);
    assert_eq!(image(), json!("registry.example.org/web:1"));
}

#[test]
fn one_command_names_the_places_that_an_object_comes_from() {
    let site = TestNamespace::new("kustomize-once");
    let folder = Folder::new(&shop());
    let mut command = site.command(&["diff", folder.path().to_str().unwrap()]);
    let renderers = Renderers::find().unwrap();
    command.env("PATH", renderers.kustomize.parent().unwrap());
    let run_diff = run(command).ends(1);
    run_diff.says(&[
        "+ ConfigMap kustomize-once/prod-settings",
        "overlays/prod (kustomize) ← base/settings.yaml:1, overlays/prod/patch.yaml:1",
    ]);
}

#[test]
fn the_places_that_a_rendered_object_comes_from_are_shown_wherever_it_is() {
    let site = TestNamespace::new("kustomize-places");
    let held = yaml::config_map("held", "key", "one");
    let needs = "metadata:\n  annotations: {rhumb.dev/depends-on: ConfigMap/nothing}";
    let mut files = shop();
    files[0].1 = "resources: [settings.yaml, held.yaml]\n".to_owned();
    files.push(("base/held.yaml", held.replacen("metadata:", needs, 1)));
    let repo = Repo::new(&files);
    let runtime = tempfile::tempdir().unwrap();
    let mut command = site.command_with_config(&["run"], &site.configuration(repo.path(), &programs()));
    command.env("RUNTIME_DIRECTORY", runtime.path());
    let _daemon = Daemon::start(command);
    site.await_data("prod-settings", "mode", "prod");
    let socket = runtime.path().join("rhumb.sock");
    let places = "overlays/prod (kustomize) ← base/settings.yaml:1, overlays/prod/patch.yaml:1";
    let of_held = "overlays/prod (kustomize) ← base/held.yaml:1";
    // The page shows what is answered there.
    for path in ["/v1/objects".to_owned(), format!("/v1/objects/ConfigMap/{}/prod-settings", site.name)] {
        until(&format!("{path} has the places"), || ask(&socket, "GET", &path).body.contains(places));
    }
    let asked = ["--socket", socket.to_str().unwrap()];
    for command in [["why", "cm/prod-settings"], ["status", "cm/prod-settings"]] {
        site.rhumb(&[&command[..], &asked].concat()).ends(0).says(&["file", places]);
    }
    // The cluster has a record of what waits, which is shown without a daemon.
    until("the record has the place", || site.rhumb(&["why", "cm/prod-held"]).all().contains(of_held));
    // A source that is named is rendered.
    let path = repo.path().to_str().unwrap();
    let mut command = site.command(&["why", "cm/prod-settings", path]);
    command.env("PATH", Renderers::find().unwrap().kustomize.parent().unwrap());
    run(command).ends(0).says(&["file", places]);
}

#[test]
fn a_followed_directory_is_rendered_from_files_of_any_name() {
    let site = TestNamespace::new("kustomize-directory");
    let folder = Folder::new(&[
        (
            "app/kustomization.yaml",
            "generatorOptions: {disableNameSuffixHash: true}\n\
             configMapGenerator: [{name: env, files: [app.properties]}]\n",
        ),
        ("app/app.properties", "level=1\n"),
        ("own.yaml", &yaml::config_map("own", "key", "one")),
    ]);
    let text = site.configuration(folder.path(), &programs());
    let named = |form: &str| format!("{form}{}", folder.path().display());
    let text = text.replace(&format!("{}}}", named("git: {url: ")), &named("directory: "));
    let mut daemon = site.configured(&text);
    let env = || site.value("ConfigMap", "env", "/data/app.properties");
    until("it is generated", || env() == json!("level=1\n"));
    folder.write("app/app.properties", "level=2\n");
    until("it is generated anew", || env() == json!("level=2\n"));
    // A kustomization that is gone for a moment makes its folder no folder of plain manifests.
    folder.write("app/loose.yaml", &yaml::config_map("loose", "key", "one"));
    let window = site.window();
    folder.remove("app/kustomization.yaml");
    folder.write("own.yaml", &yaml::config_map("own", "key", "two"));
    site.await_data("own", "key", "two");
    assert!(!site.has("ConfigMap", "loose"));
    window.assert_no_deletes();
    assert!(daemon.is_running());
}

#[test]
fn a_check_names_the_configured_program_and_its_sandbox() {
    let site = TestNamespace::new("kustomize-check");
    let repo = Repo::new(&shop());
    let found = site.with_config(&["check"], &site.configuration(repo.path(), &programs()));
    let program = Renderers::find().unwrap().kustomize.canonicalize().unwrap();
    found.says(&["ok", "kustomize 5.", program.to_str().unwrap()]);
    found.says(&["ok", "the sandbox for programs that render works"]);
    // Where nothing names a program, what the source has does.
    let text = site.configuration(repo.path(), "");
    let with_path = |path: &str| {
        let mut command = site.command_with_config(&["check"], &text);
        command.env("PATH", path);
        run(command)
    };
    let usual = "/usr/local/bin:/usr/bin:/bin";
    let installed = with_path(&format!("{}:{usual}", program.parent().unwrap().display()));
    installed.says(&["ok", "kustomize 5.", program.to_str().unwrap()]);
    installed.says(&["ok", "the sandbox for programs that render works"]);
    with_path(usual).ends(1).says(&["missing", "there is no kustomize in PATH; it comes by"]);
    let missing = "programs: {kustomize: /nonexistent/kustomize}";
    let lacking = site.with_config(&["check"], &site.configuration(repo.path(), missing)).ends(1);
    lacking.says(&["missing", "/nonexistent/kustomize"]);
}

#[test]
fn a_store_that_is_lost_is_rendered_anew() {
    let site = TestNamespace::new("kustomize-lost");
    let root = |name: &str| format!("namePrefix: {name}-\nresources: [map.yaml]\n");
    let repo = Repo::new(&[
        ("one/kustomization.yaml", root("one")),
        ("one/map.yaml", yaml::config_map("map", "key", "one")),
        ("two/kustomization.yaml", root("two")),
        ("two/map.yaml", yaml::config_map("map", "key", "one")),
    ]);
    let mut daemon = site.configured(&site.configuration(repo.path(), &programs()));
    site.await_data("one-map", "key", "one");
    site.await_data("two-map", "key", "one");
    let stores = walkdir::WalkDir::new(site.state.path()).into_iter().flatten();
    let stores: Vec<_> = stores.filter(|entry| entry.file_name() == "revisions.git").collect();
    assert_eq!(stores.len(), 1, "{stores:?}");
    // In one go, as the daemon may write there meanwhile.
    let trash = tempfile::tempdir().unwrap();
    std::fs::rename(stores[0].path(), trash.path().join("revisions.git")).unwrap();
    repo.change("two/map.yaml", &yaml::config_map("map", "key", "two"));
    site.await_data("two-map", "key", "two");
    // The other root was not touched, and its contents went with the store.
    site.api.delete(&site.at("ConfigMap", "one-map"));
    site.await_data("one-map", "key", "one");
    assert!(daemon.is_running());
}

#[test]
fn of_a_broken_root_nothing_is_deleted_and_of_the_others_what_it_cannot_want() {
    let site = TestNamespace::new("kustomize-broken");
    let root = |maps: &[&str]| {
        let resources: Vec<String> = maps.iter().map(|map| format!("{map}.yaml")).collect();
        format!("resources: [{}]\n", resources.join(", "))
    };
    let map = |name: &str| yaml::config_map(name, "key", "one");
    let mut files = vec![
        ("whole/kustomization.yaml".to_owned(), root(&["alpha", "beta", "gamma", "delta", "kept"])),
        ("broken/kustomization.yaml".to_owned(), root(&["own", "left"])),
        ("broken/own.yaml".to_owned(), map("own")),
        ("broken/left.yaml".to_owned(), map("left")),
        ("plain/loose.yaml".to_owned(), map("loose")),
    ];
    for name in ["alpha", "beta", "gamma", "delta", "kept"] {
        files.push((format!("whole/{name}.yaml"), map(name)));
    }
    let repo = Repo::new(&files);
    // An object that stays in doubt counts among those that would go at once.
    let text = site.configuration(repo.path(), &programs());
    let text = format!("{}\n  blastRadius: {{count: 10, percent: 100}}\n", text.trim_end());
    let daemon = site.configured(&text);
    for name in ["alpha", "beta", "gamma", "delta", "kept", "own", "left", "loose"] {
        site.await_data(name, "key", "one");
    }

    // An object leaves the root that breaks, and one moves into it, by the commit that breaks it.
    let window = site.window();
    repo.git(&["mv", "whole/beta.yaml", "broken/beta.yaml"]);
    repo.write("whole/kustomization.yaml", &root(&["alpha", "gamma", "delta", "kept"]));
    repo.git(&["rm", "--quiet", "broken/left.yaml"]);
    repo.write("broken/own.yaml", "kind: [\n");
    repo.change("broken/kustomization.yaml", &root(&["own", "beta"]));
    daemon.says(&["WARN", "broken/kustomization.yaml", "kustomize fails"]);
    repo.change("plain/loose.yaml", &yaml::config_map("loose", "key", "two"));
    site.await_data("loose", "key", "two");
    let why = |name: &str, text: &str| {
        until(&format!("{name}: {text}"), || {
            site.rhumb(&["why", &format!("configmap/{name}")]).all().contains(text)
        });
    };
    why("beta", "not pruned: root broken does not render, and may want the object");
    window.assert_no_deletes();

    // Of another root, and of the plain files, what the broken one cannot want goes.
    repo.git(&["rm", "--quiet", "whole/alpha.yaml"]);
    repo.change("whole/kustomization.yaml", &root(&["gamma", "delta", "kept"]));
    site.await_absence("ConfigMap", "alpha");
    site.api.merge(&site.at("ConfigMap", "left"), "somebody", &json!({"data": {"key": "x"}}));
    site.await_data("left", "key", "one");

    // A new process knows no more than what was written down.
    drop(daemon);
    let mut daemon = site.configured(&text);
    repo.git(&["rm", "--quiet", "plain/loose.yaml"]);
    repo.git(&["rm", "--quiet", "whole/gamma.yaml"]);
    repo.change("whole/kustomization.yaml", &root(&["delta", "kept"]));
    site.await_absence("ConfigMap", "gamma");
    site.await_absence("ConfigMap", "loose");
    why("left", "not pruned: root broken does not render, and the object came from it");
    why("own", "not pruned: root broken does not render, and the object came from it");
    why("beta", "not pruned: root broken does not render, and may want the object");
    // Where a file is missing, nobody knows what the root wants.
    repo.write("broken/own.yaml", &map("own"));
    repo.git(&["rm", "--quiet", "whole/delta.yaml"]);
    repo.write("whole/kustomization.yaml", &root(&["kept"]));
    repo.change("broken/kustomization.yaml", &root(&["own", "beta", "forgotten"]));
    why("delta", "not pruned: root broken does not render, and may want the object");

    // Once it renders, all goes that is wanted nowhere.
    repo.change("broken/kustomization.yaml", &root(&["own", "beta"]));
    site.await_absence("ConfigMap", "left");
    site.await_absence("ConfigMap", "delta");
    for name in ["own", "beta", "kept"] {
        assert!(site.has("ConfigMap", name), "{name}");
    }
    assert!(daemon.is_running());
}
