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
