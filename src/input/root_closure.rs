//! The files that a root reads, whatever its form, and the programs that render them.

use super::chart_resolver::{ChartResolver, SuppliedCharts};
use super::chart_supply::{ChartSupply, PinPolicy};
use super::helm::{self, ChartClosure, HelmOptions};
use super::inflation::{Inflation, trace_charts};
use super::key::{FileMode, ProgramIdentity, RenderInputs};
use super::kustomize::{self, Closure, ClosureLimits, ParsedFiles};
use super::release_render::ReleaseSettings;
use super::roots::{RenderRoot, RootForm};
use super::sandbox::RenderProgram;
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
    Helm(Box<ChartClosure>, HelmOptions),
}

/// All that roots are traced with, besides their files.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceSettings<'a> {
    /// The settings of charts.
    pub(super) releases: &'a ReleaseSettings,
    /// The finder of charts of servers.
    pub(super) supply: &'a dyn ChartSupply,
    /// The meaning of a version.
    pub(super) policy: PinPolicy,
}

impl RootClosure {
    /// Finds the files that a root reads, from their text, and the charts of servers that it uses.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(super) fn trace<T: FileTree>(
        root: &RenderRoot,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        settings: TraceSettings<'_>,
    ) -> Result<Self, SourceError> {
        let mut resolver = ChartResolver::new(files, &root.folder, settings.supply, settings.policy);
        match root.form {
            RootForm::Kustomize => {
                let limits = ClosureLimits::default();
                let mut closure = kustomize::trace(files, &root.folder, limits, parsed)?;
                let charts = trace_charts(files, &mut closure, settings.releases, &mut resolver)?;
                let supplied = resolver.into_charts(&mut closure);
                Ok(Self { form: ClosureForm::Kustomize(closure.into(), charts), charts: supplied })
            }
            RootForm::Helm => {
                let options = settings.releases.options_of(&root.folder);
                let mut chart = resolver.trace_chart(&root.folder, start, &options)?;
                let supplied = resolver.into_charts(&mut chart.closure);
                Ok(Self { form: ClosureForm::Helm(chart.into(), options), charts: supplied })
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

    /// Returns the reasons for which it cannot be rendered now, and may be later.
    pub(super) fn interruptions(&self) -> &[Diagnostic] {
        &self.charts.interruptions
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
            inputs.charts.insert(format!("{chart} ({})", chart.asked()), chart.digest.bytes());
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
    inputs.arguments.push(format!("unnamed={}", chart.unnamed.is_some()));
    inputs.arguments.extend(own.options.into_iter().map(|(key, value)| format!("{key}={value}")));
    let mode = |is_executable| if is_executable { FileMode::Executable } else { FileMode::Plain };
    let files = chart.chart.closure.files.iter();
    inputs.files.extend(files.map(|(path, file)| (&**path, (mode(file.file.is_executable), file.file.blob))));
}
