//! Tokens to a [`DocumentTree`]: the grammar of YAML as a machine with a stack of states.

use std::borrow::Cow;
use std::collections::HashMap;

use super::scan::YamlScanner;
use super::token::{TokenKind, YamlToken};
use crate::manifest::MAX_YAML_DEPTH;
use crate::manifest::scalar::ScalarTag;
use crate::manifest::tree::{DocumentFault, DocumentTree, TextMark, YamlNodeId, YamlNodeKind};

/// The expected next token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParseState {
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

/// The context of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum YamlNodeContext {
    Block,
    /// In a block mapping, where a list needs no indentation.
    BlockField,
    Flow,
}

/// Returns the first document of a text, and the place of what follows it, if anything does.
pub(super) fn parse(text: &str, line: u32) -> Result<(DocumentTree<'_>, Option<TextMark>), DocumentFault> {
    let mut parser = YamlParser {
        scanner: YamlScanner::new(text, line),
        tree: DocumentTree::over(text),
        states: Vec::new(),
        open: Vec::new(),
        anchors: HashMap::new(),
        last_quoted: None,
    };
    parser.parse_document()?;
    let follows = parser.position_of_rest();
    Ok((parser.tree, follows))
}

struct OpenYamlNode {
    node: YamlNodeId,
    last: Option<YamlNodeId>,
}

struct YamlParser<'a> {
    scanner: YamlScanner<'a>,
    tree: DocumentTree<'a>,
    states: Vec<ParseState>,
    open: Vec<OpenYamlNode>,
    anchors: HashMap<&'a str, YamlNodeId>,
    /// The line that the last text in quotes begins in.
    last_quoted: Option<u32>,
}

/// Tag and anchor of a node.
#[derive(Clone, Copy)]
struct YamlNodeProperties<'a> {
    tag: ScalarTag,
    anchor: Option<&'a str>,
    mark: TextMark,
}

