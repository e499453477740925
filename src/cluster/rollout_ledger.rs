//! The cluster's rollout ledger: one ConfigMap in which all who restart pods write their claims.

use std::collections::BTreeMap;

use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::inventory::MERGE_PATCH;
use super::obstacles::WriteObstacles;
use super::write::{exact_version, json_body};
use super::{FIELD_MANAGER, path};
use crate::engine::{ResourceVersion, Uid};
use crate::object::{GroupKind, ObjectId, truncate};

/// Its name is no DNS label, so no source's inventory can have it.
pub(crate) const LEDGER_NAME: &str = "rollout-budget.rhumb.dev";

/// The key of its data.
const LEDGER_KEY: &str = "claims";

/// The rollout ledger as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerObject {
    /// Incarnation and version.
    pub known: (Uid, ResourceVersion),
    /// The text; its meaning is the engine's.
    pub text: String,
    /// Why nobody can write it; none where it can be written.
    pub unwritable: Option<String>,
}

/// The longest reason, in bytes, for which a text cannot be read: it may quote the text.
const MAX_PARSE_ERROR_BYTES: usize = 200;

/// Says that the rollout ledger cannot be read or written, what follows, and the command that mends
/// it.
pub(crate) fn explain_unreadable_ledger(namespace: &str, why: &str) -> String {
    let why = truncate(why, MAX_PARSE_ERROR_BYTES);
    format!(
        "ConfigMap {namespace}/{LEDGER_NAME}: {why}; no rollout begins; `kubectl -n {namespace} delete configmap {LEDGER_NAME}` \
         has it made anew, and who still runs writes its claims again"
    )
}

/// Says that some claims cannot be read, what follows, and the command that mends it.
pub(crate) fn explain_unread_claims(namespace: &str, count: usize) -> String {
    let claims = match count {
        1 => "1 claim cannot be read, and counts".to_owned(),
        count => format!("{count} claims cannot be read, and count"),
    };
    format!(
        "ConfigMap {namespace}/{LEDGER_NAME}: {claims}; `kubectl -n {namespace} delete configmap {LEDGER_NAME}` has it made anew, \
         and who still runs writes its claims again"
    )
}

impl LedgerObject {
    fn read(object: ConfigMap, on: CallSubject) -> Result<Self, ClusterError> {
        let unwritable = WriteObstacles::of(&object).reason(&[LEDGER_KEY]);
        let version = object.metadata.resource_version.unwrap_or_default();
        let Some(uid) = object.metadata.uid else {
            return Err(ClusterError::new(on, ClusterFault::Garbled { reason: "it has no uid".to_owned() }));
        };
        let text = object.data.unwrap_or_default().remove(LEDGER_KEY).unwrap_or_else(|| "{}".to_owned());
        Ok(Self { known: (Uid(uid.into()), ResourceVersion::read(&version)), text, unwritable })
    }
}

impl Cluster {
    /// Reads the rollout ledger; none where there is none.
    pub(crate) async fn read_rollout_ledger(
        &self,
        namespace: &str,
    ) -> Result<Option<LedgerObject>, ClusterError> {
        let on = ledger_subject(namespace);
        match self.call(ApiRequest::read(url(namespace), on.clone())).await {
            Ok(answer) => Ok(Some(LedgerObject::read(answer.decode(&on)?, on)?)),
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the rollout ledger by compare-and-swap; makes it, and its namespace, where there was
    /// none.
    ///
    /// Fails with [`ClusterFault::VersionConflict`] when somebody else wrote since it was read.
    pub(crate) async fn save_rollout_ledger(
        &self,
        namespace: &str,
        before: Option<&LedgerObject>,
        text: &str,
    ) -> Result<LedgerObject, ClusterError> {
        let on = ledger_subject(namespace);
        let data = BTreeMap::from([(LEDGER_KEY.to_owned(), text.to_owned())]);
        let metadata = ObjectMeta {
            name: Some(LEDGER_NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid: before.map(|before| before.known.0.to_string()),
            resource_version: before.map(|before| exact_version(before.known.1, &on)).transpose()?,
            ..ObjectMeta::default()
        };
        let body = json_body(&ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }, &on)?;
        if before.is_some() {
            // As a patch it needs no right but those for applying, and leaves alone what others put
            // beside the claims.
            let url = path::with_query(url(namespace), &[("fieldManager", FIELD_MANAGER)]);
            let ask = ApiRequest::write(Method::PATCH, url, MERGE_PATCH, body, on.clone());
            return match self.call(ask).await {
                Ok(answer) => LedgerObject::read(answer.decode(&on)?, on),
                Err(error) if *error.fault() == ClusterFault::NoObject => {
                    Err(ClusterError::new(on, ClusterFault::VersionConflict))
                }
                Err(error) => Err(error),
            };
        }
        LedgerObject::read(self.make_config_map(namespace, &on, body).await?, on)
    }
}

fn ledger_subject(namespace: &str) -> CallSubject {
    CallSubject::Object(ObjectId::new(&GroupKind::new("", "ConfigMap"), Some(namespace), LEDGER_NAME))
}

fn url(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{LEDGER_NAME}")
}
