//! The files that a root reads, whatever its form, and the programs that render them.

use std::sync::Arc;

use super::buffered_tree::BufferedTree;
use super::chart_resolver::{ChartResolver, SuppliedCharts};
use super::chart_supply::{ChartSupply, PinPolicy};
use super::helm::{self, ChartClosure, HelmOptions};
use super::inflation::{Inflation, find_chart_closures};
use super::key::{FileMode, ProgramIdentity, RenderInputs};
use super::kustomize::{self, Closure, ClosureLimits, ParsedFiles, WatchedPaths};
use super::release_render::HelmReleaseSettings;
use super::root_names::naming_folders;
use super::roots::{RenderRoot, RootForm};
use super::sandbox::RenderProgram;
use super::substitution::names_variables;
use super::tree::FileTree;
use crate::object::Diagnostic;
use crate::source::SourceError;

/// The files that a root reads, those of charts of servers among them.
#[derive(Debug)]
pub(super) struct RootClosure {
    /// The files of the revision, by the form of the root.
    pub(super) form: ClosureForm,
    /// The charts of servers.
    pub(super) charts: SuppliedCharts,
}

/// The files that a root reads, by its form.
#[derive(Debug)]
pub(super) enum ClosureForm {
    /// A kustomization's, and the charts that it renders.
    Kustomize(Box<Closure>, Vec<Inflation>),
    /// A chart's, and the release that it is taken for.
    Helm(Box<ChartClosure>, Box<HelmOptions>),
}

/// The roots of a pass that are not kept, and what stays of the closures.
#[derive(Debug, Default)]
pub(super) struct TracedRoots {
    /// Their closures, which are there until each is rendered.
    pub(super) closures: Vec<(RenderRoot, RootClosure)>,
    /// Their folders, and the folders that the possible names of each are of.
    pub(super) folders: Vec<(Arc<str>, Vec<String>)>,
    /// The paths that concern them.
    pub(super) watched: Vec<WatchedPaths>,
}

impl TracedRoots {
    /// Adds a root.
    pub(super) fn add(&mut self, root: RenderRoot, mut closure: RootClosure) {
        self.folders.push((root.folder.clone(), naming_folders(&closure)));
        self.watched.push(closure.take_watched_paths());
        self.closures.push((root, closure));
    }
}

/// All that roots are traced with, besides their files.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosureSettings<'a> {
    /// The settings of charts.
    pub(super) releases: &'a HelmReleaseSettings,
    /// The finder of charts of servers.
    pub(super) supply: &'a dyn ChartSupply,
    /// The meaning of a version.
    pub(super) policy: PinPolicy,
}

