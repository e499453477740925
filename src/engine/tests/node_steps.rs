use std::collections::BTreeSet;
use std::time::Duration;

use crate::engine::{
    NodePod, NodeState, NodeStep, OrdinalPod, PodAvailability, StatefulSetState, TemplateVersion,
    count_nodes, find_stuck_pod, select_evictions,
};

const STATES: [(char, PodAvailability); 4] = [
    ('r', PodAvailability::Ready),
    ('u', PodAvailability::Unready(Duration::from_secs(30))),
    ('b', PodAvailability::InTrouble),
    ('t', PodAvailability::Terminating),
];

fn state(letter: char) -> PodAvailability {
    STATES.iter().find(|(one, _)| *one == letter).unwrap().1
}

/// Reads `a:or`: a pod of the older template on node a, Ready; `*` marks a canary node, `!` a lost
/// one.
fn pods(text: &str) -> Vec<NodePod> {
    let read = |word: &str| {
        let (node, rest) = word.split_once(':').unwrap();
        let host = match node.chars().last().unwrap() {
            '*' => NodeState::Canary,
            '!' => NodeState::Lost,
            _ => NodeState::Ready,
        };
        let letters: Vec<char> = rest.chars().collect();
        NodePod {
            name: word.into(),
            node: node.trim_end_matches(['*', '!']).into(),
            host,
            template: if letters[0] == 'o' { TemplateVersion::Older } else { TemplateVersion::Newest },
            state: state(letters[1]),
        }
    };
    text.split_whitespace().map(read).collect()
}

fn on_nodes(pods: &[NodePod]) -> u32 {
    pods.iter().map(|pod| &pod.node).collect::<BTreeSet<_>>().len() as u32
}

#[test]
fn pods_are_evicted_one_by_one_and_canaries_first() {
    #[track_caller]
    fn check(text: &str, target: u32, away: u32, expected: &str) {
        let pods = pods(text);
        let step = NodeStep { target, away, nodes: on_nodes(&pods) };
        let chosen: Vec<&str> = select_evictions(&pods, step).iter().map(|pod| &*pod.name).collect();
        assert_eq!(chosen.join(" "), expected, "{text} to {target}, {away} away");
    }
    check("c:or a:or b:or", 1, 1, "a:or");
    check("c:or a:or b:or", 3, 1, "a:or");
    check("c:or a:or b:or", 3, 2, "a:or b:or");
    check("c:or a:or b:or", 1, 2, "a:or");
    check("c*:or a:or b:or", 1, 1, "c*:or");
    check("c*:or a:or b*:or", 3, 3, "b*:or c*:or a:or");
    check("a:or b:or", 0, 1, "");
    check("a:or b:or", 2, 0, "");
    // Reached, or under way.
    check("a:nr b:or", 1, 1, "");
    check("a:nr b:or", 2, 1, "b:or");
    check("a:nu b:or", 2, 1, "");
    check("a:nb b:or c:or", 3, 2, "b:or");
    check("a:ot b:or", 1, 1, "");
    check("a:ot b:or", 2, 1, "");
    check("a:ot a:nu b:or", 2, 1, "");
    check("a:ot a:nr b:or", 2, 1, "b:or");
    // Pods that serve nobody go before the others, and take nothing away.
    check("a:or b:ou", 1, 1, "b:ou");
    check("a:or b:ou", 2, 1, "b:ou");
    check("a:or b:ou c:ob", 3, 1, "b:ou c:ob");
    check("a*:or b:ou", 2, 2, "a*:or b:ou");
    check("a*:or b:ou", 2, 1, "b:ou");
    // Lost nodes do not count and are left alone.
    check("a!:ou b:or", 1, 1, "b:or");
    check("a!:or b:or", 2, 2, "b:or");
    check("a!:nr b:or", 1, 1, "b:or");
    check("a!:ot b:or", 1, 1, "b:or");
    check("", 3, 1, "");
}

#[test]
fn a_node_without_a_pod_is_taken_and_away() {
    fn check(text: &str, nodes: u32, target: u32, expected: usize) {
        let step = NodeStep { target, away: 1, nodes };
        assert_eq!(select_evictions(&pods(text), step).len(), expected, "{text} on {nodes}");
    }
    check("a:or b:or", 3, 1, 0);
    check("a:or b:or", 3, 2, 0);
    check("a:or b:or", 2, 2, 1);
}

