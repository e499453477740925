//! The taking, keeping and releasing of Leases: tables, and replicas of which each sees only the
//! Leases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::engine::lease_shares::RENEWAL_INTERVAL;
use crate::engine::{
    LEASE_DURATION, LEASE_LIST_INTERVAL, LeaseMoves, LeaseShares, LeaseSnapshot, WRITE_TERM,
};

type LeaseMarks = BTreeMap<Arc<str>, LeaseSnapshot>;

fn names(text: &str) -> BTreeSet<Arc<str>> {
    text.split_whitespace().map(Into::into).collect()
}

fn object_hash(holder: &str, renewed: u64) -> LeaseSnapshot {
    let holder = Some(holder.into()).filter(|_| !holder.is_empty());
    LeaseSnapshot { holder, renewed: renewed.to_string().into(), duration: LEASE_DURATION }
}

/// Reads `a=one b=two c=`: who holds what.
fn marks(text: &str, renewed: u64) -> LeaseMarks {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, holder)| (name.into(), object_hash(holder, renewed))).collect()
}

fn replicas(text: &str, renewed: u64) -> LeaseMarks {
    names(text).into_iter().map(|id| (id.clone(), object_hash(&id, renewed))).collect()
}

fn taken(moves: &LeaseMoves) -> String {
    moves.take.iter().map(|name| &**name).collect::<Vec<_>>().join(" ")
}

/// Returns a replica `me` that looks, every second, at the same Leases, which the others renew;
/// what it does at last.
fn after(seconds: u64, sources: &str, held: &str, others: &str, wanted: &str) -> (LeaseShares, LeaseMoves) {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    for source in names(held) {
        shares.note_renewal(&source, start);
    }
    let mut moves = LeaseMoves::default();
    for second in 0..=seconds {
        let now = start + LEASE_LIST_INTERVAL * second as u32;
        for source in shares.held_sources().cloned().collect::<Vec<_>>() {
            shares.note_renewal(&source, now);
        }
        shares.update(marks(sources, second), replicas(&format!("me {others}"), second), now);
        moves = shares.next_moves(&names(wanted), now);
    }
    (shares, moves)
}

#[test]
fn a_replica_takes_its_share_of_what_is_free() {
    #[track_caller]
    fn check(sources: &str, held: &str, others: &str, wanted: &str, expected: &str) {
        let (_, moves) = after(0, sources, held, others, wanted);
        assert_eq!(taken(&moves), expected);
    }
    // Alone it takes all.
    check("", "", "", "a b c", "a b c");
    check("a= b=me", "", "", "a b c", "a b c");
    // Its own half; those of the same moment begin at different places.
    check("", "", "you", "a b c d", "a b");
    check("", "", "i", "a b c d", "c d");
    check("a=you", "", "you", "a b c d", "b c");
    check("a=you b=you", "", "you", "a b c", "c");
    // Leases of others are left to them, also where nothing else is to be had.
    check("a=you b=you c=you", "", "you", "a b c", "");
    // Its share is full.
    check("a=me b=me", "a b", "you", "a b c d", "");
    // Sources that only others serve count too, so nobody is let off.
    check("x=you y=you", "", "you", "a b c d", "a b c");
}

#[test]
fn what_nobody_takes_for_the_length_of_a_lease_is_taken_beyond_the_share() {
    let free = |seconds| taken(&after(seconds, "a=me b=me", "a b", "you", "a b c").1);
    assert_eq!(free(9), "");
    assert_eq!(free(10), "c");
}

#[test]
fn a_lease_is_taken_once_it_has_been_silent_for_its_length_under_our_eyes() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let mut observe = |after: Duration, renewed: u64| {
        let now = start + after;
        shares.update(marks("a=you", renewed), replicas("me", renewed), now);
        let moves = taken(&shares.next_moves(&names("a"), now));
        (moves, shares.next_wake(now) - start)
    };
    // Its age by its own word is not believed: the clock is another's.
    let long = Duration::from_secs(100);
    assert_eq!(observe(long, 1).0, "");
    assert_eq!(observe(long + LEASE_DURATION * 9 / 10, 1), (String::new(), long + LEASE_DURATION));
    assert_eq!(observe(long + LEASE_DURATION, 2).0, "");
    assert_eq!(observe(long + LEASE_DURATION * 19 / 10, 2).0, "");
    assert_eq!(observe(long + LEASE_DURATION * 2, 2).0, "a");
}

