//! Turns Markdown into the few blocks that the models reader needs: headings, paragraphs, tables, with lines.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Longest text of one block or cell; what is longer is cut and marked.
const MAX_TEXT: usize = 16 << 10;
/// Characters of a source text that is shown.
const SHOWN: usize = 300;

/// Plain text of a block: emphasis and links are dropped, code spans keep their back-ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) line: usize,
    pub(super) text: String,
    /// The text was longer than is read.
    pub(super) cut: bool,
}

impl Text {
    fn push(&mut self, piece: &str) {
        let room = MAX_TEXT.saturating_sub(self.text.len());
        let end = (0..=room.min(piece.len()))
            .rev()
            .find(|i| piece.is_char_boundary(*i))
            .unwrap_or(0);
        self.text.push_str(&piece[..end]);
        self.cut |= end < piece.len();
    }

    /// The source as it is shown to people.
    pub(super) fn source(&self) -> super::Source {
        super::Source {
            line: self.line,
            text: shorten(self.text.trim()),
        }
    }
}

/// Shortens to [`SHOWN`] characters.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A block of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    Heading { level: u8, text: Text },
    Paragraph(Text),
    Table { header: Vec<Text>, rows: Vec<Vec<Text>> },
}

/// Reads the document. Linear in its size.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(i, _)| i + 1),
        )
        .collect();
    let line_of = |offset: usize| starts.partition_point(|s| *s <= offset);
    let mut out = Vec::new();
    let mut current: Option<Text> = None;
    let mut heading = 0u8;
    let mut header: Vec<Text> = Vec::new();
    let mut rows: Vec<Vec<Text>> = Vec::new();
    let mut row: Vec<Text> = Vec::new();
    let mut in_table = false;
    let mut skipped = 0usize;
    let flush = |current: &mut Option<Text>, out: &mut Vec<Block>| {
        if let Some(text) = current.take().filter(|t| !t.text.trim().is_empty()) {
            out.push(Block::Paragraph(text));
        }
    };
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES).into_offset_iter() {
        let fresh = || Text {
            line: line_of(range.start),
            ..Text::default()
        };
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                flush(&mut current, &mut out);
                heading = level as u8;
                current = Some(fresh());
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some(text) = current.take() {
                    out.push(Block::Heading { level: heading, text });
                }
            }
            Event::Start(Tag::Table(_)) => {
                flush(&mut current, &mut out);
                in_table = true;
                header.clear();
                rows.clear();
            }
            Event::Start(Tag::TableCell) => current = Some(fresh()),
            Event::End(TagEnd::TableCell) => row.extend(current.take()),
            Event::End(TagEnd::TableHead) => header = std::mem::take(&mut row),
            Event::End(TagEnd::TableRow) => rows.push(std::mem::take(&mut row)),
            Event::End(TagEnd::Table) => {
                in_table = false;
                out.push(Block::Table {
                    header: std::mem::take(&mut header),
                    rows: std::mem::take(&mut rows),
                });
            }
            // Code blocks, raw HTML and footnote texts state no rule.
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock | Tag::FootnoteDefinition(_)) => {
                flush(&mut current, &mut out);
                skipped += 1;
            }
            Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition) => {
                flush(&mut current, &mut Vec::new());
                skipped = skipped.saturating_sub(1);
            }
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_)) if !in_table => flush(&mut current, &mut out),
            Event::End(TagEnd::Paragraph | TagEnd::Item) if !in_table => {
                if skipped == 0 {
                    flush(&mut current, &mut out);
                } else {
                    current = None;
                }
            }
            Event::Text(piece) if skipped == 0 => current.get_or_insert_with(fresh).push(&piece),
            Event::Code(piece) if skipped == 0 => {
                let text = current.get_or_insert_with(fresh);
                text.push("`");
                text.push(&piece);
                text.push("`");
            }
            Event::SoftBreak | Event::HardBreak if skipped == 0 => current.get_or_insert_with(fresh).push(" "),
            _ => {}
        }
    }
    flush(&mut current, &mut out);
    out
}
