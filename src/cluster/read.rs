//! Reads: one object, many names at once, a whole kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt as _;
use futures::stream::{self, StreamExt as _};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{ApiRequest, ApiResponse, Cluster, unreadable_error};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::kinds::ServedKind;
use super::path::{self, ListSelector};
use super::wire::{DecodedObject, LiveDecoder, WireDecoder, WireForm};
use crate::engine::{LiveObject, is_workload};
use crate::object::ObjectId;

/// Large enough that a kind of thousands needs few calls.
const LIST_PAGE_SIZE: &str = "500";
const PAGE_SIZE: usize = 500;
/// The size of a page where one of the usual size is too long an answer. A large object of etcd
/// takes 1.5 MiB there, and as JSON up to six times that: each `<` is six characters.
const SMALL_PAGE_SIZE: &str = "20";
/// The most names that are asked for one by one.
const MAX_SINGLE_READS: usize = 2;

/// The forms of an answer that hold only metadata.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The maximum number of pages that are read of what carries no label of a set: nothing bounds how
/// many such objects there are.
const MAX_UNLABELLED_PAGES: usize = 20;

/// Some objects of a kind.
#[derive(Debug)]
pub(crate) struct PartialList {
    /// The objects, by their metadata alone.
    pub objects: Vec<(ObjectId, LiveObject)>,
    /// Indicates whether these are all.
    pub is_complete: bool,
}

/// The result of a lookup of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveLookup {
    /// It is there. Its health is not known, because only the metadata was read.
    Found(Box<LiveObject>),
    /// It is not there.
    Absent,
}

/// One page of a list, its items still as text.
#[derive(Deserialize)]
pub(super) struct ListPage<'a> {
    /// The continuation of the list, and its version.
    #[serde(default)]
    pub(super) metadata: ListPageMetadata,
    /// The objects.
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// The metadata of a page.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListPageMetadata {
    /// The version of the whole list.
    pub(super) resource_version: Option<String>,
    /// Token of the next page; empty or none after the last.
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
    remaining_item_count: Option<u64>,
}

impl ListPageMetadata {
    /// Returns the token of the next page.
    pub(super) fn next(&self) -> Option<&str> {
        self.next.as_deref().filter(|token| !token.is_empty())
    }
}

/// The position in a list that is read page by page.
#[derive(Debug, Default)]
pub(super) struct ListPosition {
    /// The token of the next page; none before the first.
    next: Option<String>,
    /// Indicates whether a page of the usual size was too long an answer. The next ones may be too,
    /// and each of them would be downloaded for nothing.
    has_long_pages: bool,
}

impl ListPosition {
    /// Goes on to the page after this one, and returns whether there is any.
    pub(super) fn advance(&mut self, page: &ListPageMetadata) -> bool {
        self.next = page.next().map(str::to_owned);
        self.next.is_some()
    }
}

/// Returns the form in which objects of a kind are looked up.
fn lookup_form(kind: &ServedKind) -> WireForm {
    let any = ObjectId::new(&kind.gvk.group_kind(), None, "");
    if is_workload(&any) || any.is("", "Service") { WireForm::Full } else { WireForm::Metadata }
}

/// Returns the request of a lookup. `metadata` is the type of its answer where the metadata are
/// enough.
fn lookup_request(url: String, on: &CallSubject, form: WireForm, metadata: &'static str) -> ApiRequest {
    let request = ApiRequest::read(url, on.clone());
    match form {
        WireForm::Full => request,
        WireForm::Metadata => request.accept(metadata),
    }
}

