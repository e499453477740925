//! The proof that the server does not have a kind.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError};
use super::kinds::KindLookup;
use super::path;
use crate::object::GroupKind;

const DEFINITIONS_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const API_SERVICES_PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// Definitions carry whole schemas, up to a megabyte each.
const DEFINITIONS_PAGE_SIZE: &str = "50";

/// One page of a list of specs.
#[derive(Deserialize)]
struct SpecListPage<S> {
    metadata: ListMetadata,
    items: Vec<SpecItem<S>>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    next: String,
}

#[derive(Deserialize)]
struct SpecItem<S> {
    spec: S,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    names: DefinitionNames,
}

#[derive(Deserialize)]
struct DefinitionNames {
    kind: String,
}

#[derive(Deserialize)]
struct ApiServiceSpec {
    #[serde(default)]
    group: String,
    service: Option<serde_json::Value>,
}

impl Cluster {
    /// Returns which of these kinds the server certainly does not have, so that no object of them
    /// is there either.
    ///
    /// A kind that discovery does not list may exist all the same. A server that has just started
    /// lists kinds bit by bit, and the group of another server that is down may be missing. So the
    /// server must be ready, and discovery, asked anew, must list the kind in no version. No
    /// definition may name it, and its group may be served by no other server. A question without
    /// an answer proves nothing either.
    pub(crate) async fn find_absent_kinds(
        &self,
        kinds: &BTreeSet<GroupKind>,
    ) -> Result<BTreeSet<GroupKind>, ClusterError> {
        self.call(ApiRequest::read("/readyz".to_owned(), CallSubject::Server("readiness"))).await?;
        let listed = self.discover().await?;
        let definitions: Vec<DefinitionSpec> =
            self.list_specs(DEFINITIONS_PATH, "the list of definitions").await?;
        let services: Vec<ApiServiceSpec> =
            self.list_specs(API_SERVICES_PATH, "the list of API services").await?;
        let is_absent = |kind: &&GroupKind| {
            let unlisted = matches!(listed.preferred_kind(kind), KindLookup::Unserved { .. });
            let defined = definitions.iter().any(|d| d.group == *kind.group && d.names.kind == *kind.kind);
            let elsewhere = services.iter().any(|s| s.group == *kind.group && s.service.is_some());
            unlisted && !defined && !elsewhere
        };
        Ok(kinds.iter().filter(is_absent).cloned().collect())
    }

    async fn list_specs<S: serde::de::DeserializeOwned>(
        &self,
        collection: &str,
        subject: &'static str,
    ) -> Result<Vec<S>, ClusterError> {
        let on = CallSubject::Server(subject);
        let (mut specs, mut next) = (Vec::new(), String::new());
        loop {
            let mut parameters = vec![("limit", DEFINITIONS_PAGE_SIZE)];
            if !next.is_empty() {
                parameters.push(("continue", &next));
            }
            let url = path::with_query(collection.to_owned(), &parameters);
            let page: SpecListPage<S> = self.call(ApiRequest::read(url, on.clone())).await?.decode(&on)?;
            specs.extend(page.items.into_iter().map(|item| item.spec));
            if page.metadata.next.is_empty() {
                return Ok(specs);
            }
            next = page.metadata.next;
        }
    }
}
