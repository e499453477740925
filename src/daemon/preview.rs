//! One pass of the same engine in which nothing is written. Where a decision needs more than the
//! store has, the object is read. A server dry run takes the place of each write.

mod early_lists;
mod lists;
mod plan;
mod plan_executor;
mod progress;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::early_lists::{EarlyListing, EarlyLists};
use self::plan_executor::PlanExecutor;
pub(crate) use self::progress::PreviewProgress;
use super::accepted_revision;
use super::action_executor::{direct_view, run_blocking};
use super::cluster_facts::versions_of;
use super::contents::{ContentOrigin, ContentStore, SourceBytes};
use super::drift::{self, ComparedObject, ComparisonRequest};
use super::handover::read_peers;
use super::kinds::kind_scopes;
use super::manifest_facts::ReadSettings;
use super::moved_objects::MovedObjectSearch;
use super::parse_ahead::EarlyParse;
use super::parsed_manifests::ParsedManifests;
use super::plan_lookups::decide_foreign_objects;
use super::setup::{SourceFiles, SourceSetup};
use super::source_task::{ClusterFactReader, OlderContents, read_disk, repository_of};
use crate::cluster::{Cluster, ClusterError, KindLookup, KindTable, ServedKind, inventory_id_of};
use crate::engine::{
    ApplyVariant, Budget, ContentRef, Decision, DesiredState, Engine, FieldOwnership, Input,
    KindAvailability, KindState, ObjectEntry, ObjectOwner, ObjectQuestion, PeerRules, Plan, PrunePolicy,
    ReadState, ReleaseAnnotation, RepairImpact, SharedDesiredObject, SourceDeclaration, SourceId,
    SourceReading, SourceService, VerifiedOwnership, WatchScope, process_object,
};
use crate::object::{GroupKind, Gvk, ObjectId, Revision};
use crate::source;

/// Server dry runs in flight at once.
const CONCURRENT_DRY_RUNS: usize = 8;

/// The names that are looked up together, by kind and namespace.
type LookupGroups = BTreeMap<(GroupKind, Option<String>), BTreeSet<String>>;

/// The questions that are answered together.
#[derive(Default)]
struct OpenQuestions {
    /// The objects to be looked up.
    lookups: LookupGroups,
    /// The contents to be compared with what was listed.
    comparisons: Vec<ComparisonRequest>,
}

/// Returns what one pass over a source would do. Writes nothing to the cluster. Its files are read
/// and parsed while the server says which kinds it has.
///
/// Fails where the source is not ready, and when the API server cannot be asked at all.
pub(crate) async fn preview<E: From<PreviewError>>(
    cluster: &Cluster,
    namespace: &str,
    setup: impl Future<Output = Result<SourceSetup, E>>,
    progress: &PreviewProgress,
) -> Result<Plan, E> {
    let prepare = async {
        let setup = setup.await?;
        let early_parse = EarlyParse::start(&setup.files, &setup.decrypter);
        Ok::<_, E>((setup, early_parse))
    };
    let (prepared, kinds) = tokio::join!(prepare, cluster.discover());
    let ((setup, early_parse), kinds) = (prepared?, kinds.map_err(PreviewError::Cluster)?);
    let mut preview = PreviewRun::new(cluster.clone(), namespace, kinds, progress);
    let source = Box::pin(preview.add(setup, early_parse)).await?;
    let decisions = Box::pin(preview.decide_all(source)).await?;
    Ok(preview.plan(decisions).await)
}

/// Does the same as [`preview`], of one object alone: the plan has no other.
///
/// # Errors
///
/// As [`preview`].
pub(crate) async fn preview_of(
    cluster: &Cluster,
    namespace: &str,
    setup: SourceSetup,
    id: &ObjectId,
) -> Result<Plan, PreviewError> {
    let (kinds, progress) = (cluster.discover().await?, PreviewProgress::default());
    let mut preview = PreviewRun::new(cluster.clone(), namespace, kinds, &progress);
    let source = Box::pin(preview.add(setup, None)).await?;
    let mut decisions = Box::pin(preview.decide_all(source)).await?;
    decisions.retain(|other, _| other == id);
    Ok(preview.plan(decisions).await)
}

