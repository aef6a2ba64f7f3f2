//! Recipes, tables of flags and llm-d recipes.

pub(crate) fn run(data: &[u8]) {
    countersign_launch::fuzz_recipe(data);
}