impl YamlParser<'_> {
    fn parse_document(&mut self) -> Result<(), DocumentFault> {
        match self.scanner.peek()?.kind {
            TokenKind::End => return Ok(()),
            TokenKind::Directive => {
                let mark = self.scanner.peek()?.mark;
                return Err(DocumentFault::new(
                    mark,
                    "yaml-directive",
                    "Kubernetes reads no directives such as %YAML",
                )
                .hint("remove the line"));
            }
            TokenKind::DocumentStart => {
                self.scanner.skip();
                self.states.push(ParseState::DocumentEnd);
                let mark = self.scanner.peek()?.mark;
                match self.scanner.peek()?.kind {
                    TokenKind::Directive
                    | TokenKind::DocumentStart
                    | TokenKind::DocumentEnd
                    | TokenKind::End => {
                        self.add_empty(mark)?;
                    }
                    _ => self.parse_node(YamlNodeContext::Block)?,
                }
            }
            _ => {
                self.states.push(ParseState::DocumentEnd);
                self.parse_node(YamlNodeContext::Block)?;
            }
        }
        while let Some(state) = self.states.pop() {
            self.step(state)?;
        }
        Ok(())
    }

    /// Returns where anything but the end follows the document.
    fn position_of_rest(&mut self) -> Option<TextMark> {
        loop {
            match self.scanner.peek() {
                Ok(YamlToken { kind: TokenKind::End, .. }) => return None,
                Ok(YamlToken { kind: TokenKind::DocumentEnd, .. }) => self.scanner.skip(),
                Ok(YamlToken { mark, .. }) => return Some(*mark),
                Err(fault) => return Some(fault.mark),
            };
        }
    }

    fn step(&mut self, state: ParseState) -> Result<(), DocumentFault> {
        match state {
            ParseState::DocumentEnd => {
                if self.scanner.peek()?.kind == TokenKind::DocumentEnd {
                    self.scanner.skip();
                }
                Ok(())
            }
            ParseState::BlockItem | ParseState::FlatItem => self.parse_block_item(state),
            ParseState::BlockKey => self.parse_block_key(),
            ParseState::BlockValue => self.parse_block_value(),
            ParseState::FlowFirstItem | ParseState::FlowItem => self.parse_flow_item(state),
            ParseState::PairKey => self.parse_pair_key(),
            ParseState::PairValue => self.parse_pair_value(),
            ParseState::PairEnd => {
                self.open.pop();
                self.states.push(ParseState::FlowItem);
                Ok(())
            }
            ParseState::FlowFirstKey | ParseState::FlowKey => self.parse_flow_key(state),
            ParseState::FlowValue => self.parse_flow_value(),
            ParseState::FlowNoValue => {
                let mark = self.scanner.peek()?.mark;
                self.states.push(ParseState::FlowKey);
                self.add_empty(mark)
            }
        }
    }

    fn parse_block_item(&mut self, state: ParseState) -> Result<(), DocumentFault> {
        let token = self.scanner.peek_lean()?;
        match token.kind {
            TokenKind::BlockEntry => {
                self.scanner.skip();
                self.states.push(state);
                let next = &self.scanner.peek()?.kind;
                let empty = match next {
                    TokenKind::BlockEntry | TokenKind::BlockEnd => true,
                    TokenKind::Key | TokenKind::Value => state == ParseState::FlatItem,
                    _ => false,
                };
                if empty { self.add_empty(token.mark) } else { self.parse_node(YamlNodeContext::Block) }
            }
            TokenKind::BlockEnd if state == ParseState::BlockItem => {
                self.scanner.skip();
                self.open.pop();
                Ok(())
            }
            _ if state == ParseState::FlatItem => {
                self.open.pop();
                Ok(())
            }
            _ => Err(unexpected_token_fault(
                &token,
                "an item of the list, which begins with `- ` in the same column as the others",
            )),
        }
    }

    fn parse_block_key(&mut self) -> Result<(), DocumentFault> {
        let token = self.scanner.peek_lean()?;
        match token.kind {
            TokenKind::Key => {
                self.scanner.skip();
                self.states.push(ParseState::BlockValue);
                self.parse_block_field(token.mark)
            }
            TokenKind::BlockEnd => {
                self.scanner.skip();
                self.open.pop();
                Ok(())
            }
            _ => Err(self.misplaced_token_fault(&token)),
        }
    }

    /// Returns the fault of a token that is no key of the mapping around it.
    fn misplaced_token_fault(&self, token: &YamlToken<'_>) -> DocumentFault {
        let first = self.open.last().map_or(token.mark, |open| self.tree.mark(open.node));
        let after_quotes = self.last_quoted == Some(token.mark.line);
        match token.kind {
            TokenKind::Key | TokenKind::BlockMapping if token.mark.column != first.column => syntax_fault(
                token.mark,
                &format!(
                    "no mapping around this key has its keys in column {}; the nearest, from line {} on, has them \
                     in column {}",
                    token.mark.column, first.line, first.column
                ),
            )
            .hint("indent the key like one of the keys before it"),
            TokenKind::Plain(_) | TokenKind::Quoted(_) if after_quotes => unexpected_token_fault(token, "the end of the line after the closing quote")
                .hint("inside quotes, write `''` for a single quote in single quotes, and `\\\"` for a double quote in double quotes"),
            TokenKind::BlockEntry | TokenKind::BlockSequence => unexpected_token_fault(token, "a key in the same column as the others")
                .hint("a list goes below a key with nothing behind its `:`"),
            _ => unexpected_token_fault(token, "a key in the same column as the others"),
        }
    }

    fn parse_block_value(&mut self) -> Result<(), DocumentFault> {
        self.states.push(ParseState::BlockKey);
        let token = self.scanner.peek_lean()?;
        if token.kind == TokenKind::Value {
            self.scanner.skip();
            return self.parse_block_field(token.mark);
        }
        self.add_empty(token.mark)
    }

    /// Parses a key or value of a block mapping.
    fn parse_block_field(&mut self, mark: TextMark) -> Result<(), DocumentFault> {
        match self.scanner.peek()?.kind {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => self.add_empty(mark),
            _ => self.parse_node(YamlNodeContext::BlockField),
        }
    }

    fn parse_flow_item(&mut self, state: ParseState) -> Result<(), DocumentFault> {
        if self.pass_flow_separator(state, &TokenKind::FlowSequenceEnd, "`,` or `]`")? {
            return Ok(());
        }
        let token = self.scanner.peek_lean()?;
        if token.kind == TokenKind::Key {
            self.scanner.skip();
            let pair = self.tree.push_collection(YamlNodeKind::Mapping, ScalarTag::None, token.mark);
            self.add(pair, None)?;
            self.enter(pair)?;
            self.states.push(ParseState::PairKey);
            return Ok(());
        }
        self.states.push(ParseState::FlowItem);
        self.parse_node(YamlNodeContext::Flow)
    }

    /// Passes the comma between entries, and the end of the collection. True when it ended.
    fn pass_flow_separator(
        &mut self,
        state: ParseState,
        end: &TokenKind<'_>,
        expected: &str,
    ) -> Result<bool, DocumentFault> {
        let first = matches!(state, ParseState::FlowFirstItem | ParseState::FlowFirstKey);
        if !first && self.scanner.peek()?.kind != *end {
            let token = self.scanner.peek()?;
            if token.kind == TokenKind::End
                && let Some(open) = self.open.last()
            {
                return Err(unclosed_fault(self.tree.mark(open.node), end));
            }
            if token.kind != TokenKind::FlowEntry {
                let fault = unexpected_token_fault(token, expected);
                let line = token.mark.line;
                let opened = self.open.last().map(|open| self.tree.mark(open.node));
                return Err(match opened.filter(|opened| opened.line < line) {
                    Some(opened) => fault.more(&format!("; it was opened in line {}", opened.line)),
                    None => fault,
                });
            }
            self.scanner.skip();
        }
        if self.scanner.peek()?.kind != *end {
            return Ok(false);
        }
        self.scanner.skip();
        self.open.pop();
        Ok(true)
    }

    fn parse_pair_key(&mut self) -> Result<(), DocumentFault> {
        self.states.push(ParseState::PairValue);
        let token = self.scanner.peek_lean()?;
        if matches!(token.kind, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
            // Kubernetes' reader takes the token away here, whatever it is.
            self.scanner.skip();
            return self.add_empty(token.mark);
        }
        self.parse_node(YamlNodeContext::Flow)
    }

    fn parse_pair_value(&mut self) -> Result<(), DocumentFault> {
        self.states.push(ParseState::PairEnd);
        let mut token = self.scanner.peek_lean()?;
        if token.kind == TokenKind::Value {
            self.scanner.skip();
            token = self.scanner.peek_lean()?;
            if !matches!(token.kind, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                return self.parse_node(YamlNodeContext::Flow);
            }
        }
        self.add_empty(token.mark)
    }

    fn parse_flow_key(&mut self, state: ParseState) -> Result<(), DocumentFault> {
        if self.pass_flow_separator(state, &TokenKind::FlowMappingEnd, "`,` or `}`")? {
            return Ok(());
        }
        if self.scanner.peek()?.kind != TokenKind::Key {
            self.states.push(ParseState::FlowNoValue);
            return self.parse_node(YamlNodeContext::Flow);
        }
        self.scanner.skip();
        self.states.push(ParseState::FlowValue);
        self.parse_flow_field()
    }

    fn parse_flow_value(&mut self) -> Result<(), DocumentFault> {
        self.states.push(ParseState::FlowKey);
        if self.scanner.peek()?.kind == TokenKind::Value {
            self.scanner.skip();
            // After `:` another `:` is no end.
            let token = self.scanner.peek_lean()?;
            if matches!(token.kind, TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                return self.add_empty(token.mark);
            }
            return self.parse_node(YamlNodeContext::Flow);
        }
        let mark = self.scanner.peek()?.mark;
        self.add_empty(mark)
    }

    fn parse_flow_field(&mut self) -> Result<(), DocumentFault> {
        let token = self.scanner.peek_lean()?;
        match token.kind {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd => self.add_empty(token.mark),
            _ => self.parse_node(YamlNodeContext::Flow),
        }
    }
}

