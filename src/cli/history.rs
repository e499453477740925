//! `rhumb rollout history`.

use crate::object::annotations;
use jiff::Timestamp;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::object_argument::ObjectArgument;
use super::overview::clean_text;
use super::target::{ClusterSession, ManagedObject};
use super::{CommandError, ExitStatus, Terminal, facts};
use crate::cluster::{FieldOwners, KindLookup, inventory_id_of};
use crate::engine::{Acknowledgement, Authorship, ContentRef, HashCiphers, RollbackTarget, is_workload};
use crate::fields;
use crate::object::{GroupKind, Revision, annotation_text, text_at, value_at};

/// One pod template of a workload, as Kubernetes numbers and keeps it.
#[derive(Default)]
struct HistoryLine {
    /// The number that kubectl calls the revision.
    number: i64,
    /// The commit that brought it.
    revision: Option<Revision>,
    when: String,
    hash: String,
    /// The pod template without the annotations that restart pods.
    pods: Value,
    author: TemplateAuthor,
}

/// The author of a pod template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TemplateAuthor {
    /// The commit that its annotation names, which controllers copy from the workload.
    #[default]
    Commit,
    /// Somebody else, while that annotation was on the workload.
    Other,
}

/// Prints the pod templates that a workload had, the newest first.
pub(super) async fn print(
    session: &ClusterSession,
    name: &ObjectArgument,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let target = session.find_object(name).await?;
    if !is_workload(&target.id) {
        let message = format!("{} has no rollout history", target.id);
        return Err(CommandError::usage_error(message).hint("name a Deployment, StatefulSet or DaemonSet"));
    }
    let mut lines = lines(session, &target).await?;
    lines.sort_by_key(|line| std::cmp::Reverse(line.number));
    clear_foreign_commits(&mut lines, TemplateOwner::of(&target.object));
    let (ledger, _) = facts::read_ledger(session).await?;
    let heads = ["NUMBER", "COMMIT", "AUTHOR", "SUBJECT", "SINCE", "OUTCOME"].map(str::to_owned);
    let inventory_id = inventory_id_of(&session.inventory_namespace, &target.source);
    let outcomes = TemplateOutcomes::of(&target, &lines);
    let rows = lines.iter().enumerate().map(|(index, line)| {
        let authored =
            line.revision.as_ref().and_then(|revision| ledger.any_author(&inventory_id, revision).cloned());
        let authored = authored.unwrap_or_else(|| Authorship::of("-", "-"));
        let commit = line.revision.as_ref().map_or("-", |revision| revision.short_name());
        let cells = [&line.number.to_string(), commit, &authored.author, &authored.subject, &line.when];
        let [number, commit, author, subject, when] = cells.map(clean_text);
        [number, commit, author, subject, when, clean_text(&outcomes.outcome(index, line))]
    });
    let rows: Vec<[String; 6]> = std::iter::once(heads).chain(rows).collect();
    terminal.print(&format_columns(&rows))?;
    for line in past_orders(&target) {
        terminal.print(&format!("{}\n", clean_text(&line)))?;
    }
    Ok(ExitStatus::Done)
}

/// Returns the remembered orders for an object, each with the time that its token begins with.
fn past_orders(target: &ManagedObject) -> Vec<String> {
    let words = format!("{} ", target.id);
    let acknowledgements = target.inventory.acknowledgements();
    let matching = acknowledgements.iter().filter(|one| format!("{} ", one.outcome).contains(&words));
    let line = |one: &Acknowledgement| {
        let begun = one.token.split('-').next().and_then(|millis| millis.parse().ok());
        let begun = begun.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        let begun = begun.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ ").to_string());
        format!("{}{}", begun.unwrap_or_default(), one.outcome)
    };
    matching.map(line).collect()
}

/// Formats rows as columns, all but the last padded to the width of their longest cell.
fn format_columns(rows: &[[String; 6]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 6]| {
        let padded = |(cell, width): (&String, &usize)| cell.clone() + &" ".repeat(width - cell.width() + 2);
        format!("{}{}\n", row.iter().zip(&widths).map(padded).collect::<String>(), row[5])
    };
    rows.iter().map(line).collect()
}

