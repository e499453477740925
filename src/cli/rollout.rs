//! `rhumb rollout`, `rhumb hold` and `rhumb release`.

use crate::object::annotations;
use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::args::{GlobalArgs, HoldArgs, PromoteArgs, RolloutCommand, RolloutStatusArgs};
use super::facts::ClusterObjectFacts;
use super::object_argument::ObjectArgument;
use super::orders::{self, PersistedState};
use super::overview::clean_text;
use super::pass_progress::ProgressPauses;
use super::rollout_words::{RolloutState, rollout_state};
use super::target::ClusterSession;
use super::{CommandError, ExitStatus, Terminal, facts, history, session, settings};
use crate::cluster::{KindLookup, inventory_id_of};
use crate::config::DnsLabel;
use crate::engine::{ContentRef, RolloutOverlay, is_workload};
use crate::object::{GroupKind, ObjectId, PART_OF, text_at};

/// The polling interval of watched objects.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Opens the session that the flags mean.
pub(super) async fn open_session(global: &GlobalArgs) -> Result<ClusterSession, CommandError> {
    let named = global.name.as_ref().map(DnsLabel::to_string);
    let session = ClusterSession::open(
        &settings::connection_config(global),
        global.namespace.as_ref().map(DnsLabel::as_str),
    )
    .await?;
    Ok(session.with_source_hint(named))
}

/// Carries the command out.
pub(super) fn carry_out(
    command: &RolloutCommand,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    session::start_runtime()?.block_on(async {
        let session = open_session(global).await?;
        match command {
            RolloutCommand::Status(args) => status(&session, args, terminal).await,
            RolloutCommand::History(args) => history::print(&session, &args.object, terminal).await,
            RolloutCommand::Undo(args) => {
                let to = args.to_revision.as_deref().unwrap_or_default();
                orders::give_order(&session, &args.object, "undo", to, terminal).await
            }
            RolloutCommand::Retry(args) => {
                orders::give_order(&session, &args.object, "retry", "", terminal).await
            }
            RolloutCommand::Promote(args) => promote(&session, args, terminal).await,
            RolloutCommand::Abort(args) => {
                orders::give_order(&session, &args.object, "abort", "", terminal).await
            }
            RolloutCommand::Pause(args) => {
                orders::set(&session, &args.object, PersistedState::Paused, &args.reason, terminal).await
            }
            RolloutCommand::Resume(args) => {
                orders::end(&session, &args.object, PersistedState::Paused, terminal).await
            }
            RolloutCommand::Restart(args) => orders::restart(&session, &args.object, terminal).await,
        }
    })
}

/// Carries out `rhumb hold`.
pub(super) fn hold(
    args: &HoldArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let length = SignedDuration::try_from(args.time.get()).ok();
    let until = length.and_then(|length| Timestamp::now().checked_add(length).ok());
    let Some(until) = until else { return Err(CommandError::usage_error("--for is too long")) };
    let words = format!("until={} {}", until.strftime("%Y-%m-%dT%H:%M:%SZ"), args.reason);
    session::start_runtime()?.block_on(async {
        orders::set(&open_session(global).await?, &args.object, PersistedState::OnHold, &words, terminal)
            .await
    })
}

/// Carries out `rhumb release`.
pub(super) fn release(
    name: &ObjectArgument,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    session::start_runtime()?.block_on(async {
        orders::end(&open_session(global).await?, name, PersistedState::OnHold, terminal).await
    })
}

/// Names the step and the content that are meant: the order may be carried out much later.
async fn promote(
    session: &ClusterSession,
    args: &PromoteArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let target = session.find_object(&args.object).await?;
    let overlay = target.annotation_value(annotations::OVERLAY).parse::<RolloutOverlay>().ok();
    let release = ContentRef::parse(target.annotation_value(annotations::RELEASE));
    let (Some(step), Some(release)) = (overlay.and_then(RolloutOverlay::step), release) else {
        terminal.print(&format!("nothing to promote: {} has no step in progress\n", target.id))?;
        return Ok(ExitStatus::Differs);
    };
    let (verb, argument) = if args.full {
        ("promote-full", release.hash.to_string())
    } else {
        ("promote", format!("{} {step}", release.hash))
    };
    orders::give_order(session, &args.object, verb, &argument, terminal).await
}

