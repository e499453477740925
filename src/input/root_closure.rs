//! The files that a root reads, whatever its form, and the program that renders them.

use super::helm::{self, ChartClosure, ChartLimits, HelmOptions};
use super::key::{ProgramIdentity, RenderInputs};
use super::kustomize::{self, Closure, ClosureLimits, ParsedFiles};
use super::release_render::ReleaseSettings;
use super::roots::{RenderRoot, RootForm};
use super::sandbox::RenderProgram;
use super::tree::FileTree;
use crate::source::SourceError;

/// The files that a root reads.
#[derive(Debug)]
pub(super) enum RootClosure {
    /// A kustomization's.
    Kustomize(Closure),
    /// A chart's, and the release that it is taken for.
    Helm(Box<ChartClosure>, HelmOptions),
}

impl RootClosure {
    /// Finds the files that a root reads, from their text.
    ///
    /// # Errors
    /// Fails where the revision cannot be read.
    pub(super) fn trace<T: FileTree>(
        root: &RenderRoot,
        start: &str,
        files: &T,
        parsed: &mut ParsedFiles,
        releases: &ReleaseSettings,
    ) -> Result<Self, SourceError> {
        match root.form {
            RootForm::Kustomize => {
                let limits = ClosureLimits::default();
                kustomize::trace(files, &root.folder, limits, parsed).map(Self::Kustomize)
            }
            RootForm::Helm => {
                let options = releases.options_of(&root.folder);
                let chart = helm::trace(files, &root.folder, start, &options, ChartLimits::default())?;
                Ok(Self::Helm(chart.into(), options))
            }
        }
    }

    /// Returns the files.
    pub(super) const fn closure(&self) -> &Closure {
        match self {
            Self::Kustomize(closure) => closure,
            Self::Helm(chart, _) => &chart.closure,
        }
    }

    /// Returns the program that renders them.
    pub(super) const fn program(&self) -> RenderProgram {
        match self {
            Self::Kustomize(_) => RenderProgram::Kustomize,
            Self::Helm(..) => RenderProgram::Helm,
        }
    }

    /// Returns all that the outcome of a render depends on.
    pub(super) fn inputs<'a>(&'a self, program: &'a ProgramIdentity) -> RenderInputs<'a> {
        match self {
            Self::Kustomize(closure) => RenderInputs::of(program, closure),
            Self::Helm(chart, options) => helm::render_inputs(program, chart, options),
        }
    }
}
