//! Stays with a session for a quantum, and waits a little for it, where turning to another is dear.
//!
//! A program that asks for one operation at a time never has the next one waiting when the last one ends: to prefer the session that the module holds changes nothing, unless the
//! module waits for it (as anticipatory disk scheduling does, Iyer and Druschel 2001). It pays when the program comes back sooner than a
//! switch takes. So for each session the time between a result and the next request is learnt; if that is less than a switch, the module waits, up to as long as a switch takes:
//! whoever rents skis until that has cost what a pair costs, and then buys, never pays more than twice what foresight would have. A program usually comes
//! back soon, but now and then the machine runs another before it. Whoever is new is expected back within half a switch.
//!
//! A session's turn ends with its *quantum*, waiting included, when others wait. The first is [`FIRST_SWITCHES`] switches long, so that whoever is new is soon served; of whoever uses a turn up
//! the next is [`QUANTUM_SWITCHES`] long, so that of long work the switches take a twenty-fourth; and after one that it does not use up, or after it was away for long, it begins again
//! (multilevel feedback queues, Corbató 1962, do likewise). A quantum that is said is every turn's. Whose turn is next the discipline below says. Where a switch costs nothing there are no
//! turns, and the discipline below decides alone. While others wait, time for which the module waits for a session is time that its tenant has had: the discipline below is told.
//!
//! *Bounded idleness*: for each operation of a turn a switch's time at most, in all a quantum. *Starvation bound*: that of the discipline below with turns for operations, of a
//! quantum, an operation and a switch each.

