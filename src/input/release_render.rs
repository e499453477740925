//! Renders of charts: the release that each is taken for, and helm's run over its files.

use std::sync::Arc;

use super::helm::{
    ChartClosure, ChartError, ChartRenderHost, GeneratedPolicy, HelmOptions, MAX_RELEASE_NAME_CHARS,
    PackError, SchemaUse, UnnamedNamespace, ValuesSource, pack_fetched, render_chart,
};
use super::kustomize::RenderTree;
use super::opened_inputs::OpenedInputs;
use super::render_host::RenderHost;
use super::render_workspace::RenderWorkspace;
use super::root_render::{RenderError, RenderOutput, log_notices, rendered_objects};
use super::sandbox::InstalledProgram;
use super::tree::FileTree;
use crate::object::ManifestOrigin;
use crate::source::{ClusterFacts, KnownClusterFacts};

/// The version of Kubernetes that charts are given where no cluster is asked and none is
/// configured.
pub(crate) const ASSUMED_VERSION: &str = "v1.36.0";

/// The settings of the Helm releases of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HelmReleaseSettings {
    /// The name of the release; none for that of each chart's folder.
    pub release: Option<String>,
    /// The name of the folder that the source is of, which its files do not contain. A chart at its
    /// top is the same release wherever the folder is read.
    pub top: String,
    /// The namespace.
    pub namespace: String,
    /// The namespace of objects that name none.
    pub objects: UnnamedNamespace,
    /// Files of values.
    pub values: Vec<String>,
    /// Values that win over those of the files, as YAML.
    pub inline: Option<String>,
    /// The version of Kubernetes; none for the cluster's.
    pub kube_version: Option<String>,
    /// The versions and kinds of the API; empty for the cluster's.
    pub api_versions: Arc<[String]>,
    /// The treatment of generated values.
    pub generated: GeneratedPolicy,
    /// The use of schemas.
    pub schemas: SchemaUse,
}

/// The settings of charts, with the versions of the cluster where they name none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HelmReleases {
    /// The settings.
    pub(super) settings: HelmReleaseSettings,
    /// The origin of the versions.
    pub(super) versions: VersionOrigin,
}

/// The origin of the versions that charts are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VersionOrigin {
    /// The configuration names all of them.
    Configured,
    /// The cluster gives those that it does not name.
    Cluster,
    /// No cluster is asked: they are [`ASSUMED_VERSION`], and what helm knows.
    Assumed,
    /// The cluster was not asked yet.
    Wanted,
    /// The cluster does not report its version, for this reason.
    Unknown(Arc<str>),
}

impl HelmReleaseSettings {
    /// Returns the settings as charts are given them where these facts are known.
    pub(super) fn resolved_by(&self, facts: &ClusterFacts) -> HelmReleases {
        let mut settings = self.clone();
        if settings.kube_version.is_some() && !settings.api_versions.is_empty() {
            return HelmReleases { settings, versions: VersionOrigin::Configured };
        }
        let versions = match facts {
            ClusterFacts::NotQueried if settings.kube_version.is_some() => VersionOrigin::Configured,
            ClusterFacts::NotQueried => {
                settings.kube_version = Some(ASSUMED_VERSION.to_owned());
                VersionOrigin::Assumed
            }
            ClusterFacts::Queried(KnownClusterFacts { versions: None, .. }) => VersionOrigin::Wanted,
            ClusterFacts::Queried(KnownClusterFacts { versions: Some(known), .. }) => {
                let unready = known.unready.clone().filter(|_| settings.api_versions.is_empty());
                if settings.api_versions.is_empty() {
                    settings.api_versions = known.apis.clone();
                }
                match (&settings.kube_version, &known.server) {
                    (None, Err(why)) => VersionOrigin::Unknown(why.clone()),
                    (None, Ok(server)) => {
                        settings.kube_version = Some(server.to_string());
                        VersionOrigin::Cluster
                    }
                    (Some(_), _) => unready.map_or(VersionOrigin::Cluster, VersionOrigin::Unknown),
                }
            }
        };
        HelmReleases { settings, versions }
    }

    /// Returns the options of the chart in a folder of a source that begins here.
    pub(super) fn options_of(&self, folder: &str, start: &str) -> HelmOptions {
        let called = if folder == start { self.top.as_str() } else { folder };
        HelmOptions {
            release: self.release.clone().unwrap_or_else(|| release_name(called)),
            namespace: self.namespace.clone(),
            objects: self.objects,
            values: self
                .values
                .iter()
                .cloned()
                .map(ValuesSource::File)
                .chain(self.inline.clone().map(ValuesSource::Inline))
                .collect(),
            kube_version: self.kube_version.clone(),
            api_versions: self.api_versions.clone(),
            generated: self.generated,
            schemas: self.schemas,
            ..HelmOptions::default()
        }
    }
}

