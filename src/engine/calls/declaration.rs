//! The declaration of an engine, which comes before all facts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::engine::facts::budget::Budget;

/// The number of the form of traces. Another version may read another form only.
pub(in crate::engine) const TRACE_FORM: u32 = 2;

/// An engine as it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::engine) struct EngineDeclaration {
    /// The form of the lines.
    pub form: u32,
    /// The version of rhumb.
    pub version: Cow<'static, str>,
    /// The budget.
    pub budget: Budget,
}

impl EngineDeclaration {
    /// Declares an engine of this version.
    pub(in crate::engine) fn of(budget: &Budget) -> Self {
        Self { form: TRACE_FORM, version: env!("CARGO_PKG_VERSION").into(), budget: budget.clone() }
    }
}
