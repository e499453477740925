//! `rhumb prune`.

use std::collections::BTreeSet;

use super::args::{ListOutput, PruneCommand};
use super::object_name::ObjectName;
use super::overview::clean;
use super::{CommandError, Exit, Terminal, diff, session};
use crate::cluster::{Cluster, Fault, Parent};
use crate::config::{Config, Name};
use crate::daemon::{self, PendingPrune};
use crate::engine::Uid;
use crate::object::{Class, ObjectId};

/// So often a confirmation is written again because somebody else wrote in between.
const TRIES: u32 = 10;

/// Carries the command out, for the source of this name.
pub(super) fn carry_out(
    command: &PruneCommand,
    config: Config,
    source: &Name,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    session::runtime()?.block_on(async {
        let cluster = session::connect(&config).await?;
        match command {
            PruneCommand::List(args) => {
                list(&parent(&cluster, &config, source).await?, source, args.output, terminal)
            }
            PruneCommand::Confirm(args) => {
                let count = confirm(&cluster, &config, source, &args.objects).await?;
                terminal.print(&format!("{count} confirmed; `rhumb run` deletes them in some seconds, `rhumb apply --prune` at its next pass\n"))?;
                Ok(Exit::Done)
            }
        }
    })
}

async fn parent(cluster: &Cluster, config: &Config, source: &Name) -> Result<Parent, CommandError> {
    cluster.parent(&config.namespace, source.as_str()).await?.ok_or_else(|| {
        let message = format!("there is no source {source}: no ConfigMap {}/{source}", config.namespace);
        CommandError::new(Class::Config, message).hint("name the source with --name")
    })
}

/// Confirms on the newest state: a daemon may write the same ConfigMap at any moment.
async fn confirm(
    cluster: &Cluster,
    config: &Config,
    source: &Name,
    names: &[ObjectName],
) -> Result<usize, CommandError> {
    let mut tries = 0;
    loop {
        let before = parent(cluster, config, source).await?;
        let uids = chosen(&before, names)?;
        let after = daemon::confirmed(&before, &uids);
        tries += 1;
        match cluster.save_parent(&config.namespace, source.as_str(), Some(&before), &after).await {
            Err(error) if *error.fault() == Fault::Stale && tries < TRIES => {}
            saved => return saved.map(|_| uids.len()).map_err(CommandError::from),
        }
    }
}

fn list(
    parent: &Parent,
    source: &Name,
    output: ListOutput,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    let pending = daemon::pending_prunes(parent);
    let text: String = pending
        .iter()
        .map(|pending| match output {
            ListOutput::Name => format!("{}\n", ObjectName::of(&pending.id).word()),
            ListOutput::Text => {
                format!("{}  {}\n", clean(&ObjectName::of(&pending.id).to_string()), clean(&pending.reason))
            }
        })
        .collect();
    match output {
        ListOutput::Name => terminal.hand_over(&text)?,
        ListOutput::Text => terminal.print(&text)?,
    }
    diff::notes(&daemon::unlisted(parent).into_iter().collect::<Vec<_>>(), terminal);
    if pending.is_empty() {
        terminal.tell(&format!("no deletion waits for a confirmation in source {source}\n"));
    }
    Ok(Exit::Done)
}

fn chosen(parent: &Parent, names: &[ObjectName]) -> Result<BTreeSet<Uid>, CommandError> {
    let pending = daemon::pending_prunes(parent);
    let mut uids = BTreeSet::new();
    for wanted in names {
        let found: Vec<&PendingPrune> =
            pending.iter().filter(|pending| is_meant(wanted, &pending.id)).collect();
        match found[..] {
            [one] => drop(uids.insert(one.uid.clone())),
            [] => {
                return Err(CommandError::usage(format!("no deletion of {wanted} waits for a confirmation"))
                    .hint("`rhumb prune list` shows those that do"));
            }
            [..] => {
                return Err(CommandError::usage(format!("{wanted} is in more than one namespace"))
                    .hint("write its namespace before it: shop/configmap/env"));
            }
        }
    }
    Ok(uids)
}

/// A namespace that is left out may be any, as long as only one object is meant.
fn is_meant(wanted: &ObjectName, id: &ObjectId) -> bool {
    let other = ObjectName::of(id);
    let namespace = wanted.namespace.is_none() || wanted.namespace == other.namespace;
    namespace && wanted.kind == other.kind && wanted.name == other.name
}
