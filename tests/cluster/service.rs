//! The daemon as a service: what its manager hears, new configurations, and the end.

use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use controlplane::{Fault, Requests, ResponseCut, Rule};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::support::{
    DEFAULT_TIMEOUT, Daemon, Repo, TestNamespace, at, eventually, receive, run, source, yaml,
};

/// A service manager's socket.
pub(crate) struct Manager {
    dir: TempDir,
    socket: UnixDatagram,
}

impl Manager {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(DEFAULT_TIMEOUT)).unwrap();
        Self { dir, socket }
    }

    /// Starts a service with this configuration.
    pub(crate) fn start(&self, site: &TestNamespace<'_>, text: &str) -> Daemon {
        self.start_with(site, text, |_| {})
    }

    pub(crate) fn start_with(
        &self,
        site: &TestNamespace<'_>,
        text: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> Daemon {
        write(site, text);
        let mut command = site.bare_command();
        command.env("NOTIFY_SOCKET", self.dir.path().join("notify"));
        command.arg("run").arg("--config").arg(site.state.path().join("rhumb.yaml"));
        prepare(&mut command);
        Daemon::start(command)
    }

    /// Waits for the next message that has all these texts.
    #[track_caller]
    pub(crate) fn hears(&self, texts: &[&str]) -> String {
        self.hears_all(texts).pop().unwrap()
    }

    /// Waits for the next message that has all these texts, and returns all up to it.
    #[track_caller]
    pub(crate) fn hears_all(&self, texts: &[&str]) -> Vec<String> {
        let deadline = Instant::now() + DEFAULT_TIMEOUT;
        let mut heard = Vec::new();
        while Instant::now() < deadline {
            let Some(message) = receive(&self.socket) else { break };
            heard.push(String::from_utf8(message).unwrap());
            if texts.iter().all(|text| heard[heard.len() - 1].contains(text)) {
                return heard;
            }
        }
        panic!("the manager did not hear {texts:?}, but {heard:#?}");
    }
}

/// Writes the service's configuration.
pub(crate) fn write(site: &TestNamespace<'_>, text: &str) {
    std::fs::write(site.state.path().join("rhumb.yaml"), text).unwrap();
}

/// Returns a configuration with these sources in the site's namespace.
pub(crate) fn configuration(site: &TestNamespace<'_>, settings: &str, sources: &[(&str, &Repo)]) -> String {
    let mut text = format!("apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\n{settings}\n");
    for (name, repo) in sources {
        text.push_str("---\n");
        text.push_str(&source(name, &site.name, repo.path(), ""));
    }
    text
}

pub(crate) fn repo(name: &str) -> Repo {
    Repo::new(&[("env.yaml", yaml::config_map(name, "a", "1"))])
}

#[test]
fn the_manager_hears_when_the_service_is_up_what_it_does_and_when_it_ends() {
    let site = TestNamespace::new("notify");
    let manager = Manager::new();
    let shop = repo("env");
    let text = site.configuration(shop.path(), "resync: 1h");
    let mut daemon = manager.start_with(&site, &text, |command| {
        command.env("WATCHDOG_USEC", "2000000");
    });
    manager.hears(&["READY=1\n", "STATUS="]);
    manager.hears(&["WATCHDOG=1"]);
    // No crash leaves credentials on the disk.
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"]);
    let revision = shop.head();
    manager.hears(&["STATUS=notify at ", &revision[..12], ": 1 object; next resync ", " UTC"]);
    shop.write("env.yaml", &yaml::config_map("env", "a", "2"));
    shop.write("more.yaml", &yaml::config_map("more", "a", "1"));
    shop.commit("Add one");
    let revision = shop.head();
    manager.hears(&["STATUS=", &revision[..12], ": 2 objects;"]);
    daemon.signal("TERM");
    manager.hears(&["STOPPING=1"]);
    assert_eq!(daemon.ended(DEFAULT_TIMEOUT).code(), Some(0));
}