#[test]
fn a_step_is_judged_by_the_nodes_that_count() {
    fn check(text: &str, nodes: u32, expected: (u32, u32)) {
        let counts = count_nodes(&pods(text), nodes);
        assert_eq!((counts.nodes, counts.ready), expected, "{text}");
    }
    check("a:nr b:nu c:or d:nt e:nb", 5, (5, 1));
    check("a!:nr b:nr", 2, (1, 1));
    check("a:ot a:nr", 1, (1, 1));
    check("a:nr", 3, (3, 1));
    check("", 0, (0, 0));
}

/// Tries every way in which pods of small sets can be, within each bound.
#[test]
fn never_more_nodes_are_away_than_allowed() {
    let words = ["or", "ou", "ob", "ot", "nr", "nu", "nt"];
    let hosts = ["", "*", "!"];
    let each: Vec<(usize, usize)> =
        (0..words.len()).flat_map(|w| (0..hosts.len()).map(move |h| (w, h))).collect();
    let mut chosen_at_all = 0_usize;
    for a in &each {
        for b in &each {
            for c in &each {
                let text: Vec<String> = [("a", a), ("b", b), ("c", c)]
                    .iter()
                    .map(|(node, (word, host))| format!("{node}{}:{}", hosts[*host], words[*word]))
                    .collect();
                let pods = pods(&text.join(" "));
                for target in 0..=3 {
                    for away in 0..=3 {
                        let chosen = select_evictions(&pods, NodeStep { target, away, nodes: 3 });
                        chosen_at_all += chosen.len();
                        let sound = pods.iter().filter(|pod| pod.host != NodeState::Lost);
                        let before = sound.clone().filter(|pod| pod.state != PodAvailability::Ready).count();
                        let newly = chosen.iter().filter(|pod| pod.state == PodAvailability::Ready).count();
                        assert!(newly == 0 || before + newly <= away as usize, "{pods:?} {target} {away}");
                        let taken = sound.filter(|pod| {
                            pod.template == TemplateVersion::Newest
                                || pod.state == PodAvailability::Terminating
                        });
                        let taken = taken.count();
                        assert!(
                            chosen.is_empty() || taken + chosen.len() <= target as usize,
                            "{pods:?} {target}"
                        );
                        for pod in chosen {
                            assert_eq!(pod.template, TemplateVersion::Older);
                            assert_ne!(pod.state, PodAvailability::Terminating);
                            assert_ne!(pod.host, NodeState::Lost);
                        }
                    }
                }
            }
        }
    }
    assert!(chosen_at_all > 1000, "{chosen_at_all}");
}

/// Checks that all sound nodes get the newest template and the others none, whichever pods are
/// lost.
#[test]
fn the_evictions_end_when_all_sound_nodes_are_done() {
    for away in 1..=3 {
        let mut pods = pods("a:or b*:ou c:or d!:or e:nb f:or");
        let mut rounds = 0;
        loop {
            let chosen: Vec<String> = select_evictions(&pods, NodeStep { target: 5, away, nodes: 6 })
                .iter()
                .map(|pod| pod.name.to_string())
                .collect();
            let mut changed = !chosen.is_empty();
            for pod in &mut pods {
                if chosen.contains(&pod.name.to_string()) {
                    (pod.template, pod.state) =
                        (TemplateVersion::Newest, PodAvailability::Unready(Duration::ZERO));
                } else if pod.template == TemplateVersion::Newest && pod.state != PodAvailability::Ready {
                    pod.state = PodAvailability::Ready;
                    changed = true;
                }
            }
            rounds += 1;
            if !changed {
                break;
            }
            assert!(rounds < 20, "{pods:?}");
        }
        let older: Vec<&str> =
            pods.iter().filter(|pod| pod.template == TemplateVersion::Older).map(|pod| &*pod.name).collect();
        assert_eq!(older, ["d!:or"], "{away}");
    }
}

