//! Charts that a kustomization renders: which files a render of each reads, and what helm makes of
//! it.
//!
//! Owns kustomize's meaning of the fields of `helmCharts`. helm runs here as for any other chart;
//! kustomize gets its objects, and never runs it.

mod render;
mod times;
mod trace;
mod values;

pub(super) use render::inflate;
pub(super) use trace::{Inflation, find_chart_closures};
