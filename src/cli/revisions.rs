//! `rhumb diff --from`: two revisions of a repository on this host, without a cluster.

use std::path::{Path, PathBuf};

use super::args::{DiffArgs, GlobalArgs};
use super::comparison::{RevisionObjects, compare};
use super::configured::SelectedSources;
use super::manifest_set::{ManifestSet, ReadScope};
use super::rendering::{SourceRendering, here_if_empty};
use super::{CommandError, ExitStatus, Terminal, diff, identities, session, settings, source_contents};
use crate::config::{Config, GitSpec, GitUrl, SourceConfig, SourceLocation, TreePath};
use crate::engine::Plan;
use crate::input::VariableMode;
use crate::manifest::KindScopes;
use crate::object::{ErrorClass, Revision};
use crate::source::{self, LocationKind, SourceError};

/// The name of what is on disk, in notes.
const ON_DISK: &str = "the files on disk";

/// The state directory of the look-up of a name, which no source is called.
const NAMES_FOLDER: &str = ".names";

/// The reference that a bare repository stands for.
const HEAD_REFERENCE: &str = "HEAD";

/// Compares a revision with another one, or with the files on disk.
pub(super) fn carry_out(
    args: &DiffArgs,
    from: &str,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let revisions = RevisionPair { from, to: args.to.as_deref() };
    let Some(file) = &args.source.config else {
        let text = args.source.source.as_deref().unwrap_or(".");
        let revision_folder = RevisionFolder::find(text, args.source.location.path.as_ref())?;
        let config = source_config(global, args, &revision_folder)?;
        let plan =
            session::only_source(&config).and_then(|source| revisions.plan(&source, &revision_folder))?;
        diff::show(args.output, &plan, [], terminal)?;
        return Ok(diff::exit_status(&plan));
    };
    let configured = SelectedSources::read(global, file, terminal)?;
    let named = match &args.source.source {
        Some(text) => {
            configured.single_source("files given besides --config are read as one source")?;
            Some(RevisionFolder::find(text, None)?)
        }
        None => None,
    };
    let is_only = configured.selected_sources().nth(1).is_none();
    let mut exit = ExitStatus::Done;
    for (number, source) in configured.selected_sources().enumerate() {
        if !is_only {
            terminal.print(&diff::source_heading(args.output, &source.name, number))?;
        }
        let revision_folder = named.clone().map_or_else(|| RevisionFolder::of_source(source), Ok);
        exit = exit.worst(
            match revision_folder.and_then(|revision_folder| revisions.plan(source, &revision_folder)) {
                Ok(plan) => {
                    diff::show(args.output, &plan, [], terminal)?;
                    diff::exit_status(&plan)
                }
                Err(error) if is_only => return Err(error),
                Err(error) => {
                    let error = error.of_source(&source.name);
                    terminal.print_error(&error);
                    error.exit
                }
            },
        );
    }
    Ok(exit)
}

fn source_config(
    global: &GlobalArgs,
    args: &DiffArgs,
    revision_folder: &RevisionFolder,
) -> Result<Config, CommandError> {
    let location = super::args::LocationArgs { path: None, ..args.source.location.clone() };
    settings::folder_config(global, &revision_folder.shown, &location)
}

/// A folder of a repository on this host.
#[derive(Clone, Debug)]
struct RevisionFolder {
    /// The repository.
    repository: PathBuf,
    /// The folder in it.
    inside: TreePath,
    /// The folder as people named it.
    shown: PathBuf,
}

impl RevisionFolder {
    /// Finds the repository around a folder that was named.
    fn find(text: &str, path: Option<&TreePath>) -> Result<Self, CommandError> {
        match source::classify(text)? {
            LocationKind::Remote => Err(remote_error(text)),
            LocationKind::File(_) => Err(CommandError::usage_error(format!(
                "{text} is a file, and --from compares the revisions of a directory"
            ))
            .hint("name its directory")),
            LocationKind::Directory(folder) | LocationKind::Repository(folder) => Self::of(&folder, path),
        }
    }

