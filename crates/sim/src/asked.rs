//! Requests as their programs ask for them: at a time, or once they have the result of another.
//!
//! A recording says of a program that waits for its results only when it asked *then*; were an engine faster, or another request before it in the line, it would have asked at another time. So
//! a request comes either [at a time of its own](When::At) or some time [after another's end](When::After), and [`recorded`] says of each recorded one which it is. A message that its program
//! passed in several calls is as many requests, one after the other: an engine is worth a hand-over for a call, or not, and never sees the message as a whole.

use crate::presence::Owner;
use bywash_core::trace::Record;
use bywash_core::{Algorithm, Direction, Error, Result, Time};
use std::collections::HashMap;

/// The most requests that recorded ones come to, calls of a message counted each: some 2 GiB of them.
pub const PIECES_MAX: u64 = 1 << 24;

/// The most bytes that they have together: 64 PiB, which take years of any engine. Sums of bytes and of times stay within 64 bits.
pub const BYTES_MAX: u64 = 1 << 56;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it comes.
    pub when: When,
    /// Whose it is.
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
    pub(crate) fn owner(&self) -> Owner {
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

/// What a recording asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its requests, from time 0 on; nothing comes after the end of a request behind it.
    pub requests: Vec<Asked>,
    /// Records whose program waited for the result of another before.
    pub waiting: u64,
    /// Records that came in several calls, and so became several requests.
    pub in_calls: u64,
}

/// Recorded requests, in the order of arrival. `client` says whose a recorded client's requests are. With `waits` a request comes as long after the latest end of its client's that was before
/// it as it came after that; otherwise, and where there was no such end, when it came. Its second call comes when the first is done, and so on. `place` (a file name) is named in errors.
///
/// # Errors
/// [`Error::Config`] for more than [`PIECES_MAX`] calls, or more than [`BYTES_MAX`] bytes.
pub fn recorded(records: &[Record], place: &str, waits: bool, client: impl FnMut(&Record) -> u32) -> Result<Recorded> {
    check(records, place)?;
    let begin = records.first().map_or(Time::ZERO, |record| record.arrival);
    let owners: Vec<u32> = records.iter().map(client).collect();
    // The latest end of each client, as arrivals go by. What says that it ended before it came must not keep the others back.
    let end = |place: usize| records[place].done.max(records[place].arrival);
    let mut ends: Vec<usize> = (0..records.len()).collect();
    ends.sort_by_key(|&place| (end(place), place));
    let mut ends = ends.into_iter().peekable();
    let mut latest: HashMap<u32, usize> = HashMap::new();
    // Of each record, its last call.
    let mut last: Vec<u32> = Vec::with_capacity(records.len());
    let mut all = Recorded::default();
    for (place, (record, &client)) in records.iter().zip(&owners).enumerate() {
        // An end at this very moment counts only if its request stands before this one.
        while let Some(ended) = ends.next_if(|&ended| end(ended) <= record.arrival && ended < place) {
            latest.insert(owners[ended], ended);
        }
        let cause = latest.get(&client).filter(|_| waits);
        let when = match cause {
            Some(&cause) => When::After { request: last[cause], think_ns: record.arrival.since_ns(end(cause)) },
            None => When::At(Time(record.arrival.since_ns(begin))),
        };
        all.waiting += u64::from(cause.is_some());
        all.in_calls += u64::from(calls(record) > 1);
        all.put(record, when, client);
        last.push(all.requests.len() as u32 - 1);
    }
    Ok(all)
}

/// Calls of a record: none is without a byte, but for that of a message that has none.
fn calls(record: &Record) -> u64 {
    u64::from(record.calls).min(record.bytes).max(1)
}

fn check(records: &[Record], place: &str) -> Result<()> {
    let all = records.iter().map(calls).fold(0, u64::saturating_add);
    let bytes = records.iter().map(|record| record.bytes).fold(0, u64::saturating_add);
    let (count, way_out) = (records.len(), "give it a part of them");
    let reason = match (all > PIECES_MAX, bytes > BYTES_MAX) {
        (true, _) => format!("{all} calls in {count} requests, of which {PIECES_MAX} can be replayed; {way_out}"),
        (_, true) => {
            format!("{bytes} bytes in {count} requests, of which {BYTES_MAX} can be replayed; {way_out}, or look whether they are real")
        }
        _ => return Ok(()),
    };
    Err(Error::Config { place: place.to_owned(), reason })
}

impl Recorded {
    /// The calls of a record, as equal as bytes are.
    fn put(&mut self, record: &Record, first: When, client: u32) {
        let Record { session, algorithm, direction, bytes, .. } = *record;
        let (calls, mut when) = (calls(record), first);
        for call in 0..calls {
            let bytes = bytes / calls + u64::from(call < bytes % calls);
            self.requests.push(Asked { when, client, session, algorithm, direction, bytes });
            when = When::After { request: self.requests.len() as u32 - 1, think_ns: 0 };
        }
    }
}

