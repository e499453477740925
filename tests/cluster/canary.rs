//! A secret that is put anywhere comes out nowhere: not plain, encoded, escaped or as an unsalted
//! hash.
//!
//! `plants` and `estate` put the canaries into their places, and `search` looks for them.

mod fixture;
mod notifications;
mod plants;
mod search;
mod wrong;

use serde_json::json;

use self::fixture::{CanaryFixture, command_lines, exchange_over_tcp, state};
use self::search::{Canary, SearchedTexts};
use crate::support::{Daemon, DedicatedCluster, ServerBehavior, at, eventually, until};

/// Each secret by where it is put.
const PUT: [&str; 59] = [
    // In manifests.
    "data",
    "stringData",
    "bytes in data",
    "a value that is replaced",
    "a value that is new",
    "an immutable Secret",
    "a changed immutable Secret",
    "a Secret that goes",
    "a Secret of kubectl's",
    "a Secret that restarts pods",
    "another value of restarts",
    "a Secret without its keys",
    "a Secret that is no JSON",
    "text where a truth value belongs",
    "an unknown field",
    "a mapping for a value",
    "data that is no base64",
    "an open quote",
    "a line with colons",
    "a key that is there twice",
    "an alias",
    "a Secret in a List",
    "a Secret of a List of them",
    "kubectl's copy in a manifest",
    "an open quote in a List",
    "a mapping for a value in a List",
    "a generator of kustomize",
    "a patch of kustomize",
    "a literal that kustomize refuses",
    "a Secret that kustomize generates",
    "a value that a chart fails with",
    "the URL of a submodule",
    "a Secret of sops",
    "a Secret of sops that was edited",
    // By others, in the cluster.
    "drift",
    "what another tool remembers",
    "the URL of a Source in the cluster",
    // In answers of the API server.
    "a Secret that a policy denies",
    "a proxy's page",
    "an error of validation",
    "a denial",
    "a conflict",
    "a webhook that fails",
    "an answer of no sense",
    "a warning of the server",
    "the error of a watch",
    // In credentials.
    "the password in a URL",
    "the stored password of git",
    "the SSH key",
    "another token of the kubeconfig",
    "a token in a query",
    "the environment of a credential plugin",
    "an argument of a credential plugin",
    "the words of a credential plugin",
    "the token of the page",
    "the secret of webhooks",
    "the token of a webhook",
    "the token of a forge",
    "an environment variable",
];

/// The places where a URL is the secret.
const URLS: [&str; 2] = ["the URL of Slack", "the path of a webhook's URL"];

fn canaries() -> Vec<Canary> {
    PUT.into_iter().chain(URLS).map(Canary::of).collect()
}

#[test]
fn no_output_of_a_service_has_a_secret() {
    let cluster = DedicatedCluster::bare();
    let estate = CanaryFixture::on(&cluster);
    let mut places = SearchedTexts::default();
    let mut daemon = estate.start(&["--log-level", "trace"]);
    grow(&estate, &daemon);
    ask(&estate, &daemon, &mut places);
    run_commands(&estate, &mut places);
    annoy(&estate, &daemon, &mut places);
    for (place, text) in estate.written() {
        places.add(place, text);
    }
    for letter in estate.letters.heard() {
        places.add("a notification", letter.body);
    }
    keep(&estate, &mut places);
    // However it ends.
    daemon.signal("ABRT");
    daemon.ended(crate::support::DEFAULT_TIMEOUT);
    places.add("the log", daemon.full_log());
    // git alone gives up the waits of the one before. A silent server would be waited for once more
    // on top of that, before the memory counts.
    estate.remote.set(ServerBehavior::Repeating);
    let mut daemon = estate.start(&["--log-level", "trace", "--log-format", "json"]);
    daemon.says(&["remote error"]);
    daemon.says(&["not carried out", "garbled"]);
    daemon.stop();
    places.add("the log as JSON", daemon.full_log());
    places.add("what the service manager heard", estate.heard.lock().unwrap().clone());
    // Each of them was really there.
    for secret in plants::REFUSED {
        assert!(places.text("the log").contains(&format!("/{secret}")), "nothing is reported of {secret}");
    }
    for (place, word) in [
        ("the log", "remote error"),
        ("the log", "list-broken.yaml"),
        ("the log", "list-nested.yaml"),
        ("the log", "kustomize/kustomization.yaml: kustomize fails, and its words are not shown"),
        ("the log", "literal/kustomization.yaml: kustomize fails, and its words are not shown"),
        ("the log", "chart/templates/a.yaml:4: helm does not render it: execution error"),
        ("what the service manager heard", "STATUS="),
        ("a notification", "prune-waiting"),
        ("the status of a Source", "Reconciling"),
        ("the processes", "remote-https"),
    ] {
        assert!(places.text(place).contains(word), "{place}: {}", places.text(place));
    }
    places.show_none_of(&canaries());
    // The one that it is let in by.
    places.show_none_of(&[Canary::that_is("the token of the kubeconfig", &estate.token)]);
}

