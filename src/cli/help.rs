//! The text of `--help` below the flags: concepts, examples, exit codes.

pub(super) const MAIN: &str = "\
Changes are applied, drift is repaired, and objects that leave a source are pruned with care.
Every rollout has a budget, and everything that is not done has a reason.

Examples:
  rhumb validate deploy/           check the manifests, without a cluster
  rhumb diff deploy/               see what would change
  rhumb apply deploy/ --wait       apply it, and wait until everything is healthy
  rhumb run https://git.example.org/shop.git --path deploy
                                   follow the repository

Exit codes:
  0   done, or no difference
  1   something differs, waits, is missing, was refused or did not parse; or there was nothing to do
  2   wrong usage, or nothing could be read
  3   the API server or the git server is not reachable, or refuses the request
  4   a guard stopped it: the message says what to confirm or to change
  5   timed out: not everything is healthy, or an order is not acknowledged
  78  the configuration is wrong
  130 Ctrl-C ended it; of `rhumb run`, a second SIGTERM or Ctrl-C";

pub(super) const RUN_USAGE: &str = "\
rhumb run [OPTIONS] <SOURCE>
       rhumb run [OPTIONS] --config <FILE>";

pub(super) const RUN: &str = "\
SOURCE is a directory, a git repository on this host, or a git URL. Of a repository the commits
are followed; of any other directory the files as they are. Each change is applied as soon as it
may be, drift is repaired at once, and objects that leave the source are deleted within the bounds
of --blast-radius. A source that cannot be read deletes nothing.

Examples:
  rhumb run ./deploy                         a directory, or a repository
  rhumb run git@git.example.org:shop.git --ref main --path deploy/production
  rhumb run --config /etc/rhumb/rhumb.yaml   several sources, and all settings
  rhumb run ./deploy --observe               write nothing, only report

Exit codes: 0 a signal ended it, 78 the configuration is wrong, 130 a second signal ended it at
once; `rhumb --help` has the others.";

pub(super) const DIFF_USAGE: &str = "\
rhumb diff [OPTIONS] <SOURCE>
       rhumb diff [OPTIONS] --filename <FILE>
       rhumb diff [OPTIONS] --config <FILE> [--source <NAME> [SOURCE]]
       rhumb diff [OPTIONS] --from <REV> [--to <REV>] [SOURCE]";

pub(super) const DIFF: &str = "\
The files of a path are read as they are on disk, committed or not, unless --ref names a
revision. The API server decides: whatever seems to differ goes through its dry run. Values of
Secrets are masked. With -f, or a file as SOURCE, only those files are compared.

With --config it shows what `rhumb run` with that file would do: for all its sources, or for the
one that --source names, with all their settings. A directory, or files, given besides it are
compared as if that source contained them.

With --from two revisions of the repository around SOURCE (by default this directory) are compared,
or a revision and the files on disk. No cluster is asked and no kubeconfig is read. Both are
rendered, with the settings of --config and --source where those are given. Pods are counted by what
manifests say. An object that was not read counts as removed only where its revision was read
completely.

  + created  ~ changed  - deleted  ± deleted and created again  ? waiting  ! refused
  = no longer wanted and kept, or left alone by annotation

Examples:
  rhumb diff deploy/
  rhumb diff deploy/ -o unified | less       the whole objects, as a patch
  rhumb diff . --ref v1.4 --path deploy      a revision instead of the files on disk
  rhumb diff deploy/ -o json | jq .summary
  kubectl kustomize . | rhumb diff -f -      what comes through a pipe
  rhumb diff --config rhumb.yaml             all sources of a configuration
  rhumb diff --config rhumb.yaml --source shop deploy/
                                             would the source shop accept these files?
  rhumb diff deploy/ --from main             what this work tree changes, without a cluster
  rhumb diff --from $(git merge-base origin/main HEAD) --to HEAD
                                             what a pull request changes

Exit codes: 0 no difference, 1 something differs or did not parse, 2 nothing could be read, 3 not
reachable, 78 the configuration is wrong, 130 Ctrl-C ended it.";

pub(super) const APPLY_USAGE: &str = "\
rhumb apply [OPTIONS] <SOURCE>
       rhumb apply [OPTIONS] --filename <FILE>
       rhumb apply [OPTIONS] --config <FILE> [--source <NAME>]";

