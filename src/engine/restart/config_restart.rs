//! Restarts for changed configuration: the data that pods use now, and those that they were started
//! with.
//!
//! Of an object from git its applied content counts. So a workload restarts right after its
//! configuration was written, and never for somebody's passing edit of it. Of any other object the
//! cluster's data count.

use crate::object::annotations;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::facts::changed_data::ChangedData;
use crate::engine::facts::config_hash::{ConfigData, HashKey, config_hash, key_id};
use crate::engine::facts::config_stamp::{ConfigStamp, PinnedConfig, differing_positions};
use crate::engine::facts::desired::ConfigRole;
use crate::engine::facts::entry::{SourceId, WaitTopic};
use crate::engine::facts::hash_seal::SealState;
use crate::engine::facts::read_state::ReadState;
use crate::engine::facts::records::release_unit::{ConfigRestart, ReleaseUnit, UnitMember};
use crate::engine::facts::sources::SourceState;
use crate::engine::restart::config_consumers::DataViews;
use crate::engine::rollout::rollback::rejection_cause::{FailedChange, FailedRelease};
use crate::engine::state::Engine;
use crate::engine::{
    AcceptedContent, DependencyState, DesiredObject, DesiredState, DirectView, LiveObject, ObjectEntry,
    Reason,
};
use crate::object::{ContentHash, ObjectId};

/// The data that pods use.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(in crate::engine) struct ConfigDataState {
    pub(in crate::engine) key: ReadState<HashKey>,
    /// The state of the seals of Secret hashes.
    pub(in crate::engine) sealed: SealState,
    /// Data of objects that are not from git.
    followed: HashMap<ObjectId, ReadState<Option<ConfigData>>>,
    /// The workloads that restart when an object changes, by that object.
    pub(super) users: HashMap<ObjectId, BTreeSet<ObjectId>>,
    /// The data of each of these objects as its users saw them when they were asked last.
    pub(super) views: HashMap<ObjectId, DataViews>,
    /// The workloads that are to be asked again.
    pub(in crate::engine) woken: BTreeSet<ObjectId>,
    /// Used objects that are not from git.
    pub(super) foreign: BTreeSet<ObjectId>,
    /// Indicates whether other objects are to be followed than before.
    pub(super) rewatch: bool,
    /// The data that the pods of each workload were started with, where this process has seen it.
    pub(super) seen: HashMap<ObjectId, Vec<Option<ConfigData>>>,
}

/// The contents that are taken to be in force.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigBasis {
    /// Contents that are in force.
    Target,
    /// Contents that the newest revision of this source releases together with a workload.
    Released(SourceId),
}

/// The data of an object, none where it is not there, or why they are not known.
pub(super) type DataView = Result<Option<ConfigData>, MissingConfig>;

/// The reason against computing a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MissingConfig {
    /// This is being read.
    Reading(ObjectId),
    /// It cannot be had now.
    Unknown,
}

impl DesiredObject {
    /// Returns the `ConfigMaps` and Secrets whose change restarts it.
    pub(in crate::engine) fn restart_references(&self) -> Option<&[ObjectId]> {
        match self.config.as_deref() {
            Some(ConfigRole::Uses(used)) => Some(used),
            _ => None,
        }
    }

    /// Returns the data that it puts there.
    fn set_config_data(&self) -> Option<ConfigData> {
        match self.config.as_deref() {
            Some(ConfigRole::Data(data)) => Some(*data),
            _ => None,
        }
    }
}

/// The facts that the loop reports and has to find out.
impl Engine {
    /// Returns whether some workload asks for restarts, or the hash of a Secret is to be recorded,
    /// so that a key is needed.
    pub(in crate::engine) fn is_key_needed(&self) -> bool {
        !self.configs.users.is_empty() || self.is_seal_needed()
    }

    /// Takes over the key for hashes of data.
    pub(in crate::engine) fn set_config_key(&mut self, key: ReadState<HashKey>) {
        let number = |key: &ReadState<HashKey>| {
            if let ReadState::Value(key) = key { Some(key.number()) } else { None }
        };
        if let (ReadState::Value(_), ReadState::Unreadable(_) | ReadState::Reading) =
            (&self.configs.key, &key)
        {
            return;
        }
        let same = std::mem::discriminant(&self.configs.key) == std::mem::discriminant(&key)
            && number(&self.configs.key) == number(&key);
        self.configs.key = key;
        self.note_seal();
        if !same {
            self.wake_all_users();
            self.wake_topic(&WaitTopic::Object(key_id()));
        }
    }