/// Reads `or nb` as pods 0 and 1: `n` has the wanted revision, `o` the current one, `x` another.
fn ordinals(text: &str) -> Vec<OrdinalPod> {
    let numbered = text.split_whitespace().enumerate().filter(|(_, word)| *word != "-");
    numbered
        .map(|(ordinal, word)| {
            let letters: Vec<char> = word.chars().collect();
            let revision = match letters[0] {
                'n' => "wanted",
                'o' => "current",
                _ => "other",
            };
            OrdinalPod {
                name: format!("db-{ordinal}").into(),
                ordinal: ordinal as u32,
                revision: revision.into(),
                state: state(letters[1]),
            }
        })
        .collect()
}

fn set(partition: u32) -> StatefulSetState {
    StatefulSetState { start: 0, partition, wanted: "wanted".into(), current: "current".into() }
}

#[test]
fn a_stateful_set_is_freed_of_the_pod_that_it_waits_for() {
    #[track_caller]
    fn check(text: &str, partition: u32, patience: u64, expected: Option<&str>) {
        let pods = ordinals(text);
        let found = find_stuck_pod(&set(partition), &pods, Duration::from_secs(patience));
        assert_eq!(found.map(|pod| &*pod.name), expected, "{text} from {partition}");
    }
    check("or or or", 0, 0, None);
    check("nr nr xb", 0, 60, Some("db-2"));
    check("nr nr xu", 0, 60, None);
    check("nr nr xu", 0, 30, Some("db-2"));
    check("nr nr nb", 0, 0, None);
    // One at a time, in the controller's order.
    check("nr xb xb", 0, 60, Some("db-1"));
    check("nr xt xb", 0, 60, None);
    check("nr - xb", 0, 60, None);
    check("- xb", 0, 60, None);
    check("nu xb xb", 0, 60, None);
    check("xu nr xb", 0, 60, None);
    // Below the partition, the current revision is right.
    check("ob nr", 1, 0, None);
    check("ob nr", 0, 0, Some("db-0"));
    check("xb nr", 1, 0, Some("db-0"));
    check("nb nr", 1, 0, None);
    check("", 0, 0, None);
    let mut later = ordinals("- - - xb");
    assert_eq!(
        find_stuck_pod(&StatefulSetState { start: 3, ..set(0) }, &later, Duration::ZERO),
        later.first()
    );
    later.clear();
}

#[test]
fn only_a_pod_that_serves_nobody_is_ever_deleted() {
    let words: Vec<String> =
        ["n", "o", "x"].iter().flat_map(|t| STATES.map(|(s, _)| format!("{t}{s}"))).collect();
    let mut found = 0;
    for a in &words {
        for b in &words {
            for c in &words {
                for partition in 0..=3 {
                    let pods = ordinals(&format!("{a} {b} {c}"));
                    let Some(pod) = find_stuck_pod(&set(partition), &pods, Duration::ZERO) else { continue };
                    found += 1;
                    assert!(
                        !matches!(pod.state, PodAvailability::Ready | PodAvailability::Terminating),
                        "{pods:?}"
                    );
                    assert_ne!(&*pod.revision, "wanted", "{pods:?}");
                    assert!(pods.iter().all(|pod| pod.state != PodAvailability::Terminating), "{pods:?}");
                    let before = pods.iter().take_while(|other| other.ordinal < pod.ordinal);
                    assert!(before.clone().all(|other| other.state == PodAvailability::Ready), "{pods:?}");
                }
            }
        }
    }
    assert!(found > 100, "{found}");
}

// While a pod with a surge takes over from the older one, both are Ready.
#[test]
fn two_ready_pods_of_a_node_serve_as_one_does() {
    let pods = pods("a:or a:nr b:or");
    assert_eq!(select_evictions(&pods, NodeStep { target: 1, away: 0, nodes: 2 }), Vec::<&NodePod>::new());
    let counts = count_nodes(&self::pods("a:nr a:nr b:or b:nr c:or"), 3);
    assert_eq!((counts.nodes, counts.ready), (3, 2));
}

#[test]
fn a_partition_counts_from_the_first_ordinal() {
    let pods = ordinals("- - - ob nr");
    let check = |partition: u32, expected: Option<&str>| {
        let set = StatefulSetState { start: 3, ..set(partition) };
        let found = find_stuck_pod(&set, &pods, Duration::ZERO);
        assert_eq!(found.map(|pod| &*pod.name), expected, "{partition}");
    };
    check(0, Some("db-3"));
    check(1, None);
}
