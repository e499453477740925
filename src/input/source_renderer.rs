//! Renders the roots of one source, several at once: those whose closure changed. Each other one is
//! kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use super::buffered_tree::BufferedTree;
use super::chart_layer::LayeredTree;
use super::chart_supply::{ChartSupply, PinPolicy};
use super::charts::ChartFetcher;
use super::decryption::Decrypter;
use super::encryption::{self, RootFiles};
use super::holder_files::KnownHolders;
use super::inflation::inflate;
use super::kustomize::{ObjectNames, ParsedFiles};
use super::last_revision::{
    KeptRoot, KeyPrefix, LastRevision, RememberedRoot, RenderAttempt, RootChanges, is_failure,
};
use super::origin::CHART_SEPARATOR;
use super::own_thread;
use super::paths;
use super::plain_files::{LiteralFiles, substitute_plain_files};
use super::program_slots::{ProgramSlots, SlotClient};
use super::release_render::{
    HelmReleaseSettings, HelmReleases, TracedChart, VersionOrigin, render_helm_release,
};
use super::render_host::RenderHost;
use super::render_pass::{RenderPass, rest_of};
use super::root_closure::{ClosureForm, ClosureSettings, RootClosure, TracedRoots};
use super::root_job::{FoundPrograms, JobOutcome, RootJob, outcome_of, plan_root};
use super::root_names::possible_names;
use super::root_render::{
    RenderError, RenderOutput, RenderValues, TracedKustomization, render_kustomization,
};
use super::roots::{self, RenderRoot, RootListing, find_roots};
use super::sandbox::{InstalledProgram, ProgramError, RenderProgram};
use super::server_charts::ServerCharts;
use super::substitution::{
    self, RevisionVariables, VariableFacts, VariableMode, VariableReading, VariableSettings,
};
use super::thread_runtime::ThreadRuntime;
use super::tree::FileTree;
use super::value_files::take_value_files;
use crate::config::{RenderMode, SubstitutionConfig};
use crate::object::{Diagnostic, ObjectId};
use crate::source::{
    ClusterFacts, FactUse, RemainingRenderWork, RenderExtent, RenderRequest, RenderedRoot, RenderedSnapshot,
    RootKey, RootOutcome, Snapshot, SnapshotFile, SnapshotRenderer, SourceError,
};

/// The code of a root whose charts depend on a version that the cluster does not report.
const NO_CLUSTER_VERSION: &str = "no-cluster-version";

