//! The suite, over the paper's card made a thousand times as fast: what counts here is the bytes.

use bywash_core::CostSheet;
use bywash_engine_board::{Board, CARDS, Waiting};

fn card() -> Board {
    let (name, text) = CARDS[0];
    let mut costs = CostSheet::from_toml(text, name).expect("a card that comes along is sound");
    costs.handover_ns /= 1e3;
    costs.algorithms.values_mut().flat_map(|curve| &mut curve.points).for_each(|(_, ns)| *ns /= 1e3);
    Board::new(costs, Waiting::FixedSleep).expect("a card")
}

bywash_conformance::suite!(card());
