//! Reads a piece of Markdown (an item, a paragraph, a bullet) into plain text and links.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Parser, Tag, TagEnd};
use regex::Regex;

use crate::lines;
use crate::links::{self, IgnoredLink, Link, LinkSource, WhyIgnored};
use crate::rules::LinkRules;

/// A piece of text, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inline {
    /// Plain text: labels stay, addresses go, markup goes.
    pub text: String,
    /// Links in the order of the text.
    pub links: Vec<Link>,
    /// What looks like a link and is none.
    pub ignored: Vec<IgnoredLink>,
    /// Most of the text is struck out.
    pub struck: bool,
}

static URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // Ends where GitHub ends a bare address, and at wide punctuation, which people put right behind one.
    Regex::new(r#"(?i)https?://[^\s<>"'`|\\^{}\u{3000}-\u{303f}\u{ff00}-\u{ffef}\u{2026}]+"#).ok()
});
static SHORT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w./-])([A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100})#([0-9]{1,10})\b").ok()
});
static NAKED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:^|[\s(\[,;:])((?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24})(/[^\s<>"'`|\\^{}\u{3000}-\u{303f}\u{ff00}-\u{ffef}]*)?"#).ok()
});
static HREF: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)^<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)"#).ok());

/// Text between two events, and where it came from.
struct Run {
    text: String,
    at: usize,
    struck: bool,
}

struct Reader<'a> {
    rules: &'a LinkRules,
    line_at: &'a dyn Fn(usize) -> u32,
    out: Inline,
    struck_chars: usize,
    all_chars: usize,
}

/// Reads `fragment`. `line_at` gives the line number of a byte of it; `references` are the body's link definitions.
pub(crate) fn read(
    fragment: &str,
    line_at: &dyn Fn(usize) -> u32,
    references: &BTreeMap<String, String>,
    rules: &LinkRules,
) -> Inline {
    let mut reader = Reader {
        rules,
        line_at,
        out: Inline::default(),
        struck_chars: 0,
        all_chars: 0,
    };
    let mut callback = |broken: BrokenLink<'_>| {
        references
            .get(&lines::fold_label(&broken.reference))
            .map(|dest| (CowStr::from(dest.clone()), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(fragment, lines::options(), Some(&mut callback));
    let mut run: Option<Run> = None;
    let mut struck = 0usize;
    // The link that is open: address, label, how, where. Links do not nest.
    let mut link: Option<(String, String, LinkSource, usize)> = None;
    let mut images = 0usize;
    for (event, range) in parser.into_offset_iter() {
        if let Event::Text(t) = &event {
            if images > 0 {
                continue;
            }
            if let Some((_, label, _, _)) = &mut link {
                label.push_str(t);
            } else if let Some(run) = &mut run {
                run.text.push_str(t);
            } else {
                run = Some(Run {
                    text: t.to_string(),
                    at: range.start,
                    struck: struck > 0,
                });
            }
            continue;
        }
        if let Some(run) = run.take() {
            reader.take_run(&run);
        }
        match event {
            Event::Start(Tag::Strikethrough) => struck += 1,
            Event::End(TagEnd::Strikethrough) => struck = struck.saturating_sub(1),
            Event::Start(Tag::Link {
                link_type, dest_url, ..
            }) => {
                let auto = matches!(link_type, LinkType::Autolink | LinkType::Email);
                let source = if auto {
                    LinkSource::Autolink
                } else {
                    LinkSource::Markdown
                };
                link = Some((dest_url.to_string(), String::new(), source, range.start));
            }
            Event::End(TagEnd::Link) => {
                if let Some((dest, label, source, at)) = link.take() {
                    let shown = if source == LinkSource::Autolink {
                        String::new()
                    } else {
                        strip_urls(&label)
                    };
                    reader.push_text(&shown, struck > 0);
                    let label = (!shown.trim().is_empty()).then(|| crate::text::collapse(&shown));
                    reader.push_link(&dest, at, label, source, (struck > 0).then_some(WhyIgnored::Struck));
                }
            }
            Event::Start(Tag::Image { .. }) => images += 1,
            Event::End(TagEnd::Image) => images = images.saturating_sub(1),
            Event::Code(t) => {
                if let Some((_, label, _, _)) = &mut link {
                    label.push_str(&t);
                } else {
                    reader.push_text(&strip_urls(&t), struck > 0);
                    reader.scan_links(&t, range.start, Some(WhyIgnored::Code));
                }
            }
            Event::InlineHtml(t) | Event::Html(t) => {
                if let Some(href) = HREF.as_ref().and_then(|r| r.captures(&t)).and_then(|c| c.get(1)) {
                    reader.push_link(href.as_str(), range.start, None, LinkSource::Markdown, None);
                }
            }
            Event::SoftBreak | Event::HardBreak => match &mut link {
                Some((_, label, _, _)) => label.push(' '),
                None => reader.out.text.push(' '),
            },
            Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_)) => reader.out.text.push(' '),
            _ => {}
        }
    }
    if let Some(run) = run.take() {
        reader.take_run(&run);
    }
    let mut out = reader.out;
    out.text = crate::text::collapse(&out.text);
    out.struck = reader.struck_chars * 10 > reader.all_chars * 6;
    out
}

