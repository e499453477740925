//! Secrets where something else should be, so that a complaint could repeat them: the
//! configuration, the kubeconfig, proxies, URLs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::search::{Canary, SearchedTexts};
use crate::support::{Daemon, Remote, Repo, ServerBehavior, TestNamespace, run, yaml};

/// The runs of commands that end with a complaint, with those complaints.
struct CommandFailures {
    site: TestNamespace<'static>,
    dir: tempfile::TempDir,
    places: SearchedTexts,
    canaries: Vec<Canary>,
}

impl CommandFailures {
    fn new(name: &str) -> Self {
        let site = TestNamespace::new(name);
        Self {
            site,
            dir: tempfile::tempdir().unwrap(),
            places: SearchedTexts::default(),
            canaries: Vec::new(),
        }
    }

    fn canary(&mut self, name: &'static str) -> Canary {
        let canary = Canary::of(name);
        self.canaries.push(canary.clone());
        canary
    }

    fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs a command that has to fail, and keeps its complaint.
    #[track_caller]
    fn complains(&mut self, name: &str, mut command: Command) {
        command.args(["--log-level", "trace"]);
        let ran = run(command);
        assert!(ran.code > 0 && !ran.stderr.is_empty(), "{name}: {ran:#?}");
        assert!(!ran.stderr.contains("Usage:"), "{name} is no command: {ran:#?}");
        self.places.add(name, ran.all());
    }

    /// Runs a command that needs the cluster, with this kubeconfig.
    #[track_caller]
    fn with_kubeconfig(&mut self, name: &'static str, text: &str) {
        let file = self.write("kubeconfig", text);
        let mut command = self.site.command(&["prune", "list"]);
        command.env("KUBECONFIG", file);
        self.complains(name, command);
    }

    /// Runs the daemon with this configuration.
    #[track_caller]
    fn with_configuration(&mut self, name: &'static str, text: &str) {
        let file = self.write("rhumb.yaml", text);
        let mut command = self.site.bare_command();
        command.arg("run").arg("--config").arg(file);
        self.complains(name, command);
    }
}

const HEAD: &str = "apiVersion: rhumb.dev/v1alpha1\nkind: ";

#[test]
fn a_wrong_configuration_is_not_repeated() {
    let mut wrong = CommandFailures::new("canary-configuration");
    for (name, before, behind) in [
        ("text for a duration", "resync: '", "'"),
        ("a bare word for a duration", "resync: ", ""),
        ("text for a number", "api: {qps: '", "'}"),
        ("text for a mapping", "api: '", "'"),
        ("text for a list", "notify: '", "'"),
        ("text for a word of a few", "customSources: '", "'"),
        ("a share of the budget", "budget: {maxUnavailable: '", "'}"),
        ("an address", "serve: {listen: '", "'}"),
        ("a key", "'", "': 1"),
        ("a key that is there twice", "'", "': 1\n'a': 2\n'a': 1"),
        ("a name", "namespace: '", "'"),
        ("an open quote", "resync: \"", ""),
        ("an alias", "resync: *", ""),
        ("a tag", "resync: !", " x"),
        ("a colon too many", "resync: ", ": x"),
        ("the URL of a webhook", "notify: [{webhook: {url: 'http://example.org/", "'}}]"),
        ("a repository", "notify: [{github: {token: x, repository: '", "'}}]"),
        ("an occasion", "notify: [{on: ['", "'], slack: {urlFile: x}}]"),
    ] {
        let canary = wrong.canary(name);
        let text = if before.ends_with(['*', '!']) { canary.plain() } else { canary.text() };
        wrong.with_configuration(name, &format!("{HEAD}Configuration\n{before}{text}{behind}\n"));
    }
    for (name, before, behind) in [
        ("a password in a URL of no known scheme", "ftp://user:", "@example.org/x"),
        ("a token in a URL of no known scheme", "ftp://", "@example.org/x"),
        ("a password in a URL without a host", "https://user:", "@/x"),
        ("a query", "ftp://example.org/x?token=", ""),
        ("a query of a URL that would be right", "https://example.org/x?token=", ""),
        ("a remote helper", "ext::", ""),
    ] {
        let text = wrong.canary(name).text();
        let url = format!("{before}{text}{behind}");
        let source = format!("{HEAD}Source\nmetadata: {{name: a}}\nspec: {{git: {{url: '{url}'}}}}\n");
        wrong.with_configuration(name, &source);
    }
    wrong.places.show_none_of(&wrong.canaries);
}

