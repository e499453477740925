//! A tour of rhumb on a real Kubernetes control plane of its own: `cargo run --example demo`.
//!
//! The control plane runs on this machine's loopback and is thrown away at the end; no other
//! cluster is touched. Each step is looked up in the cluster before it counts, and one that is not
//! seen there ends the demo with exit code 1. `-- --keep` leaves everything running until Ctrl-C.

#[path = "demo/cluster_view.rs"]
mod cluster_view;
#[path = "demo/overlay.rs"]
mod overlay;
#[path = "demo/program.rs"]
mod program;
#[path = "demo/rollouts.rs"]
mod rollouts;
#[path = "demo/shop.rs"]
mod shop;
#[path = "demo/stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use controlplane::Cluster;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Service};
use kube::Api;
use kube::api::ListParams;
use tokio::signal::unix::{SignalKind, signal};

use cluster_view::{ClusterView, Kind, SHOP, Watch, until};
use program::{Daemon, Program};
use shop::Shop;
use stage::{ErrorContext as _, Failure, Outcome, Stage, print, time};

/// So long a step may take before it counts as failed.
const LIMIT: Duration = Duration::from_mins(1);

const USAGE: &str = "Usage: cargo run --example demo [-- --keep]\n";

/// The end of the demo.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Keep,
}

fn main() -> ExitCode {
    let mut stage = Stage::open();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let end = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => End::Stop,
        ["--keep"] => End::Keep,
        _ => {
            print(USAGE);
            return ExitCode::from(2);
        }
    };
    let Ok(runtime) = tokio::runtime::Runtime::new() else {
        stage.report_failure(&Failure::new("threads to run in", "the system gives none"));
        return ExitCode::FAILURE;
    };
    let code = runtime.block_on(play(&mut stage, end));
    // A build of the control plane may go on in a thread of its own; it ends with this process.
    runtime.shutdown_background();
    code
}

async fn play(stage: &mut Stage, end: End) -> ExitCode {
    stage.title("rhumb on a Kubernetes of its own; your clusters are not touched");
    let mut world = None;
    let story = tokio::select! {
        outcome = story(stage, &mut world) => Some(outcome),
        () = stop_requested() => None,
    };
    let Some(outcome) = story else {
        drop(world);
        print("\nStopped before its end; nothing is left behind.\n");
        return ExitCode::from(130);
    };
    if let Err(failure) = &outcome {
        stage.report_failure(failure);
        if let Some(daemon) = world.as_ref().and_then(|world| world.daemon.as_ref()) {
            stage.note("the last lines of rhumb's log:");
            stage.quote(&daemon.tail(20));
        }
    }
    let Some(world) = world else { return ExitCode::FAILURE };
    if end == End::Keep {
        world.invite(stage);
        stop_requested().await;
    }
    let begun = world.begun;
    let stopped = world.stop(stage, end).await;
    if let Err(failure) = &stopped {
        stage.report_failure(failure);
    }
    if outcome.is_err() || stopped.is_err() {
        print("\nThe demo failed.\n");
        return ExitCode::FAILURE;
    }
    if end == End::Stop {
        let (steps, took) = (stage.steps(), time(begun.elapsed()));
        print(&format!("\nAll {steps} steps were seen in the cluster, in {took}.\n"));
    }
    ExitCode::SUCCESS
}

/// Everything that runs. Dropping it ends all of it, in this order.
struct DemoProcesses {
    daemon: Option<Daemon>,
    rhumb: Program,
    shop: Shop,
    eyes: ClusterView,
    cluster: Cluster,
    place: tempfile::TempDir,
    begun: Instant,
}

async fn story(stage: &mut Stage, kept: &mut Option<DemoProcesses>) -> Outcome {
    let world = kept.insert(DemoProcesses::begin(stage).await?);
    world.diff(stage).await?;
    world.run(stage).await?;
    world.new_image(stage).await?;
    world.by_hand(stage).await?;
    let before = world.broken_file(stage).await?;
    world.removed_file(stage, &before).await?;
    world.overlay(stage).await?;
    world.broken_image(stage).await?;
    world.canary(stage).await?;
    world.undo(stage).await
}

