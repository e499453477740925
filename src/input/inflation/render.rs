//! One render of one chart of a kustomization.

use crate::input::helm::print_chart;
use crate::input::kustomize::{InflatedChart, InflatedObject};
use crate::input::opened_inputs::OpenedInputs;
use crate::input::origin::CHART_SEPARATOR;
use crate::input::release_render::{chart_host, write_chart};
use crate::input::render_host::RenderHost;
use crate::input::root_render::RenderError;
use crate::input::sandbox::InstalledProgram;
use crate::input::tree::FileTree;
use crate::object::{Diagnostic, ManifestOrigin};
use crate::source::DUPLICATE_KEY;

use super::trace::Inflation;

/// Renders a chart of a kustomization as helm does.
///
/// # Errors
/// Fails where helm does, where the sandbox stops it, and where its output cannot be read.
pub(in crate::input) async fn inflate<T: FileTree>(
    host: &RenderHost,
    helm: &InstalledProgram,
    inflation: &Inflation,
    files: &T,
) -> Result<InflatedChart, RenderError> {
    let Inflation { file, chart, options } = inflation;
    let render_workspace = write_chart(host, chart, files, &OpenedInputs::default())?;
    let printed = print_chart(chart_host(&render_workspace, host, helm), chart, options, files).await?;
    // Nor does `kustomize build --enable-helm` take such a chart.
    let twice = printed.notices.iter().filter(|notice| notice.code == DUPLICATE_KEY);
    let twice: Vec<Diagnostic> = twice
        .map(|notice| {
            Diagnostic::error(notice.origin.clone(), DUPLICATE_KEY, notice.message.clone())
                .hint("kustomize takes no key twice: render the chart by itself, or mend its template")
        })
        .collect();
    if !twice.is_empty() {
        return Err(RenderError::Refused(twice));
    }
    let objects = printed.objects.iter().map(|object| {
        let first = object.origin.places.first().cloned();
        let origin = first.unwrap_or_else(|| ManifestOrigin::of_file(chart.closure.root.clone()));
        InflatedObject::of(&object.body, origin)
    });
    Ok(InflatedChart {
        file: file.clone(),
        renderer: format!("kustomize{CHART_SEPARATOR}{}", chart.chart).into(),
        namespace: options.namespace.as_str().into(),
        objects: objects.collect(),
        text: printed.text.into(),
    })
}
