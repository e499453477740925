//! Charts of servers laid over a revision, as if they were in it.
//!
//! Owns no file of the revision, and decides nothing: what lies here was fetched and checked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::charts::FetchedChart;
use super::paths;
use super::tree::FileTree;
use crate::source::{BlobId, SourceError, TreeBounds, TreeEntry, TreeFile};

/// The files of fetched charts, by their paths in the revision.
#[derive(Clone, Debug, Default)]
pub(super) struct ChartLayer {
    files: BTreeMap<String, TreeFile>,
    bytes: HashMap<BlobId, Arc<[u8]>>,
}

impl ChartLayer {
    /// Lays a chart into a folder.
    pub(super) fn add(&mut self, folder: &str, chart: &FetchedChart) {
        for file in &chart.files {
            let (blob, size) = (BlobId::of(&file.content), file.content.len() as u64);
            self.bytes.entry(blob).or_insert_with(|| file.content.as_slice().into());
            let file_at = TreeFile { blob, size, is_executable: false };
            self.files.insert(paths::append(folder, &file.path), file_at);
        }
    }

    /// Returns whether a folder holds files of the layer.
    pub(super) fn holds(&self, folder: &str) -> bool {
        self.files_below(folder).next().is_some()
    }

    fn files_below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let files = self.files.range(start.clone()..);
        files.map_while(move |(path, _)| path.strip_prefix(&start))
    }
}

/// A revision with a layer over it. Where both have a path, that of the layer counts.
#[derive(Debug)]
pub(super) struct LayeredTree<'a, T> {
    /// The revision.
    pub(super) tree: &'a T,
    /// The layer.
    pub(super) layer: &'a ChartLayer,
}

impl<T: FileTree> FileTree for LayeredTree<'_, T> {
    fn bounds(&self) -> TreeBounds {
        self.tree.bounds()
    }

    fn entry(&self, path: &str) -> Result<Option<TreeEntry>, SourceError> {
        if let Some(file) = self.layer.files.get(path) {
            return Ok(Some(TreeEntry::File(*file)));
        }
        if self.layer.holds(path) { Ok(Some(TreeEntry::Folder)) } else { self.tree.entry(path) }
    }

    fn names(&self, folder: &str) -> Result<Option<Vec<String>>, SourceError> {
        let below = self.tree.names(folder)?;
        if !self.layer.holds(folder) {
            return Ok(below);
        }
        let mut names: BTreeSet<String> = below.unwrap_or_default().into_iter().collect();
        let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
        names.extend(self.layer.files_below(folder).map(first));
        Ok(Some(names.into_iter().collect()))
    }

    fn read(&self, blob: BlobId) -> Result<Arc<[u8]>, SourceError> {
        match self.layer.bytes.get(&blob) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.tree.read(blob),
        }
    }

    fn read_all(&self, blobs: &[BlobId]) -> Result<Vec<Arc<[u8]>>, SourceError> {
        let below: Vec<BlobId> =
            blobs.iter().filter(|blob| !self.layer.bytes.contains_key(blob)).copied().collect();
        let mut read = self.tree.read_all(&below)?.into_iter();
        let lost = || SourceError::Missing { shown_location: "a file of the revision".to_owned() };
        let each = |blob| self.layer.bytes.get(blob).cloned().or_else(|| read.next()).ok_or_else(lost);
        blobs.iter().map(each).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::memory_supply::MemorySupply;

    #[test]
    fn a_chart_lies_in_the_revision_as_if_it_were_there() {
        let tree = MemoryTree::new().file("web/Chart.yaml", "a").file("web/charts/old/Chart.yaml", "b");
        let mut layer = ChartLayer::default();
        layer.add(
            "web/charts/redis",
            &MemorySupply::fetched_chart("", "redis", "1.2.0", &[("templates/a.yaml", "c")]),
        );
        let seen = LayeredTree { tree: &tree, layer: &layer };
        let names = |folder: &str| seen.names(folder).unwrap().unwrap_or_default();
        assert_eq!(names("web"), ["Chart.yaml", "charts"]);
        assert_eq!(names("web/charts"), ["old", "redis"]);
        assert_eq!(names("web/charts/redis"), ["Chart.yaml", "templates"]);
        assert_eq!(names("web/charts/redis/no"), [""; 0]);
        assert_eq!(seen.entry("web/charts/redis").unwrap(), Some(TreeEntry::Folder));
        assert_eq!(seen.entry("web/charts/redi").unwrap(), None);
        let Some(TreeEntry::File(file)) = seen.entry("web/charts/redis/templates/a.yaml").unwrap() else {
            panic!("the file is there")
        };
        assert_eq!(&*seen.read(file.blob).unwrap(), b"c");
        assert_eq!(&*seen.read(BlobId::of(b"b")).unwrap(), b"b");
        let many = seen.read_all(&[BlobId::of(b"a"), file.blob, BlobId::of(b"b")]).unwrap();
        assert_eq!(many.iter().map(|bytes| &**bytes).collect::<Vec<_>>(), [b"a", b"c", b"b"]);
        assert!(layer.holds("web/charts") && !layer.holds("web/charts/old"));
    }
}
