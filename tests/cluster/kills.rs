//! Killed with SIGKILL after any of its writes, the next run finishes the work, and makes and
//! deletes nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use controlplane::{AuditEvent, Fault, FaultProxy, Requests, ResponseCut, Rule};

use crate::support::{
    AuditWindow, DEFAULT_TIMEOUT, Daemon, Folder, Repo, TestNamespace, eventually, run, yaml,
};

/// Runs at once; they wait for each other's processes and the server most of the time.
const AT_ONCE: usize = 3;

/// When the process is killed: the server has carried out the write, and the process does or does
/// not know.
#[derive(Clone, Copy, Debug)]
enum KillPoint {
    /// The answer to the n-th write never reached it.
    BeforeAnswer,
    /// The answer reached it, and the next write did not reach the server.
    AfterAnswer,
}

const MOMENTS: [KillPoint; 2] = [KillPoint::BeforeAnswer, KillPoint::AfterAnswer];

/// Returns twenty objects of five kinds.
fn objects() -> Vec<(String, String)> {
    let named = |number: usize| {
        let name = format!("o{number:02}");
        let text = match number % 5 {
            0 => yaml::config_map(&name, "a", "1"),
            1 => yaml::secret(&name, "token", "1"),
            2 => yaml::service(&name, "web"),
            3 => format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n"),
            _ => yaml::deployment(&name, 1, "app:1"),
        };
        (format!("{name}.yaml"), text)
    };
    (0..20).map(named).collect()
}

/// Returns the requests that [`AuditWindow::all_writes`] counts.
fn writes() -> Requests {
    let free = ["/events", "/apis/authorization.k8s.io/", "/apis/coordination.k8s.io/"];
    let writing = ["POST", "PUT", "PATCH", "DELETE"].into_iter().fold(Requests::any(), Requests::method);
    free.into_iter().fold(writing.query_lacks("dryRun"), Requests::path_lacks)
}

/// A proxy that lets so many writes take effect and no more.
struct WriteLimit {
    proxy: FaultProxy,
    most: usize,
    moment: KillPoint,
}

impl WriteLimit {
    fn new(site: &mut TestNamespace<'static>, requests: &Requests, most: usize, moment: KillPoint) -> Self {
        let proxy = site.cluster.fault_proxy(1).unwrap();
        site.through(&proxy);
        Self::of(proxy, requests, most, moment)
    }

    /// Counts from now on what goes through a proxy.
    fn of(proxy: FaultProxy, requests: &Requests, most: usize, moment: KillPoint) -> Self {
        let passed = match moment {
            KillPoint::AfterAnswer => most,
            KillPoint::BeforeAnswer => most - 1,
        };
        proxy.add(Rule::new(requests.clone(), Fault::Pass).times(passed as u64));
        if passed < most {
            proxy.add(Rule::new(requests.clone(), Fault::DropAnswer(ResponseCut::Silence)).times(1));
        }
        proxy.add(Rule::new(requests.clone(), Fault::Refuse(ResponseCut::Silence)));
        Self { proxy, most, moment }
    }

    /// Waits until the server has carried out all the writes that it gets, and their answers are
    /// delivered.
    fn await_writes(&self, window: &AuditWindow<'_>, counts: impl Fn(&AuditEvent) -> bool) {
        eventually(&format!("{} writes, {:?}", self.most, self.moment), DEFAULT_TIMEOUT, || {
            let done = window.all_writes().into_iter().filter(&counts).count();
            let open = self.proxy.open(&writes());
            if done >= self.most && open == 0 { Ok(()) } else { Err(format!("{done} done, {open} open")) }
        });
    }
}

fn start(site: &TestNamespace<'_>, folder: &Path, flags: &[&str]) -> Child {
    spawned(site.command(&[&["apply", folder.to_str().unwrap()], flags].concat()))
}

