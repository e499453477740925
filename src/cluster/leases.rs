//! Leases (`coordination.k8s.io/v1`) as client-go's leader election knows them.
//!
//! Each write is a compare-and-swap. They go ahead of all other calls: what is renewed late is lost.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Ask, Cluster};
use super::error::{Error, Fault, On};
use super::parent::MERGE_PATCH;
use super::write::{self, JSON};
use super::{FIELD_MANAGER, path};
use crate::engine::Uid;
use crate::object::{GroupKind, ObjectId};

/// Whoever asks for longer is taken to ask for this.
const LONGEST: Duration = Duration::from_hours(1);

/// How long the answer to a call about Leases may take.
const WITHIN: Duration = Duration::from_secs(2);

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Its name.
    pub name: String,
    /// Who holds it; none where it was let go.
    pub holder: Option<Arc<str>>,
    /// When it was renewed last, by the clock of its holder.
    pub renewed: Arc<str>,
    /// How long it lasts without another renewal.
    pub lasts: Duration,
    uid: Uid,
    version: String,
    transitions: i64,
}

/// What is written to a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure<'a> {
    /// This one holds it, for so long.
    Held(&'a str, Duration),
    /// Nobody does.
    Open,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Text {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Text>,
}

impl From<Text> for LeaseRecord {
    fn from(text: Text) -> Self {
        Self {
            name: text.metadata.name,
            holder: text.spec.holder_identity.filter(|holder| !holder.is_empty()).map(Into::into),
            renewed: text.spec.renew_time.unwrap_or_default().into(),
            lasts: Duration::from_secs(text.spec.lease_duration_seconds.unwrap_or_default()).min(LONGEST),
            uid: Uid(text.metadata.uid.into()),
            version: text.metadata.resource_version,
            transitions: text.spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// A moment in the form of a `MicroTime`.
fn micro_time() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// What a write says of the Lease.
fn spec(before: Option<&LeaseRecord>, tenure: Tenure<'_>) -> Value {
    let now = micro_time();
    let holder = before.and_then(|record| record.holder.as_deref());
    let transitions = before.map_or(0, |record| record.transitions);
    match tenure {
        Tenure::Held(own, lasts) if holder == Some(own) => {
            json!({ "leaseDurationSeconds": lasts.as_secs(), "renewTime": now })
        }
        Tenure::Held(own, lasts) => json!({
            "holderIdentity": own,
            "leaseDurationSeconds": lasts.as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": before.map_or(0, |_| transitions + 1),
        }),
        Tenure::Open => json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now }),
    }
}

impl Cluster {
    /// All Leases of a namespace.
    pub async fn leases(&self, namespace: &str) -> Result<Vec<LeaseRecord>, Error> {
        let on = On::Kind(GroupKind::new("coordination.k8s.io", "Lease"));
        let answer = self.ask(Ask::read(collection(namespace), on.clone()).ahead(WITHIN)).await?;
        let list: List = answer.decode(&on)?;
        Ok(list.items.into_iter().map(Into::into).collect())
    }

    /// Writes a Lease as it was read; makes it, and its namespace, where there was none.
    ///
    /// Fails with [`Fault::Stale`] where somebody else was faster.
    pub async fn save_lease(
        &self,
        namespace: &str,
        name: &str,
        before: Option<&LeaseRecord>,
        tenure: Tenure<'_>,
    ) -> Result<LeaseRecord, Error> {
        let on = on(namespace, name);
        let spec = spec(before, tenure);
        let answer = if let Some(before) = before {
            let metadata = json!({ "uid": before.uid.0, "resourceVersion": before.version });
            let body = write::json(&json!({ "metadata": metadata, "spec": spec }), &on)?;
            let url =
                path::query(format!("{}/{name}", collection(namespace)), &[("fieldManager", FIELD_MANAGER)]);
            let ask = Ask::write(Method::PATCH, url, MERGE_PATCH, body, on.clone()).ahead(WITHIN);
            match self.ask(ask).await {
                Err(error) if *error.fault() == Fault::NoObject => return Err(Error::new(on, Fault::Stale)),
                answer => answer?,
            }
        } else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": name, "namespace": namespace },
                "spec": spec,
            });
            let body = write::json(&lease, &on)?;
            let url = path::query(collection(namespace), &[("fieldManager", FIELD_MANAGER)]);
            let make = || {
                let ask = Ask::write(Method::POST, url.clone(), JSON, body.clone(), on.clone());
                self.ask(ask.ahead(WITHIN))
            };
            match make().await {
                Err(error) if matches!(error.fault(), Fault::NoNamespace { .. }) => {
                    self.make_namespace(namespace).await?;
                    make().await?
                }
                answer => answer?,
            }
        };
        let text: Text = answer.decode(&on)?;
        Ok(text.into())
    }

    /// Removes a Lease in the version that was read.
    pub async fn delete_lease(&self, namespace: &str, lease: &LeaseRecord) -> Result<(), Error> {
        let on = on(namespace, &lease.name);
        let options = json!({
            "preconditions": { "uid": lease.uid.0, "resourceVersion": lease.version },
        });
        let body = write::json(&options, &on)?;
        let url = format!("{}/{}", collection(namespace), lease.name);
        match self.ask(Ask::write(Method::DELETE, url, JSON, body, on).ahead(WITHIN)).await {
            Err(error) if *error.fault() == Fault::NoObject => Ok(()),
            answer => answer.map(drop),
        }
    }
}

