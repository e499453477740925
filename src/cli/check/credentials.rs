//! Checks the files with keys, tokens and passwords: who may read them, and that those for charts
//! are there.

use std::os::unix::fs::PermissionsExt as _;

use super::super::exit::os_message;
use super::super::rendering::fetch_environment;
use super::super::settings::credentials_directory;
use super::{CheckLevel, CheckReport};
use crate::config::{Config, HostCredential};

/// The beginnings of the names of files with secrets.
const SECRET_FILES: [&str; 4] = ["ssh-key", "git-credentials", "chart-credentials", "sops-age"];

/// Finds files with secrets that others may read.
pub(super) fn check_secret_files(config: &Config, report: &mut CheckReport) {
    let mut files: Vec<_> = config.connection.kubeconfig.clone().into_iter().collect();
    let folder = credentials_directory();
    let listed = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let secret = |name: &str| SECRET_FILES.iter().any(|start| name.starts_with(start));
    files.extend(
        listed.filter(|entry| secret(&entry.file_name().to_string_lossy())).map(|entry| entry.path()),
    );
    for file in files {
        match std::fs::metadata(&file) {
            // The last three bits are everybody's.
            Ok(found) if found.permissions().mode().is_multiple_of(8) => {}
            Ok(found) => {
                let mode = found.permissions().mode() & 0o777;
                let text = format!("{}: everybody may use it (mode {mode:04o})", file.display());
                report.add(CheckLevel::Warning, text);
            }
            Err(error) => {
                report.add(CheckLevel::Missing, format!("{}: {}", file.display(), os_message(&error)));
            }
        }
    }
}

/// Reads each file with credentials for a chart server, as a fetch would. Asks no server.
pub(super) fn check_chart_credentials(config: &Config, report: &mut CheckReport) {
    let customs = config.custom_sources.is_open().then_some(&config.custom_sources.fetch);
    let all = config.sources.iter().map(|source| &source.fetch).chain(customs);
    let environment = fetch_environment();
    let mut seen: Vec<&HostCredential> = Vec::new();
    for named in all.flat_map(|fetch| &fetch.credentials) {
        if seen.contains(&named) {
            continue;
        }
        seen.push(named);
        let host = named.host.as_str();
        match environment.check_credential(named) {
            Ok(file) => {
                report.add(CheckLevel::Ok, format!("{}: credentials for charts of {host}", file.display()));
            }
            // The folder is a service's own: another process cannot look into it.
            Err(error) if environment.credentials.is_none() => {
                report.add(CheckLevel::Warning, format!("{error}, so they are not looked at"));
            }
            Err(error) => report.add(CheckLevel::Missing, error.to_string()),
        }
    }
}
