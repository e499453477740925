//! The sandbox under the packaged unit, whose own restrictions are around it, on a real systemd.

use std::fs;
use std::path::Path;

use rhumb::testing::input::sandbox::ENTRY_COMMAND;

use crate::fixture::kustomize;
use crate::host::Host;
use crate::probe::{Link, probe};
use crate::wait::{DEFAULT_TIMEOUT, eventually};

/// Where the host has the programs.
const PROGRAMS: &str = "/run/host/bin";

/// Installs the packaged unit, which starts sandboxed programs one after another in place of the
/// daemon. The first process is their parent.
fn install(to: &Path) {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/rhumb.service");
    let limits = format!("{} 60 {} 256", 512 << 20, 16 << 20);
    let entry = |network: &str| {
        format!(
            "{PROGRAMS}/rhumb {ENTRY_COMMAND} full 1 {limits} 1 /run/host/tree /run/rhumb {network} {PROGRAMS}"
        )
    };
    let inside = "/run/rhumb/file";
    let runs = [
        "kustomize build /run/host/tree".to_owned(),
        "probe read /run/host/canary".to_owned(),
        "probe fork".to_owned(),
        "probe call socket".to_owned(),
        "probe limits".to_owned(),
        format!("probe write {inside} 1"),
        "loaded thread".to_owned(),
    ];
    let start = |network: &str, run: &str| format!("ExecStart=-{}/{run}\n", entry(network));
    let starts =
        runs.map(|run| start("none", &run)).concat() + &start("443,53", "probe call socket-datagram");
    let text = fs::read_to_string(unit).unwrap();
    let daemon_only = ["NotifyAccess=", "ExecReload=", "WatchdogSec=", "Restart", "LoadCredential=", "Type="];
    let lines = text.lines().filter(|line| !daemon_only.iter().any(|setting| line.starts_with(setting)));
    let lines = lines.map(|line| match line.strip_prefix("ExecStart=") {
        Some(_) => format!("Type=oneshot\n{starts}\n"),
        None => format!("{line}\n"),
    });
    fs::write(to.join("units/rhumb.service"), lines.collect::<String>()).unwrap();
    for folder in ["bin", "tree"] {
        fs::create_dir(to.join(folder)).unwrap();
    }
    let programs = [
        ("rhumb", Path::new(env!("CARGO_BIN_EXE_rhumb"))),
        ("kustomize", kustomize()),
        ("probe", probe(Link::Static)),
        ("loaded", probe(Link::Dynamic)),
    ];
    for (name, path) in programs {
        fs::copy(path, to.join("bin").join(name)).unwrap();
    }
    fs::write(to.join("canary"), "canary").unwrap();
    fs::write(to.join("tree/kustomization.yaml"), "namePrefix: rendered-\nresources: [a.yaml]\n").unwrap();
    fs::write(to.join("tree/a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n").unwrap();
}

#[test]
fn the_packaged_unit_lets_programs_be_sandboxed() {
    let Some(host) = Host::boot(install) else { return };
    host.output(&["systemctl", "start", "rhumb"]);
    assert_eq!(host.shows("Result"), "success", "{}", host.output(&["journalctl"]));
    let expected = [
        "  name: rendered-map",
        "read: Permission denied",
        "fork: Operation not permitted",
        "socket: Operation not permitted",
        "memory 536870912 536870912",
        "core 0 0",
        "write: done",
        "thread: done",
        "socket-datagram: done",
    ];
    // The journal takes what was printed a moment later.
    let said = eventually("the journal has all of it", DEFAULT_TIMEOUT, || {
        let said: Vec<String> = host
            .journal()
            .iter()
            .filter(|entry| entry["_TRANSPORT"] == "stdout")
            .filter_map(|entry| entry["MESSAGE"].as_str().map(str::to_owned))
            .collect();
        match expected.iter().find(|line| !said.iter().any(|other| other == **line)) {
            None => Ok(said),
            Some(line) => Err(format!("{line} is missing in {said:#?}")),
        }
    });
    assert!(!said.iter().any(|line| line.contains("canary")), "{said:#?}");
}
