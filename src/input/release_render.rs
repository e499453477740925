//! Renders of charts: the release that each is taken for, and helm's run over its files.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::helm::{
    ChartClosure, ChartError, ChartHost, GeneratedPolicy, HelmOptions, ValuesSource, render_chart,
};
use super::kustomize::RenderTree;
use super::render_host::RenderHost;
use super::root_render::{ObjectNames, RenderError, RenderedObject, write_tree};
use super::sandbox::{InstalledProgram, SandboxPolicy};
use super::tree::FileTree;

/// The longest name of a release: helm takes no longer one.
const MAX_RELEASE_NAME: usize = 53;

/// The settings of the charts of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleaseSettings {
    /// The name of the release; none for that of each chart's folder.
    pub release: Option<String>,
    /// The namespace.
    pub namespace: String,
    /// Files of values.
    pub values: Vec<String>,
    /// The version of the cluster; none for that which helm was built for.
    pub kube_version: Option<String>,
    /// The versions and kinds of the cluster.
    pub api_versions: Vec<String>,
    /// The treatment of generated values.
    pub generated: GeneratedPolicy,
}

impl ReleaseSettings {
    /// Returns the options of the chart in a folder.
    pub(super) fn options_of(&self, folder: &str) -> HelmOptions {
        HelmOptions {
            release: self.release.clone().unwrap_or_else(|| release_name(folder)),
            namespace: self.namespace.clone(),
            values: self.values.iter().cloned().map(ValuesSource::File).collect(),
            kube_version: self.kube_version.clone(),
            api_versions: self.api_versions.clone(),
            generated: self.generated,
            ..HelmOptions::default()
        }
    }
}

/// Returns the name of a release by its folder, in the letters that such a name may have.
pub(super) fn release_name(folder: &str) -> String {
    let name = folder.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let fits = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().map(fits).take(MAX_RELEASE_NAME).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "release".to_owned() } else { name.to_owned() }
}

/// The folders of one run of helm, which are gone with it.
pub(super) struct ChartPlace {
    _folder: TempDir,
    tree: PathBuf,
    policy: SandboxPolicy,
}

impl ChartPlace {
    /// Writes the files of a chart.
    ///
    /// # Errors
    /// Fails where they cannot be read or written.
    pub(super) fn write<T: FileTree>(
        host: &RenderHost,
        chart: &ChartClosure,
        files: &T,
    ) -> Result<Self, RenderError> {
        let unwritten = |error| RenderError::Tree { program: "helm", error };
        let folder = tempfile::Builder::new().prefix("rhumb-render-").tempdir_in(host.folder());
        let folder = folder.map_err(unwritten)?;
        let (tree, private) = (folder.path().join("tree"), folder.path().join("private"));
        fs::create_dir(&private).map_err(unwritten)?;
        write_tree("helm", &tree, &RenderTree::plain(&chart.closure), files)?;
        let policy = host.policy(tree.clone(), private);
        Ok(Self { _folder: folder, tree, policy })
    }

    /// Returns the place for a run.
    pub(super) fn host<'a>(&'a self, host: &'a RenderHost, helm: &'a InstalledProgram) -> ChartHost<'a> {
        ChartHost { sandbox: host.sandbox(), policy: &self.policy, program: &helm.path, tree: &self.tree }
    }
}

impl From<ChartError> for RenderError {
    fn from(error: ChartError) -> Self {
        match error {
            ChartError::Source(error) => Self::Source(error),
            ChartError::Values { error } => Self::Tree { program: "helm", error },
            ChartError::Sandbox(error) => Self::Sandbox(error),
            ChartError::Refused { findings } => Self::Refused(findings),
        }
    }
}

/// Renders a chart from the files of its closure.
///
/// # Errors
/// Fails where helm does, where it meets a wall, and where its output cannot be read.
pub(super) async fn render_release<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    chart: &ChartClosure,
    options: &HelmOptions,
    files: &T,
) -> Result<Vec<RenderedObject>, RenderError> {
    let place = ChartPlace::write(host, chart, files)?;
    let rendered = render_chart(place.host(host, program), chart, options, files).await?;
    for notice in &rendered.notices {
        tracing::info!(place = %notice.origin, "{}", notice.message);
    }
    let mut names = ObjectNames::default();
    let objects = rendered.objects.into_iter().map(|object| RenderedObject {
        name: names.name_of(&object.body),
        body: object.body,
        origin: object.origin,
    });
    Ok(objects.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_called_like_its_folder() {
        for (folder, expected) in
            [("apps/web", "web"), ("", "release"), ("charts/My_App.v2", "my-app-v2"), ("-/--", "release")]
        {
            assert_eq!(release_name(folder), expected, "{folder}");
        }
    }
}
