//! The comparison of live objects with their contents, for people who ask.
//!
//! **Invariants:** the loop only says what is to be compared. The asker waits for the API server,
//! and nobody else does. The results are masked. An object is read with the rights of a source
//! whose allow-list has it, and with no others.

use std::sync::Arc;

use serde_json::Value;

use super::super::action_executor::{ActionExecutor, run_blocking};
use super::Reconciler;
use crate::change;
use crate::cluster::ServedKind;
use crate::engine::{
    ApplyVariant, ContentRef, DesiredState, LiveObject, Precondition, ReleaseAnnotation, ReplicaMode,
    SharedDesiredObject, Uid,
};
use crate::object::{ObjectId, Revision, text_at};
use crate::report::{ObjectComparison, ObjectStatus, Phase};

/// The note about an object that is not read.
const NOT_ALLOWED_NOTE: &str = "it is not read, as no source that names it may have it";

/// All that it takes to compare an object.
pub(in crate::daemon) struct ComparisonInput {
    id: ObjectId,
    executor: ActionExecutor,
    kind: Option<Arc<ServedKind>>,
    target: ComparisonTarget,
    variant: ApplyVariant,
}

/// The comparison target: the content to compare with.
enum ComparisonTarget {
    Content(SharedDesiredObject),
    /// No source asks for it.
    Nothing,
    /// No source that wants it or has it may have it.
    NotAllowed,
    /// It cannot be known, for this reason.
    Unknown(&'static str),
}

impl Reconciler {
    /// Returns the input of an object's comparison, from the facts of this moment.
    pub(super) fn comparison_input(&self, id: &ObjectId) -> ComparisonInput {
        let targets = self.engine.view().entry(id).map(|entry| &entry.targets[..]).unwrap_or_default();
        // An object that went back is as its older content has it. People ask for the newest
        // revision's.
        let newest = match targets {
            [(source, _)] => {
                self.engine.view().source(*source).manifests.desired_state(id).map(|state| (*source, state))
            }
            _ => None,
        };
        let targets = newest.as_ref().map_or(targets, std::slice::from_ref);
        let has_owner = self.engine.view().entry(id).is_some_and(|entry| entry.target_content().is_some());
        let target = match targets {
            _ if !self.is_readable(id) => ComparisonTarget::NotAllowed,
            [] => ComparisonTarget::Nothing,
            [(_, DesiredState::Object(desired))] => ComparisonTarget::Content(desired.clone()),
            [(_, DesiredState::Object(desired)), ..] if has_owner => {
                ComparisonTarget::Content(desired.clone())
            }
            [(_, DesiredState::Unusable(_))] => ComparisonTarget::Unknown("its manifest cannot be used"),
            _ => ComparisonTarget::Unknown("several sources ask for it"),
        };
        let live = self.engine.view().live_object(id);
        let variant = ApplyVariant {
            // Others own it, as an autoscaler does.
            replicas: if live.is_some_and(|live| live.replicas_ceded) {
                ReplicaMode::Omitted
            } else {
                ReplicaMode::FromManifest
            },
            // A step only delays what is asked for.
            overlay: None,
            config_stamp: live.and_then(LiveObject::shown_config_stamp),
        };
        ComparisonInput {
            id: id.clone(),
            executor: self.executor_for(id),
            kind: self.kind_of(id),
            target,
            variant,
        }
    }

    /// Returns whether a source that wants an object, or has it, may have it. A manifest that is
    /// refused must not have its object shown, least of all with the rights of rhumb itself.
    fn is_readable(&self, id: &ObjectId) -> bool {
        let view = self.engine.view();
        view.acting_source(id).is_some_and(|source| view.is_allowed(source, id))
    }

    /// Returns whether a write of an object may change anything.
    pub(super) fn can_differ(&self, object: &ObjectStatus) -> bool {
        let differs = || {
            self.engine
                .view()
                .entry(&object.object.id())
                .is_some_and(|entry| entry.unreleased_content().is_some())
        };
        match object.phase {
            Phase::LeftAlone => false,
            Phase::Settled | Phase::Progressing | Phase::Failed => differs(),
            _ => true,
        }
    }
}

impl ComparisonInput {
    /// Asks the API server.
    pub(super) async fn compare(self) -> ObjectComparison {
        let noted = |note: String| ObjectComparison { note: Some(note), ..ObjectComparison::default() };
        if matches!(self.target, ComparisonTarget::NotAllowed) {
            return noted(NOT_ALLOWED_NOTE.to_owned());
        }
        let Some(kind) = self.kind.clone() else {
            return noted("the server has no such kind now".to_owned());
        };
        let live = match self.executor.cluster.get(&kind, &self.id).await {
            Ok(live) => live,
            Err(error) => return noted(error.reason()),
        };
        let (applied, note) = match &self.target {
            ComparisonTarget::Content(desired) => self.desired_content(&kind, desired, live.as_ref()).await,
            ComparisonTarget::Nothing => (None, Some("no source asks for it".to_owned())),
            ComparisonTarget::NotAllowed => (None, Some(NOT_ALLOWED_NOTE.to_owned())),
            ComparisonTarget::Unknown(why) => (None, Some((*why).to_owned())),
        };
        let (before, after) = change::present_pair(&self.id, live.as_ref(), applied.as_ref());
        let side = |side: &Option<Value>| side.clone().unwrap_or_default();
        let difference = match (&self.target, &after) {
            (ComparisonTarget::Nothing, _) | (_, Some(_)) => {
                change::unified_diff(&side(&before), &side(&after))
            }
            // An unknown result is not "nothing".
            (_, None) => String::new(),
        };
        let text = |side: Option<Value>| side.map(|side| change::write_yaml(&side));
        ObjectComparison { live: text(before), desired: text(after), difference, note }
    }