    /// Returns the objects whose data are to be followed: pods use them, and they are not from git.
    pub(in crate::engine) fn data_to_watch(&self) -> BTreeSet<ObjectId> {
        let mut used = self.configs.foreign.clone();
        // Rejected content is tried again when they change.
        for source in self.sources.states() {
            for id in &source.rejected_objects {
                if let Some(DesiredState::Object(newest)) = source.manifests.desired_state(id) {
                    used.extend(newest.restart_references().unwrap_or_default().iter().cloned());
                }
            }
        }
        used.retain(|used| !self.is_from_git(used));
        used
    }

    /// Does the same as [`Engine::data_to_watch`]; none where that has not changed since it was
    /// asked for last.
    pub(in crate::engine) fn take_data_to_watch(&mut self) -> Option<BTreeSet<ObjectId>> {
        std::mem::take(&mut self.configs.rewatch).then(|| self.data_to_watch())
    }

    /// Returns the sources whose workloads use the data of an object, or would, were what failed
    /// tried again.
    pub(in crate::engine) fn sources_using(&self, used: &ObjectId) -> BTreeSet<SourceId> {
        let users = self.configs.users.get(used).into_iter().flatten();
        let mut sources: BTreeSet<SourceId> = users.filter_map(|user| self.acting_source(user)).collect();
        for (number, source) in self.source_ids().zip(self.sources.states()) {
            let asks = |id: &ObjectId| match source.manifests.desired_state(id) {
                Some(DesiredState::Object(newest)) => {
                    newest.restart_references().unwrap_or_default().contains(used)
                }
                _ => false,
            };
            if source.rejected_objects.iter().any(asks) {
                sources.insert(number);
            }
        }
        sources
    }

    /// Has the set of followed data computed anew: rejected contents name other objects now.
    pub(in crate::engine) fn watch_again(&mut self) {
        self.configs.rewatch = true;
    }

    /// Takes over the data of an object that is not from git; none where there is no such object.
    /// Data that cannot be read any more are taken to be as they were.
    pub(in crate::engine) fn set_config_data(&mut self, id: &ObjectId, data: ReadState<Option<ConfigData>>) {
        let known = self.configs.followed.get(id);
        let same = match (known, &data) {
            (Some(ReadState::Value(known)), ReadState::Value(data)) => known == data,
            (Some(ReadState::Value(_)), ReadState::Reading | ReadState::Unreadable(_)) => true,
            (Some(ReadState::Unreadable(known)), ReadState::Unreadable(why)) => known == why,
            _ => false,
        };
        if !same {
            self.configs.followed.insert(id.clone(), data);
            self.wake_config_consumers(id);
            self.wake_topic(&WaitTopic::Object(id.clone()));
        }
    }

    /// Forgets an object that is not followed any more.
    pub(in crate::engine) fn forget_config(&mut self, id: &ObjectId) {
        self.configs.followed.remove(id);
    }

    /// Returns whether something has to be read before it is known what restarts.
    pub(in crate::engine) fn is_reading_data(&self) -> bool {
        let reading =
            |id: &ObjectId| matches!(self.configs.followed.get(id), None | Some(ReadState::Reading));
        self.is_reading_release_key()
            || self.is_key_needed()
                && (matches!(self.configs.key, ReadState::Reading)
                    || self.data_to_watch().iter().any(reading))
    }
}

/// The consequences.
impl Engine {
    /// Returns whether the data of an object are those of git: its manifest has all of them, and
    /// the object has been taken over.
    pub(super) fn is_from_git(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        let has_config_data =
            entry.target_content().is_some_and(|(_, desired)| desired.set_config_data().is_some());
        has_config_data
            && !self.is_left_alone(id)
            && (!matches!(entry.accepted, AcceptedContent::Nothing) || self.live_object(id).is_none())
    }