/// Does the same as [`preview`], of several sources as one process would serve them: what one of
/// them wants or has counts for the others. One that cannot be read has its error in place of a
/// plan, and the others know nothing of it.
///
/// # Errors
///
/// The API server cannot be asked at all.
pub(crate) async fn preview_all(
    cluster: &Cluster,
    namespace: &str,
    setups: Vec<SourceSetup>,
    planned: impl Fn(&str) -> bool,
    progress: &PreviewProgress,
) -> Result<Vec<(String, Result<Plan, source::SourceError>)>, PreviewError> {
    let mut preview = PreviewRun::new(cluster.clone(), namespace, cluster.discover().await?, progress);
    preview.source_count = setups.len();
    let mut read = Vec::new();
    for setup in setups {
        let name = setup.name.clone();
        match Box::pin(preview.add(setup, None)).await {
            Ok(source) => read.push((name, Ok(source))),
            Err(PreviewError::Source(error)) => read.push((name, Err(error))),
            Err(error) => return Err(error),
        }
    }
    preview.note_all_read();
    let mut plans = Vec::new();
    for (name, source) in read {
        let plan = match source {
            Ok(_) if !planned(&name) => continue,
            Ok(source) => {
                let decisions = Box::pin(preview.decide_all(source)).await?;
                Ok(preview.plan(decisions).await)
            }
            Err(error) => Err(error),
        };
        plans.push((name, plan));
    }
    Ok(plans)
}

/// The reason for a missing plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PreviewError {
    /// The API server cannot be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] source::SourceError),
}

struct PreviewRun {
    cluster: Cluster,
    /// The namespace of the inventories.
    namespace: String,
    /// The view of each source on the cluster, by number.
    source_views: Vec<SourceView>,
    /// The source that is planned for.
    source: SourceId,
    /// The number of sources that are read.
    source_count: usize,
    /// The lists that were made while the files of the only source were read.
    early_lists: EarlyLists,
    engine: Engine,
    contents: ContentStore,
    kinds: KindTable,
    /// The facts that could not be known, of the source that is planned for.
    notes: Vec<String>,
    progress: PreviewProgress,
}

/// The view of a source on the cluster.
struct SourceView {
    /// The cluster as whom it acts.
    acting: Cluster,
    namespaces: Option<BTreeSet<Arc<str>>>,
    location: String,
    scalable: bool,
    /// None for files on disk.
    older_contents: Option<OlderContents>,
    /// The search for objects that went to another folder, for one folder of a repository.
    folder_search: Option<MovedObjectSearch>,
}

impl PreviewRun {
    fn new(cluster: Cluster, namespace: &str, kinds: KindTable, progress: &PreviewProgress) -> Self {
        let mut engine = Engine::new(Budget::default()).assume_prerequisites();
        let now = Instant::now();
        let rules = PeerRules { inventory_namespace: namespace.into(), service: SourceService::OneShot };
        engine.handle(Input::PeerRules(rules), now);
        engine.handle(Input::Clock(jiff::Timestamp::now()), now);
        engine.handle(Input::Scopes(kind_scopes(Some(&kinds))), now);
        let contents = ContentStore::new([]).with_parsed(ParsedManifests::of_single_pass());
        let namespace = namespace.to_owned();
        let (source_views, notes, progress) = (Vec::new(), Vec::new(), progress.clone());
        Self {
            cluster,
            namespace,
            source_views,
            source: SourceId::new(0),
            source_count: 1,
            early_lists: EarlyLists::default(),
            engine,
            contents,
            kinds,
            notes,
            progress,
        }
    }

