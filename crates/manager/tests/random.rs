//! Random sequences of everything that can be done with a manager, against a model of what must come of it.

mod common;

use bywash_core::Error;
use bywash_manager::{Completion, Manager, PolicyKind, SessionId};
use common::{HANG, Mood, Moody, ctr, done, manager, operation};
use proptest::prelude::*;
use std::sync::mpsc::{self, Sender};

#[derive(Clone, Debug)]
enum Step {
    Open { client: u32 },
    Close { session: usize },
    CloseClient { client: u32 },
    Run { session: usize, size: usize },
    Submit { session: usize, size: usize },
    Mood(Mood),
}

fn step() -> impl Strategy<Value = Step> {
    let mood = prop_oneof![Just(Mood::Good), Just(Mood::Fails), Just(Mood::NoSessions)];
    prop_oneof![
        2 => (0..4u32).prop_map(|client| Step::Open { client }),
        1 => (0..30usize).prop_map(|session| Step::Close { session }),
        1 => (0..4u32).prop_map(|client| Step::CloseClient { client }),
        6 => (0..30usize, 0..300usize).prop_map(|(session, size)| Step::Run { session, size }),
        6 => (0..30usize, 0..300usize).prop_map(|(session, size)| Step::Submit { session, size }),
        1 => mood.prop_map(Step::Mood),
    ]
}

/// Every session ever opened, and what was submitted.
struct Model<'a> {
    manager: &'a Manager,
    moody: &'a Moody,
    sessions: Vec<(SessionId, u32, bool)>,
    submitted: usize,
    /// Which clients were closed, and how much had been submitted by then.
    closed: Vec<(u32, usize)>,
    tell: Sender<Told>,
}

/// How a submitted request ended: its place among the submitted, what was asked, whose it was, whether its session was open then.
struct Told {
    index: usize,
    number: u64,
    size: usize,
    client: u32,
    open: bool,
    completion: Completion,
}

impl Model<'_> {
    fn take(&mut self, number: u64, step: Step) {
        match step {
            Step::Open { client } => self.sessions.push((self.manager.open(client, ctr()).unwrap(), client, true)),
            Step::Close { session } => {
                let Some((id, _, open)) = self.sessions.get_mut(session) else { return };
                assert_eq!(self.manager.close(*id).is_ok(), *open);
                *open = false;
            }
            Step::CloseClient { client } => {
                let mine = self.sessions.iter_mut().filter(|(_, owner, open)| *owner == client && *open);
                let count = mine.map(|(_, _, open)| *open = false).count();
                assert_eq!(self.manager.close_client(client), count);
                self.closed.push((client, self.submitted));
            }
            Step::Run { session, size } => self.run(number, session, size),
            Step::Submit { session, size } => self.submit(number, session, size),
            Step::Mood(mood) => self.moody.set(mood),
        }
    }

    fn run(&self, number: u64, session: usize, size: usize) {
        let Some(&(id, _, open)) = self.sessions.get(session) else { return };
        let mut own = operation(number, size);
        match self.manager.run(id, &mut own.borrow()) {
            Ok(_) => assert!(open && own == done(operation(number, size))),
            Err(error) => assert!(!open && matches!(error, Error::NoSession { .. }), "{error}"),
        }
    }

    fn submit(&mut self, number: u64, session: usize, size: usize) {
        let Some(&(id, client, open)) = self.sessions.get(session) else { return };
        let (tell, index) = (self.tell.clone(), self.submitted);
        self.submitted += 1;
        self.manager.submit(
            id,
            operation(number, size),
            Box::new(move |completion| tell.send(Told { index, number, size, client, open, completion }).unwrap()),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_and_right(steps in proptest::collection::vec(step(), 1..150), placement: bool, lanes in 1..5usize) {
        let moody = Moody::new("moody").lanes(lanes).in_mood(Mood::Good);
        let sound = Moody::new("sound").distant().lanes(lanes).in_mood(Mood::Good);
        let manager = manager(&[moody.clone(), sound.clone()], |config| {
            config.policy = if placement { PolicyKind::Placement } else { PolicyKind::Fifo };
            config.probation = std::time::Duration::from_micros(200);
        });
        let (tell, told) = mpsc::channel();
        let mut model = Model { manager: &manager, moody: &moody, sessions: vec![], submitted: 0, closed: vec![], tell };
        for (number, step) in steps.into_iter().enumerate() {
            model.take(number as u64, step);
        }
        prop_assert!(manager.drain(HANG));
        let open = model.sessions.iter().filter(|(_, _, open)| *open).count();
        prop_assert_eq!(manager.snapshot().sessions, open);
        let (submitted, closed) = (model.submitted, std::mem::take(&mut model.closed));
        drop(model);
        let mut ends = vec![0; submitted];
        for Told { index, number, size, client, open, completion } in told.iter() {
            ends[index] += 1;
            // What still waits when its client is closed is not computed.
            let withdrawn = closed.iter().any(|&(ended, submitted)| ended == client && index < submitted);
            match completion.outcome {
                Ok(_) => prop_assert!(open && completion.operation == done(operation(number, size))),
                Err(Error::Unavailable { .. }) => prop_assert!(open && withdrawn),
                Err(error) => prop_assert!(!open && matches!(error, Error::NoSession { .. }), "{}", error),
            }
        }
        prop_assert!(ends.iter().all(|&count| count == 1), "{:?}", ends);
        prop_assert!(manager.shutdown(HANG));
        prop_assert_eq!(moody.keyed.load(std::sync::atomic::Ordering::SeqCst), 0, "keys outlive their sessions");
        prop_assert_eq!(sound.keyed.load(std::sync::atomic::Ordering::SeqCst), 0, "keys outlive their sessions");
    }
}
