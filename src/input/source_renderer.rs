//! Renders the roots of one source: those whose closure changed, on all cores, each other one kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::chart_layer::LayeredTree;
use super::chart_supply::{ChartSupply, PinPolicy};
use super::charts::ChartFetcher;
use super::decryption::{Decrypter, NO_KEY};
use super::encryption;
use super::inflation::inflate;
use super::key::ProgramIdentity;
use super::kustomize::{Closure, ClosureIndex, ParsedFiles};
use super::origin::ObjectOrigin;
use super::own_thread;
use super::paths;
use super::release_render::{ReleaseSettings, render_release};
use super::render_host::RenderHost;
use super::root_closure::{ClosureForm, RootClosure, TraceSettings};
use super::root_render::{RenderError, RenderedObject, TracedKustomization, render_kustomization};
use super::roots::{self, RenderRoot, RootForm, find_roots};
use super::sandbox::{InstalledProgram, ProgramError, RenderProgram};
use super::server_charts::ServerCharts;
use super::substitution::{self, RevisionVariables};
use super::tree::FileTree;
use super::variables::VariableTable;
use crate::config::{RenderMode, SubstitutionConfig};
use crate::object::{Diagnostic, ManifestOrigin, RenderOrigin};
use crate::source::{
    BlobId, RenderRequest, RenderedContent, RenderedRoot, RenderedSnapshot, RevisionTree, RootKey,
    RootOutcome, Snapshot, SnapshotFile, SnapshotRenderer, SourceError,
};

/// The code of a root that its program does not render.
const RENDER_FAILED: &str = "render-failed";
/// The code of a root whose program is missing, or cannot be used.
const NO_PROGRAM: &str = "no-program";

/// Renders the roots of one source's revisions.
#[derive(Debug)]
pub(crate) struct SourceRenderer {
    host: Arc<RenderHost>,
    mode: RenderMode,
    decrypter: Arc<Decrypter>,
    substitution: Option<SourceVariables>,
    releases: ReleaseSettings,
    supply: Arc<dyn ChartSupply>,
    state: Mutex<RendererState>,
}

/// The variables of a source, and the namespace of objects that name none.
#[derive(Clone, Debug)]
pub(crate) struct SourceVariables {
    /// The variables, and the objects that hold others.
    pub config: SubstitutionConfig,
    /// The namespace.
    pub namespace: String,
}

/// The memory between two revisions.
#[derive(Debug, Default)]
struct RendererState {
    parsed: ParsedFiles,
    last: Option<LastRevision>,
}

/// The revision that was rendered last.
#[derive(Debug)]
struct LastRevision {
    tree: RevisionTree,
    index: ClosureIndex,
    roots: HashMap<Arc<str>, RenderedRoot>,
    /// The digest of its variables.
    variables: Option<[u8; 32]>,
}

/// The programs that the roots at hand need, each found or not.
type FoundPrograms = BTreeMap<RenderProgram, Result<InstalledProgram, ProgramError>>;

/// A root, and what its outcome follows from.
struct RootJob {
    /// The folder that is the source's root.
    start: Arc<str>,
    /// The path inside the source of the file that makes its folder a root.
    path: Arc<str>,
    closure: RootClosure,
    /// The programs that it needs: first its own.
    programs: Vec<InstalledProgram>,
    key: RootKey,
    variables: Option<Arc<VariableTable>>,
}

/// The outcome of one job.
struct JobOutcome {
    root: RenderedRoot,
    contents: Vec<RenderedContent>,
}

impl SourceRenderer {
    /// Returns the renderer of a source, which finds charts of servers by this fetcher.
    pub(crate) fn new(
        host: Arc<RenderHost>,
        mode: RenderMode,
        decrypter: Arc<Decrypter>,
        charts: ChartFetcher,
    ) -> Self {
        let supply = Arc::new(ServerCharts::new(charts, host.clone()));
        let releases = ReleaseSettings::default();
        Self { host, mode, decrypter, substitution: None, releases, supply, state: Mutex::default() }
    }

    /// Returns one that takes charts of servers from here.
    #[cfg(test)]
    pub(super) fn with_supply(self, supply: Arc<dyn ChartSupply>) -> Self {
        Self { supply, ..self }
    }

    /// Returns one that renders charts with these settings.
    pub(crate) fn with_releases(self, releases: ReleaseSettings) -> Self {
        Self { releases, ..self }
    }

    /// Returns one that also puts variables into what it renders, and into plain files.
    pub(crate) fn with_variables(self, substitution: Option<SourceVariables>) -> Self {
        Self { substitution, ..self }
    }