#[test]
fn the_service_is_up_although_the_api_server_is_not() {
    let mut site = TestNamespace::new("notify-down");
    let manager = Manager::new();
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let rule = proxy.add(Rule::new(Requests::any(), Fault::Refuse(ResponseCut::Reset)));
    let shop = repo("env");
    let mut daemon = manager.start(&site, &site.configuration(shop.path(), ""));
    manager.hears(&["READY=1\nSTATUS=waiting for the API server"]);
    assert!(proxy.hits(rule).fired > 0);
    proxy.clear();
    manager.hears(&["STATUS=notify-down at "]);
    site.await_data("env", "a", "1");
    assert_eq!(daemon.stop().code(), Some(0));
}

// Nothing is lost by asking then, and nobody waits for the answer as long as for the API server.
#[test]
fn a_new_configuration_is_taken_while_the_api_server_is_away() {
    let mut site = TestNamespace::new("reload-down");
    let manager = Manager::new();
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    proxy.add(Rule::new(Requests::any(), Fault::Refuse(ResponseCut::Reset)));
    let (shop, ops) = (repo("shop"), repo("ops"));
    let mut daemon = manager.start(&site, &configuration(&site, "", &[("reload-down", &shop)]));
    manager.hears(&["READY=1\nSTATUS=waiting for the API server"]);
    write(&site, "kind: Configuration\n");
    daemon.signal("HUP");
    manager.hears(&["RELOADING=1"]);
    manager.hears(&["READY=1\nSTATUS=new configuration refused: ", "; waiting for the API server"]);
    write(&site, &configuration(&site, "", &[("reload-down", &shop), ("reload-down-ops", &ops)]));
    daemon.signal("HUP");
    manager.hears(&["RELOADING=1"]);
    manager.hears(&["READY=1\nSTATUS=waiting for the API server"]);
    daemon.says(&["the source reload-down-ops is new"]);
    proxy.clear();
    site.await_data("ops", "a", "1");
    assert_eq!(daemon.stop().code(), Some(0));
}

// Facts from before stay, and are not taken for the present.
#[test]
fn an_api_server_that_goes_away_is_reported_until_it_is_back() {
    let mut site = TestNamespace::new("service-away");
    let manager = Manager::new();
    let proxy = site.cluster.fault_proxy(6).unwrap();
    site.through(&proxy);
    let shop = repo("env");
    let socket = site.state.path().join("rhumb.sock");
    let serve = format!("serve:\n  socket: {}", socket.display());
    let mut daemon = manager.start(&site, &site.configuration(shop.path(), &serve));
    manager.hears(&["STATUS=service-away at "]);
    site.await_data("env", "a", "1");
    let status = || {
        let mut status = site.bare_command();
        status.args(["status", "--socket"]).arg(&socket);
        run(status).ends(0).stdout
    };
    assert!(!status().contains("the API server"));
    proxy.add(Rule::new(Requests::any(), Fault::Refuse(ResponseCut::Reset)));
    proxy.end_open(&Requests::any(), ResponseCut::Reset);
    manager.hears(&["STATUS=the API server has not answered since ", " UTC; service-away at "]);
    assert!(status().contains("\nthe API server has not answered since "), "{}", status());
    proxy.clear();
    manager.hears(&["STATUS=service-away at "]);
    assert!(!status().contains("the API server"));
    assert_eq!(daemon.stop().code(), Some(0));
}

// The service behind a plugin may be away, as the API server may.
#[test]
fn a_credential_plugin_that_gives_nothing_yet_is_waited_for() {
    let site = TestNamespace::new("plugin");
    let manager = Manager::new();
    let shop = repo("env");
    let dir = TempDir::new().unwrap();
    let (answer, kubeconfig) = (dir.path().join("answer"), dir.path().join("kubeconfig"));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         clusters: [{{name: x, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
         users: [{{name: x, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: cat, \
         args: ['{}']}}}}}}]\n\
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n",
        answer.display()
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let mut daemon = manager.start_with(&site, &site.configuration(shop.path(), ""), |command| {
        command.arg("--kubeconfig").arg(&kubeconfig).env("WATCHDOG_USEC", "2000000");
    });
    manager.hears(&["READY=1\nSTATUS=waiting for the credential plugin"]);
    // From then on the manager waits for signs of life.
    manager.hears(&["WATCHDOG=1"]);
    // Its complaint is in the log's own line.
    daemon.says(&["WARN", "the credential plugin failed", "No such file or directory", "retry in 1 s"]);
    let token =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
    std::fs::write(&answer, token).unwrap();
    manager.hears(&["STATUS=waiting for the API server"]);
    assert_eq!(daemon.stop().code(), Some(0));
}

