//! Operations that are there together.

use crate::operation::OperationParts;
use crate::pointer::{borrow, read, write};
use crate::session::SessionHandle;
use crate::status::{Failure, Status, argument, guard, note_at};
use bywash_client::{Session, run_many};
use bywash_core::Operation;

/// Bytes of one operation in the caller's memory.
struct Buffer {
    begin: usize,
    end: usize,
    is_written: bool,
    of: usize,
}

/// Runs `count` operations that are there together, each on the session at the same place: `operations[i]` on `sessions[i]`, which may be the same for several.
/// Those that the routing table keeps in this process go side by side where that gains: CBC encryptions and public-key operations of any sessions of one client.
///
/// Each operation's own outcome, what `bywash_run` would return, is written to its place in `statuses`. Returns `BYWASH_STATUS_OK` if all are that, or else the
/// status of the first that is not, which `bywash_error_message` names; the others have been run all the same.
///
/// What one operation writes (output, tag) no other may read or write. If one does, or an array is null, nothing is run, no status is written, and
/// `BYWASH_STATUS_ERROR_ARGUMENT` is returned. With a `count` of 0 there is nothing to do.
///
/// # Safety
/// The arrays must be valid for `count` entries or null, each session valid or null, every buffer for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_run_many(
    sessions: *const *const SessionHandle,
    operations: *mut OperationParts,
    statuses: *mut Status,
    count: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise. The sessions are only read: several threads may use that array at one time.
        let sessions = unsafe { read(sessions, count, "sessions") }?;
        // SAFETY: as above.
        let (parts, statuses) = unsafe { (write(operations, count, "operations")?, write(statuses, count, "statuses")?) };
        check_apart(parts)?;
        // SAFETY: no operation's buffers are written by another, as just checked; the rest is the caller's promise.
        let mut outcomes: Vec<_> = sessions.iter().zip(&*parts).map(|(&session, parts)| unsafe { prepare(session, parts) }).collect();
        let ready = outcomes.iter_mut().filter_map(|outcome| outcome.as_mut().ok());
        let mut ready: Vec<_> = ready.map(|(session, operation)| (*session, operation.reborrow())).collect();
        let mut done = run_many(&mut ready).into_iter();
        let mut first = Status::Ok;
        for (place, outcome) in outcomes.into_iter().enumerate() {
            // Every operation that was ready has an outcome.
            let outcome = outcome.and_then(|_| done.next().map_or(Ok(0), |done| done.map_err(Failure::from)));
            statuses[place] = match outcome {
                Ok(written) => {
                    parts[place].output_len = written;
                    Status::Ok
                }
                Err(failure) if first == Status::Ok => {
                    first = note_at(place, failure);
                    first
                }
                Err(failure) => failure.status(),
            };
        }
        Ok(first)
    })
}

/// # Safety
/// As [`bywash_run_many`], and no other operation touches what this one writes.
unsafe fn prepare<'a>(session: *const SessionHandle, parts: &OperationParts) -> Result<(&'a Session, Operation<'a>), Failure> {
    // SAFETY: the caller's promise.
    let SessionHandle(session) = unsafe { borrow(session, "session") }?;
    // SAFETY: as above.
    Ok((session, unsafe { parts.borrow(session.params().algorithm().kind()) }?))
}

/// Rust's rule, that what is written is reached by nobody else, between the operations; within one it is checked where it is borrowed.
fn check_apart(operations: &[OperationParts]) -> Result<(), Failure> {
    let mut buffers = Vec::with_capacity(5 * operations.len());
    for (of, parts) in operations.iter().enumerate() {
        for (pointer, len, is_written) in parts.buffers() {
            let begin = pointer as usize;
            buffers.push(Buffer { begin, end: begin.saturating_add(len), is_written, of });
        }
    }
    // A null pointer leads nowhere; its operation fails by itself.
    buffers.retain(|buffer| buffer.begin != 0 && buffer.begin < buffer.end);
    buffers.sort_unstable_by_key(|buffer| buffer.begin);
    // Of the buffers so far, the one that reaches furthest, and the one of those that are written; each of any operation, and of any other than that one's.
    let (mut any, mut written) = (Furthest::default(), Furthest::default());
    for buffer in &buffers {
        let before = if buffer.is_written { &any } else { &written };
        if let Some(of) = before.beyond(buffer) {
            return argument(format!("operations {} and {} overlap where one of them writes", of.min(buffer.of), of.max(buffer.of)));
        }
        any.see(buffer);
        if buffer.is_written {
            written.see(buffer);
        }
    }
    Ok(())
}