/// Returns the name of a release by its folder, in the letters that such a name may have.
pub(super) fn release_name(folder: &str) -> String {
    let name = folder.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let fits = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().map(fits).take(MAX_RELEASE_NAME_CHARS).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "release".to_owned() } else { name.to_owned() }
}

/// Writes the files of a chart for helm.
///
/// # Errors
/// Fails where they cannot be read or written.
pub(super) fn write_chart<T: FileTree>(
    host: &RenderHost,
    chart: &ChartClosure,
    files: &T,
    opened: &OpenedInputs,
) -> Result<RenderWorkspace, RenderError> {
    let mut tree = RenderTree::plain(&chart.closure);
    pack_fetched(chart, &mut tree.files, files).map_err(|error| match error {
        PackError::Source(error) => RenderError::Source(error),
        PackError::Io(error) => RenderError::Tree { program: "helm", error },
    })?;
    RenderWorkspace::write(host, "helm", &tree, files, opened)
}

/// Returns a run of helm in a place.
pub(super) fn chart_host<'a>(
    render_workspace: &'a RenderWorkspace,
    host: &'a RenderHost,
    helm: &'a InstalledProgram,
) -> ChartRenderHost<'a> {
    ChartRenderHost {
        sandbox: host.sandbox(),
        policy: &render_workspace.policy,
        program: &helm.path,
        tree: &render_workspace.tree,
    }
}

impl From<ChartError> for RenderError {
    fn from(error: ChartError) -> Self {
        match error {
            ChartError::Source(error) => Self::Source(error),
            ChartError::Values { error } => Self::Tree { program: "helm", error },
            ChartError::Sandbox(error) => Self::Sandbox(error),
            ChartError::Refused { findings } => Self::Refused(findings),
        }
    }
}

/// The files of a chart, and the release that it is taken for.
#[derive(Clone, Copy)]
pub(super) struct TracedChart<'a> {
    /// The files.
    pub(super) chart: &'a ChartClosure,
    /// The release.
    pub(super) options: &'a HelmOptions,
}