pub(super) const APPLY: &str = "\
The files of a path are read as they are on disk, committed or not, unless --ref names a
revision. Each object is printed with its outcome: created, configured, unchanged, pruned, waiting
or refused. Nothing is deleted without --prune, and nothing with -f, or with a file as SOURCE: that
is only a part of a source. With --config one source of that file is applied as `rhumb run` would
do it: the newest commit, with all settings of the source, pruning included.

Examples:
  rhumb apply deploy/
  rhumb apply -f web.yaml -f env.yaml        these files alone
  rhumb apply deploy/ --wait=5m              until everything is healthy
  rhumb apply deploy/ --prune                delete what left deploy/
  rhumb apply deploy/ --dry-run              let the API server check it
  rhumb apply --config rhumb.yaml --source shop

A rollout that is held at a step when the command ends is reported as unfinished: `rhumb run`
continues it.

Exit codes: 0 everything was applied, 1 something waits, was refused or did not parse, 2 nothing
could be read, 3 not reachable, 4 a guard stopped it, 5 not healthy in time (with --wait), 78 the
configuration is wrong, 130 Ctrl-C ended it.";

pub(super) const VALIDATE_USAGE: &str = "\
rhumb validate [OPTIONS] <PATH>
       rhumb validate [OPTIONS] --config <FILE> [--source <NAME> [PATH]]";

pub(super) const VALIDATE: &str = "\
Prints every error in the manifests with file, line, column and what to do. All files are read
(*.yaml, *.yml, *.json) except those that .rhumbignore lists or that begin with a dot. With
--config the sources of that file are checked, of a repository the newest commit: an object that
a source may not have is an error, and so is a commit without the signature that it requires.

Examples:
  rhumb validate deploy/
  rhumb validate deploy/web.yaml
  helm template shop chart/ | rhumb validate -
  rhumb validate --config rhumb.yaml --source shop deploy/

Exit codes: 0 no errors (there may be warnings), 1 errors, 2 nothing could be read, 3 a git server
is not reachable, 78 the configuration is wrong, 130 Ctrl-C ended it.";

pub(super) const RENDER: &str = "\
Objects are printed in the order of the files, with nothing added. Lists are split into their
items; numbers and booleans are what the API server would get.

With --config it prints what that source would apply: with its variables, the values of its charts,
its namespace and its age identities, and without objects that it may not have. Of a repository that
is the newest commit. A PATH besides it is read as if the source contained it.

Examples:
  rhumb render deploy/
  rhumb render --config rhumb.yaml --source shop
  rhumb render deploy/web.yaml -o json | jq '.objects[].metadata.name'

Exit codes: 0 everything was read, 1 errors, 2 nothing could be read, 3 a git server is not
reachable, 78 the configuration is wrong, 130 Ctrl-C ended it.";

pub(super) const RENDER_USAGE: &str = "\
rhumb render [OPTIONS] <PATH>
       rhumb render [OPTIONS] --config <FILE> [--source <NAME>] [PATH]";

pub(super) const LOCK: &str = "\
A root is a directory with a Chart.yaml or a kustomization. Each one that uses charts from a server
gets a file rhumb.lock, with the exact version and the digest of each chart. Once it is there, the
root renders with these charts and no others. A range of versions, as ~7.1, means what the file says.

Charts are only fetched from what spec.fetch.allow of the configuration names.

Examples:
  rhumb lock --config rhumb.yaml                 all roots below this directory
  rhumb lock --config rhumb.yaml apps/web --update
  rhumb lock --config rhumb.yaml --check         for a pipeline

Exit codes: 0 every lock is up to date or was written, 1 a lock is not up to date (with --check) or
a chart cannot be had, 2 nothing could be read, 3 a server is not reachable, 78 the configuration is
wrong, 130 Ctrl-C ended it.";

pub(super) const REPLAY: &str = "\
Each fact of the trace is handed to the same decisions again, at the time that the trace says. The
effects are printed, a line of JSON each. The first that differs from what the daemon has decided is
reported as FILE:LINE, and nothing after it is replayed. No cluster is asked, and nothing is
written.

