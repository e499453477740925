//! The charts of servers that one root uses: which version is meant, by whose word, and where each
//! lies in the revision.
//!
//! Owns the decision by `rhumb.lock` and the bounds of a root. Knows no network.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::chart_layer::{ChartLayer, LayeredTree};
use super::chart_lock::{ChartLock, LOCK_FILE, LockedChart};
use super::chart_supply::{
    ChartRequest, ChartRequestSite, ChartSupply, FailureDuration, PinPolicy, SupplyError, is_folder_name,
    is_server,
};
use super::charts::{ChartDigest, ChartReference, ExpectedDigest, FetchedChart, is_exact};
use super::helm::{self, ChartClosure, ChartLimits, ChartUser, HelmOptions};
use super::kustomize::{FileReference, ReferenceRole, error_at, lost_reference, sanitize_text};
use super::paths;
use super::tree::{self, FileTree, PathFailure, ResolvedPath};
use crate::manifest::TextPosition;
use crate::object::Diagnostic;
use crate::source::SourceError;

/// Charts of servers that one root may use.
const MAX_SERVER_CHARTS: usize = 100;
/// Bytes of all files of these, after which no further one is taken. Large public charts have 5 MB.
const MAX_SERVER_CHART_BYTES: u64 = 256 << 20;
/// The range that a missing version means.
const ANY_VERSION: &str = "*";
/// The rounds in which one chart is found. Each begins with the charts that the one before missed.
const MAX_ROUNDS: usize = 8;

/// The charts of servers that a root uses.
#[derive(Debug, Default)]
pub(super) struct SuppliedCharts {
    /// Their files, where they lie in the revision.
    pub(super) layer: ChartLayer,
    /// All of them, with their digests.
    pub(super) used: BTreeSet<LockedChart>,
    /// The digest of the text of `rhumb.lock`; none where nothing was sought in it.
    pub(super) lock: Option<String>,
    /// The reasons for which the root cannot be rendered now.
    pub(super) interruptions: Vec<Diagnostic>,
}

/// The lock of a root, as far as it is known.
enum RootLockState {
    /// Nobody looked for it.
    Unread,
    /// It is not there.
    Absent,
    /// It is there, and cannot be read.
    Unreadable,
    /// Its charts.
    Read(ChartLock),
}

/// The resolver of the charts of servers that one root uses.
pub(super) struct ChartResolver<'a, T> {
    files: &'a T,
    root: &'a str,
    supply: &'a dyn ChartSupply,
    policy: PinPolicy,
    lock: RootLockState,
    known: HashMap<ChartReference, Option<FetchedChart>>,
    /// The bytes of their files that may still come.
    bytes_left: u64,
    laid: BTreeMap<String, ChartDigest>,
    /// The archive that helm gets of each chart that another one is made of, by its folder.
    archives: BTreeMap<String, String>,
    charts: SuppliedCharts,
    refusals: Vec<Diagnostic>,
    /// The paths in the revision that were looked at.
    watched: Vec<Arc<str>>,
}

impl<'a, T: FileTree> ChartResolver<'a, T> {
    /// Returns one for the root in a folder.
    pub(super) fn new(files: &'a T, root: &'a str, supply: &'a dyn ChartSupply, policy: PinPolicy) -> Self {
        Self {
            files,
            root,
            supply,
            policy,
            lock: RootLockState::Unread,
            known: HashMap::new(),
            bytes_left: MAX_SERVER_CHART_BYTES,
            laid: BTreeMap::new(),
            archives: BTreeMap::new(),
            charts: SuppliedCharts::default(),
            refusals: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Returns the revision with all charts that were found so far.
    pub(super) fn tree_with_charts(&self) -> LayeredTree<'_, T> {
        LayeredTree { tree: self.files, layer: &self.charts.layer }
    }

    /// Returns the charts, and gives what was found to the closure of the root.
    pub(super) fn into_charts(self, closure: &mut super::kustomize::Closure) -> SuppliedCharts {
        closure.watched.extend(self.watched);
        closure.diagnostics.extend(self.refusals);
        self.charts
    }

    /// Finds the closure of a chart, with the charts that it is made of.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(super) fn find_chart_closure(
        &mut self,
        root: &str,
        start: &str,
        options: &HelmOptions,
    ) -> Result<ChartClosure, SourceError> {
        for round in 0.. {
            let (seen, limits) = (self.tree_with_charts(), ChartLimits::default());
            let mut chart = helm::find_present_closure(&seen, root, start, options, limits, &self.archives)?;
            // helm does without those of the charts that the rendered one is made of.
            chart.missing.retain(|one| one.by == ChartUser::Root);
            if chart.missing.is_empty() {
                return Ok(chart);
            }
            if round == MAX_ROUNDS || !self.supply_missing(&mut chart)? {
                chart.refuse_missing();
                return Ok(chart);
            }
        }
        unreachable!("a loop without an end")
    }