/// Nodes.
impl<'a> YamlParser<'a> {
    fn parse_node(&mut self, context: YamlNodeContext) -> Result<(), DocumentFault> {
        if let YamlToken { kind: TokenKind::Alias(name), mark } = *self.scanner.peek()? {
            self.scanner.skip();
            let Some(&target) = self.anchors.get(name) else { return Err(unknown_anchor_fault(mark)) };
            let node = self.tree.push_alias(target, mark);
            return self.add(node, None);
        }
        let properties = self.parse_properties()?;
        let token = self.scanner.peek_lean()?;
        let (kind, state) = match token.kind {
            TokenKind::Plain(_) | TokenKind::Quoted(_) => {
                return match self.scanner.skip().map(|token| token.kind) {
                    Some(TokenKind::Plain(text)) => {
                        self.add_scalar(YamlNodeKind::Plain, text, token.mark, properties)
                    }
                    Some(TokenKind::Quoted(text)) => {
                        self.add_scalar(YamlNodeKind::Quoted, text, token.mark, properties)
                    }
                    _ => Ok(()),
                };
            }
            TokenKind::BlockEntry if context == YamlNodeContext::BlockField => {
                (YamlNodeKind::Sequence, ParseState::FlatItem)
            }
            TokenKind::FlowSequence => (YamlNodeKind::Sequence, ParseState::FlowFirstItem),
            TokenKind::FlowMapping => (YamlNodeKind::Mapping, ParseState::FlowFirstKey),
            TokenKind::BlockSequence if context != YamlNodeContext::Flow => {
                (YamlNodeKind::Sequence, ParseState::BlockItem)
            }
            TokenKind::BlockMapping if context != YamlNodeContext::Flow => {
                (YamlNodeKind::Mapping, ParseState::BlockKey)
            }
            _ if properties.tag != ScalarTag::None || properties.anchor.is_some() => {
                return self.add_scalar(YamlNodeKind::Plain, Cow::Borrowed(""), properties.mark, properties);
            }
            _ => return Err(unexpected_token_fault(&token, "a value")),
        };
        if state != ParseState::FlatItem {
            self.scanner.skip();
        }
        let node = self.tree.push_collection(kind, properties.tag, token.mark);
        self.add(node, properties.anchor)?;
        self.enter(node)?;
        self.states.push(state);
        Ok(())
    }

