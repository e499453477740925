//! From what was typed to what it means: one checked [`Config`] for each command.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::CommandError;
use super::args::{GlobalArgs, LocationArgs, LogFormat, RunArgs, SourceSetArgs, WhyArgs};
use super::exit::{ExitStatus, os_message};
use super::terminal::Terminal;
use crate::config::{
    self, Config, DnsLabel, Environment, FetchConfig, GitSpec, GitUrl, ServeConfig, SourceConfig, SourceMode,
    SourceSpec,
};
use crate::engine::PrunePolicy;
use crate::object::{Diagnostic, ErrorClass};
use crate::render::{self, Palette};
use crate::report::{ServiceNotifier, SystemdService};
use crate::secret;
use crate::source::{self, LocationKind};

/// Returns the environment of this process; relative paths start at `directory`.
pub(super) fn process_environment(directory: PathBuf) -> Environment {
    let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let credential = |name| path("CREDENTIALS_DIRECTORY").map(|folder| folder.join(name));
    Environment {
        directory,
        home: path("HOME"),
        state_directory: path("STATE_DIRECTORY"),
        xdg_state_home: path("XDG_STATE_HOME"),
        xdg_cache_home: path("XDG_CACHE_HOME"),
        runtime_directory: path("RUNTIME_DIRECTORY"),
        xdg_runtime_directory: path("XDG_RUNTIME_DIR"),
        socket: path("RHUMB_SOCKET"),
        // One that cannot be read lets nobody in, instead of everybody.
        serve_token: credential("serve-token").filter(|file| secret::is_there(file)),
        webhook_secret: credential("webhook-secret"),
    }
}

/// The socket of the packaged service.
const PACKAGED_SOCKET: &str = "/run/rhumb/rhumb.sock";

/// The maximum size of a configuration file, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 16 << 20;

/// Indicates whether a file is read for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileRead {
    /// It may come through a pipe, which is waited for.
    First,
    /// A later read: a wait now delays everything.
    Again,
}

/// The source of a command's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusSource {
    /// The daemon on this socket, and nobody else.
    Daemon(PathBuf),
    /// The daemon on this socket, else the cluster.
    DaemonOrCluster(PathBuf),
    /// The cluster, as its flags say which.
    Cluster,
}

/// Returns the source of a status that the flags name. A daemon knows one cluster, so flags that
/// name a cluster mean the cluster itself.
pub(super) fn status_source(
    global: &GlobalArgs,
    socket: Option<&Path>,
) -> Result<StatusSource, CommandError> {
    // A person's own daemon comes before the packaged one, where it has ever run.
    let own = process_environment(PathBuf::new());
    let named = own.socket.is_some() || own.runtime_directory.is_some();
    let here = own.socket_path().filter(|path| named || path.exists());
    let flags = [("--kubeconfig", global.kubeconfig.is_some()), ("--context", global.context.is_some())];
    let flag = flags.into_iter().find_map(|(flag, given)| given.then_some(flag));
    let names_cluster = flag.is_some() || global.system_namespace.is_some();
    match (socket, flag) {
        (Some(_), Some(flag)) => {
            Err(CommandError::usage_error(format!("--socket cannot be used with {flag}"))
                .hint("a daemon knows its cluster: leave one of the two out"))
        }
        (Some(path), None) => Ok(StatusSource::Daemon(path.to_owned())),
        (None, _) if names_cluster => Ok(StatusSource::Cluster),
        (None, _) => Ok(StatusSource::DaemonOrCluster(here.unwrap_or_else(|| PACKAGED_SOCKET.into()))),
    }
}

/// Returns the service as its manager knows it, and how often that expects a heartbeat. Outside
/// of a service nobody is notified.
pub(super) fn systemd_service() -> (SystemdService, Option<Duration>) {
    let address = std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty());
    let notifier = address.and_then(|address| match ServiceNotifier::connect(&address) {
        Ok(notifier) => Some(notifier),
        Err(error) => {
            tracing::warn!("NOTIFY_SOCKET cannot be used: {}", os_message(&error));
            None
        }
    });
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let interval = watchdog_interval(number("WATCHDOG_USEC"), number("WATCHDOG_PID"), std::process::id());
    (SystemdService::new(notifier.unwrap_or_default()), interval)
}

/// Returns how often the manager expects a heartbeat, where it expects them of this process.
fn watchdog_interval(micros: Option<u64>, named: Option<u64>, own: u32) -> Option<Duration> {
    let is_for_process = named.is_none_or(|named| named == u64::from(own));
    micros.filter(|micros| is_for_process && *micros > 0).map(Duration::from_micros)
}

