//! What shell scripts say and do, kept from one judgement to the next: of the scripts that touched entries run, most are as
//! they were at the judgement before.

use std::sync::{Arc, Mutex};

use countersign_shell::RawCommand;

use super::acts::Act;
use crate::share::locked;

/// Most scripts that are kept.
const SCRIPTS: usize = 512;

/// Most bytes of their texts; what is known of a script takes some twenty times as much.
const BYTES: usize = 1 << 20;

/// A script that was read.
#[derive(Debug)]
pub struct Said {
    /// Its commands.
    pub commands: Vec<RawCommand>,
    /// What they do to the engine or the model, in file order.
    pub acts: Vec<Act>,
    /// False where reading it ended at a bound.
    pub whole: bool,
}

/// The scripts that were asked for last, by path and text. It belongs to one set of rules.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Vec<Script>>);

/// Path, text, and what was read.
type Script = (Box<str>, Arc<str>, Arc<Said>);

impl Seen {
    /// What is known of a script; read if nothing is.
    pub fn get(&self, path: &str, text: &Arc<str>, read: impl FnOnce() -> Said) -> Arc<Said> {
        if let Some(known) = self.find(path, text) {
            return known;
        }
        let said = Arc::new(read());
        let mut seen = locked(&self.0);
        seen.insert(0, (path.into(), text.clone(), said.clone()));
        let mut bytes = 0;
        let fits = |(_, text, _): &&Script| {
            bytes += text.len();
            bytes <= BYTES
        };
        let kept = seen.iter().take(SCRIPTS).take_while(fits).count();
        seen.truncate(kept);
        said
    }

    /// What is known of a script, which moves to the front.
    fn find(&self, path: &str, text: &Arc<str>) -> Option<Arc<Said>> {
        let mut seen = locked(&self.0);
        let at = seen
            .iter()
            .position(|(known, content, _)| &**known == path && (Arc::ptr_eq(content, text) || content == text))?;
        seen.get_mut(..=at)?.rotate_right(1);
        seen.first().map(|(_, _, said)| said.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> Said {
        Said {
            commands: Vec::new(),
            acts: Vec::new(),
            whole: true,
        }
    }

    /// Whether it had to be read.
    fn read(seen: &Seen, path: &str, text: &str) -> bool {
        let mut read = false;
        seen.get(path, &text.into(), || {
            read = true;
            said()
        });
        read
    }

    #[test]
    fn a_script_is_read_once_for_its_path_and_text() {
        let seen = Seen::default();
        assert!(read(&seen, "a.sh", "x") && read(&seen, "b.sh", "x") && read(&seen, "a.sh", "y"));
        assert!(!read(&seen, "a.sh", "x") && !read(&seen, "b.sh", "x") && !read(&seen, "a.sh", "y"));
    }

    #[test]
    fn what_was_asked_for_longest_ago_is_forgotten() {
        let seen = Seen::default();
        for number in 0..SCRIPTS {
            assert!(read(&seen, &number.to_string(), ""));
        }
        assert!(!read(&seen, "0", ""));
        assert!(read(&seen, "more", ""));
        assert!(!read(&seen, "0", "") && read(&seen, "1", ""));
        let half = "x".repeat(BYTES / 2);
        assert!(read(&seen, "long", &half) && read(&seen, "longer", &half));
        assert!(read(&seen, "short", "x") && !read(&seen, "longer", &half) && read(&seen, "long", &half));
        // One that is larger than all that is kept is read each time.
        let large = "x".repeat(BYTES + 1);
        assert!(read(&seen, "large", &large) && read(&seen, "large", &large));
    }
}