    /// Lays the charts that are missing into the revision; false where one of them stays missing.
    fn supply_missing(&mut self, chart: &mut ChartClosure) -> Result<bool, SourceError> {
        let (mut is_complete, mut left) = (true, Vec::new());
        let mut fresh = BTreeSet::new();
        for missing in std::mem::take(&mut chart.missing) {
            let dependency = &missing.dependency;
            if !is_server(&dependency.repository) || !is_folder_name(&dependency.name) {
                left.push(missing);
                is_complete = false;
                continue;
            }
            let request = ChartRequest {
                repository: &dependency.repository,
                name: &dependency.name,
                version: &dependency.version,
            };
            let at = ChartRequestSite { file: &missing.file, position: dependency.position };
            let parts = paths::append(&missing.folder, helm::PARTS_FOLDER);
            let Some(found) = self.request(request, at)? else {
                is_complete = false;
                continue;
            };
            if let Some(folder) = self.free_folder(&parts, &found, &fresh) {
                self.insert_chart(&folder, &found);
                let archive = self.archive_name(&parts, &folder, &found.reference)?;
                self.archives.insert(folder.clone(), archive);
                fresh.insert(folder);
            } else {
                self.refuse(unread_folder_finding(&dependency.name, at));
                is_complete = false;
            }
        }
        chart.missing = left;
        Ok(is_complete)
    }

    /// Returns the folder for a chart among those that another one is made of; none where it lies
    /// there, and helm still misses it. One chart may be asked for under several names.
    fn free_folder(&self, parts: &str, found: &FetchedChart, fresh: &BTreeSet<String>) -> Option<String> {
        let ChartReference { name, version, .. } = &found.reference;
        let versioned = format!("{name}-{version}");
        let folders = [name, &versioned].map(|name| paths::append(parts, name));
        let is_free = |folder: &String| match self.laid.get(folder) {
            None => true,
            Some(digest) => *digest == found.digest && fresh.contains(folder),
        };
        let is_laid =
            |folder: &String| self.laid.get(folder) == Some(&found.digest) && !fresh.contains(folder);
        if folders.iter().any(is_laid) { None } else { folders.into_iter().find(is_free) }
    }

    /// Returns the name that `helm dependency build` gives to the archive of a chart; another one
    /// where something else has that name.
    fn archive_name(&self, parts: &str, folder: &str, chart: &ChartReference) -> Result<String, SourceError> {
        let usual = format!("{}-{}.tgz", chart.name, chart.version);
        let is_other = self
            .archives
            .iter()
            .any(|(other, name)| other != folder && paths::folder_of(other) == parts && *name == usual);
        if !is_other && self.files.entry(&paths::append(parts, &usual))?.is_none() {
            return Ok(usual);
        }
        Ok(format!("{}.fetched.tgz", folder.rsplit('/').next().unwrap_or(folder)))
    }

    /// Lays a chart into a folder of the revision.
    pub(super) fn insert_chart(&mut self, folder: &str, found: &FetchedChart) {
        self.laid.insert(folder.to_owned(), found.digest);
        self.charts.layer.add(folder, found);
    }

    /// Adds what keeps the root from being rendered.
    pub(super) fn refuse(&mut self, found: Diagnostic) {
        self.refusals.push(found);
    }

