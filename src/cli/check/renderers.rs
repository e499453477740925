//! The programs that render, the walls around them, and the age identities: whether they can be
//! used. What is missing matters only to a source that has something for it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::super::rendering::{SourceRendering, private_folder};
use super::{CheckLevel, CheckReport};
use crate::config::{Config, RendererConfig};
use crate::input::RenderHost;
use crate::input::sandbox::{RenderProgram, Sandbox, SandboxSupport};

/// Looks for the programs of the configuration, and raises the walls around nothing.
pub(super) async fn check_renderers(config: &Config, report: &mut CheckReport) {
    let mut seen: Vec<&RendererConfig> = Vec::new();
    for source in &config.sources {
        if !seen.contains(&&source.renderers) {
            seen.push(&source.renderers);
            check_programs(&source.renderers, report).await;
        }
    }
    check_identities(config, report);
}

async fn check_programs(renderers: &RendererConfig, report: &mut CheckReport) {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let host = RenderHost::new(renderers, search, private_folder());
    for program in RenderProgram::ALL {
        match host.find(program).await {
            Ok(found) => {
                report
                    .add(CheckLevel::Ok, format!("{program} {} at {}", found.version, found.path.display()));
            }
            Err(error) => report.add(CheckLevel::Warning, error.to_string()),
        }
    }
    let Ok(private) = tempfile::tempdir_in(private_folder()) else { return };
    match SandboxSupport::probe(&Sandbox::default(), private.path()).await {
        Ok(support) => match support.allows(host.confinement()) {
            Ok(()) => report.add(CheckLevel::Ok, "programs that render can be confined"),
            Err(why) => {
                report.add(CheckLevel::Warning, format!("programs that render cannot be confined: {why}"));
            }
        },
        Err(error) => report.add(CheckLevel::Warning, error.to_string()),
    }
}

/// Reads each file of age identities that a source would use.
fn check_identities(config: &Config, report: &mut CheckReport) {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for source in &config.sources {
        let decrypter = SourceRendering::of(source).decrypter();
        let Some(file) = decrypter.file().filter(|file| files.insert(file.to_path_buf())) else { continue };
        match decrypter.identities() {
            Ok(identities) => {
                let count = identities.recipients().count();
                report.add(CheckLevel::Ok, format!("{}: {count} age identities", file.display()));
            }
            Err(why) => report.add(CheckLevel::Missing, format!("age identities: {why}")),
        }
    }
}