    /// Reads a source, and adds it when that could be done: of one that could not nothing is known.
    async fn add(
        &mut self,
        setup: SourceSetup,
        early_parse: Option<EarlyParse>,
    ) -> Result<SourceId, PreviewError> {
        let mut setup = accepted_revision::with_anchor(&self.cluster, &self.namespace, setup).await?;
        let inventory_id: Arc<str> = inventory_id_of(&self.namespace, &setup.name).into();
        let mut source =
            SourceDeclaration::new(&setup.name, &inventory_id, setup.adopt, setup.prune, setup.radius);
        source.opt_out = setup.opt_out;
        source.account = setup.account_name();
        source.allow = setup.allow_list(&self.namespace);
        source.repository = repository_of(&setup.files);
        // A plan says who may come to want what it deletes, and waits for nobody.
        source.prune_delay = Duration::ZERO;
        source.moved = setup.moved_objects();
        let folder_search = setup.folder_search.take();
        let bytes = match &setup.files {
            SourceFiles::Source(source) => SourceBytes::Store(source.reader()),
            SourceFiles::Snapshot(disk) => SourceBytes::Disk(disk.clone()),
        };
        let acting = self.cluster.with_account(setup.service_account(&self.namespace));
        let (location, namespaces) = (setup.location.clone(), setup.namespaces.clone());
        let (decrypter, namespace) = (setup.decrypter.clone(), setup.namespace.as_str().into());
        let number = SourceId::new(self.engine.view().sources().len());
        let listing = EarlyListing {
            cluster: self.cluster.clone(),
            acting: acting.clone(),
            namespace: self.namespace.clone(),
            name: setup.name.clone(),
            inventory_id: inventory_id.clone(),
            allow: source.allow.clone(),
            namespaces: namespaces.clone(),
        };
        let reading = Box::pin(self.read(number, &inventory_id, setup, &acting, early_parse));
        let (reading, early_lists) = tokio::join!(reading, Box::pin(self.list_early(listing)));
        let (reading, older_contents) = reading?;
        self.early_lists = early_lists?;
        if namespaces.is_some() {
            source.informer_group = self.engine.add_informer_group(namespaces.clone());
        }
        let number = self.engine.add_source(source);
        self.contents.add(ContentOrigin { inventory_id, namespace, bytes, decrypter });
        let scalable = self.take(number, reading);
        let view = SourceView { acting, namespaces, location, scalable, older_contents, folder_search };
        self.source_views.push(view);
        Ok(number)
    }

    /// Reads the inventory of the only source, and lists what it has. Of several nothing is read
    /// early, as each list has the members of all.
    async fn list_early(&self, listing: EarlyListing) -> Result<EarlyLists, ClusterError> {
        if self.source_count > 1 {
            return Ok(EarlyLists::default());
        }
        listing.read(&self.kinds, &kind_scopes(Some(&self.kinds))).await
    }

    /// Records that all sources were just read, so that none of them may want more than it
    /// publishes.
    fn note_all_read(&mut self) {
        let reading = self.engine.view().last_observation_number();
        for source in self.engine.view().source_ids() {
            self.engine.handle(Input::Checked { source, reading }, Instant::now());
        }
    }

    async fn read(
        &self,
        source: SourceId,
        inventory_id: &Arc<str>,
        setup: SourceSetup,
        acting: &Cluster,
        early_parse: Option<EarlyParse>,
    ) -> Result<(SourceReading, Option<OlderContents>), source::SourceError> {
        let read_settings = setup.read_settings(source, inventory_id, &self.namespace);
        let read_settings = ReadSettings { parsed: self.contents.parsed_files(), ..read_settings };
        let scopes = kind_scopes(Some(&self.kinds));
        match setup.files {
            SourceFiles::Snapshot(disk) => {
                let read = move || read_disk(&disk, &read_settings, scopes, early_parse);
                let (reading, _) = run_blocking(read).await;
                Ok((reading, None))
            }
            SourceFiles::Source(source) => {
                let facts = ClusterFactReader::new(acting.clone(), Some(versions_of(&self.kinds)));
                let (reading, older) =
                    super::source_task::read_newest_once(source, read_settings, scopes, facts).await?;
                Ok((reading, Some(older)))
            }
        }
    }

