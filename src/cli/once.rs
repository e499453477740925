//! What a command reads that reads it once: a source, or files that were named one by one.

use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{ApplyArgs, DiffArgs, Global, OnceArgs};
use super::configured::Configured;
use super::exit::plain;
use super::naming::{self, Naming};
use super::{CommandError, Terminal, session, settings};
use crate::cluster::Cluster;
use crate::config::{Config, Duration, Mode, SourceConfig};
use crate::daemon::SourceSetup;
use crate::engine::Prune;
use crate::manifest;
use crate::object::Class;
use crate::source::{self, Disk, Named, Place};

/// The path that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// The name of standard input in findings.
pub(super) const STDIN: &str = "<stdin>";

/// A source that is read once, or a part of it.
#[derive(Debug)]
pub(super) struct Once {
    /// The checked settings, with this source alone.
    pub(super) config: Config,
    naming: Naming,
    /// What was named instead of a whole source. A pipe cannot be read a second time.
    part: Option<Part>,
}

/// Files that were named one by one.
#[derive(Clone, Debug)]
struct Part {
    disk: Arc<Disk>,
    /// What stands for the place that they are from.
    place: String,
}

impl Once {
    /// Reads what `diff` was told to, which shows what would be deleted too.
    pub(super) fn compared(global: &Global, args: &DiffArgs) -> Result<Self, CommandError> {
        Self::read(global, &args.what, Prune::On)
    }

    /// Reads what `apply` was told to, which deletes only when it is told to.
    pub(super) fn applied(
        global: &Global,
        args: &ApplyArgs,
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        if let Some(file) = &args.what.config {
            return Self::configured(global, (file, args), terminal);
        }
        let prune = if args.prune { Prune::On } else { Prune::Off };
        let once = Self::read(global, &args.what, prune).map_err(|error| match &args.what.source {
            Some(text) if args.wait.is_some() && text.parse::<Duration>().is_ok() => {
                error.hint(format!("a timeout stands behind `=`: --wait={text}"))
            }
            _ => error,
        })?;
        if args.prune && once.part.is_some() {
            return Err(CommandError::usage(
                "--prune needs a whole source, and single files are a part of one",
            )
            .hint("name the directory of all files, or leave --prune out"));
        }
        Ok(once)
    }

    /// One source of a file. Only what it holds itself is applied, as the daemon that follows it would undo all else.
    fn configured(
        global: &Global,
        (file, args): (&Path, &ApplyArgs),
        terminal: &Terminal,
    ) -> Result<Self, CommandError> {
        if args.what.source.is_some() || !args.what.files.is_empty() {
            return Err(CommandError::usage(
                "with --config the place of a source is applied, and nothing else",
            )
            .hint("`rhumb diff` takes files beside --config, and shows what would become of them"));
        }
        let config = Configured::read(global, (file, args.what.named.as_ref()), terminal)?.into_single()?;
        let observed = config.sources.iter().find(|source| source.mode == Mode::Observe);
        match observed.filter(|_| !args.dry_run) {
            Some(source) => Err(CommandError::usage(format!(
                "source {} only observes, so nothing is applied",
                source.name
            ))
            .hint("`rhumb diff` shows what it would do; `observe` of the source keeps it from being done")),
            None => Ok(Self { config, naming: Naming::Given, part: None }),
        }
    }

    fn read(global: &Global, args: &OnceArgs, prune: Prune) -> Result<Self, CommandError> {
        let naming = Naming::of(global);
        let named = match &args.source {
            Some(text) => single_file(text, args)?,
            None => Some(args.files.clone()),
        };
        let Some(named) = named else {
            let text = args.source.as_deref().unwrap_or_default();
            let config = settings::once(global, text, &args.place, prune)?;
            return Ok(Self { config, naming, part: None });
        };
        refuse_urls(&named)?;
        let folder = common_folder(&named)?;
        let config = settings::of_folder(global, &folder, &args.place)?;
        let place = session::place(&session::only(&config)?);
        let is_piped = named.iter().any(|path| is_pipe(path));
        let place = if is_piped { format!("standard input in {place}") } else { place };
        let disk = read_pieces(named)?;
        Ok(Self { config, naming, part: Some(Part { disk, place }) })
    }

    /// The source.
    pub(super) fn source(&self) -> Result<SourceConfig, CommandError> {
        session::only(&self.config)
    }

    /// Connects, and settles the name of a source that was given none. Returns also what is to be told of that.
    pub(super) async fn connect(&mut self) -> Result<(Cluster, Option<String>), CommandError> {
        let cluster = session::connect(&self.config).await?;
        let place = self.part.as_ref().map(|part| part.place.as_str());
        let note = naming::settle(&mut self.config, self.naming, place, &cluster).await?;
        Ok((cluster, note))
    }