#[test]
fn the_lease_of_a_dead_holder_is_taken_within_its_length_and_one_interval_of_its_last_renewal() {
    for tenths in 0..10 {
        let start = Instant::now();
        let renewed = start + LEASE_LIST_INTERVAL * tenths / 10;
        let mut shares = LeaseShares::new("me");
        let mut moves_at = |now: Instant| {
            let mark = if now > renewed { 2 } else { 1 };
            shares.update(marks("a=you", mark), replicas("me you", mark), now);
            (taken(&shares.next_moves(&names("a"), now)), shares.next_wake(now))
        };
        let latest = renewed + LEASE_DURATION + LEASE_LIST_INTERVAL;
        let mut now = start;
        let taken_at = loop {
            match moves_at(now) {
                (take, _) if take == "a" => break now,
                (_, wake) => now = wake,
            }
            assert!(now <= latest, "after {tenths} tenths of a second it is not taken");
        };
        assert!(taken_at >= renewed + LEASE_DURATION, "after {tenths} tenths of a second it is taken early");
    }
}

fn moves_of(shares: &mut LeaseShares, wanted: &str, now: Instant) -> LeaseMoves {
    shares.next_moves(&names(wanted), now)
}

#[test]
fn nothing_is_held_beyond_the_term_or_against_another_holder() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    for source in names("a b") {
        shares.note_renewal(&source, start);
    }
    shares.update(marks("a=me b=you", 1), replicas("me you", 1), start);
    assert_eq!(shares.next_moves(&names("a b"), start).lost, ["b".into()]);
    assert_eq!(shares.next_moves(&names("a b"), start + WRITE_TERM / 2).lost, []);
    assert_eq!(shares.next_wake(start + WRITE_TERM * 9 / 10), start + WRITE_TERM);
    let moves = shares.next_moves(&names("a b"), start + WRITE_TERM);
    assert_eq!((moves.lost, moves.lapsed), (vec![], vec!["a".into()]));
    assert_eq!(
        (taken(&moves_of(&mut shares, "a b", start + WRITE_TERM)), shares.held_sources().count()),
        ("a".to_owned(), 0)
    );
    assert!(WRITE_TERM < LEASE_DURATION);
}

#[test]
fn what_others_may_have_had_meanwhile_is_lost() {
    #[track_caller]
    fn check(shown: &str, lost: &str) {
        let start = Instant::now();
        let mut shares = LeaseShares::new("me");
        shares.update(marks("a=me", 1), replicas("me", 1), start);
        for source in names("a") {
            shares.note_renewal(&source, start);
        }
        // It slept, shorter than its term as far as its own clock knows.
        let now = start + WRITE_TERM / 2;
        shares.update(marks(shown, 2), replicas("me", 2), now);
        let moves = shares.next_moves(&names("a"), now);
        assert_eq!((moves.lost, shares.has_lease("a")), (names(lost).into_iter().collect(), lost.is_empty()));
        // A lookup that fails shows nothing new.
        assert_eq!(shares.next_moves(&names("a"), now).lost, []);
    }
    check("a=me", "");
    check("a=you", "a");
    // Somebody took it, and let it go, or removed it, as its source was deleted.
    check("a=", "a");
    check("", "a");
}

#[test]
fn a_lease_that_was_removed_under_its_holder_is_waited_for() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let mut observe = |seconds: u32, sources: &str| {
        let now = start + LEASE_LIST_INTERVAL * seconds;
        shares.update(marks(sources, 1), replicas("me", u64::from(seconds)), now);
        taken(&shares.next_moves(&names("a b"), now))
    };
    assert_eq!(observe(0, "a=you b=you"), "");
    // A released Lease is free at once.
    assert_eq!(observe(1, "b="), "b");
    assert_eq!(observe(9, "b="), "b");
    assert_eq!(observe(10, "b="), "a b");
}

