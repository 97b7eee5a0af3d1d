//! Every chunk of a file looked at, and every damaged one named.

use crate::disk::{Access, Disk};
use crate::error::{Damage, DamageKind, Result};
use crate::geometry::OVERHEAD;
use crate::header::Header;
use crate::kdf::FileKeys;
use crate::nonce::NonceSource;
use crate::sealer::{Place, Sealer};
use bywash_client::Client;
use bywash_core::SecretVec;
use core::ops::ControlFlow;
use std::sync::Arc;

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Chunks, damaged ones among them.
    pub chunks: u64,
    /// Damaged ones.
    pub damaged: u64,
    /// Bytes of text in the others.
    pub good_bytes: u64,
}

/// Looks at every chunk of a file whose header has proved authentic, as the file stands on the disk, until it is told that that is enough; a journal is not looked at.
///
/// # Errors
/// `ResourceBusy` if somebody writes to it; an engine's; what cannot be read is damage.
pub fn check(
    client: &Client,
    header: &Header,
    keys: FileKeys,
    disk: &dyn Disk,
    mut report: impl FnMut(Damage) -> ControlFlow<()>,
) -> Result<Checked> {
    disk.lock(Access::Read)?;
    let geometry = header.geometry();
    let sealer = Sealer::new(client, header.aead(), keys, Arc::new(NonceSource::new()));
    let (file_len, stored_size) = (disk.len()?, geometry.stored_size() as u64);
    let body = file_len.saturating_sub(geometry.offset(0));
    let last = body.saturating_sub(1) / stored_size;
    let mut checked = Checked { chunks: last + 1, damaged: 0, good_bytes: 0 };
    let mut stored = SecretVec::with_capacity(geometry.stored_size());
    let mut text = SecretVec::from(vec![0; geometry.chunk_size()]);
    for chunk in 0..=last {
        let offset = geometry.offset(chunk);
        stored.resize((file_len.saturating_sub(offset)).min(stored_size) as usize, 0);
        let kind = match disk.read_at(&mut stored, offset) {
            Err(_) => Some(DamageKind::Unreadable),
            Ok(read) if read < stored.len() || read < OVERHEAD || (read == OVERHEAD && chunk > 0) => Some(DamageKind::CutOff),
            Ok(_) => look(&sealer, chunk, Place::last_if(chunk == last), &stored, &mut text[..stored.len() - OVERHEAD])?,
        };
        match kind {
            None => checked.good_bytes += (stored.len() - OVERHEAD) as u64,
            Some(kind) => {
                checked.damaged += 1;
                if report(Damage { chunk, offset, text_offset: geometry.text_offset(chunk), kind }).is_break() {
                    return Ok(checked);
                }
            }
        }
    }
    Ok(checked)
}

fn look(sealer: &Sealer, chunk: u64, place: Place, stored: &[u8], text: &mut [u8]) -> Result<Option<DamageKind>> {
    if sealer.open_into(chunk, place, stored, text)? {
        return Ok(None);
    }
    sealer.explain(chunk, place, stored, text).map(Some)
}
