//! Credentials: who is shown them, and where they are not.

use sha2::Digest as _;

use crate::archives::chart;
use crate::fixture::{BASIC, CANARY, Fixture, LOGIN, log, refused, word};
use crate::repository::Repository;
use crate::server::{Answer, Certificate, ChartServer, DISTANT, SeenRequest, TOKEN, index, start_proxy};

const FOR_LOOPBACK: &str = ", credentials: [{host: '127.0.0.1:PORT', credential: acme}]";

/// Returns a server that asks for credentials, and a fetcher that has them for `127.0.0.1` alone.
fn private(scheme: &str, folder: &str) -> (ChartServer, Fixture, String) {
    let certificate = Certificate::new();
    let server = ChartServer::start(&certificate);
    let url = format!("{scheme}://127.0.0.1:{}{folder}", server.port);
    let credentials = FOR_LOOPBACK.replace("PORT", &server.port.to_string());
    let fixture = Fixture::trusting(certificate, &format!("{{allow: ['{url}']{credentials}}}"));
    (server, fixture, url)
}

fn guarded(kind: &'static str, content: Vec<u8>) -> Answer {
    Answer::Guarded(BASIC.to_owned(), kind, content)
}

/// Returns the hosts that were shown credentials, and those that were asked without.
fn shown(seen: &[SeenRequest]) -> [Vec<String>; 2] {
    let hosts = |with: bool| {
        let of = seen.iter().filter(move |one| one.authorization.is_some() == with);
        let mut hosts: Vec<String> = of.map(|one| one.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    };
    [hosts(true), hosts(false)]
}

#[test]
fn a_repository_that_asks_is_shown_the_credentials_of_its_host() {
    let (server, fixture, url) = private("https", "/private");
    server.answer("/private/index.yaml", guarded("text/yaml", index(&[["web", "1.0.0", "web-1.0.0.tgz"]])));
    server.answer("/private/web-1.0.0.tgz", guarded("application/gzip", chart("web", "1.0.0", "private")));
    assert_eq!(word(&fixture.fetch([&url, "web", "1.0.0"]).unwrap()), "private");
    assert_eq!(shown(&server.seen())[0], ["127.0.0.1"]);
}

#[test]
fn another_host_is_shown_nothing() {
    let (server, fixture, url) = private("https", "/private");
    let port = server.port;
    let elsewhere = format!("https://localhost:{port}/elsewhere.tgz");
    let entries = [["web", "1.0.0", "web-1.0.0.tgz"], ["web", "2.0.0", &elsewhere]];
    server.answer("/private/index.yaml", guarded("text/yaml", index(&entries)));
    server.answer(
        "/private/web-1.0.0.tgz",
        Answer::Redirect(format!("https://localhost:{port}/redirected.tgz")),
    );
    server.answer("/redirected.tgz", Answer::Content(chart("web", "1.0.0", "redirected")));
    server.answer("/elsewhere.tgz", Answer::Content(chart("web", "2.0.0", "elsewhere")));
    for (version, expected) in [("1.0.0", "redirected"), ("2.0.0", "elsewhere")] {
        assert_eq!(word(&fixture.fetch([&url, "web", version]).unwrap()), expected);
        assert_eq!(shown(&server.seen()), [vec!["127.0.0.1"], vec!["localhost"]], "{version}");
    }
    // A server that asks for them gets none either.
    server.answer("/redirected-b.tgz", guarded("application/gzip", chart("web", "1.0.0", "guarded")));
    server.answer(
        "/private/web-3.0.0.tgz",
        Answer::Redirect(format!("https://localhost:{port}/redirected-b.tgz")),
    );
    server.answer("/private/index.yaml", guarded("text/yaml", index(&[["web", "3.0.0", "web-3.0.0.tgz"]])));
    let (code, _) = refused(fixture.fetch([&url, "web", "3.0.0"]));
    assert_eq!(code, "fetch-failed");
    assert_eq!(shown(&server.seen()), [vec!["127.0.0.1"], vec!["localhost"]]);
}

/// Lets a server be a registry with the chart `web` 1.0.0, but for its archive. Returns the place
/// of that one.
fn publish(server: &ChartServer, archive: &[u8], answer: impl Fn(&'static str, Vec<u8>) -> Answer) -> String {
    let digest = |bytes: &[u8]| {
        let hex = sha2::Sha256::digest(bytes)
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        format!("sha256:{hex}")
    };
    let settings = br#"{"name":"web","version":"1.0.0","apiVersion":"v2"}"#.to_vec();
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.cncf.helm.config.v1+json",
            "digest": digest(&settings), "size": settings.len(),
        },
        "layers": [{
            "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "digest": digest(archive), "size": archive.len(),
        }],
    });
    let manifest = manifest.to_string().into_bytes();
    let kind = "application/vnd.oci.image.manifest.v1+json";
    for name in ["1.0.0", &digest(&manifest)] {
        server.answer(&format!("/v2/acme/web/manifests/{name}"), answer(kind, manifest.clone()));
    }
    let blob = |bytes: &[u8]| format!("/v2/acme/web/blobs/{}", digest(bytes));
    server.answer(&blob(&settings), answer("application/octet-stream", settings.clone()));
    blob(archive)
}

/// Starts a registry by hand, whose archive is at another host.
#[test]
fn another_host_of_a_registry_is_shown_nothing() {
    let (server, fixture, url) = private("oci", "/acme");
    let archive = chart("web", "1.0.0", "redirected");
    let place = publish(&server, &archive, guarded);
    server.answer(&place, Answer::Redirect(format!("https://localhost:{}/archive", server.port)));
    server.answer("/archive", Answer::Content(archive));
    assert_eq!(word(&fixture.fetch([&url, "web", "1.0.0"]).unwrap()), "redirected");
    assert_eq!(shown(&server.seen()), [vec!["127.0.0.1"], vec!["127.0.0.1", "localhost"]]);
}

