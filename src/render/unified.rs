//! A plan as a patch, in the form that git and its many viewers know.

use std::fmt::Write as _;
use std::sync::Arc;

use super::palette::sanitize;
use super::{Palette, TextStyle};
use crate::change;
use crate::engine::{Plan, PlannedAction, PlannedObject};
use serde_json::Value;

/// Returns the whole YAML of each object that differs as a unified diff, with the file names that
/// `kubectl diff` uses: `apps.v1.Deployment.shop.web`.
pub(crate) fn unified_diff(plan: &Plan, palette: Palette) -> String {
    let differing = plan.objects.iter().filter(|planned| planned.verdict != PlannedAction::Unchanged);
    differing.fold(String::new(), |mut out, planned| {
        object(&mut out, planned, palette);
        out
    })
}

fn object(out: &mut String, planned: &PlannedObject, palette: Palette) {
    let side = |side: &Option<Arc<Value>>| side.clone().unwrap_or_default();
    let patch = change::unified_diff(&side(&planned.before), &side(&planned.after));
    if patch.is_empty() {
        return;
    }
    let name = diff_file_name(planned);
    let name = sanitize(&name);
    let (old, new) = match (&planned.before, &planned.after) {
        (None, _) => ("/dev/null".to_owned(), format!("b/{name}")),
        (_, None) => (format!("a/{name}"), "/dev/null".to_owned()),
        _ => (format!("a/{name}"), format!("b/{name}")),
    };
    let _ = writeln!(out, "{}", palette.paint(TextStyle::Strong, &format!("--- {old}")));
    let _ = writeln!(out, "{}", palette.paint(TextStyle::Strong, &format!("+++ {new}")));
    for line in patch.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => TextStyle::Added,
            Some(b'-') => TextStyle::Removed,
            Some(b'@') => TextStyle::Waiting,
            _ => TextStyle::Faint,
        };
        let _ = writeln!(out, "{}", palette.paint(style, line));
    }
}

/// Returns the name of an object's file, as `apps.v1.Deployment.shop.web`. As with kubectl, the
/// core group is left out, and a cluster-scoped object has two dots.
fn diff_file_name(planned: &PlannedObject) -> String {
    let group = if planned.gvk.group.is_empty() { String::new() } else { format!("{}.", planned.gvk.group) };
    let namespace = planned.id.namespace().unwrap_or_default();
    format!("{group}{}.{}.{namespace}.{}", planned.gvk.version, planned.gvk.kind, planned.id.name())
}
