//! `rhumb uninstall`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::args::UninstallArgs;
use super::left_steps::left_step_text;
use super::object_argument::ObjectArgument;
use super::overview::clean_text;
use super::pass_progress::{PassProgress, ProgressPauses};
use super::source_objects::list_members;
use super::terminal::Confirmation;
use super::{CommandError, ExitStatus, Terminal, apply, orders, session};
use crate::cluster::{
    self, Cluster, ClusterFault, InventoryObject, KindLookup, KindTable, LEDGER_NAME, inventory_id_of,
    orders_name,
};
use crate::config::{CONFIG_API_VERSION, Config, DnsLabel, SOURCE_FINALIZER, SourceConfig, custom_path};
use crate::daemon::{OtherRequests, Reconciler, RunMode, SOURCE_LEASE_PREFIX};
use crate::engine::{
    AllowList, CONFIG_KEY_SECRET_NAME, KeptObjects, LiveObject, ObjectOwner, PruneTiming, ReleaseKey,
    ResourceVersion, RolloutOverlayState, SERVING_PROBE_NAME, Uid,
};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId, PART_OF, count_text, text_at};
use crate::report::{ObjectEvent, RemainingObjects};

/// The time limit for deletions: finalizers take their time.
const DELETION_TIMEOUT: Duration = Duration::from_mins(5);

/// The time within which a process that serves a source answers.
const SERVING_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The maximum number of objects of kind `Source` in a hint.
const MAX_HINTED_SOURCES: usize = 10;

/// Carries the command out, for the source that is named, also by `--source`, or for all.
pub(super) fn carry_out(
    args: &UninstallArgs,
    name: Option<&DnsLabel>,
    config: &Config,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let source = args.source.as_ref().or(name);
    session::start_runtime()?.block_on(async {
        let cluster = session::connect(config).await?;
        let kinds = cluster.discover().await?;
        Uninstallation { args, source, config, cluster, kinds, terminal }.carry_out().await
    })
}

/// One object of a source that may go.
struct RemovableObject {
    id: ObjectId,
    uid: Uid,
    stay: Option<KeepReason>,
    /// The overlay of its rollout, as the cluster shows it.
    shown: RolloutOverlayState,
}

/// The reason for which an object stays whose source goes.
#[derive(Clone, PartialEq, Eq)]
enum KeepReason {
    /// An annotation asks for it.
    Asked,
    /// It has the label of the source, and no seal that proves who made it.
    Unproven,
    /// This other source requests it, be it served now or not.
    Requested(Arc<str>),
}

/// The facts that keep objects where they are.
struct KeepRules {
    /// The objects that each inventory keeps.
    kept: Vec<KeptObjects>,
    /// The objects that other sources request.
    requests: OtherRequests,
    key: Option<ReleaseKey>,
}

impl KeepReason {
    /// Returns the reason to leave an object where it is. The record in the inventory counts beside
    /// the object, which others may have changed.
    fn of(live: &LiveObject, set: &str, id: &ObjectId, keepers: &KeepRules) -> Option<Self> {
        let recorded = keepers.kept.iter().map(|kept| kept.timing(id));
        let timing = recorded.fold(live.prune_timing, PruneTiming::strictest);
        let annotation = live.unproven_release.as_deref();
        // Without a key nothing was ever sealed: the label alone counts.
        let sealed = match &keepers.key {
            None => Some(PruneTiming::AfterUnit),
            Some(key) => annotation
                .and_then(|annotation| key.proven_facts(set, id, annotation).map(|facts| facts.timing)),
        };
        match sealed.map(|sealed| timing.strictest(sealed)) {
            Some(PruneTiming::Never) => Some(Self::Asked),
            Some(_) => keepers.requests.requester(id).map(Self::Requested),
            None if timing == PruneTiming::Never => Some(Self::Asked),
            None => Some(Self::Unproven),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Asked => "  (stays, as its annotation asks)".to_owned(),
            Self::Unproven => "  (stays, as nothing proves that rhumb made it)".to_owned(),
            Self::Requested(source) => format!("  (stays, as source {source} wants it)"),
        }
    }
}

