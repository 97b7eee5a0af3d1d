//! Requests for a module: recorded ones, and those of programs that are described.

use bywash_core::trace::Record;
use bywash_core::{Algorithm, Direction, Time};
use bywash_policy::Tenant;

/// Requests and whose they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// The programs; a client's number is its place.
    pub clients: Vec<Client>,
    /// What they ask for; nothing comes after the end of a request behind it.
    pub requests: Vec<Asked>,
}

/// A program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// What it was promised.
    pub tenant: Tenant,
    /// The place of its tenant in a list of the caller's.
    pub group: usize,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it comes.
    pub when: When,
    /// Whose it is: a place among the clients.
    pub client: u32,
    /// The client's session.
    pub session: u32,
    /// What is asked.
    pub algorithm: Algorithm,
    /// Which way.
    pub direction: Direction,
    /// Bytes of input.
    pub bytes: u64,
}

impl Asked {
    pub(super) fn owner(&self) -> (u32, u32) {
        (self.client, self.session)
    }
}

/// When a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At a time.
    At(Time),
    /// So long after the end of another.
    After {
        /// Its place.
        request: u32,
        /// Nanoseconds.
        think_ns: u64,
    },
}

impl Traffic {
    /// Recorded requests, in the order of arrival, from time 0 on. `client` says whose a recorded client's requests are. With `waits` a request comes as long after the latest end of its client's
    /// that was before it as it came after that; otherwise, and where there was no such end, when it came.
    ///
    /// # Panics
    /// With 2^32 requests or more.
    pub fn of(records: &[Record], waits: bool, mut client: impl FnMut(&Record) -> u32) -> Self {
        let begin = records.first().map_or(Time::ZERO, |record| record.arrival);
        let owners: Vec<u32> = records.iter().map(&mut client).collect();
        // The latest end of each client, as arrivals go by.
        let mut ends: Vec<usize> = (0..records.len()).collect();
        ends.sort_by_key(|&place| (records[place].done, place));
        let mut ends = ends.into_iter().peekable();
        let mut latest: Vec<Option<usize>> = vec![None; owners.iter().max().map_or(0, |&most| most as usize + 1)];
        let mut requests = Vec::with_capacity(records.len());
        for (place, (record, &client)) in records.iter().zip(&owners).enumerate() {
            // An end at this very moment counts only if its request stands before this one.
            while let Some(ended) = ends.next_if(|&ended| records[ended].done <= record.arrival && ended < place) {
                latest[owners[ended] as usize] = Some(ended);
            }
            let cause = latest[client as usize].filter(|_| waits);
            let when = match cause {
                Some(cause) => When::After {
                    request: u32::try_from(cause).expect("fewer than 2^32 requests"),
                    think_ns: record.arrival.since_ns(records[cause].done),
                },
                None => When::At(Time(record.arrival.since_ns(begin))),
            };
            let Record { session, algorithm, direction, bytes, .. } = *record;
            requests.push(Asked { when, client, session, algorithm, direction, bytes });
        }
        Self { clients: Vec::new(), requests }
    }

    /// A program that has `depth` operations under way until it has had so many, each `think_ns` after the end of another, from a time on.
    pub fn closed(&mut self, client: Client, asked: Asked, operations: u32, depth: u32, think_ns: u64) {
        let (number, first) = (self.clients.len() as u32, self.requests.len() as u32);
        self.clients.push(client);
        let after = |place: u32| if place < depth { asked.when } else { When::After { request: first + place - depth, think_ns } };
        self.requests.extend((0..operations).map(|place| Asked { when: after(place), client: number, ..asked }));
    }

    /// A program that asks whether or not it has had its results, at random (exponentially distributed) intervals, from a time on and until another.
    pub fn open(&mut self, client: Client, asked: Asked, every_ns: u64, until: Time, seed: u64) {
        let number = self.clients.len() as u32;
        self.clients.push(client);
        let (When::At(mut at), mut random) = (asked.when, fastrand::Rng::with_seed(seed)) else { return };
        loop {
            at = at + (-libm::log(1.0 - random.f64()) * every_ns as f64) as u64;
            if at >= until {
                return;
            }
            self.requests.push(Asked { when: When::At(at), client: number, ..asked });
        }
    }
}
