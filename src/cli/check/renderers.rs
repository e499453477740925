//! Checks the programs that render, their sandbox, and the age identities. A missing one
//! matters only to a source that has something for it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::super::rendering::{SourceRendering, private_folder};
use super::{CheckLevel, CheckReport};
use crate::config::{Config, RenderMode, RendererConfig, SourceConfig};
use crate::input::RenderHost;
use crate::input::sandbox::{RenderProgram, Sandbox, SandboxSupport};
use crate::object::count_text;

/// Looks for the programs that the configuration names or asks for, and tries the sandbox with a
/// process that does nothing. Of what a source has for other programs its own reading tells.
pub(super) async fn check_renderers(config: &Config, report: &mut CheckReport) {
    let mut seen: Vec<(&RendererConfig, RenderProgram)> = Vec::new();
    for source in &config.sources {
        for program in RenderProgram::ALL.into_iter().filter(|program| is_asked_for(source, *program)) {
            if !seen.contains(&(&source.renderers, program)) {
                seen.push((&source.renderers, program));
                check_program(&source.renderers, program, report).await;
            }
        }
    }
    if let Some((renderers, _)) = seen.first() {
        check_sandbox(renderers, report).await;
    }
    check_identities(config, report);
}

fn is_asked_for(source: &SourceConfig, program: RenderProgram) -> bool {
    let programs = &source.renderers.programs;
    match program {
        RenderProgram::Kustomize => programs.kustomize.is_some() || source.render == RenderMode::Kustomize,
        RenderProgram::Helm => programs.helm.is_some() || source.render == RenderMode::Helm,
    }
}

fn host_of(renderers: &RendererConfig) -> RenderHost {
    RenderHost::new(renderers, std::env::var_os("PATH").unwrap_or_default(), private_folder())
}

async fn check_program(renderers: &RendererConfig, program: RenderProgram, report: &mut CheckReport) {
    match host_of(renderers).find(program).await {
        Ok(found) => {
            let text = format!("{program} {} at {}", found.version, found.path.display());
            report.add(CheckLevel::Ok, text);
        }
        Err(error) => report.add(CheckLevel::Missing, error.to_string()),
    }
}

async fn check_sandbox(renderers: &RendererConfig, report: &mut CheckReport) {
    let Ok(private) = tempfile::tempdir_in(private_folder()) else { return };
    match SandboxSupport::probe(&Sandbox::default(), private.path()).await {
        Ok(support) => match support.allows(host_of(renderers).mode()) {
            Ok(()) => report.add(CheckLevel::Ok, "the sandbox for programs that render works"),
            Err(why) => {
                report.add(
                    CheckLevel::Missing,
                    format!("the sandbox for programs that render does not work: {why}"),
                );
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
                let count = count_text(identities.recipients().count(), "age identity");
                report.add(CheckLevel::Ok, format!("{}: {count}", file.display()));
            }
            Err(why) => report.add(CheckLevel::Missing, format!("age identities: {why}")),
        }
    }
}
