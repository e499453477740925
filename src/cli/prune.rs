//! `rhumb prune`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::args::{PruneCommand, PruneConfirmArgs, PruneListOutput};
use super::object_argument::ObjectArgument;
use super::overview::clean_text;
use super::{CommandError, ExitStatus, Terminal, diff, orders, session};
use crate::cluster::{Cluster, InventoryObject};
use crate::config::{Config, DnsLabel};
use crate::engine::{MAX_CONFIRMED_PER_ORDER, PendingPrune, PruneTiming, confirmation_text};
use crate::object::{ErrorClass, ObjectId, count_text, verb_to_be};
use crate::render::{Palette, TextStyle};

use super::overview::{Cell, Row, align_rows};

/// A source's ConfigMap, with the source's name.
type NamedInventory = (String, InventoryObject);

/// The deletions of one source that are confirmed.
type SourceConfirmation = (String, Vec<PendingPrune>);

/// Carries the command out, for the source of this name, or for all.
pub(super) fn carry_out(
    command: &PruneCommand,
    config: Config,
    name: Option<&DnsLabel>,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    session::start_runtime()?.block_on(async {
        let cluster = session::connect(&config).await?;
        match command {
            PruneCommand::List(args) => {
                list(&read_inventories(&cluster, &config, name).await?, name, args.output, terminal)
            }
            PruneCommand::Confirm(args) => confirm(&cluster, &config, name, args, terminal).await,
        }
    })
}

/// Returns the inventory of the named source, or of all.
async fn read_inventories(
    cluster: &Cluster,
    config: &Config,
    name: Option<&DnsLabel>,
) -> Result<Vec<NamedInventory>, CommandError> {
    let Some(source) = name else {
        let mut all = cluster.list_inventories(&config.namespace).await?;
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        return Ok(all);
    };
    let inventory = cluster.read_inventory(&config.namespace, source.as_str()).await?.ok_or_else(|| {
        let message = format!("there is no source {source}: no ConfigMap {}/{source}", config.namespace);
        CommandError::new(ErrorClass::Config, message).hint("`rhumb status` shows the sources that there are")
    })?;
    Ok(vec![(source.as_str().to_owned(), inventory)])
}

/// Returns how many deletions wait in a source.
fn count_pending(inventory: &InventoryObject) -> usize {
    inventory.pending_prunes().len() + inventory.unlisted_prune_count()
}

/// Orders the deletions, each source by orders of its own, and returns what came of that.
async fn confirm(
    cluster: &Cluster,
    config: &Config,
    name: Option<&DnsLabel>,
    args: &PruneConfirmArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let inventories = read_inventories(cluster, config, name).await?;
    let chosen = match args.count {
        Some(expected) => vec![confirm_all(&inventories, expected)?],
        None => select_deletions(&inventories, &args.objects)?,
    };
    // The name is informational; the right to write there decides.
    let by = cluster.user().await.unwrap_or_default();
    let mut exit = ExitStatus::Done;
    for (source, deletions) in &chosen {
        for batch in deletions.chunks(MAX_CONFIRMED_PER_ORDER) {
            let (system, source) = (config.namespace.as_str(), source.as_str());
            let outcome = order(cluster, system, source, batch, &by).await?;
            if outcome.as_deref().is_some_and(orders::is_idle) {
                exit = ExitStatus::Differs;
            }
            let words = outcome.unwrap_or_else(|| unacknowledged_text(system, source, batch.len()));
            terminal.print(&format!("{}\n", clean_text(&words)))?;
        }
    }
    if args.count.is_some() {
        let left: usize = inventories.iter().map(|(_, inventory)| inventory.unlisted_prune_count()).sum();
        if left > 0 {
            terminal.print(&format!(
                "{left} more {} listed, and can be confirmed, once these are deleted\n",
                verb_to_be(left)
            ))?;
        }
    }
    Ok(exit)
}

/// Writes one order, and returns what came of it; none where nobody has taken note of it in time.
async fn order(
    cluster: &Cluster,
    system: &str,
    source: &str,
    deletions: &[PendingPrune],
    by: &str,
) -> Result<Option<String>, CommandError> {
    let Some(first) = deletions.first() else { return Ok(None) };
    let uids = deletions.iter().map(|pending| &pending.uid);
    let text = confirmation_text(&first.id, uids, by, Timestamp::now())
        .map_err(|error| CommandError::new(ErrorClass::Internal, error.to_string()))?;
    let token = orders::token();
    orders::give(cluster, system, source, &token, &text).await?;
    orders::answer(cluster, system, source, &token).await
}

/// Returns what is said of a confirmation that nobody has taken note of yet.
fn unacknowledged_text(system: &str, source: &str, count: usize) -> String {
    format!(
        "{count} confirmed in {}; `rhumb run` deletes them once it follows source {source}, `rhumb apply --prune` at its next pass",
        orders::object_text(system, source)
    )
}