/// Writes a kubeconfig with a secret in one place.
fn kubeconfig(site: &TestNamespace<'_>, pointer: &str, value: Value) -> String {
    let text = fs::read_to_string(site.kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    *kubeconfig.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    kubeconfig.to_string()
}

#[test]
fn a_wrong_kubeconfig_is_not_repeated() {
    let mut wrong = CommandFailures::new("canary-kubeconfig");
    let user = "/users/0/user";
    for (name, pointer, value) in [
        ("a user that is text", user, "\"%\""),
        ("a token that is a list", user, "{\"token\": [\"%\"]}"),
        ("a token that is a mapping", user, "{\"token\": {\"%\": 1}}"),
        ("a token of two lines", user, "{\"token\": \"%\\n\\u0000\"}"),
        ("a key that is no base64", user, "{\"client-certificate-data\": \"%\", \"client-key-data\": \"%\"}"),
        (
            "a key that is no PEM",
            user,
            "{\"client-certificate-data\": \"JSUl\", \"client-key-data\": \"JSUl\"}",
        ),
        (
            "a file that is not there",
            user,
            "{\"tokenFile\": \"/nowhere\", \"password\": \"%\", \"username\": 3}",
        ),
        (
            "a password in the server's address",
            "/clusters/0/cluster/server",
            "\"https://user:%@127.0.0.1:1\"",
        ),
        ("a password in an address that is none", "/clusters/0/cluster/server", "\"https://user:% x@:y\""),
        ("users that are text", "/users", "\"%\""),
        ("a cluster that is text", "/clusters/0/cluster", "\"%\""),
    ] {
        let canary = wrong.canary(name);
        let value: Value = serde_json::from_str(&value.replace('%', &canary.text())).unwrap();
        let text = kubeconfig(&wrong.site, pointer, value);
        wrong.with_kubeconfig(name, &text);
    }
    for (name, proxy) in [
        ("a password in a proxy's address", "http://user:%@127.0.0.1:1"),
        ("a password in a proxy's address of no known scheme", "ftp://user:%@127.0.0.1:1"),
        ("a password in a proxy's address of SOCKS", "socks5://user:%@127.0.0.1:1"),
        ("a password in a proxy's address that is none", "http://user:% x@127.0.0.1:y"),
    ] {
        let text = wrong.canary(name).text();
        let server = wrong.site.kubeconfig().to_owned();
        let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(server).unwrap()).unwrap();
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] = json!(proxy.replace('%', &text));
        wrong.with_kubeconfig(name, &kubeconfig.to_string());
    }
    for (name, text) in
        [("an open quote", "users: [{user: {token: \"%"), ("an alias", "users: *%"), ("text", "%")]
    {
        let canary = wrong.canary(name);
        wrong.with_kubeconfig(name, &text.replace('%', &canary.plain()));
    }
    wrong.places.show_none_of(&wrong.canaries);
}

#[test]
fn a_credential_plugin_is_not_repeated() {
    let mut wrong = CommandFailures::new("canary-plugin");
    for (name, script) in [
        ("words before a failure", "echo 'the password is %' >&2; exit 1"),
        ("words with a header", "echo 'Authorization: Bearer %' >&2; exit 1"),
        ("a URL in its words", "echo 'GET https://user:%@idp.example.org/token?code=% failed' >&2; exit 1"),
        ("an answer before a failure", "echo '{\"status\": {\"token\": \"%\"}}'; exit 1"),
        ("an answer that is no JSON", "echo '{\"status\": {\"token\": \"%'"),
        ("an answer of another form", "echo '{\"status\": \"%\"}'"),
        ("an answer without a token", "echo '{\"kind\": \"ExecCredential\", \"password\": \"%\"}'"),
        ("its environment", "env >&2; exit 1 # %"),
        ("its arguments", "echo \"$@\" >&2; exit 1 # %"),
    ] {
        let canary = wrong.canary(name);
        let script = format!("#!/bin/sh\n{}\n", script.replace('%', &canary.text()));
        let plugin = wrong.write("plugin", &script);
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o700)).unwrap();
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": plugin, "args": ["--password", canary.text()],
            "env": [{"name": "PLUGIN_PASSWORD", "value": canary.text()}]});
        let text = kubeconfig(&wrong.site, "/users/0/user", json!({"exec": exec}));
        wrong.with_kubeconfig(name, &text);
    }
    let canary = wrong.canary("a plugin that is not there");
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "/nowhere/plugin", "args": [canary.text()]});
    let text = kubeconfig(&wrong.site, "/users/0/user", json!({"exec": exec}));
    wrong.with_kubeconfig("a plugin that is not there", &text);
    wrong.places.show_none_of(&wrong.canaries);
}