async fn lines(session: &ClusterSession, target: &ManagedObject) -> Result<Vec<HistoryLine>, CommandError> {
    let kind = if target.id.kind() == "Deployment" { "ReplicaSet" } else { "ControllerRevision" };
    let KindLookup::Served(kind) = session.kinds.preferred_kind(&GroupKind::new("apps", kind)) else {
        return Ok(Vec::new());
    };
    let labels = value_at(&target.object, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    let selector: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let all = session.cluster.objects(&kind, target.id.namespace(), &selector.join(",")).await?;
    let uid = text_at(&target.object, &["metadata", "uid"]);
    let owned = |object: &&Value| {
        let owners = value_at(object, &["metadata", "ownerReferences"]).and_then(Value::as_array);
        owners.is_some_and(|owners| owners.iter().any(|owner| text_at(owner, &["uid"]) == uid))
    };
    Ok(all.iter().filter(owned).map(line).collect())
}

/// Clears the commit of each template that it did not bring: controllers copy its annotation to
/// whatever others make of the workload.
///
/// Of several templates with the hash of one content, the newest is the one that rhumb wrote. Where
/// others have changed the workload since, it is the one before. A template with other pods than
/// that one is the work of others.
fn clear_foreign_commits(lines: &mut [HistoryLine], template: TemplateOwner) {
    let mut contents: Vec<&str> =
        lines.iter().map(|line| &*line.hash).filter(|hash| !hash.is_empty()).collect();
    contents.sort_unstable();
    contents.dedup();
    let contents: Vec<String> = contents.into_iter().map(str::to_owned).collect();
    for content in contents {
        let is_present = lines.first().is_some_and(|line| line.hash == content);
        let put_back = usize::from(is_present && template == TemplateOwner::Foreign);
        let of_content = |line: &&HistoryLine| line.hash == content;
        let Some(own) = lines.iter().filter(of_content).nth(put_back) else { continue };
        let own = own.pods.clone();
        for line in lines.iter_mut().filter(|line| line.hash == content && line.pods != own) {
            (line.revision, line.author) = (None, TemplateAuthor::Other);
        }
    }
}

/// The owner of a workload's pod template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateOwner {
    Rhumb,
    /// Somebody else has changed something of it, and it is not put back.
    Foreign,
}

impl TemplateOwner {
    fn of(object: &Value) -> Self {
        let others = FieldOwners::of(object).others;
        let owns = |entry: &String| fields::owns(entry, &["spec", "template", "spec"]);
        if others.iter().any(owns) { Self::Foreign } else { Self::Rhumb }
    }
}

fn line(object: &Value) -> HistoryLine {
    let counted = annotation_text(object, "deployment.kubernetes.io/revision").parse().ok();
    let number = counted.or_else(|| value_at(object, &["revision"]).and_then(Value::as_i64)).unwrap_or(0);
    let release = ContentRef::parse(annotation_text(object, annotations::RELEASE));
    let template =
        value_at(object, &["spec", "template"]).or_else(|| value_at(object, &["data", "spec", "template"]));
    HistoryLine {
        number,
        pods: template.and_then(|template| template.get("spec")).cloned().unwrap_or_default(),
        author: TemplateAuthor::Commit,
        revision: release.as_ref().map(|release| release.revision.clone()),
        when: text_at(object, &["metadata", "creationTimestamp"]).to_owned(),
        hash: release.map(|release| release.hash.to_string()).unwrap_or_default(),
    }
}

/// The facts that say what became of the templates of a workload.
struct TemplateOutcomes {
    /// The rejection of the workload's content.
    rejection: Option<TemplateRejection>,
    /// The place of the template that is in force, and of the rejected one.
    in_force: Option<usize>,
    rejected: Option<usize>,
}

/// The rejection of one content of a workload.
struct TemplateRejection {
    cause: String,
    /// The hash of the content.
    content: String,
    /// The revision of another source that is gone back to.
    former: Option<Revision>,
}

impl TemplateOutcomes {
    fn of(target: &ManagedObject, lines: &[HistoryLine]) -> Self {
        let rejections = target.inventory.rejections(&HashCiphers::default());
        let rejection = rejections.iter().find_map(|rejection| {
            let member = rejection.unit.members.get(&target.id)?;
            let former = match &member.rollback_target {
                RollbackTarget::FormerContent { content, .. } => Some(content.revision.clone()),
                _ => None,
            };
            let (cause, content) = (rejection.cause.to_string(), member.content?.to_string());
            Some(TemplateRejection { cause, content, former })
        });
        let shown = target.content_ref().map(|release| release.hash.to_string());
        let pods = value_at(&target.object, &["spec", "template", "spec"]).cloned().unwrap_or_default();
        Self::find(rejection, shown.as_deref(), &pods, lines)
    }

    /// Finds the templates that are in force and rejected, the newest of all being the first.
    ///
    /// The hash of a content is another one in each inventory, and controllers may keep that of the
    /// source that brought the template first. So the newest template is the live one by its pods.
    /// Where the workload went back to the content of another source, the last template before it
    /// is the rejected one.
    fn find(
        rejection: Option<TemplateRejection>,
        shown: Option<&str>,
        pods: &Value,
        lines: &[HistoryLine],
    ) -> Self {
        let is_live = |line: &HistoryLine| shown == Some(&*line.hash) || line.pods == *pods;
        let is_released =
            |line: &&HistoryLine| !line.hash.is_empty() && line.author == TemplateAuthor::Commit;
        let in_force = lines.first().filter(is_released).filter(|line| shown.is_some() && is_live(line));
        let in_force = in_force.map(|_| 0);
        let rejected = rejection.as_ref().and_then(|rejection| {
            let is_it = |line: &HistoryLine| line.hash == rejection.content;
            let is_shown = shown == Some(&*rejection.content);
            let by_hash = in_force.filter(|_| is_shown).or_else(|| lines.iter().position(is_it));
            let before = || {
                let former = rejection.former.as_ref()?;
                let index = lines.iter().skip(1).position(|line| is_released(&line))? + 1;
                let line = lines.get(index)?;
                (in_force.is_some() && line.revision.as_ref() != Some(former)).then_some(index)
            };
            by_hash.or_else(before)
        });
        Self { rejection, in_force, rejected }
    }

