//! A ConfigMap that changes: new pods serve what it has now.

use crate::client::{address_of, ask};
use crate::site::{RealSite, SLOW_TIMEOUT};
use crate::support::{eventually, yaml};
use crate::workload::Workload;

#[test]
fn new_pods_serve_the_new_value() {
    let web = Workload::new("web", "app:1")
        .shows("env", "greeting")
        .annotation("rhumb.dev/restart-on-change: \"true\"");
    let config = |value: &str| ("env.yaml".to_owned(), yaml::config_map("env", "greeting", value));
    let service = ("service.yaml".to_owned(), yaml::service("web", "web"));
    let Some(place) = RealSite::new("restarts", &[web.file(), config("one"), service]) else { return };
    place.await_rollout(&web);
    let address = address_of(&place, "web");
    assert!(ask(&place, &address).unwrap().contains("config=one"));
    // Its data have to be known before they change.
    eventually("it tells its data", SLOW_TIMEOUT, || {
        match place.site.value("Deployment", "web", "/metadata/annotations/rhumb.dev~1config") {
            serde_json::Value::String(_) => Ok(()),
            other => Err(other),
        }
    });
    place.push(&[config("two")], "Change the configuration");
    eventually("all pods show the new value", SLOW_TIMEOUT, || {
        let pods = place.pods("web");
        let ask_pod = |pod: &serde_json::Value| {
            let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
            ask(&place, &format!("{ip}:8080"))
        };
        let shown: Vec<_> = pods.iter().map(ask_pod).collect();
        let is_new =
            |one: &Result<String, String>| one.as_ref().is_ok_and(|text| text.contains("config=two"));
        if pods.len() == 3 && shown.iter().all(is_new) { Ok(()) } else { Err(format!("{shown:?}")) }
    });
    place.site.await_free_budget();
}
