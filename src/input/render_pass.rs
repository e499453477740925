//! One pass over the roots of a revision: the order of their runs, and its end where programs hang.
//!
//! **Invariant:** what hangs delays its own source by little more than one program's limit. A root
//! that rendered before runs first, one that ran out of time runs last. Once a program has run out
//! of time, the pass ends soon, and the next one goes on with the rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::root_job::{JobOutcome, RENDER_STOPPED, RootJob};
use crate::object::Diagnostic;
use crate::source::{RemainingRenderWork, RenderExtent, RenderedRoot, RootKey, RootOutcome, SharedTexts};

/// The code of a root that a pass had no time for.
pub(super) const RENDER_POSTPONED: &str = "render-postponed";

/// The time after which a pass in which a program ran out of time starts no further one. The limit
/// of one program is twice as long: such a pass ends with the programs that run at that moment.
const MAX_PASS_DURATION: Duration = Duration::from_secs(30);

/// The result of a root in the last pass; none where its programs have not run.
#[derive(Clone, Debug)]
pub(super) enum RootHistory {
    /// It rendered.
    Rendered,
    /// It ran out of time, in a number of passes by now.
    Stopped {
        /// Its last outcome.
        last: Box<RenderedRoot>,
        /// The number of passes.
        stops: u32,
    },
}

/// A pass that runs.
#[derive(Debug)]
pub(super) struct RenderPass<'a> {
    extent: RenderExtent,
    start: Instant,
    /// The roots whose outcome is in the store, by their keys.
    pub(super) known: &'a HashMap<RootKey, RenderedRoot>,
    histories: HashMap<Arc<str>, RootHistory>,
    /// The folders of the roots that ran out of time.
    stopped: Mutex<Vec<Arc<str>>>,
    /// The texts of origins, which roots share.
    pub(super) texts: Mutex<SharedTexts>,
}

impl<'a> RenderPass<'a> {
    /// Returns a pass that starts now.
    pub(super) fn start(
        extent: RenderExtent,
        known: &'a HashMap<RootKey, RenderedRoot>,
        histories: HashMap<Arc<str>, RootHistory>,
    ) -> Self {
        let (stopped, texts) = (Mutex::default(), Mutex::default());
        Self { extent, start: Instant::now(), known, histories, stopped, texts }
    }

    /// Returns one in which these copies of texts are shared.
    pub(super) fn with_texts(self, texts: &[Arc<str>]) -> Self {
        let mut shared = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        for text in texts {
            shared.add(text);
        }
        drop(shared);
        self
    }

    /// Returns the shared copy of a text.
    pub(super) fn shared_text(&self, text: &str) -> Arc<str> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).share(text)
    }

    /// Puts the roots to be rendered into the order of their runs.
    pub(super) fn order_jobs(&self, jobs: &mut [(usize, RootJob)]) {
        jobs.sort_by_key(|(_, job)| run_rank(self.histories.get(&job.folder)));
    }

    /// Returns whether it starts another program.
    pub(super) fn has_time(&self) -> bool {
        has_time(self.extent, !self.lock_stopped_roots().is_empty(), self.start.elapsed())
    }

    /// Notes the outcome of a run.
    pub(super) fn note_outcome(&self, folder: &Arc<str>, outcome: &RootOutcome) {
        if has_code(outcome, RENDER_STOPPED) {
            self.lock_stopped_roots().push(folder.clone());
        }
    }

    /// Returns the outcome of a root that it has no time for. Where it ran out of time itself, that
    /// is its last outcome, else an interruption.
    pub(super) fn postpone(&self, job: &RootJob) -> JobOutcome {
        let root = if let Some(RootHistory::Stopped { last, .. }) = self.histories.get(&job.folder) {
            (**last).clone()
        } else {
            let message = "it is rendered in the next pass, as another root ran into its time limit";
            let found = Diagnostic::file_error(job.path.clone(), RENDER_POSTPONED, message);
            RenderedRoot::new(job.path.clone(), job.key, RootOutcome::Interrupted(vec![found]))
        };
        JobOutcome { root, contents: Vec::new() }
    }

    /// Counts this pass for each root that ran out of time in it.
    pub(super) fn count_stops(self, stops: &mut HashMap<Arc<str>, u32>) {
        for folder in self.stopped.into_inner().unwrap_or_else(PoisonError::into_inner) {
            *stops.entry(folder).or_default() += 1;
        }
    }

    fn lock_stopped_roots(&self) -> std::sync::MutexGuard<'_, Vec<Arc<str>>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the place of a root in the order of a pass. First come those that rendered, and then the
