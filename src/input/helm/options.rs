//! The settings of a release, besides its chart.

use std::sync::Arc;

use crate::object::Diagnostic;

/// The longest name of a release: helm takes no longer one.
pub(crate) const MAX_RELEASE_NAME_CHARS: usize = 53;
/// The longest name of a namespace.
const MAX_NAMESPACE_NAME_CHARS: usize = 63;

/// Versions and kinds in one argument: the system bounds the bytes of each, and a cluster may have
/// thousands.
const MAX_ARGUMENT_VERSIONS: usize = 500;

/// The treatment of fields that differ from render to render.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GeneratedPolicy {
    /// The chart is not rendered.
    #[default]
    Refuse,
    /// They are made once, and left alone from then on.
    Once,
}

impl GeneratedPolicy {
    /// All of them, as the documents list them.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Once];

    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Once => "once",
        }
    }
}

impl std::str::FromStr for GeneratedPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|policy| policy.word() == text);
        known.ok_or_else(|| format!("{text}: must be refuse or once"))
    }
}

/// The use of the schemas that charts bring for their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaUse {
    /// Values must meet them.
    #[default]
    Validate,
    /// They are not read.
    Skip,
}

/// The namespace of objects that name none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnnamedNamespace {
    /// That of the source: they stay as they are.
    #[default]
    Source,
    /// That of the release.
    Release,
}

impl UnnamedNamespace {
    /// Returns the word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Release => "release",
        }
    }
}

/// Values for a chart, besides its own. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValuesSource {
    /// A file, by its path in the chart's folder or else in the source's.
    File(String),
    /// YAML.
    Inline(String),
}

/// The parts of a chart that helm prints besides its templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrintedParts {
    /// The definitions in `crds/`.
    pub definitions: bool,
    /// The tests among the hooks. Without them helm also leaves out a test that runs at an
    /// installation.
    pub tests: bool,
    /// The hooks.
    pub hooks: bool,
}

impl Default for PrintedParts {
    fn default() -> Self {
        Self { definitions: true, tests: true, hooks: true }
    }
}

/// A release: all that its render depends on, besides the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelmOptions {
    /// The name.
    pub release: String,
    /// The template that makes the name; none where the name is given.
    pub name_template: Option<String>,
    /// The namespace.
    pub namespace: String,
    /// The namespace of objects that name none.
    pub objects: UnnamedNamespace,
    /// The values.
    pub values: Vec<ValuesSource>,
    /// The version of the cluster, for example `1.34.2`; none for that which helm was built for.
    pub kube_version: Option<String>,
    /// The versions and kinds of the cluster, for example `apps/v1` and `apps/v1/Deployment`.
    pub api_versions: Arc<[String]>,
    /// The treatment of generated values.
    pub generated: GeneratedPolicy,
    /// The use of schemas.
    pub schemas: SchemaUse,
    /// The parts that are printed.
    pub printed: PrintedParts,
}

impl HelmOptions {
    /// Returns what helm would not take, as findings about the root.
    pub(super) fn faults(&self, folder: &str) -> Vec<Diagnostic> {
        let shown_folder = if folder.is_empty() { "." } else { folder };
        let refuse = |code, message: String, hint: &str| {
            Diagnostic::file_error(shown_folder, code, message).hint(hint)
        };
        let mut faults = Vec::new();
        if self.name_template.is_none() && !is_name(&self.release, MAX_RELEASE_NAME_CHARS) {
            let message = format!("{:?} cannot be the name of a release", self.release);
            let hint = "name it by up to 53 lower-case letters, digits, `-` and `.`";
            faults.push(refuse("release-name", message, hint));
        }
        if !is_name(&self.namespace, MAX_NAMESPACE_NAME_CHARS) || self.namespace.contains('.') {
            let message = format!("{:?} cannot be the name of a namespace", self.namespace);
            faults.push(refuse(
                "namespace",
                message,
                "name it by up to 63 lower-case letters, digits and `-`",
            ));
        }
        faults
    }

