//! What a user sent to the API server, as the server's own audit log has it.

use std::collections::BTreeSet;

use controlplane::{AuditEvent, Cluster};

/// All that one user sent since a mark.
pub(crate) struct Window<'a> {
    cluster: &'a Cluster,
    user: String,
    from: usize,
}

impl<'a> Window<'a> {
    /// Begins now.
    pub(crate) fn new(cluster: &'a Cluster, user: &str) -> Self {
        Self { cluster, user: user.to_owned(), from: cluster.audit().unwrap().len() }
    }

    /// Every call.
    pub(crate) fn calls(&self) -> Vec<AuditEvent> {
        let events = self.cluster.audit().unwrap().into_iter().skip(self.from);
        events.filter(|event| event.user == self.user).collect()
    }

    /// Every POST, PUT, PATCH and DELETE but dry runs, access reviews, Leases and Events, and but the source's own
    /// inventory with its namespace.
    pub(crate) fn writes(&self) -> Vec<AuditEvent> {
        let parent = |event: &AuditEvent| {
            event.namespace.ends_with("-rhumb") && event.resource == "configmaps"
                || event.resource == "namespaces" && event.name.ends_with("-rhumb")
        };
        self.all_writes().into_iter().filter(|event| !parent(event)).collect()
    }

    /// As [`Window::writes`], the inventory's too: nothing at all was sent if there are none.
    pub(crate) fn all_writes(&self) -> Vec<AuditEvent> {
        self.calls().into_iter().filter(is_counted).collect()
    }

    /// Writes to one object.
    pub(crate) fn to(&self, resource: &str, name: &str) -> Vec<AuditEvent> {
        self.writes().into_iter().filter(|event| event.resource == resource && event.name == name).collect()
    }

    /// Deletions of anything.
    pub(crate) fn deletes(&self) -> Vec<AuditEvent> {
        self.all_writes().into_iter().filter(|event| event.verb.starts_with("delete")).collect()
    }

    /// Fails if anything was deleted.
    #[track_caller]
    pub(crate) fn assert_no_deletes(&self) {
        let deletes = self.deletes();
        assert!(deletes.is_empty(), "deleted: {:#?}", lines(&deletes));
    }

    /// Fails if anything at all was sent, but for what is told of an earlier change: where each source stands is
    /// written into its inventory some seconds later.
    #[track_caller]
    pub(crate) fn assert_silent(&self) {
        let mut told = BTreeSet::new();
        let mut sent = self.all_writes();
        sent.retain(|event| {
            !(event.verb == "patch" && is_inventory(event) && told.insert(event.name.clone()))
        });
        assert!(sent.is_empty(), "sent: {:#?}", lines(&sent));
    }
}

fn is_inventory(event: &AuditEvent) -> bool {
    let all = event.namespace.ends_with("-rhumb") && event.resource == "configmaps";
    all && event.name != "rollout-budget.rhumb.dev"
}

fn is_counted(event: &AuditEvent) -> bool {
    let free =
        matches!(event.group.as_str(), "authorization.k8s.io" | "coordination.k8s.io" | "events.k8s.io")
            || event.group.is_empty() && event.resource == "events";
    event.is_write() && !free
}

/// Events as short lines, for people.
pub(crate) fn lines(events: &[AuditEvent]) -> Vec<String> {
    let line = |event: &AuditEvent| {
        format!(
            "{} {} {} {}/{} {} {}",
            event.timestamp,
            event.verb,
            event.resource,
            event.namespace,
            event.name,
            event.code,
            event.message
        )
    };
    events.iter().map(line).collect()
}
