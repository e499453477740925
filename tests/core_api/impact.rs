//! The impact of a change on pods: the prediction from the server's dry run is what then happens.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use controlplane::Cluster;
use futures::{StreamExt as _, stream};
use rhumb::testing::change::{Impact, ImpactKind, change_impact, immutable_fields};
use rhumb::testing::object::GroupKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::{Server, documents, merged};

/// Rows at work at one time.
const AT_ONCE: usize = 32;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    case: String,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    made: Value,
    #[serde(default)]
    before: Vec<Value>,
    change: Value,
    expect: String,
    #[serde(default)]
    stuck: bool,
    #[serde(default)]
    at_most: bool,
}

const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

#[tokio::test]
async fn what_a_change_does_to_pods_is_foretold() {
    let server = Server::of(Cluster::builder().nodes(3).start().unwrap()).await;
    for object in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "shop"}}),
        json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandbox"}, "handler": "x"}),
    ] {
        server.apply(&object).await.unwrap();
    }
    let rows: Vec<Row> = documents(include_str!("impact.yaml"))
        .into_iter()
        .flat_map(|document| serde_json::from_value::<Vec<Row>>(document).unwrap())
        .collect();
    let mut trials: Vec<ImpactTrial<'_>> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let one = [KINDS[number % KINDS.len()].to_owned()];
        for kind in if row.kinds.is_empty() { &one[..] } else { &row.kinds } {
            trials.push(ImpactTrial { row, kind: kind.clone(), name: format!("w{}", trials.len()) });
        }
    }
    assert!(trials.len() > 180, "{} trials", trials.len());
    let server = &server;
    let wrong: Vec<String> = stream::iter(&trials)
        .map(|trial| async move { trial.run(server).await.err().map(|why| format!("{trial}: {why}")) })
        .buffer_unordered(AT_ONCE)
        .filter_map(|wrong| async { wrong })
        .collect()
        .await;
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), trials.len(), wrong.join("\n"));
}

/// A row, tried on a workload of one kind.
struct ImpactTrial<'a> {
    row: &'a Row,
    kind: String,
    name: String,
}

impl std::fmt::Display for ImpactTrial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.row.case, self.kind)
    }
}

type Pods = BTreeSet<String>;

