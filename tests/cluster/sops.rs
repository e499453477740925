//! Secrets that SOPS encrypted for age: applied in the open, and nowhere else in the open.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controlplane::Renderers;
use serde_json::json;

use crate::support::{AgeIdentity, Daemon, Repo, TestNamespace, ask, run, source, until, yaml};

/// A text that must be found nowhere but in the cluster's Secrets.
const CANARY: &str = "canary-7f3a9c";

fn secret(name: &str, value: &str) -> String {
    yaml::secret(name, "password", value)
}

pub(crate) fn start(site: &TestNamespace<'_>, repo: &Repo, identity: &AgeIdentity) -> Daemon {
    let programs = format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display());
    let mut command = site.command_with_config(&["run"], &site.configuration(repo.path(), &programs));
    command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
    Daemon::start(command)
}

fn password(site: &TestNamespace<'_>, name: &str) -> serde_json::Value {
    site.value("Secret", name, "/data/password")
}

/// Fails where a file below a folder holds a text, or an object of a git repository there, which
/// git compresses.
fn assert_absent(folder: &Path, text: &str) {
    let output = Command::new("grep").args(["-rl", text]).arg(folder).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{text} is in {}", folder.display());
    assert!(!git_objects(folder).contains(text), "{text} is in a git object below {}", folder.display());
}

