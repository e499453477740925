//! The stage of one run: a source, the daemons that serve it behind a proxy, and an observer.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use controlplane::{FaultProxy, Random, Requests, ResponseCut, Rule, RuleId, RuleUsage};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::desired::{self, DesiredFiles, FIRST, RESTING};
use crate::fault::Obstacle;
use crate::invariant::{Invariant, Violation};
use crate::manifests::config;
use crate::observer::Observer;
use crate::replica::Replica;
use crate::support::{Remote, Repo, TestNamespace, at};

/// The longest time to rest before a fault; the machine may be busy.
const PREPARATION_LIMIT: Duration = Duration::from_mins(3);
/// The longest time for what a fault itself waits for.
const STEP_LIMIT: Duration = Duration::from_secs(45);
/// The time in which a daemon at rest has seen what a person wrote.
const NEWS: Duration = Duration::from_secs(1);
/// The time that the status may lag behind.
const STATUS_LAG: Duration = Duration::from_secs(5);
/// Time between two looks at what the watches have shown.
const PAUSE: Duration = Duration::from_millis(50);
/// Kinds that are watched beside workloads and pods.
const FURTHER_KINDS: [&str; 3] = ["ConfigMap", "Service", "Secret"];

/// The budget of each run, and a short timeout, so that what is lost is soon known.
pub(crate) const SETTINGS: &str = "budget: {maxWorkloads: 1, maxUnavailable: 1, startsPerMinute: 1000, soak: 0s, \
                                   deadline: 60s}\napi: {timeout: 2s}";

/// The blast radius of sources that exchange objects.
const WIDE: &str = "  blastRadius: {count: 10, percent: 100}";

/// The daemons and sources of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One daemon follows a repository on this host.
    Local,
    /// One daemon follows a git server.
    Remote,
    /// Several daemons share two sources by Leases.
    Leases(usize),
    /// Several daemons have one source each: a folder of one repository.
    Folders(usize),
    /// Two daemons follow the same source, and know nothing of each other.
    Twins,
}

impl Shape {
    fn daemons(self) -> usize {
        match self {
            Self::Local | Self::Remote => 1,
            Self::Twins => 2,
            Self::Leases(count) | Self::Folders(count) => count,
        }
    }

    fn folders(self) -> usize {
        match self {
            Self::Local | Self::Remote | Self::Twins => 1,
            Self::Leases(_) => 2,
            Self::Folders(count) => count,
        }
    }

    /// Returns the folders that a daemon follows.
    fn folders_of(self, daemon: usize) -> Vec<usize> {
        if let Self::Folders(_) = self { vec![daemon] } else { (0..self.folders()).collect() }
    }
}

/// An effect of the fault itself, which the invariants do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// It ends processes.
    EndsProcesses,
    /// The branch goes back to an older commit.
    GoesToOlderCommits,
    /// People remove their own fields.
    RemovesForeignFields,
    /// People delete records of rhumb.
    DeletesRecords,
    /// It takes memory and files itself.
    TakesResources,
}

/// All that the invariants do not count.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    pub(crate) effects: BTreeSet<Effect>,
    /// Objects that people deleted, and how often: they are created again.
    pub(crate) recreations: BTreeMap<String, usize>,
    /// Objects that git did not have for a while.
    pub(crate) deletions: BTreeSet<String>,
    /// Changes by people, each of which asks for a write.
    pub(crate) edits: usize,
    /// Pods that are away beside those of the budget.
    pub(crate) pods: u64,
    /// Workloads that roll beside those of the budget.
    pub(crate) workloads: usize,
    /// The time in which deletions are forbidden, as what is wanted is not known.
    pub(crate) unknown: Vec<(Timestamp, Timestamp)>,
}

/// One run.
pub(crate) struct Stage {
    pub(crate) site: TestNamespace<'static>,
    pub(crate) proxy: FaultProxy,
    pub(crate) repo: Repo,
    pub(crate) remote: Option<Remote>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) random: Random,
    pub(crate) observer: Observer,
    pub(crate) desired: DesiredFiles,
    pub(crate) allowance: Allowance,
    pub(crate) violations: Vec<Violation>,
    /// The moment of rest before the fault.
    pub(crate) rested: Timestamp,
    /// The moment of the first commit that removes something.
    pub(crate) removed_at: Option<Timestamp>,
    shape: Shape,
    version: u32,
}

