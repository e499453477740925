//! The names that objects of a root may have that did not render, by the words of its files.
//!
//! **Invariant:** says [`PossibleNames::Any`] wherever the root may take a name from elsewhere. So
//! it does where not all that it reads is known, where a chart computes names, and where variables
//! are put in.

use super::kustomize::Closure;
use super::paths;
use super::root_closure::{ClosureForm, RootClosure};
use super::substitution::VariableMode;
use super::tree::FileTree;
use crate::object::{NameWords, PossibleNames};
use crate::source::{SourceError, TreeEntry};

/// The most that is looked at in the folders of a root.
const MAX_SEARCHED_FILES: usize = 20_000;
const MAX_SEARCHED_BYTES: u64 = 16 << 20;

/// The beginning of a variable.
const VARIABLE_START: &str = "${";

/// Returns the names that objects of a root may have, by the text of what it reads.
///
/// All files below its folders count too: of what it should have read, and does not by a mistake in
/// a kustomization, most are there.
///
/// # Errors
/// Fails where the files cannot be read.
pub(super) fn possible_names<T: FileTree>(
    root: &RootClosure,
    variables: VariableMode,
    files: &T,
) -> Result<PossibleNames, SourceError> {
    let ClosureForm::Kustomize(closure, charts) = &root.form else { return Ok(PossibleNames::Any) };
    let is_known = closure.is_renderable() && root.interruptions().is_empty() && charts.is_empty();
    if !is_known || closure.folders.iter().any(|folder| folder.kustomization.has_unknown_fields) {
        return Ok(PossibleNames::Any);
    }
    let mut words = WordReader { files, variables, words: NameWords::default(), count: 0, bytes: 0 };
    let read = words.add_all(closure, naming_folders(root))?;
    Ok(read.map_or(PossibleNames::Any, |()| PossibleNames::Words(words.words.into())))
}

/// Returns the folders whose files say which names the objects of a root may have: its own, and
/// those of its kustomizations.
pub(super) fn naming_folders(root: &RootClosure) -> Vec<String> {
    let closure = root.closure();
    let kustomizations = closure.folders.iter().filter_map(|folder| closure.files.get(&folder.file));
    let of_kustomizations = kustomizations.map(|file| paths::folder_of(&file.source).to_owned());
    let mut folders: Vec<String> = of_kustomizations.chain([closure.root.to_string()]).collect();
    folders.sort_unstable();
    folders.dedup_by(|inner, outer| paths::holds(outer, inner));
    folders
}

struct WordReader<'a, T> {
    files: &'a T,
    variables: VariableMode,
    words: NameWords,
    count: usize,
    bytes: u64,
}