#[test]
fn what_is_too_much_is_let_go_for_those_who_came_to_stay() {
    let held = "a b c d";
    let sources = "a=me b=me c=me d=me";
    // It may be one that ends at once.
    assert_eq!(after(9, sources, held, "you", held).1.surplus, 0);
    let (mut shares, moves) = after(10, sources, held, "you", held);
    assert_eq!(moves.surplus, 2);
    assert_eq!(shares.surplus_leases(2, &names("")), ["d".into(), "c".into()]);
    assert_eq!(shares.surplus_leases(2, &names("d b")), ["c".into(), "a".into()]);
    assert_eq!(shares.surplus_leases(2, &names(held)), []);
    // A source in transit counts as gone, and is not chosen again.
    for source in names("c d") {
        shares.offer_lease(&source);
    }
    let now = Instant::now() + LEASE_LIST_INTERVAL * 10;
    let moves = shares.next_moves(&names(held), now);
    assert_eq!((moves.surplus, taken(&moves)), (0, String::new()));
    assert_eq!(shares.surplus_leases(9, &names("")), ["b".into(), "a".into()]);
    // Three of four would be one too many; those who have their share get no more.
    assert_eq!(after(10, "a=me b=me c=me d=you", "a b c", "you", held).1.surplus, 1);
    assert_eq!(after(10, "a=me b=me c=you", "a b", "you", "a b c").1.surplus, 0);
    assert_eq!(after(10, "a=me b=me c=me d=me x=you y=you", held, "you", held).1.surplus, 1);
}

#[test]
fn a_replica_that_comes_back_counts_as_new() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let mut surplus = |seconds: u64, renewed: u64| {
        let now = start + LEASE_LIST_INTERVAL * seconds as u32;
        for source in names("a b") {
            shares.note_renewal(&source, now);
        }
        shares.update(marks("a=me b=me", seconds), replicas("you", renewed), now);
        shares.next_moves(&names("a b"), now).surplus
    };
    assert_eq!(surplus(0, 1), 0);
    assert_eq!(surplus(9, 2), 0);
    assert_eq!(surplus(10, 2), 1);
    assert_eq!(surplus(19, 2), 0);
    assert_eq!(surplus(20, 3), 0);
    assert_eq!(surplus(29, 4), 0);
    assert_eq!(surplus(30, 4), 1);
}

#[test]
fn what_nobody_wants_comes_back_and_stays() {
    let held = "a b";
    let (mut shares, moves) = after(10, "a=me b=me", held, "you", held);
    assert_eq!(moves.surplus, 1);
    let let_go = shares.surplus_leases(1, &names(""));
    shares.offer_lease(&let_go[0]);
    shares.note_loss(&let_go[0]);
    let start = Instant::now() + LEASE_LIST_INTERVAL * 20;
    let mut back = String::new();
    for second in 0..=10 {
        let now = start + LEASE_LIST_INTERVAL * second;
        shares.note_renewal(&"a".into(), now);
        shares.update(marks("a=me b=", second.into()), replicas("me you", second.into()), now);
        back = taken(&shares.next_moves(&names(held), now));
    }
    assert_eq!(back, "b");
    shares.note_renewal(&"b".into(), start + LEASE_LIST_INTERVAL * 10);
    assert_eq!(shares.surplus_leases(1, &names("")), ["a".into()]);
    assert_eq!(shares.surplus_leases(2, &names("")), ["a".into()]);
    // With other replicas it is tried again.
    shares.update(marks("a=me b=me", 99), replicas("me you she", 99), start + LEASE_LIST_INTERVAL * 11);
    assert_eq!(shares.surplus_leases(1, &names("")), ["b".into()]);
}

#[test]
fn what_is_no_longer_configured_is_left() {
    let (_, moves) = after(0, "a=me b=me", "a b", "", "a");
    assert_eq!((moves.leave, moves.surplus), (vec!["b".into()], 0));
}

#[test]
fn the_lease_of_a_replica_that_is_long_gone_is_stale() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let mut observe = |seconds| {
        let now = start + Duration::from_secs(seconds);
        shares.update(LeaseMarks::new(), replicas("me you", 1), now);
        shares.next_moves(&names(""), now).stale_replicas
    };
    assert_eq!(observe(0), []);
    assert_eq!(observe(119), []);
    assert_eq!(observe(120), ["you".into()]);
}

/// The API server: who was the last to write each Lease.
#[derive(Default)]
struct LeaseServer {
    sources: LeaseMarks,
    replicas: LeaseMarks,
    /// Grows with each write.
    version: u64,
}

struct TestReplica {
    id: String,
    shares: LeaseShares,
    /// The Leases as it last read or wrote them.
    known: LeaseMarks,
    /// The time until which its writes pass.
    terms: BTreeMap<Arc<str>, Instant>,
    asleep: u32,
    dead: bool,
}

