//! The files of objects that the kustomizations of a source name, as they are in git.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::kustomize::{ClosureLimits, ParsedFiles, ReferenceRole, find_closure};
use super::paths;
use super::roots::{RenderRoot, RootForm};
use super::tree::FileTree;
use crate::source::{BlobId, SourceError};

/// Finds the files that the kustomizations of these roots name as resources, and those of the bases
/// and components that they include. Each comes once, with its path in the revision.
///
/// # Errors
/// Fails where the revision cannot be read.
pub(super) fn find_named_resources<T: FileTree>(
    roots: &[RenderRoot],
    files: &T,
    parsed: &mut ParsedFiles,
) -> Result<BTreeMap<Arc<str>, BlobId>, SourceError> {
    let mut found = BTreeMap::new();
    for root in roots.iter().filter(|root| root.form == RootForm::Kustomize) {
        let closure = find_closure(files, &root.folder, ClosureLimits::default(), parsed)?;
        for folder in &closure.folders {
            let references = folder.kustomization.references.iter();
            for reference in references.filter(|reference| reference.role == ReferenceRole::Resource) {
                let path = paths::join(&folder.path, &reference.target);
                if let Some(file) = path.and_then(|path| closure.files.get(path.as_str())) {
                    found.insert(file.source.clone(), file.file.blob);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::MemoryTree;

    #[test]
    fn resources_of_bases_and_components_are_among_them_and_nothing_else_is() {
        let files = MemoryTree::new()
            .file(
                "app/kustomization.yaml",
                "resources: [web.yaml, ../base, gone.yaml, 'https://example.org/a.yaml']\n\
                 components: [../part]\npatches: [{path: patch.yaml}]\n\
                 secretGenerator: [{name: made, envs: [db.env]}]\n",
            )
            .file("app/web.yaml", "a: 1\n")
            .file("app/patch.yaml", "a: 2\n")
            .file("app/db.env", "A=1\n")
            .file("app/unnamed.yaml", "a: 3\n")
            .file("base/kustomization.yaml", "resources: [base.yaml]\n")
            .file("base/base.yaml", "a: 4\n")
            .file("part/kustomization.yaml", "kind: Component\nresources: [part.sops.yaml]\n")
            .file("part/part.sops.yaml", "a: 5\n")
            .file("chart/Chart.yaml", "name: chart\n");
        let root = |folder: &str, form| RenderRoot { folder: folder.into(), form };
        let roots = [
            root("app", RootForm::Kustomize),
            root("base", RootForm::Kustomize),
            root("chart", RootForm::Helm),
        ];
        let found = find_named_resources(&roots, &files, &mut ParsedFiles::default()).unwrap();
        let paths: Vec<&str> = found.keys().map(|path| &**path).collect();
        assert_eq!(paths, ["app/web.yaml", "base/base.yaml", "part/part.sops.yaml"]);
        assert_eq!(found["base/base.yaml"], BlobId::of(b"a: 4\n"));
    }
}
