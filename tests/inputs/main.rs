//! Real repositories and charts, followed as their users would. Each root that renders without a
//! network is applied, or an object of it waits with a reason that is listed here. A new process
//! then writes nothing.
//!
//! `RHUMB_INPUTS` names the folder with `repositories/` and `charts/`. It takes long, and a plain
//! `cargo test` does not run it: `cargo test --test inputs`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in its own functions")]
#![allow(clippy::print_stderr, reason = "what a failing test shows")]

mod roots;
#[path = "../cluster/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests of the program use the rest")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Daemon, DedicatedCluster, Repo, TestNamespace, in_time, source, try_to_ask, yaml};
use controlplane::Renderers;
use roots::{Inputs, KUBE_VERSION, Root};

/// The time for a pass over all sources of a group.
const PASS: Duration = Duration::from_mins(5);

/// Each reason for which an object of a public repository is not at rest, and what its user does.
const REASONS: [(&str, &str); 9] = [
    ("the server has no kind", "install the definition"),
    ("cannot be watched: the server does not list this kind", "install the definition"),
    ("is not finished: ", "install the definition of the named object, or have that left alone"),
    ("needs ", "see the object that is named"),
    ("which asks to run it as a hook", "take the hook out, or the annotation off"),
    ("waits for the first pod that uses it, or for a volume that fits", "have a volume"),
    ("only its metadata was read", "nothing: it is a namespace of Kubernetes"),
    ("which nobody has filled in", "give the variable a value"),
    ("failing or missing response from", "nothing here: pods that are played serve nothing"),
];

/// Each reason for which a root does not render that the program alone does not render either, and
/// what its user does.
const FAULTS: [(&str, &str); 10] = [
    ("a remote base, which is not fetched", "copy it into the repository"),
    ("a remote file, which is not fetched", "copy it into the repository"),
    ("the schema refers to another one, which is not fetched", "put it into the chart"),
    ("may not be fetched from", "allow the server"),
    ("no such file or folder in this revision", "add it: the repository is cut down"),
    ("no such file in this revision", "add it: the repository is cut down"),
    ("is a program of its own, which is not run", "commit what it makes"),
    ("is not in charts/", "helm dependency build"),
    ("which make no objects by themselves", "follow another folder: these are parts of others"),
    ("an empty source is never taken as", "nothing: the folder has no objects"),
];

/// Each reason for which a root has an encrypted file that is not opened: the program alone prints
/// it as it is encrypted.
const LOCKED: [(&str, &str); 2] = [
    ("is encrypted for PGP", "add an age recipient"),
    ("no age identity is configured", "give the service an identity"),
];

/// Returns the inputs, copied once for all tests.
fn inputs() -> Option<&'static Inputs> {
    static INPUTS: OnceLock<Option<Inputs>> = OnceLock::new();
    let find = || Some(Inputs::of(Path::new(&std::env::var_os("RHUMB_INPUTS")?)));
    let inputs = INPUTS.get_or_init(find).as_ref();
    if inputs.is_none() {
        // Past the harness, which shows nothing of a test that passes.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: no inputs: RHUMB_INPUTS names no folder with repositories");
    }
    inputs
}

/// The state of an object: at rest, or the reason that is listed.
type States = BTreeMap<String, &'static str>;

/// One daemon over a source for each root of a group.
struct GroupFollower<'a> {
    site: TestNamespace<'a>,
    roots: &'a [&'a Root],
    text: String,
    socket: PathBuf,
    runtime: tempfile::TempDir,
}

