//! Renderers as the configuration asks for them, and what is on disk with its roots rendered.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use super::CommandError;
use super::identities;
use super::one_shot_input::STANDARD_INPUT;
use super::settings::{credentials_directory, process_environment};
use crate::cluster::Cluster;
use crate::config::{
    FetchConfig, GeneratedValues, HelmSpec, RenderMode, RendererConfig, SourceConfig, SourceLocation,
};
use crate::daemon;
use crate::input::charts::{ChartFetcher, FetchEnvironment, PASSED_VARIABLES, UnlockedCharts};
use crate::input::helm::{GeneratedPolicy, SchemaUse, UnnamedNamespace};
use crate::input::{
    Decrypter, HelmReleaseSettings, PinPolicy, ReadFolder, RenderHost, RootLocks, SourceRenderer,
    SourceVariables, VariableMode, find_locks, render_folders,
};
use crate::source::{
    self, ClusterFacts, DiskSnapshot, InputArgument, KnownClusterFacts, SnapshotRenderer, SourceError,
    SourceSettings,
};

/// Leftovers are looked for once: the renderers of all sources have the same folders.
static LEFTOVERS_REMOVAL: Once = Once::new();

/// The renderer of one source.
#[derive(Clone, Debug)]
pub(super) struct SourceRendering {
    renderer: Arc<SourceRenderer>,
    decrypter: Arc<Decrypter>,
    variables: VariableMode,
}

impl SourceRendering {
    /// Returns the one of a source.
    pub(super) fn of(config: &SourceConfig) -> Self {
        let variables = config.substitution.clone().map(|substitution| SourceVariables {
            config: substitution,
            namespace: config.namespace.clone(),
        });
        let decrypter = identities::of_source(config);
        let HelmSpec {
            release,
            namespace,
            values,
            values_inline,
            kube_version,
            api_versions,
            generated,
            skip_schema_validation,
        } = config.helm.clone();
        let own = namespace.filter(|own| own.as_str() != config.namespace);
        let releases = HelmReleaseSettings {
            release,
            top: top_name(&config.location, &config.name),
            objects: own.as_ref().map_or(UnnamedNamespace::Source, |_| UnnamedNamespace::Release),
            namespace: own.map_or_else(|| config.namespace.clone(), Into::into),
            values,
            inline: values_inline.text(),
            kube_version,
            api_versions: api_versions.into(),
            generated: match generated {
                GeneratedValues::Refuse => GeneratedPolicy::Refuse,
                GeneratedValues::Once => GeneratedPolicy::Once,
            },
            schemas: if skip_schema_validation { SchemaUse::Skip } else { SchemaUse::Validate },
        };
        let unlocked = UnlockedCharts::of(&config.location);
        let charts = chart_fetcher(&config.fetch, unlocked, Some(&config.name));
        Self::new(config.render, &config.renderers, decrypter, releases, variables, charts)
    }

    /// Returns the one for a file or folder that is read in the usual way.
    pub(super) fn automatic(path: &Path, renderers: &RendererConfig, fetch: &FetchConfig) -> Self {
        Self::by_fetcher(path, renderers, chart_fetcher(fetch, UnlockedCharts::Fetched, None))
    }

    /// Returns the one for the locks of what is on disk, by the configuration of sources that
    /// render it.
    pub(super) fn of_locks(renderers: &RendererConfig, sources: &[SourceConfig]) -> Self {
        let fetch = FetchConfig::union(sources.iter().map(|source| &source.fetch));
        let stores: Vec<PathBuf> = sources.iter().map(|source| chart_folder(Some(&source.name))).collect();
        Self::by_fetcher(
            Path::new(""),
            renderers,
            chart_fetcher(&fetch, UnlockedCharts::Fetched, None).with_first_digests_of(stores.into_iter()),
        )
    }

    fn by_fetcher(path: &Path, renderers: &RendererConfig, charts: ChartFetcher) -> Self {
        let folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
        let (top, namespace) = (folder_name(folder).unwrap_or_default(), "default".to_owned());
        let releases = HelmReleaseSettings { top, namespace, ..HelmReleaseSettings::default() };
        Self::new(RenderMode::Auto, renderers, identities::of_command(), releases, None, charts)
    }

