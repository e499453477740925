//! The status that is shown, from the daemon or from the cluster alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;

use super::socket::{DaemonSocket, SocketError};
use crate::config::DnsLabel;
use crate::object::ObjectId;
use crate::report::{
    DaemonStatus, ObjectRef, ObjectStatus, Phase, ProcessStatus, RolloutStatus, SourceStatus,
};

use super::object_argument::{ObjectArgument, encode_name};

/// The status at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StatusView {
    /// The moment.
    pub(super) at: Timestamp,
    /// The process that answers; none where it was read from the cluster alone.
    pub(super) process: Option<ProcessStatus>,
    /// The sources.
    pub(super) sources: Vec<SourceStatus>,
    /// The rollout budget. From the cluster alone no bound is known: each is 0.
    pub(super) rollout: RolloutStatus,
    /// The objects that are not as they should be.
    pub(super) objects: Vec<ObjectStatus>,
    /// The facts that could not be known.
    pub(super) notes: Vec<String>,
}

/// A list of objects, as the daemon gives it.
#[derive(Deserialize)]
struct ObjectStatusList {
    items: Vec<ObjectStatus>,
}

impl StatusView {
    /// Asks a daemon.
    pub(super) async fn of_daemon(socket: &DaemonSocket) -> Result<Self, SocketError> {
        let status: DaemonStatus = socket.read("/v1/status").await?;
        let phases: BTreeMap<Phase, usize> =
            status.sources.iter().flat_map(|source| source.objects.clone()).collect();
        let mut objects = Vec::new();
        for phase in phases.into_keys().filter(|phase| !phase.is_well()) {
            let list: ObjectStatusList = socket.read(&format!("/v1/objects?phase={phase}")).await?;
            objects.extend(list.items);
        }
        let (at, process) = (status.at, Some(status.process));
        let (sources, rollout) = (status.sources, status.rollout);
        Ok(Self { at, process, sources, rollout, objects, notes: status.unreadable })
    }

    /// Returns the objects by their names: a queue may be as long as they are many.
    pub(super) fn objects_by_name(&self) -> BTreeMap<&ObjectRef, &ObjectStatus> {
        let mut known: BTreeMap<&ObjectRef, &ObjectStatus> = BTreeMap::new();
        for object in &self.objects {
            // The manifest of one source may be refused, and the object be of another.
            let stays = known.get(&object.object).is_some_and(|known| known.phase != Phase::Refused);
            if !stays {
                known.insert(&object.object, object);
            }
        }
        known
    }

    /// Returns whether nothing needs attention.
    pub(super) fn is_healthy(&self) -> bool {
        self.rollout.unreadable.is_none() && self.sources.iter().all(|source| source.healthy)
    }

    /// Returns the part about one source; none where there is no such source.
    pub(super) fn of_source(mut self, name: &str) -> Option<Self> {
        self.sources.retain(|source| source.name == name);
        self.objects.retain(|object| object.source == name);
        self.rollout.rolling.retain(|roll| roll.source.as_deref() == Some(name));
        let ours: BTreeSet<&ObjectRef> = self.objects.iter().map(|object| &object.object).collect();
        self.rollout.queue.retain(|queued| ours.contains(&queued.object));
        (!self.sources.is_empty()).then_some(self)
    }
}

/// Returns all objects that a daemon knows.
pub(super) async fn objects(socket: &DaemonSocket) -> Result<Vec<ObjectStatus>, SocketError> {
    Ok(socket.read::<ObjectStatusList>("/v1/objects").await?.items)
}

/// Returns the page of one object.
pub(super) fn object_page(object: &ObjectRef) -> String {
    let group = if object.group.is_empty() { String::new() } else { format!(".{}", object.group) };
    let namespace = object.namespace.as_deref().unwrap_or("-");
    format!("/v1/objects/{}{group}/{namespace}/{}", object.kind, encode_name(&object.name))
}

/// Returns the identity behind a name.
pub(super) fn id(named: &ObjectRef) -> ObjectId {
    let kind = crate::object::GroupKind::new(&named.group, &named.kind);
    ObjectId::new(&kind, named.namespace.as_deref(), &named.name)
}

/// Returns those that a name means: without a namespace all of that kind and name, unless one is
/// given besides it.
pub(super) fn matching_objects<'a>(
    objects: &'a [ObjectStatus],
    name: &ObjectArgument,
    namespace: Option<&DnsLabel>,
) -> Vec<&'a ObjectStatus> {
    let means = |object: &&ObjectStatus| {
        let other = ObjectArgument::of(&id(&object.object));
        let namespace_name = name.namespace.as_deref().or(namespace.map(DnsLabel::as_str));
        let same_place = other.namespace.is_none() && name.namespace.is_none()
            || namespace_name.is_none_or(|namespace_name| other.namespace.as_deref() == Some(namespace_name));
        // A kind without its group means each kind of that name.
        let plain = other.kind.split('.').next() == Some(&name.kind);
        same_place && (other.kind == name.kind || plain) && other.name == name.name
    };
    objects.iter().filter(means).collect()
}
