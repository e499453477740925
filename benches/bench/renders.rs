//! Renders: the way of a commit through kustomize and helm, compared with the same programs alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use controlplane::{Cluster, Encrypters, Renderers};
use rhumb::testing::config::SandboxMode;
use rhumb::testing::input::sandbox::{NetworkReach, ProgramCommand, Sandbox, SandboxLimits, SandboxPolicy};
use rhumb::testing::input::sops::{AgeIdentities, PlaintextLayout, SopsFormat, open};
use tempfile::TempDir;

use crate::api::Api;
use crate::bounds::Ratio;
use crate::corpus::{Corpus, KindMix, Manifest};
use crate::inputs;
use crate::latency::{FollowedRepository, PAUSE};
use crate::numbers::{Times, ms, ratio};
use crate::options::Options;
use crate::program::{Daemon, Program, run, runtime_folder};
use crate::repository::Repository;
use crate::table::{AimComparison, Table, progress};
use crate::{Outcome, block_on};

/// Objects of each overlay.
const OBJECTS: usize = 40;
/// The number of encrypted files, each of which is opened some times.
const ENCRYPTED_FILES: usize = 20;
/// The aim of a render: the program alone and so much more.
const ADDED: Duration = Duration::from_millis(10);
/// The log line of a run of a program.
const RENDERED: &str = " rendered in ";
/// The environment in which rhumb runs the programs: little garbage is collected.
const GO_ENVIRONMENT: [(&str, &str); 2] = [("GOGC", "off"), ("GOMEMLIMIT", "192MiB")];

/// Measures S9.
pub(crate) fn measure(options: &Options, table: &mut Table) -> Outcome<()> {
    let programs = Renderers::find()?;
    sandboxed_start(&programs, options, table)?;
    encrypted(table)?;
    changes(&programs, options, table)?;
    closures(&programs, options, table)?;
    inputs::measure(&programs, options, table)
}

/// Measures one start of kustomize in the sandbox and without.
fn sandboxed_start(programs: &Renderers, options: &Options, table: &mut Table) -> Outcome<()> {
    let folder = TempDir::new()?;
    let (tree, private) = (folder.path().join("tree"), folder.path().join("private"));
    fs::create_dir(&tree)?;
    fs::create_dir(&private)?;
    let sandbox = Sandbox::launched_by(env!("CARGO_BIN_EXE_rhumb"));
    let policy = SandboxPolicy {
        mode: SandboxMode::Full,
        readable: vec![tree.clone()],
        private,
        network: NetworkReach::None,
        limits: SandboxLimits::default(),
    };
    let sandboxed =
        ProgramCommand::new(&programs.kustomize, &tree).arguments(["version"]).go_runtime(192 << 20, 2);
    let (mut bare_times, mut sandboxed_times) = (Vec::new(), Vec::new());
    for _ in 0..options.samples {
        let mut bare = Command::new(&programs.kustomize);
        bare.arg("version").env_clear().envs(GO_ENVIRONMENT).env("HOME", folder.path());
        bare_times.push(run(bare, &[0])?.time);
        let start = Instant::now();
        block_on(async { Ok(sandbox.run(&policy, &sandboxed).await?) })?;
        sandboxed_times.push(start.elapsed());
    }
    let (bare, sandboxed) = (Times::new(bare_times).median(), Times::new(sandboxed_times).median());
    let added = sandboxed.saturating_sub(bare);
    let measured = format!("{:.1} ms more than {:.1} ms", ms(added), ms(bare));
    table.judge(
        "S9 sandbox of a start of kustomize, p50",
        measured,
        AimComparison::of("≤ 5 ms", ms(added) <= 5.0),
    );
    Ok(())
}

