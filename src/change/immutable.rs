//! The API's table of fields that cannot change: the update validation of Kubernetes 1.36
//! (`pkg/apis/*/validation`, `apiextensions-apiserver/pkg/apis/apiextensions/validation`).

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::compare::{ListComparison, compare_quantities, is_different};
use crate::object::{GroupKind, text_at, value_at};

/// A field that the API server does not let change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImmutableField {
    /// The field, as people write it: `.spec.selector`.
    pub path: String,
    /// The reason, as a sentence without its full stop.
    pub text: &'static str,
}

const IMMUTABLE_MESSAGE: &str = "field is immutable";

/// Names the fields of a desired content that the API server would refuse to change on this live
/// object.
///
/// Conservative: what it names is refused, but the server may refuse more. A value that only the
/// cluster shows is taken as a default, not as a change. A field that only leaves the manifest is
/// therefore named only in maps without defaults (`data`, `parameters`, `matchLabels`).
pub fn immutable_fields(kind: &GroupKind, live: &Value, wanted: &Value) -> Vec<ImmutableField> {
    let check = ImmutabilityCheck { live, wanted };
    match (&*kind.group, &*kind.kind) {
        ("", "ConfigMap") => check.frozen_fields(&["data", "binaryData"]),
        ("", "Secret") => [check.frozen_fields(&["data"]), check.fields(&[&["type"]])].concat(),
        ("", "PersistentVolume") => check.volume(),
        ("", "PersistentVolumeClaim") => check.claim(),
        ("", "Pod") => check.pod(),
        ("", "ResourceQuota") => check.fields(&[&["spec", "scopes"]]),
        ("", "Service") => check.service(),
        ("apps", "ControllerRevision") => check.fields(&[&["data"]]),
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet") => check.fields(&[&["spec", "selector"]]),
        ("apps", "StatefulSet") => {
            check.spec_but(&MUTABLE_STATEFUL_SET_FIELDS, STATEFUL_SET_MESSAGE, ListComparison::Exact)
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => check.definition(),
        ("batch", "Job") => check.job(),
        ("certificates.k8s.io", "ClusterTrustBundle") => check.fields(&[&["spec", "signerName"]]),
        ("certificates.k8s.io", "PodCertificateRequest")
        | ("resource.k8s.io", "ResourceClaim" | "ResourceClaimTemplate")
        | ("storage.k8s.io", "VolumeAttachment")
        | ("storagemigration.k8s.io", "StorageVersionMigration") => check.fields(&[&["spec"]]),
        ("discovery.k8s.io", "EndpointSlice") => check.fields(&[&["addressType"]]),
        ("networking.k8s.io", "IngressClass") => check.fields(&[&["spec", "controller"]]),
        ("networking.k8s.io", "IPAddress") => check.fields(&[&["spec", "parentRef"]]),
        ("networking.k8s.io", "ServiceCIDR") => check.cidrs(),
        ("node.k8s.io", "RuntimeClass") => check.fields(&[&["handler"]]),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            check.fields_because(&[&["roleRef"]], "cannot change roleRef")
        }
        ("scheduling.k8s.io", "PriorityClass") => check.fields(&[&["value"], &["preemptionPolicy"]]),
        ("storage.k8s.io", "CSIDriver") => {
            check.fields(&[&["spec", "attachRequired"], &["spec", "volumeLifecycleModes"]])
        }
        ("storage.k8s.io", "CSIStorageCapacity") => check.fields(&[&["nodeTopology"], &["storageClassName"]]),
        ("storage.k8s.io", "StorageClass") => check.fields(&IMMUTABLE_STORAGE_CLASS_PATHS),
        ("storage.k8s.io", "VolumeAttributesClass") => check.fields(&[&["driverName"], &["parameters"]]),
        _ => Vec::new(),
    }
}

const MUTABLE_STATEFUL_SET_FIELDS: [&str; 7] = [
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
];
const STATEFUL_SET_MESSAGE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
     'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
     'minReadySeconds' are forbidden";
const IMMUTABLE_STORAGE_CLASS_PATHS: [&[&str]; 4] =
    [&["parameters"], &["provisioner"], &["reclaimPolicy"], &["volumeBindingMode"]];
const IMMUTABLE_JOB_PATHS: [&[&str]; 6] = [
    &["spec", "backoffLimitPerIndex"],
    &["spec", "completionMode"],
    &["spec", "managedBy"],
    &["spec", "podFailurePolicy"],
    &["spec", "selector"],
    &["spec", "successPolicy"],
];
/// The fields of a `PersistentVolume`'s spec that are no volume source, and that may change.
const MUTABLE_VOLUME_FIELDS: [&str; 7] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
];
/// The fields of a Pod that may change, at least in one direction.
const MUTABLE_POD_FIELDS: [&str; 7] = [
    "activeDeadlineSeconds",
    "containers",
    "ephemeralContainers",
    "initContainers",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
];
const POD_MESSAGE: &str = "pod updates may not change fields other than image, activeDeadlineSeconds, \
     terminationGracePeriodSeconds and tolerations";
