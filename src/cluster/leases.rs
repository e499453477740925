//! Leases (`coordination.k8s.io/v1`) as client-go's leader election knows them.
//!
//! Each write is a compare-and-swap. They go ahead of all other calls: what is renewed late is
//! lost.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError, ClusterFault};
use super::inventory::MERGE_PATCH;
use super::write::{self, JSON_TYPE};
use super::{FIELD_MANAGER, path};
use crate::engine::Uid;
use crate::object::{GroupKind, ObjectId, truncate};

/// The longest Lease that is respected.
const MAX_LEASE_DURATION: Duration = Duration::from_hours(1);

/// The most bytes of a holder's name: that of a replica is shorter, as the name of a Lease ends
/// with it. Anybody who may write a Lease may write any other.
const MAX_HOLDER_BYTES: usize = 256;

/// The most changes of the holder that a Lease can count: the API has 32 bits for them, and refuses
/// a larger number.
const MAX_TRANSITIONS: i64 = i32::MAX as i64;

/// The time limit of a call about Leases.
const LEASE_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    /// Its name.
    pub name: String,
    /// The holder; none where it was released.
    pub holder: Option<Arc<str>>,
    /// The time of the last renewal, by the clock of its holder.
    pub renewed: Arc<str>,
    /// The duration without another renewal.
    pub duration: Duration,
    uid: Uid,
    version: String,
    transitions: i64,
}

/// The kind of write to a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseWrite<'a> {
    /// This holder has it, for this duration.
    Renew(&'a str, Duration),
    /// Nobody has it.
    Release,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LeaseText {
    metadata: LeaseMetadata,
    spec: LeaseSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LeaseMetadata {
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
}

#[derive(Deserialize)]
struct LeaseList {
    items: Vec<LeaseText>,
}

impl From<LeaseText> for LeaseRecord {
    fn from(text: LeaseText) -> Self {
        let holder = text.spec.holder_identity.filter(|holder| !holder.is_empty());
        Self {
            name: text.metadata.name,
            holder: holder.map(|holder| truncate(&holder, MAX_HOLDER_BYTES).into()),
            renewed: text.spec.renew_time.unwrap_or_default().into(),
            duration: Duration::from_secs(text.spec.lease_duration_seconds.unwrap_or_default())
                .min(MAX_LEASE_DURATION),
            uid: Uid(text.metadata.uid.into()),
            version: text.metadata.resource_version,
            transitions: text.spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// Returns a moment in the form of a `MicroTime`.
fn micro_time() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Returns the spec that a write sets.
fn lease_spec(before: Option<&LeaseRecord>, tenure: LeaseWrite<'_>) -> Value {
    let now = micro_time();
    let holder = before.and_then(|record| record.holder.as_deref());
    let transitions = before.map_or(0, |record| record.transitions);
    match tenure {
        LeaseWrite::Renew(own, duration) if holder == Some(own) => {
            json!({ "leaseDurationSeconds": duration.as_secs(), "renewTime": now })
        }
        LeaseWrite::Renew(own, duration) => json!({
            "holderIdentity": own,
            "leaseDurationSeconds": duration.as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": before.map_or(0, |_| transitions.saturating_add(1).clamp(0, MAX_TRANSITIONS)),
        }),
        LeaseWrite::Release => json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now }),
    }
}

impl Cluster {
    /// Returns all Leases of a namespace.
    pub(crate) async fn list_leases(&self, namespace: &str) -> Result<Vec<LeaseRecord>, ClusterError> {
        let on = CallSubject::Kind(GroupKind::new("coordination.k8s.io", "Lease"));
        let answer = self
            .call(ApiRequest::read(leases_path(namespace), on.clone()).with_priority(LEASE_CALL_TIMEOUT))
            .await?;
        let list: LeaseList = answer.decode(&on)?;
        Ok(list.items.into_iter().map(Into::into).collect())
    }

    /// Writes a Lease as it was read; makes it, and its namespace, where there was none.
    ///
    /// Fails with [`ClusterFault::VersionConflict`] where somebody else was faster.
    pub(crate) async fn save_lease(
        &self,
        namespace: &str,
        name: &str,
        before: Option<&LeaseRecord>,
        tenure: LeaseWrite<'_>,
    ) -> Result<LeaseRecord, ClusterError> {
        let on = lease_subject(namespace, name);
        let spec = lease_spec(before, tenure);
        let answer = if let Some(before) = before {
            let metadata = json!({ "uid": before.uid.0, "resourceVersion": before.version });
            let body = write::json_body(&json!({ "metadata": metadata, "spec": spec }), &on)?;
            let url = path::with_query(
                format!("{}/{name}", leases_path(namespace)),
                &[("fieldManager", FIELD_MANAGER)],
            );
            let ask = ApiRequest::write(Method::PATCH, url, MERGE_PATCH, body, on.clone())
                .with_priority(LEASE_CALL_TIMEOUT);
            match self.call(ask).await {
                Err(error) if *error.fault() == ClusterFault::NoObject => {
                    return Err(ClusterError::new(on, ClusterFault::VersionConflict));
                }
                answer => answer?,
            }
        } else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": name, "namespace": namespace },
                "spec": spec,
            });
            let body = write::json_body(&lease, &on)?;
            let url = path::with_query(leases_path(namespace), &[("fieldManager", FIELD_MANAGER)]);
            let make = || {
                let ask = ApiRequest::write(Method::POST, url.clone(), JSON_TYPE, body.clone(), on.clone());
                self.call(ask.with_priority(LEASE_CALL_TIMEOUT))
            };
            match make().await {
                Err(error) if matches!(error.fault(), ClusterFault::NoNamespace { .. }) => {
                    self.make_namespace(namespace).await?;
                    make().await?
                }
                answer => answer?,
            }
        };
        let text: LeaseText = answer.decode(&on)?;
        Ok(text.into())
    }

    /// Removes a Lease in the version that was read.
    pub(crate) async fn delete_lease(
        &self,
        namespace: &str,
        lease: &LeaseRecord,
    ) -> Result<(), ClusterError> {
        let on = lease_subject(namespace, &lease.name);
        let options = json!({
            "preconditions": { "uid": lease.uid.0, "resourceVersion": lease.version },
        });
        let body = write::json_body(&options, &on)?;
        let url = format!("{}/{}", leases_path(namespace), lease.name);
        match self
            .call(
                ApiRequest::write(Method::DELETE, url, JSON_TYPE, body, on).with_priority(LEASE_CALL_TIMEOUT),
            )
            .await
        {
            Err(error) if *error.fault() == ClusterFault::NoObject => Ok(()),
            answer => answer.map(drop),
        }
    }
}

