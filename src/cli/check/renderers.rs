//! Checks the programs that render, their sandbox, and the age identities. A missing one
//! matters only to a source that has something for it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::super::identities;
use super::super::rendering::private_folder;
use super::{CheckLevel, CheckReport};
use crate::config::{Config, RenderMode, RendererConfig, SourceConfig};
use crate::input::RenderHost;
use crate::input::sandbox::{RenderProgram, Sandbox, SandboxSupport};
use crate::object::count_text;

/// The programs that were looked for, with the settings by which they were.
#[derive(Debug, Default)]
pub(super) struct CheckedPrograms(Vec<(RendererConfig, RenderProgram)>);

impl CheckedPrograms {
    /// Looks for the programs that were not looked for yet. With the first of them, tries the
    /// sandbox with a process that does nothing.
    pub(super) async fn check_programs(
        &mut self,
        source: &SourceConfig,
        programs: impl IntoIterator<Item = RenderProgram>,
        report: &mut CheckReport,
    ) {
        for program in programs {
            let wanted = (source.renderers.clone(), program);
            if self.0.contains(&wanted) {
                continue;
            }
            check_program(&source.renderers, program, report).await;
            if self.0.is_empty() {
                check_sandbox(&source.renderers, report).await;
            }
            self.0.push(wanted);
        }
    }
}

/// Looks for the programs that the configuration names or asks for. A source that has something for
/// other programs is reported when it is read.
pub(super) async fn check_renderers(config: &Config, report: &mut CheckReport) -> CheckedPrograms {
    let mut checked = CheckedPrograms::default();
    for source in &config.sources {
        let requested = RenderProgram::ALL.into_iter().filter(|program| is_asked_for(source, *program));
        checked.check_programs(source, requested, report).await;
    }
    check_identities(config, report);
    checked
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

/// Reads each file of age identities that a source would use, and looks for the memory in which
/// files are opened.
fn check_identities(config: &Config, report: &mut CheckReport) {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    let decrypters: Vec<_> =
        config.sources.iter().map(|source| (source, identities::of_source(source))).collect();
    let opening = decrypters
        .iter()
        .find(|(source, decrypter)| source.render != RenderMode::None && decrypter.file().is_some());
    if let Some((source, _)) = opening {
        match host_of(&source.renderers).memory_obstacle() {
            None => report.add(CheckLevel::Ok, "encrypted files can be opened in memory for a render"),
            Some(why) => report.add(CheckLevel::Warning, why),
        }
    }
    for (_, decrypter) in &decrypters {
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