    fn new(
        mode: RenderMode,
        renderers: &RendererConfig,
        decrypter: Arc<Decrypter>,
        releases: HelmReleaseSettings,
        variables: Option<SourceVariables>,
        charts: ChartFetcher,
    ) -> Self {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let host = RenderHost::new(renderers, search, private_folder());
        LEFTOVERS_REMOVAL.call_once(|| host.remove_leftovers());
        let renderer = SourceRenderer::new(host.into(), mode, decrypter.clone(), charts);
        let variable_mode = VariableMode::of(variables.as_ref());
        let renderer = renderer.with_variables(variables).with_releases(releases);
        Self { renderer: Arc::new(renderer), decrypter, variables: variable_mode }
    }

    /// Returns the identities that open what is encrypted.
    pub(super) fn decrypter(&self) -> Arc<Decrypter> {
        self.decrypter.clone()
    }

    /// Returns what `${NAME}` means in what is rendered.
    pub(super) const fn variable_mode(&self) -> VariableMode {
        self.variables
    }

    /// Returns whether charts were given a version of Kubernetes that nobody named.
    pub(super) fn has_assumed_version(&self) -> bool {
        self.renderer.has_assumed_version()
    }

    /// Renders files that were read, where no cluster is asked.
    pub(super) fn render(&self, files: &UnrenderedFiles) -> Result<Arc<DiskSnapshot>, SourceError> {
        render_folders(&files.disk, &files.folders, &self.renderer, &ClusterFacts::NotQueried)
    }

    /// Renders files that were read. Asks the cluster for what their roots depend on in it.
    pub(super) async fn render_for(
        &self,
        files: &UnrenderedFiles,
        cluster: &Cluster,
    ) -> Result<Arc<DiskSnapshot>, CommandError> {
        let mut known = KnownClusterFacts::default();
        loop {
            let facts = ClusterFacts::Queried(known.clone());
            match render_folders(&files.disk, &files.folders, &self.renderer, &facts) {
                Err(SourceError::FactsWanted(wanted)) => {
                    daemon::read_cluster_facts(cluster, &wanted, &mut known).await?;
                }
                rendered => return Ok(rendered?),
            }
        }
    }

    /// Finds the locks of the roots below a directory.
    pub(super) fn find_locks(&self, folder: &Path, policy: PinPolicy) -> Result<RootLocks, SourceError> {
        find_locks(here_if_empty(folder), &self.renderer, policy)
    }
}

/// Files as they are on disk, whose roots are not rendered yet.
#[derive(Clone, Debug)]
pub(super) struct UnrenderedFiles {
    disk: Arc<DiskSnapshot>,
    folders: Vec<ReadFolder>,
}

impl UnrenderedFiles {
    /// Reads a directory, or a single file.
    pub(super) fn read(path: &Path) -> Result<Self, SourceError> {
        let disk = source::read_disk(path)?.into();
        let folder = if path.is_file() { path.parent().unwrap_or(Path::new("")) } else { path };
        Ok(Self { disk, folders: vec![ReadFolder::at_start(here_if_empty(folder))] })
    }

    /// Reads what was named piece by piece.
    pub(super) fn read_named(named: Vec<InputArgument>) -> Result<Self, SourceError> {
        let folders = named.iter().filter_map(folder_of).collect();
        Ok(Self { disk: source::read_named(named)?.into(), folders })
    }
}

/// Returns the settings of a source that is followed.
pub(super) fn source_settings(config: &SourceConfig) -> SourceSettings {
    let renderer: Option<Arc<dyn SnapshotRenderer>> = match config.render {
        RenderMode::None if config.substitution.is_none() => None,
        _ => Some(SourceRendering::of(config).renderer),
    };
    SourceSettings { renderer, ..SourceSettings::of_service(&config.name, &config.credentials) }
}

/// Returns the name of the folder that a source is of. A repository on another host has none of its
/// own, so that it is called like its source.
fn top_name(location: &SourceLocation, source: &str) -> String {
    let folder = match location {
        SourceLocation::Directory(folder) => folder_name(folder),
        SourceLocation::Git { path, .. } if !path.is_root() => folder_name(Path::new(path.as_str())),
        SourceLocation::Git { url, .. } if url.is_url() => None,
        SourceLocation::Git { url, .. } => {
            folder_name(Path::new(url.expose())).map(|name| name.trim_end_matches(".git").to_owned())
        }
    };
    folder.unwrap_or_else(|| source.to_owned())
}

