//! One fetch by helm: a process with a network and without any file of a revision.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::FetchError;
use super::helm_error::{helm_fetch_error, quote};
use super::login::{HostLogin, write_registries, write_repositories};
use super::network::{proxy_ports, readable_files};
use crate::config::ChartAddress;
use crate::input::helm::scalar_text;
use crate::input::render_host::RenderHost;
use crate::input::render_workspace::RenderFolder;
use crate::input::sandbox::{
    NetworkReach, ProgramCommand, RunOutput, SandboxError, SandboxLimits, SandboxPolicy,
};
use crate::manifest::read_first_document;
use crate::secret::read_regular;

/// The name under which helm knows the one repository.
const REPOSITORY_ALIAS: &str = "charts";
/// The words of helm where it has the index.
const UPDATED_MESSAGE: &str = "Successfully got an update from the";
/// The port of name servers.
const NAME_SERVER_PORT: u16 = 53;

/// The bounds of one process. An index may have 20 MiB, and takes many times that to be read.
const PULL_LIMITS: SandboxLimits = SandboxLimits {
    memory: 1 << 30,
    processor: Duration::from_mins(1),
    deadline: Duration::from_mins(2),
    file: 64 << 20,
    descriptors: 256,
    output: 1 << 20,
    stderr: 64 << 10,
};
/// Go collects garbage only near this many bytes.
const PULL_GO_MEMORY_BYTES: u64 = 512 << 20;
const GO_MAX_PROCESSORS: usize = 2;

/// A chart that is asked for: a version, or a range of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PulledChart<'a> {
    /// The repository.
    pub(super) address: &'a ChartAddress,
    /// The name.
    pub(super) name: &'a str,
    /// The version, or the range.
    pub(super) version: &'a str,
}

/// The files and variables of one fetch.
pub(super) struct HelmPull<'a> {
    host: &'a RenderHost,
    program: PathBuf,
    chart: PulledChart<'a>,
    login: Option<HostLogin>,
    variables: &'a [(OsString, OsString)],
    /// Gone, with all that is in it, when this is dropped.
    folder: RenderFolder,
}

impl<'a> HelmPull<'a> {
    /// Prepares a fetch.
    pub(super) fn new(
        host: &'a RenderHost,
        program: PathBuf,
        chart: PulledChart<'a>,
        login: Option<HostLogin>,
        variables: &'a [(OsString, OsString)],
    ) -> Result<Self, FetchError> {
        let folder = fetch_folder(host, login.as_ref()).map_err(start_error)?;
        let pull = Self { host, program, chart, login, variables, folder };
        pull.write_files().map_err(start_error)?;
        Ok(pull)
    }

