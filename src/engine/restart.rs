//! Restarts for configuration that changed: which data pods use now, and which they were started with.
//!
//! Of an object from git, what has been put there counts, so that a workload restarts right after its configuration was
//! written, and never for somebody's passing edit of it. Of any other object, what the cluster shows counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::book::{Good, Member, Restarted, Unit};
use super::config_hash::{Data, Key, config_hash};
use super::desired::Configuration;
use super::entry::{SourceId, Topic};
use super::seal::Sealed;
use super::sources::Source;
use super::started::{Pinned, Started, differing};
use super::state::Engine;
use super::{Accepted, Desired, Live, Looked, Reason, Want};
use crate::object::{GroupKind, Hash, ObjectId};

/// The Secret that holds the key for hashes of data, in the namespace of the inventories.
pub const KEY_SECRET: &str = "config-key.rhumb.dev";

/// What is known of something that has to be read.
#[derive(Clone, Debug, Default)]
pub enum Known<T> {
    /// It is being read.
    #[default]
    Reading,
    /// This.
    Is(T),
    /// It cannot be read, and why: nothing waits for it.
    Blind(Arc<str>),
}

/// What is known of the data that pods use.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Configs {
    pub(super) key: Known<Key>,
    /// How the hashes of Secrets are recorded.
    pub(super) sealed: Sealed,
    /// Data of objects that are not from git.
    followed: HashMap<ObjectId, Known<Option<Data>>>,
    /// Of each object that pods use, the workloads that restart when it changes.
    users: HashMap<ObjectId, BTreeSet<ObjectId>>,
    /// Those of them that are not from git.
    foreign: BTreeSet<ObjectId>,
    /// Whether other objects are to be followed than before.
    refollow: bool,
    /// What the pods of each workload were started with, where this process has seen it.
    seen: HashMap<ObjectId, Vec<Option<Data>>>,
}

/// Which contents are taken to be in force.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Those that are.
    Now,
    /// Those that the newest revision of this source releases together with a workload.
    Released(SourceId),
}

/// What stands in the way of a hash.
enum Lack {
    /// This is being read.
    Reading(ObjectId),
    /// It cannot be had now.
    Blind,
}

impl Desired {
    /// The `ConfigMaps` and Secrets whose change restarts it.
    pub(super) fn uses(&self) -> Option<&[ObjectId]> {
        match self.config.as_deref() {
            Some(Configuration::Uses(used)) => Some(used),
            _ => None,
        }
    }

    /// The data that it puts there.
    fn data(&self) -> Option<Data> {
        match self.config.as_deref() {
            Some(Configuration::Data(data)) => Some(*data),
            _ => None,
        }
    }
}

/// What the loop tells, and has to find out.
impl Engine {
    /// Whether some workload asks for restarts, or the hash of a Secret is to be recorded, so that a key is needed.
    pub fn needs_key(&self) -> bool {
        !self.configs.users.is_empty() || self.needs_seal()
    }

    /// Takes over the key for hashes of data.
    pub fn config_key(&mut self, key: Known<Key>) {
        let number = |key: &Known<Key>| if let Known::Is(key) = key { Some(key.number()) } else { None };
        if let (Known::Is(_), Known::Blind(_) | Known::Reading) = (&self.configs.key, &key) {
            return;
        }
        let same = std::mem::discriminant(&self.configs.key) == std::mem::discriminant(&key)
            && number(&self.configs.key) == number(&key);
        self.configs.key = key;
        self.note_seal();
        if !same {
            let used: Vec<ObjectId> = self.configs.users.keys().cloned().collect();
            for used in &used {
                self.wake_users(used);
            }
            self.touch(&Topic::Object(key_id()));
        }
    }

