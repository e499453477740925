//! Workloads of the test image, well made unless a test says otherwise.

use crate::second_node;

/// The annotation of a workload whose first step is one pod and waits for a person.
pub(crate) const CANARY: &str = "rhumb.dev/steps: \"1\", rhumb.dev/step-promote: manual";

/// A workload whose pods are probed, and which ends after its callers know of it.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    kind: &'static str,
    name: String,
    image: String,
    /// Further annotations of the workload, in flow style.
    annotations: String,
    /// The environment of its container, in flow style.
    environment: Vec<String>,
    /// Further lines of its container.
    container: String,
    /// Further lines of its pods' `spec`.
    pod: String,
    /// Seconds between the news that a pod ends and SIGTERM.
    farewell: u32,
    /// Seconds between that news and SIGKILL.
    grace: u32,
}

impl Workload {
    /// Describes a Deployment of three pods that are replaced one by one.
    pub(crate) fn new(name: &str, image: &str) -> Self {
        Self::of("Deployment", name, image)
    }

    pub(crate) fn of(kind: &'static str, name: &str, image: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            image: format!("test.local/{image}"),
            annotations: String::new(),
            environment: Vec::new(),
            container: String::new(),
            pod: String::new(),
            farewell: 1,
            grace: 20,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn image(&self) -> &str {
        &self.image
    }

    /// Returns the number of its pods, on the one node that is for all.
    pub(crate) fn pods(&self) -> usize {
        if self.kind == "DaemonSet" { 1 } else { 3 }
    }

    pub(crate) fn annotation(self, text: &str) -> Self {
        Self { annotations: text.to_owned(), ..self }
    }

    /// Sets a variable of the container, for example `CRASH_AFTER`.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{{name: {name}, value: \"{value}\"}}"));
        self
    }

    /// Takes the text that pods show from a key of a ConfigMap.
    pub(crate) fn shows(mut self, config: &str, key: &str) -> Self {
        let source = format!("{{configMapKeyRef: {{name: {config}, key: {key}}}}}");
        self.environment.push(format!("{{name: CONFIG, valueFrom: {source}}}"));
        self
    }

    /// Adds an init container that ends with a code.
    pub(crate) fn init_exits(mut self, code: u8) -> Self {
        let init = format!("{{name: first, image: {}, args: [exit, \"{code}\"]}}", self.image);
        self.pod = format!("{}      initContainers: [{init}]\n", self.pod);
        self
    }

    /// Adds a line to its container, for example `imagePullPolicy: Never`.
    pub(crate) fn has(mut self, line: &str) -> Self {
        self.container = format!("{}        {line}\n", self.container);
        self
    }

    /// Takes more memory than it may have, and serves nothing.
    pub(crate) fn hogs_memory(mut self) -> Self {
        self.container
            .push_str("        args: [fill, \"200\"]\n        resources: {limits: {memory: 32Mi}}\n");
        self
    }

    /// Has the kubelet restart a container that says that it is sick.
    pub(crate) fn probed_for_life(mut self) -> Self {
        let probe = "httpGet: {path: /live, port: 8080}, periodSeconds: 1, failureThreshold: 1";
        self.container = format!("{}        livenessProbe: {{{probe}}}\n", self.container);
        self
    }

    /// Runs its pods where their kubelet may be stopped.
    pub(crate) fn on_second_node(mut self) -> Self {
        let name = second_node::NAME;
        let place = format!("      nodeSelector: {{kubernetes.io/hostname: {name}}}\n");
        self.pod += &place;
        self.pod += "      tolerations: [{key: reserved, operator: Exists}]\n";
        self
    }

    pub(crate) fn farewell(self, seconds: u32) -> Self {
        Self { farewell: seconds, ..self }
    }

    pub(crate) fn grace(self, seconds: u32) -> Self {
        Self { grace: seconds, ..self }
    }

    pub(crate) fn file(&self) -> (String, String) {
        (format!("{}.yaml", self.name), self.text())
    }

    fn text(&self) -> String {
        let strategy = match self.kind {
            "Deployment" => {
                "  replicas: 3\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n".to_owned()
            }
            "StatefulSet" => format!("  replicas: 3\n  serviceName: {}\n", self.name),
            _ => String::new(),
        };
        let Self { kind, name, image, annotations, environment, container, pod, farewell, grace } = self;
        format!(
            "apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, annotations: {{{annotations}}}}}
spec:
{strategy}  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: {grace}
{pod}      containers:
      - name: main
        image: {image}
        env: [{}]
        ports: [{{containerPort: 8080}}]
        readinessProbe: {{httpGet: {{path: /ready, port: 8080}}, periodSeconds: 1, timeoutSeconds: 5}}
        lifecycle: {{preStop: {{exec: {{command: [/app, sleep, {farewell}s]}}}}}}
{container}",
            environment.join(", ")
        )
    }
}
