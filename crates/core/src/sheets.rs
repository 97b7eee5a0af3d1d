//! Sheets that come along: devices that can be simulated, and run as models, by their name.

/// Devices that hold a few circuits at a time: name and [device sheet](crate::DeviceSheet).
pub const DEVICES: &[(&str, &str)] = &[
    ("niwa2005", include_str!("../sheets/niwa2005.toml")),
    ("niwa2005-area", include_str!("../sheets/niwa2005-area.toml")),
    ("niwa2005-cores", include_str!("../sheets/niwa2005-cores.toml")),
    ("munetoh", include_str!("../sheets/munetoh.toml")),
    ("gpu-h200", include_str!("../sheets/gpu-h200.toml")),
];

/// The names of those that run live as an FPGA: their cores compute one request after the other.
pub fn fpgas() -> impl Iterator<Item = &'static str> {
    let one_lane = |name: &str| crate::DeviceSheet::shipped(name).is_some_and(|sheet| sheet.is_ok_and(|sheet| sheet.lanes == 1));
    DEVICES.iter().map(|(name, _)| *name).filter(move |name| one_lane(name))
}

/// A GPU that is not here, and the processor beside it: [cost sheets](crate::CostSheet) with the source of every figure, limits of which nothing was measured or, of the H100, measurements.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    /// Its name.
    pub name: &'static str,
    /// Its sheet as text, to read the sources.
    pub text: &'static str,
    /// The processor's, which has a worker for each of its `lanes`.
    pub processor: &'static str,
}

/// The GPUs that can be simulated: one on a SoC, one of a single-board computer, two on cards.
pub const GPUS: &[Gpu] = &[
    Gpu {
        name: "intel-iris-655",
        text: include_str!("../sheets/intel-iris-655.toml"),
        processor: include_str!("../sheets/intel-iris-655-cpu.toml"),
    },
    Gpu {
        name: "raspberry-pi-4",
        text: include_str!("../sheets/raspberry-pi-4.toml"),
        processor: include_str!("../sheets/raspberry-pi-4-cpu.toml"),
    },
    Gpu {
        name: "nvidia-h200",
        text: include_str!("../sheets/nvidia-h200.toml"),
        processor: include_str!("../sheets/nvidia-h200-cpu.toml"),
    },
    Gpu {
        name: "nvidia-h100",
        text: include_str!("../sheets/nvidia-h100.toml"),
        processor: include_str!("../sheets/nvidia-h100-cpu.toml"),
    },
];

impl Gpu {
    /// One of [`GPUS`] by its name.
    pub fn shipped(name: &str) -> Option<&'static Self> {
        GPUS.iter().find(|gpu| gpu.name == name)
    }

    /// The processor's sheet and its own.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), for a sheet that cannot be read: none of [`GPUS`].
    pub fn sheets(&self) -> crate::Result<(crate::CostSheet, crate::CostSheet)> {
        Ok((crate::CostSheet::from_toml(self.processor, self.name)?, crate::CostSheet::from_toml(self.text, self.name)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceSheet;
    use crate::device::Reconfiguration;

    #[test]
    fn each_sheet_is_read_and_computes_algorithms_of_ours() {
        for (name, _) in DEVICES {
            let sheet = DeviceSheet::shipped(name).unwrap().unwrap_or_else(|error| panic!("{error}"));
            assert!(sheet.modelled && sheet.circuits.iter().all(|circuit| circuit.algorithm.is_some()), "{name}");
        }
        assert!(DeviceSheet::shipped("nothing").is_none());
    }

    #[test]
    fn each_gpu_is_modelled_and_stands_beside_a_processor_that_does_what_it_does() {
        for gpu in GPUS {
            let (processor, sheet) = gpu.sheets().unwrap_or_else(|error| panic!("{error}"));
            assert!(sheet.modelled && processor.modelled && processor.is_processor() && !sheet.is_processor(), "{}", gpu.name);
            assert!(sheet.engine == gpu.name && sheet.watts.is_some() && processor.watts.is_some(), "{}", gpu.name);
            assert!(sheet.algorithms.keys().eq(processor.algorithms.keys()), "{}", gpu.name);
            assert!(sheet.host_ns <= sheet.handover_ns, "{}: the host's part is part of the hand-over", gpu.name);
        }
        assert!(Gpu::shipped("nvidia-h200").is_some() && Gpu::shipped("voodoo").is_none());
    }

    /// takeda section 4.1 and table 1: the GPU overtakes CTR with AES-NI about 128 KiB, and does 3,625 files of 16 MiB in 3 s where one core does 815.
    #[test]
    fn the_gpu_of_the_paper_is_the_papers() {
        let (processor, gpu) = Gpu::shipped("intel-iris-655").unwrap().sheets().unwrap();
        let ns = |sheet: &crate::CostSheet, bytes| sheet.estimate_ns(crate::Algorithm::Aes128Ctr, bytes).unwrap();
        assert!(ns(&gpu, 64 << 10) > ns(&processor, 64 << 10) && ns(&gpu, 256 << 10) < ns(&processor, 256 << 10));
        let files = |sheet| 3e9 / ns(sheet, 16 << 20);
        assert!((files(&processor) - 815.0).abs() < 2.0, "{}", files(&processor));
        assert!((files(&gpu) / 3625.0 - 1.0).abs() < 0.03, "{}: one launch each, which the paper's may not have needed", files(&gpu));
    }

    #[test]
    fn the_card_of_munetoh_does_800_operations_a_second() {
        let card = DeviceSheet::shipped("munetoh").unwrap().unwrap();
        let [rsa] = &card.circuits[..] else { panic!("{:?}", card.circuits) };
        assert_eq!(
            (card.lanes as u64 * 1_000_000_000 / rsa.hardware.ns(128), card.reconfiguration),
            (800, Reconfiguration::NONE),
            "section 3"
        );
        assert!(fpgas().eq(["niwa2005", "niwa2005-area", "niwa2005-cores", "gpu-h200"]), "it is none");
        assert!(rsa.software.unwrap().ns(128) > rsa.hardware.ns(128), "table 1");
    }

    #[test]
    fn the_three_readings_of_the_papers_device_differ_in_what_fits_alone() {
        let [slots, area, cores] = ["niwa2005", "niwa2005-area", "niwa2005-cores"].map(|name| DeviceSheet::shipped(name).unwrap().unwrap());
        assert_eq!((slots.slots, area.slots, cores.slots), (Some(2), None, None));
        assert_eq!((slots.cores.len(), area.cores.len(), cores.cores.len()), (10, 10, 6));
        assert_eq!(slots.cores, area.cores);
        for other in [&area, &cores] {
            assert_eq!((slots.reconfiguration, slots.overhead_ns), (other.reconfiguration, other.overhead_ns));
            for (one, two) in slots.circuits.iter().zip(&other.circuits) {
                assert_eq!((&one.name, one.algorithm, one.hardware, one.software), (&two.name, two.algorithm, two.hardware, two.software));
            }
        }
    }
}