    /// Returns what is rendered of a source.
    pub(super) const fn mode(&self) -> RenderMode {
        self.mode
    }

    /// Finds the files that a root reads, and the charts of servers that it uses.
    ///
    /// # Errors
    /// Fails where the files cannot be read.
    pub(super) fn trace<T: FileTree>(
        &self,
        root: &RenderRoot,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        policy: PinPolicy,
    ) -> Result<RootClosure, SourceError> {
        let settings = TraceSettings { releases: &self.releases, supply: &*self.supply, policy };
        RootClosure::trace(root, start, files, parsed, settings)
    }

    fn read_variables<T: FileTree>(
        &self,
        plain: &Snapshot,
        start: &str,
        files: &T,
    ) -> Result<Option<RevisionVariables>, SourceError> {
        let Some(SourceVariables { config, namespace }) = &self.substitution else { return Ok(None) };
        substitution::read_variables(config, namespace, plain, start, files).map(Some)
    }

    /// Renders all roots below a folder. Blocks, and runs programs.
    ///
    /// # Errors
    /// Fails where the files cannot be read.
    pub(crate) fn render_files<T: FileTree + Sync>(
        &self,
        raw: Snapshot,
        start: &str,
        files: &T,
    ) -> Result<RenderedSnapshot, SourceError> {
        let mut parsed = ParsedFiles::default();
        let mut listing = find_roots(self.mode, start, raw, files, &mut parsed)?;
        let variables = self.read_variables(&listing.plain, start, files)?;
        let mut closures = Vec::new();
        for root in listing.roots {
            let closure = self.trace(&root, start, files, &mut parsed, PinPolicy::Strict)?;
            closures.push((root, closure));
        }
        let known = HashMap::new();
        let plain = substitute_plain(&mut listing.plain, start, files, variables.as_ref(), &known)?;
        let done = self.render_closures(start, closures, files, variables.as_ref(), &known)?;
        Ok(joined_outcomes(listing.plain, Vec::new(), plain.into_iter().chain(done).collect()))
    }

    fn render_revision(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let RenderRequest { raw, start, tree, same, before } = request;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let RendererState { parsed, last } = &mut *state;
        let mut listing = find_roots(self.mode, start, raw, &tree, parsed)?;
        let variables = self.read_variables(&listing.plain, start, &tree)?;
        let digest = variables.as_ref().map(variables_digest);
        let changed = last.as_ref().map(|last| last.tree.changed_paths(&tree)).transpose()?;
        let touched = changed
            .zip(last.as_ref())
            .map(|(changed, last)| last.index.impact(changed.iter().map(String::as_str)).roots);
        let known: HashMap<RootKey, RenderedRoot> =
            same.iter().chain(before.iter()).map(|root| (root.key, root.clone())).collect();
        let (mut kept, mut closures) = (Vec::new(), Vec::new());
        for root in listing.roots {
            if let Some(before) = last
                .as_ref()
                .filter(|last| last.variables == digest)
                .and_then(|last| last.kept_root(&root, touched.as_ref()))
                .and_then(|(folder, before)| Some((folder, stored_root(before, &known)?)))
            {
                kept.push(before);
                continue;
            }
            let closure = self.trace(&root, start, &tree, parsed, PinPolicy::Strict)?;
            closures.push((root, closure));
        }
        let mut index = last.take().map(|last| last.index).unwrap_or_default();
        for (_, closure) in &closures {
            index.replace(closure.closure());
        }
        let plain = substitute_plain(&mut listing.plain, start, &tree, variables.as_ref(), &known)?;
        let folders: Vec<Arc<str>> = closures.iter().map(|(root, _)| root.folder.clone()).collect();
        let done = self.render_closures(start, closures, &tree, variables.as_ref(), &known)?;
        let mut roots: HashMap<Arc<str>, RenderedRoot> =
            folders.into_iter().zip(done.iter().map(|done| done.root.clone())).collect();
        roots.extend(kept.iter().cloned());
        *last = Some(LastRevision { tree: tree.unread(), index, roots, variables: digest });
        let kept = kept.into_iter().map(|(_, root)| root).collect();
        let mut rendered = joined_outcomes(listing.plain, kept, plain.into_iter().chain(done).collect());
        rendered.roots.iter_mut().for_each(|root| keep_what_was_rendered(root, &same));
        Ok(rendered)
    }

