//! Checks on the raw text: size, the characters PyYAML reads, the tabs it does not, and the parser's errors in our
//! words.

use serde_yaml::granit_parser::{Event, ScalarStyle, ScanError};

use crate::error::{YamlError, YamlErrorKind};
use crate::node::Span;

/// Size and characters. PyYAML refuses everything outside its printable set before it parses.
pub(crate) fn check(text: &str, max_bytes: usize) -> Result<(), YamlError> {
    if text.len() > max_bytes {
        return Err(YamlError::new(
            YamlErrorKind::Limit,
            position(text, 0),
            format!(
                "the file has {} bytes, more than the {max_bytes} that are read",
                text.len()
            ),
            "split the file",
        ));
    }
    check_first_line(text)?;
    // Nearly every file is plain ASCII; characters are looked at one by one only where it is not.
    if text.bytes().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e)) {
        return Ok(());
    }
    for (at, character) in text.char_indices() {
        let readable = match character {
            '\t' | '\n' | '\r' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' => true,
            '\u{feff}' => at == 0,
            '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => true,
            _ => false,
        };
        if !readable {
            let name = format!("U+{:04X}", u32::from(character));
            // These three end a line for YAML 1.1 and not for YAML 1.2: what one reader takes for a comment, the other
            // takes for content.
            let message = match character {
                '\u{85}' | '\u{2028}' | '\u{2029}' => {
                    format!("the character {name} is a line break to some YAML readers and text to others")
                }
                '\u{feff}' => format!("a byte order mark ({name}) inside the file"),
                _ => format!("the character {name} is not allowed in YAML"),
            };
            return Err(YamlError::new(
                YamlErrorKind::Character,
                position(text, at),
                message,
                "remove the character, or write it as an escape in double quotes",
            ));
        }
    }
    Ok(())
}

/// A document end marker before any document: nothing to YAML 1.2, an error to PyYAML.
fn check_first_line(text: &str) -> Result<(), YamlError> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if content == "..." || line.starts_with("... ") {
            return Err(YamlError::new(
                YamlErrorKind::Syntax,
                position(text, at),
                "the document ends before it begins",
                "remove the `...`",
            ));
        }
        if !content.is_empty() && !content.starts_with('#') {
            break;
        }
        at += line.len();
    }
    Ok(())
}

/// Where YAML 1.2 reads more than PyYAML: a `?` inside a plain scalar of a flow collection ends it there, a `:` at its start is an indicator, and a block
/// scalar that is the whole document needs an indented text.
pub(crate) fn check_scalar(
    text: &str,
    style: ScalarStyle,
    span: &Span,
    in_flow: bool,
    is_root: bool,
) -> Result<(), YamlError> {
    let source = text.get(span.start..span.end).unwrap_or_default();
    match style {
        ScalarStyle::Plain if in_flow => match source.find('?').or_else(|| source.starts_with(':').then_some(0)) {
            Some(offset) => Err(YamlError::new(
                YamlErrorKind::Syntax,
                position(text, span.start + offset),
                "a `?`, or a `:` at the start, of unquoted text between brackets is an indicator to some YAML readers",
                "put the text in quotes",
            )),
            None => Ok(()),
        },
        // The span of a block scalar begins at its text, after the header.
        ScalarStyle::Literal | ScalarStyle::Folded if is_root && span.column == 1 && !source.trim().is_empty() => {
            Err(YamlError::new(
                YamlErrorKind::Syntax,
                *span,
                "the text of this block scalar is not indented",
                "indent it by two spaces",
            ))
        }
        _ => Ok(()),
    }
}

/// PyYAML's anchor names are letters, digits, `-` and `_`; YAML 1.2 also takes the colon of `&name: value` into the
/// name, and so reads another tree.
pub(crate) fn check_anchor(name: &str, span: Span) -> Result<(), YamlError> {
    if !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    {
        return Ok(());
    }
    Err(YamlError::new(
        YamlErrorKind::Alias,
        span,
        format!("`{}` is not a name for an anchor", crate::resolve::clip(name)),
        "use letters, digits, `-` and `_`, and a space before a colon",
    ))
}