/// Measures the opening of files that the real `sops` encrypted.
fn encrypted(table: &mut Table) -> Outcome<()> {
    let programs = Encrypters::find()?;
    let folder = TempDir::new()?;
    let key = folder.path().join("key.txt");
    run(
        {
            let mut command = Command::new(&programs.age_keygen);
            command.arg("-o").arg(&key);
            command
        },
        &[0],
    )?;
    let text = fs::read_to_string(&key)?;
    let identities = AgeIdentities::parse(&text).map_err(|error| error.to_string())?;
    let recipient =
        text.lines().find_map(|line| line.strip_prefix("# public key: ")).ok_or("no public key")?;
    let mut times = Vec::new();
    for number in 0..ENCRYPTED_FILES {
        let file = folder.path().join("secret.yaml");
        let secret = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s{number}, namespace: default}}\nstringData:\n  user: shop\n  \
             password: hunter{number}\n  url: postgres://shop:hunter{number}@db:5432/shop\n"
        );
        fs::write(&file, secret)?;
        let mut command = Command::new(&programs.sops);
        command.args([
            "encrypt",
            "--in-place",
            "--encrypted-regex",
            "^(data|stringData)$",
            "--age",
            recipient,
        ]);
        command.arg(&file).env("HOME", folder.path());
        run(command, &[0])?;
        let bytes = fs::read(&file)?;
        let name = "secret.yaml".into();
        for _ in 0..5 {
            let start = Instant::now();
            let opened = open(&name, &bytes, SopsFormat::of_name("secret.yaml"), &identities)
                .and_then(|opened| opened.plaintext(PlaintextLayout::Sops))
                .map_err(|error| error.to_string())?;
            times.push(start.elapsed());
            drop(opened);
        }
    }
    let times = Times::new(times);
    let aim = AimComparison::of("p50 ≤ 1 ms", ms(times.median()) <= 1.0);
    table.judge(
        "S9 an encrypted file opened and its MAC checked",
        format!("p50 {:.2} ms", ms(times.median())),
        aim,
    );
    Ok(())
}

/// A repository of overlays, a chart and plain files.
struct Overlays {
    count: usize,
}

impl Overlays {
    fn files(&self) -> Outcome<Vec<Manifest>> {
        let mut files = Vec::new();
        let mut resources = String::from("resources:\n");
        for manifest in Corpus::new("base", KindMix::Apps, OBJECTS).manifests() {
            writeln!(resources, "- {}", manifest.file)?;
            files.push(file(&format!("base/{}", manifest.file), manifest.text));
        }
        files.push(file("base/kustomization.yaml", resources));
        for number in 0..self.count {
            files.push(file(
                &format!("overlays/{number:03}/kustomization.yaml"),
                format!(
                    "namespace: default\nnameSuffix: -v{number:03}\nresources: [../../base]\npatches:\n- path: patch.yaml\n"
                ),
            ));
            files.push(Self::patch(number, "1"));
        }
        files.push(file("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned()));
        files.push(Self::values("1"));
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .index }}\n  \
                        namespace: default\ndata:\n  version: {{ .Values.version | quote }}\n";
        for number in 0..OBJECTS {
            let text = template.replace("{{ .index }}", &number.to_string());
            files.push(file(&format!("chart/templates/map-{number}.yaml"), text));
        }
        files.push(Self::plain("1"));
        files.extend(Self::plain_objects("1"));
        Ok(files)
    }

    /// Returns the patch of one overlay, which changes a ConfigMap.
    fn patch(number: usize, version: &str) -> Manifest {
        file(
            &format!("overlays/{number:03}/patch.yaml"),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-00000\n  namespace: base-0\ndata:\n  version: \"{version}\"\n"
            ),
        )
    }

    /// Returns a file of the base, which all overlays read.
    fn base(version: &str) -> Manifest {
        let map = Corpus::new("base", KindMix::Apps, OBJECTS).config_map(2, version);
        file(&format!("base/{}", map.file), map.text)
    }

    /// Returns the values of the chart.
    fn values(version: &str) -> Manifest {
        file("chart/values.yaml", format!("version: \"{version}\"\n"))
    }

    /// Returns as many plain files as the chart has objects.
    fn plain_objects(version: &str) -> Vec<Manifest> {
        let map = |number: usize| {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: plain-{number}, namespace: default}}\ndata: {{version: \"{version}\"}}\n"
            );
            file(&format!("plain/map-{number}.yaml"), text)
        };
        (0..OBJECTS).map(map).collect()
    }

    /// Returns a file outside of every closure.
    fn plain(version: &str) -> Manifest {
        file(
            "plain/map.yaml",
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: plain, namespace: default}}\ndata: {{version: \"{version}\"}}\n"
            ),
        )
    }
}

