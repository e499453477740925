//! The objects that an object needs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object::annotations;
use crate::object::{GroupKind, ObjectId, annotation_text, text_at, value_at};

/// Objects named in this annotation must be there and healthy first; Config Sync's and cli-utils'
/// word for it is read as well. Form: `group/namespaces/ns/Kind/name` or `group/Kind/name`,
/// separated by commas; the short form `Kind/name` means the object's own namespace and any
/// built-in kind's group.
const DEPENDS_ON_ANNOTATIONS: [&str; 2] = [annotations::DEPENDS_ON, "config.kubernetes.io/depends-on"];

/// Returns what an object needs before it can work: what its pods mount and run as, what it routes
/// to and what it scales. Its namespace and its CRD are not among them, as every object needs
/// those.
pub(crate) fn references(id: &ObjectId, body: &Value) -> BTreeSet<ObjectId> {
    let mut found = FoundReferences::new(id);
    if let Some(pod) = pod_spec(id, body) {
        found.add_pod(pod);
    }
    match (id.group(), id.kind()) {
        ("apps", "StatefulSet") => {
            found.add_claim_templates(body);
            found.add_named("", "Service", text_at(body, &["spec", "serviceName"]));
        }
        ("", "ServiceAccount") => {
            found.visit_each(body.get("secrets"), |f, s| f.add_named("", "Secret", text_at(s, &["name"])));
            found.visit_each(body.get("imagePullSecrets"), |f, s| {
                f.add_named("", "Secret", text_at(s, &["name"]));
            });
        }
        ("", "PersistentVolumeClaim") => {
            found.add_cluster_scoped(
                "storage.k8s.io",
                "StorageClass",
                text_at(body, &["spec", "storageClassName"]),
            );
        }
        ("networking.k8s.io", "Ingress") => found.add_ingress(body),
        ("gateway.networking.k8s.io", kind) if kind.ends_with("Route") => found.add_route(body),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            found.add_target(value_at(body, &["spec", "scaleTargetRef"]), "", "");
        }
        ("autoscaling.k8s.io", "VerticalPodAutoscaler") => {
            found.add_target(value_at(body, &["spec", "targetRef"]), "", "");
        }
        ("keda.sh", "ScaledObject") => {
            found.add_target(value_at(body, &["spec", "scaleTargetRef"]), "apps", "Deployment");
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => found.add_binding(body),
        (group @ "admissionregistration.k8s.io", kind) => {
            if let Some(policy) = kind.strip_suffix("Binding") {
                found.add_cluster_scoped(group, policy, text_at(body, &["spec", "policyName"]));
            }
            found.visit_each(body.get("webhooks"), |f, webhook| {
                f.add_service(value_at(webhook, &["clientConfig", "service"]));
            });
        }
        ("apiregistration.k8s.io", "APIService") => found.add_service(value_at(body, &["spec", "service"])),
        _ => {}
    }
    found.ids.remove(id);
    found.ids
}

/// Returns the `ConfigMaps` and Secrets whose data the pods of an object use, in their environment
/// or as files. Optional ones (`optional: true`) are among them. Pull secrets are not, as running
/// pods do not notice a change.
pub(crate) fn configuration(id: &ObjectId, body: &Value) -> BTreeSet<ObjectId> {
    let mut found = FoundReferences { optional: OptionalReferences::Taken, ..FoundReferences::new(id) };
    if let Some(pod) = pod_spec(id, body) {
        found.add_pod_data(pod);
    }
    let data = |id: &ObjectId| id.is("", "ConfigMap") || id.is("", "Secret");
    found.ids.into_iter().filter(data).collect()
}

/// Returns the spec of an object's pods.
fn pod_spec<'a>(id: &ObjectId, body: &'a Value) -> Option<&'a Value> {
    match (id.group(), id.kind()) {
        ("", "Pod") => body.get("spec"),
        ("batch", "CronJob") => value_at(body, &["spec", "jobTemplate", "spec", "template", "spec"]),
        ("apps" | "batch", _) | ("", "ReplicationController") => {
            value_at(body, &["spec", "template", "spec"])
        }
        // A custom kind that makes pods of a template.
        _ => value_at(body, &["spec", "template", "spec"]).filter(|spec| spec.get("containers").is_some()),
    }
}

/// Returns what must be healthy before an object is changed, by its own annotation.
pub(crate) fn annotated_dependencies(id: &ObjectId, body: &Value) -> BTreeSet<ObjectId> {
    let mut found = FoundReferences::new(id);
    found.add_annotated(body);
    found.ids.remove(id);
    found.ids
}

/// Returns whether an object's own annotation names the object itself.
pub(crate) fn has_self_reference(id: &ObjectId, body: &Value) -> bool {
    let mut found = FoundReferences::new(id);
    found.add_annotated(body);
    found.ids.contains(id)
}

