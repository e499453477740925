//! Finds the places in a file where a small bug can be planted.

use std::ops::Range;

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Pat, Signature, UnOp};

use crate::site::{Mutant, Number, Site, SiteKind};
use crate::values::values_of;

/// The bugs of all files so far.
#[derive(Debug, Default)]
pub(crate) struct FoundMutants {
    /// A mutant's number is its index and one.
    pub(crate) mutants: Vec<Mutant>,
}

impl FoundMutants {
    /// Returns the places in a file, from its start to its end, outer ones first.
    ///
    /// # Errors
    ///
    /// Fails if the text is no Rust.
    pub(crate) fn find(&mut self, path: &str, text: &str) -> Result<Vec<Site>, String> {
        let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        let mut finder = Finder { found: self, path, functions: Vec::new(), sites: Vec::new() };
        finder.visit_file(&file);
        let mut sites = finder.sites;
        sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
        Ok(sites)
    }
}

/// A walk through a file.
struct Finder<'a> {
    found: &'a mut FoundMutants,
    path: &'a str,
    /// The functions around, the outermost first.
    functions: Vec<String>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    /// Notes a place, and a mutant for each of its kinds.
    fn note(&mut self, span: Span, mut site: Site, kinds: &[String]) {
        for kind in kinds {
            self.found.mutants.push(Mutant {
                file: self.path.to_owned(),
                line: span.start().line,
                function: self.functions.last().cloned().unwrap_or_default(),
                kind: kind.clone(),
            });
            site.numbers.push(self.found.mutants.len() as Number);
        }
        if !site.numbers.is_empty() {
            self.sites.push(site);
        }
    }

    /// Notes the values that a function can return at once, and walks through it.
    fn function(&mut self, signature: &Signature, block: &Block) {
        // The switch cannot be asked before the program runs.
        if signature.constness.is_some() {
            return;
        }
        self.functions.push(signature.ident.to_string());
        let own = block.stmts.iter().map(text_of).collect::<Vec<_>>().join(" ");
        let values: Vec<String> = values_of(&signature.output)
            .into_iter()
            .filter(|value| !own.is_empty() && bare(value) != bare(&own))
            .collect();
        let kinds: Vec<String> = values
            .iter()
            .map(|value| format!("returns {} at once", if value.is_empty() { "()" } else { value }))
            .collect();
        let inside = block.brace_token.span.open().byte_range().end;
        self.note(signature.ident.span(), Site::new(inside..inside, SiteKind::Body { values }), &kinds);
        visit::visit_block(self, block);
        self.functions.pop();
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let operands = vec![range_of(&binary.left), range_of(&binary.right)];
        let range = operands[0].start..operands[1].end;
        let order =
            |operator, others: [&'static str; 2]| SiteKind::Order { operator, others: others.to_vec() };
        let form = match binary.op {
            BinOp::Eq(_) | BinOp::Ne(_) => SiteKind::Flip,
            BinOp::Lt(_) => order("<", ["<=", ">"]),
            BinOp::Le(_) => order("<=", ["<", ">="]),
            BinOp::Gt(_) => order(">", [">=", "<"]),
            BinOp::Ge(_) => order(">=", [">", "<="]),
            // A chain with `let` cannot be turned around.
            BinOp::And(_) | BinOp::Or(_) if has_let(&binary.left) || has_let(&binary.right) => return,
            BinOp::And(_) => SiteKind::Logic { operator: "&&" },
            BinOp::Or(_) => SiteKind::Logic { operator: "||" },
            BinOp::Add(_) => SiteKind::Sum { operator: "+", other: "-" },
            BinOp::Sub(_) => SiteKind::Sum { operator: "-", other: "+" },
            BinOp::AddAssign(_) => SiteKind::Assignment { operator: "+=", other: "-=" },
            BinOp::SubAssign(_) => SiteKind::Assignment { operator: "-=", other: "+=" },
            _ => return,
        };
        let own = text_of(&binary.op);
        let kinds: Vec<String> = match &form {
            SiteKind::Order { others, .. } => {
                others.iter().map(|other| format!("`{own}` to `{other}`")).collect()
            }
            SiteKind::Flip => vec![format!("`{own}` to `{}`", if own == "==" { "!=" } else { "==" })],
            SiteKind::Logic { .. } => vec![format!("`{own}` to `{}`", if own == "&&" { "||" } else { "&&" })],
            SiteKind::Sum { other, .. } | SiteKind::Assignment { other, .. } => {
                vec![format!("`{own}` to `{other}`")]
            }
            SiteKind::Guard | SiteKind::Arm | SiteKind::Body { .. } => Vec::new(),
        };
        self.note(binary.op.span(), Site { operands, ..Site::new(range, form) }, &kinds);
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // A text to show decides nothing.
        let name = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let is_shown = name.is_some_and(|name| name.ident == "Display" || name.ident == "Debug");
        if !is_shown && !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // The switch cannot be asked before the program runs.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        self.binary(binary);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if let UnOp::Not(_) = unary.op {
            let start = unary.op.span().byte_range().start;
            let range = start..range_of(&unary.expr).end;
            self.note(unary.op.span(), Site::new(range, SiteKind::Flip), &["`!` left out".to_owned()]);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, item: &'ast syn::ExprMatch) {
        self.visit_expr(&item.expr);
        let wildcard = item.arms.iter().position(|arm| matches!(arm.pat, Pat::Wild(_)));
        for (index, arm) in item.arms.iter().enumerate() {
            if let Pat::Guard(guarded) = &arm.pat {
                if !has_let(&guarded.guard) {
                    let range = range_of(&guarded.guard);
                    let kinds = ["a guard that always holds", "a guard that never holds"].map(str::to_owned);
                    self.note(guarded.guard.span(), Site::new(range, SiteKind::Guard), &kinds);
                }
                self.visit_expr(&guarded.guard);
            } else if wildcard.is_some_and(|wildcard| index < wildcard) {
                let end = range_of(&arm.pat).end;
                let kinds = [format!("the arm `{}` left out", bare(&text_of(&arm.pat)))];
                self.note(arm.pat.span(), Site::new(end..end, SiteKind::Arm), &kinds);
            }
            self.visit_expr(&arm.body);
        }
    }
}