impl Reader<'_> {
    fn push_text(&mut self, text: &str, struck: bool) {
        let visible = text.chars().filter(|c| !c.is_whitespace()).count();
        self.all_chars += visible;
        if struck {
            self.struck_chars += visible;
        }
        self.out.text.push_str(text);
    }

    fn push_link(&mut self, url: &str, at: usize, label: Option<String>, source: LinkSource, why: Option<WhyIgnored>) {
        let Some(link) = links::read(url, (self.line_at)(at), label, source, self.rules) else {
            return;
        };
        match why {
            None => self.out.links.push(link),
            Some(why) => self.out.ignored.push(IgnoredLink { link, why }),
        }
    }

    fn take_run(&mut self, run: &Run) {
        let why = run.struck.then_some(WhyIgnored::Struck);
        self.scan_links(&run.text, run.at, why);
        self.push_text(&strip_urls(&run.text), run.struck);
    }

    /// Finds bare addresses, shorthands and addresses without a scheme.
    fn scan_links(&mut self, text: &str, at: usize, why: Option<WhyIgnored>) {
        let mut rest = String::with_capacity(text.len());
        let mut done = 0;
        for m in URL.iter().flat_map(|r| r.find_iter(text)) {
            let url = trim_url(m.as_str());
            self.push_link(url, at + m.start(), None, LinkSource::Bare, why);
            rest.push_str(&text[done..m.start()]);
            // Keeps the lengths, so that places stay true.
            rest.extend(std::iter::repeat_n(' ', url.len()));
            done = m.start() + url.len();
        }
        rest.push_str(&text[done..]);
        for c in SHORT.iter().flat_map(|r| r.captures_iter(&rest)) {
            let (Some(repo), Some(number)) = (c.get(1), c.get(2)) else {
                continue;
            };
            let line = (self.line_at)(at + repo.start());
            let Some(link) = links::shorthand(repo.as_str(), number.as_str(), line, self.rules) else {
                continue;
            };
            match why {
                None => self.out.links.push(link),
                Some(why) => self.out.ignored.push(IgnoredLink { link, why }),
            }
        }
        for c in NAKED.iter().flat_map(|r| r.captures_iter(&rest)) {
            let Some(host) = c.get(1) else { continue };
            if links::known_host(host.as_str(), self.rules) {
                let path = trim_url(c.get(2).map_or("", |p| p.as_str()));
                let url = format!("https://{}{path}", host.as_str());
                let why = Some(why.unwrap_or(WhyIgnored::NoScheme));
                self.push_link(&url, at + host.start(), None, LinkSource::Bare, why);
            }
        }
    }
}

/// Cuts what a sentence puts behind an address: punctuation, and closing brackets that were not opened in it.
fn trim_url(url: &str) -> &str {
    let mut url = url;
    if url.len() > 4_096 {
        // No address of any use; counting brackets in it would only cost time.
        return url;
    }
    loop {
        let Some(last) = url.chars().next_back() else {
            return url;
        };
        let close = match last {
            ')' => Some('('),
            ']' => Some('['),
            _ => None,
        };
        let unbalanced = close.is_some_and(|open| url.matches(last).count() > url.matches(open).count());
        if unbalanced
            || matches!(
                last,
                '.' | ',' | ';' | ':' | '!' | '?' | '*' | '_' | '~' | '\u{2019}' | '\u{201d}'
            )
        {
            url = &url[..url.len() - last.len_utf8()];
        } else {
            return url;
        }
    }
}