/// Brings everything good, then everything bad.
fn grow(estate: &CanaryFixture<'_>, daemon: &Daemon) {
    let site = &estate.site;
    site.await_data("env", "a", "one");
    // They are written side by side, in no order.
    for (file, _) in plants::first() {
        if let Some(name) = file.strip_suffix(".yaml").filter(|name| !["web", "env"].contains(name)) {
            site.await_object("Secret", name);
        }
    }
    let mark = daemon.mark();
    let drift = json!({"data": {"a": Canary::of("drift").base64()}});
    site.api.merge(&site.at("Secret", "drifting"), "somebody", &drift);
    // As kapp does.
    let remembered = json!({"data": {"a": Canary::of("what another tool remembers").base64()}}).to_string();
    let annotations = json!({"metadata": {"annotations": {"kapp.k14s.io/original": remembered}}});
    site.api.merge(&site.at("Secret", "data"), "kapp", &annotations);
    daemon.says_since(mark, &["drift repaired", "Secret canary/drifting"]);
    // A pending deletion, and who is notified of it.
    estate.repo.remove("going.yaml");
    publish(estate, "Remove one");
    eventually("all are reported", crate::support::DEFAULT_TIMEOUT, || {
        let heard = estate.letters.heard();
        let is_notified = |begin: &str| heard.iter().any(|letter| letter.path.starts_with(begin));
        if is_notified("/canary") && is_notified("/services") { Ok(()) } else { Err(format!("{heard:?}")) }
    });
    // A source that nobody answers for keeps all deletions back.
    let password = Canary::of("the URL of a Source in the cluster").text();
    let url = format!("https://user:{password}@127.0.0.1:1/repo.git");
    let source = json!({"apiVersion": "rhumb.dev/v1alpha1", "kind": "Source", "metadata": {"name": "there"},
        "spec": {"git": {"url": url}, "namespace": "there"}});
    site.api.create(&at("Source", &site.system(), ""), "people", &source);
    // Another source is another loop: what follows is about the one that runs from now on, to the
    // end.
    eventually("the loop follows the Source", crate::support::DEFAULT_TIMEOUT, || {
        let status = estate.ask("GET /v1/status", "");
        if status.contains("\"name\":\"there\"") { Ok(()) } else { Err(status) }
    });
    eventually("the Source has a status", crate::support::DEFAULT_TIMEOUT, || {
        let status = site.api.value(&at("Source", &site.system(), "there"), "/status").to_string();
        if status.contains("Reconciling") { Ok(()) } else { Err(status) }
    });
    plants::spoilt(&estate.proxy);
    for (file, text) in plants::second().into_iter().chain(plants::within()) {
        estate.repo.write(file, &text);
    }
    estate.repo.write("edited.yaml", &estate.edited);
    let mark = daemon.mark();
    publish(estate, "Spoil all");
    for secret in plants::REFUSED {
        daemon.says_since(mark, &["not carried out", &format!("Secret canary/{secret}")]);
    }
    site.await_object("Secret", "made");
}