    /// Takes a reading over, and returns whether any of it may be scaled by others.
    fn take(&mut self, source: SourceId, reading: SourceReading) -> bool {
        let facts = reading.files.iter().filter_map(|(_, facts)| facts.as_ref());
        let desired: Vec<SharedDesiredObject> = facts.flat_map(|facts| &facts.objects).cloned().collect();
        self.engine.handle(Input::Read { source, reading }, Instant::now());
        for gvk in desired.iter().map(|desired| desired.gvk.clone()).collect::<BTreeSet<Gvk>>() {
            let availability = match self.kinds.get(&gvk) {
                KindLookup::Served(_) => KindAvailability::Served,
                KindLookup::Unserved { versions } => {
                    KindAvailability::Unserved(versions.iter().map(ToString::to_string).collect())
                }
                KindLookup::Unknown => KindAvailability::Unknown,
            };
            self.engine.handle(Input::Discovered { gvk, availability }, Instant::now());
        }
        desired.iter().any(|desired| desired.hash_without_replicas.is_some())
    }

    /// Turns to a source, and decides about all that it wants or has.
    async fn decide_all(&mut self, source: SourceId) -> Result<BTreeMap<ObjectId, Decision>, PreviewError> {
        self.source = source;
        self.notes.clear();
        self.list().await?;
        self.read_scalers().await;
        self.read_configs().await?;
        self.reread_last_contents().await;
        self.search_folders().await;
        let mut decisions = self.decide_objects().await?;
        if self.engine.view().is_peer_read_needed() {
            self.ask_others().await?;
            decisions = self.decide_objects().await?;
        }
        decide_foreign_objects(&self.cluster, &self.namespace, &mut self.engine, &mut decisions).await;
        if self.engine.view().source(source).declared.prune == PrunePolicy::Partial {
            decisions.retain(|id, _| self.desired_state(id).is_some());
        }
        Ok(decisions)
    }

    /// Reads again the last content of what the source no longer wants: a manifest says which objects
    /// are never pruned. A content that cannot be had says nothing.
    async fn reread_last_contents(&mut self) {
        let Some(mut older) = self.source_views[self.source].older_contents.take() else { return };
        let is_unwanted =
            |id: &ObjectId| self.engine.view().entry(id).is_some_and(|entry| entry.targets.is_empty());
        let mut unread = self.engine.view().unread_contents();
        for contents in unread.values_mut() {
            contents.retain(|(id, _)| is_unwanted(id));
        }
        unread.retain(|_, contents| !contents.is_empty());
        for (revision, contents) in unread {
            let read = older.read(revision, contents).await;
            for (id, release, content) in read.unwrap_or_default() {
                self.engine.handle(Input::OlderContent { id, release, content }, Instant::now());
            }
        }
        self.source_views[self.source].older_contents = Some(older);
    }

    /// Searches other folders for what would be deleted otherwise.
    async fn search_folders(&mut self) {
        let Some(dropped) = self.engine.view().objects_to_search(self.source) else { return };
        let Some(search) = self.source_views[self.source].folder_search.take() else { return };
        let moved = search.find(dropped).await;
        self.engine.handle(Input::Searched { source: self.source, moved }, Instant::now());
    }

    /// Reads what the other sources of the cluster want. Where that cannot be done the plan is made
    /// without it, and says so.
    async fn ask_others(&mut self) -> Result<(), ClusterError> {
        match read_peers(&self.cluster, &self.namespace).await {
            Ok(peers) => self.engine.handle(Input::Peers(peers), Instant::now()),
            Err(error) if error.is_unreachable() => return Err(error),
            Err(error) => {
                self.engine.handle(Input::PeersUnreadable, Instant::now());
                self.notes.push(format!(
                    "it is not known what other sources of the cluster want, so it may be among the deletions: {error}"
                ));
            }
        }
        Ok(())
    }

    fn source_view(&self) -> &SourceView {
        &self.source_views[self.source]
    }

    /// Returns the source's own desired state of an object, whatever other sources ask for.
    fn desired_state(&self, id: &ObjectId) -> Option<&DesiredState> {
        let wants = &self.engine.view().entry(id)?.targets;
        wants.iter().find(|(source, _)| *source == self.source).map(|(_, state)| state)
    }

