//! Words of a text, made comparable: normalised, case-folded, without punctuation and plural endings.

use unicode_normalization::UnicodeNormalization;

/// The words of `text`: NFKC, lower case, apostrophes dropped, split at everything that is neither letter nor digit,
/// and without the `s` of a plural (so `eval` and `evals` are one word).
pub fn tokens(text: &str) -> Vec<String> {
    let folded: String = text
        .nfkc()
        .filter(|c| !matches!(c, '\'' | '\u{2019}' | '\u{2018}' | '`'))
        .collect::<String>();
    folded
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(|w| {
            let plural = w.len() >= 4 && w.is_ascii() && w.ends_with('s') && !w.ends_with("ss");
            if plural {
                w[..w.len() - 1].to_owned()
            } else {
                w.to_owned()
            }
        })
        .collect()
}

/// `text` with every run of white space as one blank, and none at the ends.
pub fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// At most `chars` characters of `text`, with an ellipsis where something was cut.
pub fn excerpt(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// A phrase of words: parts joined by `+`, each part a run of words, all of which must occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    parts: Vec<Vec<String>>,
    /// Set for a phrase in a script without word breaks: it is looked for as a piece of a word.
    inside: Option<String>,
}

impl Phrase {
    /// Reads a phrase as the rules write it.
    pub fn new(written: &str) -> Self {
        let parts: Vec<Vec<String>> = written.split('+').map(tokens).filter(|p| !p.is_empty()).collect();
        let inside = match parts.as_slice() {
            [one] => match one.as_slice() {
                [word] if !word.is_ascii() => Some(word.clone()),
                _ => None,
            },
            _ => None,
        };
        Self { parts, inside }
    }

    /// Reads a list of phrases, dropping those without words.
    pub fn list(written: &[String]) -> Vec<Self> {
        written.iter().map(|w| Self::new(w)).filter(|p| !p.is_empty()).collect()
    }

    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Where in `words` the phrase is: the index of the last of its parts, each taken at its first occurrence.
    pub fn find(&self, words: &[String]) -> Option<usize> {
        if let Some(piece) = &self.inside {
            return words.iter().position(|w| w.contains(piece.as_str()));
        }
        let mut last = None;
        for part in &self.parts {
            let at = words.windows(part.len()).position(|w| w == part.as_slice())?;
            last = last.max(Some(at));
        }
        last
    }
}

/// `words` with every occurrence of the phrases blanked, so that `append-only` does not count as an `only`.
pub fn without(phrases: &[Phrase], words: &[String]) -> Vec<String> {
    let mut out = words.to_vec();
    for part in phrases.iter().flat_map(|p| &p.parts) {
        for (at, _) in words
            .windows(part.len())
            .enumerate()
            .filter(|(_, w)| *w == part.as_slice())
        {
            for word in &mut out[at..at + part.len()] {
                word.clear();
            }
        }
    }
    out
}

/// The earliest place at which any of `phrases` is found in `words`.
pub fn earliest(phrases: &[Phrase], words: &[String]) -> Option<usize> {
    phrases.iter().filter_map(|p| p.find(words)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_comparable() {
        assert_eq!(
            tokens("The **Evals** aren\u{2019}t `append-only`!"),
            ["the", "eval", "arent", "append", "only"]
        );
        assert_eq!(tokens("pass class bus"), ["pass", "class", "bus"]);
        assert_eq!(tokens("ＦＰ８ ﬁne"), ["fp8", "fine"]);
        assert!(tokens(" -- ").is_empty());
    }

    #[test]
    fn phrases_are_found_by_words() {
        let words = tokens("The image comes from the upstream registry, a docker one");
        assert_eq!(Phrase::new("upstream + docker").find(&words), Some(8));
        assert_eq!(Phrase::new("upstream docker").find(&words), None);
        assert_eq!(Phrase::new("Upstream Registry").find(&words), Some(5));
        assert_eq!(Phrase::new("不适用").find(&tokens("因此不适用。")), Some(0));
        assert!(Phrase::new(" + ").is_empty());
        let topics = [Phrase::new("append-only"), Phrase::new("point")];
        assert_eq!(
            without(&topics, &tokens("only append-only points")),
            ["only", "", "", ""]
        );
    }

    #[test]
    fn excerpts_end_on_characters() {
        assert_eq!(excerpt("多节点提交", 2), "多节…");
        assert_eq!(excerpt("ab", 2), "ab");
    }
}
