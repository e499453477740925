//! The roots of real repositories: what the programs alone print for each, and groups of roots of
//! which no two have an object in common.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use controlplane::Renderers;
use serde::Deserialize as _;
use serde_json::Value;

use crate::support::Repo;

/// An address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:1";
/// The roots of a group, at most: groups are followed beside each other.
const MAX_ROOTS: usize = 130;
/// The version that charts see, here as in `spec.helm`.
pub(crate) const KUBE_VERSION: &str = "v1.36.0";
/// The files that make a folder a root.
const ROOT_FILES: [&str; 4] = ["kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml"];
/// Charts that need another one of the same folder in `charts/`, where their users have it.
const VENDORED: [(&str, &str); 2] = [("redis", "bitnami-common"), ("app-template", "bjw-s-common")];

/// A root of a repository, followed by a source of its own.
#[derive(Debug)]
pub(crate) struct Root {
    /// The name of its source, and of the namespace of that.
    pub(crate) name: String,
    pub(crate) repository: PathBuf,
    pub(crate) path: String,
    /// The objects that the program alone prints without a network; why not, where it prints none.
    pub(crate) printed: Result<Vec<Value>, String>,
    /// A value for each variable that they have.
    pub(crate) variables: BTreeMap<String, String>,
}

/// The identity of an object in its cluster.
type Identity = (String, String, String, String);

impl Root {
    /// Returns the objects that are printed, none where there are none.
    pub(crate) fn objects(&self) -> &[Value] {
        self.printed.as_deref().unwrap_or_default()
    }

    fn identities(&self) -> BTreeSet<Identity> {
        self.objects().iter().map(|object| self.identity(object)).collect()
    }

    fn identity(&self, object: &Value) -> Identity {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        // It goes to the namespace of the source, where its kind has namespaces.
        let is_namespaced = ["", "apps", "batch"].contains(&group)
            && !["Namespace", "PersistentVolume"].contains(&text("/kind"));
        let own = if is_namespaced { self.name.as_str() } else { "" };
        let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty()).unwrap_or(own);
        [group, text("/kind"), namespace, text("/metadata/name")].map(|part| self.substituted(part)).into()
    }

    /// Returns a text with the values of the variables in it.
    pub(crate) fn substituted(&self, text: &str) -> String {
        let put =
            |text: String, (name, value): (&String, &String)| text.replace(&format!("${{{name}}}"), value);
        self.variables.iter().fold(text.to_owned(), put)
    }
}

/// All roots of the repositories and charts in a folder, with copies of these.
pub(crate) struct Inputs {
    pub(crate) roots: Vec<Root>,
    _repositories: Vec<Repo>,
}

