//! The lines that the gate reads, against git itself, on made-up files large and small.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may stop and speak")]

mod support;

use countersign_records::changelog::added_lines;

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(n).unwrap()).unwrap()
    }
}

fn pair(random: &mut Random) -> (Vec<String>, Vec<String>) {
    let length = [5, 20, 100, 600, 3000][random.below(5)];
    let words = [2, 5, 30, 400, 100_000][random.below(5)];
    let line = |random: &mut Random| match random.below(8) {
        0 => "\n".to_owned(),
        1 => "  \n".to_owned(),
        n => format!("{}{}\n", " ".repeat(2 * (n % 4)), random.below(words)),
    };
    let old: Vec<String> = (0..length).map(|_| line(random)).collect();
    let mut new = old.clone();
    for _ in 0..[0, 1, 3, 20, length / 4][random.below(5)] {
        let at = random.below(new.len() + 1);
        match random.below(5) {
            0 if at < new.len() => _ = new.remove(at),
            1 => new.insert(at, line(random)),
            2 if at < new.len() => new[at] = line(random),
            3 => {
                // A block is copied from elsewhere.
                let from = random.below(new.len() + 1);
                let to = (from + random.below(30)).min(new.len());
                let block = new[from..to].to_vec();
                new.splice(at..at, block);
            }
            _ => {
                let end = (at + random.below(10)).min(new.len());
                new.drain(at..end);
            }
        }
    }
    (old, new)
}

#[test]
fn git_adds_the_same_lines() {
    if support::corpus().is_none() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("changelog-diff-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut differ = 0;
    let count = 400;
    for case in 0..count {
        let (old, new) = pair(&mut random);
        let (mut old, mut new) = (old.concat(), new.concat());
        if random.below(10) == 0 {
            old.pop();
        }
        if random.below(10) == 0 {
            new.pop();
        }
        std::fs::write(dir.join("a"), &old).unwrap();
        std::fs::write(dir.join("b"), &new).unwrap();
        let diff = std::process::Command::new("git")
            .current_dir(&dir)
            .args(["diff", "--no-index", "a", "b"])
            .output();
        let diff = String::from_utf8(diff.unwrap().stdout).unwrap();
        let expected: Vec<&str> = diff
            .split('\n')
            .filter(|l| l.starts_with('+') && !l.starts_with("+++"))
            .map(|l| &l[1..])
            .collect();
        let ours = added_lines(old.as_bytes(), new.as_bytes());
        if ours.added != expected.join("\n") {
            differ += 1;
            eprintln!(
                "case {case}: {} and {} lines differ",
                old.lines().count(),
                new.lines().count()
            );
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(differ, 0, "of {count}");
}
