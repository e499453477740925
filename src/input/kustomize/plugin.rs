//! The configurations of generators, transformers and validators: what those that kustomize has
//! itself read, and which are programs.

use std::sync::Arc;

use crate::manifest::{PlacedValue, TextPosition, read_documents};
use crate::object::Diagnostic;

use super::file::{
    FileReference, FileReferences, ReferenceRole, UnsupportedFeature, items, placed_in, read_faults,
};

/// The version that names a plugin of kustomize itself.
const BUILTIN_VERSION: &str = "builtin";

/// The plugins of kustomize itself.
const BUILTIN_KINDS: [&str; 18] = [
    "AnnotationsTransformer",
    "ConfigMapGenerator",
    "HashTransformer",
    "HelmChartInflationGenerator",
    "IAMPolicyGenerator",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "SecretGenerator",
    "SuffixTransformer",
    "ValueAddTransformer",
];

/// A file of plugin configurations, by what they refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PluginConfig {
    pub(super) references: Vec<FileReference>,
    pub(super) unsupported: Vec<(UnsupportedFeature, TextPosition)>,
    faults: Vec<Diagnostic>,
}

impl PluginConfig {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let file = read_documents(&Arc::from(""), bytes);
        let mut out = FileReferences::default();
        for document in &file.documents {
            add(&mut out, document, None);
        }
        let faults = read_faults(file);
        Self { references: out.references, unsupported: out.unsupported, faults }
    }

    pub(super) fn faults(&self, file: &Arc<str>) -> impl Iterator<Item = Diagnostic> {
        placed_in(&self.faults, file)
    }

    /// Returns about how many bytes of memory it takes, where its text has so many.
    pub(super) fn memory_size(&self, text_bytes: usize) -> usize {
        let items = self.references.len() * size_of::<FileReference>()
            + self.unsupported.len() * size_of::<(UnsupportedFeature, TextPosition)>()
            + self.faults.len() * size_of::<Diagnostic>();
        size_of::<Self>() + items + text_bytes
    }
}

/// Adds what one configuration reads, or that it is a program. The place of a configuration that is
/// in a text is that of the text.
pub(super) fn add(out: &mut FileReferences, config: &PlacedValue, within: Option<TextPosition>) {
    let text = |name| value_of_key(config, name).and_then(PlacedValue::text).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind.ends_with("List") && value_of_key(config, "items").is_some() {
        return items(config, "items").for_each(|item| add(out, item, within));
    }
    let before = (out.references.len(), out.unsupported.len());
    if version != BUILTIN_VERSION || !BUILTIN_KINDS.contains(&kind) {
        let name = if version.is_empty() { kind.to_owned() } else { format!("{kind} ({version})") };
        out.unsupported.push((UnsupportedFeature::Plugin(name), config.position));
    } else {
        builtin(out, kind, config);
    }
    if let Some(position) = within {
        out.references.iter_mut().skip(before.0).for_each(|reference| reference.position = position);
        out.unsupported.iter_mut().skip(before.1).for_each(|(_, at)| *at = position);
    }
}

fn builtin(out: &mut FileReferences, kind: &str, config: &PlacedValue) {
    match kind {
        "ConfigMapGenerator" => out.generator(config, "ConfigMapGenerator"),
        "SecretGenerator" => out.generator(config, "SecretGenerator"),
        "PatchTransformer" => out.text(config, "path", "PatchTransformer", ReferenceRole::Patch),
        "PatchJson6902Transformer" => {
            out.text(config, "path", "PatchJson6902Transformer", ReferenceRole::Patch);
        }
        "PatchStrategicMergeTransformer" => {
            items(config, "paths").for_each(|patch| out.patch_file(patch, "PatchStrategicMergeTransformer"));
        }
        "ReplacementTransformer" => {
            for replacement in items(config, "replacements") {
                out.text(replacement, "path", "ReplacementTransformer", ReferenceRole::File);
            }
        }
        "HelmChartInflationGenerator" => {
            out.unsupported.push((UnsupportedFeature::HelmChart, config.position));
        }
        "ValueAddTransformer" => {
            out.text(config, "targetFilePath", "ValueAddTransformer", ReferenceRole::File);
        }
        // The others have all that they need in their own text.
        _ => {}
    }
}

/// Returns the value under a key, in its one spelling: these are objects, not settings.
fn value_of_key<'a>(value: &'a PlacedValue, name: &str) -> Option<&'a PlacedValue> {
    value.entries().iter().find(|entry| entry.key == name).map(|entry| &entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugins_of_kustomize_are_in_order() {
        assert!(BUILTIN_KINDS.is_sorted());
    }

    #[test]
    fn a_configuration_names_its_files_or_is_refused() {
        let check = |text: &str, references: &[&str], unsupported: usize| {
            let config = PluginConfig::read(text.as_bytes());
            let targets: Vec<_> =
                config.references.iter().map(|r| format!("{}:{}", r.target, r.position.line)).collect();
            assert_eq!(targets, references, "{text}");
            assert_eq!(config.unsupported.len(), unsupported, "{text}");
        };
        let builtin = "apiVersion: builtin\nmetadata: {name: x}\nkind: ";
        check(
            &format!("{builtin}ConfigMapGenerator\nfiles: [a.txt, b=c.txt]\nenv: d.env\n"),
            &["a.txt:4", "c.txt:4", "d.env:5"],
            0,
        );
        check(&format!("{builtin}PatchTransformer\npath: p.yaml\n"), &["p.yaml:4"], 0);
        check(
            &format!("{builtin}PatchStrategicMergeTransformer\npaths:\n- p.yaml\n- 'kind: X'\n"),
            &["p.yaml:5"],
            0,
        );
        check(
            &format!("{builtin}ReplacementTransformer\nreplacements: [{{path: r.yaml}}]\n"),
            &["r.yaml:4"],
            0,
        );
        check(&format!("{builtin}ValueAddTransformer\ntargetFilePath: t.yaml\n"), &["t.yaml:4"], 0);
        check(&format!("{builtin}ValueAddTransformer\ntargets: []\n"), &[], 0);
        check(&format!("{builtin}HelmChartInflationGenerator\n"), &[], 1);
        check(&format!("{builtin}NamespaceTransformer\n---\n{builtin}Unknown\n"), &[], 1);
        check("apiVersion: example.com/v1\nkind: Exec\n", &[], 1);
        check("kind: XList\napiVersion: v1\nitems:\n- {kind: Exec, apiVersion: a/b}\n", &[], 1);
    }
}