/// Returns the environment with the working directory.
fn local_environment() -> Result<Environment, CommandError> {
    let directory = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ErrorClass::Config,
            format!("the working directory cannot be used: {}", os_message(&error)),
        )
    })?;
    Ok(process_environment(directory))
}

/// Returns the settings of a command that knows the cluster and a source's name, but no location.
pub(super) fn connection_config(global: &GlobalArgs) -> Config {
    let mut config = Config::default();
    override_by(&mut config, global);
    config
}

/// Returns the name of the source: that of the flags, else one derived from its location.
fn source_name(global: &GlobalArgs, spec: &SourceSpec) -> Result<DnsLabel, CommandError> {
    if let Some(name) = &global.name {
        return Ok(name.clone());
    }
    let placed = spec.clone().into_config(&DnsLabel::unnamed(), &local_environment()?);
    let placed = placed.map_err(|error| CommandError::usage_error(error.to_string()))?;
    let location = source::ResolvedLocation::from(&placed.location);
    let title = location.title();
    Ok(DnsLabel::derived(&[&title.repository, &title.inside], &location.location_id()))
}

/// Returns the namespace of objects that name none.
pub(super) fn default_namespace(global: &GlobalArgs) -> DnsLabel {
    global.namespace.clone().unwrap_or_else(DnsLabel::unnamed)
}

/// Returns the settings of `why`, where it names a source.
pub(super) fn config_for_why(global: &GlobalArgs, args: &WhyArgs) -> Result<Option<Config>, CommandError> {
    let Some(source) = args.source.clone() else {
        if args.location.reference.is_none() && args.location.path.is_none() {
            return Ok(None);
        }
        return Err(
            CommandError::usage_error("--ref and --path are of a SOURCE").hint("name it behind the object")
        );
    };
    one_shot_config(global, &source, &args.location, PrunePolicy::On).map(Some)
}

/// Returns the settings of commands that ask what sources hold: those of a file, or of one location
/// as it is on disk.
pub(super) fn source_set(
    global: &GlobalArgs,
    args: &SourceSetArgs,
    terminal: &Terminal,
) -> Result<Config, CommandError> {
    match (&args.config, &args.source) {
        (Some(file), _) => {
            refuse_source_name(global)?;
            from_file(global, SourceMode::Enforce, file, FileRead::First, terminal)
        }
        (None, source) => {
            let source = source.clone().unwrap_or_default();
            one_shot_config(global, &source, &args.location, PrunePolicy::On)
        }
    }
}

/// Returns the folder with keys and tokens for git servers.
pub(super) fn credentials_directory() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the configuration for a location. A path is read as it is on disk, unless a revision is
/// named. Of a URL and a bare repository, which have no files there, the newest commit is read.
pub(super) fn one_shot_config(
    global: &GlobalArgs,
    text: &str,
    args: &LocationArgs,
    prune: PrunePolicy,
) -> Result<Config, CommandError> {
    let kind = source::classify(text)?;
    let mut spec = match kind {
        LocationKind::Repository(path)
            if args.reference.is_none() && !source::is_url(text) && is_work_tree(&path) =>
        {
            disk_spec(&path, args)
        }
        kind => spec_of_kind(kind, text, args)?,
    };
    spec.prune = prune == PrunePolicy::On;
    config_with_source(global, spec, args)
}

/// Returns the settings of a source whose files were read already, as those of this folder.
pub(super) fn folder_config(
    global: &GlobalArgs,
    folder: &Path,
    args: &LocationArgs,
) -> Result<Config, CommandError> {
    let spec = SourceSpec { directory: Some(folder.to_owned()), ..SourceSpec::default() };
    let mut config = config_with_source(global, spec, args)?;
    config.sources.iter_mut().for_each(|source| source.prune = PrunePolicy::Partial);
    Ok(config)
}

/// The command line of one invocation.
#[derive(Clone, Copy)]
pub(super) struct Invocation<'a> {
    /// The arguments of the command.
    pub(super) args: &'a RunArgs,
    /// The arguments of every command.
    pub(super) global: &'a GlobalArgs,
    /// The terminal that shows faults of the configuration.
    pub(super) terminal: &'a Terminal,
}

