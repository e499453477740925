//! The calls of a user to the API server, by the server's own audit log.

use std::collections::{BTreeMap, BTreeSet};

use controlplane::{AuditEvent, Cluster};

/// All that one user sent since a mark.
pub(crate) struct AuditWindow<'a> {
    cluster: &'a Cluster,
    user: String,
    from: usize,
}

impl<'a> AuditWindow<'a> {
    /// Begins now.
    pub(crate) fn new(cluster: &'a Cluster, user: &str) -> Self {
        Self { cluster, user: user.to_owned(), from: cluster.audit().unwrap().len() }
    }

    /// Returns every call.
    pub(crate) fn calls(&self) -> Vec<AuditEvent> {
        let events = self.cluster.audit().unwrap().into_iter().skip(self.from);
        events.filter(|event| event.user == self.user).collect()
    }

    /// Returns every POST, PUT, PATCH and DELETE, without dry runs, access reviews, Leases and
    /// Events. The source's own inventory and the key with their namespace are left out.
    pub(crate) fn writes(&self) -> Vec<AuditEvent> {
        let inventory = |event: &AuditEvent| {
            let own = ["configmaps", "secrets"].contains(&event.resource.as_str());
            event.namespace.ends_with("-rhumb") && own
                || event.resource == "namespaces" && event.name.ends_with("-rhumb")
        };
        self.all_writes().into_iter().filter(|event| !inventory(event)).collect()
    }

    /// Does as [`AuditWindow::writes`], with the inventory's too: nothing at all was sent if there
    /// are none.
    pub(crate) fn all_writes(&self) -> Vec<AuditEvent> {
        self.calls().into_iter().filter(is_counted).collect()
    }

    /// Returns the writes to one object.
    pub(crate) fn to(&self, resource: &str, name: &str) -> Vec<AuditEvent> {
        self.writes().into_iter().filter(|event| event.resource == resource && event.name == name).collect()
    }

    /// Returns the deletions of anything.
    pub(crate) fn deletes(&self) -> Vec<AuditEvent> {
        self.all_writes().into_iter().filter(|event| event.verb.starts_with("delete")).collect()
    }

    /// Fails if anything was deleted.
    #[track_caller]
    pub(crate) fn assert_no_deletes(&self) {
        let deletes = self.deletes();
        assert!(deletes.is_empty(), "deleted: {:#?}", lines(&deletes));
    }

    /// Succeeds if no call was made; else returns the calls.
    #[allow(dead_code, reason = "only some tests wait until nothing is left to tell")]
    pub(crate) fn is_calm(&self) -> Result<(), String> {
        let sent = self.all_writes();
        if sent.is_empty() { Ok(()) } else { Err(lines(&sent).join("\n")) }
    }

    /// Fails if anything at all was sent.
    #[allow(dead_code, reason = "only some tests wait until nothing is left to tell")]
    #[track_caller]
    pub(crate) fn assert_no_writes(&self) {
        let sent = self.all_writes();
        assert!(sent.is_empty(), "sent: {:#?}", lines(&sent));
    }

    /// Fails if any call was made, but for reports of an earlier change: a source's status is
    /// written into its inventory some seconds later.
    #[track_caller]
    pub(crate) fn assert_silent(&self) {
        let mut seen = BTreeSet::new();
        let mut sent = self.all_writes();
        sent.retain(|event| {
            !(event.verb == "patch" && is_inventory(event) && seen.insert(event.name.clone()))
        });
        assert!(sent.is_empty(), "sent: {:#?}", lines(&sent));
    }
}

/// The writes for sources, by user, and the holders of their Leases meanwhile.
#[allow(dead_code, reason = "only some tests have replicas")]
pub(crate) struct WritesByHolder<'a> {
    cluster: &'a Cluster,
    users: [String; 2],
}

#[allow(dead_code, reason = "only some tests have replicas")]
impl<'a> WritesByHolder<'a> {
    /// Looks at the writes of two users.
    pub(crate) fn by(cluster: &'a Cluster, users: [&str; 2]) -> Self {
        Self { cluster, users: users.map(str::to_owned) }
    }

    /// Fails if anybody wrote for a source whose Lease another one had written last, and returns
    /// how many writes there were of each resource. Events, the status and the inventory of a
    /// source count as all else.
    ///
    /// The order is that in which requests came in. A client that has its answer may be ahead of
    /// the line in the log that says so.
    #[track_caller]
    pub(crate) fn judge(&self, source_of: impl Fn(&AuditEvent) -> Option<String>) -> BTreeMap<String, usize> {
        let (mut holders, mut counts) = (BTreeMap::new(), BTreeMap::new());
        let mut events = self.cluster.audit().unwrap();
        events.sort_by_key(|event| event.timestamp);
        for event in &events {
            let ours = self.users.contains(&event.user) && event.is_write() && event.code < 300;
            let lease = event.name.strip_prefix("rhumb-").filter(|_| event.resource == "leases");
            if let (true, Some(source)) = (ours, lease) {
                holders.insert(source.to_owned(), event.user.clone());
            }
            let source = lease.map(str::to_owned).or_else(|| source_of(event));
            let Some(source) = source.filter(|_| ours) else { continue };
            let what = [&*event.resource, &*event.subresource].into_iter().filter(|word| !word.is_empty());
            *counts.entry(what.collect::<Vec<_>>().join("/")).or_insert(0) += 1;
            let holder = holders.get(&source);
            assert!(
                holder == Some(&event.user),
                "the Lease of {source} is {holder:?}'s: {:#?}",
                lines(std::slice::from_ref(event))
            );
        }
        counts
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

/// Returns events as short lines, for people.
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