fn leases_path(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

fn lease_subject(namespace: &str, name: &str) -> CallSubject {
    CallSubject::Object(ObjectId::new(&GroupKind::new("coordination.k8s.io", "Lease"), Some(namespace), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str) -> LeaseRecord {
        counted_record(holder, 3)
    }

    fn counted_record(holder: &str, transitions: i64) -> LeaseRecord {
        LeaseRecord::from(LeaseText {
            metadata: LeaseMetadata::default(),
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(10),
                renew_time: Some("2030-01-01T00:00:00.000000Z".to_owned()),
                lease_transitions: Some(transitions),
            },
        })
    }

    #[test]
    fn a_lease_is_written_as_client_go_writes_it() {
        let renewal = LeaseWrite::Renew("me", Duration::from_secs(10));
        let check = |before: Option<&LeaseRecord>, tenure, expected: &[&str], transitions: Option<i64>| {
            let written = lease_spec(before, tenure);
            let keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, expected);
            assert_eq!(written.get("leaseTransitions").and_then(Value::as_i64), transitions);
        };
        let all = ["acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"];
        check(None, renewal, &all, Some(0));
        check(Some(&record("other")), renewal, &all, Some(4));
        check(Some(&record("")), renewal, &all, Some(4));
        // Anybody who may write a Lease may have written any number.
        for most in [i64::from(i32::MAX) - 1, i64::from(i32::MAX), i64::MAX] {
            check(Some(&counted_record("other", most)), renewal, &all, Some(i64::from(i32::MAX)));
        }
        check(Some(&counted_record("other", i64::MIN)), renewal, &all, Some(0));
        check(Some(&record("me")), renewal, &["leaseDurationSeconds", "renewTime"], None);
        check(
            Some(&record("me")),
            LeaseWrite::Release,
            &["holderIdentity", "leaseDurationSeconds", "renewTime"],
            None,
        );
    }

    #[test]
    fn a_lease_is_read_whatever_it_says() {
        let check = |text: &str, holder: Option<&str>, seconds| {
            let record = LeaseRecord::from(serde_json::from_str::<LeaseText>(text).unwrap());
            assert_eq!((record.holder.as_deref(), record.duration.as_secs()), (holder, seconds));
        };
        check("{}", None, 0);
        check(r#"{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}"#, None, 1);
        check(
            r#"{"spec":{"holderIdentity":"a","leaseDurationSeconds":18446744073709551615}}"#,
            Some("a"),
            3600,
        );
        let long = format!(r#"{{"spec":{{"holderIdentity":"a{}"}}}}"#, "\u{e9}".repeat(MAX_HOLDER_BYTES));
        check(&long, Some(&format!("a{}", "\u{e9}".repeat(127))), 0);
        check(r#"{"spec":{"holderIdentity":null,"renewTime":null,"strategy":"x"}}"#, None, 0);
    }

    #[test]
    fn a_moment_has_six_digits_behind_its_seconds() {
        let text = micro_time();
        let parts = text.strip_suffix('Z').and_then(|text| text.split_once('.')).unwrap();
        assert_eq!((parts.0.len(), parts.1.len()), (19, 6), "{text}");
    }
}
