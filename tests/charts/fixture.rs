//! A fetcher with its store, its helm and its programs watched.

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use controlplane::Renderers;
use rhumb::testing::config::{Environment, read};
use rhumb::testing::input::RenderHost;
use rhumb::testing::input::charts::{
    ChartFetcher, ChartReference, ExpectedDigest, FetchEnvironment, FetchError, FetchedChart, UnlockedCharts,
};
use rhumb::testing::input::sandbox::Sandbox;
use tempfile::TempDir;

use crate::server::Certificate;

/// A user and a password, as a file of credentials has them.
pub(crate) const LOGIN: &str = "ann:canary-password-7f3a";
/// The same as a header has them.
pub(crate) const BASIC: &str = "YW5uOmNhbmFyeS1wYXNzd29yZC03ZjNh";
/// The same as a registry keeps them.
pub(crate) const HTPASSWD: &str = "ann:$2a$04$NENLQarNWTci41tbtSPaNOOntguQbo1.P5iQzAv3xwpUNI9eo79Y6\n";
/// The part that nobody may show.
pub(crate) const CANARY: &str = "canary-password";

/// A fetcher, and the folders around it.
pub(crate) struct Fixture {
    folder: TempDir,
    host: RenderHost,
    pub(crate) fetcher: ChartFetcher,
    of_commands: ChartFetcher,
}

impl Fixture {
    /// Returns one whose configuration has this text as `spec.fetch`.
    pub(crate) fn new(fetch: &str) -> Self {
        Self::trusting(Certificate::new(), fetch)
    }

    pub(crate) fn trusting(certificate: Certificate, fetch: &str) -> Self {
        Self::with_variables(certificate, fetch, Vec::new())
    }

    /// Returns one that passes these variables too.
    pub(crate) fn with_variables(
        certificate: Certificate,
        fetch: &str,
        mut variables: Vec<(OsString, OsString)>,
    ) -> Self {
        log();
        let folder = TempDir::new().unwrap();
        for name in ["credentials", "programs", "state"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("credentials/chart-credentials.acme"), format!("{LOGIN}\n")).unwrap();
        fs::write(folder.path().join("ca.pem"), &certificate.certificate).unwrap();
        let text = format!(
            "apiVersion: rhumb.dev/v1alpha1\nkind: Configuration\nprograms: {{helm: {}}}\n---\n\
             apiVersion: rhumb.dev/v1alpha1\nkind: Source\nmetadata: {{name: shop}}\n\
             spec: {{directory: /shop, fetch: {fetch}}}\n",
            helm().display()
        );
        let config = read("rhumb.yaml", &text, &Environment::default()).unwrap();
        variables.push(("SSL_CERT_FILE".into(), folder.path().join("ca.pem").into()));
        let surroundings =
            FetchEnvironment { credentials: Some(folder.path().join("credentials")), variables };
        let sandbox = Sandbox::launched_by(launcher(folder.path()));
        let programs = folder.path().join("programs");
        let host = RenderHost::with_sandbox(&config.renderers, OsString::new(), programs, sandbox);
        let fetcher = |name: &str| {
            let fetch = config.sources[0].fetch.clone();
            let unlocked = UnlockedCharts::Fetched;
            ChartFetcher::new(fetch, unlocked, folder.path().join(name), surroundings.clone())
        };
        let charts = folder.path().join("state/charts");
        let of_commands = fetcher("state/commands").with_first_digests_of(std::iter::once(charts));
        let fetcher = fetcher("state/charts");
        Self { folder, host, fetcher, of_commands }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fetches a chart with an expected digest.
    pub(crate) fn fetch_expected(
        &self,
        chart: [&str; 3],
        expected: ExpectedDigest,
    ) -> Result<FetchedChart, FetchError> {
        self.fetch_by(&self.fetcher, chart, expected)
    }

    /// Fetches a chart as a command does, which has a store of its own.
    pub(crate) fn fetch_by_command(
        &self,
        chart: [&str; 3],
        expected: ExpectedDigest,
    ) -> Result<FetchedChart, FetchError> {
        self.fetch_by(&self.of_commands, chart, expected)
    }

    fn fetch_by(
        &self,
        by: &ChartFetcher,
        [repository, name, version]: [&str; 3],
        expected: ExpectedDigest,
    ) -> Result<FetchedChart, FetchError> {
        let reference = ChartReference {
            repository: repository.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let fetched = wait_for(by.fetch(&self.host, &reference, expected));
        // Nothing of a fetch is left, above all no credentials.
        assert_eq!(fs::read_dir(self.path("programs")).unwrap().count(), 0);
        fetched
    }

    pub(crate) fn fetch(&self, chart: [&str; 3]) -> Result<FetchedChart, FetchError> {
        self.fetch_expected(chart, ExpectedDigest::First)
    }

    pub(crate) fn newest_version(&self, [repository, name, range]: [&str; 3]) -> Result<String, FetchError> {
        wait_for(self.fetcher.newest_version(&self.host, repository, name, range))
    }

    /// Returns the command lines and variables of all processes since the last time.
    pub(crate) fn processes(&self) -> String {
        let log = self.path("processes");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        text
    }

    /// Returns the archives in the store.
    pub(crate) fn archives(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("state/charts/sha256")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Returns everything that was logged so far by all parts of this process.
pub(crate) fn log() -> String {
    static LOG: OnceLock<Log> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::TRACE);
        lines.with_writer(move || writer.clone()).init();
        log
    });
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the program that starts the entry of rhumb's sandbox, and notes how it was asked.
fn launcher(folder: &Path) -> PathBuf {
    let path = folder.join("launcher");
    let text = format!(
        "#!/bin/sh\n{{ echo \"started: $*\"; export; }} >> '{}'\nexec '{}' \"$@\"\n",
        folder.join("processes").display(),
        env!("CARGO_BIN_EXE_rhumb")
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

pub(crate) fn helm() -> &'static Path {
    static RENDERERS: OnceLock<Renderers> = OnceLock::new();
    &RENDERERS.get_or_init(|| Renderers::find().unwrap()).helm
}

pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Returns the word of the one template of a chart.
pub(crate) fn word(chart: &FetchedChart) -> String {
    let template = chart.files.iter().find(|file| file.path == "templates/a.yaml").unwrap();
    let text = String::from_utf8(template.content.clone()).unwrap();
    text.split("{name: ").nth(1).unwrap().split('}').next().unwrap().to_owned()
}

/// Returns the code of an error, and all that is shown of it.
#[track_caller]
pub(crate) fn refused(fetched: Result<FetchedChart, FetchError>) -> (&'static str, String) {
    let error = fetched.map(|chart| chart.digest).unwrap_err();
    let shown = format!("{error}; {}; {error:?}", error.hint());
    assert!(!shown.contains(CANARY) && !shown.contains(BASIC), "{shown}");
    (error.code(), error.to_string())
}