fn publish(estate: &CanaryFixture<'_>, message: &str) {
    estate.repo.commit(message);
    estate.repo.git(&["push", "--quiet", "origin", "HEAD:main"]);
}

/// Adds all answers over HTTP.
fn ask(estate: &CanaryFixture<'_>, daemon: &Daemon, places: &mut SearchedTexts) {
    let name = &estate.site.name;
    let mut paths: Vec<String> = [
        "/",
        "/livez",
        "/readyz",
        "/metrics",
        "/v1/status",
        "/v1/objects",
        "/v1/diff",
        "/v1/events?follow=no",
        "/nowhere",
        "/v1/objects?phase=Nowhere",
        "/v1/diff?source=nowhere",
    ]
    .map(str::to_owned)
    .into();
    paths.push(format!("/v1/diff?source={name}"));
    // As those do who know it from elsewhere.
    let token = Canary::of("a token in a query").plain();
    paths.extend(
        ["status", "objects", "diff", "events"].map(|page| format!("/v1/{page}?token={token}&follow=no")),
    );
    for file in estate.repo.path().read_dir().unwrap().flatten() {
        let file = file.file_name().into_string().unwrap();
        if let Some(object) = file.strip_suffix(".yaml") {
            for view in ["", "?view=yaml", "?view=text"] {
                paths.push(format!("/v1/objects/Secret/{name}/{object}{view}"));
            }
        }
    }
    paths.push(format!("/v1/objects/Secret/{name}/going?view=yaml"));
    paths.push(format!("/v1/objects/Deployment.apps/{name}/web?view=yaml"));
    for path in paths {
        let answer = estate.ask(&format!("GET {path}"), "");
        places.add(format!("GET {}", path.replace(&token, "...")), answer);
    }
    let shown = |object: &str| places.text(&format!("GET /v1/objects/Secret/{name}/{object}?view=yaml"));
    assert!(shown("data").contains("<masked>") && shown("going").contains("<masked>"), "{}", shown("data"));
    let line = daemon.says(&["answering on http://127.0.0.1:"]);
    let port: u16 = line.trim_end().rsplit(':').next().unwrap().parse().unwrap();
    let token = Canary::of("the token of the page").text();
    for (place, head) in [
        ("who knows no token", String::new()),
        ("who knows another token", format!("Authorization: Bearer {token}x\r\n")),
        ("who knows the token", format!("Authorization: Bearer {token}\r\n")),
    ] {
        places.add(place, exchange_over_tcp(port, "GET /v1/status", &head));
    }
    assert!(places.text("who knows another token").starts_with("HTTP/1.1 401"));
    assert!(places.text("who knows the token").starts_with("HTTP/1.1 200"));
    let secret = Canary::of("the secret of webhooks").text();
    for (place, token) in [("a webhook", secret.clone()), ("a wrong webhook", format!("{secret}x"))] {
        let head = format!("X-Gitlab-Token: {token}\r\n");
        places.add(place, exchange_over_tcp(port, &format!("POST /hook/{name}"), &head));
    }
    assert!(places.text("a webhook").starts_with("HTTP/1.1 202"), "{}", places.text("a webhook"));
    assert!(places.text("a wrong webhook").starts_with("HTTP/1.1 403"));
}

