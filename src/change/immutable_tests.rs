//! The table of immutable fields; `tests/core_api` holds it against the real API server.

use serde_json::{Value, json};

use super::immutable_fields;
use crate::object::GroupKind;

fn check(kind: &str, live: Value, wanted: Value, expected: &[&str]) {
    let rules = immutable_fields(&GroupKind::parse(kind), &live, &wanted);
    let paths: Vec<_> = rules.iter().map(|rule| rule.path.as_str()).collect();
    assert_eq!(paths, expected, "{kind} {live} {wanted}");
}

#[test]
fn selectors_cannot_change() {
    let selects = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
    for kind in ["Deployment.apps", "DaemonSet.apps", "ReplicaSet.apps"] {
        check(kind, selects(json!({"a": "1"})), selects(json!({"a": "1"})), &[]);
        check(kind, selects(json!({"a": "1"})), selects(json!({"a": "2"})), &[".spec.selector"]);
        check(kind, selects(json!({"a": "1", "b": "1"})), selects(json!({"a": "1"})), &[".spec.selector"]);
        check(kind, selects(json!({"a": "1"})), json!({"spec": {"replicas": 2}}), &[]);
    }
}

#[test]
fn defaults_that_only_the_cluster_shows_are_no_change() {
    let live = json!({"spec": {"serviceName": "db", "podManagementPolicy": "OrderedReady", "replicas": 3,
        "selector": {"matchLabels": {"a": "b"}},
        "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "creationTimestamp": null}, "status": {"phase": "Pending"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                "resources": {"requests": {"storage": "1Gi"}}}}]}});
    let wanted = |size: &str, access: &str| {
        json!({"spec": {"serviceName": "db", "replicas": 5, "selector": {"matchLabels": {"a": "b"}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": [access],
                "resources": {"requests": {"storage": size}}}}]}})
    };
    check("StatefulSet.apps", live.clone(), wanted("1Gi", "ReadWriteOnce"), &[]);
    check("StatefulSet.apps", live.clone(), wanted("1024Mi", "ReadWriteOnce"), &[]);
    check("StatefulSet.apps", live.clone(), wanted("2Gi", "ReadWriteOnce"), &[".spec.volumeClaimTemplates"]);
    check("StatefulSet.apps", live.clone(), wanted("1Gi", "ReadOnlyMany"), &[".spec.volumeClaimTemplates"]);
    let more = json!({"spec": {"serviceName": "x", "podManagementPolicy": "Parallel", "minReadySeconds": 3}});
    check("StatefulSet.apps", live, more, &[".spec.podManagementPolicy", ".spec.serviceName"]);
}

#[test]
fn jobs() {
    let job = |spec: Value| json!({ "spec": spec });
    let template =
        |image: &str| json!({"template": {"spec": {"containers": [{"name": "a", "image": image}]}}});
    check("Job.batch", job(template("a:1")), job(template("a:1")), &[]);
    check("Job.batch", job(template("a:1")), job(template("a:2")), &[".spec.template"]);
    let mut suspended = template("a:1");
    suspended["suspend"] = json!(true);
    check("Job.batch", job(suspended), job(template("a:2")), &[]);
    check(
        "Job.batch",
        job(json!({"completions": 1})),
        job(json!({"completions": 2})),
        &[".spec.completions"],
    );
    check(
        "Job.batch",
        job(json!({"completions": 1, "completionMode": "Indexed"})),
        job(json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed"})),
        &[],
    );
    check("Job.batch", job(json!({"parallelism": 1})), job(json!({"parallelism": 2, "suspend": true})), &[]);
}

#[test]
fn services() {
    let service = |spec: Value| json!({ "spec": spec });
    let live = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"]});
    check("Service", service(live.clone()), service(json!({"ports": []})), &[]);
    check("Service", service(live.clone()), service(json!({"clusterIP": "10.0.0.1"})), &[]);
    check("Service", service(live.clone()), service(json!({"clusterIP": "10.0.0.2"})), &[".spec.clusterIP"]);
    check("Service", service(live.clone()), service(json!({"clusterIP": "None"})), &[".spec.clusterIP"]);
    check("Service", service(live.clone()), service(json!({"clusterIP": ""})), &[]);
    check("Service", service(live.clone()), service(json!({"ipFamilies": ["IPv6"]})), &[".spec.ipFamilies"]);
    check("Service", service(live), service(json!({"type": "ExternalName", "clusterIP": "10.0.0.2"})), &[]);
    let balanced = json!({"type": "LoadBalancer", "loadBalancerClass": "a"});
    let other = json!({"type": "LoadBalancer", "loadBalancerClass": "b"});
    check("Service", service(balanced.clone()), service(other.clone()), &[".spec.loadBalancerClass"]);
    check("Service", service(json!({"type": "ClusterIP"})), service(other), &[]);
}

#[test]
fn claims_and_volumes() {
    let claim = |spec: Value, phase: &str| json!({"spec": spec, "status": {"phase": phase, "capacity": {"storage": "2Gi"}}});
    let size = |size: &str| json!({"resources": {"requests": {"storage": size}}});
    let kind = "PersistentVolumeClaim";
    let storage = ".spec.resources.requests.storage";
    check(kind, claim(size("2Gi"), "Bound"), claim(size("3Gi"), ""), &[]);
    check(kind, claim(size("2Gi"), "Bound"), claim(size("2048Mi"), ""), &[]);
    check(kind, claim(size("2Gi"), "Bound"), claim(size("1Gi"), ""), &[storage]);
    check(kind, claim(size("4Gi"), "Bound"), claim(size("3Gi"), ""), &[]);
    check(kind, claim(size("2Gi"), "Pending"), claim(size("3Gi"), ""), &[storage]);
    let modes = |mode: &str| json!({"accessModes": [mode], "storageClassName": "fast"});
    check(kind, claim(modes("A"), "Bound"), claim(modes("B"), ""), &[".spec.accessModes"]);
    check(
        kind,
        claim(json!({}), "Pending"),
        claim(json!({"storageClassName": "fast", "volumeName": "v"}), ""),
        &[],
    );
    check(
        kind,
        claim(modes("A"), "Bound"),
        claim(json!({"storageClassName": "slow"}), ""),
        &[".spec.storageClassName"],
    );
    let class = |name: &str| json!({ "volumeAttributesClassName": name });
    check(kind, claim(class("a"), "Bound"), claim(class("b"), ""), &[]);
    check(kind, claim(class("a"), "Pending"), claim(class("b"), ""), &[".spec.volumeAttributesClassName"]);

    let volume = |spec: Value| json!({ "spec": spec });
    let path = |path: &str| json!({"hostPath": {"path": path}, "capacity": {"storage": "1Gi"}});
    check("PersistentVolume", volume(path("/a")), volume(path("/b")), &[".spec.hostPath"]);
    check("PersistentVolume", volume(path("/a")), volume(json!({"nfs": {"server": "x"}})), &[".spec.nfs"]);
    check("PersistentVolume", volume(path("/a")), volume(json!({"capacity": {"storage": "2Gi"}})), &[]);
    check(
        "PersistentVolume",
        volume(json!({"volumeMode": "Filesystem"})),
        volume(json!({"volumeMode": "Block"})),
        &[".spec.volumeMode"],
    );
    let csi = |more: Value| {
        let mut csi = json!({"csi": {"driver": "d", "volumeHandle": "h"}});
        csi["csi"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        volume(csi)
    };
    let secret = json!({"controllerExpandSecretRef": {"name": "s"}});
    check("PersistentVolume", csi(json!({})), csi(secret.clone()), &[]);
    check(
        "PersistentVolume",
        csi(secret),
        csi(json!({"controllerExpandSecretRef": {"name": "t"}})),
        &[".spec.csi"],
    );
    check("PersistentVolume", csi(json!({})), csi(json!({"volumeHandle": "i"})), &[".spec.csi"]);
}

#[test]
fn frozen_configuration() {
    let frozen = |data: Value| json!({"immutable": true, "data": data});
    check("ConfigMap", frozen(json!({"a": "1"})), frozen(json!({"a": "1"})), &[]);
    check("ConfigMap", frozen(json!({"a": "1"})), frozen(json!({"a": "2"})), &[".data"]);
    check("ConfigMap", frozen(json!({"a": "1", "b": "1"})), frozen(json!({"a": "1"})), &[".data"]);
    check("ConfigMap", frozen(json!({"a": "1"})), json!({"data": {"a": "1"}}), &[".immutable"]);
    check("ConfigMap", json!({"data": {"a": "1"}}), frozen(json!({"a": "2"})), &[]);
    check(
        "ConfigMap",
        frozen(json!({})),
        json!({"immutable": true, "binaryData": {"a": "eA=="}}),
        &[".binaryData"],
    );
    check("Secret", frozen(json!({"a": "eA=="})), frozen(json!({"a": "eQ=="})), &[".data"]);
    check("Secret", json!({"type": "Opaque"}), json!({"type": "kubernetes.io/tls"}), &[".type"]);
    check("Secret", json!({"type": "Opaque"}), json!({"data": {"a": "eA=="}}), &[]);
}

#[test]
fn pods() {
    let live = json!({"spec": {
        "containers": [{"name": "web", "image": "web:1", "command": ["a"], "resources": {"limits": {"cpu": "1"}},
            "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}]}],
        "volumes": [{"name": "token"}], "nodeName": "n1", "serviceAccountName": "default",
        "tolerations": [{"key": "not-ready", "operator": "Exists"}]}});
    let pod = |container: Value, more: Value| {
        let mut pod = json!({"spec": {"containers": [container]}});
        pod["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pod
    };
    let web = |image: &str| json!({"name": "web", "image": image, "command": ["a"], "resources": {"limits": {"cpu": "1000m"}}});
    check("Pod", live.clone(), pod(web("web:1"), json!({})), &[]);
    check("Pod", live.clone(), pod(web("web:2"), json!({"tolerations": [{"key": "x"}]})), &[]);
    check(
        "Pod",
        live.clone(),
        pod(json!({"name": "web", "command": ["b"]}), json!({})),
        &[".spec.containers"],
    );
    check("Pod", live.clone(), pod(json!({"name": "other"}), json!({})), &[".spec.containers"]);
    check("Pod", live.clone(), pod(web("web:1"), json!({"volumes": [{"name": "tmp"}]})), &[".spec.volumes"]);
    check(
        "Pod",
        live.clone(),
        pod(web("web:1"), json!({"serviceAccountName": "web"})),
        &[".spec.serviceAccountName"],
    );
    let two = json!({"spec": {"containers": [web("web:1"), {"name": "b"}]}});
    check("Pod", live, two, &[".spec.containers"]);
}

#[test]
fn single_fields_of_other_kinds() {
    fn change(kind: &str, before: Value, after: Value, path: &str) {
        check(kind, before.clone(), before.clone(), &[]);
        check(kind, before.clone(), json!({}), &[]);
        check(kind, before, after, &[path]);
    }
    let spec = |value: Value| json!({ "spec": value });
    let role = |name: &str| json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}});
    change("RoleBinding.rbac.authorization.k8s.io", role("a"), role("b"), ".roleRef");
    change("ClusterRoleBinding.rbac.authorization.k8s.io", role("a"), role("b"), ".roleRef");
    let class = "StorageClass.storage.k8s.io";
    change(class, json!({"provisioner": "a"}), json!({"provisioner": "b"}), ".provisioner");
    change(class, json!({"reclaimPolicy": "Delete"}), json!({"reclaimPolicy": "Retain"}), ".reclaimPolicy");
    change(
        class,
        json!({"parameters": {"a": "1", "b": "1"}}),
        json!({"parameters": {"a": "1"}}),
        ".parameters",
    );
    change(class, json!({"volumeBindingMode": "A"}), json!({"volumeBindingMode": "B"}), ".volumeBindingMode");
    let driver = "CSIDriver.storage.k8s.io";
    let attach = |is: bool| spec(json!({ "attachRequired": is }));
    change(driver, attach(true), attach(false), ".spec.attachRequired");
    let priority = "PriorityClass.scheduling.k8s.io";
    change(priority, json!({"value": 1}), json!({"value": 2}), ".value");
    change(
        priority,
        json!({"preemptionPolicy": "Never"}),
        json!({"preemptionPolicy": "X"}),
        ".preemptionPolicy",
    );
    change("RuntimeClass.node.k8s.io", json!({"handler": "a"}), json!({"handler": "b"}), ".handler");
    let controller = |name: &str| spec(json!({ "controller": name }));
    change("IngressClass.networking.k8s.io", controller("a"), controller("b"), ".spec.controller");
    let cidrs = |list: Value| spec(json!({ "cidrs": list }));
    change("ServiceCIDR.networking.k8s.io", cidrs(json!(["a"])), cidrs(json!(["b"])), ".spec.cidrs");
    check("ServiceCIDR.networking.k8s.io", cidrs(json!(["a"])), cidrs(json!(["a", "b"])), &[]);
    change(
        "EndpointSlice.discovery.k8s.io",
        json!({"addressType": "IPv4"}),
        json!({"addressType": "IPv6"}),
        ".addressType",
    );
    change("ResourceClaim.resource.k8s.io", spec(json!({"a": 1})), spec(json!({"a": 2})), ".spec");
    let scopes = |scope: &str| spec(json!({"scopes": [scope]}));
    change("ResourceQuota", scopes("A"), scopes("B"), ".spec.scopes");
    let data = |n: u32| json!({"data": {"n": n}});
    change("ControllerRevision.apps", data(1), data(2), ".data");
    check("Deployment.example.org", spec(json!({"selector": 1})), spec(json!({"selector": 2})), &[]);
}

#[test]
fn definitions_once_they_are_established() {
    let kind = "CustomResourceDefinition.apiextensions.k8s.io";
    let definition = |scope: &str, plural: &str, is: &str| {
        json!({"spec": {"scope": scope, "group": "example.org", "names": {"plural": plural, "kind": "Thing"}},
            "status": {"conditions": [{"type": "Established", "status": is}]}})
    };
    check(
        kind,
        definition("Namespaced", "things", "True"),
        definition("Cluster", "things", ""),
        &[".spec.scope"],
    );
    check(kind, definition("Namespaced", "things", "False"), definition("Cluster", "things", ""), &[]);
    check(
        kind,
        definition("Namespaced", "things", "False"),
        definition("Namespaced", "x", ""),
        &[".spec.names.plural"],
    );
}

#[test]
fn hostile_shapes_break_no_rule() {
    let shapes = [
        json!(null),
        json!(1),
        json!([]),
        json!({"spec": 1, "data": [], "immutable": true}),
        json!({"spec": {"selector": 1, "containers": {}, "cidrs": {}, "clusterIPs": 1}, "status": {"conditions": 1}}),
    ];
    for kind in [
        "Pod",
        "Service",
        "Job.batch",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "ConfigMap",
        "StatefulSet.apps",
        "CustomResourceDefinition.apiextensions.k8s.io",
        "ServiceCIDR.networking.k8s.io",
    ] {
        for live in &shapes {
            for wanted in &shapes {
                let _ = immutable_fields(&GroupKind::parse(kind), live, wanted);
            }
        }
    }
}