fn spawned(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the number of creations and of deletions of each object.
fn births_and_deaths(window: &AuditWindow<'_>) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
    let (mut births, mut deaths) = (BTreeMap::new(), BTreeMap::new());
    for event in window.writes() {
        if event.verb.starts_with("delete") {
            *deaths.entry(event.name).or_default() += usize::from(event.code < 300);
        } else {
            *births.entry(event.name).or_default() += usize::from(event.code == 201);
        }
    }
    (births, deaths)
}

/// Works through all the cases, a few at once.
fn each_case(most: usize, case: impl Fn(usize, KillPoint) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let (count, moment) = (number / MOMENTS.len() + 1, MOMENTS[number % MOMENTS.len()]);
                    if count > most {
                        return;
                    }
                    case(count, moment);
                }
            });
        }
    });
}

#[test]
fn after_each_write_of_an_apply() {
    let folder = Folder::new(&objects());
    // 20 objects, and the inventory first.
    each_case(21, |count, moment| {
        let name = format!("kill-{count:02}-{}", u8::from(matches!(moment, KillPoint::AfterAnswer)));
        let mut site = TestNamespace::new(&name);
        let direct = site.with_empty_state();
        let window = site.window();
        let stop = WriteLimit::new(&mut site, &writes(), count, moment);
        let child = start(&site, folder.path(), &[]);
        stop.await_writes(&window, |_| true);
        kill(child);
        direct.apply(folder.path(), &[]).ends(0);
        let (births, deaths) = births_and_deaths(&window);
        assert_eq!(births.len(), 20, "{name}: {births:?}");
        assert!(births.values().all(|births| *births == 1), "{name}: {births:?}");
        assert!(deaths.is_empty(), "{name}: {deaths:?}");
        if count % 7 == 0 {
            let silence = direct.window();
            direct.apply(folder.path(), &[]).ends(0);
            silence.assert_silent();
        }
    });
}

#[test]
fn after_each_deletion_of_a_prune() {
    let removed: BTreeSet<String> = (0..6).map(|number| format!("o{number:02}")).collect();
    each_case(removed.len(), |count, moment| {
        let name = format!("killprune-{count}-{}", u8::from(matches!(moment, KillPoint::AfterAnswer)));
        let mut site = TestNamespace::new(&name);
        let direct = site.with_empty_state();
        let folder = Folder::new(&objects());
        direct.apply(folder.path(), &[]).ends(0);
        for name in &removed {
            folder.remove(&format!("{name}.yaml"));
        }
        let window = site.window();
        let stop = WriteLimit::new(&mut site, &Requests::any().method("DELETE"), count, moment);
        let child = start(&site, folder.path(), &["--prune", "--yes"]);
        stop.await_writes(&window, |event| event.verb == "delete");
        kill(child);
        direct.apply(folder.path(), &["--prune", "--yes"]).ends(0);
        let (births, deaths) = births_and_deaths(&window);
        assert_eq!(deaths.keys().cloned().collect::<BTreeSet<_>>(), removed, "{name}");
        assert!(deaths.values().all(|deaths| *deaths == 1), "{name}: {deaths:?}");
        assert!(births.values().all(|births| *births == 0), "{name}: {births:?}");
    });
}