/// The renderer of the roots of one source's revisions.
#[derive(Debug)]
pub(crate) struct SourceRenderer {
    host: Arc<RenderHost>,
    mode: RenderMode,
    decrypter: Arc<Decrypter>,
    substitution: Option<SourceVariables>,
    releases: HelmReleaseSettings,
    supply: Arc<dyn ChartSupply>,
    slots: SlotClient,
    /// The names of objects in files that roots share.
    names: ObjectNames,
    state: Mutex<RendererState>,
    /// Set once charts were given an assumed version.
    assumption: OnceLock<()>,
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
    /// The passes in which a root ran out of time, by its folder.
    stops: HashMap<Arc<str>, u32>,
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
        let releases = HelmReleaseSettings::default();
        let (state, assumption) = (Mutex::default(), OnceLock::new());
        let (slots, names) = (SlotClient::new(), ObjectNames::default());
        Self { host, mode, decrypter, substitution: None, releases, supply, slots, names, state, assumption }
    }

    /// Returns one that takes charts of servers from here.
    #[cfg(test)]
    pub(super) fn with_supply(self, supply: Arc<dyn ChartSupply>) -> Self {
        Self { supply, ..self }
    }

    /// Returns one that renders charts with these settings.
    pub(crate) fn with_releases(self, releases: HelmReleaseSettings) -> Self {
        Self { releases, ..self }
    }

    /// Returns one that also puts variables into what it renders, and into plain files.
    pub(crate) fn with_variables(self, substitution: Option<SourceVariables>) -> Self {
        Self { substitution, ..self }
    }

    /// Returns whether charts were given a version that nobody named: no cluster was asked.
    pub(crate) fn has_assumed_version(&self) -> bool {
        self.assumption.get().is_some()
    }

    /// Returns what is rendered of a source.
    pub(super) const fn mode(&self) -> RenderMode {
        self.mode
    }

    /// Finds the files that a root reads, and the charts of servers that it uses.
    ///
    /// # Errors
    /// Fails where the files cannot be read.
    pub(super) fn find_closure<T: FileTree>(
        &self,
        root: &RenderRoot,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        policy: PinPolicy,
    ) -> Result<RootClosure, SourceError> {
        let settings = ClosureSettings { releases: &self.releases, supply: &*self.supply, policy };
        RootClosure::find_closure(root, start, files, parsed, settings)
    }

    /// Finds the closure of a root as these releases render it. One with charts is interrupted
    /// while the version of Kubernetes is unknown.
    fn find_release_closure<T: FileTree>(
        &self,
        root: &RenderRoot,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        releases: &HelmReleases,
    ) -> Result<RootClosure, SourceError> {
        let settings = ClosureSettings {
            releases: &releases.settings,
            supply: &*self.supply,
            policy: PinPolicy::Strict,
        };
        let mut closure = RootClosure::find_closure(root, start, files, parsed, settings)?;
        if let VersionOrigin::Unknown(why) = &releases.versions
            && closure.has_charts()
        {
            closure.interrupt(unknown_version(root, why));
        }
        Ok(closure)
    }

    fn read_variables<T: FileTree>(
        &self,
        listing: &RootListing,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        facts: VariableFacts<'_>,
    ) -> Result<VariableReading, SourceError> {
        let Some(SourceVariables { config, namespace }) = &self.substitution else {
            return Ok(VariableReading::default());
        };
        let settings = VariableSettings { config, namespace, decrypter: &self.decrypter };
        substitution::read_variables(settings, listing, start, files, parsed, facts)
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
        facts: &ClusterFacts,
    ) -> Result<RenderedSnapshot, SourceError> {
        let releases = self.releases.resolved_by(facts);
        let mut parsed = ParsedFiles::default();
        let mut listing = find_roots(self.mode, start, raw, files, &mut parsed, |_| false)?;
        let values = self.releases.values.as_slice();
        let mut plain = take_value_files(&mut listing.plain, &listing.roots, values, start, files)?;
        let known = VariableFacts { cluster: facts, holders: KnownHolders::default() };
        let VariableReading { variables, objects, .. } =
            self.read_variables(&listing, start, files, &mut parsed, known)?;
        let mut closures = Vec::new();
        for root in listing.roots {
            let closure = self.find_release_closure(&root, start, files, &mut parsed, &releases)?;
            closures.push((root, closure));
        }
        let used = facts_used(&releases, closures.iter().any(|(_, closure)| closure.has_charts()), objects)?;
        let (known, mut literal) = (HashMap::new(), LiteralFiles::new());
        let variables = variables.as_ref();
        plain.extend(substitute_plain(&mut listing.plain, start, files, variables, &known, &mut literal)?);
        let pass = RenderPass::start(RenderExtent::Whole, &known, HashMap::new());
        let done = self.render_closures(start, closures, files, variables, &pass)?;
        let mut rendered =
            joined_outcomes(listing.plain, Vec::new(), plain.into_iter().chain(done).collect(), used);
        narrow_use(&mut rendered, &releases.versions);
        if releases.versions == VersionOrigin::Assumed && rendered.used.versions {
            let _ = self.assumption.set(());
        }
        Ok(rendered)
    }

    fn render_revision(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let RenderRequest { raw, start, tree, same, before, facts, extent } = request;
        let releases = self.releases.resolved_by(&facts);
        let (versions, values) = (releases.versions.clone(), self.releases.values.as_slice());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let RendererState { parsed, last, stops } = &mut *state;
        // Where that cannot be told, all is looked at: the last revision may be in no store.
        let changed = last.as_ref().and_then(|last| last.tree.changed_paths(&tree).ok());
        parsed.forget_changes(changed.as_deref());
        let impact = changed
            .as_ref()
            .zip(last.as_ref())
            .map(|(changed, last)| last.index.impact(changed.iter().map(String::as_str)));
        let is_known_root = |folder: &str| {
            let last = last.as_ref().zip(impact.as_ref());
            last.is_some_and(|(last, impact)| last.is_still_root(folder, impact))
        };
        let markers: Vec<Arc<str>> = raw.refused.iter().map(|found| found.origin.file.clone()).collect();
        let mut listing = find_roots(self.mode, start, raw, &tree, parsed, is_known_root)?;
        let mut plain = take_value_files(&mut listing.plain, &listing.roots, values, start, &tree)?;
        let touched = impact.map(|impact| impact.roots);
        let holders = KnownHolders::after(last.as_ref(), touched.as_ref());
        let known = VariableFacts { cluster: &facts, holders };
        let read = self.read_variables(&listing, start, &tree, parsed, known)?;
        let VariableReading { variables, objects, mut holders } = read;
        let digest = variables.as_ref().map(|variables| variables.digest());
        let is_identity_missing = variables.as_ref().is_some_and(|variables| variables.is_interrupted());
        let attempt = RenderAttempt::after(last.as_ref(), changed.as_deref());
        let revision_changes = RootChanges::of(changed.as_deref(), touched.as_ref());
        let known: HashMap<RootKey, RenderedRoot> =
            same.iter().chain(before.iter()).map(|root| (root.key, root.clone())).collect();
        let prefixes = KeyPrefix::index(known.values());
        let (mut kept, mut traced, mut charts) = (Vec::new(), TracedRoots::default(), BTreeSet::new());
        for root in listing.roots {
            let has_charts = last.as_ref().is_some_and(|last| last.charts.contains(&root.folder));
            if let Some(before) = last
                .as_ref()
                .filter(|last| last.variables == digest && (!has_charts || last.releases == releases))
                .and_then(|last| last.kept_root(&root, revision_changes, &prefixes, attempt))
            {
                charts.extend(has_charts.then(|| root.folder.clone()));
                kept.push(before);
                continue;
            }
            let closure = self.find_release_closure(&root, start, &tree, parsed, &releases)?;
            charts.extend(closure.has_charts().then(|| root.folder.clone()));
            traced.add(root, closure);
        }
        let used = facts_used(&releases, !charts.is_empty(), objects)?;
        let histories = last.as_ref().map(|last| last.histories(attempt, stops)).unwrap_or_default();
        let pass = RenderPass::start(extent, &known, histories).with_texts(&markers);
        let mut index = last.take().map(|last| last.index).unwrap_or_default();
        let TracedRoots { closures, folders, watched } = traced;
        index.replace_paths(watched);
        let (variables, literal) = (variables.as_ref(), &mut holders.literal);
        plain.extend(substitute_plain(&mut listing.plain, start, &tree, variables, &known, literal)?);
        let done = self.render_closures(start, closures, &tree, variables, &pass)?;
        pass.count_stops(stops);
        let roots = remembered_roots(folders, &done, &kept);
        index.retain(|root| roots.contains_key(root));
        stops.retain(|folder, _| roots.get(folder).is_some_and(RememberedRoot::has_stopped));
        let tree = tree.fresh_copy();
        *last = Some(LastRevision { tree, index, roots, variables: digest, holders, releases, charts });
        let kept = kept.into_iter().map(|kept| kept.root).collect();
        plain.extend(done);
        let mut rendered = joined_outcomes(listing.plain, kept, plain, used);
        rendered.roots.iter_mut().for_each(|root| keep_what_was_rendered(root, &same));
        if is_identity_missing {
            rendered.rest = rendered.rest.max(RemainingRenderWork::Interrupted);
        }
        narrow_use(&mut rendered, &versions);
        Ok(rendered)
    }

    /// Renders roots, several at once, in the order in which they are given.
    fn render_closures<T: FileTree + Sync>(
        &self,
        start: &str,
        closures: Vec<(RenderRoot, RootClosure)>,
        files: &T,
        variables: Option<&Arc<RevisionVariables>>,
        pass: &RenderPass<'_>,
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
        let variable_mode = VariableMode::of(variables);
        for ((root, closure), number) in closures.into_iter().zip(0_usize..) {
            let closure = Arc::new(closure);
            // The key of any other root does not depend on them.
            let variables = match variables {
                Some(variables) if closure.can_name_variables(files)? => Some(variables),
                _ => None,
            };
            match plan_root(root, start, closure.clone(), &programs, variables, pass.known) {
                Ok(job) => jobs.push((number, RootJob { path: pass.shared_text(&job.path), ..job })),
                Err(mut outcome) => {
                    add_possible_names(&mut outcome, &closure, variable_mode, files)?;
                    done.insert(number, *outcome);
                }
            }
        }
        let (count, start_time) = (jobs.len(), Instant::now());
        pass.order_jobs(&mut jobs);
        done.extend(self.run_all(jobs, files, pass, variable_mode)?);
        if count > 0 {
            tracing::info!(roots = count, "rendered in {} ms", start_time.elapsed().as_millis());
        }
        Ok(done.into_values().collect())
    }

    async fn render_root<T: FileTree>(&self, job: &RootJob, files: &T) -> Result<RenderOutput, RenderError> {
        let files = LayeredTree { tree: files, layer: &job.closure.charts.layer };
        let files = &BufferedTree::of(&files, job.closure.closures())?;
        let missing = || RenderError::NoProgram;
        let (own, others) = job.programs.split_first().ok_or_else(missing)?;
        match &job.closure.form {
            ClosureForm::Kustomize(closure, inflations) => {
                let mut opened = encryption::open_inputs(&self.decrypter, RootFiles::of(closure), files)?;
                if let Some(variables) = &job.variables {
                    opened.variables = variables.keys.clone();
                }
                let mut charts = Vec::new();
                for inflation in inflations {
                    // Values were looked at as they were merged; this is for all other files.
                    encryption::require_clear(&inflation.chart.closure, files)?;
                    let helm = others.first().ok_or_else(missing)?;
                    let chart = inflate(&self.host, helm, inflation, files).await?;
                    // It was made of files in the clear.
                    opened.add_clear(&chart.text);
                    charts.push(chart);
                }
                let kustomization = TracedKustomization { closure, charts: &charts, names: &self.names };
                let variables = job.variables.as_ref().map(|variables| &variables.table);
                let inputs = RenderValues { variables, opened: &opened };
                let rendered = render_kustomization(&self.host, own, kustomization, files, inputs).await;
                let RenderOutput { objects, warnings } =
                    rendered.map_err(|error| opened.without_words(error))?;
                let objects = encryption::close_objects(&opened, closure, objects)?;
                Ok(RenderOutput { objects, warnings })
            }
            ClosureForm::Helm(chart, options) => {
                let texts = [options.release.as_str(), options.namespace.as_str()];
                let root = RootFiles { closure: &chart.closure, values: &chart.values, options: &texts };
                let opened = encryption::open_inputs(&self.decrypter, root, files)?;
                let traced = TracedChart { chart, options };
                let rendered = render_helm_release(&self.host, own, traced, files, &opened).await;
                let RenderOutput { objects, warnings } =
                    rendered.map_err(|error| opened.without_words(error))?;
                let objects = encryption::close_objects(&opened, &chart.closure, objects)?;
                Ok(RenderOutput { objects, warnings })
            }
        }
    }

    fn find_program(
        &self,
        program: RenderProgram,
    ) -> Result<Result<InstalledProgram, ProgramError>, SourceError> {
        if let Some(known) = self.host.find_known(program) {
            return Ok(Ok(known));
        }
        own_thread::wait_for(async || self.host.find(program).await).map_err(|error| worker_error(&error))
    }

    /// Runs jobs, and frees what each has read at its end: a first commit brings every root at once.
    fn run_all<T: FileTree + Sync>(
        &self,
        jobs: Vec<(usize, RootJob)>,
        files: &T,
        pass: &RenderPass<'_>,
        variables: VariableMode,
    ) -> Result<Vec<(usize, JobOutcome)>, SourceError> {
        let workers = RenderHost::parallel_renders().min(jobs.len());
        let queue = Mutex::new(jobs.into_iter());
        let work = || {
            let runtime = ThreadRuntime::start().map_err(|error| worker_error(&error))?;
            let mut done = Vec::new();
            while let Some((number, job)) = take_next(&queue) {
                let closure = job.closure.clone();
                let mut outcome = if pass.has_time() {
                    let slot = ProgramSlots::of_process().acquire(self.slots);
                    let run = runtime.block_on(self.render_root(&job, files));
                    drop(slot);
                    let folder = job.folder.clone();
                    let outcome = outcome_of(job, run, &pass.texts)?;
                    pass.note_outcome(&folder, &outcome.root.outcome);
                    outcome
                } else {
                    pass.postpone(&job)
                };
                add_possible_names(&mut outcome, &closure, variables, files)?;
                done.push((number, outcome));
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

/// Adds the names that the objects of a root may have, where it did not render.
fn add_possible_names<T: FileTree>(
    done: &mut JobOutcome,
    closure: &RootClosure,
    variables: VariableMode,
    files: &T,
) -> Result<(), SourceError> {
    if is_failure(&done.root) {
        done.root.names = possible_names(closure, variables, files)?;
    }
    Ok(())
}

fn worker_error(error: &io::Error) -> SourceError {
    SourceError::Worker { shown_location: "renders".to_owned(), detail: error.to_string() }
}

fn take_next<T>(queue: &Mutex<std::vec::IntoIter<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).next()
}

impl SnapshotRenderer for SourceRenderer {
    fn has_roots(&self, raw: &Snapshot) -> bool {
        self.substitution.is_some() || roots::has_roots(self.mode, raw)
    }

    fn plain_part(&self, raw: Snapshot) -> Snapshot {
        roots::plain_part(self.mode, raw)
    }

    fn render(&self, request: RenderRequest<'_>) -> Result<RenderedSnapshot, SourceError> {
        let rendered = self.render_revision(request);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).parsed.shrink();
        self.names.shrink();
        rendered
    }
}

/// Puts what was rendered of a root in this very revision in the place of a try that was
/// interrupted. The revision says the same as then.
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
    variables: Option<&Arc<RevisionVariables>>,
    known: &HashMap<RootKey, RenderedRoot>,
    literal: &mut LiteralFiles,
) -> Result<Vec<JobOutcome>, SourceError> {
    let Some(variables) = variables else { return Ok(Vec::new()) };
    let (roots, contents) = substitute_plain_files(plain, start, files, variables, known, literal)?;
    let mut outcomes: Vec<JobOutcome> =
        roots.into_iter().map(|root| JobOutcome { root, contents: Vec::new() }).collect();
    if let Some(first) = outcomes.first_mut() {
        first.contents = contents;
    }
    Ok(outcomes)
}

