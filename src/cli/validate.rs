//! `rhumb validate`.

use super::args::{Global, ValidateArgs};
use super::reading::{Extent, Manifests, verdict};
use super::settings;
use super::{CommandError, Exit, Terminal};
use crate::engine::{misused, waiting_for_themselves};
use crate::manifest::{Scopes, assemble};
use crate::render;

/// Prints what is wrong with manifests, each alone and all together; needs no cluster.
pub(super) fn carry_out(
    args: &ValidateArgs,
    global: &Global,
    terminal: &Terminal,
) -> Result<Exit, CommandError> {
    let Manifests { items, mut diagnostics, files, understood } = Manifests::read(&args.path, Extent::All)?;
    let (documents, mut scopes) = (items.len(), Scopes::builtin());
    for item in &items {
        scopes.learn(item);
    }
    let namespace = settings::default_namespace(global);
    let assembled = assemble(items, &scopes, namespace.as_str());
    diagnostics.extend(assembled.diagnostics);
    diagnostics.extend(assembled.objects.iter().flat_map(misused));
    diagnostics.extend(waiting_for_themselves(&assembled.objects));
    diagnostics.sort();
    terminal.print(&render::diagnostics(&diagnostics, terminal.palette()))?;
    let told = Some(render::tally(&diagnostics)).filter(|tally| !tally.is_empty());
    let told = told.as_deref().unwrap_or("nothing wrong");
    terminal.tell(&format!("{} in {}: {told}\n", counted(documents, "object"), counted(files, "file")));
    Ok(if understood { verdict(&diagnostics) } else { Exit::Differs })
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