/// new ones. Last come those that ran out of time, the fewest times first.
fn run_rank(history: Option<&RootHistory>) -> (u8, u32) {
    match history {
        Some(RootHistory::Rendered) => (0, 0),
        None => (1, 0),
        Some(RootHistory::Stopped { stops, .. }) => (2, *stops),
    }
}

fn has_time(extent: RenderExtent, has_stopped: bool, elapsed: Duration) -> bool {
    extent == RenderExtent::Whole || !has_stopped || elapsed < MAX_PASS_DURATION
}

/// Returns whether a root did not render for a reason of this code.
pub(super) fn has_code(outcome: &RootOutcome, code: &str) -> bool {
    outcome.failure().is_some_and(|found| found.iter().any(|found| found.code == code))
}

/// Returns what is left to be done for a root.
pub(super) fn rest_of(outcome: &RootOutcome) -> RemainingRenderWork {
    match outcome {
        RootOutcome::Rendered(_) | RootOutcome::Refused(_) => RemainingRenderWork::None,
        RootOutcome::Interrupted(_) if has_code(outcome, RENDER_POSTPONED) => RemainingRenderWork::Postponed,
        RootOutcome::Interrupted(_) => RemainingRenderWork::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_ends_early_only_where_it_may_and_where_a_program_ran_out_of_time() {
        let check = |extent: RenderExtent, has_stopped: bool, seconds: u64, expected: bool| {
            let found = has_time(extent, has_stopped, Duration::from_secs(seconds));
            assert_eq!(found, expected, "{extent:?} {has_stopped} {seconds}");
        };
        check(RenderExtent::Bounded, true, 30, false);
        check(RenderExtent::Bounded, true, 29, true);
        check(RenderExtent::Bounded, false, 3_600, true);
        check(RenderExtent::Whole, true, 3_600, true);
    }

    #[test]
    fn a_pass_counts_what_ran_out_of_time_whether_it_is_tried_again_or_not() {
        let check = |outcome: RootOutcome, expected: Option<u32>| {
            let (known, folder) = (HashMap::new(), Arc::from("app"));
            let pass = RenderPass::start(RenderExtent::Bounded, &known, HashMap::new());
            pass.note_outcome(&folder, &outcome);
            let mut stops = HashMap::new();
            pass.count_stops(&mut stops);
            assert_eq!(stops.get(&folder).copied(), expected, "{outcome:?}");
        };
        let found = |code| vec![Diagnostic::file_error("app", code, "")];
        check(RootOutcome::Interrupted(found(RENDER_STOPPED)), Some(1));
        check(RootOutcome::Refused(found(RENDER_STOPPED)), Some(1));
        check(RootOutcome::Refused(found("render-failed")), None);
        check(RootOutcome::Rendered([].into()), None);
    }

    #[test]
    fn what_rendered_before_runs_first_and_what_ran_out_of_time_last() {
        let stopped = |stops| {
            let root = RenderedRoot::new("app".into(), RootKey::default(), RootOutcome::Refused(Vec::new()));
            Some(RootHistory::Stopped { last: Box::new(root), stops })
        };
        let ordered = [Some(RootHistory::Rendered), None, stopped(1), stopped(2)];
        assert!(ordered.map(|history| run_rank(history.as_ref())).is_sorted_by(|a, b| a < b));
    }
}
