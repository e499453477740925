//! In which order a plan is released: what restarts, together with what, and how many pods that is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::palette::harmless;
use super::text::impact;
use super::{Palette, Style};
use crate::engine::{Plan, Planned, PlannedUnit, Verdict};
use crate::object::ObjectId;

/// So many objects of a unit are named that do nothing to pods.
const NAMED: usize = 5;

/// A line for each unit that restarts pods, and what they come to; empty where nothing is restarted.
pub(super) fn order(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    if plan.units.is_empty() {
        return out;
    }
    let objects: BTreeMap<&ObjectId, &Planned> =
        plan.objects.iter().map(|planned| (&planned.id, planned)).collect();
    let _ = writeln!(out, "{}", palette.paint(Style::Strong, "restarts, in order of release:"));
    for (number, unit) in plan.units.iter().enumerate() {
        let members = unit.members.iter().filter_map(|id| objects.get(id).copied());
        let _ = writeln!(out, "{:>3}. {}", number + 1, harmless(&line(unit, &members.collect::<Vec<_>>())));
    }
    let restarting = plan.objects.iter().filter(|planned| planned.restarts() > 0);
    let (workloads, pods) = restarting.fold((0, 0), |(count, pods), one| (count + 1, pods + one.restarts()));
    let in_units = counted(plan.units.len(), "unit");
    let _ = writeln!(
        out,
        "{}, {}, in {in_units}\n",
        counted(workloads, "workload"),
        counted(pods as usize, "pod")
    );
    out
}

fn line(unit: &PlannedUnit, members: &[&Planned]) -> String {
    let elsewhere = |planned: &Planned| match planned.wave {
        wave if wave == unit.wave => String::new(),
        wave => format!(" in wave {wave}"),
    };
    let refused = |planned: &&&Planned| matches!(planned.verdict, Verdict::Refuse | Verdict::Wait);
    let moved = members.iter().filter(|planned| impact(planned).is_some());
    let moved: Vec<String> = moved
        .map(|planned| {
            let impact = impact(planned).unwrap_or_default();
            format!("{} {impact}{}", planned.id, elsewhere(planned))
        })
        .collect();
    let mut text = format!("wave {}: {}", unit.wave, moved.join(", "));
    let others = members.iter().filter(|planned| impact(planned).is_none() && !refused(planned));
    let names: Vec<String> = others.map(|planned| format!("{}{}", planned.id, elsewhere(planned))).collect();
    if !names.is_empty() {
        let _ = write!(text, "; with {}", shortened(&names));
    }
    for (verdict, word) in [(Verdict::Wait, "waits"), (Verdict::Refuse, "refused")] {
        let held = members.iter().filter(|planned| planned.verdict == verdict);
        let names: Vec<String> = held.map(|planned| planned.id.to_string()).collect();
        if !names.is_empty() {
            let _ = write!(text, "; {word}: {}", shortened(&names));
        }
    }
    text
}

fn shortened(names: &[String]) -> String {
    let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
