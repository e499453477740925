//! From the fields of a kustomization to a chart, its values and its release.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::values;
use crate::input::chart_layer::LayeredTree;
use crate::input::chart_resolver::ChartResolver;
use crate::input::chart_supply::{ChartRequest, ChartRequestSite, is_server};
use crate::input::helm::{self, ChartClosure, ChartValues, HelmOptions, PrintedParts};
use crate::input::kustomize::{
    ChartField, Closure, ClosureFolder, FileReference, PlacedText, ReferenceRole, ValuesMerge, chart_fault,
    error_at, lost_reference, sanitize_text,
};
use crate::input::paths;
use crate::input::release_render::HelmReleaseSettings;
use crate::input::sops::{self, SopsFormat};
use crate::input::tree::{self, FileTree, PathFailure, ResolvedPath};
use crate::manifest::TextPosition;
use crate::object::Diagnostic;
use crate::source::{SourceError, TreeFile};

/// The namespace that helm takes where none is said.
const DEFAULT_NAMESPACE: &str = "default";
/// The name that `helm template` takes where none is given. It makes up none, though asked to.
const DEFAULT_RELEASE: &str = "release-name";
/// Namespaces of one folder that are kept: a chart in several is refused, however many they are.
const MAX_NAMESPACES: usize = 2;
/// Charts that the kustomizations of one root may render.
const MAX_INFLATED_CHARTS: usize = 50;

/// A chart that a kustomization renders.
#[derive(Debug)]
pub(in crate::input) struct Inflation {
    /// The path of the kustomization in the closure.
    pub(in crate::input) file: Arc<str>,
    /// The files that helm reads.
    pub(in crate::input) chart: ChartClosure,
    /// The release that it is taken for.
    pub(in crate::input) options: HelmOptions,
}

/// Finds the charts that the kustomizations of a closure render. A chart that cannot be
/// rendered is a finding of the closure.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(in crate::input) fn find_chart_closures<T: FileTree>(
    files: &T,
    closure: &mut Closure,
    settings: &HelmReleaseSettings,
    resolver: &mut ChartResolver<'_, T>,
) -> Result<Vec<Inflation>, SourceError> {
    let (mut found, mut inflations) = (InflationFindings::default(), Vec::new());
    if closure.folders.iter().all(|folder| folder.kustomization.charts.charts.is_empty()) {
        return Ok(inflations);
    }
    let inherited = inherited_namespaces(closure);
    for folder in &closure.folders {
        let namespaces = inherited.get(&*folder.path);
        for field in &folder.kustomization.charts.charts {
            if inflations.len() >= MAX_INFLATED_CHARTS {
                let message = format!("this root renders more than {MAX_INFLATED_CHARTS} charts");
                let refused = Diagnostic::file_error(closure.root.clone(), "too-large", message);
                found.refused.push(refused.hint("split it into several roots"));
                break;
            }
            let site = ChartSite::of(files, closure, folder, field)?;
            let mut trace = ChartTrace { files, site, field, found: &mut found };
            let Some(options) = trace.options(settings, namespaces) else { continue };
            let Some(root) = trace.chart_folder(&folder.kustomization.charts.home, resolver)? else {
                continue;
            };
            let mut chart = resolver.find_chart_closure(&root, &root, &options)?;
            trace.add_values(&mut chart, &root, &resolver.tree_with_charts())?;
            found.refused.extend(chart.closure.diagnostics.iter().cloned());
            found.watched.extend(chart.closure.watched.iter().cloned());
            inflations.push(Inflation { file: folder.file.clone(), chart, options });
        }
    }
    closure.diagnostics.extend(found.refused);
    closure.watched.extend(found.watched);
    Ok(inflations)
}

