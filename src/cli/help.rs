//! The text of `--help` below the flags: concepts, examples, exit codes.

pub(super) const MAIN: &str = "\
Changes are applied, drift is repaired, and what a source no longer names is deleted with care.
Every change has a budget, and every no has a reason.

Examples:
  rhumb validate deploy/           check the manifests, without a cluster
  rhumb diff deploy/               see what would change
  rhumb apply deploy/ --wait       change it, and wait until all is healthy
  rhumb run https://git.example.org/shop.git --path deploy
                                   follow the repository from now on

Exit codes:
  0   done, or no difference
  1   something differs, waits, was refused or did not parse
  2   wrong usage, or nothing could be read
  3   the API server or the git server is not reachable
  4   a guard says no: see the message for what to confirm
  5   timed out: not all is healthy, or an order is not acknowledged
  78  the configuration is wrong
  130 a second SIGTERM or Ctrl-C ended it at once";

pub(super) const RUN_USAGE: &str = "\
rhumb run [OPTIONS] <SOURCE>
       rhumb run [OPTIONS] --config <FILE>";

pub(super) const RUN: &str = "\
SOURCE is a directory, a git repository on this host, or a git URL. Of a repository the commits
are followed; of any other directory the files as they are. Each change is applied as soon as it
may be, foreign changes are repaired at once, and what the source no longer names is deleted
within the bounds of --blast-radius. A source that cannot be read deletes nothing.

Examples:
  rhumb run ./deploy                         a directory, or a repository
  rhumb run git@git.example.org:shop.git --ref main --path deploy/production
  rhumb run --config /etc/rhumb/rhumb.yaml   several sources, and all settings
  rhumb run ./deploy --observe               only tell what would be done";

pub(super) const DIFF_USAGE: &str = "\
rhumb diff [OPTIONS] <SOURCE>
       rhumb diff [OPTIONS] --filename <FILE>
       rhumb diff [OPTIONS] --config <FILE> [--source <NAME> [SOURCE]]";

pub(super) const DIFF: &str = "\
The files of a path are read as they are on disk, committed or not, unless --ref names a
revision. The server decides: what seems to differ goes through its dry run. Values of Secrets
are masked. With -f, or a file as SOURCE, nothing but that is looked at.

With --config it is what `rhumb run` with that file would do: of all its sources, or of the one
that --source names, each with its place, and with what it may have, must be signed by and acts
as. What one of them has or wants counts for the others. A directory, or files, beside it are
judged as if that source had them.

  + is created  ~ is changed  - is deleted  ± is deleted and created  ? waits  ! is refused
  = is not wanted any more, and is kept as an annotation of it asks

Examples:
  rhumb diff deploy/
  rhumb diff deploy/ -o unified | less       the whole objects, as a patch
  rhumb diff . --ref v1.4 --path deploy      a revision instead of the files on disk
  rhumb diff deploy/ -o json | jq .summary
  kubectl kustomize . | rhumb diff -f -      what comes through a pipe
  rhumb diff --config rhumb.yaml             all sources of a configuration
  rhumb diff --config rhumb.yaml --source shop deploy/
                                             would these files be taken as the source shop?

Exit codes: 0 no difference, 1 something differs or did not parse, 2 nothing could be read, 3 not
reachable, 78 the configuration is wrong.";

pub(super) const APPLY_USAGE: &str = "\
rhumb apply [OPTIONS] <SOURCE>
       rhumb apply [OPTIONS] --filename <FILE>
       rhumb apply [OPTIONS] --config <FILE> [--source <NAME>]";

pub(super) const APPLY: &str = "\
The files of a path are read as they are on disk, committed or not, unless --ref names a
revision. Each object is told as it happens: created, configured, unchanged, pruned, waiting or
refused. Nothing is deleted without --prune, and nothing with -f, or with a file as SOURCE: that is
only a part of a source. With --config one source of that file is applied as `rhumb run` would do
it: the newest commit, with all settings of the source, those that delete included.

Examples:
  rhumb apply deploy/
  rhumb apply -f web.yaml -f env.yaml        these files alone
  rhumb apply deploy/ --wait=5m              until all is healthy
  rhumb apply deploy/ --prune                delete what deploy/ no longer names
  rhumb apply deploy/ --dry-run              let the server check it
  rhumb apply --config rhumb.yaml --source shop