    /// The source, ready to be read.
    pub(super) async fn setup(&self, cluster: &Cluster) -> Result<SourceSetup, CommandError> {
        let source = self.source()?;
        match &self.part {
            Some(part) => Ok(session::on_disk(&source, part.place.clone(), part.disk.clone())),
            None => session::once(&source, &session::state(&self.config, cluster).await?),
        }
    }

    /// What has to be said where only a part of a source was read.
    pub(super) fn note(&self) -> Option<String> {
        self.part.as_ref()?;
        Some(only_a_part(&self.config.sources.first()?.name))
    }
}

/// What has to be said where only a part of a source was read.
pub(super) fn only_a_part(name: &str) -> String {
    format!(
        "only the named files were read: whatever else source {name} has is neither looked at nor deleted"
    )
}

/// Reads files that are named one by one.
pub(super) fn named_files(named: &[PathBuf]) -> Result<Arc<Disk>, CommandError> {
    refuse_urls(named)?;
    read_pieces(named.to_vec())
}

fn read_pieces(named: Vec<PathBuf>) -> Result<Arc<Disk>, CommandError> {
    let pieces: Result<_, CommandError> = named.into_iter().map(piece).collect();
    Ok(Arc::new(source::read_named(pieces?)?))
}

/// A SOURCE that is no source, but a file or standard input.
fn single_file(text: &str, args: &OnceArgs) -> Result<Option<Vec<PathBuf>>, CommandError> {
    if text != STANDARD_INPUT && !matches!(source::classify(text), Ok(Place::File(_))) {
        return Ok(None);
    }
    for (flag, given) in [("--ref", args.place.reference.is_some()), ("--path", args.place.path.is_some())] {
        if given {
            return Err(CommandError::usage(format!("{flag} is of a repository, and {text} is a file"))
                .hint("name the repository as SOURCE, or leave it out"));
        }
    }
    Ok(Some(vec![text.strip_prefix("file://").unwrap_or(text).into()]))
}

fn refuse_urls(named: &[PathBuf]) -> Result<(), CommandError> {
    match named.iter().find(|path| source::is_url(&path.to_string_lossy())) {
        Some(url) => Err(CommandError::usage(format!("{} is a URL, and -f reads files", url.display()))
            .hint("`curl -fsSL URL | rhumb diff -f -` reads what a server answers")),
        None => Ok(()),
    }
}

fn piece(path: PathBuf) -> Result<Named, CommandError> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(Named::Text(STDIN.to_owned(), standard_input()?));
    }
    if is_pipe(&path) {
        let shown = path.display().to_string();
        let file = std::fs::File::open(&path);
        let failed =
            |error| CommandError::new(Class::Source, format!("cannot read {shown}: {}", plain(&error)));
        return Ok(Named::Text(shown.clone(), bounded(file.map_err(failed)?, &shown)?));
    }
    Ok(Named::Path(path))
}

/// Whether something is read once and never again, as the output of another program is.
fn is_pipe(path: &Path) -> bool {
    let kind = || std::fs::metadata(path).map(|metadata| metadata.file_type());
    path == Path::new(STANDARD_INPUT) || kind().is_ok_and(|kind| kind.is_fifo() || kind.is_char_device())
}

/// The deepest folder that all are in; a pipe is read where one is.
fn common_folder(named: &[PathBuf]) -> Result<PathBuf, CommandError> {
    let folder = |path: &PathBuf| {
        let path = if is_pipe(path) { Path::new(".") } else { path };
        let whole = std::fs::canonicalize(path).map_err(|error| {
            CommandError::new(Class::Source, format!("{}: {}", path.display(), plain(&error)))
        })?;
        Ok(if whole.is_dir() { whole } else { whole.parent().map(Path::to_owned).unwrap_or_default() })
    };
    let folders: Vec<PathBuf> = named.iter().map(folder).collect::<Result<_, CommandError>>()?;
    let first = folders.first().cloned().unwrap_or_default();
    let holds_all = |above: &&Path| folders.iter().all(|folder| folder.starts_with(above));
    Ok(first.ancestors().find(holds_all).unwrap_or(&first).to_owned())
}

/// Reads standard input, as far as a file may go.
pub(super) fn standard_input() -> Result<Vec<u8>, CommandError> {
    bounded(std::io::stdin().lock(), "standard input")
}

fn bounded(from: impl Read, what: &str) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = from.take(manifest::MAX_FILE + 1).read_to_end(&mut bytes);
    let size = read.map_err(|error| {
        CommandError::new(Class::Source, format!("cannot read {what}: {}", plain(&error)))
    })?;
    if size as u64 > manifest::MAX_FILE {
        let limit = manifest::MAX_FILE >> 20;
        return Err(CommandError::new(Class::Source, format!("{what} has more than {limit} MiB"))
            .hint("put the manifests into files of a directory"));
    }
    Ok(bytes)
}
