//! The sources of a configuration file, for commands that look at them once as `run` would follow
//! them.

use std::path::Path;

use super::args::{GlobalArgs, OneShotArgs};
use super::one_shot_input::{self, STANDARD_INPUT};
use super::rendering::UnrenderedFiles;
use super::settings::{self, FileRead};
use super::{CommandError, Terminal, session};
use crate::cluster::Cluster;
use crate::config::{Config, DnsLabel, SourceConfig, SourceLocation, SourceMode};
use crate::daemon::SourceSetup;
use crate::engine::{KnownSources, PrunePolicy};
use crate::source::{self, LocationKind};

/// The sources of a file, and which of them are meant.
#[derive(Debug)]
pub(super) struct SelectedSources {
    /// The checked settings, with all sources of the file.
    pub(super) config: Config,
    file: String,
    /// The only one that is meant; none for all.
    named: Option<String>,
    source_override: Option<SourceOverride>,
}

/// The input that replaces the file's own location.
#[derive(Debug)]
struct SourceOverride {
    files: UnrenderedFiles,
    /// Says whether objects that are missing in the files count as dropped by the source.
    prune: PrunePolicy,
}

impl SelectedSources {
    /// Reads a configuration file, and finds the source that `--source` names in it.
    pub(super) fn read(global: &GlobalArgs, file: &Path, terminal: &Terminal) -> Result<Self, CommandError> {
        let config = settings::from_file(global, SourceMode::Enforce, file, FileRead::First, terminal)?;
        let (file, named) = (file.display().to_string(), global.name.as_ref().map(DnsLabel::to_string));
        let configured = Self { config, file, named, source_override: None };
        if configured.config.sources.is_empty() {
            return Err(CommandError::usage_error(format!("{} has no source", configured.file))
                .hint("sources that are defined in the cluster are not included"));
        }
        match &configured.named {
            Some(named) if !configured.config.sources.iter().any(|source| source.name == *named) => {
                let message = format!("{} has no source {named}", configured.file);
                Err(CommandError::usage_error(message).hint(format!("it has {}", configured.names())))
            }
            _ => Ok(configured),
        }
    }

    /// Does the same as [`SelectedSources::read`], with the arguments of the command line beside
    /// it. They name files or a directory that are judged as if the source had them.
    pub(super) fn for_diff(
        global: &GlobalArgs,
        args: &OneShotArgs,
        file: &Path,
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        let mut configured = Self::read(global, file, terminal)?;
        configured.source_override = match &args.source {
            None if args.files.is_empty() => None,
            None => Some(SourceOverride {
                files: one_shot_input::read_named_files(&args.files)?,
                prune: PrunePolicy::Partial,
            }),
            Some(text) => {
                let is_name = configured.config.sources.iter().any(|source| source.name == *text);
                let hinted = |error: CommandError| {
                    if is_name {
                        return error.hint(format!("--source {text} is the source of that name"));
                    }
                    error
                };
                Some(parse_override(text).map_err(hinted)?)
            }
        };
        if configured.source_override.is_some() {
            configured.single_source("files given besides --config are read as one source")?;
        }
        Ok(configured)
    }

    /// Returns the settings with the only source that is meant.
    pub(super) fn into_single(self) -> Result<Config, CommandError> {
        let source = self.single_source("one source is applied at a time")?.clone();
        Ok(Config { sources: vec![source], ..self.config })
    }

    /// Returns the only source that is meant; `why` is reported where several are.
    pub(super) fn single_source(&self, why: &str) -> Result<&SourceConfig, CommandError> {
        let mut chosen = self.selected_sources();
        match (chosen.next(), chosen.next()) {
            (Some(source), None) => Ok(source),
            _ => Err(CommandError::usage_error(format!("{why}, and {} has several", self.file))
                .hint(format!("choose one with --source: {}", self.names()))),
        }
    }

    /// Returns the sources that are meant.
    pub(super) fn selected_sources(&self) -> impl Iterator<Item = &SourceConfig> {
        self.config.sources.iter().filter(|source| self.is_chosen(&source.name))
    }

    /// Returns whether the sources that are meant are all that one process serves.
    pub(super) fn known_sources(&self) -> KnownSources {
        let is_all = self.named.is_none() && !self.config.custom_sources.is_open();
        if is_all { KnownSources::All } else { KnownSources::Some }
    }

    /// Returns whether a source is meant.
    pub(super) fn is_chosen(&self, name: &str) -> bool {
        self.named.as_ref().is_none_or(|named| named == name)
    }

    /// Returns a source, ready to be read.
    pub(super) async fn setup(
        &self,
        source: &SourceConfig,
        state: &Path,
        cluster: &Cluster,
    ) -> Result<SourceSetup, CommandError> {
        // Its account reads the facts that its renders depend on.
        let cluster = &session::acting_cluster(cluster, &self.config.namespace, source);
        match &self.source_override {
            Some(SourceOverride { files, prune }) if self.is_chosen(&source.name) => {
                let prune = if *prune == PrunePolicy::Partial { PrunePolicy::Partial } else { source.prune };
                let source = SourceConfig { prune, ..source.clone() };
                session::disk_setup(&source, session::location(&source), files, cluster).await
            }
            _ => session::one_shot_source(source, state, cluster).await,
        }
    }

    /// Returns notes about the input.
    pub(super) fn notes(&self) -> Vec<String> {
        let (Some(substitute), Some(source)) = (&self.source_override, self.selected_sources().next()) else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        if substitute.prune == PrunePolicy::Partial {
            notes.push(one_shot_input::partial_note(&source.name));
        }
        if matches!(source.location, SourceLocation::Git { verify: Some(_), .. }) {
            let name = &source.name;
            notes
                .push(format!("source {name} follows signed commits alone; files on disk have no signature"));
        }
        notes
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.config.sources.iter().map(|source| source.name.as_str()).collect();
        names.join(", ")
    }
}

fn parse_override(text: &str) -> Result<SourceOverride, CommandError> {
    if text == STANDARD_INPUT {
        return Ok(SourceOverride {
            files: one_shot_input::read_named_files(&[text.into()])?,
            prune: PrunePolicy::Partial,
        });
    }
    match source::classify(text)? {
        LocationKind::File(path) => Ok(SourceOverride {
            files: one_shot_input::read_named_files(&[path])?,
            prune: PrunePolicy::Partial,
        }),
        LocationKind::Directory(path) | LocationKind::Repository(path) if !source::is_url(text) => {
            Ok(SourceOverride { files: UnrenderedFiles::read(&path)?, prune: PrunePolicy::On })
        }
        _ => Err(CommandError::usage_error(format!(
            "{text} is no directory, and the file says where its sources are"
        ))
        .hint("leave SOURCE out, or name a directory whose files are read as those of a source")),
    }
}
