//! What lies behind *queue*: a broker's connection or this process's own manager, made when first needed, replaced when it ends or when the
//! process forks.

use crate::attempts::{Attempts, Failed};
use crate::config::{Config, Route};
use crate::embedded::Embedded;
use crate::link::Link;
use crate::usage::{Usage, is_time_to_look, stripe};
use arc_swap::{ArcSwapOption, Guard};
use bywash_core::{Algorithm, Error, Place, Result};
use bywash_protocol::{ForkGuard, TraceEntry, monotonic_ns};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::time::Duration;

/// The connection and what belongs to it. Nothing here is ever locked, so a fork finds nothing held.
pub(crate) struct Upstream {
    config: Config,
    guard: Result<ForkGuard>,
    link: ArcSwapOption<Link>,
    /// Whether there ever was one.
    was_linked: AtomicBool,
    embedded: ArcSwapOption<Embedded>,
    attempts: Attempts,
    /// Why there is no connection.
    failure: ArcSwapOption<String>,
    connections: AtomicU64,
    /// Counted while there was no connection, to be told to the next broker.
    untold: Usage,
    /// Told to brokers that are gone.
    told: Usage,
}

/// How long a thread waits at most for what another one is making, and how long between two looks.
const PATIENCE: Duration = Duration::from_millis(500);
const MOMENT: Duration = Duration::from_micros(100);

/// Where a session is to be opened.
pub(crate) enum Queue {
    Broker(Arc<Link>),
    Embedded(Arc<Embedded>),
}

impl Upstream {
    pub(crate) fn new(config: Config) -> Self {
        let attempts = config.behalf.as_ref().map_or_else(Attempts::default, |behalf| Attempts::sharing(behalf.times()));
        Self {
            config,
            guard: ForkGuard::new(),
            link: ArcSwapOption::empty(),
            was_linked: AtomicBool::new(false),
            embedded: ArcSwapOption::empty(),
            attempts,
            failure: ArcSwapOption::empty(),
            connections: AtomicU64::new(0),
            untold: Usage::new(),
            told: Usage::new(),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The connection as one operation meets it.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        View { upstream: self, link: self.link.load() }
    }

    /// Where the routing table sends an operation: one load of the connection, one of the broker's table.
    #[inline]
    pub(crate) fn place(&self, algorithm: Algorithm, bytes: usize) -> Place {
        match self.config.route {
            Route::Here => Place::Here,
            Route::Queue => Place::Queue,
            Route::Auto => self.view().place(algorithm, bytes),
        }
    }

    /// Whether operations of this algorithm run in place whatever their size. Looks for a broker first, where there is none yet.
    pub(crate) fn keeps(&self, algorithm: Algorithm) -> bool {
        if self.config.route == Route::Queue {
            return false;
        }
        if self.config.socket.is_none() {
            return true;
        }
        self.glance();
        match &*self.link.load() {
            Some(link) if !self.has_forked() && link.life.is_usable() => self.config.route == Route::Here || link.board.keeps(algorithm),
            _ => true,
        }
    }

    /// Whether there never was a connection: what the routing table may keep in place is kept there, and nobody records it.
    #[inline]
    pub(crate) fn is_unlinked(&self) -> bool {
        !self.was_linked.load(Relaxed)
    }

    /// [Counts](Self::count) what was run when there [never was a connection](Self::is_unlinked).
    #[inline]
    pub(crate) fn count_unlinked(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        if self.has_forked() {
            return self.view().count(algorithm, operations, bytes);
        }
        let is_time_to_look = self.untold.add_and_look(algorithm, operations, bytes);
        // As in `tell`: if it is not seen here that there is a connection now, what was added is seen there.
        if self.was_linked.load(SeqCst) {
            self.tell_now();
        }
        if is_time_to_look {
            self.look();
        }
    }

    /// Counts work done in place.
    #[inline]
    pub(crate) fn count(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        if self.is_unlinked() { self.count_unlinked(algorithm, operations, bytes) } else { self.view().count(algorithm, operations, bytes) }
    }

    /// Counts for a broker of later. The operation may have begun before there was a connection, and ended now that there is one.
    #[cold]
    fn count_untold(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        self.untold.add(algorithm, operations, bytes);
        self.tell_now();
    }

    /// Tells the broker that there is now, if there is one.
    #[cold]
    fn tell_now(&self) {
        fence(SeqCst);
        if let Some(link) = &*self.link.load()
            && !self.has_forked()
        {
            self.tell(link);
        }
    }

    /// Notes a batch, for the broker's account of this run; without a broker nobody keeps one.
    pub(crate) fn count_batch(&self, algorithm: Algorithm, operations: u64) {
        if let Some(link) = &*self.link.load()
            && !self.has_forked()
        {
            link.ring.region().count_batch(stripe(), algorithm, operations);
        }
    }

    /// Leaves what no broker was told of to another client, which tells the next one.
    pub(crate) fn leave_to(&self, other: &Self) {
        self.untold.drain(|algorithm, operations, bytes| other.count(algorithm, operations, bytes));
    }

    /// Operations and bytes run here by this process.
    pub(crate) fn counted(&self, algorithm: Algorithm) -> (u64, u64) {
        let (mut operations, mut bytes) = self.untold.of(algorithm);
        let mut add = |(more, size): (u64, u64)| (operations, bytes) = (operations + more, bytes + size);
        add(self.told.of(algorithm));
        if let Some(link) = &*self.link.load() {
            let usage = link.ring.region().usage(algorithm);
            add((usage.operations, usage.bytes));
        }
        (operations, bytes)
    }

    /// Whether in-place requests are to be traced.
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.view().is_recording()
    }