    /// Returns the object as a write would make it.
    async fn desired_content(
        &self,
        kind: &ServedKind,
        desired: &SharedDesiredObject,
        live: Option<&Value>,
    ) -> (Option<Value>, Option<String>) {
        let release = ContentRef { hash: self.variant.hash(desired), revision: Revision::new("") };
        let annotation = ReleaseAnnotation { release, seal: None };
        let (contents, content, variant, shown) =
            (self.executor.contents.clone(), desired.clone(), self.variant, live.cloned());
        let body = run_blocking(move || contents.body(&content, &annotation, variant, shown.as_ref()));
        let body = match body.await {
            Ok(body) => body,
            Err(error) => return (None, Some(error.to_string())),
        };
        let uid = live.map(|live| Uid(text_at(live, &["metadata", "uid"]).into()));
        let precondition = uid.map_or(Precondition::Absent, Precondition::Uid);
        match self.executor.cluster.dry_run_replacing(kind, desired, &body, live, &precondition).await {
            Ok(answer) => (Some(answer.after), None),
            Err(error) => {
                let laid = live.map_or_else(|| body.clone(), |live| change::merge_content(live, &body));
                (Some(laid), Some(format!("not from the API server, which says: {}", error.reason())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokio::sync::mpsc;

    use super::super::super::setup::Setup;
    use super::super::RunMode;
    use super::*;
    use crate::cluster::ServedScope;
    use crate::cluster::tests::fake::{FakeApiServer, ScriptedReply};
    use crate::engine::tests::world::{FIRST, config, desired, following, gvk, reading};
    use crate::engine::{AdoptPolicy, FileFacts, RepositoryIdentity, SourceReading, UnusableObject};
    use crate::object::ManifestOrigin;

    /// Returns a reading of one file, whose manifest of this object is refused.
    fn refused_reading(id: &ObjectId) -> SourceReading {
        let object = UnusableObject {
            id: id.clone(),
            gvk: gvk(id),
            origin: ManifestOrigin::new("refused.yaml".into(), 1, 1),
            reason: "it is not allowed".into(),
        };
        let facts = FileFacts { disallowed: vec![Arc::new(object)], ..FileFacts::default() };
        let files = vec![("refused.yaml".into(), Some(facts))];
        SourceReading { revision: Some(Revision::new("r2")), files, ..SourceReading::default() }
    }

    #[tokio::test]
    async fn an_object_whose_manifest_is_refused_is_read_for_nobody() {
        let fake = FakeApiServer::start(|_, _| ScriptedReply::Complete(403, "", "{}".to_owned())).await;
        let setup = Setup::in_test(fake.cluster.clone(), Vec::new());
        let mut reconciler = Reconciler::new(setup, RunMode::Daemon, mpsc::unbounded_channel().0);
        let (wanted, refused) = (config("wanted"), config("refused"));
        reconciler.engine =
            following(&[("one", "set-a", RepositoryIdentity::Unknown)], AdoptPolicy::IfUnowned);
        let content = desired(&wanted, 1, "wanted");
        reconciler.engine.read(FIRST, reading("r1", &[("wanted", Some(content))]));
        reconciler.engine.read(FIRST, refused_reading(&refused));
        let kind = Arc::new(ServedKind {
            gvk: gvk(&wanted),
            plural: "configmaps".into(),
            scope: ServedScope::Namespaced,
            verbs: BTreeSet::new(),
        });
        for (id, is_read) in [(&wanted, true), (&refused, false)] {
            let before = fake.asked().len();
            let input = ComparisonInput { kind: Some(kind.clone()), ..reconciler.comparison_input(id) };
            let compared = input.compare().await;
            assert_eq!(fake.asked().len() > before, is_read, "{id}");
            let is_withheld = compared.note.as_deref() == Some(NOT_ALLOWED_NOTE);
            assert_eq!((is_withheld, compared.live), (!is_read, None), "{id}");
        }
    }
}
