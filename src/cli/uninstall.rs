//! `rhumb uninstall`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::args::UninstallArgs;
use super::members::{by_namespace, is_too_wide};
use super::object_name::ObjectName;
use super::overview::clean;
use super::terminal::Answer;
use super::{CommandError, Exit, Terminal, apply, orders, session};
use crate::cluster::{
    self, Cluster, Fault, Kinds, Lookup, Parent, Propagation, Selector, applyset_id, orders_name,
};
use crate::config::{API_VERSION, Config, FINALIZER, Name, SourceConfig, custom_path};
use crate::daemon::{self, Reconciler, Until};
use crate::engine::{AllowList, IS_SERVED, KEY_SECRET, Keep, Owner, Rv, Uid};
use crate::object::{Class, Gvk, ObjectId, text_at};
use crate::report::{Left, Tale};

/// How long deletions are waited for: finalizers take their time.
const PATIENCE: Duration = Duration::from_mins(5);

/// Within this time whoever serves a source answers that it does.
const ANSWER: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(200);

/// The ConfigMap in which all rollouts are claimed.
const BUDGET: &str = "rollout-budget.rhumb.dev";

/// So many objects of kind `Source` are named in a hint.
const SHOWN: usize = 10;

/// What the names of all our Leases begin with.
const LEASE: &str = "rhumb-";

/// Carries the command out, for the source that is named, also by `--name`, or for all.
pub(super) fn carry_out(
    (args, name): (&UninstallArgs, Option<&Name>),
    config: &Config,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    let source = args.source.as_ref().or(name);
    session::runtime()?.block_on(async {
        let cluster = session::connect(config).await?;
        let kinds = cluster.discover().await?;
        Removal { args, source, config, cluster, kinds, terminal }.carry_out().await
    })
}

/// One object of a source that may go.
struct Member {
    id: ObjectId,
    uid: Uid,
    keep: Keep,
}

/// The namespaces of an inventory, where its objects may not be listed in the whole cluster.
type Reach = Option<BTreeSet<Arc<str>>>;

/// A source with what it has.
struct Holder {
    name: Name,
    parent: Parent,
    members: Vec<Member>,
    reach: Reach,
}

impl Holder {
    fn going(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.keep != Keep::Asked)
    }
}

struct Removal<'a> {
    args: &'a UninstallArgs,
    /// The only one that ends; all do where there is none.
    source: Option<&'a Name>,
    config: &'a Config,
    cluster: Cluster,
    kinds: Kinds,
    terminal: &'a Terminal,
}

