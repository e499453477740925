//! The program that tries everything, built by the C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// How it is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Static,
    /// With a loader and libraries of the system.
    Dynamic,
}

/// Returns where the program is.
pub(crate) fn probe(link: Link) -> &'static Path {
    static BUILT: OnceLock<(TempDir, [PathBuf; 2])> = OnceLock::new();
    let (_, [fixed, loaded]) = BUILT.get_or_init(|| {
        let dir = TempDir::new().unwrap();
        let paths = [("static", &["-static"][..]), ("dynamic", &[])].map(|(name, flags)| {
            let path = dir.path().join(format!("probe-{name}"));
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/probe.c");
            let mut compiler = Command::new("cc");
            compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(flags);
            let output = compiler.arg("-o").arg(&path).arg(source).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            path
        });
        (dir, paths)
    });
    match link {
        Link::Static => fixed,
        Link::Dynamic => loaded,
    }
}
