//! Workloads that take pods down as they roll, and faults in them.

use crate::support::yaml;

/// A Deployment.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    name: String,
    replicas: u32,
    image: String,
    wave: i32,
    /// Of its pods, in flow style.
    annotations: String,
    /// The `ConfigMap` that it uses.
    config: Option<String>,
    /// Further lines of its `spec`.
    spec: String,
    strategy: (u32, u32),
}

impl Web {
    /// Three pods, of which one at a time is taken down, and a deadline of three seconds.
    pub(crate) fn new(name: &str, image: &str) -> Self {
        Self {
            name: name.to_owned(),
            replicas: 3,
            image: image.to_owned(),
            wave: 0,
            annotations: "{}".to_owned(),
            config: None,
            spec: String::new(),
            strategy: (0, 1),
        }
    }

    pub(crate) fn wave(self, wave: i32) -> Self {
        Self { wave, ..self }
    }

    /// An annotation of the pods that asks for a fault, as `never-ready: "true"`.
    pub(crate) fn fault(self, fault: &str) -> Self {
        Self { annotations: format!("{{controlplane/{fault}}}"), ..self }
    }

    pub(crate) fn uses(self, config: &str) -> Self {
        Self { config: Some(config.to_owned()), ..self }
    }

    /// A further line of `spec`.
    pub(crate) fn spec(self, line: &str) -> Self {
        Self { spec: format!("{}  {line}\n", self.spec), ..self }
    }

    /// So many pods too many and too few.
    pub(crate) fn strategy(self, surge: u32, unavailable: u32) -> Self {
        Self { strategy: (surge, unavailable), ..self }
    }

    pub(crate) fn text(&self) -> String {
        let (surge, unavailable) = self.strategy;
        let text = yaml::workload("Deployment", &self.name, self.replicas, &self.image, &self.annotations);
        let metadata = format!(
            "  name: {}\n  annotations: {{rhumb.dev/wave: \"{}\"}}\nspec:\n  progressDeadlineSeconds: 3\n  \
             strategy: {{rollingUpdate: {{maxSurge: {surge}, maxUnavailable: {unavailable}}}}}\n{}",
            self.name, self.wave, self.spec
        );
        let text = text.replace(&format!("  name: {}\nspec:\n", self.name), &metadata);
        let config = self.config.as_ref();
        let env = config.map(|name| format!("        envFrom: [{{configMapRef: {{name: {name}}}}}]\n"));
        text + &env.unwrap_or_default()
    }

    pub(crate) fn file(&self) -> (String, String) {
        (format!("{}.yaml", self.name), self.text())
    }
}

/// A `ConfigMap` as a file.
pub(crate) fn config(name: &str, value: &str) -> (String, String) {
    (format!("{name}.yaml"), yaml::config_map(name, "key", value))
}