    /// Renders roots, on all cores, in the order in which they are given.
    fn render_closures<T: FileTree + Sync>(
        &self,
        start: &str,
        closures: Vec<(RenderRoot, RootClosure)>,
        files: &T,
        variables: Option<&RevisionVariables>,
        known: &HashMap<RootKey, RenderedRoot>,
    ) -> Result<Vec<JobOutcome>, SourceError> {
        if closures.is_empty() {
            return Ok(Vec::new());
        }
        let needed: BTreeSet<RenderProgram> =
            closures.iter().flat_map(|(_, closure)| closure.programs()).copied().collect();
        let mut programs = FoundPrograms::new();
        for program in needed {
            programs.insert(program, self.find_program(program)?);
        }
        let (mut done, mut jobs) = (BTreeMap::new(), Vec::new());
        for ((root, closure), number) in closures.into_iter().zip(0_usize..) {
            match judge(root, start, closure, &programs, variables, known) {
                Ok(job) => jobs.push((number, job)),
                Err(outcome) => drop(done.insert(number, *outcome)),
            }
        }
        let (count, start_time) = (jobs.len(), Instant::now());
        done.extend(self.run_all(jobs, files)?);
        if count > 0 {
            tracing::info!(roots = count, "rendered in {} ms", start_time.elapsed().as_millis());
        }
        Ok(done.into_values().collect())
    }

    async fn render_root<T: FileTree>(
        &self,
        job: &RootJob,
        files: &T,
    ) -> Result<Vec<RenderedObject>, RenderError> {
        let files = &LayeredTree { tree: files, layer: &job.closure.charts.layer };
        let missing = || RenderError::NoProgram;
        let (own, others) = job.programs.split_first().ok_or_else(missing)?;
        match &job.closure.form {
            ClosureForm::Kustomize(closure, inflations) => {
                let mut charts = Vec::new();
                for inflation in inflations {
                    let helm = others.first().ok_or_else(missing)?;
                    charts.push(inflate(&self.host, helm, inflation, files).await?);
                    let none = Vec::new();
                    encryption::check(&self.decrypter, &inflation.chart.closure, files, none)?;
                }
                let kustomization = TracedKustomization { closure, charts: &charts };
                let variables = job.variables.as_deref();
                let objects = render_kustomization(&self.host, own, kustomization, files, variables).await?;
                encryption::check(&self.decrypter, closure, files, objects)
            }
            ClosureForm::Helm(chart, options) => {
                let objects = render_release(&self.host, own, chart, options, files).await?;
                encryption::check(&self.decrypter, &chart.closure, files, objects)
            }
        }
    }

    fn find_program(
        &self,
        program: RenderProgram,
    ) -> Result<Result<InstalledProgram, ProgramError>, SourceError> {
        own_thread::wait_for(async || self.host.find(program).await).map_err(|error| no_worker(&error))
    }

    fn run_all<T: FileTree + Sync>(
        &self,
        jobs: Vec<(usize, RootJob)>,
        files: &T,
    ) -> Result<Vec<(usize, JobOutcome)>, SourceError> {
        let workers = RenderHost::parallel_renders().min(jobs.len());
        let queue = Mutex::new(jobs.into_iter());
        let work = || {
            let runtime = own_thread::worker_runtime().map_err(|error| no_worker(&error))?;
            let mut done = Vec::new();
            while let Some((number, job)) = take_next(&queue) {
                let run = runtime.block_on(self.render_root(&job, files));
                done.push((number, outcome_of(job, run)?));
            }
            Ok(done)
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let mut all = Vec::new();
            for worker in workers {
                let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                all.extend(done?);
            }
            Ok(all)
        })
    }
}

