//! Questions about the user's own rights.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Ask, Cluster};
use super::error::{Error, On};
use super::write::{JSON, json as bytes};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Something that somebody may do, or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// With objects.
    Objects {
        /// As `patch`.
        verb: String,
        /// API group; empty for the core group.
        group: String,
        /// The name in URLs, as `deployments` or `pods/eviction`.
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

/// What the server says about an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is granted.
    Granted,
    /// Nobody grants it; with what the server says beside, which is mostly nothing.
    Ungranted(String),
    /// Somebody denies it, and no role changes that; with what the server says.
    Denied(String),
}

#[derive(Deserialize)]
struct Review {
    status: Reviewed,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reviewed {
    allowed: bool,
    #[serde(default)]
    denied: bool,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    evaluation_error: String,
}

impl From<Reviewed> for Verdict {
    fn from(reviewed: Reviewed) -> Self {
        let Reviewed { allowed, denied, reason, evaluation_error } = reviewed;
        let said = if reason.contains(&evaluation_error) {
            reason
        } else if evaluation_error.contains(&reason) {
            evaluation_error
        } else {
            format!("{reason}; {evaluation_error}")
        };
        match (allowed, denied) {
            (true, _) => Self::Granted,
            (false, true) => Self::Denied(said),
            (false, false) => Self::Ungranted(said),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Who {
    status: WhoStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WhoStatus {
    user_info: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

impl Access {
    fn spec(&self) -> Value {
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
    pub async fn may(&self, access: &Access) -> Result<Verdict, Error> {
        let on = On::Server("what the user may do");
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": access.spec(),
        });
        let ask = Ask::write(Method::POST, REVIEWS.to_owned(), JSON, bytes(&review, &on)?, on.clone());
        Ok(self.ask(ask).await?.decode::<Review>(&on)?.status.into())
    }

    /// The name that the server knows the user by.
    pub async fn user(&self) -> Result<String, Error> {
        let on = On::Server("who the user is");
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let ask = Ask::write(Method::POST, WHO.to_owned(), JSON, bytes(&review, &on)?, on.clone());
        Ok(self.ask(ask).await?.decode::<Who>(&on)?.status.user_info.username)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_keeps_the_words_of_the_server() {
        fn check(status: Value, expected: Verdict) {
            let reviewed: Reviewed = serde_json::from_value(status).unwrap();
            assert_eq!(Verdict::from(reviewed), expected);
        }
        check(json!({ "allowed": true, "reason": "RBAC: allowed by a" }), Verdict::Granted);
        check(json!({ "allowed": false }), Verdict::Ungranted(String::new()));
        let lost = "role \"a\" not found";
        check(json!({ "allowed": false, "reason": format!("RBAC: {lost}"), "evaluationError": lost }), {
            Verdict::Ungranted(format!("RBAC: {lost}"))
        });
        check(
            json!({ "allowed": false, "denied": true, "reason": "frozen" }),
            Verdict::Denied("frozen".to_owned()),
        );
        let both = json!({ "allowed": false, "reason": "no", "evaluationError": "webhook: timeout" });
        check(both, Verdict::Ungranted("no; webhook: timeout".to_owned()));
    }
}