/// Turns a source that is only observed, and has no Lease, into one that is written, and has one.
#[test]
fn a_shared_source_is_written_under_its_lease_from_its_first_write_on() {
    let site = TestNamespace::new("reload-lease");
    let manager = Manager::new();
    let shop = repo("env");
    let enforced = site.configuration(shop.path(), "leases: always");
    let observed = enforced.replace("spec:", "spec:\n  observe: true");
    assert_ne!(observed, enforced);
    let mut daemon = manager.start(&site, &observed);
    manager.hears(&["STATUS=reload-lease at "]);
    let lease = at("Lease", &site.system(), &format!("rhumb-{}", site.name));
    assert!(site.api.get(&lease).is_none());
    write(&site, &enforced);
    daemon.signal("HUP");
    daemon.says(&["serves 1 source by Lease"]);
    site.await_data("env", "a", "1");
    let holder = site.api.get(&lease).unwrap()["spec"]["holderIdentity"].clone();
    assert!(holder.as_str().is_some_and(|holder| !holder.is_empty()), "{holder}");
    // It logs a write after the server has answered it.
    daemon.says(&["created"]);
    let log = daemon.log();
    let said = |words: &str| log.find(words).unwrap();
    assert!(said("serves 1 source by Lease") < said("created"), "{log}");
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn sources_come_go_and_change_without_a_new_process() {
    let site = TestNamespace::new("reload");
    let manager = Manager::new();
    let (shop, ops) = (repo("shop"), repo("ops"));
    let mut daemon = manager.start(&site, &configuration(&site, "", &[("reload-shop", &shop)]));
    manager.hears(&["READY=1"]);
    site.await_data("shop", "a", "1");
    let pid = daemon.pid();
    // One comes.
    write(&site, &configuration(&site, "", &[("reload-shop", &shop), ("reload-ops", &ops)]));
    daemon.signal("HUP");
    manager.hears(&["RELOADING=1\nMONOTONIC_USEC="]);
    manager.hears(&["READY=1"]);
    daemon.says(&["the source reload-ops is new"]);
    site.await_data("ops", "a", "1");
    // One goes: its objects stay, and are not defended any more.
    let window = site.window();
    write(&site, &configuration(&site, "", &[("reload-ops", &ops)]));
    daemon.signal("HUP");
    daemon.says(&["the source reload-shop is gone; its objects stay as they are"]);
    manager.hears(&["RELOADING=1"]);
    manager.hears(&["READY=1"]);
    manager.hears(&["STATUS=reload-ops at ", ": 1 object;"]);
    shop.remove("env.yaml");
    shop.commit("Remove it");
    ops.change("env.yaml", &yaml::config_map("ops", "a", "2"));
    site.await_data("ops", "a", "2");
    assert_eq!(site.data("shop", "a"), "1");
    window.assert_no_deletes();
    let sent: Vec<_> = window.to("configmaps", "shop");
    assert!(sent.is_empty(), "{sent:?}");
    // One changes: from now on it follows another repository, and deletes nothing that it does not
    // name.
    let moved = repo("moved");
    write(&site, &configuration(&site, "", &[("reload-ops", &moved)]));
    daemon.signal("HUP");
    daemon.says(&["the source reload-ops has changed"]);
    site.await_data("moved", "a", "1");
    assert_eq!(site.data("ops", "a"), "2");
    window.assert_no_deletes();
    assert_eq!((daemon.pid(), daemon.is_running()), (pid, true));
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_bad_configuration_keeps_the_one_in_force() {
    let site = TestNamespace::new("reload-bad");
    let manager = Manager::new();
    let shop = repo("env");
    let good = site.configuration(shop.path(), "");
    let mut daemon = manager.start(&site, &good);
    site.await_data("env", "a", "1");
    manager.hears(&["STATUS=reload-bad at "]);
    let unusable = "apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {name: bad}\nspec: {git: {url: \"https://\"}}\n";
    for (text, words) in [
        (good.replace("git:", "gti:"), "is no usable configuration"),
        (format!("{good}---\n{unusable}"), "https://"),
    ] {
        let mark = daemon.mark();
        write(&site, &text);
        daemon.signal("HUP");
        manager.hears(&["RELOADING=1"]);
        manager.hears(&["READY=1", "STATUS=new configuration refused: ", words, "; reload-bad at "]);
        daemon.says_since(mark, &[words, "what was in force stays in force"]);
        // It is really in force.
        let wanted = format!("{mark}");
        shop.change("env.yaml", &yaml::config_map("env", "a", &wanted));
        site.await_data("env", "a", &wanted);
    }
    // A path that is no file is not waited for.
    let file = site.state.path().join("rhumb.yaml");
    std::fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    daemon.signal("HUP");
    manager.hears(&[
        "READY=1",
        "STATUS=new configuration refused: ",
        "it is no regular file; reload-bad at ",
    ]);
    std::fs::remove_file(&file).unwrap();
    // A change that takes a new process is named, and the rest counts.
    write(
        &site,
        &site.configuration(shop.path(), "resync: 7m\nstateDirectory: /nonexistent\nnamespace: elsewhere"),
    );
    daemon.signal("HUP");
    daemon.says(&["restart rhumb for stateDirectory"]);
    daemon.says(&["new configuration: resync has changed"]);
    manager.hears(&["READY=1", "STATUS=restart needed for stateDirectory"]);
    // Mended, it is as if nothing had been.
    write(&site, &good);
    daemon.signal("HUP");
    manager.hears(&["READY=1\nSTATUS=reload-bad "]);
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_reload_in_the_middle_of_many_writes_loses_none() {
    let mut site = TestNamespace::new("reload-work");
    let manager = Manager::new();
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let pause = Duration::from_millis(100);
    proxy.add(Rule::new(Requests::any().method("PATCH"), Fault::Delay(pause, pause)));
    let files: Vec<_> = (0..100)
        .map(|number| (format!("{number}.yaml"), yaml::config_map(&format!("m{number}"), "a", "1")))
        .collect();
    let (many, ops) = (Repo::new(&files), repo("ops"));
    let window = site.window();
    let mut daemon = manager.start(&site, &configuration(&site, "", &[("reload-work", &many)]));
    daemon.says(&["created"]);
    write(&site, &configuration(&site, "", &[("reload-work", &many), ("reload-work-ops", &ops)]));
    daemon.signal("HUP");
    manager.hears(&["RELOADING=1"]);
    proxy.clear();
    site.await_data("ops", "a", "1");
    for number in 0..100 {
        site.await_data(&format!("m{number}"), "a", "1");
    }
    // Each was made once: the answers to those that were on their way were waited for.
    let made: Vec<_> = window.writes().into_iter().filter(|event| event.name.starts_with('m')).collect();
    assert_eq!(made.len(), 100);
    window.assert_no_deletes();
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn reloads_in_the_middle_of_rollouts_begin_none_anew_and_leave_no_claim() {
    let site = TestNamespace::new("reload-roll");
    let manager = Manager::new();
    let names = ["a", "b", "c", "d"];
    let files = |image: &str| names.map(|name| (format!("{name}.yaml"), yaml::deployment(name, 2, image)));
    let shop = Repo::new(&files("app:1"));
    let text = |resync: u32| {
        let settings =
            format!("resync: {resync}m\nbudget: {{maxWorkloads: 1, maxUnavailable: 100%, soak: 1s}}");
        site.configuration(shop.path(), &settings)
    };
    let mut daemon = manager.start(&site, &text(1));
    for name in names {
        site.await_rollout(name);
    }
    for (file, text) in files("app:2") {
        shop.write(&file, &text);
    }
    shop.commit("Change all");
    let image = "/spec/template/spec/containers/0/image";
    for (turn, name) in (2..).zip(names) {
        eventually(&format!("{name} begins to roll"), DEFAULT_TIMEOUT, || {
            let began = names.iter().filter(|name| site.value("Deployment", name, image) == "app:2").count();
            if began + 1 >= turn as usize { Ok(()) } else { Err(format!("{began} have")) }
        });
        write(&site, &text(turn));
        daemon.signal("HUP");
        manager.hears(&["RELOADING=1"]);
        manager.hears(&["READY=1"]);
    }
    for name in names {
        eventually(&format!("{name} has its new image"), DEFAULT_TIMEOUT, || {
            match site.value("Deployment", name, image) {
                found if found == "app:2" => Ok(()),
                other => Err(other.to_string()),
            }
        });
        site.await_rollout(name);
    }
    site.await_free_budget();
    // The old pods' and the new ones'.
    assert_eq!(site.api.list(&site.at("ReplicaSet", "")).len(), 2 * names.len());
    assert_eq!(daemon.stop().code(), Some(0));
}

// Nobody rolls them out any more, and no command says that they wait.
#[test]
fn what_a_source_that_went_wanted_waits_in_no_queue() {
    let site = TestNamespace::new("reload-queue");
    let manager = Manager::new();
    let names = ["a", "b", "c"];
    let files = |image: &str| names.map(|name| (format!("{name}.yaml"), yaml::deployment(name, 1, image)));
    let (shop, ops) = (Repo::new(&files("app:1")), repo("ops"));
    let settings = "budget: {maxWorkloads: 1, maxUnavailable: 100%, soak: 1h}";
    let (first, second) = (("reload-queue", &shop), ("reload-queue-ops", &ops));
    let mut daemon = manager.start(&site, &configuration(&site, settings, &[first, second]));
    for name in names {
        site.await_rollout(name);
    }
    for (file, text) in files("app:2") {
        shop.write(&file, &text);
    }
    shop.commit("Change all");
    let budget = at("ConfigMap", &site.system(), "rollout-budget.rhumb.dev");
    let queued =
        || site.api.value(&budget, "/data/claims").as_str().unwrap_or_default().matches("place").count();
    eventually("two of them wait", DEFAULT_TIMEOUT, || match queued() {
        2 => Ok(()),
        other => Err(other.to_string()),
    });
    write(&site, &configuration(&site, settings, &[second]));
    daemon.signal("HUP");
    daemon.says(&["the source reload-queue is gone"]);
    eventually("nothing waits", DEFAULT_TIMEOUT, || match queued() {
        0 => Ok(()),
        other => Err(other.to_string()),
    });
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut site = TestNamespace::new("stop-twice");
    let manager = Manager::new();
    let proxy = site.cluster.fault_proxy(5).unwrap();
    site.through(&proxy);
    let rule = proxy.add(Rule::new(Requests::any().method("PATCH"), Fault::Refuse(ResponseCut::Silence)));
    let shop = repo("env");
    let mut daemon = manager.start(&site, &site.configuration(shop.path(), ""));
    eventually("a write is on its way", DEFAULT_TIMEOUT, || {
        if proxy.hits(rule).fired > 0 { Ok(()) } else { Err("none is") }
    });
    daemon.signal("TERM");
    manager.hears(&["STOPPING=1"]);
    daemon.signal("TERM");
    // After three seconds without the answer, the first one alone lets it end with 0.
    assert_eq!(daemon.ended(DEFAULT_TIMEOUT).code(), Some(130));
    daemon.says(&["second signal: stopping at once"]);
}

#[test]
fn what_no_new_start_mends_ends_with_78() {
    let site = TestNamespace::new("exit-78");
    let manager = Manager::new();
    let shop = repo("env");
    let good = site.configuration(shop.path(), "");
    let missing =
        good.replace("kind: Configuration\n", "kind: Configuration\nkubeconfig: /nonexistent/kubeconfig\n");
    let unusable = good.replace(&format!("url: {}", shop.path().display()), "url: \"https://\"");
    for (text, words) in [(&missing, "/nonexistent/kubeconfig"), (&unusable, "https://")] {
        let mut daemon = manager.start(&site, text);
        assert_eq!(daemon.ended(DEFAULT_TIMEOUT).code(), Some(78));
        daemon.says(&[words]);
    }
    assert!(site.api.get(&at("ConfigMap", &site.system(), &site.name)).is_none());
}
