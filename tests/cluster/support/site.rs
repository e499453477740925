//! One test's place: its namespace, its source, its user, its state directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use controlplane::{Cluster, FaultProxy};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Api, AuditWindow, DEFAULT_TIMEOUT, Daemon, at, eventually, shared};

/// The exit code of an order that is not acknowledged yet.
const UNACKNOWLEDGED: i32 = 5;

/// One test's place on a cluster. The namespace and the source have the same name.
pub(crate) struct TestNamespace<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) name: String,
    /// Somebody who is not rhumb and may do everything.
    pub(crate) api: Api,
    pub(crate) state: TempDir,
    /// The user that rhumb is to the API server.
    pub(crate) user: String,
    kubeconfig: PathBuf,
}

/// The result of running the program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramOutput {
    /// Returns the output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON: {error}: {self:#?}"))
    }

    /// Returns both outputs.
    pub(crate) fn all(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Fails unless a line of the output has all these texts.
    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) {
        let all = self.all();
        let found = all.lines().any(|line| texts.iter().all(|text| line.contains(text)));
        assert!(found, "no line with {texts:?} in {self:#?}");
    }
}

impl TestNamespace<'static> {
    /// Makes a place on the shared cluster, with its namespace.
    pub(crate) fn new(name: &str) -> Self {
        TestNamespace::on(shared(), name)
    }
}

impl<'a> TestNamespace<'a> {
    /// Makes a place on a cluster, with its namespace.
    pub(crate) fn on(cluster: &'a Cluster, name: &str) -> Self {
        let site = Self::without_namespace(cluster, name);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        site.api.create("/api/v1/namespaces", "setup", &namespace);
        site
    }

    /// Makes a place whose namespace nobody has made yet.
    pub(crate) fn without_namespace(cluster: &'a Cluster, name: &str) -> Self {
        let user = format!("rhumb-{name}");
        let kubeconfig = cluster.kubeconfig_for(&user).unwrap();
        let api = Api::new(cluster.kubeconfig());
        Self { cluster, name: name.to_owned(), api, state: TempDir::new().unwrap(), user, kubeconfig }
    }

    /// Returns the same place and source with a state directory that has nothing in it.
    pub(crate) fn with_empty_state(&self) -> Self {
        let state = TempDir::new().unwrap();
        let (name, user) = (self.name.clone(), self.user.clone());
        Self {
            cluster: self.cluster,
            name,
            api: self.api.clone(),
            state,
            user,
            kubeconfig: self.kubeconfig.clone(),
        }
    }

    /// Lets all later runs go through a proxy.
    pub(crate) fn through(&mut self, proxy: &FaultProxy) {
        self.kubeconfig = proxy.kubeconfig(&self.user).unwrap();
    }

