//! The cores of a reconfigurable device on a clock that somebody else reads: what is there, when it is free, what loading takes.

use bywash_core::device::{DeviceSheet, Scope};
use bywash_core::{Algorithm, Time};
use std::sync::Arc;

/// Why something cannot be done, in words.
pub(crate) type Refusal = String;

/// What the device holds. Cores are numbered as on the sheet.
pub(crate) struct Cores {
    sheet: Arc<DeviceSheet>,
    /// Of each core, whether it can be given work.
    there: Vec<bool>,
    /// Of each core, when it has done what it was given.
    free: Vec<Time>,
    loading: bool,
    loads: u64,
}

impl Cores {
    pub(crate) fn new(sheet: Arc<DeviceSheet>) -> Self {
        let count = sheet.cores.len();
        Self { sheet, there: vec![false; count], free: vec![Time::ZERO; count], loading: false, loads: 0 }
    }

    fn core(&self, algorithm: Algorithm) -> Option<usize> {
        self.sheet.circuit(algorithm).map(|mode| mode.core)
    }

    /// Gives the circuit of an algorithm work of so long; when that is done.
    pub(crate) fn take(&mut self, now: Time, algorithm: Algorithm, service_ns: u64) -> Result<Time, Refusal> {
        let core = self.core(algorithm).filter(|&core| self.there[core]);
        let core = core.ok_or_else(|| format!("its circuit for {algorithm} is not loaded"))?;
        self.free[core] = self.free[core].max(now) + service_ns;
        Ok(self.free[core])
    }

    /// Begins to load the circuits of these algorithms in the place of what is there. What has to go does what it was given first, and takes nothing new. The
    /// cores that there will be, and when.
    pub(crate) fn load(&mut self, now: Time, algorithms: &[Algorithm]) -> Result<(Vec<bool>, Time), Refusal> {
        if self.loading {
            return Err("it is loading circuits already".to_owned());
        }
        let mut wanted = vec![false; self.there.len()];
        for &algorithm in algorithms {
            wanted[self.core(algorithm).ok_or_else(|| format!("its sheet has no circuit for {algorithm}"))?] = true;
        }
        self.check_room(&wanted)?;
        let reconfiguration = self.sheet.reconfiguration;
        let (mut start, mut new) = (now, 0);
        for (core, &wanted) in wanted.iter().enumerate() {
            let stays = self.there[core] && wanted && reconfiguration.scope == Scope::Slot;
            if self.there[core] && !stays {
                start = start.max(self.free[core]);
            }
            new += usize::from(wanted && !stays);
            self.there[core] = stays;
        }
        self.loading = true;
        Ok((wanted, start + reconfiguration.loading_ns(new)))
    }

    /// What was loaded is there.
    pub(crate) fn arrived(&mut self, cores: Vec<bool>) {
        self.there = cores;
        self.loading = false;
        self.loads += 1;
    }

    fn check_room(&self, wanted: &[bool]) -> Result<(), Refusal> {
        let chosen = || self.sheet.cores.iter().zip(wanted).filter(|&(_, &wanted)| wanted).map(|(core, _)| core);
        let names = || chosen().map(|core| core.name.as_str()).collect::<Vec<_>>().join(", ");
        let (count, area): (usize, f64) = (chosen().count(), chosen().map(|core| core.area).sum());
        match (self.sheet.slots, &self.sheet.area) {
            (Some(slots), _) if count > slots => Err(format!("{} do not fit in its {slots} slots", names())),
            (_, Some(device)) if area > device.total * (1.0 + 1e-9) => {
                Err(format!("{} take {area:.1} and it has {} {}", names(), device.total, device.unit))
            }
            _ => Ok(()),
        }
    }

    /// What it can compute now.
    pub(crate) fn loaded(&self) -> Vec<Algorithm> {
        let modes = self.sheet.circuits.iter().filter(|mode| self.there[mode.core]);
        modes.filter_map(|mode| mode.algorithm).collect()
    }

