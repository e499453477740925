//! `rhumb why`.

use std::path::PathBuf;
use std::time::Duration;

use super::args::{GlobalArgs, WhyArgs};
use super::facts::ClusterObjectFacts;
use super::overview::clean_text;
use super::settings::{self, StatusSource};
use super::socket::{DaemonSocket, SocketError};
use super::target::{ClusterSession, ManagedObject};
use super::{
    CommandError, ExitStatus, ObjectArgument, Terminal, cluster_status, events, rollout, session, status_view,
};
use crate::cluster;
use crate::config::Config;
use crate::daemon;
use crate::engine::{ConfigStamp, Plan, PlannedAction, PlannedObject, changed_words, is_workload};
use crate::graph;
use crate::health;
use crate::object::ObjectId;
use crate::object::annotations;
use crate::render;
use crate::report::{EventReason, EventRecord, ObjectRef, ObjectStatus};

/// The maximum number of differing fields that are named.
const MAX_NAMED_FIELDS: usize = 3;

/// The time in which a daemon names the place of an object: all else is known without it.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(2);

/// A key and what it is.
type KeyValueLine = (&'static str, String);

/// Carries the command out. Any fault of the source leaves the cluster's own answer.
pub(super) fn carry_out(
    args: &WhyArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let config = settings::why_config(global, args);
    session::start_runtime()?.block_on(async {
        let session = rollout::open_session(global).await?;
        let found = find_object(&session, &args.object).await?;
        let plan = match config {
            Ok(Some(config)) => Box::pin(plan_of_source(&session, &found, config)).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let mut lines = match &found {
            ExplainedObject::Managed(target) => cluster_lines(&session, target).await?,
            ExplainedObject::Recorded(_, status) => recorded_lines(status),
        };
        match &plan {
            Ok(Some(plan)) => lines.extend(plan_lines(found.id(), plan)),
            Ok(None) => {
                lines.extend(reported_lines(global, args, &found).await?);
            }
            Err(_) => {}
        }
        terminal.print(&format!("{}\n", clean_text(&found.id().to_string())))?;
        for (key, value) in lines {
            terminal.print(&format!("  {key:<8} {}\n", clean_text(&value)))?;
        }
        if let Some(plan) = plan? {
            terminal.report(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
        }
        Ok(ExitStatus::Done)
    })
}

/// An object that somebody asks about.
enum ExplainedObject {
    /// A source has it.
    Managed(Box<ManagedObject>),
    /// The record of a source alone names it: it is not there yet, or somebody else's.
    Recorded(ObjectId, Box<ObjectStatus>),
}

impl ExplainedObject {
    fn id(&self) -> &ObjectId {
        match self {
            Self::Managed(target) => &target.id,
            Self::Recorded(id, _) => id,
        }
    }

    fn source(&self) -> &str {
        match self {
            Self::Managed(target) => &target.source,
            Self::Recorded(_, status) => &status.source,
        }
    }
}

/// Returns the place that an object comes from without reading its source. The daemon on this host
/// says it, else the record of its source. The daemon also knows who changed an object that was
/// repaired.
async fn reported_lines(
    global: &GlobalArgs,
    args: &WhyArgs,
    found: &ExplainedObject,
) -> Result<Vec<KeyValueLine>, CommandError> {
    let file = |origin: Option<String>| origin.map(|origin| ("file", origin));
    let target = match found {
        ExplainedObject::Recorded(_, status) => return Ok(file(status.origin.clone()).into_iter().collect()),
        ExplainedObject::Managed(target) => target,
    };
    let recorded = cluster_status::recorded_origin(&target.inventory, &target.id);
    let reported = match settings::status_source(global, args.socket.socket.as_deref())? {
        StatusSource::Daemon(path) => Some(reported_object(path, target).await?),
        StatusSource::DaemonOrCluster(path) => {
            let reported = tokio::time::timeout(DAEMON_TIMEOUT, reported_object(path, target)).await;
            reported.ok().and_then(Result::ok)
        }
        StatusSource::Cluster => None,
    };
    let reported = reported.filter(|(status, _)| is_of_daemon(status, target));
    let (origin, repair) = reported.map(|(status, repair)| (status.origin, repair)).unwrap_or_default();
    let repair = repair.map(|words| ("repaired", words));
    Ok(repair.into_iter().chain(file(origin.or(recorded))).collect())
}

/// Returns what a daemon says of an object, and the last repair of it that the daemon remembers.
async fn reported_object(
    socket: PathBuf,
    target: &ManagedObject,
) -> Result<(ObjectStatus, Option<String>), SocketError> {
    let (socket, object) = (DaemonSocket::new(&socket), ObjectRef::of(&target.id));
    let status = socket.read(&status_view::object_page(&object)).await?;
    // Too many others may listen already.
    let events = events::events_after(&socket, 0).await.unwrap_or_default();
    let is_repair = |event: &&EventRecord| {
        event.reason == EventReason::DriftRepaired && event.object.as_ref() == Some(&object)
    };
    let repair = events.iter().rev().find(is_repair);
    Ok((
        status,
        repair.map(|event| format!("at {}: {}", event.at.strftime("%Y-%m-%dT%H:%M:%SZ"), event.message)),
    ))
}

/// Returns whether a daemon means the very object: it may serve another cluster, where an object of
/// that name comes from elsewhere.
fn is_of_daemon(status: &ObjectStatus, target: &ManagedObject) -> bool {
    let revision = target.content_ref().map(|release| release.revision.to_string());
    status.source == target.source && revision.is_some() && status.revision == revision
}

async fn find_object(
    session: &ClusterSession,
    name: &ObjectArgument,
) -> Result<ExplainedObject, CommandError> {
    match session.find_object(name).await {
        Ok(target) => Ok(ExplainedObject::Managed(Box::new(target))),
        Err(error) => {
            let (_, id) = session.resolve_name(name)?;
            match cluster_status::recorded_status(session, &id).await? {
                Some(status) => Ok(ExplainedObject::Recorded(id, Box::new(status))),
                None => Err(error),
            }
        }
    }
}

/// Returns the lines of a source's record, which is all that is known of the object.
fn recorded_lines(status: &ObjectStatus) -> Vec<KeyValueLine> {
    let mut lines = vec![("source", status.source.clone()), ("phase", status.phase.to_string())];
    lines.extend(status.reason.clone().map(|reason| ("reason", reason)));
    lines
}

/// Returns the lines of facts from the cluster.
async fn cluster_lines(
    session: &ClusterSession,
    target: &ManagedObject,
) -> Result<Vec<KeyValueLine>, CommandError> {
    let facts = ClusterObjectFacts::read(session, target).await?;
    let mut lines = vec![("source", target.source.clone())];
    match target.content_ref() {
        Some(release) => {
            lines.push(("content", format!("{}, brought by revision {}", release.hash, release.revision)));
        }
        None => lines.push(("content", "not from a source".to_owned())),
    }
    let changed = cluster::later_writers(&target.object);
    lines.extend(changed.map(|words| ("changed", format!("{words}; since rhumb last wrote it"))));
    let health = health::of_kind(&target.id.group_kind(), &target.object);
    let message = if health.message.is_empty() { String::new() } else { format!(": {}", health.message) };
    lines.push(("health", format!("{}{message}", health.status)));
    if is_workload(&target.id) {
        lines.push(("rollout", super::rollout_words::rollout_state(&target.object).0));
        lines.push(("budget", facts.budget_text().trim_start_matches("rollout budget: ").to_owned()));
        lines.extend(restart_cause(target).map(|words| ("restart", words)));
    }
    lines.push(("phase", facts.phase()));
    lines.extend(facts.wait_reasons().into_iter().map(|wait| ("reason", wait)));
    Ok(lines)
}

/// Returns the plan of a source, read as the one that manages the object.
async fn plan_of_source(
    session: &ClusterSession,
    found: &ExplainedObject,
    mut config: Config,
) -> Result<Plan, CommandError> {
    for source in &mut config.sources {
        found.source().clone_into(&mut source.name);
    }
    let state = session::state(&config, &session.cluster).await?;
    let setup = session::one_shot_source(&session::only_source(&config)?, &state, &session.cluster).await?;
    Ok(Box::pin(daemon::preview_of(&session.cluster, &session.inventory_namespace, setup, found.id()))
        .await?)
}

/// Returns where the object is in the source, and whether that asks for something else than
/// there is.
fn plan_lines(id: &ObjectId, plan: &Plan) -> Vec<KeyValueLine> {
    let planned = plan.objects.iter().find(|planned| planned.id == *id);
    let Some((planned, origin)) = planned.and_then(|planned| Some((planned, planned.origin.as_ref()?)))
    else {
        let unread = if plan.complete { "" } else { ", but was not read completely" };
        return vec![("file", format!("SOURCE does not contain it{unread}"))];
    };
    vec![("file", origin.to_string()), ("manifest", difference_text(planned))]
}

fn difference_text(planned: &PlannedObject) -> String {
    let because = planned.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match planned.verdict {
        PlannedAction::Unchanged => format!("as the live object{because}"),
        PlannedAction::Wait => format!("not known now{because}"),
        PlannedAction::Refuse => format!("refused{because}"),
        PlannedAction::Recreate => format!("differs: the object would be deleted and created again{because}"),
        PlannedAction::Create | PlannedAction::Configure | PlannedAction::Delete => {
            let mut paths: Vec<String> =
                planned.fields.iter().take(MAX_NAMED_FIELDS).map(|field| field.path.clone()).collect();
            match planned.fields.len().saturating_sub(MAX_NAMED_FIELDS) {
                0 => {}
                more => paths.push(format!("{more} more")),
            }
            let fields = if paths.is_empty() { String::new() } else { format!(" in {}", paths.join(", ")) };
            format!("differs{fields}{because}")
        }
    }
}

/// Returns which change of data its pods were last restarted for, where they were.
fn restart_cause(target: &ManagedObject) -> Option<String> {
    let started: ConfigStamp = target.annotation_value(annotations::CONFIG).parse().ok()?;
    let uses: Vec<ObjectId> = graph::configuration(&target.id, &target.object).into_iter().collect();
    started.template_hash()?;
    Some(format!("its pods were restarted, as the data of {} changed", changed_words(&uses, started)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::FieldChange;
    use crate::object::{GroupKind, Gvk, ManifestOrigin};

    fn plan_of_source(verdict: PlannedAction, fields: &[&str], reason: Option<&str>) -> PlannedObject {
        let id = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let changed = |path: &&str| FieldChange { path: (*path).to_owned(), before: None, after: None };
        PlannedObject {
            origin: Some(ManifestOrigin::new("deploy/web.yaml".into(), 12, 1)),
            fields: fields.iter().map(changed).collect(),
            reason: reason.map(str::to_owned),
            ..PlannedObject::new(id, Gvk::new("apps", "v1", "Deployment"), verdict)
        }
    }

    #[test]
    fn a_source_asks_for_what_there_is_or_for_something_else() {
        let check = |planned: &PlannedObject, expected: &str| assert_eq!(difference_text(planned), expected);
        check(&plan_of_source(PlannedAction::Unchanged, &[], None), "as the live object");
        let few = plan_of_source(PlannedAction::Configure, &[".spec.replicas"], Some("somebody changed it"));
        check(&few, "differs in .spec.replicas: somebody changed it");
        let many = plan_of_source(PlannedAction::Configure, &[".a", ".b", ".c", ".d", ".e"], None);
        check(&many, "differs in .a, .b, .c, 2 more");
        check(&plan_of_source(PlannedAction::Refuse, &[], Some("no")), "refused: no");
    }

    #[test]
    fn the_file_is_reported_with_its_line_or_that_there_is_none() {
        let mut plan = Plan {
            basis: crate::engine::PlanBasis::Cluster,
            source: "shop".to_owned(),
            revision: String::new(),
            complete: true,
            guarded: false,
            objects: vec![plan_of_source(PlannedAction::Unchanged, &[], None)],
            units: Vec::new(),
            diagnostics: Vec::new(),
            notes: Vec::new(),
        };
        let id = plan.objects[0].id.clone();
        assert_eq!(plan_lines(&id, &plan)[0], ("file", "deploy/web.yaml:12".to_owned()));
        // A plan also has objects to be pruned, which have no place in a file.
        plan.objects[0].origin = None;
        assert_eq!(plan_lines(&id, &plan), [("file", "SOURCE does not contain it".to_owned())]);
        plan.objects.clear();
        plan.complete = false;
        let unread = "SOURCE does not contain it, but was not read completely";
        assert_eq!(plan_lines(&id, &plan), [("file", unread.to_owned())]);
    }
}
