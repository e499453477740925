//! Charts on disk, rendered as rhumb does and by helm alone.

use std::fs;
use std::future::Future;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use controlplane::Renderers;
use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::helm::{
    ChartClosure, ChartError, ChartLimits, ChartObject, ChartRender, ChartRenderHost, HelmOptions,
    ValuesSource, find_closure, render_chart, template_chart,
};
use rhumb::testing::input::kustomize::{PlannedContent, RenderTree};
use rhumb::testing::input::sandbox::{NetworkReach, Sandbox, SandboxLimits, SandboxPolicy};
use rhumb::testing::source::DiskTree;
use serde::Deserialize as _;
use serde_json::Value;
use tempfile::TempDir;

/// The version of the cluster that charts are rendered for.
pub(crate) const KUBE_VERSION: &str = "1.34.2";

/// Returns a release `web` in the namespace `prod`.
pub(crate) fn options() -> HelmOptions {
    HelmOptions {
        release: "web".into(),
        namespace: "prod".into(),
        kube_version: Some(KUBE_VERSION.into()),
        api_versions: ["example.com/v1/Order".into(), "monitoring.coreos.com/v1".into()].into(),
        ..HelmOptions::default()
    }
}

/// A chart in a repository.
pub(crate) struct Chart {
    repository: PathBuf,
    tree: DiskTree,
    pub(crate) root: String,
    /// Holds a repository that was made for one test.
    _folder: Option<TempDir>,
}

impl Chart {
    /// Returns a chart below a folder of somebody else.
    pub(crate) fn at(repository: &Path, root: &str) -> Self {
        let (tree, root) = (DiskTree::open(repository).unwrap(), root.to_owned());
        Self { repository: repository.to_owned(), tree, root, _folder: None }
    }

    /// Returns the chart `shop` beside this file.
    pub(crate) fn shop() -> Self {
        Self::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helm/charts"), "shop")
    }

    /// Returns a chart `web` in the folder `web`, of these files and links, each a path and a text
    /// or target.
    pub(crate) fn of(files: &[(&str, &str)], links: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        fs::write(put("web/Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\n").unwrap();
        for (path, text) in files {
            fs::write(put(path), text).unwrap();
        }
        for (path, target) in links {
            symlink(target, put(path)).unwrap();
        }
        let repository = folder.path().to_owned();
        Self { _folder: Some(folder), ..Self::at(&repository, "web") }
    }

    /// Returns the chart's folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.repository.join(&self.root)
    }

    /// Returns the same chart, read anew.
    pub(crate) fn anew(self) -> Self {
        Self { tree: DiskTree::open(&self.repository).unwrap(), ..self }
    }

    pub(crate) fn closure(&self, options: &HelmOptions) -> ChartClosure {
        find_closure(&self.tree, &self.root, "", options, ChartLimits::default()).unwrap()
    }

    /// Renders the chart from its closure, as rhumb does.
    pub(crate) fn render(&self, options: &HelmOptions) -> Result<ChartRender, ChartError> {
        let closure = self.closure(options);
        let place = RenderFolders::with(&closure, &self.tree);
        wait_for(render_chart(place.host(), &closure, options, &self.tree))
    }

    /// Renders the chart, and returns how many processes that starts.
    pub(crate) fn count_processes(&self, options: &HelmOptions) -> usize {
        let closure = self.closure(options);
        let mut place = RenderFolders::with(&closure, &self.tree);
        let (launcher, count) = (place.folder.path().join("launcher"), place.folder.path().join("count"));
        let rhumb = env!("CARGO_BIN_EXE_rhumb");
        let script = format!("#!/bin/sh\necho one >>'{}'\nexec '{rhumb}' \"$@\"\n", count.display());
        fs::write(&launcher, script).unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        place.sandbox = Sandbox::launched_by(launcher);
        wait_for(render_chart(place.host(), &closure, options, &self.tree)).unwrap();
        fs::read_to_string(count).unwrap().lines().count()
    }

