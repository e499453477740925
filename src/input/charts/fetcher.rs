//! Finds charts: in the store, else by helm.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::error::FetchError;
use super::login::HostLogin;
use super::pull::{HelmPull, PulledChart};
use super::reference::{ChartDigest, ChartReference, ExpectedDigest, FetchedChart};
use super::slow_servers::SlowServers;
use super::store::{ChartStore, OverwritePolicy, StoreLimits};
use super::unpack::{MAX_ARCHIVE_BYTES, UnpackLimits, unpack};
use super::version::{is_digest_reference, is_exact, is_version};
use crate::config::{ChartAddress, FetchConfig, HostCredential, SourceLocation};
use crate::fields::{mask_likely_secrets, strip_credentials};
use crate::input::kustomize::sanitize_text;
use crate::input::render_host::RenderHost;
use crate::input::sandbox::RenderProgram;

/// The files with credentials, with a dot and their name behind it.
const CREDENTIALS_FILE: &str = "chart-credentials";
/// The longest address, name and range.
const MAX_ADDRESS_CHARS: usize = 2048;
const MAX_CHART_NAME_CHARS: usize = 250;
const MAX_RANGE_CHARS: usize = 256;

/// The fetches that run at once in this process, whatever the number of its sources. Each may take
/// 1 GiB. A source has one of them at most, so one whose server hangs takes one place from the
/// others, and never all.
const MAX_CONCURRENT_FETCHES: usize = 2;
/// Their places. A new configuration makes new fetchers while older ones still run.
static PROCESS_FETCHES: Semaphore = Semaphore::const_new(MAX_CONCURRENT_FETCHES);
/// The longest wait for a place: longer than one fetch takes, and short enough for whoever waits
/// for the source.
const FETCH_PERMIT_TIMEOUT: Duration = Duration::from_mins(5);

/// The parts of rhumb's surroundings that a fetch depends on.
#[derive(Clone, Default)]
pub struct FetchEnvironment {
    /// The folder with credentials; none where there is none.
    pub credentials: Option<PathBuf>,
    /// The variables of [`super::PASSED_VARIABLES`] that are set.
    pub variables: Vec<(OsString, OsString)>,
}

/// A proxy's address may hold a password.
impl fmt::Debug for FetchEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchEnvironment").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// Indicates whether charts are fetched that no lock has a digest of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlockedCharts {
    /// They are: the first digest of each counts.
    Fetched,
    /// They are not. The signature of a commit vouches for its locks, and for nothing that a server
    /// of charts gives.
    Refused,
}

impl UnlockedCharts {
    /// Returns that of a source at this location: where its commits are verified, so are its
    /// charts.
    pub(crate) const fn of(location: &SourceLocation) -> Self {
        match location {
            SourceLocation::Git { verify: Some(_), .. } => Self::Refused,
            SourceLocation::Git { verify: None, .. } | SourceLocation::Directory(_) => Self::Fetched,
        }
    }
}

/// The fetcher of charts of servers: from the store, else by helm.
#[derive(Debug)]
pub struct ChartFetcher {
    config: FetchConfig,
    unlocked: UnlockedCharts,
    store: ChartStore,
    /// The stores of others, whose first digests count too.
    others: Vec<ChartStore>,
    environment: FetchEnvironment,
    /// Held by the one fetch of this fetcher that goes on.
    fetch_lock: Mutex<()>,
    slow_servers: std::sync::Mutex<SlowServers>,
}

/// The place of a fetch among those of its fetcher and of the process.
struct FetchPermit<'f> {
    _of_fetcher: MutexGuard<'f, ()>,
    _of_process: SemaphorePermit<'static>,
}

impl ChartFetcher {
    /// Returns one that fetches what a configuration allows, and keeps it in a folder.
    pub fn new(
        config: FetchConfig,
        unlocked: UnlockedCharts,
        folder: PathBuf,
        environment: FetchEnvironment,
    ) -> Self {
        let store = ChartStore::new(folder, StoreLimits::default());
        let (fetch_lock, slow_servers) = (Mutex::default(), std::sync::Mutex::default());
        Self { config, unlocked, store, others: Vec::new(), environment, fetch_lock, slow_servers }
    }