    /// Returns the objects that the source wants, or has as far as that is seen.
    fn concerned_objects(&self) -> impl Iterator<Item = &ObjectId> {
        let inventory_id = &self.engine.view().source(self.source).declared.inventory_id;
        let concerns = move |id: &ObjectId, entry: &ObjectEntry| {
            let owner = self.engine.view().informer_object(id).map(|live| &live.owner);
            let has = match owner {
                Some(ObjectOwner::Ours(set) | ObjectOwner::Labelled(set)) => set == inventory_id,
                _ => entry.targets.is_empty(),
            };
            has || self.desired_state(id).is_some()
        };
        self.engine.view().entries().filter(move |(id, entry)| concerns(id, entry)).map(|(id, _)| id)
    }

    /// Reads what pods use, where a change of that restarts them.
    async fn read_configs(&mut self) -> Result<(), ClusterError> {
        // Without it nobody knows which objects are the source's own, and so would be pruned.
        if self.engine.view().is_reading_release_key() {
            self.read_key().await?;
        }
        if !self.engine.view().is_key_needed() {
            return Ok(());
        }
        for id in self.engine.view().data_to_watch() {
            let data = match self.source_view().acting.read_config_data(&id).await {
                Ok(data) => ReadState::Value(data),
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => ReadState::Unreadable(error.reason().into()),
            };
            self.engine.handle(Input::ConfigData { id, data }, Instant::now());
        }
        Ok(())
    }

    async fn read_key(&mut self) -> Result<(), ClusterError> {
        let key = match self.cluster.read_config_key(&self.namespace).await {
            Ok(key) => key.and_then(|key| key.key()).ok_or_else(|| "there is none".into()),
            Err(error) if error.is_unreachable() => return Err(error),
            Err(error) => Err(error.reason().into()),
        };
        let key = key.map_or_else(ReadState::Unreadable, ReadState::Value);
        self.engine.handle(Input::Key(key), Instant::now());
        Ok(())
    }

    /// Decides about all; questions that a decision asks are answered until none is left.
    async fn decide_objects(&mut self) -> Result<BTreeMap<ObjectId, Decision>, ClusterError> {
        let now = Instant::now();
        let mut decisions = BTreeMap::new();
        let mut open: Vec<ObjectId> = self.concerned_objects().cloned().collect();
        while !open.is_empty() {
            let mut questions = OpenQuestions::default();
            for id in std::mem::take(&mut open) {
                if let Some(question) = self.decide_object(&id, &mut decisions, now) {
                    self.answer(&id, question, &mut questions, now).await;
                    open.push(id);
                }
            }
            self.compare_cached(questions.comparisons, now).await;
            self.look_up(questions.lookups).await?;
        }
        Ok(decisions)
    }

    /// Decides about an object, and notes the decision. Returns the question that it asks instead.
    fn decide_object(
        &mut self,
        id: &ObjectId,
        decisions: &mut BTreeMap<ObjectId, Decision>,
        now: Instant,
    ) -> Option<ObjectQuestion> {
        let mut executor = PlanExecutor { engine: &mut self.engine, decisions, question: None };
        process_object(&mut executor, id.clone(), now);
        executor.question
    }

    /// Answers a question about an object. Some are collected, and answered together.
    async fn answer(
        &mut self,
        id: &ObjectId,
        question: ObjectQuestion,
        questions: &mut OpenQuestions,
        now: Instant,
    ) {
        let verified = match question {
            ObjectQuestion::Existence => {
                let group = (id.group_kind(), id.namespace().map(str::to_owned));
                questions.lookups.entry(group).or_default().insert(id.name().to_owned());
                return;
            }
            ObjectQuestion::OlderContent => return self.give_up_reading(id),
            ObjectQuestion::CachedComparison(desired, variant) => {
                questions.comparisons.push(self.comparison_request(id, &desired, variant));
                return;
            }
            ObjectQuestion::LiveComparison(desired, variant) => {
                self.compare_live(id, &desired, variant).await
            }
        };
        self.engine.handle(Input::Compared { id: id.clone(), verified }, now);
    }