impl Cluster {
    /// Reads one whole object, or finds that it is not there.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses it, or does not answer.
    pub async fn get(&self, kind: &ServedKind, id: &ObjectId) -> Result<Option<Value>, ClusterError> {
        let on = CallSubject::Object(id.clone());
        match self.call(ApiRequest::read(path::object(kind, id), on.clone())).await {
            Ok(answer) => answer.decode(&on).map(Some),
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks up which of the named objects are there, by their metadata. Workloads are read
    /// completely, as a rollout or a step that goes on shows in their specs. The namespace is none
    /// for a cluster-scoped kind. Many names cost one list, a few cost a GET each. That a namespace
    /// is missing is not visible here: then all are absent.
    ///
    /// # Errors
    ///
    /// Fails where a list or any single read does.
    pub async fn look_up(
        &self,
        kind: &Arc<ServedKind>,
        namespace: Option<&str>,
        names: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, LiveLookup>, ClusterError> {
        let mut missing = names.clone();
        let mut found = BTreeMap::new();
        if names.len() > MAX_SINGLE_READS {
            self.look_up_listed(kind, namespace, &mut missing, &mut found).await?;
        }
        let single = |name: String| async move {
            let lookup = self.look_up_one(kind, namespace, &name).await?;
            Ok::<_, ClusterError>((name, lookup))
        };
        let rest: Vec<_> = stream::iter(missing).map(single).buffer_unordered(8).try_collect().await?;
        found.extend(rest);
        Ok(found)
    }

    /// Fills in what the list of the namespace shows. Gives up where the list is so long that
    /// asking for the remaining names one by one costs less; those stay in `missing`.
    async fn look_up_listed(
        &self,
        kind: &Arc<ServedKind>,
        namespace: Option<&str>,
        missing: &mut BTreeSet<String>,
        found: &mut BTreeMap<String, LiveLookup>,
    ) -> Result<(), ClusterError> {
        let on = CallSubject::Kind(kind.gvk.group_kind());
        let form = lookup_form(kind);
        let decoder = LiveDecoder::new(kind, self.interner(), form);
        let mut position = ListPosition::default();
        // A server need not say how long a list is, and it may have no end.
        for _ in 0..missing.len() {
            let collection = path::collection_path(kind, namespace);
            let request = |url| lookup_request(url, &on, form, METADATA_LIST);
            let answer = self.call_for_page(&collection, &ListSelector::All, &mut position, request).await?;
            let page: ListPage<'_> =
                serde_json::from_str(answer.text(&on)?).map_err(|error| unreadable_error(&on, &error))?;
            for item in page.items.unwrap_or_default() {
                let Some(DecodedObject { id, record, .. }) = decoder.decode(item.get()) else { continue };
                if missing.remove(id.name()) {
                    found.insert(id.name().to_owned(), LiveLookup::Found(Box::new(record)));
                }
            }
            if !position.advance(&page.metadata) {
                found.extend(std::mem::take(missing).into_iter().map(|name| (name, LiveLookup::Absent)));
                return Ok(());
            }
            let remaining =
                usize::try_from(page.metadata.remaining_item_count.unwrap_or(0)).unwrap_or(usize::MAX);
            if missing.len() <= remaining.div_ceil(PAGE_SIZE) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Lists the objects of a kind that carry the label of no set, and a release annotation all the
    /// same, by their metadata. The namespace is none for the whole cluster.
    pub(crate) async fn list_unlabelled(
        &self,
        kind: &Arc<ServedKind>,
        namespace: Option<&str>,
    ) -> Result<PartialList, ClusterError> {
        let on = CallSubject::Kind(kind.gvk.group_kind());
        let decoder = LiveDecoder::new(kind, self.interner(), WireForm::Metadata);
        let (mut objects, mut position) = (Vec::new(), ListPosition::default());
        for _ in 0..MAX_UNLABELLED_PAGES {
            let collection = path::collection_path(kind, namespace);
            let request = |url| ApiRequest::read(url, on.clone()).accept(METADATA_LIST);
            let answer =
                self.call_for_page(&collection, &ListSelector::Unlabelled, &mut position, request).await?;
            let page: ListPage<'_> =
                serde_json::from_str(answer.text(&on)?).map_err(|error| unreadable_error(&on, &error))?;
            let seen =
                page.items.unwrap_or_default().into_iter().filter_map(|item| decoder.decode(item.get()));
            let released = seen.filter(|seen| seen.record.shown_release().is_some());
            objects.extend(released.map(|seen| (seen.id, seen.record)));
            if !position.advance(&page.metadata) {
                return Ok(PartialList { objects, is_complete: true });
            }
        }
        Ok(PartialList { objects, is_complete: false })
    }

    async fn look_up_one(
        &self,
        kind: &Arc<ServedKind>,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<LiveLookup, ClusterError> {
        let on = CallSubject::Object(ObjectId::new(&kind.gvk.group_kind(), namespace, name));
        let (form, url) = (lookup_form(kind), path::object_path(kind, namespace, name));
        match self.call(lookup_request(url, &on, form, METADATA_ONLY)).await {
            Ok(answer) => match LiveDecoder::new(kind, self.interner(), form).decode(answer.text(&on)?) {
                Some(seen) => Ok(LiveLookup::Found(Box::new(seen.record))),
                None => Err(ClusterError::new(
                    on,
                    ClusterFault::Garbled { reason: "the answer is no object".to_owned() },
                )),
            },
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(LiveLookup::Absent),
            Err(error) => Err(error),
        }
    }

    /// Returns what informers keep of an object that was read completely; none where it is no
    /// object.
    pub fn decode_view(&self, kind: &Arc<ServedKind>, object: &Value) -> Option<LiveObject> {
        let decoder = LiveDecoder::new(kind, self.interner(), WireForm::Full);
        decoder.decode(&object.to_string()).map(|seen| seen.record)
    }

    /// Lists the objects of a kind once, page by page. A list that expires midway starts again,
    /// once.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses a page, does not answer, or lets the list expire twice.
    pub async fn list(
        &self,
        kind: &Arc<ServedKind>,
        selector: &ListSelector,
    ) -> Result<Vec<(ObjectId, LiveObject)>, ClusterError> {
        match self.list_once(kind, selector).await {
            Err(error) if *error.fault() == ClusterFault::Expired => self.list_once(kind, selector).await,
            other => other,
        }
    }

    async fn list_once(
        &self,
        kind: &Arc<ServedKind>,
        selector: &ListSelector,
    ) -> Result<Vec<(ObjectId, LiveObject)>, ClusterError> {
        let decoder = LiveDecoder::new(kind, self.interner(), WireForm::Full);
        let (mut all, mut position) = (Vec::new(), ListPosition::default());
        loop {
            let (page, meta) = self.read_page(kind, selector, &mut position, &decoder).await?;
            all.extend(page.into_iter().map(|seen| (seen.id, seen.record)));
            if !position.advance(&meta) {
                return Ok(all);
            }
        }
    }

    /// Reads one page of a kind. An item that is no object is left out.
    pub(super) async fn read_page<P: WireDecoder>(
        &self,
        kind: &ServedKind,
        selector: &ListSelector,
        position: &mut ListPosition,
        decoder: &P,
    ) -> Result<(Vec<DecodedObject<P::Record>>, ListPageMetadata), ClusterError> {
        let on = CallSubject::Kind(kind.gvk.group_kind());
        let collection = path::collection_path(kind, selector.namespace());
        let request = |url| ApiRequest::read(url, on.clone());
        let answer = self.call_for_page(&collection, selector, position, request).await?;
        let page: ListPage<'_> =
            serde_json::from_str(answer.text(&on)?).map_err(|error| unreadable_error(&on, &error))?;
        let items = page.items.unwrap_or_default();
        Ok((items.into_iter().filter_map(|item| decoder.decode(item.get())).collect(), page.metadata))
    }

    /// Asks for one page of a list. Where the answer is too long, it asks for fewer objects, from
    /// there to the end of the list.
    async fn call_for_page(
        &self,
        collection: &str,
        selector: &ListSelector,
        position: &mut ListPosition,
        request: impl Fn(String) -> ApiRequest,
    ) -> Result<ApiResponse, ClusterError> {
        let next = position.next.as_deref();
        let page = |size| request(page_url(collection.to_owned(), selector, next, size));
        if !position.has_long_pages {
            match self.call(page(LIST_PAGE_SIZE)).await {
                Err(error) if matches!(error.fault(), ClusterFault::TooLong { .. }) => {}
                answered => return answered,
            }
        }
        let answered = self.call(page(SMALL_PAGE_SIZE)).await;
        position.has_long_pages = true;
        answered
    }
}

fn page_url(collection: String, selector: &ListSelector, next: Option<&str>, size: &str) -> String {
    let mut parameters = vec![("limit", size)];
    let selected = selector.parameters();
    parameters.extend(selected.iter().map(|(name, value)| (*name, &**value)));
    parameters.extend(next.map(|token| ("continue", token)));
    path::with_query(collection, &parameters)
}
