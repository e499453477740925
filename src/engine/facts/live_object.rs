//! The live view of one object, as a compact record: 300 bytes instead of the 65 kB of a tree.

use crate::object::annotations;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::facts::overlay::RolloutOverlay;
use crate::engine::{
    ConfigStamp, JobCreator, ObjectIntents, PruneTiming, ReleaseAnnotation, RolloutOverlayState,
    VolumeClaimRetention,
};
use crate::fields::ValueDigest;
use crate::graph::LabelSelection;
use crate::health::Health;
use crate::object::{ContentHash, Gvk, Revision};

/// The identity of one incarnation of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize)]
pub struct Uid(pub Arc<str>);

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A resourceVersion. Comparable as a number (KEP-5504), within one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize)]
pub struct ResourceVersion(pub u64);

impl ResourceVersion {
    /// Stands for one that is no decimal number, which only a server has that breaks KEP-5504. No
    /// object has this one, and no precondition may name it.
    pub const UNREADABLE: Self = Self(0);

    /// Reads one. Only a text that its number is written as again counts, as the server compares
    /// texts.
    pub fn read(text: &str) -> Self {
        let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
        number.map_or(Self::UNREADABLE, Self)
    }

    /// Returns the text that it was read from, for a precondition; none where that is unknown.
    pub fn precondition_text(self) -> Option<String> {
        (self != Self::UNREADABLE).then(|| self.to_string())
    }

    /// Returns the least version that is newer.
    pub(crate) fn next(self) -> Self {
        // A server may show any number.
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A reference to a content: its hash, and the revision that brought it.
///
/// The annotation `rhumb.dev/release` has the one of the content that we put there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRef {
    /// Hash of the effective content.
    pub hash: ContentHash,
    /// The revision that brought this content first.
    pub revision: Revision,
}

impl ContentRef {
    /// Reads what an annotation says, whether it is proven or not: good for being shown.
    pub fn parse(text: &str) -> Option<Self> {
        ReleaseAnnotation::parse(text).map(|annotation| annotation.release)
    }
}

impl fmt::Display for ContentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.hash, self.revision)
    }
}

/// The owner of an object, derived from labels and annotations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectOwner {
    /// Nobody's mark.
    Nobody,
    /// Carries the ApplySet label of this inventory, and our own managedFields entry owns that
    /// label.
    Ours(Arc<str>),
    /// Carries the ApplySet label of this inventory, but our entry does not own the label: a copied
    /// label, or another ApplySet tool's member.
    Labelled(Arc<str>),
    /// Carries another owner's mark, in words that name it: `Flux Kustomization flux-system/apps`.
    Foreign(Arc<str>),
    /// Made and kept by a controller, in words that name it: `ReplicaSet web-5d9`. Never ours.
    Controlled(Arc<str>),
}

/// Another writer of the object: one managedFields entry that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize)]
pub struct FieldManager {
    /// Its field manager name.
    pub name: Arc<str>,
    /// `Apply` or `Update`.
    pub operation: Arc<str>,
    /// `status`, `scale` or empty.
    pub subresource: Arc<str>,
}

/// The numbers of a workload's rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Pods that the spec asks for. Unproven: others may scale it.
    pub replicas: u32,
    /// Pods that there are, as its controller says.
    pub pods: u32,
    /// Pods of the newest template.
    pub updated: u32,
    /// Pods that are ready.
    pub ready: u32,
    /// Pods that are available.
    pub available: u32,
    /// Pods that its own strategy may take down at a time.
    pub max_unavailable: u32,
    /// The first ordinal of a StatefulSet.
    pub ordinal_start: u32,
    /// The number of a StatefulSet's pods that keep an older template on purpose.
    pub partition: u32,
    /// The number of a DaemonSet's nodes with a pod that, by their taints, should have none.
    /// `replicas` excludes them.
    pub misscheduled: u32,
    /// The phase of its controller.
    pub phase: WorkloadPhase,
    /// Indicates whether the controller reported its failure before our last write.
    pub failed_before: bool,
    /// Indicates whether its controller has not seen the newest spec yet: the numbers are of an older
    /// one.
    pub is_outdated: bool,
}

