//! `controlplane`: a real Kubernetes control plane to play with.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use controlplane::{Builder, Cluster, Error, Part, Renderers};
use rustix::fs::FileType;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
Usage: controlplane COMMAND

Commands:
  up [--nodes N] [--real] [--bare] [--audit]
                             start a control plane and run it until Ctrl-C, or until a pipe on standard input closes
  build [renderers | helm4]  build the programs unless they are there, and print where they are: those of the
                             control plane, kustomize and Helm 3, or Helm 4

--real is one node with a kubelet and containers (root only), and none that is played unless --nodes says so. It has an
image under each name of test.local. --bare is etcd and the API server only.
The programs are kept in $XDG_CACHE_HOME/rhumb-controlplane (~/.cache/...);
RHUMB_CONTROLPLANE_BIN or KUBEBUILDER_ASSETS names a directory to take them from instead, RHUMB_RENDERERS_BIN one with
kustomize and helm.
RHUMB_CONTROLPLANE_KEEP=1 keeps the cluster's directory (logs, data) at the end.
";

/// The command line.
#[derive(Debug)]
enum Command {
    Up(Builder),
    Build(BuildTarget),
    Help,
}

/// The programs to build.
#[derive(Debug)]
enum BuildTarget {
    ControlPlane,
    Renderers,
    Helm4,
}

impl BuildTarget {
    /// Returns the directory that has it.
    fn build(&self) -> Result<PathBuf, Error> {
        let program = match self {
            Self::ControlPlane => return controlplane::programs(),
            Self::Renderers => Renderers::find()?.helm,
            Self::Helm4 => Renderers::helm4()?,
        };
        Ok(program.parent().map(Path::to_owned).unwrap_or_default())
    }
}

fn main() -> ExitCode {
    let outcome = match parse(std::env::args().skip(1)) {
        Ok(Command::Help) => say(USAGE),
        Ok(Command::Build(target)) => {
            target.build().map_err(text).and_then(|path| say(&format!("{}\n", path.display())))
        }
        Ok(Command::Up(builder)) => up(builder),
        Err(problem) => {
            complain(&format!("{problem}\n\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            complain(&problem);
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    match arguments.next().as_deref() {
        None | Some("-h" | "--help" | "help") => Ok(Command::Help),
        Some("build") => parse_build(arguments),
        Some("up") => parse_up(arguments),
        Some(other) => Err(format!("there is no command {other}")),
    }
}

fn parse_build(mut arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let target = match arguments.next().as_deref() {
        None => BuildTarget::ControlPlane,
        Some("renderers") => BuildTarget::Renderers,
        Some("helm4") => BuildTarget::Helm4,
        Some(other) => return Err(format!("unexpected {other}")),
    };
    match arguments.next() {
        None => Ok(Command::Build(target)),
        Some(extra) => Err(format!("unexpected {extra}")),
    }
}

fn parse_up(mut arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut builder, mut played, mut real) = (Cluster::builder(), None, 0);
    while let Some(argument) = arguments.next() {
        builder = match argument.as_str() {
            "--nodes" => {
                let count = arguments.next().ok_or("--nodes needs a number")?;
                played = Some(count.parse().map_err(|_| format!("--nodes needs a number, not {count}"))?);
                builder
            }
            "--real" => {
                real = 1;
                builder.real_nodes(real)
            }
            "--bare" => builder.bare(),
            "--audit" => builder.audit(),
            "-h" | "--help" => return Ok(Command::Help),
            other => return Err(format!("unexpected {other}")),
        };
    }
    // Nobody who asks for a real node alone wants pods on others.
    Ok(Command::Up(builder.nodes(played.unwrap_or(if real > 0 { 0 } else { 3 }))))
}

/// Runs a cluster until somebody ends it.
fn up(builder: Builder) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // From here on Ctrl-C waits until the cluster can be taken down; the supervisor sees to a
    // harder end.
    let ended = runtime.block_on(async {
        let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        for stream in signals {
            let (mut stream, sender) = (stream.map_err(|error| error.to_string())?, sender.clone());
            tokio::spawn(async move {
                stream.recv().await;
                let _ = sender.send(());
            });
        }
        watch_input(sender);
        Ok::<_, String>(receiver)
    });
    let mut ended = ended?;
    let begun = Instant::now();
    let cluster = builder.start().map_err(text)?;
    let kubectl = cluster.programs().join("kubectl");
    complain(&format!(
        "ready in {:.1} s at {}; Ctrl-C ends it",
        begun.elapsed().as_secs_f64(),
        cluster.url()
    ));
    complain(&format!("logs: {}", cluster.log(Part::Apiserver).parent().unwrap_or(cluster.dir()).display()));
    complain(&format!("try: KUBECONFIG={} {} get nodes", cluster.kubeconfig().display(), kubectl.display()));
    say(&format!("{}\n", cluster.kubeconfig().display()))?;
    runtime.block_on(ended.recv());
    drop(cluster);
    complain("everything is stopped");
    Ok(())
}

/// Ends the cluster when whoever started it goes away; a terminal or a file says nothing of that.
fn watch_input(ended: tokio::sync::mpsc::UnboundedSender<()>) {
    let kind = rustix::fs::fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if matches!(kind, Ok(FileType::Fifo | FileType::Socket)) {
        std::thread::spawn(move || {
            let mut byte = [0];
            while io::stdin().read(&mut byte).is_ok_and(|count| count > 0) {}
            let _ = ended.send(());
        });
    }
}

fn say(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("cannot print: {error}"))
}

fn complain(text: &str) {
    // With standard error closed there is nobody to report to.
    let _ = writeln!(io::stderr().lock(), "controlplane: {text}");
}

fn text(error: Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_read() {
        for (line, expected) in [
            ("", "Ok(Help)"),
            ("--help", "Ok(Help)"),
            ("build", "Ok(Build(ControlPlane))"),
            ("build renderers", "Ok(Build(Renderers))"),
            ("build helm4", "Ok(Build(Helm4))"),
            ("build helm4 now", "Err(\"unexpected now\")"),
            ("build now", "Err(\"unexpected now\")"),
            ("down", "Err(\"there is no command down\")"),
            ("up --nodes", "Err(\"--nodes needs a number\")"),
            ("up --nodes x", "Err(\"--nodes needs a number, not x\")"),
            ("up --help", "Ok(Help)"),
        ] {
            let arguments = line.split_whitespace().map(str::to_owned);
            assert_eq!(format!("{:?}", parse(arguments)), expected, "{line}");
        }
        let arguments = ["up", "--nodes", "5", "--audit"].map(str::to_owned);
        assert!(matches!(parse(arguments.into_iter()), Ok(Command::Up(_))));
    }
}
