//! The text that a template makes with a table of variables.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::MAX_EXPANDED_SCALAR_BYTES;
use super::expression::{Expression, Operation, Template, TemplatePart};
use super::expression_limits::{ExpansionBudget, ExpansionLimit};
use super::operators::{CutCharacter, change_case, replace, substring, trim};
use super::parse::ExpressionFault;
use super::table::{TableCompleteness, VariableTable};
use crate::config::VariableSecrecy;

/// The reason for which a text cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// It cannot be read.
    #[error(transparent)]
    Expression(#[from] ExpressionFault),
    /// It takes too much.
    #[error(transparent)]
    Limit(#[from] ExpansionLimit),
    /// A substring begins or ends inside a character.
    #[error("the substring of {0} begins or ends inside of a character")]
    CutCharacter(String),
}

/// The result of a template.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    /// Variables that are not set and have no default, or that are not known. Each counts as empty.
    pub(super) unset: BTreeSet<String>,
    /// Secret variables that were read.
    pub(super) secrets: BTreeSet<String>,
}

/// Puts the variables into a text. The names that are not set and have no default come along; they
/// count as empty.
///
/// # Errors
/// Fails where the text has an expression that cannot be read, or makes too much.
pub fn expand(text: &str, table: &VariableTable) -> Result<(String, Vec<String>), TemplateFault> {
    let (mut budget, mut expansion) = (ExpansionBudget::default(), Expansion::default());
    let text = expansion.text(text, table, &mut budget)?;
    Ok((text, expansion.unset.into_iter().collect()))
}

impl Expansion {
    /// Makes the text of a scalar.
    pub(super) fn text(
        &mut self,
        text: &str,
        table: &VariableTable,
        budget: &mut ExpansionBudget,
    ) -> Result<String, TemplateFault> {
        let template = Template::parse(text)?;
        let text = TemplateEvaluation { table, budget, seen: self }.template(&template)?;
        budget.spend_scalar(text.len())?;
        Ok(text)
    }
}

/// The evaluation of one template of a scalar.
struct TemplateEvaluation<'e> {
    table: &'e VariableTable,
    budget: &'e mut ExpansionBudget,
    seen: &'e mut Expansion,
}

impl<'e> TemplateEvaluation<'e> {
    fn template(&mut self, template: &Template) -> Result<String, TemplateFault> {
        let mut out = String::new();
        for part in &template.parts {
            let text = self.part(part)?;
            self.budget.spend_work(text.len() as u64)?;
            if out.len() + text.len() > MAX_EXPANDED_SCALAR_BYTES {
                return Err(ExpansionLimit::Scalar.into());
            }
            out.push_str(&text);
        }
        Ok(out)
    }

    fn part<'p>(&mut self, part: &'p TemplatePart) -> Result<Cow<'p, str>, TemplateFault>
    where
        'e: 'p,
    {
        match part {
            TemplatePart::Text(text) => Ok(Cow::Borrowed(text)),
            TemplatePart::Expression(expression) => self.expression(expression),
        }
    }

    fn expression<'p>(&mut self, expression: &'p Expression) -> Result<Cow<'p, str>, TemplateFault>
    where
        'e: 'p,
    {
        let table = self.table;
        let known = table.get(&expression.name);
        if known.is_some_and(|variable| variable.secrecy() == VariableSecrecy::Secret) {
            self.seen.secrets.insert(expression.name.clone());
        }
        let value = known.map_or("", |variable| variable.expose());
        // A default is for what is not set, and nobody knows that of a table in which some are missing.
        let has_default = matches!(expression.operation, Operation::Default(_));
        if known.is_none() && (!has_default || table.completeness() == TableCompleteness::Partial) {
            self.seen.unset.insert(expression.name.clone());
        }
        self.operation(expression, value)
    }

    fn operation<'p>(
        &mut self,
        expression: &'p Expression,
        value: &'p str,
    ) -> Result<Cow<'p, str>, TemplateFault>
    where
        'e: 'p,
    {
        Ok(match &expression.operation {
            Operation::Value => value.into(),
            Operation::Length => value.len().to_string().into(),
            Operation::Default(_) if !value.is_empty() => value.into(),
            Operation::Default(default) => self.template(default)?.into(),
            Operation::Case(case) => {
                // A letter may be longer in its other case.
                self.budget.spend_text(value.len())?;
                change_case(value, *case).into()
            }
            Operation::Substring { offset, length } => {
                let offset = self.part(offset)?;
                let length = length.as_ref().map(|length| self.part(length)).transpose()?;
                substring(value, &offset, length.as_deref())
                    .map_err(|CutCharacter| TemplateFault::CutCharacter(expression.name.clone()))?
                    .into()
            }
            Operation::Trim { trim: operation, pattern } => {
                let pattern = self.part(pattern)?;
                trim(value, &pattern, *operation, self.budget)?.into()
            }
            Operation::Replace { scope, text, by } => {
                let text = self.part(text)?;
                let by = by.as_ref().map(|by| self.part(by)).transpose()?;
                replace(value, *scope, &text, by.as_deref(), self.budget)?.into()
            }
        })
    }
}