/// Returns the facts of the cluster that the roots depend on.
///
/// # Errors
/// Fails where they are not known yet.
fn facts_used(
    releases: &HelmReleases,
    has_charts: bool,
    objects: BTreeSet<ObjectId>,
) -> Result<FactUse, SourceError> {
    let used = FactUse { versions: has_charts && releases.versions != VersionOrigin::Configured, objects };
    match releases.versions {
        VersionOrigin::Wanted if used.versions => Err(SourceError::FactsWanted(used.into())),
        _ => Ok(used),
    }
}

/// Notes that assumed versions are used where a chart was rendered by them: nobody asks for others.
fn narrow_use(rendered: &mut RenderedSnapshot, versions: &VersionOrigin) {
    let is_of_chart = |file: &SnapshotFile| {
        file.origin.as_ref().is_some_and(|origin| origin.renderer.contains(CHART_SEPARATOR))
    };
    if *versions == VersionOrigin::Assumed {
        rendered.used.versions &= rendered.roots.iter().any(|root| match &root.outcome {
            RootOutcome::Rendered(files) => files.iter().any(is_of_chart),
            RootOutcome::Refused(_) | RootOutcome::Interrupted(_) => false,
        });
    }
}

fn unknown_version(root: &RenderRoot, why: &str) -> Diagnostic {
    let path = paths::append(&root.folder, root.form.file_name());
    let message = format!("the version of the cluster is not known, and charts need it: {why}");
    let hint = "it is asked again; `spec.helm.kubeVersion` names one";
    Diagnostic::file_error(path, NO_CLUSTER_VERSION, message).hint(hint)
}

