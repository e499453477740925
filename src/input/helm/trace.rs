//! The walk over a chart's folder, as helm walks it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::input::kustomize::{Closure, ClosureFile, sanitize_text};
use crate::input::paths;
use crate::input::tree::{self, FileTree, PathFailure, ResolvedPath};
use crate::source::{FileDefect, SourceError, TreeEntry, TreeFile};

use super::archive::ARCHIVE_SUFFIX;
use super::chart::{CHART_FILE, ChartDependency, ChartKind, ChartMetadata, REQUIREMENTS_FILE};
use super::closure::{ChartClosure, ChartLimits, ChartUser, ChartValues, MissingChart};
use super::ignore::{IGNORE_FILE, IgnoreRules, PathForm};
use super::options::{HelmOptions, SchemaUse, ValuesSource};
use super::refusal;
use super::schema::{self, SCHEMA_FILE};

/// The folder of the charts that a chart is made of.
pub(crate) const PARTS_FOLDER: &str = "charts";
/// Levels of folders in a chart.
const MAX_TRACED_DEPTH: usize = 64;
/// Bytes of the path of a file. The system takes 4,096, with the folder that it is written to.
const MAX_TRACED_PATH_BYTES: usize = 3_000;
/// Diagnostics of one chart that are kept: more would only repeat what is wrong.
const MAX_DIAGNOSTICS: usize = 100;
/// Charts that one chart may be made of. Each is looked for among all that are there.
const MAX_DEPENDENCIES: usize = 1_000;
/// Names that one chart may have in another one, as far as its objects are traced to it.
const MAX_TRACED_ALIASES: usize = 100;
/// The schemes of addresses that helm fetches by itself.
const FETCHED_SCHEMES: [&str; 3] = ["http", "https", "oci"];

/// Finds the closure of a chart from its text. Files of values are looked for in the chart's folder
/// and then in `start`, the folder of its source. A chart that is missing in it is refused.
///
/// # Errors
/// Fails where the revision cannot be read. A fault in it is a diagnostic of the closure.
pub fn find_closure<T: FileTree>(
    files: &T,
    root: &str,
    start: &str,
    options: &HelmOptions,
    limits: ChartLimits,
) -> Result<ChartClosure, SourceError> {
    let mut found = find_present_closure(files, root, start, options, limits, &BTreeMap::new())?;
    found.refuse_missing();
    found.closure.diagnostics.truncate(MAX_DIAGNOSTICS);
    Ok(found)
}

/// Does the same as [`find_closure`], but lists the charts that are missing, for them to be
/// fetched. Of those in these folders, which were, helm gets archives with these names.
///
/// # Errors
/// As [`find_closure`].
pub(crate) fn find_present_closure<T: FileTree>(
    files: &T,
    root: &str,
    start: &str,
    options: &HelmOptions,
    limits: ChartLimits,
    fetched: &BTreeMap<String, String>,
) -> Result<ChartClosure, SourceError> {
    let closure = Closure { root: root.into(), ..Closure::default() };
    let found = ChartClosure { closure, ..ChartClosure::default() };
    let mut walk = ChartWalk {
        tree: files,
        limits,
        fetched,
        found,
        files: BTreeMap::new(),
        rules: IgnoreRules::default(),
        bytes: 0,
        visits: 0,
        steps: 0,
        schemas: options.schemas,
        is_full: false,
    };
    walk.run(start, options)?;
    walk.found.closure.files = walk.files.into_iter().collect();
    walk.found.closure.diagnostics.truncate(MAX_DIAGNOSTICS);
    Ok(walk.found)
}

/// Returns whether the chart of a folder is a library, which is no root. A chart that cannot be
/// read is a root, which then says why it does not render.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(crate) fn is_library(files: &impl FileTree, folder: &str) -> Result<bool, SourceError> {
    let Ok(ResolvedPath { path, file: Some(file) }) = tree::resolve(files, folder, CHART_FILE, |_| ())?
    else {
        return Ok(false);
    };
    let (chart, _) = ChartMetadata::read(&path.into(), &files.read(file.blob)?);
    Ok(chart.kind == ChartKind::Library)
}

