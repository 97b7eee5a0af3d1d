//! What is tried: figures of the sheet and of the traffic, one by one or each with each.

use bywash_core::DeviceSheet;
use bywash_core::device::LANES_MAX;
use std::fmt;
use std::str::FromStr;

/// A figure that can be swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Requests per second.
    Rate,
    /// Circuits at a time.
    Slots,
    /// All there is of the sheet's area.
    Area,
    /// Requests side by side.
    Lanes,
    /// Milliseconds to load, device and end to end alike.
    Reconfiguration,
    /// Nanoseconds added to every request.
    Overhead,
}

const KEYS: [(Key, &str); 6] = [
    (Key::Rate, "rate"),
    (Key::Slots, "slots"),
    (Key::Area, "area"),
    (Key::Lanes, "lanes"),
    (Key::Reconfiguration, "reconfiguration"),
    (Key::Overhead, "overhead"),
];

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KEYS.iter().find(|(key, _)| key == self).map_or("", |(_, name)| name))
    }
}

/// `KEY=VALUE,VALUE,...`
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What is swept.
    pub key: Key,
    /// What is tried.
    pub values: Vec<f64>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').ok_or_else(|| format!("'{text}' is not of the form KEY=VALUE,VALUE"))?;
        let key = KEYS.iter().find(|(_, known)| *known == name).map(|(key, _)| *key).ok_or_else(|| {
            let names: Vec<&str> = KEYS.iter().map(|(_, name)| *name).collect();
            format!("'{name}' cannot be swept; {} can", names.join(", "))
        })?;
        let value = |text: &str| {
            let figure: f64 = text.trim().parse().map_err(|_| format!("{name}: '{text}' is not a number"))?;
            let fine = match key {
                Key::Slots => figure >= 1.0 && figure.fract() == 0.0,
                Key::Lanes => (1.0..=LANES_MAX as f64).contains(&figure) && figure.fract() == 0.0,
                Key::Rate | Key::Area => figure > 0.0,
                Key::Reconfiguration | Key::Overhead => figure >= 0.0,
            };
            if fine && figure.is_finite() { Ok(figure) } else { Err(format!("{name}: {text} makes no sense; {}", wanted(key))) }
        };
        Ok(Self { key, values: values.split(',').map(value).collect::<Result<_, _>>()? })
    }
}

fn wanted(key: Key) -> &'static str {
    match key {
        Key::Slots => "a whole number of at least 1 is expected",
        Key::Lanes => "a whole number from 1 to 4096 is expected",
        Key::Rate | Key::Area => "a number above 0 is expected",
        Key::Reconfiguration | Key::Overhead => "a number of at least 0 is expected",
    }
}

/// One value of each key.
pub type Point = Vec<(Key, f64)>;

/// A value as it was meant: not three hundred digits of a power of ten.
pub fn shown(value: f64) -> String {
    if value == 0.0 || (1e-6..1e15).contains(&value) { value.to_string() } else { format!("{value:e}") }
}

/// As part of a title: each value with its key.
pub fn named(point: &Point) -> String {
    point.iter().map(|(key, value)| format!(", {key} {}", shown(*value))).collect()
}

/// Each with each; one empty point if nothing is swept.
pub fn points<'a>(sweeps: impl IntoIterator<Item = &'a Sweep>) -> Vec<Point> {
    let mut points = vec![Point::new()];
    for Sweep { key, values } in sweeps {
        let with =
            |point: &Point| values.iter().map(|&value| point.iter().copied().chain([(*key, value)]).collect()).collect::<Vec<Point>>();
        points = points.iter().flat_map(with).collect();
    }
    points
}

/// A sheet with the figures of a point in place of its own.
///
/// # Errors
/// Says which circuit does not fit, and which sheet has no area.
pub fn apply(sheet: &DeviceSheet, point: &Point) -> Result<DeviceSheet, String> {
    let mut sheet = sheet.clone();
    for &(key, value) in point {
        match key {
            Key::Rate => {}
            Key::Slots if value as usize > sheet.cores.len() => {
                let (name, most) = (&sheet.name, sheet.cores.len());
                return Err(format!("slots={value}: '{name}' has {most} circuits to hold, so 1 to {most} can be tried"));
            }
            Key::Slots => sheet.slots = Some(value as usize),
            Key::Lanes => sheet.lanes = value as usize,
            Key::Overhead => sheet.overhead_ns = value as u64,
            Key::Reconfiguration => {
                sheet.reconfiguration.device_ns = (value * 1e6) as u64;
                sheet.reconfiguration.end_to_end_ns = (value * 1e6) as u64;
            }
            Key::Area => {
                let name = &sheet.name;
                let area = sheet.area.as_mut().ok_or_else(|| format!("area: the sheet of '{name}' counts slots alone"))?;
                area.total = value;
                if let Some(core) = sheet.cores.iter().find(|core| core.area > value) {
                    return Err(format!("area={value}: '{}' takes {} on '{name}'", core.name, core.area));
                }
            }
        }
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_swept_is_checked() {
        assert_eq!("slots=1,2".parse(), Ok(Sweep { key: Key::Slots, values: vec![1.0, 2.0] }));
        let error = |text: &str| text.parse::<Sweep>().unwrap_err();
        assert!(error("slot=1").contains("rate, slots, area, lanes, reconfiguration, overhead can"));
        for text in
            ["slots=0", "slots=1.5", "lanes=0", "lanes=5000", "rate=-1", "rate=0", "reconfiguration=-1", "rate=inf", "rate=many", "rate="]
        {
            assert!(error(text).starts_with(text.split('=').next().unwrap()), "{text}: {}", error(text));
        }
        assert!(error("slots").contains("KEY=VALUE"));
    }

    #[test]
    fn values_are_shown_as_they_were_meant() {
        assert_eq!([0.0, 750.0, 0.25, 1e300, 1e-9].map(shown), ["0", "750", "0.25", "1e300", "1e-9"]);
        assert_eq!(named(&vec![(Key::Rate, 1e300), (Key::Slots, 2.0)]), ", rate 1e300, slots 2");
    }

    #[test]
    fn each_is_tried_with_each() {
        let [a, b] = ["slots=1,2", "rate=10,20,30"].map(|text| text.parse::<Sweep>().unwrap());
        let points = points([&a, &b]);
        assert_eq!((points.len(), &points[5]), (6, &vec![(Key::Slots, 2.0), (Key::Rate, 30.0)]));
        assert_eq!(super::points([]), [Point::new()]);
    }

    #[test]
    fn a_point_changes_the_sheet() {
        let sheet = DeviceSheet::shipped("niwa2005-area").unwrap().unwrap();
        let changed =
            apply(&sheet, &vec![(Key::Slots, 3.0), (Key::Reconfiguration, 1.5), (Key::Overhead, 9.0), (Key::Area, 60.0)]).unwrap();
        assert_eq!((changed.slots, changed.reconfiguration.end_to_end_ns, changed.overhead_ns), (Some(3), 1_500_000, 9));
        let error = apply(&sheet, &vec![(Key::Area, 49.0)]).unwrap_err();
        assert!(error.contains("area=49") && error.contains("'Camellia' takes 50"), "{error}");
        assert_eq!(apply(&sheet, &vec![(Key::Lanes, 32.0), (Key::Slots, 10.0)]).unwrap().lanes, 32);
        let error = apply(&sheet, &vec![(Key::Slots, 11.0)]).unwrap_err();
        assert!(error.contains("slots=11") && error.contains("1 to 10"), "{error}");
    }
}