    /// Returns what helm prints of the closure.
    pub(crate) fn template(&self, options: &HelmOptions) -> Result<Vec<ChartObject>, ChartError> {
        let closure = self.closure(options);
        let place = RenderFolders::with(&closure, &self.tree);
        wait_for(template_chart(place.host(), &closure, options, &self.tree))
    }

    /// Runs helm in the repository itself, without a sandbox.
    pub(crate) fn bare(&self, options: &HelmOptions) -> Result<Vec<Value>, String> {
        let folder = self.repository.join(&self.root);
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(helm());
        command.args(["template", &options.release, ".", "--include-crds"]);
        command.args(["--namespace", &options.namespace]);
        for version in &*options.api_versions {
            command.args(["--api-versions", version]);
        }
        if let Some(version) = &options.kube_version {
            command.args(["--kube-version", version]);
        }
        for (values, number) in options.values.iter().zip(0..) {
            let path = match values {
                ValuesSource::File(path) if folder.join(path).exists() => folder.join(path),
                ValuesSource::File(path) => self.repository.join(path),
                ValuesSource::Inline(text) => {
                    let path = home.path().join(format!("{number}.yaml"));
                    fs::write(&path, text).unwrap();
                    path
                }
            };
            command.arg("--values").arg(path);
        }
        let output = command.current_dir(folder).env_clear().env("HOME", home.path()).output().unwrap();
        if output.status.success() {
            Ok(documents(&output.stdout))
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// The folders of one render.
struct RenderFolders {
    folder: TempDir,
    sandbox: Sandbox,
    policy: SandboxPolicy,
}

impl RenderFolders {
    fn with(closure: &ChartClosure, files: &DiskTree) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (tree, private) = (folder.path().join("tree"), folder.path().join("private"));
        fs::create_dir(&private).unwrap();
        fs::create_dir_all(tree.join(&*closure.closure.root)).unwrap();
        for file in RenderTree::plain(&closure.closure).files {
            let PlannedContent::Blob(blob) = file.content else { panic!("a chart is written as it is") };
            let path = tree.join(&*file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, files.read(blob).unwrap()).unwrap();
        }
        let policy = SandboxPolicy {
            mode: SandboxMode::Full,
            readable: vec![tree],
            private,
            network: NetworkReach::None,
            limits: SandboxLimits {
                deadline: Duration::from_secs(30),
                processor: Duration::from_secs(10),
                ..SandboxLimits::default()
            },
        };
        Self { folder, sandbox: Sandbox::launched_by(env!("CARGO_BIN_EXE_rhumb")), policy }
    }

    fn host(&self) -> ChartRenderHost<'_> {
        let tree = &self.policy.readable[0];
        assert!(tree.starts_with(self.folder.path()));
        ChartRenderHost { sandbox: &self.sandbox, policy: &self.policy, program: helm(), tree }
    }
}

pub(crate) fn helm() -> &'static Path {
    static RENDERERS: OnceLock<Renderers> = OnceLock::new();
    &RENDERERS.get_or_init(|| Renderers::find().unwrap()).helm
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Returns the objects of an output, by another reader than our own.
fn documents(output: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(output).unwrap();
    let documents = serde_yaml::Deserializer::from_str(text);
    let values = documents.map(|document| Value::deserialize(document).unwrap());
    values.filter(|value| !value.is_null()).collect()
}

/// Returns the findings of a chart that is not rendered, each with its place and code.
#[track_caller]
pub(crate) fn findings<T: std::fmt::Debug>(outcome: Result<T, ChartError>) -> Vec<String> {
    match outcome {
        Err(ChartError::Refused { findings }) => findings
            .iter()
            .map(|found| format!("{} {}: {}", found.code, found.origin, found.message))
            .collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn kustomize() -> &'static Path {
    static RENDERERS: OnceLock<Renderers> = OnceLock::new();
    &RENDERERS.get_or_init(|| Renderers::find().unwrap()).kustomize
}
