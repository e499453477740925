//! Warning events: what controllers, scheduler and kubelets say of an object.

use std::sync::Arc;

use serde::Deserialize;

use super::super::FIELD_MANAGER;
use super::super::call::Cluster;
use super::super::error::Error;
use super::super::kinds::Kind;
use super::super::path::{Selector, Within};
use super::super::wire::{Project, Projected, Text, lax, version};
use super::lens::{seconds, spoken};
use super::{EVENTS, kind};
use crate::engine::Uid;
use crate::object::ObjectId;

/// So many are told.
const MOST: usize = 5;
/// So many pages are read for one object at most.
const PAGES: usize = 4;
/// How client-go marks a series of events that it put together.
const COMBINED: &str = "(combined from similar events): ";

/// One warning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Warning {
    /// The object.
    pub(super) about: Uid,
    /// The object in words, as `Pod web-1`.
    pub(super) whose: Arc<str>,
    pub(super) reason: Arc<str>,
    pub(super) message: Arc<str>,
    /// When it was said last: seconds since 1970, by the speaker's clock.
    pub(super) at: i64,
    /// How often.
    pub(super) count: u64,
    /// Whether rhumb said it: its own words tell it nothing.
    pub(super) own: bool,
}

/// A warning about an object, as it is told to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warned {
    /// The object, as `Pod web-1`.
    pub whose: Arc<str>,
    /// One word, as `FailedScheduling`.
    pub reason: Arc<str>,
    /// In one line.
    pub message: Arc<str>,
    /// How often it was said.
    pub count: u64,
}

impl std::fmt::Display for Warned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.whose, self.reason, self.message)?;
        if self.count > 1 { write!(f, " ({} times)", self.count) } else { Ok(()) }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawEvent<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    metadata: EventMeta<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    involved_object: About<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    reason: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    message: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    event_time: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    last_timestamp: Text<'a>,
    #[serde(deserialize_with = "lax")]
    count: u64,
    #[serde(borrow, deserialize_with = "lax")]
    series: Series<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    reporting_component: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventMeta<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    name: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    namespace: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    resource_version: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    creation_timestamp: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct About<'a> {
    #[serde(borrow, deserialize_with = "lax")]
    kind: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    name: Text<'a>,
    #[serde(borrow, deserialize_with = "lax")]
    uid: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Series<'a> {
    #[serde(deserialize_with = "lax")]
    count: u64,
    #[serde(borrow, deserialize_with = "lax")]
    last_observed_time: Text<'a>,
}

/// Reads events.
#[derive(Clone)]
pub(super) struct WarningLens;

impl Project for WarningLens {
    type Record = Warning;

    fn project(&self, text: &str) -> Option<Projected<Warning>> {
        let raw: RawEvent<'_> = serde_json::from_str(text).ok()?;
        let meta = &raw.metadata;
        let id = ObjectId::new(&kind(&EVENTS).gvk.group_kind(), Some(&meta.namespace.0), &meta.name.0);
        let times =
            [&raw.series.last_observed_time, &raw.last_timestamp, &raw.event_time, &meta.creation_timestamp];
        let about = &raw.involved_object;
        let record = Warning {
            about: Uid((&*about.uid.0).into()),
            whose: spoken(&format!("{} {}", about.kind.0, about.name.0)),
            reason: spoken(&raw.reason.0),
            message: spoken(raw.message.0.strip_prefix(COMBINED).unwrap_or(&raw.message.0)),
            at: times.iter().map(|time| seconds(&time.0)).find(|at| *at != 0).unwrap_or(0),
            count: raw.count.max(raw.series.count).max(1),
            own: raw.reporting_component.0 == FIELD_MANAGER,
        };
        Some(Projected { id, rv: version(&meta.resource_version.0), record })
    }
}

/// The warnings about one object, and of one reason where that is given.
pub(super) fn about(namespace: &str, uid: &Uid, reason: Option<&str>) -> Selector {
    let reason = reason.map(|reason| format!(",reason={reason}")).unwrap_or_default();
    Selector::Within(Arc::new(Within {
        namespace: namespace.into(),
        labels: None,
        fields: Some(format!("involvedObject.uid={uid},type=Warning{reason}").into()),
    }))
}

impl Cluster {
    /// Reads the last few warnings about some objects of a namespace, as a workload and one of its pods: newest
    /// last, each text once. Costs a list per object.
    pub async fn warnings(&self, namespace: &str, of: &[Uid]) -> Result<Vec<Warned>, Error> {
        let events = kind(&EVENTS);
        let mut all = Vec::new();
        for uid in of {
            all.extend(self.warnings_of(&events, &about(namespace, uid, None)).await?);
        }
        Ok(last(all))
    }

    async fn warnings_of(&self, events: &Kind, selector: &Selector) -> Result<Vec<Warning>, Error> {
        let (mut all, mut next) = (Vec::new(), None);
        for _ in 0..PAGES {
            let (page, meta) = self.page(events, selector, next.as_deref(), &WarningLens).await?;
            all.extend(page.into_iter().map(|seen| seen.record).filter(|warning| !warning.own));
            next = meta.next().map(str::to_owned);
            if next.is_none() {
                break;
            }
        }
        Ok(all)
    }
}

/// The last few, newest last; what was said twice counts as said last.
fn last(mut all: Vec<Warning>) -> Vec<Warned> {
    all.sort_by_key(|warning| std::cmp::Reverse(warning.at));
    let mut told: Vec<Warned> = Vec::new();
    for Warning { whose, reason, message, count, .. } in all {
        let is_same = |other: &&mut Warned| {
            (&other.whose, &other.reason, &other.message) == (&whose, &reason, &message)
        };
        if let Some(other) = told.iter_mut().find(is_same) {
            other.count += count;
        } else if told.len() < MOST {
            told.push(Warned { whose, reason, message, count });
        }
    }
    told.reverse();
    told
}
