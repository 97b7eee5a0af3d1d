//! Which sets of circuits an engine can hold at a time.

use super::{CIRCUITS_MAX, Circuit, Circuits};
use bywash_core::DeviceSheet;

/// Areas are counted in parts of the whole, whatever their unit and however large: 64 circuits, each as large as the device, are no more than a `u64` holds.
const PARTS: f64 = 1e12;

/// By how many parts a set may be larger than the device: so much is lost where 64 areas are rounded.
const SLACK: u64 = 1000;

/// Steps after which a search in the midst of traffic ends with the best set found so far: some 50 us. Ten circuits need a hundred or two.
const STEPS_LIVE: u64 = 4096;

/// The same where there is time: some seconds at most. Sixty-four circuits of any areas mostly need some thousands.
const STEPS_AT_LEISURE: u64 = 1 << 22;

/// Which sets of circuits an engine can hold at a time: so many, or as many as there is room for.
///
/// Modes that share a core are one circuit here: they are loaded together and take their place once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    circuits: usize,
    slots: usize,
    /// What each circuit takes up; empty where as many as there are slots fit, whichever they are.
    areas: Vec<u64>,
    total: u64,
}

impl Fit {
    /// Any `slots` of so many circuits, at least one and at most all.
    pub fn slots(circuits: usize, slots: usize) -> Self {
        let circuits = circuits.min(CIRCUITS_MAX);
        Self { circuits, slots: slots.clamp(1, circuits.max(1)), areas: Vec::new(), total: 0 }
    }

    /// As many circuits as there is room for, and slots. Areas and their sum are in one unit, finite and above 0, and no circuit is larger than the whole.
    pub fn area(areas: &[f64], total: f64, slots: Option<usize>) -> Self {
        let fit = Self::slots(areas.len(), slots.unwrap_or(usize::MAX));
        // One that does not fit does not fit, however much larger it is.
        let parts = |area: &f64| ((area / total).min(2.0) * PARTS).round() as u64;
        let areas: Vec<u64> = areas[..fit.circuits].iter().map(parts).collect();
        let total = PARTS as u64 + SLACK;
        let mut largest = areas.clone();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        let always = largest[..fit.slots].iter().sum::<u64>() <= total;
        if always { fit } else { Self { areas, total, ..fit } }
    }

    /// What a sheet says of its cores.
    pub fn of(sheet: &DeviceSheet) -> Self {
        match &sheet.area {
            Some(area) => Self::area(&sheet.cores.iter().map(|core| core.area).collect::<Vec<_>>(), area.total, sheet.slots),
            None => Self::slots(sheet.cores.len(), sheet.slots.unwrap_or(usize::MAX)),
        }
    }

    /// How many circuits there are.
    pub fn circuits(&self) -> usize {
        self.circuits
    }

    /// The most circuits that are held at a time, if they are small enough.
    pub fn most(&self) -> usize {
        self.slots
    }

    /// The most circuits for which there is room together, the smallest ones: fewer than slots where the area is what limits.
    pub fn most_together(&self) -> usize {
        let (mut smallest, mut room) = (self.areas.clone(), self.total);
        if smallest.is_empty() {
            return self.slots;
        }
        smallest.sort_unstable();
        let mut has_room = |area: &u64| room.checked_sub(*area).map(|left| room = left).is_some();
        smallest.iter().take(self.slots).take_while(|area| has_room(area)).count()
    }

    /// Whether any sets of as many circuits as there are slots fit.
    pub fn is_by_slots_alone(&self) -> bool {
        self.areas.is_empty()
    }

    /// How much room a circuit takes up, in parts of the whole; nothing where any so many fit.
    pub fn size(&self, circuit: Circuit) -> u64 {
        self.areas.get(usize::from(circuit.0)).copied().unwrap_or(0)
    }

