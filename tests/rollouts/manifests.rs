//! Workloads that take pods down as they roll, and faults in them.

use crate::support::yaml;

/// A workload.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    kind: &'static str,
    name: String,
    replicas: u32,
    is_counted: bool,
    image: String,
    wave: i32,
    /// Further annotations of its own, each with a comma before it.
    words: String,
    /// The annotations of its pods, in flow style.
    annotations: String,
    /// The `ConfigMap` that it uses.
    config: Option<String>,
    /// Further lines of its `spec`.
    spec: String,
    /// Further lines of its container.
    container: String,
    strategy: (u32, u32),
    /// Seconds until a Deployment's controller says that it makes no progress.
    deadline: u32,
}

impl Web {
    /// Returns a Deployment of three pods, of which one at a time is taken down.
    pub(crate) fn new(name: &str, image: &str) -> Self {
        Self::of("Deployment", name, image)
    }

    /// Does the same as [`Web::new`], of another kind.
    pub(crate) fn of(kind: &'static str, name: &str, image: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            replicas: 3,
            is_counted: true,
            image: image.to_owned(),
            wave: 0,
            words: String::new(),
            annotations: "{}".to_owned(),
            config: None,
            spec: String::new(),
            container: String::new(),
            strategy: (0, 1),
            deadline: 60,
        }
    }

    /// Sets the number of pods.
    pub(crate) fn replicas(self, replicas: u32) -> Self {
        Self { replicas, ..self }
    }

    /// Returns it without a count of pods, which somebody else sets.
    pub(crate) fn uncounted(self) -> Self {
        Self { is_counted: false, ..self }
    }

    /// Returns it with a controller that gives a rollout up after three seconds.
    pub(crate) fn impatient(self) -> Self {
        self.deadline(3)
    }

    /// Returns it with a controller that gives a rollout up after this time, in seconds.
    pub(crate) fn deadline(self, seconds: u32) -> Self {
        Self { deadline: seconds, ..self }
    }

    pub(crate) fn wave(self, wave: i32) -> Self {
        Self { wave, ..self }
    }

    /// Adds a further annotation, for example `rhumb.dev/steps: "1"`.
    pub(crate) fn word(self, word: &str) -> Self {
        Self { words: format!("{}, {word}", self.words), ..self }
    }

    /// Adds an annotation of the pods that asks for a fault, for example `never-ready: "true"`.
    pub(crate) fn fault(self, fault: &str) -> Self {
        Self { annotations: format!("{{controlplane/{fault}}}"), ..self }
    }

    pub(crate) fn uses(self, config: &str) -> Self {
        Self { config: Some(config.to_owned()), ..self }
    }

    /// Adds a further line of `spec`.
    pub(crate) fn spec(self, line: &str) -> Self {
        Self { spec: format!("{}  {line}\n", self.spec), ..self }
    }

    /// Adds a further line of the container.
    pub(crate) fn container(self, line: &str) -> Self {
        Self { container: format!("{}        {line}\n", self.container), ..self }
    }

    /// Sets the surge and the unavailable pods.
    pub(crate) fn strategy(self, surge: u32, unavailable: u32) -> Self {
        Self { strategy: (surge, unavailable), ..self }
    }

    pub(crate) fn text(&self) -> String {
        let (surge, unavailable) = self.strategy;
        let strategy = match self.kind {
            "Deployment" => format!(
                "  progressDeadlineSeconds: {}\n  strategy: {{rollingUpdate: {{maxSurge: {surge}, maxUnavailable: \
                 {unavailable}}}}}\n",
                self.deadline
            ),
            "DaemonSet" => {
                format!("  updateStrategy: {{rollingUpdate: {{maxUnavailable: {unavailable}}}}}\n")
            }
            _ => String::new(),
        };
        let text = yaml::workload(self.kind, &self.name, self.replicas, &self.image, &self.annotations);
        let metadata = format!(
            "  name: {}\n  annotations: {{rhumb.dev/wave: \"{}\"{}}}\nspec:\n{strategy}{}",
            self.name, self.wave, self.words, self.spec
        );
        let text = text.replace(&format!("  name: {}\nspec:\n", self.name), &metadata);
        let count = format!("  replicas: {}\n", self.replicas);
        let text = if self.is_counted { text } else { text.replacen(&count, "", 1) };
        let config = self.config.as_ref();
        let env = config.map(|name| format!("        envFrom: [{{configMapRef: {{name: {name}}}}}]\n"));
        text + &self.container + &env.unwrap_or_default()
    }

    pub(crate) fn image(&self) -> &str {
        &self.image
    }

    pub(crate) fn file(&self) -> (String, String) {
        (format!("{}.yaml", self.name), self.text())
    }
}

/// Returns a `ConfigMap` as a file.
pub(crate) fn config(name: &str, value: &str) -> (String, String) {
    (format!("{name}.yaml"), yaml::config_map(name, "key", value))
}