/// A folder of the chart.
struct ChartFolder {
    /// Its path in the chart.
    path: String,
    source: Rc<FolderSource>,
    /// Indicates whether helm gets it in an archive, to whose files no rule applies.
    is_packed: bool,
}

/// The path of a folder in the revision, over links, and those of the folders above it in the
/// chart.
struct FolderSource {
    path: String,
    /// The number of folders above it.
    depth: usize,
    above: Option<Rc<FolderSource>>,
}

impl FolderSource {
    /// Returns whether it or a folder above it is in this one.
    fn is_within(&self, folder: &str) -> bool {
        let all = std::iter::successors(Some(self), |source| source.above.as_deref());
        all.into_iter().any(|source| paths::holds(folder, &source.path))
    }
}

struct ChartWalk<'a, T> {
    tree: &'a T,
    limits: ChartLimits,
    /// The names of the archives of fetched charts, by their folders in the revision.
    fetched: &'a BTreeMap<String, String>,
    found: ChartClosure,
    /// The files that were found so far, by their path in a tree without links.
    files: BTreeMap<Arc<str>, ClosureFile>,
    rules: IgnoreRules,
    bytes: u64,
    /// The files and folders that were looked at, and the steps that their comparison with the
    /// rules took.
    visits: usize,
    steps: u64,
    schemas: SchemaUse,
    is_full: bool,
}

