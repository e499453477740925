//! The key for hashes of data: one Secret beside the inventories, made once, by whoever needs it
//! first.

use std::collections::BTreeMap;
use std::fmt;

use http::Method;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::write::{JSON_TYPE, json_body};
use super::{FIELD_MANAGER, path};
use crate::engine::{CONFIG_KEY_SECRET_NAME, HashKey, ReleaseKey};
use crate::object::{GroupKind, ObjectId};

/// The key of its data.
const KEY_DATA_KEY: &str = "key";

/// Length of a key that is made, in bytes.
const KEY_BYTES: usize = 32;

/// Returns what helps where the key cannot be had. A Secret without a key has to go, as nobody may
/// change it. Access to any other one has to be granted.
pub(crate) fn missing_key_remedy(namespace: &str, fault: Option<&ClusterFault>) -> String {
    match fault {
        Some(ClusterFault::Garbled { .. }) => format!(
            "`kubectl -n {namespace} delete secret {CONFIG_KEY_SECRET_NAME}` has another one made, and what the lost one sealed is \
             kept until its content changes"
        ),
        _ => "grant `get` and `create` on it".to_owned(),
    }
}

/// A key as it is stored. Its `Debug` form shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigKey(Vec<u8>);

impl fmt::Debug for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigKey(..)")
    }
}

impl ConfigKey {
    /// Returns a new one; none where the system gives no random bytes.
    pub fn new_random() -> Option<Self> {
        let mut bytes = vec![0; KEY_BYTES];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the key for hashes; none where it is too short.
    pub fn key(&self) -> Option<HashKey> {
        HashKey::of(&self.0)
    }

    fn read(secret: Secret, on: CallSubject) -> Result<Self, ClusterError> {
        let bytes = secret.data.unwrap_or_default().remove(KEY_DATA_KEY).map(|bytes| Self(bytes.0));
        bytes.filter(|bytes| bytes.key().is_some()).ok_or_else(|| {
            let reason = format!("{KEY_DATA_KEY:?} in its data is missing, or shorter than 16 bytes");
            ClusterError::new(on, ClusterFault::Garbled { reason })
        })
    }
}

impl Cluster {
    /// Reads the key; none where there is none.
    ///
    /// # Errors
    ///
    /// Fails where the server refuses it or does not answer, and where the Secret holds no key.
    pub async fn read_config_key(&self, namespace: &str) -> Result<Option<ConfigKey>, ClusterError> {
        let on = key_subject(namespace);
        let url = format!("/api/v1/namespaces/{namespace}/secrets/{CONFIG_KEY_SECRET_NAME}");
        match self.call(ApiRequest::read(url, on.clone())).await {
            Ok(answer) => ConfigKey::read(answer.decode(&on)?, on).map(Some),
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the key of release seals, which is made of that key; none where there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`Cluster::read_config_key`].
    pub(crate) async fn read_release_key(&self, namespace: &str) -> Result<Option<ReleaseKey>, ClusterError> {
        let key = self.read_config_key(namespace).await?;
        Ok(key.and_then(|key| key.key()).map(|key| ReleaseKey::of(&key)))
    }

    /// Makes the Secret with this key, and its namespace, and returns the key that is in force:
    /// another process's, where that was faster.
    ///
    /// # Errors
    ///
    /// Fails where the Secret or its namespace cannot be made, and where the one that is there
    /// holds no key.
    pub async fn make_config_key(&self, namespace: &str, key: &ConfigKey) -> Result<ConfigKey, ClusterError> {
        let on = key_subject(namespace);
        let metadata = ObjectMeta {
            name: Some(CONFIG_KEY_SECRET_NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let data = BTreeMap::from([(KEY_DATA_KEY.to_owned(), ByteString(key.0.clone()))]);
        let secret = Secret { metadata, data: Some(data), immutable: Some(true), ..Secret::default() };
        let body = json_body(&secret, &on)?;
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let url = path::with_query(collection, &[("fieldManager", FIELD_MANAGER)]);
        let make =
            || self.call(ApiRequest::write(Method::POST, url.clone(), JSON_TYPE, body.clone(), on.clone()));
        let answer = match make().await {
            Err(error) if matches!(error.fault(), ClusterFault::NoNamespace { .. }) => {
                self.make_namespace(namespace).await?;
                make().await
            }
            other => other,
        };
        match answer {
            Ok(answer) => ConfigKey::read(answer.decode(&on)?, on),
            // Somebody else was faster.
            Err(error) if *error.fault() == ClusterFault::VersionConflict => self
                .read_config_key(namespace)
                .await?
                .ok_or_else(|| ClusterError::new(on, ClusterFault::VersionConflict)),
            Err(error) => Err(error),
        }
    }
}

fn key_subject(namespace: &str) -> CallSubject {
    CallSubject::Object(ObjectId::new(&GroupKind::new("", "Secret"), Some(namespace), CONFIG_KEY_SECRET_NAME))
}