impl DemoProcesses {
    async fn begin(stage: &mut Stage) -> Outcome<Self> {
        stage.command("cargo build --bin rhumb");
        let binary = blocking(program::build).await?;
        stage.step("Start a control plane");
        stage.note(
            "etcd, kube-apiserver, kube-controller-manager, kube-scheduler; KWOK plays 3 nodes, so pods",
        );
        stage.note("are scheduled and get ready, but no container runs");
        blocking(|| controlplane::programs().expected("the programs of Kubernetes")).await?;
        let renderers = blocking(|| controlplane::Renderers::find().expected("kustomize")).await?;
        let begun = Instant::now();
        let cluster = blocking(|| Cluster::start().expected("a control plane")).await?;
        let user = |name| cluster.kubeconfig_for(name).expected("a kubeconfig");
        let eyes = ClusterView::open(&user("observer")?).await?;
        let version = eyes.version().await?;
        stage.seen(&format!("Kubernetes {version} is ready after {}", time(begun.elapsed())));
        let place = tempfile::Builder::new().prefix("rhumb-demo-").tempdir();
        let place = place.expected("a temporary directory")?;
        let rhumb = Program::new(binary, place.path(), user("rhumb")?, renderers.kustomize);
        let shop = Shop::found(place.path()).await?;
        Ok(Self { daemon: None, rhumb, shop, eyes, cluster, place, begun })
    }