    /// Returns the content of a used object that the newest revision of a source is about to put
    /// there.
    fn content_released_with(&self, source: SourceId, id: &ObjectId) -> Option<&DesiredObject> {
        let candidate = self.content_to_release(source, id)?;
        let is_refused = self.entry(id)?.api_refusal.as_ref().is_some_and(|refusal| refusal.is_of(candidate));
        (!is_refused).then_some(candidate)
    }

    /// Does the same as [`Engine::content_released_with`], also where the server has refused it.
    fn content_to_release(&self, source: SourceId, id: &ObjectId) -> Option<&DesiredObject> {
        let entry = self.entry(id)?;
        let (wanting, _) = entry.target_content()?;
        let candidate = entry.unreleased_content().filter(|_| wanting == source && self.is_from_git(id))?;
        let rejection = entry.rejection.as_ref();
        let stays = rejection.is_some_and(|rejection| rejection.release_blocker(None).is_some());
        (!stays && !self.is_paused_by_person(id)).then_some(&**candidate)
    }

    /// Returns whether a content is put back without the newer content of an object that its pods
    /// use. That may wait for anything, and restarts them once the content is back.
    fn is_used_as_it_is(&self, desired: &DesiredObject, used: &ObjectId) -> bool {
        self.is_left_behind(&desired.id, used)
            && self.entry(&desired.id).is_some_and(|entry| entry.unreleased_content().is_some())
    }

    pub(super) fn data_of(&self, id: &ObjectId, when: ConfigBasis) -> DataView {
        if !self.is_from_git(id) {
            return match self.configs.followed.get(id) {
                Some(ReadState::Value(data)) => Ok(*data),
                Some(ReadState::Unreadable(_)) => Err(MissingConfig::Unknown),
                Some(ReadState::Reading) | None => Err(MissingConfig::Reading(id.clone())),
            };
        }
        if let ConfigBasis::Released(source) = when
            && let Some(content) = self.content_released_with(source, id)
        {
            return Ok(content.set_config_data());
        }
        let Some(entry) = self.entry(id) else { return Err(MissingConfig::Unknown) };
        match (&entry.accepted, &entry.direct_view) {
            (AcceptedContent::Known(content), _) => {
                content.set_config_data().map(Some).ok_or(MissingConfig::Unknown)
            }
            (AcceptedContent::Unread(_), _) => Err(MissingConfig::Reading(id.clone())),
            (AcceptedContent::Nothing, Some(DirectView::Absent)) => Ok(None),
            (AcceptedContent::Unreadable(_) | AcceptedContent::Nothing, _) => Err(MissingConfig::Unknown),
        }
    }

    /// Returns the data that a content's pods use. A missing required reference never triggers a
    /// restart.
    fn used_data(
        &self,
        desired: &DesiredObject,
        when: ConfigBasis,
    ) -> Result<BTreeMap<ObjectId, Option<ConfigData>>, MissingConfig> {
        let (mut all, mut reading) = (BTreeMap::new(), None);
        let goes_back = self.has_rollback_target(&desired.id);
        for id in desired.restart_references().unwrap_or_default() {
            let is_kept = goes_back && self.is_used_as_it_is(desired, id);
            let when = if is_kept { ConfigBasis::Target } else { when };
            match self.data_of(id, when) {
                Ok(None) if desired.needs.contains(id) => return Err(MissingConfig::Unknown),
                Ok(data) => drop(all.insert(id.clone(), data)),
                Err(MissingConfig::Reading(data_id)) => reading = Some(data_id),
                Err(MissingConfig::Unknown) => return Err(MissingConfig::Unknown),
            }
        }
        match reading {
            Some(data_id) => Err(MissingConfig::Reading(data_id)),
            None => Ok(all),
        }
    }

    fn hash_data(
        &self,
        used: &BTreeMap<ObjectId, Option<ConfigData>>,
    ) -> Result<(u32, ContentHash), MissingConfig> {
        match &self.configs.key {
            ReadState::Value(key) => Ok((key.number(), config_hash(key, used))),
            ReadState::Reading => Err(MissingConfig::Reading(key_id())),
            ReadState::Unreadable(_) => Err(MissingConfig::Unknown),
        }
    }

    fn config_of(
        &self,
        desired: &DesiredObject,
        when: ConfigBasis,
    ) -> Result<(u32, ContentHash, u64), MissingConfig> {
        let used = self.used_data(desired, when)?;
        let (key, data) = self.hash_data(&used)?;
        let used: Vec<Option<ConfigData>> = used.into_values().collect();
        let changed =
            self.configs.seen.get(&desired.id).map_or(0, |before| differing_positions(before, &used));
        Ok((key, data, changed))
    }

