//! A real registry.

use std::fs;
use std::process::Command;

use controlplane::{Registry, RegistryOptions};

use crate::archives::chart;
use crate::fixture::{BASIC, Fixture, HTPASSWD, helm, refused, word};
use crate::server::Certificate;

/// A registry, and a fetcher that may ask it.
struct TestRegistry {
    registry: Registry,
    fixture: Fixture,
    url: String,
}

impl TestRegistry {
    fn start(logins: Option<&str>, credentials: &str) -> Self {
        let certificate = Certificate::new();
        let options =
            RegistryOptions { certificate: &certificate.certificate, key: &certificate.key, logins };
        let registry = Registry::start(options).unwrap();
        let host = format!("127.0.0.1:{}", registry.port());
        let url = format!("oci://{host}/acme");
        let credentials = credentials.replace("HOST", &host);
        let fixture = Fixture::trusting(certificate, &format!("{{allow: ['{url}']{credentials}}}"));
        Self { registry, fixture, url }
    }

    /// Pushes a chart as people do. Returns the digest of its manifest.
    fn push(&self, archive: &[u8]) -> String {
        let path = self.fixture.path("chart.tgz");
        fs::write(&path, archive).unwrap();
        let login = format!(r#"{{"auths":{{"127.0.0.1:{}":{{"auth":"{BASIC}"}}}}}}"#, self.registry.port());
        fs::write(self.fixture.path("pusher.json"), login).unwrap();
        let mut command = Command::new(helm());
        command.arg("push").arg(&path).arg(&self.url);
        command.arg("--registry-config").arg(self.fixture.path("pusher.json"));
        command.env_clear().env("HOME", self.fixture.path("state"));
        let output = command.env("SSL_CERT_FILE", self.fixture.path("ca.pem")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        said.lines().find_map(|line| line.strip_prefix("Digest: ")).unwrap().to_owned()
    }

    /// Returns whether the real helm succeeds with these arguments, without a login.
    fn helm_takes(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new(helm());
        command.args(arguments).current_dir(self.fixture.path("state"));
        command.env_clear().env("HOME", self.fixture.path("state"));
        command.env("SSL_CERT_FILE", self.fixture.path("ca.pem")).output().unwrap().status.success()
    }

    fn requests(&self) -> usize {
        self.registry.log().unwrap().matches("http.request.method").count()
    }
}

#[test]
fn an_exact_version_is_fetched_once() {
    let registry = TestRegistry::start(None, "");
    let TestRegistry { fixture, url, .. } = &registry;
    registry.push(&chart("web", "1.0.0", "first"));
    registry.push(&chart("web", "1.1.0+build.1", "built"));
    let fetched = fixture.fetch([url, "web", "1.0.0"]).unwrap();
    assert_eq!(word(&fetched), "first");
    assert_eq!(word(&fixture.fetch([url, "web", "1.1.0+build.1"]).unwrap()), "built");
    assert!(fixture.processes().contains("started: "));
    let asked = registry.requests();
    assert!(asked > 0);
    assert_eq!(fixture.fetch([url, "web", "1.0.0"]).unwrap().digest, fetched.digest);
    assert_eq!((fixture.processes(), registry.requests()), (String::new(), asked));
    let (code, message) = refused(fixture.fetch([url, "web", "^1.0.0"]));
    assert_eq!(code, "unpinned-chart");
    assert!(message.contains("means 1.1.0"), "{message}");
    assert_eq!(fixture.newest_version([url, "web", "~1.0.0"]).unwrap(), "1.0.0");
    for chart in [[url, "web", "1.0.1"], [url, "none", "1.0.0"]] {
        let error = fixture.fetch(chart).unwrap_err();
        assert!(error.code() == "chart-not-found" && error.is_transient(), "{error:?}");
    }
}

#[test]
fn a_tag_that_is_pushed_anew_is_an_error_and_the_old_content_stays() {
    let registry = TestRegistry::start(None, "");
    let TestRegistry { fixture, url, .. } = &registry;
    registry.push(&chart("web", "1.0.0", "first"));
    let first = fixture.fetch([url, "web", "1.0.0"]).unwrap();
    registry.push(&chart("web", "1.0.0", "second"));
    assert_eq!(word(&fixture.fetch([url, "web", "1.0.0"]).unwrap()), "first");
    let [path] = &*fixture.archives() else { panic!("one archive") };
    fs::remove_file(path).unwrap();
    let error = fixture.fetch([url, "web", "1.0.0"]).unwrap_err();
    assert!(error.code() == "chart-changed" && !error.is_transient(), "{error}");
    let digests = error.to_string().matches("sha256:").count();
    assert!(digests == 2 && error.to_string().contains(&first.digest.to_string()), "{error}");
}

#[test]
fn a_registry_that_asks_is_shown_the_credentials_of_its_host() {
    let registry = TestRegistry::start(Some(HTPASSWD), ", credentials: [{host: HOST, credential: acme}]");
    let TestRegistry { fixture, url, .. } = &registry;
    registry.push(&chart("web", "1.0.0", "private"));
    assert_eq!(word(&fixture.fetch([url, "web", "1.0.0"]).unwrap()), "private");
    let other = TestRegistry::start(Some(HTPASSWD), ", credentials: [{host: ghcr.io, credential: acme}]");
    other.push(&chart("web", "1.0.0", "private"));
    let error = other.fixture.fetch([&other.url, "web", "1.0.0"]).unwrap_err();
    assert!(error.code() == "fetch-failed" && error.class().label() == "forbidden", "{error:?}");
}

// For helm a digest names a chart that is pulled by hand, and no part of another chart.
#[test]
fn a_digest_is_refused_where_helm_takes_none() {
    let registry = TestRegistry::start(None, "");
    let TestRegistry { fixture, url, .. } = &registry;
    let digest = registry.push(&chart("web", "1.0.0", "first"));
    let folder = fixture.path("state/top");
    fs::create_dir(&folder).unwrap();
    let takes_part = |version: &str| {
        let part = format!("dependencies: [{{name: web, version: '{version}', repository: '{url}'}}]");
        let metadata = format!("apiVersion: v2\nname: top\nversion: 1.0.0\n{part}\n");
        fs::write(folder.join("Chart.yaml"), metadata).unwrap();
        registry.helm_takes(&["dependency", "update", "top"])
    };
    assert!(registry.helm_takes(&["pull", &format!("{url}/web@{digest}")]));
    assert!(takes_part("1.0.0") && !takes_part(&digest) && !takes_part(&format!("1.0.0@{digest}")));
    let (code, message) = refused(fixture.fetch([url, "web", &digest]));
    assert!(code == "chart-reference" && message.contains(&digest), "{message}");
}
