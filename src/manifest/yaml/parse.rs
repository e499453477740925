//! Tokens to a [`Tree`]: the grammar of YAML as a machine with a stack of states.

use std::borrow::Cow;
use std::collections::HashMap;

use super::scan::Scanner;
use super::token::{Token, What};
use crate::manifest::MAX_DEPTH;
use crate::manifest::scalar::Tag;
use crate::manifest::tree::{Fault, Kind, Mark, NodeId, Tree};

/// What is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    DocumentEnd,
    BlockItem,
    /// An item of a list that is not indented deeper than the key before it.
    FlatItem,
    BlockKey,
    BlockValue,
    FlowFirstItem,
    FlowItem,
    /// The key of a single pair inside a flow list.
    PairKey,
    PairValue,
    PairEnd,
    FlowFirstKey,
    FlowKey,
    FlowValue,
    /// The value of an entry without `:`.
    FlowNoValue,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Block,
    /// In a block mapping, where a list needs no indentation.
    BlockField,
    Flow,
}

/// The first document of a text, and the place of what follows it, if anything does.
pub(super) fn parse(text: &str, line: u32) -> Result<(Tree<'_>, Option<Mark>), Fault> {
    let mut parser = Parser {
        scanner: Scanner::new(text, line),
        tree: Tree::over(text),
        states: Vec::new(),
        open: Vec::new(),
        anchors: HashMap::new(),
        last_quoted: None,
    };
    parser.document()?;
    let follows = parser.following();
    Ok((parser.tree, follows))
}

struct Open {
    node: NodeId,
    last: Option<NodeId>,
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    tree: Tree<'a>,
    states: Vec<State>,
    open: Vec<Open>,
    anchors: HashMap<&'a str, NodeId>,
    /// The line that the last text in quotes begins in.
    last_quoted: Option<u32>,
}