    fn outcome(&self, index: usize, line: &HistoryLine) -> String {
        if line.author == TemplateAuthor::Other {
            return "changed by somebody else".to_owned();
        }
        let is_rejected =
            |rejection: &&TemplateRejection| self.rejected == Some(index) || rejection.content == line.hash;
        match self.rejection.as_ref().filter(is_rejected) {
            Some(rejection) => rejection.cause.clone(),
            None if self.in_force == Some(index) => "in force".to_owned(),
            None if line.hash.is_empty() => "not from a source".to_owned(),
            None => "replaced".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_somebody_else_is_no_commits() {
        #[track_caller]
        fn check(template: TemplateOwner, shown: &[(i64, &str, &str)], expected: &[i64]) {
            let line = |(number, hash, image): &(i64, &str, &str)| HistoryLine {
                number: *number,
                revision: Some(Revision::new("1a2b")),
                hash: (*hash).to_owned(),
                pods: json!({ "containers": [{ "image": image }] }),
                ..HistoryLine::default()
            };
            let mut lines: Vec<HistoryLine> = shown.iter().map(line).collect();
            clear_foreign_commits(&mut lines, template);
            let others: Vec<i64> = lines
                .iter()
                .filter(|line| line.author == TemplateAuthor::Other)
                .map(|line| line.number)
                .collect();
            assert_eq!(others, expected);
            assert!(
                lines.iter().all(|line| line.revision.is_none() == (line.author == TemplateAuthor::Other))
            );
        }
        // The newest first; a restart changes nothing but an annotation.
        let put_back =
            [(5, "b", "app:2"), (4, "b", "app:2"), (3, "b", "theirs"), (2, "a", "app:1"), (1, "", "first")];
        check(TemplateOwner::Rhumb, &put_back, &[3]);
        check(TemplateOwner::Rhumb, &[(3, "a", "app:1"), (2, "", "x"), (1, "", "y")], &[]);
        // On hold it stays, and what was put back before it is what the commit has.
        let revisions = [(4, "b", "theirs"), (3, "b", "app:2"), (2, "b", "theirs before"), (1, "a", "app:1")];
        check(TemplateOwner::Foreign, &revisions, &[4, 2]);
        check(TemplateOwner::Foreign, &[(2, "b", "app:2"), (1, "a", "app:1")], &[]);
    }

    #[test]
    fn a_template_is_known_by_its_pods_where_another_source_brought_it() {
        #[track_caller]
        fn check(rejected: Option<(&str, Option<&str>)>, shown: (&str, &str), expected: [&str; 3]) {
            let line = |(number, hash, revision): (i64, &str, &str)| HistoryLine {
                number,
                revision: Some(Revision::new(revision)),
                hash: hash.to_owned(),
                pods: json!({ "image": revision }),
                ..HistoryLine::default()
            };
            let lines: Vec<HistoryLine> =
                [(4, "a1", "r1"), (3, "a2", "r2"), (2, "a0", "r0")].into_iter().map(line).collect();
            let rejection = rejected.map(|(content, former)| TemplateRejection {
                cause: "it failed".to_owned(),
                content: content.to_owned(),
                former: former.map(Revision::new),
            });
            let (hash, image) = shown;
            let pods = json!({ "image": image });
            let outcomes = TemplateOutcomes::find(rejection, Some(hash), &pods, &lines);
            let found: Vec<String> =
                lines.iter().enumerate().map(|(index, line)| outcomes.outcome(index, line)).collect();
            assert_eq!(found, expected);
        }
        check(None, ("a1", "r1"), ["in force", "replaced", "replaced"]);
        check(Some(("a2", None)), ("a1", "r1"), ["in force", "it failed", "replaced"]);
        // Another source has it: its hashes are other ones.
        check(None, ("b1", "r1"), ["in force", "replaced", "replaced"]);
        check(Some(("b2", Some("r1"))), ("b1", "r1"), ["in force", "it failed", "replaced"]);
        check(Some(("b1", Some("r1"))), ("b1", "r1"), ["it failed", "replaced", "replaced"]);
        // The template before is not the one that failed.
        check(Some(("b2", Some("r2"))), ("b1", "r1"), ["in force", "replaced", "replaced"]);
        check(Some(("b2", Some("r1"))), ("b3", "r3"), ["replaced", "replaced", "replaced"]);
    }
}