fn file(path: &str, text: String) -> Manifest {
    Manifest { file: path.to_owned(), url: String::new(), text }
}

/// Writes a configuration that names the programs and the source.
pub(crate) fn configuration(folder: &Path, programs: &Renderers, repository: &Repository) -> Outcome<String> {
    let version = "apiVersion: rhumb.dev/v1alpha1";
    let text = format!(
        "{version}\nkind: Configuration\nprograms:\n  kustomize: {}\n  helm: {}\n---\n{version}\nkind: Source\n\
         metadata:\n  name: default\nspec:\n  git:\n    url: {}\n",
        programs.kustomize.display(),
        programs.helm.display(),
        repository.path().display()
    );
    let path = folder.join("rhumb.yaml");
    fs::write(&path, text)?;
    Ok(path.to_string_lossy().into_owned())
}

/// Measures commits that change one root, one chart and a plain file, and the first render of all.
fn changes(programs: &Renderers, options: &Options, table: &mut Table) -> Outcome<()> {
    let overlays = Overlays { count: options.many / OBJECTS };
    let files = overlays.files()?;
    let tree = TempDir::new()?;
    files.iter().try_for_each(|file| file.write(tree.path()))?;
    // Overlays may read the base beside them where both are in one work tree.
    git2::Repository::init(tree.path())?;
    cold(programs, &overlays, tree.path(), table)?;

    let cluster = Cluster::builder().bare().start()?;
    let api = block_on(Api::connect(cluster.kubeconfig()))?;
    let mut repository = Repository::new(files.into_iter())?;
    let program = Program::new(&cluster.kubeconfig_for("rhumb")?)?;
    let folder = TempDir::new()?;
    let config = configuration(folder.path(), programs, &repository)?;
    let daemon = program.daemon(&["run", "--config", &config])?;
    daemon.says("created", (overlays.count + 2) * OBJECTS + 1, Duration::from_mins(15))?;
    daemon.rests()?;
    // On the same host as the renders: beside the API server, with a pause before each.
    let kustomize = alone(&programs.kustomize, &tree.path().join("overlays/000"), &BUILD, options.samples)?;
    let helm =
        alone(&programs.helm, &tree.path().join("chart"), &["template", "chart", "."], options.samples)?;
    let mut watch = block_on(api.watch_config_maps())?;
    let mut site = FollowedRepository { repository: &mut repository, watch: &mut watch, daemon: &daemon };
    let Replay { plain, plain_objects, root, chart } = replay(&mut site, options, overlays.count, table)?;
    // A commit to an overlay changes one of its objects, and one to the chart changes all of them.
    for (what, rendered, unrendered, alone) in [
        ("S9 one overlay of 40 objects changed, compared with kustomize alone, p50", root, plain, kustomize),
        ("S9 one chart of 40 objects changed, compared with helm alone, p50", chart, plain_objects, helm),
    ] {
        let RenderTimes { commits, renders } = rendered;
        let own = commits.median().saturating_sub(unrendered.median());
        let measured = format!(
            "{:.1} ms for {:.1} ms, {:.1} ms of it the render, {:.1} ms with the write",
            ms(own),
            ms(alone),
            ms(renders.median()),
            ms(commits.median())
        );
        table.judge(what, measured, AimComparison::of("≤ 10 ms more", own <= alone + ADDED));
    }
    Ok(())
}

/// The times of commits to files outside of all roots, to an overlay and to a chart.
struct Replay {
    plain: Times,
    /// As many files as the chart has objects.
    plain_objects: Times,
    root: RenderTimes,
    chart: RenderTimes,
}