    /// The objects whose data are to be followed: pods use them, and they are not from git.
    pub fn data_to_follow(&self) -> BTreeSet<ObjectId> {
        let mut used = self.configs.foreign.clone();
        // What was rejected is tried again when they change.
        for source in &self.sources {
            for id in &source.instead {
                if let Some(Want::Object(newest)) = source.catalog.want(id) {
                    used.extend(newest.uses().unwrap_or_default().iter().cloned());
                }
            }
        }
        used.retain(|used| !self.is_from_git(used));
        used
    }

    /// As [`Engine::data_to_follow`]; none where that has not changed since it was asked for last.
    pub fn take_data_to_follow(&mut self) -> Option<BTreeSet<ObjectId>> {
        std::mem::take(&mut self.configs.refollow).then(|| self.data_to_follow())
    }

    /// The sources whose workloads use the data of an object, or would, were what failed tried again.
    pub fn sources_using(&self, used: &ObjectId) -> BTreeSet<SourceId> {
        let users = self.configs.users.get(used).into_iter().flatten();
        let mut sources: BTreeSet<SourceId> = users.filter_map(|user| self.acting_for(user)).collect();
        for (number, source) in self.sources.iter().enumerate() {
            let asks = |id: &ObjectId| match source.catalog.want(id) {
                Some(Want::Object(newest)) => newest.uses().unwrap_or_default().contains(used),
                _ => false,
            };
            if source.instead.iter().any(asks) {
                sources.insert(number);
            }
        }
        sources
    }

    /// What was rejected names others than before.
    pub(super) fn follow_again(&mut self) {
        self.configs.refollow = true;
    }

    /// Keeps which of the objects that pods use are not from git.
    fn track_used(&mut self, id: &ObjectId) {
        let foreign = self.configs.users.contains_key(id) && !self.is_from_git(id);
        let changed =
            if foreign { self.configs.foreign.insert(id.clone()) } else { self.configs.foreign.remove(id) };
        self.configs.refollow |= changed;
    }

    /// Takes over the data of an object that is not from git; none where there is no such object. What cannot be read
    /// any more is taken to be as it was.
    pub fn config_data(&mut self, id: &ObjectId, data: Known<Option<Data>>) {
        let known = self.configs.followed.get(id);
        let same = match (known, &data) {
            (Some(Known::Is(known)), Known::Is(data)) => known == data,
            (Some(Known::Is(_)), Known::Reading | Known::Blind(_)) => true,
            (Some(Known::Blind(known)), Known::Blind(why)) => known == why,
            _ => false,
        };
        if !same {
            self.configs.followed.insert(id.clone(), data);
            self.wake_users(id);
            self.touch(&Topic::Object(id.clone()));
        }
    }

    /// An object is not followed any more.
    pub fn config_forgotten(&mut self, id: &ObjectId) {
        self.configs.followed.remove(id);
    }

    /// Which data cannot be read, and why.
    pub fn unreadable_data(&self) -> impl Iterator<Item = (&ObjectId, &Arc<str>)> {
        self.configs.followed.iter().filter_map(|(id, known)| match known {
            Known::Blind(why) => Some((id, why)),
            _ => None,
        })
    }

    /// Whether something has to be read before it is known what restarts.
    pub fn is_reading_data(&self) -> bool {
        let reading = |id: &ObjectId| matches!(self.configs.followed.get(id), None | Some(Known::Reading));
        self.is_reading_release_key()
            || self.needs_key()
                && (matches!(self.configs.key, Known::Reading) || self.data_to_follow().iter().any(reading))
    }