    pub(crate) fn trace(&self, entry: TraceEntry) {
        if let Some(link) = &*self.link.load()
            && !self.has_forked()
        {
            link.ring.region().trace(entry);
        }
    }

    #[inline]
    fn has_forked(&self) -> bool {
        self.guard.as_ref().is_ok_and(ForkGuard::has_forked)
    }

    /// Leaves everything to the parent that is the parent's. Every thread of a child that gets here does the same, and nothing twice.
    pub(crate) fn settle_fork(&self) {
        if !self.has_forked() {
            return;
        }
        if let Some(link) = self.link.load_full().filter(|link| !link.life.is_mine()) {
            link.life.end();
            self.link.compare_and_swap(&link, None);
        }
        if let Some(embedded) = self.embedded.load_full().filter(|embedded| !embedded.is_mine()) {
            embedded.disown();
            self.embedded.compare_and_swap(&embedded, None);
        }
        for usage in [&self.untold, &self.told] {
            usage.drain(|_, _, _| {});
        }
        self.attempts.reset(monotonic_ns(), true);
        if let Ok(guard) = &self.guard {
            guard.renew();
        }
    }

    /// In a child of fork: whether what is the parent's has been left to it, and looked for a broker of the child's own. What a child counted before that would be left with it.
    #[cold]
    fn has_settled(&self) -> bool {
        self.look();
        !self.has_forked()
    }

    /// Makes a connection where there is none, and looks now and then whether the one there is still lives. A server opens sessions by the thousand, so
    /// this makes no system call each time.
    #[inline]
    pub(crate) fn glance(&self) {
        let connected = !self.has_forked() && self.view().is_usable();
        if !connected || is_time_to_look() {
            self.look();
        }
    }

    /// Looks whether the connection lives, and for a new one where it does not.
    #[cold]
    pub(crate) fn look(&self) {
        self.settle_fork();
        if self.config.socket.is_some() && !self.link.load().as_ref().is_some_and(|link| link.life.check()) {
            self.link();
        }
    }

    /// What queued operations go to; `None` runs them here.
    pub(crate) fn queue(&self) -> Option<Queue> {
        self.settle_fork();
        match self.config.socket {
            Some(_) => self.patiently(Self::link).filter(|link| link.is_usable()).map(Queue::Broker),
            None if self.guard.is_err() => None,
            None => self.patiently(Self::embedded).map(Queue::Embedded),
        }
    }

    /// What another thread is making for the first time is waited for: what is to go to the queue would run here meanwhile, thousands of short operations. What has failed, or ended,
    /// is not.
    fn patiently<T>(&self, get: impl Fn(&Self) -> Option<T>) -> Option<T> {
        let begun = monotonic_ns();
        loop {
            let found = get(self);
            let now = monotonic_ns();
            if found.is_some() || !self.attempts.until_next(now).is_zero() || now - begun > PATIENCE.as_nanos() as u64 {
                return found;
            }
            std::thread::sleep(MOMENT);
        }
    }

    /// The connection to the broker, for a question that cannot be answered without it.
    pub(crate) fn link_now(&self) -> Option<Arc<Link>> {
        self.settle_fork();
        self.patiently(Self::link).filter(|link| link.is_usable())
    }

    /// Why there is no broker, in words.
    pub(crate) fn why_alone(&self) -> String {
        match (&self.config.socket, &*self.failure.load()) {
            (None, _) => "no broker is configured (BYWASH_SOCKET)".into(),
            (Some(_), Some(why)) => why.to_string(),
            (Some(socket), None) => format!("the broker on {} is shutting down", socket.display()),
        }
    }

    /// The connection, made anew if need be and if it is time.
    fn link(&self) -> Option<Arc<Link>> {
        let old = self.link.load_full();
        if old.as_ref().is_some_and(|link| link.life.is_usable()) {
            return old;
        }
        if let Some(dead) = old {
            self.retire(&dead);
        }
        let path = self.config.socket.as_deref()?;
        if !self.attempts.begin(monotonic_ns()) {
            return None;
        }
        // Another thread's attempt may have ended between the two looks.
        if let Some(made) = self.link.load_full().filter(|link| link.life.is_usable()) {
            self.attempts.end(monotonic_ns(), Ok(()));
            return Some(made);
        }
        let outcome = self.guard.as_ref().map_err(Clone::clone).and_then(|_| Link::connect(path, &self.config));
        let made = self.note(outcome);
        if let Some(link) = &made {
            self.connections.fetch_add(1, Relaxed);
            self.was_linked.store(true, SeqCst);
            self.link.store(made.clone());
            self.tell(link);
        }
        self.attempts.end(monotonic_ns(), made.as_ref().map(|_| ()).ok_or_else(|| self.manner_of_failure()));
        made
    }

