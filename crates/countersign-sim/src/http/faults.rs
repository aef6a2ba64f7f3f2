//! Which faults befall which call, counted and drawn so that the same seed gives the same faults.

use crate::world::faults::FaultSpec;
use crate::world::load::WorldError;

/// All faults of a world.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    spec: FaultSpec,
    place: Place,
    seen: u64,
    fired: u64,
    random: u64,
}

#[derive(Debug)]
enum Place {
    Api { method: Option<String>, path: Vec<String> },
    Webhook { event: Option<String> },
}

impl Faults {
    pub(crate) fn new(specs: &[FaultSpec]) -> Result<Self, WorldError> {
        let mut faults = Faults::default();
        for (i, spec) in specs.iter().enumerate() {
            faults
                .add(spec.clone())
                .map_err(|e| WorldError::invalid(format!("faults[{i}]"), e))?;
        }
        Ok(faults)
    }

    /// Adds a fault to those that are there.
    pub(crate) fn add(&mut self, spec: FaultSpec) -> Result<(), String> {
        let words: Vec<&str> = spec.on.split_whitespace().collect();
        let place = match words.as_slice() {
            ["webhook"] => Place::Webhook { event: None },
            ["webhook", event] => Place::Webhook {
                event: Some((*event).to_owned()),
            },
            [method, path] if path.starts_with('/') => Place::Api {
                method: (*method != "*").then(|| method.to_ascii_uppercase()),
                path: path.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect(),
            },
            _ => {
                return Err(format!(
                    "`on: {}` is neither `METHOD /path` nor `webhook [event]`",
                    spec.on
                ));
            }
        };
        for step in [&spec.before, &spec.after].into_iter().flatten() {
            step.action()?;
        }
        if spec.chance.is_some_and(|c| !(0.0..=1.0).contains(&c)) {
            return Err("`chance` is a number from 0 to 1".to_owned());
        }
        let random = spec.seed;
        self.rules.push(Rule {
            spec,
            place,
            seen: 0,
            fired: 0,
            random,
        });
        Ok(())
    }

    /// Drops all faults.
    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// How many faults have fired.
    pub(crate) fn fired(&self) -> u64 {
        self.rules.iter().map(|r| r.fired).sum()
    }

    /// The fault of an API call. The first that fires wins; all that match are counted.
    pub(crate) fn api(&mut self, method: &str, segments: &[String]) -> Option<FaultSpec> {
        self.draw(|place| match place {
            Place::Api { method: m, path } => m.as_ref().is_none_or(|m| m == method) && matches(path, segments),
            Place::Webhook { .. } => false,
        })
    }

    /// The fault of a webhook.
    pub(crate) fn webhook(&mut self, event: &str) -> Option<FaultSpec> {
        self.draw(|place| match place {
            Place::Webhook { event: e } => e.as_ref().is_none_or(|e| e == event),
            Place::Api { .. } => false,
        })
    }

    fn draw(&mut self, here: impl Fn(&Place) -> bool) -> Option<FaultSpec> {
        let mut found: Option<FaultSpec> = None;
        for rule in &mut self.rules {
            if !here(&rule.place) {
                continue;
            }
            rule.seen += 1;
            let s = &rule.spec;
            let due = s.calls.as_ref().is_none_or(|c| c.as_slice().contains(&rule.seen))
                && s.from.is_none_or(|from| rule.seen >= from)
                && s.times.is_none_or(|times| rule.fired < times)
                && s.chance.is_none_or(|chance| uniform(&mut rule.random) < chance);
            if due && found.is_none() {
                rule.fired += 1;
                found = Some(rule.spec.clone());
            }
        }
        found
    }
}

fn matches(pattern: &[String], segments: &[String]) -> bool {
    match (pattern.split_first(), segments.split_first()) {
        (Some((p, _)), _) if p == "**" => true,
        (None, None) => true,
        (Some((p, pattern)), Some((s, segments))) => (p == "*" || p == s) && matches(pattern, segments),
        _ => false,
    }
}

/// The next number of a SplitMix64 sequence, as a fraction. Its constants are those of the published algorithm.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    // 53 bits are exact in a double.
    (z >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::spell::OneOrMany;

    fn path(text: &str) -> Vec<String> {
        text.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn a_fault_fires_on_the_calls_it_names() {
        let spec = FaultSpec {
            on: "GET /repos/*/*/pulls/*/files".into(),
            calls: Some(OneOrMany::One(2)),
            status: Some(502),
            ..FaultSpec::default()
        };
        let mut faults = Faults::new(&[spec]).unwrap();
        let files = path("/repos/o/r/pulls/1/files");
        assert!(faults.api("GET", &files).is_none());
        assert!(faults.api("POST", &files).is_none());
        assert!(faults.api("GET", &path("/repos/o/r/pulls/1")).is_none());
        assert_eq!(faults.api("GET", &files).unwrap().status, Some(502));
        assert!(faults.api("GET", &files).is_none());
        assert!(faults.webhook("push").is_none());
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let spec = FaultSpec {
            on: "* /**".into(),
            chance: Some(0.3),
            seed: 7,
            drop: true,
            ..FaultSpec::default()
        };
        let run = || -> Vec<bool> {
            let mut faults = Faults::new(std::slice::from_ref(&spec)).unwrap();
            (0..200).map(|_| faults.api("GET", &path("/app")).is_some()).collect()
        };
        let first = run();
        assert_eq!(first, run());
        let fired = first.iter().filter(|f| **f).count();
        assert!((30..90).contains(&fired), "{fired} of 200 at 0.3");
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for on in ["", "GET", "GET repos", "webhook a b"] {
            assert!(
                Faults::new(&[FaultSpec {
                    on: on.into(),
                    ..FaultSpec::default()
                }])
                .is_err(),
                "{on}"
            );
        }
    }
}
