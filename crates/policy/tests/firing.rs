//! The firing policy against its rivals, in virtual time: an event-driven TLS server on one core, its clients on another, each opening one connection
//! after the other. `cargo test -p bywash-policy --test firing -- --nocapture` prints the table.
//!
//! Times are those measured of OpenSSL-like scalar code and of eight-lane kernels on one machine; what counts is their order of magnitude.

use bywash_core::{Algorithm, Time};
use bywash_policy::firing::{Firing, Moment, SUSPENSION_NS, Shot};
use std::collections::{BTreeSet, VecDeque};

const LANES: usize = 8;
/// What a server does for one event, besides public-key operations.
const EVENT_NS: u64 = 45_000;
/// What a client does for one message of the server.
const CLIENT_NS: u64 = 90_000;
const HANDSHAKES: usize = 4_000;

/// One operation alone, and a batch, in nanoseconds.
fn cost(algorithm: Algorithm) -> (u64, u64) {
    match algorithm {
        Algorithm::Rsa2048Private => (256_000, 553_000),
        Algorithm::Rsa4096Private => (1_400_000, 5_000_000),
        Algorithm::EcdsaP256Sign => (17_600, 36_000),
        Algorithm::X25519 => (26_000, 36_000),
        _ => (13_000, 20_000),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// No batches: every operation where it arises.
    InPlace,
    /// Whatever waits goes as soon as the server has nothing else to do, all kinds, side by side.
    Greedy,
    /// A kind goes when it is full or so long after its first operation came.
    Timer(u64),
    /// The policy.
    Policy,
}

/// Operations of the server's flights: one list for each message of the client.
fn flights(tls13: bool, signature: Algorithm) -> [Vec<Algorithm>; 2] {
    let (public, agree) = (Algorithm::X25519Public, Algorithm::X25519);
    if tls13 { [vec![public, agree, signature], vec![]] } else { [vec![public, signature], vec![agree]] }
}

struct Connection {
    flight: usize,
    /// Operations done in this flight.
    done: usize,
    begun: u64,
}

struct Server<'a> {
    strategy: Strategy,
    flights: &'a [Vec<Algorithm>; 2],
    now: u64,
    busy: u64,
    client_free: u64,
    /// Messages under way: when they arrive, of which connection.
    arriving: BTreeSet<(u64, usize)>,
    connections: Vec<Connection>,
    waiting: Vec<(u64, Algorithm, usize)>,
    woken: VecDeque<usize>,
    firing: Firing,
    latencies: Vec<u64>,
    batches: (usize, usize),
}

impl Server<'_> {
    fn work(&mut self, ns: u64) {
        self.now += ns;
        self.busy += ns;
    }

    /// The client answers, on its own core, one connection after the other.
    fn answer(&mut self, connection: usize) {
        self.client_free = self.client_free.max(self.now) + CLIENT_NS;
        self.arriving.insert((self.client_free, connection));
    }

    /// A connection goes on until it must wait for an operation or for its client.
    fn proceed(&mut self, index: usize, company: usize) {
        let flight = &self.flights[self.connections[index].flight];
        while let Some(&algorithm) = flight.get(self.connections[index].done) {
            let puts_off = match self.strategy {
                Strategy::InPlace => false,
                Strategy::Policy => self.firing.is_worth_waiting(algorithm, company),
                _ => company > 1,
            };
            if puts_off {
                self.waiting.push((self.now, algorithm, index));
                self.firing.arrived(Time(self.now), algorithm);
                self.work(SUSPENSION_NS as u64);
                if self.strategy == Strategy::Policy {
                    while let Some(shot) = self.firing.decide(Time(self.now), Moment::Arrived) {
                        self.fire(shot);
                    }
                } else if self.count(algorithm) == LANES {
                    self.fire(Shot { algorithm, count: LANES, side_by_side: true });
                }
                return;
            }
            self.work(cost(algorithm).0);
            self.firing.observe_alone(algorithm, cost(algorithm).0);
            self.connections[index].done += 1;
        }
        self.connections[index].done = 0;
        if self.connections[index].flight == 1 {
            self.latencies.push(self.now - self.connections[index].begun);
            self.connections[index].begun = self.now;
        }
        self.connections[index].flight ^= 1;
        self.answer(index);
    }

    fn count(&self, algorithm: Algorithm) -> usize {
        self.waiting.iter().filter(|(_, other, _)| *other == algorithm).count()
    }

    fn fire(&mut self, shot: Shot) {
        let (one, round) = cost(shot.algorithm);
        let took = if shot.side_by_side { round } else { one * shot.count as u64 };
        self.work(took);
        self.firing.observe(shot, Some(took));
        if matches!(shot.algorithm, Algorithm::Rsa2048Private | Algorithm::Rsa4096Private | Algorithm::EcdsaP256Sign) {
            self.batches = (self.batches.0 + 1, self.batches.1 + shot.count);
        }
        let mut left = shot.count;
        let fired: Vec<_> = self
            .waiting
            .extract_if(.., |(_, algorithm, _)| {
                let is_fired = *algorithm == shot.algorithm && left > 0;
                left -= usize::from(is_fired);
                is_fired
            })
            .collect();
        for (_, _, connection) in fired {
            self.connections[connection].done += 1;
            self.woken.push_back(connection);
        }
    }

    /// One turn of the server's loop.
    fn turn(&mut self) {
        let mut events: Vec<usize> = self.woken.drain(..).collect();
        while let Some(&(at, connection)) = self.arriving.first().filter(|(at, _)| *at <= self.now) {
            self.arriving.remove(&(at, connection));
            events.push(connection);
            self.work(EVENT_NS);
        }
        let company = events.len() + self.waiting.len();
        if events.is_empty() {
            return self.block();
        }
        for connection in events {
            self.proceed(connection, company);
        }
        if self.strategy == Strategy::Policy
            && let Some(shot) = self.firing.decide(Time(self.now), Moment::Busy)
        {
            self.fire(shot);
        }
    }

    fn block(&mut self) {
        let next = self.arriving.first().map(|(at, _)| *at);
        match self.strategy {
            Strategy::Policy => {
                if let Some(shot) = self.firing.decide(Time(self.now), Moment::Blocking) {
                    return self.fire(shot);
                }
            }
            Strategy::Greedy if !self.waiting.is_empty() => {
                let kinds: BTreeSet<Algorithm> = self.waiting.iter().map(|(_, algorithm, _)| *algorithm).collect();
                return kinds.into_iter().for_each(|algorithm| self.fire_all(algorithm));
            }
            Strategy::Timer(bound) => {
                if let Some(&(since, algorithm, _)) = self.waiting.first()
                    && next.is_none_or(|next| since + bound <= next)
                {
                    self.now = self.now.max(since + bound);
                    return self.fire_all(algorithm);
                }
            }
            _ => {}
        }
        self.now = self.now.max(next.expect("somebody is always under way"));
    }

    fn fire_all(&mut self, algorithm: Algorithm) {
        let count = self.count(algorithm).min(LANES);
        let side_by_side = count as u64 * cost(algorithm).0 > cost(algorithm).1;
        self.fire(Shot { algorithm, count, side_by_side });
    }
}