impl<T: FileTree> ChartWalk<'_, T> {
    fn run(&mut self, start: &str, options: &HelmOptions) -> Result<(), SourceError> {
        let root = self.found.closure.root.clone();
        self.found.closure.watched.insert(root.clone());
        self.found.closure.diagnostics.extend(options.faults(&root));
        if let Some(TreeEntry::Defect(defect)) = self.tree.entry(&root)? {
            self.found.refuse(refusal::defect(&root, defect));
            return Ok(());
        }
        if !self.read_rules(&root)? || !self.walk(&root)? {
            return Ok(());
        }
        if self.files.contains_key(paths::append(&root, CHART_FILE).as_str()) {
            self.read_charts(&root)?;
        } else {
            self.found.refuse(refusal::no_chart(&root));
        }
        for values in &options.values {
            self.values(&root, start, values)?;
        }
        Ok(())
    }

    /// Follows a reference and notes all that was looked at.
    fn resolve(
        &mut self,
        folder: &str,
        reference: &str,
    ) -> Result<Result<ResolvedPath, PathFailure>, SourceError> {
        let watched = &mut self.found.closure.watched;
        tree::resolve(self.tree, folder, reference, |path| {
            watched.insert(path.into());
        })
    }

    /// Reads the chart's `.helmignore`, and returns whether helm would.
    fn read_rules(&mut self, root: &str) -> Result<bool, SourceError> {
        let bytes = match self.resolve(root, IGNORE_FILE)? {
            Ok(ResolvedPath { path, file: Some(file) }) => {
                let (bytes, source) = (self.tree.read(file.blob)?, Arc::from(path));
                // helm reads it even where it names itself.
                self.add(&paths::append(root, IGNORE_FILE), &source, file);
                bytes
            }
            Ok(ResolvedPath { file: None, .. }) | Err(_) => Arc::from([]),
        };
        match IgnoreRules::read(&bytes) {
            Ok(rules) => self.rules = rules,
            Err(fault) => {
                let file = Arc::from(paths::append(root, IGNORE_FILE));
                self.found.refuse(refusal::ignore_fault(&file, &fault));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds every file below the chart's folder, and returns whether they are not too many.
    fn walk(&mut self, root: &str) -> Result<bool, SourceError> {
        let source = Rc::new(FolderSource { path: root.to_owned(), depth: 0, above: None });
        let mut left = vec![ChartFolder { path: String::new(), source, is_packed: false }];
        while let Some(folder) = left.pop() {
            let names = self.tree.names(&folder.source.path)?.unwrap_or_default();
            if folder.source.depth >= MAX_TRACED_DEPTH {
                let shown_path = paths::append(root, &folder.path);
                self.refuse_size(&shown_path, &format!("more than {MAX_TRACED_DEPTH} levels of folders"));
            }
            for name in names {
                self.count_look(root, &paths::append(&folder.path, &name));
                if self.is_full {
                    return Ok(false);
                }
                left.extend(self.visit(root, &folder, &name)?);
            }
        }
        Ok(!self.is_full)
    }

    /// Counts a file or folder that is looked at, and what its comparison with the rules takes.
    fn count_look(&mut self, root: &str, path: &str) {
        self.visits += 1;
        if self.visits > self.limits.visits {
            let most = self.limits.visits;
            let size_text =
                format!("more than {most} files and folders, those that it leaves out among them");
            return self.refuse_size(root, &size_text);
        }
        self.steps = self.steps.saturating_add(self.rules.steps(path));
        if self.steps > self.limits.steps {
            self.refuse_size(root, &format!("too many or too long rules in its {IGNORE_FILE} for its files"));
        }
    }

    /// Adds what has a name in a folder, or returns it where it is a folder itself.
    fn visit(
        &mut self,
        root: &str,
        folder: &ChartFolder,
        name: &str,
    ) -> Result<Option<ChartFolder>, SourceError> {
        let source = folder.source.path.as_str();
        let (path, at) = (paths::append(&folder.path, name), paths::append(source, name));
        let archive = self.fetched.get(&at).filter(|_| !folder.is_packed);
        let archive = archive.map(|archive| paths::append(&folder.path, archive));
        let is_packed = folder.is_packed || archive.is_some();
        let below = |source: String| {
            let (depth, above) = (folder.source.depth + 1, Some(folder.source.clone()));
            let source = Rc::new(FolderSource { path: source, depth, above });
            Some(ChartFolder { path: path.clone(), source, is_packed })
        };
        let is_ignored = |form| !is_packed && self.rules.is_ignored(&path, form);
        match self.tree.entry(&at)? {
            None if is_ignored(PathForm::File) || is_ignored(PathForm::Folder) => {}
            // It has a name that no path leads to. helm would read it, or it is gone by now.
            None => self.found.refuse(refusal::defect(&at, FileDefect::Unreadable)),
            Some(_) if archive.as_ref().is_some_and(|one| self.rules.is_ignored(one, PathForm::File)) => {}
            Some(TreeEntry::Folder) if is_ignored(PathForm::Folder) => {}
            Some(TreeEntry::Folder) => {
                let archive =
                    archive.map(|archive| (paths::append(root, &path), paths::append(root, &archive)));
                self.found.archives.extend(archive);
                return Ok(below(at));
            }
            Some(TreeEntry::File(_) | TreeEntry::Defect(_)) if is_ignored(PathForm::File) => {}
            Some(TreeEntry::File(file)) => {
                self.add(&paths::append(root, &path), &at.into(), file);
            }
            Some(TreeEntry::Defect(defect)) => self.found.refuse(refusal::defect(&at, defect)),
            Some(TreeEntry::Link(_)) => {
                let forms = (is_ignored(PathForm::File), is_ignored(PathForm::Folder));
                match self.resolve(source, name)? {
                    Ok(ResolvedPath { file: Some(_), .. }) if forms.0 => {}
                    Ok(ResolvedPath { path: end, file: Some(file) }) => {
                        self.add(&paths::append(root, &path), &end.into(), file);
                    }
                    Ok(ResolvedPath { file: None, .. }) if forms.1 => {}
                    Ok(ResolvedPath { path: end, file: None }) => {
                        if folder.source.is_within(&end) {
                            self.found.refuse(refusal::link_circle(&at));
                            return Ok(None);
                        }
                        self.found.closure.watched.insert(end.as_str().into());
                        return Ok(below(end));
                    }
                    Err(_) if forms.0 || forms.1 => {}
                    Err(failure) => self.found.refuse(refusal::lost_file(&at, &failure)),
                }
            }
        }
        Ok(None)
    }

    /// Adds a file, once.
    fn add(&mut self, path: &str, source: &Arc<str>, file: TreeFile) {
        if self.files.contains_key(path) {
            return;
        }
        if path.len() > MAX_TRACED_PATH_BYTES {
            let size_text = format!("a path of more than {MAX_TRACED_PATH_BYTES} bytes");
            return self.found.refuse(refusal::too_much(&sanitize_text(path), &size_text));
        }
        self.bytes += file.size;
        if file.size > self.limits.file {
            let size_text =
                format!("a file of {} bytes, and helm takes up to {}", file.size, self.limits.file);
            return self.found.refuse(refusal::too_much(path, &size_text));
        }
        let root = self.found.closure.root.clone();
        if self.files.len() >= self.limits.files {
            return self.refuse_size(&root, &format!("more than {} files", self.limits.files));
        }
        if self.bytes > self.limits.bytes {
            return self.refuse_size(&root, &format!("files of more than {} bytes", self.limits.bytes));
        }
        self.files.insert(path.into(), ClosureFile { source: source.clone(), file });
    }

    fn refuse_size(&mut self, shown_path: &str, size_text: &str) {
        self.is_full = true;
        // It is said even where the list is full.
        self.found.closure.diagnostics.insert(0, refusal::too_much(shown_path, size_text));
    }

    /// Reads what the chart and the charts in it say of themselves.
    fn read_charts(&mut self, root: &str) -> Result<(), SourceError> {
        let Some(chart) = self.read_chart(root)? else { return Ok(()) };
        if chart.kind == ChartKind::Library {
            let file = self.source_of(root, CHART_FILE);
            self.found.refuse(refusal::library(&file));
        }
        let mut left = vec![(root.to_owned(), chart.name.clone(), chart.dependencies.clone(), true)];
        let mut is_first = true;
        while let Some((folder, name, dependencies, is_certain)) = left.pop() {
            self.found.parts.insert(name.clone(), folder.clone());
            if is_certain && self.schemas == SchemaUse::Validate {
                self.check_schema(&folder)?;
            }
            let mut present = PresentCharts::default();
            for part in self.parts_of(&folder) {
                let at = paths::append(&paths::append(&folder, PARTS_FOLDER), &part);
                if part.ends_with(ARCHIVE_SUFFIX) {
                    present.archives.push(part);
                    continue;
                }
                let Some(chart) = self.read_chart(&at)? else { continue };
                let named = dependencies_of(&dependencies, &chart.name);
                let has_version = |version: &str| version == chart.version;
                self.add_names(&name, &at, &named, has_version);
                let first = named.iter().find(|one| has_version(&one.version)).or(named.first());
                let name = part_name(&name, first.map_or(chart.name.as_str(), |one| one.name_in_chart()));
                let is_certain = is_certain && first.is_none_or(|known| !known.is_conditional);
                present.names.insert(chart.name.clone());
                left.push((at, name, chart.dependencies, is_certain));
            }
            self.add_archives(&folder, &name, &dependencies, &mut present);
            // helm itself asks only for those of the chart that is rendered.
            let by = if std::mem::take(&mut is_first) { ChartUser::Root } else { ChartUser::Part };
            let file = self.dependencies_file(&folder)?;
            for missing in dependencies.iter().filter(|one| !present.can_match(one)) {
                let (file, folder, dependency) = (file.clone(), folder.clone(), missing.clone());
                self.found.missing.push(MissingChart { by, folder, file, dependency });
            }
        }
        self.found.chart = chart;
        Ok(())
    }

    /// Names the charts in archives, as far as the names of their files show.
    fn add_archives(
        &mut self,
        folder: &str,
        name: &str,
        dependencies: &[ChartDependency],
        present: &mut PresentCharts,
    ) {
        for archive in &present.archives {
            let Some(known) = chart_of_archive(archive, dependencies) else {
                present.has_unknown_archive = true;
                continue;
            };
            let at = paths::append(&paths::append(folder, PARTS_FOLDER), archive);
            let has_version = |version: &str| *archive == format!("{}-{version}{ARCHIVE_SUFFIX}", known.name);
            self.add_names(name, &at, &dependencies_of(dependencies, &known.name), has_version);
            present.names.insert(known.name.clone());
        }
    }

    /// Notes the place of a chart under each name that another one gives it. Where there are
    /// several of one name, the one counts whose version is asked for.
    fn add_names(
        &mut self,
        user: &str,
        at: &str,
        named: &[&ChartDependency],
        has_version: impl Fn(&str) -> bool,
    ) {
        for one in named {
            let name = part_name(user, one.name_in_chart());
            if has_version(&one.version) {
                self.found.parts.insert(name, at.to_owned());
            } else {
                self.found.parts.entry(name).or_insert_with(|| at.to_owned());
            }
        }
    }

    /// Reads the chart of a folder; none where helm would not.
    fn read_chart(&mut self, folder: &str) -> Result<Option<ChartMetadata>, SourceError> {
        let Some((file, bytes)) = self.file(folder, CHART_FILE)? else {
            self.found.refuse(refusal::no_chart(folder));
            return Ok(None);
        };
        let (mut chart, faults) = ChartMetadata::read(&file, &bytes);
        let is_read = faults.is_empty();
        self.found.closure.diagnostics.extend(faults);
        let mut naming_file = file;
        if let Some((file, bytes)) = self.file(folder, REQUIREMENTS_FILE)?
            && let Some(dependencies) = ChartMetadata::read_requirements(&file, &bytes)
        {
            (naming_file, chart.dependencies) = (file, dependencies);
        }
        if let Some(position) = chart.dependencies.get(MAX_DEPENDENCIES).map(|one| one.position) {
            self.found.refuse(refusal::too_many_dependencies(&naming_file, position, MAX_DEPENDENCIES));
            chart.dependencies.truncate(MAX_DEPENDENCIES);
        }
        Ok(is_read.then_some(chart))
    }

    fn check_schema(&mut self, folder: &str) -> Result<(), SourceError> {
        if let Some((file, bytes)) = self.file(folder, SCHEMA_FILE)?
            && let Some(reference) = schema::remote_reference(&bytes)
        {
            self.found.refuse(refusal::remote_schema(&file, &reference));
        }
        Ok(())
    }

    /// Returns a file of the closure: its path in the revision, and its bytes.
    fn file(&self, folder: &str, name: &str) -> Result<Option<NamedBytes>, SourceError> {
        let Some(file) = self.files.get(paths::append(folder, name).as_str()) else {
            return Ok(None);
        };
        Ok(Some((file.source.clone(), self.tree.read(file.file.blob)?)))
    }

    fn source_of(&self, folder: &str, name: &str) -> Arc<str> {
        let path = paths::append(folder, name);
        self.files.get(path.as_str()).map_or(path.into(), |file| file.source.clone())
    }

    /// Returns the file that names the dependencies of a chart.
    fn dependencies_file(&self, folder: &str) -> Result<Arc<str>, SourceError> {
        let named = self.file(folder, REQUIREMENTS_FILE)?;
        let named = named.filter(|(file, bytes)| ChartMetadata::read_requirements(file, bytes).is_some());
        Ok(named.map_or_else(|| self.source_of(folder, CHART_FILE), |(file, _)| file))
    }

    /// Returns the names in a chart's folder of charts that helm takes for charts.
    fn parts_of(&self, folder: &str) -> BTreeSet<String> {
        let below = format!("{}/", paths::append(folder, PARTS_FOLDER));
        let files = self.files.range(Arc::from(below.as_str())..).map(|(path, _)| path);
        let inside = files.map_while(|path| path.strip_prefix(&below));
        let names = inside.filter_map(|rest| match rest.split_once('/') {
            Some((name, _)) => Some(name),
            None => Some(rest).filter(|name| name.ends_with(ARCHIVE_SUFFIX)),
        });
        names.filter(|name| !name.starts_with(['_', '.'])).map(str::to_owned).collect()
    }

    fn values(&mut self, root: &str, start: &str, values: &ValuesSource) -> Result<(), SourceError> {
        let text = match values {
            ValuesSource::Inline(text) => {
                self.found.values.push(ChartValues::Inline(text.as_str().into()));
                return Ok(());
            }
            ValuesSource::File(text) => text.as_str(),
        };
        if is_address(text) {
            self.found.refuse(refusal::remote_values(root, text));
            return Ok(());
        }
        let found = match self.resolve(root, text)? {
            Err(PathFailure::Missing(_) | PathFailure::OutOfTree(_)) if start != root => {
                let elsewhere = self.resolve(start, text)?;
                elsewhere.map(|found| (start, found))
            }
            found => found.map(|found| (root, found)),
        };
        match found {
            Ok((folder, ResolvedPath { path, file: Some(file) })) => {
                let shown_path = paths::join(folder, text).unwrap_or_else(|| path.clone());
                if self.found.archives.keys().any(|folder| paths::holds(folder, &shown_path)) {
                    self.found.refuse(refusal::fetched_values(&shown_path.into()));
                    return Ok(());
                }
                self.add(&shown_path, &path.into(), file);
                self.found.values.push(ChartValues::File(shown_path.into()));
            }
            Ok((_, ResolvedPath { file: None, .. })) => self.found.refuse(refusal::values_folder(root, text)),
            Err(failure) => self.found.refuse(refusal::lost_values(root, text, &failure)),
        }
        Ok(())
    }
}

/// A file's path in the revision, and its bytes.
type NamedBytes = (Arc<str>, Arc<[u8]>);

/// The charts that are in a chart's folder.
#[derive(Default)]
struct PresentCharts {
    /// The names that charts have, as far as the names of archives say so.
    names: BTreeSet<String>,
    /// The files of charts in archives.
    archives: Vec<String>,
    /// Says that the name of an archive is that of no dependency. It need not be that of the chart
    /// in it.
    has_unknown_archive: bool,
}

impl PresentCharts {
    /// Returns whether a dependency may be there.
    fn can_match(&self, wanted: &ChartDependency) -> bool {
        self.has_unknown_archive || self.names.contains(&wanted.name)
    }
}

/// Returns the name of a chart that another one is made of, as helm writes it.
fn part_name(user: &str, name: &str) -> String {
    format!("{user}/{PARTS_FOLDER}/{name}")
}

/// Returns the entries for a chart: it may have several names.
fn dependencies_of<'d>(dependencies: &'d [ChartDependency], name: &str) -> Vec<&'d ChartDependency> {
    dependencies.iter().filter(|one| one.name == name).take(MAX_TRACED_ALIASES).collect()
}

/// Returns the chart of these that an archive has by its name; none where it may be any.
fn chart_of_archive<'c>(archive: &str, all: &'c [ChartDependency]) -> Option<&'c ChartDependency> {
    // Of those that are named twice, the first.
    all.iter().rev().filter(|one| is_archive_of(archive, &one.name)).max_by_key(|one| one.name.len())
}

/// Returns whether a file has the name that `helm package` gives to a chart: its name, and then its
/// version, which begins with a digit.
fn is_archive_of(archive: &str, chart: &str) -> bool {
    let version = archive.strip_prefix(chart).and_then(|rest| rest.strip_prefix('-'));
    let version = version.map(|version| version.strip_prefix('v').unwrap_or(version));
    version.is_some_and(|version| version.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// Returns whether helm, or a plugin of it, fetches what has this name. Any other name is that of
/// a file, whatever colons are in it.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_fetched_by_helm = FETCHED_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if !is_fetched_by_helm && !rest.starts_with("//") {
        return false;
    }
    let mut letters = scheme.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}