impl TestReplica {
    fn new(number: usize) -> Self {
        let id = format!("replica-{number}");
        Self {
            shares: LeaseShares::new(&id),
            id,
            known: LeaseMarks::new(),
            terms: BTreeMap::new(),
            asleep: 0,
            dead: false,
        }
    }

    fn hold(&mut self, server: &mut LeaseServer, source: &Arc<str>, now: Instant) {
        // A compare-and-swap.
        if server.sources.get(source) != self.known.get(source) {
            return;
        }
        server.version += 1;
        let written = object_hash(&self.id, server.version);
        server.sources.insert(source.clone(), written.clone());
        self.known.insert(source.clone(), written);
        self.shares.note_renewal(source, now);
        self.terms.insert(source.clone(), now + WRITE_TERM);
    }

    fn beat(
        &mut self,
        server: &mut LeaseServer,
        wanted: &BTreeSet<Arc<str>>,
        busy: &BTreeSet<Arc<str>>,
        now: Instant,
    ) {
        server.version += 1;
        server.replicas.insert(self.id.as_str().into(), object_hash(&self.id, server.version));
        for source in self.shares.due_renewals(now) {
            self.hold(server, &source, now);
        }
        self.known = server.sources.clone();
        self.shares.update(server.sources.clone(), server.replicas.clone(), now);
        let moves = self.shares.next_moves(wanted, now);
        self.terms.retain(|source, _| !moves.lost.contains(source) && !moves.lapsed.contains(source));
        for source in &moves.take {
            self.hold(server, source, now);
        }
        let surplus = self.shares.surplus_leases(moves.surplus, busy);
        for source in &surplus {
            self.shares.offer_lease(source);
        }
        for source in surplus.into_iter().chain(moves.leave) {
            self.terms.remove(&source);
            self.shares.note_loss(&source);
            server.version += 1;
            server.sources.insert(source, object_hash("", server.version));
        }
    }

    fn writes(&self, source: &str, now: Instant) -> bool {
        self.terms.get(source).is_some_and(|end| now < *end)
    }
}

/// An event of the replicas.
#[derive(Clone, Debug)]
enum ReplicaFate {
    Sleeps(usize, u32),
    Dies(usize),
    Comes,
}

fn fate() -> impl Strategy<Value = ReplicaFate> {
    prop_oneof![
        (0..4_usize, 1..30_u32).prop_map(|(number, beats)| ReplicaFate::Sleeps(number, beats)),
        (0..4_usize).prop_map(ReplicaFate::Dies),
        Just(ReplicaFate::Comes),
    ]
}

fn fares(replicas: &mut Vec<TestReplica>, fate: &ReplicaFate) {
    let count = replicas.len();
    match *fate {
        ReplicaFate::Sleeps(number, beats) => replicas[number % count].asleep = beats,
        ReplicaFate::Dies(number) if replicas.iter().filter(|replica| !replica.dead).count() > 1 => {
            replicas[number % count].dead = true;
        }
        ReplicaFate::Dies(_) => {}
        ReplicaFate::Comes => replicas.push(TestReplica::new(count)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_two_write_for_one_source_and_all_end_up_shared(
        count in 1..12_usize,
        fates in prop::collection::vec((fate(), 0..40_u32), 0..8),
        busy in prop::collection::btree_set(0..12_usize, 0..4),
    ) {
        let named = |number: usize| -> Arc<str> { format!("source-{number:02}").into() };
        let wanted: BTreeSet<_> = (0..count).map(named).collect();
        let mut busy: BTreeSet<_> = busy.into_iter().map(named).collect();
        let (mut server, mut replicas) = (LeaseServer::default(), vec![TestReplica::new(0), TestReplica::new(1)]);
        let mut now = Instant::now();
        let quiet = [(None, 120_u32), (None, 60)];
        let steps = fates.iter().map(|(fate, beats)| (Some(fate), *beats)).chain(quiet);
        for (fate, beats) in steps {
            match fate {
                Some(fate) => fares(&mut replicas, fate),
                None => busy.clear(),
            }
            for _ in 0..beats {
                now += LEASE_LIST_INTERVAL;
                for replica in replicas.iter_mut().filter(|replica| !replica.dead) {
                    replica.asleep = replica.asleep.saturating_sub(1);
                    if replica.asleep == 0 {
                        replica.beat(&mut server, &wanted, &busy, now);
                    }
                }
                for source in &wanted {
                    let writers = replicas.iter().filter(|replica| replica.writes(source, now)).count();
                    prop_assert!(writers <= 1, "{source}: {writers} write");
                }
            }
        }
        let alive: Vec<&TestReplica> = replicas.iter().filter(|replica| !replica.dead).collect();
        let cap = count.div_ceil(alive.len());
        let shares: Vec<usize> = alive.iter().map(|replica| replica.shares.held_sources().count()).collect();
        prop_assert_eq!(shares.iter().sum::<usize>(), count);
        prop_assert!(shares.iter().all(|share| *share <= cap), "{:?} of {}", shares, count);
    }
}

// Its answer came later than that of a newer one.
#[test]
fn an_older_renewal_shortens_no_term() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let newer = start + LEASE_LIST_INTERVAL * 3;
    shares.note_renewal(&"a".into(), newer);
    shares.note_renewal(&"a".into(), start);
    assert_eq!(shares.due_renewals(newer), [""; 0].map(Into::into));
    let moves = shares.next_moves(&names("a"), start + WRITE_TERM);
    assert_eq!((moves.lapsed, shares.has_lease("a")), (vec![], true));
}

#[test]
fn a_lease_is_due_for_renewal_after_the_interval_and_whoever_sleeps_wakes_at_the_end_of_its_term() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    shares.note_renewal(&"a".into(), start);
    let due = |after: Duration| shares.due_renewals(start + after).len();
    assert_eq!((due(RENEWAL_INTERVAL * 9 / 10), due(RENEWAL_INTERVAL)), (0, 1));
    let early = start + WRITE_TERM * 11 / 12;
    assert_eq!(shares.next_wake(early), start + WRITE_TERM);
    // A term that is over is no reason to wake.
    assert_eq!(shares.next_wake(start + WRITE_TERM), start + WRITE_TERM + LEASE_LIST_INTERVAL);
}

