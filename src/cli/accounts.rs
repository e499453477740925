//! The rights of all who act: of rhumb's own account, and of each service account as which sources act.

use std::collections::BTreeMap;

use super::rights::{Conduct, Plural, Reach, Rights};
use crate::cluster::ServiceAccount;
use crate::config::{AccountName, SourceConfig};
use crate::object::Object;

/// What is said of the roles of an account, before them.
pub(super) const ACTS: &str = "sources act as this service account, with these rights and no others";

/// The rights of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Actors {
    /// Those of rhumb's own account.
    pub(super) own: Rights,
    /// Those of service accounts in its namespace.
    pub(super) accounts: BTreeMap<AccountName, Rights>,
}

impl Actors {
    /// As yet with what rhumb's own account needs.
    pub(super) fn new(own: Rights) -> Self {
        Self { own, accounts: BTreeMap::new() }
    }

    /// The rights as which a source acts.
    pub(super) fn of(&mut self, source: &SourceConfig) -> &mut Rights {
        match &source.service_account {
            None => &mut self.own,
            Some(account) => self.accounts.entry(account.clone()).or_insert_with(Rights::of_account),
        }
    }

    /// Adds what follows from all that sources hold.
    pub(super) fn add(&mut self, all: &[(&SourceConfig, Vec<Object>)], plural: Plural<'_>) {
        for (source, held) in all {
            let terms = (Conduct::of(source), &Reach::of(source));
            self.of(source).add_source(terms, held, plural);
        }
        for (acting, _) in all {
            // A policy may be of another source than its binding. What others write is not for this account.
            let seen_by = |(source, held): &(&SourceConfig, Vec<Object>)| {
                let same = source.service_account == acting.service_account;
                (if same { Conduct::of(source) } else { Conduct::Observes }, held.clone())
            };
            let holdings: Vec<_> = all.iter().map(seen_by).collect();
            self.of(acting).add_bindings(&holdings, plural);
        }
    }

    /// Gives rhumb's own account what it needs for sources that act as others, and the right to act as these.
    #[must_use]
    pub(super) fn finished(mut self, system: &str) -> Self {
        let names: Vec<String> = self.accounts.keys().map(ToString::to_string).collect();
        self.own.add_accounts(system, names);
        for rights in self.accounts.values_mut() {
            self.own.take_over(rights);
        }
        self
    }

    /// The accounts as the server knows them, each with its rights.
    pub(super) fn accounts(&self, system: &str) -> impl Iterator<Item = (ServiceAccount, &Rights)> {
        self.accounts.iter().map(move |(name, rights)| (ServiceAccount::new(system, name.as_str()), rights))
    }
}
