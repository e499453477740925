//! The kubeconfig comes to name another cluster while rhumb runs.

use std::fs;

use controlplane::{Answer, Fault, Requests, ResponseCut, Rule};

use crate::orders::orders_of;
use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, DedicatedCluster, Repo, TestNamespace, until, yaml,
};

#[test]
fn nothing_is_written_to_a_cluster_that_the_kubeconfig_names_later() {
    let mut site = TestNamespace::new("another");
    let other = DedicatedCluster::bare();
    let proxy = site.cluster.fault_proxy(11).unwrap();
    site.through(&proxy);
    let kubeconfig = site.state.path().join("kubeconfig");
    fs::copy(site.kubeconfig(), &kubeconfig).unwrap();
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let mut command = site.command(&["run", repo.path().to_str().unwrap()]);
    command.arg("--kubeconfig").arg(&kubeconfig);
    let mut daemon = Daemon::start(command);
    site.await_data("env", "a", "1");
    // It comes with the first objects, before or after them.
    until("the orders object", || site.api.get(&orders_of(&site, "another")).is_some());
    let (here, there) = (site.window(), AuditWindow::new(&other, &site.user));

    // The same user is known there, and may do everything.
    fs::copy(other.kubeconfig_for(&site.user).unwrap(), &kubeconfig).unwrap();
    let refused = Fault::Replace(Answer::error(401, "Unauthorized"));
    proxy.add(Rule::new(Requests::any(), refused));
    proxy.end_open(&Requests::any().watches(), ResponseCut::Close);
    repo.change("env.yaml", &yaml::config_map("env", "a", "2"));
    // By this code systemd knows that it must not be started again.
    assert_eq!(daemon.ended(DEFAULT_TIMEOUT).code(), Some(78));
    daemon.says(&["error", "the kubeconfig names another cluster now", "kube-system"]);
    here.assert_silent();
    there.assert_silent();
    assert!(!there.calls().is_empty(), "it was never asked who it is");
}