    async fn diff(&self, stage: &mut Stage) -> Outcome {
        stage.step("What would change?");
        stage.command("rhumb diff shop");
        let output = self.rhumb.once(&["diff", Shop::COPY])?;
        stage.quote(&String::from_utf8_lossy(&output.stdout));
        if output.status.code() != Some(1) {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::new("exit code 1, as for any diff", format!("{}: {said}", output.status)));
        }
        let namespaces: Api<Namespace> = Api::all(self.eyes.client.clone());
        for name in [SHOP, "rhumb-system"] {
            if namespaces.get_opt(name).await.expected("to look for a namespace")?.is_some() {
                return Err(Failure::new("nothing to be written", format!("there is a namespace {name}")));
            }
        }
        stage.seen("exit code 1: something differs; nothing was written, not even a namespace of its own");
        Ok(())
    }

    async fn run(&mut self, stage: &mut Stage) -> Outcome {
        stage.step("Follow the repository");
        stage.command("rhumb run shop.git");
        let begun = Instant::now();
        self.daemon = Some(self.rhumb.start(&["run", Shop::REPOSITORY])?);
        let eyes = &self.eyes;
        until("all 9 objects of the shop in the cluster", LIMIT, async || {
            let owned = eyes.owned().await?;
            Ok(if owned.len() == 9 { Ok(()) } else { Err(names(&owned)) })
        })
        .await?;
        stage.seen(&format!("all 9 objects are in the cluster after {}", time(begun.elapsed())));
        until("9 ready pods and 2 bound claims", LIMIT, async || {
            let (web, _) = eyes.ready_pods("web", "web:1.4.0").await?;
            let (database, _) = eyes.ready_pods("database", "postgres:17.2").await?;
            let (telemetry, _) = eyes.ready_pods("telemetry", "telemetry:0.9.1").await?;
            let claims: Api<PersistentVolumeClaim> = eyes.shop();
            let claims = claims.list(&ListParams::default()).await.expected("to list claims")?;
            let phase = |claim: &PersistentVolumeClaim| claim.status.as_ref()?.phase.clone();
            let bound = claims.iter().filter(|claim| phase(claim).as_deref() == Some("Bound")).count();
            let seen = (web, database, telemetry, bound);
            Ok(if seen == (4, 2, 3, 2) { Ok(()) } else { Err(format!("{seen:?}, not (4, 2, 3, 2)")) })
        })
        .await?;
        stage.seen(&format!("9 pods are ready and 2 claims are bound after {}", time(begun.elapsed())));
        Ok(())
    }

    async fn new_image(&self, stage: &mut Stage) -> Outcome {
        stage.step("Push a new image");
        self.shop.edit("web/deployment.yaml", "web:1.4.0", "web:1.5.0")?;
        self.shop.commit("Release web 1.5.0").await?;
        stage.command("git commit -am 'Release web 1.5.0' && git push");
        let mut watch = self.eyes.watch::<Deployment>(self.eyes.shop(), "web").await?;
        let is_new = |web: Option<&Deployment>| web.is_some_and(|web| image(web).ends_with("web:1.5.0"));
        let (arrived, pushed) =
            self.pushed(&mut watch, "Deployment web with image web:1.5.0", is_new).await?;
        stage.seen(&format!("the Deployment has the image {}", after(arrived, pushed)));
        print("    ready on 1.5.0:");
        let (mut printed, mut least) = (-1, i32::MAX);
        let rolled = |web: Option<&Deployment>| {
            let Some(progress) = web.and_then(Progress::of) else { return false };
            least = least.min(progress.available);
            if progress.updated > printed {
                printed = progress.updated;
                print(&format!(" {printed}"));
            }
            progress.is_done()
        };
        let done = watch.until("all 4 pods of web to be replaced", LIMIT, rolled).await;
        print(" of 4\n");
        let done = done?;
        self.only_ready("web:1.5.0").await?;
        let took = time(done.saturating_duration_since(pushed));
        stage
            .seen(&format!("rolled out {took} after the push; never fewer than {least} of 4 were available"));
        Ok(())
    }

    async fn by_hand(&self, stage: &mut Stage) -> Outcome {
        stage.step("Break something by hand, as somebody else");
        let mut watch = self.eyes.watch::<Deployment>(self.eyes.shop(), "web").await?;
        let replicas =
            |count| move |web: Option<&Deployment>| web.is_some_and(|web| web.spec.replicas == Some(count));
        self.kubectl(stage, &["scale", "deployment/web", "--replicas=0"]).await?;
        let broken = watch.until("Deployment web with 0 replicas", LIMIT, replicas(0)).await?;
        let repaired = watch.until("Deployment web with 4 replicas again", LIMIT, replicas(4)).await?;
        stage.seen(&format!("4 replicas again after {}", time(repaired - broken)));
        let mut watch = self.eyes.watch::<Service>(self.eyes.shop(), "web").await?;
        self.kubectl(stage, &["delete", "service/web"]).await?;
        let broken = watch.until("Service web to be deleted", LIMIT, |web| web.is_none()).await?;
        let repaired = watch.until("Service web to be there again", LIMIT, |web| web.is_some()).await?;
        stage.seen(&format!("there again after {}", time(repaired - broken)));
        stage.note("(from one event of a watch to the next, as this program sees them)");
        self.only_ready("web:1.5.0").await
    }

    /// Waits until all pods of web run an image and are ready; those that are being deleted are
    /// gone.
    async fn only_ready(&self, image: &str) -> Outcome {
        until(&format!("4 ready pods, all on {image}"), LIMIT, async || {
            let pods = self.eyes.ready_pods("web", image).await?;
            Ok(if pods == (4, 4) { Ok(()) } else { Err(format!("{} of {}", pods.0, pods.1)) })
        })
        .await
    }

    /// Returns what is in the cluster before the commit.
    async fn broken_file(&self, stage: &mut Stage) -> Outcome<BTreeMap<String, String>> {
        stage.step("Push a commit in which one file does not parse, one is removed and one is changed");
        let before = self.eyes.owned().await?;
        self.shop.edit("web/config.yaml", "Fresh bread every morning", "Fresh bread all day")?;
        self.shop.edit("database/backup.yaml", CONFLICT.0, CONFLICT.1)?;
        self.shop.remove("telemetry/daemonset.yaml")?;
        self.shop.commit("Merge branch 'late-night'").await?;
        stage.command("git commit -am \"Merge branch 'late-night'\" && git push");
        let mut watch = self.eyes.watch::<ConfigMap>(self.eyes.shop(), "web").await?;
        let is_new = |web: Option<&ConfigMap>| {
            let data = web.and_then(|web| web.data.as_ref());
            data.and_then(|data| data.get("GREETING")).is_some_and(|text| text == "Fresh bread all day")
        };
        let (arrived, pushed) =
            self.pushed(&mut watch, "ConfigMap web with the new greeting", is_new).await?;
        stage.seen(&format!("the change of the ConfigMap is there {}", after(arrived, pushed)));
        let daemon = self.daemon.as_ref();
        let said = daemon.and_then(|daemon| daemon.says("database/backup.yaml")).unwrap_or_default();
        if said.is_empty() {
            return Err(Failure::new("rhumb's log to name database/backup.yaml", "it does not"));
        }
        stage.quote(&format!("rhumb: {said}"));
        let mut watch = self.eyes.watch::<CronJob>(self.eyes.shop(), "backup").await?;
        self.kubectl(stage, &["delete", "cronjob/backup"]).await?;
        let broken = watch.until("CronJob backup to be deleted", LIMIT, |backup| backup.is_none()).await?;
        let repaired =
            watch.until("CronJob backup to be there again", LIMIT, |backup| backup.is_some()).await?;
        let took = time(repaired - broken);
        stage.seen(&format!("there again after {took}, as the last readable version of its file has it"));
        let now = self.eyes.owned().await?;
        if !now.keys().eq(before.keys()) || now.get(REMOVED) != before.get(REMOVED) {
            return Err(Failure::new(format!("{} and nothing else", names(&before)), names(&now)));
        }
        stage.seen("nothing is pruned: as long as a file cannot be read, a missing one proves nothing");
        Ok(before)
    }

    async fn removed_file(&self, stage: &mut Stage, before: &BTreeMap<String, String>) -> Outcome {
        stage.step("Repair the file: now the removal of telemetry/daemonset.yaml counts");
        self.shop.edit("database/backup.yaml", CONFLICT.1, CONFLICT.0)?;
        self.shop.commit("Resolve the conflict").await?;
        stage.command("git commit -am 'Resolve the conflict' && git push");
        let mut watch = self.eyes.watch::<DaemonSet>(self.eyes.shop(), "telemetry").await?;
        let expected = "DaemonSet telemetry to be deleted";
        let (gone, pushed) = self.pushed(&mut watch, expected, |telemetry| telemetry.is_none()).await?;
        let mut left = before.clone();
        left.remove(REMOVED);
        let now = self.eyes.owned().await?;
        if !now.keys().eq(left.keys()) {
            return Err(Failure::new(format!("{} to be left", names(&left)), names(&now)));
        }
        stage.seen(&format!("the DaemonSet is pruned {}; the other 8 objects stay", after(gone, pushed)));
        Ok(())
    }

    fn invite(&self, stage: &Stage) {
        print("\nEverything keeps running until Ctrl-C. To play with it:\n");
        let kubectl = self.cluster.programs().join("kubectl");
        stage.command(&format!("export KUBECONFIG={}", self.cluster.kubeconfig().display()));
        stage.command(&format!("{} -n shop get all", kubectl.display()));
        stage.command(&format!("cd {}   # edit, commit, push", self.shop.copy().display()));
        if let Some(daemon) = &self.daemon {
            stage.command(&format!("tail -f {}", daemon.log().display()));
        }
    }

    async fn stop(self, stage: &mut Stage, end: End) -> Outcome {
        stage.step("Stop");
        let Self { daemon, eyes, cluster, place, .. } = self;
        if let Some(mut daemon) = daemon {
            let before = eyes.owned().await?;
            let pid = daemon.pid();
            stage.command(&format!("kill -TERM {pid}"));
            let code = blocking(move || daemon.stop()).await?;
            let now = eyes.owned().await?;
            if code != 0 || (end == End::Stop && now != before) {
                let seen = format!("exit code {code}, and {}", names(&now));
                return Err(Failure::new(format!("exit code 0, and {}", names(&before)), seen));
            }
            stage.seen("rhumb ended with exit code 0 and left the cluster as it was");
        }
        let directory = cluster.dir().to_owned();
        let path = place.path().to_owned();
        drop(cluster);
        place.close().expected("to remove the repository")?;
        for left in [directory, path] {
            if left.exists() {
                return Err(Failure::new("nothing to be left behind", left.display()));
            }
        }
        stage.seen("the control plane is stopped and its directory removed; nothing is left behind");
        Ok(())
    }

    /// Pushes, and returns when a state was seen and when the push was done.
    async fn pushed<K: Kind>(
        &self,
        watch: &mut Watch<K>,
        expected: &str,
        is_it: impl FnMut(Option<&K>) -> bool,
    ) -> Outcome<(Instant, Instant)> {
        let push = async { self.shop.push().await.map(|()| Instant::now()) };
        let (pushed, seen) = tokio::join!(push, watch.until(expected, LIMIT, is_it));
        let pushed = pushed?;
        Ok((seen?, pushed))
    }

    /// Runs kubectl in the shop, as a user who is neither rhumb nor the observer.
    async fn kubectl(&self, stage: &Stage, arguments: &[&str]) -> Outcome {
        stage.command(&format!("kubectl -n {SHOP} {}", arguments.join(" ")));
        let kubeconfig = self.cluster.kubeconfig_for("somebody").expected("a kubeconfig")?;
        let mut command = self.cluster.kubectl_command();
        command.arg("--kubeconfig").arg(kubeconfig).args(["-n", SHOP]).args(arguments).stdin(Stdio::null());
        let output = tokio::process::Command::from(command).output().await.expected("to start kubectl")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(Failure::new("kubectl to work", said.trim())) }
    }
}

