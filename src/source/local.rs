//! A repository on this host: opened in place, never written.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ErrorCode, Oid, Repository};
use tempfile::NamedTempFile;

use crate::object::Revision;

use super::ancestor_name::{AncestorName, AncestorStep};
use super::bounded::run_bounded;
use super::child::{self, ChildPeer};
use super::error::SourceError;
use super::file_names;
use super::followed_repository::{self, FollowedRepository, FollowedRepositoryError, RepositoryFolders};
use super::git_messages::{self, GitErrorKind};
use super::lock::StateLock;
use super::objects::{self, ObjectStores, StorePath};
use super::store::RevisionStore;

/// Returns the revision that a person names: as a source's reference, or as an ancestor of one.
///
/// A source follows no ancestors: a push would change which one is meant.
///
/// # Errors
/// Fails where the repository cannot be read, or has no such commit.
pub(crate) fn find_revision(path: &Path, name: &str) -> Result<Revision, SourceError> {
    let Some(AncestorName { base, steps }) = AncestorName::parse(name) else {
        return newest_revision(path, Some(name));
    };
    read(path, |repository, place| {
        let base = resolve_reference(repository, Some(base), place)?;
        let found = walk_to_ancestor(repository, &base, &steps)
            .map_err(|error| FollowedRepositoryError::from(error).into_source_error(place))?;
        found.ok_or_else(|| SourceError::NoReference { place: place.to_owned(), reference: name.to_owned() })
    })
}

/// Looks into the repository: what the reference names now.
pub(super) fn newest_revision(path: &Path, reference: Option<&str>) -> Result<Revision, SourceError> {
    read(path, |repository, place| resolve_reference(repository, reference, place))
}

/// Opens the repository, and gives it to a look with its name in errors.
fn read<T: Send>(
    path: &Path,
    look: impl FnOnce(&Repository, &str) -> Result<T, SourceError> + Send,
) -> Result<T, SourceError> {
    let place = path.display().to_string();
    let read = open(path)?.read(|repository| look(repository, &place));
    read.map_err(|error| error.into_source_error(&place))?
}