    /// Returns a chart of a server; none where there is none, which is a finding then.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(super) fn request(
        &mut self,
        request: ChartRequest<'_>,
        at: ChartRequestSite<'_>,
    ) -> Result<Option<FetchedChart>, SourceError> {
        // helm takes the newest where no version is named.
        let request = ChartRequest {
            version: if request.version.trim().is_empty() { ANY_VERSION } else { request.version },
            ..request
        };
        let Some((version, pin)) = self.find_pin(request, at)? else { return Ok(None) };
        let reference = ChartReference {
            repository: request.repository.to_owned(),
            name: request.name.to_owned(),
            version: version.clone(),
        };
        if !self.known.contains_key(&reference) {
            let fetched = match self.supply_of(&reference, pin.as_ref()) {
                Ok(fetched) => {
                    let bytes: u64 = fetched.files.iter().map(|file| file.content.len() as u64).sum();
                    self.bytes_left = self.bytes_left.saturating_sub(bytes);
                    Some(fetched)
                }
                Err(error) => {
                    self.fail(error, at);
                    None
                }
            };
            self.known.insert(reference.clone(), fetched);
        }
        let found = self.known.get(&reference).cloned().flatten();
        if let Some(found) = &found {
            self.charts.used.insert(LockedChart {
                repository: reference.repository,
                name: reference.name,
                constraint: (version != request.version).then(|| request.version.to_owned()),
                version,
                digest: found.digest,
            });
        }
        Ok(found)
    }

    fn supply_of(
        &self,
        reference: &ChartReference,
        pin: Option<&ChartDigest>,
    ) -> Result<FetchedChart, SupplyError> {
        if self.known.len() >= MAX_SERVER_CHARTS {
            let message = format!("this root uses more than {MAX_SERVER_CHARTS} charts of servers");
            return Err(too_large(message));
        }
        if self.bytes_left == 0 {
            return Err(too_large(
                "the charts of servers that this root uses are too large together".to_owned(),
            ));
        }
        let expected = match (pin, self.policy) {
            (Some(pin), _) => ExpectedDigest::Pinned(*pin),
            (None, PinPolicy::Update) => ExpectedDigest::Any,
            (None, PinPolicy::Strict | PinPolicy::Fill) => ExpectedDigest::First,
        };
        self.supply.fetch(reference, expected)
    }

    /// Returns the version that is meant, and the digest that it must have.
    fn find_pin(
        &mut self,
        request: ChartRequest<'_>,
        at: ChartRequestSite<'_>,
    ) -> Result<Option<(String, Option<ChartDigest>)>, SourceError> {
        self.read_lock()?;
        let (policy, is_range) = (self.policy, !is_exact(request.version));
        let (locked, is_locked) = match &self.lock {
            RootLockState::Read(lock) => (lock.find(request.repository, request.name, request.version), true),
            RootLockState::Unreadable if policy == PinPolicy::Strict => return Ok(None),
            RootLockState::Unread | RootLockState::Absent | RootLockState::Unreadable => (None, false),
        };
        match (locked, policy) {
            (Some(locked), PinPolicy::Strict | PinPolicy::Fill) => {
                Ok(Some((locked.version.clone(), Some(locked.digest))))
            }
            (None, PinPolicy::Strict) if is_locked => {
                let file = paths::append(self.root, LOCK_FILE);
                let found = unlocked_chart_finding(request, at, &file);
                self.refuse(found);
                Ok(None)
            }
            (_, PinPolicy::Fill | PinPolicy::Update) if is_range => {
                match self.supply.newest_version(request.repository, request.name, request.version) {
                    Ok(version) => Ok(Some(self.pin(request, version))),
                    Err(error) => {
                        self.fail(error, at);
                        Ok(None)
                    }
                }
            }
            _ => Ok(Some(self.pin(request, request.version.to_owned()))),
        }
    }

    /// Returns a version with the digest that the lock has of it for another range.
    fn pin(&self, request: ChartRequest<'_>, version: String) -> (String, Option<ChartDigest>) {
        let digest = match &self.lock {
            RootLockState::Read(lock) if self.policy == PinPolicy::Fill => {
                lock.digest_of(request.repository, request.name, &version)
            }
            _ => None,
        };
        (version, digest)
    }

    /// Looks for the lock of the root, once.
    fn read_lock(&mut self) -> Result<(), SourceError> {
        if !matches!(self.lock, RootLockState::Unread) {
            return Ok(());
        }
        let watched = &mut self.watched;
        let found = tree::resolve(self.files, self.root, LOCK_FILE, |path| watched.push(path.into()))?;
        let (path, file) = match found {
            Ok(ResolvedPath { path, file: Some(file) }) => (path, file),
            Ok(ResolvedPath { file: None, .. }) | Err(PathFailure::Missing(_)) => {
                self.lock = RootLockState::Absent;
                return Ok(());
            }
            Err(failure) => {
                self.lock = RootLockState::Unreadable;
                if self.policy == PinPolicy::Strict {
                    self.refusals.push(lost_lock(self.root, &failure));
                }
                return Ok(());
            }
        };
        self.charts.lock = Some(file.blob.to_string());
        self.lock = match ChartLock::read(&path.into(), &self.files.read(file.blob)?) {
            Ok(lock) => RootLockState::Read(lock),
            Err(faults) => {
                if self.policy == PinPolicy::Strict {
                    self.refusals.extend(faults);
                }
                RootLockState::Unreadable
            }
        };
        Ok(())
    }

    fn fail(&mut self, error: SupplyError, at: ChartRequestSite<'_>) {
        let found = error_at(at.file, at.position, error.code, error.message, error.hint);
        match error.duration {
            FailureDuration::Transient => self.charts.interruptions.push(found),
            FailureDuration::Permanent => self.refusals.push(found),
        }
    }
}

fn too_large(message: String) -> SupplyError {
    let hint = "split it into several roots".to_owned();
    SupplyError { code: "too-large", message, hint, duration: FailureDuration::Permanent }
}

fn unread_folder_finding(name: &str, at: ChartRequestSite<'_>) -> Diagnostic {
    let message = format!("the chart {} was fetched, and helm does not see it", sanitize_text(name));
    let hint = "take charts/ out of the chart's .helmignore";
    error_at(at.file, at.position, "missing-dependency", message, hint)
}

fn lost_lock(root: &str, failure: &PathFailure) -> Diagnostic {
    let (role, target) = (ReferenceRole::File, paths::append(root, LOCK_FILE));
    let position = TextPosition { line: 0, column: 0 };
    lost_reference(&Arc::from(&*target), &FileReference { role, field: "lock", target, position }, failure)
}

fn unlocked_chart_finding(request: ChartRequest<'_>, at: ChartRequestSite<'_>, file: &str) -> Diagnostic {
    let (name, version) = (sanitize_text(request.name), sanitize_text(request.version));
    let repository = sanitize_text(request.repository);
    let message = format!("the chart {name} {version} from {repository} is not in {file}");
    error_at(
        at.file,
        at.position,
        "chart-not-locked",
        message,
        "add it with `rhumb lock`, and commit the file",
    )
}

#[cfg(test)]
mod tests;