/// Returns the namespaces that each folder has from those that include it; an empty one where none
/// has any. Each folder has and passes on no more than [`MAX_NAMESPACES`], so that the work is
/// linear.
fn inherited_namespaces(closure: &Closure) -> BTreeMap<&str, BTreeSet<&str>> {
    let folders: BTreeMap<&str, &ClosureFolder> =
        closure.folders.iter().map(|folder| (&*folder.path, folder)).collect();
    let mut inherited: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut left: Vec<(&ClosureFolder, &str)> =
        closure.folders.first().map(|root| (root, "")).into_iter().collect();
    while let Some((folder, namespace)) = left.pop() {
        let known = inherited.entry(&folder.path).or_default();
        if known.len() >= MAX_NAMESPACES || !known.insert(namespace) {
            continue;
        }
        let own = folder.kustomization.namespace.as_str();
        let passed = if own.is_empty() { namespace } else { own };
        let parts = folder.kustomization.references.iter();
        let parts = parts
            .filter(|part| matches!(part.role, ReferenceRole::Resource | ReferenceRole::Component))
            .filter_map(|part| paths::join(&folder.path, &part.target));
        left.extend(parts.filter_map(|path| folders.get(path.as_str()).map(|part| (*part, passed))));
    }
    inherited
}

/// The findings of all charts.
#[derive(Default)]
struct InflationFindings {
    refused: Vec<Diagnostic>,
    watched: BTreeSet<Arc<str>>,
}

/// The place of a chart's entry.
struct ChartSite {
    /// The file of the kustomization in the revision.
    file: Arc<str>,
    /// Its folder there, over links.
    folder: String,
    /// The namespace of the kustomization.
    namespace: String,
    /// The place in the file.
    position: TextPosition,
}

impl ChartSite {
    fn of(
        files: &impl FileTree,
        closure: &Closure,
        folder: &ClosureFolder,
        field: &ChartField,
    ) -> Result<Self, SourceError> {
        let file = closure.files.get(&folder.file).map_or(folder.file.clone(), |file| file.source.clone());
        let real = tree::resolve(files, "", &folder.path, |_| ())?;
        Ok(Self {
            file,
            folder: real.map_or_else(|_| folder.path.to_string(), |found| found.path),
            namespace: folder.kustomization.namespace.clone(),
            position: field.position.unwrap_or(TextPosition { line: 0, column: 0 }),
        })
    }
}

/// The reading of one entry.
struct ChartTrace<'a, T> {
    files: &'a T,
    site: ChartSite,
    field: &'a ChartField,
    found: &'a mut InflationFindings,
}