const VOLUME_CLAIM_MESSAGE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

struct ImmutabilityCheck<'a> {
    live: &'a Value,
    wanted: &'a Value,
}

impl ImmutabilityCheck<'_> {
    /// Returns the rule for a field, if the manifest asks for another value.
    fn field(&self, path: &[&str], text: &'static str) -> Option<ImmutableField> {
        let name = path.last()?;
        is_different(name, value_at(self.live, path), value_at(self.wanted, path)?, ListComparison::Exact)
            .then(|| rule(path, text))
    }

    fn fields(&self, paths: &[&[&str]]) -> Vec<ImmutableField> {
        self.fields_because(paths, IMMUTABLE_MESSAGE)
    }

    fn fields_because(&self, paths: &[&[&str]], text: &'static str) -> Vec<ImmutableField> {
        paths.iter().filter_map(|path| self.field(path, text)).collect()
    }

    /// Returns all of the spec but some of its keys.
    fn spec_but(&self, mutable: &[&str], text: &'static str, lists: ListComparison) -> Vec<ImmutableField> {
        let Some(wanted) = self.wanted.get("spec").and_then(Value::as_object) else { return Vec::new() };
        let fixed = wanted.iter().filter(|(key, _)| !mutable.contains(&key.as_str()));
        fixed
            .filter(|(key, value)| is_different(key, value_at(self.live, &["spec", key]), value, lists))
            .map(|(key, _)| rule(&["spec", key], text))
            .collect()
    }

    /// Returns a ConfigMap or Secret that was made immutable.
    fn frozen_fields(&self, fields: &[&str]) -> Vec<ImmutableField> {
        const TEXT: &str = "field is immutable when `immutable` is set";
        if self.live.get("immutable") != Some(&Value::Bool(true)) {
            return Vec::new();
        }
        let none = Value::Object(Map::new());
        let mut rules = Vec::new();
        if self.wanted.get("immutable") != Some(&Value::Bool(true)) {
            rules.push(rule(&["immutable"], TEXT));
        }
        for field in fields {
            let wanted = self.wanted.get(*field).filter(|value| !value.is_null()).unwrap_or(&none);
            let live = self.live.get(*field).unwrap_or(&none);
            if is_different(field, Some(live), wanted, ListComparison::Exact) {
                rules.push(rule(&[field], TEXT));
            }
        }
        rules
    }

    fn job(&self) -> Vec<ImmutableField> {
        let mut rules = self.fields(&IMMUTABLE_JOB_PATHS);
        let is_indexed = text_at(self.live, &["spec", "completionMode"]) == "Indexed";
        if !is_indexed {
            rules.extend(self.field(&["spec", "completions"], IMMUTABLE_MESSAGE));
        }
        // Of a suspended Job, some of the template may change: the server decides.
        if value_at(self.live, &["spec", "suspend"]) != Some(&Value::Bool(true)) {
            rules.extend(self.field(&["spec", "template"], IMMUTABLE_MESSAGE));
        }
        rules
    }

    fn service(&self) -> Vec<ImmutableField> {
        const TEXT: &str = "may not change once set";
        let external = "ExternalName";
        let wanted_type = match text_at(self.wanted, &["spec", "type"]) {
            "" => text_at(self.live, &["spec", "type"]),
            wanted => wanted,
        };
        if [text_at(self.live, &["spec", "type"]), wanted_type].contains(&external) {
            return Vec::new();
        }
        let mut rules = Vec::new();
        let address = text_at(self.live, &["spec", "clusterIP"]);
        let wanted = text_at(self.wanted, &["spec", "clusterIP"]);
        if !address.is_empty() && !wanted.is_empty() && address != wanted {
            rules.push(rule(&["spec", "clusterIP"], TEXT));
        }
        let first =
            |object: &Value, key| value_at(object, &["spec", key]).and_then(|list| list.get(0)).cloned();
        for key in ["clusterIPs", "ipFamilies"] {
            let (live, wanted) = (first(self.live, key), first(self.wanted, key));
            let is_headless = address == "None";
            if live.is_some() && wanted.is_some() && live != wanted && !(key == "ipFamilies" && is_headless) {
                rules.push(rule(&["spec", key], TEXT));
            }
        }
        let class = text_at(self.wanted, &["spec", "loadBalancerClass"]);
        let is_balanced =
            text_at(self.live, &["spec", "type"]) == "LoadBalancer" && wanted_type == "LoadBalancer";
        if is_balanced && !class.is_empty() && class != text_at(self.live, &["spec", "loadBalancerClass"]) {
            rules.push(rule(&["spec", "loadBalancerClass"], TEXT));
        }
        rules
    }

    fn claim(&self) -> Vec<ImmutableField> {
        let is_bound = text_at(self.live, &["status", "phase"]) == "Bound";
        let mut mutable = vec!["resources"];
        for (may_change, key) in [
            (is_bound, "volumeAttributesClassName"),
            (text_at(self.live, &["spec", "volumeName"]).is_empty(), "volumeName"),
            (value_at(self.live, &["spec", "storageClassName"]).is_none(), "storageClassName"),
        ] {
            if may_change {
                mutable.push(key);
            }
        }
        let mut rules = self.spec_but(&mutable, VOLUME_CLAIM_MESSAGE, ListComparison::Exact);
        rules.extend(self.claim_size(is_bound));
        rules
    }

    /// Returns the rule about the size of a claim. That of an unbound one cannot change; that of a
    /// bound one cannot fall below its volume's.
    fn claim_size(&self, is_bound: bool) -> Option<ImmutableField> {
        const PATH: [&str; 4] = ["spec", "resources", "requests", "storage"];
        let order = compare_quantities(value_at(self.wanted, &PATH)?, value_at(self.live, &PATH)?)?;
        let capacity = value_at(self.live, &["status", "capacity", "storage"]);
        match (is_bound, order) {
            (_, Ordering::Equal) | (true, Ordering::Greater) => None,
            (false, _) => Some(rule(&PATH, VOLUME_CLAIM_MESSAGE)),
            (true, Ordering::Less) => {
                let order = compare_quantities(value_at(self.wanted, &PATH)?, capacity?)?;
                (order != Ordering::Greater)
                    .then(|| rule(&PATH, "field can not be less than status.capacity"))
            }
        }
    }

    fn volume(&self) -> Vec<ImmutableField> {
        const TEXT: &str = "spec.persistentvolumesource is immutable after creation";
        let has_affinity = value_at(self.live, &["spec", "nodeAffinity"]).is_some();
        let mut rules = self.spec_but(
            &[&MUTABLE_VOLUME_FIELDS[..], &["nodeAffinity", "volumeMode"]].concat(),
            TEXT,
            ListComparison::Exact,
        );
        if rules.iter().any(|rule| rule.path == ".spec.csi") && self.is_expand_secret_addition() {
            rules.retain(|rule| rule.path != ".spec.csi");
        }
        rules.extend(self.field(&["spec", "volumeMode"], IMMUTABLE_MESSAGE));
        if has_affinity {
            rules.extend(self.field(&["spec", "nodeAffinity"], IMMUTABLE_MESSAGE));
        }
        rules
    }

    /// Returns whether a CSI volume only gets the secret for its expansion, which may be added
    /// later.
    fn is_expand_secret_addition(&self) -> bool {
        const KEY: &str = "controllerExpandSecretRef";
        let (Some(live), Some(wanted)) =
            (value_at(self.live, &["spec", "csi"]), value_at(self.wanted, &["spec", "csi"]))
        else {
            return false;
        };
        let mut without = wanted.clone();
        if let Some(without) = without.as_object_mut() {
            without.remove(KEY);
        }
        live.get(KEY).is_none() && !is_different("csi", Some(live), &without, ListComparison::Exact)
    }

    fn pod(&self) -> Vec<ImmutableField> {
        let mut rules = self.spec_but(&MUTABLE_POD_FIELDS, POD_MESSAGE, ListComparison::MayGrow);
        for list in ["containers", "initContainers"] {
            let Some(Value::Array(wanted)) = value_at(self.wanted, &["spec", list]) else { continue };
            let imageless: Value = wanted.iter().map(without_image).collect();
            let live = value_at(self.live, &["spec", list]);
            let is_longer = live.and_then(Value::as_array).map(Vec::len) != Some(wanted.len());
            if is_longer || is_different(list, live, &imageless, ListComparison::MayGrow) {
                rules.push(rule(&["spec", list], POD_MESSAGE));
            }
        }
        rules
    }

    fn definition(&self) -> Vec<ImmutableField> {
        let mut rules = self.fields(&[&["spec", "group"], &["spec", "names", "plural"]]);
        let conditions = value_at(self.live, &["status", "conditions"]).and_then(Value::as_array);
        let is_established = conditions.into_iter().flatten().any(|condition| {
            text_at(condition, &["type"]) == "Established" && text_at(condition, &["status"]) == "True"
        });
        if is_established {
            rules.extend(self.fields(&[&["spec", "scope"], &["spec", "names", "kind"]]));
        }
        rules
    }

    fn cidrs(&self) -> Vec<ImmutableField> {
        const PATH: [&str; 2] = ["spec", "cidrs"];
        let none = json!([]);
        let list = |object| value_at(object, &PATH).unwrap_or(&none).as_array().cloned().unwrap_or_default();
        let (live, wanted) = (list(self.live), list(self.wanted));
        let adds_second = live.len() == 1 && wanted.len() == 2 && live.first() == wanted.first();
        let is_fixed = !wanted.is_empty() && live != wanted && !adds_second;
        is_fixed.then(|| rule(&PATH, IMMUTABLE_MESSAGE)).into_iter().collect()
    }
}

fn without_image(container: &Value) -> Value {
    let mut container = container.clone();
    if let Some(container) = container.as_object_mut() {
        container.remove("image");
    }
    container
}

fn rule(path: &[&str], text: &'static str) -> ImmutableField {
    ImmutableField { path: crate::fields::FieldPath::of_keys(path).to_string(), text }
}
