//! Texts that others write, changed at random: no reader may panic, hang or overflow its stack.
//!
//! [`fuzz`] changes seeds, and calls a check with each result. A check says what must hold, and
//! returns a number for the shape of what was read. An input of a new shape becomes a seed. A plain
//! run takes the same inputs each time, about as many as a second has room for.
//!
//! | variable | meaning |
//! |---|---|
//! | `RHUMB_FUZZ_SECONDS` | runs for this long, with a seed of its own |
//! | `RHUMB_FUZZ_SEED` | takes the inputs of this seed |
//! | `RHUMB_FUZZ_KEEP` | the file that has the input being tried, for one that ends the process |
//!
//! A reader that is private has its target beside it, in a module of this name.

mod annotations;
mod fields;
mod manifests;
mod mutator;
mod records;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use mutator::{Dice, mutate};
use rustix::time::{ClockId, clock_gettime};

/// The seed of a plain run.
const PLAIN_SEED: u64 = 1;

/// The most bytes of an input.
const MAX_INPUT_BYTES: usize = 32 << 10;

/// The most inputs that are kept as seeds.
const MAX_SEEDS: usize = 2000;

/// The most time of the processor that one input may take. Most take less than a millisecond.
const MAX_RUN_TIME: Duration = Duration::from_secs(2);

/// The most time between two inputs. More than that means that one never ends.
const MAX_SILENCE: Duration = Duration::from_mins(2);

/// The stack of a check: that of the threads which read in the daemon.
const STACK_BYTES: usize = 2 << 20;

/// One fuzz target: texts to begin with, words of the format, and how many inputs a plain run
/// takes.
pub(crate) struct FuzzTarget<'a> {
    /// The name, as it is printed.
    pub(crate) name: &'a str,
    /// The texts to begin with.
    pub(crate) seeds: Vec<Vec<u8>>,
    /// Words of the format.
    pub(crate) words: &'a [&'a str],
    /// The number of inputs of a plain run.
    pub(crate) inputs: u64,
}

/// Returns a number for the shape of a result.
pub(crate) fn shape(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Returns texts as seeds.
pub(crate) fn seeds<T: AsRef<[u8]>>(texts: &[T]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_ref().to_vec()).collect()
}

/// The bounds of a run.
struct RunBounds {
    seed: u64,
    inputs: Option<u64>,
    time: Duration,
    keep: Option<PathBuf>,
}

impl RunBounds {
    fn of(target: &FuzzTarget<'_>) -> Self {
        let number = |name: &str| -> Option<u64> {
            let text = std::env::var(name).ok()?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
        };
        let seconds = number("RHUMB_FUZZ_SECONDS");
        let of_its_own = || seconds.map(|_| u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap());
        Self {
            seed: number("RHUMB_FUZZ_SEED").or_else(of_its_own).unwrap_or(PLAIN_SEED),
            inputs: seconds.is_none().then_some(target.inputs),
            time: seconds.map_or(Duration::MAX, Duration::from_secs),
            keep: std::env::var_os("RHUMB_FUZZ_KEEP").map(PathBuf::from),
        }
    }
}

/// Calls a check with each seed, and with changes of them.
///
/// # Panics
///
/// When the check does for an input, or takes too long. The smallest such input that is found is
/// printed, with the seed that leads to it.
pub(crate) fn fuzz(target: &FuzzTarget<'_>, check: impl Fn(&[u8]) -> u64 + Sync) {
    let bounds = RunBounds::of(target);
    println!("{}: RHUMB_FUZZ_SEED={}", target.name, bounds.seed);
    let current = Mutex::new((0, Vec::new()));
    std::thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        let run = || {
            // Dropped at the end, also by a panic.
            let _running = running;
            run(target, &bounds, &current, &check);
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).unwrap();
        let mut before = 0;
        while ended.recv_timeout(MAX_SILENCE) == Err(RecvTimeoutError::Timeout) {
            let (number, input) = &*current.lock().unwrap();
            if *number == before {
                // No thread can be ended from outside, and a test ends only with its threads.
                let said =
                    format!("{}, seed {}: it never ends for {}", target.name, bounds.seed, shown(input));
                writeln!(std::io::stderr(), "{said}").unwrap();
                std::process::abort();
            }
            before = *number;
        }
        if let Err(cause) = thread.join() {
            std::panic::resume_unwind(cause);
        }
    });
}