impl ImpactTrial<'_> {
    async fn run(&self, server: &Server) -> Result<(), String> {
        let mut object = changed(&self.base(), &self.row.made);
        server.apply(&object).await.map_err(|refusal| format!("{refusal:?}"))?;
        let (mut live, mut pods) = self.settled(server, &object).await?;
        for change in &self.row.before {
            object = changed(&object, change);
            server.apply(&object).await.map_err(|refusal| format!("{refusal:?}"))?;
            (live, pods) = self.settled(server, &object).await?;
        }
        let wanted = changed(&object, &self.row.change);
        let kind = GroupKind::new("apps", &self.kind);
        if self.row.expect.starts_with("refused") {
            return self.refused(server, &live, &wanted, &pods).await;
        }
        let answer = server.dry_run(&wanted).await.map_err(|refusal| format!("{refusal:?}"))?;
        let predicted = change_impact(&kind, Some(&live), Some(&answer));
        let expected = self.expected(&pods);
        if words(predicted) != expected {
            return Err(format!("foretold {}, not {expected}", words(predicted)));
        }
        let applied = server.apply(&wanted).await.map_err(|refusal| format!("{refusal:?}"))?;
        if expected == "none" && applied["metadata"]["generation"] != live["metadata"]["generation"] {
            return Err("the server took it for a change".to_owned());
        }
        if self.row.stuck {
            return self.begun(server, &pods).await;
        }
        let (_, after) = self.settled(server, &wanted).await?;
        self.compare(predicted, &pods, &after)
    }

    fn base(&self) -> Value {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": self.kind, "metadata": {"name": self.name, "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": self.name}}, "template": {
                "metadata": {"labels": {"app": self.name}, "annotations": {"note": "a"}},
                "spec": {"containers": [{"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}],
                    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}}]}}}
        });
        if self.kind != "DaemonSet" {
            object["spec"]["replicas"] = json!(2);
        }
        if self.kind == "StatefulSet" {
            object["spec"]["serviceName"] = json!(self.name);
            // So the API server itself ends them. KWOK ends what terminates by its name alone, and
            // now and then a second time, when the next pod has that name already.
            object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(0);
        }
        object
    }

    fn expected(&self, pods: &Pods) -> String {
        match self.row.expect.as_str() {
            "restart" => format!("restart {}", pods.len()),
            expected => expected.to_owned(),
        }
    }

    /// Returns the live object and its pods, when its controller has done all that it was asked
    /// for.
    async fn settled(&self, server: &Server, object: &Value) -> Result<(Value, Pods), String> {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let live = server.get(object).await;
            if let Some(count) = asked_for(&live) {
                let pods = server.pods("shop", &format!("app={}", self.name)).await;
                if pods.iter().all(is_ready) && pods.len() as u64 == count {
                    return Ok((live, pods.iter().map(uid).collect()));
                }
            }
            if Instant::now() > deadline {
                return Err(format!("does not settle: {}", live["status"]));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Waits for the first pod that comes or goes.
    async fn begun(&self, server: &Server, before: &Pods) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_mins(1);
        while server.pods("shop", &format!("app={}", self.name)).await.iter().map(uid).collect::<Pods>()
            == *before
        {
            if Instant::now() > deadline {
                return Err("no pod is replaced".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(())
    }

    fn compare(&self, predicted: Impact, before: &Pods, after: &Pods) -> Result<(), String> {
        let removed = before.difference(after).count() as u32;
        let added = after.difference(before).count() as u32;
        let happened = match (removed, added) {
            (0, 0) => None,
            (0, pods) | (pods, 0) => Some(Impact { kind: ImpactKind::Scale, pods }),
            _ => Some(Impact { kind: ImpactKind::Restart, pods: removed.max(added) }),
        };
        let is_so = match happened {
            _ if self.row.at_most => removed.max(added) <= predicted.pods,
            None => matches!(predicted.kind, ImpactKind::None | ImpactKind::InPlace) && predicted.pods == 0,
            Some(happened) => happened == predicted,
        };
        is_so.then_some(()).ok_or_else(|| {
            format!(
                "foretold {}, but these pods were there: {before:?}, and then {after:?}",
                words(predicted)
            )
        })
    }

    /// Returns a change that the server refuses, for a rule that we know or for another one.
    async fn refused(
        &self,
        server: &Server,
        live: &Value,
        wanted: &Value,
        pods: &Pods,
    ) -> Result<(), String> {
        let kind = GroupKind::new("apps", &self.kind);
        let rules: Vec<String> =
            immutable_fields(&kind, live, wanted).into_iter().map(|rule| rule.path).collect();
        let named = [&["refused".to_owned()], rules.as_slice()].concat().join(" ");
        if named != self.row.expect {
            return Err(format!("foretold {named}, not {}", self.row.expect));
        }
        let predicted = change_impact(&kind, Some(live), Some(wanted));
        if !rules.is_empty() && words(predicted) != format!("recreate {}", pods.len()) {
            return Err(format!("foretold {}", words(predicted)));
        }
        for answer in [server.dry_run(wanted).await, server.apply(wanted).await] {
            match answer {
                Err(refusal) if refusal.code == 422 => {}
                answer => return Err(format!("the server does not refuse it: {answer:?}")),
            }
        }
        let (_, after) = self.settled(server, wanted).await?;
        if after == *pods { Ok(()) } else { Err("its pods were touched".to_owned()) }
    }
}

/// Returns the number of pods by the spec, if the controller is done with it.
fn asked_for(live: &Value) -> Option<u64> {
    let status = |key: &str| live["status"][key].as_u64().unwrap_or(0);
    let spec = &live["spec"];
    if live["metadata"]["generation"].as_u64() != Some(status("observedGeneration")) {
        return None;
    }
    let on_delete = spec["updateStrategy"]["type"] == "OnDelete";
    let replicas = spec["replicas"].as_u64().unwrap_or(1);
    let all = |keys: &[&str], count| keys.iter().all(|key| status(key) == count);
    match live["kind"].as_str().unwrap() {
        "Deployment" => {
            let is_new = spec["paused"] == true || status("updatedReplicas") == replicas;
            (is_new && all(&["replicas", "readyReplicas", "availableReplicas"], replicas)).then_some(replicas)
        }
        "StatefulSet" => {
            let partition = spec["updateStrategy"]["rollingUpdate"]["partition"].as_u64().unwrap_or(0);
            let is_new = on_delete || status("updatedReplicas") >= replicas.saturating_sub(partition);
            (is_new && all(&["replicas", "readyReplicas", "availableReplicas"], replicas)).then_some(replicas)
        }
        _ => {
            let nodes = status("desiredNumberScheduled");
            let is_new = on_delete || status("updatedNumberScheduled") == nodes;
            let there = all(&["currentNumberScheduled", "numberReady", "numberAvailable"], nodes);
            (is_new && there && status("numberMisscheduled") == 0).then_some(nodes)
        }
    }
}

fn is_ready(pod: &Value) -> bool {
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    pod["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(is_ready))
        && pod["metadata"]["deletionTimestamp"].is_null()
}

fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn words(impact: Impact) -> String {
    match impact.kind {
        ImpactKind::None => "none".to_owned(),
        ImpactKind::InPlace => "in place".to_owned(),
        ImpactKind::Scale => format!("scale {}", impact.pods),
        ImpactKind::Restart => format!("restart {}", impact.pods),
        ImpactKind::Recreate => format!("recreate {}", impact.pods),
    }
}

/// Returns a workload after a row's change of its parts.
fn changed(object: &Value, change: &Value) -> Value {
    let mut object = object.clone();
    for (part, place) in [
        ("metadata", "/metadata"),
        ("spec", "/spec"),
        ("template", "/spec/template/metadata"),
        ("pod", "/spec/template/spec"),
        ("container", "/spec/template/spec/containers/0"),
    ] {
        if let Some(change) = change.get(part) {
            let value = object.pointer_mut(place).unwrap();
            *value = merged(value, change);
        }
    }
    object
}