/// The times of commits that change one root.
struct RenderTimes {
    /// From each commit to its write.
    commits: Times,
    /// From the files of the root to its objects, as the daemon says.
    renders: Times,
}

/// Pushes commits of each kind, and counts the roots that they have rendered.
fn replay(
    site: &mut FollowedRepository<'_>,
    options: &Options,
    count: usize,
    table: &mut Table,
) -> Outcome<Replay> {
    let samples = options.samples;
    let first = rendered_roots(site.daemon)?;
    let plain = site.commit_times(samples, |_, version| Overlays::plain(version))?;
    let plain_objects = site.commit_times_of_many(samples, |_, version| Overlays::plain_objects(version))?;
    let renders = rendered_roots(site.daemon)? - first;
    let known = render_times(site.daemon)?.len();
    let commits = site.commit_times(samples, |sample, version| Overlays::patch(sample % count, version))?;
    let root = RenderTimes { commits, renders: renders_after(site.daemon, known)? };
    let before = rendered_roots(site.daemon)?;
    let known = render_times(site.daemon)?.len();
    let commits = site.commit_times(samples, |_, version| Overlays::values(version))?;
    let chart = RenderTimes { commits, renders: renders_after(site.daemon, known)? };
    let charts = rendered_roots(site.daemon)? - before;
    site.commit_times(1, |_, version| Overlays::base(version))?;
    let measured = format!("{}, {renders} renders", plain.spread());
    let what = "S9 commit outside all closures → write";
    table.judge(what, measured, AimComparison::of("0 renders", renders == 0));
    let touched = RenderedRoots {
        rendered: rendered_roots(site.daemon)? - first,
        // The base is a root itself.
        changed: 2 * samples + count + 1,
        commits: 4 * samples + 1,
    };
    touched.judge(count + 2, table);
    let measured = format!("{:.2}", charts as f64 / samples as f64);
    let what = "S9 renders of a chart for each commit that changes its values";
    table.judge(what, measured, AimComparison::of("1.00", charts == samples));
    table.note_ratio(Ratio::RenderedCharts, charts as f64 / samples as f64);
    Ok(Replay { plain, plain_objects, root, chart })
}

/// The roots that were rendered while commits were replayed.
struct RenderedRoots {
    rendered: usize,
    /// The roots whose closure a commit changed, once for each commit.
    changed: usize,
    commits: usize,
}

impl RenderedRoots {
    fn judge(&self, roots: usize, table: &mut Table) {
        let Self { rendered, changed, commits } = self;
        let share = 100.0 * *rendered as f64 / (roots * commits) as f64;
        let measured = format!("{rendered} for {changed}, {share:.1} % of all");
        let what = format!(
            "S9 roots rendered by {commits} commits among {roots} roots, compared with those changed"
        );
        table.judge(&what, measured, AimComparison::of("as many", rendered == changed));
        table.note_ratio(Ratio::RenderedRoots, *rendered as f64 / *changed as f64);
    }
}