impl<'a> GroupFollower<'a> {
    fn new(site: TestNamespace<'a>, roots: &'a [&'a Root], marker: &Repo) -> Self {
        let programs = Renderers::find().unwrap();
        let (kustomize, helm) = (programs.kustomize.display(), programs.helm.display());
        let settings = format!(
            "programs: {{kustomize: {kustomize}, helm: {helm}}}\nbudget: {{soak: 0s, maxWorkloads: 10}}"
        );
        let mut text = site.configuration(marker.path(), &settings);
        for root in roots {
            // The versions of a cluster that gets definitions would be another render each time.
            let mut spec =
                format!("  helm: {{generated: once, kubeVersion: {KUBE_VERSION}, apiVersions: [apps/v1]}}\n");
            if !root.variables.is_empty() {
                spec.extend(["  substitute: ", &json!(root.variables).to_string(), "\n"]);
            }
            let document = source(&root.name, &root.name, &root.repository, &spec);
            let url = format!("url: {}", root.repository.display());
            text += "---\n";
            text += &document.replace(&url, &format!("{url}, path: {:?}", root.path));
        }
        let runtime = tempfile::tempdir().unwrap();
        let socket = runtime.path().join("rhumb.sock");
        Self { site, roots, text, socket, runtime }
    }

    /// Makes the namespaces that the objects are in and no root has, and one for each source.
    fn make_namespaces(&self) {
        let mut wanted: BTreeSet<String> = self.roots.iter().map(|root| root.name.clone()).collect();
        let mut declared = BTreeSet::from(["default".to_owned(), "kube-system".to_owned()]);
        for root in self.roots {
            for object in root.objects() {
                let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
                let name = text("/metadata/name").map(|name| root.substituted(name));
                declared.extend(name.filter(|_| object["kind"] == "Namespace"));
                wanted.extend(text("/metadata/namespace").map(|name| root.substituted(name)));
            }
        }
        for name in wanted.difference(&declared) {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.site.api.create("/api/v1/namespaces", "setup", &namespace);
        }
    }

    /// Makes the `ServiceAccounts` that Secrets with tokens name, as the operators of these do. Without
    /// it the token controller deletes such a Secret each time it is made.
    fn make_accounts(&self) {
        let mut accounts = BTreeSet::new();
        for root in self.roots {
            for object in root.objects().iter().filter(|object| object["kind"] == "Secret") {
                let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
                if let Some(name) = text("/metadata/annotations/kubernetes.io~1service-account.name") {
                    let namespace = text("/metadata/namespace").unwrap_or(&root.name);
                    accounts.insert((root.substituted(namespace), root.substituted(name)));
                }
            }
        }
        for (namespace, name) in accounts {
            let is_there = || {
                let found = self.site.api.get(&format!("/api/v1/namespaces/{namespace}"));
                found.ok_or(format!("there is no namespace {namespace}"))
            };
            in_time("the namespace of an account is made", PASS, is_there);
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
            self.site.api.create(
                &format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
                "setup",
                &account,
            );
        }
    }

    fn start(&self) -> Daemon {
        let mut command = self.site.command_with_config(&["run"], &self.text);
        command.env("RUNTIME_DIRECTORY", self.runtime.path());
        Daemon::start(command)
    }

    fn answer(&self, path: &str) -> Result<Value, String> {
        let body = try_to_ask(&self.socket, "GET", path).map_err(|error| error.to_string())?.body;
        serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))
    }

    /// Returns the state of each object of each source; what is not listed, where there is any.
    fn states(&self) -> Result<States, String> {
        let (mut states, mut unlisted) = (States::new(), Vec::new());
        let answer = self.answer("/v1/status")?;
        for (root, state) in self.sources(&answer)? {
            let findings = state["firstFindings"].to_string() + &state["incomplete"].to_string();
            let listed = |all: &[(&'static str, &str)]| {
                all.iter().find(|(text, _)| findings.contains(text)).map(|(text, _)| *text)
            };
            match (&root.printed, listed(&FAULTS), listed(&LOCKED)) {
                (Ok(objects), Some(_), None) if !objects.is_empty() => {
                    unlisted.push(format!("{} {}: {findings}", root.name, root.path));
                }
                (_, Some(why), _) | (Ok(_), _, Some(why)) => drop(states.insert(root.name.clone(), why)),
                (Ok(_), ..) if state["complete"] == true => {}
                (Ok(_), ..) => unlisted.push(format!("{} {}: {state}", root.name, root.path)),
                (Err(error), ..) => unlisted.push(format!("{} {}: {error}: {state}", root.name, root.path)),
            }
        }
        for object in self.answer("/v1/objects")?["items"].as_array().into_iter().flatten() {
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            let id = format!("{} {} {} {}", text("source"), text("kind"), text("namespace"), text("name"));
            let listed = REASONS.iter().find(|(reason, _)| text("reason").contains(reason));
            match (text("phase"), listed) {
                ("Settled", _) => drop(states.insert(id, "Settled")),
                (_, Some((reason, _))) => drop(states.insert(id, reason)),
                (phase, None) => unlisted.push(format!("{id}: {phase}: {}", text("reason"))),
            }
        }
        if unlisted.is_empty() { Ok(states) } else { Err(unlisted.join("\n")) }
    }

    fn sources<'s>(&self, status: &'s Value) -> Result<Vec<(&'a Root, &'s Value)>, String> {
        let sources = status["sources"].as_array().ok_or("no sources")?;
        let of = |root: &&'a Root| {
            let state = sources.iter().find(|state| state["name"] == *root.name);
            state.map(|state| (*root, state)).ok_or(format!("{} is not there", root.name))
        };
        self.roots.iter().map(of).collect()
    }

    /// Fails unless each object that the programs print is there, and nothing else is.
    fn assert_complete(&self, states: &States) {
        for root in self.roots.iter().filter(|root| !states.contains_key(&root.name)) {
            let text = |object: &Value, pointer: &str| {
                root.substituted(object.pointer(pointer).and_then(Value::as_str).unwrap_or_default())
            };
            let printed: BTreeSet<String> = root
                .objects()
                .iter()
                .map(|object| format!("{} {}", text(object, "/kind"), text(object, "/metadata/name")))
                .collect();
            let followed: BTreeSet<String> = states
                .keys()
                .filter_map(|id| id.strip_prefix(&format!("{} ", root.name)))
                .map(|id| {
                    let (kind, rest) = id.split_once(' ').unwrap();
                    format!("{kind} {}", rest.rsplit_once(' ').map_or(rest, |(_, name)| name))
                })
                .collect();
            assert_eq!(followed, printed, "{} in {}", root.path, root.repository.display());
        }
    }
}