/// Where buffers end: that which ends last, with its operation, and that of the other operations which ends last.
#[derive(Default)]
struct Furthest {
    first: Option<(usize, usize)>,
    second: Option<(usize, usize)>,
}

impl Furthest {
    fn see(&mut self, buffer: &Buffer) {
        let new = (buffer.end, buffer.of);
        match self.first {
            Some((end, of)) if of == buffer.of => self.first = Some((end.max(buffer.end), of)),
            Some((end, _)) if end >= buffer.end => self.second = self.second.max(Some(new)),
            _ => self.second = self.first.replace(new),
        }
    }

    /// Another operation, one of whose buffers goes on beyond the beginning of this one.
    fn beyond(&self, buffer: &Buffer) -> Option<usize> {
        let reaches = |&(end, of): &(usize, usize)| of != buffer.of && end > buffer.begin;
        self.first.filter(reaches).or(self.second.filter(reaches)).map(|(_, of)| of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{null, null_mut};

    /// An operation that reads and writes so many bytes at these places of some memory that is never touched.
    fn parts(input: (usize, usize), output: (usize, usize)) -> OperationParts {
        let at = |place: usize| core::ptr::without_provenance_mut::<u8>(0x1_0000 + place);
        OperationParts {
            direction: 0,
            iv: null(),
            iv_len: 0,
            aad: null(),
            aad_len: 0,
            input: at(input.0),
            input_len: input.1,
            output: at(output.0),
            output_len: output.1,
            tag: null_mut(),
            tag_len: 0,
        }
    }

    #[test]
    fn only_what_is_written_must_be_apart() {
        let apart = |operations: &[OperationParts]| check_apart(operations).is_ok();
        assert!(apart(&[]) && apart(&[parts((0, 9), (0, 9))]), "in place");
        assert!(apart(&[parts((0, 64), (100, 64)), parts((32, 64), (200, 64))]), "both read the same");
        assert!(!apart(&[parts((0, 64), (100, 64)), parts((163, 8), (200, 8))]), "the second reads what the first writes");
        assert!(!apart(&[parts((0, 64), (100, 64)), parts((300, 8), (93, 8))]), "both write the same");
        assert!(apart(&[parts((0, 64), (100, 64)), parts((164, 8), (92, 8))]), "side by side");
        assert!(apart(&[parts((0, 64), (100, 64)), parts((300, 0), (110, 0))]), "nothing is nowhere");
        let nowhere = || OperationParts { output: null_mut(), ..parts((0, 9), (0, 9)) };
        assert!(apart(&[nowhere(), nowhere()]), "both write to null, of which each is told");
        // The first's own output, within what it reads, does not hide that it reaches the second's.
        assert!(!apart(&[parts((0, 500), (10, 5)), parts((900, 8), (400, 8))]));
        assert!(!apart(&[parts((900, 8), (400, 8)), parts((0, 500), (10, 5))]));
    }

    /// Against all pairs compared one by one.
    #[test]
    fn the_sweep_finds_what_pairs_show() {
        let mut random = 1u64;
        let mut draw = |below: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % below
        };
        let mut found = [0; 2];
        for _ in 0..4000 {
            let operations: Vec<_> = (0..2 + draw(4)).map(|_| parts((draw(400), draw(30)), (draw(400), draw(30)))).collect();
            let overlap =
                |a: (*const u8, usize, bool), b: (*const u8, usize, bool)| (a.2 || b.2) && crate::pointer::overlap((a.0, a.1), (b.0, b.1));
            let pairs = operations.iter().enumerate().any(|(i, a)| {
                let others = operations[i + 1..].iter().flat_map(OperationParts::buffers);
                others.into_iter().any(|b| a.buffers().into_iter().any(|a| overlap(a, b)))
            });
            assert_eq!(check_apart(&operations).is_err(), pairs);
            found[usize::from(pairs)] += 1;
        }
        assert!(found.iter().all(|&count| count > 500), "{found:?}");
    }

    #[test]
    fn nothing_to_do_and_nowhere_to_look() {
        // SAFETY: null arrays are refused, and no entries are none.
        unsafe {
            assert_eq!(bywash_run_many(null(), null_mut(), null_mut(), 0), Status::Ok);
            assert_eq!(bywash_run_many(null(), null_mut(), null_mut(), 1), Status::ErrorArgument);
        }
    }
}
