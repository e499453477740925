//! The packaged unit under a real systemd with a real journal, in namespaces of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Host, Repo, TestNamespace, until, yaml};

/// Installs the packaged unit, with the folders of the package below `/run/host`.
fn install(to: &Path, site: &TestNamespace<'_>, repo: &Repo) {
    let unit = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/rhumb.service")).unwrap();
    let unit = unit.replace("/usr/bin/", "/run/host/bin/").replace("/etc/rhumb/", "/run/host/etc/");
    fs::write(to.join("units/rhumb.service"), unit).unwrap();
    for folder in ["bin", "etc"] {
        fs::create_dir(to.join(folder)).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_rhumb"), to.join("bin/rhumb")).unwrap();
    fs::copy(site.kubeconfig(), to.join("etc/kubeconfig")).unwrap();
    let copied = Command::new("cp").arg("-a").arg(repo.path()).arg(to.join("shop")).status().unwrap();
    assert!(copied.success());
    let settings = format!("namespace: {}\nresync: 1h", site.system());
    let text = site.configuration(Path::new("/run/host/shop"), &settings);
    fs::write(to.join("etc/rhumb.yaml"), text).unwrap();
}

#[test]
fn the_packaged_unit_runs_under_systemd() {
    let site = TestNamespace::new("systemd");
    let repo = Repo::new(&[("env.yaml", yaml::config_map("env", "a", "1"))]);
    let Some(host) = Host::boot(|to| install(to, &site, &repo)) else { return };
    let started = host.output(&["systemctl", "start", "rhumb"]);
    assert_eq!((&*started, &*host.shows("ActiveState")), ("", "active"), "{}", host.output(&["journalctl"]));
    let head = repo.head();
    host.await_status(&[&site.name, &head[..12], ": 1 object; next resync "]);
    site.await_data("env", "a", "1");

    // Nobody in particular, and the group that may read the journal.
    let socket = host.output(&["stat", "--format", "%U %G %a", "/run/rhumb/rhumb.sock"]);
    assert_eq!(socket, "rhumb adm 660");
    let status = host.output(&["/run/host/bin/rhumb", "status", "--socket", "/run/rhumb/rhumb.sock"]);
    assert!(status.contains(&head[..12]), "{status}");

    // Nobody reads its memory: what belongs to a process that may be dumped belongs to its user.
    let memory = format!("/proc/{}/mem", host.shows("MainPID"));
    assert_eq!(host.output(&["stat", "--format", "%U", &memory]), "root");

    // The journal has a line to read, and fields to ask by.
    let is_creation = |entry: &&Value| entry["ACTION"] == "create";
    until("the journal has the creation", || host.journal().iter().any(|entry| is_creation(&entry)));
    let journal = host.journal();
    let created = journal.iter().find(is_creation).unwrap();
    assert_eq!((&created["OBJECT_KIND"], &created["REVISION"]), (&"ConfigMap".into(), &head.into()));
    assert!(created["MESSAGE"].as_str().is_some_and(|line| line.contains("/env source=")), "{created}");
    assert!(journal.iter().all(|entry| entry["_TRANSPORT"] != "stdout"), "lines beside: {journal:#?}");

    // A file that is not usable changes nothing.
    let config = host.root().join("run/host/etc/rhumb.yaml");
    let good = fs::read_to_string(&config).unwrap();
    fs::write(&config, good.replace("git:", "gti:")).unwrap();
    host.output(&["systemctl", "reload", "rhumb"]);
    host.await_status(&["new configuration refused: "]);
    assert_eq!(host.shows("ActiveState"), "active");
    fs::write(&config, good.replace("resync: 1h", "resync: 2h")).unwrap();
    host.output(&["systemctl", "reload", "rhumb"]);
    until("the new one is in force", || {
        let status = host.shows("StatusText");
        status.contains(": 1 object; next resync ") && !status.contains("refused")
    });

    // It ends by itself, in time, and a wrong configuration is not tried again.
    host.output(&["systemctl", "stop", "rhumb"]);
    assert_eq!((&*host.shows("ActiveState"), &*host.shows("Result")), ("inactive", "success"));
    fs::write(&config, "kind: Nonsense\n").unwrap();
    host.output(&["systemctl", "start", "rhumb"]);
    assert_eq!((&*host.shows("ActiveState"), &*host.shows("ExecMainStatus")), ("failed", "78"));
    assert_eq!(host.shows("NRestarts"), "0");
}
