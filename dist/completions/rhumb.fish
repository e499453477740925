# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_rhumb_global_optspecs
    string join \n kubeconfig= context= system-namespace= n/namespace= source= state-directory= v/verbose log-level= log-format= color= h/help V/version
end

function __fish_rhumb_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_rhumb_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_rhumb_using_subcommand
    set -l cmd (__fish_rhumb_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c rhumb -n "__fish_rhumb_needs_command" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_needs_command" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_needs_command" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_needs_command" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_needs_command" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_needs_command" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_needs_command" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_needs_command" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_needs_command" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_needs_command" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_needs_command" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_needs_command" -s V -l version -d 'Print version'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "run" -d 'Follow a source, or those of a configuration, until stopped'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "apply" -d 'Apply a source once'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "lock" -d 'Write rhumb.lock, with the version and digest of each remote chart'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "prune" -d 'List and confirm pending deletions'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "check" -d 'Check the prerequisites: API server, git, files, rights'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "uninstall" -d 'Remove rhumb\'s own objects from the cluster, and on request those that it manages'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "rbac" -d 'Print the minimal roles that a source needs'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "debug" -d 'Examine what a daemon has recorded'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "rollout" -d 'Show and control rollouts'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "why" -d 'Explain the state of an object: its revision, health, and what it waits for'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "hold" -d 'Keep an object as it is for a time: drift is shown, and nothing is written'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "release" -d 'End a hold'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "diff" -d 'Show what would change in the cluster, and write nothing'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "status" -d 'Show sources, their revisions, and what needs attention'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "top" -d 'Watch sources, rollouts, the budget and the queue on one screen'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "events" -d 'Show events'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "validate" -d 'Check manifests without a cluster'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "render" -d 'Print manifests as Kubernetes reads them, without a cluster'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "version" -d 'Print the version'
complete -c rhumb -n "__fish_rhumb_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -s c -l config -d 'Configuration file with any number of sources' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l ref -d 'Branch, tag or commit' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l path -d 'Folder inside the source' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l adopt -d 'Take over objects that exist already: never, if-unowned or always' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l blast-radius -d 'Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at most 10%]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l interval -d 'How often a remote repository is polled [default: 1m]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l trace -d 'Record each decision, and its facts, in a new file for `rhumb debug replay`' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l no-prune -d 'Delete no objects that leave the source'
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -l observe -d 'Decide everything, and write nothing'
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand run" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s f -l filename -d 'Only this file or directory, or - for standard input; may be repeated; deletes nothing' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s c -l config -d 'Configuration file, whose sources are taken with their settings' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l ref -d 'Branch, tag or commit' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l path -d 'Folder inside the source' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l adopt -d 'Take over objects that exist already: never, if-unowned or always' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l blast-radius -d 'Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at most 10%]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l wait -d 'Wait until everything is healthy, at most this long [default: 10m]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s o -l output -d 'Output format: text or json' -r -f -a "text\t'A line for each object, as it happens'
json\t'The plan as JSON at the end, schema rhumb.dev/plan/v1'"
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l prune -d 'Delete objects that left the source'
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -l dry-run -d 'Let the API server check it, and write nothing'
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s y -l yes -d 'Do not ask before deleting'
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand apply" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -s c -l config -d 'Configuration file, which says from where charts may be fetched' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l update -d 'Take the newest version in each range, also where a lock names one'
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -l check -d 'Write nothing, and exit with 1 where a lock is not up to date'
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand lock" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -f -a "list" -d 'List pending deletions with their reasons'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -f -a "confirm" -d 'Confirm deletions by name'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and not __fish_seen_subcommand_from list confirm help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format: text or name' -r -f -a "text\t'A line for each object, with its reason'
name\t'The names alone, as `prune confirm` takes them'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l count -d 'Confirm all pending deletions of the source, if there are exactly this many' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from confirm" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from help" -f -a "list" -d 'List pending deletions with their reasons'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from help" -f -a "confirm" -d 'Confirm deletions by name'
complete -c rhumb -n "__fish_rhumb_using_subcommand prune; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -s c -l config -d 'Configuration file with any number of sources' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l ref -d 'Branch, tag or commit' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l path -d 'Folder inside the source' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l adopt -d 'Take over objects that exist already: never, if-unowned or always' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l blast-radius -d 'Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at most 10%]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -s o -l output -d 'Output format: text or json' -r -f -a "text\t'A line for each finding, and the roles that are missing'
json\t'The same as JSON, schema check.rhumb.dev/v1'"
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand check" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l count -d 'Delete without asking, if there are exactly this many objects' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l delete-objects -d 'Also delete the objects of the source, except those that annotations keep'
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -l dry-run -d 'Only list what would be deleted'
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand uninstall" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -s c -l config -d 'Configuration file with any number of sources' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l ref -d 'Branch, tag or commit' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l path -d 'Folder inside the source' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l adopt -d 'Take over objects that exist already: never, if-unowned or always' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l blast-radius -d 'Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at most 10%]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l user -d 'Bind the roles to this user' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l service-account -d 'Bind the roles to this service account' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rbac" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -f -a "replay" -d 'Replay a trace of `rhumb run --trace`, and compare what is decided'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and not __fish_seen_subcommand_from replay help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -s q -l quiet -d 'Print no effects, only where they differ'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from replay" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from help" -f -a "replay" -d 'Replay a trace of `rhumb run --trace`, and compare what is decided'
complete -c rhumb -n "__fish_rhumb_using_subcommand debug; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "status" -d 'Show the progress of a rollout, or of all'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "history" -d 'Show the rollout history of a workload'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "undo" -d 'Go back to older content, until it changes in git'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "retry" -d 'Try again what failed or was undone'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "pause" -d 'Release nothing new of an object or a source; repairs and rollbacks go on'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "resume" -d 'End a pause'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "promote" -d 'Let a held rollout continue to its next step'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "abort" -d 'Roll back a rollout that is running or queued'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "restart" -d 'Replace a workload\'s pods'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and not __fish_seen_subcommand_from status history undo retry pause resume promote abort restart help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -s w -l watch -d 'Keep running until the rollout ends'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from history" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l to-revision -d 'Commit to go back to, or the first digits of its hash [default: the content before]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from undo" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l reason -d 'Why' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -l full -d 'Skip all remaining steps'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from promote" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from abort" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from restart" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show the progress of a rollout, or of all'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "history" -d 'Show the rollout history of a workload'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "undo" -d 'Go back to older content, until it changes in git'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "retry" -d 'Try again what failed or was undone'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "pause" -d 'Release nothing new of an object or a source; repairs and rollbacks go on'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "resume" -d 'End a pause'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "promote" -d 'Let a held rollout continue to its next step'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "abort" -d 'Roll back a rollout that is running or queued'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "restart" -d 'Replace a workload\'s pods'
complete -c rhumb -n "__fish_rhumb_using_subcommand rollout; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -s o -l output -d 'Output format: text or json' -r -f -a "text\t'A line for each fact'
json\t'One object with `reasons`, each with its code'"
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l socket -d 'Socket of the daemon [default: $RHUMB_SOCKET, then rhumb.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/rhumb or /run/rhumb]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l ref -d 'Branch, tag or commit' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l path -d 'Folder inside the source' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l adopt -d 'Take over objects that exist already: never, if-unowned or always' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l blast-radius -d 'Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at most 10%]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand why" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l for -d 'How long' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l reason -d 'Why' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand hold" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -s n -l namespace -d 'Namespace of objects that name none [default: the context\'s]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand release" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -s f -l filename -d 'Only this file or directory, or - for standard input; may be repeated; deletes nothing' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -s c -l config -d 'Configuration file, whose sources are taken with their settings' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l ref -d 'Branch, tag or commit' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l path -d 'Folder inside the source' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l adopt -d 'Take over objects that exist already: never, if-unowned or always' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l blast-radius -d 'Deletions that need no confirmation: a count, or a percentage, as 10% [default: 10, and at most 10%]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l from -d 'Compare this revision (branch, tag, commit, or an ancestor as HEAD~1) with another instead of the cluster' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l to -d 'The revision to compare with [default: the files on disk; of a bare repository HEAD]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -s o -l output -d 'Output format: text, unified, json or name' -r -f -a "text\t'A line for each object and its changed fields'
unified\t'A patch of the whole objects'
json\t'The plan as JSON, schema rhumb.dev/plan/v1'
name\t'The names alone'"
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand diff" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -s o -l output -d 'Output format: text, wide or json' -r -f -a "text\t'A line for each source, and for each object that needs attention'
wide\t'The same with places, files and whole revisions'
json\t'The answer of the daemon, schema status.rhumb.dev/v1'"
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l socket -d 'Socket of the daemon [default: $RHUMB_SOCKET, then rhumb.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/rhumb or /run/rhumb]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -s n -l namespace -d 'Namespace of NAME [default: any]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -s w -l watch -d 'Keep running, and show each change'
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -l exit-code -d 'Exit with 1 unless everything shown is healthy'
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand status" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l socket -d 'Socket of the daemon [default: $RHUMB_SOCKET, then rhumb.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/rhumb or /run/rhumb]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand top" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -s o -l output -d 'Output format: text or json' -r -f -a "text\t'A line for each'
json\t'A JSON object for each, in a line'"
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l socket -d 'Socket of the daemon [default: $RHUMB_SOCKET, then rhumb.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/rhumb or /run/rhumb]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -s f -l follow -d 'Keep running, and show new events'
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand events" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -s c -l config -d 'Configuration file, whose sources are checked against what each may have' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand validate" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -s c -l config -d 'Configuration file, whose source is rendered with its settings' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -s o -l output -d 'Output format: yaml or json' -r -f -a "yaml\t'A document for each object'
json\t'One object with `objects` and `diagnostics`'"
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -l show-secrets -d 'Print the values of Secrets, which are masked else'
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand render" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l kubeconfig -d 'Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod\'s service account]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l context -d 'Context of the kubeconfig [default: its current one]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l system-namespace -d 'Namespace of rhumb\'s own ConfigMaps [default: rhumb-system]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -s n -l namespace -d 'Namespace of objects that name none [default: default]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l source -d 'Name of the source [default: from its location; with a file or a cluster, all sources]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l state-directory -d 'Directory for caches [default: $STATE_DIRECTORY, then rhumb in XDG\'s state home]' -r -F
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l log-level -d 'Log level: error, warn, info, debug, trace, or directives as in RUST_LOG [default: $RUST_LOG]' -r
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l log-format -d 'Format of the log: auto, text or json' -r -f -a "auto\t'The journal\'s own fields where standard error is the journal, else text'
text\t'A line of text for each event'
json\t'A JSON object for each event'"
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -l color -d 'Use colors: auto (not with NO_COLOR), always or never' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -s v -l verbose -d 'Log more; -vv logs each API call'
complete -c rhumb -n "__fish_rhumb_using_subcommand version" -s h -l help -d 'Print help'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "run" -d 'Follow a source, or those of a configuration, until stopped'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "apply" -d 'Apply a source once'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "lock" -d 'Write rhumb.lock, with the version and digest of each remote chart'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "prune" -d 'List and confirm pending deletions'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "check" -d 'Check the prerequisites: API server, git, files, rights'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "uninstall" -d 'Remove rhumb\'s own objects from the cluster, and on request those that it manages'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "rbac" -d 'Print the minimal roles that a source needs'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "debug" -d 'Examine what a daemon has recorded'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "rollout" -d 'Show and control rollouts'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "why" -d 'Explain the state of an object: its revision, health, and what it waits for'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "hold" -d 'Keep an object as it is for a time: drift is shown, and nothing is written'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "release" -d 'End a hold'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "diff" -d 'Show what would change in the cluster, and write nothing'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "status" -d 'Show sources, their revisions, and what needs attention'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "top" -d 'Watch sources, rollouts, the budget and the queue on one screen'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "events" -d 'Show events'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "validate" -d 'Check manifests without a cluster'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "render" -d 'Print manifests as Kubernetes reads them, without a cluster'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "version" -d 'Print the version'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and not __fish_seen_subcommand_from run apply lock prune check uninstall rbac debug rollout why hold release diff status top events validate render version help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from prune" -f -a "list" -d 'List pending deletions with their reasons'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from prune" -f -a "confirm" -d 'Confirm deletions by name'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from debug" -f -a "replay" -d 'Replay a trace of `rhumb run --trace`, and compare what is decided'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "status" -d 'Show the progress of a rollout, or of all'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "history" -d 'Show the rollout history of a workload'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "undo" -d 'Go back to older content, until it changes in git'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "retry" -d 'Try again what failed or was undone'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "pause" -d 'Release nothing new of an object or a source; repairs and rollbacks go on'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "resume" -d 'End a pause'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "promote" -d 'Let a held rollout continue to its next step'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "abort" -d 'Roll back a rollout that is running or queued'
complete -c rhumb -n "__fish_rhumb_using_subcommand help; and __fish_seen_subcommand_from rollout" -f -a "restart" -d 'Replace a workload\'s pods'