/// Tag and anchor of a node.
#[derive(Clone, Copy)]
struct Properties<'a> {
    tag: Tag,
    anchor: Option<&'a str>,
    mark: Mark,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<(), Fault> {
        match self.scanner.peek()?.what {
            What::End => return Ok(()),
            What::Directive => {
                let mark = self.scanner.peek()?.mark;
                return Err(Fault::new(
                    mark,
                    "yaml-directive",
                    "Kubernetes reads no directives such as %YAML",
                )
                .hint("remove the line"));
            }
            What::DocumentStart => {
                self.scanner.skip();
                self.states.push(State::DocumentEnd);
                let mark = self.scanner.peek()?.mark;
                match self.scanner.peek()?.what {
                    What::Directive | What::DocumentStart | What::DocumentEnd | What::End => {
                        self.empty(mark)?;
                    }
                    _ => self.node(Place::Block)?,
                }
            }
            _ => {
                self.states.push(State::DocumentEnd);
                self.node(Place::Block)?;
            }
        }
        while let Some(state) = self.states.pop() {
            self.step(state)?;
        }
        Ok(())
    }

    /// Where anything but the end follows the document.
    fn following(&mut self) -> Option<Mark> {
        loop {
            match self.scanner.peek() {
                Ok(Token { what: What::End, .. }) => return None,
                Ok(Token { what: What::DocumentEnd, .. }) => self.scanner.skip(),
                Ok(Token { mark, .. }) => return Some(*mark),
                Err(fault) => return Some(fault.mark),
            };
        }
    }

    fn step(&mut self, state: State) -> Result<(), Fault> {
        match state {
            State::DocumentEnd => {
                if self.scanner.peek()?.what == What::DocumentEnd {
                    self.scanner.skip();
                }
                Ok(())
            }
            State::BlockItem | State::FlatItem => self.block_item(state),
            State::BlockKey => self.block_key(),
            State::BlockValue => self.block_value(),
            State::FlowFirstItem | State::FlowItem => self.flow_item(state),
            State::PairKey => self.pair_key(),
            State::PairValue => self.pair_value(),
            State::PairEnd => {
                self.open.pop();
                self.states.push(State::FlowItem);
                Ok(())
            }
            State::FlowFirstKey | State::FlowKey => self.flow_key(state),
            State::FlowValue => self.flow_value(),
            State::FlowNoValue => {
                let mark = self.scanner.peek()?.mark;
                self.states.push(State::FlowKey);
                self.empty(mark)
            }
        }
    }

    fn block_item(&mut self, state: State) -> Result<(), Fault> {
        let token = self.scanner.peek_lean()?;
        match token.what {
            What::BlockEntry => {
                self.scanner.skip();
                self.states.push(state);
                let next = &self.scanner.peek()?.what;
                let empty = match next {
                    What::BlockEntry | What::BlockEnd => true,
                    What::Key | What::Value => state == State::FlatItem,
                    _ => false,
                };
                if empty { self.empty(token.mark) } else { self.node(Place::Block) }
            }
            What::BlockEnd if state == State::BlockItem => {
                self.scanner.skip();
                self.open.pop();
                Ok(())
            }
            _ if state == State::FlatItem => {
                self.open.pop();
                Ok(())
            }
            _ => Err(unexpected(
                &token,
                "an item of the list, which begins with `- ` in the same column as the others",
            )),
        }
    }

    fn block_key(&mut self) -> Result<(), Fault> {
        let token = self.scanner.peek_lean()?;
        match token.what {
            What::Key => {
                self.scanner.skip();
                self.states.push(State::BlockValue);
                self.field(token.mark)
            }
            What::BlockEnd => {
                self.scanner.skip();
                self.open.pop();
                Ok(())
            }
            _ => Err(self.misplaced(&token)),
        }
    }

    /// What is no key of the mapping around it.
    fn misplaced(&self, token: &Token<'_>) -> Fault {
        let first = self.open.last().map_or(token.mark, |open| self.tree.mark(open.node));
        let after_quotes = self.last_quoted == Some(token.mark.line);
        match token.what {
            What::Key | What::BlockMapping if token.mark.column != first.column => syntax(
                token.mark,
                &format!(
                    "no mapping around this key has its keys in column {}; the nearest, from line {} on, has them \
                     in column {}",
                    token.mark.column, first.line, first.column
                ),
            )
            .hint("indent the key like one of the keys before it"),
            What::Plain(_) | What::Quoted(_) if after_quotes => unexpected(token, "the end of the line after the closing quote")
                .hint("inside quotes, write `''` for a single quote in single quotes, and `\\\"` for a double quote in double quotes"),
            What::BlockEntry | What::BlockSequence => unexpected(token, "a key in the same column as the others")
                .hint("a list stands below a key with nothing behind its `:`"),
            _ => unexpected(token, "a key in the same column as the others"),
        }
    }

    fn block_value(&mut self) -> Result<(), Fault> {
        self.states.push(State::BlockKey);
        let token = self.scanner.peek_lean()?;
        if token.what == What::Value {
            self.scanner.skip();
            return self.field(token.mark);
        }
        self.empty(token.mark)
    }

    /// A key or value of a block mapping.
    fn field(&mut self, mark: Mark) -> Result<(), Fault> {
        match self.scanner.peek()?.what {
            What::Key | What::Value | What::BlockEnd => self.empty(mark),
            _ => self.node(Place::BlockField),
        }
    }

    fn flow_item(&mut self, state: State) -> Result<(), Fault> {
        if self.ends_flow(state, &What::FlowSequenceEnd, "`,` or `]`")? {
            return Ok(());
        }
        let token = self.scanner.peek_lean()?;
        if token.what == What::Key {
            self.scanner.skip();
            let pair = self.tree.push_collection(Kind::Mapping, Tag::None, token.mark);
            self.add(pair, None)?;
            self.enter(pair)?;
            self.states.push(State::PairKey);
            return Ok(());
        }
        self.states.push(State::FlowItem);
        self.node(Place::Flow)
    }

    /// Passes the comma between entries, and the end of the collection. True when it ended.
    fn ends_flow(&mut self, state: State, end: &What<'_>, expected: &str) -> Result<bool, Fault> {
        let first = matches!(state, State::FlowFirstItem | State::FlowFirstKey);
        if !first && self.scanner.peek()?.what != *end {
            let token = self.scanner.peek()?;
            if token.what == What::End
                && let Some(open) = self.open.last()
            {
                return Err(unclosed(self.tree.mark(open.node), end));
            }
            if token.what != What::FlowEntry {
                let fault = unexpected(token, expected);
                let line = token.mark.line;
                let opened = self.open.last().map(|open| self.tree.mark(open.node));
                return Err(match opened.filter(|opened| opened.line < line) {
                    Some(opened) => fault.more(&format!("; it was opened in line {}", opened.line)),
                    None => fault,
                });
            }
            self.scanner.skip();
        }
        if self.scanner.peek()?.what != *end {
            return Ok(false);
        }
        self.scanner.skip();
        self.open.pop();
        Ok(true)
    }

    fn pair_key(&mut self) -> Result<(), Fault> {
        self.states.push(State::PairValue);
        let token = self.scanner.peek_lean()?;
        if matches!(token.what, What::Value | What::FlowEntry | What::FlowSequenceEnd) {
            // Kubernetes' reader takes the token away here, whatever it is.
            self.scanner.skip();
            return self.empty(token.mark);
        }
        self.node(Place::Flow)
    }

    fn pair_value(&mut self) -> Result<(), Fault> {
        self.states.push(State::PairEnd);
        let mut token = self.scanner.peek_lean()?;
        if token.what == What::Value {
            self.scanner.skip();
            token = self.scanner.peek_lean()?;
            if !matches!(token.what, What::FlowEntry | What::FlowSequenceEnd) {
                return self.node(Place::Flow);
            }
        }
        self.empty(token.mark)
    }

    fn flow_key(&mut self, state: State) -> Result<(), Fault> {
        if self.ends_flow(state, &What::FlowMappingEnd, "`,` or `}`")? {
            return Ok(());
        }
        if self.scanner.peek()?.what != What::Key {
            self.states.push(State::FlowNoValue);
            return self.node(Place::Flow);
        }
        self.scanner.skip();
        self.states.push(State::FlowValue);
        self.flow_field()
    }

    fn flow_value(&mut self) -> Result<(), Fault> {
        self.states.push(State::FlowKey);
        if self.scanner.peek()?.what == What::Value {
            self.scanner.skip();
            // After `:` another `:` is no end.
            let token = self.scanner.peek_lean()?;
            if matches!(token.what, What::FlowEntry | What::FlowMappingEnd) {
                return self.empty(token.mark);
            }
            return self.node(Place::Flow);
        }
        let mark = self.scanner.peek()?.mark;
        self.empty(mark)
    }

    fn flow_field(&mut self) -> Result<(), Fault> {
        let token = self.scanner.peek_lean()?;
        match token.what {
            What::Value | What::FlowEntry | What::FlowMappingEnd => self.empty(token.mark),
            _ => self.node(Place::Flow),
        }
    }
}

