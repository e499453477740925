//! `rhumb rollout history`.

use serde_json::Value;

use super::object_name::ObjectName;
use super::target::{Desk, Target};
use super::{CommandError, Exit, Terminal};
use crate::cluster::Lookup;
use crate::daemon;
use crate::engine::{Release, is_workload};
use crate::object::{GroupKind, RELEASE, at, text_at};

/// One revision of a workload.
struct Line {
    number: i64,
    commit: String,
    when: String,
    hash: String,
}

/// Prints the revisions of a workload, the newest first.
pub(super) async fn print(desk: &Desk, name: &ObjectName, terminal: &Terminal) -> Result<Exit, CommandError> {
    let target = desk.target(name).await?;
    if !is_workload(&target.id) {
        let message = format!("{} has no revisions in the cluster", target.id);
        return Err(CommandError::usage(message).hint("name a Deployment, StatefulSet or DaemonSet"));
    }
    let mut lines = lines(desk, &target).await?;
    lines.sort_by_key(|line| std::cmp::Reverse(line.number));
    terminal.print(&format!("{:<8}  {:<12}  {:<20}  OUTCOME\n", "REVISION", "COMMIT", "SINCE"))?;
    for line in &lines {
        let outcome = outcome(&target, line);
        terminal
            .print(&format!("{:<8}  {:<12}  {:<20}  {outcome}\n", line.number, line.commit, line.when))?;
    }
    Ok(Exit::Done)
}

async fn lines(desk: &Desk, target: &Target) -> Result<Vec<Line>, CommandError> {
    let kind = if target.id.kind() == "Deployment" { "ReplicaSet" } else { "ControllerRevision" };
    let Lookup::Served(kind) = desk.kinds.preferred(&GroupKind::new("apps", kind)) else {
        return Ok(Vec::new());
    };
    let labels = at(&target.object, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    let selector: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let all = desk.cluster.objects(&kind, target.id.namespace(), &selector.join(",")).await?;
    let uid = text_at(&target.object, &["metadata", "uid"]);
    let owned = |object: &&Value| {
        let owners = at(object, &["metadata", "ownerReferences"]).and_then(Value::as_array);
        owners.is_some_and(|owners| owners.iter().any(|owner| text_at(owner, &["uid"]) == uid))
    };
    Ok(all.iter().filter(owned).map(line).collect())
}

fn line(object: &Value) -> Line {
    let annotation = |key: &str| text_at(object, &["metadata", "annotations", key]);
    let counted = annotation("deployment.kubernetes.io/revision").parse().ok();
    let number = counted.or_else(|| at(object, &["revision"]).and_then(Value::as_i64)).unwrap_or(0);
    let release = Release::parse(annotation(RELEASE));
    Line {
        number,
        commit: release.as_ref().map_or("-".to_owned(), |release| release.revision.short().to_owned()),
        when: text_at(object, &["metadata", "creationTimestamp"]).to_owned(),
        hash: release.map(|release| release.hash.to_string()).unwrap_or_default(),
    }
}

fn outcome(target: &Target, line: &Line) -> String {
    let rejections = daemon::rejections(&target.parent);
    let rejected = rejections.iter().find(|rejection| {
        let member = rejection.unit.members.get(&target.id);
        member.and_then(|member| member.content).is_some_and(|hash| hash.to_string() == line.hash)
    });
    let shown = target.release().map(|release| release.hash.to_string());
    match rejected {
        Some(rejection) => rejection.cause.to_string(),
        None if shown.as_deref() == Some(&*line.hash) => "in force".to_owned(),
        None if line.hash.is_empty() => "not from a source".to_owned(),
        None => "replaced".to_owned(),
    }
}