    async fn look_up(&mut self, lookups: LookupGroups) -> Result<(), ClusterError> {
        for ((group_kind, namespace), names) in lookups {
            let Some(kind) = self.kind(&group_kind) else { continue };
            let found = match self.source_view().acting.look_up(&kind, namespace.as_deref(), &names).await {
                Ok(found) => found,
                Err(error) if error.is_unreachable() => return Err(error),
                Err(error) => {
                    let is_of = |listing: &WatchScope| {
                        listing.namespace.is_none() || listing.namespace.as_deref() == namespace.as_deref()
                    };
                    for listing in self.list_scopes(&kind).into_iter().filter(is_of) {
                        let state = KindState::Unobservable(error.reason().as_str().into(), error.class());
                        self.set_informer_state(listing, state);
                    }
                    continue;
                }
            };
            for name in names {
                let id = ObjectId::new(&group_kind, namespace.as_deref(), &name);
                let view = direct_view(found.get(&name));
                self.engine.handle(Input::LookedUp { id, view }, Instant::now());
            }
        }
        Ok(())
    }

    fn kind(&self, group_kind: &GroupKind) -> Option<Arc<ServedKind>> {
        match self.kinds.preferred_kind(group_kind) {
            KindLookup::Served(kind) => Some(kind),
            KindLookup::Unserved { .. } | KindLookup::Unknown => None,
        }
    }

    fn served_kind_of_version(&self, gvk: &Gvk) -> Option<Arc<ServedKind>> {
        match self.kinds.get(gvk) {
            KindLookup::Served(kind) => Some(kind),
            KindLookup::Unserved { .. } | KindLookup::Unknown => None,
        }
    }

    async fn content(&self, desired: &SharedDesiredObject, variant: ApplyVariant) -> Option<Value> {
        let (contents, desired) = (self.contents.clone(), desired.clone());
        let release = ContentRef { hash: variant.hash(&desired), revision: Revision::new("") };
        let annotation = ReleaseAnnotation { release, seal: None };
        run_blocking(move || contents.body_without_live(&desired, &annotation, variant)).await.ok()
    }

    /// Compares contents with what was listed. One that cannot be read counts as empty.
    async fn compare_cached(&mut self, requests: Vec<ComparisonRequest>, now: Instant) {
        for ComparedObject { request, verified } in drift::compare_cached(&self.contents, requests).await {
            let verified = verified.unwrap_or_else(|_| request.answer_from_view(Value::Null));
            self.engine.handle(Input::Compared { id: request.id, verified }, now);
        }
    }

    /// Reads an object whose values have to be compared, and asks a dry run where they are spelled
    /// otherwise. An object that cannot be read counts as changed.
    async fn compare_live(
        &self,
        id: &ObjectId,
        desired: &SharedDesiredObject,
        variant: ApplyVariant,
    ) -> VerifiedOwnership {
        let request = self.comparison_request(id, desired, variant);
        let verified = match self.served_kind_of_version(&desired.gvk) {
            Some(kind) => {
                drift::compare_live(&self.source_view().acting, &self.contents, &kind, &request).await.ok()
            }
            None => None,
        };
        verified.unwrap_or_else(|| request.verdict(FieldOwnership::Lost(RepairImpact::InPlace)))
    }

    fn comparison_request(
        &self,
        id: &ObjectId,
        desired: &SharedDesiredObject,
        variant: ApplyVariant,
    ) -> ComparisonRequest {
        ComparisonRequest::new(id.clone(), desired.clone(), variant, self.engine.view().live_object(id))
    }

    fn give_up_reading(&mut self, id: &ObjectId) {
        let named = self.engine.view().unread_contents();
        for (revision, wanted) in named {
            for (id, hash) in wanted.into_iter().filter(|(other, _)| other == id) {
                let release = ContentRef { hash, revision: revision.clone() };
                self.engine.handle(Input::OlderContent { id, release, content: None }, Instant::now());
            }
        }
    }
}