Exit codes: 0 all was sent and accepted, 1 a part waits, was refused or did not parse, 2 nothing
could be read, 3 not reachable, 4 a guard says no, 5 not healthy in time (with --wait), 78 the
configuration is wrong. A step of a rollout that is held when it ends is told as unfinished: `rhumb
run` carries it on.";

pub(super) const VALIDATE_USAGE: &str = "\
rhumb validate [OPTIONS] <PATH>
       rhumb validate [OPTIONS] --config <FILE> [--source <NAME> [PATH]]";

pub(super) const VALIDATE: &str = "\
Prints what is wrong with the manifests: file, line and column, the line itself, and what to do.
All files are read (*.yaml, *.yml, *.json) except those that .rhumbignore names or that begin
with a dot. With --config what the sources of that file hold is checked, of a repository the newest
commit: what a source may not have is an error, and so is a commit without the signature that it
asks for.

Examples:
  rhumb validate deploy/
  rhumb validate deploy/web.yaml
  helm template shop chart/ | rhumb validate -
  rhumb validate --config rhumb.yaml --source shop deploy/

Exit codes: 0 no error (warnings may be there), 1 errors, 2 nothing could be read, 3 a git server
is not reachable, 78 the configuration is wrong.";

pub(super) const RENDER: &str = "\
Each object stands in the order of the files, with nothing added: lists are taken apart, numbers
and booleans are what the API server would get.

Examples:
  rhumb render deploy/
  rhumb render deploy/web.yaml -o json | jq '.objects[].metadata.name'

Exit codes: 0 all was read, 1 errors, 2 nothing could be read.";

pub(super) const ROLLOUT: &str = "\
What is ordered is written to the ConfigMap orders.SOURCE.rhumb.dev in the system namespace, with
the user's own rights, and carried out by `rhumb run`; it stands while that is down. What came of
it is printed. Who may not list all sources names that of the object by --name. A pause and a hold
are annotations of the object, and a restart changes its pod template.

Examples:
  rhumb rollout status deploy/web --watch
  rhumb rollout undo deploy/web
  rhumb rollout pause shop --reason 'release freeze'

Exit codes: 0 done, 1 nothing was to be done, 2 wrong usage or no such object, 3 not reachable or
not allowed, 5 not acknowledged within 5 s.";

pub(super) const STATUS: &str = "\
Read from the cluster alone: the words are kubectl's, with what the rollout budget and the source
say about it. What waits is told with its place in the rollout queue, and why.

Exit codes: 0 nothing rolls or waits, 1 something rolls, waits or failed, 2 or more: an error.";

pub(super) const OVERVIEW: &str = "\
Asked of the running daemon, over its socket. Where none answers it is read from the cluster alone:
whether a source was read whole, and the bounds of the budget, are not known then. With
--kubeconfig, --context or --system-namespace the cluster is read, as the daemon may be that of
another one.

Examples:
  rhumb status                               all sources, and what is not as it should be
  rhumb status shop --watch                  one source, until Ctrl-C
  rhumb status deploy/web -n shop            one object
  rhumb status --exit-code >/dev/null || echo 'not healthy'

Exit codes: 0 it was told, 1 with --exit-code: not all is as it should be, 2 no such source or
object, 3 neither the daemon nor the cluster answers.";

pub(super) const TOP: &str = "\
Asked of the running daemon each second, over its socket. Where none answers it is read from the
cluster alone, each 5 s. A daemon that ends is waited for: what it told last stays on the screen.

Keys:
  Tab, Left, Right             another pane
  Up, Down, PageUp, PageDown   another row; j and k, g and G as in vi
  Enter                        all that is known of it; Esc goes back
  /                            rows with a text alone
  s                            what is of the source of this row alone, or of all
  ?                            all keys
  q, Ctrl-C                    the end

Examples:
  rhumb top                                  all sources
  rhumb top shop                             one

Exit codes: 0 it was shown, 2 no such source or no terminal, 3 neither the daemon nor the cluster
answers.";

pub(super) const EVENTS: &str = "\
Told by the running daemon, over its socket, which keeps the last 512: revisions that were read,
objects that were made, changed or deleted, rollouts, drift that was repaired, deletions that wait.
Times are UTC.

