//! The comparison of an object with its content. Our entry is compared and the values behind it. A
//! dry run decides where those leave a doubt. Also finds who changed it.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use futures::future::join_all;
use serde_json::Value;

use super::action_executor::run_blocking;
use super::contents::{ContentError, ContentStore};
use super::loop_event::LookupFailure;
use crate::change;
use crate::cluster::{
    AccessDenial, Cluster, ClusterError, ClusterFault, FIELD_MANAGER, FieldOwners, RetryAdvice, ServedKind,
};
use crate::engine::{
    ApplyPurpose, ApplyRequest, ApplyVariant, ContentRef, DesiredObject, FieldOwnership, LiveObject,
    Precondition, ReleaseAnnotation, RepairImpact, ResourceVersion, SharedDesiredObject, Uid,
    VerifiedOwnership,
};
use crate::fields::{
    self, DriftedPaths, EmptyCounterpart, FieldPath, OwnershipCheck, ReplacedMember, ValueDigest, ValueSchema,
};
use crate::object::{ObjectId, Revision, text_at};

/// The questions for which another thread is worth its start.
const MIN_QUESTIONS_OF_THREAD: usize = 64;

/// A question whether an object is as a content asks.
#[derive(Clone, Debug)]
pub(super) struct ComparisonRequest {
    pub(super) id: ObjectId,
    pub(super) desired: SharedDesiredObject,
    pub(super) variant: ApplyVariant,
    /// Our entry.
    shape: Option<Arc<str>>,
    /// The values behind it.
    values: Option<ValueDigest>,
    /// The version that shows both.
    rv: Option<ResourceVersion>,
}

impl ComparisonRequest {
    /// Returns the question about what the cluster shows.
    pub(super) fn new(
        id: ObjectId,
        desired: SharedDesiredObject,
        variant: ApplyVariant,
        shown: Option<&LiveObject>,
    ) -> Self {
        Self {
            id,
            desired,
            variant,
            shape: shown.and_then(|live| live.our_fields.clone()),
            values: shown.and_then(|live| live.value_digest),
            rv: shown.map(|live| live.rv),
        }
    }

    fn value_schema(&self) -> ValueSchema {
        ValueSchema::of(&self.id.group_kind())
    }

    /// Returns the content in the form in which it was sent. Of the release annotation only the
    /// path matters.
    fn with_stamp(&self, content: Value) -> Value {
        let release = ContentRef { hash: self.desired.hash, revision: Revision::new("") };
        crate::engine::stamp_release(content, &ReleaseAnnotation { release, seal: None }, self.variant)
    }

    /// Answers by what the cluster was last seen to show, without a call.
    pub(super) fn answer_from_view(&self, content: Value) -> VerifiedOwnership {
        let content = self.with_stamp(content);
        let cover = match fields::check_ownership(&content, self.shape.as_deref()) {
            OwnershipCheck::Complete if self.has_values_of(&content) => FieldOwnership::Complete,
            OwnershipCheck::Complete => FieldOwnership::Unequal,
            OwnershipCheck::OnlyEmpty(_) => FieldOwnership::OnlyEmptyMissing,
            OwnershipCheck::Lost(paths) => self.lost_ownership(&paths),
        };
        self.verdict(cover)
    }

    fn has_values_of(&self, content: &Value) -> bool {
        let digest = |entry: &str| fields::value_digest(content, entry, self.value_schema());
        self.values.is_some() && self.values == self.shape.as_deref().map(digest)
    }

    fn lost_ownership(&self, paths: &[FieldPath]) -> FieldOwnership {
        let kind = self.id.group_kind();
        // An overlay holds pods, and must be restored at once.
        let lets_go = self.variant.overlay.is_none() && change::can_release_pods(&kind, paths);
        let template = lets_go || change::can_touch_template(&kind, paths);
        FieldOwnership::Lost(if template { RepairImpact::Template } else { RepairImpact::InPlace })
    }

    /// Returns the verdict, bound to what the question is about.
    pub(super) fn verdict(&self, cover: FieldOwnership) -> VerifiedOwnership {
        let (content, overlay) = (self.variant.hash(&self.desired), self.variant.overlay);
        let (config_stamp, value_digest) = (self.variant.config_stamp.map(Box::new), self.values);
        VerifiedOwnership {
            content,
            overlay,
            config_stamp,
            managed_fields: self.shape.clone(),
            value_digest,
            cover,
        }
    }

    /// Returns whether an object that was just read is the one of the question. Otherwise the
    /// answer would be of another version, and would be remembered.
    fn is_about(&self, shown: &Value) -> bool {
        let version = ResourceVersion::read(text_at(shown, &["metadata", "resourceVersion"]));
        if version != ResourceVersion::UNREADABLE && Some(version) == self.rv {
            return true;
        }
        let own = FieldOwners::of(shown).ours;
        let shape = self.shape.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let digest = |entry: &str| fields::value_digest(shown, entry, self.value_schema());
        own == shape.map(|shape| shape.to_string()) && self.values == self.shape.as_deref().map(digest)
    }
}

