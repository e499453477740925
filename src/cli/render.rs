//! `rhumb render`.

use serde_json::Value;

use super::args::{RenderArgs, RenderOutput};
use super::reading::{Manifests, verdict};
use super::{CommandError, Exit, Terminal};
use crate::render;

/// Prints manifests as Kubernetes reads them; needs no cluster.
pub(super) fn carry_out(args: &RenderArgs, terminal: &Terminal) -> Result<Exit, CommandError> {
    let manifests = Manifests::read(&args.path)?;
    let bodies: Vec<&Value> = manifests.items.iter().map(|item| &item.body).collect();
    match args.output {
        RenderOutput::Json => terminal.print(&render::reading_json(&bodies, &manifests.diagnostics))?,
        RenderOutput::Yaml => {
            let documents: Vec<String> = bodies.into_iter().map(render::yaml).collect();
            terminal.print(&documents.join("---\n"))?;
            terminal.tell(&render::diagnostics(&manifests.diagnostics, terminal.error_palette()));
        }
    }
    Ok(if manifests.understood { verdict(&manifests.diagnostics) } else { Exit::Differs })
}
