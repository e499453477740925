//! Questions about the user's own rights.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{ApiRequest, Cluster};
use super::error::{CallSubject, ClusterError};
use super::write::{JSON_TYPE, json_body as bytes};

const ACCESS_REVIEWS_PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const SUBJECT_REVIEWS_PATH: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Something that somebody may do, or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessRequest {
    /// With objects.
    Objects {
        /// As `patch`.
        verb: String,
        /// API group; empty for the core group.
        group: String,
        /// The name in URLs, for example `deployments` or `pods/eviction`.
        resource: String,
        /// The namespace; none for all, and for cluster-scoped objects.
        namespace: Option<String>,
        /// One object; none for all.
        name: Option<String>,
    },
    /// With a path of the server.
    Path {
        /// As `get`.
        verb: String,
        /// As `/healthz`.
        path: String,
    },
}

/// The server's decision about an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// It is granted.
    Allowed,
    /// Nobody grants it; with what the server says beside, which is mostly nothing.
    NoOpinion(String),
    /// Somebody denies it, and no role changes that; with what the server says.
    Denied(String),
}

#[derive(Deserialize)]
struct AccessReview {
    status: AccessReviewStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessReviewStatus {
    allowed: bool,
    #[serde(default)]
    denied: bool,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    evaluation_error: String,
}

impl From<AccessReviewStatus> for AccessDecision {
    fn from(reviewed: AccessReviewStatus) -> Self {
        let AccessReviewStatus { allowed, denied, reason, evaluation_error } = reviewed;
        let message = if reason.contains(&evaluation_error) {
            reason
        } else if evaluation_error.contains(&reason) {
            evaluation_error
        } else {
            format!("{reason}; {evaluation_error}")
        };
        match (allowed, denied) {
            (true, _) => Self::Allowed,
            (false, true) => Self::Denied(message),
            (false, false) => Self::NoOpinion(message),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelfSubjectReview {
    status: SelfSubjectReviewStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelfSubjectReviewStatus {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

impl AccessRequest {
    fn review_spec(&self) -> Value {
        match self {
            Self::Path { verb, path } => json!({"nonResourceAttributes": {"verb": verb, "path": path}}),
            Self::Objects { verb, group, resource, namespace, name } => {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                json!({"resourceAttributes": {
                    "verb": verb,
                    "group": group,
                    "version": "*",
                    "resource": resource,
                    "subresource": subresource,
                    "namespace": namespace.as_deref().unwrap_or_default(),
                    "name": name.as_deref().unwrap_or_default(),
                }})
            }
        }
    }
}

impl Cluster {
    /// Asks the server whether the user may do this. It writes nothing.
    pub(crate) async fn review_access(&self, access: &AccessRequest) -> Result<AccessDecision, ClusterError> {
        let on = CallSubject::Server("what the user may do");
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": access.review_spec(),
        });
        let ask = ApiRequest::write(
            Method::POST,
            ACCESS_REVIEWS_PATH.to_owned(),
            JSON_TYPE,
            bytes(&review, &on)?,
            on.clone(),
        );
        Ok(self.call(ask).await?.decode::<AccessReview>(&on)?.status.into())
    }

    /// Returns the name that the server knows the user by.
    pub(crate) async fn user(&self) -> Result<String, ClusterError> {
        let on = CallSubject::Server("who the user is");
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let ask = ApiRequest::write(
            Method::POST,
            SUBJECT_REVIEWS_PATH.to_owned(),
            JSON_TYPE,
            bytes(&review, &on)?,
            on.clone(),
        );
        Ok(self.call(ask).await?.decode::<SelfSubjectReview>(&on)?.status.user_info.username)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_keeps_the_words_of_the_server() {
        fn check(status: Value, expected: AccessDecision) {
            let reviewed: AccessReviewStatus = serde_json::from_value(status).unwrap();
            assert_eq!(AccessDecision::from(reviewed), expected);
        }
        check(json!({ "allowed": true, "reason": "RBAC: allowed by a" }), AccessDecision::Allowed);
        check(json!({ "allowed": false }), AccessDecision::NoOpinion(String::new()));
        let lost = "role \"a\" not found";
        check(json!({ "allowed": false, "reason": format!("RBAC: {lost}"), "evaluationError": lost }), {
            AccessDecision::NoOpinion(format!("RBAC: {lost}"))
        });
        check(
            json!({ "allowed": false, "denied": true, "reason": "frozen" }),
            AccessDecision::Denied("frozen".to_owned()),
        );
        let both = json!({ "allowed": false, "reason": "no", "evaluationError": "webhook: timeout" });
        check(both, AccessDecision::NoOpinion("no; webhook: timeout".to_owned()));
    }
}
