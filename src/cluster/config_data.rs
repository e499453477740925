//! The data of `ConfigMaps` and Secrets that are not ours, and that pods use: followed as hashes.
//!
//! The objects of one kind and namespace share a watch: one by name where it is one object, else
//! one of the whole namespace. Of each object that is followed the hash of its data leaves this
//! file; of others not even that is made.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::call::Cluster;
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::event_sink::{EventSink, ReceiverClosed};
use super::impersonation::ServiceAccount;
use super::informer::{Informer, InformerChange, InformerEvent};
use super::kinds::{ServedKind, ServedScope};
use super::path::{ListSelector, NamespaceSelector};
use super::wire::{DecodedObject, WireDecoder, WireText, lenient};
use crate::engine::{ConfigData, ResourceVersion};
use crate::object::{ErrorClass, GroupKind, Gvk, ObjectId};

/// News that wait to be taken over.
const CHANNEL_CAPACITY: usize = 64;

/// One event of a data watch.
#[derive(Debug)]
pub struct DataEvent {
    /// The object.
    pub id: ObjectId,
    /// The account that read it; none for the owner of the credentials.
    pub account: Option<ServiceAccount>,
    /// The change.
    pub change: DataChange,
}

/// One piece of news about the data of an object.
#[derive(Debug)]
pub enum DataChange {
    /// It has these data, or does not exist.
    Value(Option<ConfigData>),
    /// Something failed, in words and by its class; it goes on by itself, but after one of class
    /// [`ErrorClass::Internal`].
    Failed(Arc<str>, ErrorClass),
}

/// A running watch of data. It stops when this is dropped, or when nobody listens any more.
#[derive(Debug)]
pub struct DataWatchHandle {
    task: JoinHandle<()>,
    relist: Arc<Notify>,
}

impl DataWatchHandle {
    /// Lists all again, as an audit of what the watch reported.
    pub fn relist(&self) {
        self.relist.notify_one();
    }
}

impl Drop for DataWatchHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Follows the data of some objects of one kind and namespace until it is dropped. Returns none
    /// for other kinds than `ConfigMap` and Secret, and where no object is named.
    ///
    /// Waits while the sink is full. Needs a running tokio runtime.
    pub fn watch_data(
        &self,
        ids: &BTreeSet<ObjectId>,
        sink: impl Into<EventSink<DataEvent>>,
    ) -> Option<DataWatchHandle> {
        let sink = sink.into();
        let first = ids.first()?;
        let (namespace, group_kind) = (first.namespace()?, first.group_kind());
        let data_kind = ["ConfigMap", "Secret"].into_iter().find(|kind| first.is("", kind))?;
        let kind = Arc::new(core_kind(data_kind));
        let fields = (ids.len() == 1).then(|| format!("metadata.name={}", first.name()).into());
        let within = NamespaceSelector { namespace: namespace.into(), labels: None, fields };
        let (to_task, events) = mpsc::channel(CHANNEL_CAPACITY);
        let relist = Arc::new(Notify::new());
        let decoder = DataDecoder { kind: group_kind, ids: Arc::new(ids.clone()) };
        let follow = DataWatchTask {
            informer: self.inform(&kind, ListSelector::Namespace(Arc::new(within)), decoder.clone(), to_task),
            events,
            relist: relist.clone(),
            ids: decoder.ids,
            listed: None,
            account: self.account().cloned(),
            sink: sink.clone(),
        };
        let (id, account) = (first.clone(), self.account().cloned());
        let task = async move {
            if AssertUnwindSafe(follow.run()).catch_unwind().await.is_err() {
                let bug = ClusterError::new(CallSubject::Object(id.clone()), ClusterFault::Bug);
                let change = DataChange::Failed(bug.reason().into(), bug.class());
                let _ = sink.send(DataEvent { id, account, change }).await;
            }
        };
        Some(DataWatchHandle { task: tokio::spawn(task), relist })
    }
}

/// Returns a kind of the core group, `ConfigMap` or `Secret`, without a lookup in discovery.
fn core_kind(kind: &str) -> ServedKind {
    ServedKind {
        gvk: Gvk::new("", "v1", kind),
        plural: format!("{}s", kind.to_ascii_lowercase()).into(),
        scope: ServedScope::Namespaced,
        verbs: BTreeSet::new(),
    }
}