/// Returns the letter of a folder and of its source, or of a daemon.
pub(crate) fn letter(number: usize) -> &'static str {
    ["a", "b", "c", "d"][number]
}

impl Stage {
    /// Brings a source to rest.
    pub(crate) fn new(name: &str, shape: Shape, seed: u64) -> Self {
        let site = TestNamespace::new(name);
        let observer = Observer::following(&site, name, &FURTHER_KINDS);
        let proxy = site.cluster.fault_proxy(seed).unwrap();
        let mut desired = DesiredFiles::default();
        let mut files = desired::files(1);
        let old = config("old", "v1");
        files.push((format!("{FIRST}/{}", old.0), old.1));
        for folder in (1..shape.folders()).map(letter) {
            let (file, text) = config(&format!("own-{folder}"), "v1");
            files.push((format!("{folder}/{file}"), text));
        }
        for (file, text) in &files {
            desired.write(file, text);
        }
        let repo = Repo::new(&files);
        let remote = (shape == Shape::Remote).then(|| Remote::of(&repo));
        let replica = |number: usize| {
            Replica::new(site.with_empty_state(), &format!("daemon-{}", letter(number)), &proxy)
        };
        let replicas = (0..shape.daemons()).map(replica).collect();
        let mut stage = Self {
            site,
            proxy,
            repo,
            remote,
            replicas,
            random: Random::new(seed),
            observer,
            desired,
            allowance: Allowance::default(),
            violations: Vec::new(),
            rested: Timestamp::now(),
            removed_at: None,
            shape,
            version: 1,
        };
        stage.begin();
        stage
    }