    /// Returns the folder of a source.
    fn of_source(source: &SourceConfig) -> Result<Self, CommandError> {
        match &source.location {
            SourceLocation::Directory(folder) => Self::of(folder, None),
            SourceLocation::Git { url, path, .. } => match source::classify(url.expose())? {
                LocationKind::Directory(folder) | LocationKind::Repository(folder) => {
                    Self::of(&folder, Some(path))
                }
                LocationKind::Remote | LocationKind::File(_) => Err(remote_error(&url.to_string())),
            },
        }
    }

    fn of(folder: &Path, path: Option<&TreePath>) -> Result<Self, CommandError> {
        let Some((repository, inside)) = source::repository_around(here_if_empty(folder))? else {
            return Err(CommandError::new(
                ErrorClass::Source,
                format!("{} is in no git repository, and has no revisions", folder.display()),
            )
            .hint("leave --from out to compare it with the cluster"));
        };
        let below = path.map_or("", TreePath::as_str);
        let inside = format!("{inside}/{below}");
        let inside = inside.trim_start_matches('/').parse::<TreePath>();
        let inside = inside.map_err(|error| CommandError::usage_error(format!("--path: {error}")))?;
        Ok(Self { repository, inside, shown: folder.join(below).components().collect() })
    }

    fn has_work_tree(&self) -> bool {
        self.repository.join(".git").exists()
    }
}

fn remote_error(location: &str) -> CommandError {
    let shown = GitUrl::new(location).to_string();
    CommandError::usage_error(format!("{shown} is not on this host, and --from reads a repository that is"))
        .hint("name a folder of a clone as SOURCE; with --config and --source the source's settings count")
}

/// The revisions to compare.
#[derive(Clone, Copy, Debug)]
struct RevisionPair<'a> {
    from: &'a str,
    to: Option<&'a str>,
}

impl RevisionPair<'_> {
    /// Reads both revisions as a source would be read, and compares them.
    fn plan(self, source: &SourceConfig, revision_folder: &RevisionFolder) -> Result<Plan, CommandError> {
        let to = self.to.or_else(|| (!revision_folder.has_work_tree()).then_some(HEAD_REFERENCE));
        let (older, newer) = (
            ReadRevision::of_commit(source, revision_folder, self.from)?,
            match to {
                Some(to) => ReadRevision::of_commit(source, revision_folder, to)?,
                None => ReadRevision::of_disk(source, revision_folder)?,
            },
        );
        let to = to.unwrap_or(ON_DISK);
        let (older, newer) = match (older, newer) {
            (ReadRevision::Nothing(error), ReadRevision::Nothing(_)) => return Err(error),
            sides => sides,
        };
        let mut scopes = KindScopes::builtin();
        for side in [&older, &newer] {
            side.add_scopes_to(&mut scopes);
        }
        let notes = [(self.from, &older), (to, &newer)].map(|(name, side)| side.note(name, revision_folder));
        let versions = [older.version_note(), newer.version_note()].into_iter().flatten().next();
        let signed = matches!(source.location, SourceLocation::Git { verify: Some(_), .. });
        let signed = signed.then(|| {
            format!("source {} follows signed commits alone; no signature was checked", source.name)
        });
        let revision = newer.revision();
        let [older, newer] = [(self.from, older), (to, newer)].map(|(name, side)| match side {
            ReadRevision::Read(manifests) => {
                RevisionObjects::new(name, *manifests, &scopes, &source.namespace, &source.allow)
            }
            ReadRevision::Nothing(_) => RevisionObjects::nothing(name),
        });
        let mut plan = compare(&older, &newer);
        plan.source.clone_from(&source.name);
        plan.revision = revision;
        plan.notes.extend(notes.into_iter().chain([versions, signed]).flatten());
        Ok(plan)
    }
}

