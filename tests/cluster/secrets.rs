//! A Secret's values reach no output.

use crate::support::{Folder, ProgramOutput, Repo, TestNamespace, run, yaml};

/// The value, and how it looks in `data`.
const CANARY: &str = "kanarienvogel-7531";
const ENCODED: &str = "a2FuYXJpZW52b2dlbC03NTMx";

#[track_caller]
fn is_clean(what: &str, text: &str) {
    for secret in [CANARY, ENCODED] {
        assert!(!text.contains(secret), "{what} shows a Secret's value:\n{text}");
    }
}

/// Returns Secrets in every form in which somebody may get one wrong. All but the first are broken.
fn secrets() -> Vec<(&'static str, String)> {
    let head = "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\n";
    let forms = [
        ("good", format!("{head}data: {{a: {ENCODED}}}\nstringData: {{b: {CANARY}}}\n")),
        ("unclosed", format!("{head}stringData:\n  a: \"{CANARY}\n")),
        ("unclosed-flow", format!("{head}stringData: {{a: {CANARY}\n")),
        ("tab", format!("{head}stringData:\n\ta: {CANARY}\n")),
        ("colon", format!("{head}stringData:\n  a: {CANARY}: x: y\n")),
        ("alias", format!("{head}stringData:\n  a: *{CANARY}\n")),
        ("tag", format!("{head}stringData:\n  a: !{CANARY} x\n")),
        ("twice", format!("{head}stringData:\n  a: {CANARY}\n  a: {CANARY}\n")),
        ("indent", format!("{head}stringData:\n    a: x\n  {CANARY}\n")),
        ("list", format!("{head}stringData: [{CANARY}]\n")),
        ("scalar", format!("{head}stringData: {CANARY}\n")),
        ("nested", format!("{head}stringData: {{a: {{b: {CANARY}}}}}\n")),
        ("plain-data", format!("{head}data: {{a: {CANARY}}}\n")),
        ("list-data", format!("{head}data: {{a: [{ENCODED}]}}\n")),
        ("field", format!("{head}stringDate: {{a: {CANARY}}}\n")),
        ("field-below", format!("{head}spec: {{a: {CANARY}}}\nstringData: {{a: {CANARY}}}\n")),
        ("type", format!("{head}type: [{CANARY}]\nstringData: {{a: {CANARY}}}\n")),
        ("kind", format!("{head}stringData: {{a: {CANARY}}}\n").replace("kind: Secret", "kind: Secrte")),
        ("no-kind", format!("{head}stringData: {{a: {CANARY}}}\n").replace("kind: Secret\n", "")),
        (
            "json",
            format!(
                "{{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {{\"name\": \"NAME\"}}, \"stringData\": {{\"a\": \"{CANARY}\" \"b\"}}}}"
            ),
        ),
    ];
    forms.map(|(name, text)| (name, text.replace("NAME", name))).to_vec()
}

fn file(name: &str) -> String {
    format!("{name}.{}", if name == "json" { "json" } else { "yaml" })
}

/// Runs the program without a cluster.
fn offline(site: &TestNamespace<'_>, arguments: &[&str], path: &std::path::Path) -> ProgramOutput {
    let mut command = site.bare_command();
    command.args(arguments).arg(path);
    run(command)
}

#[test]
fn a_broken_file_of_a_secret_shows_no_value_in_any_command() {
    let site = TestNamespace::new("canary-files");
    for (name, text) in secrets() {
        let folder = Folder::new(&[(file(name), text)]);
        is_clean(name, &offline(&site, &["validate"], folder.path()).all());
        is_clean(name, &offline(&site, &["render"], folder.path()).stderr);
    }
    let folder =
        Folder::new(&secrets().into_iter().map(|(name, text)| (file(name), text)).collect::<Vec<_>>());
    let trace = ["--log-level", "trace"];
    for output in ["text", "unified", "json", "name"] {
        is_clean(output, &site.diff(folder.path(), &["-o", output]).all());
    }
    is_clean("diff", &site.diff(folder.path(), &trace).all());
    is_clean("dry run", &site.apply(folder.path(), &[&["--dry-run"], &trace[..]].concat()).all());
    is_clean("apply", &site.apply(folder.path(), &trace).all());
    is_clean("apply in JSON", &site.apply(folder.path(), &["-o", "json"]).all());
    assert!(site.has("Secret", "good"));
    let repo = Repo::new(&secrets().into_iter().map(|(name, text)| (file(name), text)).collect::<Vec<_>>());
    let mut daemon = site.daemon_with(repo.path(), &trace);
    repo.change("done.yaml", &yaml::config_map("done", "a", "b"));
    site.await_data("done", "a", "b");
    daemon.stop();
    is_clean("run", &daemon.full_log());
}

#[test]
fn a_change_of_a_secret_is_masked_and_reported() {
    let site = TestNamespace::new("canary-change");
    let folder = Folder::new(&[("key.yaml", yaml::secret("key", "a", "old"))]);
    site.apply(folder.path(), &[]).ends(0);
    folder.write("key.yaml", &yaml::secret("key", "a", CANARY));
    for output in ["text", "unified", "json"] {
        let diff = site.diff(folder.path(), &["-o", output]).ends(1);
        is_clean(output, &diff.all());
        assert!(!diff.all().contains("b2xk"), "{diff:#?}");
        diff.says(&["masked"]);
    }
    is_clean("apply", &site.apply(folder.path(), &["--log-level", "trace"]).ends(0).all());
    folder.remove("key.yaml");
    folder.write("env.yaml", &yaml::config_map("env", "a", "b"));
    is_clean("the deletion", &site.diff(folder.path(), &["-o", "unified"]).all());
    is_clean("pruning", &site.apply(folder.path(), &["--prune", "--log-level", "trace"]).all());
}

#[test]
fn what_the_server_says_of_a_refused_secret_is_not_repeated() {
    let site = TestNamespace::new("canary-refused");
    // The type asks for keys that are not there, and the data is no base64.
    let certificate = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: tls}}\ntype: kubernetes.io/tls\nstringData: {{a: {CANARY}}}\n"
    );
    let raw = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: raw}}\ndata: {{a: \"{CANARY}!\"}}\n");
    let folder = Folder::new(&[("tls.yaml", certificate), ("raw.yaml", raw)]);
    let apply = site.apply(folder.path(), &["--log-level", "trace"]).ends(1);
    apply.says(&["secret/tls", "refused"]);
    is_clean("apply", &apply.all());
    is_clean("diff", &site.diff(folder.path(), &["--log-level", "trace"]).all());
}
