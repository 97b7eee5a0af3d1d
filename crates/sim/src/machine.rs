//! What requests cost on a machine with software and one reconfigurable engine.

use crate::trace::Request;
pub use bywash_core::device::{Line, Scope};
use bywash_policy::reload::{Asked, Circuit, Circuits};

/// One circuit of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitCost {
    /// Its name.
    pub name: String,
    /// In software.
    pub software: Line,
    /// On the circuit.
    pub hardware: Line,
}

/// A machine. Requests are served one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// What the engine can hold.
    pub circuits: Vec<CircuitCost>,
    /// How many of them at a time.
    pub slots: usize,
    /// What is gone while others are loaded.
    pub scope: Scope,
    /// Nanoseconds to load the device, or one slot.
    pub load_ns: u64,
    /// Nanoseconds added to every request.
    pub overhead_ns: u64,
}

impl Machine {
    /// What a policy is told of a request.
    #[inline]
    pub fn asked(&self, request: &Request) -> Asked {
        let cost = &self.circuits[usize::from(request.circuit.0)];
        let Request { circuit, bytes, .. } = *request;
        Asked { circuit, bytes, software_ns: cost.software.ns(bytes), hardware_ns: cost.hardware.ns(bytes) }
    }

    /// Nanoseconds until `wanted` is there instead of `loaded`.
    pub fn loading_ns(&self, loaded: Circuits, wanted: Circuits) -> u64 {
        match self.scope {
            Scope::Device => self.load_ns,
            Scope::Slot => self.load_ns * wanted.without_all(loaded).len() as u64,
        }
    }

    /// What still computes while `wanted` takes the place of `loaded`.
    pub fn kept(&self, loaded: Circuits, wanted: Circuits) -> Circuits {
        match self.scope {
            Scope::Device => Circuits::NONE,
            Scope::Slot => loaded.and(wanted),
        }
    }

    /// The circuit of that name.
    pub fn circuit(&self, name: &str) -> Option<Circuit> {
        self.circuits.iter().position(|circuit| circuit.name == name).map(|place| Circuit(place as u8))
    }
}
