//! A git repository behind a network: named references first, a fetch only when one has moved.

use std::path::Path;

use git2::{Oid, Reference};
use tokio::process::Command;

use crate::object::Revision;

use super::bounded::{await_bounded, run_bounded};
use super::child::{self, ChildError, ChildOutput, ChildPeer};
use super::commit_verifier::{CommitVerifier, VerificationRange};
use super::error::SourceError;
use super::followed_repository::RepositoryFolders;
use super::git_messages::{self, GitErrorKind};
use super::host_objects::HostObjects;
use super::incoming::IncomingRepository;
use super::lineage::{Ancestry, CommitRange};
use super::location;
use super::login::GitLogin;
use super::reader::RevisionReader;
use super::settings::TransportPolicy;
use super::short_name::{ShortName, is_whole_id};
use super::state_lock::StateLock;
use super::store::{RemainingReadQuota, RevisionStore};

/// The depths at which an older revision is looked for in turn: most are young, and a whole history
/// may be large. The last is git's value for all.
const FETCH_DEPTHS: [u32; 3] = [64, 4_096, 0x7fff_ffff];

/// One reference of one remote.
#[derive(Debug)]
pub(super) struct RemoteReference {
    address: RemoteAddress,
    login: Option<GitLogin>,
    shown_location: String,
    wanted: WantedReference,
    /// The reference of arriving fetches, and that of the last one that held anything, in our own
    /// store. Both are named after the wanted reference, so that another repository's is never
    /// mistaken for this one's.
    fetch_ref: String,
    head_ref: String,
    /// The wanted reference, where a branch and a tag may be meant.
    short_name: Option<ShortName>,
    pub(super) store: RevisionStore,
    incoming: Box<IncomingRepository>,
}

/// A URL with its credentials apart, because arguments can be read by everybody on the host.
struct RemoteAddress {
    url: String,
    /// The login and the server that it is for, as `git credential-store` writes them.
    login: Option<String>,
    secrets: Vec<String>,
}

impl std::fmt::Debug for RemoteAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&location::redact(&self.url))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WantedReference {
    Head,
    /// A full id.
    Commit(Revision),
    /// A branch, else a tag, or a whole name that begins with `refs/`.
    Named(String),
}

impl WantedReference {
    /// Returns the full names that it may have; the first that is there wins.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Head => vec!["HEAD".to_owned()],
            Self::Commit(_) => Vec::new(),
            Self::Named(name) if name.starts_with("refs/") => vec![name.clone()],
            Self::Named(name) => vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")],
        }
    }
}

/// The remote's answer about the wanted reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AdvertisedReference {
    pub(super) name: String,
    pub(super) commit: Revision,
}