    /// How often circuits have been loaded.
    pub(crate) fn loads(&self) -> u64 {
        self.loads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const AES: Algorithm = Algorithm::Aes128Ecb;
    const RC6: Algorithm = Algorithm::Rc6_128Ecb;
    const DES: Algorithm = Algorithm::DesEcb;

    fn cores(name: &str) -> Cores {
        Cores::new(Arc::new(DeviceSheet::shipped(name).unwrap().unwrap()))
    }

    fn loaded(mut cores: Cores, algorithms: &[Algorithm]) -> Cores {
        let (wanted, _) = cores.load(Time::ZERO, algorithms).unwrap();
        cores.arrived(wanted);
        cores
    }

    #[test]
    fn a_circuit_does_one_after_the_other_and_circuits_work_side_by_side() {
        let mut cores = loaded(cores("niwa2005"), &[AES, RC6]);
        let take = |cores: &mut Cores, now, algorithm| cores.take(Time(now), algorithm, 10);
        assert_eq!(take(&mut cores, 0, AES), Ok(Time(10)));
        assert_eq!(take(&mut cores, 0, RC6), Ok(Time(10)));
        assert_eq!(take(&mut cores, 5, AES), Ok(Time(20)), "behind the first");
        assert_eq!(take(&mut cores, 50, AES), Ok(Time(60)));
        assert!(take(&mut cores, 50, DES).unwrap_err().contains("DES-ECB is not loaded"));
    }

    #[test]
    fn the_whole_device_is_written_after_what_it_was_given_and_is_gone_meanwhile() {
        let mut cores = loaded(cores("niwa2005"), &[AES, RC6]);
        cores.take(Time(0), AES, 5 * MS).unwrap();
        let (wanted, there) = cores.load(Time(1), &[AES, DES]).unwrap();
        assert_eq!(there, Time(65 * MS), "5 ms of work, 60 ms of loading");
        assert!(cores.take(Time(2), AES, 1).is_err(), "it stays, but all is written");
        assert!(cores.load(Time(3), &[AES]).unwrap_err().contains("already"));
        cores.arrived(wanted);
        assert_eq!((cores.loaded(), cores.loads()), (vec![DES, AES], 2));
    }

    #[test]
    fn slot_by_slot_the_rest_works_on() {
        let mut sheet = DeviceSheet::shipped("niwa2005").unwrap().unwrap();
        sheet.reconfiguration.scope = Scope::Slot;
        let mut cores = loaded(Cores::new(Arc::new(sheet)), &[AES, RC6]);
        let (wanted, there) = cores.load(Time(MS), &[AES, DES]).unwrap();
        assert_eq!(there, Time(61 * MS), "one slot");
        assert_eq!(cores.take(Time(MS), AES, 5), Ok(Time(MS + 5)));
        assert!(cores.take(Time(MS), RC6, 5).is_err());
        cores.arrived(wanted);
        assert!(cores.take(Time(there.0), DES, 5).is_ok());
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut cores = loaded(cores("niwa2005"), &[AES]);
        assert!(cores.load(Time(0), &[AES, RC6, DES]).unwrap_err().contains("2 slots"));
        assert!(cores.load(Time(0), &[Algorithm::X25519]).unwrap_err().contains("X25519"));
        assert_eq!(cores.loaded(), [AES]);
        let mut by_area = super::tests::cores("niwa2005-area");
        assert!(by_area.load(Time(0), &[AES, RC6, Algorithm::Serpent128Ecb]).unwrap_err().contains("100 % of its slices"));
        assert!(by_area.load(Time(0), &[RC6, DES, Algorithm::DesCbc, Algorithm::TripleDesCbc]).is_ok());
    }

    #[test]
    fn modes_of_a_core_come_and_work_together() {
        let mut cores = loaded(cores("niwa2005-cores"), &[AES]);
        assert_eq!(cores.loaded(), [AES, Algorithm::Aes128Cbc]);
        cores.take(Time(0), AES, 10).unwrap();
        assert_eq!(cores.take(Time(0), Algorithm::Aes128Cbc, 10), Ok(Time(20)), "one core");
    }
}