impl RootClosure {
    /// Finds the files that a root reads, from their text, and the charts of servers that it uses. The
    /// closure shares the text of the root's folder.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(super) fn find_closure<T: FileTree>(
        root: &RenderRoot,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        settings: ClosureSettings<'_>,
    ) -> Result<Self, SourceError> {
        let mut resolver = ChartResolver::new(files, &root.folder, settings.supply, settings.policy);
        match root.form {
            RootForm::Kustomize => {
                let limits = ClosureLimits::default();
                let mut closure = kustomize::find_closure(files, &root.folder, limits, parsed)?;
                let charts = find_chart_closures(files, &mut closure, settings.releases, &mut resolver)?;
                let supplied = resolver.into_charts(&mut closure);
                closure.root = root.folder.clone();
                Ok(Self { form: ClosureForm::Kustomize(closure.into(), charts), charts: supplied })
            }
            RootForm::Helm => {
                let options = settings.releases.options_of(&root.folder, start);
                let mut chart = resolver.find_chart_closure(&root.folder, start, &options)?;
                let supplied = resolver.into_charts(&mut chart.closure);
                chart.closure.root = root.folder.clone();
                Ok(Self { form: ClosureForm::Helm(chart.into(), options.into()), charts: supplied })
            }
        }
    }

    /// Returns the files.
    pub(super) fn closure(&self) -> &Closure {
        match &self.form {
            ClosureForm::Kustomize(closure, _) => closure,
            ClosureForm::Helm(chart, _) => &chart.closure,
        }
    }

    /// Takes the paths that concern the root out of its closure.
    fn take_watched_paths(&mut self) -> WatchedPaths {
        WatchedPaths::take_from(match &mut self.form {
            ClosureForm::Kustomize(closure, _) => closure,
            ClosureForm::Helm(chart, _) => &mut chart.closure,
        })
    }

    /// Returns the files, and then those of each chart that its kustomizations render.
    pub(super) fn closures(&self) -> impl Iterator<Item = &Closure> {
        let inflations = match &self.form {
            ClosureForm::Kustomize(_, inflations) => inflations.as_slice(),
            ClosureForm::Helm(..) => &[],
        };
        std::iter::once(self.closure()).chain(inflations.iter().map(|one| &one.chart.closure))
    }

    /// Returns whether helm renders it, or a part of it.
    pub(super) fn has_charts(&self) -> bool {
        self.programs().contains(&RenderProgram::Helm)
    }

    /// Returns whether variables may be put into what is rendered of it. A template may make a name
    /// of anything. A chart that is a root has values instead.
    ///
    /// # Errors
    /// Fails where its files cannot be read.
    pub(super) fn can_name_variables<T: FileTree>(&self, files: &T) -> Result<bool, SourceError> {
        match &self.form {
            ClosureForm::Helm(..) => Ok(false),
            ClosureForm::Kustomize(_, charts) if !charts.is_empty() => Ok(true),
            ClosureForm::Kustomize(closure, _) if !closure.is_renderable() => Ok(false),
            ClosureForm::Kustomize(closure, _) => {
                names_variables(closure, &BufferedTree::of(files, [&**closure])?)
            }
        }
    }

    /// Returns the reasons for which it cannot be rendered now, and may be later.
    pub(super) fn interruptions(&self) -> &[Diagnostic] {
        &self.charts.interruptions
    }

    /// Adds a reason for which it cannot be rendered now.
    pub(super) fn interrupt(&mut self, found: Diagnostic) {
        self.charts.interruptions.push(found);
    }

    /// Returns the programs that render them: first its own.
    pub(super) fn programs(&self) -> &'static [RenderProgram] {
        match &self.form {
            ClosureForm::Kustomize(_, charts) if charts.is_empty() => &[RenderProgram::Kustomize],
            ClosureForm::Kustomize(..) => &[RenderProgram::Kustomize, RenderProgram::Helm],
            ClosureForm::Helm(..) => &[RenderProgram::Helm],
        }
    }

    /// Returns all that the outcome of a render by these programs depends on; none without any.
    pub(super) fn inputs<'a>(&'a self, programs: &'a [ProgramIdentity]) -> Option<RenderInputs<'a>> {
        let (own, others) = programs.split_first()?;
        let mut inputs = match &self.form {
            ClosureForm::Kustomize(closure, charts) => {
                let mut inputs = RenderInputs::of(own, closure);
                for other in others {
                    let identity = format!("{} {:02x?}", other.version, other.digest);
                    inputs.options.insert(other.name.clone(), identity);
                }
                for chart in charts {
                    add_chart(&mut inputs, own, chart);
                }
                inputs
            }
            ClosureForm::Helm(chart, options) => helm::render_inputs(own, chart, options),
        };
        for chart in &self.charts.used {
            inputs.charts.insert(format!("{chart} ({})", chart.request_text()), chart.digest.bytes());
        }
        if let Some(lock) = &self.charts.lock {
            inputs.options.insert("lock".to_owned(), lock.clone());
        }
        Some(inputs)
    }
}