fn run(
    target: &FuzzTarget<'_>,
    bounds: &RunBounds,
    current: &Mutex<(u64, Vec<u8>)>,
    check: &dyn Fn(&[u8]) -> u64,
) {
    let begun = Instant::now();
    let (mut dice, mut pool, mut shapes) = (Dice::new(bounds.seed), target.seeds.clone(), HashSet::new());
    let (mut tried, mut slowest) = (0, Duration::ZERO);
    let mut try_input = |input: &[u8]| {
        let next = current.lock().unwrap().0 + 1;
        *current.lock().unwrap() = (next, input.to_vec());
        if let Some(file) = &bounds.keep {
            std::fs::write(file, input).unwrap();
        }
        let before = processor_time();
        let result = catch_unwind(AssertUnwindSafe(|| check(input)));
        let took = processor_time().saturating_sub(before);
        slowest = slowest.max(took);
        let Ok(shape) = result else {
            let small =
                minimize(input, &|smaller| catch_unwind(AssertUnwindSafe(|| check(smaller))).is_err());
            panic!("{}, seed {}: it failed for {}", target.name, bounds.seed, shown(&small));
        };
        assert!(took < MAX_RUN_TIME, "{}, seed {}: {took:?} for {}", target.name, bounds.seed, shown(input));
        shapes.insert(shape)
    };
    for seed in &target.seeds {
        try_input(seed);
    }
    while bounds.inputs.is_none_or(|most| tried < most) && begun.elapsed() < bounds.time {
        tried += 1;
        let input = mutate(&mut dice, &pool, target.words, MAX_INPUT_BYTES);
        if try_input(&input) && pool.len() < MAX_SEEDS {
            pool.push(input);
        }
    }
    let (count, took) = (target.seeds.len(), begun.elapsed().as_secs());
    let said = format!(
        "{}: {tried} inputs of {count} seeds in {took} s, {} shapes, {} ms at most",
        target.name,
        shapes.len(),
        slowest.as_millis()
    );
    // A long run says so to the person who waits for it.
    if bounds.inputs.is_some() {
        println!("{said}");
    } else {
        writeln!(std::io::stderr(), "{said}").unwrap();
    }
}

/// Returns the time that this thread has had: that of the machine depends on who else uses it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// Returns a smaller input that still fails, as far as leaving pieces out leads to one.
fn minimize(input: &[u8], fails: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut smallest, mut size, mut left) = (input.to_vec(), input.len().div_ceil(2), 1000);
    while size > 0 && left > 0 {
        let mut at = 0;
        while at < smallest.len() && left > 0 {
            left -= 1;
            let mut smaller = smallest.clone();
            drop(smaller.drain(at..(at + size).min(smallest.len())));
            if fails(&smaller) {
                smallest = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    smallest
}

/// Returns an input as a literal for a test.
fn shown(input: &[u8]) -> String {
    format!("b\"{}\"", input.escape_ascii())
}

#[test]
fn a_run_finds_a_panic_and_shows_a_small_input() {
    let target =
        FuzzTarget { name: "planted", seeds: seeds(&["a plain text"]), words: &["bug"], inputs: 2000 };
    let check = |input: &[u8]| {
        assert!(!input.windows(3).any(|piece| piece == b"bug"), "found");
        0
    };
    let failed = catch_unwind(|| fuzz(&target, check)).unwrap_err();
    let said = failed.downcast_ref::<String>().unwrap();
    assert!(said.ends_with("it failed for b\"bug\""), "{said}");
}

#[test]
fn a_seed_leads_to_the_same_inputs() {
    let inputs = |seed| {
        let (mut dice, pool) = (Dice::new(seed), seeds(&["a: b\nc: [1, 2]\n", "{}"]));
        (0..500).map(|_| mutate(&mut dice, &pool, &["word"], MAX_INPUT_BYTES)).collect::<Vec<_>>()
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
}