/// Returns the contents of all objects of the git repositories below a folder.
fn git_objects(folder: &Path) -> String {
    let found = Command::new("find").arg(folder).args(["-type", "d", "-name", "objects"]).output().unwrap();
    let mut all = String::new();
    for objects in String::from_utf8(found.stdout).unwrap().lines() {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*", "--git-dir"]).arg(Path::new(objects).parent().unwrap());
        let output = git.args(["cat-file", "--batch-all-objects", "--batch"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        all.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    all
}

#[test]
fn an_encrypted_secret_is_applied_in_the_open_and_shown_nowhere() {
    let site = TestNamespace::new("sops");
    let identity = AgeIdentity::new();
    let asks = "metadata:\n  annotations: {rhumb.dev/restart-on-change: 'true'}";
    let web = yaml::deployment("web", 1, "app:1").replacen("metadata:", asks, 1)
        + "        envFrom: [{secretRef: {name: plain}}]\n";
    let repo = Repo::new(&[
        ("web.yaml", web),
        ("plain.yaml", identity.encrypt(&secret("plain", CANARY))),
        ("app/kustomization.yaml", "namePrefix: app-\nresources: [secret.yaml]\n".to_owned()),
        ("app/secret.yaml", identity.encrypt(&secret("rendered", CANARY))),
    ]);
    let mut daemon = start(&site, &repo, &identity);
    let expected = json!(STANDARD.encode(CANARY));
    until("the plain one is there", || password(&site, "plain") == expected);
    until("the rendered one is there", || password(&site, "app-rendered") == expected);
    site.await_rollout("web");
    let version = site.value("Secret", "plain", "/metadata/resourceVersion");
    let template = || site.value("Deployment", "web", "/spec/template");
    let before = template();

    // The same data, encrypted anew, changes nothing, and restarts nothing.
    repo.write("plain.yaml", &identity.encrypt(&secret("plain", CANARY)));
    repo.change("other.yaml", &yaml::config_map("other", "key", "one"));
    site.await_data("other", "key", "one");
    assert_eq!(site.value("Secret", "plain", "/metadata/resourceVersion"), version);
    assert_eq!(template(), before);

    // A file that was edited after it was encrypted is held back; all else goes on.
    let edited = identity.encrypt(&secret("plain", "another")).replace("name: plain", "name: moved");
    repo.write("plain.yaml", &edited);
    repo.change("other.yaml", &yaml::config_map("other", "key", "two"));
    site.await_data("other", "key", "two");
    assert!(!site.has("Secret", "moved"));
    daemon.says(&["WARN", "its `mac` does not fit"]);
    assert_eq!(password(&site, "plain"), expected);
    assert_eq!(template(), before);
    // Other data restarts it.
    repo.change("plain.yaml", &identity.encrypt(&secret("plain", "another")));
    until("the workload is restarted", || template() != before);
    daemon.stop();
    assert!(!daemon.full_log().contains(CANARY));
    assert_absent(site.state.path(), CANARY);
    assert_absent(site.state.path(), &STANDARD.encode(CANARY));
}

#[test]
fn a_check_counts_the_identities_and_names_a_file_that_has_none() {
    let site = TestNamespace::new("sops-check");
    let identity = AgeIdentity::new();
    let repo = Repo::new(&[("secret.yaml", identity.encrypt(&secret("db", "canary-5d20")))]);
    let check = || {
        let mut command = site.command_with_config(&["check"], &site.configuration(repo.path(), ""));
        command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
        run(command)
    };
    let file = identity.file().display().to_string();
    let found = check();
    found.says(&["ok", &format!("{file}: 1 age identity")]);
    found.says(&["ok", "encrypted files can be opened in memory for a render"]);
    std::fs::write(identity.file(), "canary-5d20\n").unwrap();
    let found = check().ends(1);
    found.says(&["missing", "age identities: ", &file, "line 1: this is not an age identity"]);
    assert!(!found.all().contains("canary-5d20"), "{}", found.all());
}

#[test]
fn without_an_identity_nothing_of_a_file_is_applied_and_the_remedy_is_named() {
    let site = TestNamespace::new("sops-no-key");
    let (identity, other) = (AgeIdentity::new(), AgeIdentity::new());
    let repo = Repo::new(&[
        ("secret.yaml", identity.encrypt(&secret("locked", CANARY))),
        ("other.yaml", yaml::config_map("other", "key", "one")),
    ]);
    let daemon = start(&site, &repo, &other);
    site.await_data("other", "key", "one");
    daemon.says(&["no age identity at hand opens the file"]);
    assert!(!site.has("Secret", "locked"));
}

#[test]
fn an_identity_of_one_source_opens_nothing_of_another() {
    let site = TestNamespace::new("sops-own-key");
    let identity = AgeIdentity::new();
    let own = identity.folder.path().join("sops-age.one");
    std::fs::rename(identity.file(), own).unwrap();
    let [one, two] =
        ["one", "two"].map(|name| Repo::new(&[("secret.yaml", identity.encrypt(&secret(name, CANARY)))]));
    let sources = [("one", one.path()), ("two", two.path())];
    let documents = sources.map(|(name, path)| source(name, &site.name, path, ""));
    let mut command = site.command_with_config(&["run"], &documents.join("---\n"));
    command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
    let daemon = Daemon::start(command);
    let data = json!(STANDARD.encode(CANARY));
    until("the Secret of its own source is opened", || password(&site, "one") == data);
    daemon.says(&["WARN", "no age identity is configured"]);
    assert!(!site.has("Secret", "two"));
}

#[test]
fn variables_open_no_way_around_the_check_of_an_edited_file() {
    let site = TestNamespace::new("sops-variables");
    let identity = AgeIdentity::new();
    let edited = identity.encrypt(&secret("edited", CANARY)).replace("name: edited", "name: moved");
    let repo =
        Repo::new(&[("secret.yaml", edited), ("other.yaml", yaml::config_map("other", "key", "${KEY}"))]);
    let text = site.configuration(repo.path(), "");
    let mut command =
        site.command_with_config(&["run"], &format!("{}\n  substitute: {{KEY: one}}\n", text.trim_end()));
    command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
    let daemon = Daemon::start(command);
    site.await_data("other", "key", "one");
    daemon.says(&["WARN", "its `mac` does not fit"]);
    assert!(!site.has("Secret", "moved") && !site.has("Secret", "edited"));
}

#[test]
fn a_field_that_would_be_shown_is_not_opened_to_be_applied() {
    let site = TestNamespace::new("sops-fields");
    let identity = AgeIdentity::new();
    let annotated = secret("annotated", "a")
        .replace("metadata:\n", &format!("metadata:\n  annotations: {{example.org/token: {CANARY}}}\n"));
    let repo = Repo::new(&[
        ("annotated.yaml", identity.encrypt_fields(&annotated, "^(data|stringData|annotations)$")),
        ("plain.yaml", identity.encrypt(&secret("plain", "a"))),
    ]);
    let mut daemon = start(&site, &repo, &identity);
    site.await_object("Secret", "plain");
    daemon.says(&["annotated.yaml:", "example.org/token", "is encrypted"]);
    assert!(!site.has("Secret", "annotated"));
    assert_eq!(daemon.stop().code(), Some(0));
    assert!(!daemon.full_log().contains(CANARY), "{}", daemon.full_log());
    assert_absent(site.state.path(), CANARY);
}

/// Applies a Secret that a generator makes of an encrypted file, and one that an encrypted patch
/// changes.
#[test]
fn what_is_made_of_opened_files_is_applied_and_is_nowhere_else() {
    let site = TestNamespace::new("sops-opened");
    let identity = AgeIdentity::new();
    let env = |value: &str| identity.encrypt_file("db.env", &format!("PASSWORD={value}\nUSER=shop\n"), &[]);
    let patch = identity.encrypt(&secret("patched", CANARY));
    let kustomization = "resources: [base.yaml, other.yaml]\npatches: [{path: patch.yaml}]\n\
                         secretGenerator: [{name: made, envs: [db.env]}]\n\
                         generatorOptions: {disableNameSuffixHash: true}\n";
    let repo = Repo::new(&[
        ("app/kustomization.yaml", kustomization.to_owned()),
        ("app/base.yaml", secret("patched", "to-be-changed")),
        ("app/patch.yaml", patch),
        ("app/db.env", env(CANARY)),
        ("app/other.yaml", yaml::config_map("other", "key", "one")),
    ]);
    let runtime = tempfile::tempdir_in("/dev/shm").unwrap();
    let start = || {
        let programs = format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display());
        let mut command = site.command_with_config(&["run"], &site.configuration(repo.path(), &programs));
        command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
        command.env("RUNTIME_DIRECTORY", runtime.path());
        Daemon::start(command)
    };
    let mut daemon = start();
    let encoded = |text: &str| json!(STANDARD.encode(text));
    let made = |key: &str| site.value("Secret", "made", &format!("/data/{key}"));
    until("the patched one is there", || password(&site, "patched") == encoded(CANARY));
    until("the generated one is there", || made("PASSWORD") == encoded(CANARY));
    assert_eq!(made("USER"), encoded("shop"));
    assert_shows_no_canary(&site, &runtime.path().join("rhumb.sock"));
    let version = |name| site.value("Secret", name, "/metadata/resourceVersion");
    let versions = (version("made"), version("patched"));

    // The same data, encrypted anew, changes nothing.
    repo.write("app/db.env", &env(CANARY));
    repo.change("app/other.yaml", &yaml::config_map("other", "key", "two"));
    site.await_data("other", "key", "two");
    assert_eq!((version("made"), version("patched")), versions);

    // A daemon that starts again takes what was rendered and sealed before.
    assert_eq!(daemon.stop().code(), Some(0));
    let first_log = daemon.full_log();
    let mut daemon = start();
    repo.write("app/db.env", &env("canary-7f3a9c-newer"));
    repo.commit("a newer password");
    until("the newer one is there", || made("PASSWORD") == encoded("canary-7f3a9c-newer"));
    assert_eq!(version("patched"), versions.1);

    // A root that would show a value is refused, and says none.
    let exposing = kustomization.to_owned()
        + "replacements:\n- source: {kind: Secret, name: made, fieldPath: data.PASSWORD}\n  \
           targets: [{select: {kind: ConfigMap}, fieldPaths: [data.key]}]\n";
    repo.change("app/kustomization.yaml", &exposing);
    daemon.says(&["WARN", "ConfigMap other would show a value that is encrypted in app/"]);
    assert_eq!(site.value("ConfigMap", "other", "/data/key"), json!("two"));
    assert_eq!(daemon.stop().code(), Some(0));
    for log in [first_log, daemon.full_log()] {
        assert!(!log.contains(CANARY) && !log.contains(&STANDARD.encode(CANARY)), "{log}");
    }
    assert!(git_objects(site.state.path()).contains("RHUMB[1,"));
    for folder in [site.state.path(), runtime.path()] {
        assert_absent(folder, CANARY);
        assert_absent(folder, &STANDARD.encode(CANARY));
        assert_absent(folder, STANDARD.encode("canary-7f3a9c-newer").trim_end_matches('='));
    }
}

/// Fails where a daemon shows a canary: on the page, in its data, or among the metrics.
fn assert_shows_no_canary(site: &TestNamespace<'_>, socket: &Path) {
    let object = |name: &str| format!("/v1/objects/Secret/{}/{name}?view=yaml", site.name);
    let fixed =
        ["/", "/page.js", "/metrics", "/v1/status", "/v1/objects", "/v1/diff", "/v1/events?follow=no"];
    let paths = fixed.map(str::to_owned).into_iter().chain([object("made"), object("patched")]);
    for path in paths {
        let answer = ask(socket, "GET", &path);
        assert_eq!(answer.code, 200, "{path}: {}", answer.body);
        for form in [CANARY.to_owned(), STANDARD.encode(CANARY)] {
            assert!(!answer.body.contains(&form), "{path}: {}", answer.body);
        }
    }
}

/// Returns the folders with files in the open, each with whether a file in it has the canary.
fn open_folders(runtime: &Path) -> Vec<(PathBuf, bool)> {
    let entries = std::fs::read_dir(runtime).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("rhumb-open-"));
    let has_canary = |folder: &Path| {
        let files = walkdir::WalkDir::new(folder).into_iter().flatten();
        files
            .filter_map(|file| std::fs::read(file.path()).ok())
            .any(|bytes| bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()))
    };
    named.map(|folder| (folder.clone(), has_canary(&folder))).collect()
}

