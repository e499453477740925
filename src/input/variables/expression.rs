//! The forms of an expression.

/// A text with the expressions in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) parts: Vec<TemplatePart>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart {
    /// It stays as it is.
    Text(String),
    /// `${…}`.
    Expression(Expression),
}

/// `${NAME}`, with what is made of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    /// The name, which may be one that no variable has.
    pub(super) name: String,
    /// The operation on the value.
    pub(super) operation: Operation,
}

/// An operation on the value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `${NAME}`: the value itself.
    Value,
    /// `${#NAME}`: its length in bytes.
    Length,
    /// `${NAME:-…}`, `${NAME:=…}` and `${NAME=…}`: another text where it is empty or not set.
    Default(Template),
    /// `${NAME^}` and its kin.
    Case(CaseOperation),
    /// `${NAME:OFFSET}` and `${NAME:OFFSET:LENGTH}`, in bytes.
    Substring { offset: Box<TemplatePart>, length: Option<Box<TemplatePart>> },
    /// `${NAME#PATTERN}` and its kin.
    Trim { trim: TrimOperation, pattern: Box<TemplatePart> },
    /// `${NAME/TEXT/OTHER}` and its kin.
    Replace { scope: ReplaceScope, text: Box<TemplatePart>, by: Option<Box<TemplatePart>> },
}

/// The letters whose case changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseOperation {
    /// `^`
    UpperFirst,
    /// `^^`
    Upper,
    /// `,`
    LowerFirst,
    /// `,,`
    Lower,
}

/// The part that is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrimOperation {
    /// `#`
    ShortestPrefix,
    /// `##`
    LongestPrefix,
    /// `%`
    ShortestSuffix,
    /// `%%`
    LongestSuffix,
}

/// The place in a value at which a text is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplaceScope {
    /// `/`
    First,
    /// `//`
    All,
    /// `/#`
    Prefix,
    /// `/%`
    Suffix,
}