/// Starts a registry by hand, which names a service for tokens at another host.
#[test]
fn a_service_for_tokens_that_a_registry_names_is_shown_the_credentials() {
    let (server, fixture, url) = private("oci", "/acme");
    let archive = chart("web", "1.0.0", "tokened");
    let realm = format!("https://localhost:{}/token", server.port);
    let tokened = |kind, content| Answer::Tokened(realm.clone(), kind, content);
    let place = publish(&server, &archive, tokened);
    server.answer(&place, tokened("application/octet-stream", archive));
    server.answer("/token", Answer::Content(serde_json::json!({ "token": TOKEN }).to_string().into_bytes()));
    assert_eq!(word(&fixture.fetch([&url, "web", "1.0.0"]).unwrap()), "tokened");
    let seen = server.seen();
    let with = |words: &str| {
        let all = seen.iter().filter(|one| one.authorization.as_deref() == Some(words));
        let mut places: Vec<String> = all.map(|one| format!("{} {}", one.host, one.path)).collect();
        places.dedup();
        places
    };
    assert_eq!(with(&format!("Basic {BASIC}")), ["localhost /token"]);
    let tokened = with(&format!("Bearer {TOKEN}"));
    assert!(
        !tokened.is_empty() && tokened.iter().all(|place| place.starts_with("127.0.0.1 /v2/")),
        "{tokened:?}"
    );
}

#[test]
fn after_a_redirect_only_a_host_below_the_same_name_is_shown_the_credentials() {
    let certificate = Certificate::new();
    let server = ChartServer::start(&certificate);
    let port = server.port;
    let [host, below, other] = DISTANT;
    let url = format!("https://{host}:{port}/private");
    let proxy = format!("http://127.0.0.1:{}", start_proxy());
    let fetch = format!("{{allow: ['{url}'], credentials: [{{host: '{host}:{port}', credential: acme}}]}}");
    let fixture = Fixture::with_variables(certificate, &fetch, vec![("HTTPS_PROXY".into(), proxy.into())]);
    let entries = [["web", "1.0.0", "web-1.0.0.tgz"], ["web", "2.0.0", "web-2.0.0.tgz"]];
    server.answer("/private/index.yaml", guarded("text/yaml", index(&entries)));
    for (version, to) in [("1.0.0", below), ("2.0.0", other)] {
        let place = format!("https://{to}:{port}/{version}");
        server.answer(&format!("/private/web-{version}.tgz"), Answer::Redirect(place));
        server.answer(&format!("/{version}"), Answer::Content(chart("web", version, "redirected")));
    }
    assert_eq!(word(&fixture.fetch([&url, "web", "1.0.0"]).unwrap()), "redirected");
    assert_eq!(shown(&server.seen()), [vec![host, below], vec![]]);
    assert_eq!(word(&fixture.fetch([&url, "web", "2.0.0"]).unwrap()), "redirected");
    assert_eq!(shown(&server.seen()), [vec![host], vec![other]]);
}

#[test]
fn a_wrong_password_is_reported_and_never_shown() {
    let (server, fixture, url) = private("https", "/private");
    server.answer("/private/index.yaml", Answer::Guarded("b3RoZXI=".to_owned(), "text/yaml", index(&[])));
    let error = fixture.fetch([&url, "web", "1.0.0"]).unwrap_err();
    assert!(error.class().label() == "forbidden" && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("401"), "{error}");
    // The words of a server may hold the credentials that it was shown.
    server.answer("/private/index.yaml", Answer::Content(format!("{LOGIN} {BASIC}: [").into_bytes()));
    let (code, _) = refused(fixture.fetch([&url, "web", "1.0.0"]));
    assert_eq!(code, "fetch-failed");
}

#[test]
fn credentials_that_cannot_be_read_are_an_error_of_the_configuration() {
    let Repository { server, fixture, url } =
        &Repository::with_credentials(", credentials: [{host: 'ghcr.io', credential: none}]");
    fixture.fetch([url, "web", "1.0.0"]).unwrap();
    let host = format!("127.0.0.1:{}", server.port);
    let credentials = format!("{{allow: ['{url}'], credentials: [{{host: '{host}', credential: none}}]}}");
    let error = Fixture::new(&credentials).fetch([url, "web", "1.0.0"]).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(&format!("the credentials for {host}: ")), "{message}");
    assert!(message.contains("chart-credentials.none") && error.class().label() == "config", "{message}");
}

#[test]
fn no_argument_no_variable_and_no_line_of_the_log_has_them() {
    let (server, fixture, url) = private("https", "/private");
    server.answer("/private/index.yaml", guarded("text/yaml", index(&[["web", "1.0.0", "web-1.0.0.tgz"]])));
    server.answer("/private/web-1.0.0.tgz", guarded("application/gzip", chart("web", "1.0.0", "private")));
    fixture.fetch([&url, "web", "1.0.0"]).unwrap();
    let log = log();
    let processes = fixture.processes();
    assert!(log.contains(&format!("asking a server for a chart repository={url} ")), "{log}");
    assert!(processes.contains("started: ") && processes.contains("HELM_NO_PLUGINS"), "{processes}");
    let debug = format!("{:?}", fixture.fetcher);
    for text in [&log, &processes, &debug] {
        assert!(!text.contains(CANARY) && !text.contains(BASIC), "{text}");
    }
    // Nor any variable of this process but those that are passed.
    assert!(!processes.contains("CARGO") && processes.contains("SSL_CERT_FILE"), "{processes}");
}