impl RemoteReference {
    pub(super) fn new(
        url: &str,
        reference: Option<&str>,
        shown_location: &str,
        store: RevisionStore,
    ) -> Result<Self, SourceError> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        if store.settings().transports == TransportPolicy::Authenticated
            && let Some(scheme @ ("http" | "git")) = scheme
        {
            return Err(SourceError::Unsupported {
                shown_location: shown_location.to_owned(),
                feature: format!("{scheme}://, which neither encrypts nor tells who answers,"),
                instead: "use https:// or ssh://",
            });
        }
        let wanted = wanted_reference(reference, shown_location)?;
        let key = store.key_of(format!("{url}\n{wanted:?}").as_bytes())?;
        let (fetch_ref, head_ref) = (format!("refs/rhumb/in/{key}"), format!("refs/rhumb/head/{key}"));
        let address = remote_address(url);
        let login = address.login.as_deref().map(GitLogin::keep).transpose();
        let login = login.map_err(|error| login_error(shown_location, &error))?;
        let (shown_location, incoming) =
            (shown_location.to_owned(), Box::new(IncomingRepository::of(&store)));
        let short_name = ShortName::of(reference, key);
        Ok(Self { address, login, shown_location, wanted, fetch_ref, head_ref, short_name, store, incoming })
    }

    /// Returns the revision that the last observation of an earlier process left.
    pub(super) fn remembered_revision(&self) -> Option<Revision> {
        self.store.remembered_revision(&self.head_ref)
    }

    /// Asks the remote, fetches a new revision, pins it. A revision that the guard refuses never
    /// comes into force.
    pub(super) async fn newest_revision(
        &self,
        lock: &StateLock,
        known: Option<&Revision>,
        reader: &RevisionReader,
        guard: Option<&CommitVerifier>,
    ) -> Result<Revision, SourceError> {
        // An earlier process may have followed what nobody verified.
        let settled = guard.map_or(known, CommitVerifier::accepted_revision);
        let (name, commit) = match &self.wanted {
            WantedReference::Commit(commit) => (commit.to_string(), commit.clone()),
            WantedReference::Head | WantedReference::Named(_) => {
                let advertised = self.advertised_reference(lock, known).await?;
                (advertised.name, advertised.commit)
            }
        };
        let pinned = self.store.reference_target(&RevisionStore::pin_name(&commit))?;
        if pinned.is_some() && settled == Some(&commit) && known == settled {
            if let Some(short_name) = &self.short_name {
                short_name.settle(Some(name), &self.store, lock, &commit)?;
            }
            return Ok(commit);
        }
        let here = pinned.is_some() && self.store.has_revision(&commit);
        let revision = if here { commit } else { self.fetched_revision(lock, &name).await? };
        reader.check(&revision)?;
        if let Some(guard) = guard {
            let deadline = self.store.settings().fetch;
            await_bounded(&self.shown_location, deadline, self.pass(lock, guard, &name, &revision)).await?;
        }
        self.store.set_reference(lock, &self.head_ref, &revision)?;
        if let Some(short_name) = &self.short_name {
            short_name.record(Some(name), &self.store, lock, &revision)?;
        }
        Ok(revision)
    }

    /// Returns the full names that the wanted reference may have: the one that was followed before
    /// alone.
    fn wanted_names(&self) -> Result<Vec<String>, SourceError> {
        let known = match &self.short_name {
            Some(short_name) => short_name.meaning(&self.store)?,
            None => None,
        };
        Ok(known.map_or_else(|| self.wanted.names(), |known| vec![known.to_owned()]))
    }

    /// Fails unless a guard lets a revision pass, of whose history as much is fetched as that
    /// takes.
    async fn pass(
        &self,
        lock: &StateLock,
        guard: &CommitVerifier,
        name: &str,
        revision: &Revision,
    ) -> Result<(), SourceError> {
        let check = async |commits: &[Oid]| guard.check(&self.store, lock, revision, commits).await;
        let base = match guard.verification_range(revision) {
            VerificationRange::Nothing => return Ok(()),
            VerificationRange::Single => return check(&[self.id(revision)?]).await,
            VerificationRange::After(base) => base,
        };
        // A commit that cannot be verified at all is not worth a history.
        check(&[self.id(revision)?]).await?;
        let mut depths = FETCH_DEPTHS.iter();
        loop {
            let refused = match guard.commits_between(&self.store, &base, revision).await? {
                CommitRange::Exactly(commits) => return check(&commits).await,
                CommitRange::Diverged => return Err(guard.unrelated_error(revision, &base)),
                // More of the history may show that what is refused was accepted long ago.
                CommitRange::AtMost(commits) => match check(&commits).await {
                    Err(error @ SourceError::Unverified { .. }) => error,
                    checked => return checked,
                },
                CommitRange::Unknown => guard.shallow_error(revision, &base),
            };
            let Some(depth) = depths.next() else { return Err(refused) };
            self.fetch(lock, name, *depth).await?;
            let folders = self.incoming.folders()?;
            self.copy_history(&self.fetched_objects(lock, &folders)).await?;
        }
    }

    fn id(&self, revision: &Revision) -> Result<Oid, SourceError> {
        Oid::from_str(revision.as_str()).map_err(|error| self.store.classify_error(&error))
    }

    /// Puts a revision that was accepted before in force again; false where it cannot be had any
    /// more.
    pub(super) async fn fall_back_to_accepted(
        &self,
        lock: &StateLock,
        accepted: &Revision,
    ) -> Result<bool, SourceError> {
        let is_here = self.fetch_older(lock, accepted).await?;
        if is_here {
            self.store.set_reference(lock, &self.head_ref, accepted)?;
        }
        Ok(is_here)
    }

    async fn fetched_revision(&self, lock: &StateLock, name: &str) -> Result<Revision, SourceError> {
        self.fetch(lock, name, 1).await?;
        let folders = self.incoming.folders()?;
        let objects = self.fetched_objects(lock, &folders);
        let Some(revision) = self.fetched_commit(&objects).await? else {
            let detail = format!("{name} leads to no commit");
            return Err(SourceError::Refused { shown_location: self.shown_location.clone(), detail });
        };
        objects.pin_copy(&revision, &self.head_ref).await?;
        Ok(revision)
    }

    /// Returns the commit that was fetched last; none where it was no commit.
    async fn fetched_commit(&self, objects: &HostObjects<'_>) -> Result<Option<Revision>, SourceError> {
        let Some(id) = self.incoming.target(&self.fetch_ref) else { return Ok(None) };
        Ok(objects.resolve(&format!("{id}^{{commit}}")).await?.ok())
    }

    fn fetched_objects<'a>(&'a self, lock: &'a StateLock, folders: &'a RepositoryFolders) -> HostObjects<'a> {
        HostObjects::new(&self.store, lock, folders, &self.shown_location)
    }

    /// Makes the fetched history readable: its commits without their files. Returns its newest.
    async fn copy_history(&self, objects: &HostObjects<'_>) -> Result<Option<Revision>, SourceError> {
        let Some(tip) = self.fetched_commit(objects).await? else { return Ok(None) };
        objects.copy_history(&tip).await?;
        Ok(Some(tip))
    }

    /// Pins an older revision out of the history of the followed reference, and fetches as much of
    /// it as that takes. False where the available history does not show it.
    ///
    /// It is never asked for by its id: servers serve the commits of forks and of proposals by
    /// theirs.
    pub(super) async fn fetch_older(
        &self,
        lock: &StateLock,
        revision: &Revision,
    ) -> Result<bool, SourceError> {
        // All fetches together may take as long as one: nothing else of the source is fetched
        // meanwhile.
        let deadline = self.store.settings().fetch;
        await_bounded(&self.shown_location, deadline, self.fetch_until_found(lock, revision)).await
    }

    /// Pins a revision that is in the history, of which more and more is fetched. Returns whether
    /// it is.
    async fn fetch_until_found(&self, lock: &StateLock, revision: &Revision) -> Result<bool, SourceError> {
        if let Some(tip) = self.remembered_revision()
            && self.store.has_revision(revision)
            && self.is_descendant(&tip, revision).await?
        {
            self.store.pin(lock, revision)?;
            return Ok(true);
        }
        let name = match &self.wanted {
            WantedReference::Commit(commit) => commit.to_string(),
            WantedReference::Head | WantedReference::Named(_) => {
                match self.advertised_reference(lock, None).await {
                    Ok(advertised) if self.has_history_of(&advertised.commit) => {
                        return self.copy_older(lock, revision).await;
                    }
                    Ok(advertised) => advertised.name,
                    Err(SourceError::NoReference { .. }) => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
        };
        for depth in FETCH_DEPTHS {
            self.fetch(lock, &name, depth).await?;
            if self.copy_older(lock, revision).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Pins a revision out of the fetched history; false where that does not show it.
    async fn copy_older(&self, lock: &StateLock, revision: &Revision) -> Result<bool, SourceError> {
        let folders = self.incoming.folders()?;
        let objects = self.fetched_objects(lock, &folders);
        let Some(tip) = self.copy_history(&objects).await? else { return Ok(false) };
        let here = self.store.has_commit(revision).map_err(|error| self.store.classify_error(&error))?;
        if !(here && self.is_descendant(&tip, revision).await?) {
            return Ok(false);
        }
        objects.pin_copy(revision, &self.head_ref).await?;
        Ok(true)
    }

    /// Returns whether all that leads to a commit was fetched.
    fn has_history_of(&self, commit: &Revision) -> bool {
        let fetched = self.incoming.target(&self.fetch_ref);
        fetched.is_some_and(|id| id.to_string() == commit.as_str()) && self.incoming.has_complete_history()
    }

    /// Returns whether one revision is another, or an older one of it.
    async fn is_descendant(&self, tip: &Revision, revision: &Revision) -> Result<bool, SourceError> {
        let (store, tip, revision) = (self.store.clone(), tip.clone(), revision.clone());
        let walk = move || store.ancestry(&tip, &revision);
        let ancestry = run_bounded(&self.shown_location, self.store.settings().fetch, walk).await??;
        Ok(ancestry == Ancestry::Descends)
    }

    async fn advertised_reference(
        &self,
        lock: &StateLock,
        known: Option<&Revision>,
    ) -> Result<AdvertisedReference, SourceError> {
        let names = self.wanted_names()?;
        let mut command = self.command(self.store.path())?;
        command.args(["ls-remote", "--exit-code", "--", self.address.url.as_str(), "HEAD"]);
        for name in &names {
            command.arg(name).arg(format!("{name}^{{}}"));
        }
        let settings = self.store.settings();
        let bounds = self.store.child_limits(settings.answer, RemainingReadQuota(settings.quota));
        let output = self.child_result(child::run(command, lock, bounds).await, settings.answer)?;
        // 2 is an empty answer, in which nothing and a failure look alike.
        if output.status.code() == Some(2) {
            return Err(self.without_head(lock).await);
        }
        if !output.status.success() {
            let moved = git_messages::kind(&output.stderr) == GitErrorKind::Moved;
            let target = if moved { Box::pin(self.redirect_target(lock)).await } else { None };
            return Err(self.command_error(&output, target));
        }
        let listed = parse_listed(&output.stdout);
        if let Some(found) = names.iter().find_map(|name| find_reference(&listed, name)) {
            return Ok(found);
        }
        let shown_location = self.shown_location.clone();
        let is_sha256 = |line: &str| line.split_once('\t').is_some_and(|(id, _)| id.len() == 64);
        if output.stdout.lines().any(is_sha256) {
            return Err(git_messages::unsupported_hash_error(shown_location));
        }
        if !listed.iter().any(|(name, _)| *name == "HEAD") {
            return Err(SourceError::EmptyRepository { shown_location });
        }
        let reference = names.first().cloned().unwrap_or_default();
        let reference = reference.trim_start_matches("refs/heads/").to_owned();
        Err(match known {
            Some(_) => SourceError::Gone { shown_location, reference },
            None => SourceError::NoReference { shown_location, reference },
        })
    }

    /// Returns the error of a repository without what its HEAD names: it may have other branches.
    async fn without_head(&self, lock: &StateLock) -> SourceError {
        let shown_location = self.shown_location.clone();
        let branches = Box::pin(self.branches(lock)).await.unwrap_or_default();
        let Some(first) = branches.first() else { return SourceError::EmptyRepository { shown_location } };
        let more = if branches.len() > 1 { ", and others" } else { "" };
        let has = format!("it has {first}{more}: name one by `spec.git.ref`, or by `--ref`");
        let reference = match &self.wanted {
            WantedReference::Head => format!("HEAD, which names a branch that is not there ({has})"),
            WantedReference::Named(name) => format!("{name} ({has})"),
            WantedReference::Commit(_) => return SourceError::EmptyRepository { shown_location },
        };
        SourceError::NoReference { shown_location, reference }
    }

    /// Returns the names of the branches, the first ones.
    async fn branches(&self, lock: &StateLock) -> Result<Vec<String>, SourceError> {
        let mut command = self.command(self.store.path())?;
        command.args(["ls-remote", "--heads", "--", self.address.url.as_str()]);
        let settings = self.store.settings();
        let bounds = self.store.child_limits(settings.answer, RemainingReadQuota(settings.quota));
        let output = self.child_result(child::run(command, lock, bounds).await, settings.answer)?;
        let listed = parse_listed(&output.stdout);
        let names = listed.iter().filter_map(|(name, _)| name.strip_prefix("refs/heads/"));
        Ok(names.map(|name| name.chars().filter(|c| !c.is_control()).take(100).collect()).take(2).collect())
    }

    /// Fetches the newest commits of a name into the incoming folder. Nothing of them is in our own
    /// store yet.
    async fn fetch(&self, lock: &StateLock, name: &str, depth: u32) -> Result<(), SourceError> {
        let quota = self.store.remaining_quota()?;
        self.incoming.prepare(lock)?;
        let mut command = self.command(self.incoming.path())?;
        let spec = format!("+{name}:{}", self.fetch_ref);
        command.args(["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]);
        command.args(["--no-auto-maintenance", &format!("--depth={depth}")]);
        command.args(["--", self.address.url.as_str(), &spec]);
        let deadline = self.store.settings().fetch;
        let fetch = child::run(command, lock, self.store.child_limits(deadline, quota));
        let output =
            self.child_result(self.store.count_packs(self.incoming.path(), fetch).await, deadline)?;
        if output.status.success() {
            return Ok(());
        }
        if output.is_overflowed() {
            let detail = "the data of the remote are larger than the quota leaves room for".to_owned();
            return Err(SourceError::Full { path: self.store.path().to_owned(), detail });
        }
        let error = self.command_error(&output, None);
        if matches!(error, SourceError::Git { .. }) {
            // An unknown failure may be the fault of what arrived before.
            self.incoming.discard(lock)?;
        }
        Err(error)
    }

    /// Returns where the server sends whoever shows no credentials: only to be shown.
    async fn redirect_target(&self, lock: &StateLock) -> Option<String> {
        let peer = ChildPeer::Network(self.store.settings().transports);
        let mut command = child::git_command(self.store.path(), peer);
        command.env("GIT_TRACE_CURL", "2").env("GIT_TRACE_CURL_NO_DATA", "1");
        command.args(["ls-remote", "--", self.address.url.as_str(), "HEAD"]);
        let settings = self.store.settings();
        let bounds = self.store.child_limits(settings.answer, RemainingReadQuota(settings.quota));
        let output = child::run(command, lock, bounds).await.ok()?;
        git_messages::redirect_target(&output.stderr, &self.address.secrets)
    }

    fn command(&self, repository: &Path) -> Result<Command, SourceError> {
        let credentials = self.store.settings().credentials.at(&self.address.url);
        credentials.check(&self.address.url).map_err(|(file, error)| SourceError::Credential {
            shown_location: self.shown_location.clone(),
            file,
            error,
        })?;
        let peer = ChildPeer::Network(self.store.settings().transports);
        let mut command = child::git_command(repository, peer);
        // The first that knows an answer is the one that counts.
        if let Some(login) = &self.login {
            let kept = login.configure(&mut command);
            kept.map_err(|error| login_error(&self.shown_location, &error))?;
        }
        credentials.configure(&mut command);
        Ok(command)
    }

    fn child_result(
        &self,
        output: Result<ChildOutput, ChildError>,
        after: std::time::Duration,
    ) -> Result<ChildOutput, SourceError> {
        let too_much = |shown_location| {
            let detail = "it sends more than references".to_owned();
            SourceError::NotARepository { shown_location, detail }
        };
        output.map_err(|failure| failure.into_source_error(&self.shown_location, after, too_much))
    }

    fn command_error(&self, output: &ChildOutput, target: Option<String>) -> SourceError {
        let detail = git_messages::error_detail(&output.stderr, &self.address.secrets);
        match git_messages::kind(&output.stderr) {
            GitErrorKind::NoCommit => {
                let reference = match &self.wanted {
                    WantedReference::Commit(commit) => format!("{commit} ({detail})"),
                    WantedReference::Head | WantedReference::Named(_) => detail,
                };
                SourceError::NoReference { shown_location: self.shown_location.clone(), reference }
            }
            GitErrorKind::Moved => SourceError::Moved { shown_location: self.shown_location.clone(), target },
            kind => git_messages::exchange_error(kind, &self.shown_location, detail, &self.store),
        }
    }
}

fn login_error(shown_location: &str, error: &std::io::Error) -> SourceError {
    SourceError::Worker {
        shown_location: shown_location.to_owned(),
        detail: format!("the login cannot be kept: {error}"),
    }
}

fn wanted_reference(reference: Option<&str>, shown_location: &str) -> Result<WantedReference, SourceError> {
    let Some(name) = reference.filter(|name| *name != "HEAD") else { return Ok(WantedReference::Head) };
    if is_whole_id(name) {
        return Ok(WantedReference::Commit(Revision::new(&name.to_ascii_lowercase())));
    }
    let wanted = WantedReference::Named(name.to_owned());
    if wanted.names().iter().all(|name| Reference::is_valid_name(name)) {
        return Ok(wanted);
    }
    let why = format!("`{name}` is no branch, tag or whole commit id");
    Err(SourceError::Location { text: shown_location.to_owned(), why })
}

/// Returns the lines of `ls-remote`: whole names and ids.
pub(super) fn parse_listed(text: &str) -> Vec<(&str, Revision)> {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines
        .filter(|(id, _)| id.len() == 40 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        .map(|(id, name)| (name, Revision::new(id)))
        .collect()
}

/// Returns a reference by its whole name (patterns match tails too), annotated tags by what they
/// lead to.
pub(super) fn find_reference(listed: &[(&str, Revision)], name: &str) -> Option<AdvertisedReference> {
    let id = |name: &str| listed.iter().find(|(listed, _)| *listed == name).map(|(_, id)| id.clone());
    let commit = id(&format!("{name}^{{}}")).or_else(|| id(name))?;
    Some(AdvertisedReference { name: name.to_owned(), commit })
}

fn remote_address(text: &str) -> RemoteAddress {
    let secrets = location::secret_parts(text);
    let Some(url) = location::url(text) else {
        return RemoteAddress { url: text.to_owned(), login: None, secrets };
    };
    let (scheme, plain, query) = (url.scheme, url.plain, url.query);
    let without = format!("{scheme}://{plain}{query}");
    let Some(user) = url.user else { return RemoteAddress { url: without, login: None, secrets } };
    if let Some(login) = url.login() {
        // ssh takes no password from an address.
        return RemoteAddress { url: format!("{scheme}://{login}@{plain}"), login: None, secrets };
    }
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let (name, password) = (reencode(name), reencode(password));
    let host = plain.split('/').next().unwrap_or_default();
    let login = Some(format!("{scheme}://{name}:{password}@{host}"));
    RemoteAddress { url: without, login, secrets }
}

/// Returns a part of a login in the one form that git reads as it is meant, however freely a person
/// wrote it.
fn reencode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let decoded = location::percent_decoded(text.as_bytes()).unwrap_or_else(|| text.as_bytes().to_vec());
    let encoded = decoded.into_iter().map(|byte| match byte {
        byte if plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_leave_the_url() {
        fn check(url: &str, plain: &str, login: Option<&str>) {
            let address = remote_address(url);
            assert_eq!((&*address.url, address.login.as_deref()), (plain, login), "{url}");
        }
        check("https://example.com/a.git", "https://example.com/a.git", None);
        check(
            "https://Aladdin:open%20se$ame@example.com:8443/a.git",
            "https://example.com:8443/a.git",
            Some("https://Aladdin:open%20se%24ame@example.com:8443"),
        );
        check("https://token@example.com/a", "https://example.com/a", Some("https://token:@example.com"));
        check("ssh://git@example.com/a", "ssh://git@example.com/a", None);
        check("ssh://git:secret@example.com:22/a", "ssh://git@example.com:22/a", None);
        check("git@example.com:a", "git@example.com:a", None);
    }

    #[test]
    fn references_count_by_their_whole_name() {
        let id = |digit: char| digit.to_string().repeat(40);
        let text = format!(
            "{}\tHEAD\n{}\trefs/heads/evil/refs/heads/main\n{}\trefs/tags/v1\n{}\trefs/tags/v1^{{}}\nnonsense\n",
            id('a'),
            id('b'),
            id('c'),
            id('d')
        );
        let listed = parse_listed(&text);
        assert_eq!(find_reference(&listed, "refs/heads/main"), None);
        assert_eq!(find_reference(&listed, "HEAD").unwrap().commit.as_str(), id('a'));
        assert_eq!(find_reference(&listed, "refs/tags/v1").unwrap().commit.as_str(), id('d'));
    }
}
