//! Nodes of one test.

use serde_json::{Value, json};

use super::{Api, TestNamespace, at, until, yaml};

/// Nodes that run nothing but the pods of one test.
pub(crate) struct Nodes {
    api: Api,
    pub(crate) names: Vec<String>,
}

impl Nodes {
    /// Returns so many nodes, each Ready; their names end in their numbers.
    pub(crate) fn new(site: &TestNamespace<'_>, count: usize) -> Self {
        let names: Vec<String> = (1..=count).map(|number| format!("{}-{number}", site.name)).collect();
        for name in &names {
            let taint = json!({"key": "site", "value": site.name, "effect": "NoSchedule"});
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"site": site.name}}, "spec": {"taints": [taint]},
            });
            site.api.create("/api/v1/nodes", "setup", &node);
        }
        // The pods of a DaemonSet come to nodes that are not Ready yet, too.
        let is_ready = |name: &String| {
            let conditions = site.api.value(&at("Node", "", name), "/status/conditions");
            let holds = |one: &Value| (&one["type"], &one["status"]) == (&json!("Ready"), &json!("True"));
            conditions.as_array().is_some_and(|all| all.iter().any(holds))
        };
        until("the nodes are Ready", || names.iter().all(is_ready));
        Self { api: site.api.clone(), names }
    }

    fn at(&self, number: usize) -> String {
        at("Node", "", &self.names[number - 1])
    }

    /// Gives one a label.
    pub(crate) fn label(&self, number: usize, key: &str, value: &str) {
        self.api.merge(&self.at(number), "setup", &json!({"metadata": {"labels": {key: value}}}));
    }

    /// Takes the kubelet of a node away.
    pub(crate) fn fail(&self, number: usize) {
        let down = json!({"metadata": {"annotations": {"controlplane/down": ""}}});
        self.api.merge(&self.at(number), "setup", &down);
        let now = "2026-01-01T00:00:00Z";
        let condition = json!({"type": "Ready", "status": "False", "reason": "Test", "message": "", "lastTransitionTime": now, "lastHeartbeatTime": now});
        self.api.merge(
            &format!("{}/status", self.at(number)),
            "setup",
            &json!({"status": {"conditions": [condition]}}),
        );
    }

    /// Brings the kubelet of a node back.
    pub(crate) fn heal(&self, number: usize) {
        let up = json!({"metadata": {"annotations": {"controlplane/down": null}}});
        self.api.merge(&self.at(number), "setup", &up);
    }

    /// Returns a DaemonSet on these nodes alone, with annotations of its own and of its pods.
    pub(crate) fn daemon_set(
        site: &TestNamespace<'_>,
        name: &str,
        image: &str,
        words: &str,
        pods: &str,
    ) -> String {
        let place = &site.name;
        let place = format!(
            "    spec:\n      nodeSelector: {{site: {place}}}\n      tolerations: [{{key: site, operator: Exists}}]\n"
        );
        yaml::workload("DaemonSet", name, 0, image, pods)
            .replace(
                &format!("  name: {name}\nspec"),
                &format!("  name: {name}\n  annotations: {{{words}}}\nspec"),
            )
            .replace("    spec:\n", &place)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for name in &self.names {
            self.api.delete(&at("Node", "", name));
        }
    }
}
