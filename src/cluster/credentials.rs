//! Credentials that are replaced while rhumb runs: noticed by their files, before the old ones are refused.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use super::call::Cluster;

/// What tells a file from what stood in its place before; none where there is no file.
type Stamp = Option<(u64, i64, i64, u64)>;

impl Cluster {
    /// Looks at the kubeconfig's files again and again, from this call on, and uses what a newer one says. One that
    /// is not usable, or names another cluster, changes nothing. Never ends.
    pub fn follow_credentials(&self, pause: Duration) -> impl Future<Output = ()> + Send + 'static {
        let (cluster, files) = (self.clone(), self.files());
        let mut known: Vec<Stamp> =
            files.iter().map(|file| std::fs::metadata(file).ok().map(stamp)).collect();
        async move {
            loop {
                tokio::time::sleep(pause).await;
                let now = stamps(&files).await;
                if now != known && now.iter().any(Option::is_some) {
                    known = now;
                    cluster.try_newer().await;
                }
            }
        }
    }

    async fn try_newer(&self) {
        match self.try_anew().await {
            Ok(None) => tracing::info!("the kubeconfig has changed and is in use"),
            Ok(Some(why)) => tracing::warn!("{why}; what was read before stays in use"),
            Err(error) => {
                tracing::warn!("the kubeconfig has changed, and what was read before stays in use: {error}");
            }
        }
    }
}

async fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    for file in files {
        stamps.push(tokio::fs::metadata(file).await.ok().map(stamp));
    }
    stamps
}

fn stamp(metadata: Metadata) -> (u64, i64, i64, u64) {
    (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.size())
}