/// The task of a watch of data.
struct DataWatchTask {
    informer: Informer,
    events: mpsc::Receiver<InformerEvent<Option<ConfigData>>>,
    relist: Arc<Notify>,
    ids: Arc<BTreeSet<ObjectId>>,
    /// The objects in the list that goes on.
    listed: Option<BTreeSet<ObjectId>>,
    account: Option<ServiceAccount>,
    sink: EventSink<DataEvent>,
}

impl DataWatchTask {
    async fn run(mut self) {
        loop {
            let relist = self.relist.clone();
            let event = tokio::select! {
                () = relist.notified() => {
                    self.informer.relist();
                    continue;
                }
                event = self.events.recv() => event,
            };
            let Some(event) = event else { return };
            if self.take(event.change).await.is_err() {
                return;
            }
        }
    }

    async fn take(&mut self, change: InformerChange<Option<ConfigData>>) -> Result<(), ReceiverClosed> {
        match change {
            InformerChange::Init => self.listed = Some(BTreeSet::new()),
            InformerChange::Apply(id, Some(data)) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(id.clone());
                }
                self.send(id, DataChange::Value(Some(data))).await?;
            }
            InformerChange::Delete(id, _) if self.ids.contains(&id) => {
                if let Some(listed) = &mut self.listed {
                    listed.remove(&id);
                }
                self.send(id, DataChange::Value(None)).await?;
            }
            InformerChange::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                for id in self.ids.clone().difference(&listed) {
                    self.send(id.clone(), DataChange::Value(None)).await?;
                }
            }
            InformerChange::Failed(error, _) => {
                let why: Arc<str> = error.reason().into();
                for id in self.ids.clone().iter() {
                    self.send(id.clone(), DataChange::Failed(why.clone(), error.class())).await?;
                }
            }
            // The watch that goes on reports the changes that were missed.
            InformerChange::Resumed | InformerChange::Apply(_, None) | InformerChange::Delete(..) => {}
        }
        Ok(())
    }

    async fn send(&self, id: ObjectId, change: DataChange) -> Result<(), ReceiverClosed> {
        let account = self.account.clone();
        self.sink.send(DataEvent { id, account, change }).await
    }
}

/// A decoder that reads the data of some objects as a hash.
#[derive(Clone)]
struct DataDecoder {
    kind: GroupKind,
    ids: Arc<BTreeSet<ObjectId>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDataObject<'a> {
    #[serde(borrow)]
    metadata: DataMetadata<'a>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    binary_data: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DataMetadata<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    name: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    namespace: WireText<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    resource_version: WireText<'a>,
}

impl WireDecoder for DataDecoder {
    type Record = Option<ConfigData>;

    fn decode(&self, text: &str) -> Option<DecodedObject<Option<ConfigData>>> {
        let raw: RawDataObject<'_> = serde_json::from_str(text).ok()?;
        let id = ObjectId::new(&self.kind, Some(&raw.metadata.namespace.0), &raw.metadata.name.0);
        let rv = ResourceVersion::read(&raw.metadata.resource_version.0);
        if !self.ids.contains(&id) {
            return Some(DecodedObject { id, rv, record: None });
        }
        let part = |part: Option<&RawValue>| {
            part.and_then(|part| serde_json::from_str::<Value>(part.get()).ok()).unwrap_or_default()
        };
        let object = json!({ "data": part(raw.data), "binaryData": part(raw.binary_data) });
        let data = ConfigData::of(&id, &object);
        Some(DecodedObject { id, rv, record: Some(data) })
    }
}

impl Cluster {
    /// Reads the data of a ConfigMap or Secret, and nothing else of it; none where there is no such
    /// object.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses it, or does not answer.
    pub(crate) async fn read_object_data(&self, id: &ObjectId) -> Result<Option<Value>, ClusterError> {
        Ok(self.get(&core_kind(id.kind()), id).await?.map(|object| json!({ "data": object["data"] })))
    }

    /// Reads the data of one object as a hash; none where there is no such object.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses it, or does not answer.
    pub async fn read_config_data(&self, id: &ObjectId) -> Result<Option<ConfigData>, ClusterError> {
        Ok(self.get(&core_kind(id.kind()), id).await?.map(|object| ConfigData::of(id, &object)))
    }
}
