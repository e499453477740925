//! Charts of a repository over HTTPS. They are followed commit by commit. They stay in force while
//! the server is away, gives something else, or is not allowed any more.

use std::fs;
use std::path::PathBuf;

use controlplane::Renderers;
use serde_json::json;
use tar::EntryType;

use crate::chart_archives::archive;
use crate::chart_server::{Answer, Certificate, ChartServer};
use crate::service::write;
use crate::support::{Daemon, ProgramOutput, Repo, TestNamespace, run, until, yaml};

/// A chart that is made of another one, up to the version of that.
const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.2.3\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n\
                        data: {level: '{{ .Values.level }}'}\n";

/// A repository with the chart `part`, in versions whose one object has another name in each.
struct PartServer {
    server: ChartServer,
    certificate: Certificate,
    url: String,
}

impl PartServer {
    fn start() -> Self {
        let certificate = Certificate::new();
        let server = ChartServer::start(&certificate);
        let url = format!("https://127.0.0.1:{}/stable", server.port);
        let places = ["1.0.0", "1.1.0"].map(|version| (version, format!("part-{version}.tgz")));
        server.index("/stable", &places.each_ref().map(|(version, place)| ["part", *version, &**place]));
        let started = Self { server, certificate, url };
        started.publish("1.0.0", "first");
        started.publish("1.1.0", "second");
        started
    }

    /// Gives a version whose object has this name.
    fn publish(&self, version: &str, object: &str) {
        let metadata = format!("apiVersion: v2\nname: part\nversion: {version}\n");
        let template = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {object}}}\n");
        let files = [
            ("Chart.yaml", &*metadata),
            ("values.yaml", "none: set\n"),
            ("templates/object.yaml", &template),
        ];
        let files = files.map(|(path, text)| (format!("part/{path}"), EntryType::Regular, text.to_owned()));
        self.server.answer(&format!("/stable/part-{version}.tgz"), Answer::Content(archive(&files)));
    }
}

/// A source with the programs that trusts the server, wherever that is.
struct Follower {
    site: TestNamespace<'static>,
    authority: PathBuf,
}

impl Follower {
    fn new(name: &str, server: &PartServer) -> Self {
        let site = TestNamespace::new(name);
        let authority = site.state.path().join("ca.pem");
        fs::write(&authority, &server.certificate.certificate).unwrap();
        Self { site, authority }
    }

    /// Returns a configuration that allows this place.
    fn configuration(&self, repo: &Repo, place: &str) -> String {
        let Renderers { kustomize, helm } = Renderers::find().unwrap();
        let programs = format!("programs: {{kustomize: {}, helm: {}}}", kustomize.display(), helm.display());
        let text = self.site.configuration(repo.path(), &programs);
        format!("{}\n  fetch: {{allow: ['{place}']}}\n", text.trim_end())
    }

    fn daemon(&self, text: &str) -> Daemon {
        let mut command = self.site.command_with_config(&["run"], text);
        command.env("SSL_CERT_FILE", &self.authority);
        Daemon::start(command)
    }

    fn lock(&self, repo: &Repo, text: &str) -> ProgramOutput {
        let mut command = self.site.command_with_config(&["lock", repo.path().to_str().unwrap()], text);
        command.env("SSL_CERT_FILE", &self.authority);
        run(command)
    }

