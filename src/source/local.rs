//! A repository on this host: opened in place, never written.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, Repository};
use tempfile::NamedTempFile;

use crate::object::Revision;

use super::child::{self, ChildPeer};
use super::error::SourceError;
use super::file_names;
use super::git_messages::{self, GitErrorKind};
use super::lock::StateLock;
use super::objects;
use super::repository_pointers::LEADS_ELSEWHERE;
use super::store::RevisionStore;

/// The repository's own folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryFolders {
    /// Holds HEAD: `.git`, or `.git/worktrees/NAME` of the main one.
    pub(super) own: PathBuf,
    /// Holds refs and objects.
    pub(super) common: PathBuf,
}

/// Looks into the repository: what the reference names now.
pub(super) fn newest_revision(path: &Path, reference: Option<&str>) -> Result<Revision, SourceError> {
    let place = || path.display().to_string();
    let repository = open(path)?;
    let found = match reference {
        None => head_commit(&repository),
        Some(name) => resolve_name(&repository, name),
    };
    match found {
        Ok(Some(id)) => Ok(Revision::new(&id.to_string())),
        Ok(None) => Err(SourceError::NoReference {
            place: place(),
            reference: reference.unwrap_or("HEAD").to_owned(),
        }),
        Err(error) if error.code() == ErrorCode::UnbornBranch => {
            Err(unborn_branch_error(&repository, place()))
        }
        Err(error) => {
            let name = reference.unwrap_or("HEAD");
            let why = match error.code() {
                ErrorCode::Ambiguous => "more than one object begins with it",
                ErrorCode::Peel | ErrorCode::InvalidSpec => "it leads to no commit",
                _ => {
                    return Err(SourceError::Damaged { place: place(), detail: error.message().to_owned() });
                }
            };
            Err(SourceError::NoReference { place: place(), reference: format!("{name} ({why})") })
        }
    }
}

/// HEAD names a branch that is not there: the repository is new, or its branches have other names.
fn unborn_branch_error(repository: &Repository, place: String) -> SourceError {
    let others = repository.references_glob("refs/heads/*").is_ok_and(|mut all| all.next().is_some());
    if !others {
        return SourceError::Empty { place, within: "the repository, which has no commit yet".to_owned() };
    }
    let head = repository.find_reference("HEAD").ok();
    let head = head.as_ref().and_then(|head| head.symbolic_target().ok().flatten()).unwrap_or("HEAD");
    let branch = file_names::printable(head.trim_start_matches("refs/heads/").as_bytes());
    SourceError::NoReference { place, reference: format!("{branch}, which HEAD names") }
}

/// Returns where HEAD, refs and objects are.
pub(super) fn repository_folders(path: &Path) -> Result<RepositoryFolders, SourceError> {
    let repository = open(path)?;
    Ok(RepositoryFolders { own: repository.path().to_owned(), common: repository.commondir().to_owned() })
}

/// Opens the repository, or says by name why it is not read.
pub(super) fn open(path: &Path) -> Result<Repository, SourceError> {
    let opened = objects::open_foreign(path)
        .and_then(|repository| objects::refuse_linked_objects(&repository).map(|()| repository));
    let repository = opened.map_err(|error| classify_error(path, &error))?;
    let partial = repository.config().is_ok_and(|config| has_promisor(&config));
    if partial {
        return Err(unsupported_error(path, "a partial clone"));
    }
    Ok(repository)
}

fn has_promisor(config: &git2::Config) -> bool {
    let Ok(mut entries) = config.entries(Some(r"^remote\..*\.promisor$")) else { return false };
    while let Some(entry) = entries.next() {
        if entry.is_ok_and(|entry| !entry.has_value() || entry.value_bytes() != b"false") {
            return true;
        }
    }
    false
}

/// Tells from libgit2's text why it refuses a repository.
fn classify_error(path: &Path, error: &git2::Error) -> SourceError {
    let place = path.display().to_string();
    let text = error.message();
    let forms = [
        ("object format", "a repository with SHA-256 ids"),
        ("extensions.objectformat", "a repository with SHA-256 ids"),
        ("extensions.refstorage", "a repository with reftable references"),
        ("extensions.partialclone", "a partial clone"),
    ];
    match error.code() {
        ErrorCode::NotFound if path.exists() => {
            SourceError::NotARepository { place, detail: "the folder is no repository".to_owned() }
        }
        ErrorCode::NotFound => SourceError::Missing { place },
        ErrorCode::Invalid if text.contains(LEADS_ELSEWHERE) => SourceError::Unsupported {
            place,
            what: format!("a repository of which {text}"),
            instead: "follow the repository that it leads to. A separate git directory names its work tree \
                      back by `core.worktree`",
        },
        ErrorCode::Invalid if text.contains(objects::INCLUDE_FILE) => SourceError::Unsupported {
            place,
            what: "a repository whose configuration includes other files".to_owned(),
            instead: "take `include` and `includeIf` out of its configuration",
        },
        _ if text.contains(objects::ALTERNATES_FILE) => SourceError::Unsupported {
            place,
            what: format!("a repository that borrows objects from others ({})", objects::ALTERNATES_FILE),
            instead: "make it whole with `git repack -a -d` and remove that file",
        },
        _ => match forms.iter().find(|(sign, _)| text.contains(sign)) {
            Some((_, form)) => unsupported_error(path, form),
            None => SourceError::Damaged { place, detail: text.to_owned() },
        },
    }
}

