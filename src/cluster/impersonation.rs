//! Acting as another account: the server is asked to judge a call by the rights of a service
//! account
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation>).

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::error::{AccessDenial, CallSubject, ClusterError, ClusterFault};

/// Left alone, the server adds the groups that a token of the account would have.
const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// A service account, as whom rhumb acts for a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ServiceAccount {
    /// Returns the service account of a namespace with this name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// The name that the server knows it by, for example `system:serviceaccount:rhumb-system:shop`.
impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// The user as whom the kubeconfig itself acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Impersonation {
    /// Its own user.
    None,
    /// The user of its `as`: those headers would take the place of ours.
    Other,
}

/// Puts the account into a request.
pub(super) fn set_impersonation(
    account: &ServiceAccount,
    guise: Impersonation,
    headers: &mut HeaderMap,
    on: &CallSubject,
) -> Result<(), ClusterError> {
    if guise == Impersonation::Other {
        let reason = format!(
            "the kubeconfig's user acts as somebody else already (`as`), so nothing can be done as {account}: take `as` \
             out of it, or `serviceAccountName` out of the source"
        );
        return Err(ClusterError::new(on.clone(), ClusterFault::Config { reason }));
    }
    let value = HeaderValue::try_from(account.to_string()).map_err(|_| {
        ClusterError::new(
            on.clone(),
            ClusterFault::Config { reason: format!("{account:?} is no service account") },
        )
    })?;
    headers.insert(IMPERSONATE_USER, value);
    Ok(())
}

/// Says who it is that lacks a right: rhumb's own account, which may not act as the other one, or
/// that one itself.
pub(super) fn with_account_name(account: &ServiceAccount, error: ClusterError) -> ClusterError {
    let ClusterFault::Denied { by: by @ (AccessDenial::Rbac | AccessDenial::Impersonation), message } =
        error.fault()
    else {
        return error;
    };
    let ServiceAccount { namespace, name } = account;
    let message = match by {
        AccessDenial::Impersonation => format!(
            "rhumb's own account may not act as {account}: grant it `impersonate` on serviceaccounts/{name} in namespace \
             {namespace} (`rhumb rbac` prints the rule); the server says: {message}"
        ),
        _ if message.contains(&account.to_string()) => return error,
        _ => format!("as {account}: {message}"),
    };
    ClusterError::new(error.subject().clone(), ClusterFault::Denied { by: *by, message })
}

#[cfg(test)]
mod tests {
    use super::super::classify;
    use super::*;
    use crate::object::{GroupKind, ObjectId};

    #[test]
    fn a_refusal_says_who_lacks_the_right() {
        #[track_caller]
        fn check(kind: &str, said: &str, by: AccessDenial, expected: &[&str]) {
            let on = CallSubject::Object(ObjectId::new(&GroupKind::new("", kind), Some("shop"), "a"));
            let body = serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": said,
            });
            let error = classify::classify_answer(403, None, body.to_string().as_bytes(), on);
            let error = with_account_name(&ServiceAccount::new("rhumb-system", "shop"), error);
            assert!(
                matches!(error.fault(), ClusterFault::Denied { by: found, .. } if *found == by),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        }
        let refused = "serviceaccounts \"shop\" is forbidden: User \"rhumb\" cannot impersonate resource \
                       \"serviceaccounts\" in API group \"\" in the namespace \"rhumb-system\"";
        let lacks = "configmaps \"a\" is forbidden: User \"system:serviceaccount:rhumb-system:shop\" cannot patch \
                     resource \"configmaps\" in API group \"\" in the namespace \"shop\"";
        let own =
            ["rhumb's own account may not act as system:serviceaccount:rhumb-system:shop", "`impersonate`"];
        check("ConfigMap", refused, AccessDenial::Impersonation, &own);
        check("Secret", refused, AccessDenial::Impersonation, &own);
        check("ConfigMap", lacks, AccessDenial::Rbac, &[lacks]);
        check(
            "Secret",
            lacks,
            AccessDenial::Rbac,
            &["as system:serviceaccount:rhumb-system:shop: the user may not"],
        );
    }

    #[test]
    fn an_account_takes_the_place_of_no_other() {
        let account = ServiceAccount::new("rhumb-system", "shop");
        let on = CallSubject::Server("a test");
        let mut headers = HeaderMap::new();
        set_impersonation(&account, Impersonation::None, &mut headers, &on).unwrap();
        assert_eq!(headers["impersonate-user"], "system:serviceaccount:rhumb-system:shop");
        let mut headers = HeaderMap::new();
        let refused = set_impersonation(&account, Impersonation::Other, &mut headers, &on).unwrap_err();
        assert!(refused.to_string().contains("take `as` out"), "{refused}");
        assert!(headers.is_empty());
    }
}