/// Adds all that the commands print.
fn run_commands(estate: &CanaryFixture<'_>, places: &mut SearchedTexts) {
    let folder = estate.repo.path().to_str().unwrap().to_owned();
    let place = folder.as_str();
    let socket = estate.path("rhumb.sock");
    let socket = socket.to_str().unwrap();
    let mut all: Vec<Vec<&str>> = vec![
        vec!["status"],
        vec!["status", "-o", "wide"],
        vec!["status", "-o", "json"],
        vec!["status", "--socket", socket],
        vec!["status", "--socket", socket, "-o", "json"],
        vec!["events", "--socket", socket],
        vec!["events", "--socket", socket, "-o", "json"],
        vec!["check"],
        vec!["check", "-o", "json"],
        vec!["rbac"],
        vec!["rbac", place],
        vec!["prune", "list"],
        vec!["rollout", "status"],
        vec!["rollout", "history", "deploy/web"],
        vec!["diff", place],
        vec!["diff", place, "-o", "unified"],
        vec!["diff", place, "-o", "json"],
        vec!["apply", place, "--dry-run"],
        vec!["validate", place],
    ];
    let names: Vec<String> = plants::REFUSED.iter().map(|name| format!("secret/{name}")).collect();
    all.extend(names.iter().map(|name| vec!["why", name]));
    all.push(vec!["why", "secret/fixed", place]);
    let traced = ["--log-level", "trace", "--log-format", "json"];
    let together: Vec<(String, String)> = std::thread::scope(|scope| {
        let runs: Vec<_> = all
            .iter()
            .map(|line| {
                scope.spawn(|| (line.join(" "), estate.rhumb(&[&line[..], &traced[..]].concat()).all()))
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (line, said) in together {
        places.add(format!("rhumb {line}"), said);
    }
    // The rendered objects are the files': only the findings about them count.
    places.add("rhumb render", estate.rhumb(&[&["render", place][..], &traced[..]].concat()).stderr);
    places.add(
        "rhumb status --watch",
        estate.read_until(&["status", "--socket", socket, "--watch"], &estate.site.name),
    );
    places.add(
        "rhumb events --follow",
        estate.read_until(&["events", "--socket", socket, "--follow", "-o", "json"], "RevisionRead"),
    );
    let diff = format!("rhumb diff {place}");
    assert!(places.text(&diff).contains("its words are not shown"), "{}", places.text(&diff));
}

/// Adds errors that repeat secrets: of a git server that then falls silent, of watches that break,
/// of a bad configuration.
fn annoy(estate: &CanaryFixture<'_>, daemon: &Daemon, places: &mut SearchedTexts) {
    let rule = plants::spoil_watches(&estate.proxy);
    estate.proxy.end_open(&controlplane::Requests::any().watches(), controlplane::ResponseCut::Close);
    until("a watch ends in an error", || estate.proxy.hits(rule).fired > 0);
    estate.remote.set(ServerBehavior::Repeating);
    daemon.says(&["remote error"]);
    estate.remote.set(ServerBehavior::SilentAfterHandshake);
    // The lines that were seen: a second look may come when a git that was answered has ended.
    let lines = eventually("git waits for its server", crate::support::DEFAULT_TIMEOUT, || {
        let lines = command_lines(daemon.pid());
        if lines.contains("remote-https") { Ok(lines) } else { Err(lines) }
    });
    places.add("the processes", lines);
    let good = estate.configuration();
    let file = estate.path("rhumb.yaml");
    let password = Canary::of("the password in a URL").text();
    for bad in [
        good.replace("interval: 1s", &format!("interval: '{password}'")),
        good.replace("customSources: any", &format!("customSources: '{password}'")),
        good.replace("https://user:", "ftp://user:"),
    ] {
        assert_ne!(good, bad);
        let mark = daemon.mark();
        std::fs::write(&file, bad).unwrap();
        daemon.signal("HUP");
        daemon.says_since(mark, &["what was in force stays in force"]);
    }
    std::fs::write(&file, good).unwrap();
}

/// Adds the state directory, and checks that what rhumb makes in it is for its owner alone.
fn keep(estate: &CanaryFixture<'_>, places: &mut SearchedTexts) {
    let root = estate.site.state.path();
    let files = state(root);
    assert!(files.iter().any(|(name, ..)| name.contains("objects/pack")), "{files:?}");
    for (name, mode, content) in files {
        let below = name.contains('/');
        assert!(below || mode.trailing_zeros() >= 6, "{name} can be read by others: {mode:o}");
        places.add(format!("{name} in the state directory"), content);
        places.add("a name in the state directory", name);
    }
}
