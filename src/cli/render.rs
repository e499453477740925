//! `rhumb render`.

use std::path::Path;

use serde_json::Value;

use super::args::{GlobalArgs, RenderArgs, RenderFormat};
use super::configured::SelectedSources;
use super::manifest_set::{ChartVersions, CheckedObjects, ManifestSet, ReadScope, exit_status_of};
use super::rendering::SourceRendering;
use super::{CommandError, ExitStatus, Terminal, diff, source_contents};
use crate::change::write_yaml;
use crate::config::{FetchConfig, RendererConfig, SourceConfig};
use crate::fields::mask_value;
use crate::input::has_sealed_values;
use crate::object::{Diagnostic, GroupKind};
use crate::render;

/// Prints manifests as Kubernetes reads them; needs no cluster.
pub(super) fn carry_out(
    args: &RenderArgs,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    let rendered = match &args.config {
        Some(file) => {
            let configured = SelectedSources::read(global, file, terminal)?;
            let source = configured.single_source("one source is rendered at a time")?;
            RenderedManifests::of_source(source, args.path.as_deref())?
        }
        None => RenderedManifests::of_path(args.path.as_deref().unwrap_or(Path::new("")))?,
    };
    print(&rendered, args, terminal)
}

/// The objects that are printed, and the notes about them.
struct RenderedManifests {
    objects: Vec<(GroupKind, Value)>,
    diagnostics: Vec<Diagnostic>,
    versions: ChartVersions,
    understood: bool,
}

impl RenderedManifests {
    /// Reads manifests as they are written.
    fn of_path(path: &Path) -> Result<Self, CommandError> {
        let rendering = SourceRendering::automatic(path, &RendererConfig::default(), &FetchConfig::default());
        let ManifestSet { items, diagnostics, versions, understood, .. } =
            ManifestSet::read(path, ReadScope::Shown, &rendering)?;
        // Of what is held back, as its encrypted values cannot be opened, nothing would be applied.
        let applied = items.into_iter().filter(|item| item.valid || !has_sealed_values(&item.body));
        let objects = applied.map(|item| (item.gvk.group_kind(), item.body)).collect();
        Ok(Self { objects, diagnostics, versions, understood })
    }

    /// Reads the objects that a source would apply, or would if it had these files. Each has the
    /// namespace that it gets.
    fn of_source(source: &SourceConfig, path: Option<&Path>) -> Result<Self, CommandError> {
        let manifests = match path {
            Some(path) => ManifestSet::read(path, ReadScope::All, &SourceRendering::of(source))?,
            None => source_contents::read_manifests(source)?,
        };
        let (versions, understood, scopes) = (manifests.versions, manifests.understood, manifests.scopes());
        let CheckedObjects { assembled, diagnostics, disallowed } =
            manifests.into_objects(&scopes, &source.namespace, &source.allow);
        let allowed = assembled.objects.iter().filter(|object| !disallowed.contains_key(&object.id));
        let objects = allowed.map(|object| (object.id.group_kind(), Value::clone(&object.body))).collect();
        Ok(Self { objects, diagnostics, versions, understood })
    }
}

fn print(
    manifests: &RenderedManifests,
    args: &RenderArgs,
    terminal: &Terminal,
) -> Result<ExitStatus, CommandError> {
    diff::print_notes(&manifests.versions.note(), terminal);
    let shown = |(kind, body): &(GroupKind, Value)| {
        if args.show_secrets { body.clone() } else { mask_value(kind, body) }
    };
    let shown: Vec<Value> = manifests.objects.iter().map(shown).collect();
    let bodies: Vec<&Value> = shown.iter().collect();
    match args.output {
        RenderFormat::Json => {
            terminal.write_output(&render::manifests_json(&bodies, &manifests.diagnostics))?;
        }
        RenderFormat::Yaml => {
            let documents: Vec<String> = bodies.into_iter().map(write_yaml).collect();
            terminal.write_output(&documents.join("---\n"))?;
            terminal.report(&render::diagnostics(&manifests.diagnostics, terminal.error_palette()));
        }
    }
    Ok(if manifests.understood { exit_status_of(&manifests.diagnostics) } else { ExitStatus::Differs })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::manifest;
    use crate::object::canonical_json;

    fn any_tree() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[ -~\\n\\t]{0,12}",
            any::<String>(),
            "[0-9eE.+_:x-]{1,8}",
            "(on|Off|YES|no|y|null|~|true|[.]inf|[.]nan|<<|=|---|[.]{3}|#|- |[?] |a: )[a-z]{0,1}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_rendered_reads_as_it_was(tree in any_tree()) {
            let object = json!({"apiVersion": "example.org/v1", "kind": "Test", "metadata": {"name": "a"}, "spec": tree});
            let written = write_yaml(&object);
            let reading = manifest::read(&"a.yaml".into(), written.as_bytes());
            prop_assert!(reading.diagnostics.is_empty(), "{:?}\n{}", reading.diagnostics, written);
            prop_assert_eq!(canonical_json(&reading.items[0].body), canonical_json(&object), "{}", written);
        }
    }
}
