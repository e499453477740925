//! Whether an object is as its content asks: by our entry, by the values behind it, and by the server's word where
//! those leave a doubt. And who changed it.

use std::sync::Arc;

use serde_json::Value;

use super::act::blocking;
use super::contents::Contents;
use super::event::Trouble;
use crate::change;
use crate::cluster::{Cluster, Denial, Error, FIELD_MANAGER, Fault, FieldOwners, Kind, Retry};
use crate::engine::{
    Apply, Cover, Desired, Form, Guard, Live, Lost, Purpose, Release, ReleaseClaim, Rv, Shared, Uid, Verified,
};
use crate::fields::{self, Coverage, Path, Schema, ValueDigest};
use crate::object::{ObjectId, Revision, text_at};

/// Whether an object is as a content asks.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) id: ObjectId,
    pub(super) want: Shared,
    pub(super) form: Form,
    /// Our entry.
    shape: Option<Arc<str>>,
    /// The values behind it.
    values: Option<ValueDigest>,
    /// The version that shows both.
    rv: Option<Rv>,
}

impl Question {
    /// The question about what the cluster shows.
    pub(super) fn new(id: ObjectId, want: Shared, form: Form, shown: Option<&Live>) -> Self {
        Self {
            id,
            want,
            form,
            shape: shown.and_then(|live| live.ours.clone()),
            values: shown.and_then(|live| live.values),
            rv: shown.map(|live| live.rv),
        }
    }

    fn schema(&self) -> Schema {
        Schema::of(&self.id.group_kind())
    }

    /// The content in the form in which it was sent. Of the release annotation only the path matters.
    fn stamped(&self, content: Value) -> Value {
        let release = Release { hash: self.want.hash, revision: Revision::new("") };
        crate::engine::stamped(content, &ReleaseClaim { release, seal: None }, self.form)
    }

    /// Answers by what the cluster was last seen to show, without a call.
    pub(super) fn answer(&self, content: Value) -> Verified {
        let content = self.stamped(content);
        let cover = match fields::coverage(&content, self.shape.as_deref()) {
            Coverage::Whole if self.has_values_of(&content) => Cover::Whole,
            Coverage::Whole => Cover::Unequal,
            Coverage::OnlyEmpty(_) => Cover::Empty,
            Coverage::Lost(paths) => self.lost(&paths),
        };
        self.verified(cover)
    }

    fn has_values_of(&self, content: &Value) -> bool {
        let digest = |entry: &str| fields::value_digest(content, entry, self.schema());
        self.values.is_some() && self.values == self.shape.as_deref().map(digest)
    }

    fn lost(&self, paths: &[Path]) -> Cover {
        let kind = self.id.group_kind();
        // What is laid over a content holds pods, and must be back at once.
        let lets_go = self.form.overlay.is_none() && change::lets_go(&kind, paths);
        let template = lets_go || change::touches_template(&kind, paths);
        Cover::Lost(if template { Lost::Template } else { Lost::InPlace })
    }

    /// The verdict, bound to what the question is about.
    pub(super) fn verified(&self, cover: Cover) -> Verified {
        let (content, overlay) = (self.form.hash(&self.want), self.form.overlay);
        let (started, values) = (self.form.started, self.values);
        Verified { content, overlay, started, shape: self.shape.clone(), values, cover }
    }

    /// Whether an object that was just read still shows what the question is about: else the answer would be of something
    /// else, and would be remembered.
    fn is_about(&self, shown: &Value) -> bool {
        let version = text_at(shown, &["metadata", "resourceVersion"]).parse().ok().map(Rv);
        if version.is_some() && version == self.rv {
            return true;
        }
        let own = FieldOwners::of(shown).ours;
        let shape = self.shape.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let digest = |entry: &str| fields::value_digest(shown, entry, self.schema());
        own == shape.map(|shape| shape.to_string()) && self.values == self.shape.as_deref().map(digest)
    }
}

/// Answers by the values that the cluster shows now, and by a dry run where they are not spelled as the content spells
/// them.
pub(super) async fn inspected(
    cluster: &Cluster,
    contents: &Contents,
    kind: &Kind,
    question: &Question,
) -> Result<Verified, Trouble> {
    let content = {
        let (contents, want) = (contents.clone(), question.want.clone());
        blocking(move || contents.defended(&want)).await.map_err(|error| Trouble(error.to_string().into()))?
    };
    let content = question.stamped(content);
    let shown = cluster.get(kind, &question.id).await.map_err(|error| Trouble(error.reason().into()))?;
    let Some(shown) = shown else { return Err(Trouble("it is gone".into())) };
    let entry = FieldOwners::of(&shown).ours;
    let lost = lost_paths(&content, &shown, entry.as_deref());
    let lost = match entry {
        Some(entry) if lost.is_empty() => {
            other_values(cluster, contents, kind, question, (&content, &shown, &entry)).await?
        }
        _ => lost,
    };
    match (lost.is_empty(), question.is_about(&shown)) {
        (true, true) => Ok(question.verified(Cover::Whole)),
        // Remembered, it would speak of values that nobody has looked at.
        (true, false) => Err(Trouble("it changed while it was looked at".into())),
        // Whoever goes on writing does not keep it from being put back.
        (false, _) => Ok(question.verified(question.lost(&lost))),
    }
}

