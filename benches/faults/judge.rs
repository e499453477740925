//! The judgement of a run, by the audit log, the watches, the machine and, for I11 alone, the
//! status.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use controlplane::AuditEvent;
use serde_json::Value;

use crate::desired::RESTING;
use crate::invariant::{Invariant, Violation};
use crate::replay::Bounds;
use crate::resources;
use crate::stage::{Effect, Shape, Stage};

/// The longest time from the end of the fault until the cluster shows what git says.
const CONVERGENCE_LIMIT: Duration = Duration::from_secs(90);
/// The longest time in which the next commit is served.
const NEXT_COMMIT_LIMIT: Duration = Duration::from_mins(1);
/// The time in which the last records are written.
const SETTLING: Duration = Duration::from_millis(1500);
/// The time in which nothing is written.
const SILENCE: Duration = Duration::from_secs(3);
/// Commits of each run, each of which asks for a write of an object.
const COMMITS: usize = 3;
/// Writes of an object in a minute, beside those that somebody asked for.
const WRITES_IN_A_MINUTE: usize = 5;
/// Writes of a record in a minute: each rollout has some.
const RECORD_WRITES_IN_A_MINUTE: usize = 60;
/// Calls in a second, in sum, and those of a start.
const CALLS_IN_A_SECOND: u64 = 10;
const CALLS_OF_A_START: u64 = 150;

/// Returns how long it took until the cluster showed what git says. All violations are noted.
pub(crate) fn judge(stage: &mut Stage) -> Option<Duration> {
    let convergence = match stage.await_convergence(CONVERGENCE_LIMIT) {
        Ok(time) => Some(time),
        Err(difference) => {
            note(stage, Invariant::I1, format!("after {CONVERGENCE_LIMIT:?}: {difference}"));
            None
        }
    };
    if convergence.is_some() {
        stage.write_next();
        stage.commit("Change everything once more");
        if let Err(difference) = stage.await_convergence(NEXT_COMMIT_LIMIT) {
            note(
                stage,
                Invariant::I14,
                format!("the next commit, after {NEXT_COMMIT_LIMIT:?}: {difference}"),
            );
        }
    }
    thread::sleep(SETTLING);
    let before = own_events(stage).len();
    thread::sleep(SILENCE);
    let events = own_events(stage);
    // A source that did not converge tries on.
    if convergence.is_some() {
        judge_rest(stage, &events[before..]);
    }
    judge_deletions(stage, &events);
    judge_foreign_writes(stage, &events);
    judge_write_rates(stage, &events);
    judge_repetitions(stage, &events);
    judge_lease_holders(stage);
    if let Err(timeline) = stage.observer.compare(bounds(stage)) {
        let last: Vec<&str> = timeline.lines().rev().take(12).collect();
        note(stage, Invariant::I4, last.into_iter().rev().collect::<Vec<_>>().join("\n    "));
    }
    judge_histories(stage);
    resources::judge(stage);
    convergence
}

fn bounds(stage: &Stage) -> Bounds {
    Bounds { workloads: 1 + stage.allowance.workloads, pods: 1 + stage.allowance.pods }
}

pub(crate) fn note(stage: &mut Stage, invariant: Invariant, observation: impl Into<String>) {
    stage.violations.push(Violation::new(invariant, observation));
}

/// Returns all requests of the daemons that the server got.
fn own_events(stage: &Stage) -> Vec<AuditEvent> {
    let users = stage.users();
    let events = stage.site.cluster.audit().unwrap();
    events.into_iter().filter(|event| users.contains(&event.user)).collect()
}

/// Returns whether a request may have changed an object or a record.
fn is_counted(event: &AuditEvent) -> bool {
    let is_free =
        matches!(event.group.as_str(), "authorization.k8s.io" | "coordination.k8s.io" | "events.k8s.io")
            || event.group.is_empty() && event.resource == "events";
    event.is_write() && !is_free
}

fn is_done(event: &AuditEvent) -> bool {
    (200..300).contains(&event.code)
}

fn line(event: &AuditEvent) -> String {
    let AuditEvent { timestamp, verb, resource, namespace, name, code, .. } = event;
    format!("{timestamp} {verb} {resource} {namespace}/{name} {code}")
}