    /// Returns the archives that the source keeps.
    fn archives(&self) -> Vec<PathBuf> {
        let folder = self.site.state.path().join("charts/sources").join(&self.site.name).join("sha256");
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Deletes an object, and waits until it is there again.
    fn assert_defended(&self, name: &str) {
        let uid = || self.site.value("ConfigMap", name, "/metadata/uid");
        let before = uid();
        self.site.api.delete(&self.site.at("ConfigMap", name));
        until("it is there again", || uid() != json!(null) && uid() != before);
    }
}

fn chart_of_part(version: &str, url: &str) -> String {
    format!("{CHART}dependencies:\n- {{name: part, version: '{version}', repository: '{url}'}}\n")
}

fn own(text: &str) -> String {
    yaml::config_map("own", "key", text)
}

/// Returns a kustomization with the chart, and with this label on all that it gives.
fn kustomization(version: &str, url: &str, label: &str) -> String {
    format!(
        "labels: [{{pairs: {{level: {label}}}}}]\n\
         helmCharts: [{{name: part, version: {version}, repo: '{url}', releaseName: a}}]\n"
    )
}

#[test]
fn a_locked_chart_stays_in_force_while_its_server_is_away() {
    let part = PartServer::start();
    let follower = Follower::new("chart-away", &part);
    let site = &follower.site;
    let repo = Repo::new(&[
        ("web/Chart.yaml", chart_of_part("~1.0", &part.url)),
        ("web/values.yaml", "level: low\n".to_owned()),
        ("web/templates/settings.yaml", TEMPLATE.to_owned()),
        ("own.yaml", own("one")),
    ]);
    let text = follower.configuration(&repo, &part.url);
    let daemon = follower.daemon(&text);
    daemon.says(&["WARN", "web/Chart.yaml:5: the version ~1.0 of the chart part is a range"]);
    follower.lock(&repo, &text).ends(0);
    part.server.seen();
    repo.commit("Lock");
    site.await_object("ConfigMap", "first");
    site.await_data("settings", "level", "low");
    assert!(!part.server.seen().is_empty(), "it is another store than that of the command");
    repo.change("own.yaml", &own("two"));
    site.await_data("own", "key", "two");
    assert_eq!(part.server.seen(), []);

    // The archive is there: neither a new revision nor a new process needs the server.
    let url = part.url.clone();
    drop(part);
    let window = site.window();
    repo.change("own.yaml", &own("three"));
    site.await_data("own", "key", "three");
    repo.change("web/values.yaml", "level: high\n");
    site.await_data("settings", "level", "high");
    follower.assert_defended("first");
    drop(daemon);
    let mut daemon = follower.daemon(&text);
    repo.change("web/values.yaml", "level: higher\n");
    site.await_data("settings", "level", "higher");

    // Another version is not, and only that root waits.
    repo.remove("web/rhumb.lock");
    repo.write("web/values.yaml", "level: highest\n");
    repo.write("own.yaml", &own("four"));
    repo.change("web/Chart.yaml", &chart_of_part("1.1.0", &url));
    let unreachable = format!("web/Chart.yaml:5: the chart part cannot be fetched from {url}: ");
    daemon.says(&["WARN", &unreachable]);
    site.await_data("own", "key", "four");
    follower.assert_defended("first");
    assert_eq!(site.data("settings", "level"), "higher");
    window.assert_no_deletes();
    assert!(daemon.is_running());
}

#[test]
fn a_chart_that_changes_under_its_version_is_refused_by_name() {
    let part = PartServer::start();
    let follower = Follower::new("chart-changed", &part);
    let site = &follower.site;
    let top = |version: &str, label: &str| kustomization(version, &part.url, label);
    let repo = Repo::new(&[("top/kustomization.yaml", top("1.0.0", "low")), ("own.yaml", own("one"))]);
    let mut daemon = follower.daemon(&follower.configuration(&repo, &part.url));
    let label = || site.value("ConfigMap", "first", "/metadata/labels/level");
    until("it is applied", || label() == json!("low"));

    // The archive that is there counts.
    part.publish("1.0.0", "other");
    let window = site.window();
    repo.change("top/kustomization.yaml", &top("1.0.0", "high"));
    until("it is rendered anew", || label() == json!("high"));

    let archives = follower.archives();
    assert_eq!(archives.len(), 1, "{archives:?}");
    fs::remove_file(&archives[0]).unwrap();
    repo.write("own.yaml", &own("two"));
    repo.change("top/kustomization.yaml", &top("1.0.0", "highest"));
    let place = "top/kustomization.yaml:2: ";
    let changed = format!("{place}the chart part 1.0.0 of {} has changed: its digest was sha256:", part.url);
    daemon.says(&["WARN", &changed, "chart-changed"]);
    site.await_data("own", "key", "two");
    follower.assert_defended("first");
    assert_eq!(label(), json!("high"));
    assert!(!site.has("ConfigMap", "other"));
    window.assert_no_deletes();

    // Another version is the remedy.
    repo.change("top/kustomization.yaml", &top("1.1.0", "highest"));
    site.await_object("ConfigMap", "second");
    site.await_absence("ConfigMap", "first");
    assert!(daemon.is_running());
}

#[test]
fn a_place_is_allowed_and_refused_by_a_new_configuration() {
    let part = PartServer::start();
    let follower = Follower::new("chart-reload", &part);
    let site = &follower.site;
    let top = |version: &str, label: &str| kustomization(version, &part.url, label);
    let repo = Repo::new(&[("top/kustomization.yaml", top("1.0.0", "low")), ("own.yaml", own("one"))]);
    let allowed = follower.configuration(&repo, &part.url);
    let elsewhere = follower.configuration(&repo, "https://charts.example.org");
    let refused =
        format!("top/kustomization.yaml:2: the chart part 1.0.0 may not be fetched from {}", part.url);
    let mut daemon = follower.daemon(&elsewhere);
    daemon.says(&["WARN", &refused]);
    site.await_data("own", "key", "one");
    assert_eq!(part.server.seen(), []);
    assert!(!site.has("ConfigMap", "first"));

    write(site, &allowed);
    daemon.signal("HUP");
    site.await_object("ConfigMap", "first");
    assert!(!part.server.seen().is_empty());

    // The archive is there, and may not be used any more.
    let window = site.window();
    let mark = daemon.mark();
    write(site, &elsewhere);
    daemon.signal("HUP");
    daemon.says_since(mark, &["WARN", &refused]);
    repo.write("top/kustomization.yaml", &top("1.0.0", "high"));
    repo.change("own.yaml", &own("two"));
    site.await_data("own", "key", "two");
    follower.assert_defended("first");
    assert_eq!(site.value("ConfigMap", "first", "/metadata/labels/level"), json!("low"));
    assert_eq!(site.data("own", "key"), "two");
    window.assert_no_deletes();

    // It is no matter of the commit.
    write(site, &allowed);
    daemon.signal("HUP");
    until("it is rendered anew", || {
        site.value("ConfigMap", "first", "/metadata/labels/level") == json!("high")
    });
    assert!(daemon.is_running());
}