#[test]
fn what_a_killed_daemon_left_in_the_open_is_gone_with_the_next_start() {
    let site = TestNamespace::new("sops-killed");
    let identity = AgeIdentity::new();
    // Enough that kustomize has not ended before the daemon is killed.
    let many: Vec<String> =
        (0..2000).map(|number| yaml::deployment(&format!("web-{number}"), 1, "web:1")).collect();
    let repo = Repo::new(&[
        (
            "app/kustomization.yaml",
            "resources: [many.yaml]\nnamePrefix: a-\nsecretGenerator: [{name: made, envs: [db.env]}]\n"
                .to_owned(),
        ),
        ("app/many.yaml", yaml::documents(&many)),
        ("app/db.env", identity.encrypt_file("db.env", &format!("PASSWORD={CANARY}\n"), &[])),
    ]);
    let runtime = tempfile::tempdir_in("/dev/shm").unwrap();
    let start = |settings: &str| {
        let mut command = site.command_with_config(&["run"], &site.configuration(repo.path(), settings));
        command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
        command.env("RUNTIME_DIRECTORY", runtime.path());
        Daemon::start(command)
    };
    let kustomize = Renderers::find().unwrap().kustomize;
    let mut daemon = start(&format!("programs: {{kustomize: {}}}", kustomize.display()));
    until("kustomize gets the file in the open", || {
        open_folders(runtime.path()).iter().any(|(_, has_canary)| *has_canary)
    });
    daemon.kill();
    let left = open_folders(runtime.path());
    assert!(left.iter().any(|(_, has_canary)| *has_canary), "{left:?}");

    // Without the program, so that nothing is opened anew.
    let daemon = start("programs: {kustomize: /nonexistent/kustomize}");
    daemon.says(&["WARN", "/nonexistent/kustomize"]);
    assert_eq!(open_folders(runtime.path()), []);
    assert_absent(runtime.path(), CANARY);
}