#[test]
fn after_each_deletion_of_an_uninstall() {
    let leave = |site: &TestNamespace<'_>, left: usize| {
        let mut command = site.bare_command();
        command.args(["uninstall", &site.name, "--delete-objects", "--count", &left.to_string()]);
        command
    };
    // Three objects, then the orders and the inventory.
    each_case(5, |count, moment| {
        let name = format!("killleave-{count}-{}", u8::from(matches!(moment, KillPoint::AfterAnswer)));
        let mut site = TestNamespace::new(&name);
        let direct = site.with_empty_state();
        let folder = Folder::new(&objects()[..3]);
        direct.apply(folder.path(), &[]).ends(0);
        let window = site.window();
        let stop = WriteLimit::new(&mut site, &Requests::any().method("DELETE"), count, moment);
        let child = spawned(leave(&site, 3));
        stop.await_writes(&window, |event| event.verb == "delete");
        kill(child);
        if direct.inventory().is_some() {
            let all = [("ConfigMap", "o00"), ("Secret", "o01"), ("Service", "o02")];
            let left = all.into_iter().filter(|(kind, name)| direct.has(kind, name)).count();
            run(leave(&direct, left)).ends(0);
        }
        let (births, mut deaths) = births_and_deaths(&window);
        assert!(direct.inventory().is_none(), "{name}");
        deaths.retain(|name, _| name.starts_with('o') && name.len() == 3);
        let once = ["o00", "o01", "o02"].map(|name| (name.to_owned(), 1));
        assert_eq!(deaths, BTreeMap::from(once), "{name}");
        assert!(births.values().all(|births| *births == 0), "{name}: {births:?}");
    });
}

#[test]
fn after_a_deletion_of_the_daemon() {
    for moment in MOMENTS {
        let name = format!("killgone-{}", u8::from(matches!(moment, KillPoint::AfterAnswer)));
        let mut site = TestNamespace::new(&name);
        let repo = Repo::new(&objects());
        let mut first = site.daemon(repo.path());
        for number in 0..20 {
            let kind = ["ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment"][number % 5];
            site.await_object(kind, &format!("o{number:02}"));
        }
        assert_eq!(first.stop().code(), Some(0));
        repo.remove("o00.yaml");
        repo.remove("o01.yaml");
        repo.commit("Remove two");
        let (window, direct) = (site.window(), site.with_empty_state());
        let stop = WriteLimit::new(&mut site, &Requests::any().method("DELETE"), 1, moment);
        let mut daemon = site.daemon(repo.path());
        stop.await_writes(&window, |event| event.verb == "delete");
        daemon.kill();
        let _daemon = direct.daemon(repo.path());
        site.await_absence("ConfigMap", "o00");
        site.await_absence("Secret", "o01");
        let (births, deaths) = births_and_deaths(&window);
        assert_eq!(deaths, BTreeMap::from([("o00".to_owned(), 1), ("o01".to_owned(), 1)]), "{name}");
        assert!(births.values().all(|births| *births == 0), "{name}: {births:?}");
    }
}

/// Kills a daemon after some writes, and returns the one that comes after it.
fn daemon_after(
    site: &mut TestNamespace<'static>,
    repo: &Repo,
    stop: &WriteLimit,
    window: &AuditWindow<'_>,
) -> Daemon {
    let direct = site.kubeconfig().to_owned();
    let mut daemon = site.daemon(repo.path());
    stop.await_writes(window, |_| true);
    daemon.kill();
    assert_eq!(direct, site.kubeconfig());
    let mut command = site.command(&["run", repo.path().to_str().unwrap()]);
    command.env("KUBECONFIG", site.cluster.kubeconfig_for(&site.user).unwrap());
    Daemon::start(command)
}

#[test]
fn after_some_writes_of_the_daemon() {
    let repo = Repo::new(&objects());
    for (count, moment) in
        [(1, MOMENTS[0]), (2, MOMENTS[1]), (8, MOMENTS[0]), (15, MOMENTS[1]), (21, MOMENTS[0])]
    {
        let name = format!("killrun-{count}");
        let mut site = TestNamespace::new(&name);
        let window = site.window();
        let stop = WriteLimit::new(&mut site, &writes(), count, moment);
        let _daemon = daemon_after(&mut site, &repo, &stop, &window);
        eventually("all are there, once", DEFAULT_TIMEOUT, || {
            let (births, deaths) = births_and_deaths(&window);
            assert!(deaths.is_empty(), "{name}: {deaths:?}");
            assert!(births.values().all(|births| *births <= 1), "{name}: {births:?}");
            let there = births.values().sum::<usize>();
            if there == 20 { Ok(()) } else { Err(format!("{there}")) }
        });
    }
}

