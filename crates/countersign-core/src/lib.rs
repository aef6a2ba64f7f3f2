//! Ids, evidence, outcomes, verdicts, policy and rendering: the words everything else speaks. Pure.
