//! Credentials and secrets that are replaced while the daemon runs.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, DedicatedCluster, Repo, SHARED, TestNamespace, WritesByHolder, at,
    await_shares, eventually, shared_name, source, yaml,
};

fn replace(file: &Path, text: impl AsRef<[u8]>) {
    let newer = file.with_extension("newer");
    fs::write(&newer, text).unwrap();
    fs::rename(newer, file).unwrap();
}

/// Reads a kubeconfig as JSON.
fn read(file: &Path) -> Value {
    serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn user(kubeconfig: &mut Value) -> &mut Value {
    &mut kubeconfig["users"][0]["user"]
}

fn start(site: &TestNamespace<'_>, kubeconfig: &Path, text: &str) -> Daemon {
    let file = site.state.path().join("rhumb.yaml");
    fs::write(&file, text).unwrap();
    let mut command = site.bare_command();
    command.env("KUBECONFIG", kubeconfig).arg("run").arg("--config").arg(file);
    Daemon::start(command)
}

/// Puts certificate and key of another user into the files that the kubeconfig names, one after the
/// other.
#[test]
fn a_client_certificate_is_followed_in_its_files() {
    let site = TestNamespace::new("rotated-cert");
    let other = format!("{}-newer", site.user);
    let newer = site.cluster.kubeconfig_for(&other).unwrap();
    let dir = site.state.path();
    let files = [("client-certificate", dir.join("cert")), ("client-key", dir.join("key"))];
    let put = |kubeconfig: &Path| {
        let mut found = read(kubeconfig);
        for (key, file) in &files {
            let data = user(&mut found)[format!("{key}-data")].as_str().unwrap().to_owned();
            replace(file, STANDARD.decode(data).unwrap());
        }
    };
    put(site.kubeconfig());
    let mut kubeconfig = read(site.kubeconfig());
    *user(&mut kubeconfig) = files.iter().map(|(key, file)| ((*key).to_owned(), json!(file))).collect();
    let path = dir.join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let mut daemon = start(&site, &path, &site.configuration(repo.path(), ""));
    site.await_data("env", "a", "1");
    let window = AuditWindow::new(site.cluster, &other);
    put(&newer);
    let said = daemon.says(&["newer credentials are in use: "]);
    assert!(said.contains("/key changed") && !said.contains("kubeconfig"), "{said}");
    repo.change("env.yaml", &yaml::config_map("env", "a", "2"));
    site.await_data("env", "a", "2");
    assert_eq!(window.to("configmaps", "env").len(), 1);
    assert_eq!(daemon.stop().code(), Some(0));
}

struct Account<'a> {
    site: &'a TestNamespace<'a>,
    token: PathBuf,
}

impl Account<'_> {
    /// Makes the account, and a token in place of the one before.
    fn make(&self) {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "one"}});
        self.site.api.create(&self.site.at("ServiceAccount", ""), "setup", &account);
        replace(&self.token, self.site.kubectl(&["create", "token", "one"]));
    }
}

/// Deletes the account of the token and makes it anew. The server really refuses the old token, in
/// the middle of renewals of the Lease. The newer token is there when the daemon reads the files
/// again.
#[test]
fn a_token_that_is_refused_before_a_newer_one_is_there_lets_nobody_write_beside_a_lease() {
    let cluster = DedicatedCluster::bare();
    let one = TestNamespace::on(&cluster, "rotated-lease");
    let mut other = one.with_empty_state();
    other.known_as("other");
    let account = Account { site: &one, token: one.state.path().join("token") };
    account.make();
    let name = format!("system:serviceaccount:{}:one", one.name);
    let role = ["create", "clusterrolebinding", "one", "--clusterrole=cluster-admin"];
    cluster.kubectl(&[&role[..], &[&format!("--serviceaccount={}:one", one.name)]].concat()).unwrap();
    let mut kubeconfig = read(one.kubeconfig());
    *user(&mut kubeconfig) = json!({"tokenFile": account.token});
    let path = one.state.path().join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    let content = |text: &str| yaml::config_map("env", "a", text);
    let repo = Repo::new(&[("env.yaml", content("0"))]);
    let head = "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nleases: always\n---\n";
    let text = format!("{head}{}", source(&shared_name(0), &one.name, repo.path(), ""));
    let mut first = start(&one, &path, &text);
    one.await_data("env", "a", "0");
    let mut second = start(&other, other.kubeconfig(), &text);
    await_shares(&one, SHARED, &[1]);
    for turn in ["1", "2"] {
        let mark = first.mark();
        one.api.delete(&one.at("ServiceAccount", "one"));
        first.says_since(mark, &["the credentials cannot be renewed"]);
        repo.change("env.yaml", &content(turn));
        account.make();
        one.await_data_within(SHARED, "env", "a", turn);
        let window = AuditWindow::new(&cluster, &name);
        eventually("it is heard again", DEFAULT_TIMEOUT, || {
            let answered = window.calls().iter().any(|event| event.code == 200);
            if answered { Ok(()) } else { Err("it is not") }
        });
    }
    await_shares(&one, SHARED, &[1]);
    let counts = WritesByHolder::by(&cluster, [&name, &other.user])
        .judge(|event| (event.name == "env").then(|| shared_name(0)));
    assert!(counts["configmaps"] >= 3 && counts.contains_key("leases"), "{counts:?}");
    assert!(one.api.get(&at("Lease", &one.system(), "rhumb-source-0")).is_some());
    assert_eq!((first.stop().code(), second.stop().code()), (Some(0), Some(0)));
}
