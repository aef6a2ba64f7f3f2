//! A reader of GraphQL documents: operations, fields with aliases, arguments and fragments. No more than clients use.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

/// Deeper selections than this are refused.
const DEPTH: usize = 24;

/// One field of a selection, or the contents of a fragment.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Selection {
    Field {
        alias: String,
        name: String,
        arguments: BTreeMap<String, Argument>,
        selections: Vec<Selection>,
    },
    /// `... on Type { … }`.
    Inline {
        on: Option<String>,
        selections: Vec<Selection>,
    },
    /// `...Name`.
    Spread(String),
}

/// An argument's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    Variable(String),
    Literal(Value),
    Object(BTreeMap<String, Argument>),
    List(Vec<Argument>),
}

impl Argument {
    /// The value with variables filled in.
    pub(super) fn value(&self, variables: &Value) -> Value {
        match self {
            Argument::Variable(name) => variables[name].clone(),
            Argument::Literal(v) => v.clone(),
            Argument::Object(map) => Value::Object(
                map.iter()
                    .map(|(k, v)| (k.clone(), v.value(variables)))
                    .collect::<Map<_, _>>(),
            ),
            Argument::List(items) => Value::Array(items.iter().map(|v| v.value(variables)).collect()),
        }
    }
}

/// A document: its one operation, and its fragments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    pub(super) mutation: bool,
    pub(super) selections: Vec<Selection>,
    pub(super) fragments: BTreeMap<String, Vec<Selection>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(Number),
    Mark(char),
    Spread,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