/// What came of it.
struct Outcome {
    /// Handshakes for each second that the server's core was busy.
    per_busy_second: f64,
    p50_ms: f64,
    mean_lanes: f64,
}

fn simulate(strategy: Strategy, tls13: bool, signature: Algorithm, connections: usize) -> Outcome {
    let flights = flights(tls13, signature);
    let mut server = Server {
        strategy,
        flights: &flights,
        now: 0,
        busy: 0,
        client_free: 0,
        arriving: (0..connections).map(|connection| (0, connection)).collect(),
        connections: (0..connections).map(|_| Connection { flight: 0, done: 0, begun: 0 }).collect(),
        waiting: Vec::new(),
        woken: VecDeque::new(),
        firing: Firing::new(LANES),
        latencies: Vec::new(),
        batches: (0, 0),
    };
    while server.latencies.len() < HANDSHAKES {
        server.turn();
    }
    server.latencies.sort_unstable();
    Outcome {
        per_busy_second: HANDSHAKES as f64 * 1e9 / server.busy as f64,
        p50_ms: server.latencies[HANDSHAKES / 2] as f64 / 1e6,
        mean_lanes: server.batches.1 as f64 / server.batches.0.max(1) as f64,
    }
}

const STRATEGIES: [Strategy; 4] = [Strategy::InPlace, Strategy::Greedy, Strategy::Timer(1_000_000), Strategy::Policy];

/// Handshakes per busy second, by strategy.
fn row(tls13: bool, signature: Algorithm, connections: usize) -> [Outcome; 4] {
    let outcomes = STRATEGIES.map(|strategy| simulate(strategy, tls13, signature, connections));
    let cells: Vec<String> =
        outcomes.iter().map(|o| format!("{:>6.0}/s {:>6.2} ms {:>4.1}", o.per_busy_second, o.p50_ms, o.mean_lanes)).collect();
    println!("{:<18} 1.{} {connections:>3} | {}", signature.name(), 2 + u8::from(tls13), cells.join(" | "));
    outcomes
}

#[test]
fn the_policy_against_its_rivals() {
    println!("handshakes per busy second, median latency, operations per batch: in place | greedy | timer of 1 ms | policy");
    for signature in [Algorithm::Rsa2048Private, Algorithm::Rsa4096Private, Algorithm::EcdsaP256Sign] {
        for (tls13, connections) in [false, true].into_iter().flat_map(|tls13| [1, 8, 64].map(|connections| (tls13, connections))) {
            let [in_place, greedy, _, policy] = row(tls13, signature, connections);
            let what = format!("{signature}, TLS 1.3: {tls13}, {connections} connections");
            assert!(policy.per_busy_second > 0.97 * in_place.per_busy_second, "{what}: batches must not cost more than they bring");
            assert!(policy.per_busy_second > 0.95 * greedy.per_busy_second, "{what}: shortest first must not lose against greed");
            if connections == 1 {
                assert!(policy.p50_ms < 1.01 * in_place.p50_ms, "{what}: a lone client pays nothing");
            }
            if connections == 64 && signature != Algorithm::EcdsaP256Sign {
                assert!(policy.mean_lanes > 7.0, "{what}: {} operations in a batch", policy.mean_lanes);
            }
        }
    }
}

/// Batches may have taken long because others had the processor.
#[test]
fn what_took_long_for_a_while_is_put_off_again() {
    let algorithm = Algorithm::EcdsaP256Sign;
    let mut policy = Firing::new(LANES);
    assert!(policy.is_worth_waiting(algorithm, LANES));
    for _ in 0..40 {
        policy.observe(Shot { algorithm, count: LANES, side_by_side: true }, Some(200_000));
    }
    assert!((0..100).all(|_| !policy.is_worth_waiting(algorithm, LANES)), "eight at a time take longer than one by one");
    assert!((0..1_000).any(|_| policy.is_worth_waiting(algorithm, LANES)), "it is never tried again");
}
