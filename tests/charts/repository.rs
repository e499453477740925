//! A repository over HTTPS.

use std::fs;

use rhumb::testing::input::charts::ExpectedDigest;

use crate::archives::chart;
use crate::fixture::{Fixture, refused, word};
use crate::server::{Answer, Certificate, ChartServer};

/// A repository with `web` in three versions.
pub(crate) struct Repository {
    pub(crate) server: ChartServer,
    pub(crate) fixture: Fixture,
    pub(crate) url: String,
}

impl Repository {
    pub(crate) fn start() -> Self {
        Self::with_credentials("")
    }

    pub(crate) fn with_credentials(credentials: &str) -> Self {
        let certificate = Certificate::new();
        let server = ChartServer::start(&certificate);
        let url = format!("https://127.0.0.1:{}/stable", server.port);
        let fixture = Fixture::trusting(certificate, &format!("{{allow: ['{url}']{credentials}}}"));
        server.index(
            "/stable",
            &[
                ["web", "1.0.0", "web-1.0.0.tgz"],
                ["web", "1.2.0", "web-1.2.0.tgz"],
                ["web", "2.0.0-rc.1", "x.tgz"],
            ],
        );
        for version in ["1.0.0", "1.2.0"] {
            let archive = chart("web", version, &format!("v{version}"));
            server.answer(&format!("/stable/web-{version}.tgz"), Answer::Content(archive));
        }
        Self { server, fixture, url }
    }

    pub(crate) fn publish(&self, version: &str, archive: Vec<u8>) {
        self.server.answer(&format!("/stable/web-{version}.tgz"), Answer::Content(archive));
    }
}

#[test]
fn an_exact_version_is_fetched_once() {
    let Repository { server, fixture, url } = &Repository::start();
    let fetched = fixture.fetch([url, "web", "1.0.0"]).unwrap();
    assert_eq!(word(&fetched), "v1.0.0");
    assert_eq!(fetched.reference.version, "1.0.0");
    let paths: Vec<String> = fetched.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(paths, ["Chart.yaml", "templates/a.yaml"]);
    assert!(fixture.processes().contains("started: ") && !server.seen().is_empty());
    // However the address is written.
    for address in [url.clone(), format!("{url}/"), url.replace("https", "HTTPS")] {
        let again = fixture.fetch([&address, "web", "1.0.0"]).unwrap();
        assert_eq!((again.digest, again.files), (fetched.digest, fetched.files.clone()));
    }
    assert_eq!((fixture.processes(), server.seen()), (String::new(), vec![]));
}

#[test]
fn a_range_is_refused_with_the_version_that_it_means() {
    let Repository { fixture, url, .. } = &Repository::start();
    for (range, means) in
        [("^1.0.0", "1.2.0"), ("1.x", "1.2.0"), ("<1.2.0", "1.0.0"), ("*", "1.2.0"), ("1.0", "1.0.0")]
    {
        let expected = format!("the version {range} of the chart web is a range, which means {means} now");
        assert_eq!(refused(fixture.fetch([url, "web", range])), ("unpinned-chart", expected));
        assert_eq!(fixture.newest_version([url, "web", range]).unwrap(), means);
    }
    let error = fixture.fetch([url, "web", "^1.0.0"]).unwrap_err();
    assert!(error.hint().contains("rhumb lock") && !error.is_transient(), "{}", error.hint());
    let (code, none) = refused(fixture.fetch([url, "web", "^3"]));
    assert_eq!((code, &*none), ("unpinned-chart", "the version ^3 of the chart web is a range"));
    let error = fixture.newest_version([url, "web", "^3"]).unwrap_err();
    assert_eq!(error.code(), "chart-not-found", "{error}");
    let error = fixture.newest_version([url, "web", ">>1"]).unwrap_err();
    assert_eq!(error.code(), "chart-reference", "{error}");
    assert_eq!(fixture.archives().len(), 0);
}

#[test]
fn a_version_of_two_numbers_is_no_range_where_a_chart_has_it() {
    let Repository { server, fixture, url } = &Repository::start();
    server.index("/stable", &[["web", "0.1", "web-0.1.tgz"], ["web", "0.1.5", "x.tgz"]]);
    server.answer("/stable/web-0.1.tgz", Answer::Content(chart("web", "0.1", "short")));
    assert_eq!(fixture.newest_version([url, "web", "0.1"]).unwrap(), "0.1");
    let fetched = fixture.fetch([url, "web", "0.1"]).unwrap();
    assert_eq!((word(&fetched), &*fetched.reference.version), ("short".to_owned(), "0.1"));
    server.index("/stable", &[["web", "0.1.5", "x.tgz"]]);
    assert_eq!(refused(fixture.fetch([url, "web", "0.1"])).0, "unpinned-chart");
    // A lock says which chart it was.
    let pinned = ExpectedDigest::Pinned(fetched.digest);
    assert_eq!(word(&fixture.fetch_expected([url, "web", "0.1"], pinned).unwrap()), "short");
}