    /// Whether a set fits.
    #[inline]
    pub fn holds(&self, set: Circuits) -> bool {
        set.len() <= self.slots && (self.areas.is_empty() || self.area_of(set) <= self.total)
    }

    /// The set without those circuits, from the last on, for which there is no room.
    #[inline]
    pub fn trimmed(&self, set: Circuits) -> Circuits {
        if self.holds(set) {
            return set;
        }
        let larger = |held: Circuits, circuit| if self.holds(held.with(circuit)) { held.with(circuit) } else { held };
        set.iter().fold(Circuits::NONE, larger)
    }

    /// The set that is worth most; circuits worth nothing are left out. Exactly, but for dozens of circuits that take up as much as they are worth, all but: there it may be a little less.
    pub fn best(&self, worth: impl Fn(Circuit) -> f64) -> Circuits {
        self.search(0.0, &worth, STEPS_AT_LEISURE).unwrap_or_default()
    }

    /// The set that is worth most, if that is more than `floor`. By areas, and among many circuits, it may be a little less than the most: it is looked
    /// for in the midst of traffic.
    #[inline]
    pub fn better(&self, floor: f64, worth: impl Fn(Circuit) -> f64) -> Option<Circuits> {
        self.search(floor, &worth, STEPS_LIVE)
    }

    #[inline]
    fn search(&self, floor: f64, worth: &impl Fn(Circuit) -> f64, steps: u64) -> Option<Circuits> {
        if self.areas.is_empty() {
            let (set, sum) = self.most_worth(worth);
            return (sum > floor).then_some(set);
        }
        Knapsack::new(self, floor, worth, steps).solve()
    }

    /// The most valuable circuits, as many as there are slots.
    #[inline]
    fn most_worth(&self, worth: &impl Fn(Circuit) -> f64) -> (Circuits, f64) {
        let (mut best, mut sum) = (Circuits::NONE, 0.0);
        for _ in 0..self.slots {
            let (mut next, mut most) = (Circuit(0), 0.0);
            for circuit in (0..self.circuits).map(|circuit| Circuit(circuit as u8)) {
                let worth = worth(circuit);
                if worth > most && !best.contains(circuit) {
                    (next, most) = (circuit, worth);
                }
            }
            if most <= 0.0 {
                break;
            }
            best = best.with(next);
            sum += most;
        }
        (best, sum)
    }

    fn area_of(&self, set: Circuits) -> u64 {
        set.iter().map(|circuit| self.areas[usize::from(circuit.0)]).sum()
    }
}

/// Which circuits to take along: branch and bound. Dense ones first; a branch ends where what is left, the last circuit cut to fit, could not make it
/// better than the best so far (Dantzig's bound), nor could as many of the most valuable as there are slots. Where all that is left is of one size, or of multiples of one, room for part
/// of that is none.
struct Knapsack {
    /// Worth, area, and which; by worth per area.
    items: Vec<(f64, u64, Circuit)>,
    /// The greatest worth from an item on.
    greatest: Vec<f64>,
    /// What the areas from an item on are all multiples of.
    unit: Vec<u64>,
    best: (f64, Option<Circuits>),
    steps: u64,
    room: u64,
    slots: usize,
}

impl Knapsack {
    fn new(fit: &Fit, floor: f64, worth: &impl Fn(Circuit) -> f64, steps: u64) -> Self {
        let item = |circuit: usize| (worth(Circuit(circuit as u8)), fit.areas[circuit], Circuit(circuit as u8));
        let mut items: Vec<_> = (0..fit.circuits).map(item).filter(|item| item.0 > 0.0).collect();
        items.sort_by(|a, b| (b.0 * a.1 as f64).total_cmp(&(a.0 * b.1 as f64)));
        let mut greatest: Vec<f64> = items.iter().map(|item| item.0).collect();
        for item in (1..greatest.len()).rev() {
            greatest[item - 1] = greatest[item - 1].max(greatest[item]);
        }
        let mut unit: Vec<u64> = items.iter().map(|item| item.1.max(1)).collect();
        for item in (1..unit.len()).rev() {
            unit[item - 1] = common_divisor(unit[item - 1], unit[item]);
        }
        Self { items, greatest, unit, best: (floor, None), steps, room: fit.total, slots: fit.slots }
    }