#[test]
fn variables_of_an_encrypted_secret_reach_secrets_alone_and_are_nowhere_else() {
    let site = TestNamespace::new("sops-holder");
    let identity = AgeIdentity::new();
    let holder = |value: &str| identity.encrypt(&yaml::secret("tokens", "TOKEN", value));
    let repo = repository_with_variables(holder(CANARY));
    let Renderers { kustomize, helm } = Renderers::find().unwrap();
    let programs = format!("programs: {{kustomize: {}, helm: {}}}", kustomize.display(), helm.display());
    let text = site.configuration(repo.path(), &programs);
    let text = format!("{}\n  substituteFrom: [{{kind: Secret, name: tokens}}]\n", text.trim_end());
    let begin = |identity: &AgeIdentity| {
        let mut command = site.command_with_config(&["run", "--log-level", "trace"], &text);
        command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
        Daemon::start(command)
    };
    let expected = |value: &str| json!(STANDARD.encode(value));
    let mut daemon = begin(&identity);
    until("the plain one is there", || password(&site, "plain") == expected(&format!("x-{CANARY}")));
    until("the rendered one is there", || password(&site, "app-rendered") == expected(CANARY));
    until("that of the list is there", || password(&site, "listed") == expected(&format!("x-{CANARY}")));
    until("that of the chart is there", || password(&site, "of-chart") == expected(CANARY));
    site.await_data("other", "key", "one");
    // Where everybody may read it, it is refused.
    daemon.says(&["WARN", "shown.yaml"]);
    assert!(!site.has("ConfigMap", "shown"));
    let version = site.value("Secret", "plain", "/metadata/resourceVersion");

    // The same values, encrypted anew, change nothing; others do.
    repo.write("tokens.yaml", &holder(CANARY));
    repo.change("other.yaml", &yaml::config_map("other", "key", "two"));
    site.await_data("other", "key", "two");
    assert_eq!(site.value("Secret", "plain", "/metadata/resourceVersion"), version);
    let second = format!("{CANARY}-2");
    repo.change("tokens.yaml", &holder(&second));
    until("the new value is there", || password(&site, "plain") == expected(&format!("x-{second}")));
    until("it is rendered too", || password(&site, "app-rendered") == expected(&second));
    until("the list has it", || password(&site, "listed") == expected(&format!("x-{second}")));
    until("the chart has it", || password(&site, "of-chart") == expected(&second));

    // Drift is repaired from what is stored, and people see masks.
    site.api.delete(&site.at("Secret", "app-rendered"));
    until("it is made again", || password(&site, "app-rendered") == expected(&second));
    for arguments in [&["diff"][..], &["render"], &["validate"]] {
        let mut command = site.command_with_config(arguments, &text);
        command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
        let said = run(command).all();
        assert!(!said.contains(CANARY) && !said.contains(&STANDARD.encode(CANARY)), "{arguments:?}: {said}");
    }
    daemon.stop();
    assert!(!daemon.full_log().contains(CANARY));
    assert_no_beginning_of_canary(site.state.path());
    let stored = git_objects(site.state.path());
    for name in ["plain", "listed", "app-rendered", "of-chart"] {
        assert!(stored.contains(&format!("\"name\":\"{name}\"")), "{name} is not stored as it was rendered");
    }

    // Another identity opens nothing: all stays as it is.
    let other = AgeIdentity::new();
    let daemon = begin(&other);
    daemon.says(&["WARN", "no age identity at hand opens"]);
    repo.change("other.yaml", &yaml::config_map("other", "key", "three"));
    site.await_data("other", "key", "three");
    assert_eq!(password(&site, "plain"), expected(&format!("x-{second}")));
    for (name, value) in
        [("app-rendered", &second), ("of-chart", &second), ("listed", &format!("x-{second}"))]
    {
        assert_eq!(password(&site, name), expected(value), "{name}");
    }
}