/// The namespaces of an inventory, where its objects may not be listed in the whole cluster.
type InventoryNamespaces = Option<BTreeSet<Arc<str>>>;

/// A source with what it has.
struct InstalledSource {
    name: DnsLabel,
    members: Vec<RemovableObject>,
    watched_namespaces: InventoryNamespaces,
    /// The kinds that its inventory names.
    kinds: BTreeSet<GroupKind>,
}

impl InstalledSource {
    fn removable_objects(&self) -> impl Iterator<Item = &RemovableObject> {
        self.members.iter().filter(|member| member.stay.is_none())
    }
}

struct Uninstallation<'a> {
    args: &'a UninstallArgs,
    /// The only one that ends; all do where there is none.
    source: Option<&'a DnsLabel>,
    config: &'a Config,
    cluster: Cluster,
    kinds: KindTable,
    terminal: &'a Terminal,
}

impl Uninstallation<'_> {
    async fn carry_out(&self) -> Result<ExitStatus, CommandError> {
        let holders = self.installed_sources().await?;
        self.terminal.print(&self.list_text(&holders))?;
        if self.args.dry_run {
            return Ok(ExitStatus::Done);
        }
        let names: Vec<&DnsLabel> = holders.iter().map(|holder| &holder.name).collect();
        self.refuse_where_declared().await?;
        if let Some(refusal) = self.confirmation_exit(&holders)? {
            return Ok(refusal);
        }
        self.refuse_where_served(&names).await?;
        let mut is_complete = true;
        for holder in &holders {
            let done = !self.args.delete_objects || self.delete_objects(holder).await?;
            if done {
                self.delete_records(&holder.name).await?;
            }
            is_complete &= done;
        }
        if is_complete && self.source.is_none() {
            self.forget_shared().await?;
        }
        Ok(if is_complete { ExitStatus::Done } else { ExitStatus::Differs })
    }

    /// Returns the sources that are meant, each with its objects as its inventory and their labels
    /// name them.
    async fn installed_sources(&self) -> Result<Vec<InstalledSource>, CommandError> {
        let namespace = &self.config.namespace;
        let inventories = self.cluster.read_inventories(namespace).await?;
        if let Some(name) = self.source.filter(|name| inventories.iter().all(|(of, _)| of != name.as_str())) {
            let missing = format!("there is no source {name}: no ConfigMap {namespace}/{name}");
            let hint = "`rhumb status` shows the sources that there are";
            return Err(CommandError::usage_error(missing).hint(hint));
        }
        // An object may carry the label of another source than the one that keeps it.
        let is_meant = |name: &str| self.source.is_none_or(|selected| selected.as_str() == name);
        let keepers = KeepRules {
            kept: inventories.iter().map(|(_, one)| one.kept_objects()).collect(),
            requests: OtherRequests::of_other_sources(namespace, &inventories, is_meant),
            // Without the key all count as proven here. The deletions themselves prove each again.
            key: self.cluster.read_release_key(namespace).await.ok().flatten(),
        };
        let mut holders = Vec::new();
        for (name, inventory) in inventories.into_iter().filter(|(name, _)| is_meant(name)) {
            // No source has a name that is not a DNS label.
            let Ok(name) = name.parse::<DnsLabel>() else { continue };
            let (members, watched_namespaces) = self.members(&name, &inventory, &keepers).await?;
            holders.push(InstalledSource { name, members, watched_namespaces, kinds: inventory.kinds });
        }
        holders.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(holders)
    }

    async fn members(
        &self,
        name: &DnsLabel,
        inventory: &InventoryObject,
        keepers: &KeepRules,
    ) -> Result<(Vec<RemovableObject>, InventoryNamespaces), CommandError> {
        let set: Arc<str> = inventory_id_of(&self.config.namespace, name.as_str()).into();
        let (mut members, mut watched_namespaces) = (Vec::new(), None);
        for group_kind in &inventory.kinds {
            let KindLookup::Served(kind) = self.kinds.preferred_kind(group_kind) else { continue };
            let listed = list_members(&self.cluster, &kind, &set, inventory).await?;
            if listed.is_by_namespace {
                watched_namespaces =
                    Some(inventory.namespaces.iter().map(|name| name.as_str().into()).collect());
            }
            for (id, live) in listed.objects {
                if matches!(&live.owner, ObjectOwner::Ours(of) if *of == set) {
                    let stay = KeepReason::of(&live, &set, &id, keepers);
                    members.push(RemovableObject { id, uid: live.uid, stay, shown: live.overlay });
                }
            }
        }
        members.sort_by(|one, other| one.id.cmp(&other.id));
        Ok((members, watched_namespaces))
    }

    fn list_text(&self, holders: &[InstalledSource]) -> String {
        let mut text = String::new();
        for InstalledSource { name, members, .. } in holders {
            if self.args.delete_objects {
                let _ =
                    writeln!(text, "source {name} is removed, with {}:", count_text(members.len(), "object"));
                for member in members {
                    let kept = member.stay.as_ref().map(KeepReason::text).unwrap_or_default();
                    let object = ObjectArgument::of(&member.id).to_string();
                    let _ = writeln!(text, "  {}", clean_text(&format!("{object}{kept}")));
                }
            } else {
                let _ = writeln!(
                    text,
                    "source {name} is removed; its {} stay as they are",
                    count_text(members.len(), "object")
                );
            }
            let staying = members.iter().filter(|member| !self.args.delete_objects || member.stay.is_some());
            for left in staying.filter_map(|member| left_step_text(&member.id, member.shown)) {
                let _ = writeln!(text, "warning: {}", clean_text(&left));
            }
        }
        if self.source.is_none() {
            let namespace = &self.config.namespace;
            let _ = writeln!(
                text,
                "removed too, from namespace {namespace}: the rollout ledger, the key of the seals, the Leases"
            );
        }
        text
    }

    /// Returns how the command ends where nobody says that so many objects are to be deleted.
    fn confirmation_exit(&self, holders: &[InstalledSource]) -> Result<Option<ExitStatus>, CommandError> {
        let found = holders.iter().flat_map(InstalledSource::removable_objects).count();
        if !self.args.delete_objects || found == 0 {
            return Ok(None);
        }
        match self.args.count {
            Some(expected) if expected == found => Ok(None),
            Some(expected) => Err(CommandError::usage_error(format!(
                "{} would be deleted, not {expected}: none is deleted",
                count_text(found, "object")
            ))
            .hint("--dry-run lists them")),
            None => match self.terminal.ask(&format!("Delete {}?", count_text(found, "object"))) {
                Some(Confirmation::Confirmed) => Ok(None),
                Some(Confirmation::Declined) => Ok(Some(ExitStatus::Guarded)),
                None => Err(CommandError::usage_error(format!(
                    "{} would be deleted",
                    count_text(found, "object")
                ))
                .with_exit(ExitStatus::Guarded)
                .hint(format!("--count {found} confirms that"))),
            },
        }
    }

    /// Refuses a source that an object of kind `Source` declares: the next daemon would begin it
    /// again. A `Source` that is being deleted needs its inventory for that.
    async fn refuse_where_declared(&self) -> Result<(), CommandError> {
        let (group, version) = CONFIG_API_VERSION.split_once('/').unwrap_or_default();
        if matches!(self.kinds.get(&Gvk::new(group, version, "Source")), KindLookup::Unserved { .. }) {
            return Ok(());
        }
        let namespace = &self.config.namespace;
        let mut found = match self.cluster.list_custom_sources(&custom_path(namespace)).await {
            Err(error) if *error.fault() == ClusterFault::NoKind => return Ok(()),
            found => found?,
        };
        let name = |custom: &Value| clean_text(text_at(custom, &["metadata", "name"]));
        found.retain(|custom| self.source.is_none_or(|of| *of.as_str() == *name(custom)));
        let Some(first) = found.first().map(name) else { return Ok(()) };
        let names: Vec<String> = found.iter().take(MAX_HINTED_SOURCES).map(name).collect();
        let error = CommandError::new(
            ErrorClass::Conflict,
            format!("the object Source {namespace}/{first} would create its source again"),
        )
        .with_exit(ExitStatus::Guarded)
        .hint(format!("`kubectl delete sources.rhumb.dev -n {namespace} {}` ends it", names.join(" ")));
        let is_waiting_for_deletion = |custom: &Value| {
            let finalizers = custom["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|all| all.iter().any(|one| *one == SOURCE_FINALIZER))
        };
        Err(if found.iter().any(is_waiting_for_deletion) {
            error.hint(format!(
                "its finalizer {SOURCE_FINALIZER} waits for `rhumb run`, which deletes its objects"
            ))
        } else {
            error
        })
    }

    async fn refuse_where_served(&self, names: &[&DnsLabel]) -> Result<(), CommandError> {
        let token = orders::token();
        let served = self.serving_source(names, &token).await;
        // The question is removed whatever came of it.
        let struck = self.withdraw_order(names, &token).await;
        let Some(name) = served? else { return struck };
        let message = format!("a daemon serves source {name}, and would create all of it again");
        Err(CommandError::new(ErrorClass::Conflict, message)
            .with_exit(ExitStatus::Guarded)
            .hint("stop `rhumb run`, or take the source out of its configuration, and try again"))
    }

    /// Returns the first source that a daemon serves: it takes the question out of the source's
    /// orders. A daemon that only observes does not, and creates nothing again.
    async fn serving_source<'a>(
        &self,
        names: &[&'a DnsLabel],
        token: &str,
    ) -> Result<Option<&'a DnsLabel>, CommandError> {
        let namespace = &self.config.namespace;
        for name in names {
            self.cluster.give_order(namespace, name.as_str(), token, SERVING_PROBE_NAME).await?;
        }
        let deadline = Instant::now() + SERVING_ANSWER_TIMEOUT;
        while Instant::now() < deadline && !names.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
            for name in names {
                let orders = self.cluster.read_orders(namespace, name.as_str()).await?;
                if orders.is_some_and(|orders| !orders.data.contains_key(token)) {
                    return Ok(Some(name));
                }
            }
        }
        Ok(None)
    }

    /// Takes a question back out of all orders; one that cannot be reached keeps no other one from
    /// it.
    async fn withdraw_order(&self, names: &[&DnsLabel], token: &str) -> Result<(), CommandError> {
        let mut all = Ok(());
        for name in names {
            match self.delete_order_key_of(name.as_str(), token).await {
                // Its daemon was faster.
                Err(error) if *error.fault() == ClusterFault::VersionConflict => {}
                struck => all = all.and(struck),
            }
        }
        Ok(all?)
    }

    async fn delete_order_key_of(&self, name: &str, token: &str) -> Result<(), cluster::ClusterError> {
        let namespace = &self.config.namespace;
        match self.cluster.read_orders(namespace, name).await? {
            Some(orders) if orders.data.contains_key(token) => {
                let keys = [token.to_owned()];
                self.cluster.remove_orders(namespace, name, &orders, &keys).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Deletes what a source has, as it is done for a `Source` that a person deletes. Returns
    /// whether nothing is left.
    async fn delete_objects(&self, holder: &InstalledSource) -> Result<bool, CommandError> {
        let InstalledSource { name, watched_namespaces, .. } = holder;
        let state = session::state(self.config, &self.cluster).await?;
        let mut setup =
            session::ending_setup(&SourceConfig::ending_config(name, &AllowList::default()), &state)?;
        setup.prune_delay = Duration::ZERO;
        // All were listed and counted: also those that are deleted only when a person names them.
        setup.confirmed = holder.removable_objects().map(|member| member.uid.clone()).collect();
        setup.namespaces.clone_from(watched_namespaces);
        let setup = session::daemon_setup(self.config, self.cluster.clone(), vec![setup]);
        let (listener, mut outcomes) = mpsc::unbounded_channel();
        let until = RunMode::UntilSettled(Instant::now() + DELETION_TIMEOUT);
        let pass = tokio::spawn(Reconciler::new(setup, until, listener).run(CancellationToken::new()));
        let mut progress = PassProgress::default();
        let mut pauses = ProgressPauses::start();
        loop {
            let next = tokio::select! {
                biased;
                next = outcomes.recv() => next,
                () = pauses.end() => {
                    self.terminal.report(&progress.line());
                    continue;
                }
            };
            let Some(ObjectEvent { id, outcome, .. }) = next else { break };
            progress.note(&id, &outcome);
            self.terminal.print(&apply::line(&id, &outcome, self.terminal.palette()))?;
        }
        let pass = pass.await.map_err(|error| {
            CommandError::new(ErrorClass::Internal, format!("the deletions did not end: {error}"))
        })??;
        let why = match pass.left.get(name.as_str()) {
            Some(RemainingObjects::Nothing) => return Ok(true),
            Some(
                RemainingObjects::Unread(why)
                | RemainingObjects::NoInventory(why)
                | RemainingObjects::Objects(Some(why)),
            ) => why.clone(),
            Some(RemainingObjects::Unknown) => {
                self.terminal.report(&self.unknown_text(holder));
                return Ok(false);
            }
            Some(RemainingObjects::Objects(None)) | None => "not everything is deleted yet".to_owned(),
        };
        self.terminal.report(&format!(
            "error: something of source {name} is left: {}\nhint: repair that, and run the same command again\n",
            clean_text(&why)
        ));
        Ok(false)
    }

    /// Returns what is not known of a source that was never read completely, and how it ends.
    fn unknown_text(&self, holder: &InstalledSource) -> String {
        let InstalledSource { name, kinds, .. } = holder;
        let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
        let set = inventory_id_of(&self.config.namespace, name.as_str());
        format!(
            "error: source {name} may have objects that are not known: its ConfigMap does not record that it was \
             ever read completely, and names the kinds {kinds}\n\
             hint: `kubectl get KIND -A -l {PART_OF}={set}` shows its objects of another kind\n\
             hint: `rhumb uninstall {name}` then ends the source, and leaves what there may be\n",
            kinds = clean_text(&kinds)
        )
    }

    /// Takes away what is kept of a source: its inventory last, so that whoever begins again finds
    /// it.
    async fn delete_records(&self, name: &DnsLabel) -> Result<(), CommandError> {
        self.remove(&Gvk::new("coordination.k8s.io", "v1", "Lease"), &format!("{SOURCE_LEASE_PREFIX}{name}"))
            .await?;
        self.remove(&Gvk::new("", "v1", "ConfigMap"), &orders_name(name.as_str())).await?;
        self.remove(&Gvk::new("", "v1", "ConfigMap"), name.as_str()).await
    }

    /// Takes away what sources share, once there are none.
    async fn forget_shared(&self) -> Result<(), CommandError> {
        for lease in self.cluster.list_leases(&self.config.namespace).await? {
            if lease.name.starts_with(SOURCE_LEASE_PREFIX) {
                self.remove(&Gvk::new("coordination.k8s.io", "v1", "Lease"), &lease.name).await?;
            }
        }
        self.remove(&Gvk::new("", "v1", "ConfigMap"), LEDGER_NAME).await?;
        self.remove(&Gvk::new("", "v1", "Secret"), CONFIG_KEY_SECRET_NAME).await
    }

    /// Deletes one object of the system namespace as it is now.
    async fn remove(&self, gvk: &Gvk, name: &str) -> Result<(), CommandError> {
        let KindLookup::Served(kind) = self.kinds.get(gvk) else { return Ok(()) };
        let id = ObjectId::new(&gvk.group_kind(), Some(&self.config.namespace), name);
        let Some(object) = self.cluster.get(&kind, &id).await? else { return Ok(()) };
        let uid = Uid(text_at(&object, &["metadata", "uid"]).into());
        let version = ResourceVersion::read(text_at(&object, &["metadata", "resourceVersion"]));
        self.cluster.delete(&kind, &id, &uid, version).await?;
        self.terminal.print(&format!("{id} deleted\n"))
    }
}