Examples:
  rhumb events shop
  rhumb events --follow -o json | jq -r 'select(.reason == \"DriftRepaired\") | .message'

Exit codes: 0 it was told, 3 no daemon answers, or it ended the stream.";

pub(super) const CHECK: &str = "\
Writes nothing. The rights are those that the sources need as they are now; the server is asked
for each. What is missing is printed as roles that grant it to the user of the kubeconfig.

Examples:
  rhumb check --config /etc/rhumb/rhumb.yaml
  rhumb check deploy/ -o json | jq .denied

Exit codes: 0 all is there, 1 something is missing, 2 the sources or the configuration cannot be
read.";

pub(super) const UNINSTALL: &str = "\
Without --delete-objects all objects stay as they are, with the label and the annotations that
they have: what goes is the inventory, the orders and the Lease of the source, and without a
SOURCE also the rollout budget and the key of seals in the system namespace. Another source takes
such objects over with --adopt always. With --delete-objects they are deleted in the reverse order
of their kinds, each in the version that was listed; what rhumb.dev/prune: never keeps stays.

It refuses while a daemon serves the source; one that only observes makes nothing again. What was
begun is finished by the same command again. A source that is an object of kind Source is ended by
`kubectl delete sources.rhumb.dev NAME`, and refused while that object stands.

Examples:
  rhumb uninstall shop --dry-run             what would go
  rhumb uninstall shop --delete-objects --count 12
  rhumb uninstall                            leave the cluster, and all objects in it

Exit codes: 0 done, 1 something is left, 2 wrong usage or no such source, 3 not reachable or not
allowed, 4 not confirmed, a daemon serves it, or an object of kind Source declares it.";

pub(super) const RBAC: &str = "\
Asks no cluster: the roles follow from the manifests. What is watched needs a ClusterRole, as it is
watched in all namespaces; what is written is granted namespace by namespace. Whoever writes roles
must have the rights in them, so these are among the rules. The namespaces must be there before.

Examples:
  rhumb rbac deploy/ --service-account rhumb-system/rhumb | kubectl apply -f -
  rhumb rbac --config /etc/rhumb/rhumb.yaml --user rhumb";

pub(super) const HISTORY: &str = "\
Read from the ReplicaSets and ControllerRevisions that Kubernetes keeps: the newest first.
`git show COMMIT` has the author and the subject.";

pub(super) const UNDO: &str = "\
All that the revision brought together with it goes back too: the configuration with its workload.
It stays so until the content changes in git, or until `rhumb rollout retry`. It leads to what was
in force here, or to an ancestor of the commit that the source is at.

Examples:
  rhumb rollout undo deploy/web
  rhumb rollout undo sts/shop/db --to-revision 3f2a9c1";

pub(super) const PAUSE: &str = "\
Examples:
  rhumb rollout pause deploy/web --reason 'looking at a leak'
  rhumb rollout pause shop
  rhumb rollout resume shop";

pub(super) const RESTART: &str = "\
As `kubectl rollout restart` does it, with the user's own rights, at once: it does not ask the
rollout budget. It counts as a rollout while it goes on.";

pub(super) const WHY: &str = "\
Read from the cluster alone: the object, its source's ConfigMap and the rollout budget. With a
SOURCE, read as `rhumb diff` does it, also where the object stands in it and what that asks for.

Examples:
  rhumb why deploy/web
  rhumb why deploy/web deploy/               with the file and the line
  rhumb why shop/configmap/env";

pub(super) const HOLD: &str = "\
Nothing is repaired, changed or deleted of it meanwhile. The hold ends by itself, or by
`rhumb release`.

Examples:
  rhumb hold deploy/web --for 2h --reason 'heap dump'
  rhumb release deploy/web";

pub(super) const PRUNE: &str = "\
What a source no longer names is deleted by itself within the bounds of --blast-radius. Beyond
them, and for namespaces, custom resource definitions, volumes, StatefulSets and everything in
kube-system, it waits until a person confirms it by name.

Examples:
  rhumb prune list
  rhumb prune list --source shop
  rhumb prune confirm shop/deployment.apps/web
  rhumb prune confirm --source shop --count 12
  rhumb prune list -o name | xargs rhumb prune confirm";
