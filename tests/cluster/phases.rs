//! The phase of each object: the daemon, the commands beside it and the cluster alone give one
//! answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::support::{DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, eventually, run, yaml};

const NEVER: &str = "{controlplane/never-ready: \"true\"}";

/// An object by its kind and name, and its phase.
type Expected = (&'static str, &'static str);

/// A daemon that follows a repository.
struct PhaseFixture<'a> {
    site: &'a TestNamespace<'a>,
    daemon: Daemon,
    runtime: TempDir,
}

/// The phase of each object, as one voice gives it.
type Phases = BTreeMap<String, String>;

impl<'a> PhaseFixture<'a> {
    fn start(site: &'a TestNamespace<'a>, repo: &Repo) -> Self {
        let runtime = tempfile::tempdir().unwrap();
        let file = runtime.path().join("rhumb.yaml");
        let budget = "budget: {maxUnavailable: 100%, startsPerMinute: 1000, soak: 0s, deadline: 15s}";
        std::fs::write(&file, site.configuration(repo.path(), budget)).unwrap();
        let mut command = site.bare_command();
        command.arg("run").arg("--config").arg(file).env("RUNTIME_DIRECTORY", runtime.path());
        Self { site, daemon: Daemon::start(command), runtime }
    }

    fn socket(&self) -> PathBuf {
        self.runtime.path().join("rhumb.sock")
    }

    /// Returns the phase of each of these objects, as `rhumb status` gives it.
    fn phases(&self, socket: Option<PathBuf>, expected: &[Expected]) -> Phases {
        let phase = |object: &str| {
            let mut command = self.site.bare_command();
            command.args(["status", &format!("{}/{object}", self.site.name), "-o", "json"]);
            if let Some(socket) = &socket {
                command.arg("--socket").arg(socket);
            }
            let output = run(command);
            if output.code == 0 { output.json()["phase"].as_str().unwrap().to_owned() } else { output.all() }
        };
        expected.iter().map(|(object, _)| ((*object).to_owned(), phase(object))).collect()
    }

    /// Returns the phase of each of these objects, as `rhumb why` gives it.
    fn whys(&self, expected: &[Expected]) -> Phases {
        let phase = |object: &str| {
            let explained = self.site.rhumb(&["why", &format!("{}/{object}", self.site.name)]);
            let line = explained.stdout.lines().find_map(|line| line.trim().strip_prefix("phase "));
            line.map_or_else(|| explained.all(), |line| line.trim().to_owned())
        };
        expected.iter().map(|(object, _)| ((*object).to_owned(), phase(object))).collect()
    }

    /// Waits until the daemon gives these phases.
    #[track_caller]
    fn await_phases(&self, expected: &[Expected]) {
        eventually("the daemon tells these phases", DEFAULT_TIMEOUT, || {
            let phases = self.phases(Some(self.socket()), expected);
            let is_so =
                |(object, phase): &Expected| phases.get(*object).is_some_and(|phases| phases == phase);
            if expected.iter().all(is_so) { Ok(()) } else { Err(format!("{phases:?}")) }
        });
    }

    /// Fails unless all voices give these phases, with a daemon and without one.
    #[track_caller]
    fn tell(mut self, expected: &[Expected]) {
        let wanted: Phases =
            expected.iter().map(|(object, phase)| ((*object).to_owned(), (*phase).to_owned())).collect();
        let agree = |voice: &str, probe: &dyn Fn() -> Phases| {
            eventually(voice, DEFAULT_TIMEOUT, || {
                let phases = probe();
                let differs = |(object, phase): &(&String, &String)| phases.get(*object) != Some(*phase);
                let wrong: Vec<String> = wanted
                    .iter()
                    .filter(differs)
                    .map(|(object, phase)| {
                        format!("{object}: {phase} expected, {:?} reported", phases.get(object))
                    })
                    .collect();
                if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:#?}")) }
            });
        };
        agree("the daemon", &|| self.phases(Some(self.socket()), expected));
        agree("the cluster beside the daemon", &|| self.phases(None, expected));
        agree("why", &|| self.whys(expected));
        self.daemon.kill();
        agree("the cluster alone", &|| self.phases(None, expected));
        agree("why without a daemon", &|| self.whys(expected));
    }
}