/// Puts a value of an encrypted Secret into a host. The Secret is a resource of a kustomization.
#[test]
fn variables_of_an_encrypted_secret_are_put_in_anywhere_where_they_are_no_secrets() {
    let site = TestNamespace::new("sops-shown");
    let identity = AgeIdentity::new();
    let holder = |domain: &str| identity.encrypt(&yaml::secret("cluster-secrets", "SECRET_DOMAIN", domain));
    let ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n\
                   spec: {rules: [{host: 'web.${SECRET_DOMAIN}'}]}\n";
    let repo = Repo::new(&[
        ("vars/kustomization.yaml", "resources: [cluster-secrets.sops.yaml]\n".to_owned()),
        ("vars/cluster-secrets.sops.yaml", holder("home.example")),
        ("app/kustomization.yaml", "resources: [ingress.yaml]\n".to_owned()),
        ("app/ingress.yaml", ingress.to_owned()),
        ("plain.yaml", yaml::config_map("plain", "key", "${SECRET_DOMAIN}")),
    ]);
    let programs = format!("programs: {{kustomize: {}}}", Renderers::find().unwrap().kustomize.display());
    let text = site.configuration(repo.path(), &programs);
    let from = "  substituteFrom: [{kind: Secret, name: cluster-secrets, sensitive: false}]\n";
    let mut command = site.command_with_config(&["run"], &format!("{}\n{from}", text.trim_end()));
    command.env("CREDENTIALS_DIRECTORY", identity.folder.path());
    let mut daemon = Daemon::start(command);
    let has_host = |host: &str| site.value("Ingress", "web", "/spec/rules/0/host") == json!(host);
    site.await_data("plain", "key", "home.example");
    until("the host is there", || has_host("web.home.example"));
    repo.change("vars/cluster-secrets.sops.yaml", &holder("home.test"));
    site.await_data("plain", "key", "home.test");
    until("the host follows", || has_host("web.home.test"));
    assert!(daemon.is_running());
}