/// Returns the paths of a content that our entry does not cover. Of an empty list the value decides, as the server
/// tracks no path for it.
fn lost_paths(content: &Value, shown: &Value, entry: Option<&str>) -> Vec<Path> {
    match fields::coverage(content, entry) {
        Coverage::Whole => Vec::new(),
        Coverage::Lost(paths) => paths,
        Coverage::OnlyEmpty(paths) => {
            paths.into_iter().filter(|path| !fields::is_as_empty(shown, path)).collect()
        }
    }
}

/// The paths at which the object has other values than the content asks for.
async fn other_values(
    cluster: &Cluster,
    contents: &Contents,
    kind: &Kind,
    question: &Question,
    (content, shown, entry): (&Value, &Value, &str),
) -> Result<Vec<Path>, Trouble> {
    let differing = fields::differing_values(content, shown, entry, question.schema());
    if differing.is_empty() {
        return Ok(differing);
    }
    let (contents, want, form, live) =
        (contents.clone(), question.want.clone(), question.form, shown.clone());
    let release = Release { hash: want.hash, revision: Revision::new("") };
    let release = ReleaseClaim { release, seal: None };
    let body = blocking(move || contents.body_for(&want, &release, form, &live)).await;
    let (body, _) = body.map_err(|error| Trouble(error.to_string().into()))?;
    let guard = Guard::Uid(Uid(text_at(shown, &["metadata", "uid"]).into()));
    match cluster.dry_run(kind, &question.id, &body, Some(shown), &guard).await {
        Ok(after) => Ok(fields::differing_values(&after, shown, entry, question.schema())),
        Err(error) if says_nothing(&error) => Ok(differing
            .into_iter()
            .filter(|path| is_other_at(&question.want, path, shown, content))
            .collect()),
        // What cannot be put back is told by the write that tries it.
        Err(error) if error.retry() == Retry::Never => Ok(differing),
        Err(error) => Err(Trouble(error.reason().into())),
    }
}

/// Whether a refused dry run tells nothing of the values: whoever may only read is refused it, and so is everybody by a
/// webhook that has no dry run.
fn says_nothing(error: &Error) -> bool {
    matches!(error.fault(), Fault::Denied { by: Denial::Rbac, .. } | Fault::Webhook { .. })
}

/// Whether an object has another value than a content at a path of our entry, as far as is known without the server. What
/// the content leaves to others is repeated in our entry, and is none of it.
fn is_other_at(want: &Desired, path: &Path, shown: &Value, content: &Value) -> bool {
    let is_left = want.ignores.is_some() && path.find(content).is_none();
    !is_left && change::is_other_at(path, shown, content)
}

/// Tells who changed an object that is about to be put back; none for any other write, and where that cannot be told.
pub(super) async fn of_repair(
    cluster: &Cluster,
    contents: &Contents,
    kind: &Kind,
    id: &ObjectId,
    apply: &Apply,
) -> Option<String> {
    if apply.purpose != Purpose::Repair || apply.guard == Guard::Absent {
        return None;
    }
    let shown = cluster.get(kind, id).await.ok()??;
    who_changed(contents, id, apply, shown).await
}

/// Tells who changed an object, and which of its fields, by what it shows.
pub(super) async fn who_changed(
    contents: &Contents,
    id: &ObjectId,
    apply: &Apply,
    shown: Value,
) -> Option<String> {
    let question = Question::new(id.clone(), apply.want.clone(), apply.form, None);
    let contents = contents.clone();
    blocking(move || {
        let content = question.stamped(contents.defended(&question.want).ok()?);
        let entry = FieldOwners::of(&shown).ours;
        let taken = lost_paths(&content, &shown, entry.as_deref());
        let differing =
            entry.map(|entry| fields::differing_values(&content, &shown, &entry, question.schema()));
        let mut rewritten = differing.unwrap_or_default();
        rewritten.retain(|path| is_other_at(&question.want, path, &shown, &content));
        let managed = shown.pointer("/metadata/managedFields").unwrap_or(&Value::Null);
        fields::drift_words(managed, &taken, &rewritten, FIELD_MANAGER)
    })
    .await
}