impl Invocation<'_> {
    /// Returns the settings as they are now: the file may be another one than before.
    pub(super) fn read_settings(&self, reading: FileRead) -> Result<Config, CommandError> {
        run_config(self.global, self.args, reading, self.terminal)
    }

    /// Gives a fault of a configuration file its own exit code: no restart of the service mends it.
    pub(super) fn classify(&self, error: CommandError) -> CommandError {
        let configured = self.args.config.is_some() && error.class == ErrorClass::Config;
        if configured { error.with_exit(ExitStatus::BadConfiguration) } else { error }
    }
}

/// Returns the settings of `run`: a repository is followed by its commits, any other directory by
/// its files.
fn run_config(
    global: &GlobalArgs,
    args: &RunArgs,
    reading: FileRead,
    terminal: &Terminal,
) -> Result<Config, CommandError> {
    if let Some(file) = &args.config {
        let mode = if args.observe { SourceMode::Observe } else { SourceMode::Enforce };
        refuse_source_name(global)?;
        return from_file(global, mode, file, reading, terminal);
    }
    let text = args.source.as_deref().unwrap_or_default();
    let mut spec = spec_of_kind(awaited_location(text)?, text, &args.location)?;
    match (&mut spec.git, args.interval) {
        (Some(git), Some(interval)) => git.interval = interval,
        (None, Some(_)) => {
            return Err(CommandError::usage_error(format!(
                "{text} is a directory: it is watched, not asked"
            ))
            .hint("leave --interval out"));
        }
        (_, None) => {}
    }
    spec.prune = !args.no_prune;
    spec.observe = args.observe;
    config_with_source(global, spec, &args.location)
}

/// Classifies a location that `run` follows. Where nothing is yet, it counts as a repository until
/// more is seen: `run` waits for it, and defends what it accepted meanwhile.
fn awaited_location(text: &str) -> Result<LocationKind, CommandError> {
    match source::classify(text) {
        Err(source::SourceError::Missing { shown_location }) => {
            tracing::warn!("{shown_location}: no such file or directory; waiting for it");
            Ok(LocationKind::Repository(text.into()))
        }
        Ok(LocationKind::Directory(path)) if source::is_missing_or_empty(&path) => {
            tracing::warn!("{text}: the directory is empty; waiting for manifests or a repository");
            Ok(LocationKind::Repository(path))
        }
        classified => Ok(classified?),
    }
}

fn spec_of_kind(kind: LocationKind, text: &str, args: &LocationArgs) -> Result<SourceSpec, CommandError> {
    match kind {
        LocationKind::Remote | LocationKind::Repository(_) => {
            let here = matches!(kind, LocationKind::Repository(_)) && !source::is_url(text);
            let url = GitUrl::new(text);
            // With a colon in its name it would be taken for a host from here on.
            let url = if here && url.is_url() { GitUrl::new(&format!("./{text}")) } else { url };
            let git = GitSpec {
                reference: args.reference.clone(),
                path: args.path.clone().unwrap_or_default(),
                ..GitSpec::new(url)
            };
            Ok(SourceSpec { git: Some(git), ..SourceSpec::default() })
        }
        LocationKind::Directory(path) if args.reference.is_some() => Err(not_a_repository_error(text, &path)),
        LocationKind::Directory(path) => Ok(disk_spec(&path, args)),
        LocationKind::File(_) => Err(CommandError::usage_error(format!(
            "{text} is a file, and a source is a directory"
        ))
        .hint("name its directory; `rhumb diff`, `rhumb apply` and `rhumb validate` take single files")),
    }
}

/// Returns the error about a revision of something that is no repository, or only a folder of one.
fn not_a_repository_error(text: &str, path: &Path) -> CommandError {
    let absolute = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some(tree) = absolute.ancestors().skip(1).find(|folder| is_work_tree(folder)) else {
        return CommandError::usage_error(format!("{text} is in no git repository, so --ref means nothing"))
            .hint("name a repository as SOURCE, and a folder in it with --path");
    };
    let (tree, inside) = (tree.display(), absolute.strip_prefix(tree).unwrap_or(&absolute).display());
    CommandError::usage_error(format!(
        "{text} is only a folder of the git repository {tree}, and has no revisions"
    ))
    .hint(format!("name the two apart: {tree} --path {inside}"))
}

fn is_work_tree(path: &Path) -> bool {
    path.join(".git").exists()
}

fn disk_spec(path: &Path, args: &LocationArgs) -> SourceSpec {
    let inside = args.path.clone().unwrap_or_default();
    // Without a trailing slash: the place of a source is compared as text.
    let directory = path.join(inside.as_str()).components().collect();
    SourceSpec { directory: Some(directory), ..SourceSpec::default() }
}

