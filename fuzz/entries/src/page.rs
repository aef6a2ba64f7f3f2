//! Upstream pages: the first byte chooses the kind, the rest is the page.

pub(crate) fn run(data: &[u8]) {
    countersign_launch::fuzz_page(data);
}