/// Returns what is known of a root without a run of its program, or what has to be run.
fn judge(
    root: RenderRoot,
    start: &str,
    closure: RootClosure,
    programs: &FoundPrograms,
    variables: Option<&RevisionVariables>,
    known: &HashMap<RootKey, RenderedRoot>,
) -> Result<RootJob, Box<JobOutcome>> {
    let path = root_path(&root, closure.closure(), start);
    let without = |outcome| {
        let root = RenderedRoot::new(path.clone(), RootKey::default(), outcome);
        Box::new(JobOutcome { root, contents: Vec::new() })
    };
    let seen = |found: Diagnostic| finding_from(start, found);
    if !closure.closure().is_renderable() {
        let found = closure.closure().diagnostics.iter().filter(|found| found.is_error()).cloned();
        return Err(without(RootOutcome::Refused(found.map(seen).collect())));
    }
    if !closure.interruptions().is_empty() {
        let found = closure.interruptions().iter().cloned();
        return Err(without(RootOutcome::Interrupted(found.map(seen).collect())));
    }
    let mut needed = Vec::new();
    for program in closure.programs() {
        match programs.get(program) {
            Some(Ok(program)) => needed.push(program.clone()),
            None => return Err(without(RootOutcome::Interrupted(vec![unknown_program(&path)]))),
            Some(Err(error)) => {
                let found = Diagnostic::file_error(path.clone(), NO_PROGRAM, error.to_string());
                return Err(without(RootOutcome::Interrupted(vec![found])));
            }
        }
    }
    let identity = |program: &InstalledProgram| ProgramIdentity {
        name: program.program.name().to_owned(),
        version: program.version.to_string(),
        digest: program.digest,
    };
    let identities: Vec<ProgramIdentity> = needed.iter().map(identity).collect();
    let table = match variables {
        Some(Err(found)) => return Err(without(RootOutcome::Refused(found.clone()))),
        Some(Ok(table)) => Some(table.clone()),
        None => None,
    };
    let Some(mut inputs) = closure.inputs(&identities) else {
        return Err(without(RootOutcome::Interrupted(vec![unknown_program(&path)])));
    };
    if let Some(table) = &table {
        inputs.variables = table.key_values(&substitution::digest);
        inputs.options.insert("substitute".to_owned(), "1".to_owned());
    }
    let key = inputs.key().bytes();
    match known.get(&key) {
        Some(same) if same.path == path && matches!(same.outcome, RootOutcome::Rendered(_)) => {
            Err(Box::new(JobOutcome { root: same.clone(), contents: Vec::new() }))
        }
        _ => Ok(RootJob { start: start.into(), path, closure, programs: needed, key, variables: table }),
    }
}

fn unknown_program(path: &Arc<str>) -> Diagnostic {
    Diagnostic::file_error(path.clone(), NO_PROGRAM, "its program was not looked for")
}

fn no_worker(error: &io::Error) -> SourceError {
    SourceError::Worker { place: "renders".to_owned(), detail: error.to_string() }
}

fn take_next<T>(queue: &Mutex<std::vec::IntoIter<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).next()
}

impl LastRevision {
    /// Returns what came of a root, where nothing that it reads has changed and another try would
    /// give the same.
    fn kept_root(
        &self,
        root: &RenderRoot,
        touched: Option<&BTreeSet<Arc<str>>>,
    ) -> Option<(Arc<str>, RenderedRoot)> {
        if touched?.contains(&root.folder) {
            return None;
        }
        let before = self.roots.get(&root.folder)?;
        let is_final = !matches!(before.outcome, RootOutcome::Interrupted(_));
        is_final.then(|| (root.folder.clone(), before.clone()))
    }
}

impl SnapshotRenderer for SourceRenderer {
    fn has_roots(&self, raw: &Snapshot) -> bool {
        self.substitution.is_some() || roots::has_roots(self.mode, raw)
    }

    fn plain_part(&self, raw: Snapshot) -> Snapshot {
        roots::plain_part(self.mode, raw)
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        self.render_revision(request)
    }
}

/// Returns a root as it is stored; none where its contents are not in the store, which may have
/// been made anew since they were written.
fn stored_root(root: RenderedRoot, known: &HashMap<RootKey, RenderedRoot>) -> Option<RenderedRoot> {
    if !matches!(root.outcome, RootOutcome::Rendered(_)) {
        return Some(root);
    }
    let stored = known.get(&root.key)?;
    // The list of a root names its path.
    Some(if stored.path == root.path { stored.clone() } else { root })
}

/// Puts what was rendered of a root in this very revision in the place of a try that was
/// interrupted: the revision says the same as then.
fn keep_what_was_rendered(root: &mut RenderedRoot, same: &[RenderedRoot]) {
    let RootOutcome::Interrupted(found) = &root.outcome else { return };
    let stored = same.iter().find(|stored| stored.path == root.path);
    let Some(stored) = stored.filter(|stored| matches!(stored.outcome, RootOutcome::Rendered(_))) else {
        return;
    };
    let why = found.first().map(|found| found.message.as_str()).unwrap_or_default();
    tracing::warn!(root = %root.path, "it is taken as it was rendered before, as it cannot be rendered now: {why}");
    *root = stored.clone();
}

/// Puts the variables into the plain files that name some.
fn substitute_plain<T: FileTree>(
    plain: &mut Snapshot,
    start: &str,
    files: &T,
    variables: Option<&RevisionVariables>,
    known: &HashMap<RootKey, RenderedRoot>,
) -> Result<Vec<JobOutcome>, SourceError> {
    let Some(variables) = variables else { return Ok(Vec::new()) };
    let (roots, contents) = substitution::substitute_plain_files(plain, start, files, variables, known)?;
    let mut outcomes: Vec<JobOutcome> =
        roots.into_iter().map(|root| JobOutcome { root, contents: Vec::new() }).collect();
    if let Some(first) = outcomes.first_mut() {
        first.contents = contents;
    }
    Ok(outcomes)
}