    /// Returns one that heeds the first digests in these folders too.
    #[must_use]
    pub fn with_first_digests_of(mut self, folders: impl Iterator<Item = PathBuf>) -> Self {
        self.others = folders.map(|folder| ChartStore::new(folder, StoreLimits::default())).collect();
        self
    }

    /// Returns one that may fetch nothing.
    #[cfg(test)]
    pub(in crate::input) fn without_servers() -> Self {
        let environment = FetchEnvironment::default();
        Self::new(FetchConfig::default(), UnlockedCharts::Fetched, PathBuf::new(), environment)
    }

    /// Returns a chart of a server with the expected digest.
    ///
    /// # Errors
    /// Fails where it may not be fetched, and where it cannot be.
    pub async fn fetch(
        &self,
        host: &RenderHost,
        reference: &ChartReference,
        wanted_digest: ExpectedDigest,
    ) -> Result<FetchedChart, FetchError> {
        let ChartReference { repository, name, version } = reference;
        let address = self.allowed_address(repository, name, version)?;
        let is_pinned = matches!(wanted_digest, ExpectedDigest::Pinned(_));
        let is_one = is_exact(version) || is_pinned && is_version(version);
        if !is_one {
            let means = self.newest_version(host, repository, name, version).await.ok();
            // A version of fewer numbers is that of one chart, where the server has it.
            if means.as_ref() != Some(version) {
                let (name, version) = (name.clone(), sanitize_text(version));
                return Err(FetchError::Range { name, version, means });
            }
        }
        if self.unlocked == UnlockedCharts::Refused && !is_pinned {
            return Err(FetchError::Unlocked(Box::new(reference.clone())));
        }
        // One record, however the address is written.
        let named = ChartReference { repository: address.to_string(), ..reference.clone() };
        let stored = |expected: Option<ChartDigest>| self.stored_chart(&named, expected);
        if let Some(chart) = stored(self.expected_digest(&named, wanted_digest)?)? {
            return Ok(FetchedChart { reference: reference.clone(), ..chart });
        }
        let pulled = PulledChart { address: &address, name, version };
        self.refuse_slow(pulled)?;
        let _turn = self.acquire_permit(&address, name).await?;
        // Somebody else may have fetched it meanwhile.
        let expected = self.expected_digest(&named, wanted_digest)?;
        let chart = if let Some(chart) = stored(expected)? {
            chart
        } else {
            let pull = async || self.helm_pull(host, pulled).await?.archive(MAX_ARCHIVE_BYTES).await;
            let archive = self.note_slowness(pulled, pull).await?;
            self.accept(&named, &archive, expected, wanted_digest)?
        };
        Ok(FetchedChart { reference: reference.clone(), ..chart })
    }

    /// Returns the newest version in a range, for messages and for `rhumb lock`.
    ///
    /// # Errors
    /// As [`ChartFetcher::fetch`].
    pub async fn newest_version(
        &self,
        host: &RenderHost,
        repository: &str,
        name: &str,
        constraint: &str,
    ) -> Result<String, FetchError> {
        let address = self.allowed_address(repository, name, constraint)?;
        let pulled = PulledChart { address: &address, name, version: constraint };
        self.refuse_slow(pulled)?;
        let _turn = self.acquire_permit(&address, name).await?;
        let pull = async || self.helm_pull(host, pulled).await?.newest_version().await;
        let version = self.note_slowness(pulled, pull).await?;
        if is_version(&version) {
            return Ok(version);
        }
        let reason = "the server gives it as the newest in the range, and it is not one exact version";
        Err(FetchError::Malformed { subject: "the version", text: sanitize_text(&version), reason })
    }

    /// Refuses a fetch that would wait as another one did in vain.
    fn refuse_slow(&self, chart: PulledChart<'_>) -> Result<(), FetchError> {
        let servers = self.slow_servers.lock().unwrap_or_else(PoisonError::into_inner);
        if !servers.is_left_alone(chart, Instant::now()) {
            return Ok(());
        }
        Err(FetchError::Network {
            repository: chart.address.to_string(),
            name: chart.name.to_owned(),
            message: "the server did not answer in time, and is not asked again at once".to_owned(),
        })
    }

