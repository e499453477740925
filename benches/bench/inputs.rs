//! Renders of real repositories: the roots that commits render, compared with those of which they
//! change a file.
//!
//! `RHUMB_INPUTS` names a folder with them in `repositories/`. Their histories are not there, so
//! each commit changes the end of a file that some root reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use controlplane::{Cluster, Renderers};
use rhumb::testing::input::kustomize::{ClosureLimits, FILE_NAMES, ParsedFiles, find_closure};
use rhumb::testing::source::DiskTree;
use tempfile::TempDir;

use crate::Outcome;
use crate::corpus::Manifest;
use crate::options::Options;
use crate::program::Program;
use crate::renders::{configuration, rendered_roots};
use crate::repository::Repository;
use crate::table::{AimComparison, Table, progress};

/// The repositories that are replayed: those with the most roots.
const MAX_REPOSITORIES: usize = 3;
/// The time for a first render of all roots, and for each later one.
const READ_TIMEOUT: Duration = Duration::from_mins(15);

/// Measures their renders, where there are such repositories.
pub(crate) fn measure(programs: &Renderers, options: &Options, table: &mut Table) -> Outcome<()> {
    let Some(folder) = std::env::var_os("RHUMB_INPUTS").map(PathBuf::from) else {
        table.add("S9 roots rendered of real repositories", "not measured: RHUMB_INPUTS names no folder");
        return Ok(());
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join("repositories"))? {
        found.extend(RealRepository::read(&entry?.path())?);
    }
    found.sort_by_key(|repository| std::cmp::Reverse((repository.roots, repository.name.clone())));
    found.truncate(MAX_REPOSITORIES);
    let cluster = Cluster::builder().bare().start()?;
    let mut all = ReplayedCommits::default();
    for repository in found {
        let name = repository.name.clone();
        let replayed = replay(&cluster, programs, repository, options.samples)?;
        progress(&format!("{name}: {} renders for {}", replayed.rendered, replayed.changed));
        all.add(&replayed);
    }
    all.judge(table);
    Ok(())
}

/// A repository on disk without encrypted files, of which roots read some files.
struct RealRepository {
    name: String,
    files: Vec<Manifest>,
    roots: usize,
    /// The files that commits change, each with the number of roots that read it.
    readers: BTreeMap<String, usize>,
}

impl RealRepository {
    /// Reads one; none where it has encrypted files, whose roots are tried again and again.
    fn read(folder: &Path) -> Outcome<Option<Self>> {
        let mut files = Vec::new();
        add_files(folder, "", &mut files)?;
        let is_encrypted = |file: &Manifest| file.text.lines().any(|line| line.starts_with("sops:"));
        if files.iter().any(is_encrypted) {
            return Ok(None);
        }
        // Without links and files that are no text: these are not committed.
        let committed = TempDir::new()?;
        files.iter().try_for_each(|file| file.write(committed.path()))?;
        let mut roots = Vec::new();
        add_roots(committed.path(), "", &mut roots)?;
        let (readers, roots) = readers_of(committed.path(), &roots)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((!readers.is_empty()).then_some(Self { name, files, roots, readers }))
    }
}

/// Adds the text files below a folder, with their paths in the repository.
fn add_files(folder: &Path, inside: &str, files: &mut Vec<Manifest>) -> Outcome<()> {
    for (name, path) in entries(folder)? {
        let kind = fs::symlink_metadata(&path)?.file_type();
        let file = format!("{inside}{name}");
        if kind.is_dir() && name != ".git" {
            add_files(&path, &format!("{file}/"), files)?;
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push(Manifest { file, url: String::new(), text });
        }
    }
    Ok(())
}

/// Adds the folders that are rendered: what is below one is a part of it.
fn add_roots(folder: &Path, inside: &str, roots: &mut Vec<String>) -> Outcome<()> {
    if FILE_NAMES.iter().any(|name| folder.join(name).is_file()) {
        roots.push(inside.trim_end_matches('/').to_owned());
        return Ok(());
    }
    if folder.join("Chart.yaml").is_file() {
        return Ok(());
    }
    for (name, path) in entries(folder)? {
        if path.is_dir() && !name.starts_with('.') {
            add_roots(&path, &format!("{inside}{name}/"), roots)?;
        }
    }
    Ok(())
}

