//! Faults of the state directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use walkdir::WalkDir;

use crate::fault::{Fault, Obstacle};
use crate::processes::empty;
use crate::stage::{Effect, Stage};

fn state(stage: &Stage) -> PathBuf {
    stage.replicas[0].site.state.path().to_owned()
}

/// Spoils the state directory around both commits, of a running daemon or of one that starts.
fn spoiled(name: &'static str, spoil: fn(&Path)) -> Fault {
    Fault::new(name, "the state directory", move |stage| {
        let starts = stage.random.below(2) == 0;
        if starts {
            stage.daemon().kill();
        }
        spoil(&state(stage));
        if starts {
            stage.daemon().start();
        }
        stage.change();
        stage.pass(500, 2000);
        spoil(&state(stage));
        stage.remove_old();
        stage.pass(500, 2000);
        Ok(())
    })
}

fn each_file(folder: &Path, work: impl Fn(&Path, Vec<u8>)) {
    let entries = WalkDir::new(folder).into_iter().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_type().is_file()) {
        if let Ok(bytes) = fs::read(entry.path()) {
            let _ = fs::remove_file(entry.path());
            work(entry.path(), bytes);
        }
    }
}

fn flip(folder: &Path) {
    each_file(folder, |path, mut bytes| {
        for byte in bytes.iter_mut().step_by(29) {
            *byte ^= 0xa5;
        }
        let _ = fs::write(path, bytes);
    });
}

fn cut(folder: &Path) {
    each_file(folder, |path, bytes| drop(fs::write(path, &bytes[..bytes.len() / 2])));
}

fn blank(folder: &Path) {
    each_file(folder, |path, _| drop(fs::write(path, "")));
}

/// Removes the directory itself, and puts a file in its place.
fn replace(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let _ = fs::write(folder, "no directory");
}

/// Runs a command in the mount namespace of the daemon.
fn run_inside(stage: &mut Stage, words: &[&str]) -> Result<(), Obstacle> {
    let pid = stage.daemon().pid().to_string();
    let mut command = Command::new("nsenter");
    command.args(["--mount", "--target", &pid]).args(words);
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(Obstacle::Unsupported(format!("nsenter {words:?}: {other:?}"))),
    }
}

/// Starts the daemon with a small file system of its own as its state directory, which goes with
/// it.
fn mounted(stage: &mut Stage, size: &str) -> Result<PathBuf, Obstacle> {
    let may = Command::new("unshare").args(["--mount", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        return Err(Obstacle::Unsupported("no mount namespaces for this user".to_owned()));
    }
    let folder = state(stage);
    let script = format!("mount -t tmpfs -o size={size} tmpfs {} && exec \"$0\" \"$@\"", folder.display());
    stage.daemon().kill();
    stage.daemon().wrap(&["unshare", "--mount", "sh", "-c", &script]);
    stage.daemon().start();
    let mounts = |stage: &Stage| {
        let mounts =
            fs::read_to_string(format!("/proc/{}/mounts", stage.replicas[0].pid())).unwrap_or_default();
        mounts.contains(&*folder.to_string_lossy())
    };
    stage.await_live("the file system is mounted", mounts)?;
    Ok(folder)
}

/// Returns a row with a small file system, before whose end it has room and may be written.
fn small(
    name: &'static str,
    spoil: impl Fn(&mut Stage, &str) -> Result<(), Obstacle> + Send + Sync + 'static,
    heal: impl Fn(&mut Stage, &str) -> Result<(), Obstacle> + Send + Sync + 'static,
) -> Fault {
    Fault::new(name, "the file system of the state directory", move |stage| {
        stage.allow(Effect::EndsProcesses);
        let folder = mounted(stage, "8m,nr_inodes=4k")?;
        let folder = folder.to_string_lossy();
        stage.pass(1000, 2000);
        spoil(stage, &folder)?;
        stage.change();
        stage.pass(1000, 3000);
        stage.remove_old();
        stage.pass(1000, 3000);
        stage.check_status();
        heal(stage, &folder)
    })
}

/// Returns all rows.
pub(crate) fn faults() -> Vec<Fault> {
    let fill = |stage: &mut Stage, folder: &str| {
        let script = format!("cat /dev/zero > {folder}/full; true");
        run_inside(stage, &["sh", "-c", &script])
    };
    let free = |stage: &mut Stage, folder: &str| run_inside(stage, &["rm", "-f", &format!("{folder}/full")]);
    let exhaust = |stage: &mut Stage, folder: &str| {
        let script = format!("mkdir {folder}/many && cd {folder}/many && seq 5000 | xargs touch; true");
        run_inside(stage, &["sh", "-c", &script])
    };
    let release =
        |stage: &mut Stage, folder: &str| run_inside(stage, &["rm", "-rf", &format!("{folder}/many")]);
    let freeze = |stage: &mut Stage, folder: &str| run_inside(stage, &["mount", "-o", "remount,ro", folder]);
    let thaw = |stage: &mut Stage, folder: &str| run_inside(stage, &["mount", "-o", "remount,rw", folder]);
    vec![
        spoiled("the state is removed", empty),
        spoiled("bits of the state flip", flip),
        spoiled("the state is cut in half", cut),
        spoiled("the state is blank", blank),
        Fault::new("a file in the place of the state directory", "the state directory", |stage| {
            stage.allow(Effect::EndsProcesses);
            let folder = state(stage);
            replace(&folder);
            stage.change();
            stage.pass(1000, 3000);
            fs::remove_file(&folder).unwrap();
            fs::create_dir(&folder).unwrap();
            stage.daemon().revive();
            Ok(())
        }),
        small("a full disk", fill, free),
        small("no inodes left", exhaust, release),
        small("a read-only disk", freeze, thaw),
        Fault::new("a full disk at a start", "the file system of the state directory", |stage| {
            stage.allow(Effect::EndsProcesses);
            let folder = mounted(stage, "64k,nr_inodes=4k")?;
            stage.change();
            stage.pass(2000, 4000);
            run_inside(stage, &["mount", "-o", "remount,size=8m", &folder.to_string_lossy()])
        }),
    ]
}