#[test]
fn what_is_not_there_is_reported_and_tried_again() {
    let Repository { server, fixture, url } = &Repository::start();
    for chart in [[url, "web", "1.0.1"], [url, "none", "1.0.0"]] {
        let error = fixture.fetch(chart).unwrap_err();
        assert!(error.code() == "chart-not-found" && error.is_transient(), "{error:?}");
    }
    let other = format!("{url}/none");
    let error = fixture.fetch([&other, "web", "1.0.0"]).unwrap_err();
    assert!(error.code() == "chart-not-found" && error.is_transient(), "{error:?}");
    server.index("/stable", &[["web", "1.0.1", "web-1.0.1.tgz"]]);
    server.answer("/stable/web-1.0.1.tgz", Answer::Content(chart("web", "1.0.1", "late")));
    assert_eq!(word(&fixture.fetch([url, "web", "1.0.1"]).unwrap()), "late");
}

#[test]
fn a_server_that_is_down_or_not_trusted_is_tried_again() {
    let repository = Repository::start();
    let url = repository.url.clone();
    let fetch = format!("{{allow: ['{url}']}}");
    // Another authority.
    let stranger = Fixture::new(&fetch);
    let error = stranger.fetch([&url, "web", "1.0.0"]).unwrap_err();
    assert!(error.to_string().contains("certificate") && error.is_transient(), "{error}");
    let Repository { server, fixture, .. } = repository;
    drop(server);
    let error = fixture.fetch([&url, "web", "1.0.0"]).unwrap_err();
    assert!(error.to_string().contains("connection refused") && error.is_transient(), "{error}");
}

#[test]
fn a_damaged_archive_is_fetched_again_and_must_be_the_same() {
    let repository = Repository::start();
    let Repository { server, fixture, url } = &repository;
    let first = fixture.fetch([url, "web", "1.0.0"]).unwrap();
    server.seen();
    let [path] = &*fixture.archives() else { panic!("one archive") };
    fs::write(path, "damaged").unwrap();
    assert_eq!(fixture.fetch([url, "web", "1.0.0"]).unwrap().digest, first.digest);
    assert!(!server.seen().is_empty());
    let record = fs::read_dir(fixture.path("state/charts/records")).unwrap().next().unwrap().unwrap();
    fs::write(record.path(), "damaged").unwrap();
    let (code, message) = refused(fixture.fetch([url, "web", "1.0.0"]));
    assert!(code == "fetch-failed" && message.contains("is no record of this chart"), "{message}");
}

#[test]
fn another_archive_under_the_same_version_is_an_error() {
    let repository = Repository::start();
    let Repository { fixture, url, .. } = &repository;
    let first = fixture.fetch([url, "web", "1.0.0"]).unwrap();
    repository.publish("1.0.0", chart("web", "1.0.0", "other"));
    // The archive in the store stays in force.
    assert_eq!(word(&fixture.fetch([url, "web", "1.0.0"]).unwrap()), "v1.0.0");
    let [path] = &*fixture.archives() else { panic!("one archive") };
    let old = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    let (code, message) = refused(fixture.fetch([url, "web", "1.0.0"]));
    assert_eq!(code, "chart-changed");
    assert!(message.contains(&first.digest.to_string()), "{message}");
    assert_eq!(fixture.archives().len(), 0);
    // A pin names what it must be, whatever was recorded.
    let found: String = message.rsplit(' ').next().unwrap().to_owned();
    let pin = found.parse().unwrap();
    assert_eq!(
        word(&fixture.fetch_expected([url, "web", "1.0.0"], ExpectedDigest::Pinned(pin)).unwrap()),
        "other"
    );
    assert_eq!(fixture.fetch([url, "web", "1.0.0"]).unwrap().digest, pin);
    let (code, message) =
        refused(fixture.fetch_expected([url, "web", "1.0.0"], ExpectedDigest::Pinned(first.digest)));
    assert!(code == "chart-changed" && message.contains(&found), "{message}");
    fs::write(path, old).unwrap();
    assert_eq!(
        word(&fixture.fetch_expected([url, "web", "1.0.0"], ExpectedDigest::Pinned(first.digest)).unwrap()),
        "v1.0.0"
    );
}

#[test]
fn the_first_digest_of_others_counts_until_a_person_asks_for_what_is_there_now() {
    let repository = Repository::start();
    let Repository { fixture, url, .. } = &repository;
    let first = fixture.fetch([url, "web", "1.0.0"]).unwrap();
    repository.publish("1.0.0", chart("web", "1.0.0", "other"));
    let fetch = |expected| fixture.fetch_by_command([url, "web", "1.0.0"], expected);
    let (code, message) = refused(fetch(ExpectedDigest::First));
    assert!(code == "chart-changed" && message.contains(&first.digest.to_string()), "{message}");
    assert_eq!(word(&fetch(ExpectedDigest::Any).unwrap()), "other");
    assert_eq!(word(&fetch(ExpectedDigest::First).unwrap()), "other");
}
