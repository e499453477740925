//! Warning events: what controllers, scheduler and kubelets say of an object.

use std::sync::Arc;

use serde::Deserialize;

use super::super::FIELD_MANAGER;
use super::super::call::Cluster;
use super::super::error::ClusterError;
use super::super::kinds::ServedKind;
use super::super::path::{ListSelector, NamespaceSelector};
use super::super::read::ListPosition;
use super::super::wire::{DecodedObject, WireDecoder, WireText, lenient};
use super::decoder::{bounded_text, unix_seconds};
use super::{EVENT_KIND, kind};
use crate::engine::{ResourceVersion, Uid};
use crate::object::ObjectId;

/// The maximum number of warnings reported.
const MAX_WARNINGS: usize = 5;
/// The maximum number of pages read for one object.
const MAX_PAGES: usize = 4;
/// The prefix by which client-go marks events that it combined.
const COMBINED_EVENT_PREFIX: &str = "(combined from similar events): ";

/// One warning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WarningEvent {
    /// The object.
    pub(super) about: Uid,
    /// The object in words, for example `Pod web-1`.
    pub(super) whose: Arc<str>,
    pub(super) reason: Arc<str>,
    pub(super) message: Arc<str>,
    /// The time of the last occurrence: seconds since 1970, by the reporter's clock.
    pub(super) at: i64,
    /// The number of occurrences.
    pub(super) count: u64,
    /// Indicates whether rhumb wrote it: its own Events are ignored.
    pub(super) own: bool,
}

/// A warning about an object, as it is shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectWarning {
    /// The object, for example `Pod web-1`.
    pub whose: Arc<str>,
    /// One word, for example `FailedScheduling`.
    pub reason: Arc<str>,
    /// The message, in one line.
    pub message: Arc<str>,
    /// The number of occurrences.
    pub count: u64,
}

impl std::fmt::Display for ObjectWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.whose, self.reason, self.message)?;
        if self.count > 1 { write!(f, " ({} times)", self.count) } else { Ok(()) }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawEvent<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    metadata: EventMetadata<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    involved_object: InvolvedObject<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    reason: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    message: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    event_time: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    last_timestamp: WireText<'a>,
    #[serde(deserialize_with = "lenient")]
    count: u64,
    #[serde(borrow, deserialize_with = "lenient")]
    series: EventSeries<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    reporting_component: WireText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventMetadata<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    namespace: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    resource_version: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    creation_timestamp: WireText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InvolvedObject<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    kind: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    uid: WireText<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct EventSeries<'a> {
    #[serde(deserialize_with = "lenient")]
    count: u64,
    #[serde(borrow, deserialize_with = "lenient")]
    last_observed_time: WireText<'a>,
}

/// The decoder of Events.
#[derive(Clone)]
pub(super) struct WarningDecoder;

impl WireDecoder for WarningDecoder {
    type Record = WarningEvent;

    fn decode(&self, text: &str) -> Option<DecodedObject<WarningEvent>> {
        let raw: RawEvent<'_> = serde_json::from_str(text).ok()?;
        let meta = &raw.metadata;
        let id = ObjectId::new(&kind(&EVENT_KIND).gvk.group_kind(), Some(&meta.namespace.0), &meta.name.0);
        let times =
            [&raw.series.last_observed_time, &raw.last_timestamp, &raw.event_time, &meta.creation_timestamp];
        let about = &raw.involved_object;
        let record = WarningEvent {
            about: Uid((&*about.uid.0).into()),
            whose: bounded_text(&format!("{} {}", about.kind.0, about.name.0)),
            reason: bounded_text(&raw.reason.0),
            message: bounded_text(
                raw.message.0.strip_prefix(COMBINED_EVENT_PREFIX).unwrap_or(&raw.message.0),
            ),
            at: times.iter().map(|time| unix_seconds(&time.0)).find(|at| *at != 0).unwrap_or(0),
            count: raw.count.max(raw.series.count).max(1),
            own: raw.reporting_component.0 == FIELD_MANAGER,
        };
        Some(DecodedObject { id, rv: ResourceVersion::read(&meta.resource_version.0), record })
    }
}

/// Returns the selector of the warnings about one object, and of one reason where that is given.
pub(super) fn warning_selector(namespace: &str, uid: &Uid, reason: Option<&str>) -> ListSelector {
    let reason = reason.map(|reason| format!(",reason={reason}")).unwrap_or_default();
    ListSelector::Namespace(Arc::new(NamespaceSelector {
        namespace: namespace.into(),
        labels: None,
        fields: Some(format!("involvedObject.uid={uid},type=Warning{reason}").into()),
    }))
}

impl Cluster {
    /// Reads the last few warnings about some objects of a namespace, as a workload and one of its
    /// pods: newest last, each text once. Costs a list per object.
    ///
    /// # Errors
    ///
    /// Fails where any of the lists does.
    pub async fn read_warnings(
        &self,
        namespace: &str,
        of: &[Uid],
    ) -> Result<Vec<ObjectWarning>, ClusterError> {
        let events = kind(&EVENT_KIND);
        let mut all = Vec::new();
        for uid in of {
            all.extend(self.list_warnings(&events, &warning_selector(namespace, uid, None)).await?);
        }
        Ok(last_warnings(all))
    }

    async fn list_warnings(
        &self,
        events: &ServedKind,
        selector: &ListSelector,
    ) -> Result<Vec<WarningEvent>, ClusterError> {
        let (mut all, mut position) = (Vec::new(), ListPosition::default());
        for _ in 0..MAX_PAGES {
            let (page, meta) = self.read_page(events, selector, &mut position, &WarningDecoder).await?;
            all.extend(page.into_iter().map(|seen| seen.record).filter(|warning| !warning.own));
            if !position.advance(&meta) {
                break;
            }
        }
        Ok(all)
    }
}

/// Returns the last few, newest last; what was said twice counts as said last.
fn last_warnings(mut all: Vec<WarningEvent>) -> Vec<ObjectWarning> {
    all.sort_by_key(|warning| std::cmp::Reverse(warning.at));
    let mut warnings: Vec<ObjectWarning> = Vec::new();
    for WarningEvent { whose, reason, message, count, .. } in all {
        let is_same = |other: &&mut ObjectWarning| {
            (&other.whose, &other.reason, &other.message) == (&whose, &reason, &message)
        };
        if let Some(other) = warnings.iter_mut().find(is_same) {
            other.count += count;
        } else if warnings.len() < MAX_WARNINGS {
            warnings.push(ObjectWarning { whose, reason, message, count });
        }
    }
    warnings.reverse();
    warnings
}