/// The object of the file that a commit removes.
const REMOVED: &str = "DaemonSet telemetry";

/// A merge that somebody did not finish.
const CONFLICT: (&str, &str) = (
    "  schedule: \"30 3 * * *\"\n",
    "<<<<<<< HEAD\n  schedule: \"30 3 * * *\"\n=======\n  schedule: \"30 1 * * *\"\n>>>>>>> late-night\n",
);

/// The progress of a rollout.
struct Progress {
    updated: i32,
    available: i32,
    total: i32,
    is_current: bool,
}

impl Progress {
    fn of(web: &Deployment) -> Option<Self> {
        let status = web.status.as_ref()?;
        let total = status.replicas.unwrap_or(0);
        let is_current = status.observed_generation == web.metadata.generation;
        let updated = if is_current { status.updated_replicas.unwrap_or(0) } else { 0 };
        Some(Self { updated, available: status.available_replicas.unwrap_or(0), total, is_current })
    }

    fn is_done(&self) -> bool {
        self.is_current && (self.updated, self.available, self.total) == (4, 4, 4)
    }
}

fn image(web: &Deployment) -> &str {
    let mut containers = web.spec.template.spec.iter().flat_map(|spec| &spec.containers);
    containers.find_map(|container| container.image.as_deref()).unwrap_or("")
}

/// Returns when something was seen, counted from the end of the push.
fn after(seen: Instant, pushed: Instant) -> String {
    match seen.checked_duration_since(pushed) {
        Some(took) => format!("{} after the push", time(took)),
        None => "before `git push` has returned".to_owned(),
    }
}

fn names(objects: &BTreeMap<String, String>) -> String {
    format!("{} objects: {}", objects.len(), objects.keys().cloned().collect::<Vec<_>>().join(", "))
}

/// Waits for Ctrl-C, or what a closed terminal and a service manager send.
async fn stop_requested() {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let received = signals.into_iter().filter_map(|kind| signal(kind).ok()).map(|mut signal| {
        Box::pin(async move {
            signal.recv().await;
        })
    });
    futures::future::select_all(received).await;
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Outcome<T> {
    tokio::task::spawn_blocking(work).await.expected("a thread to end well")?
}