Examples:
  rhumb run --config rhumb.yaml --trace trace.jsonl    record, until it is stopped
  rhumb debug replay trace.jsonl                       print what it has decided
  rhumb debug replay trace.jsonl --quiet               only compare, for a pipeline

Exit codes: 0 all effects are the same, 1 some differ, 2 the trace cannot be read.";

pub(super) const ROLLOUT: &str = "\
An order (undo, retry, promote, abort) is written to the ConfigMap orders.SOURCE.rhumb.dev in the
system namespace, with the user's own rights, and carried out by `rhumb run`, also if that starts
later. The outcome is printed. Users who may not list all sources name the object's source by
--source. A pause and a hold are annotations of the object, and a restart changes its pod template.

Examples:
  rhumb rollout status deploy/web --watch
  rhumb rollout undo deploy/web
  rhumb rollout pause shop --reason 'release freeze'

Exit codes: 0 done, 1 nothing to do, 2 wrong usage or no such object, 3 not reachable or
not allowed, 5 not acknowledged within 10 s. `rhumb rollout status --help` has its own.";

pub(super) const STATUS: &str = "\
Reads only the cluster: progress in the words of `kubectl rollout status`, and what the rollout
budget and the source add to it. A waiting workload is shown with its place in the rollout queue
and the reason.

Exit codes: 0 nothing is rolling out, 1 something is rolling out, waits or failed, 2 wrong usage or
no such workload, 3 not reachable or not allowed, 130 Ctrl-C ended it. With --watch 1 means that a
rollout failed.";

pub(super) const OVERVIEW: &str = "\
Asks the running daemon over its socket. Where none answers, it reads only the cluster: then it is
not known whether a source was read completely, nor what the bounds of the budget are. With
--kubeconfig, --context or --system-namespace it reads the cluster, as the daemon may serve another
one.

Examples:
  rhumb status                               all sources, and what needs attention
  rhumb status shop --watch                  one source, until Ctrl-C
  rhumb status deploy/web -n shop            one object
  rhumb status --exit-code >/dev/null || echo 'not healthy'

Exit codes: 0 the status was shown, 1 with --exit-code: not everything is healthy, 2 no such source
or object, 3 neither the daemon nor the cluster answers, 130 Ctrl-C ended it.";

pub(super) const TOP: &str = "\
Asks the running daemon each second over its socket. Where none answers, it reads only the cluster,
each 5 s. When a daemon ends, its last status stays on the screen until it is back.

Keys:
  Tab, Left, Right             next or previous pane
  Up, Down, PageUp, PageDown   previous or next row; j, k, g and G as in vi
  Enter                        details of the row; Esc goes back
  /                            filter rows by a text
  s                            show only the source of this row, or all
  ?                            all keys
  q, Ctrl-C                    quit

Examples:
  rhumb top                                  all sources
  rhumb top shop                             one

Exit codes: 0 quit, 2 no such source or no terminal, 3 neither the daemon nor the cluster
answers.";

pub(super) const EVENTS: &str = "\
Asks the running daemon over its socket. It keeps the last 512 events: revisions read, objects
created, changed or deleted, rollouts, repaired drift, pending deletions. Times are UTC. It knows
neither the events of another daemon nor those of an earlier process. The Events of the cluster
tell of these: `kubectl events -n rhumb-system --for configmap/shop`.

Examples:
  rhumb events shop
  rhumb events --follow -o json | jq -r 'select(.reason == \"DriftRepaired\") | .message'

Exit codes: 0 the events were shown, 3 no daemon answers, or it ended the stream, 130 Ctrl-C ended
it.";

pub(super) const CHECK: &str = "\
Writes nothing. It asks the API server for each right that the sources need as they are now. What
is missing is printed as roles that grant it to the user of the kubeconfig.

Examples:
  rhumb check --config /etc/rhumb/rhumb.yaml
  rhumb check deploy/ -o json | jq .denied

Exit codes: 0 everything is there, 1 something is missing, or a source or the cluster cannot be
read, 2 wrong usage or no such directory, 78 the configuration is wrong, 130 Ctrl-C ended it.";