/// Returns a repository whose Secrets use a variable of an encrypted one in each way.
fn repository_with_variables(holder: String) -> Repo {
    let in_list = yaml::secret("listed", "password", "x-${TOKEN}");
    Repo::new(&[
        ("tokens.yaml", holder),
        ("plain.yaml", yaml::secret("plain", "password", "x-${TOKEN}")),
        ("app/kustomization.yaml", "namePrefix: app-\nresources: [secret.yaml]\n".to_owned()),
        ("app/secret.yaml", yaml::secret("rendered", "password", "${TOKEN}")),
        ("list.yaml", format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", indented(&in_list))),
        ("top/kustomization.yaml", "helmCharts: [{name: part, releaseName: a}]\n".to_owned()),
        ("top/charts/part/Chart.yaml", "apiVersion: v2\nname: part\nversion: 1.0.0\n".to_owned()),
        ("top/charts/part/values.yaml", "{}\n".to_owned()),
        ("top/charts/part/templates/secret.yaml", yaml::secret("of-chart", "password", "${TOKEN}")),
        ("shown.yaml", yaml::config_map("shown", "key", "${TOKEN}")),
        ("other.yaml", yaml::config_map("other", "key", "one")),
    ])
}

/// Asserts that no text below a folder begins as the canary does, whatever follows: three bytes are
/// four signs of base64.
fn assert_no_beginning_of_canary(folder: &Path) {
    let begins = STANDARD.encode(&CANARY[..CANARY.len() / 3 * 3]);
    let prefixed = format!("x-{CANARY}");
    let begins_prefixed = STANDARD.encode(&prefixed[..prefixed.len() / 3 * 3]);
    for form in [CANARY, &begins, &begins_prefixed] {
        assert_absent(folder, form);
    }
}

/// Indents the lines of a text behind the first, as an item of a list.
fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}
