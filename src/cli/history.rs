//! `rhumb rollout history`.

use jiff::Timestamp;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::object_name::ObjectName;
use super::overview::clean;
use super::target::{Desk, Target};
use super::{CommandError, Exit, Terminal, facts};
use crate::cluster::{Lookup, applyset_id};
use crate::daemon;
use crate::engine::{Acknowledged, Authored, Release, is_workload};
use crate::object::{GroupKind, RELEASE, Revision, annotation, at, text_at};

/// One revision of a workload.
struct Line {
    number: i64,
    revision: Option<Revision>,
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
    let (book, _) = facts::book(desk).await?;
    let heads = ["REVISION", "COMMIT", "AUTHOR", "SUBJECT", "SINCE", "OUTCOME"].map(str::to_owned);
    let applyset = applyset_id(&desk.system, &target.source);
    let told = lines.iter().map(|line| {
        let authored = line.revision.as_ref().and_then(|revision| book.author(&applyset, revision).cloned());
        let authored = authored.unwrap_or_else(|| Authored::of("-", "-"));
        let commit = line.revision.as_ref().map_or("-", |revision| revision.short());
        let cells = [&line.number.to_string(), commit, &authored.author, &authored.subject, &line.when];
        let [number, commit, author, subject, when] = cells.map(clean);
        [number, commit, author, subject, when, clean(&outcome(&target, line))]
    });
    let rows: Vec<[String; 6]> = std::iter::once(heads).chain(told).collect();
    terminal.print(&columns(&rows))?;
    for line in ordered(&target) {
        terminal.print(&format!("{}\n", clean(&line)))?;
    }
    Ok(Exit::Done)
}

/// What was ordered of an object, as far as that is remembered, with the time that an order's token begins with.
fn ordered(target: &Target) -> Vec<String> {
    let words = format!("{} ", target.id);
    let acknowledged = daemon::acknowledged(&target.parent);
    let mine = acknowledged.iter().filter(|one| format!("{} ", one.outcome).contains(&words));
    let line = |one: &Acknowledged| {
        let begun = one.token.split('-').next().and_then(|millis| millis.parse().ok());
        let begun = begun.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        let begun = begun.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ ").to_string());
        format!("{}{}", begun.unwrap_or_default(), one.outcome)
    };
    mine.map(line).collect()
}

/// Cells under each other; the last ones as long as they are.
fn columns(rows: &[[String; 6]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 6]| {
        let padded = |(cell, width): (&String, &usize)| cell.clone() + &" ".repeat(width - cell.width() + 2);
        format!("{}{}\n", row.iter().zip(&widths).map(padded).collect::<String>(), row[5])
    };
    rows.iter().map(line).collect()
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
    let counted = annotation(object, "deployment.kubernetes.io/revision").parse().ok();
    let number = counted.or_else(|| at(object, &["revision"]).and_then(Value::as_i64)).unwrap_or(0);
    let release = Release::parse(annotation(object, RELEASE));
    Line {
        number,
        revision: release.as_ref().map(|release| release.revision.clone()),
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