    fn begin(&mut self) {
        for number in 0..self.replicas.len() {
            let spec = if let Shape::Folders(_) = self.shape { WIDE } else { "" };
            let text = self.configuration(number, SETTINGS, spec);
            self.replicas[number].configure(&text);
            if let Some(remote) = &self.remote {
                let authority = remote.path().with_file_name("ca.pem");
                self.replicas[number].set("GIT_SSL_CAINFO", &authority.to_string_lossy());
            }
            self.replicas[number].start();
        }
        let rested = self.await_convergence(PREPARATION_LIMIT);
        assert!(rested.is_ok(), "no rest before the fault: {rested:?}\n{}", self.logs());
        let people = "people";
        let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}});
        self.site.api.create(&self.site.at("ConfigMap", ""), people, &foreign);
        let theirs = json!({"data": {"theirs": "yes"}});
        self.site.api.merge(&self.site.at("ConfigMap", "shared"), people, &theirs);
        let note = json!({"metadata": {"annotations": {"example.org/theirs": "yes"}}});
        self.site.api.merge(&self.site.at("Service", "front"), people, &note);
        let rest = json!({"metadata": {"annotations": {"rhumb.dev/reconcile": "disabled"}}});
        self.site.api.merge(&self.site.at("ConfigMap", RESTING), people, &rest);
        self.desired.keep(RESTING);
        // Nobody can ask that a change of a moment ago was seen.
        thread::sleep(NEWS);
        self.rested = Timestamp::now();
    }

    /// Returns the daemons and sources.
    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns a configuration of a daemon, with these settings and further keys of its sources.
    pub(crate) fn configuration(&self, number: usize, settings: &str, spec: &str) -> String {
        let leases = if let Shape::Leases(_) = self.shape { "leases: always\n" } else { "" };
        let head = format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{leases}{settings}\n");
        let sources =
            self.shape.folders_of(number).into_iter().map(|folder| self.source(letter(folder), spec));
        head + &sources.collect::<String>()
    }

    /// Returns the name of the source of a folder.
    pub(crate) fn source_name(&self, folder: &str) -> String {
        format!("{}-{folder}", self.site.name)
    }

    /// Returns the document of the source of a folder.
    pub(crate) fn source(&self, folder: &str, spec: &str) -> String {
        let url = self.remote.as_ref().map_or_else(|| self.repo.path().display().to_string(), Remote::url);
        let interval = if self.remote.is_some() { ", interval: 1s" } else { "" };
        format!(
            "---\napiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: {}}}\nspec:\n  namespace: {}\n  git: \
             {{url: {url}, path: {folder}{interval}}}\n{spec}\n",
            self.source_name(folder),
            self.site.name
        )
    }

    /// Returns the users of the daemons.
    pub(crate) fn users(&self) -> BTreeSet<String> {
        self.replicas.iter().map(|replica| replica.site.user.clone()).collect()
    }

    /// Returns the first daemon.
    pub(crate) fn daemon(&mut self) -> &mut Replica {
        &mut self.replicas[0]
    }

    /// Returns all that the daemons logged.
    pub(crate) fn logs(&self) -> String {
        self.replicas.iter().map(Replica::log).collect::<Vec<_>>().join("\n")
    }

    /// Returns what the daemons say of the workloads, and all their records.
    pub(crate) fn records(&self) -> String {
        let reasons: Vec<String> = self.replicas.iter().map(Replica::reasons).collect();
        let records = self.site.api.list(&self.record("ConfigMap", ""));
        format!("{}\n{records:#?}", reasons.join("\n"))
    }

    /// Writes a file of the work tree, as git will have it.
    pub(crate) fn write(&mut self, file: &str, text: &str) {
        self.desired.write(file, text);
        self.repo.write(file, text);
    }

    /// Removes a file of the work tree.
    pub(crate) fn remove(&mut self, file: &str) {
        self.removed_at.get_or_insert_with(Timestamp::now);
        self.desired.remove(file);
        self.repo.remove(file);
    }

    /// Moves a file of the work tree.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let text = self.desired.text(from);
        self.desired.remove(from);
        self.repo.remove(from);
        self.write(to, &text);
    }

    /// Commits the work tree, and pushes it where a server serves it.
    pub(crate) fn commit(&self, subject: &str) {
        self.repo.commit(subject);
        self.push();
    }

    /// Pushes the branch as it is.
    pub(crate) fn push(&self) {
        if self.remote.is_some() {
            self.repo.git(&["push", "--quiet", "--force", "origin", "main"]);
        }
    }

    /// Writes the next version of everything, without a commit.
    pub(crate) fn write_next(&mut self) {
        self.version += 1;
        let version = self.version;
        let places = self.desired.clone();
        for (file, text) in desired::files(version) {
            // A file that was moved changes where it is.
            let (_, name) = file.split_once('/').unwrap_or_default();
            let mut folders = (0..self.shape.folders()).map(letter);
            let moved = folders.find(|folder| !places.text(&format!("{folder}/{name}")).is_empty());
            if let Some(folder) = moved {
                self.write(&format!("{folder}/{name}"), &text);
            }
        }
    }

    /// Commits the next version of everything, and a new object.
    pub(crate) fn change(&mut self) {
        self.write_next();
        let (file, text) = config("fresh", &format!("v{}", self.version));
        self.write(&format!("{FIRST}/{file}"), &text);
        self.commit("Change everything");
    }

    /// Commits the removal of one object.
    pub(crate) fn remove_old(&mut self) {
        self.remove(&format!("{FIRST}/old.yaml"));
        self.commit("Remove one");
    }

    /// Makes the commits of each run that the fault has not made.
    pub(crate) fn complete_commits(&mut self) {
        if self.version == 1 {
            self.change();
        }
        if !self.desired.removed().contains("old") {
            self.remove_old();
        }
    }

    /// Lets the invariants not count an effect of the fault.
    pub(crate) fn allow(&mut self, effect: Effect) {
        self.allowance.effects.insert(effect);
    }

    /// Returns whether the invariants do not count an effect.
    pub(crate) fn is_tolerated(&self, effect: Effect) -> bool {
        self.allowance.effects.contains(&effect)
    }

    /// Lets a random time pass, in milliseconds.
    pub(crate) fn pass(&mut self, least: u64, most: u64) {
        thread::sleep(self.random.between(least, most));
    }

    /// Spoils requests from now on, also those of watches that run.
    pub(crate) fn spoil(&self, rule: Rule) -> RuleId {
        let id = self.proxy.add(rule);
        self.proxy.end_open(&Requests::any().watches(), ResponseCut::Close);
        id
    }

    /// Ends a rule.
    pub(crate) fn end(&self, rule: RuleId) -> Result<RuleUsage, Obstacle> {
        let usage = self.proxy.remove(rule);
        if usage.fired == 0 { Err(Obstacle::Unmet("the fault met no request".to_owned())) } else { Ok(usage) }
    }

    /// Waits until a rule has fired so often.
    pub(crate) fn await_fired(&self, rule: RuleId, times: u64) -> Result<(), Obstacle> {
        let deadline = Instant::now() + STEP_LIMIT;
        while self.proxy.hits(rule).fired < times {
            if Instant::now() > deadline {
                return Err(Obstacle::Unmet("no such request came".to_owned()));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Waits until the watches of the observer show something.
    pub(crate) fn await_live(&self, what: &str, probe: impl Fn(&Self) -> bool) -> Result<(), Obstacle> {
        let deadline = Instant::now() + STEP_LIMIT;
        while !probe(self) {
            if Instant::now() > deadline {
                return Err(Obstacle::Unmet(format!("not within {STEP_LIMIT:?}: {what}")));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Waits until the cluster shows what git says, and starts again what ended by itself. Returns
    /// how long that took, or the difference that is left.
    pub(crate) fn await_convergence(&mut self, limit: Duration) -> Result<Duration, String> {
        let begun = Instant::now();
        loop {
            for replica in &mut self.replicas {
                replica.revive();
            }
            match self.desired.difference(&self.observer) {
                None => return Ok(begun.elapsed()),
                Some(difference) if begun.elapsed() >= limit => return Err(difference),
                Some(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Returns a value of an object by the watches of the observer.
    pub(crate) fn value(&self, kind: &str, name: &str, pointer: &str) -> Value {
        let live = self.observer.live(kind, name);
        live.and_then(|live| live.pointer(pointer).cloned()).unwrap_or_default()
    }

    /// Returns the image that a Deployment has.
    pub(crate) fn image(&self, name: &str) -> String {
        let image = self.value("Deployment", name, "/spec/template/spec/containers/0/image");
        image.as_str().unwrap_or_default().to_owned()
    }

    /// Notes a daemon that says of a revision which is not live that it is, and goes on saying so.
    pub(crate) fn check_status(&mut self) {
        let revision = self.repo.head();
        let is_false = |stage: &Self| {
            let before = stage.desired.difference(&stage.observer);
            let claims =
                before.is_some() && stage.replicas.iter().any(|replica| replica.is_claiming(&revision));
            claims && stage.desired.difference(&stage.observer).is_some()
        };
        if is_false(self) {
            thread::sleep(STATUS_LAG);
            if is_false(self) {
                let what = format!("{revision} is said to be applied and healthy, and is not live");
                self.violations.push(Violation::new(Invariant::I11, what));
            }
        }
    }

    /// Forbids deletions while something happens, as what is wanted is not known.
    pub(crate) fn while_unknown<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let begun = Timestamp::now();
        let done = work(self);
        self.allowance.unknown.push((begun, Timestamp::now()));
        done
    }

    /// Deletes an object as a person.
    pub(crate) fn delete(&mut self, kind: &str, name: &str) {
        *self.allowance.recreations.entry(name.to_owned()).or_default() += 1;
        self.site.api.delete(&self.site.at(kind, name));
    }

    /// Changes an object as a person.
    pub(crate) fn edit(&mut self, kind: &str, name: &str, change: &Value) {
        self.allowance.edits += 1;
        self.site.api.merge(&self.site.at(kind, name), "people", change);
    }

    /// Returns the path of an object in rhumb's namespace.
    pub(crate) fn record(&self, kind: &str, name: &str) -> String {
        at(kind, &self.site.system(), name)
    }

    /// Ends the daemons, and asks for the end of the namespaces without waiting for it.
    pub(crate) fn clear(&mut self) {
        for replica in &mut self.replicas {
            replica.kill();
        }
        for namespace in [self.site.name.clone(), self.site.system()] {
            self.site.api.delete(&at("Namespace", "", &namespace));
        }
    }
}

/// Returns the writing requests that are no dry run.
pub(crate) fn writes() -> Requests {
    let methods = ["POST", "PUT", "PATCH", "DELETE"].into_iter();
    methods.fold(Requests::any(), Requests::method).query_lacks("dryRun").path_lacks("/events")
}
