//! One run of a row, from its beginning to its judgement.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fault::{Fault, Obstacle};
use crate::invariant::Violation;
use crate::judge::judge;
use crate::stage::Stage;
use crate::table::progress;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub(crate) enum Run {
    /// It was made and judged.
    Judged { convergence: Option<Duration>, violations: Vec<Violation>, seed: u64 },
    /// It says nothing: the fault met nothing, or the stage failed.
    Void(String),
    /// The machine does not let it be made.
    Skipped(String),
}

impl Run {
    /// Makes a run, and reports it.
    pub(crate) fn make(number: usize, fault: &Fault, seed: u64) -> Self {
        let begun = Instant::now();
        let made = catch_unwind(AssertUnwindSafe(|| Self::of(number, fault, seed)));
        let run = made.unwrap_or_else(|panic| Self::Void(words(panic.as_ref())));
        let words = match &run {
            Self::Judged { violations, .. } if violations.is_empty() => "no violation".to_owned(),
            Self::Judged { violations, .. } => {
                let all = violations.iter().map(|one| format!("{:?}: {}", one.invariant, one.observation));
                format!("VIOLATED\n    {}", all.collect::<Vec<_>>().join("\n    "))
            }
            Self::Void(why) => format!("not tested: {why}"),
            Self::Skipped(why) => format!("SKIPPED: {why}"),
        };
        progress(&format!("{}, seed {seed}, {:.1} s: {words}", fault.name, begun.elapsed().as_secs_f64()));
        run
    }

    fn of(number: usize, fault: &Fault, seed: u64) -> Self {
        let mut stage = Stage::new(&format!("f{number:02}-{seed}"), fault.shape, seed);
        let injected = fault.inject(&mut stage);
        stage.proxy.clear();
        let convergence = match injected {
            Ok(()) => {
                stage.complete_commits();
                judge(&mut stage)
            }
            Err(obstacle) => {
                keep_log(&stage);
                stage.clear();
                return match obstacle {
                    Obstacle::Unmet(why) => Self::Void(why),
                    Obstacle::Unsupported(why) => Self::Skipped(why),
                };
            }
        };
        if let Some(planted) = fault.must_break {
            let is_seen = stage.violations.iter().any(|violation| violation.invariant == planted);
            stage.violations.clear();
            if !is_seen {
                stage.violations.push(Violation::new(planted, "it was broken on purpose, and nobody saw it"));
            }
        }
        if !stage.violations.is_empty() {
            keep_log(&stage);
        }
        stage.clear();
        Self::Judged { convergence, violations: std::mem::take(&mut stage.violations), seed }
    }
}

/// Keeps what the daemons of a run logged, say now and have recorded, for a search for the reason.
fn keep_log(stage: &Stage) {
    let folder = log_folder();
    let file = folder.join(format!("{}.log", stage.site.name));
    let text = format!("{}\n{}", stage.logs(), stage.records());
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text));
    if kept.is_ok() {
        progress(&format!("the log is in {}", file.display()));
    }
}

fn log_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults")
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