/// Judges I5: at rest nothing is written, but for each record of the last change by each daemon.
fn judge_rest(stage: &mut Stage, events: &[AuditEvent]) {
    let mut records: BTreeMap<String, usize> = BTreeMap::new();
    let (daemons, system) = (stage.replicas.len(), stage.site.system());
    let is_news = |event: &&AuditEvent| {
        let is_record = event.namespace == system && event.resource == "configmaps";
        is_counted(event)
            && !(is_record && {
                let written = records.entry(event.name.clone()).or_default();
                *written += 1;
                *written <= daemons
            })
    };
    let written: Vec<String> = events.iter().filter(is_news).map(line).collect();
    if !written.is_empty() {
        note(stage, Invariant::I5, format!("written at rest: {}", written.join(", ")));
    }
}

/// Judges I2 and I3: only what git has removed is deleted, and not before.
fn judge_deletions(stage: &mut Stage, events: &[AuditEvent]) {
    let (removed, names) = (stage.desired.removed(), stage.desired.names());
    let excused = stage.allowance.deletions.clone();
    let mut found = Vec::new();
    for event in events.iter().filter(|event| event.verb.starts_with("delete") && is_done(event)) {
        if event.namespace != stage.site.name {
            if is_counted(event) {
                found.push((Invariant::I2, format!("deleted elsewhere: {}", line(event))));
            }
            continue;
        }
        let is_early = stage.removed_at.is_none_or(|removed| event.timestamp < removed);
        let is_unknown =
            stage.allowance.unknown.iter().any(|(begin, end)| (*begin..*end).contains(&event.timestamp));
        if excused.contains(&event.name) {
            continue;
        }
        if !names.contains(&event.name) {
            found.push((Invariant::I2, format!("deleted and never owned: {}", line(event))));
        } else if !removed.contains(&event.name) || is_early {
            found.push((Invariant::I3, format!("deleted and wanted: {}", line(event))));
        } else if is_unknown {
            found.push((Invariant::I3, format!("deleted while git could not be read: {}", line(event))));
        }
    }
    for (invariant, observation) in found {
        note(stage, invariant, observation);
    }
}

/// Judges I2: nothing else is written, and nothing that a person told it to leave alone.
fn judge_foreign_writes(stage: &mut Stage, events: &[AuditEvent]) {
    let (names, system) = (stage.desired.names(), stage.site.system());
    let is_strange = |event: &&AuditEvent| {
        let is_own = event.namespace == system
            || event.resource == "namespaces" && event.name == system
            || event.namespace == stage.site.name && names.contains(&event.name);
        let is_resting = event.name == RESTING && event.timestamp > stage.rested;
        is_counted(event) && is_done(event) && (!is_own || is_resting)
    };
    let strange: Vec<String> = events.iter().filter(is_strange).map(line).collect();
    if !strange.is_empty() {
        note(stage, Invariant::I2, format!("written and not its own: {}", strange.join(", ")));
    }
}

/// Judges I5: no object is written again and again, and no call is made again and again.
fn judge_write_rates(stage: &mut Stage, events: &[AuditEvent]) {
    let since = stage.rested;
    let mut times: BTreeMap<(String, String, String), Vec<i64>> = BTreeMap::new();
    let recent: Vec<&AuditEvent> = events.iter().filter(|event| event.timestamp >= since).collect();
    for event in recent.iter().filter(|event| is_counted(event)) {
        let object = (event.namespace.clone(), event.resource.clone(), event.name.clone());
        times.entry(object).or_default().push(event.timestamp.as_second());
    }
    let system = stage.site.system();
    let mut found = Vec::new();
    for ((namespace, resource, name), times) in times {
        let asked = COMMITS + stage.allowance.edits;
        let limit = if namespace == system { RECORD_WRITES_IN_A_MINUTE } else { WRITES_IN_A_MINUTE };
        let in_a_minute =
            |begin: &i64| times.iter().filter(|time| (0..60).contains(&(*time - begin))).count();
        let most = times.iter().map(in_a_minute).max().unwrap_or(0);
        if most > limit + asked {
            found.push(format!("{most} writes of {resource} {name} in a minute"));
        }
    }
    let spent = recent.iter().map(|event| event.timestamp.as_second()).max().unwrap_or(0) - since.as_second();
    let starts: u64 = stage.replicas.iter().map(|replica| replica.starts).sum();
    let daemons = stage.replicas.len() as u64;
    let most = CALLS_IN_A_SECOND * daemons * u64::try_from(spent).unwrap_or(0) + CALLS_OF_A_START * starts;
    if recent.len() as u64 > most {
        found.push(format!("{} calls in {spent} s", recent.len()));
    }
    for storm in found {
        note(stage, Invariant::I5, storm);
    }
}

