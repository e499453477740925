//! Renders of charts: the release that each is taken for, and helm's run over its files.

use super::helm::{
    ChartClosure, ChartError, ChartHost, GeneratedPolicy, HelmOptions, ValuesSource, render_chart,
};
use super::kustomize::RenderTree;
use super::render_host::RenderHost;
use super::render_place::RenderPlace;
use super::root_render::{RenderError, RenderedObject, log_notices, rendered_objects};
use super::sandbox::InstalledProgram;
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

/// Writes the files of a chart for helm.
///
/// # Errors
/// Fails where they cannot be read or written.
pub(super) fn write_chart<T: FileTree>(
    host: &RenderHost,
    chart: &ChartClosure,
    files: &T,
) -> Result<RenderPlace, RenderError> {
    RenderPlace::write(host, "helm", &RenderTree::plain(&chart.closure), files)
}

/// Returns a run of helm in a place.
pub(super) fn chart_host<'a>(
    place: &'a RenderPlace,
    host: &'a RenderHost,
    helm: &'a InstalledProgram,
) -> ChartHost<'a> {
    ChartHost { sandbox: host.sandbox(), policy: &place.policy, program: &helm.path, tree: &place.tree }
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
    let place = write_chart(host, chart, files)?;
    let rendered = render_chart(chart_host(&place, host, program), chart, options, files).await?;
    log_notices(&rendered.notices);
    Ok(rendered_objects(rendered.objects))
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