fn config_map(name: &str, value: &str, annotations: &str) -> (String, String) {
    let text = yaml::config_map(name, "a", value);
    let text = text.replacen("metadata:\n", &format!("metadata:\n  annotations: {{{annotations}}}\n"), 1);
    (format!("cm-{name}.yaml"), text)
}

fn deployment(name: &str, image: &str, annotations: &str, pods: &str) -> (String, String) {
    let text = yaml::workload("Deployment", name, 2, image, pods);
    let text = text.replacen("spec:", &format!("  annotations: {{{annotations}}}\nspec:"), 1);
    (format!("deploy-{name}.yaml"), text)
}

fn write(repo: &Repo, files: &[(String, String)]) {
    for (name, text) in files {
        repo.write(name, text);
    }
}

const CONFIRM: &str = "argocd.argoproj.io/sync-options: Prune=confirm";

#[test]
fn of_what_somebody_asks_to_leave_as_it_is() {
    let site = TestNamespace::new("phases-asked");
    let names = ["paused", "paused-new", "held", "held-new", "held-drift", "opted", "opted-new"];
    let mut files: Vec<_> = names.iter().map(|name| config_map(name, "one", "")).collect();
    files.push(deployment("opted-sick", "app:1", "", NEVER));
    files.push(deployment("held-sick", "app:1", "", NEVER));
    files.push(deployment("once-sick", "app:1", "kustomize.toolkit.fluxcd.io/ssa: IfNotPresent", NEVER));
    files.push(config_map("goes", "one", CONFIRM));
    files.push(config_map("goes-held", "one", CONFIRM));
    files.push(config_map("opted-refused", "one", ""));
    files.push(config_map("held-refused", "one", ""));
    files.push(config_map("paused-refused", "one", ""));
    let repo = Repo::new(&files);
    let scene = PhaseFixture::start(&site, &repo);
    scene.await_phases(&[("configmap/paused", "Settled"), ("configmap/goes-held", "Settled")]);
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let hold = format!("rhumb.dev/hold=h1 until={until} for the night");
    for (word, objects) in [
        ("rhumb.dev/paused=p1 for the night", &["cm/paused", "cm/paused-new", "cm/paused-refused"][..]),
        (
            &hold,
            &[
                "cm/held",
                "cm/held-new",
                "cm/held-drift",
                "deploy/held-sick",
                "cm/goes-held",
                "cm/held-refused",
            ],
        ),
        (
            "rhumb.dev/reconcile=disabled",
            &["cm/opted", "cm/opted-new", "deploy/opted-sick", "cm/opted-refused"],
        ),
    ] {
        for object in objects {
            site.kubectl(&["annotate", object, word]);
        }
    }
    site.kubectl(&["patch", "cm/held-drift", "--type=merge", "-p", r#"{"data":{"a":"another"}}"#]);
    write(&repo, &["paused-new", "held-new", "opted-new"].map(|name| config_map(name, "two", "")));
    for name in ["opted-refused", "held-refused", "paused-refused"] {
        let (file, text) = config_map(name, "two", "");
        repo.write(&file, &text.replace("metadata:\n", "metadata:\n  labels: {a: \"not valid\"}\n"));
    }
    repo.remove("cm-goes.yaml");
    repo.remove("cm-goes-held.yaml");
    repo.commit("Change them");
    scene.tell(&[
        ("configmap/paused", "Paused"),
        ("configmap/paused-new", "Paused"),
        ("configmap/held", "Held"),
        ("configmap/held-new", "Held"),
        ("configmap/held-drift", "Held"),
        ("configmap/opted", "OptedOut"),
        ("configmap/opted-new", "OptedOut"),
        ("deployment/opted-sick", "OptedOut"),
        ("deployment/held-sick", "Held"),
        ("deployment/once-sick", "LeftAlone"),
        ("configmap/goes", "PruneWaiting"),
        ("configmap/goes-held", "PruneWaiting"),
        ("configmap/opted-refused", "Refused"),
        ("configmap/held-refused", "Refused"),
        ("configmap/paused-refused", "Refused"),
    ]);
}

#[test]
fn of_what_rolls_fails_or_waits() {
    let site = TestNamespace::new("phases-work");
    let steps = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";
    let needs = |id: &str| format!("rhumb.dev/depends-on: apps/namespaces/phases-work/Deployment/{id}");
    let names = ["back", "back-paused", "back-held", "back-opted"];
    let mut files: Vec<_> = names.iter().map(|name| deployment(name, "app:1", "", "{}")).collect();
    files.push(deployment("step", "app:1", steps, "{}"));
    files.push(deployment("step-paused", "app:1", steps, "{}"));
    files.push(deployment("step-opted", "app:1", steps, "{}"));
    files.push(deployment("sick", "app:1", "", NEVER));
    files.push(deployment("well", "app:1", "", "{}"));
    files.push(config_map("waits", "one", ""));
    files.push(config_map("waits-paused", "one", ""));
    files.push(config_map("refused", "one", ""));
    let repo = Repo::new(&files);
    let scene = PhaseFixture::start(&site, &repo);
    scene.await_phases(&[
        ("deployment/back", "Settled"),
        ("deployment/step", "Settled"),
        ("deployment/well", "Settled"),
        ("deployment/step-paused", "Settled"),
        ("deployment/back-opted", "Settled"),
    ]);
    let mut files: Vec<_> = names.iter().map(|name| deployment(name, "app:2", "", NEVER)).collect();
    files.extend(["step", "step-paused", "step-opted"].map(|name| deployment(name, "app:2", steps, "{}")));
    files.extend(["waits", "waits-paused", "new"].map(|name| config_map(name, "two", &needs("sick"))));
    let (file, text) = config_map("refused", "two", "");
    files.push((file, text.replace("metadata:\n", "metadata:\n  labels: {a: \"not valid\"}\n")));
    site.kubectl(&["annotate", "cm/waits-paused", "rhumb.dev/paused=p1 for the night"]);
    write(&repo, &files);
    repo.commit("Change them");
    scene.await_phases(&[
        ("deployment/back", "RolledBack"),
        ("deployment/back-paused", "RolledBack"),
        ("deployment/back-held", "RolledBack"),
        ("deployment/back-opted", "RolledBack"),
        ("deployment/step", "RollingOut"),
        ("deployment/step-paused", "RollingOut"),
        ("deployment/step-opted", "RollingOut"),
    ]);
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    for name in ["back-paused", "step-paused"] {
        site.kubectl(&["annotate", &format!("deploy/{name}"), "rhumb.dev/paused=p2 for the night"]);
    }
    site.kubectl(&[
        "annotate",
        "deploy/back-held",
        &format!("rhumb.dev/hold=h1 until={until} for the night"),
    ]);
    for name in ["back-opted", "step-opted"] {
        site.kubectl(&["annotate", &format!("deploy/{name}"), "rhumb.dev/reconcile=disabled"]);
    }
    scene.tell(&[
        ("deployment/back", "RolledBack"),
        ("deployment/back-paused", "RolledBack"),
        ("deployment/back-held", "RolledBack"),
        ("deployment/back-opted", "OptedOut"),
        ("deployment/step", "RollingOut"),
        ("deployment/step-paused", "RollingOut"),
        ("deployment/step-opted", "OptedOut"),
        ("deployment/sick", "Progressing"),
        ("deployment/well", "Settled"),
        ("configmap/waits", "Waiting"),
        ("configmap/waits-paused", "Paused"),
        ("configmap/new", "Waiting"),
        ("configmap/refused", "Refused"),
    ]);
}
