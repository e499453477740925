//! The input of commands that read once: a source, or files that were named one by one.

use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::args::{ApplyArgs, DiffArgs, GlobalArgs, OneShotArgs};
use super::configured::SelectedSources;
use super::derived_name::{self, NameOrigin};
use super::exit::os_message;
use super::rendering::UnrenderedFiles;
use super::{CommandError, Terminal, session, settings};
use crate::cluster::Cluster;
use crate::config::{Config, PositiveDuration, SourceConfig, SourceLocation, SourceMode};
use crate::daemon::{MovedObjectSearch, SourceFiles, SourceSetup};
use crate::engine::PrunePolicy;
use crate::manifest;
use crate::object::ErrorClass;
use crate::source::{self, InputArgument, LocationKind};

/// The path that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// The name of standard input in findings.
pub(super) const STDIN_FILE_NAME: &str = "<stdin>";

/// A source that is read once, or a part of it.
#[derive(Debug)]
pub(super) struct OneShotSource {
    /// The checked settings, with this source alone.
    pub(super) config: Config,
    name_origin: NameOrigin,
    /// The files that were named instead of a whole source. A pipe cannot be read a second time.
    files: Option<NamedFiles>,
}

/// Files that were named one by one.
#[derive(Clone, Debug)]
struct NamedFiles {
    read: UnrenderedFiles,
    /// The printable form of their location.
    location: String,
}

impl OneShotSource {
    /// Reads the input of `diff`, which shows what would be deleted too.
    pub(super) fn for_diff(global: &GlobalArgs, args: &DiffArgs) -> Result<Self, CommandError> {
        Self::read(global, &args.source, PrunePolicy::On)
    }

    /// Reads the input of `apply`, which deletes only on request.
    pub(super) fn for_apply(
        global: &GlobalArgs,
        args: &ApplyArgs,
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        if let Some(file) = &args.source.config {
            return Self::from_file(global, file, args, terminal);
        }
        let prune = if args.prune { PrunePolicy::On } else { PrunePolicy::Off };
        let once = Self::read(global, &args.source, prune).map_err(|error| match &args.source.source {
            Some(text) if args.wait.is_some() && text.parse::<PositiveDuration>().is_ok() => {
                error.hint(format!("write the timeout behind `=`: --wait={text}"))
            }
            _ => error,
        })?;
        if args.prune && once.files.is_some() {
            return Err(CommandError::usage_error(
                "--prune needs a whole source, and single files are a part of one",
            )
            .hint("name the directory of all files, or leave --prune out"));
        }
        Ok(once)
    }

    /// Reads one source of a configuration file. Only its own content is applied, as the daemon
    /// that follows it would undo all else.
    fn from_file(
        global: &GlobalArgs,
        file: &Path,
        args: &ApplyArgs,
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        if args.source.source.is_some() || !args.source.files.is_empty() {
            return Err(CommandError::usage_error(
                "with --config a source is applied from its own location only",
            )
            .hint("`rhumb diff` takes files besides --config, and shows what they would change"));
        }
        let config = SelectedSources::read(global, file, terminal)?.into_single()?;
        let observed = config.sources.iter().find(|source| source.mode == SourceMode::Observe);
        match observed.filter(|_| !args.dry_run) {
            Some(source) => Err(CommandError::usage_error(format!(
                "source {} only observes, so nothing is applied",
                source.name
            ))
            .hint("`rhumb diff` shows what it would do; `observe` of the source keeps it from being done")),
            None => Ok(Self { config, name_origin: NameOrigin::Explicit, files: None }),
        }
    }

    fn read(global: &GlobalArgs, args: &OneShotArgs, prune: PrunePolicy) -> Result<Self, CommandError> {
        let naming = NameOrigin::of(global);
        let named = match &args.source {
            Some(text) => find_single_file(text, args)?,
            None => Some(args.files.clone()),
        };
        let Some(named) = named else {
            let text = args.source.as_deref().unwrap_or_default();
            let config = settings::one_shot_config(global, text, &args.location, prune)?;
            return Ok(Self { config, name_origin: naming, files: None });
        };
        refuse_urls(&named)?;
        let folder = common_folder(&named)?;
        let config = settings::folder_config(global, &folder, &args.location)?;
        let location = session::location(&session::only_source(&config)?);
        let is_piped = named.iter().any(|path| is_pipe(path));
        let location = if is_piped { format!("standard input in {location}") } else { location };
        let read = read_pieces(named)?;
        Ok(Self { config, name_origin: naming, files: Some(NamedFiles { read, location }) })
    }

    /// Returns the source.
    pub(super) fn source(&self) -> Result<SourceConfig, CommandError> {
        session::only_source(&self.config)
    }

    /// Connects, and settles the name of a source that was given none. Returns notes about that
    /// too.
    pub(super) async fn connect(&mut self) -> Result<(Cluster, Option<String>), CommandError> {
        let cluster = session::connect(&self.config).await?;
        let location = self.files.as_ref().map(|part| part.location.as_str());
        let note =
            derived_name::require_free_name(&mut self.config, self.name_origin, location, &cluster).await?;
        Ok((cluster, note))
    }