/// Follows a group of roots to its end, and then again by a new process, which writes nothing.
fn follow(number: usize) {
    let Some(inputs) = inputs() else { return };
    let groups = inputs.groups();
    let Some(roots) = groups.get(number) else { return };
    let cluster = DedicatedCluster::complete();
    let marker = Repo::new(&[("marker.yaml", yaml::config_map("marker", "pass", "first"))]);
    let followed = GroupFollower::new(TestNamespace::on(&cluster, "inputs"), roots, &marker);
    followed.make_namespaces();
    let mut daemon = followed.start();
    followed.make_accounts();
    followed.site.await_data_within(PASS, "marker", "pass", "first");
    let first = in_time("every object rests or waits with its reason", PASS, || followed.states());
    followed.assert_complete(&first);
    assert_eq!(daemon.stop().code(), Some(0));

    let window = followed.site.window();
    let mut daemon = followed.start();
    let as_before = || match followed.states()? {
        states if states == first => Ok(()),
        states => Err(format!(
            "{:?}",
            first.iter().filter(|(id, state)| states.get(*id) != Some(state)).collect::<Vec<_>>()
        )),
    };
    in_time("a new process sees all as it was", PASS, as_before);
    // A second pass writes this last.
    marker.change("marker.yaml", &yaml::config_map("marker", "pass", "second"));
    followed.site.await_data_within(PASS, "marker", "pass", "second");
    as_before().unwrap();
    let of_sources = window.writes().into_iter().filter(|event| event.name != "marker");
    let writes: Vec<String> = of_sources
        .map(|event| format!("{} {} {}/{}", event.verb, event.resource, event.namespace, event.name))
        .collect();
    assert!(writes.is_empty(), "the second pass writes: {writes:#?}");
    assert_eq!(daemon.stop().code(), Some(0));
    let mut counts = BTreeMap::new();
    for state in first.values() {
        *counts.entry(*state).or_insert(0) += 1;
    }
    eprintln!("group {number}: {} roots: {counts:?}", roots.len());
}

#[test]
fn the_largest_group_is_followed_and_a_second_pass_writes_nothing() {
    follow(0);
}

#[test]
fn the_next_group_is_followed_and_a_second_pass_writes_nothing() {
    follow(1);
}

// Their objects are those of the groups before: overlays of one base, for other clusters.
#[test]
fn roots_with_the_same_objects_are_followed_on_other_clusters() {
    let groups = inputs().map_or(0, |inputs| inputs.groups().len());
    (2..groups).for_each(follow);
}