    /// What the wish for an object is changed: whom it uses.
    pub(super) fn track_uses(&mut self, id: &ObjectId, before: Option<&Desired>) {
        let now = self.entry(id).and_then(|entry| entry.want()).map(|(_, desired)| desired.clone());
        let used = |desired: Option<&Desired>| -> BTreeSet<ObjectId> {
            desired.and_then(Desired::uses).unwrap_or_default().iter().cloned().collect()
        };
        let (was, is) = (used(before), used(now.as_deref()));
        for gone in was.difference(&is) {
            if let Some(users) = self.configs.users.get_mut(gone) {
                users.remove(id);
                if users.is_empty() {
                    self.configs.users.remove(gone);
                }
            }
        }
        for new in &is {
            self.configs.users.entry(new.clone()).or_default().insert(id.clone());
        }
        if was != is {
            self.configs.seen.remove(id);
        }
        was.symmetric_difference(&is).for_each(|used| self.track_used(used));
        // Another source may use what is followed already, with rights of its own.
        self.configs.refollow |= was != is && self.has_several_watchers();
        self.wake_users(id);
    }

    /// Something about an object changed: those whose pods use it may have to restart.
    pub(super) fn wake_users(&mut self, used: &ObjectId) {
        let Some(users) = self.configs.users.get(used).cloned() else { return };
        self.track_used(used);
        // What is not there is not restarted.
        if users.iter().any(|user| self.shown(user).is_some()) {
            self.restarting.clear();
        }
        for user in users {
            self.track_move(&user);
            self.touch(&Topic::Object(user.clone()));
            self.dirty.push(user);
        }
    }
}

/// What follows from it.
impl Engine {
    /// Whether what rhumb puts there counts as an object's data: it is from git, whole, and has been taken over.
    fn is_from_git(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        let whole = entry.want().is_some_and(|(_, want)| want.data().is_some());
        whole
            && !self.is_left_alone(id)
            && (!matches!(entry.accepted, Accepted::Nothing) || self.shown(id).is_none())
    }

    /// The content of a used object that the newest revision of a source is about to put there.
    fn released_with(&self, source: SourceId, id: &ObjectId) -> Option<&Desired> {
        let entry = self.entry(id)?;
        let (wanting, _) = entry.want()?;
        let candidate = entry.candidate().filter(|_| wanting == source && self.is_from_git(id))?;
        let refused = entry.refused.as_ref().is_some_and(|refusal| refusal.content == candidate.hash);
        let stays = entry.instead.as_ref().is_some_and(|instead| instead.gate().is_some());
        (!refused && !stays && !self.is_suspended(id)).then_some(&**candidate)
    }

    fn data_of(&self, id: &ObjectId, when: When) -> Result<Option<Data>, Lack> {
        if !self.is_from_git(id) {
            return match self.configs.followed.get(id) {
                Some(Known::Is(data)) => Ok(*data),
                Some(Known::Blind(_)) => Err(Lack::Blind),
                Some(Known::Reading) | None => Err(Lack::Reading(id.clone())),
            };
        }
        if let When::Released(source) = when
            && let Some(content) = self.released_with(source, id)
        {
            return Ok(content.data());
        }
        let Some(entry) = self.entry(id) else { return Err(Lack::Blind) };
        match (&entry.accepted, &entry.looked) {
            (Accepted::Known(content), _) => content.data().map(Some).ok_or(Lack::Blind),
            (Accepted::Named(_), _) => Err(Lack::Reading(id.clone())),
            (Accepted::Nothing, Some(Looked::Absent)) => Ok(None),
            (Accepted::Lost(_) | Accepted::Nothing, _) => Err(Lack::Blind),
        }
    }

    /// The data that a content's pods use. What is missing though pods cannot start without it is no reason to restart.
    fn used_data(&self, desired: &Desired, when: When) -> Result<BTreeMap<ObjectId, Option<Data>>, Lack> {
        let (mut all, mut reading) = (BTreeMap::new(), None);
        for id in desired.uses().unwrap_or_default() {
            match self.data_of(id, when) {
                Ok(None) if desired.needs.contains(id) => return Err(Lack::Blind),
                Ok(data) => drop(all.insert(id.clone(), data)),
                Err(Lack::Reading(what)) => reading = Some(what),
                Err(Lack::Blind) => return Err(Lack::Blind),
            }
        }
        match reading {
            Some(what) => Err(Lack::Reading(what)),
            None => Ok(all),
        }
    }