/// Returns what is remembered of the roots of a pass, of kept ones too. Each rendered one comes
/// with its folder, and with the folders that its possible names are of.
fn remembered_roots(
    folders: Vec<(Arc<str>, Vec<String>)>,
    done: &[JobOutcome],
    kept: &[KeptRoot],
) -> BTreeMap<Arc<str>, RememberedRoot> {
    let rendered = folders
        .into_iter()
        .zip(done)
        .map(|((folder, naming), done)| (folder, RememberedRoot::new(&done.root, naming)));
    let kept = kept.iter().map(|kept| {
        let remembered = RememberedRoot::new(&kept.root, kept.naming_folders.clone());
        (kept.folder.clone(), remembered)
    });
    rendered.chain(kept).collect()
}

fn joined_outcomes(
    plain: Snapshot,
    kept: Vec<RenderedRoot>,
    done: Vec<JobOutcome>,
    used: FactUse,
) -> RenderedSnapshot {
    let (mut roots, mut contents) = (kept, Vec::new());
    for one in done {
        roots.push(one.root);
        contents.extend(one.contents);
    }
    roots.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let rest = roots.iter().map(|root| rest_of(&root.outcome)).max().unwrap_or_default();
    RenderedSnapshot { plain, roots, contents, rest, used }
}

#[cfg(test)]
mod tests;
