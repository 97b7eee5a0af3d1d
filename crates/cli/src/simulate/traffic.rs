//! The requests: a log, a recording, or the generator of niwa2005.

use super::Args;
use crate::failure::Failure;
use crate::shown::Shown;
use crate::terminal::{counted, say, thousands};
use crate::texts;
use bywash_core::DeviceSheet;
use bywash_sim::Trace;
use bywash_sim::generate::{Reading, generate};
use bywash_sim::log::{self, Log, Missing};
use bywash_sim::niwa2005::{LESSONS, each_lesson};
use std::path::Path;

/// More requests of one client than this are doubted.
const ONE_CLIENTS_MAX: usize = 1000;

/// Where requests come from.
pub(crate) enum Traffic {
    /// A file: what is learnt from, what is served.
    Log { lesson: Trace, served: Trace },
    /// The generator.
    Generated(Reading),
}

/// Requests, and what is said of them.
pub(crate) struct Source {
    pub(crate) traffic: Traffic,
    pub(crate) told: Vec<String>,
}

impl Source {
    /// As the arguments say; `like` is the engine whose circuits requests are numbered by, `learns` says whether any policy learns.
    pub(crate) fn new(args: &Args, like: &DeviceSheet, learns: bool) -> Result<Self, Failure> {
        match &args.trace {
            Some(path) => Self::log(path, args, like),
            None => Ok(Self::generated(args.requests, like, learns)),
        }
    }

    fn log(path: &Path, args: &Args, like: &DeviceSheet) -> Result<Self, Failure> {
        let (lines, place) = texts::trace(path)?;
        let log = log::read(lines, &place, like)?;
        doubts(&log, &place);
        let learnt = (log.trace.len() as f64 * args.train) as usize;
        let served = log.trace.part(learnt..log.trace.len());
        if served.is_empty() {
            return Err(Failure::config(format!(
                "{place}: {} requests, and none is left to serve after --train {}",
                log.trace.len(),
                args.train
            )));
        }
        if args.gives_a_rate() && served.span() == 0.0 {
            let reason =
                "what is served arrives all at once, so it cannot be stretched to a rate; leave the rate out, or give a longer trace";
            return Err(Failure::config(format!("{place}: {reason}")));
        }
        let mut told = vec![format!(
            "{}: {} over {}, after {} to learn from",
            texts::name(path, &place),
            counted(served.len() as u64, "request"),
            super::text::seconds(served.span()),
            thousands(learnt as u64)
        )];
        let whole = served.iter().all(|request| request.arrival.fract() == 0.0);
        told.extend(coarse(served.len(), served.span(), whole));
        if log.clients > 0 {
            told.push(format!("{}; the n-th new one uses circuit n modulo {}", counted(log.clients as u64, "client"), like.circuits.len()));
        }
        if log.foreign.total() > 0 {
            let (requests, algorithms) = (thousands(log.foreign.total()), &log.foreign);
            told.push(format!("{requests} requests left out: no circuit of '{}' computes their algorithm: {algorithms}", like.name));
        }
        told.extend(missing(&log.missing));
        if args.seeds > 1 {
            told.push("a trace is the same for every seed: only nopredict, which loads at random, differs".to_owned());
        }
        let lesson = log.trace.part(0..learnt);
        Ok(Self { traffic: Traffic::Log { lesson, served }, told })
    }

    fn generated(requests: usize, like: &DeviceSheet, learns: bool) -> Self {
        let reading = Reading { requests, circuits: like.circuits.len() as u8, ..Reading::default() };
        let lessons = if learns { format!(", after {} other traces to learn from", LESSONS.count()) } else { String::new() };
        let told = vec![format!("{} requests by the generator of niwa2005{lessons}", thousands(requests as u64))];
        Self { traffic: Traffic::Generated(reading), told }
    }

    /// The trace of a seed.
    pub(crate) fn trace(&self, seed: u64) -> std::borrow::Cow<'_, Trace> {
        use std::borrow::Cow;
        match &self.traffic {
            Traffic::Log { served, .. } => Cow::Borrowed(served),
            Traffic::Generated(reading) => Cow::Owned(generate(reading, seed)),
        }
    }

    /// Shows what policies learn from to some pupils, each trace to one of them.
    pub(crate) fn teach<T: Send>(&self, new: impl Fn() -> T + Sync, teach: impl Fn(&mut T, &Trace) + Sync) -> Vec<T> {
        match &self.traffic {
            Traffic::Log { lesson, .. } => {
                let mut pupil = new();
                teach(&mut pupil, lesson);
                vec![pupil]
            }
            Traffic::Generated(reading) => each_lesson(reading, new, teach),
        }
    }
}

/// What a log has no request for, though something was asked; nothing to say of a whole one.
pub(super) fn missing(missing: &Missing) -> Vec<String> {
    let Missing { unreadable, reasons, lost, calls } = missing;
    let first: Vec<String> = reasons.iter().map(|(line, reason)| format!("line {line}: {reason}")).collect();
    let cut = if *unreadable > first.len() as u64 { format!("the first {}: ", first.len()) } else { String::new() };
    let lost = (*lost > 0).then(|| format!("{} requests were lost while it was recorded", thousands(*lost)));
    let unreadable = (*unreadable > 0).then(|| format!("lines that cannot be read: {}; {cut}{}", thousands(*unreadable), first.join("; ")));
    let calls =
        calls.then(|| "recorded by an older release: in how many calls a message came is not known, and each is taken for one".to_owned());
    calls.into_iter().chain(lost).chain(unreadable).collect()
}

/// Warns of a log whose first column is hardly its clients'.
fn doubts(log: &Log, place: &str) {
    if let Some(client) = log.only_client.as_ref().filter(|_| log.trace.len() > ONE_CLIENTS_MAX) {
        let requests = thousands(log.trace.len() as u64);
        say!(
            "bywash: {place}: all {requests} requests are of one client, {}, so that one circuit would do; if that is a proxy or the server itself, have the \
             server log its clients first",
            client.shown()
        );
    }
}

/// What times in whole seconds, as servers log them, do to the figures of so many requests over so many seconds.
pub(super) fn coarse(requests: usize, span: f64, whole: bool) -> Option<String> {
    if requests < 2 || !whole {
        return None;
    }
    let so_far = "its times are whole seconds: what came within one is taken to arrive at once, and waits longer than it really did";
    // The first and the last second are each part of one, so that the span is known to a second more or less.
    let share = 100.0 / span.max(1.0);
    Some(if share < 2.0 { so_far.to_owned() } else { format!("{so_far}; rates are known to some {share:.0} %") })
}
