//! `rhumb why`.

use super::args::{Global, WhyArgs};
use super::facts::Facts;
use super::overview::clean;
use super::settings;
use super::target::{Desk, Target};
use super::{CommandError, Exit, ObjectName, Terminal, rollout, session, survey};
use crate::config::Config;
use crate::daemon;
use crate::engine::{Plan, Planned, STARTED, Started, Verdict, changed_words, is_workload};
use crate::graph;
use crate::health;
use crate::object::ObjectId;
use crate::render;
use crate::report::ObjectStatus;

/// So many fields that differ are named.
const NAMED: usize = 3;

/// A key and what it is.
type Line = (&'static str, String);

/// Carries the command out. Whatever is wrong with the source, the cluster's own answer is told.
pub(super) fn carry_out(args: &WhyArgs, global: &Global, terminal: &Terminal) -> Result<Exit, CommandError> {
    let config = settings::explained(global, args);
    session::runtime()?.block_on(async {
        let desk = rollout::desk(global).await?;
        let found = found(&desk, &args.object).await?;
        let plan = match config {
            Ok(Some(config)) => Box::pin(planned(&desk, &found, config)).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let mut lines = match &found {
            Found::Managed(target) => shown(&desk, target).await?,
            Found::Recorded(_, told) => recorded(told),
        };
        if let Ok(Some(plan)) = &plan {
            lines.extend(asked(found.id(), plan));
        }
        terminal.print(&format!("{}\n", clean(&found.id().to_string())))?;
        for (key, value) in lines {
            terminal.print(&format!("  {key:<8} {}\n", clean(&value)))?;
        }
        if let Some(plan) = plan? {
            terminal.tell(&render::diagnostics(&plan.diagnostics, terminal.error_palette()));
        }
        Ok(Exit::Done)
    })
}

/// An object that somebody asks about.
enum Found {
    /// A source has it.
    Managed(Box<Target>),
    /// The record of a source alone names it: it is not there yet, or somebody else's.
    Recorded(ObjectId, ObjectStatus),
}

impl Found {
    fn id(&self) -> &ObjectId {
        match self {
            Self::Managed(target) => &target.id,
            Self::Recorded(id, _) => id,
        }
    }

    fn source(&self) -> &str {
        match self {
            Self::Managed(target) => &target.source,
            Self::Recorded(_, told) => &told.source,
        }
    }
}

async fn found(desk: &Desk, name: &ObjectName) -> Result<Found, CommandError> {
    match desk.target(name).await {
        Ok(target) => Ok(Found::Managed(Box::new(target))),
        Err(error) => {
            let (_, id) = desk.identity(name)?;
            match survey::recorded(desk, &id).await? {
                Some(told) => Ok(Found::Recorded(id, told)),
                None => Err(error),
            }
        }
    }
}

/// What a source's record says of it, which is all that is known.
fn recorded(told: &ObjectStatus) -> Vec<Line> {
    let mut lines = vec![("source", told.source.clone()), ("phase", told.phase.to_string())];
    lines.extend(told.reason.clone().map(|reason| ("because", reason)));
    lines
}

/// What the cluster says of it.
async fn shown(desk: &Desk, target: &Target) -> Result<Vec<Line>, CommandError> {
    let facts = Facts::read(desk, target).await?;
    let mut lines = vec![("source", target.source.clone())];
    match target.release() {
        Some(release) => {
            lines.push(("content", format!("{}, brought by revision {}", release.hash, release.revision)));
        }
        None => lines.push(("content", "not from a source".to_owned())),
    }
    let health = health::of_kind(&target.id.group_kind(), &target.object);
    let told = if health.message.is_empty() { String::new() } else { format!(": {}", health.message) };
    lines.push(("health", format!("{}{told}", health.status)));
    if is_workload(&target.id) {
        lines.push(("rollout", super::rollout_words::stand(&target.object).0));
        lines.push(("budget", facts.budget()));
        lines.extend(restarted(target).map(|words| ("restart", words)));
    }
    lines.push(("phase", facts.phase()));
    lines.extend(facts.waits().into_iter().map(|wait| ("because", wait)));
    Ok(lines)
}

/// What a source asks for, read as the one that manages the object.
async fn planned(desk: &Desk, found: &Found, mut config: Config) -> Result<Plan, CommandError> {
    for source in &mut config.sources {
        found.source().clone_into(&mut source.name);
    }
    let state = session::state(&config, &desk.cluster).await?;
    let setup = session::once(&session::only(&config)?, &state)?;
    Ok(Box::pin(daemon::preview_of(&desk.cluster, &desk.system, setup, found.id())).await?)
}

/// Where the object stands in the source, and whether that asks for something else than there is.
fn asked(id: &ObjectId, plan: &Plan) -> Vec<Line> {
    let planned = plan.objects.iter().find(|planned| planned.id == *id);
    let Some((planned, origin)) = planned.and_then(|planned| Some((planned, planned.origin.as_ref()?)))
    else {
        let unread = if plan.complete { "" } else { ", but it was not read whole" };
        return vec![("file", format!("SOURCE does not name it{unread}"))];
    };
    vec![("file", format!("{}:{}", origin.file, origin.line)), ("asks", difference(planned))]
}

fn difference(planned: &Planned) -> String {
    let because = planned.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match planned.verdict {
        Verdict::Unchanged => format!("for what there is{because}"),
        Verdict::Wait => format!("it cannot be told now{because}"),
        Verdict::Refuse => format!("for what is refused{because}"),
        Verdict::Recreate => format!("for it to be deleted and created again{because}"),
        Verdict::Create | Verdict::Configure | Verdict::Delete => {
            let mut paths: Vec<String> =
                planned.fields.iter().take(NAMED).map(|field| field.path.clone()).collect();
            match planned.fields.len().saturating_sub(NAMED) {
                0 => {}
                more => paths.push(format!("{more} more")),
            }
            let fields = if paths.is_empty() { String::new() } else { format!(" in {}", paths.join(", ")) };
            format!("for something else{fields}{because}")
        }
    }
}

/// Which change of data its pods were last restarted for, where they were.
fn restarted(target: &Target) -> Option<String> {
    let started: Started = target.annotation(STARTED).parse().ok()?;
    let uses: Vec<ObjectId> = graph::configuration(&target.id, &target.object).into_iter().collect();
    started.template()?;
    Some(format!("its pods were restarted, as the data of {} changed", changed_words(&uses, started)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{FieldChange, Impact, ImpactKind};
    use crate::object::{GroupKind, Gvk, Origin};

    fn planned(verdict: Verdict, fields: &[&str], reason: Option<&str>) -> Planned {
        Planned {
            id: ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web"),
            gvk: Gvk::new("apps", "v1", "Deployment"),
            origin: Some(Origin { file: "deploy/web.yaml".into(), line: 12, column: 1 }),
            wave: 0,
            verdict,
            impact: Impact { kind: ImpactKind::None, pods: 0 },
            fields: fields
                .iter()
                .map(|path| FieldChange { path: (*path).to_owned(), before: None, after: None })
                .collect(),
            reason: reason.map(str::to_owned),
            before: None,
            after: None,
        }
    }

    #[test]
    fn a_source_asks_for_what_there_is_or_for_something_else() {
        let check = |planned: &Planned, expected: &str| assert_eq!(difference(planned), expected);
        check(&planned(Verdict::Unchanged, &[], None), "for what there is");
        let few = planned(Verdict::Configure, &[".spec.replicas"], Some("somebody changed it"));
        check(&few, "for something else in .spec.replicas: somebody changed it");
        let many = planned(Verdict::Configure, &[".a", ".b", ".c", ".d", ".e"], None);
        check(&many, "for something else in .a, .b, .c, 2 more");
        check(&planned(Verdict::Refuse, &[], Some("no")), "for what is refused: no");
    }

    #[test]
    fn the_file_is_told_with_its_line_or_that_there_is_none() {
        let mut plan = Plan {
            source: "shop".to_owned(),
            revision: String::new(),
            complete: true,
            guarded: false,
            objects: vec![planned(Verdict::Unchanged, &[], None)],
            units: Vec::new(),
            diagnostics: Vec::new(),
            notes: Vec::new(),
        };
        let id = plan.objects[0].id.clone();
        assert_eq!(asked(&id, &plan)[0], ("file", "deploy/web.yaml:12".to_owned()));
        // What would be pruned is in the plan too, without a place.
        plan.objects[0].origin = None;
        assert_eq!(asked(&id, &plan), [("file", "SOURCE does not name it".to_owned())]);
        plan.objects.clear();
        plan.complete = false;
        let unread = "SOURCE does not name it, but it was not read whole";
        assert_eq!(asked(&id, &plan), [("file", unread.to_owned())]);
    }
}