/// Nodes.
impl<'a> Parser<'a> {
    fn node(&mut self, place: Place) -> Result<(), Fault> {
        if let Token { what: What::Alias(name), mark } = *self.scanner.peek()? {
            self.scanner.skip();
            let Some(&target) = self.anchors.get(name) else { return Err(unknown_anchor(mark)) };
            let node = self.tree.push_alias(target, mark);
            return self.add(node, None);
        }
        let properties = self.properties()?;
        let token = self.scanner.peek_lean()?;
        let (kind, state) = match token.what {
            What::Plain(_) | What::Quoted(_) => {
                return match self.scanner.skip().map(|token| token.what) {
                    Some(What::Plain(text)) => self.scalar(Kind::Plain, text, token.mark, properties),
                    Some(What::Quoted(text)) => self.scalar(Kind::Quoted, text, token.mark, properties),
                    _ => Ok(()),
                };
            }
            What::BlockEntry if place == Place::BlockField => (Kind::Sequence, State::FlatItem),
            What::FlowSequence => (Kind::Sequence, State::FlowFirstItem),
            What::FlowMapping => (Kind::Mapping, State::FlowFirstKey),
            What::BlockSequence if place != Place::Flow => (Kind::Sequence, State::BlockItem),
            What::BlockMapping if place != Place::Flow => (Kind::Mapping, State::BlockKey),
            _ if properties.tag != Tag::None || properties.anchor.is_some() => {
                return self.scalar(Kind::Plain, Cow::Borrowed(""), properties.mark, properties);
            }
            _ => return Err(unexpected(&token, "a value")),
        };
        if state != State::FlatItem {
            self.scanner.skip();
        }
        let node = self.tree.push_collection(kind, properties.tag, token.mark);
        self.add(node, properties.anchor)?;
        self.enter(node)?;
        self.states.push(state);
        Ok(())
    }