/// Returns the names in a folder, in order, with their paths.
fn entries(folder: &Path) -> Outcome<Vec<(String, PathBuf)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        all.extend(entry.file_name().into_string().ok().map(|name| (name, entry.path())));
    }
    all.sort_unstable();
    Ok(all)
}

/// Returns the YAML files that roots read, each with the number of these, and how many roots there
/// are. A file that a root with charts reads is left out, as these come from servers.
fn readers_of(folder: &Path, roots: &[String]) -> Outcome<(BTreeMap<String, usize>, usize)> {
    let (tree, mut parsed) = (DiskTree::open(folder)?, ParsedFiles::default());
    let (mut readers, mut left_out, mut count) = (BTreeMap::new(), BTreeSet::new(), 0);
    for root in roots {
        let closure = find_closure(&tree, root, ClosureLimits::default(), &mut parsed)?;
        if closure.is_component() {
            continue;
        }
        count += 1;
        let read: BTreeSet<String> = closure.files.iter().map(|(_, file)| file.source.to_string()).collect();
        let has_charts = closure.folders.iter().any(|folder| !folder.kustomization.charts.charts.is_empty());
        if has_charts {
            left_out.extend(read);
        } else if closure.is_renderable() {
            for file in read {
                *readers.entry(file).or_insert(0) += 1;
            }
        }
    }
    let is_yaml = |file: &str| [".yaml", ".yml"].iter().any(|end| file.ends_with(end));
    readers.retain(|file, _| is_yaml(file) && !left_out.contains(file));
    Ok((readers, count))
}

/// The commits to real repositories.
#[derive(Default)]
struct ReplayedCommits {
    commits: usize,
    rendered: usize,
    /// The roots that read what a commit changes, once for each commit.
    changed: usize,
    /// All roots, once for each commit.
    all: usize,
}

impl ReplayedCommits {
    fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.rendered += other.rendered;
        self.changed += other.changed;
        self.all += other.all;
    }

    fn judge(&self, table: &mut Table) {
        let Self { commits, rendered, changed, all } = self;
        let share = 100.0 * *rendered as f64 / (*all).max(1) as f64;
        let what = format!(
            "S9 roots rendered by {commits} commits to real repositories, compared with those changed"
        );
        let measured = format!("{rendered} for {changed}, {share:.1} % of all");
        table.judge(&what, measured, AimComparison::of("as many", rendered == changed && *changed > 0));
    }
}

/// Pushes commits to one repository, and counts the roots that a daemon renders.
fn replay(
    cluster: &Cluster,
    programs: &Renderers,
    real: RealRepository,
    samples: usize,
) -> Outcome<ReplayedCommits> {
    let RealRepository { files, roots, readers, .. } = real;
    let texts: BTreeMap<String, String> =
        files.iter().map(|file| (file.file.clone(), file.text.clone())).collect();
    let mut repository = Repository::new(files.into_iter())?;
    let program = Program::new(&cluster.kubeconfig_for("rhumb")?)?;
    let folder = TempDir::new()?;
    let config = configuration(folder.path(), programs, &repository)?;
    // Renders are all that matters here, so nothing is written.
    let text = fs::read_to_string(&config)?;
    fs::write(&config, format!("{text}  observe: true\n"))?;
    let daemon = program.daemon(&["run", "--config", &config])?;
    let await_reading = |repository: &Repository| {
        daemon.says(&format!("revision={}", repository.head()), 1, READ_TIMEOUT).map(drop)
    };
    await_reading(&repository)?;
    let first = rendered_roots(&daemon)?;
    let mut replayed = ReplayedCommits::default();
    let changed: Vec<(&String, &usize)> = readers.iter().collect();
    for sample in 0..samples {
        let (file, count) = changed[sample * changed.len() / samples];
        let text = texts.get(file).map(|text| text.trim_end()).unwrap_or_default();
        let text = format!("{text}\n# commit {sample}\n");
        repository.push(&Manifest { file: file.clone(), url: String::new(), text })?;
        await_reading(&repository)?;
        replayed.commits += 1;
        replayed.changed += count;
        replayed.all += roots;
    }
    replayed.rendered = rendered_roots(&daemon)? - first;
    Ok(replayed)
}