fn strip_urls(text: &str) -> String {
    match URL.as_ref() {
        Some(r) => r
            .replace_all(text, |c: &regex::Captures<'_>| {
                let whole = c.get(0).map_or("", |m| m.as_str());
                format!(" {}", &whole[trim_url(whole).len()..])
            })
            .into_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::LinkKindRule;

    fn inline(text: &str) -> Inline {
        let rules = LinkRules {
            kinds: vec![LinkKindRule {
                kind: "page".into(),
                host: "recipes.example.org".into(),
                path: "/**".into(),
            }],
            ..LinkRules::default()
        };
        let mut refs = BTreeMap::new();
        refs.insert("the run".to_owned(), "https://github.com/a/b/actions/runs/5".to_owned());
        read(text, &|at| 1 + text[..at].matches('\n').count() as u32, &refs, &rules)
    }

    fn urls(text: &str) -> Vec<String> {
        inline(text).links.into_iter().map(|l| l.url).collect()
    }

    #[test]
    fn links_of_every_spelling_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("see https://a.example/x_y_z.", &["https://a.example/x_y_z"]),
            ("(https://a.example/x)", &["https://a.example/x"]),
            ("(https://a.example/x_(y))", &["https://a.example/x_(y)"]),
            ("**https://a.example/x**", &["https://a.example/x"]),
            ("[run](https://A.example/X?a=b&c=d)", &["https://a.example/X?a=b&c=d"]),
            ("[https://a.example/x](https://b.example/y)", &["https://b.example/y"]),
            ("<https://a.example/x>", &["https://a.example/x"]),
            (
                "[run][the run] and [the run]",
                &["https://github.com/a/b/actions/runs/5"; 2],
            ),
            ("验证：https://a.example/1。评估", &["https://a.example/1"]),
            (
                "https://a.example/1 / https://a.example/2",
                &["https://a.example/1", "https://a.example/2"],
            ),
            (
                "acme/recipes#12 is merged",
                &["https://github.com/acme/recipes/pull/12"],
            ),
            ("<a href=\"https://a.example/x\">x</a>", &["https://a.example/x"]),
            ("— https://a.example/x —", &["https://a.example/x"]),
            ("a/b/acme/recipes#12 and foo#3", &[]),
            ("`https://a.example/x`", &[]),
            ("~~https://a.example/x~~", &[]),
            ("![i](https://a.example/x.png)", &[]),
            ("[x](javascript:a)", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(&urls(text), expected, "{text}");
        }
    }

    #[test]
    fn near_links_are_kept_for_hints() {
        let why = |t: &str| {
            inline(t)
                .ignored
                .into_iter()
                .map(|i| (i.link.url, i.why))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            why("`https://a.example/x`"),
            [("https://a.example/x".to_owned(), WhyIgnored::Code)]
        );
        assert_eq!(
            why("~~https://a.example/x~~"),
            [("https://a.example/x".to_owned(), WhyIgnored::Struck)]
        );
        assert_eq!(
            why("published: recipes.example.org/Org/Model."),
            [("https://recipes.example.org/Org/Model".to_owned(), WhyIgnored::NoScheme)]
        );
        assert!(why("other.example.org/Org").is_empty());
    }

    #[test]
    fn text_is_plain() {
        let text = |t: &str| inline(t).text;
        assert_eq!(
            text("**A** [b c](https://x.example/) `d` https://x.example/e, _f_\ng"),
            "A b c d , f g"
        );
        assert_eq!(text("one https://x.example/a two"), "one two");
        let struck = inline("~~all of this~~ N/A");
        assert!(struck.struck && struck.text == "all of this N/A");
        assert!(!inline("all ~~of~~ this").struck);
        assert_eq!(inline("a\nhttps://x.example/").links[0].line, 2);
    }
}
