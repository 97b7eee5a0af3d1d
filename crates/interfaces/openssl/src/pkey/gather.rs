//! Operations that wait for company: how a deferred operation finds its way back.
//!
//! An operation may be put off where something can take the thread elsewhere meanwhile:
//!
//! - a *fiber* of the preload library (`bywash-async`), which suspends the handshakes of servers that know nothing of it;
//! - an *asynchronous job* of OpenSSL (`ASYNC_start_job(3)`), in which programs run that wait on descriptors by themselves: `SSL_MODE_ASYNC` servers such as
//!   haproxy with `ssl-mode-async`, `openssl s_server -async`, `openssl speed -async_jobs`. The job's descriptor is an eventfd, readable when the
//!   operation is done. A connection keeps it for life, so once a quarter of the descriptors that the process may have (`RLIMIT_NOFILE`) is in use no job gets one, and its
//!   operations are computed where they arise.
//!
//! Either way the preload library must be there, since it is what calls [`fire`] when a batch is full or the thread is about to block; without it
//! every operation is computed where it arises.

use super::asynchronous::{Bell, Job};
use crate::errors::{Reason, raise};
use crate::ffi::guard;
use bywash_async_link::{COMPANY_UNKNOWN, Computer, Moment as When, SYMBOL, VERSION, Waiter};
use bywash_client::{Gather, Moment, Session, Ticket};
use bywash_core::{Data, Direction, Key, Operation, OwnedOperation, SecretBytes};
use core::cell::{Cell, RefCell};
use std::sync::OnceLock;

/// Who waits for an operation.
#[derive(Clone, Debug, PartialEq)]
enum Whom {
    Fiber(u64),
    Job(Bell),
}

/// What this thread has put off.
struct Waiting {
    gather: Gather,
    whom: Vec<(Ticket, Whom)>,
}

thread_local! {
    static WAITING: RefCell<Waiting> = RefCell::new(Waiting::new());
    static GIVEN_UP: Cell<bool> = const { Cell::new(false) };
}

/// Runs something on what this thread has put off; `None` while the thread ends.
fn with<R>(run: impl FnOnce(&mut Waiting) -> R) -> Option<R> {
    WAITING.try_with(|waiting| waiting.try_borrow_mut().ok().map(|mut waiting| run(&mut waiting))).ok().flatten()
}

/// Whether the user has set `BYWASH_ASYNC` to this: `off` puts nothing off, `always` everything that can be, gain or not. Asked once, when the
/// provider is loaded: nginx's workers have no environment.
fn is_set_to(value: &str) -> bool {
    static SET: OnceLock<Option<std::ffi::OsString>> = OnceLock::new();
    SET.get_or_init(|| bywash_client::variable("BYWASH_ASYNC")).as_ref().is_some_and(|set| set == value)
}

/// The preload library, if the process has it and wants it used.
fn waiter() -> Option<&'static Waiter> {
    static WAITER: OnceLock<Option<&'static Waiter>> = OnceLock::new();
    *WAITER.get_or_init(|| {
        if is_set_to("off") {
            return None;
        }
        // SAFETY: looks a name up.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, SYMBOL.as_ptr()) }.cast::<Waiter>();
        // SAFETY: null, or what the preload library shows under this name, for as long as the process lives.
        let waiter = unsafe { found.as_ref() }.filter(|waiter| waiter.version == VERSION)?;
        // SAFETY: a table of ours that lives as long: the module is never unloaded.
        unsafe { (waiter.attach)(&COMPUTER) };
        Some(waiter)
    })
}

/// Lets the preload library know that there is somebody to compute. Called when the provider is loaded.
pub(crate) fn attach() {
    waiter();
}

static COMPUTER: Computer = Computer { fire, waiting };

unsafe extern "C" fn waiting() -> u32 {
    guard(0, || with(|waiting| waiting.gather.waiting() as u32).unwrap_or(0))
}

unsafe extern "C" fn fire(when: When, fiber: u64) -> u32 {
    guard(0, || {
        let done = with(|waiting| {
            let moment = match when {
                When::Arrived => Moment::Arrived,
                When::Busy => Moment::Busy,
                When::Blocking => Moment::Blocking,
                When::Demanded => Moment::Demanded(waiting.ticket_of(&Whom::Fiber(fiber))?),
            };
            waiting.forget_jobs();
            Some(waiting.fire(moment))
        });
        let done = done.flatten().unwrap_or_default();
        done.iter().for_each(tell);
        done.len() as u32
    })
}