/// The answer to a question; an error where the content cannot be read.
pub(super) struct ComparedObject {
    /// The question.
    pub(super) request: ComparisonRequest,
    /// The answer.
    pub(super) verified: Result<VerifiedOwnership, ContentError>,
}

/// Answers questions by what the cluster was last seen to show, in their order. Many are answered
/// on all cores.
pub(super) async fn compare_cached(
    contents: &ContentStore,
    requests: Vec<ComparisonRequest>,
) -> Vec<ComparedObject> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let answers = divide(requests, threads).into_iter().map(|requests| {
        let contents = contents.clone();
        run_blocking(move || compare_all(&contents, requests))
    });
    join_all(answers).await.into_iter().flatten().collect()
}

fn compare_all(contents: &ContentStore, requests: Vec<ComparisonRequest>) -> Vec<ComparedObject> {
    let compare = |request: ComparisonRequest| {
        let content = contents.defended_content(&request.desired);
        let verified = content.map(|content| request.answer_from_view(content));
        ComparedObject { request, verified }
    };
    requests.into_iter().map(compare).collect()
}

/// Divides questions among threads, in their order.
fn divide<T>(mut questions: Vec<T>, threads: usize) -> Vec<Vec<T>> {
    let share = questions.len().div_ceil(threads.max(1)).max(MIN_QUESTIONS_OF_THREAD);
    let mut shares = Vec::new();
    while !questions.is_empty() {
        let rest = questions.split_off(share.min(questions.len()));
        shares.push(std::mem::replace(&mut questions, rest));
    }
    shares
}

/// Answers by the values that the cluster shows now, and by a dry run where they are not spelled as
/// the content spells them.
pub(super) async fn compare_live(
    cluster: &Cluster,
    contents: &ContentStore,
    kind: &ServedKind,
    request: &ComparisonRequest,
) -> Result<VerifiedOwnership, LookupFailure> {
    let content = {
        let (contents, desired) = (contents.clone(), request.desired.clone());
        run_blocking(move || contents.defended_content(&desired))
            .await
            .map_err(|error| LookupFailure(error.to_string().into()))?
    };
    let content = request.with_stamp(content);
    let shown = cluster.get(kind, &request.id).await.map_err(|error| LookupFailure(error.reason().into()))?;
    let Some(shown) = shown else { return Err(LookupFailure("it is gone".into())) };
    let entry = FieldOwners::of(&shown).ours;
    let UncoveredPaths { lost, absent } =
        UncoveredPaths::find(&content, &shown, entry.as_deref(), request.value_schema());
    let lost = match entry {
        Some(entry) if lost.is_empty() => {
            let values = ValueComparison { content: &content, shown: &shown, entry: &entry };
            differing_values_of(cluster, contents, kind, request, values, absent).await?
        }
        _ => lost,
    };
    match (lost.is_empty(), request.is_about(&shown)) {
        (true, true) => Ok(request.verdict(FieldOwnership::Complete)),
        // Remembered, it would speak of values that were never compared.
        (true, false) => Err(LookupFailure("it changed while it was read".into())),
        // Somebody who goes on writing does not keep the object from being repaired.
        (false, _) => Ok(request.verdict(request.lost_ownership(&lost))),
    }
}

/// The paths of a content that our entry does not cover.
#[derive(Default)]
struct UncoveredPaths {
    /// The paths that somebody took.
    lost: Vec<FieldPath>,
    /// The paths of empty lists and maps that are absent: a dry run shows whether the server drops
    /// them.
    absent: Vec<FieldPath>,
}

impl UncoveredPaths {
    /// Finds them. Of an empty list the value decides, as the server tracks no path for it.
    fn find(content: &Value, shown: &Value, entry: Option<&str>, schema: ValueSchema) -> Self {
        let empty = match fields::check_ownership(content, entry) {
            OwnershipCheck::Complete => Vec::new(),
            OwnershipCheck::Lost(lost) => return Self { lost, absent: Vec::new() },
            OwnershipCheck::OnlyEmpty(paths) => paths,
        };
        let mut found = Self::default();
        for path in empty {
            match fields::find_counterpart(content, shown, &path, schema) {
                EmptyCounterpart::Same => {}
                EmptyCounterpart::Absent => found.absent.push(path),
                EmptyCounterpart::Other => found.lost.push(path),
            }
        }
        found
    }
}

/// A content beside the object that has it.
#[derive(Clone, Copy)]
struct ValueComparison<'a> {
    /// The values that it should have.
    content: &'a Value,
    /// The object, as it was just read.
    shown: &'a Value,
    /// The fields of it that are ours, in `FieldsV1`.
    entry: &'a str,
}