/// Reads a document with one operation.
pub(super) fn parse(text: &str) -> Result<Document, String> {
    let mut p = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    let mut document: Option<Document> = None;
    let mut fragments = BTreeMap::new();
    while let Some(token) = p.peek().cloned() {
        match token {
            Token::Name(word) if word == "fragment" => {
                p.at += 1;
                let name = p.name()?;
                p.word("on")?;
                p.name()?;
                fragments.insert(name, p.selections(0)?);
            }
            Token::Name(word) if word == "query" || word == "mutation" => {
                p.at += 1;
                if matches!(p.peek(), Some(Token::Name(_))) {
                    p.at += 1;
                }
                p.skip_variables()?;
                let operation = Document {
                    mutation: word == "mutation",
                    selections: p.selections(0)?,
                    fragments: BTreeMap::new(),
                };
                if document.replace(operation).is_some() {
                    return Err("one operation a document".to_owned());
                }
            }
            Token::Mark('{') => {
                document = Some(Document {
                    mutation: false,
                    selections: p.selections(0)?,
                    fragments: BTreeMap::new(),
                });
            }
            other => return Err(format!("unexpected {other:?}")),
        }
    }
    let mut document = document.ok_or("no operation")?;
    document.fragments = fragments;
    Ok(document)
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn name(&mut self) -> Result<String, String> {
        match self.take() {
            Some(Token::Name(name)) => Ok(name),
            other => Err(format!("expected a name, found {other:?}")),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        if self.name()? == word {
            Ok(())
        } else {
            Err(format!("expected `{word}`"))
        }
    }

    fn mark(&mut self, mark: char) -> bool {
        let is = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(is);
        is
    }

    fn skip_variables(&mut self) -> Result<(), String> {
        if !self.mark('(') {
            return Ok(());
        }
        let mut depth = 1;
        while depth > 0 {
            match self.take() {
                Some(Token::Mark('(')) => depth += 1,
                Some(Token::Mark(')')) => depth -= 1,
                None => return Err("unclosed variables".to_owned()),
                _ => {}
            }
        }
        Ok(())
    }

    fn selections(&mut self, depth: usize) -> Result<Vec<Selection>, String> {
        if depth > DEPTH {
            return Err("too deep".to_owned());
        }
        if !self.mark('{') {
            return Err("expected `{`".to_owned());
        }
        let mut out = Vec::new();
        while !self.mark('}') {
            if self.peek() == Some(&Token::Spread) {
                self.at += 1;
                match self.peek().cloned() {
                    Some(Token::Name(word)) if word == "on" => {
                        self.at += 1;
                        let on = Some(self.name()?);
                        out.push(Selection::Inline {
                            on,
                            selections: self.selections(depth + 1)?,
                        });
                    }
                    Some(Token::Name(name)) => {
                        self.at += 1;
                        out.push(Selection::Spread(name));
                    }
                    _ => out.push(Selection::Inline {
                        on: None,
                        selections: self.selections(depth + 1)?,
                    }),
                }
                continue;
            }
            let first = self.name()?;
            let (alias, name) = if self.mark(':') {
                (first, self.name()?)
            } else {
                (first.clone(), first)
            };
            let mut arguments = BTreeMap::new();
            if self.mark('(') {
                while !self.mark(')') {
                    let name = self.name()?;
                    if !self.mark(':') {
                        return Err(format!("expected `:` after {name}"));
                    }
                    arguments.insert(name, self.argument(depth + 1)?);
                }
            }
            let selections = if self.peek() == Some(&Token::Mark('{')) {
                self.selections(depth + 1)?
            } else {
                Vec::new()
            };
            out.push(Selection::Field {
                alias,
                name,
                arguments,
                selections,
            });
        }
        Ok(out)
    }

    fn argument(&mut self, depth: usize) -> Result<Argument, String> {
        if depth > DEPTH {
            return Err("too deep".to_owned());
        }
        Ok(match self.take() {
            Some(Token::Mark('$')) => Argument::Variable(self.name()?),
            Some(Token::Text(text)) => Argument::Literal(text.into()),
            Some(Token::Number(n)) => Argument::Literal(Value::Number(n)),
            Some(Token::Name(word)) => Argument::Literal(match word.as_str() {
                "true" => true.into(),
                "false" => false.into(),
                "null" => Value::Null,
                // An enum's value.
                other => other.into(),
            }),
            Some(Token::Mark('[')) => {
                let mut items = Vec::new();
                while !self.mark(']') {
                    items.push(self.argument(depth + 1)?);
                }
                Argument::List(items)
            }
            Some(Token::Mark('{')) => {
                let mut map = BTreeMap::new();
                while !self.mark('}') {
                    let name = self.name()?;
                    if !self.mark(':') {
                        return Err(format!("expected `:` after {name}"));
                    }
                    map.insert(name, self.argument(depth + 1)?);
                }
                Argument::Object(map)
            }
            other => return Err(format!("unexpected {other:?}")),
        })
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut i = 0;
    while let Some(c) = chars.get(i).copied() {
        match c {
            c if c.is_whitespace() || c == ',' || c == '\u{feff}' => i += 1,
            '#' => {
                while chars.get(i).is_some_and(|c| *c != '\n') {
                    i += 1;
                }
            }
            '.' if chars[i..].starts_with(&['.', '.', '.']) => {
                out.push(Token::Spread);
                i += 3;
            }
            '"' => {
                let start = i;
                i += 1;
                while chars.get(i).is_some_and(|c| *c != '"') {
                    i += if chars[i] == '\\' { 2 } else { 1 };
                }
                i += 1;
                let literal: String = chars.get(start..i).ok_or("unclosed text")?.iter().collect();
                out.push(Token::Text(serde_json::from_str(&literal).map_err(|e| e.to_string())?));
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let start = i;
                while chars.get(i).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    i += 1;
                }
                out.push(Token::Name(chars[start..i].iter().collect()));
            }
            c if c.is_ascii_digit() || c == '-' => {
                let start = i;
                i += 1;
                while chars.get(i).is_some_and(|c| c.is_ascii_digit() || ".eE+-".contains(*c)) {
                    i += 1;
                }
                let literal: String = chars[start..i].iter().collect();
                out.push(Token::Number(
                    serde_json::from_str(&literal).map_err(|e| e.to_string())?,
                ));
            }
            '{' | '}' | '(' | ')' | '[' | ']' | ':' | '$' | '!' | '=' | '@' | '|' | '&' => {
                out.push(Token::Mark(c));
                i += 1;
            }
            other => return Err(format!("unexpected `{other}`")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read() {
        let text = r#"
            # what a client sends
            mutation Hide($id: ID!, $why: ReportedContentClassifiers = OUTDATED) {
              minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized ...F } }
            }
            fragment F on Minimizable { why: minimizedReason ... on IssueComment { id } }
        "#;
        let d = parse(text).unwrap();
        assert!(d.mutation);
        assert!(d.fragments.contains_key("F"));
        let Selection::Field { name, arguments, .. } = &d.selections[0] else {
            panic!("a field")
        };
        assert_eq!(name, "minimizeComment");
        let input = arguments["input"].value(&serde_json::json!({"id": "IC_5"}));
        assert_eq!(
            input,
            serde_json::json!({"subjectId": "IC_5", "classifier": "OUTDATED"})
        );
    }

    #[test]
    fn what_is_no_document_is_an_error() {
        for text in ["", "query", "query {", "query { a( }", "{ a: }", "{ \"", "query { ; }"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "{ a ".repeat(100_000), "}".repeat(100_000));
        assert!(parse(&deep).is_err());
    }
}