    /// Tells a broker what was counted before its connection was there.
    fn tell(&self, link: &Link) {
        // Who counts adds and then looks for a connection; here it is put down, and then what was added is looked at. So one of the two sees the other.
        fence(SeqCst);
        self.untold.drain(|algorithm, operations, bytes| link.ring.region().count(stripe(), algorithm, operations, bytes));
    }

    fn note(&self, outcome: Result<Arc<Link>>) -> Option<Arc<Link>> {
        match outcome {
            Ok(link) => {
                self.failure.store(None);
                Some(link)
            }
            Err(error) => {
                self.failure.store(Some(Arc::new(error.to_string())));
                None
            }
        }
    }

    fn manner_of_failure(&self) -> Failed {
        let hung = |words: &Arc<String>| words.starts_with("no answer");
        if self.failure.load().as_ref().is_some_and(hung) { Failed::Hung } else { Failed::Fast }
    }

    /// Keeps what a dead connection had counted.
    fn retire(&self, dead: &Arc<Link>) {
        let before = self.link.compare_and_swap(dead, None);
        if !before.as_ref().is_some_and(|before| Arc::ptr_eq(before, dead)) {
            return;
        }
        for &algorithm in Algorithm::ALL {
            let usage = dead.ring.region().usage(algorithm);
            self.told.add(algorithm, usage.operations, usage.bytes);
        }
        self.failure.store(Some(Arc::new("the connection has ended".into())));
        self.attempts.reset(monotonic_ns(), false);
    }

    fn embedded(&self) -> Option<Arc<Embedded>> {
        let old = self.embedded.load_full();
        if old.is_some() || self.guard.is_err() || !self.attempts.begin(monotonic_ns()) {
            return old;
        }
        if let Some(made) = self.embedded.load_full() {
            self.attempts.end(monotonic_ns(), Ok(()));
            return Some(made);
        }
        let made = Embedded::new().inspect_err(|error| self.failure.store(Some(Arc::new(error.to_string())))).ok();
        self.embedded.store(made.clone());
        self.attempts.end(monotonic_ns(), if made.is_some() { Ok(()) } else { Err(Failed::Fast) });
        made
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Relaxed)
    }

    /// Where things stand, in words.
    pub(crate) fn status(&self) -> String {
        if let Err(error) = &self.guard {
            return format!("working in this process: {error}");
        }
        let Some(socket) = &self.config.socket else {
            return match &*self.failure.load() {
                Some(why) => format!("working in place: this process's own manager cannot be made: {why}"),
                None => "working in this process: no broker is configured (BYWASH_SOCKET)".into(),
            };
        };
        match &*self.link.load() {
            Some(link) if !self.has_forked() && link.life.check() => match link.board.is_draining() {
                true => format!("working in this process: the broker on {} is shutting down", socket.display()),
                false => format!("connected to the broker on {}", socket.display()),
            },
            _ => self.status_alone(&socket.display().to_string()),
        }
    }

    fn status_alone(&self, socket: &str) -> String {
        let next = self.attempts.until_next(monotonic_ns()).as_millis();
        match &*self.failure.load() {
            Some(why) => format!("working in this process: {why} ({socket}; next try in {next} ms or when work comes)"),
            None => format!("working in this process: the broker on {socket} was not needed yet"),
        }
    }
}

/// The connection as one operation meets it: loaded once, for all that has to be asked of it. Not to be kept while an operation waits.
pub(crate) struct View<'a> {
    upstream: &'a Upstream,
    link: Guard<Option<Arc<Link>>>,
}

impl View<'_> {
    #[inline]
    fn is_usable(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.life.is_usable())
    }

    /// As [`Upstream::place`].
    #[inline]
    pub(crate) fn place(&self, algorithm: Algorithm, bytes: usize) -> Place {
        match self.upstream.config.route {
            Route::Here => Place::Here,
            Route::Queue => Place::Queue,
            Route::Auto => match &*self.link {
                Some(link) if link.life.is_usable() => link.board.place(algorithm, bytes),
                _ => Place::Here,
            },
        }
    }

    /// As [`Upstream::is_recording`].
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        matches!(&*self.link, Some(link) if link.board.is_recording() && !self.upstream.has_forked())
    }

    /// As [`Upstream::count`].
    #[inline]
    pub(crate) fn count(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        let has_forked = self.upstream.has_forked();
        if has_forked && self.upstream.has_settled() {
            return self.upstream.count(algorithm, operations, bytes);
        }
        match &*self.link {
            Some(link) if !has_forked => link.ring.region().count(stripe(), algorithm, operations, bytes),
            _ => self.upstream.count_untold(algorithm, operations, bytes),
        }
        if is_time_to_look() {
            self.upstream.look();
        }
    }
}

/// The error of an operation that was given to another process's connection.
pub(crate) fn of_parent() -> Error {
    Error::Unavailable { what: "this operation was submitted by the parent process and is completed there; submit it again".into() }
}