/// Which requests come after the end of which.
pub(crate) struct Followers(Vec<(u32, u32)>);

impl Followers {
    /// Of all requests of a run, in their order.
    ///
    /// # Panics
    /// If a request comes after one behind it.
    pub(crate) fn of(whens: impl Iterator<Item = When>) -> Self {
        let follows = |(number, when): (u32, When)| match when {
            When::At(_) => None,
            When::After { request, .. } => {
                assert!(request < number, "request {number} comes after {request}, which is behind it");
                Some((request, number))
            }
        };
        let mut followers: Vec<(u32, u32)> = (0..).zip(whens).filter_map(follows).collect();
        followers.sort_unstable();
        Self(followers)
    }

    /// Those that come after this one, in their order.
    pub(crate) fn after(&self, request: u32) -> impl Iterator<Item = u32> {
        let first = self.0.partition_point(|&(cause, _)| cause < request);
        self.0[first..].iter().take_while(move |&&(cause, _)| cause == request).map(|&(_, follower)| follower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::trace::{HEADER, by_arrival};

    /// Client, arrival, end, bytes and calls of each.
    fn records(all: &[(u32, u64, u64, u64, u32)]) -> Vec<Record> {
        let line = |&(client, arrival, done, bytes, calls): &(u32, u64, u64, u64, u32)| {
            format!("{arrival},{client},1,AES-128-GCM,encrypt,{bytes},here,{arrival},{done},,,,,,,1,0,0,p,{calls}\n")
        };
        by_arrival(&format!("{HEADER}\n{}", all.iter().map(line).collect::<String>()), "t.csv").unwrap()
    }

    fn of(all: &[(u32, u64, u64, u64, u32)], waits: bool) -> Recorded {
        recorded(&records(all), "t.csv", waits, |record| record.client).unwrap()
    }

    fn whens(recorded: &Recorded) -> Vec<When> {
        recorded.requests.iter().map(|asked| asked.when).collect()
    }

    const fn after(request: u32, think_ns: u64) -> When {
        When::After { request, think_ns }
    }

    #[test]
    fn who_had_a_result_asks_after_it_and_nobody_else() {
        // The second of client 7 comes before the end of its first, the third after the end of its second; client 9 has had nothing.
        let all = [(7, 100, 200, 64, 1), (7, 150, 180, 64, 1), (9, 190, 400, 64, 1), (7, 195, 300, 64, 1), (7, 230, 300, 64, 1)];
        let found = of(&all, true);
        let at = |ns| When::At(Time(ns));
        assert_eq!(whens(&found), [at(0), at(50), at(90), after(1, 15), after(0, 30)]);
        assert_eq!((found.waiting, found.in_calls), (2, 0));
        assert_eq!(whens(&of(&all, false)), [0, 50, 90, 95, 130].map(at), "as recorded");
    }

    #[test]
    fn an_end_before_its_arrival_hides_no_other() {
        let mut records = records(&[(7, 100, 200, 64, 1), (7, 250, 300, 64, 1), (7, 350, 900, 64, 1)]);
        records[2].done = Time(5);
        let found = recorded(&records, "t.csv", true, |record| record.client).unwrap();
        assert_eq!(whens(&found), [When::At(Time(0)), after(0, 50), after(1, 50)]);
    }

    #[test]
    fn calls_of_a_message_come_one_after_the_other_and_others_after_the_last() {
        let found = of(&[(7, 0, 100, 10, 3), (7, 130, 200, 2, 5), (7, 130, 200, 0, 1)], true);
        let bytes: Vec<u64> = found.requests.iter().map(|asked| asked.bytes).collect();
        assert_eq!(bytes, [4, 3, 3, 1, 1, 0], "and no more calls than bytes");
        assert_eq!(whens(&found), [When::At(Time(0)), after(0, 0), after(1, 0), after(2, 30), after(3, 0), after(2, 30)]);
        assert_eq!((found.waiting, found.in_calls), (2, 2));
    }

    #[test]
    fn calls_without_an_end_are_refused() {
        let endless = records(&[(1, 0, 1, u64::MAX, u32::MAX)]);
        let said = recorded(&endless, "t.csv", true, |record| record.client).unwrap_err().to_string();
        assert!(said.contains("t.csv") && said.contains("4294967295 calls in 1 requests, of which 16777216"), "{said}");
        let endless = records(&[(1, 0, 1, u64::MAX, 1), (1, 0, 1, u64::MAX, 1)]);
        let said = recorded(&endless, "t.csv", true, |record| record.client).unwrap_err().to_string();
        assert!(said.contains("18446744073709551615 bytes in 2 requests"), "{said}");
    }

    #[test]
    fn followers_are_found() {
        let followers = Followers::of([When::At(Time(0)), after(0, 1), after(1, 1), after(0, 1)].into_iter());
        let after = |request| followers.after(request).collect::<Vec<_>>();
        assert_eq!((after(0), after(1), after(2)), (vec![1, 3], vec![2], vec![]));
    }
}
