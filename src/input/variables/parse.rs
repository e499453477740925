//! The grammar of Flux's `envsubst`, its oddities included: what that reads is read, and to the
//! same end; what that refuses is refused.

use super::MAX_NESTING;
use super::expression::{
    CaseOperation, Expression, Operation, ReplaceScope, Template, TemplatePart, TrimOperation,
};

/// The reason for which a text with `${` in it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionFault {
    /// No `}` where one must be.
    #[error("an expression that begins with `${{` is not ended by a `}}` where one must be")]
    Unclosed,
    /// No name.
    #[error("no name follows `${{`")]
    NoName,
    /// `-`, `+` or `?` right after the name.
    #[error("`-`, `+` and `?` need a `:` before them")]
    WithoutColon,
    /// `:?` or `:+`.
    #[error("`:?` and `:+` are not supported")]
    Unsupported,
    /// `,^` or `^,`.
    #[error("`,` and `^` exclude each other")]
    MixedCase,
    /// An operator without what it works with.
    #[error("an operator has nothing, or not only a text or an expression, behind it")]
    Argument,
    /// More levels than anybody needs.
    #[error("expressions are nested more than {MAX_NESTING} levels deep")]
    TooDeep,
}

impl ExpressionFault {
    /// Returns the remedy.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::WithoutColon => "write `${NAME:-default}`",
            Self::Unsupported => "write `${NAME:-default}`; for `${…}` that is meant literally write `$${…}`",
            _ => "write `$${…}` for `${…}` that is meant literally",
        }
    }
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// Fails at the first `${` that begins no expression.
    pub(super) fn parse(text: &str) -> Result<Self, ExpressionFault> {
        let mut scanner = Scanner { rest: text };
        let mut parts = Vec::new();
        while !scanner.rest.is_empty() {
            parts.push(if scanner.skip("${") {
                TemplatePart::Expression(scanner.expression(0)?)
            } else {
                TemplatePart::Text(scanner.text(|_| true, TextEscapes::Dollar))
            });
        }
        Ok(Self { parts })
    }
}

/// The characters that a backslash or dollar takes the meaning of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextEscapes {
    /// None.
    None,
    /// `$$`.
    Dollar,
    /// `$$`, `\/` and `\\`.
    All,
}

impl TextEscapes {
    /// Returns the escape that a text begins with.
    fn at(self, text: &str) -> Option<&'static str> {
        let known: &[&str] = match self {
            Self::None => &[],
            Self::Dollar => &["$$"],
            Self::All => &["$$", "\\/", "\\\\"],
        };
        known.iter().copied().find(|escape| text.starts_with(escape))
    }
}

