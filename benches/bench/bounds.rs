//! Bounds of ratios, with which `--check` compares the results of a run.
//!
//! A ratio carries over from one machine to another, and no time does. So nothing else has a bound.

use std::fmt;

use serde::Deserialize;

/// A ratio of two numbers of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ratio {
    /// The pace of a first apply, compared with that of prebuilt writes.
    ApplyPace,
    /// Calls of a first apply, compared with its objects.
    CallsForEachObject,
    /// Processor time for each object of a first apply, of many compared with few.
    ApplyGrowth,
    /// The same of the first sync of a daemon.
    SyncGrowth,
    /// From a commit to its write, among many objects compared with few.
    CommitGrowth,
    /// Memory of the idle daemon, compared with that of the program itself.
    IdleMemory,
    /// The time of `kubectl diff`, compared with ours.
    DiffSpeed,
    /// The time of a rollout, compared with the ideal.
    RolloutTime,
    /// Processor time of renders, compared with kustomize alone.
    RenderTime,
    /// Roots that were rendered, compared with those that commits changed.
    RenderedRoots,
    /// Charts that were rendered, compared with the commits that changed their values.
    RenderedCharts,
}

/// A bound of one ratio.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Bound {
    /// The scenario that measures it.
    pub(crate) scenario: String,
    /// The ratio.
    pub(crate) ratio: Ratio,
    /// The most that it may be.
    #[serde(default)]
    pub(crate) at_most: Option<f64>,
    /// The least that it may be.
    #[serde(default)]
    pub(crate) at_least: Option<f64>,
}

/// A bound that the results of a run do not keep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MissedBound {
    bound: Bound,
    /// The first number that does not keep it; none where nothing was measured.
    measured: Option<f64>,
}

/// Reads the file of bounds.
pub(crate) fn parse_bounds(text: &str) -> Result<Vec<Bound>, serde_json::Error> {
    serde_json::from_str(text)
}

/// Lists the bounds of the chosen scenarios that what was measured does not keep.
pub(crate) fn missed_bounds(
    bounds: &[Bound],
    is_chosen: impl Fn(&str) -> bool,
    measured: &[(Ratio, f64)],
) -> Vec<MissedBound> {
    let chosen = bounds.iter().filter(|bound| is_chosen(&bound.scenario));
    let missed = chosen.filter_map(|bound| {
        let of_bound = measured.iter().filter(|(ratio, _)| *ratio == bound.ratio);
        let values: Vec<f64> = of_bound.map(|(_, value)| *value).collect();
        let measured = values.iter().copied().find(|value| !bound.is_kept_by(*value));
        if measured.is_none() && !values.is_empty() {
            return None;
        }
        Some(MissedBound { bound: bound.clone(), measured })
    });
    missed.collect()
}

impl Bound {
    /// Returns whether a number keeps it. Nothing does that is no number.
    fn is_kept_by(&self, value: f64) -> bool {
        !value.is_nan()
            && self.at_most.is_none_or(|most| value <= most)
            && self.at_least.is_none_or(|least| value >= least)
    }
}

/// `s1 ApplyPace is 0.62, at least 0.7`, or `s1 ApplyPace was not measured, at least 0.7`.
impl fmt::Display for MissedBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bound { scenario, ratio, at_most, at_least } = &self.bound;
        write!(f, "{scenario} {ratio:?} ")?;
        match self.measured {
            Some(value) => write!(f, "is {value:.2}")?,
            None => f.write_str("was not measured")?,
        }
        if let Some(most) = at_most {
            write!(f, ", at most {most}")?;
        }
        if let Some(least) = at_least {
            write!(f, ", at least {least}")?;
        }
        Ok(())
    }
}
