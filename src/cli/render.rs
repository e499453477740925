//! `rhumb render`.

use serde_json::Value;

use super::args::{RenderArgs, RenderOutput};
use super::reading::{ManifestSet, ReadScope, exit_status_of};
use super::rendering::SourceRendering;
use super::{CommandError, ExitStatus, Terminal, diff};
use crate::change::write_yaml;
use crate::config::{FetchConfig, RendererConfig};
use crate::fields::mask_value;
use crate::manifest::ManifestItem;
use crate::render;

/// Prints manifests as Kubernetes reads them; needs no cluster.
pub(super) fn carry_out(args: &RenderArgs, terminal: &Terminal) -> Result<ExitStatus, CommandError> {
    let rendering = SourceRendering::automatic(&RendererConfig::default(), &FetchConfig::default());
    let manifests = ManifestSet::read(&args.path, ReadScope::Shown, &rendering)?;
    diff::print_notes(&manifests.versions.note(), terminal);
    let shown = |item: &ManifestItem| {
        if args.show_secrets { item.body.clone() } else { mask_value(&item.gvk.group_kind(), &item.body) }
    };
    let shown: Vec<Value> = manifests.items.iter().map(shown).collect();
    let bodies: Vec<&Value> = shown.iter().collect();
    match args.output {
        RenderOutput::Json => {
            terminal.write_output(&render::manifests_json(&bodies, &manifests.diagnostics))?;
        }
        RenderOutput::Yaml => {
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