impl<T: FileTree> ChartTrace<'_, T> {
    fn fault(&mut self, message: &str) {
        self.found.refused.push(chart_fault(&self.site.file, message, self.site.position));
    }

    fn refuse(&mut self, code: &'static str, message: String, hint: &str) {
        let found = error_at(&self.site.file, self.site.position, code, message, hint);
        self.found.refused.push(found);
    }

    fn resolve(&mut self, reference: &str) -> Result<Result<ResolvedPath, PathFailure>, SourceError> {
        let watched = &mut self.found.watched;
        tree::resolve(self.files, &self.site.folder, reference, |path| {
            watched.insert(path.into());
        })
    }

    /// Returns the release that the entry asks for.
    fn options(
        &mut self,
        settings: &HelmReleaseSettings,
        inherited: Option<&BTreeSet<&str>>,
    ) -> Option<HelmOptions> {
        let field = self.field;
        let (release, name_template) = self.release_name()?;
        let namespace = self.namespace(inherited)?;
        let configured = |own: &str, other: &Option<String>| {
            if own.is_empty() { other.clone() } else { Some(own.to_owned()) }
        };
        Some(HelmOptions {
            release,
            name_template,
            namespace,
            objects: helm::UnnamedNamespace::Source,
            values: Vec::new(),
            kube_version: configured(&field.kube_version, &settings.kube_version),
            api_versions: if field.api_versions.is_empty() {
                settings.api_versions.clone()
            } else {
                field.api_versions.clone().into()
            },
            generated: settings.generated,
            schemas: settings.schemas,
            printed: PrintedParts {
                definitions: field.includes_definitions,
                tests: !field.skips_tests,
                hooks: !field.skips_hooks,
            },
        })
    }

    fn release_name(&mut self) -> Option<(String, Option<String>)> {
        let (name, template) = (&self.field.release, &self.field.name_template);
        match (name.as_str(), template.as_str()) {
            ("", "") => Some((DEFAULT_RELEASE.to_owned(), None)),
            (name, "") => Some((name.to_owned(), None)),
            ("", template) if helm::has_changing_function(template) => {
                let message = "helmCharts: nameTemplate makes up another name at each render";
                self.refuse("release-name", message.to_owned(), "set `releaseName` instead");
                None
            }
            ("", template) if template.contains("{{") => Some((String::new(), Some(template.to_owned()))),
            ("", template) => Some((template.to_owned(), None)),
            _ => {
                self.fault("releaseName and nameTemplate cannot both be set");
                None
            }
        }
    }

    fn namespace(&mut self, inherited: Option<&BTreeSet<&str>>) -> Option<String> {
        let own = [self.field.namespace.as_str(), self.site.namespace.as_str()];
        if let Some(own) = own.into_iter().find(|own| !own.is_empty()) {
            return Some(own.to_owned());
        }
        let mut inherited = inherited.into_iter().flatten();
        match (inherited.next(), inherited.next()) {
            (None | Some(&""), None) => Some(DEFAULT_NAMESPACE.to_owned()),
            (Some(one), None) => Some((*one).to_owned()),
            _ => {
                let message = "helmCharts: the root includes this chart in several namespaces";
                self.refuse("helm-chart", message.to_owned(), "set `namespace` of the chart");
                None
            }
        }
    }

    /// Returns the folder of the chart: one of the revision, or one with a chart of a server.
    fn chart_folder(
        &mut self,
        home: &str,
        resolver: &mut ChartResolver<'_, T>,
    ) -> Result<Option<String>, SourceError> {
        let ChartField { name, repository, version, .. } = self.field;
        if name.is_empty() {
            self.fault("each chart needs a name");
            return Ok(None);
        }
        let below = if repository.is_empty() || version.is_empty() {
            format!("{home}/{name}")
        } else {
            format!("{home}/{name}-{version}/{name}")
        };
        match self.resolve(&below)? {
            Ok(ResolvedPath { path, file: None }) => return Ok(Some(path)),
            Ok(_) | Err(PathFailure::Missing(_) | PathFailure::Dangling { .. }) => {}
            Err(failure) => {
                self.refuse_lost_reference("helmCharts", &below, self.site.position, &failure);
                return Ok(None);
            }
        }
        let Some(folder) = paths::join(&self.site.folder, &below) else {
            let failure = PathFailure::OutOfTree(self.files.bounds());
            self.refuse_lost_reference("helmCharts", &below, self.site.position, &failure);
            return Ok(None);
        };
        if !is_server(repository) {
            let message = format!(
                "helmCharts: there is no chart {} in {}",
                sanitize_text(name),
                sanitize_text(&folder)
            );
            let hint = "put the chart into that folder, or name the server in `repo`";
            self.refuse("no-chart", message, hint);
            return Ok(None);
        }
        let (request, file) = (ChartRequest { repository, name, version }, self.site.file.clone());
        let at = ChartRequestSite { file: &file, position: self.site.position };
        let found = resolver.request(request, at)?;
        if let Some(found) = &found {
            resolver.insert_chart(&folder, found);
        }
        Ok(found.map(|_| folder))
    }

    fn refuse_lost_reference(
        &mut self,
        field: &'static str,
        target: &str,
        position: TextPosition,
        failure: &PathFailure,
    ) {
        let reference =
            FileReference { role: ReferenceRole::File, field, target: target.to_owned(), position };
        self.found.refused.push(lost_reference(&self.site.file, &reference, failure));
    }

    /// Adds the values of the entry to a chart.
    fn add_values(
        &mut self,
        chart: &mut ChartClosure,
        root: &str,
        seen: &LayeredTree<'_, T>,
    ) -> Result<(), SourceError> {
        let field = self.field;
        let needs_file = field.values.is_none() || field.merge != ValuesMerge::Replace;
        let first = match &field.values_file {
            _ if !needs_file => None,
            Some(file) => self.values_file("valuesFile", file)?,
            None => self.own_values(root, seen)?,
        };
        if needs_file && first.is_none() {
            return Ok(());
        }
        match (&field.values, first) {
            (Some(inline), first) => {
                let bytes = first.map(|first| seen.read(first.file.blob)).transpose()?.unwrap_or_default();
                match values::merge_values(inline, &bytes, field.merge) {
                    Ok(merged) => chart.values.push(ChartValues::Inline(merged.to_string().into())),
                    Err(fault) => self.fault(&format!("valuesInline: {fault}")),
                }
            }
            (None, Some(first)) => first.add_to(chart),
            (None, None) => {}
        }
        for file in &field.more_values {
            if let Some(found) = self.values_file("additionalValuesFiles", file)? {
                found.add_to(chart);
            }
        }
        Ok(())
    }

    /// Returns the values that the chart itself brings.
    fn own_values(
        &mut self,
        root: &str,
        seen: &LayeredTree<'_, T>,
    ) -> Result<Option<ValuesFile>, SourceError> {
        match tree::resolve(seen, root, "values.yaml", |_| ())? {
            Ok(ResolvedPath { path, file: Some(file) }) => {
                Ok(Some(ValuesFile { path: paths::append(root, "values.yaml"), source: path.into(), file }))
            }
            Ok(ResolvedPath { file: None, .. }) => Ok(None),
            Err(failure) => {
                let target = paths::append(root, "values.yaml");
                self.refuse_lost_reference("helmCharts", &target, self.site.position, &failure);
                Ok(None)
            }
        }
    }

    /// Returns a file of values that the entry names.
    fn values_file(
        &mut self,
        field: &'static str,
        named: &PlacedText,
    ) -> Result<Option<ValuesFile>, SourceError> {
        let text = named.text.as_str();
        if helm::is_address(text) {
            let message =
                format!("{field}: this is an address, which is not fetched: {}", sanitize_text(text));
            let hint = "copy the file into the repository, and name its path";
            self.found.refused.push(error_at(
                &self.site.file,
                named.position,
                "remote-values",
                message,
                hint,
            ));
            return Ok(None);
        }
        let (path, file) = match self.resolve(text)? {
            Ok(ResolvedPath { path, file: Some(file) }) => (path, file),
            Ok(ResolvedPath { file: None, .. }) => {
                let message = format!("{field}: a file is needed, and {} is a folder", sanitize_text(text));
                let position = named.position;
                let found = error_at(&self.site.file, position, "missing-file", message, "name a file in it");
                self.found.refused.push(found);
                return Ok(None);
            }
            Err(failure) => {
                self.refuse_lost_reference(field, text, named.position, &failure);
                return Ok(None);
            }
        };
        let source: Arc<str> = path.into();
        if sops::is_encrypted(&self.files.read(file.blob)?, SopsFormat::Yaml) {
            self.found.refused.push(helm::encrypted_values(&source));
            return Ok(None);
        }
        Ok(Some(ValuesFile { path: source.to_string(), source, file }))
    }
}

