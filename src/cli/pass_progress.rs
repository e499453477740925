//! Progress of a pass or a plan for those who have no terminal: a pipeline's log is silent for
//! minutes otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, Interval, interval_at};

use super::Terminal;
use super::object_argument::ObjectArgument;
use crate::daemon::PreviewProgress;
use crate::object::{ObjectId, count_text};
use crate::report::Outcome;

/// The pause between two lines. Most runners of pipelines end a job that is silent for minutes.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// The pauses between two lines, from the begin of a pass on. On a terminal there are none, as a
/// person sees there what goes on.
pub(super) struct ProgressPauses(Option<Interval>);

impl ProgressPauses {
    /// Begins the first one.
    pub(super) fn start() -> Self {
        let pauses = || interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        Self((!Terminal::is_error_terminal()).then(pauses))
    }

    /// Waits for the end of one.
    pub(super) async fn end(&mut self) {
        match &mut self.0 {
            Some(pauses) => drop(pauses.tick().await),
            None => std::future::pending().await,
        }
    }
}

/// Awaits a plan, and reports its progress meanwhile.
pub(super) async fn await_plan<T>(
    plan: impl Future<Output = T>,
    progress: &PreviewProgress,
    terminal: &Terminal,
) -> T {
    let mut plan = pin!(plan);
    let mut pauses = ProgressPauses::start();
    loop {
        tokio::select! {
            biased;
            planned = &mut plan => return planned,
            () = pauses.end() => terminal.report(&plan_line(progress.planned(), progress.all())),
        }
    }
}

/// Returns one line about a plan of which so many objects are done, of all that are known so far.
fn plan_line(planned: usize, all: usize) -> String {
    if planned < all {
        format!("progress: {planned} of {} compared\n", count_text(all, "object"))
    } else {
        format!("progress: {} compared; reading the source and the cluster\n", count_text(planned, "object"))
    }
}

/// The objects of a pass that are not done, each with what it waits for.
#[derive(Default)]
pub(super) struct PassProgress {
    pending: BTreeMap<ObjectId, String>,
    /// Each counts once, however often it is reported.
    done: BTreeSet<ObjectId>,
}

impl PassProgress {
    /// Notes what was reported about one object.
    pub(super) fn note(&mut self, id: &ObjectId, outcome: &Outcome) {
        match outcome {
            // An object that stays as its annotation asks is done.
            Outcome::Waiting(reason) if reason.is_requested() => self.finish(id),
            Outcome::Waiting(_) | Outcome::Unhealthy(_) | Outcome::Recreating => {
                self.done.remove(id);
                self.pending.insert(id.clone(), outcome.to_string());
            }
            _ => self.finish(id),
        }
    }

    fn finish(&mut self, id: &ObjectId) {
        self.pending.remove(id);
        self.done.insert(id.clone());
    }

    /// Returns one line that names the first object that is not done.
    pub(super) fn line(&self) -> String {
        let Some((id, why)) = self.pending.first_key_value() else {
            return format!(
                "progress: {} done; waiting for the API server\n",
                count_text(self.done.len(), "object")
            );
        };
        let more = match self.pending.len() - 1 {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!(
            "progress: {} done; {}: {why}{more}\n",
            count_text(self.done.len(), "object"),
            ObjectArgument::of(id)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Reason;
    use crate::object::GroupKind;

    #[test]
    fn a_line_names_what_is_done_and_the_first_that_is_not() {
        let id = |name: &str| ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name);
        let mut progress = PassProgress::default();
        assert_eq!(progress.line(), "progress: 0 objects done; waiting for the API server\n");
        progress.note(&id("b"), &Outcome::Waiting(Reason::Claiming));
        progress.note(&id("a"), &Outcome::Waiting(Reason::Unusable("it waits".into())));
        progress.note(&id("c"), &Outcome::Created);
        let waits = Outcome::Waiting(Reason::Unusable("it waits".into())).to_string();
        let expected = format!("progress: 1 object done; shop/configmap/a: {waits}; and 1 more\n");
        assert_eq!(progress.line(), expected);
        progress.note(&id("a"), &Outcome::Configured);
        assert!(progress.line().starts_with("progress: 2 objects done; shop/configmap/b: "));
        // An object is reported more than once.
        progress.note(&id("a"), &Outcome::Unchanged);
        assert!(progress.line().starts_with("progress: 2 objects done; shop/configmap/b: "));
        progress.note(&id("a"), &Outcome::Recreating);
        assert!(progress.line().starts_with("progress: 1 object done; shop/configmap/a: "));
    }

    #[test]
    fn a_line_about_a_plan_counts_what_is_compared() {
        let reading = "compared; reading the source and the cluster";
        assert_eq!(plan_line(0, 0), format!("progress: 0 objects {reading}\n"));
        assert_eq!(plan_line(0, 1), "progress: 0 of 1 object compared\n");
        assert_eq!(plan_line(299, 300), "progress: 299 of 300 objects compared\n");
        assert_eq!(plan_line(300, 300), format!("progress: 300 objects {reading}\n"));
    }
}
