//! `rhumb why`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::args::{GlobalArgs, WhyArgs, WhyOutputFormat};
use super::facts::{ClusterObjectFacts, ShownReason};
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
use crate::engine::{ChangedData, ConfigStamp, Plan, PlannedAction, PlannedObject, is_workload};
use crate::graph;
use crate::health;
use crate::object::ObjectId;
use crate::object::annotations;
use crate::render;
use crate::report::{EventReason, EventRecord, ObjectRef, ObjectStatus, STATUS_VERSION};

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
    let config = settings::config_for_why(global, args);
    session::start_runtime()?.block_on(async {
        let session = rollout::open_session(global).await?;
        let found = find_object(&session, &args.object).await?;
        let plan = match config {
            Ok(Some(config)) => Box::pin(plan_of_source(&session, &found, config)).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let (facts, reasons) = match &found {
            ExplainedObject::Managed(target) => cluster_facts(&session, target).await?,
            ExplainedObject::Recorded(_, status) => recorded_facts(status),
        };
        let origin = match &plan {
            Ok(Some(plan)) => plan_lines(found.id(), plan),
            Ok(None) => reported_lines(global, args, &found).await?,
            Err(_) => Vec::new(),
        };
        let explanation = Explanation { id: found.id(), facts, reasons, origin };
        match args.output {
            WhyOutputFormat::Text => terminal.print(&explanation.text())?,
            WhyOutputFormat::Json => terminal.write_output(&format!("{}\n", explanation.json()))?,
        }
        if let Some(plan) = plan? {
            terminal.report(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
        }
        Ok(ExitStatus::Done)
    })
}

/// The explanation of an object.
struct Explanation<'a> {
    id: &'a ObjectId,
    /// The facts of the cluster.
    facts: Vec<KeyValueLine>,
    /// The reasons that keep it from the newest revision.
    reasons: Vec<ShownReason>,
    /// The place that it comes from.
    origin: Vec<KeyValueLine>,
}

impl Explanation<'_> {
    fn text(&self) -> String {
        let mut text = format!("{}\n", clean_text(&self.id.to_string()));
        let mut add_line = |key: &str, value: &str| {
            let _ = writeln!(text, "  {key:<8} {}", clean_text(value));
        };
        for (key, value) in &self.facts {
            add_line(key, value);
        }
        for found in &self.reasons {
            add_line("reason", &found.reason);
        }
        for (key, value) in &self.origin {
            add_line(key, value);
        }
        text
    }

    fn json(&self) -> Value {
        let mut form = json!(ObjectRef::of(self.id));
        form["apiVersion"] = STATUS_VERSION.into();
        for (key, value) in self.facts.iter().chain(&self.origin) {
            form[*key] = value.as_str().into();
        }
        form["reasons"] = json!(self.reasons);
        form
    }
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

/// Returns what a source's record has, which is all that is known of the object.
fn recorded_facts(status: &ObjectStatus) -> (Vec<KeyValueLine>, Vec<ShownReason>) {
    let lines = vec![("source", status.source.clone()), ("phase", status.phase.to_string())];
    let reason = status.reason.clone().map(|reason| ShownReason { reason, coded: status.coded.clone() });
    (lines, reason.into_iter().collect())
}

/// Returns the facts from the cluster, and the reasons that follow from them.
async fn cluster_facts(
    session: &ClusterSession,
    target: &ManagedObject,
) -> Result<(Vec<KeyValueLine>, Vec<ShownReason>), CommandError> {
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
    Ok((lines, facts.wait_reasons()))
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
    Some(format!("its pods were restarted, as the data of {} changed", ChangedData::of(&uses, started)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::FieldChange;
    use crate::engine::{Reason, ReasonCode};
    use crate::object::{GroupKind, Gvk, ManifestOrigin};
    use crate::render::CodedReason;

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

    fn explanation(id: &ObjectId) -> Explanation<'_> {
        let waits =
            Reason::UnitWorkload(ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), "env"));
        let reasons = vec![
            ShownReason { reason: waits.to_string(), coded: CodedReason::of(&waits) },
            ShownReason { reason: "x".to_owned(), coded: CodedReason::of_code(ReasonCode::StepInProgress) },
            ShownReason { reason: "y\u{1b}".to_owned(), coded: CodedReason::default() },
        ];
        let facts = vec![("source", "shop".to_owned()), ("phase", "Waiting".to_owned())];
        Explanation { id, facts, reasons, origin: vec![("file", "deploy/web.yaml:12".to_owned())] }
    }

    #[test]
    fn an_explanation_is_a_line_for_each_fact_and_reason() {
        let id = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        assert_eq!(
            explanation(&id).text(),
            "Deployment shop/web\n  source   shop\n  phase    Waiting\n  \
             reason   it is released together with ConfigMap shop/env, which has not started to roll out\n  \
             reason   x\n  reason   y\u{fffd}\n  file     deploy/web.yaml:12\n"
        );
    }

    #[test]
    fn an_explanation_for_programs_has_the_reasons_as_the_status_has_them() {
        let id = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let expected = json!({
            "apiVersion": "status.rhumb.dev/v1",
            "group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web",
            "source": "shop",
            "phase": "Waiting",
            "reasons": [
                {
                    "reason": "it is released together with ConfigMap shop/env, which has not started to roll out",
                    "code": "WaitingForUnit",
                    "details": {"object": {"kind": "ConfigMap", "namespace": "shop", "name": "env"}},
                },
                {"reason": "x", "code": "StepInProgress"},
                {"reason": "y\u{1b}"},
            ],
            "file": "deploy/web.yaml:12",
        });
        assert_eq!(explanation(&id).json(), expected);
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