async fn status(
    session: &ClusterSession,
    args: &RolloutStatusArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let mut printed = String::new();
    let mut pauses = ProgressPauses::start();
    loop {
        let (text, exit) = match &args.object {
            Some(name) => rollout_status(session, name).await?,
            None => all_rollouts(session).await?,
        };
        if text != printed {
            terminal.print(&text)?;
            printed = text;
        }
        if !args.watch || exit != RolloutState::InProgress {
            return Ok(if exit == RolloutState::Done { ExitStatus::Done } else { ExitStatus::Differs });
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = pauses.end() => terminal.report(&progress_line(&printed)),
            () = terminal.wait_until_closed() => return Err(CommandError::closed_output()),
        }
    }
}

/// Returns the line that stands for an unchanged state: its first one.
fn progress_line(text: &str) -> String {
    format!("progress: {}\n", text.lines().next().unwrap_or_default())
}

async fn rollout_status(
    session: &ClusterSession,
    name: &ObjectArgument,
) -> Result<(String, RolloutState), CommandError> {
    let target = session.find_object(name).await?;
    if !is_workload(&target.id) {
        return Err(CommandError::usage_error(format!("{} is not rolled out", target.id))
            .hint("name a Deployment, StatefulSet or DaemonSet; `rhumb why` takes any object"));
    }
    let facts = ClusterObjectFacts::read(session, &target).await?;
    let (words, state) = rollout_state(&target.object);
    let waits = facts.queue_entry().is_some() && state == RolloutState::Done;
    // A rollout of the content before is not an answer.
    let first = (!waits).then_some(words);
    let reasons = facts.wait_reasons().into_iter().map(|found| found.reason);
    let lines = first.into_iter().chain(reasons).chain([facts.budget_text()]);
    let lines: Vec<String> = lines.map(|line| clean_text(&line)).collect();
    let text = format!("{}\n", lines.join("\n  "));
    let progress = match state {
        RolloutState::Done if waits => RolloutState::InProgress,
        state => state,
    };
    Ok((text, progress))
}

/// Returns all workloads of all sources that are not rolled out.
async fn all_rollouts(session: &ClusterSession) -> Result<(String, RolloutState), CommandError> {
    let mut lines = Vec::new();
    let mut states = Vec::new();
    let (mut inventory_ids, mut at_rest) = (BTreeSet::new(), BTreeSet::new());
    for (source, _) in session.cluster.list_inventories(&session.inventory_namespace).await? {
        let set = inventory_id_of(&session.inventory_namespace, &source);
        inventory_ids.insert(set.clone());
        for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
            let group_kind = GroupKind::new("apps", kind);
            let KindLookup::Served(kind) = session.kinds.preferred_kind(&group_kind) else { continue };
            for mut object in session.cluster.objects(&kind, None, &format!("{PART_OF}={set}")).await? {
                // Items of a list do not name their kind.
                object["kind"] = (&*group_kind.kind).into();
                let (words, state) = rollout_state(&object);
                let text = |key| text_at(&object, &["metadata", key]);
                let id = ObjectId::new(&group_kind, Some(text("namespace")), text("name"));
                if state == RolloutState::Done {
                    at_rest.insert(id);
                    continue;
                }
                lines.push(format!("{}: {words}\n", ObjectArgument::of(&id)));
                states.push(state);
            }
        }
    }
    let (ledger, unreadable) = facts::read_ledger(session).await?;
    let ledger = facts::without_ended_claims(ledger, &at_rest);
    let queue = facts::queue_lines(&ledger, &inventory_ids);
    if lines.is_empty() {
        lines.push("no workload is being rolled out\n".to_owned());
    }
    if !queue.is_empty() {
        states.push(RolloutState::InProgress);
    }
    lines.extend(queue.iter().map(|line| format!("{}\n", clean_text(line))));
    lines.extend(unreadable.iter().map(|why| format!("rollout budget: {}\n", clean_text(why))));
    if unreadable.is_none() || !ledger.unreadable_claims.is_empty() {
        lines.push(format!("{}\n", facts::budget_words(&ledger)));
    }
    let progress = if states.contains(&RolloutState::InProgress) {
        RolloutState::InProgress
    } else if states.is_empty() {
        RolloutState::Done
    } else {
        RolloutState::Failed
    };
    Ok((lines.concat(), progress))
}