fn resolve_reference(
    repository: &Repository,
    reference: Option<&str>,
    place: &str,
) -> Result<Revision, SourceError> {
    let place = place.to_owned();
    let found = match reference {
        None => head_commit(repository),
        Some(name) => resolve_name(repository, name),
    };
    match found {
        Ok(Some(id)) => Ok(Revision::new(&id.to_string())),
        Ok(None) => {
            Err(SourceError::NoReference { place, reference: reference.unwrap_or("HEAD").to_owned() })
        }
        Err(FollowedRepositoryError::Git(error)) if error.code() == ErrorCode::UnbornBranch => {
            Err(unborn_branch_error(repository, place))
        }
        Err(FollowedRepositoryError::Git(error)) => {
            let name = reference.unwrap_or("HEAD");
            let why = match error.code() {
                ErrorCode::Ambiguous => "more than one object begins with it",
                ErrorCode::Peel | ErrorCode::InvalidSpec => "it leads to no commit",
                _ => return Err(SourceError::Damaged { place, detail: error.message().to_owned() }),
            };
            Err(SourceError::NoReference { place, reference: format!("{name} ({why})") })
        }
        Err(error) => Err(error.into_source_error(&place)),
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
    open(path).map(|opened| opened.folders)
}

/// Opens the repository, or says by name why it is not read.
fn open(path: &Path) -> Result<FollowedRepository, SourceError> {
    match followed_repository::open(path) {
        Ok(opened) if opened.configuration.as_ref().is_some_and(has_promisor) => {
            Err(unsupported_error(path, "a partial clone"))
        }
        Ok(opened) => Ok(opened),
        Err(FollowedRepositoryError::Git(error)) => Err(classify_error(path, &error)),
        Err(error) => Err(error.into_source_error(&path.display().to_string())),
    }
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

/// Returns the commit that HEAD names.
pub(super) fn head_commit(repository: &Repository) -> Result<Option<Oid>, FollowedRepositoryError> {
    followed_repository::judge_reference(repository, "HEAD")?;
    reference_commit(repository, &repository.head()?).map(Some)
}

fn reference_commit(
    repository: &Repository,
    reference: &git2::Reference<'_>,
) -> Result<Oid, FollowedRepositoryError> {
    let resolved = reference.resolve()?;
    let missing = || git2::Error::new(ErrorCode::NotFound, git2::ErrorClass::Reference, "it names no object");
    Ok(objects::commit_at(repository, resolved.target().ok_or_else(missing)?)?)
}

/// Returns a branch, else a tag, else a remote branch, else a commit by its id or a part of it.
fn resolve_name(repository: &Repository, name: &str) -> Result<Option<Oid>, FollowedRepositoryError> {
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
        followed_repository::judge_reference(repository, &full)?;
        match repository.find_reference(&full) {
            Ok(reference) => return reference_commit(repository, &reference).map(Some),
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let is_id = (4..=40).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_id {
        return Ok(None);
    }
    let short = Oid::from_str(name)?;
    let found = repository.odb()?.exists_prefix(short, name.len());
    match found.and_then(|id| objects::commit_at(repository, id)) {
        Ok(commit) => Ok(Some(commit)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the ancestor at the end of a way; none where the history is shorter, or was cut.
fn walk_to_ancestor(
    repository: &Repository,
    from: &Revision,
    steps: &[AncestorStep],
) -> Result<Option<Revision>, git2::Error> {
    let mut commit = Oid::from_str(from.as_str())?;
    for step in steps {
        let (times, parent) = match *step {
            AncestorStep::First(times) => (times, 0),
            AncestorStep::Parent(number) => (1, number.saturating_sub(1)),
        };
        for _ in 0..times {
            let Some(next) = repository.find_commit(commit)?.parent_ids().nth(parent) else {
                return Ok(None);
            };
            commit = match objects::commit_at(repository, next) {
                Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
                found => found?,
            };
        }
    }
    Ok(Some(Revision::new(&commit.to_string())))
}

/// Returns the repository that holds the objects of a revision; none where one is missing.
///
/// Each object that our own store lacks is read. So git's child copies nothing that was not here:
/// it asks by ids, whatever the repository leads it to meanwhile.
fn holder_of(
    store: &RevisionStore,
    path: &Path,
    revision: &Revision,
) -> Result<Option<RepositoryFolders>, SourceError> {
    let folders = repository_folders(path)?;
    let place = path.display().to_string();
    let limits = store.settings().read_limits();
    let holds = || {
        let (own, id) = (objects::open(store.path())?, Oid::from_str(revision.as_str())?);
        let both = [StorePath::Followed(path.to_owned()), StorePath::Own(store.path().to_owned())];
        let stores = ObjectStores::open(&both)?;
        let (_, holds) = stores.read_in_sandbox(move |objects| {
            let own = own.odb()?;
            objects.holds_all(id, |id| own.exists(id), limits)
        })?;
        holds
    };
    let holds = holds().map_err(|error: FollowedRepositoryError| error.into_source_error(&place))?;
    Ok(holds.then_some(folders))
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
    let deadline = store.settings().fetch;
    let (own, named, wanted) = (store.clone(), path.to_owned(), revision.clone());
    let held = run_bounded(&place, deadline, move || holder_of(&own, &named, &wanted)).await?;
    let Some(folders) = held? else { return Ok(false) };
    let config = safe_directory_config(store)?;
    let room = store.quota_room()?;
    let mut command = child::git_command(store.path(), ChildPeer::Host(config.path()));
    command.args(["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
    // That very folder, and no `.git` in it.
    command.args(["--no-auto-maintenance", "--depth=1", "--upload-pack=git upload-pack --strict", "--"]);
    command.arg(file_url(&folders.common)).arg(format!("+{revision}:{}", RevisionStore::pin_name(revision)));
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