#[test]
fn what_git_needs_is_not_repeated() {
    let mut wrong = CommandFailures::new("canary-git");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let remote = Remote::of(&repo);
    let diff = |site: &TestNamespace<'_>, url: &str| {
        let mut command = site.command(&["diff", url]);
        remote.trusted(&mut command);
        command
    };
    remote.set(ServerBehavior::Repeating);
    let url = remote.url();
    for (name, scheme, before, behind) in [
        ("a password that is repeated", &*url, "user:", "@"),
        ("a token that is repeated", &*url, "", "@"),
        ("a password that is repeated decoded", &*url, "user:%25", "@"),
        ("a password for nobody", "https://127.0.0.1:1/repo.git", "user:", "@"),
        ("a password over ssh", "ssh://127.0.0.1:1/repo.git", "user:", "@"),
        ("a password without encryption", "http://127.0.0.1:1/repo.git", "user:", "@"),
        ("a password of no known scheme", "ftp://127.0.0.1:1/repo.git", "user:", "@"),
    ] {
        let text = wrong.canary(name).text();
        let (scheme, rest) = scheme.split_once("://").unwrap();
        let command = diff(&wrong.site, &format!("{scheme}://{before}{text}{behind}{rest}"));
        wrong.complains(name, command);
    }
    let canary = wrong.canary("a password in a redirect");
    remote.set(ServerBehavior::Elsewhere(format!("user:{}", canary.plain()).leak()));
    let command = diff(&wrong.site, &url);
    wrong.complains("a password in a redirect", command);
    // git goes through the proxy for hosts that are not this one alone.
    for (name, variable, proxy) in [
        ("a proxy of git's", "https_proxy", "http://user:%@127.0.0.1:1"),
        ("a proxy of git's that is none", "https_proxy", "http://user:%@[bad"),
        ("a proxy of git's of no known scheme", "ALL_PROXY", "what://user:%@127.0.0.1:1"),
    ] {
        let text = wrong.canary(name).text();
        let mut command = diff(&wrong.site, "https://git.invalid/repo.git");
        command.env(variable, proxy.replace('%', &text)).env("NO_PROXY", "127.0.0.1");
        wrong.complains(name, command);
    }
    // The same for the API server.
    for (name, proxy) in [
        ("a proxy before the API server", "http://user:%@127.0.0.1:1"),
        ("a proxy before the API server that is none", "http://user:% @[bad"),
        ("a proxy before the API server of no known scheme", "what://user:%@127.0.0.1:1"),
    ] {
        let text = wrong.canary(name).text();
        let server = kubeconfig(&wrong.site, "/clusters/0/cluster/server", json!("https://api.invalid"));
        let file = wrong.write("kubeconfig", &server);
        let mut command = wrong.site.command(&["prune", "list"]);
        command.env("KUBECONFIG", file).env("HTTPS_PROXY", proxy.replace('%', &text));
        wrong.complains(name, command);
    }
    wrong.places.show_none_of(&wrong.canaries);
}

#[test]
fn whoever_writes_a_secret_instead_of_its_file_does_not_read_it_in_the_log() {
    let mut wrong = CommandFailures::new("canary-inline");
    let canary = wrong.canary("a token in place of its file");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "one"))]);
    let settings = format!(
        "serve: {{listen: '127.0.0.1:0', token: {0}, hook: {{secret: {0}}}}}\nnotify: [{{slack: {{urlFile: {0}}}}}]",
        canary.plain()
    );
    let text = wrong.site.configuration(repo.path(), &settings);
    let file = wrong.write("rhumb.yaml", &text);
    let mut command = wrong.site.bare_command();
    command.args(["run", "--log-level", "debug", "--config"]).arg(file);
    let mut daemon = Daemon::start(command);
    let line = daemon.says(&["answering on http://127.0.0.1:"]);
    let port = line.trim_end().rsplit(':').next().unwrap().parse().unwrap();
    wrong.site.await_data("env", "a", "one");
    for line in ["GET /v1/status", "POST /hook/canary-inline"] {
        wrong.places.add(line, super::exchange_over_tcp(port, line, "Authorization: Bearer x\r\n"));
    }
    daemon.says(&["the channel of", "again in"]);
    daemon.stop();
    wrong.places.add("the log", daemon.full_log());
    wrong.places.show_none_of(&wrong.canaries);
}
