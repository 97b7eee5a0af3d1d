//! What an engine says of itself must hang together.

use crate::checker::Checker;
use bywash_core::{Algorithm, CostSheet};

pub(crate) fn run(checker: &mut Checker<'_>) {
    let engine = checker.engine;
    let name = engine.name();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let mut expect = |holds: bool, what: String| checker.check_engine(None, holds, || what);
    expect(plain, format!("the name '{name}' is not short, lower-case and without spaces"));
    expect(!engine.describe().is_empty() && !engine.describe().contains('\n'), "the description is not one line".into());
    expect(engine.workers() >= 1, "it has no worker".into());
    expect(engine.batch_max() >= 1, "a batch holds nothing".into());
    let capabilities = engine.capabilities();
    expect(!capabilities.is_empty(), "it can do nothing".into());
    let mut sorted = capabilities.to_vec();
    sorted.sort();
    sorted.dedup();
    expect(sorted.len() == capabilities.len(), "a capability is listed twice".into());
    for &algorithm in capabilities {
        let lanes = engine.lanes(algorithm);
        let holds = (1..=engine.batch_max()).contains(&lanes);
        checker.check(algorithm, holds, || format!("{lanes} lanes, but batches of up to {}", engine.batch_max()));
    }
    for algorithm in Algorithm::ALL {
        let listed = capabilities.contains(algorithm);
        checker.check(*algorithm, engine.supports(*algorithm) == listed, || "supports() and capabilities() differ".into());
    }
    match engine.cost_sheet() {
        Some(sheet) => cost_sheet(checker, &sheet),
        None => checker.skip(None, "cost sheet: the engine has none, so the manager measures"),
    }
}

fn cost_sheet(checker: &mut Checker<'_>, sheet: &CostSheet) {
    let engine = checker.engine;
    let again = sheet.to_toml().and_then(|text| CostSheet::from_toml(&text, "the engine's own cost sheet"));
    let mut expect = |holds: bool, what: String| checker.check_engine(None, holds, || what);
    expect(again.as_ref() == Ok(sheet), format!("the cost sheet does not survive being written and read: {:?}", again.err()));
    expect(sheet.engine == engine.name(), format!("the cost sheet is of '{}'", sheet.engine));
    expect(engine.late().is_none() || engine.is_modelled(), "it is late by no model: only a modelled engine is".into());
    expect(sheet.modelled == engine.is_modelled(), "engine and cost sheet differ on whether they are modelled".into());
    for &algorithm in engine.capabilities() {
        let priced = sheet.estimate_ns(algorithm, 1024).is_some_and(|ns| ns.is_finite() && ns > 0.0);
        checker.check(algorithm, priced, || "no price for 1 KiB".into());
        let rises = sheet.estimate_ns(algorithm, 1 << 20) >= sheet.estimate_ns(algorithm, 1 << 10);
        checker.check(algorithm, rises, || "1 MiB is cheaper than 1 KiB".into());
    }
}
