//! One dry run: the same facts, the same decisions, and the server's own answer instead of a write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::mpsc;

use super::act::blocking;
use super::contents::{Bytes, Contents};
use super::drift::{self, Question};
use super::feed::read_disk;
use super::inventory;
use super::kinds::{UNLISTED, scopes};
use super::reading::{Dialect, Names};
use super::setup::{Files, SourceSetup};
use crate::change::{self, Impact, ImpactKind};
use crate::cluster::{
    Cluster, Error, Fault, Kind, Kinds, Looked as Found, Lookup, News, Selector, applyset_id,
};
use crate::engine::{
    Action, Apply, Budget, Cover, Decision, Engine, Form, GROUP_DOWN, Guard, Inventory, KindState, Known,
    Looked, Lost, Plan, Planned, Purpose, Reason, Recreate, Release, ReleaseClaim, Removal, Sealing, Served,
    Shared, Source, SourceId, Verdict, Verified, replaceable, units,
};
use crate::object::{Class, GroupKind, Gvk, ObjectId, Revision};
use crate::source;

/// Server dry runs in flight at once.
const CONCURRENCY: usize = 8;

/// How long the autoscalers may take to be listed.
const SCALERS: Duration = Duration::from_secs(10);

/// The number of the only source.
const ONLY: SourceId = 0;

/// Tells what one pass over a source would do. Writes nothing to the cluster.
///
/// Fails when the API server cannot be asked at all.
pub async fn preview(cluster: &Cluster, namespace: &str, setup: SourceSetup) -> Result<Plan, PreviewError> {
    let (preview, decisions) = decided(cluster, namespace, setup).await?;
    Ok(preview.plan(decisions).await)
}

/// As [`preview`], of one object alone: the plan has no other.
///
/// # Errors
///
/// As [`preview`].
pub async fn preview_of(
    cluster: &Cluster,
    namespace: &str,
    setup: SourceSetup,
    id: &ObjectId,
) -> Result<Plan, PreviewError> {
    let (preview, mut decisions) = decided(cluster, namespace, setup).await?;
    decisions.retain(|other, _| other == id);
    Ok(preview.plan(decisions).await)
}