fn no_revision_error(error: SourceError, name: &str) -> CommandError {
    let error = CommandError::from(error);
    if name.contains(['{', '@', ':']) {
        return error.hint(format!("`git rev-parse {name}` gives the id of such a commit"));
    }
    error.hint("a shallow clone has few of them: `git fetch --unshallow` brings the others")
}

/// One side, read.
#[derive(Debug)]
enum ReadRevision {
    Read(Box<ManifestSet>),
    /// The revision has no such folder, or no manifest in it.
    Nothing(CommandError),
}

impl ReadRevision {
    /// Reads a commit.
    fn of_commit(
        source: &SourceConfig,
        revision_folder: &RevisionFolder,
        name: &str,
    ) -> Result<Self, CommandError> {
        let url = revision_folder.repository.to_str().ok_or_else(|| {
            CommandError::usage_error(format!(
                "{}: the path is not UTF-8",
                revision_folder.repository.display()
            ))
        })?;
        session::start_runtime()?.block_on(async {
            let kept = source_contents::temporary_folder()?;
            let names = kept.path().join(NAMES_FOLDER);
            let revision = match source::find_revision(&revision_folder.repository, name, &names).await {
                Err(error @ SourceError::NoReference { .. }) => return Err(no_revision_error(error, name)),
                found => found?,
            };
            let source = Self::source_at(source, revision_folder, url, &revision);
            let mut commits = source_contents::open_newest(&source, kept.path())?;
            match commits.observe().await {
                Ok(_) => {}
                Err(
                    error @ (SourceError::NoPath { .. }
                    | SourceError::Empty { .. }
                    | SourceError::NothingRendered { .. }),
                ) => {
                    return Ok(Self::Nothing(error.into()));
                }
                Err(error) => return Err(error.into()),
            }
            let decrypter = identities::of_source(&source);
            let shown = revision_folder.shown.to_string_lossy();
            let variables = VariableMode::of(source.substitution.as_ref());
            Ok(Self::Read(ManifestSet::read_newest(commits, &shown, &decrypter, variables).await?.into()))
        })
    }

    /// Returns a source that is at a revision.
    fn source_at(
        source: &SourceConfig,
        revision_folder: &RevisionFolder,
        url: &str,
        revision: &Revision,
    ) -> SourceConfig {
        let location = SourceLocation::Git {
            url: GitUrl::new(url),
            reference: Some(revision.to_string()),
            path: revision_folder.inside.clone(),
            interval: GitSpec::new(GitUrl::new(url)).interval,
            // A proposed commit need not be signed yet.
            verify: None,
        };
        SourceConfig { location, ..source.clone() }
    }

    /// Reads the files on disk, committed or not.
    fn of_disk(source: &SourceConfig, revision_folder: &RevisionFolder) -> Result<Self, CommandError> {
        let folder = here_if_empty(&revision_folder.shown);
        if source::is_missing_or_empty(folder) {
            let missing = SourceError::Missing { shown_location: folder.display().to_string() };
            return Ok(Self::Nothing(missing.into()));
        }
        let manifests = ManifestSet::read(folder, ReadScope::All, &SourceRendering::of(source))?;
        Ok(Self::Read(Box::new(manifests)))
    }

    fn add_scopes_to(&self, scopes: &mut KindScopes) {
        if let Self::Read(manifests) = self {
            manifests.add_scopes_to(scopes);
        }
    }

    fn note(&self, name: &str, revision_folder: &RevisionFolder) -> Option<String> {
        let none = || format!("{}: no manifest in {name}", revision_folder.shown.display());
        matches!(self, Self::Nothing(_)).then(none)
    }

    fn version_note(&self) -> Option<String> {
        match self {
            Self::Read(manifests) => manifests.versions.note(),
            Self::Nothing(_) => None,
        }
    }

    fn revision(&self) -> String {
        match self {
            Self::Read(manifests) => manifests.revision.as_ref().map(ToString::to_string).unwrap_or_default(),
            Self::Nothing(_) => String::new(),
        }
    }
}