impl Inputs {
    /// Finds them, and runs the programs on each.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut folders: Vec<_> =
            fs::read_dir(folder.join("repositories")).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.push(folder.join("charts"));
        folders.sort();
        let repositories: Vec<Repo> = folders.iter().map(|folder| Repo::copy_of(folder)).collect();
        vendor(repositories.first().unwrap());
        let found = repositories.iter().flat_map(|repo| {
            roots_of(repo.path()).into_iter().map(|path| (repo.path().to_owned(), path)).collect::<Vec<_>>()
        });
        let found: Vec<_> = found.enumerate().collect();
        let programs = Renderers::find().unwrap();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let roots = thread::scope(|scope| {
            let print = |part: &[(usize, (PathBuf, String))]| -> Vec<Root> {
                part.iter()
                    .map(|(number, (repository, path))| root(*number, repository, path, &programs))
                    .collect()
            };
            let share = found.len().div_ceil(cores).max(1);
            let workers: Vec<_> = found.chunks(share).map(|part| scope.spawn(move || print(part))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        Self { roots, _repositories: repositories }
    }

    /// Returns groups of roots of which no two have an object in common, the largest first.
    pub(crate) fn groups(&self) -> Vec<Vec<&Root>> {
        let mut roots: Vec<_> = self.roots.iter().map(|root| (root, root.identities())).collect();
        roots.sort_by_key(|(_, identities)| std::cmp::Reverse(identities.len()));
        let mut groups: Vec<(Vec<&Root>, BTreeSet<Identity>)> = Vec::new();
        for (root, identities) in roots {
            let fits = |(group, taken): &&mut (Vec<&Root>, BTreeSet<Identity>)| {
                group.len() < MAX_ROOTS && taken.is_disjoint(&identities)
            };
            match groups.iter_mut().find(fits) {
                Some((group, taken)) => {
                    group.push(root);
                    taken.extend(identities);
                }
                None => groups.push((vec![root], identities)),
            }
        }
        groups.into_iter().map(|(group, _)| group).collect()
    }
}

/// Puts the parts of charts to where helm looks for them.
fn vendor(charts: &Repo) {
    for (chart, part) in VENDORED {
        let (part, chart) = (charts.path().join(part), charts.path().join(chart));
        if part.is_dir() && chart.is_dir() {
            copy(&part, &chart.join("charts/common"));
        }
    }
    charts.commit("Take the parts of the charts in");
}

fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns the paths of the folders that are roots. These have a kustomization that is no
/// component, or are charts that are no part of another one.
fn roots_of(repository: &Path) -> Vec<String> {
    let mut roots = BTreeSet::new();
    for entry in walkdir::WalkDir::new(repository) {
        let entry = entry.unwrap();
        let folder = entry.path().parent().unwrap();
        let path = folder.strip_prefix(repository).unwrap_or(Path::new("")).to_str().unwrap().to_owned();
        let name = entry.file_name().to_str().unwrap_or_default();
        if !ROOT_FILES.contains(&name) || !entry.file_type().is_file() {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        let is_part = name == "Chart.yaml" && format!("/{path}").contains("/charts/");
        if !text.contains("kind: Component") && !is_part {
            roots.insert(path);
        }
    }
    roots.into_iter().collect()
}

fn root(number: usize, repository: &Path, path: &str, programs: &Renderers) -> Root {
    let folder = repository.join(path);
    let is_chart = folder.join("Chart.yaml").exists();
    let (program, words) = if is_chart {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let words =
            ["template", &name, ".", "--include-crds", "--kube-version", KUBE_VERSION].map(str::to_owned);
        (&programs.helm, words.to_vec())
    } else {
        let words = ["build", "--load-restrictor", "LoadRestrictionsNone", "."].map(str::to_owned);
        (&programs.kustomize, words.to_vec())
    };
    // It finds no git, and no way out of this machine.
    let output = Command::new(program)
        .args(words)
        .current_dir(&folder)
        .env_clear()
        .envs([("HOME", "/nonexistent"), ("PATH", "/nonexistent")])
        .envs([("HTTP_PROXY", NOWHERE), ("HTTPS_PROXY", NOWHERE)])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let printed = if output.status.success() {
        Ok(documents(&text).into_iter().filter(|object| !(is_chart && is_test_alone(object))).collect())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let name = format!("r{number}");
    let value = |variable: &str| {
        let word = format!("{}-{name}", variable.to_lowercase().replace('_', "-"));
        if variable.contains("_IP_") { "192.0.2.1".to_owned() } else { word }
    };
    let variables = variables_in(&text).into_iter().map(|name| (name.to_owned(), value(name))).collect();
    Root { name, repository: repository.to_owned(), path: path.to_owned(), printed, variables }
}

/// Returns the objects of an output, by another reader than rhumb's.
fn documents(text: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(text);
    let values = documents.map(|document| Value::deserialize(document).unwrap());
    values.filter(|value| !value["kind"].is_null()).collect()
}

/// Returns whether an object of a chart is a test and no other hook: `helm install` does not run
/// it. `--skip-tests` leaves out those too that are a hook of an installation as well.
fn is_test_alone(object: &Value) -> bool {
    let events = object["metadata"]["annotations"]["helm.sh/hook"].as_str();
    events
        .is_some_and(|events| events.split(',').all(|event| matches!(event.trim(), "test" | "test-success")))
}

/// Returns the names of the variables in a text; none where a `${` begins something else, as in a
/// script, which nobody has substituted.
fn variables_in(text: &str) -> BTreeSet<&str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut names = BTreeSet::new();
    for rest in text.split("${").skip(1) {
        let end = rest.find(|letter: char| !is_of_name(letter)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) || !rest.starts_with(['}', ':']) {
            return BTreeSet::new();
        }
        names.insert(name);
    }
    names
}