    fn hashed(&self, used: &BTreeMap<ObjectId, Option<Data>>) -> Result<(u32, Hash), Lack> {
        match &self.configs.key {
            Known::Is(key) => Ok((key.number(), config_hash(key, used))),
            Known::Reading => Err(Lack::Reading(key_id())),
            Known::Blind(_) => Err(Lack::Blind),
        }
    }

    fn config_of(&self, desired: &Desired, when: When) -> Result<(u32, Hash, u64), Lack> {
        let used = self.used_data(desired, when)?;
        let (key, data) = self.hashed(&used)?;
        let used: Vec<Option<Data>> = used.into_values().collect();
        let changed = self.configs.seen.get(&desired.id).map_or(0, |before| differing(before, &used));
        Ok((key, data, changed))
    }

    /// What is to be told of the data that the pods of this content are started with, and so what the template carries.
    /// What is not known stays as it is shown.
    pub(super) fn to_start_with(
        &self,
        source: SourceId,
        desired: &Desired,
        live: Option<&Live>,
    ) -> Option<Started> {
        let shown = live.and_then(|live| live.started);
        let same = self.entry(&desired.id).is_some_and(|entry| entry.accepted.has_template_of(desired));
        if desired.uses().is_none() {
            // Whoever asks for no more restarts is not restarted for that either.
            return shown.filter(|_| same);
        }
        // Another template may use others.
        let shown = shown.map(|shown| if same { shown } else { Started { changed: 0, ..shown } });
        let Ok((key, data, changed)) = self.config_of(desired, When::Released(source)) else { return shown };
        let pinned = |template| Started { key, data, pinned: Some(Pinned { data, template }), changed: 0 };
        Some(match shown {
            Some(shown) if shown.key == key && shown.data == data => shown,
            Some(shown) if shown.key == key => Started { data, changed, ..shown },
            Some(shown) => pinned(shown.template()),
            None if live.is_some_and(Live::has_config_hash) => {
                Started { key, data, pinned: None, changed: 0 }
            }
            None => pinned(None),
        })
    }

    /// Whether the data that its pods use have changed, or are about to, so that a workload of ours is to be restarted:
    /// with what it is to be started then.
    pub(super) fn reconfigured(&self, id: &ObjectId) -> Option<Started> {
        let (source, desired) = self.entry(id)?.want()?;
        desired.uses()?;
        let live = self.shown(id).filter(|live| self.source_of(live) == Some(source))?;
        let started = live.started.filter(|_| !self.is_left_alone(id))?;
        let next = self.to_start_with(source, desired, Some(live))?;
        (next.template() != started.template()).then_some(next)
    }

    /// What has to be read before a new content of a workload can be released, and what of its configuration comes first.
    pub(super) fn config_gate(&self, source: SourceId, desired: &Desired) -> Option<Reason> {
        let used = desired.uses()?;
        if let Err(Lack::Reading(what)) = self.config_of(desired, When::Released(source)) {
            return Some(Reason::Reading(what));
        }
        let mut first = used.iter().filter(|used| self.released_with(source, used).is_some());
        let first = first.find(|used| !self.comes_with(source, desired, used))?;
        Some(Reason::Needs(first.clone(), "is not changed yet".into()))
    }

    /// What has to be read before it is known which workloads restart for a new content.
    pub(super) fn unread_for_users(&self, source: SourceId, id: &ObjectId) -> Option<Reason> {
        let users = self.configs.users.get(id).into_iter().flatten();
        let mut ours = users.filter_map(|user| self.entry(user)?.want().filter(|(by, _)| *by == source));
        ours.find_map(|(_, desired)| match self.config_of(desired, When::Released(source)) {
            Err(Lack::Reading(what)) if self.shown(&desired.id).is_some() => Some(Reason::Reading(what)),
            _ => None,
        })
    }