/// Returns the paths at which the object has other values than the content asks for. The absent
/// ones are in doubt.
async fn differing_values_of(
    cluster: &Cluster,
    contents: &ContentStore,
    kind: &ServedKind,
    request: &ComparisonRequest,
    values: ValueComparison<'_>,
    absent: Vec<FieldPath>,
) -> Result<Vec<FieldPath>, LookupFailure> {
    let ValueComparison { content, shown, entry } = values;
    let mut differing = fields::differing_values(content, shown, entry, request.value_schema());
    differing.extend(absent);
    if differing.is_empty() {
        return Ok(differing);
    }
    let (contents, desired, variant, live) =
        (contents.clone(), request.desired.clone(), request.variant, shown.clone());
    let release = ContentRef { hash: desired.hash, revision: Revision::new("") };
    let release = ReleaseAnnotation { release, seal: None };
    let body = run_blocking(move || contents.body_for_live(&desired, &release, variant, &live)).await;
    let (body, _) = body.map_err(|error| LookupFailure(error.to_string().into()))?;
    let precondition = Precondition::Uid(Uid(text_at(shown, &["metadata", "uid"]).into()));
    match cluster.dry_run(kind, &request.id, &body, Some(shown), &precondition).await {
        // The server has spelled both, so nothing is left to be known of normal forms.
        Ok(after) => {
            let mut lost = fields::differing_values(&after, shown, entry, ValueSchema::ServerOutput);
            let entry_after = FieldOwners::of(&after).ours.unwrap_or_default();
            lost.extend(fields::unequal_leaves(&entry_after, entry));
            Ok(lost)
        }
        Err(error) if is_inconclusive(&error) => Ok(differing
            .into_iter()
            .filter(|path| is_other_at(&request.desired, path, shown, content))
            .collect()),
        // The write that tries it reports a value that cannot be restored.
        Err(error) if error.retry() == RetryAdvice::Never => Ok(differing),
        Err(error) => Err(LookupFailure(error.reason().into())),
    }
}

/// Returns whether a refused dry run says nothing about the values. A reader without write rights
/// is refused it, and so is everybody by a webhook that has no dry run.
fn is_inconclusive(error: &ClusterError) -> bool {
    matches!(
        error.fault(),
        ClusterFault::Denied { by: AccessDenial::Rbac, .. } | ClusterFault::Webhook { .. }
    )
}

/// Returns whether an object has another value than a content at a path of our entry, as far as is
/// known without the server. Fields that the content leaves to others are repeated in our entry,
/// and do not count.
fn is_other_at(desired: &DesiredObject, path: &FieldPath, shown: &Value, content: &Value) -> bool {
    let is_left = desired.ignores.is_some() && path.find(content).is_none();
    !is_left && change::is_other_at(path, shown, content)
}

/// Reads an object that is about to be put back; none for any other write, and where it cannot be
/// read.
pub(super) async fn read_drifted(
    cluster: &Cluster,
    kind: &ServedKind,
    id: &ObjectId,
    apply: &ApplyRequest,
) -> Option<Value> {
    if apply.purpose != ApplyPurpose::Repair || apply.precondition == Precondition::Absent {
        return None;
    }
    cluster.get(kind, id).await.ok()?
}

/// Returns who changed an object, and which of its fields, by its `managedFields`. `replaced` are
/// the members of unions that somebody set others in the place of, as the server has shown.
pub(super) async fn describe_writers(
    contents: &ContentStore,
    id: &ObjectId,
    apply: &ApplyRequest,
    shown: Value,
    replaced: Vec<ReplacedMember>,
) -> Option<String> {
    let request = ComparisonRequest::new(id.clone(), apply.desired.clone(), apply.variant, None);
    let contents = contents.clone();
    run_blocking(move || {
        let content = request.with_stamp(contents.defended_content(&request.desired).ok()?);
        let entry = FieldOwners::of(&shown).ours;
        let uncovered = UncoveredPaths::find(&content, &shown, entry.as_deref(), request.value_schema());
        // This is about to be put back: what is absent was taken.
        let taken = [uncovered.lost, uncovered.absent].concat();
        let differing =
            entry.map(|entry| fields::differing_values(&content, &shown, &entry, request.value_schema()));
        let mut rewritten = differing.unwrap_or_default();
        rewritten.retain(|path| is_other_at(&request.desired, path, &shown, &content));
        let managed = shown.pointer("/metadata/managedFields").unwrap_or(&Value::Null);
        let drifted = DriftedPaths { taken: &taken, replaced: &replaced, rewritten: &rewritten };
        fields::drift_words(managed, drifted, FIELD_MANAGER)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_divided_evenly_and_few_are_left_to_one_thread() {
        let check = |count: usize, threads: usize, expected: &[usize]| {
            let shares = divide((0..count).collect::<Vec<usize>>(), threads);
            let sizes: Vec<usize> = shares.iter().map(Vec::len).collect();
            assert_eq!(sizes, expected, "{count} questions, {threads} threads");
            assert!(shares.concat().into_iter().eq(0..count), "{shares:?}");
        };
        check(0, 2, &[]);
        check(1, 2, &[1]);
        check(MIN_QUESTIONS_OF_THREAD, 2, &[MIN_QUESTIONS_OF_THREAD]);
        check(MIN_QUESTIONS_OF_THREAD + 1, 2, &[MIN_QUESTIONS_OF_THREAD, 1]);
        check(1_000, 2, &[500, 500]);
        check(1_001, 2, &[501, 500]);
        check(1_000, 0, &[1_000]);
    }
}
