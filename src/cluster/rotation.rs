//! Credentials that are replaced while rhumb runs: noticed by their files, before the old ones are
//! refused.

use std::path::PathBuf;
use std::time::Duration;

use super::call::Cluster;
use super::credentials::{CredentialFiles, stamp_files};

impl Cluster {
    /// Checks the files of the credentials at each pause, and uses newer ones: the kubeconfig, and
    /// the tokens, keys and certificates that it names. Files that are unusable, or name another
    /// cluster, change nothing. Never ends.
    pub fn watch_credentials(&self, pause: Duration) -> impl Future<Output = ()> + Send + 'static {
        let cluster = self.clone();
        async move {
            let (mut elsewhere, mut logged) = (None, None);
            loop {
                tokio::time::sleep(pause).await;
                let known = cluster.credential_files().await;
                let now = restamp(&known).await;
                if now == known || Some(&now) == elsewhere.as_ref() || now.values().all(Option::is_none) {
                    continue;
                }
                let (words, wrong) = match cluster.try_anew().await {
                    Ok(None) => {
                        tracing::info!(
                            "newer credentials are in use: {} changed",
                            changed_files(&known, &now)
                        );
                        (elsewhere, logged) = (None, None);
                        continue;
                    }
                    // Nothing but another file makes it the right one.
                    Ok(Some(why)) => (format!("{why}; what was read before stays in use"), Some(now)),
                    // The server may answer later, and a file that is missing may come.
                    Err(error) => {
                        let changed = changed_files(&known, &now);
                        (format!("{changed} changed, and what was read before stays in use: {error}"), None)
                    }
                };
                elsewhere = wrong;
                if logged.as_ref() != Some(&words) {
                    tracing::warn!("{words}");
                }
                logged = Some(words);
            }
        }
    }
}

/// Returns how these files look now.
async fn restamp(known: &CredentialFiles) -> CredentialFiles {
    let files: Vec<PathBuf> = known.keys().cloned().collect();
    // A disk that hangs delays nobody else.
    tokio::task::spawn_blocking(move || stamp_files(files)).await.unwrap_or_default()
}

/// Returns which files are others than before.
fn changed_files(known: &CredentialFiles, now: &CredentialFiles) -> String {
    let others = now.iter().filter(|(file, stamp)| known.get(*file) != Some(stamp));
    others.map(|(file, _)| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_that_changed_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["config", "key", "token"].map(|name| dir.path().join(name));
        for file in &files {
            std::fs::write(file, "one").unwrap();
        }
        let known = stamp_files(files.to_vec());
        assert_eq!(changed_files(&known, &stamp_files(files.to_vec())), "");
        std::fs::write(&files[2], "three").unwrap();
        assert_eq!(changed_files(&known, &stamp_files(files.to_vec())), files[2].display().to_string());
        std::fs::remove_file(&files[1]).unwrap();
        let both = format!("{}, {}", files[1].display(), files[2].display());
        assert_eq!(changed_files(&known, &stamp_files(files.to_vec())), both);
    }
}
