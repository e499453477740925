//! `rhumb prune`.

use std::collections::BTreeSet;

use super::args::{ListOutput, PruneCommand};
use super::object_name::ObjectName;
use super::{CommandError, Exit, Terminal, diff, session};
use crate::cluster::Parent;
use crate::config::{Config, Name};
use crate::daemon::{self, PendingPrune};
use crate::engine::Uid;
use crate::object::{Class, ObjectId};

/// Carries the command out, for the source of this name.
pub(super) fn carry_out(
    command: &PruneCommand,
    config: Config,
    source: &Name,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    session::runtime()?.block_on(async {
        let cluster = session::connect(&config).await?;
        let Some(parent) = cluster.parent(&config.namespace, source.as_str()).await? else {
            let message = format!("there is no source {source}: no ConfigMap {}/{source}", config.namespace);
            return Err(CommandError::new(Class::Config, message).hint("name the source with --name"));
        };
        match command {
            PruneCommand::List(args) => list(&parent, source, args.output, terminal),
            PruneCommand::Confirm(args) => {
                let uids = chosen(&parent, &args.objects)?;
                let count = uids.len();
                let after = daemon::confirmed(&parent, &uids);
                cluster.save_parent(&config.namespace, source.as_str(), Some(&parent), &after).await?;
                terminal.print(&format!("{count} confirmed; `rhumb run` deletes them in some seconds, `rhumb apply --prune` at its next pass\n"))?;
                Ok(Exit::Done)
            }
        }
    })
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
            ListOutput::Name => format!("{}\n", ObjectName::of(&pending.id)),
            ListOutput::Text => format!("{}  {}\n", ObjectName::of(&pending.id), pending.reason),
        })
        .collect();
    terminal.print(&text)?;
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