fn config_with_source(
    global: &GlobalArgs,
    spec: SourceSpec,
    args: &LocationArgs,
) -> Result<Config, CommandError> {
    let spec = SourceSpec {
        namespace: default_namespace(global),
        adopt: args.adopt,
        blast_radius: args.blast_radius.unwrap_or_default(),
        ..spec
    };
    let name = source_name(global, &spec)?;
    let source = spec.into_config(&name, &local_environment()?);
    let source = source.map_err(|error| CommandError::usage_error(error.to_string()))?;
    let mut config = connection_config(global);
    config.serve = ServeConfig::of_environment(&local_environment()?);
    // No flag allows a server, so no key of a file is named for it.
    config.sources.push(SourceConfig { fetch: FetchConfig::default(), ..source });
    Ok(config)
}

/// Returns the text of a configuration file.
fn read_file_text(file: &Path, reading: FileRead) -> std::io::Result<String> {
    let bytes = match reading {
        FileRead::First => {
            let mut bytes = Vec::new();
            File::open(file)?.take(MAX_CONFIGURATION_BYTES + 1).read_to_end(&mut bytes)?;
            bytes
        }
        FileRead::Again => secret::read_regular(file, MAX_CONFIGURATION_BYTES + 1)?,
    };
    if bytes.len() as u64 > MAX_CONFIGURATION_BYTES {
        let words = format!("it is larger than {} MiB", MAX_CONFIGURATION_BYTES >> 20);
        return Err(std::io::Error::other(words));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is no UTF-8"))
}

fn refused_with_config(flag: &str) -> CommandError {
    CommandError::usage_error(format!("{flag} cannot be used with --config"))
        .hint("the file says it for each source")
}

/// Fails where a source is named for a command that takes all of those in a configuration file.
pub(super) fn refuse_source_name(global: &GlobalArgs) -> Result<(), CommandError> {
    if global.name.is_some() { Err(refused_with_config("--source")) } else { Ok(()) }
}

/// Returns the settings of a configuration file.
pub(super) fn from_file(
    global: &GlobalArgs,
    mode: SourceMode,
    file: &Path,
    reading: FileRead,
    terminal: &Terminal,
) -> Result<Config, CommandError> {
    if global.namespace.is_some() {
        return Err(refused_with_config("--namespace"));
    }
    let shown = file.display().to_string();
    let wrong = |message: String| {
        CommandError::new(ErrorClass::Config, message).with_exit(ExitStatus::BadConfiguration)
    };
    let text = read_file_text(file, reading)
        .map_err(|error| wrong(format!("cannot read {shown}: {}", os_message(&error))))?;
    let directory = file.parent().unwrap_or(Path::new("")).to_owned();
    let directory = local_environment()?.resolve(&directory);
    let read = config::read(&shown, &text, &process_environment(directory));
    let mut config = read.map_err(|found: Vec<Diagnostic>| {
        report_diagnostics(&found, global, terminal);
        wrong(format!("{shown} is no usable configuration: {}", render::tally(&found)))
    })?;
    override_by(&mut config, global);
    if mode == SourceMode::Observe {
        config.sources.iter_mut().for_each(|source| source.mode = SourceMode::Observe);
    }
    Ok(config)
}

/// Shows what is wrong with it: where lines are for programs, in lines of the log.
fn report_diagnostics(found: &[Diagnostic], global: &GlobalArgs, terminal: &Terminal) {
    if global.log_format != LogFormat::Json {
        return terminal.report(&render::diagnostics(found, terminal.error_palette()));
    }
    for one in found {
        tracing::error!("{}", render::diagnostics(std::slice::from_ref(one), Palette::Plain).trim_end());
    }
}

/// Overrides the file by flags.
fn override_by(config: &mut Config, global: &GlobalArgs) {
    let take = |flag: &Option<PathBuf>, value: &mut Option<PathBuf>| {
        if flag.is_some() {
            value.clone_from(flag);
        }
    };
    take(&global.kubeconfig, &mut config.connection.kubeconfig);
    take(&global.state_directory, &mut config.state_directory);
    if global.context.is_some() {
        config.connection.context.clone_from(&global.context);
    }
    if let Some(namespace) = &global.system_namespace {
        config.namespace = namespace.to_string();
    }
}

#[cfg(test)]
mod tests;
