use std::fs;

use tempfile::TempDir;

use super::*;
use crate::cli::args::{Color, Command, CommandLine, parse};
use crate::cli::one_shot_input::OneShotSource;
use crate::config::{PositiveDuration, SourceConfig, SourceLocation};
use crate::engine::{AdoptPolicy, BlastRadius};

fn typed(line: &str) -> CommandLine {
    let words = std::iter::once("rhumb").chain(line.split_whitespace());
    parse(words.map(Into::into)).unwrap()
}

fn settings(line: &str) -> Result<Config, CommandError> {
    let CommandLine { global, command } = typed(line);
    let terminal = Terminal::new(Color::Never);
    match command {
        Command::Run(args) => run_config(&global, &args, FileRead::First, &terminal),
        Command::Diff(args) => OneShotSource::for_diff(&global, &args).map(|once| once.config),
        Command::Apply(args) => OneShotSource::for_apply(&global, &args, &terminal).map(|once| once.config),
        _ => Ok(connection_config(&global)),
    }
}

fn source(line: &str) -> SourceConfig {
    settings(line).unwrap().sources.remove(0)
}

/// Returns a plain folder, a work tree and a file, each by its whole path.
fn places() -> (TempDir, [String; 3]) {
    let bed = TempDir::new().unwrap();
    let place = |name: &str| bed.path().join(name).display().to_string();
    fs::create_dir_all(bed.path().join("folder/deploy")).unwrap();
    fs::create_dir_all(bed.path().join("vacant")).unwrap();
    fs::create_dir_all(bed.path().join("tree/.git")).unwrap();
    fs::create_dir_all(bed.path().join("tree/deploy")).unwrap();
    fs::write(bed.path().join("tree/deploy/web.yaml"), "").unwrap();
    fs::create_dir_all(bed.path().join("bare.git/objects")).unwrap();
    fs::create_dir_all(bed.path().join("bare.git/refs")).unwrap();
    fs::write(bed.path().join("bare.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(bed.path().join("file.yaml"), "").unwrap();
    let places = [place("folder"), place("tree"), place("file.yaml")];
    (bed, places)
}

#[test]
fn a_repository_is_followed_and_looked_at_on_disk() {
    fn check(line: &str, expected: &SourceLocation) {
        assert_eq!(source(line).location, *expected, "{line}");
    }
    let (_bed, [folder, tree, file]) = places();
    let git = |url: &str, reference: Option<&str>, path: &str| SourceLocation::Git {
        url: GitUrl::new(url),
        reference: reference.map(str::to_owned),
        path: path.parse().unwrap(),
        interval: PositiveDuration::from_seconds(60),
        verify: None,
    };
    let disk = |path: String| SourceLocation::Directory(path.into());
    check(&format!("run {tree}"), &git(&tree, None, ""));
    check(&format!("run {tree} --ref v1 --path ./a/b/"), &git(&tree, Some("v1"), "a/b"));
    check(&format!("run {folder}"), &disk(folder.clone()));
    check(&format!("run {folder} --path deploy"), &disk(format!("{folder}/deploy")));
    // Not there yet: what it is will show; a name that is taken for a host stays one.
    check(&format!("run {folder}/later --path a"), &git(&format!("{folder}/later"), None, "a"));
    check(
        &format!("run {}", folder.replace("folder", "vacant")),
        &git(&folder.replace("folder", "vacant"), None, ""),
    );
    check("run git@host:shop.git --ref main", &git("git@host:shop.git", Some("main"), ""));
    check(&format!("diff {tree}"), &disk(tree.clone()));
    check(&format!("apply {tree} --path deploy"), &disk(format!("{tree}/deploy")));
    check(&format!("diff {tree} --ref v1"), &git(&tree, Some("v1"), ""));
    check("apply https://host/shop.git", &git("https://host/shop.git", None, ""));
    // No files to look at: a URL, also one of this host, and a bare repository.
    let bare = tree.replace("tree", "bare.git");
    check(&format!("diff file://{tree}"), &git(&format!("file://{tree}"), None, ""));
    check(&format!("diff {bare}"), &git(&bare, None, ""));
    check(&format!("apply {bare} --path a"), &git(&bare, None, "a"));
    check(&format!("diff file://{folder}"), &disk(folder.clone()));
    for wrong in [
        format!("run {folder} --ref v1"),
        format!("diff {folder} --ref v1"),
        format!("diff {tree}/deploy --ref v1"),
        format!("diff {file} --ref v1"),
        format!("apply {file} --prune"),
        format!("run {folder} --interval 5m"),
        format!("apply {folder}/nowhere"),
        format!("run {file}"),
        "run ext::sh".to_owned(),
    ] {
        assert_eq!(settings(&wrong).unwrap_err().exit, ExitStatus::Unreadable, "{wrong}");
    }
}

#[test]
fn a_revision_of_a_folder_is_asked_of_its_repository() {
    fn check(line: &str, message: &str, hint: &str) {
        let error = settings(line).unwrap_err();
        assert!(error.message.contains(message), "{line}: {}", error.message);
        assert!(error.hints.concat().contains(hint), "{line}: {:?}", error.hints);
    }
    let (bed, [folder, tree, _]) = places();
    let absolute = bed.path().canonicalize().unwrap().join("tree").display().to_string();
    let apart = format!("{absolute} --path deploy");
    for command in ["run", "diff", "apply"] {
        check(&format!("{command} {tree}/deploy --ref v1"), "is only a folder of the git repository", &apart);
        check(&format!("{command} {folder} --ref v1"), "is in no git repository", "--path");
    }
}

#[test]
fn a_relative_path_is_made_absolute() {
    let here = std::env::current_dir().unwrap();
    assert_eq!(source("diff src").location, SourceLocation::Directory(here.join("src")));
}

#[test]
fn flags_say_what_a_source_may_do() {
    let (_bed, [folder, tree, _]) = places();
    let plain = source(&format!("run {folder}"));
    assert_eq!((plain.name.as_str(), plain.namespace.as_str()), ("folder", "default"));
    assert_eq!(
        (plain.prune, plain.adopt, plain.mode),
        (PrunePolicy::On, AdoptPolicy::IfUnowned, SourceMode::Enforce)
    );
    assert_eq!(plain.blast_radius, BlastRadius::default());
    assert_eq!(source(&format!("diff {folder}")).prune, PrunePolicy::On);
    assert_eq!(source(&format!("apply {folder}")).prune, PrunePolicy::Off);
    assert_eq!(source(&format!("apply {folder} --prune")).prune, PrunePolicy::On);
    let flags = "--source shop -n store --no-prune --observe --adopt never --blast-radius 5% --interval 30s";
    let other = source(&format!("run {tree} {flags}"));
    assert_eq!((other.name.as_str(), other.namespace.as_str()), ("shop", "store"));
    assert_eq!(
        (other.prune, other.adopt, other.mode),
        (PrunePolicy::Off, AdoptPolicy::Never, SourceMode::Observe)
    );
    assert_eq!(other.blast_radius, "5%".parse().unwrap());
    let SourceLocation::Git { interval, .. } = other.location else { panic!("a repository") };
    assert_eq!(interval, PositiveDuration::from_seconds(30));
}

#[test]
fn flags_take_precedence_over_the_file() {
    let bed = TempDir::new().unwrap();
    let file = bed.path().join("rhumb.yaml");
    let text = "
apiVersion: rhumb.dev/v1alpha1
kind: Configuration
kubeconfig: file
context: file
namespace: file
stateDirectory: file
---
apiVersion: rhumb.dev/v1alpha1
kind: Source
metadata: {name: shop}
spec: {directory: shop}
";
    fs::write(&file, text).unwrap();
    let line = format!("run --config {}", file.display());
    let plain = settings(&line).unwrap();
    assert_eq!(plain.connection.kubeconfig, Some(bed.path().join("file")));
    assert_eq!(plain.sources[0].location, SourceLocation::Directory(bed.path().join("shop")));
    let flags = "--kubeconfig flag --context flag --system-namespace flag --state-directory flag --observe";
    let other = settings(&format!("{line} {flags}")).unwrap();
    assert_eq!(other.connection.kubeconfig, Some("flag".into()));
    assert_eq!(other.connection.context.as_deref(), Some("flag"));
    assert_eq!((other.namespace.as_str(), other.state_directory), ("flag", Some("flag".into())));
    assert_eq!(other.sources[0].mode, SourceMode::Observe);
    assert_eq!(settings(&format!("{line}x")).unwrap_err().exit, ExitStatus::BadConfiguration);
}

#[test]
fn a_source_without_a_name_has_that_of_its_place() {
    fn check(line: &str, expected: &str) {
        assert_eq!(source(line).name, expected, "{line}");
    }
    let (_bed, [folder, tree, file]) = places();
    check(&format!("run {folder}/"), "folder");
    check(&format!("run {folder} --path deploy"), "deploy");
    // Followed or looked at, it is one source.
    for command in ["run", "diff", "apply"] {
        check(&format!("{command} {tree}"), "tree");
        check(&format!("{command} {tree} --path deploy"), "tree-deploy");
        check(&format!("{command} {tree} --path deploy --source shop"), "shop");
        check(&format!("{command} https://host/org/Shop.git --path deploy/prod"), "shop-deploy-prod");
        check(&format!("{command} git@host:shop.git"), "shop");
    }
    check(&format!("apply {tree}/deploy"), "tree-deploy");
    check(&format!("apply {}", tree.replace("tree", "bare.git")), "bare");
    // Of files it is that of the folder that they are all in.
    let folder = folder.replace("/folder", "");
    let folder = std::path::Path::new(&folder).file_name().unwrap().to_str().unwrap();
    let folder = folder.trim_start_matches('.').to_lowercase();
    check(&format!("apply {file}"), &folder);
    check(&format!("diff -f {file} -f {tree}/deploy/web.yaml"), &folder);
    check(&format!("diff -f {tree}/deploy/web.yaml"), "tree-deploy");
}

#[test]
fn files_that_are_named_one_by_one_prune_nothing() {
    let (_bed, [folder, tree, file]) = places();
    for line in [
        format!("diff {file}"),
        format!("apply {file}"),
        format!("diff -f {file}"),
        format!("apply -f {file} -f {tree}/deploy/web.yaml"),
        format!("apply -f {tree}/deploy"),
    ] {
        assert_eq!(source(&line).prune, PrunePolicy::Partial, "{line}");
    }
    for (wrong, expected) in [
        (format!("apply {file} --prune"), "--prune needs a whole source"),
        (format!("diff {file} --path a"), "--path is of a repository"),
        (format!("apply -f {folder}/none.yaml"), "no such file or directory"),
        ("apply -f https://host/a.yaml".to_owned(), "is a URL"),
    ] {
        let error = settings(&wrong).unwrap_err();
        assert!(error.message.contains(expected), "{wrong}: {}", error.message);
    }
}

#[test]
fn signs_of_life_are_for_the_process_that_is_named() {
    fn check(micros: Option<u64>, named: Option<u64>, expected: Option<u64>) {
        assert_eq!(watchdog_interval(micros, named, 7), expected.map(std::time::Duration::from_micros));
    }
    check(None, None, None);
    check(Some(0), None, None);
    check(Some(30), None, Some(30));
    check(Some(30), Some(7), Some(30));
    check(Some(30), Some(8), None);
}

#[test]
fn a_socket_and_a_cluster_are_not_named_together() {
    let socket = Path::new("/run/here.sock");
    let namespace = GlobalArgs { system_namespace: Some("here".parse().unwrap()), ..GlobalArgs::default() };
    assert_eq!(status_source(&namespace, None).unwrap(), StatusSource::Cluster);
    assert_eq!(status_source(&namespace, Some(socket)).unwrap(), StatusSource::Daemon(socket.to_owned()));
    for (flag, global) in [
        ("--kubeconfig", GlobalArgs { kubeconfig: Some("file".into()), ..GlobalArgs::default() }),
        ("--context", GlobalArgs { context: Some("here".to_owned()), ..GlobalArgs::default() }),
    ] {
        assert_eq!(status_source(&global, None).unwrap(), StatusSource::Cluster, "{flag}");
        let error = status_source(&global, Some(socket)).unwrap_err();
        assert_eq!(error.message, format!("--socket cannot be used with {flag}"));
    }
    assert_eq!(
        status_source(&GlobalArgs::default(), Some(socket)).unwrap(),
        StatusSource::Daemon(socket.to_owned())
    );
}