#[test]
fn whoever_waits_for_a_lease_of_another_wakes_when_it_runs_out() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    shares.update(marks("a=you", 1), LeaseMarks::new(), start);
    let end = start + LEASE_DURATION;
    assert_eq!(shares.next_wake(end.checked_sub(LEASE_LIST_INTERVAL / 2).unwrap()), end);
    assert_eq!(shares.next_wake(end), end + LEASE_LIST_INTERVAL);
}

#[test]
fn a_renewal_in_the_moment_in_which_its_lease_ends_is_one_of_a_new_replica() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let mut surplus = |seconds: u32| {
        let now = start + LEASE_LIST_INTERVAL * seconds;
        for source in names("a b") {
            shares.note_renewal(&source, now);
        }
        shares.update(marks("a=me b=me", seconds.into()), replicas("me you", seconds.into()), now);
        shares.next_moves(&names("a b"), now).surplus
    };
    assert_eq!((surplus(0), surplus(10), surplus(19), surplus(20)), (0, 0, 0, 1));
}

// It was there for long, and a newcomer makes the share of each smaller.
#[test]
fn nothing_is_let_go_for_a_replica_that_is_dead() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    let mut surplus = |seconds: u32, you: u64, others: &str| {
        let now = start + LEASE_LIST_INTERVAL * seconds;
        for source in names("a b") {
            shares.note_renewal(&source, now);
        }
        let mut shown = replicas(others, seconds.into());
        shown.extend(replicas("you", you));
        shares.update(marks("a=me b=me", seconds.into()), shown, now);
        shares.next_moves(&names("a b"), now).surplus
    };
    assert_eq!(surplus(0, 1, "me"), 0);
    assert_eq!(surplus(9, 2, "me"), 0);
    assert_eq!(surplus(12, 2, "me"), 1);
    assert_eq!(surplus(19, 2, "me she"), 0);
}

#[test]
fn a_list_that_was_not_had_in_time_makes_no_renewed_lease_free() {
    let start = Instant::now();
    let mut shares = LeaseShares::new("me");
    for (seconds, renewed) in [(0, 1), (9, 2)] {
        let now = start + LEASE_LIST_INTERVAL * seconds;
        shares.update(marks("a=you", renewed), replicas("me you", renewed), now);
    }
    let taken_after = |seconds: u32| {
        let now = start + LEASE_LIST_INTERVAL * seconds;
        taken(&shares.clone().next_moves(&names("a"), now))
    };
    assert_eq!(
        (taken_after(10), taken_after(18), taken_after(19)),
        (String::new(), String::new(), "a".to_owned())
    );
}