    /// Asks a server, and remembers one that was waited for in vain.
    async fn note_slowness<T>(
        &self,
        chart: PulledChart<'_>,
        pull: impl AsyncFnOnce() -> Result<T, FetchError>,
    ) -> Result<T, FetchError> {
        let start = Instant::now();
        let pulled = pull().await;
        if pulled.as_ref().is_err_and(FetchError::is_transient) {
            let mut servers = self.slow_servers.lock().unwrap_or_else(PoisonError::into_inner);
            servers.note_failure(chart, start, Instant::now());
        }
        pulled
    }

    /// Waits until a fetch may go on.
    ///
    /// # Errors
    /// Fails where the fetches of others take too long.
    async fn acquire_permit(
        &self,
        address: &ChartAddress,
        name: &str,
    ) -> Result<FetchPermit<'_>, FetchError> {
        let of_fetcher = self.fetch_lock.lock().await;
        match tokio::time::timeout(FETCH_PERMIT_TIMEOUT, PROCESS_FETCHES.acquire()).await {
            Ok(Ok(of_process)) => Ok(FetchPermit { _of_fetcher: of_fetcher, _of_process: of_process }),
            Ok(Err(_)) | Err(_) => Err(FetchError::Network {
                repository: address.to_string(),
                name: name.to_owned(),
                message: format!(
                    "for {} minutes, slower servers kept all fetches busy",
                    FETCH_PERMIT_TIMEOUT.as_secs() / 60
                ),
            }),
        }
    }

    /// Returns the address of a repository from which this chart may be fetched.
    fn allowed_address(
        &self,
        repository: &str,
        name: &str,
        version: &str,
    ) -> Result<ChartAddress, FetchError> {
        // An address may hold a password.
        let malformed = |subject, text: &str, reason| {
            let text = sanitize_text(&mask_likely_secrets(text));
            FetchError::Malformed { subject, text, reason }
        };
        for (subject, text) in [("the repository", repository), ("the name", name), ("the version", version)]
        {
            if is_digest_reference(text) {
                return Err(FetchError::Digest { subject, text: sanitize_text(&strip_credentials(text)) });
            }
        }
        if repository.len() > MAX_ADDRESS_CHARS {
            return Err(malformed("the repository", repository, "it is too long"));
        }
        let address = repository.parse::<ChartAddress>().map_err(|_| {
            let reason = "it is no address as https://HOST/FOLDER or oci://HOST/FOLDER, without a user, `..`, `//`, `%`, `?` and `#`";
            malformed("the repository", repository, reason)
        })?;
        let chart = is_chart_name(name).then(|| address.chart(name)).flatten();
        let chart = chart.ok_or_else(|| {
            malformed(
                "the name",
                name,
                "it may have letters, digits, `.`, `_` and `-`, and begins with none of these",
            )
        })?;
        if version.len() > MAX_RANGE_CHARS || version.chars().any(char::is_control) {
            return Err(malformed("the version", version, "it is too long, or has a control character"));
        }
        if self.config.is_allowed(&chart) {
            return Ok(address);
        }
        Err(FetchError::NotAllowed {
            repository: sanitize_text(repository.trim_end_matches('/')),
            name: name.to_owned(),
            version: sanitize_text(version),
            setting: self.config.setting,
        })
    }

    /// Returns the digest that an archive of the chart must have, as far as it is known.
    fn expected_digest(
        &self,
        named: &ChartReference,
        wanted_digest: ExpectedDigest,
    ) -> Result<Option<ChartDigest>, FetchError> {
        match wanted_digest {
            ExpectedDigest::Pinned(pin) => Ok(Some(pin)),
            ExpectedDigest::Any => Ok(None),
            ExpectedDigest::First => {
                for store in std::iter::once(&self.store).chain(&self.others) {
                    if let Some(first) = store.first_digest(named)? {
                        return Ok(Some(first));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Returns a chart out of the store.
    fn stored_chart(
        &self,
        named: &ChartReference,
        digest: Option<ChartDigest>,
    ) -> Result<Option<FetchedChart>, FetchError> {
        let Some(digest) = digest else { return Ok(None) };
        let Some(archive) = self.store.archive(digest)? else { return Ok(None) };
        let files = unpack_archive(named, &archive)?;
        Ok(Some(FetchedChart { reference: named.clone(), digest, files }))
    }

    /// Checks what a server gave, and keeps it.
    fn accept(
        &self,
        named: &ChartReference,
        archive: &[u8],
        expected: Option<ChartDigest>,
        wanted_digest: ExpectedDigest,
    ) -> Result<FetchedChart, FetchError> {
        let found = ChartDigest::of(archive);
        let same = |expected: ChartDigest| {
            let changed = || FetchError::Changed { reference: Box::new(named.clone()), expected, found };
            if expected == found { Ok(()) } else { Err(changed()) }
        };
        expected.map_or(Ok(()), same)?;
        let files = unpack_archive(named, archive)?;
        let digest = self.store.keep_archive(archive)?;
        // A person wrote the pin, or asked for this one; else the first digest stays.
        let is_first = wanted_digest == ExpectedDigest::First;
        let replacement = if is_first { OverwritePolicy::None } else { OverwritePolicy::Any };
        self.store.record(named, digest, replacement)?;
        // Another process may have recorded one at the same time.
        self.store.first_digest(named)?.map_or(Ok(()), same)?;
        Ok(FetchedChart { reference: named.clone(), digest, files })
    }

    /// Prepares a run of helm that asks a server for a chart.
    async fn helm_pull<'a>(
        &'a self,
        host: &'a RenderHost,
        chart: PulledChart<'a>,
    ) -> Result<HelmPull<'a>, FetchError> {
        let login = self.login(chart.address)?;
        let program = host.find(RenderProgram::Helm).await?.path;
        tracing::info!(repository = %chart.address, chart = chart.name, version = chart.version, "asking a server for a chart");
        HelmPull::new(host, program, chart, login, &self.environment.variables)
    }

    /// Returns the credentials that are for the host of an address, and for no other.
    fn login(&self, address: &ChartAddress) -> Result<Option<HostLogin>, FetchError> {
        let Some(named) = self.config.credential(address) else { return Ok(None) };
        self.environment.login(named).map(Some)
    }
}

impl FetchEnvironment {
    /// Checks that the credentials for a host can be read. Returns their file.
    ///
    /// # Errors
    /// Fails where they cannot, as each fetch from the host would.
    pub fn check_credential(&self, named: &HostCredential) -> Result<PathBuf, FetchError> {
        self.login(named).and_then(|_| self.credential_file(named))
    }

    fn login(&self, named: &HostCredential) -> Result<HostLogin, FetchError> {
        HostLogin::read(&self.credential_file(named)?).map_err(|reason| no_credentials(named, reason))
    }

    fn credential_file(&self, named: &HostCredential) -> Result<PathBuf, FetchError> {
        let folder = self.credentials.as_ref();
        let folder =
            folder.ok_or_else(|| no_credentials(named, "$CREDENTIALS_DIRECTORY is not set".to_owned()))?;
        Ok(folder.join(format!("{CREDENTIALS_FILE}.{}", named.credential)))
    }
}

fn no_credentials(named: &HostCredential, reason: String) -> FetchError {
    FetchError::Credentials { host: named.host.as_str().to_owned(), reason }
}

fn unpack_archive(
    named: &ChartReference,
    archive: &[u8],
) -> Result<Vec<super::reference::ChartFile>, FetchError> {
    let refused = |error| FetchError::Unpack { reference: Box::new(named.clone()), error };
    unpack(archive, named, UnpackLimits::default()).map_err(refused)
}

/// Returns whether a name is one that helm takes for a chart's, and no option and no folder above.
fn is_chart_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.len() <= MAX_CHART_NAME_CHARS
        && name.bytes().all(plain)
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{GitUrl, PositiveDuration, RendererConfig, TreePath, VerifyMode, VerifySpec};

    #[tokio::test]
    async fn beside_signed_commits_the_lock_alone_says_what_a_chart_is() {
        let folder = tempfile::tempdir().unwrap();
        // There is no helm: what passes is missed only then.
        let host = RenderHost::new(&RendererConfig::default(), OsString::new(), folder.path().to_owned());
        let repository = "https://charts.example.org/stable";
        let allow = vec![repository.parse().unwrap()];
        let config = FetchConfig { allow, ..FetchConfig::default() };
        let [any, locked] = [UnlockedCharts::Fetched, UnlockedCharts::Refused].map(|unlocked| {
            let environment = FetchEnvironment::default();
            ChartFetcher::new(config.clone(), unlocked, folder.path().join("charts"), environment)
        });
        let [repository, name, version] = [repository, "web", "1.2.3"].map(str::to_owned);
        let chart = ChartReference { repository, name, version };
        let digest = ChartDigest::of(b"web");
        for (fetcher, expected, is_refused) in [
            (&any, ExpectedDigest::First, false),
            (&any, ExpectedDigest::Any, false),
            (&any, ExpectedDigest::Pinned(digest), false),
            (&locked, ExpectedDigest::First, true),
            (&locked, ExpectedDigest::Any, true),
            (&locked, ExpectedDigest::Pinned(digest), false),
        ] {
            let error = fetcher.fetch(&host, &chart, expected).await.unwrap_err();
            assert_eq!(error.code() == "chart-not-locked", is_refused, "{expected:?}: {error}");
        }
    }

    #[test]
    fn a_source_takes_unlocked_charts_only_where_its_commits_are_not_verified() {
        let git = |verify| SourceLocation::Git {
            url: GitUrl::new("https://git.example.org/shop.git"),
            reference: None,
            path: TreePath::default(),
            interval: PositiveDuration::from_seconds(60),
            verify,
        };
        let verify = |mode| Some(VerifySpec { keys: "/etc/rhumb/signers".into(), mode });
        for (location, expected) in [
            (git(None), UnlockedCharts::Fetched),
            (git(verify(VerifyMode::Head)), UnlockedCharts::Refused),
            (git(verify(VerifyMode::Range)), UnlockedCharts::Refused),
            (SourceLocation::Directory("/srv/shop".into()), UnlockedCharts::Fetched),
        ] {
            assert_eq!(UnlockedCharts::of(&location), expected, "{location:?}");
        }
    }

    // A root may name a hundred charts of a server that never answers.
    #[tokio::test]
    async fn a_server_that_was_waited_for_in_vain_is_not_asked_for_the_next_chart() {
        let address: ChartAddress = "https://charts.example.org/stable".parse().unwrap();
        let config = FetchConfig { allow: vec![address.clone()], ..FetchConfig::default() };
        let folder = tempfile::tempdir().unwrap();
        let (unlocked, environment) = (UnlockedCharts::Fetched, FetchEnvironment::default());
        let fetcher = ChartFetcher::new(config, unlocked, folder.path().to_owned(), environment);
        let chart = |name| PulledChart { address: &address, name, version: "1.0.0" };
        assert!(fetcher.refuse_slow(chart("web")).is_ok());
        let start = Instant::now();
        let end = start + Duration::from_mins(2);
        fetcher.slow_servers.lock().unwrap().note_failure(chart("redis"), start, end);
        // A fetch that began would miss helm.
        let host = RenderHost::new(&RendererConfig::default(), OsString::new(), "/nowhere".into());
        let (repository, name) = (address.to_string(), "web".to_owned());
        let reference = ChartReference { repository, name, version: "1.0.0".to_owned() };
        let pulled = fetcher.fetch(&host, &reference, ExpectedDigest::First).await.unwrap_err();
        let newest = fetcher.newest_version(&host, &reference.repository, "web", "*").await.unwrap_err();
        for error in [pulled, newest] {
            assert!(error.code() == "fetch-failed" && error.is_transient(), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_finds_no_place_is_tried_again_later() {
        let [fetcher, other, third] = [(); 3].map(|()| ChartFetcher::without_servers());
        let address: ChartAddress = "https://charts.example.org/stable".parse().unwrap();
        let first = fetcher.acquire_permit(&address, "web").await.unwrap();
        let _second = other.acquire_permit(&address, "web").await.unwrap();
        let Err(error) = third.acquire_permit(&address, "web").await else {
            panic!("three fetches go on at once")
        };
        assert!(error.is_transient(), "{error}");
        assert_eq!(
            error.to_string(),
            "the chart web cannot be fetched from https://charts.example.org/stable: for 5 minutes, slower servers \
             kept all fetches busy"
        );
        drop(first);
        assert!(third.acquire_permit(&address, "web").await.is_ok());
    }
}
