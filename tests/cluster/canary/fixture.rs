//! A service with everything that it can have, and a secret in each of them.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use controlplane::{Cluster, FaultProxy, Renderers};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::notifications::NotificationReceiver;
use super::plants;
use super::search::Canary;
use crate::support::{AgeIdentity, Daemon, ProgramOutput, Remote, Repo, TestNamespace, at, receive, run};

/// All of it.
pub(super) struct CanaryFixture<'a> {
    pub(super) site: TestNamespace<'a>,
    pub(super) proxy: FaultProxy,
    /// An encrypted file that was edited without `sops`.
    pub(super) edited: String,
    pub(super) repo: Repo,
    pub(super) remote: Remote,
    pub(super) letters: NotificationReceiver,
    /// All that the service manager heard.
    pub(super) heard: Arc<Mutex<String>>,
    /// The token by which the API server knows rhumb.
    pub(super) token: String,
    /// Files, credentials, the socket.
    pub(super) dir: TempDir,
}

impl<'a> CanaryFixture<'a> {
    pub(super) fn on(cluster: &'a Cluster) -> Self {
        let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/in-cluster/crd.yaml");
        cluster.kubectl(&["apply", "--server-side", "-f", definition.to_str().unwrap()]).unwrap();
        cluster
            .kubectl(&["wait", "--for=condition=Established", "crd/sources.rhumb.dev", "--timeout=3m"])
            .unwrap();
        let site = TestNamespace::on(cluster, "canary");
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.system()}});
        site.api.create("/api/v1/namespaces", "setup", &system);
        let identity = AgeIdentity::new();
        let encrypted = |name: &str, value: &'static str| {
            let lines = format!("stringData: {{a: '{}', b: x}}", Canary::of(value).text());
            (format!("{name}.yaml"), identity.encrypt(&plants::secret(name, &lines)))
        };
        let (_, edited) = encrypted("edited", "a Secret of sops that was edited");
        let edited = edited.replace("name: edited", "name: changed");
        let sealed = encrypted("sealed", "a Secret of sops");
        let repo = Repo::new(&[plants::first(), vec![sealed]].concat());
        let remote = Remote::of(&repo);
        let dir = TempDir::new().unwrap();
        let mut estate = Self {
            token: String::new(),
            proxy: cluster.fault_proxy(7).unwrap(),
            letters: NotificationReceiver::new(),
            heard: Arc::default(),
            site,
            edited,
            repo,
            remote,
            dir,
        };
        estate.write_credentials();
        estate.write("credentials/sops-age", &fs::read_to_string(identity.file()).unwrap());
        estate.token = estate.write_kubeconfig();
        estate.write_policy();
        estate.listen();
        // A folder that was applied by kubectl has its whole manifest in an annotation.
        let adopted = estate.repo.path().join("adopted.yaml");
        let adopted = adopted.to_str().unwrap();
        cluster.kubectl(&["-n", &estate.site.name, "apply", "-f", adopted]).unwrap();
        estate
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn write_credentials(&self) {
        let text = |name| Canary::of(name).text();
        let key = Canary::of("the SSH key").base64();
        self.write("credentials/ssh-key", &format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{key}\n"));
        let server = self.remote.url().replace("https://", "");
        let server = server.split('/').next().unwrap();
        let password = Canary::of("the stored password of git").plain();
        self.write("credentials/git-credentials", &format!("https://user:{password}@{server}\n"));
        self.write("credentials/serve-token", &text("the token of the page"));
        self.write("credentials/webhook-secret", &text("the secret of webhooks"));
        self.write("hook-token", &text("the token of a webhook"));
        self.write("forge-token", &text("the token of a forge"));
        let slack = format!("{}/services/{}", self.letters.url(), Canary::of("the URL of Slack").plain());
        self.write("slack-url", &slack);
    }

    /// Writes a kubeconfig whose user asks a plugin for the token, which says too much.
    fn write_kubeconfig(&self) -> String {
        let kubeconfig = fs::read_to_string(self.proxy.kubeconfig(&self.site.user).unwrap()).unwrap();
        let mut kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
        let token = kubeconfig["users"][0]["user"]["token"].take();
        let answer = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": token}});
        let words = Canary::of("the words of a credential plugin").plain();
        let script = format!("#!/bin/sh\necho 'password: {words}' >&2\necho '{answer}'\n");
        let plugin = self.write("plugin", &script);
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o700)).unwrap();
        let password = Canary::of("the environment of a credential plugin").text();
        kubeconfig["users"][0]["user"] = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": plugin,
            "args": [Canary::of("an argument of a credential plugin").text()],
            "env": [{"name": "PLUGIN_PASSWORD", "value": password}],
        }});
        let other =
            json!({"name": "other", "user": {"token": Canary::of("another token of the kubeconfig").text()}});
        kubeconfig["users"].as_array_mut().unwrap().push(other);
        self.write("credentials/kubeconfig", &kubeconfig.to_string());
        token.as_str().unwrap().to_owned()
    }

    /// Writes a policy as an administrator may: it says what it does not like.
    fn write_policy(&self) {
        let group = "apiVersion: admissionregistration.k8s.io/v1";
        let policy = format!(
            "{group}\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: canary}}\nspec:\n  \
             matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [secrets]}}]}}\n  \
             validations:\n  - expression: object.metadata.name != 'denied'\n    \
             messageExpression: \"'the value ' + string(object.data['a']) + ' is not liked'\"\n---\n\
             {group}\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: canary}}\n\
             spec: {{policyName: canary, validationActions: [Deny]}}\n"
        );
        self.site.cluster.kubectl_in(&["apply", "-f", "-"], &policy).unwrap();
    }

    /// Hears as a service manager does, to the end of the test.
    fn listen(&self) {
        let socket = UnixDatagram::bind(self.path("notify")).unwrap();
        let heard = Arc::clone(&self.heard);
        thread::spawn(move || {
            while let Some(message) = receive(&socket) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&message));
            }
        });
    }

    /// Returns a configuration of two sources. The URL of one has its password; for the other one
    /// git looks it up.
    pub(super) fn configuration(&self) -> String {
        let (url, name) = (self.remote.url(), &self.site.name);
        let password = Canary::of("the password in a URL").text();
        let with_password = url.replace("https://", &format!("https://user:{password}@"));
        let private = url.replace("/repo.git", "/private/repo.git");
        let path = Canary::of("the path of a webhook's URL").plain();
        let file = |name: &str| self.path(name).display().to_string();
        let letters = self.letters.url();
        let head = "apiVersion: rhumb.dev/v1alpha1\nkind: ";
        let source = |name: &str, namespace: &str, url: &str| {
            format!(
                "---\n{head}Source\nmetadata: {{name: {name}}}\nspec:\n  namespace: {namespace}\n  blastRadius: {{count: 0, percent: 0}}\n  \
                 git: {{url: '{url}', ref: main, interval: 1s}}\n"
            )
        };
        format!(
            "{head}Configuration\ncustomSources: any\nserve: {{listen: '127.0.0.1:0'}}\nnotify:\n\
             - webhook: {{url: '{letters}/{path}', token: {}}}\n- slack: {{urlFile: {}}}\n\
             - gitea: {{url: '{letters}', repository: a/b, token: {}}}\n  sources: [{name}, stored]\n{}{}",
            file("hook-token"),
            file("slack-url"),
            file("forge-token"),
            source(name, name, &with_password),
            source("stored", "stored", &private),
        )
    }

    /// Lets a command have all that the service has.
    fn prepared(&self, mut command: Command) -> Command {
        command
            .env("KUBECONFIG", self.path("credentials/kubeconfig"))
            .env("CREDENTIALS_DIRECTORY", self.path("credentials"))
            .env("RUNTIME_DIRECTORY", self.dir.path())
            .env("NOTIFY_SOCKET", self.path("notify"))
            .env("RHUMB_PASSWORD", Canary::of("an environment variable").text())
            .env("PATH", path_with_renderers());
        self.remote.trusted(&mut command);
        command
    }

    pub(super) fn start(&self, flags: &[&str]) -> Daemon {
        let file = self.write("rhumb.yaml", &self.configuration());
        let mut command = self.prepared(self.site.bare_command());
        command.arg("run").arg("--config").arg(file).args(flags);
        Daemon::start(command)
    }

    /// Runs a command of the program to its end.
    pub(super) fn rhumb(&self, arguments: &[&str]) -> ProgramOutput {
        let mut command = self.prepared(self.site.command(arguments));
        command.env_remove("NOTIFY_SOCKET");
        run(command)
    }

    /// Returns the output of a command that does not end, once it has printed this.
    pub(super) fn read_until(&self, arguments: &[&str], text: &str) -> String {
        let mut command = self.prepared(self.site.command(arguments));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
        let mut output = child.stdout.take().unwrap();
        while !String::from_utf8_lossy(&said).contains(text) {
            let length = output.read(&mut buffer).unwrap();
            assert!(length > 0, "{arguments:?}: {}", String::from_utf8_lossy(&said));
            said.extend(&buffer[..length]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Returns a whole answer on the socket.
    pub(super) fn ask(&self, line: &str, head: &str) -> String {
        exchange(UnixStream::connect(self.path("rhumb.sock")).unwrap(), line, head)
    }

    /// Returns everything in the cluster that rhumb writes, but the Secrets' own data.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        let mut written = Vec::new();
        for (kind, namespace) in [
            ("ConfigMap", self.site.system()),
            ("Lease", self.site.system()),
            ("Event", self.site.system()),
            ("Event", self.site.name.clone()),
            ("Deployment", self.site.name.clone()),
            ("ConfigMap", self.site.name.clone()),
        ] {
            let list = self.site.api.list(&at(kind, &namespace, ""));
            written.push((format!("each {kind} in {namespace}"), json!(list).to_string()));
        }
        for mut secret in self.site.api.list(&self.site.at("Secret", "")) {
            let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
            if let Some(fields) = secret.as_object_mut() {
                fields.remove("data");
            }
            // Values that others wrote there are theirs.
            if let Some(annotations) = secret["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|key, _| key.contains("rhumb.dev"));
            }
            written.push((format!("what is beside the data of the Secret {name}"), secret.to_string()));
        }
        for source in self.site.api.list(&at("Source", &self.site.system(), "")) {
            written.push(("the status of a Source".to_owned(), source["status"].to_string()));
        }
        written
    }
}

/// Returns the folders of programs, with those that render first.
fn path_with_renderers() -> OsString {
    let renderers = Renderers::find().unwrap();
    let own = [renderers.kustomize, renderers.helm].map(|program| program.parent().unwrap().to_owned());
    let usual = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&usual))).unwrap()
}

