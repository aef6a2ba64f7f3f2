//! Text of others in our comment: whatever it is, a Markdown reader sees text or code, and GitHub finds nothing to link.

use countersign_core::text::{code, fenced_block, link};
use countersign_core::{Part, text};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

pub(crate) fn run(data: &[u8]) {
    let foreign = String::from_utf8_lossy(data).into_owned();
    let shown = text![
        "x ",
        foreign.clone(),
        " ",
        code(&foreign),
        " ",
        link(&foreign, &foreign),
        " y"
    ]
    .markdown();
    let acts: Vec<Event<'_>> = Parser::new_ext(&shown, Options::all() - Options::ENABLE_SUPERSCRIPT)
        .filter(|event| {
            !matches!(
                event,
                Event::Text(_)
                    | Event::Code(_)
                    | Event::SoftBreak
                    | Event::Start(Tag::Paragraph)
                    | Event::End(TagEnd::Paragraph)
            )
        })
        .collect();
    // An address that is a clean `https://` one is a link by our own will: only then is there one.
    let ours = acts.iter().all(|event| {
        matches!(event, Event::Start(Tag::Link { dest_url, .. }) if **dest_url == *foreign)
            || matches!(event, Event::End(TagEnd::Link))
    });
    assert!(
        acts.is_empty() || (ours && foreign.starts_with("https://")),
        "{shown:?} acts: {acts:?}"
    );
    let prose: String = Parser::new_ext(&shown, Options::empty())
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    // GitHub finds mentions, references and bare links in what is rendered.
    for (at, _) in prose.match_indices('@') {
        let next = prose[at + 1..].chars().next();
        assert!(!next.is_some_and(|c| c.is_ascii_alphanumeric()), "a mention: {prose:?}");
    }
    for (at, _) in prose.match_indices('#') {
        let next = prose[at + 1..].chars().next();
        assert!(!next.is_some_and(|c| c.is_ascii_digit()), "a reference: {prose:?}");
    }
    assert!(acts.len() == 2 || !prose.contains("://"), "a bare link: {prose:?}");
    let block = fenced_block(&foreign);
    let blocks = Parser::new(&block)
        .filter(|event| matches!(event, Event::Start(_)))
        .count();
    assert_eq!(blocks, 1, "{block:?} is more than one block");
    let _ = Part::from(foreign);
}