    /// Returns the stamp of the data that this content's pods are started with, and so the hash in
    /// the template. Unknown data stay as shown.
    pub(in crate::engine) fn pod_config_stamp(
        &self,
        source: SourceId,
        desired: &DesiredObject,
        live: Option<&LiveObject>,
    ) -> Option<ConfigStamp> {
        let shown = live.and_then(LiveObject::shown_config_stamp);
        let has_same_template =
            || self.entry(&desired.id).is_some_and(|entry| entry.accepted.has_template_of(desired));
        if desired.restart_references().is_none() {
            // An object that asks for no more restarts is not restarted for that either.
            return shown.filter(|_| has_same_template());
        }
        // Another template may use others.
        let shown =
            shown.map(|shown| if has_same_template() { shown } else { ConfigStamp { changed: 0, ..shown } });
        let Ok((key, data, changed)) = self.config_of(desired, ConfigBasis::Released(source)) else {
            return shown;
        };
        let pinned =
            |template| ConfigStamp { key, data, pinned: Some(PinnedConfig { data, template }), changed: 0 };
        Some(match shown {
            Some(shown) if shown.key == key && shown.data == data => shown,
            Some(shown) if shown.key == key => ConfigStamp { data, changed, ..shown },
            Some(shown) => pinned(shown.template_hash()),
            None if live.is_some_and(LiveObject::has_config_hash) => {
                ConfigStamp { key, data, pinned: None, changed: 0 }
            }
            None => pinned(None),
        })
    }

    /// Returns the stamp for a restart of a workload of ours whose data have changed, or are about
    /// to; none where none is due.
    pub(in crate::engine) fn restart_stamp(&self, id: &ObjectId) -> Option<ConfigStamp> {
        let (source, desired) = self.entry(id)?.target_content()?;
        desired.restart_references()?;
        let live = self.live_object(id).filter(|live| self.source_of(live) == Some(source))?;
        let started = live.shown_config_stamp().filter(|_| !self.is_left_alone(id))?;
        let next = self.pod_config_stamp(source, desired, Some(live))?;
        (next.template_hash() != started.template_hash()).then_some(next)
    }

    /// Returns the blocker of a new content of a workload: facts to be read, and
    /// configuration that comes first.
    pub(in crate::engine) fn config_blocker(
        &self,
        source: SourceId,
        desired: &DesiredObject,
    ) -> Option<Reason> {
        let used = desired.restart_references()?;
        if let Err(MissingConfig::Reading(data_id)) = self.config_of(desired, ConfigBasis::Released(source)) {
            return Some(Reason::Reading(data_id));
        }
        let is_released_with = self.released_with(source, desired);
        let goes_back = self.has_rollback_target(&desired.id);
        let is_changing = |used: &&ObjectId| {
            if goes_back {
                // A refusal for now is awaited too.
                !self.is_used_as_it_is(desired, used) && self.content_to_release(source, used).is_some()
            } else {
                self.content_released_with(source, used).is_some()
            }
        };
        let mut changing = used.iter().rev().filter(is_changing);
        let last = changing.find(|used| !is_released_with(used))?;
        Some(Reason::Needs(last.clone(), DependencyState::Unchanged))
    }

    /// Returns what is being read of the data that the pods of a workload of a source use.
    pub(in crate::engine) fn unread_data_of(&self, source: SourceId, user: &ObjectId) -> Option<ObjectId> {
        let (_, desired) = self.entry(user)?.target_content().filter(|(by, _)| *by == source)?;
        match self.config_of(desired, ConfigBasis::Released(source)) {
            Err(MissingConfig::Reading(data_id)) => self.live_object(user).map(|_| data_id),
            _ => None,
        }
    }

