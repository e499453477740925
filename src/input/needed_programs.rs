//! The programs that the roots of a snapshot are for.

use std::collections::BTreeSet;

use super::kustomize::FILE_NAMES;
use super::origin::CHART_SEPARATOR;
use super::root_job::NO_RENDERER;
use super::roots::RootForm;
use super::sandbox::RenderProgram;
use crate::source::Snapshot;

/// Returns the programs that have rendered the roots of a snapshot, and those that would.
pub(crate) fn needed_programs(snapshot: &Snapshot) -> BTreeSet<RenderProgram> {
    let mut needed = BTreeSet::new();
    for root in &snapshot.failed_roots {
        let file = root.path.rsplit('/').next().unwrap_or_default();
        needed.extend(FILE_NAMES.contains(&file).then_some(RenderProgram::Kustomize));
        needed.extend((file == RootForm::Helm.file_name()).then_some(RenderProgram::Helm));
    }
    for renderer in snapshot.files.iter().filter_map(|file| file.origin.as_deref()).map(|made| &made.renderer)
    {
        needed.extend(RenderProgram::ALL.into_iter().filter(|program| renderer.starts_with(program.name())));
        needed.extend(renderer.contains(CHART_SEPARATOR).then_some(RenderProgram::Helm));
    }
    // A kustomization with charts needs both.
    for missing in snapshot.refused.iter().filter(|found| found.code == NO_RENDERER) {
        let is_named = |program: &RenderProgram| {
            missing.message.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == program.name())
        };
        needed.extend(RenderProgram::ALL.into_iter().filter(is_named));
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Diagnostic, PossibleNames, RenderOrigin, Revision, UnrenderedRoot};
    use crate::source::SnapshotFile;

    #[test]
    fn roots_that_render_and_roots_that_do_not_name_their_programs() {
        let check = |failed: &[&str], renderers: &[&str], missing: &[&str], expected: &str| {
            let refused = missing.iter().map(|text| Diagnostic::file_error("a", NO_RENDERER, *text));
            let mut snapshot = Snapshot::of_files(Revision::new("0"), Vec::new(), refused.collect());
            let root = |path: &&str| UnrenderedRoot { path: (*path).into(), names: PossibleNames::Any };
            snapshot.failed_roots = failed.iter().map(root).collect();
            snapshot.files = renderers
                .iter()
                .map(|renderer| {
                    let (root, renderer) = ("a".into(), (*renderer).into());
                    let origin = RenderOrigin { root, renderer, places: [].into() };
                    SnapshotFile { origin: Some(origin.into()), ..SnapshotFile::in_test("a") }
                })
                .collect();
            let names: Vec<&str> = needed_programs(&snapshot).into_iter().map(RenderProgram::name).collect();
            assert_eq!(names.join(" "), expected, "{failed:?} {renderers:?} {missing:?}");
        };
        check(&[], &[], &[], "");
        check(&["kustomization.yml"], &[], &[], "kustomize");
        check(&["web/Chart.yaml"], &[], &[], "helm");
        check(&["plain.yaml"], &["variables"], &[], "");
        check(&[], &["kustomize"], &[], "kustomize");
        check(&[], &[&format!("helm{CHART_SEPARATOR}web 1")], &[], "helm");
        check(&[], &[&format!("kustomize{CHART_SEPARATOR}web 1")], &[], "kustomize helm");
        check(&["a/kustomization.yaml"], &[], &["there is no helm in PATH"], "kustomize helm");
    }
}
