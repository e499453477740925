//! The variables that are known, and how each entered.

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

use crate::config::{SubstitutionConfig, VariableHolder, VariableHolderNeed, VariableName, VariableSecrecy};
use crate::object::hex_text;
use crate::source::BlobId;

use super::finding::shorten;
use super::lookup::{HolderFault, ObjectVariables};
use super::{MAX_VALUE_BYTES, MAX_VALUES_BYTES};

/// The value of a variable.
#[derive(Clone)]
pub(super) struct VariableValue {
    text: Zeroizing<String>,
    secrecy: VariableSecrecy,
    /// The encrypted file that it was opened from.
    opened_from: Option<BlobId>,
}

impl VariableValue {
    pub(super) fn expose(&self) -> &str {
        &self.text
    }

    pub(super) const fn secrecy(&self) -> VariableSecrecy {
        self.secrecy
    }
}

impl fmt::Debug for VariableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.secrecy {
            VariableSecrecy::Open => write!(f, "{:?}", *self.text),
            VariableSecrecy::Secret => f.write_str("(secret)"),
        }
    }
}

/// The variables by their names.
#[derive(Clone, Debug, Default)]
pub struct VariableTable {
    variables: BTreeMap<VariableName, VariableValue>,
    bytes: usize,
    completeness: TableCompleteness,
}

/// Indicates whether all variables of a source are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TableCompleteness {
    /// All are known: a variable that is not there is not set.
    #[default]
    Whole,
    /// Some are not known: a variable that is not there may be set, to anything.
    Partial,
}

/// The result of the search for an object that holds variables.
#[derive(Debug)]
pub(crate) enum HolderAnswer {
    /// The object is there, with these variables.
    Found(ObjectVariables),
    /// The object is there, and gives no variables.
    Unusable(HolderFault),
    /// The object is not there.
    Missing,
    /// Its presence is not known, for a reason that is reported elsewhere.
    Unknown,
}

/// The reason for which an object gives no variables. None shows a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VariableTableFault {
    /// It is not there.
    #[error("{0} is not there, and is not optional")]
    Missing(VariableHolder),
    /// It gives no variables.
    #[error("{holder} gives no variables: {fault}")]
    Unusable { holder: VariableHolder, fault: HolderFault },
    /// One of its keys can be no variable.
    #[error("{holder} has the key {key}, which no variable can be called")]
    Name { holder: VariableHolder, key: String },
    /// One of its values is no text.
    #[error("{holder} has a value under {key} that is no text")]
    NoText { holder: VariableHolder, key: String },
    /// One of the values is too large.
    #[error("the variable {0} has more than {MAX_VALUE_BYTES} bytes")]
    TooLarge(VariableName),
    /// All of them are too large.
    #[error("the variables have more than {MAX_VALUES_BYTES} bytes")]
    TooMuch,
}

impl VariableTableFault {
    /// Returns the remedy, where it does not follow from the fault.
    pub(crate) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unusable { fault, .. } => Some(fault.hint()),
            Self::Missing(_)
            | Self::Name { .. }
            | Self::NoText { .. }
            | Self::TooLarge(_)
            | Self::TooMuch => None,
        }
    }
}

impl VariableTable {
    /// Returns the variables of a source, and names every object and key at fault. The answers are
    /// in the order of [`SubstitutionConfig::from`]; one that is left out counts as missing.
    ///
    /// An object at fault may have any variable. So what comes before it is not known any more;
    /// what comes after it wins over it, and is.
    pub(crate) fn assemble(
        config: &SubstitutionConfig,
        answers: impl IntoIterator<Item = HolderAnswer>,
    ) -> (Self, Vec<VariableTableFault>) {
        let mut table = Self::default();
        let mut faults = Vec::new();
        let mut answers = answers.into_iter();
        for holder in &config.from {
            let before = faults.len();
            let answer = answers.next().unwrap_or(HolderAnswer::Missing);
            let is_unknown = matches!(answer, HolderAnswer::Unknown);
            match (answer, holder.need) {
                (HolderAnswer::Found(held), _) => table.add_held(holder, held, &mut faults),
                (HolderAnswer::Unusable(fault), _) => {
                    faults.push(VariableTableFault::Unusable { holder: holder.clone(), fault });
                }
                (HolderAnswer::Missing, VariableHolderNeed::Required) => {
                    faults.push(VariableTableFault::Missing(holder.clone()));
                }
                (HolderAnswer::Missing, VariableHolderNeed::Optional) | (HolderAnswer::Unknown, _) => {}
            }
            if is_unknown || faults.len() > before {
                table = Self { completeness: TableCompleteness::Partial, ..Self::default() };
            }
        }
        for (name, text) in &config.values {
            if let Err(fault) = table.add(name.clone(), text, VariableSecrecy::Open, None) {
                table.completeness = TableCompleteness::Partial;
                table.variables.remove(name);
                faults.push(fault);
            }
        }
        (table, faults)
    }