/// Returns the digest of all variables of a revision.
fn variables_digest(variables: &RevisionVariables) -> [u8; 32] {
    let text = match variables {
        Ok(table) => format!("{:?}", table.key_values(&substitution::digest)),
        Err(found) => format!("{found:?}"),
    };
    substitution::digest(text.as_bytes())
}

/// Returns the path of a root inside the source: of the file that makes its folder one.
fn root_path(root: &RenderRoot, closure: &Closure, start: &str) -> Arc<str> {
    let file = match root.form {
        RootForm::Kustomize => closure.folders.first().map(|folder| &*folder.file),
        RootForm::Helm => None,
    };
    let file = file.and_then(|file| file.rsplit('/').next()).unwrap_or(root.form.file_name());
    let folder = root.folder.strip_prefix(start).unwrap_or(&root.folder).trim_start_matches('/');
    paths::inside(folder, file).into()
}

fn outcome_of(
    job: RootJob,
    run: Result<Vec<RenderedObject>, RenderError>,
) -> Result<JobOutcome, SourceError> {
    let RootJob { start, path, key, .. } = job;
    let mut contents = Vec::new();
    let outcome = match run {
        Ok(objects) => {
            let files = objects.into_iter().map(|object| file_of(&start, &path, object, &mut contents));
            let mut files: Vec<SnapshotFile> = files.collect();
            files.sort_unstable();
            RootOutcome::Rendered(files.into())
        }
        Err(RenderError::Source(error)) => return Err(error),
        Err(RenderError::Variables(found) | RenderError::Refused(found)) => {
            RootOutcome::Refused(found.into_iter().map(|found| finding_from(&start, found)).collect())
        }
        Err(RenderError::Encrypted(found)) => {
            let found = finding_from(&start, *found);
            // An identity may come.
            if found.code == NO_KEY {
                RootOutcome::Interrupted(vec![found])
            } else {
                RootOutcome::Refused(vec![found])
            }
        }
        Err(error) => {
            let found = Diagnostic::file_error(path.clone(), RENDER_FAILED, error.to_string());
            if error.is_passing() {
                RootOutcome::Interrupted(vec![found])
            } else {
                let hint = "run the same program on this folder to see all it says";
                RootOutcome::Refused(vec![found.hint(hint)])
            }
        }
    };
    Ok(JobOutcome { root: RenderedRoot::new(path, key, outcome), contents })
}

fn file_of(
    start: &str,
    root: &str,
    object: RenderedObject,
    contents: &mut Vec<RenderedContent>,
) -> SnapshotFile {
    let bytes: Arc<[u8]> = object.body.to_string().into_bytes().into();
    let (blob, size) = (BlobId::of(&bytes), bytes.len() as u64);
    contents.push(RenderedContent { blob, bytes });
    SnapshotFile {
        path: RenderedRoot::object_path(root, &object.name),
        blob,
        size,
        origin: Some(render_origin(start, object.origin).into()),
    }
}

fn render_origin(start: &str, origin: ObjectOrigin) -> RenderOrigin {
    let ObjectOrigin { root, renderer, places } = origin;
    RenderOrigin {
        root: paths::seen_from(start, &root).into(),
        renderer,
        places: places.iter().map(|place| seen_from(start, place)).collect(),
    }
}

/// Returns a place of the revision as it is seen from the source's folder.
fn seen_from(start: &str, place: &ManifestOrigin) -> ManifestOrigin {
    ManifestOrigin { file: paths::seen_from(start, &place.file).into(), ..place.clone() }
}

/// Returns a finding as it is seen from the source's folder.
fn finding_from(start: &str, found: Diagnostic) -> Diagnostic {
    Diagnostic { origin: seen_from(start, &found.origin), ..found }
}

fn joined_outcomes(plain: Snapshot, kept: Vec<RenderedRoot>, done: Vec<JobOutcome>) -> RenderedSnapshot {
    let (mut roots, mut contents) = (kept, Vec::new());
    for one in done {
        roots.push(one.root);
        contents.extend(one.contents);
    }
    roots.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let is_interrupted = roots.iter().any(|root| matches!(root.outcome, RootOutcome::Interrupted(_)));
    RenderedSnapshot { plain, roots, contents, is_interrupted }
}

#[cfg(test)]
mod tests;
