//! Questions to a daemon about many objects.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use controlplane::Cluster;
use tempfile::TempDir;

use crate::api::Api;
use crate::corpus::{Corpus, KindMix};
use crate::numbers::{Times, ms};
use crate::options::Options;
use crate::program::Program;
use crate::repository::Repository;
use crate::table::{AimComparison, Table};
use crate::{Outcome, block_on};

/// The slowest answer that nobody waits for.
const MAX_ANSWER_TIME: Duration = Duration::from_millis(50);

/// Measures S8. Nobody makes pods there, so that each Deployment is reported as one that is not
/// healthy: the longest answer that there is.
pub(crate) fn measure(options: &Options, table: &mut Table) -> Outcome<()> {
    let cluster = Cluster::builder().bare().start()?;
    let corpus = Corpus::new("fleet", KindMix::Deployments, options.many);
    block_on(async {
        Api::connect(cluster.kubeconfig()).await?.make_namespaces(&corpus.namespaces()).await
    })?;
    let repository = Repository::new(corpus.manifests())?;
    let program = Program::new(cluster.kubeconfig())?;
    let folder = TempDir::new()?;
    let (config, socket) = (folder.path().join("rhumb.yaml"), folder.path().join("rhumb.sock"));
    let version = "apiVersion: rhumb.dev/v1alpha1";
    let text = format!(
        "{version}\nkind: Configuration\nserve:\n  socket: {}\n---\n{version}\nkind: Source\nmetadata:\n  name: default\n\
         spec:\n  git:\n    url: {}\n",
        socket.display(),
        repository.path().display()
    );
    std::fs::write(&config, text)?;
    let daemon = program.daemon(&["run", "--config", &config.to_string_lossy()])?;
    daemon.says("created", options.many, Duration::from_mins(15))?;
    daemon.rests()?;
    for (page, aim) in [
        ("/v1/status", Some(MAX_ANSWER_TIME)),
        ("/metrics", None),
        ("/v1/objects?phase=Failed", None),
        ("/v1/objects", None),
    ] {
        let mut times = Vec::new();
        let mut length = 0;
        for _ in 0..options.samples {
            let start = Instant::now();
            length = ask(&socket, page)?;
            times.push(start.elapsed());
        }
        let times = Times::new(times);
        let what = format!("S8 {page} at {} Deployments", options.many);
        let measured = format!("{}, {} KiB", times.spread(), length / 1024);
        match aim {
            Some(most) => {
                let slowest = times.percentile(100);
                let measured = format!("{measured}, slowest {:.1} ms", ms(slowest));
                table.judge(&what, measured, AimComparison::of("< 50 ms", slowest < most));
            }
            None => table.add(&what, measured),
        }
    }
    Ok(())
}

/// Returns the length of an answer, in bytes.
fn ask(socket: &Path, page: &str) -> Outcome<usize> {
    let mut stream = UnixStream::connect(socket)?;
    write!(stream, "GET {page} HTTP/1.1\r\nHost: rhumb\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(format!(
            "{page}: {}",
            String::from_utf8_lossy(&answer).lines().next().unwrap_or("no answer")
        )
        .into());
    }
    Ok(answer.len())
}