    /// The hash over those data of a workload's pods that no source brings, whatever is in force now.
    pub(super) fn foreign_config(&self, desired: &Desired) -> Option<Hash> {
        let brought = |source: &Source, id: &ObjectId| match source.catalog.want(id) {
            Some(Want::Object(want)) => want.data().is_some(),
            Some(Want::Held(_)) => true,
            None => false,
        };
        let is_brought = |id: &ObjectId| self.sources.iter().any(|source| brought(source, id));
        let used = desired.uses()?.iter().filter(|used| !is_brought(used));
        let used: Result<_, Lack> = used.map(|id| Ok((id.clone(), self.data_of(id, When::Now)?))).collect();
        Some(self.hashed(&used.ok()?).ok()?.1)
    }

    /// Which data the pods of a member of a unit are started with.
    pub(super) fn restarted_with(&self, source: SourceId, id: &ObjectId) -> Option<Restarted> {
        let (_, desired) = self.entry(id)?.want()?;
        let foreign = self.foreign_config(desired)?;
        let live = self.shown(id);
        let data = self.to_start_with(source, desired, live)?.data;
        let before = live.and_then(|live| live.started).map(|started| started.data);
        Some(Restarted { data, foreign, before })
    }

    /// Whether the cluster shows what a unit asks for: the content, and the data that pods are started with.
    pub(super) fn shows_member(&self, id: &ObjectId, member: &Member) -> bool {
        let data = self.shown(id).and_then(|live| live.started).map(|started| started.data);
        let same = member.restarted.is_none_or(|restarted| data == Some(restarted.data));
        same && member.content.is_some_and(|content| self.shows(id, content))
    }

    /// Whether a unit brings nothing from git to the pods of a workload: it is restarted for data of somebody else.
    pub(super) fn is_only_restarted(&self, unit: &Unit, id: &ObjectId) -> bool {
        let used = self.entry(id).and_then(|entry| entry.want()).and_then(|(_, want)| want.uses());
        let brings = |id: &ObjectId| unit.members.get(id).is_some_and(|member| !self.stays(id, member));
        unit.members.contains_key(id) && !brings(id) && !used.unwrap_or_default().iter().any(brings)
    }

    /// Whether a workload whose rollout failed has gone back as far as it goes, and still has what failed: the data of
    /// somebody else are at fault, and nothing will replace its pods.
    pub(super) fn stays_failed(&self, id: &ObjectId) -> bool {
        let Some((_, want)) = self.entry(id).and_then(|entry| entry.want()) else { return false };
        let comes = |id: &ObjectId| {
            self.entry(id).is_some_and(|entry| entry.candidate().is_some()) || self.goes_back.contains(id)
        };
        let uses = want.uses().unwrap_or_default();
        let at_rest = !comes(id) && !uses.iter().any(comes) && self.reconfigured(id).is_none();
        !uses.is_empty() && self.goes_back(id) && at_rest && !self.rollouts.asked.contains_key(id)
    }

    /// Whether the content of a member is what it was before.
    fn stays(&self, id: &ObjectId, member: &Member) -> bool {
        let Good::Release(good) = &member.good else { return false };
        let want = self.entry(id).and_then(|entry| entry.want()).map(|(_, want)| want);
        Some(good.hash) == member.content
            || want.is_some_and(|want| want.is_release(good.hash) && Some(want.hash) == member.content)
    }

    /// Why a unit failed, in words.
    pub(super) fn cause(&self, id: &ObjectId, unit: &Unit, why: &str) -> String {
        let restarted = unit.members.get(id).is_some_and(|member| {
            self.stays(id, member) || (member.restarted.is_some() && self.has_template_of_before(id))
        });
        let started = self.shown(id).and_then(|live| live.started).filter(|_| restarted);
        let because = started
            .map(|started| format!(", restarted as the data of {} changed", self.changed_words(id, started)));
        let because = because.unwrap_or_default();
        if self.is_only_restarted(unit, id) {
            let hint = "rhumb cannot bring back what is not in git; another change of it is tried again";
            return format!("{id}{because}, failed: {why}; {hint}");
        }
        let foreign = started.is_some_and(|started| self.is_restarted_by_others(id, started));
        let hint = if foreign { "; rhumb cannot bring back what is not in git" } else { "" };
        format!("revision {} failed: {id}{because}: {why}{hint}", unit.revision.short())
    }

