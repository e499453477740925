//! The sentences of why manifests are not used.

use std::fmt;

use crate::engine::{ManifestFault, ManifestOrigins, PriorSource, RefusedManifest};
use crate::object::Diagnostic;

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finding(message) => f.write_str(message),
            Self::UnreadableFile(file) => write!(f, "{file} is not understood"),
            Self::UnrenderedFolder => f.write_str("the folder that it comes from is not rendered"),
            Self::Repeated(places) => write!(f, "it is defined {} times: {places}", places.count),
            Self::Contested(places, None) => write_contest(f, places),
            Self::Contested(places, Some(refused)) => {
                write_contest(f, places)?;
                write!(f, "; {refused}")
            }
            Self::Outranked(places) => write_outranked(f, places),
            Self::HadByOther { object, owner } => {
                write!(f, "{object} is not applied: source {owner} has it")
            }
            Self::Cycle { first, others } => {
                f.write_str("dependency cycle: ")?;
                for id in first.iter() {
                    write!(f, "{id} → ")?;
                }
                if *others > 0 {
                    write!(f, "{others} more → ")?;
                }
                first.first().map_or(Ok(()), |id| write!(f, "{id}"))
            }
            Self::LaterWave { after, theirs, ours } => {
                write!(f, "it depends on {after}, which is in the later wave {theirs} (its own is {ours})")
            }
        }
    }
}

fn write_contest(f: &mut fmt::Formatter<'_>, places: &ManifestOrigins) -> fmt::Result {
    write!(f, "{} sources want it: {places}", places.count)
}

fn write_outranked(f: &mut fmt::Formatter<'_>, places: &ManifestOrigins) -> fmt::Result {
    write_contest(f, places)?;
    f.write_str("; the first of them applies it")
}

/// As a list: "a.yaml:1 and b.yaml:7 and 3 more".
impl fmt::Display for ManifestOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.first.iter().map(ToString::to_string).collect();
        f.write_str(&named.join(" and "))?;
        match self.count.saturating_sub(named.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// As a reason for which the source that asks does not get the object.
impl fmt::Display for PriorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(places) => write_outranked(f, places),
            Self::Wanting(name) => write!(f, "source {name} wants it"),
        }
    }
}

/// Returns the finding about a manifest whose object a source of another account has.
pub(crate) fn describe_contest(manifest: &RefusedManifest) -> Diagnostic {
    Diagnostic::error(manifest.origin.clone(), "other-source", manifest.reason.to_string())
        .hint("remove it from one of the two")
}