    fn parse_properties(&mut self) -> Result<YamlNodeProperties<'a>, DocumentFault> {
        let mark = self.scanner.peek()?.mark;
        let mut properties = YamlNodeProperties { tag: ScalarTag::None, anchor: None, mark };
        for _ in 0..2 {
            match self.scanner.peek()?.kind {
                TokenKind::Tag(tag) if properties.tag == ScalarTag::None => properties.tag = tag,
                TokenKind::Anchor(name) if properties.anchor.is_none() => properties.anchor = Some(name),
                _ => break,
            }
            self.scanner.skip();
        }
        Ok(properties)
    }

    fn add_scalar(
        &mut self,
        kind: YamlNodeKind,
        text: Cow<'a, str>,
        mark: TextMark,
        properties: YamlNodeProperties<'a>,
    ) -> Result<(), DocumentFault> {
        let tag = properties.tag;
        if kind == YamlNodeKind::Quoted {
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

    fn add_empty(&mut self, mark: TextMark) -> Result<(), DocumentFault> {
        let node = self.tree.push_borrowed(YamlNodeKind::Plain, ScalarTag::None, mark, 0, 0);
        self.add(node, None)
    }

    fn add(&mut self, node: YamlNodeId, anchor: Option<&'a str>) -> Result<(), DocumentFault> {
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

    fn enter(&mut self, node: YamlNodeId) -> Result<(), DocumentFault> {
        self.open.push(OpenYamlNode { node, last: None });
        if self.open.len() > MAX_YAML_DEPTH {
            let message = format!("nested more than {MAX_YAML_DEPTH} levels deep");
            return Err(DocumentFault::new(self.tree.mark(node), "too-deep", message));
        }
        Ok(())
    }
}

fn unexpected_token_fault(token: &YamlToken<'_>, expected: &str) -> DocumentFault {
    let found = match &token.kind {
        TokenKind::End => "the end",
        TokenKind::Directive => "a directive",
        TokenKind::DocumentStart => "`---`",
        TokenKind::DocumentEnd => "`...`",
        TokenKind::BlockSequence | TokenKind::BlockEntry => "`-`",
        TokenKind::BlockMapping | TokenKind::Key => "a key",
        TokenKind::BlockEnd => "the end of the indented part",
        TokenKind::FlowSequence => "`[`",
        TokenKind::FlowSequenceEnd => "`]`",
        TokenKind::FlowMapping => "`{`",
        TokenKind::FlowMappingEnd => "`}`",
        TokenKind::FlowEntry => "`,`",
        TokenKind::Value => "`:`",
        TokenKind::Alias(_) => "an alias",
        TokenKind::Anchor(_) => "an anchor",
        TokenKind::Tag(_) => "a tag",
        TokenKind::Plain(_) | TokenKind::Quoted(_) => "a text",
    };
    syntax_fault(token.mark, &format!("expected {expected}, found {found}"))
}

fn syntax_fault(mark: TextMark, message: &str) -> DocumentFault {
    DocumentFault::new(mark, "yaml-syntax", format!("this is not YAML: {message}"))
}

/// Returns the fault of an unclosed collection, at its begin: the end of the text may be far away.
fn unclosed_fault(begin: TextMark, end: &TokenKind<'_>) -> DocumentFault {
    let (begins, ends) = if *end == TokenKind::FlowSequenceEnd { ("[", "]") } else { ("{", "}") };
    syntax_fault(begin, &format!("`{begins}` is never closed by `{ends}`"))
}

/// Does not repeat the name: a Secret's value that begins with `*` looks like one.
fn unknown_anchor_fault(mark: TextMark) -> DocumentFault {
    DocumentFault::new(
        mark,
        "unknown-anchor",
        "no anchor of this name comes before this alias in its document",
    )
    .hint("an anchor reaches no further than its own document: repeat the value here")
}