/// Returns the bytes of a part of the file.
fn range_of(part: &impl Spanned) -> Range<usize> {
    part.span().byte_range()
}

fn text_of(part: &impl ToTokens) -> String {
    part.to_token_stream().to_string()
}

/// Returns a text without blanks.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns whether an item is compiled for tests only.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test") || (path.is_ident("cfg") && text_of(&attribute.meta).contains("test"))
    })
}

/// Returns whether a condition binds names, in itself or in a chain.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::site::RewrittenFile;

    #[test]
    fn each_place_has_the_bugs_of_its_form() {
        let check = |body: &str, expected: &[&str]| {
            let mut found = FoundMutants::default();
            found.find("a.rs", &format!("fn f(a: u32, b: u32) -> Never {{ {body} }}")).unwrap();
            let kinds: Vec<&str> = found.mutants.iter().map(|mutant| mutant.kind.as_str()).collect();
            assert_eq!(kinds, expected, "{body}");
        };
        check("a == b", &["`==` to `!=`"]);
        check("a != b", &["`!=` to `==`"]);
        check("a < b", &["`<` to `<=`", "`<` to `>`"]);
        check("a >= b", &["`>=` to `>`", "`>=` to `<=`"]);
        check("c && d", &["`&&` to `||`"]);
        check("if let Some(x) = c && !d {}", &["`!` left out"]);
        check("a + b", &["`+` to `-`"]);
        check("a -= b;", &["`-=` to `+=`"]);
        check("a * b", &[]);
        check("match a { 1 => b, 2 => a, _ => 0 }", &["the arm `1` left out", "the arm `2` left out"]);
        check("match a { 1 if c => b, _ => 0 }", &["a guard that always holds", "a guard that never holds"]);
        check("match a { Some(_) => b, None => 0 }", &[]);
        check("assert!(a == b)", &[]);
    }

    #[test]
    fn a_function_returns_what_its_type_evidently_has_and_its_body_does_not_say() {
        let check = |text: &str, expected: &[&str]| {
            let mut found = FoundMutants::default();
            found.find("a.rs", text).unwrap();
            let kinds: Vec<&str> = found.mutants.iter().map(|mutant| mutant.kind.as_str()).collect();
            assert_eq!(kinds, expected, "{text}");
        };
        check("fn f() { g(); }", &["returns () at once"]);
        check("fn f() {}", &[]);
        check("fn f() -> bool { g() }", &["returns true at once", "returns false at once"]);
        check("fn f() -> bool { true }", &["returns false at once"]);
        check(
            "fn f() -> Option<u8> { g() }",
            &["returns None at once", "returns Some(0) at once", "returns Some(1) at once"],
        );
        check("fn f() -> Result<(), E> { g() }", &["returns Ok(()) at once"]);
        check("fn f() -> String { g() }", &[]);
        check("const fn f() -> bool { g() }", &[]);
        check("#[cfg(test)] fn f() -> bool { g() }", &[]);
        check("impl Display for A { fn f() -> bool { g() } }", &[]);
    }

    #[test]
    fn each_bug_stands_behind_the_switch() {
        let check = |body: &str, expected: &str| {
            let text = format!("fn f() -> Never {{ {body} }}");
            let sites = FoundMutants::default().find("a.rs", &text).unwrap();
            let none = BTreeSet::new();
            let written =
                RewrittenFile::new(&text, &sites, &none).written.replace("crate::mutant_switch::is_on", "on");
            assert_eq!(written, format!("fn f() -> Never {{ {expected} }}"), "{body}");
            let all: BTreeSet<Number> = (1..10).collect();
            assert_eq!(RewrittenFile::new(&text, &sites, &all).written, text, "none of them compiles");
        };
        check("a == b", "(on(1) != (a == b))");
        check("!a && b", "(on(1) != ((on(1) != ((on(2) != (!a)))) && (on(1) != (b))))");
        check(
            "a < b",
            "(match (&(a), &(b)) { (left, right) => if on(1) { left <= right } else if on(2) { left > right } \
             else { left < right } })",
        );
        check(
            "a + 1",
            "(match ((a), (1)) { (left, right) => if on(1) { left - right } else { left + right } })",
        );
        check("a += 1;", "(if on(1) { a -= (1) } else { a += (1) });");
        check(
            "match a { 1 if c => 2, 3 => 4, _ => 5 }",
            "match a { 1 if (on(1) || (!on(2) && (c))) => 2, 3 if !on(3) => 4, _ => 5 }",
        );
    }
}