/// Returns all that the list of one source shows, if exactly so many deletions wait there.
fn confirm_all(inventories: &[NamedInventory], expected: usize) -> Result<SourceConfirmation, CommandError> {
    let [(source, inventory)] = inventories else {
        return Err(CommandError::usage_error("--count is about one source").hint("name it with --source"));
    };
    let found = count_pending(inventory);
    if found != expected {
        let found = count_text(found, "pending deletion");
        let message = format!("source {source} has {found}, not {expected}: none is confirmed");
        return Err(CommandError::usage_error(message)
            .hint(format!("`rhumb prune list --source {source}` shows them")));
    }
    Ok((source.clone(), inventory.pending_prunes()))
}

fn list(
    inventories: &[NamedInventory],
    name: Option<&DnsLabel>,
    output: PruneListOutput,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let pending = InventoryObject::pending_prunes;
    let text = match output {
        PruneListOutput::Name => {
            let all = inventories.iter().flat_map(|(_, inventory)| pending(inventory));
            let line =
                |pending: PendingPrune| format!("{}\n", ObjectArgument::of(&pending.id).encoded_text());
            all.map(line).collect()
        }
        PruneListOutput::Text if name.is_some() => {
            let all = inventories.iter().flat_map(|(_, inventory)| pending(inventory));
            let line = |pending: PendingPrune| {
                let object = clean_text(&ObjectArgument::of(&pending.id).to_string());
                format!("{object}  {}\n", clean_text(&pending.reason))
            };
            all.map(line).collect()
        }
        PruneListOutput::Text => prunes_table(inventories, terminal.palette()),
    };
    match output {
        PruneListOutput::Name => terminal.write_output(&text)?,
        PruneListOutput::Text => terminal.print(&text)?,
    }
    for (source, inventory) in inventories {
        let closed: Vec<String> = inventory.unlisted_reason().map(str::to_owned).into_iter().collect();
        diff::print_notes(&closed, terminal);
        let left = inventory.unlisted_prune_count();
        if left > 0 {
            let (all, shown) = (count_pending(inventory), pending(inventory).len());
            terminal.report(&format!(
                "{shown} of {all} deletions of source {source} are shown; the others are once these are deleted\n\
                 hint: `rhumb prune confirm --source {source} --count {all}` confirms those that are shown\n"
            ));
        }
    }
    if inventories.iter().all(|(_, inventory)| count_pending(inventory) == 0) {
        terminal.report(&match name {
            Some(source) => format!("no pending deletions in source {source}\n"),
            None => "no pending deletions\n".to_owned(),
        });
    }
    Ok(ExitStatus::Done)
}

/// Returns all deletions, each with its source.
fn prunes_table(inventories: &[NamedInventory], palette: Palette) -> String {
    let row = |source: &str, pending: PendingPrune| {
        let object = ObjectArgument::of(&pending.id).to_string();
        Row { about: String::new(), cells: [source, &object, &pending.reason].map(Cell::plain_cell).into() }
    };
    let rows = inventories.iter().flat_map(|(source, inventory)| {
        inventory.pending_prunes().into_iter().map(|pending| row(source, pending)).collect::<Vec<_>>()
    });
    let mut rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["SOURCE", "OBJECT", "WHY"].map(|text| Cell::styled_cell(TextStyle::Faint, text));
    rows.insert(0, Row { about: String::new(), cells: head.into() });
    align_rows(&rows, palette).join("\n") + "\n"
}

/// Returns the deletions to confirm by name, for each source that has some.
fn select_deletions(
    inventories: &[NamedInventory],
    names: &[ObjectArgument],
) -> Result<Vec<SourceConfirmation>, CommandError> {
    let pending: Vec<Vec<PendingPrune>> =
        inventories.iter().map(|(_, inventory)| inventory.pending_prunes()).collect();
    let mut chosen: BTreeMap<&str, Vec<PendingPrune>> = BTreeMap::new();
    for wanted in names {
        let all =
            pending.iter().enumerate().flat_map(|(source, all)| all.iter().map(move |one| (source, one)));
        let found: Vec<(usize, &PendingPrune)> = all.filter(|(_, one)| is_meant(wanted, &one.id)).collect();
        match found[..] {
            [(source, one)] => {
                let of_source = chosen.entry(&inventories[source].0).or_default();
                if !of_source.contains(one) {
                    of_source.push(one.clone());
                }
            }
            [] => return Err(not_pending_error(inventories, wanted)),
            [..] => {
                return Err(CommandError::usage_error(format!(
                    "{wanted} is in more than one namespace or source"
                ))
                .hint("write its namespace before it (for example shop/configmap/env), and name --source"));
            }
        }
    }
    Ok(chosen.into_iter().map(|(source, deletions)| (source.to_owned(), deletions)).collect())
}