    /// Returns the source, ready to be read.
    pub(super) async fn setup(&self, cluster: &Cluster) -> Result<SourceSetup, CommandError> {
        let source = self.source()?;
        if let Some(part) = &self.files {
            return session::disk_setup(&source, part.location.clone(), &part.read, cluster).await;
        }
        let state = session::state(&self.config, cluster).await?;
        let mut setup = session::one_shot_source(&source, &state, cluster).await?;
        if let (PrunePolicy::On, SourceLocation::Directory(folder), SourceFiles::Snapshot(disk)) =
            (source.prune, &source.location, &setup.files)
        {
            setup.folder_search = MovedObjectSearch::of_folder(folder, disk.clone())?;
        }
        Ok(setup)
    }

    /// Returns the note that only a part of a source was read.
    pub(super) fn note(&self) -> Option<String> {
        self.files.as_ref()?;
        Some(partial_note(&self.config.sources.first()?.name))
    }
}

/// Returns the note that only a part of a source was read.
pub(super) fn partial_note(name: &str) -> String {
    format!("only the given files were read: other objects of source {name} are neither compared nor deleted")
}

/// Reads files that are named one by one.
pub(super) fn read_named_files(named: &[PathBuf]) -> Result<UnrenderedFiles, CommandError> {
    refuse_urls(named)?;
    read_pieces(named.to_vec())
}

fn read_pieces(named: Vec<PathBuf>) -> Result<UnrenderedFiles, CommandError> {
    let pieces: Result<_, CommandError> = named.into_iter().map(read_piece).collect();
    Ok(UnrenderedFiles::read_named(pieces?)?)
}

/// Returns a SOURCE that is no source, but a file or standard input.
fn find_single_file(text: &str, args: &OneShotArgs) -> Result<Option<Vec<PathBuf>>, CommandError> {
    if text != STANDARD_INPUT && !matches!(source::classify(text), Ok(LocationKind::File(_))) {
        return Ok(None);
    }
    for (flag, given) in
        [("--ref", args.location.reference.is_some()), ("--path", args.location.path.is_some())]
    {
        if given {
            return Err(CommandError::usage_error(format!(
                "{flag} is of a repository, and {text} is a file"
            ))
            .hint("name the repository as SOURCE, or leave it out"));
        }
    }
    Ok(Some(vec![text.strip_prefix("file://").unwrap_or(text).into()]))
}

fn refuse_urls(named: &[PathBuf]) -> Result<(), CommandError> {
    match named.iter().find(|path| source::is_url(&path.to_string_lossy())) {
        Some(url) => {
            Err(CommandError::usage_error(format!("{} is a URL, and -f reads files", url.display()))
                .hint("`curl -fsSL URL | rhumb diff -f -` reads what a server answers"))
        }
        None => Ok(()),
    }
}

fn read_piece(path: PathBuf) -> Result<InputArgument, CommandError> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(InputArgument::Text(STDIN_FILE_NAME.to_owned(), read_standard_input()?));
    }
    if is_pipe(&path) {
        let shown = path.display().to_string();
        let file = std::fs::File::open(&path);
        let failed = |error| {
            CommandError::new(ErrorClass::Source, format!("cannot read {shown}: {}", os_message(&error)))
        };
        return Ok(InputArgument::Text(shown.clone(), read_bounded(file.map_err(failed)?, &shown)?));
    }
    Ok(InputArgument::Path(path))
}

/// Returns whether something is read once and never again, as the output of another program is.
fn is_pipe(path: &Path) -> bool {
    let kind = || std::fs::metadata(path).map(|metadata| metadata.file_type());
    path == Path::new(STANDARD_INPUT) || kind().is_ok_and(|kind| kind.is_fifo() || kind.is_char_device())
}

/// Returns the deepest folder that all are in; a pipe is read where one is.
fn common_folder(named: &[PathBuf]) -> Result<PathBuf, CommandError> {
    let folder = |path: &PathBuf| {
        let path = if is_pipe(path) { Path::new(".") } else { path };
        let absolute = std::fs::canonicalize(path).map_err(|error| {
            CommandError::new(ErrorClass::Source, format!("{}: {}", path.display(), os_message(&error)))
        })?;
        Ok(if absolute.is_dir() {
            absolute
        } else {
            absolute.parent().map(Path::to_owned).unwrap_or_default()
        })
    };
    let folders: Vec<PathBuf> = named.iter().map(folder).collect::<Result<_, CommandError>>()?;
    let first = folders.first().cloned().unwrap_or_default();
    let holds_all = |above: &&Path| folders.iter().all(|folder| folder.starts_with(above));
    Ok(first.ancestors().find(holds_all).unwrap_or(&first).to_owned())
}

/// Reads standard input, as far as a file may go.
pub(super) fn read_standard_input() -> Result<Vec<u8>, CommandError> {
    read_bounded(std::io::stdin().lock(), "standard input")
}

fn read_bounded(from: impl Read, subject: &str) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = from.take(manifest::MAX_MANIFEST_BYTES + 1).read_to_end(&mut bytes);
    let size = read.map_err(|error| {
        CommandError::new(ErrorClass::Source, format!("cannot read {subject}: {}", os_message(&error)))
    })?;
    if size as u64 > manifest::MAX_MANIFEST_BYTES {
        let limit = manifest::MAX_MANIFEST_BYTES >> 20;
        return Err(CommandError::new(ErrorClass::Source, format!("{subject} has more than {limit} MiB"))
            .hint("put the manifests into files of a directory"));
    }
    Ok(bytes)
}