fn unsupported_error(path: &Path, what: &str) -> SourceError {
    SourceError::Unsupported {
        place: path.display().to_string(),
        what: what.to_owned(),
        instead: "use a plain clone of it: git clone --no-local with SHA-1 ids, files as references, no filter",
    }
}

fn head_commit(repository: &Repository) -> Result<Option<Oid>, git2::Error> {
    repository.head()?.peel_to_commit().map(|commit| Some(commit.id()))
}

/// Returns a branch, else a tag, else a remote branch, else a commit by its id or a part of it.
fn resolve_name(repository: &Repository, name: &str) -> Result<Option<Oid>, git2::Error> {
    if name == "HEAD" {
        return head_commit(repository);
    }
    let prefixes: &[&str] =
        if name.starts_with("refs/") { &[""] } else { &["refs/heads/", "refs/tags/", "refs/remotes/"] };
    for prefix in prefixes {
        let full = format!("{prefix}{name}");
        if !git2::Reference::is_valid_name(&full) {
            continue;
        }
        match repository.find_reference(&full) {
            Ok(reference) => return reference.peel_to_commit().map(|commit| Some(commit.id())),
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let is_id = (4..=40).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_id {
        return Ok(None);
    }
    let short = Oid::from_str(name)?;
    let found = repository.odb()?.exists_prefix(short, name.len());
    match found.and_then(|id| repository.find_object(id, None)?.peel_to_commit()) {
        Ok(commit) => Ok(Some(commit.id())),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies a revision into our own store and pins it there; false where the repository does not have
/// it.
pub(super) async fn copy_revision(
    store: &RevisionStore,
    lock: &StateLock,
    path: &Path,
    revision: &Revision,
) -> Result<bool, SourceError> {
    let place = path.display().to_string();
    // Borrowed objects are not copied either. git reports below a repository that cannot be opened.
    if let Err(error @ SourceError::Unsupported { .. }) = open(path) {
        return Err(error);
    }
    let real = std::fs::canonicalize(path)
        .map_err(|error| SourceError::Unreadable { place: place.clone(), error })?;
    let config = safe_directory_config(store)?;
    let room = store.quota_room()?;
    let mut command = child::git_command(store.path(), ChildPeer::Host(config.path()));
    command.args(["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
    command.args(["--no-auto-maintenance", "--depth=1", "--"]);
    command.arg(file_url(&real)).arg(format!("+{revision}:{}", RevisionStore::pin_name(revision)));
    let deadline = store.settings().fetch;
    let output = match child::run(command, lock, store.child_limits(deadline, room)).await {
        Ok(output) if output.status.success() => return Ok(true),
        Ok(output) => output,
        Err(child::ChildError::NotStarted(error)) => return Err(SourceError::NoGit { error }),
        Err(child::ChildError::TooOld(found)) => return Err(SourceError::OldGit { found }),
        Err(_) => return Err(SourceError::Silent { place, after: deadline }),
    };
    match git_messages::kind(&output.stderr) {
        GitErrorKind::NoCommit => Ok(false),
        kind => Err(git_messages::exchange_error(
            kind,
            &place,
            git_messages::error_detail(&output.stderr, &[]),
            store,
        )),
    }
}

/// Returns a configuration that lets git's own child read the repository whoever owns it. `-c` does
/// not reach that child, which reads nothing but the repository that it is given.
fn safe_directory_config(store: &RevisionStore) -> Result<NamedTempFile, SourceError> {
    let trouble = |error| SourceError::State {
        path: store.state_directory().to_owned(),
        doing: "cannot write to",
        error,
    };
    let mut file = tempfile::Builder::new()
        .prefix("copy-")
        .suffix(".gitconfig")
        .tempfile_in(store.state_directory())
        .map_err(trouble)?;
    file.write_all(b"[safe]\n\tdirectory = *\n").map_err(trouble)?;
    Ok(file)
}

/// Returns the URL of a path; git decodes it.
fn file_url(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let encoded = path.as_os_str().as_bytes().iter().map(|byte| match *byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    std::iter::once("file://".to_owned()).chain(encoded).collect()
}