/// The phase of a workload's controller with its newest template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WorkloadPhase {
    /// The rollout has settled: all pods have the newest template and are available.
    #[default]
    Settled,
    /// Its first pods are on their way: nothing was ever available that a rollout could take down.
    FirstStart,
    /// It replaces pods of an older template, or the controller has not seen the newest spec yet.
    Replacing,
    /// The template is everywhere, but pods are missing or unavailable.
    Recovering,
}

/// One of the few words that the engine knows as constants. By this name serde does not take it for
/// a text that it may borrow.
type KnownWord = &'static str;

/// The live view of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveObject {
    /// Incarnation.
    pub uid: Uid,
    /// Version of this view.
    pub rv: ResourceVersion,
    /// `metadata.generation`: grows with each change of the spec.
    pub generation: i64,
    /// The version of the kind that it was read in.
    pub gvk: Gvk,
    /// The owner, derived from labels and annotations.
    pub owner: ObjectOwner,
    /// The release, where the seal of its annotation proves it.
    pub release: Option<ContentRef>,
    /// The place of that among all releases of the object; 0 where it is not known.
    pub release_serial: u64,
    /// The creator of a Job, where the seal proves the release.
    pub job_creator: JobCreator,
    /// The release in its annotation that nothing proves yet.
    pub unproven_release: Option<Box<ReleaseAnnotation>>,
    /// FieldsV1 of our `Apply` entry, as sent by the server; interned. None: we own nothing, or our
    /// entry is too long to be kept.
    pub our_fields: Option<Arc<str>>,
    /// Digest of the values that our entry owns. None: they were not read.
    pub value_digest: Option<ValueDigest>,
    /// The other writers; interned.
    pub other_managers: Arc<[FieldManager]>,
    /// Indicates whether another manager's entry owns `spec.replicas`.
    pub replicas_ceded: bool,
    /// Health by its own status.
    pub health: Health,
    /// Workloads only.
    pub replica_status: Option<ReplicaStatus>,
    /// The overlay on a workload's content, by our annotation.
    pub overlay: RolloutOverlayState,
    /// The pods that a Service selects. None for all else, and where its spec was not read.
    pub(crate) selects: Option<Box<LabelSelection>>,
    /// The data that a workload's pods were started with, by our annotation.
    pub config_stamp: Option<Box<ConfigStamp>>,
    /// Indicates whether a Job or Pod has ended.
    pub finished: bool,
    /// Indicates whether it has a deletionTimestamp.
    pub deleting: bool,
    /// The time at which it is pruned when no source wants it any more. Its annotations say it, and
    /// those of its manifest, as the seal of its release proves.
    pub prune_timing: PruneTiming,
    /// The intents of people for it.
    pub intents: Option<Box<ObjectIntents>>,
    /// The hash of the render that made up values of it, where the seal proves the release.
    pub sealed_render: Option<Box<ContentHash>>,
    /// The fate of its claims when it is deleted. Others may have changed it.
    pub volume_claim_retention: VolumeClaimRetention,
    /// The word that somebody else put on it, by which it is to be left alone.
    #[serde(deserialize_with = "crate::object::serial::read_known_word")]
    pub opt_out: Option<KnownWord>,
}

impl LiveObject {
    /// Returns the data that a workload's pods were started with, by our annotation.
    pub fn shown_config_stamp(&self) -> Option<ConfigStamp> {
        self.config_stamp.as_deref().copied()
    }

    /// Returns whether it carries a release annotation that our own entry owns.
    pub fn has_release_annotation(&self) -> bool {
        self.shown_release().is_some()
            && self.our_fields.as_deref().is_some_and(|entry| entry.contains(annotations::RELEASE))
    }
}

/// Returns the overlay that the cluster shows.
pub(in crate::engine) fn live_overlay(live: &LiveObject) -> Option<RolloutOverlay> {
    match live.overlay {
        RolloutOverlayState::Overlaid(overlay) => Some(overlay),
        _ => None,
    }
}