    /// Returns the hash over those data of a workload's pods that no source brings, whatever is in
    /// force now. With the number of its key.
    pub(in crate::engine) fn foreign_config(&self, desired: &DesiredObject) -> Option<(u32, ContentHash)> {
        let brought = |source: &SourceState, id: &ObjectId| match source.manifests.desired_state(id) {
            Some(DesiredState::Object(desired)) => desired.set_config_data().is_some(),
            Some(DesiredState::Unusable(_)) => true,
            None => false,
        };
        let is_brought = |id: &ObjectId| self.sources.states().iter().any(|source| brought(source, id));
        let used = desired.restart_references()?.iter().filter(|used| !is_brought(used));
        let used: Result<_, MissingConfig> =
            used.map(|id| Ok((id.clone(), self.data_of(id, ConfigBasis::Target)?))).collect();
        self.hash_data(&used.ok()?).ok()
    }

    /// Returns which data the pods of a member of a unit are started with.
    pub(in crate::engine) fn config_restart_of(
        &self,
        source: SourceId,
        id: &ObjectId,
    ) -> Option<ConfigRestart> {
        let (_, desired) = self.entry(id)?.target_content()?;
        let (key, foreign) = self.foreign_config(desired)?;
        let live = self.live_object(id);
        let stamp = self.pod_config_stamp(source, desired, live)?;
        let before = live.and_then(LiveObject::shown_config_stamp);
        let before = before.filter(|started| started.key == stamp.key).map(|started| started.data);
        // Data that are not known now stay as they are shown, maybe under an earlier key.
        let key = Some(key).filter(|key| *key == stamp.key);
        Some(ConfigRestart { key, data: stamp.data, foreign, before })
    }

    /// Returns whether the cluster shows what a unit asks for: the content, and the data that pods
    /// are started with.
    pub(in crate::engine) fn is_member_shown(&self, id: &ObjectId, member: &UnitMember) -> bool {
        let shown = self.live_object(id).and_then(LiveObject::shown_config_stamp);
        let same = member.restarted.is_none_or(|restarted| restarted.is_shown_by(shown));
        same && member.content.is_some_and(|content| self.is_showing(id, content))
    }

    /// Returns whether a unit brings nothing from git to the pods of a workload: it is restarted
    /// for data of somebody else.
    pub(in crate::engine) fn is_only_restarted(&self, unit: &ReleaseUnit, id: &ObjectId) -> bool {
        let used = self
            .entry(id)
            .and_then(|entry| entry.target_content())
            .and_then(|(_, desired)| desired.restart_references());
        let brings =
            |id: &ObjectId| unit.members.get(id).is_some_and(|member| !self.is_unchanged_member(id, member));
        unit.members.contains_key(id) && !brings(id) && !used.unwrap_or_default().iter().any(brings)
    }

    /// Returns whether nothing will replace the pods of a workload whose rollout failed. Nobody wants
    /// it any more, or it has gone back as far as it can. Then data are at fault that are somebody
    /// else's, or that the server refuses to take back.
    pub(in crate::engine) fn is_failure_permanent(&self, id: &ObjectId) -> bool {
        let entry = self.entry(id);
        if entry.is_none_or(|entry| entry.targets.is_empty()) {
            return true;
        }
        let Some((_, desired)) = entry.and_then(|entry| entry.target_content()) else {
            return false;
        };
        let comes = |id: &ObjectId| {
            let is_coming = |entry: &ObjectEntry| {
                // A rollback that is refused for now is tried again.
                let returns = entry.rejection.is_some() && !self.is_return_refused(id, entry);
                let wanted = entry.unreleased_content();
                wanted.is_some_and(|desired| returns || entry.refusal_of(desired).is_none())
            };
            self.entry(id).is_some_and(is_coming) || self.rollouts.rollbacks.unread_objects().contains(id)
        };
        let uses = desired.restart_references().unwrap_or_default();
        let at_rest = !comes(id) && !uses.iter().any(comes) && self.restart_stamp(id).is_none();
        !uses.is_empty()
            && self.has_rollback_target(id)
            && at_rest
            && !self.rollouts.slot_requests.contains(id)
    }

    /// Returns whether the content of a member is what it was before.
    fn is_unchanged_member(&self, id: &ObjectId, member: &UnitMember) -> bool {
        let Some(good) = member.rollback_target.content_ref() else { return false };
        let desired = self.entry(id).and_then(|entry| entry.target_content()).map(|(_, desired)| desired);
        member.has_unchanged_content()
            || desired
                .is_some_and(|desired| desired.has_hash(good.hash) && Some(desired.hash) == member.content)
    }