    /// Returns the arguments without those that name places of files.
    ///
    /// Each option and its value are one argument, so that no value is taken for an option.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = match &self.name_template {
            Some(template) => vec!["template".into(), ".".into(), format!("--name-template={template}")],
            None => ["template", &self.release, "."].map(str::to_owned).into(),
        };
        arguments.push(format!("--namespace={}", self.namespace));
        let PrintedParts { definitions, tests, hooks } = self.printed;
        arguments.extend(definitions.then(|| "--include-crds".to_owned()));
        arguments.extend((!tests).then(|| "--skip-tests".to_owned()));
        arguments.extend((self.schemas == SchemaUse::Skip).then(|| "--skip-schema-validation".to_owned()));
        arguments.extend((!hooks).then(|| "--no-hooks".to_owned()));
        arguments.extend(self.kube_version.iter().map(|version| format!("--kube-version={version}")));
        // helm takes the text of this option apart at commas and quotes.
        let versions = self.api_versions.iter().filter(|version| !version.contains([',', '"', '\n', '\r']));
        let versions: Vec<&str> = versions.map(String::as_str).collect();
        let parts = versions.chunks(MAX_ARGUMENT_VERSIONS);
        arguments.extend(parts.map(|part| format!("--api-versions={}", part.join(","))));
        arguments
    }
}

/// Returns whether a text is a name of names between dots, as DNS has them.
fn is_name(text: &str, most: usize) -> bool {
    let is_label = |label: &str| {
        let is_end =
            |letter: Option<char>| letter.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        is_end(label.chars().next()) && is_end(label.chars().last()) && label.chars().all(is_inner)
    };
    text.len() <= most && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(release: &str, namespace: &str) -> HelmOptions {
        HelmOptions { release: release.into(), namespace: namespace.into(), ..HelmOptions::default() }
    }

    #[test]
    fn a_name_is_no_option() {
        let check = |release: &str, namespace: &str, expected: &[&str]| {
            let codes: Vec<_> =
                options(release, namespace).faults("").iter().map(|fault| fault.code).collect();
            assert_eq!(codes, expected, "{release} {namespace}");
        };
        check("web", "prod", &[]);
        check("web.v-1", "prod-1", &[]);
        check("--post-renderer=/bin/sh", "prod", &["release-name"]);
        check("Web", "--kubeconfig", &["release-name", "namespace"]);
        check("", "", &["release-name", "namespace"]);
        check("web", "a.b", &["namespace"]);
        check(&"w".repeat(54), "prod", &["release-name"]);
        check(&"w".repeat(53), "prod", &[]);
    }

    #[test]
    fn the_arguments_are_fixed() {
        let options = HelmOptions {
            kube_version: Some("1.34.2".into()),
            api_versions: ["apps/v1".into(), "a,b".into(), "apps/v1/Deployment".into()].into(),
            ..options("web", "prod")
        };
        assert_eq!(
            options.arguments(),
            [
                "template",
                "web",
                ".",
                "--namespace=prod",
                "--include-crds",
                "--kube-version=1.34.2",
                "--api-versions=apps/v1,apps/v1/Deployment",
            ]
        );
        assert_eq!(HelmOptions::default().arguments().len(), 5);
        let printed = PrintedParts { definitions: false, tests: false, hooks: false };
        let arguments = HelmOptions { printed, ..HelmOptions::default() }.arguments();
        assert_eq!(arguments[4..], ["--skip-tests", "--no-hooks"]);
        let many = HelmOptions {
            api_versions: vec!["example.com/v1/Order".into(); 1_200].into(),
            ..HelmOptions::default()
        };
        let arguments = many.arguments();
        assert_eq!(arguments.len(), 5 + 3);
        assert!(arguments.iter().all(|argument| argument.len() < 64 << 10));
    }

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        for policy in GeneratedPolicy::ALL {
            assert_eq!(policy.word().parse(), Ok(policy));
        }
        assert!("Once".parse::<GeneratedPolicy>().is_err());
    }
}
