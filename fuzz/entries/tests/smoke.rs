//! Every fuzz entry over the corpus of the repository and over inputs made from it by a fixed generator: no sanitizer and no
//! feedback, but in seconds and with any compiler. `COUNTERSIGN_FUZZ_INPUTS` sets how many inputs each entry gets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use countersign_fuzz_entries::ENTRIES;

/// SplitMix64, with the constants of the published algorithm: the same inputs everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % (most.max(1) as u64)).unwrap_or(0)
    }
}

/// Pieces that parsers care about.
const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "- [x] ",
    "- [ ] ",
    "```",
    "<!--",
    "-->",
    "> ",
    "@",
    "*",
    "**",
    "/",
    "\\",
    "#",
    "&a",
    "*a",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "|",
    "'",
    "\"",
    "${",
    "$(",
    "`",
    "<details>",
    "</script>",
    "https://",
    "..",
    "\u{0}",
    "\u{202e}",
    "\u{feff}",
    "é",
    "!!",
    "---",
    "0",
    "9999999999999999999",
];

fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = seeds.get(random.below(seeds.len())).cloned().unwrap_or_default();
    for _ in 0..=random.below(8) {
        let at = random.below(data.len() + 1);
        match random.below(7) {
            0 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte = u8::try_from(random.below(256)).unwrap_or(0);
                }
            }
            1 => {
                let to = (at + random.below(24)).min(data.len());
                data.drain(at..to);
            }
            2 => {
                data.splice(at..at, WORDS[random.below(WORDS.len())].bytes());
            }
            3 => {
                let word = WORDS[random.below(WORDS.len())].repeat(1 + random.below(300));
                data.splice(at..at, word.bytes());
            }
            4 => data.truncate(at),
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(200)).min(other.len());
                data.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let to = (at + random.below(64)).min(data.len());
                let piece = data[at..to].to_vec();
                data.extend(piece);
            }
        }
        data.truncate(1 << 16);
    }
    data
}

/// Entries whose inputs take milliseconds each: they get a twentieth of the inputs.
const SLOW: &[&str] = &["page", "recipe", "shell"];

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).expect("readable"))
        .collect()
}

#[test]
fn no_entry_panics_on_the_corpus_or_on_inputs_made_from_it() {
    let inputs = std::env::var("COUNTERSIGN_FUZZ_INPUTS")
        .ok()
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(2_000);
    for (name, entry) in ENTRIES {
        let seeds = corpus(name);
        assert!(!seeds.is_empty(), "{name} has no seed");
        let mut random = Random(7);
        let inputs = if SLOW.contains(name) { inputs / 20 } else { inputs };
        let made = (0..inputs).map(|_| mutate(&seeds, &mut random)).collect::<Vec<_>>();
        for data in seeds.iter().chain(&made) {
            if catch_unwind(AssertUnwindSafe(|| entry(data))).is_err() {
                let file = std::env::temp_dir().join(format!("countersign-fuzz-{name}"));
                std::fs::write(&file, data).expect("written");
                panic!("{name}: see the message above; the input is kept in {}", file.display());
            }
        }
    }
}

#[test]
fn every_entry_is_a_target_and_every_target_an_entry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz_targets");
    let manifest = std::fs::read_to_string(folder.join("../Cargo.toml")).expect("text");
    let mut targets: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    let entries: Vec<String> = ENTRIES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets, entries);
    for name in entries {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is no [[bin]]");
        let text = std::fs::read_to_string(folder.join(format!("{name}.rs"))).expect("text");
        assert!(
            text.contains(&format!("entry(\"{name}\")")),
            "{name} runs another entry"
        );
    }
}
