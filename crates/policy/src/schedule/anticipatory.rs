//! Stays with a session for a quantum, and waits a little for it, where turning to another is dear.
//!
//! A program that asks for one operation at a time never has the next one waiting when the last one ends: to prefer the session that the module holds changes nothing, unless the
//! module waits for it (as anticipatory disk scheduling does, Iyer and Druschel 2001). It pays when the program comes back sooner than a
//! switch takes. So for each session the time between a result and the next request is learnt; if that is less than a switch, the module waits, up to as long as a switch takes:
//! whoever rents skis until that has cost what a pair costs, and then buys, never pays more than twice what foresight would have. A program usually comes
//! back soon, but now and then the machine runs another before it. Whoever is new is expected back within half a switch.
//!
//! A session's turn ends with its *quantum*, waiting included, when others wait. The first is [`FIRST_SWITCHES`] switches long, so that whoever is new is soon served, and each that a session
//! uses up makes its next one twice as long, up to [`QUANTUM_SWITCHES`], so that of long work the switches take a twenty-fifth. One that it does not use up makes it half as long, and whoever was
//! away for long begins again (multilevel feedback queues, Corbató 1962, do likewise). A quantum that is said is every turn's. Whose turn is next the discipline below says. Where a switch costs nothing there are no turns, and the
//! discipline below decides alone.
//!
//! *Bounded idleness*: for each operation of a turn a switch's time at most, in all a quantum. *Starvation bound*: that of the discipline below with turns for operations, of a
//! quantum, an operation and a switch each.

use super::{Choice, Discipline, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;
use std::collections::BTreeMap;

/// A session's first turn in switches if nothing else is said.
pub const FIRST_SWITCHES: f64 = 6.0;
/// Its longest.
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
    habits: BTreeMap<Owner, Habit>,
}

/// What is known of a session.
#[derive(Clone, Copy, Default)]
struct Habit {
    /// Since when it has had nothing to do here.
    away: Option<Time>,
    /// How long it usually stays away.
    pause_ns: Option<f64>,
    /// How many first turns its next is longer than one.
    grown: f64,
}

impl Anticipatory {
    /// Over this discipline, with this quantum or the usual one.
    pub fn over(below: Box<dyn Discipline>, quantum_ns: Option<u64>) -> Self {
        Self { below, quantum_ns, turn: None, habits: BTreeMap::new() }
    }

    fn forget(&mut self, gone: impl Fn(&Owner) -> bool) {
        self.habits.retain(|owner, _| !gone(owner));
        self.turn = self.turn.filter(|(owner, _)| !gone(owner));
    }

    fn came_back(&mut self, now: Time, owner: Owner, module: &Module) {
        let habit = self.habits.entry(owner).or_default();
        if let Some(away) = habit.away.take() {
            let (pause, long) = (now.since_ns(away) as f64, PAUSE_SWITCHES_MAX * module.switch_ns());
            if pause > long {
                habit.grown = 0.0;
                self.turn = self.turn.filter(|(whose, _)| *whose != owner);
            }
            let pause = pause.min(long);
            habit.pause_ns = Some(habit.pause_ns.map_or(pause, |usual| usual + (pause - usual) * WEIGHT));
        }
    }

    /// How long a turn of this session is now.
    fn quantum_ns(&self, owner: Owner, module: &Module) -> u64 {
        let grown = self.habits.get(&owner).map_or(0.0, |habit| habit.grown);
        self.quantum_ns.unwrap_or((FIRST_SWITCHES * (1.0 + grown) * module.switch_ns()) as u64)
    }

    /// Another turn begins: what the last one was says how long that session's next is.
    fn next_turn(&mut self, now: Time, owner: Owner, module: &Module) {
        if let Some((last, since)) = self.turn {
            let used_up = now.since_ns(since) >= self.quantum_ns(last, module);
            if let Some(habit) = self.habits.get_mut(&last) {
                habit.grown = if used_up {
                    (2.0 * habit.grown + 1.0).min(QUANTUM_SWITCHES / FIRST_SWITCHES - 1.0)
                } else {
                    ((habit.grown - 1.0) / 2.0).max(0.0)
                };
            }
        }
        self.turn = Some((owner, now));
    }

    /// Whether the turn goes on: with what waits, or with waiting.
    fn stay(&self, now: Time, module: &Module) -> Option<Choice> {
        let (owner, since) = self.turn?;
        let over = now.since_ns(since) >= self.quantum_ns(owner, module);
        if module.head(owner).is_some() {
            return (!over || !module.others_wait(owner)).then_some(Choice::Serve(owner));
        }
        let habit = self.habits.get(&owner)?;
        let usual_ns = habit.pause_ns.unwrap_or(module.switch_ns() / 2.0);
        if over || module.holds() != Some(owner) || usual_ns >= module.switch_ns() {
            return None;
        }
        let until = habit.away? + module.switch_ns() as u64;
        (now < until).then_some(Choice::WaitUntil(until))
    }
}

impl Discipline for Anticipatory {
    fn reason(&self, chosen: Owner, module: &Module) -> Reason {
        if module.holds() == Some(chosen) { Reason::Continued } else { self.below.reason(chosen, module) }
    }

    fn tell(&mut self, now: Time, news: News<'_>, module: &Module) {
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
        if let Some(choice) = self.stay(now, module) {
            return choice;
        }
        let choice = self.below.choose(now, module);
        if let Choice::Serve(owner) = choice {
            self.next_turn(now, owner, module);
        }
        choice
    }

    fn demoted(&self) -> u64 {
        self.below.demoted()
    }
}
