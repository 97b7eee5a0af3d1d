//! `CIOCCPHASH`: the message under way in one session goes on in another too.

use crate::errno::Errno;
use crate::hash::{Hash, check_same};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::table::Table;
use bywash_cryptodev_abi::linux::CphashOp;
use std::sync::Arc;

/// Copies the state of a hash.
///
/// # Errors
/// In this order: the argument cannot be read, a session copied to itself, an unknown session, one without a hash, two different hashes.
pub(crate) fn copy(table: &Table, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let asked: CphashOp = program.take::<_, { size_of::<CphashOp>() }>(argument)?;
    if asked.src_ses == asked.dst_ses {
        let why = format!("src_ses and dst_ses are both {:#x}; open a second session to copy to", asked.src_ses);
        return Err(Refusal::new(Errno::EDEADLK, why));
    }
    let (from, to) = (find(table, "src_ses", asked.src_ses)?, find(table, "dst_ses", asked.dst_ses)?);
    let (from_hash, to_hash) = (hash(&from, "src_ses")?, hash(&to, "dst_ses")?);
    check_same(from_hash.kind, to_hash.kind)?;
    // One lock at a time: two copies in opposite directions cannot wait for each other.
    let message = from.state().message.for_another(from_hash)?;
    to.state().message = message;
    Ok(())
}

fn find(table: &Table, field: &str, number: u32) -> Result<Arc<Session>, Refusal> {
    let why = |refusal: Refusal| Refusal::new(Errno::ENOENT, format!("{field}: {}", refusal.why()));
    table.get(number).map_err(why)
}

fn hash<'a>(session: &'a Session, field: &str) -> Result<&'a Hash, Refusal> {
    session.hash.as_ref().ok_or_else(|| Refusal::invalid(format!("{field} has a cipher and no hash; open a session with a mac")))
}
