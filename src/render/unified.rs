//! A plan as a patch, in the form that git and its many viewers know.

use std::fmt::Write as _;

use serde_json::Value;
use similar::TextDiff;

use super::yaml::yaml;
use super::{Palette, Style};
use crate::engine::{Plan, Planned, Verdict};

/// For each object that differs its whole YAML as a unified diff, with the names of files that
/// `kubectl diff` uses: `apps.v1.Deployment.shop.web`.
pub fn unified(plan: &Plan, palette: Palette) -> String {
    let differing = plan.objects.iter().filter(|planned| planned.verdict != Verdict::Unchanged);
    differing.fold(String::new(), |mut out, planned| {
        object(&mut out, planned, palette);
        out
    })
}

fn object(out: &mut String, planned: &Planned, palette: Palette) {
    let written = |side: Option<&Value>| side.map(yaml).unwrap_or_default();
    let (before, after) = (written(planned.before.as_deref()), written(planned.after.as_deref()));
    if before == after {
        return;
    }
    let name = file_name(planned);
    let (old, new) = match (&planned.before, &planned.after) {
        (None, _) => ("/dev/null".to_owned(), format!("b/{name}")),
        (_, None) => (format!("a/{name}"), "/dev/null".to_owned()),
        _ => (format!("a/{name}"), format!("b/{name}")),
    };
    let _ = writeln!(out, "{}", palette.paint(Style::Strong, &format!("--- {old}")));
    let _ = writeln!(out, "{}", palette.paint(Style::Strong, &format!("+++ {new}")));
    let diff = TextDiff::from_lines(&before, &after);
    for line in diff.unified_diff().context_radius(3).to_string().lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::Added,
            Some(b'-') => Style::Removed,
            Some(b'@') => Style::Waiting,
            _ => Style::Faint,
        };
        let _ = writeln!(out, "{}", palette.paint(style, line));
    }
}

/// `apps.v1.Deployment.shop.web`; kubectl leaves the group out for the core and doubles the dot for a
/// cluster-scoped object, and so do we.
fn file_name(planned: &Planned) -> String {
    let group = if planned.gvk.group.is_empty() { String::new() } else { format!("{}.", planned.gvk.group) };
    let namespace = planned.id.namespace().unwrap_or_default();
    format!("{group}{}.{}.{namespace}.{}", planned.gvk.version, planned.gvk.kind, planned.id.name())
}
