//! The texts of the rollout ledger and of units: their form in JSON in the cluster.
//!
//! Owns each key and word of that form. Other versions of rhumb read it, so a claim that cannot be
//! read is kept as it is.
//!
//! **Invariant:** does no I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::facts::hash_seal::{HashCipherStatus, HashCiphers};
use crate::engine::facts::records::object_word::{object_word, parse_object_word};
use crate::engine::facts::records::release_unit::{ConfigRestart, ReleaseUnit, RollbackTarget, UnitMember};
use crate::engine::rollout::budget_tally::BudgetTallyText;
use crate::engine::rollout::ledger::{RolloutClaim, RolloutLedger, UnreadableClaim};
use crate::engine::rollout::ledger_authors::AuthoredRevisionText;
use crate::engine::rollout::queue::QueuedObjectText;
use crate::engine::rollout::start_rate::RolloutStartText;
use crate::object::{ContentHash, ObjectId, Revision, truncate};

/// The most bytes of the name of a process, source or inventory in the ledger. The names that rhumb
/// writes are shorter. Anybody who may write the ConfigMap may write any other.
const MAX_NAME_BYTES: usize = 256;

/// The beginning of the word that has the number of a key.
const KEY_PREFIX: &str = "key=";

/// Returns a name as it is in the ledger, without what is too long.
pub(in crate::engine) fn read_name(text: &str) -> Arc<str> {
    truncate(text, MAX_NAME_BYTES).into()
}