async fn decided(
    cluster: &Cluster,
    namespace: &str,
    setup: SourceSetup,
) -> Result<(Preview, BTreeMap<ObjectId, Decision>), PreviewError> {
    let kinds = cluster.discover().await?;
    let bytes = match &setup.files {
        Files::Followed(source) => Bytes::Store(source.reader()),
        Files::Once(disk) => Bytes::Disk(disk.clone()),
    };
    let mut preview = Preview::new(cluster.clone(), namespace, &setup, bytes, kinds);
    let name = setup.name.clone();
    preview.read(setup).await?;
    preview.list(namespace, &name).await?;
    preview.scalers().await;
    preview.configs(namespace).await?;
    let decisions = preview.decide().await?;
    Ok((preview, decisions))
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The API server cannot be asked.
    #[error(transparent)]
    Cluster(#[from] Error),
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
}

struct Preview {
    cluster: Cluster,
    engine: Engine,
    contents: Contents,
    kinds: Kinds,
    place: String,
    scalable: bool,
}

impl Preview {
    fn new(cluster: Cluster, namespace: &str, setup: &SourceSetup, bytes: Bytes, kinds: Kinds) -> Self {
        let applyset: Arc<str> = applyset_id(namespace, &setup.name).into();
        let mut engine = Engine::new(Budget::default()).foreseeing();
        engine.clock(std::time::Instant::now(), jiff::Timestamp::now());
        let mut source = Source::new(&setup.name, &applyset, setup.adopt, setup.prune, setup.radius);
        source.opt_out = setup.opt_out;
        engine.add_source(source);
        let contents = Contents::new([(applyset, bytes)]);
        Self { cluster, engine, contents, kinds, place: setup.place.clone(), scalable: false }
    }

    async fn read(&mut self, setup: SourceSetup) -> Result<(), source::Error> {
        let applyset = self.engine.source(ONLY).applyset.clone();
        let namespace = setup.namespace.as_str().into();
        let dialect = Dialect { source: ONLY, applyset, namespace, names: Names::default() };
        let scopes = scopes(Some(&self.kinds));
        let reading = match setup.files {
            Files::Once(disk) => blocking(move || read_disk(&disk, &dialect, scopes)).await.0,
            Files::Followed(source) => super::feed::at_newest(source, dialect, scopes).await?,
        };
        let facts = reading.files.iter().filter_map(|(_, facts)| facts.as_ref());
        let desired: Vec<Shared> = facts.flat_map(|facts| &facts.objects).cloned().collect();
        self.scalable = desired.iter().any(|desired| desired.ceded.is_some());
        self.engine.read(ONLY, reading);
        for gvk in desired.iter().map(|desired| desired.gvk.clone()).collect::<BTreeSet<Gvk>>() {
            let served = match self.kinds.get(&gvk) {
                Lookup::Served(_) => Served::Yes,
                Lookup::Unserved { versions } => {
                    Served::No(versions.iter().map(ToString::to_string).collect())
                }
                Lookup::Unknown => Served::Unknown,
            };
            self.engine.served(gvk, served);
        }
        Ok(())
    }

    /// Lists what is ours, and looks whether the rest exists.
    async fn list(&mut self, namespace: &str, name: &str) -> Result<(), Error> {
        let parent = self.cluster.parent(namespace, name).await?;
        let mut kinds: BTreeMap<GroupKind, Arc<Kind>> = BTreeMap::new();
        if inventory::sealing(parent.as_ref(), self.engine.seals()) == Sealing::Locked {
            self.read_key(namespace).await?;
        }
        let known = inventory::read(parent.as_ref(), &self.place, self.engine.seals());
        for held in &known.kinds {
            match self.kinds.preferred(held) {
                Lookup::Served(kind) => drop(kinds.insert(held.clone(), kind)),
                Lookup::Unserved { .. } => {
                    self.engine.informer(held, KindState::Blind(UNLISTED.into(), Class::Source));
                }
                Lookup::Unknown => {
                    self.engine.informer(held, KindState::Blind(GROUP_DOWN.into(), Class::Source));
                }
            }
        }
        let declared: Vec<(ObjectId, Option<Gvk>)> = self
            .engine
            .entries()
            .map(|(id, entry)| (id.clone(), entry.want().map(|(_, desired)| desired.gvk.clone())))
            .collect();
        for (id, gvk) in &declared {
            if let Some(Lookup::Served(kind)) = gvk.as_ref().map(|gvk| self.kinds.get(gvk)) {
                kinds.insert(id.group_kind(), kind);
            } else if let Lookup::Served(kind) = self.kinds.preferred(&id.group_kind()) {
                kinds.entry(id.group_kind()).or_insert(kind);
            }
        }
        let inventory = Inventory {
            kinds: declared.iter().map(|(id, _)| id.group_kind()).chain(known.kinds.clone()).collect(),
            unplaced: false,
            ..known
        };
        self.engine.inventory(ONLY, inventory);
        let selector = Selector::PartOf([self.engine.source(ONLY).applyset.clone()].into());
        for (group_kind, kind) in &kinds {
            match self.cluster.list(kind, &selector).await {
                Ok(all) => {
                    self.engine.list_started(group_kind);
                    for (id, live) in all {
                        self.engine.seen(&id, live);
                    }
                    self.engine.list_complete(group_kind);
                }
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => {
                    self.engine.informer(group_kind, KindState::Blind(error.reason().into(), error.class()));
                }
            }
        }
        Ok(())
    }

    async fn scalers(&mut self) {
        let scaler = Gvk::new("autoscaling", "v2", "HorizontalPodAutoscaler");
        let (true, Lookup::Served(kind)) = (self.scalable, self.kinds.get(&scaler)) else { return };
        let (to, mut from) = mpsc::channel(64);
        let informer = self.cluster.scalers(&kind, to);
        let mut targets = HashMap::new();
        let listed = async {
            while let Some(event) = from.recv().await {
                match event.news {
                    News::Seen(id, scaler) => drop(targets.insert(id, scaler.target)),
                    News::Synced => return true,
                    News::Failed(..) => return false,
                    News::Started | News::Gone(..) | News::Resumed => {}
                }
            }
            false
        };
        let complete = tokio::time::timeout(SCALERS, listed).await.unwrap_or(false);
        drop(informer);
        if !complete {
            tracing::warn!("the autoscalers cannot be listed; counts that others set are left to them");
            return;
        }
        self.engine.autoscaled(targets.into_values().flatten().map(|target| target.id).collect());
    }

    /// Reads what pods use, where a change of that restarts them.
    async fn configs(&mut self, namespace: &str) -> Result<(), Error> {
        // Without it nobody can tell which objects are the source's own, and so would be pruned.
        if self.engine.is_reading_release_key() {
            self.read_key(namespace).await?;
        }
        if !self.engine.needs_key() {
            return Ok(());
        }
        for id in self.engine.data_to_follow() {
            let data = match self.cluster.data(&id).await {
                Ok(data) => Known::Is(data),
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => Known::Blind(error.reason().into()),
            };
            self.engine.config_data(&id, data);
        }
        Ok(())
    }

    async fn read_key(&mut self, namespace: &str) -> Result<(), Error> {
        let key = match self.cluster.config_key(namespace).await {
            Ok(key) => key.and_then(|key| key.key()).ok_or_else(|| "there is none".into()),
            Err(error) if error.is_unreachable() => return Err(error),
            Err(error) => Err(error.reason().into()),
        };
        let key = key.map_or_else(Known::Blind, Known::Is);
        self.engine.release_key(key.clone());
        self.engine.config_key(key);
        Ok(())
    }

    /// Decides about all; questions that a decision asks are answered until none is left.
    async fn decide(&mut self) -> Result<BTreeMap<ObjectId, Decision>, Error> {
        let now = Instant::now();
        let mut decisions = BTreeMap::new();
        let mut open: Vec<ObjectId> = self.engine.entries().map(|(id, _)| id.clone()).collect();
        while !open.is_empty() {
            let mut looks: BTreeMap<(GroupKind, Option<String>), BTreeSet<String>> = BTreeMap::new();
            let mut again = Vec::new();
            for id in std::mem::take(&mut open) {
                let decision = self.engine.decide(&id, now);
                match &decision.action {
                    Action::Look => {
                        let group = (id.group_kind(), id.namespace().map(str::to_owned));
                        looks.entry(group).or_default().insert(id.name().to_owned());
                        again.push(id);
                    }
                    Action::Compare(want, form) => {
                        let verified = self.compare(&id, want, *form).await;
                        self.engine.verified(&id, verified);
                        again.push(id);
                    }
                    Action::Inspect(want, form) => {
                        let verified = self.inspect(&id, want, *form).await;
                        self.engine.verified(&id, verified);
                        again.push(id);
                    }
                    Action::Resolve => {
                        self.give_up_resolving(&id);
                        again.push(id);
                    }
                    _ => drop(decisions.insert(id, decision)),
                }
            }
            self.look(looks).await?;
            open = again;
        }
        Ok(decisions)
    }

    async fn look(
        &mut self,
        looks: BTreeMap<(GroupKind, Option<String>), BTreeSet<String>>,
    ) -> Result<(), Error> {
        for ((group_kind, namespace), names) in looks {
            let Some(kind) = self.kind(&group_kind) else { continue };
            let found = match self.cluster.look(&kind, namespace.as_deref(), &names).await {
                Ok(found) => found,
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => {
                    self.engine.informer(&group_kind, KindState::Blind(error.reason().into(), error.class()));
                    continue;
                }
            };
            for name in names {
                let id = ObjectId::new(&group_kind, namespace.as_deref(), &name);
                let looked = match found.get(&name) {
                    Some(Found::Found(live)) => Looked::Found(live.clone()),
                    Some(Found::Absent) | None => Looked::Absent,
                };
                self.engine.looked(&id, looked);
            }
        }
        Ok(())
    }

    fn kind(&self, group_kind: &GroupKind) -> Option<Arc<Kind>> {
        match self.kinds.preferred(group_kind) {
            Lookup::Served(kind) => Some(kind),
            Lookup::Unserved { .. } | Lookup::Unknown => None,
        }
    }

    fn exactly(&self, gvk: &Gvk) -> Option<Arc<Kind>> {
        match self.kinds.get(gvk) {
            Lookup::Served(kind) => Some(kind),
            Lookup::Unserved { .. } | Lookup::Unknown => None,
        }
    }

    async fn content(&self, want: &Shared, form: Form) -> Option<Value> {
        let (contents, want) = (self.contents.clone(), want.clone());
        let release = Release { hash: form.hash(&want), revision: Revision::new("") };
        let claim = ReleaseClaim { release, seal: None };
        blocking(move || contents.body(&want, &claim, form)).await.ok()
    }

    async fn compare(&self, id: &ObjectId, want: &Shared, form: Form) -> Verified {
        let question = self.question(id, want, form);
        let (contents, want) = (self.contents.clone(), want.clone());
        let content = blocking(move || contents.defended(&want)).await.unwrap_or_default();
        question.answer(content)
    }

    /// What cannot be looked at is tried by the server's dry run, whose words then stand in the plan.
    async fn inspect(&self, id: &ObjectId, want: &Shared, form: Form) -> Verified {
        let question = self.question(id, want, form);
        let verified = match self.exactly(&want.gvk) {
            Some(kind) => drift::inspected(&self.cluster, &self.contents, &kind, &question).await.ok(),
            None => None,
        };
        verified.unwrap_or_else(|| question.verified(Cover::Lost(Lost::InPlace)))
    }

    fn question(&self, id: &ObjectId, want: &Shared, form: Form) -> Question {
        Question::new(id.clone(), want.clone(), form, self.engine.shown(id))
    }

    fn give_up_resolving(&mut self, id: &ObjectId) {
        let named = self.engine.unresolved();
        for (revision, wanted) in named {
            for (other, hash) in wanted.into_iter().filter(|(other, _)| other == id) {
                self.engine.resolved(&other, &Release { hash, revision: revision.clone() }, None);
            }
        }
    }

    async fn plan(&self, decisions: BTreeMap<ObjectId, Decision>) -> Plan {
        let source = self.engine.source(ONLY);
        let mut planned: Vec<Planned> = stream::iter(&decisions)
            .map(|(id, decision)| self.planned(id, decision))
            .buffer_unordered(CONCURRENCY)
            .filter_map(|planned| async { planned })
            .collect()
            .await;
        planned.sort_by_cached_key(|p| {
            let deletion = p.verdict == Verdict::Delete;
            let rank = i16::from(crate::graph::rank(&p.id.group_kind()));
            (deletion, p.wave, if deletion { -rank } else { rank }, p.id.clone())
        });
        let changed = planned.iter().filter(|planned| planned.verdict != Verdict::Unchanged);
        let changed: Vec<&ObjectId> = changed.map(|planned| &planned.id).collect();
        let units = units(&planned, &self.engine.parts(&changed));
        let guarded = |decision: &Decision| matches!(decision.reason, Some(Reason::Confirm(_)));
        Plan {
            guarded: decisions.values().any(guarded),
            source: source.name.to_string(),
            revision: source.head.as_ref().map(ToString::to_string).unwrap_or_default(),
            complete: source.incomplete.is_none(),
            objects: planned,
            units,
            notes: self.engine.unlisted(ONLY).into_iter().collect(),
            diagnostics: source.diagnostics(),
        }
    }

    /// What is planned of an object, and which of its fields are not looked at.
    async fn planned(&self, id: &ObjectId, decision: &Decision) -> Option<Planned> {
        let planned = self.planned_by(id, decision).await?;
        let want = self.engine.entry(id).and_then(|entry| entry.want()).map(|(_, want)| want);
        let ignored =
            want.and_then(|want| want.ignores.as_deref()).map(|paths| format!("left to others: {paths}"));
        let reason = match (planned.reason, ignored) {
            (Some(reason), Some(ignored)) => Some(format!("{reason}; {ignored}")),
            (reason, ignored) => reason.or(ignored),
        };
        Some(Planned { reason, ..planned })
    }

    async fn planned_by(&self, id: &ObjectId, decision: &Decision) -> Option<Planned> {
        let base = self.base(id)?;
        let reason = decision.reason.as_ref();
        match &decision.action {
            Action::Apply(apply) => Some(self.apply(base, apply, reason).await),
            Action::Delete(_, _, removal) => Some(self.delete(base, *removal).await),
            Action::Nothing => Some(match reason {
                None => base,
                Some(Reason::Unserved(gvk, _)) if self.engine.definition_of(&gvk.group_kind()).is_some() => {
                    self.unchecked(base, &format!("the definition of {} is applied first", gvk.kind)).await
                }
                Some(Reason::Kept(why)) if self.engine.source(ONLY).incomplete.is_none() => {
                    Planned { reason: Some(why.to_string()), ..base }
                }
                Some(reason @ (Reason::LeftAlone(_) | Reason::OptedOut(_))) => {
                    Planned { reason: Some(reason.to_string()), ..base }
                }
                Some(reason) => {
                    let verdict = if reason.is_refusal() { Verdict::Refuse } else { Verdict::Wait };
                    Planned { verdict, reason: Some(reason.to_string()), ..base }
                }
            }),
            _ => None,
        }
    }

    /// The object as it stands in the plan when nothing is to be done.
    fn base(&self, id: &ObjectId) -> Option<Planned> {
        let entry = self.engine.entry(id)?;
        let want = entry.wants.first().map(|(_, want)| want);
        let gvk = match want {
            Some(crate::engine::Want::Object(desired)) => desired.gvk.clone(),
            Some(crate::engine::Want::Held(held)) => held.gvk.clone(),
            None => self.engine.live(id)?.gvk.clone(),
        };
        Some(Planned {
            id: id.clone(),
            gvk,
            origin: want.map(|want| want.origin().clone()),
            wave: entry.want().map_or(0, |(_, desired)| desired.wave),
            verdict: Verdict::Unchanged,
            impact: Impact { kind: ImpactKind::None, pods: 0 },
            fields: Vec::new(),
            reason: None,
            before: None,
            after: None,
        })
    }

    async fn apply(&self, base: Planned, apply: &Apply, reason: Option<&Reason>) -> Planned {
        let Some(kind) = self.exactly(&apply.want.gvk) else { return base };
        let claim = apply.claim();
        let (contents, want, form) = (self.contents.clone(), apply.want.clone(), apply.form);
        let before = match apply.guard {
            Guard::Absent => Ok(None),
            Guard::Uid(_) | Guard::Exact(..) => self.cluster.get(&kind, &base.id).await,
        };
        let live = before.as_ref().ok().cloned().flatten();
        let body = blocking(move || match live {
            Some(live) => contents.body_for(&want, &claim, form, &live).map(|(body, _)| body),
            None => contents.body(&want, &claim, form),
        });
        let body = match body.await {
            Ok(body) => body,
            Err(error) => {
                return Planned { verdict: Verdict::Refuse, reason: Some(error.to_string()), ..base };
            }
        };
        // Nothing is written, so what changes meanwhile is no conflict.
        let guard = match &apply.guard {
            Guard::Exact(uid, _) => Guard::Uid(uid.clone()),
            guard => guard.clone(),
        };
        let shown_now = before.as_ref().ok().and_then(Option::as_ref);
        let after = self.cluster.dry_run(&kind, &base.id, &body, shown_now, &guard).await;
        match (before, after) {
            (Ok(before), Ok(after)) => {
                let who = match &before {
                    Some(shown) if apply.purpose == Purpose::Repair => {
                        drift::who_changed(&self.contents, &base.id, apply, shown.clone()).await
                    }
                    _ => None,
                };
                shown(base, before, Some(after), who.or_else(|| note(&self.engine, apply, reason)))
            }
            (_, Err(error)) if self.makes_namespace(&base.id, &error) => {
                let namespace = base.id.namespace().unwrap_or_default();
                let why = format!("the namespace {namespace} is made first");
                self.unchecked(base, &why).await
            }
            (before, Err(error)) => self.refused(base, apply, &error, before.ok().flatten(), &body),
            (Err(error), _) => self.refused(base, apply, &error, None, &body),
        }
    }

    /// What the server does not take as it is: deleted and created again where the manifest allows that.
    fn refused(
        &self,
        base: Planned,
        apply: &Apply,
        error: &Error,
        before: Option<Value>,
        body: &Value,
    ) -> Planned {
        let reason = error.reason();
        if !matches!(error.fault(), Fault::Immutable { .. }) {
            return Planned { verdict: Verdict::Refuse, reason: Some(reason), ..base };
        }
        if apply.want.traits.recreate != Recreate::Allowed {
            let reason = Some(replaceable(&reason).to_string());
            return Planned { verdict: Verdict::Refuse, reason, ..base };
        }
        let pods =
            self.engine.live(&base.id).and_then(|live| live.rolling).map_or(0, |rolling| rolling.replicas);
        // The server shows no object that would be made anew: what the manifest asks for stands in for it.
        let after = before.as_ref().map(|before| change::laid_over(before, body));
        let impact = Impact { kind: ImpactKind::Recreate, pods };
        Planned { verdict: Verdict::Recreate, impact, ..shown(base, before, after, Some(reason)) }
    }

    /// Whether the server misses a namespace that the source brings.
    fn makes_namespace(&self, id: &ObjectId, error: &Error) -> bool {
        let missing = matches!(error.fault(), Fault::NoNamespace { .. });
        let Some(namespace) = id.namespace().filter(|_| missing) else { return false };
        let namespace = ObjectId::new(&GroupKind::new("", "Namespace"), None, namespace);
        self.engine.entry(&namespace).is_some_and(|entry| entry.want().is_some())
    }

    /// A creation that the server cannot check yet.
    async fn unchecked(&self, base: Planned, why: &str) -> Planned {
        let want =
            self.engine.entry(&base.id).and_then(|entry| entry.want()).map(|(_, desired)| desired.clone());
        let after = match &want {
            Some(want) => self.content(want, Form::PLAIN).await,
            None => None,
        };
        let note = format!("not checked by the server yet, as {why}");
        Planned { verdict: Verdict::Create, ..shown(base, None, after, Some(note)) }
    }

    async fn delete(&self, base: Planned, removal: Removal) -> Planned {
        let before = match self.kind(&base.id.group_kind()) {
            Some(kind) => self.cluster.get(&kind, &base.id).await.ok().flatten(),
            None => None,
        };
        let (verdict, reason) = match removal {
            Removal::Prune => (Verdict::Delete, Some("not wanted any more".to_owned())),
            Removal::Recreate => (Verdict::Recreate, None),
        };
        Planned { verdict, ..shown(base, before, None, reason) }
    }
}

fn note(engine: &Engine, apply: &Apply, reason: Option<&Reason>) -> Option<String> {
    let own = match apply.purpose {
        Purpose::Adopt => Some("it exists and is taken over".to_owned()),
        Purpose::Transfer => Some("it is taken over from another source".to_owned()),
        Purpose::Repair => Some("somebody changed it".to_owned()),
        Purpose::Step => Some("its rollout goes on".to_owned()),
        Purpose::Restart => {
            let words = apply.form.started.map(|started| engine.changed_words(&apply.want.id, started));
            Some(format!("its pods are restarted, as the data of {} change", words.unwrap_or_default()))
        }
        Purpose::Create | Purpose::Change => None,
    };
    own.or_else(|| reason.map(ToString::to_string))
}

/// What differs between the live object and the server's answer.
fn shown(base: Planned, before: Option<Value>, after: Option<Value>, reason: Option<String>) -> Planned {
    let fields = change::fields(&base.id, before.as_ref(), after.as_ref());
    let impact = change::impact(&base.id.group_kind(), before.as_ref(), after.as_ref());
    let verdict = if before.is_none() { Verdict::Create } else { Verdict::Configure };
    let (before, after) = change::presentable_pair(&base.id, before.as_ref(), after.as_ref());
    let (before, after) = (before.map(Arc::new), after.map(Arc::new));
    Planned { verdict, impact, fields, reason, before, after, ..base }
}
