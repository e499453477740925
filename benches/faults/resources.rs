//! The judgement of secrets, resources and processes.

use std::path::Path;

use base64::Engine as _;
use walkdir::WalkDir;

use crate::desired::CANARY;
use crate::invariant::Invariant;
use crate::judge::note;
use crate::stage::{Effect, Stage};
use crate::support::at;

/// Resident memory of a process with few objects at its peak, in KiB: 64 MiB, and a third more
/// while it starts. A debug build is no measure.
const MEMORY_KIB: u64 = 64 * 1024 * 13 / 10;
/// Open files of a process.
const FILES: usize = 128;
/// Bytes of a state directory, beside twice those of the repository.
const STATE_BYTES: u64 = 64 << 20;

/// Notes all violations of I12, I13 and I14.
pub(crate) fn judge(stage: &mut Stage) {
    judge_secrets(stage);
    judge_resources(stage);
    let ends: u64 = stage.replicas.iter().map(|replica| replica.ends).sum();
    if ends > 0 && !stage.is_tolerated(Effect::EndsProcesses) {
        note(stage, Invariant::I14, format!("a process ended by itself, {ends} times"));
    }
}

/// Judges I12: the value of the Secret is in no log, Event, record and answer.
fn judge_secrets(stage: &mut Stage) {
    let standard = base64::engine::general_purpose::STANDARD.encode(CANARY);
    let quoted: String = CANARY
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("%{:02X}", u32::from(c)) })
        .collect();
    let (api, name, system) = (&stage.site.api, &stage.site.name, stage.site.system());
    let list = |kind: &str, namespace: &str| {
        let path = at(kind, namespace, "");
        api.get(&path).map(|list| list.to_string()).unwrap_or_default()
    };
    let texts = [
        ("a log", stage.logs()),
        ("an Event", list("Event", name) + &list("Event", &system)),
        ("a record", list("ConfigMap", &system)),
        ("a status", stage.replicas.iter().map(|replica| replica.status().all()).collect()),
    ];
    let forms = [CANARY.to_owned(), standard.replace('+', "-").replace('/', "_"), standard, quoted];
    let leaks = texts.iter().filter(|(_, text)| forms.iter().any(|form| text.contains(form.as_str())));
    let leaks: Vec<&str> = leaks.map(|(place, _)| *place).collect();
    for place in leaks {
        note(stage, Invariant::I12, format!("the value of the Secret is in {place}"));
    }
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = WalkDir::new(folder).into_iter().filter_map(Result::ok);
    let files = entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file);
    files.map(|metadata| metadata.len()).sum()
}

/// Judges I13: memory, open files and the state directory are bounded.
fn judge_resources(stage: &mut Stage) {
    if stage.is_tolerated(Effect::TakesResources) {
        return;
    }
    let most_bytes = STATE_BYTES + 2 * bytes_below(stage.repo.path());
    let mut found = Vec::new();
    for replica in &stage.replicas {
        let bytes = bytes_below(replica.site.state.path());
        if bytes > most_bytes {
            found.push(format!("the state directory has {bytes} bytes"));
        }
        let Some(resources) = replica.resources() else { continue };
        if resources.files > FILES {
            found.push(format!("{} files are open", resources.files));
        }
        if resources.peak_kib > MEMORY_KIB && !cfg!(debug_assertions) {
            found.push(format!("{} KiB were resident", resources.peak_kib));
        }
    }
    for observation in found {
        note(stage, Invariant::I13, observation);
    }
}
