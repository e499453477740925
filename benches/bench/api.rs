//! The API server, asked directly: prebuilt writes, one watch, and the server's own counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::Outcome;

/// The time limit of waits.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Resources that nobody but the measured program touches in a bare cluster.
const MEASURED: [&str; 4] = ["configmaps", "deployments", "namespaces", "horizontalpodautoscalers"];

/// A user of the API server.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
}

/// A write, made beforehand.
pub(crate) struct Write {
    path: String,
    content: &'static str,
    body: Vec<u8>,
}

impl Write {
    /// Returns a server-side apply as a manager that owns nothing else yet.
    pub(crate) fn apply(url: &str, manager: &str, body: Vec<u8>) -> Self {
        let path = format!("{url}?fieldManager={manager}&fieldValidation=Strict");
        Self { path, content: "application/apply-patch+yaml", body }
    }

    /// Returns a JSON merge patch.
    pub(crate) fn merge(url: &str, manager: &str, patch: &Value) -> Outcome<Self> {
        let target = format!("{url}?fieldManager={manager}");
        Ok(Self { path: target, content: "application/merge-patch+json", body: serde_json::to_vec(patch)? })
    }
}

impl Api {
    /// Connects as the user of a kubeconfig.
    pub(crate) async fn connect(kubeconfig: &Path) -> Outcome<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        config.read_timeout = None;
        Ok(Self { client: Client::try_from(config)? })
    }

    /// Sends a write and reads the whole answer.
    pub(crate) async fn send(&self, write: Write) -> Outcome<String> {
        let request = Request::builder()
            .method("PATCH")
            .uri(write.path)
            .header("Content-Type", write.content)
            .header("Accept", "application/json")
            .body(write.body)?;
        Ok(self.client.request_text(request).await?)
    }

    /// Reads a path as text.
    pub(crate) async fn read(&self, path: &str) -> Outcome<String> {
        Ok(self.client.request_text(Request::get(path).body(Vec::new())?).await?)
    }

    /// Makes namespaces.
    pub(crate) async fn make_namespaces(&self, names: &[String]) -> Outcome<()> {
        for name in names {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let url = format!("/api/v1/namespaces/{name}");
            self.send(Write::apply(&url, "setup", serde_json::to_vec(&body)?)).await?;
        }
        Ok(())
    }

    /// Watches the `ConfigMap`s of all namespaces from now on.
    pub(crate) async fn watch_config_maps(&self) -> Outcome<Watch> {
        self.watch("/api/v1/configmaps").await
    }

    /// Watches a collection from now on.
    pub(crate) async fn watch(&self, collection: &str) -> Outcome<Watch> {
        let list: Value = serde_json::from_str(&self.read(&format!("{collection}?limit=1")).await?)?;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let path = format!("{collection}?watch=true&timeoutSeconds=3600&resourceVersion={version}");
        let stream = self.client.request_stream(Request::get(path).body(Vec::new())?).await?;
        Ok(Watch { stream: Box::pin(stream), line: String::new() })
    }

    /// Returns the number of requests that the server has answered, by verb, for the resources of
    /// the measured program; watches count when they end.
    pub(crate) async fn counts(&self) -> Outcome<BTreeMap<String, u64>> {
        let text = self.read("/metrics").await?;
        let mut counts = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let label = |name: &str| {
                let (_, after) = line.split_once(&format!("{name}=\""))?;
                Some(after.split_once('"')?.0)
            };
            let number = line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
            let (Some(resource), Some(verb), Some(number)) = (label("resource"), label("verb"), number)
            else {
                continue;
            };
            if MEASURED.contains(&resource) && label("version") != Some("") {
                *counts.entry(verb.to_owned()).or_default() += number;
            }
        }
        Ok(counts)
    }
}

/// Returns the difference of two counts.
pub(crate) fn since(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let change = |(verb, count): (&String, &u64)| {
        let change = count - before.get(verb).copied().unwrap_or(0);
        (change > 0).then(|| (verb.clone(), change))
    };
    after.iter().filter_map(change).collect()
}

/// A running watch.
pub(crate) struct Watch {
    stream: Pin<Box<dyn AsyncBufRead + Send>>,
    line: String,
}

/// One ConfigMap as an event shows it.
pub(crate) struct ObservedConfigMap {
    /// Its name.
    pub(crate) name: String,
    /// The value of `version` in its data.
    pub(crate) version: String,
    /// The version that the server gave it.
    pub(crate) rv: u64,
}

impl Watch {
    /// Waits for the ConfigMap that is asked for.
    pub(crate) async fn until(
        &mut self,
        wanted: impl Fn(&ObservedConfigMap) -> bool,
    ) -> Outcome<ObservedConfigMap> {
        let found = async {
            loop {
                let seen = self.next().await?;
                if wanted(&seen) {
                    return Ok(seen);
                }
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, found).await.map_err(|_| "what was waited for did not come")?
    }

    async fn next(&mut self) -> Outcome<ObservedConfigMap> {
        let object = self.read().await?;
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Ok(ObservedConfigMap {
            name: text("/metadata/name").to_owned(),
            version: text("/data/version").to_owned(),
            rv: version(text("/metadata/resourceVersion")),
        })
    }

    /// Returns the object of the next event.
    pub(crate) async fn object(&mut self) -> Outcome<Value> {
        tokio::time::timeout(WAIT_TIMEOUT, self.read()).await.map_err(|_| "nothing more happens")?
    }

    async fn read(&mut self) -> Outcome<Value> {
        self.line.clear();
        if self.stream.read_line(&mut self.line).await? == 0 {
            return Err("the watch ended".into());
        }
        let mut event: Value = serde_json::from_str(&self.line)?;
        Ok(event["object"].take())
    }
}

/// Returns a resourceVersion as a number.
pub(crate) fn version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}
