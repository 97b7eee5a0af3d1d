//! What a device can hold, as its sheet says.

use crate::reload::{Circuit, Circuits, Fit};
use bywash_core::Algorithm;
use bywash_core::device::DeviceSheet;

/// What a sheet describes. A circuit here is a core of the sheet, with all of its modes.
#[derive(Clone, Debug)]
pub struct Fabric {
    sheet: DeviceSheet,
    fit: Fit,
}

impl Fabric {
    /// What a sheet describes.
    pub fn new(sheet: DeviceSheet) -> Self {
        Self { fit: Fit::of(&sheet), sheet }
    }

    /// How many circuits there are.
    pub fn circuits(&self) -> usize {
        self.sheet.cores.len()
    }

    /// All of them.
    pub fn all(&self) -> Circuits {
        Circuits::first(self.circuits())
    }

    /// The circuit that computes an algorithm.
    pub fn circuit(&self, algorithm: Algorithm) -> Option<Circuit> {
        self.sheet.circuit(algorithm).map(|mode| Circuit(mode.core as u8))
    }

    /// What circuits compute.
    pub fn algorithms(&self, circuits: Circuits) -> Vec<Algorithm> {
        let modes = self.sheet.circuits.iter().filter(|mode| circuits.contains(Circuit(mode.core as u8)));
        modes.filter_map(|mode| mode.algorithm).collect()
    }

    /// The circuits that compute these; `None` if there is not one for each.
    pub fn set(&self, algorithms: &[Algorithm]) -> Option<Circuits> {
        algorithms.iter().map(|&algorithm| self.circuit(algorithm)).collect()
    }

    /// Which sets the device has room for.
    pub fn fit(&self) -> &Fit {
        &self.fit
    }

    /// A set with this circuit in it, and of the others as many as fit beside it.
    pub fn with(&self, others: Circuits, circuit: Circuit) -> Circuits {
        others.iter().fold(Circuits::NONE.with(circuit), |set, other| {
            let more = set.with(other);
            if self.fit.holds(more) { more } else { set }
        })
    }

    /// What still computes while `wanted` takes the place of `loaded`.
    pub fn kept(&self, loaded: Circuits, wanted: Circuits) -> Circuits {
        loaded.kept(wanted, self.sheet.reconfiguration.scope)
    }

    /// Nanoseconds from the decision until `wanted` is there, where `kept` stays.
    pub fn loading_ns(&self, kept: Circuits, wanted: Circuits) -> u64 {
        self.sheet.reconfiguration.loading_ns(wanted.without_all(kept).len())
    }
}
