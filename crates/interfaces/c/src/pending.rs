//! Operations under way.

use crate::operation::OperationParts;
use crate::pointer::{borrow, borrow_mut, hand_out, place, take_back};
use crate::session::SessionHandle;
use crate::status::{Failure, Status, guard};
use bywash_client::Pending;
use bywash_core::{Algorithm, Error, OwnedOperation};
use std::time::Duration;

/// An operation under way.
pub struct PendingHandle {
    algorithm: Algorithm,
    state: State,
}

enum State {
    Waiting(Pending),
    Done(OwnedOperation),
    Failed(Error),
    Delivered,
}

impl PendingHandle {
    /// Looks, waiting at most that long; afterwards the state is not `Waiting` if the operation is done.
    fn look(&mut self, timeout: Duration) {
        let State::Waiting(pending) = &mut self.state else { return };
        let outcome = if timeout.is_zero() { pending.try_wait() } else { pending.wait_timeout(timeout) };
        match outcome {
            None => {}
            Some(Ok(operation)) => self.state = State::Done(operation),
            Some(Err(error)) => self.state = State::Failed(error),
        }
    }

    /// # Safety
    /// The buffers of `parts` must be valid for their lengths, or null.
    unsafe fn deliver(&mut self, parts: &mut OperationParts) -> Result<Status, Failure> {
        match &self.state {
            State::Waiting(_) => return Ok(Status::Pending),
            State::Failed(error) => return Err(error.clone().into()),
            State::Delivered => return Err(Error::Unavailable { what: "the result was delivered before".into() }.into()),
            // SAFETY: the caller's promise.
            State::Done(operation) => unsafe { parts.deliver(operation, self.algorithm.output_len(operation.input.len())) }?,
        }
        self.state = State::Delivered;
        Ok(Status::Ok)
    }
}

/// Hands one operation over and returns at once. Input, IV, AAD and tag are copied; of `output` only `output_len`, the room, is used.
///
/// # Safety
/// Every pointer must be valid or null, every buffer for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_submit(
    session: *const SessionHandle,
    operation: *const OperationParts,
    pending: *mut *mut PendingHandle,
) -> Status {
    guard(|| {
        place(pending, "pending")?;
        // SAFETY: the caller's promise.
        let (session, operation) = unsafe { (borrow(session, "session")?, borrow(operation, "operation")?) };
        let algorithm = session.0.params().algorithm();
        // SAFETY: the caller's promise.
        let state = State::Waiting(session.0.submit(unsafe { operation.to_owned(algorithm) }?));
        // SAFETY: checked by `place`; the caller's promise.
        unsafe { hand_out(pending, PendingHandle { algorithm, state }) };
        Ok(Status::Ok)
    })
}

/// Whether an operation is done: `BYWASH_STATUS_OK` if `bywash_wait` will not wait, `BYWASH_STATUS_PENDING` if not. Never waits.
///
/// # Safety
/// `pending` must be valid or null, and no other thread may use it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_poll(pending: *mut PendingHandle) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let pending = unsafe { borrow_mut(pending, "pending") }?;
        pending.look(Duration::ZERO);
        Ok(if matches!(pending.state, State::Waiting(_)) { Status::Pending } else { Status::Ok })
    })
}

/// Waits at most `timeout_ms`, then delivers output and tag into the buffers of `operation` (its input fields are not used), or returns
/// `BYWASH_STATUS_PENDING`. A result is delivered once; free the handle afterwards.
///
/// # Safety
/// Every pointer must be valid or null, `output` and `tag` for their lengths, and no other thread may use `pending` meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_wait(pending: *mut PendingHandle, timeout_ms: u32, operation: *mut OperationParts) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (pending, parts) = unsafe { (borrow_mut(pending, "pending")?, borrow_mut(operation, "operation")?) };
        pending.look(Duration::from_millis(timeout_ms.into()));
        // SAFETY: the caller's promise.
        unsafe { pending.deliver(parts) }
    })
}

/// Frees a pending operation, done or not; one not done still runs, and its result is wiped.
///
/// # Safety
/// `pending` must be null or come from `bywash_submit`, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_pending_free(pending: *mut PendingHandle) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { take_back(pending) };
        Ok(Status::Ok)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Config, bywash_client_free, bywash_client_new};
    use crate::operation::COMPUTE;
    use crate::session::{bywash_session_free, bywash_session_symmetric};
    use core::ptr::{null, null_mut};

    #[test]
    fn room_without_end_costs_nothing() {
        let (mut client, mut session, mut pending) = (null_mut(), null_mut(), null_mut());
        let config = Config { socket: null(), route: 0, run: null() };
        let mut digest = [0; 32];
        let mut parts = OperationParts {
            direction: COMPUTE,
            iv: null(),
            iv_len: 0,
            aad: null(),
            aad_len: 0,
            input: null(),
            input_len: 0,
            output: digest.as_mut_ptr(),
            output_len: usize::MAX / 4,
            tag: null_mut(),
            tag_len: 0,
        };
        // SAFETY: every pointer is null or leads to a local of this function; `output` is not touched before its length is told truly.
        unsafe {
            assert_eq!(bywash_client_new(&raw const config, &raw mut client), Status::Ok);
            assert_eq!(bywash_session_symmetric(client, c"SHA-256".as_ptr(), null(), 0, 0, &raw mut session), Status::Ok);
            assert_eq!(bywash_submit(session, &raw const parts, &raw mut pending), Status::Ok);
            parts.output_len = 32;
            assert_eq!(bywash_wait(pending, 60_000, &raw mut parts), Status::Ok);
            bywash_pending_free(pending);
            bywash_session_free(session);
            bywash_client_free(client);
        }
        assert_eq!(digest[..4], [0xe3, 0xb0, 0xc4, 0x42], "SHA-256 of nothing");
    }
}