    /// Lets all later runs be a user who may do only what RBAC objects grant, in a namespace of
    /// rhumb's that is there.
    pub(crate) fn limited(&mut self) {
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.system()}});
        self.api.apply(&at("Namespace", "", &self.system()), "setup", &system);
        self.user = format!("{}-limited", self.user);
        self.kubeconfig = self.cluster.kubeconfig_limited(&self.user).unwrap();
    }

    /// Lets all later runs be another user, who may do everything too.
    #[allow(dead_code, reason = "only the tests of rollouts have replicas")]
    pub(crate) fn known_as(&mut self, suffix: &str) {
        self.user = format!("{}-{suffix}", self.user);
        self.kubeconfig = self.cluster.kubeconfig_for(&self.user).unwrap();
    }

    /// Returns the kubeconfig that runs use.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns a command of the program for this source.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = self.bare_command();
        command.args(arguments).args(["-n", &self.name]);
        if arguments.iter().all(|argument| argument.as_ref() != "--source") {
            command.args(["--source", &self.name]);
        }
        command
    }

    /// Returns a command of the program without arguments.
    pub(crate) fn bare_command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.args(["--system-namespace", &self.system()]);
        command.env("KUBECONFIG", &self.kubeconfig).env("STATE_DIRECTORY", self.state.path());
        command.env_remove("XDG_RUNTIME_DIR").env_remove("RHUMB_SOCKET");
        command.env_remove("RUST_LOG").env("NO_COLOR", "1");
        // For whoever looks for the reason of a failure.
        if let Some(directives) = std::env::var_os("RHUMB_TEST_LOG") {
            command.env("RUST_LOG", directives);
        }
        command
    }

    /// Runs the program for this source to its end.
    pub(crate) fn rhumb<S: AsRef<OsStr>>(&self, arguments: &[S]) -> ProgramOutput {
        run(self.command(arguments))
    }

    /// Gives an order of a person, and waits until the answer has all these texts. The command
    /// itself waits for 5 s, which may be too short on a busy machine: the order is answered all
    /// the same.
    #[allow(dead_code, reason = "other tests are about the command, or about its end in time")]
    #[track_caller]
    pub(crate) fn order(&self, arguments: &[&str], texts: &[&str]) {
        let answers = || {
            let answers = self.inventory().unwrap_or_default()["data"]["acknowledged"].clone();
            answers.as_str().unwrap_or_default().to_owned()
        };
        let known = answers();
        let output = self.rhumb(arguments);
        if output.code != UNACKNOWLEDGED {
            return output.ends(0).says(texts);
        }
        eventually(&format!("the answer to {arguments:?} has {texts:?}"), DEFAULT_TIMEOUT, || {
            let all = answers();
            let is_new = |line: &&str| known.lines().all(|other| other != *line);
            let is_expected = |line: &str| texts.iter().all(|text| line.contains(text));
            if all.lines().filter(is_new).any(is_expected) { Ok(()) } else { Err(all) }
        });
    }

    /// Runs `rhumb apply`.
    pub(crate) fn apply(&self, source: &Path, flags: &[&str]) -> ProgramOutput {
        self.rhumb(&[&["apply", source.to_str().unwrap()], flags].concat())
    }

    /// Runs `rhumb diff`.
    pub(crate) fn diff(&self, source: &Path, flags: &[&str]) -> ProgramOutput {
        self.rhumb(&[&["diff", source.to_str().unwrap()], flags].concat())
    }

    /// Starts `rhumb run` on a source.
    pub(crate) fn daemon(&self, source: &Path) -> Daemon {
        self.daemon_with(source, &[])
    }

    /// Starts `rhumb run` on a source with flags.
    pub(crate) fn daemon_with(&self, source: &Path, flags: &[&str]) -> Daemon {
        Daemon::start(self.command(&[&["run", source.to_str().unwrap()], flags].concat()))
    }

    /// Starts `rhumb run --config` with this configuration.
    pub(crate) fn configured(&self, text: &str) -> Daemon {
        Daemon::start(self.command_with_config(&["run"], text))
    }

    /// Runs a command with this configuration to its end.
    #[allow(dead_code, reason = "the tests of rollouts start daemons alone")]
    pub(crate) fn with_config(&self, arguments: &[&str], text: &str) -> ProgramOutput {
        run(self.command_with_config(arguments, text))
    }

    /// Returns a command of the program with this configuration.
    pub(crate) fn command_with_config(&self, arguments: &[&str], text: &str) -> Command {
        let file = self.state.path().join("rhumb.yaml");
        std::fs::write(&file, text).unwrap();
        let mut command = self.bare_command();
        command.args(arguments).arg("--config").arg(file);
        command
    }

    /// Returns a configuration with one source in this repository, and these further lines in its
    /// `Configuration`.
    pub(crate) fn configuration(&self, repository: &Path, settings: &str) -> String {
        format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{settings}\n---\n{}",
            source(&self.name, &self.name, repository, "")
        )
    }

    /// Begins to look at what rhumb sends.
    pub(crate) fn window(&self) -> AuditWindow<'a> {
        AuditWindow::new(self.cluster, &self.user)
    }

    /// Returns the namespace of the inventories. Each test has its own, and with it a rollout
    /// budget of its own.
    pub(crate) fn system(&self) -> String {
        format!("{}-rhumb", self.name)
    }

    /// Returns the path of an object in the namespace.
    pub(crate) fn at(&self, kind: &str, name: &str) -> String {
        at(kind, &self.name, name)
    }

    /// Returns an object in the namespace, if it is there.
    #[track_caller]
    pub(crate) fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.api.get(&self.at(kind, name))
    }

    /// Returns whether an object is in the namespace.
    #[track_caller]
    pub(crate) fn has(&self, kind: &str, name: &str) -> bool {
        self.get(kind, name).is_some()
    }

    /// Returns a value of an object in the namespace by a JSON pointer, null where it is not there.
    #[track_caller]
    pub(crate) fn value(&self, kind: &str, name: &str, pointer: &str) -> Value {
        self.api.value(&self.at(kind, name), pointer)
    }

    /// Returns a text in a ConfigMap's data, empty where it is not there.
    #[track_caller]
    pub(crate) fn data(&self, name: &str, key: &str) -> String {
        self.value("ConfigMap", name, &format!("/data/{key}")).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a ConfigMap's data has a text.
    #[track_caller]
    pub(crate) fn await_data(&self, name: &str, key: &str, expected: &str) {
        self.await_data_within(DEFAULT_TIMEOUT, name, key, expected);
    }

    /// Waits until a ConfigMap's data has a text.
    #[track_caller]
    pub(crate) fn await_data_within(&self, limit: Duration, name: &str, key: &str, expected: &str) {
        let what = format!("ConfigMap {name} has {key}: {expected}");
        eventually(&what, limit, || match self.data(name, key) {
            text if text == expected => Ok(()),
            text => Err(format!("it has {text:?}")),
        });
    }

    /// Waits until an object is there.
    #[track_caller]
    pub(crate) fn await_object(&self, kind: &str, name: &str) -> Value {
        eventually(&format!("{kind} {name} is there"), DEFAULT_TIMEOUT, || {
            self.get(kind, name).ok_or("it is not")
        })
    }

    /// Waits until an object is not there.
    #[track_caller]
    pub(crate) fn await_absence(&self, kind: &str, name: &str) {
        let probe = || if self.has(kind, name) { Err("it is there") } else { Ok(()) };
        eventually(&format!("{kind} {name} is gone"), DEFAULT_TIMEOUT, probe);
    }

    /// Waits until a Deployment's rollout is over.
    #[track_caller]
    pub(crate) fn await_rollout(&self, name: &str) {
        self.await_rollout_within(DEFAULT_TIMEOUT, name);
    }

    /// Does as [`TestNamespace::await_rollout`], with another limit: for a workload that comes after
    /// much else.
    #[track_caller]
    pub(crate) fn await_rollout_within(&self, limit: Duration, name: &str) {
        eventually(&format!("Deployment {name} is rolled out"), limit, || {
            let shown = self.get("Deployment", name).ok_or_else(|| "it is not there".to_owned())?;
            let number = |pointer: &str| shown.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
            let wanted = number("/spec/replicas");
            let done = number("/status/observedGeneration") == number("/metadata/generation")
                && number("/status/updatedReplicas") == wanted
                && number("/status/availableReplicas") == wanted
                && number("/status/replicas") == wanted;
            if done { Ok(()) } else { Err(shown["status"].to_string()) }
        });
    }

    /// Waits until the rollout budget is all free.
    #[track_caller]
    pub(crate) fn await_free_budget(&self) {
        let budget = at("ConfigMap", &self.system(), "rollout-budget.rhumb.dev");
        eventually("nobody claims anything", DEFAULT_TIMEOUT, || {
            let ledger = self.api.value(&budget, "/data/claims");
            let free = |text: &str| text.starts_with(r#"{"claims":[],"units":[]"#);
            if ledger.as_str().is_none_or(free) { Ok(()) } else { Err(ledger.to_string()) }
        });
    }

    /// Waits until the rollout queue that is reported is empty.
    #[track_caller]
    pub(crate) fn await_empty_queue(&self) {
        let budget = at("ConfigMap", &self.system(), "rollout-budget.rhumb.dev");
        eventually("nobody waits", DEFAULT_TIMEOUT, || {
            let ledger = self.api.value(&budget, "/data/claims");
            let is_empty = ledger.as_str().is_some_and(|ledger| !ledger.contains("\"queue\""));
            if is_empty { Ok(()) } else { Err(ledger.to_string()) }
        });
    }

    /// Runs kubectl in the namespace, as `admin`.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let arguments = [&["-n", &self.name], arguments].concat();
        self.cluster.kubectl(&arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the records of the source's inventory, without its status and the places of its
    /// objects, which are written later.
    pub(crate) fn records(&self) -> String {
        let mut inventory = self.inventory().unwrap_or_default();
        if let Some(data) = inventory["data"].as_object_mut() {
            data.retain(|key, _| {
                !["status", "not-as-wanted", "left-alone", "origins"].contains(&key.as_str())
            });
        }
        inventory.to_string()
    }

    /// Returns the source's inventory.
    pub(crate) fn inventory(&self) -> Option<Value> {
        self.inventory_of(&self.name)
    }

    /// Returns the inventory of a source.
    pub(crate) fn inventory_of(&self, source: &str) -> Option<Value> {
        self.api.get(&at("ConfigMap", &self.system(), source))
    }
}

/// Returns a `Source` document over a local repository.
pub(crate) fn source(name: &str, namespace: &str, repository: &Path, spec: &str) -> String {
    format!(
        "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {name}}}\nspec:\n  namespace: {namespace}\n  \
         git: {{url: {}}}\n{spec}\n",
        repository.display()
    )
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> ProgramOutput {
    let output = command.output().unwrap();
    ProgramOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
