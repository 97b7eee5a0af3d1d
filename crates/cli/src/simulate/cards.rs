//! The engines that are compared: their sheets, and the processor beside them.

use crate::failure::Failure;
use crate::terminal::say;
use crate::texts;
use bywash_core::{Algorithm, CostSheet, DeviceSheet};
use bywash_manager::calibrate::{BUDGET, default_cache, load_or_measure_with};
use bywash_policy::Lanes;
use bywash_sim::Machine;
use bywash_sim::machine::CircuitCost;
use std::path::Path;

/// An engine and the name by which it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) place: String,
    pub(crate) sheet: DeviceSheet,
}

impl Card {
    /// A sheet that comes along, by its name, or a file.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        let sheet = match DeviceSheet::shipped(name) {
            Some(sheet) => sheet?,
            None => DeviceSheet::from_toml(&read(name)?, name)?,
        };
        Ok(Self { place: name.to_owned(), sheet })
    }

    /// Its machine, with circuits in the order of `like`, whose numbers the requests bear.
    pub(crate) fn machine(&self, sheet: &DeviceSheet, processor: Option<&CostSheet>, like: &DeviceSheet) -> Result<Machine, Failure> {
        let mut machine = Machine::of(sheet, processor, &self.place)?;
        let find = |wanted: &bywash_core::device::Mode| -> Result<CircuitCost, Failure> {
            let same = |circuit: &&CircuitCost| match (circuit.algorithm, wanted.algorithm) {
                (Some(one), Some(other)) => one == other,
                _ => circuit.name == wanted.name,
            };
            machine.circuits.iter().find(same).cloned().ok_or_else(|| {
                let reason = format!("no circuit for {}, which requests ask for as '{}' has one", wanted.name, like.name);
                Failure::config(format!("{}: {reason}; engines are compared on the same requests", self.place))
            })
        };
        machine.circuits = like.circuits.iter().map(find).collect::<Result<_, _>>()?;
        Ok(machine)
    }
}

/// Engines of one name, such as copies of one sheet with other prices, get their places behind it.
pub(crate) fn tell_apart(mut cards: Vec<Card>) -> Vec<Card> {
    let names: Vec<String> = cards.iter().map(|card| card.sheet.name.clone()).collect();
    for (card, name) in cards.iter_mut().zip(&names) {
        if names.iter().filter(|other| *other == name).count() > 1 {
            card.sheet.name = format!("{name} ({})", card.place);
        }
    }
    cards
}

/// What a name stands for if it is no sheet that comes along.
fn read(name: &str) -> Result<String, Failure> {
    texts::whole(Path::new(name)).map_err(|failure| {
        let known: Vec<&str> = bywash_core::sheets::DEVICES.iter().map(|(name, _)| *name).collect();
        let message = format!("{failure}; sheets that come along: {}", known.join(", "));
        failure.saying(message)
    })
}

/// The cost sheet of the processor: `here` for this machine's, measured where it is not known, or a file. What the cards compute has been asked for, so this
/// machine's sheet has it even if it is legacy.
pub(crate) fn processor(name: &str, cards: &[Card]) -> Result<CostSheet, Failure> {
    if name != "here" {
        return Ok(CostSheet::from_toml(&texts::whole(Path::new(name))?, name)?);
    }
    let engines = bywash_manager::probe().present;
    let engine = engines.iter().find(|engine| engine.name() == "cpu").ok_or_else(|| Failure::failed("no engine 'cpu' here"))?;
    let computed: Vec<Algorithm> = cards.iter().flat_map(|card| &card.sheet.circuits).filter_map(|circuit| circuit.algorithm).collect();
    let (sheet, notes) = load_or_measure_with(&computed, default_cache().as_deref(), &**engine, BUDGET);
    notes.iter().for_each(|note| say!("bywash: {note}"));
    Ok(sheet)
}

/// How many operations gain from going together on the engine of a sheet: as many as the sheet has a time of a batch for, and `otherwise` where it has none.
pub(crate) fn together(costs: &CostSheet, otherwise: usize) -> Lanes {
    let most = |algorithm: Algorithm| Some(costs.curve(algorithm)?.batch.last()?.0 as usize);
    Lanes::by(|algorithm, _| most(algorithm).unwrap_or(otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_sheet_are_told_apart() {
        let card = |sheet: &str, place: &str| Card { place: place.to_owned(), ..Card::find(sheet).unwrap() };
        let cards = tell_apart(vec![card("niwa2005", "a.toml"), card("gpu-h200", "gpu-h200"), card("niwa2005", "b.toml")]);
        let names: Vec<&str> = cards.iter().map(|card| card.sheet.name.as_str()).collect();
        assert_eq!(names, ["niwa2005 (a.toml)", "gpu-h200", "niwa2005 (b.toml)"]);
    }
}