pub(super) const UNINSTALL: &str = "\
Without --delete-objects all objects stay as they are, with their labels and annotations. What is
deleted are the inventory, the orders and the Lease of the source, and without a SOURCE also the
rollout ledger and the key of the seals in the system namespace. Another source takes such objects
over with --adopt always. A workload at a held step of its rollout is named, with the command that
lets it go.

With --delete-objects they are deleted in the reverse order of their kinds, each by its uid and in
the version that was last seen. Objects with rhumb.dev/prune: never stay, and so do those that
another source requests.

It refuses while a daemon serves the source, unless that only observes. Run it again to finish what
was interrupted. For an object of kind Source use `kubectl delete sources.rhumb.dev NAME` instead.

Examples:
  rhumb uninstall shop --dry-run             show what would be deleted
  rhumb uninstall shop --delete-objects --count 12
  rhumb uninstall                            leave the cluster, and keep all objects

Exit codes: 0 done, 1 something is left, 2 wrong usage, a wrong --count or no such source, 3 not
reachable or not allowed, 4 not confirmed, a daemon serves it, or an object of kind Source declares
it, 130 Ctrl-C ended it.";

pub(super) const RBAC: &str = "\
Needs no cluster: the roles follow from the manifests. Reading takes a ClusterRole, as kinds are
watched in all namespaces; writing is granted namespace by namespace. A source with roles needs the
rights in them, so these are among the rules. The namespaces must exist before.

Examples:
  rhumb rbac deploy/ --service-account rhumb-system/rhumb | kubectl apply -f -
  rhumb rbac --config /etc/rhumb/rhumb.yaml --user rhumb";

pub(super) const HISTORY: &str = "\
Reads the ReplicaSets and ControllerRevisions that Kubernetes keeps, the newest first. NUMBER is the
one that `kubectl rollout history` calls the revision. COMMIT brought the pod template, and
`git show COMMIT` shows the change.";

pub(super) const UNDO: &str = "\
Without --to-revision, the content that was in force before comes back. What the same revision
brought together with the object goes back too, for example the ConfigMaps and the Service of a
workload. Objects that this revision added are deleted; the guards of deletions apply.

A commit must have been in force here, or be an ancestor of the source's current commit. The undo
lasts until the content changes in git, or until `rhumb rollout retry`.

Examples:
  rhumb rollout undo deploy/web              to what was there before
  rhumb rollout undo sts/shop/db --to-revision 3f2a9c1";

pub(super) const PAUSE: &str = "\
Examples:
  rhumb rollout pause deploy/web --reason 'looking at a leak'
  rhumb rollout pause shop
  rhumb rollout resume shop";

pub(super) const RESTART: &str = "\
Works as `kubectl rollout restart`, with the user's own rights, at once: it does not wait for the
rollout budget. While it lasts it counts as a rollout.";

pub(super) const WHY: &str = "\
Reads the cluster: the object, its source's ConfigMap and the rollout ledger. It names who has
written to the object since rhumb did. The file and line of the manifest come from the daemon on
this host, else from the ConfigMap, which names them of objects that are not settled. With a SOURCE
they come from there, besides whether the manifest differs from the live object.

Examples:
  rhumb why deploy/web
  rhumb why deploy/web deploy/               with the file and the line
  rhumb why deploy/web -o json               for programs, with codes of reasons
  rhumb why shop/configmap/env";

pub(super) const HOLD: &str = "\
Until then the object is neither changed, repaired nor deleted. The hold ends by itself, or by
`rhumb release`.

Examples:
  rhumb hold deploy/web --for 2h --reason 'heap dump'
  rhumb release deploy/web";

pub(super) const PRUNE: &str = "\
Objects that leave a source are deleted within the bounds of --blast-radius. Beyond these, and for
namespaces, custom resource definitions, volumes, StatefulSets and everything in kube-system, a
deletion is pending until a person confirms it.

Examples:
  rhumb prune list
  rhumb prune list --source shop
  rhumb prune confirm shop/deployment.apps/web
  rhumb prune confirm --source shop --count 12
  rhumb prune list -o name | xargs rhumb prune confirm

Exit codes: 0 done, 1 nothing was there to confirm any more, 2 wrong usage, a wrong --count or no
such source or deletion, 3 not reachable or not allowed. A confirmation counts as done once it is
written, also where no daemon runs.";
