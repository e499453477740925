//! The rights of all who act: of rhumb's own account, and of each service account as which sources
//! act.

use std::collections::BTreeMap;

use super::rights::{PluralLookup, Rights, SourceAccess, WatchedNamespaces};
use crate::cluster::ServiceAccount;
use crate::config::{ServiceAccountName, SourceConfig};
use crate::object::Object;

/// The comment above the roles of an account.
pub(super) const ACCOUNT_COMMENT: &str =
    "sources act as this service account, with these rights and no others";

/// The rights of each.
#[derive(Clone, Debug, Default)]
pub(super) struct AccountRights {
    /// Rights of rhumb's own account.
    pub(super) own: Rights,
    /// Rights of service accounts in its namespace.
    pub(super) accounts: BTreeMap<ServiceAccountName, Rights>,
}

impl AccountRights {
    /// Creates the rights of all accounts, with what rhumb's own account needs.
    pub(super) fn new(own: Rights) -> Self {
        Self { own, accounts: BTreeMap::new() }
    }

    /// Returns the rights as which a source acts.
    pub(super) fn of(&mut self, source: &SourceConfig) -> &mut Rights {
        match &source.service_account {
            None => &mut self.own,
            Some(account) => self.accounts.entry(account.clone()).or_insert_with(Rights::of_account),
        }
    }

    /// Adds what follows from all that sources hold.
    pub(super) fn add(&mut self, all: &[(&SourceConfig, Vec<Object>)], plural: PluralLookup<'_>) {
        for (source, objects) in all {
            let (access, watched) = (SourceAccess::of(source), WatchedNamespaces::of(source));
            self.of(source).add_source(access, &watched, objects, plural);
            if let Some(variables) = &source.substitution {
                self.of(source).add_variables(variables, objects);
            }
        }
        for (acting, _) in all {
            // A policy may be of another source than its binding. Text that others write is not for
            // this account.
            let seen_by = |(source, objects): &(&SourceConfig, Vec<Object>)| {
                let same = source.service_account == acting.service_account;
                (if same { SourceAccess::of(source) } else { SourceAccess::Observe }, objects.clone())
            };
            let holdings: Vec<_> = all.iter().map(seen_by).collect();
            self.of(acting).add_bindings(&holdings, plural);
        }
    }

    /// Gives rhumb's own account what it needs for sources that act as others, and the right to act
    /// as these.
    #[must_use]
    pub(super) fn complete(mut self, system: &str) -> Self {
        let names: Vec<String> = self.accounts.keys().map(ToString::to_string).collect();
        self.own.add_accounts(system, names);
        for rights in self.accounts.values_mut() {
            self.own.take_over(rights);
        }
        self
    }

    /// Returns the accounts as the server knows them, each with its rights.
    pub(super) fn service_accounts(&self, system: &str) -> impl Iterator<Item = (ServiceAccount, &Rights)> {
        self.accounts.iter().map(move |(name, rights)| (ServiceAccount::new(system, name.as_str()), rights))
    }
}