    /// Whether the newest content of a workload has the pod template of the one before it.
    fn has_template_of_before(&self, id: &ObjectId) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        let Some((before, (_, want))) = entry.before.as_ref().zip(entry.want()) else { return false };
        before.template == want.template
    }

    /// Whether all the data are somebody else's that a workload was restarted for.
    fn is_restarted_by_others(&self, id: &ObjectId, started: Started) -> bool {
        let uses = self.entry(id).and_then(|entry| entry.want()).and_then(|(_, desired)| desired.uses());
        let uses = uses.unwrap_or_default();
        let mut changed = started.positions().filter_map(|position| uses.get(position)).peekable();
        changed.peek().is_some() && changed.all(|id| !self.is_from_git(id))
    }

    /// What a claim is for, where a workload is restarted with the content that it has.
    pub(super) fn restart_key(content: Hash, data: Hash) -> Hash {
        Hash::of_bytes(format!("{content} restarted with {data}").as_bytes())
    }

    /// Remembers what the pods of a workload were started with, so that it can be told what has changed.
    pub(super) fn note_config(&mut self, id: &ObjectId) {
        let Some((_, desired)) = self.entry(id).and_then(|entry| entry.want()) else { return };
        let Some(started) = self.shown(id).and_then(|live| live.started) else { return };
        let Ok(used) = self.used_data(desired, When::Now) else { return };
        let Ok((_, data)) = self.hashed(&used) else { return };
        if desired.uses().is_some() && data == started.data {
            self.configs.seen.insert(id.clone(), used.into_values().collect());
        }
    }

    /// The names of what has changed, of the objects that the pods of a workload use.
    pub fn changed_words(&self, id: &ObjectId, started: Started) -> String {
        let uses = self.entry(id).and_then(|entry| entry.want()).and_then(|(_, desired)| desired.uses());
        changed_words(uses.unwrap_or_default(), started)
    }
}

/// The names of what has changed, of the objects that pods use; of all of them, where that is not known.
pub fn changed_words(uses: &[ObjectId], started: Started) -> String {
    let changed: Vec<&ObjectId> = started.positions().filter_map(|position| uses.get(position)).collect();
    let (named, joint) =
        if changed.is_empty() { (uses.iter().collect(), " or ") } else { (changed, " and ") };
    let words: Vec<String> = named.iter().map(|id| format!("{} {}", id.kind(), id.name())).collect();
    words.join(joint)
}

/// The Secret that holds the key; only its name matters here.
pub(super) fn key_id() -> ObjectId {
    ObjectId::new(&GroupKind::new("", "Secret"), None, KEY_SECRET)
}

impl Live {
    /// Whether our entry owns a hash of data in the pod template.
    pub(super) fn has_config_hash(&self) -> bool {
        self.ours.as_deref().is_some_and(|entry| entry.contains(super::CONFIG_HASH))
    }

    /// Whether sending this would change what the pod template carries of data, as far as is known.
    pub(super) fn is_restarted_by(&self, next: Option<Started>) -> bool {
        match self.started {
            Some(shown) => shown.template() != next.and_then(Started::template),
            None => self.has_config_hash() || next.and_then(Started::template).is_some(),
        }
    }

    /// Whether what the template carries of data is not known any more.
    pub(super) fn lost_config(&self, next: Option<Started>) -> bool {
        self.started.is_none() && next.is_none() && self.has_config_hash()
    }
}