/// Returns the name of a folder, also where its path has none, as `.`.
fn folder_name(folder: &Path) -> Option<String> {
    let named = |folder: &Path| Some(folder.file_name()?.to_string_lossy().into_owned());
    named(folder).or_else(|| named(&here_if_empty(folder).canonicalize().ok()?))
}

/// Returns the fetcher of a source's charts, or of those of a command. Each source keeps its own
/// archives: another may not read what its credentials brought.
fn chart_fetcher(config: &FetchConfig, unlocked: UnlockedCharts, source: Option<&str>) -> ChartFetcher {
    ChartFetcher::new(config.clone(), unlocked, chart_folder(source), fetch_environment())
}

/// Returns the folder of the archives of a source, or of commands. Where nothing names one, each
/// user has one of their own in the shared one.
fn chart_folder(source: Option<&str>) -> PathBuf {
    let charts = process_environment(PathBuf::new()).chart_directory();
    let of_user = || format!("rhumb-{}", rustix::process::geteuid().as_raw());
    let charts = charts.unwrap_or_else(|| std::env::temp_dir().join(of_user()).join("charts"));
    charts.join(source.map_or(Path::new("commands").into(), |name| Path::new("sources").join(name)))
}

/// Returns the parts of this process's surroundings that fetches depend on.
pub(super) fn fetch_environment() -> FetchEnvironment {
    let variables = PASSED_VARIABLES.iter().filter_map(|name| Some(((*name).into(), variable(name)?)));
    FetchEnvironment { credentials: credentials_directory(), variables: variables.collect() }
}

pub(super) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the folder of a piece, and what the paths of its files begin with.
fn folder_of(named: &InputArgument) -> Option<ReadFolder> {
    let InputArgument::Path(path) = named else { return None };
    if path == Path::new(STANDARD_INPUT) {
        return None;
    }
    let folder = if path.is_file() { path.parent().unwrap_or(Path::new("")) } else { path };
    let prefix: PathBuf = folder.components().collect();
    let prefix = prefix.to_string_lossy();
    let prefix = if prefix.is_empty() || prefix == "." { String::new() } else { format!("{prefix}/") };
    Some(ReadFolder { prefix, folder: here_if_empty(folder).to_owned() })
}

/// Returns the folder that a path without a name means: this one.
pub(super) fn here_if_empty(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Returns the folder below which the files for programs are written. That of a service, and that
/// of a person who is logged in, are in memory.
pub(super) fn private_folder() -> PathBuf {
    let environment = process_environment(PathBuf::new());
    let of_service = environment.service_runtime_directory().into_iter();
    let mut folders = of_service.chain(environment.personal_runtime_directory());
    folders.find(|folder| folder.is_dir()).unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{GitSpec, GitUrl};

    #[test]
    fn a_source_is_called_like_its_folder_wherever_that_is_read() {
        let check = |location: SourceLocation, expected: &str| {
            assert_eq!(top_name(&location, "shop"), expected);
        };
        let git = |url: &str, path: &str| SourceLocation::Git {
            url: GitUrl::new(url),
            reference: None,
            path: path.parse().unwrap(),
            interval: GitSpec::new(GitUrl::new(url)).interval,
            verify: None,
        };
        check(SourceLocation::Directory("/srv/charts/web".into()), "web");
        check(git("/srv/charts", "web"), "web");
        check(git("https://user:canary@git.example.org/charts.git", "a/web"), "web");
        check(SourceLocation::Directory("/srv/charts/".into()), "charts");
        check(git("/srv/charts", ""), "charts");
        check(git("/srv/charts.git", ""), "charts");
        check(git("https://user:canary@git.example.org", ""), "shop");
        check(git("git@git.example.org:charts.git", ""), "shop");
        let here = std::env::current_dir().unwrap();
        let here = here.file_name().map(|name| name.to_string_lossy().into_owned());
        assert_eq!(folder_name(Path::new("")), here);
        assert_eq!(folder_name(Path::new("src/..")), here);
    }
}
