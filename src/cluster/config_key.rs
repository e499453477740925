//! The key for hashes of data: one Secret beside the inventories, made once, by whoever needs it first.

use std::collections::BTreeMap;
use std::fmt;

use http::Method;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::call::{Ask, Cluster};
use super::error::{Error, Fault, On};
use super::write::{JSON, json};
use super::{FIELD_MANAGER, path};
use crate::engine::{KEY_SECRET, Key};
use crate::object::{GroupKind, ObjectId};

/// The key of its data.
const KEY: &str = "key";

/// Length of a key that is made, in bytes.
const LENGTH: usize = 32;

/// A key as it is stored. Its `Debug` form shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigKey(Vec<u8>);

impl fmt::Debug for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigKey(..)")
    }
}

impl ConfigKey {
    /// A new one; none where the system gives no random bytes.
    pub fn random() -> Option<Self> {
        let mut bytes = vec![0; LENGTH];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).ok()?;
        }
        Some(Self(bytes))
    }

    /// What hashes are made with; none where it is too short.
    pub fn key(&self) -> Option<Key> {
        Key::of(&self.0)
    }

    fn read(secret: Secret, on: On) -> Result<Self, Error> {
        let bytes = secret.data.unwrap_or_default().remove(KEY).map(|bytes| Self(bytes.0));
        bytes.filter(|bytes| bytes.key().is_some()).ok_or_else(|| {
            let reason = format!("{KEY:?} in its data is missing, or shorter than 16 bytes");
            Error::new(on, Fault::Garbled { reason })
        })
    }
}

impl Cluster {
    /// Reads the key; none where there is none.
    pub async fn config_key(&self, namespace: &str) -> Result<Option<ConfigKey>, Error> {
        let on = on(namespace);
        let url = format!("/api/v1/namespaces/{namespace}/secrets/{KEY_SECRET}");
        match self.ask(Ask::read(url, on.clone())).await {
            Ok(answer) => ConfigKey::read(answer.decode(&on)?, on).map(Some),
            Err(error) if *error.fault() == Fault::NoObject => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the Secret with this key, and its namespace, and returns the key that is in force: another process's,
    /// where that was faster.
    pub async fn make_config_key(&self, namespace: &str, key: &ConfigKey) -> Result<ConfigKey, Error> {
        let on = on(namespace);
        let metadata = ObjectMeta {
            name: Some(KEY_SECRET.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let data = BTreeMap::from([(KEY.to_owned(), ByteString(key.0.clone()))]);
        let secret = Secret { metadata, data: Some(data), immutable: Some(true), ..Secret::default() };
        let body = json(&secret, &on)?;
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let url = path::query(collection, &[("fieldManager", FIELD_MANAGER)]);
        let make = || self.ask(Ask::write(Method::POST, url.clone(), JSON, body.clone(), on.clone()));
        let answer = match make().await {
            Err(error) if matches!(error.fault(), Fault::NoNamespace { .. }) => {
                self.make_namespace(namespace).await?;
                make().await
            }
            other => other,
        };
        match answer {
            Ok(answer) => ConfigKey::read(answer.decode(&on)?, on),
            // Somebody else was faster.
            Err(error) if *error.fault() == Fault::Stale => {
                self.config_key(namespace).await?.ok_or_else(|| Error::new(on, Fault::Stale))
            }
            Err(error) => Err(error),
        }
    }
}

fn on(namespace: &str) -> On {
    On::Object(ObjectId::new(&GroupKind::new("", "Secret"), Some(namespace), KEY_SECRET))
}
