//! The closure of a chart: every file of the revision that a render of it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::input::kustomize::{Closure, ClosureFile};
use crate::input::paths;
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::TreeFile;

use super::chart::{ChartDependency, ChartKind, ChartMetadata};
use super::refusal;

/// The most that one chart may have. Large public charts have some 300 files, and 5 MB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartLimits {
    /// Files.
    pub files: usize,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes of one file. helm takes no larger one.
    pub file: u64,
    /// Files and folders that are looked at, those that are left out among them. A folder counts
    /// for each way to it over links.
    pub visits: usize,
    /// Steps by which they are compared with the rules of a `.helmignore`: letters of the rules
    /// times letters of the path. With 10,000 files and the rules that `helm create` writes it is
    /// 50 million.
    pub steps: u64,
}

impl Default for ChartLimits {
    fn default() -> Self {
        Self { files: 10_000, bytes: 64 << 20, file: 5 << 20, visits: 100_000, steps: 500_000_000 }
    }
}

/// Values that a render gets besides the chart's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartValues {
    /// The file at this path of the closure.
    File(Arc<str>),
    /// This YAML.
    Inline(Arc<str>),
}

/// The chart of a closure that asks for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartUser {
    /// The chart that is rendered: helm fails without the other one.
    Root,
    /// A chart that it is made of.
    Part,
}

/// A chart that another one is made of, and that is not in its folder.
#[derive(Clone, Debug)]
pub(crate) struct MissingChart {
    /// The kind of the chart that asks for it.
    pub by: ChartUser,
    /// The folder of that chart in the closure.
    pub folder: String,
    /// The file in the revision that names it.
    pub file: Arc<str>,
    /// The words of that file on it.
    pub dependency: ChartDependency,
}

/// All that a render of one chart reads, and what is known of it from its text.
#[derive(Clone, Debug, Default)]
pub struct ChartClosure {
    /// The files, the paths that were looked at, and what keeps the chart from being rendered. Of
    /// the chart's folder as a whole it is said that it was looked at: any new file in it may
    /// count.
    pub closure: Closure,
    /// The metadata of the chart.
    pub chart: ChartMetadata,
    /// The values, in the order in which they are given to helm.
    pub values: Vec<ChartValues>,
    /// The charts that are missing in it, as far as they were not refused.
    pub(crate) missing: Vec<MissingChart>,
    /// The folder or archive of each chart in the closure, by its path of names as helm writes it:
    /// `web/charts/redis`.
    pub(super) parts: BTreeMap<String, String>,
    /// The archive that helm gets of each fetched chart, by the folder of its files in the closure.
    pub(crate) archives: BTreeMap<String, String>,
}

impl ChartClosure {
    /// Returns whether the chart can be rendered.
    pub fn is_renderable(&self) -> bool {
        self.closure.is_renderable()
    }

    /// Returns whether the folder is a library, which is no root.
    pub fn is_library(&self) -> bool {
        self.chart.kind == ChartKind::Library
    }

    /// Returns the place in the repository of a template that helm names, as
    /// `web/charts/redis/templates/a.yaml`. For a chart in an archive it is that of the archive.
    pub(super) fn template_origin(&self, template: &str, line: u32) -> Option<ManifestOrigin> {
        let within = |name: &str| template.strip_prefix(name)?.strip_prefix('/');
        let parts = self.parts.iter().filter_map(|(name, at)| Some((within(name)?, at)));
        let (rest, at) = parts.min_by_key(|(rest, _)| rest.len())?;
        let (file, line) = match self.closure.files.get(paths::append(at, rest).as_str()) {
            Some(file) => (file, line),
            None => (self.closure.files.get(at.as_str())?, 0),
        };
        let position = crate::manifest::TextPosition { line, column: u32::from(line > 0) };
        Some(refusal::origin_at(&file.source, position))
    }

    /// Adds a file of values, at a path of the closure.
    pub(crate) fn add_values(&mut self, path: Arc<str>, source: Arc<str>, file: TreeFile) {
        if self.archives.keys().any(|folder| paths::holds(folder, &path)) {
            return self.refuse(refusal::fetched_values(&path));
        }
        let limit = ChartLimits::default().file;
        if file.size > limit {
            let size_text = format!("a file of {} bytes, and helm takes up to {limit}", file.size);
            return self.refuse(refusal::too_much(&path, &size_text));
        }
        self.closure.files.add(path.clone(), ClosureFile { source, file });
        self.values.push(ChartValues::File(path));
    }

    /// Refuses the charts without which helm does not render this one.
    pub(crate) fn refuse_missing(&mut self) {
        for missing in std::mem::take(&mut self.missing) {
            if missing.by == ChartUser::Root {
                self.refuse(refusal::missing_dependency(&missing.file, &missing.dependency));
            }
        }
    }

    /// Adds what keeps the chart from being rendered.
    pub(crate) fn refuse(&mut self, diagnostic: Diagnostic) {
        self.closure.diagnostics.push(diagnostic);
    }
}