fn tell(whom: &Whom) {
    match whom {
        Whom::Fiber(fiber) => {
            if let Some(waiter) = waiter() {
                // SAFETY: the preload library's function, in the thread of the fiber.
                unsafe { (waiter.wake)(*fiber) };
            }
        }
        Whom::Job(bell) => bell.ring(),
    }
}

/// A job is gone: nobody will ask for what this thread has put off for it.
pub(super) fn forget_jobs() {
    with(Waiting::forget_jobs);
}

impl Waiting {
    fn new() -> Self {
        let gather = if is_set_to("always") { Gather::putting_all_off() } else { Gather::new() };
        Self { gather, whom: Vec::new() }
    }

    fn ticket_of(&self, whom: &Whom) -> Option<Ticket> {
        self.whom.iter().find(|(_, other)| other == whom).map(|(ticket, _)| *ticket)
    }

    /// Withdraws what waits for jobs that are gone, whichever thread has freed them.
    fn forget_jobs(&mut self) {
        let gone = |whom: &Whom| matches!(whom, Whom::Job(bell) if bell.is_forgotten());
        for (ticket, _) in self.whom.extract_if(.., |(_, whom)| gone(whom)) {
            self.gather.withdraw(ticket);
        }
    }

    fn remove(&mut self, ticket: Ticket) {
        self.gather.withdraw(ticket);
        self.whom.retain(|(other, _)| *other != ticket);
    }

    fn fire(&mut self, moment: Moment) -> Vec<Whom> {
        let done = self.gather.fire(moment);
        self.whom.iter().filter(|(ticket, _)| done.contains(ticket)).map(|(_, whom)| whom.clone()).collect()
    }
}

/// The handshake of an operation was given up: nobody is to compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivenUp;

/// An attempt to do something by [`compute`]; `None` where it has to be done otherwise.
pub(super) fn attempt<T>(run: impl FnOnce() -> Option<T>) -> Result<Option<T>, GivenUp> {
    GIVEN_UP.set(false);
    let done = run();
    if GIVEN_UP.take() { Err(GivenUp) } else { Ok(done) }
}

/// Runs one public-key operation, now or in company. Called within an [`attempt`].
pub(super) fn compute(session: &Session, input: &[u8], output: &mut [u8], tag: &mut [u8]) -> Option<usize> {
    if matches!(session.params().key(), Key::Vault(_)) {
        let data = Data::Copy { input, output };
        let result = session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag });
        // Nobody else can do it, so the program is told why.
        // By its number, nginx would take the reason that goes with most such errors for libssl's "no suitable key share", a client's fault, and not log it.
        return result.inspect_err(|error| _ = raise(Reason::FailedToSign, &error.to_string())).ok();
    }
    if let Some(waiter) = waiter() {
        if tag.is_empty()
            && let Some(put_off) = PutOff::begin(waiter, session, input, output.len())
        {
            return put_off.finish(waiter, output);
        }
        let operation = &mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data: Data::Copy { input, output }, tag };
        return match with(|waiting| waiting.gather.run(session, operation)) {
            Some(outcome) => outcome.ok(),
            None => session.run(operation).ok(),
        };
    }
    session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data: Data::Copy { input, output }, tag }).ok()
}

/// An operation that waits.
struct PutOff {
    ticket: Ticket,
    job: Option<Job>,
}

impl PutOff {
    /// Puts an operation off, if it gains by that and its thread can turn to something else.
    fn begin(waiter: &Waiter, session: &Session, input: &[u8], room: usize) -> Option<Self> {
        // SAFETY: the preload library's function, without arguments.
        let company = unsafe { (waiter.company)() };
        let hoped = |waiting: &mut Waiting| {
            let company = if company == COMPANY_UNKNOWN { usize::MAX } else { company as usize };
            let company = company.max(waiting.whom.len() + 1);
            waiting.gather.is_worth_waiting(session, company)
        };
        if !with(hoped)? {
            return None;
        }
        // SAFETY: as above.
        let fiber = unsafe { (waiter.fiber)() };
        let job = if fiber == 0 { Some(Job::current()?) } else { None };
        let whom = job.as_ref().map_or(Whom::Fiber(fiber), |job| Whom::Job(job.bell().clone()));
        let (input, output) = (SecretBytes::from(input), SecretBytes::zeroed(room));
        let operation = OwnedOperation { direction: Direction::Compute, iv: Vec::new(), aad: Vec::new(), input, output, tag: Vec::new() };
        let ticket = with(|waiting| {
            let ticket = waiting.gather.add(session, operation).ok()?;
            waiting.whom.push((ticket, whom));
            Some(ticket)
        });
        Some(Self { ticket: ticket??, job })
    }

