//! The orders object of a source: one ConfigMap beside its inventory, in which people write what
//! rhumb is to do once.
//!
//! It is there before anybody writes, as the right to one object by its name does not let anybody
//! make it.

use crate::object::annotations;
use std::collections::BTreeMap;

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::intents::CLI_FIELD_MANAGER;
use super::inventory::{MERGE_PATCH, inventory_id_of};
use super::write::{JSON_TYPE, exact_version, json_body as bytes};
use super::{FIELD_MANAGER, path};
use crate::engine::{ResourceVersion, Uid};
use crate::object::{GroupKind, ObjectId};

/// The text around the source's name. The result is no DNS label, so it is never the name of an
/// inventory.
const ORDERS_NAME_AFFIXES: (&str, &str) = ("orders.", ".rhumb.dev");

/// The orders object of a source as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrdersObject {
    /// Incarnation and version.
    pub known: (Uid, ResourceVersion),
    /// Indicates whether it has the label without which its watch does not show it.
    pub is_labelled: bool,
    /// Its data, which anybody may have written who may order something.
    pub data: BTreeMap<String, String>,
}

/// Returns the name of the orders object of a source.
pub(crate) fn orders_name(source: &str) -> String {
    format!("{}{source}{}", ORDERS_NAME_AFFIXES.0, ORDERS_NAME_AFFIXES.1)
}

/// Returns the source whose orders object has this name.
pub(crate) fn source_of_orders(name: &str) -> Option<&str> {
    name.strip_prefix(ORDERS_NAME_AFFIXES.0)?.strip_suffix(ORDERS_NAME_AFFIXES.1)
}

impl OrdersObject {
    fn read(object: ConfigMap, set: &str, on: CallSubject) -> Result<Self, ClusterError> {
        let version = object.metadata.resource_version.unwrap_or_default();
        let Some(uid) = object.metadata.uid else {
            return Err(ClusterError::new(on, ClusterFault::Garbled { reason: "it has no uid".to_owned() }));
        };
        let labels = object.metadata.labels.unwrap_or_default();
        Ok(Self {
            known: (Uid(uid.into()), ResourceVersion::read(&version)),
            is_labelled: labels.get(annotations::ORDERS_OF).is_some_and(|label| label == set),
            data: object.data.unwrap_or_default(),
        })
    }
}

impl Cluster {
    /// Reads the orders object of a source; none where there is none.
    pub(crate) async fn read_orders(
        &self,
        namespace: &str,
        source: &str,
    ) -> Result<Option<OrdersObject>, ClusterError> {
        let on = orders_subject(namespace, source);
        match self.call(ApiRequest::read(url(namespace, source), on.clone())).await {
            Ok(answer) => {
                let set = inventory_id_of(namespace, source);
                Ok(Some(OrdersObject::read(answer.decode(&on)?, &set, on)?))
            }
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the orders object of a source, which goes away with its inventory.
    ///
    /// Fails with [`ClusterFault::VersionConflict`] where it is there already.
    pub(crate) async fn make_orders(
        &self,
        namespace: &str,
        source: &str,
        inventory: &Uid,
    ) -> Result<OrdersObject, ClusterError> {
        let body = new_object(namespace, source, Some(inventory), BTreeMap::new());
        let on = orders_subject(namespace, source);
        let made = self.make_config_map(namespace, &on, bytes(&body, &on)?).await?;
        OrdersObject::read(made, &inventory_id_of(namespace, source), on)
    }

    /// Takes keys out of the orders object, as it was read, and puts its label back.
    ///
    /// Fails with [`ClusterFault::VersionConflict`] when somebody wrote there since.
    pub(crate) async fn remove_orders(
        &self,
        namespace: &str,
        source: &str,
        before: &OrdersObject,
        keys: &[String],
    ) -> Result<OrdersObject, ClusterError> {
        let (on, set) = (orders_subject(namespace, source), inventory_id_of(namespace, source));
        let gone: Map<String, Value> = keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        let (uid, rv) = &before.known;
        let patch = json!({
            "metadata": {"uid": uid.0, "resourceVersion": exact_version(*rv, &on)?, "labels": {annotations::ORDERS_OF: set}},
            "data": gone,
        });
        let url = path::with_query(url(namespace, source), &[("fieldManager", FIELD_MANAGER)]);
        let ask = ApiRequest::write(Method::PATCH, url, MERGE_PATCH, bytes(&patch, &on)?, on.clone());
        match self.call(ask).await {
            Ok(answer) => OrdersObject::read(answer.decode(&on)?, &set, on),
            Err(error) if *error.fault() == ClusterFault::NoObject => {
                Err(ClusterError::new(on, ClusterFault::VersionConflict))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes an order in the name of its user, and makes the object where that is missing and its
    /// user may.
    pub(crate) async fn give_order(
        &self,
        namespace: &str,
        source: &str,
        token: &str,
        text: &str,
    ) -> Result<(), ClusterError> {
        let on = orders_subject(namespace, source);
        let data = BTreeMap::from([(token.to_owned(), text.to_owned())]);
        let body = bytes(&json!({"data": data}), &on)?;
        let target = path::with_query(url(namespace, source), &[("fieldManager", CLI_FIELD_MANAGER)]);
        match self.call(ApiRequest::write(Method::PATCH, target, MERGE_PATCH, body, on.clone())).await {
            Err(error) if *error.fault() == ClusterFault::NoObject => {
                let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
                let target = path::with_query(collection, &[("fieldManager", CLI_FIELD_MANAGER)]);
                let body = bytes(&new_object(namespace, source, None, data), &on)?;
                self.call(ApiRequest::write(Method::POST, target, JSON_TYPE, body, on)).await.map(drop)
            }
            answer => answer.map(drop),
        }
    }
}

fn new_object(
    namespace: &str,
    source: &str,
    inventory: Option<&Uid>,
    data: BTreeMap<String, String>,
) -> ConfigMap {
    let owner = |uid: &Uid| OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: source.to_owned(),
        uid: uid.to_string(),
        ..OwnerReference::default()
    };
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(orders_name(source)),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(
                annotations::ORDERS_OF.to_owned(),
                inventory_id_of(namespace, source),
            )])),
            owner_references: inventory.map(|uid| vec![owner(uid)]),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}

fn orders_subject(namespace: &str, source: &str) -> CallSubject {
    CallSubject::Object(ObjectId::new(
        &GroupKind::new("", "ConfigMap"),
        Some(namespace),
        &orders_name(source),
    ))
}

fn url(namespace: &str, source: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{}", orders_name(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orders_object_is_named_after_its_source_and_no_inventory_is_named_so() {
        fn check(name: &str, expected: Option<&str>) {
            assert_eq!(source_of_orders(name), expected, "{name}");
        }
        check(&orders_name("shop"), Some("shop"));
        check(&orders_name("orders"), Some("orders"));
        check("shop", None);
        check("orders.shop", None);
        check("rollout-budget.rhumb.dev", None);
        assert!(orders_name("shop").parse::<crate::config::DnsLabel>().is_err());
    }
}
