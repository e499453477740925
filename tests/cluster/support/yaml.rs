//! Manifests.

/// Returns a ConfigMap with one key.
pub(crate) fn config_map(name: &str, key: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  {key}: \"{value}\"\n")
}

/// Returns a Deployment whose pods are ready at once.
pub(crate) fn deployment(name: &str, replicas: u32, image: &str) -> String {
    workload("Deployment", name, replicas, image, "{}")
}

/// Returns a workload with annotations on its pods, in flow style.
pub(crate) fn workload(kind: &str, name: &str, replicas: u32, image: &str, annotations: &str) -> String {
    let kind_lines = match kind {
        "Deployment" => format!("  replicas: {replicas}\n"),
        "StatefulSet" => format!("  replicas: {replicas}\n  serviceName: {name}\n"),
        "DaemonSet" => String::new(),
        other => panic!("no workload: {other}"),
    };
    format!(
        "apiVersion: apps/v1
kind: {kind}
metadata:
  name: {name}
spec:
{kind_lines}  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
      annotations: {annotations}
    spec:
      containers:
      - name: main
        image: {image}
"
    )
}

/// Returns a Service before the pods of a workload.
pub(crate) fn service(name: &str, app: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\nspec:\n  selector: {{app: {app}}}\n  ports:\n  \
         - {{port: 80, targetPort: 8080}}\n"
    )
}

/// Returns a Secret with one key.
pub(crate) fn secret(name: &str, key: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\nstringData:\n  {key}: \"{value}\"\n")
}

/// Returns the files of a unit: a workload to which the use of ConfigMaps is added, and these, each
/// with its text under `key`.
pub(crate) fn unit(workload: &str, configs: &[(String, &str)]) -> [(&'static str, String); 2] {
    let maps: Vec<String> = configs.iter().map(|(name, text)| config_map(name, "key", text)).collect();
    let uses = configs.iter().map(|(name, _)| format!("        - configMapRef: {{name: {name}}}\n"));
    let uses: Vec<String> = uses.collect();
    let workload = format!("{workload}        envFrom:\n{}", uses.concat());
    [("env.yaml", documents(&maps)), ("web.yaml", workload)]
}

/// Joins several documents to one file.
pub(crate) fn documents<T: AsRef<str>>(all: &[T]) -> String {
    all.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("---\n")
}
