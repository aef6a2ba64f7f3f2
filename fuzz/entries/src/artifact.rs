//! Zips of artifacts and tarballs of commits, as they come from a workflow or a pull request.

/// The most that may come out of one input, in bytes.
const MOST: u64 = 1 << 20;

pub(crate) fn run(data: &[u8]) {
    if let Some(files) = countersign_github::exercise::artifact(data, MOST) {
        let total: usize = files.values().map(String::len).sum();
        assert!(total as u64 <= MOST, "{total} bytes came out");
        for name in files.keys() {
            assert!(
                !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | "..")),
                "{name:?} is a trick"
            );
        }
    }
    countersign_github::exercise::archive(data, MOST);
}