/// Returns a workload with its configuration, and a ConfigMap that stays.
fn revision(number: u32) -> [(&'static str, String); 3] {
    let web = yaml::deployment("web", 1, &format!("app:{number}"));
    [
        ("env.yaml", yaml::config_map("env", "a", &number.to_string())),
        ("web.yaml", web + "        envFrom: [{configMapRef: {name: env}}]\n"),
        ("own.yaml", yaml::config_map("own", "a", "1")),
    ]
}

#[track_caller]
fn await_revision(site: &TestNamespace<'_>, number: u32) {
    site.await_data("env", "a", &number.to_string());
    eventually(&format!("{} runs app:{number}", site.name), DEFAULT_TIMEOUT, || {
        let image = site.value("Deployment", "web", "/spec/template/spec/containers/0/image");
        if image == format!("app:{number}") { Ok(()) } else { Err(image.to_string()) }
    });
    site.await_rollout("web");
    site.await_free_budget();
}

/// Lets the next daemon go on with the rollback and stay there, wherever the first one died.
#[test]
fn after_each_write_of_an_undo() {
    each_case(7, |count, moment| {
        let name = format!("killundo-{count}-{}", u8::from(matches!(moment, KillPoint::AfterAnswer)));
        let mut site = TestNamespace::new(&name);
        let (direct, proxy) = (site.with_empty_state(), site.cluster.fault_proxy(1).unwrap());
        site.through(&proxy);
        let repo = Repo::new(&revision(1));
        let settings = site.configuration(repo.path(), "budget: {soak: 0s}");
        let mut daemon = site.configured(&settings);
        await_revision(&site, 1);
        let old = repo.head();
        for (file, text) in revision(2) {
            repo.write(file, &text);
        }
        repo.commit("Change two of three");
        await_revision(&site, 2);
        daemon.says(&["settled: revision ", &repo.head()[..12]]);
        let born = || {
            ["web", "env", "own"].map(|name| {
                let kind = if name == "web" { "Deployment" } else { "ConfigMap" };
                site.value(kind, name, "/metadata/uid")
            })
        };
        let (before, window) = (born(), direct.window());
        let stop = WriteLimit::of(proxy, &writes(), count, moment);
        let user = format!("{name}-person");
        let orders = AuditWindow::new(direct.cluster, &user);
        let mut command = direct.command(&["rollout", "undo", "deploy/web"]);
        command.env("KUBECONFIG", direct.cluster.kubeconfig_for(&user).unwrap());
        let person = spawned(command);
        eventually("it is ordered", DEFAULT_TIMEOUT, || orders.all_writes().pop().ok_or("it is not"));
        eventually("the daemon has written so much", DEFAULT_TIMEOUT, || {
            let done = window.all_writes().len();
            let is_over = stop.proxy.open(&writes()) == 0 && done >= stop.most;
            if is_over { Ok(()) } else { Err(format!("{done} done")) }
        });
        daemon.kill();
        kill(person);
        let mut next = direct.configured(&settings);
        await_revision(&direct, 1);
        eventually("it is reported to have gone back", DEFAULT_TIMEOUT, || {
            let why = direct.rhumb(&["why", "deploy/web"]).all();
            let is_so = ["phase    RolledBack", "undone by", &old].iter().all(|word| why.contains(word));
            if is_so { Ok(()) } else { Err(why) }
        });
        assert_eq!(born(), before, "{name}");
        window.assert_no_deletes();
        assert_eq!(next.stop().code(), Some(0));
        let log = next.full_log();
        let mut written = log.lines().filter(|line| line.contains(" configured "));
        assert!(written.all(|line| line.contains(&old)), "{name}: {log}");
        assert_eq!(direct.data("own", "a"), "1");
    });
}
