//! Describes the parts of a source that are rendered before they are read, and the programs for it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DnsLabel, Environment};

/// `spec.render`: how a source becomes objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RenderMode {
    /// A folder with a kustomization is one root, one with a chart another; all other folders are
    /// read as they are, and their subfolders likewise.
    #[default]
    Auto,
    /// Nothing is rendered.
    None,
    /// The source's folder is one kustomize root.
    Kustomize,
    /// The source's folder is one chart.
    Helm,
}

impl RenderMode {
    /// All modes, as the documents list them.
    pub(crate) const ALL: [Self; 4] = [Self::Auto, Self::None, Self::Kustomize, Self::Helm];

    /// Returns the word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Kustomize => "kustomize",
            Self::Helm => "helm",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for RenderMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for RenderMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.word() == text);
        known.ok_or_else(|| format!("{text}: must be auto, none, kustomize or helm"))
    }
}

/// The parts of the sandbox that a program that renders must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// All of them: files, network, processes, memory and time.
    #[default]
    Full,
    /// All but the rules for files, for kernels and containers without Landlock.
    Seccomp,
}

/// The files of the programs that render.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub struct ProgramSpec {
    /// The file of `kustomize`; none for the first in `PATH`.
    pub kustomize: Option<PathBuf>,
    /// The file of `helm`; none for the first in `PATH`.
    pub helm: Option<PathBuf>,
}

impl ProgramSpec {
    pub(super) fn resolve(self, environment: &Environment) -> Self {
        let resolve = |file: PathBuf| environment.resolve(&file);
        Self { kustomize: self.kustomize.map(resolve), helm: self.helm.map(resolve) }
    }
}

/// The treatment of values that a chart makes up anew at each render.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GeneratedValues {
    /// The chart is not rendered.
    #[default]
    Refuse,
    /// They are made once, and left alone from then on.
    Once,
}

/// The most bytes of inline values, as JSON: a file of values seldom has a tenth of it.
const MAX_INLINE_VALUES_BYTES: usize = 256 << 10;

/// Values of charts that are in the configuration itself. Shows none, as some may be secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct InlineValues(Map<String, Value>);

impl InlineValues {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns them as JSON; none where there are none.
    pub(crate) fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| Value::Object(self.0.clone()).to_string())
    }
}

impl fmt::Debug for InlineValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InlineValues(..)")
    }
}

impl<'de> Deserialize<'de> for InlineValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Self(Map::deserialize(deserializer)?);
        match values.text() {
            Some(text) if text.len() > MAX_INLINE_VALUES_BYTES => Err(de::Error::custom(format_args!(
                "the values have more than {MAX_INLINE_VALUES_BYTES} bytes"
            ))),
            _ => Ok(values),
        }
    }
}

/// The settings of the charts of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields, expecting = "a mapping")]
pub struct HelmSpec {
    /// The name of the release; none for that of each chart's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The namespace of the release; none for that of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<DnsLabel>,
    /// Files of values, in the chart's folder or else in the source's; later ones win.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Values that win over those of all files.
    #[serde(skip_serializing_if = "InlineValues::is_empty")]
    pub values_inline: InlineValues,
    /// The version of Kubernetes that charts are given; none for that of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_version: Option<String>,
    /// The versions and kinds that charts are given besides those that helm knows; empty for those
    /// of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_versions: Vec<String>,
    /// The treatment of generated values.
    pub generated: GeneratedValues,
    /// Leaves the schemas of charts for their values unread.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_schema_validation: bool,
}

impl HelmSpec {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The programs that render the sources, and their sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RendererConfig {
    /// The programs.
    pub programs: ProgramSpec,
    /// The sandbox.
    pub sandbox: SandboxMode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_as_it_is_written() {
        for mode in RenderMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("Auto".parse::<RenderMode>().is_err());
    }

    #[test]
    fn inline_values_are_bounded_and_not_shown() {
        let values = |bytes: usize| {
            let helm_spec = serde_json::json!({ "valuesInline": { "a": "x".repeat(bytes) } });
            serde_json::from_value::<HelmSpec>(helm_spec)
        };
        let most = MAX_INLINE_VALUES_BYTES - r#"{"a":""}"#.len();
        let spec = values(most).unwrap();
        assert_eq!(spec.values_inline.text().map(|text| text.len()), Some(MAX_INLINE_VALUES_BYTES));
        assert!(!format!("{spec:?}").contains('x'));
        let fault = values(most + 1).unwrap_err().to_string();
        assert_eq!(fault, "the values have more than 262144 bytes");
        let empty = serde_json::from_str::<HelmSpec>(r#"{"valuesInline": {}}"#).unwrap();
        assert!(empty.is_default() && empty.values_inline.text().is_none());
        assert!(serde_json::from_str::<HelmSpec>(r#"{"valuesInline": ["a"]}"#).is_err());
    }
}