/// A text that is no ledger.
#[derive(Debug, thiserror::Error)]
#[error("it cannot be read: {0}")]
pub(crate) struct ParseLedgerError(#[from] serde_json::Error);

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct LedgerText {
    claims: Vec<AnyClaimText>,
    units: Vec<UnitText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    past: Vec<UnitText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commits: Vec<AuthoredRevisionText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queue: Vec<QueuedObjectText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tallies: Vec<BudgetTallyText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    starts: Vec<RolloutStartText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begun: Option<Timestamp>,
}

/// A claim as it is in the object, whoever has written it. It is read from its tree, in which each
/// key is there once: so what is written of it means the same again.
#[derive(Serialize, Deserialize)]
#[serde(untagged, from = "Value")]
enum AnyClaimText {
    Known(RolloutClaimText),
    Unknown(Value),
}

impl From<Value> for AnyClaimText {
    fn from(raw: Value) -> Self {
        RolloutClaimText::deserialize(&raw).map_or(Self::Unknown(raw), Self::Known)
    }
}

#[derive(Serialize, Deserialize)]
struct RolloutClaimText {
    object: String,
    /// The inventory of the source.
    source: String,
    #[serde(default)]
    holder: String,
    content: String,
    pods: u32,
    /// Indicates whether the process that claimed it has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    left: bool,
    /// Indicates whether the workload is deleted and created again. Older versions pass over it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    recreates: bool,
    /// The seconds for which its creation is waited for. Older versions pass over it.
    #[serde(default, rename = "deadline", skip_serializing_if = "Option::is_none")]
    recreation_deadline: Option<u32>,
}

/// The form of a [`ReleaseUnit`] in JSON.
#[derive(Serialize, Deserialize)]
pub(in crate::engine) struct UnitText {
    source: String,
    revision: String,
    members: Vec<UnitMemberText>,
}

#[derive(Serialize, Deserialize)]
struct UnitMemberText {
    object: String,
    /// The hash; that of a Secret is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// `<hash>@<revision>`, or `absent`; left out where nobody knows. The hash of a Secret is
    /// sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    good: Option<String>,
    /// The inventory of the source that had the object with its good content; left out where that
    /// is its own.
    #[serde(default, rename = "goodInventory", skip_serializing_if = "Option::is_none")]
    good_inventory: Option<String>,
    /// `<hash of all data>@<hash of those that are not from git>@<hash of all data before>@key=<hex>`;
    /// the last two where they are known. Older versions pass over the number of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restarted: Option<String>,
}

impl RolloutLedger {
    /// Returns the text of the rollout ledger. A claim that cannot be read is an
    /// [`UnreadableClaim`], any other record is left out; a hash that is sealed by another key is
    /// [`ContentHash::UNREADABLE`].
    ///
    /// # Errors
    ///
    /// The text must be JSON of the shape that [`RolloutLedger::text`] writes.
    pub(crate) fn parse(text: &str, seals: &HashCiphers) -> Result<Self, ParseLedgerError> {
        let read: LedgerText = serde_json::from_str(text)?;
        let (mut claims, mut unreadable_claims) = (BTreeMap::new(), Vec::new());
        for claim_text in read.claims {
            match claim_text.read() {
                Ok((id, claim)) => drop(claims.insert(id, claim)),
                Err(claim) => unreadable_claims.push(claim),
            }
        }
        Ok(Self {
            claims,
            units: read.units.into_iter().map(|unit| unit.read(seals)).collect(),
            history: read.past.into_iter().map(|unit| unit.read(seals)).collect(),
            commits: read.commits.into_iter().map(AuthoredRevisionText::read).collect(),
            queue: read.queue.into_iter().filter_map(QueuedObjectText::read).collect(),
            tallies: read.tallies.into_iter().map(BudgetTallyText::read).collect(),
            starts: read.starts.into_iter().filter_map(RolloutStartText::read).collect(),
            unreadable_claims,
            begun: read.begun,
        })
    }

    /// Returns how the hashes of Secrets are written in a text.
    ///
    /// # Errors
    ///
    /// As [`RolloutLedger::parse`].
    pub(crate) fn seal_status(text: &str, seals: &HashCiphers) -> Result<HashCipherStatus, ParseLedgerError> {
        if !HashCiphers::can_be_in(text) {
            return Ok(HashCipherStatus::Valid);
        }
        let read: LedgerText = serde_json::from_str(text)?;
        let units = read.units.iter().chain(&read.past);
        Ok(units.map(|unit| unit.seal_status(seals)).max().unwrap_or_default())
    }

    /// Returns one line of JSON; none where the hash of a Secret is to be sealed, and no key is
    /// known.
    pub(crate) fn text(&self, seals: &HashCiphers) -> Option<String> {
        let units = |units: &[ReleaseUnit]| {
            units.iter().map(|unit| UnitText::of(unit, seals)).collect::<Option<Vec<_>>>()
        };
        let claim = |(id, claim): (&ObjectId, &RolloutClaim)| RolloutClaimText {
            object: object_word(id),
            source: claim.inventory_id.to_string(),
            holder: claim.holder.to_string(),
            content: claim.rollout_key.to_string(),
            pods: claim.reserved,
            left: claim.holder_exited,
            recreates: claim.recreates,
            recreation_deadline: claim.recreation_deadline,
        };
        let unread = self.unreadable_claims.iter().map(|claim| AnyClaimText::Unknown(claim.raw.clone()));
        let text = LedgerText {
            claims: self.claims.iter().map(claim).map(AnyClaimText::Known).chain(unread).collect(),
            units: units(&self.units)?,
            past: units(&self.history)?,
            commits: self.commits.iter().map(AuthoredRevisionText::of).collect(),
            queue: self.queue.iter().map(QueuedObjectText::of).collect(),
            tallies: self.tallies.iter().map(BudgetTallyText::of).collect(),
            starts: self.starts.iter().map(RolloutStartText::of).collect(),
            begun: self.begun,
        };
        serde_json::to_string(&text).ok()
    }
}

impl AnyClaimText {
    fn read(self) -> Result<(ObjectId, RolloutClaim), UnreadableClaim> {
        let unread = |raw: Value| {
            let pods = raw.get("pods").and_then(Value::as_u64).unwrap_or(1).max(1);
            UnreadableClaim { raw, pods: u32::try_from(pods).unwrap_or(u32::MAX) }
        };
        let text = match self {
            Self::Known(text) => text,
            Self::Unknown(raw) => return Err(unread(raw)),
        };
        let Some((id, content)) = parse_object_word(&text.object).zip(ContentHash::parse(&text.content))
        else {
            return Err(unread(serde_json::to_value(text).unwrap_or_default()));
        };
        let (inventory_id, holder) = (read_name(&text.source), read_name(&text.holder));
        Ok((
            id,
            RolloutClaim {
                inventory_id,
                holder,
                rollout_key: content,
                reserved: text.pods,
                holder_exited: text.left,
                recreates: text.recreates,
                recreation_deadline: text.recreation_deadline,
            },
        ))
    }
}

impl UnitText {
    /// Returns a unit's text; none where a hash is to be sealed, and no key is known.
    pub(in crate::engine) fn of(unit: &ReleaseUnit, seals: &HashCiphers) -> Option<Self> {
        let content = |id: &ObjectId, hash: Option<ContentHash>| match hash {
            Some(hash) => seals.hash_word(id, hash).map(Some),
            None => Some(None),
        };
        let member = |(id, member): (&ObjectId, &UnitMember)| {
            Some(UnitMemberText {
                object: object_word(id),
                content: content(id, member.content)?,
                good: match &member.rollback_target {
                    RollbackTarget::Absent => Some("absent".to_owned()),
                    RollbackTarget::Unknown => None,
                    RollbackTarget::Content(release)
                    | RollbackTarget::FormerContent { content: release, .. } => {
                        Some(seals.content_ref_word(id, release)?)
                    }
                },
                good_inventory: match &member.rollback_target {
                    RollbackTarget::FormerContent { inventory_id, .. } => Some(inventory_id.to_string()),
                    _ => None,
                },
                restarted: member.restarted.map(|ConfigRestart { key, data, foreign, before }| {
                    let before = before.map(|before| format!("@{before}")).unwrap_or_default();
                    let key = key.map(|key| format!("@{KEY_PREFIX}{key:08x}")).unwrap_or_default();
                    format!("{data}@{foreign}{before}{key}")
                }),
            })
        };
        Some(Self {
            source: unit.inventory_id.to_string(),
            revision: unit.revision.to_string(),
            members: unit.members.iter().map(member).collect::<Option<_>>()?,
        })
    }

    /// Returns how the hashes of Secrets are written in it.
    pub(in crate::engine) fn seal_status(&self, seals: &HashCiphers) -> HashCipherStatus {
        let words = self.members.iter().flat_map(|member| {
            let id = parse_object_word(&member.object);
            let words = member.content.iter().chain(&member.good);
            words.filter_map(move |word| Some(seals.seal_status(id.as_ref()?, word)))
        });
        words.max().unwrap_or_default()
    }

    /// Returns the unit.
    pub(in crate::engine) fn read(self, seals: &HashCiphers) -> ReleaseUnit {
        let member = |member: UnitMemberText| {
            let good = match member.good.as_deref() {
                Some("absent") => RollbackTarget::Absent,
                Some(text) => match (seals.read_content_ref(text), &member.good_inventory) {
                    (Some(content), Some(name)) => {
                        RollbackTarget::FormerContent { content, inventory_id: read_name(name) }
                    }
                    (Some(content), None) => RollbackTarget::Content(content),
                    (None, _) => RollbackTarget::Unknown,
                },
                None => RollbackTarget::Unknown,
            };
            let content = member.content.as_deref().map(|word| seals.read(word));
            let restarted = member.restarted.as_deref().and_then(|text| {
                let hashes = text.split('@').filter(|word| !word.starts_with(KEY_PREFIX));
                let mut hashes = hashes.map(ContentHash::parse);
                let (data, foreign) = (hashes.next()??, hashes.next()??);
                let key = text.split('@').find_map(|word| word.strip_prefix(KEY_PREFIX));
                let key = key.and_then(|hex| u32::from_str_radix(hex, 16).ok());
                Some(ConfigRestart { key, data, foreign, before: hashes.next().flatten() })
            });
            Some((
                parse_object_word(&member.object)?,
                UnitMember { content, rollback_target: good, restarted },
            ))
        };
        ReleaseUnit {
            inventory_id: read_name(&self.source),
            revision: Revision::new(&self.revision),
            members: self.members.into_iter().filter_map(member).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rollout::budget_tally::BudgetTally;
    use crate::engine::rollout::ledger_authors::AuthoredRevision;
    use crate::engine::rollout::queue::QueuedObject;
    use crate::engine::rollout::start_rate::RolloutStart;
    use crate::engine::{Authorship, ContentRef};
    use crate::object::GroupKind;

    #[test]
    fn a_target_of_another_inventory_is_read_as_it_is_written() {
        let content = ContentRef { hash: ContentHash::hash_bytes(b"old"), revision: Revision::new("c1") };
        let rollback_target = RollbackTarget::FormerContent { content, inventory_id: "b-v1".into() };
        let member = UnitMember { content: None, rollback_target, restarted: None };
        let unit = ReleaseUnit {
            inventory_id: "a-v1".into(),
            revision: Revision::new("c2"),
            members: [(config("env"), member)].into(),
        };
        let ledger = RolloutLedger { units: vec![unit], ..RolloutLedger::default() };
        let seals = HashCiphers::default();
        assert_eq!(RolloutLedger::parse(&ledger.text(&seals).unwrap(), &seals).unwrap(), ledger);
    }

    #[test]
    fn a_ledger_is_read_as_it_is_written() {
        let web = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
        let role = ObjectId::new(&GroupKind::new("rbac.authorization.k8s.io", "ClusterRole"), None, "a:b");
        let release = |text: &str| ContentRef {
            hash: ContentHash::hash_bytes(text.as_bytes()),
            revision: Revision::new(text),
        };
        let member = |content: Option<&str>, good| UnitMember {
            content: content.map(|text| release(text).hash),
            rollback_target: good,
            restarted: None,
        };
        let moment = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
        let (data, foreign) = (release("data").hash, release("foreign").hash);
        let stamp = ConfigRestart { key: Some(26), data, foreign, before: Some(release("before").hash) };
        let restarted = UnitMember { restarted: Some(stamp), ..member(Some("new"), RollbackTarget::Absent) };
        let ledger = RolloutLedger {
            claims: [(
                web.clone(),
                RolloutClaim {
                    inventory_id: "a-v1".into(),
                    holder: "b".into(),
                    rollout_key: release("new").hash,
                    reserved: 2,
                    holder_exited: true,
                    recreates: true,
                    recreation_deadline: Some(600),
                },
            )]
            .into(),
            units: vec![ReleaseUnit {
                inventory_id: "a-v1".into(),
                revision: Revision::new("new"),
                members: [
                    (web, member(Some("new"), RollbackTarget::Content(release("old")))),
                    (role.clone(), member(None, RollbackTarget::Unknown)),
                    (config("used"), restarted),
                    (config("env"), member(Some("new"), RollbackTarget::Absent)),
                ]
                .into(),
            }],
            history: vec![ReleaseUnit {
                inventory_id: "b-v1".into(),
                revision: Revision::new("old"),
                members: [(config("env"), member(Some("old"), RollbackTarget::Absent))].into(),
            }],
            commits: vec![AuthoredRevision {
                inventory_id: "a-v1".into(),
                revision: Revision::new("new"),
                authored: Authorship::of("Ann", "Bake a cake"),
            }],
            queue: [Some((3, 17)), None].map(queued).into(),
            tallies: vec![tally(&role, moment)],
            starts: vec![RolloutStart {
                id: role,
                inventory_id: "a-v1".into(),
                at: moment,
                clock: "c1".into(),
            }],
            unreadable_claims: vec![UnreadableClaim {
                raw: serde_json::json!({"workload": "web", "pods": 3}),
                pods: 3,
            }],
            begun: Some(moment),
        };
        let seals = HashCiphers::default();
        assert_eq!(RolloutLedger::parse(&ledger.text(&seals).unwrap(), &seals).unwrap(), ledger);
        assert_eq!(RolloutLedger::parse("{}", &seals).unwrap(), RolloutLedger::default());
        assert!(RolloutLedger::parse("claims", &seals).is_err());
    }

    #[test]
    fn a_claim_with_a_key_twice_is_the_same_when_it_is_read_again() {
        let seals = HashCiphers::default();
        let check = |claim: &str, known: usize, unreadable: usize| {
            let text = format!("{{\"claims\":[{claim}]}}");
            let ledger = RolloutLedger::parse(&text, &seals).unwrap();
            assert_eq!((ledger.claims.len(), ledger.unreadable_claims.len()), (known, unreadable), "{claim}");
            let written = ledger.text(&seals).unwrap();
            assert_eq!(RolloutLedger::parse(&written, &seals).unwrap(), ledger, "{claim}");
        };
        let hash = ContentHash::hash_bytes(b"a");
        let object = r#""object":"Deployment.apps/shop/web","source":"a-v1""#;
        check(&format!(r#"{{{object},"content":"{hash}","pods":2,"pods":3}}"#), 1, 0);
        check(&format!(r#"{{{object},"content":"{hash}","pods":2,"pods":"x"}}"#), 0, 1);
        check(&format!(r#"{{{object},"content":"x","pods":2,"pods":3}}"#), 0, 1);
    }

    #[test]
    fn a_claim_says_only_where_it_is_so_that_its_workload_is_created_again() {
        let seals = HashCiphers::default();
        let object = r#""object":"Deployment.apps/shop/web","source":"a-v1","holder":"b""#;
        let content = format!(r#""content":"{}","pods":2"#, ContentHash::hash_bytes(b"a"));
        // The words behind the others, whether it is so, and the words that are written.
        let check = |words: &str, expected: bool, written: &str| {
            let text = format!("{{\"claims\":[{{{object},{content}{words}}}]}}");
            let ledger = RolloutLedger::parse(&text, &seals).unwrap();
            let found: Vec<bool> = ledger.claims.values().map(|claim| claim.recreates).collect();
            assert_eq!(found, [expected], "{words}");
            let again = ledger.text(&seals).unwrap();
            assert!(again.contains(&format!("{{{object},{content}{written}}}")), "{words}: {again}");
        };
        check("", false, "");
        check(r#","recreates":false"#, false, "");
        check(r#","recreates":true"#, true, r#","recreates":true"#);
        check(r#","left":true,"recreates":true"#, true, r#","left":true,"recreates":true"#);
        let deadline = r#","recreates":true,"deadline":600"#;
        check(deadline, true, deadline);
        // A later version may say more.
        check(r#","recreates":true,"later":1"#, true, r#","recreates":true"#);
    }

    #[test]
    fn names_that_others_write_are_bounded() {
        let long = "\u{e9}".repeat(MAX_NAME_BYTES);
        let hash = ContentHash::hash_bytes(b"a");
        let text = serde_json::json!({
            "claims": [{
                "object": "Deployment.apps/shop/web", "source": long, "holder": format!("7-a@{long}"),
                "content": hash.to_string(), "pods": 1,
            }],
            "units": [{ "source": long, "revision": long, "members": [] }],
            "commits": [{ "source": long, "revision": long, "author": long, "subject": long }],
            "queue": [{ "object": "Deployment.apps/shop/web", "source": long, "reason": long }],
            "tallies": [{ "source": long, "name": long, "namespaces": {(long.clone()): 1} }],
            "starts": [{ "object": "Deployment.apps/shop/web", "source": long, "at": "2030-01-01T00:00:00Z" }],
        });
        let seals = HashCiphers::default();
        let ledger = RolloutLedger::parse(&text.to_string(), &seals).unwrap();
        let claim = ledger.claims.values().next().unwrap();
        let unit = &ledger.units[0];
        let (tally, start) = (&ledger.tallies[0], &ledger.starts[0]);
        let names = [&claim.inventory_id, &claim.holder, &unit.inventory_id, &ledger.commits[0].inventory_id];
        let names = names.into_iter().chain([&ledger.queue[0].inventory_id, &start.inventory_id]);
        let names = names.chain([&tally.inventory_id, &tally.name]).chain(tally.pods_in.keys());
        let revisions = [unit.revision.as_str(), ledger.commits[0].revision.as_str()];
        for name in names.map(|name| &**name).chain(revisions) {
            assert!((100..=MAX_NAME_BYTES).contains(&name.len()), "{} bytes", name.len());
        }
        let words = ledger.holder_of(claim).to_string();
        assert!(words.starts_with("source \u{e9}") && words.len() < 3 * MAX_NAME_BYTES, "{words}");
    }

    #[test]
    fn what_cannot_be_read_of_a_unit_is_not_known() {
        let (hash, seals) = (ContentHash::hash_bytes(b"a"), HashCiphers::default());
        let read = |mut member: Value| {
            member["object"] = "ConfigMap/shop/env".into();
            let unit = serde_json::json!({"source": "a-v1", "revision": "r1", "members": [member]});
            let unit = serde_json::from_value::<UnitText>(unit).unwrap().read(&seals);
            unit.members[&config("env")].clone()
        };
        let check_target = |good: Option<&str>, inventory: Option<&str>, expected: RollbackTarget| {
            let member = read(serde_json::json!({"good": good, "goodInventory": inventory}));
            assert_eq!(member.rollback_target, expected, "{good:?} {inventory:?}");
        };
        let content = ContentRef { hash, revision: Revision::new("r0") };
        let former = RollbackTarget::FormerContent { content: content.clone(), inventory_id: "b-v1".into() };
        let word = format!("{hash}@r0");
        check_target(None, None, RollbackTarget::Unknown);
        check_target(Some("absent"), None, RollbackTarget::Absent);
        check_target(Some(&word), None, RollbackTarget::Content(content));
        check_target(Some(&word), Some("b-v1"), former);
        check_target(Some("x@r0"), None, RollbackTarget::Unknown);
        check_target(Some("x@r0"), Some("b-v1"), RollbackTarget::Unknown);
        let restart = |before: Option<ContentHash>| {
            Some(ConfigRestart { key: None, data: hash, foreign: hash, before })
        };
        let under =
            |key: u32, before| restart(before).map(|restart| ConfigRestart { key: Some(key), ..restart });
        let check_restart = |text: &str, expected: Option<ConfigRestart>| {
            let member = read(serde_json::json!({ "restarted": text }));
            assert_eq!(member.restarted, expected, "{text}");
        };
        check_restart(&format!("{hash}@{hash}@{hash}"), restart(Some(hash)));
        check_restart(&format!("{hash}@{hash}"), restart(None));
        check_restart(&format!("{hash}@{hash}@x"), restart(None));
        check_restart(&format!("{hash}@{hash}@{hash}@key=0000001a"), under(26, Some(hash)));
        check_restart(&format!("{hash}@{hash}@key=0000001a"), under(26, None));
        check_restart(&format!("{hash}@{hash}@{hash}@key=x"), restart(Some(hash)));
        check_restart(&format!("{hash}@x"), None);
        check_restart(&hash.to_string(), None);
        assert_eq!(read(serde_json::json!({"content": "x"})).content, Some(ContentHash::UNREADABLE));
        assert_eq!(read(serde_json::json!({})).content, None);
    }

    #[test]
    fn a_restart_of_unknown_data_before_is_read_as_it_is_written() {
        let (hash, seals) = (ContentHash::hash_bytes(b"a"), HashCiphers::default());
        let restarted = Some(ConfigRestart { key: Some(u32::MAX), data: hash, foreign: hash, before: None });
        let member = UnitMember { content: Some(hash), rollback_target: RollbackTarget::Absent, restarted };
        let unit = ReleaseUnit {
            inventory_id: "a-v1".into(),
            revision: Revision::new("r1"),
            members: [(config("env"), member)].into(),
        };
        assert_eq!(UnitText::of(&unit, &seals).unwrap().read(&seals), unit);
    }

    fn tally(away: &ObjectId, at: Timestamp) -> BudgetTally {
        BudgetTally {
            inventory_id: "a-v1".into(),
            name: "shop".into(),
            pods: 7,
            pods_in: [(Arc::from("shop"), 7)].into(),
            unavailable: [(away.clone(), 2)].into(),
            rest: 1,
            at: Some(at),
        }
    }

    fn queued(position: Option<(u32, u32)>) -> QueuedObject {
        QueuedObject { id: config("env"), inventory_id: "a-v1".into(), position, reason: "of this".into() }
    }

    fn config(name: &str) -> ObjectId {
        ObjectId::new(&GroupKind::new("", "ConfigMap"), Some("shop"), name)
    }
}
