# Shorthands for https://just.systems; each is one command that can be typed as well.

# List these
default:
    @just --list

# Formatting, lints and documentation, as CI has it
lint:
    .ci/run lint

# All tests; `just test prune` runs those with prune in their names
test *filter:
    cargo test {{ filter }}

# The tour: `just demo --keep` leaves it running
demo *flags:
    cargo run --example demo -- {{ flags }}

# The measurements in docs/performance.md
bench *flags:
    cargo bench {{ flags }}

# Faults with counts; `just faults --list` names them
faults *flags:
    cargo bench --bench faults -- {{ flags }}

# The files that decide what is deleted, what may roll out, and what goes back
decisive := "-f 'src/engine/{deletion,decide,orders}/*.rs' -f 'src/engine/rollout/**/*.rs' -f 'src/engine/{lease_shares,state}.rs' -f 'src/daemon/{inventory,leases}.rs'"

# Small bugs planted one at a time in what decides; the tests of `engine` and `daemon` alone look for them
mutants *flags=decisive:
    cargo mutants --no-shuffle {{ flags }}

# Readers of texts that others write, for an hour each; `just fuzz ledger_texts` runs one
fuzz target="fuzz_tests":
    RHUMB_FUZZ_SECONDS=${RHUMB_FUZZ_SECONDS:-3600} cargo test --lib -- {{ target }}

# Shows what would change in the current cluster
diff source *flags:
    cargo run --quiet -- diff {{ source }} {{ flags }}

# A control plane to play with, until Ctrl-C
cluster *flags:
    cargo run --quiet --package controlplane -- up {{ flags }}

# Licences, duplicates, advisories and sources of the dependencies; builds cargo-deny where there is none
deny:
    .ci/run deny

# Everything that CI runs
ci:
    .ci/run