    fn solve(mut self) -> Option<Circuits> {
        self.branch(0, Circuits::NONE, 0.0, self.room, self.slots);
        self.best.1
    }

    fn branch(&mut self, item: usize, set: Circuits, sum: f64, room: u64, slots: usize) {
        if sum > self.best.0 {
            self.best = (sum, Some(set));
        }
        if item == self.items.len() || slots == 0 || self.steps == 0 || sum + self.bound(item, room, slots) <= self.best.0 {
            return;
        }
        self.steps -= 1;
        let (worth, area, circuit) = self.items[item];
        if area <= room {
            self.branch(item + 1, set.with(circuit), sum + worth, room - area, slots - 1);
        }
        self.branch(item + 1, set, sum, room, slots);
    }

    fn bound(&self, item: usize, mut room: u64, slots: usize) -> f64 {
        let by_slots = self.greatest[item] * slots as f64;
        room -= room % self.unit[item];
        let mut by_area = 0.0;
        for &(worth, area, _) in &self.items[item..] {
            if area > room {
                by_area += worth * room as f64 / area as f64;
                break;
            }
            by_area += worth;
            room -= area;
        }
        by_area.min(by_slots)
    }
}

/// The greatest.
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(circuits: &[u8]) -> Circuits {
        circuits.iter().copied().map(Circuit).collect()
    }

    #[test]
    fn by_slots_and_by_area() {
        let slots = Fit::slots(5, 2);
        assert!(slots.holds(set(&[1, 4])) && !slots.holds(set(&[1, 2, 4])) && slots.is_by_slots_alone());
        let area = Fit::area(&[60.0, 50.0, 30.0, 20.0], 100.0, None);
        assert!(area.holds(set(&[1, 2, 3])) && !area.holds(set(&[0, 1])) && !area.is_by_slots_alone());
        assert_eq!(area.trimmed(set(&[0, 1, 2])), set(&[0, 2]), "what still fits after what does not is kept");
        assert!(!Fit::area(&[50.0, 30.0, 20.0], 100.0, Some(2)).holds(set(&[0, 1, 2])), "both count");
        assert!(Fit::area(&[50.0, 50.0, 50.0], 100.0, Some(2)).is_by_slots_alone(), "any two fit");
        assert_eq!([&slots, &area, &Fit::area(&[60.0, 50.0, 30.0], 100.0, Some(1))].map(Fit::most_together), [2, 3, 1]);
        assert!(Fit::area(&[0.1, 0.2], 0.3, None).holds(set(&[0, 1])), "in floating point their sum is more");
    }

    #[test]
    fn the_unit_of_areas_does_not_matter() {
        for unit in [1e-300, 1e-6, 1.0, 1e13, 1e16, 1e17, 1e300] {
            let fit = Fit::area(&[60.0, 50.0, 30.0, 20.0].map(|area| area * unit), 100.0 * unit, None);
            assert!(fit.holds(set(&[1, 2, 3])) && !fit.holds(set(&[0, 1])) && !fit.holds(Circuits::first(4)), "{unit:e}");
            let many = Fit::area(&[unit; 64], unit, None);
            assert!(many.holds(set(&[63])) && !many.holds(set(&[0, 63])) && !many.holds(Circuits::first(64)), "{unit:e}");
            assert_eq!(many.best(|circuit| f64::from(circuit.0)), set(&[63]), "{unit:e}");
        }
        assert!(!Fit::area(&[1.0], 1e-300, None).holds(set(&[0])), "more than the whole");
    }

    #[test]
    fn the_papers_device_holds_six_of_its_ten_circuits() {
        let fit = Fit::of(&DeviceSheet::shipped("niwa2005-area").unwrap().unwrap());
        assert_eq!((fit.best(|_| 1.0).len(), fit.most(), fit.most_together()), (6, 10, 6));
        assert_eq!(Fit::of(&DeviceSheet::shipped("niwa2005").unwrap().unwrap()), Fit::slots(10, 2));
        let cores = Fit::of(&DeviceSheet::shipped("niwa2005-cores").unwrap().unwrap());
        assert_eq!((cores.circuits(), cores.best(|_| 1.0).len()), (6, 3));
    }

    /// Dantzig's bound is never reached where the last third of a circuit fits none: without more, all sets of 33 are gone through.
    #[test]
    fn many_circuits_of_one_size_are_soon_decided() {
        let worth = |circuit: Circuit| 1.0 + f64::from(circuit.0) / 1e6;
        for areas in [[3.0; 64], core::array::from_fn(|place| if place % 4 == 0 { 6.0 } else { 3.0 })] {
            let fit = Fit::area(&areas, 100.0, None);
            let mut knapsack = Knapsack::new(&fit, 0.0, &worth, STEPS_LIVE);
            knapsack.branch(0, Circuits::NONE, 0.0, knapsack.room, knapsack.slots);
            assert_eq!(knapsack.best.1.map(Circuits::len), Some(33));
            assert!(knapsack.steps > STEPS_LIVE / 2, "{} steps are left, in the midst of traffic too", knapsack.steps);
        }
        let even = Fit::area(&core::array::from_fn::<f64, 64, _>(|place| 3.0 + (place as f64 * 0.7).fract()), 100.0, None);
        assert!(even.best(|circuit| even.size(circuit) as f64).len() > 20, "what cannot be decided comes to an end");
    }

    proptest! {
        #[test]
        fn the_best_set_is_what_trying_all_finds(items in prop::collection::vec((0u16..100, 1u16..100), 1..11), total in 100u16..300, slots in 1usize..12) {
            let areas: Vec<f64> = items.iter().map(|item| f64::from(item.1)).collect();
            let worth = |circuit: Circuit| f64::from(items[usize::from(circuit.0)].0);
            let sum = |set: Circuits| set.iter().map(worth).sum::<f64>();
            for fit in [Fit::area(&areas, f64::from(total), Some(slots)), Fit::slots(items.len(), slots)] {
                let all = (0..1u32 << items.len()).map(|bits| (0..items.len() as u8).filter(|n| bits >> n & 1 == 1).map(Circuit).collect::<Circuits>());
                let most = all.filter(|&set| fit.holds(set)).map(sum).fold(0.0, f64::max);
                let best = fit.best(worth);
                prop_assert!(fit.holds(best));
                prop_assert_eq!(sum(best), most);
                prop_assert_eq!(fit.better(most, worth), None);
                if most > 0.0 {
                    prop_assert_eq!(fit.better(most - 0.5, worth).map(sum), Some(most));
                }
            }
        }
    }

    #[test]
    fn sixty_four_circuits_of_like_worth_and_area_are_no_trouble() {
        let areas: Vec<f64> = (0..64).map(|n| 10.0 + f64::from(n * 37 % 64) / 7.0).collect();
        let worth = |circuit: Circuit| areas[usize::from(circuit.0)] + f64::from(u32::from(circuit.0) * 29 % 64) / 64.0;
        let fit = Fit::area(&areas, 200.0, None);
        let sum = |set: Circuits| set.iter().map(worth).sum::<f64>();
        let (best, soon) = (fit.best(worth), fit.better(0.0, worth).unwrap());
        assert!(
            fit.holds(best) && fit.holds(soon) && sum(soon) <= sum(best) && sum(soon) > 0.98 * sum(best),
            "{} {}",
            sum(soon),
            sum(best)
        );
    }
}