/// Judges I7: each object is created once, and deleted once.
fn judge_repetitions(stage: &mut Stage, events: &[AuditEvent]) {
    let mut counts: BTreeMap<(&str, &str, &str, &str), usize> = BTreeMap::new();
    for event in events.iter().filter(|event| is_counted(event)) {
        let what = match event.code {
            201 if event.subresource.is_empty() => "created",
            200..300 if event.verb.starts_with("delete") => "deleted",
            _ => continue,
        };
        *counts.entry((what, &event.namespace, &event.resource, &event.name)).or_default() += 1;
    }
    let system = stage.site.system();
    let is_twice = |((_, namespace, _, name), count): &(&(&str, &str, &str, &str), &usize)| {
        let is_record = *namespace == system || *name == system;
        let is_excused = stage.is_tolerated(Effect::DeletesRecords) && is_record;
        **count > 1 + stage.allowance.recreations.get(*name).copied().unwrap_or(0) && !is_excused
    };
    let twice: Vec<String> = counts
        .iter()
        .filter(is_twice)
        .map(|((what, _, resource, name), count)| format!("{resource} {name} was {what} {count} times"))
        .collect();
    if !twice.is_empty() {
        note(stage, Invariant::I7, twice.join(", "));
    }
}

/// Judges I2: only the holder of its Lease writes for a source.
fn judge_lease_holders(stage: &mut Stage) {
    if !matches!(stage.shape(), Shape::Leases(_)) {
        return;
    }
    let (users, system, name) = (stage.users(), stage.site.system(), stage.site.name.clone());
    let mut holders: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for event in stage.site.cluster.audit().unwrap() {
        if !users.contains(&event.user) || !event.is_write() || !is_done(&event) {
            continue;
        }
        let source = if event.resource == "leases" && event.namespace == system {
            let Some(source) = event.name.strip_prefix("rhumb-") else { continue };
            holders.insert(source.to_owned(), event.user.clone());
            continue;
        } else if event.namespace == name && is_counted(&event) {
            stage.source_name(if event.name == "own-b" { "b" } else { "a" })
        } else {
            continue;
        };
        if holders.get(&source) != Some(&event.user) {
            found.push(format!("{}, and the Lease is {:?}'s", line(&event), holders.get(&source)));
        }
    }
    if !found.is_empty() {
        note(stage, Invariant::I2, format!("written without the Lease: {}", found.join(", ")));
    }
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Judges I2, I6, I8 and I9, by every state that the watches have shown.
fn judge_histories(stage: &mut Stage) {
    let mut found = Vec::new();
    let mut counter = 0;
    let mut had = BTreeSet::new();
    let mut foreign = BTreeSet::new();
    let events = [stage.observer.events("ConfigMap"), stage.observer.events("Service")].concat();
    for event in events {
        let name = text(&event.object, "/metadata/name");
        match name.as_str() {
            "foreign" => {
                foreign.insert((text(&event.object, "/metadata/resourceVersion"), event.gone));
            }
            "counter" if !event.gone => {
                let version = text(&event.object, "/data/key").parse::<u32>().unwrap_or(0);
                if version < counter && !stage.is_tolerated(Effect::GoesToOlderCommits) {
                    found.push((Invariant::I8, format!("version {version} after {counter}")));
                }
                counter = version;
            }
            "shared" | "front" if !stage.is_tolerated(Effect::RemovesForeignFields) => {
                let theirs = ["/data/theirs", "/metadata/annotations/example.org~1theirs"];
                let has = theirs.iter().any(|pointer| !text(&event.object, pointer).is_empty());
                if has {
                    had.insert(name);
                } else if had.contains(&name) {
                    found.push((Invariant::I6, format!("{name} lost a field of people")));
                }
            }
            _ => {}
        }
    }
    if foreign.len() != 1 {
        found.push((Invariant::I2, format!("a foreign object changed: {foreign:?}")));
    }
    let mut broken: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for event in stage.observer.events("Deployment") {
        let image = text(&event.object, "/spec/template/spec/containers/0/image");
        let (before, count) = broken.entry(text(&event.object, "/metadata/name")).or_default();
        *count += usize::from(image.ends_with(":broken") && *before != image);
        *before = image;
    }
    for (name, (_, count)) in broken.iter().filter(|(_, (_, count))| *count > 1) {
        found.push((Invariant::I9, format!("{name} got the failing image {count} times")));
    }
    for (invariant, observation) in found {
        note(stage, invariant, observation);
    }
}
