//! The loads: who asks for what, when, on which machine.

use super::STRETCH;
use crate::{Error, Result};
use bywash_core::{Algorithm, DeviceSheet};
use bywash_manager::ReloadName;
use bywash_sim::generate::{Reading, generate};
use std::path::Path;

/// A request that a client is to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// In seconds from the beginning.
    pub(super) at: f64,
    pub(super) algorithm: Algorithm,
    pub(super) bytes: usize,
}

/// What computes beside the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Software {
    /// The paper's processor, modelled like its device.
    Paper,
    /// This machine's, measured.
    Here,
}

/// How requests come.
#[derive(Clone, Copy)]
enum Arrivals {
    /// By the paper's generator.
    Paper,
    /// Independently of each other, four in five for two ciphers, which change every so many seconds.
    Drifting(f64),
    /// Independently of each other, for these alike.
    Even(&'static [Algorithm]),
}

/// A load.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) software: Software,
    arrivals: Arrivals,
    /// What decides; `predict` alone is learnt from the rehearsal.
    reload: &'static str,
    /// Requests per second.
    rate: f64,
    mean_bytes: f64,
    seconds: f64,
}

/// The generator's longest gap in seconds before its times are stretched: with the paper's, of a day, a minute's load would be one burst.
const LONGEST_GAP: f64 = 20.0;

const CHAINED: [Algorithm; 2] = [Algorithm::DesCbc, Algorithm::TripleDesCbc];

pub(super) const LOADS: [Load; 4] = [
    Load {
        name: "bursts",
        about: "the paper's generator, 40 requests/s, on the paper's processor and device",
        software: Software::Paper,
        arrivals: Arrivals::Paper,
        reload: "tuned",
        rate: 40.0,
        mean_bytes: 24_000.0,
        seconds: 30.0,
    },
    Load {
        name: "drift",
        about: "two ciphers lead and change every 12 s, 60 requests/s, on the paper's processor and device",
        software: Software::Paper,
        arrivals: Arrivals::Drifting(12.0),
        reload: "tuned",
        rate: 60.0,
        mean_bytes: 24_000.0,
        seconds: 36.0,
    },
    Load {
        name: "predict",
        about: "the same with the paper's predictor, learnt from the rehearsal's recording, 40 requests/s",
        software: Software::Paper,
        arrivals: Arrivals::Drifting(12.0),
        reload: "predict",
        rate: 40.0,
        mean_bytes: 24_000.0,
        seconds: 36.0,
    },
    Load {
        name: "processor",
        about: "DES-CBC and 3DES-CBC of 200 kB, 6 requests/s, on this machine's processor, measured, and the paper's device unstretched, which holds both",
        software: Software::Here,
        arrivals: Arrivals::Even(&CHAINED),
        reload: "fixed:DES-CBC,DES-EDE3-CBC",
        rate: 6.0,
        mean_bytes: 200_000.0,
        seconds: 40.0,
    },
];

impl Load {
    /// How much longer the device takes than the paper's.
    pub(super) fn stretch(&self) -> f64 {
        if self.software == Software::Paper { STRETCH } else { 1.0 }
    }

    /// What decides while nothing has been recorded.
    pub(super) fn rehearsed(&self) -> Result<ReloadName> {
        Ok(if self.reload == "predict" { ReloadName::Tuned } else { self.reload.parse()? })
    }

    /// What decides.
    pub(super) fn reload(&self, recording: &Path) -> Result<ReloadName> {
        Ok(if self.reload == "predict" { ReloadName::Predict(recording.display().to_string()) } else { self.reload.parse()? })
    }

    /// The requests: of the rehearsal a third as many, and others.
    pub(super) fn requests(&self, device: &DeviceSheet, rehearsal: bool, quick: bool) -> Result<Vec<Wanted>> {
        let (share, seed) = if rehearsal { (1.0 / 3.0, 11) } else { (1.0, 7) };
        let seconds = self.seconds * share * if quick { 0.1 } else { 1.0 };
        let count = (self.rate * seconds) as usize;
        let ciphers: Vec<Algorithm> = device.circuits.iter().filter_map(|mode| mode.algorithm).collect();
        if let Arrivals::Paper = self.arrivals {
            let trace =
                generate(&Reading { requests: count, mean_bytes: self.mean_bytes, longest_gap: LONGEST_GAP, ..Reading::default() }, seed);
            let stretch = trace.stretch_to(self.rate);
            let cipher = |circuit: u8| ciphers.get(usize::from(circuit)).copied().ok_or_else(|| Error(format!("no circuit {circuit}")));
            let wanted = |request: bywash_sim::trace::Request| {
                Ok(Wanted { at: request.arrival * stretch, algorithm: cipher(request.circuit.0)?, bytes: whole(request.bytes as f64) })
            };
            return trace.iter().map(wanted).collect();
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let mut at = 0.0;
        let wanted = |_| {
            at -= random.f64().max(1e-9).ln() / self.rate;
            let algorithm = match self.arrivals {
                Arrivals::Even(few) => few[random.usize(..few.len())],
                Arrivals::Drifting(period) if random.f64() < 0.8 => {
                    let lead = 2 * (at / period) as usize + random.usize(..2);
                    ciphers[(lead * 3 + seed as usize) % ciphers.len()]
                }
                _ => ciphers[random.usize(..ciphers.len())],
            };
            let bytes = -random.f64().max(1e-9).ln() * self.mean_bytes;
            Wanted { at, algorithm, bytes: whole(bytes) }
        };
        Ok((0..count).map(wanted).collect())
    }
}

/// Whole blocks of 16 bytes, and no more than a client's arena takes with ease.
fn whole(bytes: f64) -> usize {
    (bytes.clamp(16.0, 2e6) as usize).next_multiple_of(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_in_order_and_a_rehearsal_has_others() {
        let device = DeviceSheet::shipped("niwa2005").unwrap().unwrap();
        for load in LOADS {
            let [rehearsal, own] = [true, false].map(|rehearsal| load.requests(&device, rehearsal, false).unwrap());
            assert_eq!(own.len(), (load.rate * load.seconds) as usize, "{}", load.name);
            assert!(rehearsal.len() * 3 <= own.len() && own.iter().zip(&rehearsal).any(|(a, b)| a.bytes != b.bytes), "{}", load.name);
            assert!(own.windows(2).all(|pair| pair[0].at <= pair[1].at), "{}", load.name);
            assert!(own.iter().all(|wanted| wanted.bytes >= 16 && wanted.bytes.is_multiple_of(16)), "{}", load.name);
        }
    }
}