/// Renders a chart from the files of its closure.
///
/// # Errors
/// Fails where helm does, where the sandbox stops it, and where its output cannot be read.
pub(super) async fn render_helm_release<T: FileTree>(
    host: &RenderHost,
    program: &InstalledProgram,
    chart: TracedChart<'_>,
    files: &T,
    opened: &OpenedInputs,
) -> Result<RenderOutput, RenderError> {
    let TracedChart { chart, options } = chart;
    let render_workspace = write_chart(host, chart, files, opened)?;
    let mut rendered =
        render_chart(chart_host(&render_workspace, host, program), chart, options, files).await?;
    for object in &rendered.objects {
        let at = object.origin.places.first().cloned();
        let at = at.unwrap_or_else(|| ManifestOrigin::of_file(chart.closure.root.clone()));
        opened.check_exposure(&object.body, &at)?;
    }
    // A notice may name an object that is none of those.
    rendered.notices.retain(|notice| !opened.has_opened_value(&notice.message));
    let warnings = log_notices(rendered.notices);
    Ok(RenderOutput { objects: rendered_objects(rendered.objects), warnings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::input::MemoryTree;
    use crate::input::chart_supply::PinPolicy;
    use crate::input::key::ProgramIdentity;
    use crate::input::kustomize::ParsedFiles;
    use crate::input::memory_supply::MemorySupply;
    use crate::input::root_closure::{ClosureSettings, RootClosure};
    use crate::input::roots::{RenderRoot, RootForm};
    use crate::source::ServedVersions;

    fn resolve(kube_version: &str, apis: &[&str], facts: &ClusterFacts) -> (String, String, VersionOrigin) {
        let settings = HelmReleaseSettings {
            kube_version: Some(kube_version.to_owned()).filter(|version| !version.is_empty()),
            api_versions: apis.iter().map(|api| (*api).to_owned()).collect(),
            ..HelmReleaseSettings::default()
        };
        let HelmReleases { settings, versions } = settings.resolved_by(facts);
        (settings.kube_version.unwrap_or_default(), settings.api_versions.join(" "), versions)
    }

    #[test]
    fn the_cluster_tells_what_the_configuration_does_not() {
        use VersionOrigin::{Assumed, Cluster, Configured, Unknown, Wanted};
        let served = |server: Result<&str, &str>| {
            let server = server.map(Arc::from).map_err(Arc::from);
            ServedVersions { server, apis: ["apps/v1".to_owned(), "v1".to_owned()].into(), unready: None }
        };
        let queried = |versions: ServedVersions| {
            ClusterFacts::Queried(KnownClusterFacts {
                versions: Some(versions.into()),
                ..KnownClusterFacts::default()
            })
        };
        let known = &queried(served(Ok("v1.35.2+k3s1")));
        let refused = &queried(served(Err("refused")));
        let starting =
            &queried(ServedVersions { unready: Some("starting".into()), ..served(Err("starting")) });
        let unread = &ClusterFacts::Queried(KnownClusterFacts::default());
        let offline = &ClusterFacts::NotQueried;
        let own = &["x/v1"][..];
        for (kube_version, apis, facts, expected) in [
            ("", &[][..], known, ("v1.35.2+k3s1", "apps/v1 v1", Cluster)),
            ("1.30.0", &[], known, ("1.30.0", "apps/v1 v1", Cluster)),
            ("", own, known, ("v1.35.2+k3s1", "x/v1", Cluster)),
            ("1.30.0", own, known, ("1.30.0", "x/v1", Configured)),
            ("", &[], refused, ("", "apps/v1 v1", Unknown("refused".into()))),
            ("1.30.0", &[], refused, ("1.30.0", "apps/v1 v1", Cluster)),
            // A server that has just started may list only some of its kinds.
            ("", &[], starting, ("", "apps/v1 v1", Unknown("starting".into()))),
            ("1.30.0", &[], starting, ("1.30.0", "apps/v1 v1", Unknown("starting".into()))),
            ("1.30.0", own, starting, ("1.30.0", "x/v1", Configured)),
            ("", own, unread, ("", "x/v1", Wanted)),
            ("1.30.0", own, unread, ("1.30.0", "x/v1", Configured)),
            ("", &[], offline, (ASSUMED_VERSION, "", Assumed)),
            ("1.30.0", &[], offline, ("1.30.0", "", Configured)),
        ] {
            let (version, versions, origin) = resolve(kube_version, apis, facts);
            assert_eq!((&*version, &*versions, origin), expected, "{kube_version} {apis:?} {facts:?}");
        }
    }

    #[test]
    fn inline_values_win_over_files_and_are_part_of_the_key_with_the_namespace() {
        let settings = |namespace: &str, objects, inline: Option<&str>| HelmReleaseSettings {
            namespace: namespace.to_owned(),
            objects,
            values: vec!["a.yaml".to_owned()],
            inline: inline.map(str::to_owned),
            ..HelmReleaseSettings::default()
        };
        let key = |settings: &HelmReleaseSettings| {
            let tree = MemoryTree::new()
                .file("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
                .file("web/a.yaml", "a: 1\n");
            let supply = MemorySupply::default();
            let settings = ClosureSettings { releases: settings, supply: &supply, policy: PinPolicy::Strict };
            let root = RenderRoot { folder: "web".into(), form: RootForm::Helm };
            let parsed = &mut ParsedFiles::default();
            let closure = RootClosure::find_closure(&root, "", &tree, parsed, settings).unwrap();
            let helm = ProgramIdentity { name: "helm".into(), version: "4".into(), digest: [0; 32] };
            closure.inputs(&[helm]).unwrap().key().bytes()
        };
        let inline = settings("prod", UnnamedNamespace::Source, Some(r#"{"a":2}"#));
        assert_eq!(
            inline.options_of("web", "").values,
            [ValuesSource::File("a.yaml".to_owned()), ValuesSource::Inline(r#"{"a":2}"#.to_owned())]
        );
        let all = [
            inline,
            settings("prod", UnnamedNamespace::Source, Some(r#"{"a":3}"#)),
            settings("prod", UnnamedNamespace::Source, None),
            settings("prod", UnnamedNamespace::Release, None),
            settings("test", UnnamedNamespace::Release, None),
        ];
        let keys: BTreeSet<[u8; 32]> = all.iter().map(key).collect();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn a_release_is_called_like_its_folder() {
        for (folder, expected) in
            [("apps/web", "web"), ("", "release"), ("charts/My_App.v2", "my-app-v2"), ("-/--", "release")]
        {
            assert_eq!(release_name(folder), expected, "{folder}");
        }
    }

    #[test]
    fn a_chart_at_the_top_of_a_source_is_called_like_what_the_source_is_of() {
        let check = |release: Option<&str>, folder: &str, start: &str, expected: &str| {
            let release = release.map(str::to_owned);
            let settings =
                HelmReleaseSettings { release, top: "My Shop".into(), ..HelmReleaseSettings::default() };
            assert_eq!(settings.options_of(folder, start).release, expected);
        };
        check(None, "", "", "my-shop");
        check(None, "work/tree", "work/tree", "my-shop");
        check(None, "work/tree/web", "work/tree", "web");
        check(Some("own"), "", "", "own");
    }
}
