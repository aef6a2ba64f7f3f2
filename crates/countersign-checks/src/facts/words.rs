//! Words of free text that name something: addresses, images, entries. Text of others is data; nothing of it is opened.

use countersign_records::images::Image;

/// Most words of one text that are looked at.
const WORDS: usize = 50_000;

/// The words of a text as they would be typed: without brackets, quotes and the punctuation behind them.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "()[]<>{}\"'`,;|".contains(c);
    text.split(ends)
        .map(|word| {
            word.trim_matches(['*', '_', '~'])
                .trim_end_matches(['.', ':', '!', '?'])
        })
        .filter(|word| !word.is_empty())
        .take(WORDS)
}

/// An image that a text cites with the repository of one of the given images, where it cites none of them. A text that tells
/// of a change from one image to another cites both, the new one perhaps by its tag alone.
#[must_use]
pub fn foreign_image<'t>(texts: impl Iterator<Item = &'t str>, images: &[Image]) -> Option<Image> {
    let said: Vec<&str> = texts.flat_map(words).collect();
    if images
        .iter()
        .any(|own| own.tag.as_deref().is_some_and(|tag| said.contains(&tag)))
    {
        return None;
    }
    let cited: Vec<Image> = said
        .into_iter()
        .filter(|word| word.contains('/') && word.contains(':') && !word.contains("://"))
        .filter_map(|word| Image::parse(word).ok())
        .filter(|image| images.iter().any(|own| own.same_repository(image)))
        .collect();
    // Who cites a tag need not cite its digest.
    let is_own = |image: &Image, own: &Image| {
        own.same_image(image) || (own.same_repository(image) && image.digest.is_none() && own.tag == image.tag)
    };
    if cited.iter().any(|image| images.iter().any(|own| is_own(image, own))) {
        return None;
    }
    cited.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_in_sentences() {
        let own = [Image::parse("org/engine:v2").unwrap()];
        let found = |text: &str| foreign_image(std::iter::once(text), &own).map(|image| image.to_string());
        assert_eq!(found("Runs **`org/engine:v1`**.").as_deref(), Some("org/engine:v1"));
        assert_eq!(found("From (org/engine:v1) to `org/engine:v2`."), None);
        assert_eq!(found("From org/engine:v1 to v2."), None);
        assert_eq!(found("See https://org/engine:v1 and other/engine:v1"), None);
    }
}
