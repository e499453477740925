//! Manifests: a file an object, in folders of ten teams, each with a namespace of its own.

use std::path::Path;

use serde_json::Value;

use crate::Outcome;

/// The number of namespaces that the objects are spread over.
const TEAMS: usize = 10;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindMix {
    /// A ConfigMap of about 350 bytes and a Deployment of about 1.6 kB for each app.
    Apps,
    /// Deployments alone.
    Deployments,
}

/// Some manifests.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    prefix: String,
    mix: KindMix,
    count: usize,
}

/// One object's manifest.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// Its file, from the root of the source.
    pub(crate) file: String,
    /// Path of the object in the API.
    pub(crate) url: String,
    /// Its YAML.
    pub(crate) text: String,
}

impl Corpus {
    /// Returns so many objects in namespaces with this prefix.
    pub(crate) fn new(prefix: &str, mix: KindMix, count: usize) -> Self {
        Self { prefix: prefix.to_owned(), mix, count }
    }

    /// Returns the namespaces, which have to be made first.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        (0..TEAMS).map(|team| format!("{}-{team}", self.prefix)).collect()
    }

    /// Returns the number of objects.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns all manifests.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = Manifest> {
        (0..self.count).map(|number| self.manifest(number))
    }

    /// Returns the numbers of some `ConfigMap`s, spread over all of them.
    pub(crate) fn config_maps(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let pairs = self.count / 2;
        (0..count.min(pairs)).map(move |sample| sample * pairs / count.min(pairs) * 2)
    }

    /// Returns one object as it is at first.
    fn manifest(&self, number: usize) -> Manifest {
        match self.mix {
            KindMix::Apps if number.is_multiple_of(2) => self.config_map(number, "1"),
            KindMix::Apps | KindMix::Deployments => self.deployment(number),
        }
    }

    /// Returns a ConfigMap, whose value `version` changes.
    pub(crate) fn config_map(&self, number: usize, version: &str) -> Manifest {
        let (folder, namespace, name) = self.place(number);
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  labels:\n    \
             app.kubernetes.io/name: {name}\n    app.kubernetes.io/part-of: shop\ndata:\n  version: \"{version}\"\n  \
             LOG_LEVEL: info\n  DATABASE_URL: postgres://{name}.{namespace}.svc:5432/app\n  settings.yaml: |\n    \
             listen: 0.0.0.0:8080\n    timeout: 30s\n    retries: 3\n    cache:\n      size: 64Mi\n      ttl: 10m\n"
        );
        let url = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        Manifest { file: format!("{folder}/config.yaml"), url, text }
    }

    fn deployment(&self, number: usize) -> Manifest {
        let (folder, namespace, name) = self.place(number);
        let text = DEPLOYMENT.replace("<namespace>", &namespace).replace("<name>", &name);
        let url = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        Manifest { file: format!("{folder}/deployment.yaml"), url, text }
    }

    fn place(&self, number: usize) -> (String, String, String) {
        let app = if self.mix == KindMix::Apps { number / 2 } else { number };
        let team = app % TEAMS;
        let name = format!("app-{app:05}");
        (format!("team-{team}/{name}"), format!("{}-{team}", self.prefix), name)
    }

    /// Writes all files below a folder.
    pub(crate) fn write(&self, folder: &Path) -> Outcome<()> {
        self.manifests().try_for_each(|manifest| manifest.write(folder))
    }
}

impl Manifest {
    /// Writes the file below a folder.
    pub(crate) fn write(&self, folder: &Path) -> Outcome<()> {
        let path = folder.join(&self.file);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(std::fs::write(path, &self.text)?)
    }

    /// Returns the body that rhumb would send, but for other values of its two marks, of the same
    /// length.
    pub(crate) fn body(&self) -> Outcome<Vec<u8>> {
        let mut object: Value = serde_yaml::from_str(&self.text)?;
        let mark = "0123456789012345678901234567890123456789";
        object["metadata"]["labels"][rhumb::testing::engine::PART_OF] =
            format!("applyset-{mark}aaa-v1").into();
        object["metadata"]["annotations"][rhumb::testing::object::annotations::RELEASE] =
            format!("{}@{mark}", &mark[..32]).into();
        Ok(serde_json::to_vec(&object)?)
    }
}

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: <name>
  namespace: <namespace>
  labels:
    app.kubernetes.io/name: <name>
    app.kubernetes.io/part-of: shop
    app.kubernetes.io/component: backend
spec:
  replicas: 0
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      app.kubernetes.io/name: <name>
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: <name>
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "9797"
    spec:
      terminationGracePeriodSeconds: 30
      containers:
        - name: app
          image: registry.example.org/<namespace>/<name>:1.0.0
          imagePullPolicy: IfNotPresent
          args: ["--listen=0.0.0.0:8080", "--level=info"]
          ports:
            - name: http
              containerPort: 8080
              protocol: TCP
            - name: metrics
              containerPort: 9797
              protocol: TCP
          env:
            - name: LOG_LEVEL
              value: info
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
            periodSeconds: 5
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
            initialDelaySeconds: 5
          resources:
            requests:
              cpu: 100m
              memory: 64Mi
            limits:
              memory: 256Mi
"#;
