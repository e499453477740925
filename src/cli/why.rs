//! `rhumb why`.

use super::args::Global;
use super::facts::Facts;
use super::object_name::ObjectName;
use super::target::Target;
use super::{CommandError, Exit, Terminal, rollout, session};
use crate::engine::{STARTED, Started, changed_words, is_workload};
use crate::graph;
use crate::health;
use crate::object::ObjectId;

/// Carries the command out.
pub(super) fn carry_out(
    name: &ObjectName,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    session::runtime()?.block_on(async {
        let desk = rollout::desk(global).await?;
        let target = desk.target(name).await?;
        let facts = Facts::read(&desk, &target).await?;
        let mut lines = vec![("source", target.source.clone())];
        match target.release() {
            Some(release) => {
                lines
                    .push(("content", format!("{}, brought by revision {}", release.hash, release.revision)));
            }
            None => lines.push(("content", "not from a source".to_owned())),
        }
        let health = health::of_kind(&target.id.group_kind(), &target.object);
        let told = if health.message.is_empty() { String::new() } else { format!(": {}", health.message) };
        lines.push(("health", format!("{}{told}", health.status)));
        if is_workload(&target.id) {
            lines.push(("rollout", super::rollout_words::stand(&target.object).0));
            lines.push(("budget", facts.budget()));
            lines.extend(restarted(&target).map(|words| ("restart", words)));
        }
        lines.push(("phase", facts.phase().to_owned()));
        lines.extend(facts.waits().into_iter().map(|wait| ("because", wait)));
        terminal.print(&format!("{}\n", target.id))?;
        for (key, value) in lines {
            terminal.print(&format!("  {key:<8} {value}\n"))?;
        }
        Ok(Exit::Done)
    })
}

/// Which change of data its pods were last restarted for, where they were.
fn restarted(target: &Target) -> Option<String> {
    let started: Started = target.annotation(STARTED).parse().ok()?;
    let uses: Vec<ObjectId> = graph::configuration(&target.id, &target.object).into_iter().collect();
    started.template()?;
    Some(format!("its pods were restarted, as the data of {} changed", changed_words(&uses, started)))
}
