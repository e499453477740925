//! What the cluster shows of one object, as a compact record: 300 bytes instead of the 65 kB of a tree.

use std::fmt;
use std::sync::Arc;

use super::{Asked, Keep, ReleaseClaim, Shown, Started};
use crate::fields::ValueDigest;
use crate::health::Health;
use crate::object::{Gvk, Hash, Revision};

/// The identity of one incarnation of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash)]
pub struct Uid(pub Arc<str>);

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A resourceVersion. Comparable as a number (KEP-5504), within one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash)]
pub struct Rv(pub u64);

impl fmt::Display for Rv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The annotation `rhumb.dev/release`: which content we put there, and the revision that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Hash of the effective content.
    pub hash: Hash,
    /// The revision that brought this content first.
    pub revision: Revision,
}

impl Release {
    /// Reads what an annotation says, whether it is proven or not: good for being shown.
    pub fn parse(text: &str) -> Option<Self> {
        ReleaseClaim::parse(text).map(|claim| claim.release)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.hash, self.revision)
    }
}

/// Whose object it is, by the marks that it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's mark.
    Nobody,
    /// Carries the ApplySet label of this parent, and our own managedFields entry owns that label.
    Ours(Arc<str>),
    /// Carries the ApplySet label of this parent, but our entry does not own the label: a copied label,
    /// or another ApplySet tool's member.
    Labelled(Arc<str>),
    /// Carries another owner's mark, in words that name it: `Flux Kustomization flux-system/apps`.
    Foreign(Arc<str>),
    /// Made and kept by a controller, in words that name it: `ReplicaSet web-5d9`. Never ours.
    Controlled(Arc<str>),
}

/// Another writer of the object: one managedFields entry that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash)]
pub struct Manager {
    /// Its field manager name.
    pub name: Arc<str>,
    /// `Apply` or `Update`.
    pub operation: Arc<str>,
    /// `status`, `scale` or empty.
    pub subresource: Arc<str>,
}

/// The numbers of a workload's rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rolling {
    /// Pods that the spec asks for.
    pub replicas: u32,
    /// Pods of the newest template.
    pub updated: u32,
    /// Pods that are ready.
    pub ready: u32,
    /// Pods that are available.
    pub available: u32,
    /// Pods that its own strategy may take down at a time.
    pub may_lose: u32,
    /// Of a StatefulSet: the first ordinal.
    pub first: u32,
    /// Of a StatefulSet: so many pods keep an older template on purpose.
    pub partition: u32,
    /// Of a DaemonSet: nodes that have a pod and, by their taints, should have none. `replicas` leaves these out.
    pub misscheduled: u32,
    /// Where its controller stands.
    pub phase: RollPhase,
    /// Whether the failure that its controller tells of is no news since we last wrote it.
    pub failed_before: bool,
}

/// Where a workload's controller stands with its newest template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RollPhase {
    /// All pods have the newest template and are available.
    #[default]
    Settled,
    /// Its first pods are on their way: nothing was ever available that a rollout could take down.
    FirstStart,
    /// It replaces pods of an older template, or the controller has not seen the newest spec yet.
    Replacing,
    /// The template is everywhere, but pods are missing or unavailable.
    Recovering,
}

/// What the cluster shows of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Incarnation.
    pub uid: Uid,
    /// Version of this view.
    pub rv: Rv,
    /// `metadata.generation`: grows with each change of the spec.
    pub generation: i64,
    /// The version of the kind that it was read in.
    pub gvk: Gvk,
    /// By its marks.
    pub owner: Owner,
    /// What we put there, where the seal of its annotation proves it.
    pub release: Option<Release>,
    /// What its annotation says and nothing proves yet.
    pub claim: Option<Box<ReleaseClaim>>,
    /// FieldsV1 of our `Apply` entry, as sent by the server; interned. None: we own nothing.
    pub ours: Option<Arc<str>>,
    /// Digest of the values at all that our entry owns. None: they were not read.
    pub values: Option<ValueDigest>,
    /// The other writers; interned.
    pub others: Arc<[Manager]>,
    /// Whether another manager's entry owns `spec.replicas`.
    pub replicas_ceded: bool,
    /// Health by its own status.
    pub health: Health,
    /// Workloads only.
    pub rolling: Option<Rolling>,
    /// What is laid over a workload's content, by our annotation.
    pub shown: Shown,
    /// Which data a workload's pods were started with, by our annotation.
    pub started: Option<Started>,
    /// Whether a Job or Pod has ended.
    pub finished: bool,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    /// What its annotations ask for when no source wants it any more.
    pub keep: Keep,
    /// What people ask of it.
    pub asked: Option<Box<Asked>>,
    /// The word that somebody else put on it, by which it is to be left alone.
    pub opt_out: Option<&'static str>,
}

impl Live {
    /// Whether it carries a release annotation that our own entry owns.
    pub fn is_stamped(&self) -> bool {
        self.shown_release().is_some()
            && self.ours.as_deref().is_some_and(|entry| entry.contains(super::RELEASE))
    }
}
