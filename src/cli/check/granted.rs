//! The check of granted rights: each account is asked in its own name.

use futures::{StreamExt as _, stream};

use super::super::accounts::AccountRights;
use super::super::rbac::{self, RoleSubject};
use super::super::rights::Rights;
use super::super::session::retry_when_throttled;
use super::{CONCURRENT_REVIEWS, CheckLevel, CheckReport, hidden_refusal_text, note_all_granted};
use crate::cluster::{self, AccessDecision, AccessRequest, Cluster, ServiceAccount};
use crate::config::Config;

/// An access that was asked about and not granted.
#[derive(Debug)]
pub(super) struct DeniedAccess {
    pub(super) access: AccessRequest,
    /// The purpose of the access.
    pub(super) why: &'static str,
    /// The account without it, where that is not rhumb's own.
    pub(super) account: Option<ServiceAccount>,
    verdict: AccessDecision,
}

impl DeniedAccess {
    /// Returns the server's reason.
    pub(super) fn server_reason(&self) -> &str {
        match &self.verdict {
            AccessDecision::Allowed => "",
            AccessDecision::NoOpinion(reason) | AccessDecision::Denied(reason) => reason,
        }
    }

    fn text(&self) -> String {
        let server_reason = self.server_reason();
        let server_reason =
            if server_reason.is_empty() { String::new() } else { format!(": {server_reason}") };
        let server = match &self.verdict {
            AccessDecision::Denied(_) => format!("; it is denied whatever roles grant{server_reason}"),
            _ if server_reason.is_empty() => String::new(),
            _ => format!("; the server says{server_reason}"),
        };
        let whose = self.account.as_ref().map(|account| format!(" for {account}")).unwrap_or_default();
        format!("the right to {}{whose}: {}{server}", access_words(&self.access), self.why)
    }
}

/// Asks for the rights of each account, in the name of that account.
pub(super) async fn check_permissions(
    cluster: &Cluster,
    actors: &AccountRights,
    config: &Config,
    report: &mut CheckReport,
) {
    // An old server does not say who asks.
    let user = cluster.user().await.ok();
    let (before, mut count) = (report.denied.len(), actors.own.access_reviews().len());
    let own = CheckedAccount { cluster: cluster.clone(), rights: &actors.own, name: rbac::role_name(config) };
    let mut all_answered = own.check_rights(user.as_deref().map(RoleSubject::of), report).await;
    for (account, rights) in actors.service_accounts(&config.namespace) {
        let (name, bound) = (rbac::account_role(config, &account), RoleSubject::for_account(&account));
        let acting = CheckedAccount { cluster: cluster.with_account(Some(account)), rights, name };
        count += rights.access_reviews().len();
        all_answered &= acting.check_rights(Some(bound), report).await;
    }
    if all_answered && report.denied.len() == before {
        note_all_granted(count, config, report);
    }
}

/// An account whose rights are asked about.
struct CheckedAccount<'a> {
    cluster: Cluster,
    rights: &'a Rights,
    /// The name of its roles.
    name: String,
}

impl CheckedAccount<'_> {
    /// Reports what is not granted; returns whether the server has answered about all.
    async fn check_rights(&self, bound: Option<RoleSubject>, report: &mut CheckReport) -> bool {
        let reviews = self.rights.access_reviews();
        let count = reviews.len();
        let cluster = &self.cluster;
        let ask = |(access, why): (AccessRequest, &'static str)| async move {
            let verdict = retry_when_throttled(|| cluster.review_access(&access)).await?;
            Ok(DeniedAccess { access, why, account: cluster.account().cloned(), verdict })
        };
        let answers: Vec<Result<DeniedAccess, cluster::ClusterError>> =
            stream::iter(reviews).map(ask).buffered(CONCURRENT_REVIEWS).collect().await;
        let (mut answered, mut unanswered) = (Vec::new(), Vec::new());
        for answer in answers {
            match answer {
                Ok(answer) => answered.push(answer),
                Err(error) => unanswered.push(error),
            }
        }
        let denied: Vec<DeniedAccess> =
            answered.into_iter().filter(|answer| answer.verdict != AccessDecision::Allowed).collect();
        if let Some(error) = unanswered.first() {
            let (unknown, why) = (unanswered.len(), hidden_refusal_text(error, "system:basic-user"));
            let text =
                format!("of {unknown} of {count} rights it is not known whether they are granted: {why}");
            report.add(CheckLevel::Missing, text);
        }
        for denied in &denied {
            report.add(CheckLevel::Missing, denied.text());
        }
        let open = denied.iter().filter(|denied| matches!(denied.verdict, AccessDecision::NoOpinion(_)));
        let lacking = self.rights.denied_rights(&open.map(|denied| denied.access.clone()).collect());
        report.roles += &rbac::role_documents(&lacking, &rbac::missing_name(&self.name), bound.as_ref());
        report.denied.extend(denied);
        unanswered.is_empty()
    }
}

/// Returns a right in words, as `list secrets in the whole cluster`.
fn access_words(access: &AccessRequest) -> String {
    match access {
        AccessRequest::Path { verb, path } => format!("{verb} {path}"),
        AccessRequest::Objects { verb, group, resource, namespace, name } => {
            let group = if group.is_empty() { String::new() } else { format!(".{group}") };
            let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let scope_text = namespace
                .as_ref()
                .map_or("in the whole cluster".to_owned(), |name| format!("in namespace {name}"));
            format!("{verb} {resource}{group}{name} {scope_text}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_reported_in_words() {
        let access = AccessRequest::Objects {
            verb: "create".to_owned(),
            group: "apps".to_owned(),
            resource: "deployments".to_owned(),
            namespace: Some("shop".to_owned()),
            name: None,
        };
        assert_eq!(access_words(&access), "create deployments.apps in namespace shop");
        let access = AccessRequest::Path { verb: "get".to_owned(), path: "/healthz".to_owned() };
        assert_eq!(access_words(&access), "get /healthz");
    }
}