/// Adds what a chart of a kustomization depends on.
fn add_chart<'a>(inputs: &mut RenderInputs<'a>, program: &'a ProgramIdentity, chart: &'a Inflation) {
    let own = helm::render_inputs(program, &chart.chart, &chart.options);
    inputs.arguments.push(format!("{} {}", chart.file, chart.chart.closure.root));
    inputs.arguments.push(own.arguments.len().to_string());
    inputs.arguments.extend(own.arguments);
    inputs.arguments.extend(own.options.into_iter().map(|(key, value)| format!("{key}={value}")));
    let mode = |is_executable| if is_executable { FileMode::Executable } else { FileMode::Plain };
    let files = chart.chart.closure.files.iter();
    inputs.files.extend(files.map(|(path, file)| (&**path, (mode(file.file.is_executable), file.file.blob))));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::input::MemoryTree;
    use crate::input::chart_lock::ChartLock;
    use crate::input::key::RenderKey;
    use crate::input::memory_supply::MemorySupply;

    const SERVER: &str = "https://charts.example.org";

    fn identities() -> [ProgramIdentity; 2] {
        ["kustomize", "helm"].map(|name| ProgramIdentity {
            name: name.to_owned(),
            version: "1".to_owned(),
            digest: [7; 32],
        })
    }

    fn trace_root(tree: &MemoryTree, form: RootForm, supply: &MemorySupply) -> RootClosure {
        let releases = HelmReleaseSettings { namespace: "prod".to_owned(), ..HelmReleaseSettings::default() };
        traced_with(&releases, tree, form, supply)
    }

    fn traced_with(
        releases: &HelmReleaseSettings,
        tree: &MemoryTree,
        form: RootForm,
        supply: &MemorySupply,
    ) -> RootClosure {
        let settings = ClosureSettings { releases, supply, policy: PinPolicy::Strict };
        let root = RenderRoot { folder: "web".into(), form };
        let closure =
            RootClosure::find_closure(&root, "", tree, &mut ParsedFiles::default(), settings).unwrap();
        assert_eq!(closure.closure().diagnostics, []);
        closure
    }

    fn key(closure: &RootClosure, identities: &[ProgramIdentity]) -> RenderKey {
        closure.inputs(identities).unwrap().key()
    }

    fn server(text: &str) -> MemorySupply {
        MemorySupply::default().chart(SERVER, "redis", "7.1.0", &[("values.yaml", text)])
    }

    #[test]
    fn the_digest_of_a_chart_and_the_lock_are_in_the_key() {
        let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n\
                     - {name: redis, version: 7.1.0, repository: 'https://charts.example.org'}\n";
        let tree = MemoryTree::new().file("web/Chart.yaml", chart);
        let first = trace_root(&tree, RootForm::Helm, &server("a: 1"));
        let other = trace_root(&tree, RootForm::Helm, &server("a: 2"));
        let lock = ChartLock::of(first.charts.used.iter().cloned().collect()).to_text();
        // Outside of the chart's own files, so that the lock alone makes the key another one.
        let ignored = tree.file("web/.helmignore", "rhumb.lock\n");
        let unlocked = trace_root(&ignored, RootForm::Helm, &server("a: 1"));
        let locked = trace_root(&ignored.file("web/rhumb.lock", lock), RootForm::Helm, &server("a: 1"));
        let identities = &identities()[1..];
        let keys: BTreeSet<_> = [&first, &other, &unlocked, &locked].map(|one| key(one, identities)).into();
        assert_eq!(keys.len(), 4);
        assert_eq!(
            key(&first, identities),
            key(
                &trace_root(
                    &MemoryTree::new().file("web/Chart.yaml", chart),
                    RootForm::Helm,
                    &server("a: 1")
                ),
                identities
            )
        );
        let inputs = first.inputs(identities).unwrap();
        assert_eq!(inputs.charts.len(), 1);
    }

    #[test]
    fn the_versions_of_the_cluster_are_in_the_key_of_each_root_with_charts() {
        let tree = MemoryTree::new()
            .file("web/kustomization.yaml", "helmCharts: [{name: app, releaseName: a}]\n")
            .file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
            .file("web/charts/app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n")
            .file("web/charts/app/values.yaml", "");
        let release_settings = |version: &str, apis: &[&str]| HelmReleaseSettings {
            namespace: "prod".to_owned(),
            kube_version: Some(version.to_owned()),
            api_versions: apis.iter().map(|api| (*api).to_owned()).collect(),
            ..HelmReleaseSettings::default()
        };
        let all = [
            release_settings("v1.35.0", &["v1"]),
            release_settings("v1.36.0", &["v1"]),
            release_settings("v1.36.0", &["v1", "x/v1"]),
        ];
        let supply = MemorySupply::default();
        for (form, first) in [(RootForm::Kustomize, 0), (RootForm::Helm, 1)] {
            let keys: BTreeSet<_> = all
                .iter()
                .map(|settings| key(&traced_with(settings, &tree, form, &supply), &identities()[first..]))
                .collect();
            assert_eq!(keys.len(), all.len(), "{form:?}");
        }
    }

    #[test]
    fn all_that_a_chart_of_a_kustomization_depends_on_is_in_the_key() {
        let tree = |fields: &str, values: &str| {
            MemoryTree::new()
                .file("web/kustomization.yaml", format!("helmCharts: [{{name: app, {fields}}}]\n"))
                .file("web/charts/app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n")
                .file("web/charts/app/values.yaml", values)
        };
        let supply = MemorySupply::default();
        let identities = identities();
        let mut other_helm = identities.clone();
        other_helm[1].digest = [8; 32];
        let base = trace_root(&tree("releaseName: a", ""), RootForm::Kustomize, &supply);
        assert_eq!(base.programs().len(), 2);
        let mut keys = BTreeSet::from([key(&base, &identities), key(&base, &other_helm)]);
        let changed = [
            tree("releaseName: a", "b: 1"),
            tree("releaseName: b", ""),
            tree("version: 1.0.0", ""),
            tree("releaseName: a, namespace: c", ""),
            tree("releaseName: a, includeCRDs: true", ""),
            tree("releaseName: a, valuesInline: {d: 1}", ""),
        ];
        keys.extend(
            changed.iter().map(|tree| key(&trace_root(tree, RootForm::Kustomize, &supply), &identities)),
        );
        assert_eq!(keys.len(), 2 + changed.len());
        assert_eq!(supply.fetched(), [""; 0]);
    }
    #[test]
    fn variables_are_put_into_a_kustomization_that_may_name_them() {
        #[track_caller]
        fn check(tree: &MemoryTree, form: RootForm, expected: bool) {
            let closure = trace_root(tree, form, &MemorySupply::default());
            assert_eq!(closure.can_name_variables(tree).unwrap(), expected);
        }
        let with = |value: &str| {
            let map =
                format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{a: {value}}}}}");
            MemoryTree::new().file("web/kustomization.yaml", "resources: [a.yaml]\n").file("web/a.yaml", map)
        };
        check(&with("b"), RootForm::Kustomize, false);
        check(&with(r#""\x25{B}""#), RootForm::Kustomize, false);
        for value in ["'${B}'", r#""\x24{B}""#, r#""\u0024{B}""#, r#""\U00000024{B}""#] {
            check(&with(value), RootForm::Kustomize, true);
        }
        let chart = "apiVersion: v2\nname: app\nversion: 1.0.0\n";
        let charts = "helmCharts: [{name: app, releaseName: app}]\n";
        let inflating = MemoryTree::new()
            .file("web/kustomization.yaml", charts)
            .file("web/charts/app/Chart.yaml", chart)
            .file("web/charts/app/values.yaml", "");
        check(&inflating, RootForm::Kustomize, true);
        let root = MemoryTree::new().file("web/Chart.yaml", chart).file("web/values.yaml", "a: ${B}\n");
        check(&root, RootForm::Helm, false);
    }
}