/// A file of values.
struct ValuesFile {
    /// Its path in the closure.
    path: String,
    /// Its path in the revision.
    source: Arc<str>,
    file: TreeFile,
}

impl ValuesFile {
    fn add_to(self, chart: &mut ChartClosure) {
        chart.add_values(self.path.into(), self.source, self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::kustomize::{ClosureLimits, ParsedFiles, find_closure};

    // Many namespaces times many folders would be as many pairs.
    #[test]
    fn no_folder_has_more_namespaces_than_matter() {
        let mut tree = MemoryTree::new().file("q200/kustomization.yaml", "resources: []\n");
        for number in 0..200 {
            let text = format!("namespace: n{number}\nresources: [../q0]\n");
            tree = tree.file(&format!("p{number}/kustomization.yaml"), text);
            let text = format!("resources: [../q{}]\n", number + 1);
            tree = tree.file(&format!("q{number}/kustomization.yaml"), text);
        }
        let parts: Vec<String> = (0..200).map(|number| format!("../p{number}")).collect();
        let tree = tree.file("root/kustomization.yaml", format!("resources: [{}]\n", parts.join(", ")));
        let parsed = &mut ParsedFiles::default();
        let closure = find_closure(&tree, "root", ClosureLimits::default(), parsed).unwrap();
        let inherited = inherited_namespaces(&closure);
        let counts = |folder: &str| inherited.get(folder).map(BTreeSet::len);
        assert_eq!((counts("p1"), counts("q0"), counts("q200")), (Some(1), Some(2), Some(2)));
    }
}