    /// Waits for the outcome.
    fn finish(self, waiter: &Waiter, output: &mut [u8]) -> Option<usize> {
        match &self.job {
            // SAFETY: on the fiber that `Waiter::fiber` has named.
            None if unsafe { (waiter.suspend)() } == 1 => {}
            None => {
                // Done or not: it may have been woken before it was given up.
                with(|waiting| waiting.remove(self.ticket));
                GIVEN_UP.set(true);
                return None;
            }
            Some(job) => job.pause(),
        }
        let outcome = with(|waiting| {
            if self.job.is_some() && !waiting.gather.is_done(self.ticket) {
                // The program has come back by itself: it does not wait, so neither do we.
                waiting.fire(Moment::Demanded(self.ticket)).iter().for_each(tell);
            }
            let outcome = waiting.gather.take(self.ticket);
            waiting.remove(self.ticket);
            outcome
        });
        let done = outcome.flatten()?.ok()?;
        output.copy_from_slice(&done.output);
        Some(done.output.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_client::{Client, Config};
    use bywash_core::{Algorithm, SessionParams};
    use core::ffi::c_int;

    const FIBER: u64 = 7;

    unsafe extern "C" fn no_attach(_: &'static Computer) {}
    unsafe extern "C" fn on_fiber() -> u64 {
        FIBER
    }
    /// The operation is computed, and then its handshake is given up.
    unsafe extern "C" fn wake_and_give_up() -> c_int {
        // SAFETY: our own function, in the thread that gathered.
        assert_eq!(unsafe { fire(When::Demanded, FIBER) }, 1);
        0
    }
    unsafe extern "C" fn no_wake(_: u64) {}
    unsafe extern "C" fn crowd() -> u32 {
        8
    }

    static GIVES_UP: Waiter =
        Waiter { version: VERSION, attach: no_attach, fiber: on_fiber, suspend: wake_and_give_up, wake: no_wake, company: crowd };

    #[test]
    fn an_operation_given_up_when_it_is_done_fails_and_harms_no_other() {
        let client = Client::new(Config::default());
        let private = Key::EcPrivate(SecretBytes::from(&[9; 32][..]));
        let session = client.session(SessionParams::new(Algorithm::X25519Public, private).unwrap()).unwrap();
        with(|waiting| waiting.gather = Gather::putting_all_off());
        let mut public = [0; 32];
        let given_up = attempt(|| PutOff::begin(&GIVES_UP, &session, &[], public.len()).unwrap().finish(&GIVES_UP, &mut public));
        assert_eq!((given_up, public), (Err(GivenUp), [0; 32]));
        assert!(with(|waiting| waiting.whom.is_empty() && waiting.gather.waiting() == 0).unwrap());
        GIVEN_UP.set(true);
        assert_eq!(attempt(|| None::<()>), Ok(None), "what another has left behind says nothing of this one");
    }

    #[test]
    fn what_waits_for_a_job_that_another_thread_has_freed_is_withdrawn() {
        let client = Client::new(Config::default());
        let private = Key::EcPrivate(SecretBytes::from(&[9; 32][..]));
        let session = client.session(SessionParams::new(Algorithm::X25519Public, private).unwrap()).unwrap();
        with(|waiting| waiting.gather = Gather::putting_all_off());
        let _waits = PutOff::begin(&GIVES_UP, &session, &[], 32).unwrap();
        let bell = super::super::asynchronous::tests::forgotten();
        with(|waiting| waiting.whom[0].1 = Whom::Job(bell));
        // SAFETY: our own function, in the thread that gathered.
        assert_eq!(unsafe { fire(When::Blocking, 0) }, 0, "nobody wants it");
        assert!(with(|waiting| waiting.whom.is_empty() && waiting.gather.waiting() == 0).unwrap());
    }
}