use super::{Choice, Discipline, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;
use std::collections::BTreeMap;

/// A session's first turn in switches if nothing else is said.
pub const FIRST_SWITCHES: f64 = 8.0;
/// A turn of who has used one up.
pub const QUANTUM_SWITCHES: f64 = 24.0;
/// How much a new observation weighs in what is known of a session's pauses.
const WEIGHT: f64 = 1.0 / 8.0;
/// A pause longer than so many switches counts as that: one long pause is soon forgiven.
const PAUSE_SWITCHES_MAX: f64 = 4.0;

/// Anticipation over another discipline. See the [module](self).
pub struct Anticipatory {
    below: Box<dyn Discipline>,
    quantum_ns: Option<u64>,
    turn: Option<(Owner, Time)>,
    /// For whom the module waits while others do, and since when.
    waits: Option<(Owner, Time)>,
    habits: BTreeMap<Owner, Habit>,
}

/// What is known of a session.
#[derive(Clone, Copy, Default)]
struct Habit {
    /// Since when it has had nothing to do here.
    away: Option<Time>,
    /// How long it usually stays away.
    pause_ns: Option<f64>,
    /// Whether it has used its last turn up.
    is_long: bool,
}

impl Anticipatory {
    /// Over this discipline, with this quantum or the usual one.
    pub fn over(below: Box<dyn Discipline>, quantum_ns: Option<u64>) -> Self {
        Self { below, quantum_ns, turn: None, waits: None, habits: BTreeMap::new() }
    }

    fn forget(&mut self, gone: impl Fn(&Owner) -> bool) {
        self.habits.retain(|owner, _| !gone(owner));
        self.turn = self.turn.filter(|(owner, _)| !gone(owner));
        self.waits = self.waits.filter(|(owner, _)| !gone(owner));
    }

    fn came_back(&mut self, now: Time, owner: Owner, module: &Module) {
        let habit = self.habits.entry(owner).or_default();
        let Some(away) = habit.away.take() else { return };
        let (pause, long) = (now.since_ns(away) as f64, PAUSE_SWITCHES_MAX * module.switch_ns());
        habit.pause_ns = Some(habit.pause_ns.map_or(pause.min(long), |usual| usual + (pause.min(long) - usual) * WEIGHT));
        if pause > module.switch_ns() && self.turn.is_some_and(|(whose, _)| whose == owner) {
            // Nobody asked for the module meanwhile; the turn was over all the same.
            self.end_turn(away, module);
        }
        if pause > long {
            self.habits.entry(owner).or_default().is_long = false;
        }
    }

    /// How long a turn of this session is now.
    fn quantum_ns(&self, owner: Owner, module: &Module) -> u64 {
        let is_long = self.habits.get(&owner).is_some_and(|habit| habit.is_long);
        let switches = if is_long { QUANTUM_SWITCHES } else { FIRST_SWITCHES };
        self.quantum_ns.unwrap_or((switches * module.switch_ns()) as u64)
    }

    /// A turn is over: what it was says how long that session's next is.
    fn end_turn(&mut self, end: Time, module: &Module) {
        let Some((owner, since)) = self.turn.take() else { return };
        let used_up = end.since_ns(since) >= self.quantum_ns(owner, module);
        if let Some(habit) = self.habits.get_mut(&owner) {
            habit.is_long = used_up;
        }
    }

    /// When the turn ends if another begins now: who has gone away is waited for no longer than a switch takes.
    fn turns_end(&self, now: Time, module: &Module) -> Time {
        let away = self.turn.and_then(|(owner, _)| self.habits.get(&owner)?.away);
        away.map_or(now, |away| now.min(away + module.switch_ns() as u64))
    }

    /// Tells what the module waited since it was asked last.
    fn settle(&mut self, now: Time, module: &Module) {
        if let Some((owner, since)) = self.waits.take() {
            self.below.tell(now, News::Held { owner, ns: now.since_ns(since) as f64 }, module);
        }
    }

    /// Whether the turn goes on: with what waits, or with waiting.
    fn stay(&self, now: Time, module: &Module) -> Option<Choice> {
        let (owner, since) = self.turn?;
        let quantum_ns = self.quantum_ns(owner, module);
        let over = now.since_ns(since) >= quantum_ns;
        if module.head(owner).is_some() {
            return (!over || !module.others_wait(owner)).then_some(Choice::Serve(owner));
        }
        let habit = self.habits.get(&owner)?;
        let usual_ns = habit.pause_ns.unwrap_or(module.switch_ns() / 2.0);
        if over || module.holds() != Some(owner) || usual_ns >= module.switch_ns() {
            return None;
        }
        let until = (habit.away? + module.switch_ns() as u64).min(since + quantum_ns);
        (now < until).then_some(Choice::WaitUntil(until))
    }
}

impl Discipline for Anticipatory {
    fn reason(&self, chosen: Owner, module: &Module) -> Reason {
        if module.holds() == Some(chosen) { Reason::Continued } else { self.below.reason(chosen, module) }
    }

    fn tell(&mut self, now: Time, news: News<'_>, module: &Module) {
        if matches!(news, News::Begun { .. }) {
            self.settle(now, module);
        }
        self.below.tell(now, news, module);
        if module.switch_ns() <= 0.0 {
            return;
        }
        match news {
            News::Left(client) => self.forget(|owner| owner.client == client),
            News::Closed(closed) => self.forget(|owner| *owner == closed),
            News::Arrived(request) => self.came_back(now, Owner::of(request), module),
            News::Ended { owner, .. } if module.head(owner).is_none() && !module.serves(owner) => {
                // Whoever has left in the meantime is not remembered.
                if let Some(habit) = self.habits.get_mut(&owner) {
                    habit.away = Some(now);
                }
            }
            _ => {}
        }
    }

    fn choose(&mut self, now: Time, module: &Module) -> Choice {
        if module.switch_ns() <= 0.0 {
            return self.below.choose(now, module);
        }
        self.settle(now, module);
        if let Some(choice) = self.stay(now, module) {
            let (owner, _) = self.turn.expect("only a turn goes on");
            let idle = matches!(choice, Choice::WaitUntil(_)) && module.others_wait(owner);
            self.waits = idle.then_some((owner, now));
            return choice;
        }
        let choice = self.below.choose(now, module);
        if let Choice::Serve(owner) = choice {
            self.end_turn(self.turns_end(now, module), module);
            self.turn = Some((owner, now));
        }
        choice
    }

    fn demoted(&self) -> u64 {
        self.below.demoted()
    }
}