    /// Returns a unit that failed by one of its workloads, with the reason.
    pub(in crate::engine) fn failed_release(
        &self,
        id: &ObjectId,
        unit: &ReleaseUnit,
        why: &Arc<str>,
    ) -> FailedRelease {
        let restarted = unit.members.get(id).is_some_and(|member| {
            self.is_unchanged_member(id, member)
                || (member.restarted.is_some() && self.has_template_of_before(id))
        });
        let started = self.live_object(id).and_then(LiveObject::shown_config_stamp).filter(|_| restarted);
        let is_foreign = || started.is_some_and(|started| self.is_restarted_by_others(id, started));
        let change = if self.is_only_restarted(unit, id) {
            FailedChange::ForeignData
        } else if is_foreign() {
            FailedChange::RevisionWithForeignData(unit.revision.clone())
        } else {
            FailedChange::Revision(unit.revision.clone())
        };
        let restarted_for = started.map(|started| self.changed_data(id, started));
        FailedRelease { change, workload: id.clone(), restarted_for, why: why.clone() }
    }

    /// Returns whether the newest content of a workload has the pod template of the one before it.
    fn has_template_of_before(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        let Some((before, (_, desired))) = entry.previous_content.as_ref().zip(entry.target_content()) else {
            return false;
        };
        before.template == desired.template
    }

    /// Returns whether all the data are somebody else's that a workload was restarted for.
    fn is_restarted_by_others(&self, id: &ObjectId, started: ConfigStamp) -> bool {
        let uses = self
            .entry(id)
            .and_then(|entry| entry.target_content())
            .and_then(|(_, desired)| desired.restart_references());
        let uses = uses.unwrap_or_default();
        let mut changed = started.positions().filter_map(|position| uses.get(position)).peekable();
        changed.peek().is_some() && changed.all(|id| !self.is_from_git(id))
    }

    /// Returns the content of a claim for a workload that is restarted with the content that it
    /// has.
    pub(in crate::engine) fn restart_key(content: ContentHash, data: ContentHash) -> ContentHash {
        ContentHash::hash_bytes(format!("{content} restarted with {data}").as_bytes())
    }

    /// Remembers what the pods of a workload were started with, so that it can be known what has
    /// changed.
    pub(in crate::engine) fn note_config(&mut self, id: &ObjectId) {
        let target = self.entry(id).and_then(|entry| entry.target_content());
        let restarting = target.filter(|(_, desired)| desired.restart_references().is_some());
        let Some((_, desired)) = restarting else { return };
        let Some(started) = self.live_object(id).and_then(LiveObject::shown_config_stamp) else { return };
        let Ok(used) = self.used_data(desired, ConfigBasis::Target) else { return };
        let Ok((_, data)) = self.hash_data(&used) else { return };
        if data == started.data {
            self.configs.seen.insert(id.clone(), used.into_values().collect());
        }
    }

    /// Returns what has changed, of the objects that the pods of a workload use.
    pub(in crate::engine) fn changed_data(&self, id: &ObjectId, started: ConfigStamp) -> ChangedData {
        let uses = self
            .entry(id)
            .and_then(|entry| entry.target_content())
            .and_then(|(_, desired)| desired.restart_references());
        ChangedData::of(uses.unwrap_or_default(), started)
    }
}

impl LiveObject {
    /// Returns whether our entry owns a hash of data in the pod template.
    pub(in crate::engine) fn has_config_hash(&self) -> bool {
        self.our_fields.as_deref().is_some_and(|entry| entry.contains(annotations::CONFIG_HASH))
    }

    /// Returns whether sending this would change what the pod template carries of data, as far as
    /// is known.
    pub(in crate::engine) fn is_restarted_by(&self, next: Option<ConfigStamp>) -> bool {
        match self.config_stamp.as_deref() {
            Some(shown) => shown.template_hash() != next.and_then(ConfigStamp::template_hash),
            None => self.has_config_hash() || next.and_then(ConfigStamp::template_hash).is_some(),
        }
    }

    /// Returns whether what the template carries of data is not known any more.
    pub(in crate::engine) fn has_lost_config(&self, next: Option<ConfigStamp>) -> bool {
        self.config_stamp.is_none() && next.is_none() && self.has_config_hash()
    }
}