impl<T: FileTree> WordReader<'_, T> {
    /// Adds the words of a closure and of these folders. None where more may be meant.
    fn add_all(&mut self, closure: &Closure, mut folders: Vec<String>) -> Result<Option<()>, SourceError> {
        for (path, file) in &closure.files {
            if self.add_file(path, file.file.blob, file.file.size)?.is_none() {
                return Ok(None);
            }
        }
        while let Some(folder) = folders.pop() {
            for name in self.files.names(&folder)?.unwrap_or_default() {
                let path = paths::append(&folder, &name);
                let added = match self.files.entry(&path)? {
                    Some(TreeEntry::Folder) => {
                        folders.push(path.clone());
                        self.add_path(&path)
                    }
                    Some(TreeEntry::File(file)) => self.add_file(&path, file.blob, file.size)?,
                    Some(TreeEntry::Link(link)) => {
                        self.add_path(&path).and_then(|()| self.add_path(&link.target))
                    }
                    // Nobody knows what is in it, or no path leads to it.
                    Some(TreeEntry::Defect(_)) | None => None,
                };
                if added.is_none() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(()))
    }

    fn add_file(
        &mut self,
        path: &str,
        blob: crate::source::BlobId,
        size: u64,
    ) -> Result<Option<()>, SourceError> {
        self.bytes += size;
        if self.bytes > MAX_SEARCHED_BYTES {
            return Ok(None);
        }
        let bytes = self.files.read(blob)?;
        let has_variable =
            || bytes.windows(VARIABLE_START.len()).any(|window| window == VARIABLE_START.as_bytes());
        if self.variables == VariableMode::Substituted && has_variable() {
            return Ok(None);
        }
        Ok(self.add_path(path).and_then(|()| self.add_text(&bytes)))
    }

    fn add_path(&mut self, path: &str) -> Option<()> {
        self.count += 1;
        if self.count > MAX_SEARCHED_FILES { None } else { self.add_text(path.as_bytes()) }
    }

    fn add_text(&mut self, text: &[u8]) -> Option<()> {
        self.words = std::mem::take(&mut self.words).with_text(text)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;
    use crate::input::chart_supply::PinPolicy;
    use crate::input::kustomize::ParsedFiles;
    use crate::input::memory_supply::MemorySupply;
    use crate::input::release_render::HelmReleaseSettings;
    use crate::input::root_closure::ClosureSettings;
    use crate::input::roots::{RenderRoot, RootForm};
    use crate::source::FileDefect;

    fn names(files: MemoryTree, form: RootForm, variables: VariableMode) -> PossibleNames {
        let (releases, supply) = (HelmReleaseSettings::default(), MemorySupply::default());
        let settings = ClosureSettings { releases: &releases, supply: &supply, policy: PinPolicy::Strict };
        let root = RenderRoot { folder: "app".into(), form };
        let mut parsed = ParsedFiles::default();
        let closure = RootClosure::find_closure(&root, "", &files, &mut parsed, settings).unwrap();
        possible_names(&closure, variables, &files).unwrap()
    }

    fn app(kustomization: &str) -> MemoryTree {
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n";
        MemoryTree::new().file("app/kustomization.yaml", kustomization).file("app/own.yaml", map)
    }

    #[test]
    fn only_what_the_text_of_a_kustomization_rules_out_is_ruled_out() {
        let check = |files: MemoryTree, expected: &[(&str, bool)]| {
            let names = names(files, RootForm::Kustomize, VariableMode::Literal);
            for (name, possible) in expected {
                assert_eq!(names.can_be_named(name), *possible, "{name} by {names:?}");
            }
        };
        let gone = &[("gone", true)][..];
        check(app("resources: [own.yaml]\n"), &[("own", true), ("gone", false)]);
        check(
            app("resources: [own.yaml, ../base]\nnamePrefix: a-\n")
                .file("base/kustomization.yaml", "resources: [x.yaml]\n")
                .file("base/x.yaml", "{metadata: {name: gone}"),
            &[("a-gone", true), ("b-gone", false)],
        );
        // A file that nobody names, in a folder of the root; and the name of another one.
        check(app("resources: [own.yaml]\n").file("app/new/x.yaml", "name: gone"), gone);
        check(app("resources: [own.yaml]\n").file("app/gone.yaml", ""), gone);
        // Another folder says nothing of this root.
        check(app("resources: [own.yaml]\n").file("other/x.yaml", "name: gone"), &[("gone", false)]);
        // Not all is known that it reads.
        check(app("resources: [own.yaml, no.yaml]\n"), gone);
        check(app("resources: [own.yaml, 'https://example.org/x']\n"), gone);
        check(app("resourses: [own.yaml]\n"), gone);
        check(app("resources: [\n"), gone);
        check(app("resources: [own.yaml]\n---\nresources: [more.yaml]\n"), gone);
        check(app("resources: [own.yaml]\nhelmCharts: [{name: x, releaseName: y}]\n"), gone);
        check(app("resources: [own.yaml]\n").file("app/s.yaml", "a: ENC[AES256_GCM,data:x]"), gone);
        check(app("resources: [own.yaml]\n").defect("app/s.yaml", FileDefect::Unreadable), gone);
        // Keys count whatever their case.
        check(app("Resources: [own.yaml]\nreplicas: []\n"), &[("gone", false)]);
        // The older name of `images` is one of its fields.
        check(app("resources: [own.yaml]\nimageTags: [{name: a, newTag: b}]\n"), &[("gone", false)]);
    }

    #[test]
    fn variables_and_charts_make_names_that_nobody_can_tell() {
        let gone =
            |files: &MemoryTree, form, variables| names(files.clone(), form, variables).can_be_named("gone");
        let files = app("resources: [own.yaml]\nnamePrefix: '${CLUSTER}-'\n");
        assert!(gone(&files, RootForm::Kustomize, VariableMode::Substituted));
        assert!(!gone(&files, RootForm::Kustomize, VariableMode::Literal));
        assert!(!gone(&app("resources: [own.yaml]\n"), RootForm::Kustomize, VariableMode::Substituted));
        let chart = MemoryTree::new().file("app/Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n");
        assert!(gone(&chart, RootForm::Helm, VariableMode::Literal));
    }
}
