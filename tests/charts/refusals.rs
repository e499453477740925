//! Charts that may not be fetched, and archives that are not taken.

use tar::EntryType;

use crate::archives::{archive, bomb, chart, chart_with};
use crate::fixture::{CANARY, Fixture, refused};
use crate::repository::Repository;

#[test]
fn a_place_that_is_not_allowed_is_never_asked() {
    let repository = Repository::start();
    let Repository { server, fixture, url } = &repository;
    let port = server.port;
    let other = Fixture::new("{allow: []}");
    for (fixture, chart) in [
        (&other, [url.as_str(), "web", "1.0.0"]),
        (fixture, [&format!("https://127.0.0.1:{port}"), "web", "1.0.0"]),
        (fixture, [&format!("https://127.0.0.1:{port}/stable-b"), "web", "1.0.0"]),
        (fixture, [&format!("https://localhost:{port}/stable"), "web", "1.0.0"]),
        (fixture, ["https://127.0.0.1/stable", "web", "1.0.0"]),
        (fixture, [&format!("oci://127.0.0.1:{port}/stable"), "web", "1.0.0"]),
        (fixture, [&format!("https://127.0.0.1:{port}/other"), "web", "^1"]),
    ] {
        let error = fixture.fetch(chart).unwrap_err();
        assert!(error.code() == "fetch-not-allowed" && !error.is_transient(), "{chart:?}: {error}");
        let [repository, _, _] = chart;
        let line = format!("`spec.fetch.allow: [\"{repository}\"]`");
        assert!(error.hint().ends_with(&line), "{}", error.hint());
        let [repository, name, range] = chart;
        let error = fixture.newest_version([repository, name, range]).unwrap_err();
        assert_eq!(error.code(), "fetch-not-allowed");
    }
    assert_eq!(
        (fixture.processes(), other.processes(), server.seen()),
        (String::new(), String::new(), vec![])
    );
}

#[test]
fn a_text_that_could_be_read_in_two_ways_is_never_asked() {
    let Repository { server, fixture, url } = &Repository::start();
    let at = |text: &str| text.replace("URL", url).replace("HOST", &format!("127.0.0.1:{}", server.port));
    for [repository, name, version] in [
        ["https://ann:canary-password@HOST/stable", "web", "1.0.0"],
        ["https://HOST@evil.example/stable", "web", "1.0.0"],
        ["URL/../other", "web", "1.0.0"],
        ["URL/%2e%2e/other", "web", "1.0.0"],
        ["URL?a=b", "web", "1.0.0"],
        ["URL#a", "web", "1.0.0"],
        ["URL//", "web", "1.0.0"],
        ["http://HOST/stable", "web", "1.0.0"],
        ["file:///etc", "web", "1.0.0"],
        ["@charts", "web", "1.0.0"],
        ["--repo", "web", "1.0.0"],
        ["", "web", "1.0.0"],
        ["URL", "..", "1.0.0"],
        ["URL", "../other/web", "1.0.0"],
        ["URL", "-web", "1.0.0"],
        ["URL", "", "1.0.0"],
        ["URL", "we b", "1.0.0"],
        ["URL", "web", "1.0.0\n--debug"],
    ] {
        let (code, message) = refused(fixture.fetch([&at(repository), name, version]));
        assert_eq!(code, "chart-reference", "{repository} {name} {version}: {message}");
        assert!(!message.contains(CANARY), "{message}");
    }
    assert_eq!((fixture.processes(), server.seen()), (String::new(), vec![]));
}

// It is that of a manifest, which a tag may leave, and helm takes it for a range.
#[test]
fn a_digest_in_the_place_of_a_version_is_never_asked() {
    let Repository { server, fixture, url } = &Repository::start();
    let digest = format!("sha256:{}", "0a".repeat(32));
    let (tagged, named) = (format!("1.0.0@{digest}"), format!("web@{digest}"));
    let place = format!("oci://127.0.0.1:{}/stable/{named}", server.port);
    for (chart, what, text) in [
        ([url.as_str(), "web", &digest], "the version", &digest),
        ([url, "web", &tagged], "the version", &tagged),
        ([url, &named, "1.0.0"], "the name", &named),
        ([&place, "web", ""], "the repository", &place),
    ] {
        let error = fixture.fetch(chart).unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("chart-reference", false));
        let expected = format!("{what} {text:?} has a digest, which names no version of a chart");
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains("rhumb lock"), "{}", error.hint());
        let [repository, name, range] = chart;
        let error = fixture.newest_version([repository, name, range]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!((fixture.processes(), server.seen()), (String::new(), vec![]));
}

/// Tries the same archives without a server too, one by one, where they are unpacked.
#[test]
fn an_archive_that_is_not_of_the_chart_is_refused_and_not_kept() {
    let repository = Repository::start();
    let Repository { fixture, url, .. } = &repository;
    let named_dots = archive(&[(
        "../Chart.yaml".to_owned(),
        EntryType::Regular,
        "apiVersion: v2\nname: ..\nversion: 1.0.0\n".to_owned(),
    )]);
    for (archive, reason) in [
        (chart_with("web/../../../etc/passwd", EntryType::Regular), "an empty part, `.` or `..`"),
        (chart_with("/etc/passwd", EntryType::Regular), "is absolute"),
        (chart_with("web/link", EntryType::Symlink), "is a link"),
        (chart_with("web/link", EntryType::Link), "is a link"),
        (chart_with("web/device", EntryType::Char), "is a device"),
        (chart_with("web/Chart.yaml", EntryType::Regular), "it has the file \"web/Chart.yaml\" twice"),
        (bomb(80 << 20), "more than 5242880 bytes in one file"),
        (named_dots, "an empty part, `.` or `..`"),
        (chart("other", "1.0.0", "a"), "its name is \"other\", and \"web\" was asked for"),
        (chart("web", "1.0.1", "a"), "its version is \"1.0.1\", and \"1.0.0\" was asked for"),
        (b"no archive".to_vec(), "cannot be read"),
    ] {
        repository.publish("1.0.0", archive);
        let error = fixture.fetch([url, "web", "1.0.0"]).unwrap_err();
        assert!(error.code() == "chart-archive" && !error.is_transient(), "{reason}: {error}");
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert_eq!(fixture.archives().len(), 0, "{reason}");
    }
    // Nothing is recorded either, so that the right one is taken.
    repository.publish("1.0.0", chart("web", "1.0.0", "right"));
    fixture.fetch([url, "web", "1.0.0"]).unwrap();
}

#[test]
fn an_archive_that_is_too_large_is_refused() {
    let repository = Repository::start();
    let Repository { fixture, url, .. } = &repository;
    repository.publish("1.0.0", vec![0; (20 << 20) + 1]);
    let (code, message) = refused(fixture.fetch([url, "web", "1.0.0"]));
    assert!(code == "chart-archive" && message.contains("more than 20971520 bytes"), "{message}");
    repository.publish("1.0.0", vec![0; 70 << 20]);
    let error = fixture.fetch([url, "web", "1.0.0"]).unwrap_err();
    assert_eq!(error.code(), "fetch-failed", "{error}");
}
