//! A client's ring thread: takes requests, computes or submits them, answers.

use crate::broker::Shared;
use crate::client::Client;
use crate::config::Waiting;
use crate::sessions::Entry;
use crate::share::{Lease, Share};
use bywash_core::{Algorithm, Data, Direction, Kind, Operation, OwnedOperation, Result, SecretBytes};
use bywash_manager::{Completion, Done};
use bywash_protocol::broker_ring::Taken;
use bywash_protocol::descriptor::{Corrupt, IV_BYTES_MAX, Job, TAG_BYTES_MAX, Verdict};
use bywash_protocol::{BrokerRing, Intake, Outcome, Quota, Spin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Sleeping for the next request. A shutdown ends it at once, unless the client has moved the sleeper to another word
/// (`FUTEX_REQUEUE`), as whoever shares the memory can: so it is bounded, and long enough to cost nothing.
const IDLE: Duration = Duration::from_secs(30);
/// Buffers above this are given back after a second without requests.
const KEPT_BYTES: usize = 64 << 10;
/// From this size on a symmetric operation takes longer than handing it over does.
const WORTH_SUBMITTING_BYTES: usize = 64 << 10;

pub(crate) struct Worker {
    shared: Arc<Shared>,
    client: Arc<Client>,
    ring: Arc<BrokerRing>,
    intake: Intake,
    spin: Spin,
    scratch: Scratch,
    share: Arc<Share>,
    /// Whether any engine gains from several operations at a time.
    lanes: Box<[bool]>,
    /// Whether all engines are distant: then this thread could only wait.
    distant: bool,
}

/// Buffers of the thread, used again and again and wiped at the end.
#[derive(Default)]
struct Scratch {
    aad: Zeroizing<Vec<u8>>,
    input: Zeroizing<Vec<u8>>,
    output: Zeroizing<Vec<u8>>,
}

impl Scratch {
    fn is_large(&self) -> bool {
        self.aad.capacity() + self.input.capacity() + self.output.capacity() > KEPT_BYTES
    }
}

/// The first `len` bytes of a buffer that grows as needed. It grows by a new one, so that the old bytes are wiped.
fn room(buffer: &mut Zeroizing<Vec<u8>>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        *buffer = Zeroizing::new(vec![0; len.next_power_of_two()]);
    }
    &mut buffer[..len]
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, client: Arc<Client>, intake: Intake) -> Self {
        let limit = match shared.config.waiting {
            Waiting::Adaptive(limit) | Waiting::Spin(limit) => limit,
            Waiting::Block => Duration::ZERO,
        };
        let engines = shared.config.manager.engines();
        let lanes = Algorithm::ALL.iter().map(|&algorithm| engines.iter().any(|engine| engine.lanes(algorithm) > 1)).collect();
        let distant = !engines.iter().any(|engine| engine.is_local());
        let ring = intake.ring().clone();
        let share = Share::of(shared.config.manager.engines(), ring.region().geometry());
        Self { shared, client, ring, intake, spin: Spin::new(limit), scratch: Scratch::default(), share, lanes, distant }
    }

    /// Works until the client's end.
    pub(crate) fn work(mut self) {
        if let Err(corrupt) = self.work_on() {
            self.shared.misdeed(self.client.peer, &corrupt);
            self.client.socket.shutdown();
        }
        // Whoever still waits is told to look elsewhere: as many as there are slots, for a hostile client fills the ring for ever.
        for _ in 0..self.ring.region().geometry().slots {
            let Ok(Some(taken)) = self.intake.take() else { break };
            self.ring.complete(taken, Outcome::failed(Verdict::Unavailable));
        }
    }

    fn work_on(&mut self) -> std::result::Result<(), Corrupt> {
        while !self.ring.is_interrupted() {
            match self.intake.take()? {
                Some(taken) => self.serve(taken),
                None => self.wait()?,
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> std::result::Result<(), Corrupt> {
        let (budget, shared) = match self.shared.config.waiting {
            Waiting::Adaptive(_) => (self.spin.budget(), true),
            Waiting::Spin(limit) => (limit, false),
            Waiting::Block => (Duration::ZERO, false),
        };
        let turn = (shared && !budget.is_zero()).then(|| SpinTurn::take(&self.shared)).flatten();
        let budget = if shared && turn.is_none() { Duration::ZERO } else { budget };
        let begun = Instant::now();
        if !budget.is_zero() && self.intake.spin(budget) {
            self.spin.learn(begun.elapsed());
            return Ok(());
        }
        drop(turn);
        let timeout = if self.scratch.is_large() { Duration::from_secs(1) } else { IDLE };
        let ready = self.intake.wait(Duration::ZERO, timeout)?;
        self.spin.learn(begun.elapsed());
        if !ready && begun.elapsed() >= timeout {
            self.scratch = Scratch::default();
            self.ring.release_pages();
        }
        Ok(())
    }

    fn serve(&mut self, taken: Taken) {
        let job = taken.job;
        let limit = self.shared.config.quotas.in_flight_max;
        if self.ring.in_flight() > limit {
            self.shared.telemetry.refuse(Quota::InFlight, limit, self.client.peer.pid, self.client.peer.uid);
            return self.ring.complete(taken, Outcome::failed(Verdict::Quota));
        }
        let entry = self.client.sessions.get(job.session).and_then(|entry| job.check(entry.algorithm, entry.tag_len).map(|()| entry));
        match entry {
            Ok(entry) => match self.lease(&entry, &job) {
                Some(lease) => self.hand_over(taken, entry, lease),
                None => {
                    let outcome = self.run(&job, &entry);
                    self.ring.complete(taken, outcome);
                }
            },
            Err(error) => self.ring.complete(taken, Outcome::of(&Err(error))),
        }
    }

    /// Leave to hand a request over. What other clients' requests can share lanes with gathers. Else a lone request stays in this thread if it can be
    /// computed here, and with more behind it, long ones go to the manager's threads.
    fn lease(&self, entry: &Entry, job: &Job) -> Option<Lease> {
        if self.gathers(entry.algorithm) {
            return self.share.take_lane(job);
        }
        let long =
            entry.algorithm.is_public_key() || work_len(job) >= WORTH_SUBMITTING_BYTES || self.lanes[usize::from(entry.algorithm.number())];
        (self.distant || (long && self.intake.is_ready())).then(|| self.share.take(job)).flatten()
    }

    fn gathers(&self, algorithm: Algorithm) -> bool {
        self.shared.config.manager.lanes(algorithm) > 1
    }

    /// Computes in this thread: copies in, runs, copies out.
    fn run(&mut self, job: &Job, entry: &Entry) -> Outcome {
        let (mut iv, mut tag) = ([0; IV_BYTES_MAX as usize], [0; TAG_BYTES_MAX as usize]);
        let (iv, tag) = (&mut iv[..job.iv.len()], &mut tag[..job.tag.len()]);
        let aad = room(&mut self.scratch.aad, job.aad.len());
        let input = room(&mut self.scratch.input, job.input.len());
        self.ring.read(job.iv, iv);
        self.ring.read(job.tag, tag);
        self.ring.read(job.aad, aad);
        self.ring.read(job.input, input);
        if let Err(verdict) = admit(entry, input) {
            return Outcome::failed(verdict);
        }
        let in_place = matches!(entry.algorithm.kind(), Kind::Cipher { .. } | Kind::Aead { .. });
        // Room that the algorithm does not need would only be zeroed and copied.
        let needed = entry.algorithm.output_len(job.input.len());
        let data = if in_place { Data::InPlace(input) } else { Data::Copy { input, output: room(&mut self.scratch.output, needed) } };
        let mut operation = Operation { direction: job.direction, iv, aad, data, tag };
        let result = self.shared.config.manager.run(entry.id, &mut operation);
        let output: &[u8] = match &operation.data {
            Data::InPlace(buffer) => buffer,
            Data::Copy { output, .. } => output,
        };
        answer(&self.ring, &self.client, job, entry, &result, output, operation.tag)
    }

    /// Hands over to the manager; one of its threads, or of its clients', answers.
    fn hand_over(&mut self, taken: Taken, entry: Entry, lease: Lease) {
        let (job, ring, client) = (taken.job, self.ring.clone(), self.client.clone());
        let copy = |span: bywash_protocol::Span| {
            let mut bytes = vec![0; span.len()];
            ring.read(span, &mut bytes);
            bytes
        };
        // Not a vector's: an engine may reach these bytes by itself.
        let mut input = SecretBytes::zeroed(job.input.len());
        ring.read(job.input, &mut input);
        let operation = OwnedOperation {
            direction: job.direction,
            iv: copy(job.iv),
            aad: copy(job.aad),
            input,
            output: SecretBytes::zeroed(entry.algorithm.output_len(job.input.len())),
            tag: copy(job.tag),
        };
        if let Err(verdict) = admit(&entry, &operation.input) {
            return self.ring.complete(taken, Outcome::failed(verdict));
        }
        let (id, algorithm) = (entry.id, entry.algorithm);
        let done = move |Completion { operation, outcome, .. }: Completion| {
            let _until_answered = lease;
            let outcome = answer(&ring, &client, &job, &entry, &outcome, &operation.output, &operation.tag);
            ring.complete(taken, outcome);
        };
        let manager = &self.shared.config.manager;
        if self.gathers(algorithm) {
            manager.gather(id, operation, Box::new(done));
        } else {
            manager.submit(id, operation, Box::new(done));
        }
    }
}

/// As [`Operation::work_len`], of a request that has not been copied in.
fn work_len(job: &Job) -> usize {
    if job.input.is_empty() { job.aad.len() } else { job.input.len() }
}

/// Whether a key of the vault may be used for this.
fn admit(entry: &Entry, input: &[u8]) -> std::result::Result<(), Verdict> {
    entry.key.as_ref().map_or(Ok(()), |key| key.admit(input))
}

/// Writes output and tag back and books the work.
fn answer(ring: &BrokerRing, client: &Client, job: &Job, entry: &Entry, result: &Result<Done>, output: &[u8], tag: &[u8]) -> Outcome {
    entry.key.iter().for_each(|key| key.note(result.is_ok()));
    let written = result.as_ref().map(|done| {
        let written = done.written.min(output.len()).min(job.output.len());
        ring.write(job.output, &output[..written]);
        if job.direction == Direction::Encrypt {
            ring.write(job.tag, tag);
        }
        client.account.add(done.engine.0, entry.algorithm, work_len(job) as u64);
        written
    });
    Outcome::of(&written.map_err(Clone::clone))
}

/// Leave to spin: only some threads may at a time, so that spinning never takes the processors from work.
struct SpinTurn<'a>(&'a Shared);

impl<'a> SpinTurn<'a> {
    fn take(shared: &'a Shared) -> Option<Self> {
        if shared.spinners.fetch_add(1, Relaxed) < shared.spinners_max {
            return Some(Self(shared));
        }
        shared.spinners.fetch_sub(1, Relaxed);
        None
    }
}

impl Drop for SpinTurn<'_> {
    fn drop(&mut self) {
        self.0.spinners.fetch_sub(1, Relaxed);
    }
}