/// Returns the parts of the annotations about dependencies that name no object.
pub(crate) fn unreadable_dependencies(body: &Value) -> Vec<(&'static str, &str)> {
    let parts = |key| annotated_names(body, key).map(move |part| (key, part));
    DEPENDS_ON_ANNOTATIONS
        .into_iter()
        .flat_map(parts)
        .filter(|(_, part)| DependencyText::parse(part).is_none())
        .collect()
}

fn annotated_names<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    let text = annotation_text(body, key);
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// One part of such an annotation.
enum DependencyText<'a> {
    /// `group/namespaces/namespace/Kind/name`
    Namespaced(&'a str, &'a str, &'a str, &'a str),
    /// `group/Kind/name`
    Global(&'a str, &'a str, &'a str),
    /// `Kind/name`
    Near(&'a str, &'a str),
}

impl<'a> DependencyText<'a> {
    fn parse(part: &'a str) -> Option<Self> {
        let parts: Vec<&str> = part.split('/').collect();
        // A namespace at the place of the kind, as in `ConfigMap/shop/env`, would be waited for
        // without end.
        let is_kind = |kind: &str| kind.starts_with(|first: char| first.is_ascii_uppercase());
        match parts[..] {
            [group, "namespaces", namespace, kind, name]
                if is_kind(kind) && !namespace.is_empty() && !name.is_empty() =>
            {
                Some(Self::Namespaced(group, namespace, kind, name))
            }
            [group, kind, name] if is_kind(kind) && !name.is_empty() => Some(Self::Global(group, kind, name)),
            [kind, name] if is_kind(kind) && !name.is_empty() => Some(Self::Near(kind, name)),
            _ => None,
        }
    }
}

/// The treatment of a reference that says `optional: true`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionalReferences {
    /// It is left out: the pod starts without it.
    Skipped,
    /// It counts as any other.
    Taken,
}

struct FoundReferences<'a> {
    namespace: &'a str,
    optional: OptionalReferences,
    ids: BTreeSet<ObjectId>,
}

impl<'a> FoundReferences<'a> {
    fn new(id: &'a ObjectId) -> Self {
        let namespace = id.namespace().unwrap_or_default();
        Self { namespace, optional: OptionalReferences::Skipped, ids: BTreeSet::new() }
    }

    fn add(&mut self, group: &str, kind: &str, namespace: &str, name: &str) {
        if !name.is_empty() {
            let namespace = (!namespace.is_empty()).then_some(namespace);
            self.ids.insert(ObjectId::new(&GroupKind::new(group, kind), namespace, name));
        }
    }

    fn add_named(&mut self, group: &str, kind: &str, name: &str) {
        self.add(group, kind, self.namespace, name);
    }

    fn add_cluster_scoped(&mut self, group: &str, kind: &str, name: &str) {
        self.add(group, kind, "", name);
    }

    fn visit_each(&mut self, list: Option<&Value>, visit: impl Fn(&mut Self, &Value)) {
        for item in list.and_then(Value::as_array).into_iter().flatten() {
            visit(self, item);
        }
    }

    fn add_pod(&mut self, spec: &Value) {
        self.add_named("", "ServiceAccount", text_at(spec, &["serviceAccountName"]));
        self.add_cluster_scoped("scheduling.k8s.io", "PriorityClass", text_at(spec, &["priorityClassName"]));
        self.add_cluster_scoped("node.k8s.io", "RuntimeClass", text_at(spec, &["runtimeClassName"]));
        self.visit_each(spec.get("imagePullSecrets"), |f, s| {
            f.add_named("", "Secret", text_at(s, &["name"]));
        });
        self.add_pod_data(spec);
    }

    /// Collects the references of containers and volumes.
    fn add_pod_data(&mut self, spec: &Value) {
        for containers in ["containers", "initContainers"] {
            self.visit_each(spec.get(containers), Self::add_container);
        }
        self.visit_each(spec.get("volumes"), Self::add_volume);
    }

    fn add_container(&mut self, container: &Value) {
        self.visit_each(container.get("env"), |f, env| {
            f.add_data("ConfigMap", value_at(env, &["valueFrom", "configMapKeyRef"]), "name");
            f.add_data("Secret", value_at(env, &["valueFrom", "secretKeyRef"]), "name");
        });
        self.visit_each(container.get("envFrom"), |f, from| {
            f.add_data("ConfigMap", from.get("configMapRef"), "name");
            f.add_data("Secret", from.get("secretRef"), "name");
        });
    }