struct Scanner<'t> {
    rest: &'t str,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else { return false };
        self.rest = rest;
        true
    }

    /// Takes the characters that are accepted, up to the next expression. An escaped character is
    /// always accepted.
    fn text(&mut self, accepts: impl Fn(char) -> bool, escapes: TextEscapes) -> String {
        let mut text = String::new();
        while let Some(next) = self.peek() {
            if self.rest.starts_with("${") {
                break;
            }
            let taken = match escapes.at(self.rest) {
                Some(escape) => {
                    text.push_str(&escape[1..]);
                    escape.len()
                }
                None if accepts(next) => {
                    text.push(next);
                    next.len_utf8()
                }
                None => break,
            };
            self.rest = &self.rest[taken..];
        }
        text
    }

    fn name(&mut self) -> Option<String> {
        let is_part = |c: char| c == '_' || c.is_alphanumeric();
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Reads what follows `${`.
    fn expression(&mut self, depth: usize) -> Result<Expression, ExpressionFault> {
        if depth >= MAX_NESTING {
            return Err(ExpressionFault::TooDeep);
        }
        if self.skip("#") {
            let name = self.name().ok_or(ExpressionFault::NoName)?;
            return self.close().map(|()| Expression { name, operation: Operation::Length });
        }
        let name = self.name().ok_or(ExpressionFault::NoName)?;
        let operation = match self.peek() {
            Some(':') => self.default_or_substring(depth)?,
            Some('=') => self.default("=", depth)?,
            Some(',' | '^') => self.case()?,
            Some('/') => self.replace(depth)?,
            Some('#' | '%') => self.trim(depth)?,
            Some('-' | '+' | '?') => return Err(ExpressionFault::WithoutColon),
            _ => {
                self.close()?;
                Operation::Value
            }
        };
        Ok(Expression { name, operation })
    }

    fn close(&mut self) -> Result<(), ExpressionFault> {
        if self.skip("}") { Ok(()) } else { Err(ExpressionFault::Unclosed) }
    }

    /// Reads one argument: an expression, or a text that is not empty.
    fn argument(
        &mut self,
        accepts: impl Fn(char) -> bool,
        escapes: TextEscapes,
        depth: usize,
    ) -> Result<TemplatePart, ExpressionFault> {
        if self.skip("${") {
            return self.expression(depth + 1).map(TemplatePart::Expression);
        }
        let before = self.rest.len();
        let text = self.text(accepts, escapes);
        match self.rest.len() == before {
            true if self.rest.is_empty() => Err(ExpressionFault::Unclosed),
            true => Err(ExpressionFault::Argument),
            false => Ok(TemplatePart::Text(text)),
        }
    }

    fn default_or_substring(&mut self, depth: usize) -> Result<Operation, ExpressionFault> {
        for operator in [":=", ":-"] {
            if self.rest.starts_with(operator) {
                return self.default(operator, depth);
            }
        }
        if self.rest.starts_with(":?") || self.rest.starts_with(":+") {
            return Err(ExpressionFault::Unsupported);
        }
        self.skip(":");
        // Flux's reader loses its place at other characters, and refuses them so.
        if self.peek().is_some_and(|offset| !offset.is_ascii()) {
            return Err(ExpressionFault::Argument);
        }
        let offset = self.argument(|c| c != ':' && c != '}', TextEscapes::None, depth)?;
        let offset = Box::new(offset);
        if self.skip("}") {
            return Ok(Operation::Substring { offset, length: None });
        }
        if !self.skip(":") {
            return Err(ExpressionFault::Unclosed);
        }
        while self.skip(":") {}
        let length = self.argument(|c| c != '}', TextEscapes::None, depth)?;
        self.close()?;
        Ok(Operation::Substring { offset, length: Some(Box::new(length)) })
    }

    fn default(&mut self, operator: &str, depth: usize) -> Result<Operation, ExpressionFault> {
        self.skip(operator);
        let mut parts = Vec::new();
        while !self.skip("}") {
            parts.push(self.argument(|c| c != '}', TextEscapes::None, depth)?);
        }
        Ok(Operation::Default(Template { parts }))
    }

    fn case(&mut self) -> Result<Operation, ExpressionFault> {
        let operations = [
            ("^^", CaseOperation::Upper),
            (",,", CaseOperation::Lower),
            ("^", CaseOperation::UpperFirst),
            (",", CaseOperation::LowerFirst),
        ];
        if self.rest.starts_with(",^") || self.rest.starts_with("^,") {
            return Err(ExpressionFault::MixedCase);
        }
        let found = operations.into_iter().find(|(operator, _)| self.skip(operator));
        let (_, case) = found.ok_or(ExpressionFault::Unclosed)?;
        self.close().map(|()| Operation::Case(case))
    }

    fn trim(&mut self, depth: usize) -> Result<Operation, ExpressionFault> {
        let operations = [
            ("##", TrimOperation::LongestPrefix),
            ("#", TrimOperation::ShortestPrefix),
            ("%%", TrimOperation::LongestSuffix),
            ("%", TrimOperation::ShortestSuffix),
        ];
        let found = operations.into_iter().find(|(operator, _)| self.skip(operator));
        let (_, trim) = found.ok_or(ExpressionFault::Unclosed)?;
        let pattern = Box::new(self.argument(|c| c != '}', TextEscapes::None, depth)?);
        self.close().map(|()| Operation::Trim { trim, pattern })
    }

    fn replace(&mut self, depth: usize) -> Result<Operation, ExpressionFault> {
        let operations = [
            ("//", ReplaceScope::All),
            ("/#", ReplaceScope::Prefix),
            ("/%", ReplaceScope::Suffix),
            ("/", ReplaceScope::First),
        ];
        let found = operations.into_iter().find(|(operator, _)| self.skip(operator));
        let (_, scope) = found.ok_or(ExpressionFault::Unclosed)?;
        // Only a slash ends the text: a `}` is part of it.
        let text = Box::new(self.argument(|c| c != '/', TextEscapes::All, depth)?);
        if !self.skip("/") {
            return Err(ExpressionFault::Unclosed);
        }
        while self.skip("/") {}
        if self.skip("}") {
            return Ok(Operation::Replace { scope, text, by: None });
        }
        let by = self.argument(|c| c != '}', TextEscapes::All, depth)?;
        self.close().map(|()| Operation::Replace { scope, text, by: Some(Box::new(by)) })
    }
}