    fn properties(&mut self) -> Result<Properties<'a>, Fault> {
        let mark = self.scanner.peek()?.mark;
        let mut properties = Properties { tag: Tag::None, anchor: None, mark };
        for _ in 0..2 {
            match self.scanner.peek()?.what {
                What::Tag(tag) if properties.tag == Tag::None => properties.tag = tag,
                What::Anchor(name) if properties.anchor.is_none() => properties.anchor = Some(name),
                _ => break,
            }
            self.scanner.skip();
        }
        Ok(properties)
    }

    fn scalar(
        &mut self,
        kind: Kind,
        text: Cow<'a, str>,
        mark: Mark,
        properties: Properties<'a>,
    ) -> Result<(), Fault> {
        let tag = properties.tag;
        if kind == Kind::Quoted {
            self.last_quoted = Some(mark.line);
        }
        let node = match text {
            Cow::Borrowed(text) => match self.tree.place_of(text) {
                Some(start) => self.tree.push_borrowed(kind, tag, mark, start, text.len()),
                None => self.tree.push_owned(kind, tag, mark, text.into()),
            },
            Cow::Owned(text) => self.tree.push_owned(kind, tag, mark, text.into_boxed_str()),
        };
        self.add(node, properties.anchor)
    }

    fn empty(&mut self, mark: Mark) -> Result<(), Fault> {
        let node = self.tree.push_borrowed(Kind::Plain, Tag::None, mark, 0, 0);
        self.add(node, None)
    }

    fn add(&mut self, node: NodeId, anchor: Option<&'a str>) -> Result<(), Fault> {
        self.tree.within_limits()?;
        let inside = self.open.last().is_some_and(|open| self.tree.is_shared(open.node));
        if let Some(name) = anchor {
            self.anchors.insert(name, node);
        }
        if inside || anchor.is_some() {
            self.tree.share(node);
        }
        if let Some(open) = self.open.last_mut() {
            self.tree.append(open.node, open.last, node);
            open.last = Some(node);
        }
        Ok(())
    }

    fn enter(&mut self, node: NodeId) -> Result<(), Fault> {
        self.open.push(Open { node, last: None });
        if self.open.len() > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Fault::new(self.tree.mark(node), "too-deep", message));
        }
        Ok(())
    }
}

fn unexpected(token: &Token<'_>, expected: &str) -> Fault {
    let found = match &token.what {
        What::End => "the end",
        What::Directive => "a directive",
        What::DocumentStart => "`---`",
        What::DocumentEnd => "`...`",
        What::BlockSequence | What::BlockEntry => "`-`",
        What::BlockMapping | What::Key => "a key",
        What::BlockEnd => "the end of the indented part",
        What::FlowSequence => "`[`",
        What::FlowSequenceEnd => "`]`",
        What::FlowMapping => "`{`",
        What::FlowMappingEnd => "`}`",
        What::FlowEntry => "`,`",
        What::Value => "`:`",
        What::Alias(_) => "an alias",
        What::Anchor(_) => "an anchor",
        What::Tag(_) => "a tag",
        What::Plain(_) | What::Quoted(_) => "a text",
    };
    syntax(token.mark, &format!("expected {expected}, found {found}"))
}

fn syntax(mark: Mark, message: &str) -> Fault {
    Fault::new(mark, "yaml-syntax", format!("this is not YAML: {message}"))
}

/// Told where it begins: the end of the text may be far away.
fn unclosed(begin: Mark, end: &What<'_>) -> Fault {
    let (begins, ends) = if *end == What::FlowSequenceEnd { ("[", "]") } else { ("{", "}") };
    syntax(begin, &format!("`{begins}` is never closed by `{ends}`"))
}

/// Does not repeat the name: a Secret's value that begins with `*` looks like one.
fn unknown_anchor(mark: Mark) -> Fault {
    Fault::new(mark, "unknown-anchor", "no anchor of this name stands before this alias in its document")
        .hint("an anchor reaches no further than its own document: repeat the value here")
}