fn collection(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

fn on(namespace: &str, name: &str) -> On {
    On::Object(ObjectId::new(&GroupKind::new("coordination.k8s.io", "Lease"), Some(namespace), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str) -> LeaseRecord {
        LeaseRecord::from(Text {
            metadata: Metadata::default(),
            spec: Spec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(10),
                renew_time: Some("2030-01-01T00:00:00.000000Z".to_owned()),
                lease_transitions: Some(3),
            },
        })
    }

    #[test]
    fn a_lease_is_written_as_client_go_writes_it() {
        let held = Tenure::Held("me", Duration::from_secs(10));
        let check = |before: Option<&LeaseRecord>, tenure, expected: &[&str], transitions: Option<i64>| {
            let written = spec(before, tenure);
            let keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, expected);
            assert_eq!(written.get("leaseTransitions").and_then(Value::as_i64), transitions);
        };
        let all = ["acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"];
        check(None, held, &all, Some(0));
        check(Some(&record("other")), held, &all, Some(4));
        check(Some(&record("")), held, &all, Some(4));
        check(Some(&record("me")), held, &["leaseDurationSeconds", "renewTime"], None);
        check(
            Some(&record("me")),
            Tenure::Open,
            &["holderIdentity", "leaseDurationSeconds", "renewTime"],
            None,
        );
    }

    #[test]
    fn a_lease_is_read_whatever_it_says() {
        let check = |text: &str, holder: Option<&str>, seconds| {
            let record = LeaseRecord::from(serde_json::from_str::<Text>(text).unwrap());
            assert_eq!((record.holder.as_deref(), record.lasts.as_secs()), (holder, seconds));
        };
        check("{}", None, 0);
        check(r#"{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}"#, None, 1);
        check(
            r#"{"spec":{"holderIdentity":"a","leaseDurationSeconds":18446744073709551615}}"#,
            Some("a"),
            3600,
        );
        check(r#"{"spec":{"holderIdentity":null,"renewTime":null,"strategy":"x"}}"#, None, 0);
    }

    #[test]
    fn a_moment_has_six_digits_behind_its_seconds() {
        let text = micro_time();
        let parts = text.strip_suffix('Z').and_then(|text| text.split_once('.')).unwrap();
        assert_eq!((parts.0.len(), parts.1.len()), (19, 6), "{text}");
    }
}