/// Returns the error of a name that no pending deletion has.
fn not_pending_error(inventories: &[NamedInventory], wanted: &ObjectArgument) -> CommandError {
    let is_kept = |inventory: &InventoryObject| {
        let kept = inventory.kept_objects().timings;
        kept.iter().any(|(id, kept)| kept.timing == PruneTiming::Never && is_meant(wanted, id))
    };
    if inventories.iter().any(|(_, inventory)| is_kept(inventory)) {
        let message = format!("{wanted} is kept, as an annotation of it asks: no confirmation deletes it");
        return CommandError::usage_error(message)
            .hint("`kubectl delete` deletes it once no source wants it");
    }
    CommandError::usage_error(format!("no pending deletion of {wanted}"))
        .hint("`rhumb prune list` shows the pending deletions")
}

/// Returns whether this object is meant. A namespace that is left out may be any, as long as only
/// one object fits.
fn is_meant(wanted: &ObjectArgument, id: &ObjectId) -> bool {
    let other = ObjectArgument::of(id);
    let namespace = wanted.namespace.is_none() || wanted.namespace == other.namespace;
    namespace && wanted.kind == other.kind && wanted.name == other.name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_inventory(source: &str, lines: &[&str], left: &str) -> NamedInventory {
        let list = lines.iter().flat_map(|line| [*line, "\n"]).collect();
        let mut data = std::collections::BTreeMap::from([("pending-prunes".to_owned(), list)]);
        if !left.is_empty() {
            data.insert("pending-prunes-left".to_owned(), left.to_owned());
        }
        (source.to_owned(), InventoryObject { data, ..InventoryObject::default() })
    }

    #[test]
    fn each_deletion_is_listed_with_its_source() {
        let all = [
            named_inventory("ops", &["u1 ConfigMap a/env because"], ""),
            named_inventory("shop", &["u2 Namespace /b so"], ""),
        ];
        let expected =
            "SOURCE  OBJECT           WHY\nops     a/configmap/env  because\nshop    namespace/b      so\n";
        assert_eq!(prunes_table(&all, Palette::Plain), expected);
        assert_eq!(prunes_table(&[named_inventory("ops", &[], "")], Palette::Plain), "");
    }

    #[test]
    fn all_are_confirmed_at_once_only_where_exactly_so_many_wait() {
        let check = |inventories: &[NamedInventory], count: usize, expected: Result<usize, &str>| {
            let found = confirm_all(inventories, count)
                .map(|(_, deletions)| deletions.len())
                .map_err(|error| error.to_string());
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|why| *why));
        };
        let shop =
            || named_inventory("shop", &["u1 ConfigMap a/env because", "u2 ConfigMap a/web because"], "");
        check(&[shop()], 2, Ok(2));
        check(&[shop()], 1, Err("source shop has 2 pending deletions, not 1: none is confirmed"));
        let more = named_inventory("shop", &["u1 ConfigMap a/env because"], "3");
        check(
            std::slice::from_ref(&more),
            1,
            Err("source shop has 4 pending deletions, not 1: none is confirmed"),
        );
        check(&[more], 4, Ok(1));
        check(&[shop(), named_inventory("ops", &[], "")], 2, Err("--count is about one source"));
    }

    #[test]
    fn what_is_named_is_confirmed_in_the_source_that_has_it() {
        let (mut ops, kept) =
            (named_inventory("ops", &["u1 ConfigMap a/env because"], ""), "kept".to_owned());
        ops.1.data.insert(kept, "never ConfigMap a/left\nconfirm ConfigMap a/asking\n".to_owned());
        let all = [ops, named_inventory("shop", &["u2 ConfigMap b/env so"], "")];
        let check = |name: &str, expected: Result<&[(&str, &str)], &str>| {
            let found = select_deletions(&all, &[name.parse().unwrap()]).map_err(|error| error.to_string());
            let found = found.map(|found| {
                let uids = |all: Vec<PendingPrune>| all.iter().map(|one| one.uid.to_string()).collect();
                found.into_iter().map(|(source, all)| (source, uids(all))).collect::<Vec<(_, String)>>()
            });
            let expected = expected.map(|all| {
                all.iter().map(|(source, uid)| ((*source).to_owned(), (*uid).to_owned())).collect::<Vec<_>>()
            });
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check("b/configmap/env", Ok(&[("shop", "u2")]));
        check("configmap/env", Err("configmap/env is in more than one namespace or source"));
        check("a/configmap/web", Err("no pending deletion of a/configmap/web"));
        check("a/configmap/asking", Err("no pending deletion of a/configmap/asking"));
        let left = "configmap/left is kept, as an annotation of it asks: no confirmation deletes it";
        check("configmap/left", Err(left));
    }
}