/// Sends a request and returns its whole answer.
pub(super) fn exchange(mut stream: impl io::Read + io::Write, line: &str, head: &str) -> String {
    let request =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Does as [`exchange`] over TCP.
pub(super) fn exchange_over_tcp(port: u16, line: &str, head: &str) -> String {
    exchange(TcpStream::connect(("127.0.0.1", port)).unwrap(), line, head)
}

/// Returns the command lines of a process and of all below it.
pub(super) fn command_lines(pid: u32) -> String {
    let mut lines = String::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        lines.push_str(&String::from_utf8_lossy(&read("cmdline")).replace('\0', " "));
        lines.push('\n');
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            open.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    lines
}

/// Returns the files of the state directory with their contents and modes. It caches objects of
/// git: whoever may read the folder may read all manifests. A process works there, so a file that
/// goes between two looks is passed over.
pub(super) fn state(root: &Path) -> Vec<(String, u32, String)> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in still_there(fs::read_dir(&folder)).into_iter().flatten().filter_map(still_there) {
            let path = entry.path();
            let Some(metadata) = still_there(entry.metadata()) else { continue };
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let content = if metadata.is_file() { still_there(fs::read(&path)) } else { Some(Vec::new()) };
            let Some(content) = content else { continue };
            found.push((
                name,
                metadata.permissions().mode() & 0o777,
                String::from_utf8_lossy(&content).into_owned(),
            ));
            if metadata.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

#[track_caller]
fn still_there<T>(found: io::Result<T>) -> Option<T> {
    let gone = found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    (!gone).then(|| found.unwrap())
}
