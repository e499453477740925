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

# Small bugs in what decides about deletion, budget and rollback, and the tests that notice them: one build for all.
# `just mutants --list` names them; `just mutants --file prune_guard` takes a part
mutants *flags:
    cargo run --quiet --package mutants -- {{ flags }}

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