/// Returns how many roots a daemon has rendered so far, each time that it did.
pub(crate) fn rendered_roots(daemon: &Daemon) -> Outcome<usize> {
    let count = |line: &String| {
        let (_, rest) = line.split_once("roots=")?;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    let lines = daemon.says(RENDERED, 1, Duration::ZERO)?;
    lines.iter().map(|line| count(line).ok_or_else(|| format!("no number of roots in {line:?}").into())).sum()
}

/// Returns the time of each render that a daemon has reported so far.
fn render_times(daemon: &Daemon) -> Outcome<Vec<Duration>> {
    let time = |line: &String| {
        let (_, rest) = line.split_once(RENDERED)?;
        rest.split_once(" ms")?.0.parse().ok().map(Duration::from_millis)
    };
    let lines = daemon.says(RENDERED, 1, Duration::ZERO)?;
    lines.iter().map(|line| time(line).ok_or_else(|| format!("no time in {line:?}").into())).collect()
}

/// Returns the times of the renders after so many.
fn renders_after(daemon: &Daemon, known: usize) -> Outcome<Times> {
    let times = render_times(daemon)?.split_off(known);
    if times.is_empty() { Err("no commit has rendered anything".into()) } else { Ok(Times::new(times)) }
}

/// The words for kustomize.
const BUILD: [&str; 4] = ["build", "--load-restrictor", "LoadRestrictionsNone", "."];

/// Returns the median time of a program by itself.
fn alone(program: &Path, folder: &Path, words: &[&str], samples: usize) -> Outcome<Duration> {
    let mut times = Vec::new();
    for _ in 0..samples {
        std::thread::sleep(PAUSE);
        times.push(run(bare(program, folder, words), &[0])?.time);
    }
    Ok(Times::new(times).median())
}

fn bare(program: &Path, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env_clear().envs(GO_ENVIRONMENT).env("HOME", "/nonexistent");
    command
}

/// Measures the processor time of all roots, beside that of the programs alone.
fn cold(programs: &Renderers, overlays: &Overlays, tree: &Path, table: &mut Table) -> Outcome<()> {
    let mut theirs = Duration::ZERO;
    for number in 0..overlays.count {
        let folder = tree.join(format!("overlays/{number:03}"));
        theirs += run(bare(&programs.kustomize, &folder, &BUILD), &[0])?.cpu;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
    let folders = programs.kustomize.parent().ok_or("kustomize has no folder")?;
    let runtime = runtime_folder()?;
    command.args(["validate", &tree.join("overlays").to_string_lossy()]).env("PATH", folders);
    command.env("RUNTIME_DIRECTORY", runtime.path());
    let ours = run(command, &[0])?;
    progress(&format!(
        "{} roots: {:.1} s of {:.1} s",
        overlays.count,
        ours.time.as_secs_f64(),
        ours.cpu.as_secs_f64()
    ));
    let times = ratio(ours.cpu, theirs);
    let measured = format!("{times:.2} × {:.1} s", theirs.as_secs_f64());
    let what = format!("S9 {} overlays cold, processor time compared with kustomize alone", overlays.count);
    table.judge(&what, measured, AimComparison::of("≤ 1.1 ×", times <= 1.1));
    table.note_ratio(Ratio::RenderTime, times);
    Ok(())
}

/// Measures what closures take of the daemon's memory, beside the same objects in plain files.
fn closures(programs: &Renderers, options: &Options, table: &mut Table) -> Outcome<()> {
    let count = options.many * 2 / 5;
    let map = |number: usize| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{number:05}, namespace: default}}\ndata: {{a: b}}\n"
        )
    };
    let mut resident = BTreeMap::new();
    for rendered in [false, true] {
        let cluster = Cluster::builder().bare().start()?;
        let mut files = Vec::new();
        for number in 0..count {
            files.push(file(&format!("roots/{number:05}/map.yaml"), map(number)));
            if rendered {
                let text = "resources: [map.yaml]\n".to_owned();
                files.push(file(&format!("roots/{number:05}/kustomization.yaml"), text));
            }
        }
        let repository = Repository::new(files.into_iter())?;
        let program = Program::new(&cluster.kubeconfig_for("rhumb")?)?;
        let folder = TempDir::new()?;
        let config = configuration(folder.path(), programs, &repository)?;
        let daemon = program.daemon(&["run", "--config", &config])?;
        daemon.says("created", count, Duration::from_mins(15))?;
        daemon.rests()?;
        let memory = daemon.memory()?;
        progress(&format!("{count} objects, rendered: {rendered}: {memory}"));
        resident.insert(rendered, memory.rss);
    }
    let added = resident[&true] - resident[&false];
    let what = format!("S9 memory of the idle daemon for {count} closures");
    table.judge(&what, format!("{added:.1} MiB"), AimComparison::of("≤ 4 MiB", added <= 4.0));
    Ok(())
}
