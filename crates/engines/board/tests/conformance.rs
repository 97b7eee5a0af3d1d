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

/// The suite, over ohgama2008's module, in no time at all.
mod module {
    use bywash_core::CostSheet;
    use bywash_engine_board::{Board, CARDS, Waiting};

    fn module() -> Board {
        let (name, text) = CARDS.iter().find(|(name, _)| *name == "ixp425").expect("it comes along");
        let mut costs = CostSheet::from_toml(text, name).expect("and is sound");
        (costs.handover_ns, costs.transfer_ns_per_byte) = (0.0, 0.0);
        costs.algorithms.values_mut().flat_map(|curve| &mut curve.points).for_each(|(_, ns)| *ns /= 1e5);
        Board::new(costs, Waiting::FixedSleep).expect("a module")
    }

    bywash_conformance::suite!(module());
}

/// The suite, over niwa2005's device, a thousand times as fast and with room for all of its circuits.
mod fpga {
    use bywash_core::{DeviceSheet, Engine};
    use bywash_engine_board::Fpga;

    fn loaded() -> Fpga {
        let mut sheet = DeviceSheet::shipped("niwa2005").expect("it comes along").expect("and is sound");
        (sheet.slots, sheet.area, sheet.overhead_ns) = (Some(sheet.cores.len()), None, 0);
        sheet.reconfiguration.end_to_end_ns = 1;
        sheet.circuits.iter_mut().for_each(|circuit| circuit.hardware.ns_per_byte /= 1e3);
        let fpga = Fpga::new(sheet).expect("a device");
        fpga.load(fpga.capabilities()).expect("room for all");
        fpga
    }

    bywash_conformance::suite!(loaded());
}