/// The span of the single character at a byte offset.
pub(crate) fn position(text: &str, at: usize) -> Span {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Span {
        line: small(before.bytes().filter(|&b| b == b'\n').count() + 1),
        column: small(before[line_start..].chars().count() + 1),
        start: at,
        end: at
            + text
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(0, char::len_utf8),
    }
}

/// The parser's refusal with its position. Its own limits on nesting keep their kind, and a line that is indented with
/// a tab is named where it is, because the parser stumbles before or after it.
pub(crate) fn syntax_error(text: &str, error: &ScanError) -> YamlError {
    let mark = error.marker();
    if let Some(at) = tab_indent(text, mark.line()) {
        return tab_error(text, at);
    }
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let at = mark.byte_offset().unwrap_or(0);
    let span = Span {
        line: small(mark.line()),
        column: small(mark.col().saturating_add(1)),
        start: at,
        end: at,
    };
    let message = error.info();
    let limit = message.contains("nesting") || message.contains("recursion");
    let remedy = if limit {
        "flatten the structure"
    } else {
        "check indentation, quotes and brackets here and on the line before"
    };
    YamlError::new(
        if limit {
            YamlErrorKind::Limit
        } else {
            YamlErrorKind::Syntax
        },
        span,
        message.to_owned(),
        remedy,
    )
}

/// PyYAML knows tabs only inside quotes, block scalars and comments; YAML 1.2 also lets them separate tokens. Whatever
/// lies between the tokens, and every plain scalar, is searched for tabs. Costs nothing for a text without tabs.
pub(crate) struct TabCheck<'t> {
    text: &'t str,
    active: bool,
    /// Everything before this byte has been looked at.
    seen: usize,
}

impl<'t> TabCheck<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            active: text.contains('\t'),
            seen: 0,
        }
    }

    pub(crate) fn token(&mut self, event: &Event<'_>, span: &Span) -> Result<(), YamlError> {
        if !self.active {
            return Ok(());
        }
        let Event::Scalar(_, style, ..) = event else {
            return Ok(());
        };
        if span.end <= span.start || span.start < self.seen {
            return Ok(());
        }
        self.gap(span.start)?;
        if *style == ScalarStyle::Plain {
            self.no_tab(span.start, span.end)?;
        }
        self.seen = span.end;
        Ok(())
    }

    pub(crate) fn end(&mut self) -> Result<(), YamlError> {
        if self.active { self.gap(self.text.len()) } else { Ok(()) }
    }

    fn gap(&mut self, until: usize) -> Result<(), YamlError> {
        let gap = self.text.get(self.seen..until).unwrap_or_default();
        let mut in_comment = false;
        let mut blank_before = true;
        for (offset, byte) in gap.bytes().enumerate() {
            match byte {
                b'\n' | b'\r' => in_comment = false,
                b'#' if blank_before => in_comment = true,
                b'\t' if !in_comment => return Err(self.tab(self.seen + offset)),
                _ => {}
            }
            blank_before = matches!(byte, b' ' | b'\n' | b'\r');
        }
        self.seen = until;
        Ok(())
    }

    fn no_tab(&self, from: usize, until: usize) -> Result<(), YamlError> {
        match self.text.get(from..until).and_then(|piece| piece.find('\t')) {
            Some(offset) => Err(self.tab(from + offset)),
            None => Ok(()),
        }
    }

    fn tab(&self, at: usize) -> YamlError {
        tab_error(self.text, at)
    }
}

fn tab_error(text: &str, at: usize) -> YamlError {
    YamlError::new(
        YamlErrorKind::Syntax,
        position(text, at),
        "a tab stands where only spaces are read",
        "replace the tab by spaces",
    )
}

/// The first tab that indents the line of an error or the line after it.
fn tab_indent(text: &str, line: usize) -> Option<usize> {
    let mut start = 0;
    for (index, content) in text.split_inclusive('\n').enumerate() {
        if index + 1 == line || index == line {
            let indent = content.len() - content.trim_start_matches([' ', '\t']).len();
            if let Some(tab) = content[..indent].find('\t') {
                return Some(start + tab);
            }
        }
        if index > line {
            break;
        }
        start += content.len();
    }
    None
}
