//! The order in which a plan is released: the units that restart pods, and how many.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::palette::sanitize;
use super::{Palette, TextStyle};
use crate::change::{Impact, ImpactKind};
use crate::engine::{Plan, PlannedAction, PlannedObject, PlannedUnit};
use crate::object::{ObjectId, count_text};

/// The maximum number of objects without an impact on pods that are named of a unit.
const MAX_NAMED_MEMBERS: usize = 5;

/// Returns a line for each unit that restarts pods, and their sum; empty where nothing restarts.
pub(super) fn order_lines(plan: &Plan, palette: Palette) -> String {
    let mut out = String::new();
    if plan.units.is_empty() {
        return out;
    }
    let objects: BTreeMap<&ObjectId, &PlannedObject> =
        plan.objects.iter().map(|planned| (&planned.id, planned)).collect();
    let _ = writeln!(out, "{}", palette.paint(TextStyle::Strong, "restarts, in order of release:"));
    for (number, unit) in plan.units.iter().enumerate() {
        let members = unit.members.iter().filter_map(|id| objects.get(id).copied());
        let _ = writeln!(out, "{:>3}. {}", number + 1, sanitize(&line(unit, &members.collect::<Vec<_>>())));
    }
    let restarting = plan.objects.iter().filter(|planned| planned.restarted_pods() > 0);
    let (workloads, pods) =
        restarting.fold((0, 0), |(count, pods), one| (count + 1, pods + one.restarted_pods()));
    let in_units = count_text(plan.units.len(), "unit");
    let _ =
        writeln!(out, "{}, {}, in {in_units}\n", count_text(workloads, "workload"), count_text(pods, "pod"));
    out
}

/// Returns the impact on pods, in words; none where there is none.
pub(super) fn impact_text(planned: &PlannedObject) -> Option<String> {
    let Impact { kind, pods } = planned.impact;
    let pods = match pods {
        0 if kind == ImpactKind::Recreate => return Some("is deleted and created again".to_owned()),
        0 => return None,
        pods => count_text(pods, "pod"),
    };
    let verb = match kind {
        ImpactKind::InPlace if planned.verdict == PlannedAction::Create => "starts",
        ImpactKind::None | ImpactKind::InPlace => return None,
        ImpactKind::Scale if planned.verdict == PlannedAction::Delete => "stops",
        ImpactKind::Scale if planned.before.is_none() => "starts",
        ImpactKind::Scale => "scales by",
        ImpactKind::Restart => "restarts",
        ImpactKind::Recreate => "recreates",
    };
    Some(format!("{verb} {pods}"))
}

fn line(unit: &PlannedUnit, members: &[&PlannedObject]) -> String {
    let elsewhere = |planned: &PlannedObject| match planned.wave {
        wave if wave == unit.wave => String::new(),
        wave => format!(" in wave {wave}"),
    };
    let refused =
        |planned: &&&PlannedObject| matches!(planned.verdict, PlannedAction::Refuse | PlannedAction::Wait);
    let moved = members.iter().filter(|planned| impact_text(planned).is_some());
    let moved: Vec<String> = moved
        .map(|planned| {
            let impact = impact_text(planned).unwrap_or_default();
            format!("{} {impact}{}", planned.id, elsewhere(planned))
        })
        .collect();
    let mut text = format!("wave {}: {}", unit.wave, moved.join(", "));
    let others = members.iter().filter(|planned| impact_text(planned).is_none() && !refused(planned));
    let names: Vec<String> = others.map(|planned| format!("{}{}", planned.id, elsewhere(planned))).collect();
    if !names.is_empty() {
        let _ = write!(text, "; with {}", shorten_names(&names));
    }
    for (verdict, word) in [(PlannedAction::Wait, "waits"), (PlannedAction::Refuse, "refused")] {
        let planned_so = members.iter().filter(|planned| planned.verdict == verdict);
        let names: Vec<String> = planned_so.map(|planned| planned.id.to_string()).collect();
        if !names.is_empty() {
            let _ = write!(text, "; {word}: {}", shorten_names(&names));
        }
    }
    text
}

fn shorten_names(names: &[String]) -> String {
    let first = names.iter().take(MAX_NAMED_MEMBERS).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED_MEMBERS) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