    fn add_volume(&mut self, volume: &Value) {
        self.add_data("ConfigMap", volume.get("configMap"), "name");
        self.add_data("Secret", volume.get("secret"), "secretName");
        self.add_data("PersistentVolumeClaim", volume.get("persistentVolumeClaim"), "claimName");
        self.visit_each(value_at(volume, &["projected", "sources"]), |f, source| {
            f.add_data("ConfigMap", source.get("configMap"), "name");
            f.add_data("Secret", source.get("secret"), "name");
        });
    }

    /// Adds a reference that may say `optional: true`.
    fn add_data(&mut self, kind: &str, reference: Option<&Value>, key: &str) {
        let Some(reference) = reference else { return };
        let is_optional = reference.get("optional").and_then(Value::as_bool) == Some(true);
        if !is_optional || self.optional == OptionalReferences::Taken {
            self.add_named("", kind, text_at(reference, &[key]));
        }
    }

    fn add_claim_templates(&mut self, body: &Value) {
        self.visit_each(value_at(body, &["spec", "volumeClaimTemplates"]), |f, claim| {
            f.add_cluster_scoped(
                "storage.k8s.io",
                "StorageClass",
                text_at(claim, &["spec", "storageClassName"]),
            );
        });
    }

    fn add_ingress(&mut self, body: &Value) {
        self.add_cluster_scoped(
            "networking.k8s.io",
            "IngressClass",
            text_at(body, &["spec", "ingressClassName"]),
        );
        self.add_named("", "Service", text_at(body, &["spec", "defaultBackend", "service", "name"]));
        self.visit_each(value_at(body, &["spec", "tls"]), |f, tls| {
            f.add_named("", "Secret", text_at(tls, &["secretName"]));
        });
        self.visit_each(value_at(body, &["spec", "rules"]), |f, rule| {
            f.visit_each(value_at(rule, &["http", "paths"]), |f, path| {
                f.add_named("", "Service", text_at(path, &["backend", "service", "name"]));
            });
        });
    }

    /// Collects the references of a route to the receivers of its requests, or of copies of them.
    fn add_route(&mut self, body: &Value) {
        self.visit_each(value_at(body, &["spec", "rules"]), |f, rule| {
            f.visit_each(rule.get("backendRefs"), Self::add_backend);
            f.visit_each(rule.get("filters"), |f, filter| {
                f.add_backend(value_at(filter, &["requestMirror", "backendRef"]).unwrap_or(&Value::Null));
            });
        });
    }

    fn add_backend(&mut self, backend: &Value) {
        let text = |key, default| match text_at(backend, &[key]) {
            "" => default,
            text => text,
        };
        let namespace = text("namespace", self.namespace);
        self.add(text("group", ""), text("kind", "Service"), namespace, text("name", ""));
    }

    /// Adds an object of the same namespace by its apiVersion, kind and name. The given group and
    /// kind count where the reference has none.
    fn add_target(&mut self, target: Option<&Value>, group: &str, kind: &str) {
        let Some(target) = target else { return };
        let group = match text_at(target, &["apiVersion"]) {
            "" => group,
            version => version.split_once('/').map_or("", |(group, _)| group),
        };
        let own = text_at(target, &["kind"]);
        self.add_named(group, if own.is_empty() { kind } else { own }, text_at(target, &["name"]));
    }

    fn add_binding(&mut self, body: &Value) {
        let role = body.get("roleRef").unwrap_or(&Value::Null);
        let group = "rbac.authorization.k8s.io";
        match text_at(role, &["kind"]) {
            "ClusterRole" => self.add_cluster_scoped(group, "ClusterRole", text_at(role, &["name"])),
            kind => self.add_named(group, kind, text_at(role, &["name"])),
        }
        self.visit_each(body.get("subjects"), |f, subject| {
            if text_at(subject, &["kind"]) == "ServiceAccount" {
                f.add("", "ServiceAccount", text_at(subject, &["namespace"]), text_at(subject, &["name"]));
            }
        });
    }

    fn add_service(&mut self, reference: Option<&Value>) {
        if let Some(service) = reference {
            self.add("", "Service", text_at(service, &["namespace"]), text_at(service, &["name"]));
        }
    }

    fn add_annotated(&mut self, body: &Value) {
        let parts = DEPENDS_ON_ANNOTATIONS.into_iter().flat_map(|key| annotated_names(body, key));
        for dependency in parts.filter_map(DependencyText::parse) {
            match dependency {
                DependencyText::Namespaced(group, namespace, kind, name) => {
                    self.add(group, kind, namespace, name);
                }
                DependencyText::Global(group, kind, name) => self.add_cluster_scoped(group, kind, name),
                DependencyText::Near(kind, name) => self.add_named(default_group(kind), kind, name),
            }
        }
    }
}

fn default_group(kind: &str) -> &'static str {
    match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => "apps",
        "Job" | "CronJob" => "batch",
        "Ingress" => "networking.k8s.io",
        _ => "",
    }
}
