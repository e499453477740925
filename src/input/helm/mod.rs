//! Charts in the revision: which files a render of one reads, what helm is asked, and what becomes
//! of its answer.
//!
//! [`find_closure()`] finds the closure of a chart, [`render_inputs`] makes its key, and
//! [`render_chart`] runs helm over the files of the closure.
//!
//! **Invariant:** follows helm's own reading of a folder. A chart that would have to be fetched,
//! and a file outside the revision, are refused by name before any program starts. The objects of
//! a chart are what `helm template` prints; no release is stored, and no cluster is asked.

mod archive;
mod chart;
mod closure;
mod command;
mod definitions;
mod error_finding;
mod generated;
mod hook_events;
mod hook_names;
mod hook_order;
mod hooks;
mod ignore;
mod namespaces;
mod options;
mod output;
mod refusal;
mod render;
mod schema;
mod shifted_time;
mod trace;

pub(crate) use archive::{PackError, pack_fetched};
pub(crate) use chart::{CHART_FILE, scalar_text};
pub use chart::{ChartDependency, ChartKind, ChartMetadata};
pub(crate) use closure::ChartUser;
pub use closure::{ChartClosure, ChartLimits, ChartValues};
pub use command::ChartFolders;
pub(crate) use command::render_inputs;
pub(crate) use generated::has_changing_function;
pub(crate) use hooks::translate as translate_hooks;
pub(crate) use options::MAX_RELEASE_NAME_CHARS;
pub use options::{GeneratedPolicy, HelmOptions, PrintedParts, SchemaUse, UnnamedNamespace, ValuesSource};
pub use output::ChartObject;
pub(crate) use refusal::encrypted_values;
pub(crate) use render::print_chart;
pub use render::{ChartError, ChartRender, ChartRenderHost, render_chart, template_chart};
pub use trace::find_closure;
pub(crate) use trace::{PARTS_FOLDER, find_present_closure, is_address, is_library};

#[cfg(test)]
mod hook_tests;
#[cfg(test)]
mod tests;