    fn write_files(&self) -> io::Result<()> {
        fs::create_dir(self.archives())?;
        let address = self.chart.address;
        if address.is_registry() {
            write_registries(&self.path("registries.json"), address, self.login.as_ref())
        } else {
            write_registries(&self.path("registries.json"), address, None)?;
            write_repositories(
                &self.path("repositories.yaml"),
                REPOSITORY_ALIAS,
                address,
                self.login.as_ref(),
            )
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn archives(&self) -> PathBuf {
        self.path("archives")
    }

    /// Returns the archive of the chart, of at most so many bytes and one more.
    pub(super) async fn archive(&self, most: u64) -> Result<Vec<u8>, FetchError> {
        self.update().await?;
        let destination = format!("--destination={}", self.archives().display());
        self.succeed(&["pull", &self.place(), &self.version(), &destination]).await?;
        let missing = || self.failure("helm brought no archive");
        let entry = fs::read_dir(self.archives()).map_err(start_error)?.flatten().next();
        let path = entry.ok_or_else(missing)?.path();
        read_regular(&path, most.saturating_add(1)).map_err(start_error)
    }

    /// Returns the version that the chart has which helm takes.
    pub(super) async fn newest_version(&self) -> Result<String, FetchError> {
        self.update().await?;
        let shown = self.succeed(&["show", "chart", &self.place(), &self.version()]).await?;
        let read = read_first_document(&Arc::from("Chart.yaml"), &shown.output);
        let version = read.documents.first().map(|root| scalar_text(root, "version"));
        let version = version.filter(|version| !version.is_empty());
        version.ok_or_else(|| self.failure("helm names no version"))
    }

    /// Fetches the index of a repository; a registry has none.
    async fn update(&self) -> Result<(), FetchError> {
        if self.chart.address.is_registry() {
            return Ok(());
        }
        let run = self.run(&["repo", "update", REPOSITORY_ALIAS]).await?;
        let output = String::from_utf8_lossy(&run.output);
        // Some versions of helm end well where they have no index.
        if run.is_success() && output.contains(UPDATED_MESSAGE) {
            return Ok(());
        }
        Err(limit_error(&run).unwrap_or_else(|| self.failure(&format!("{output}\n{}", run.stderr))))
    }

    async fn succeed(&self, arguments: &[&str]) -> Result<RunOutput, FetchError> {
        let run = self.run(arguments).await?;
        if run.is_success() {
            return Ok(run);
        }
        Err(limit_error(&run).unwrap_or_else(|| self.failure(&run.stderr)))
    }

    async fn run(&self, arguments: &[&str]) -> Result<RunOutput, FetchError> {
        let run = self.host.sandbox().run(&self.policy(), &self.command(arguments)).await;
        run.map_err(|error| FetchError::Sandbox(self.redact_error(error)))
    }

    fn command(&self, arguments: &[&str]) -> ProgramCommand {
        let mut command = ProgramCommand::new(&self.program, self.folder.path())
            .arguments(arguments.iter().copied())
            .go_runtime(PULL_GO_MEMORY_BYTES, GO_MAX_PROCESSORS)
            // The resolver of the C library would load whatever this host names.
            .variable("GODEBUG", "netdns=go")
            .variable("HELM_NO_PLUGINS", "1")
            .variable("HELM_REGISTRY_CONFIG", self.path("registries.json"))
            .variable("HELM_REPOSITORY_CONFIG", self.path("repositories.yaml"));
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"] {
            command = command.variable(name, self.path("helm"));
        }
        command = command.variable("HELM_REPOSITORY_CACHE", self.path("index"));
        self.variables.iter().fold(command, |command, (name, value)| command.variable(name, value))
    }

    fn policy(&self) -> SandboxPolicy {
        let mut ports = vec![NAME_SERVER_PORT, self.chart.address.port()];
        ports.extend(proxy_ports(self.variables));
        SandboxPolicy {
            mode: self.host.mode(),
            readable: readable_files(self.variables, Path::exists),
            private: self.folder.path().to_owned(),
            network: NetworkReach::Ports(ports),
            limits: PULL_LIMITS,
        }
    }

    /// Returns the chart as helm is asked for it.
    fn place(&self) -> String {
        let PulledChart { address, name, .. } = self.chart;
        if address.is_registry() {
            format!("{}/{name}", address.to_string().trim_end_matches('/'))
        } else {
            format!("{REPOSITORY_ALIAS}/{name}")
        }
    }

    fn version(&self) -> String {
        format!("--version={}", self.chart.version)
    }

    fn failure(&self, stderr: &str) -> FetchError {
        helm_fetch_error(&self.hide_login(stderr), self.chart)
    }

    fn hide_login(&self, text: &str) -> String {
        self.login.as_ref().map_or_else(|| text.to_owned(), |login| login.hide(text))
    }

    /// Returns an error without what may be a secret in it.
    fn redact_error(&self, error: SandboxError) -> SandboxError {
        let clean = |stderr: String| quote(&self.hide_login(&stderr));
        match error {
            SandboxError::Stopped { program, part, stderr } => {
                SandboxError::Stopped { program, part, stderr: clean(stderr) }
            }
            SandboxError::Killed { program, signal, stderr } => {
                SandboxError::Killed { program, signal, stderr: clean(stderr) }
            }
            other => other,
        }
    }
}

/// Returns the error of a helm that a limit ended, and no error of its own. The words of Go say
/// nothing then.
fn limit_error(run: &RunOutput) -> Option<FetchError> {
    if run.stderr.lines().any(|line| line.starts_with("Error:")) {
        return None;
    }
    let part = run.denied_part().filter(|part| part.is_limit())?;
    Some(SandboxError::Stopped { program: "helm".to_owned(), part, stderr: String::new() }.into())
}

/// Makes the folder of a fetch. One that gets credentials is in memory, where the host has any.
fn fetch_folder(host: &RenderHost, login: Option<&HostLogin>) -> io::Result<RenderFolder> {
    if login.is_some()
        && let Ok(Some(folder)) = RenderFolder::in_memory(host)
    {
        return Ok(folder);
    }
    RenderFolder::anywhere(host, "rhumb-fetch-")
}

fn start_error(error: io::Error) -> FetchError {
    SandboxError::NotStarted { program: "helm".to_owned(), error }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RendererConfig;

    #[test]
    fn a_limit_is_named_where_helm_came_to_no_error_of_its_own() {
        #[track_caller]
        fn check(stderr: &str, expected: Option<&str>) {
            let (output, stderr) = (Vec::new(), stderr.to_owned());
            let run = RunOutput { code: 2, output, stderr, processor: Duration::ZERO };
            assert_eq!(limit_error(&run).map(|error| error.to_string()).as_deref(), expected);
        }
        let memory = "helm was stopped: it asked for more memory than it may have";
        check("fatal error: runtime: out of memory\n\ngoroutine 1 [running]:\nmain.main()\n", Some(memory));
        check("Error: write index.yaml: cannot allocate memory\n", None);
        check("dial tcp 10.0.0.1:8443: connect: permission denied\n", None);
        check("", None);
    }

    #[test]
    fn credentials_are_written_to_memory_where_the_temporary_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("login");
        fs::write(&file, "user:password").unwrap();
        let login = HostLogin::read(&file).unwrap();
        // No memory, and no folder either.
        let host = RenderHost::new(&RendererConfig::default(), OsString::new(), "/nowhere".into());
        let made = fetch_folder(&host, Some(&login)).unwrap();
        assert!(made.path().starts_with("/dev/shm"), "{}", made.path().display());
        let failure = fetch_folder(&host, None).err().map(|error| error.kind());
        assert_eq!(failure, Some(io::ErrorKind::NotFound));
    }
}