    /// Returns a table of variables that may be shown; a name that no variable can have is left
    /// out.
    pub fn open<'t>(variables: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let mut table = Self::default();
        for (name, text) in variables {
            if let Ok(name) = name.parse() {
                // A value that is too large is left out too.
                let _ = table.add(name, text, VariableSecrecy::Open, None);
            }
        }
        table
    }

    fn add_held(
        &mut self,
        holder: &VariableHolder,
        held: ObjectVariables,
        faults: &mut Vec<VariableTableFault>,
    ) {
        let (secrecy, opened_from) = (holder.secrecy, held.opened_from());
        for (key, value) in held.into_values() {
            let (holder, shown) = (|| holder.clone(), shorten(&key));
            let added = match (key.parse(), std::str::from_utf8(&value)) {
                (Ok(name), Ok(text)) => self.add(name, text, secrecy, opened_from),
                (Err(_), _) => Err(VariableTableFault::Name { holder: holder(), key: shown }),
                (_, Err(_)) => Err(VariableTableFault::NoText { holder: holder(), key: shown }),
            };
            faults.extend(added.err());
        }
    }

    /// Adds a variable, without the line breaks of its value, as Flux does.
    fn add(
        &mut self,
        name: VariableName,
        text: &str,
        secrecy: VariableSecrecy,
        opened_from: Option<BlobId>,
    ) -> Result<(), VariableTableFault> {
        if text.len() > MAX_VALUE_BYTES {
            return Err(VariableTableFault::TooLarge(name));
        }
        self.bytes += text.len();
        if self.bytes > MAX_VALUES_BYTES {
            return Err(VariableTableFault::TooMuch);
        }
        let mut line = Zeroizing::new(String::with_capacity(text.len()));
        line.extend(text.split('\n'));
        self.variables.insert(name, VariableValue { text: line, secrecy, opened_from });
        Ok(())
    }

    pub(super) const fn completeness(&self) -> TableCompleteness {
        self.completeness
    }

    pub(super) fn get(&self, name: &str) -> Option<&VariableValue> {
        self.variables.get(name)
    }

    /// Returns the variables as they enter the key of a render. A secret one enters as its digest,
    /// which must be one under a key of our own. One from an encrypted file enters as that file, as
    /// nothing of an encrypted value is on disk. Where some are not known, that is an entry too.
    pub(crate) fn key_values(&self, digest: &dyn Fn(&[u8]) -> [u8; 32]) -> BTreeMap<String, String> {
        let value = |value: &VariableValue| match (value.secrecy, value.opened_from) {
            (_, Some(file)) => format!("sealed:{file}"),
            (VariableSecrecy::Open, None) => format!("open:{}", value.expose()),
            (VariableSecrecy::Secret, None) => {
                format!("secret:{}", hex_text(&digest(value.expose().as_bytes())))
            }
        };
        // No variable can have this name.
        let unknown =
            (self.completeness == TableCompleteness::Partial).then(|| ("?".to_owned(), "unknown".to_owned()));
        self.variables.iter().map(|(name, held)| (name.to_string(), value(held))).chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ObjectName, VariableHolderKind};

    fn holder(kind: VariableHolderKind, name: &str, need: VariableHolderNeed) -> VariableHolder {
        let name: ObjectName = name.parse().unwrap();
        let secrecy = match kind {
            ConfigMap => VariableSecrecy::Open,
            Secret => VariableSecrecy::Secret,
        };
        VariableHolder { kind, namespace: "shop".parse().unwrap(), name, need, secrecy }
    }

    fn found_variables(values: &[(&str, &str)]) -> HolderAnswer {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        HolderAnswer::Found(ObjectVariables::new(values))
    }

    fn config(values: &[(&str, &str)], from: Vec<VariableHolder>) -> SubstitutionConfig {
        let values = values.iter().map(|(name, value)| (name.parse().unwrap(), (*value).to_owned()));
        SubstitutionConfig { values: values.collect(), from }
    }

    use VariableHolderKind::{ConfigMap, Secret};
    use VariableHolderNeed::{Optional, Required};

    #[test]
    fn inline_values_win_over_all_and_later_objects_over_earlier_ones() {
        let from = vec![
            holder(ConfigMap, "a", Required),
            holder(Secret, "b", Required),
            holder(ConfigMap, "gone", Optional),
        ];
        let answers = [
            found_variables(&[("A", "1"), ("B", "1"), ("C", "1")]),
            found_variables(&[("B", "2\n"), ("C", "2")]),
            HolderAnswer::Missing,
        ];
        let (table, faults) = VariableTable::assemble(&config(&[("C", "3\n4")], from), answers);
        assert_eq!(faults, []);
        let value = |name| table.get(name).map(|value| (value.expose(), value.secrecy()));
        assert_eq!(value("A"), Some(("1", VariableSecrecy::Open)));
        assert_eq!(value("B"), Some(("2", VariableSecrecy::Secret)));
        assert_eq!(value("C"), Some(("34", VariableSecrecy::Open)));
        assert_eq!(value("D").map(|(value, _)| value), None);
    }

    #[test]
    fn all_that_is_wrong_is_named_and_no_value_is_shown() {
        let from = vec![
            holder(ConfigMap, "gone", Required),
            holder(Secret, "b", Required),
            holder(Secret, "c", Required),
            holder(Secret, "d", Optional),
        ];
        let bytes = ObjectVariables::new([("k".to_owned(), b"canary\xff".to_vec())]);
        let large = "x".repeat(MAX_VALUE_BYTES + 1);
        let answers = [
            HolderAnswer::Missing,
            found_variables(&[("tls.key", "canary"), ("LARGE", &large)]),
            HolderAnswer::Found(bytes),
            HolderAnswer::Unusable(HolderFault::Encrypted),
        ];
        let (_, faults) = VariableTable::assemble(&config(&[], from), answers);
        let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "ConfigMap shop/gone is not there, and is not optional",
                "the variable LARGE has more than 1048576 bytes",
                "Secret shop/b has the key tls.key, which no variable can be called",
                "Secret shop/c has a value under k that is no text",
                "Secret shop/d gives no variables: it is encrypted by SOPS, and is not opened",
            ]
        );
        assert!(!format!("{faults:?}").contains("canary"));
    }

    #[test]
    fn an_object_at_fault_leaves_known_what_wins_over_it_alone() {
        let from: Vec<VariableHolder> =
            ["a", "b", "c"].into_iter().map(|name| holder(ConfigMap, name, Required)).collect();
        let config = config(&[("D", "4")], from);
        let check =
            |second: HolderAnswer, faults: usize, known: [bool; 4], completeness: TableCompleteness| {
                let answers = [found_variables(&[("A", "1")]), second, found_variables(&[("C", "3")])];
                let (table, found) = VariableTable::assemble(&config, answers);
                assert_eq!(found.len(), faults, "{found:?}");
                assert_eq!(["A", "B", "C", "D"].map(|name| table.get(name).is_some()), known);
                assert_eq!(table.completeness(), completeness);
                assert_eq!(
                    table.key_values(&|_| [0; 32]).contains_key("?"),
                    completeness == TableCompleteness::Partial
                );
            };
        check(found_variables(&[("B", "2")]), 0, [true; 4], TableCompleteness::Whole);
        let partly = [false, false, true, true];
        check(found_variables(&[("B", "2"), ("b.b", "2")]), 1, partly, TableCompleteness::Partial);
        check(HolderAnswer::Missing, 1, partly, TableCompleteness::Partial);
        check(HolderAnswer::Unusable(HolderFault::Encrypted), 1, partly, TableCompleteness::Partial);
        check(HolderAnswer::Unknown, 0, partly, TableCompleteness::Partial);
    }

    #[test]
    fn a_secret_value_is_in_no_debug_text_and_in_the_key_only_as_a_digest() {
        let from = vec![holder(Secret, "b", Required)];
        let answers = || [found_variables(&[("B", "canary")])];
        let open = &[("A", "shown")];
        let (table, _) = VariableTable::assemble(&config(open, from.clone()), answers());
        let debug = format!("{table:?} {:?}", answers());
        assert!(debug.contains("shown") && !debug.contains("canary"), "{debug}");
        let digest = |bytes: &[u8]| [bytes.len() as u8; 32];
        let keys = table.key_values(&digest);
        assert_eq!(keys["A"], "open:shown");
        assert_eq!(keys["B"], format!("secret:{}", "06".repeat(32)));
        // An open value that looks like the digest of a secret one is another.
        let same = [("A", "shown"), ("B", keys["B"].as_str())];
        let imitation = VariableTable::open(same).key_values(&digest);
        assert_ne!(imitation, keys);
    }

    #[test]
    fn the_value_of_a_secret_that_is_none_is_as_that_of_a_config_map() {
        let entry = |kind| VariableHolder { secrecy: VariableSecrecy::Open, ..holder(kind, "b", Required) };
        let table = |kind| {
            let answers = [found_variables(&[("B", "home.example.org")])];
            VariableTable::assemble(&config(&[], vec![entry(kind)]), answers).0
        };
        let (of_secret, of_map) = (table(Secret), table(ConfigMap));
        assert_eq!(of_secret.get("B").map(VariableValue::secrecy), Some(VariableSecrecy::Open));
        assert_eq!(of_secret.key_values(&|_| [0; 32]), of_map.key_values(&|_| [0; 32]));
        assert_eq!(format!("{of_secret:?}"), format!("{of_map:?}"));
    }

    #[test]
    fn all_values_together_are_bounded() {
        let text = "x".repeat(MAX_VALUE_BYTES);
        let names: Vec<String> = (0..9).map(|number| format!("V{number}")).collect();
        let values: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*text)).collect();
        let (_, faults) = VariableTable::assemble(&config(&values, Vec::new()), []);
        assert_eq!(faults, [VariableTableFault::TooMuch]);
    }
}