impl Removal<'_> {
    async fn carry_out(&self) -> Result<Exit, CommandError> {
        let holders = self.holders().await?;
        self.terminal.print(&self.listing(&holders))?;
        if self.args.dry_run {
            return Ok(Exit::Done);
        }
        let names: Vec<&Name> = holders.iter().map(|holder| &holder.name).collect();
        self.refuse_where_declared().await?;
        if let Some(refusal) = self.unconfirmed(&holders)? {
            return Ok(refusal);
        }
        self.refuse_where_served(&names).await?;
        let mut is_whole = true;
        for holder in &holders {
            let done = !self.args.delete_objects || self.delete_objects(holder).await?;
            if done {
                self.forget(&holder.name).await?;
            }
            is_whole &= done;
        }
        if is_whole && self.source.is_none() {
            self.forget_shared().await?;
        }
        Ok(if is_whole { Exit::Done } else { Exit::Differs })
    }

    /// The sources that are meant, each with its objects as its inventory and their labels tell them.
    async fn holders(&self) -> Result<Vec<Holder>, CommandError> {
        let namespace = &self.config.namespace;
        let parents = match self.source {
            None => self.cluster.kept_parents(namespace).await?,
            Some(name) => {
                let parent = self.cluster.parent(namespace, name.as_str()).await?.ok_or_else(|| {
                    CommandError::usage(format!("there is no source {name}: no ConfigMap {namespace}/{name}"))
                        .hint("`rhumb status` shows the sources that there are")
                })?;
                vec![(name.to_string(), parent)]
            }
        };
        let mut holders = Vec::new();
        for (name, parent) in parents {
            // What has another name is no source's: nobody could have made it one.
            let Ok(name) = name.parse::<Name>() else { continue };
            let (members, reach) = self.members(&name, &parent).await?;
            holders.push(Holder { name, parent, members, reach });
        }
        holders.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(holders)
    }

    async fn members(&self, name: &Name, parent: &Parent) -> Result<(Vec<Member>, Reach), CommandError> {
        let set: Arc<str> = applyset_id(&self.config.namespace, name.as_str()).into();
        let selector = Selector::PartOf([set.clone()].into());
        let (mut members, mut reach) = (Vec::new(), None);
        for held in &parent.kinds {
            let Lookup::Served(kind) = self.kinds.preferred(held) else { continue };
            let listed = match self.cluster.list(&kind, &selector).await {
                Err(refused) if is_too_wide(&refused, &kind) => {
                    reach = Some(parent.namespaces.iter().map(|name| name.as_str().into()).collect());
                    by_namespace(&self.cluster, &kind, (&set, parent), refused).await
                }
                listed => listed,
            };
            for (id, live) in listed? {
                if matches!(&live.owner, Owner::Ours(of) if *of == set) {
                    members.push(Member { id, uid: live.uid, keep: live.keep });
                }
            }
        }
        members.sort_by(|one, other| one.id.cmp(&other.id));
        Ok((members, reach))
    }

    fn listing(&self, holders: &[Holder]) -> String {
        let mut text = String::new();
        for Holder { name, members, .. } in holders {
            if !self.args.delete_objects {
                let _ = writeln!(text, "source {name} ends; its {} stay as they are", counted(members.len()));
                continue;
            }
            let _ = writeln!(text, "source {name} ends, with {}:", counted(members.len()));
            for member in members {
                let kept = if member.keep == Keep::Asked { "  (stays, as its annotation asks)" } else { "" };
                let _ = writeln!(text, "  {}{kept}", clean(&ObjectName::of(&member.id).to_string()));
            }
        }
        if self.source.is_none() {
            let namespace = &self.config.namespace;
            let _ = writeln!(
                text,
                "what the sources share in namespace {namespace} goes too: the rollout budget, the key, the Leases"
            );
        }
        text
    }

    /// How the command ends where nobody says that so many objects are to be deleted.
    fn unconfirmed(&self, holders: &[Holder]) -> Result<Option<Exit>, CommandError> {
        let found = holders.iter().flat_map(Holder::going).count();
        if !self.args.delete_objects || found == 0 {
            return Ok(None);
        }
        match self.args.count {
            Some(expected) if expected == found => Ok(None),
            Some(expected) => Err(CommandError::usage(format!(
                "{} would be deleted, and not {expected}: none is",
                counted(found)
            ))
            .hint("--dry-run lists them")),
            None => match self.terminal.ask(&format!("Delete {}?", counted(found))) {
                Some(Answer::Yes) => Ok(None),
                Some(Answer::No) => Ok(Some(Exit::Guarded)),
                None => Err(CommandError::usage(format!("{} would be deleted", counted(found)))
                    .exit(Exit::Guarded)
                    .hint(format!("--count {found} says that they are meant"))),
            },
        }
    }

    /// What an object of kind `Source` declares is begun again by the next daemon. One that is being deleted needs its
    /// inventory for that.
    async fn refuse_where_declared(&self) -> Result<(), CommandError> {
        let (group, version) = API_VERSION.split_once('/').unwrap_or_default();
        if matches!(self.kinds.get(&Gvk::new(group, version, "Source")), Lookup::Unserved { .. }) {
            return Ok(());
        }
        let namespace = &self.config.namespace;
        let mut found = match self.cluster.custom_sources(&custom_path(namespace)).await {
            Err(error) if *error.fault() == Fault::NoKind => return Ok(()),
            found => found?,
        };
        let name = |custom: &Value| clean(text_at(custom, &["metadata", "name"]));
        found.retain(|custom| self.source.is_none_or(|of| *of.as_str() == *name(custom)));
        let Some(first) = found.first().map(name) else { return Ok(()) };
        let names: Vec<String> = found.iter().take(SHOWN).map(name).collect();
        let error = CommandError::new(
            Class::Conflict,
            format!("the object Source {namespace}/{first} would make its source again"),
        )
        .exit(Exit::Guarded)
        .hint(format!("`kubectl delete sources.rhumb.dev -n {namespace} {}` ends it", names.join(" ")));
        let is_tied = |custom: &Value| {
            let finalizers = custom["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|all| all.iter().any(|one| *one == FINALIZER))
        };
        Err(if found.iter().any(is_tied) {
            error.hint(format!("its finalizer {FINALIZER} waits for `rhumb run`, which deletes its objects"))
        } else {
            error
        })
    }

    async fn refuse_where_served(&self, names: &[&Name]) -> Result<(), CommandError> {
        let token = orders::token();
        let served = self.serving(names, &token).await;
        // Whatever came of it, the question does not stay.
        let struck = self.strike(names, &token).await;
        let Some(name) = served? else { return struck };
        let message = format!("a daemon serves source {name}, and would make all of it again");
        Err(CommandError::new(Class::Conflict, message)
            .exit(Exit::Guarded)
            .hint("stop `rhumb run`, or take the source out of its configuration, and try again"))
    }

    /// Returns the first source that somebody serves: whoever does takes the question out of its orders. Whoever only
    /// observes one does not, and makes nothing again.
    async fn serving<'a>(&self, names: &[&'a Name], token: &str) -> Result<Option<&'a Name>, CommandError> {
        let namespace = &self.config.namespace;
        for name in names {
            self.cluster.give_order(namespace, name.as_str(), (token, IS_SERVED)).await?;
        }
        let deadline = Instant::now() + ANSWER;
        while Instant::now() < deadline && !names.is_empty() {
            tokio::time::sleep(LOOK).await;
            for name in names {
                let orders = self.cluster.orders(namespace, name.as_str()).await?;
                if orders.is_some_and(|orders| !orders.data.contains_key(token)) {
                    return Ok(Some(name));
                }
            }
        }
        Ok(None)
    }

    /// Takes a question back out of all orders; one that cannot be reached keeps no other one from it.
    async fn strike(&self, names: &[&Name], token: &str) -> Result<(), CommandError> {
        let mut all = Ok(());
        for name in names {
            match self.strike_one(name.as_str(), token).await {
                // Its daemon was faster.
                Err(error) if *error.fault() == Fault::Stale => {}
                struck => all = all.and(struck),
            }
        }
        Ok(all?)
    }

    async fn strike_one(&self, name: &str, token: &str) -> Result<(), cluster::Error> {
        let namespace = &self.config.namespace;
        match self.cluster.orders(namespace, name).await? {
            Some(orders) if orders.data.contains_key(token) => {
                let keys = [token.to_owned()];
                self.cluster.strike_orders(namespace, name, &orders, &keys).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Deletes what a source has, as it is done for a `Source` that a person deletes. Returns whether nothing is left.
    async fn delete_objects(&self, holder: &Holder) -> Result<bool, CommandError> {
        let Holder { name, parent, reach, .. } = holder;
        // All were listed and counted: also those that are deleted only when a person names them.
        let uids: BTreeSet<Uid> = holder.going().map(|member| member.uid.clone()).collect();
        let after = daemon::confirmed(parent, &uids);
        self.cluster.save_parent(&self.config.namespace, name.as_str(), Some(parent), &after).await?;
        let state = session::state(self.config, &self.cluster).await?;
        let mut setup = session::ending(&SourceConfig::ending(name, &AllowList::default()), &state)?;
        setup.prune_delay = Duration::ZERO;
        setup.namespaces.clone_from(reach);
        let setup = session::daemon(self.config, self.cluster.clone(), vec![setup]);
        let (listener, mut told) = mpsc::unbounded_channel();
        let until = Until::Settled(Instant::now() + PATIENCE);
        let pass = tokio::spawn(Reconciler::new(setup, until, listener).run(CancellationToken::new()));
        while let Some(Tale { id, told, .. }) = told.recv().await {
            self.terminal.print(&apply::line(&id, &told, self.terminal.palette()))?;
        }
        let pass = pass.await.map_err(|error| {
            CommandError::new(Class::Internal, format!("the deletions did not end: {error}"))
        })??;
        let why = match pass.left.get(name.as_str()) {
            Some(Left::Nothing) => return Ok(true),
            Some(Left::Unread(why) | Left::Objects(Some(why))) => why.clone(),
            Some(Left::Unknown) => "its inventory does not tell which kinds it had objects of".to_owned(),
            Some(Left::Objects(None)) | None => "not all is gone yet".to_owned(),
        };
        self.terminal.tell(&format!(
            "error: something of source {name} is left: {}\nhint: mend that, and give the same command again\n",
            clean(&why)
        ));
        Ok(false)
    }

    /// Takes away what is kept of a source: its inventory last, so that whoever begins again finds it.
    async fn forget(&self, name: &Name) -> Result<(), CommandError> {
        self.remove(&Gvk::new("coordination.k8s.io", "v1", "Lease"), &format!("{LEASE}{name}")).await?;
        self.remove(&Gvk::new("", "v1", "ConfigMap"), &orders_name(name.as_str())).await?;
        self.remove(&Gvk::new("", "v1", "ConfigMap"), name.as_str()).await
    }

    /// Takes away what sources share, once there are none.
    async fn forget_shared(&self) -> Result<(), CommandError> {
        for lease in self.cluster.leases(&self.config.namespace).await? {
            if lease.name.starts_with(LEASE) {
                self.remove(&Gvk::new("coordination.k8s.io", "v1", "Lease"), &lease.name).await?;
            }
        }
        self.remove(&Gvk::new("", "v1", "ConfigMap"), BUDGET).await?;
        self.remove(&Gvk::new("", "v1", "Secret"), KEY_SECRET).await
    }

    /// Deletes one object of the system namespace as it is now.
    async fn remove(&self, gvk: &Gvk, name: &str) -> Result<(), CommandError> {
        let Lookup::Served(kind) = self.kinds.get(gvk) else { return Ok(()) };
        let id = ObjectId::new(&gvk.group_kind(), Some(&self.config.namespace), name);
        let Some(object) = self.cluster.get(&kind, &id).await? else { return Ok(()) };
        let uid = Uid(text_at(&object, &["metadata", "uid"]).into());
        let version = text_at(&object, &["metadata", "resourceVersion"]).parse().unwrap_or_default();
        self.cluster.delete(&kind, &id, &uid, Rv(version), Propagation::Background).await?;
        self.terminal.print(&format!("{id} deleted\n"))
    }
}

fn counted(objects: usize) -> String {
    if objects == 1 { "1 object".to_owned() } else { format!("{objects} objects") }
}
