//! Every chunk of a file looked at: every damaged one named, or every good one saved.

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
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Chunks, damaged ones among them.
    pub chunks: u64,
    /// Damaged ones.
    pub damaged: u64,
    /// Bytes of text that is there: in all but those of which it is lost.
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
    report: impl FnMut(Damage) -> ControlFlow<()>,
) -> Result<Checked> {
    check_showing(client, header, keys, disk, &AtomicU64::new(0), report)
}

fn check_showing(
    client: &Client,
    header: &Header,
    keys: FileKeys,
    disk: &dyn Disk,
    progress: &AtomicU64,
    mut report: impl FnMut(Damage) -> ControlFlow<()>,
) -> Result<Checked> {
    let mut checked = Checked::default();
    each_chunk(client, header, keys, disk, |found| {
        checked.chunks = found.of;
        progress.fetch_add(found.text.len() as u64, Relaxed);
        checked.good_bytes += found.good().map_or(0, |text| text.len() as u64);
        checked.damaged += u64::from(found.damage.is_some());
        Ok(found.damage.map_or(ControlFlow::Continue(()), &mut report))
    })?;
    Ok(checked)
}

/// The same, and all damaged places. After so many damaged chunks it stops. `progress` counts bytes of text as they are done.
///
/// # Errors
/// As [`check`].
pub fn damaged_runs(
    client: &Client,
    header: &Header,
    keys: FileKeys,
    disk: &dyn Disk,
    at_most: u64,
    progress: &AtomicU64,
) -> Result<(Checked, Vec<DamagedRun>)> {
    let (mut runs, mut damaged) = (Vec::new(), 0);
    let checked = check_showing(client, header, keys, disk, progress, |damage| {
        DamagedRun::add_to(&mut runs, damage);
        damaged += 1;
        if damaged < at_most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok((checked, runs))
}

/// Writes what is good of a file's text into another, which is empty, each chunk where it belongs. What is damaged becomes a hole, which reads as zeros; of a chunk that is authentic and only
/// not the last, or the last too early, the text is good. A journal is not looked at.
///
/// # Errors
/// As [`check`]; the operating system's for the file that is written.
pub fn salvage(
    client: &Client,
    header: &Header,
    keys: FileKeys,
    disk: &dyn Disk,
    target: &dyn Disk,
    progress: &AtomicU64,
) -> Result<(Checked, Vec<DamagedRun>)> {
    let (mut checked, mut runs, mut len) = (Checked::default(), Vec::new(), 0);
    each_chunk(client, header, keys, disk, |found| {
        checked.chunks = found.of;
        progress.fetch_add(found.text.len() as u64, Relaxed);
        if let Some(damage) = found.damage {
            checked.damaged += 1;
            DamagedRun::add_to(&mut runs, damage);
        }
        if let Some(text) = found.good() {
            target.write_at(text, found.text_offset)?;
            checked.good_bytes += text.len() as u64;
        }
        len = found.text_offset + found.text.len() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    target.set_len(len)?;
    Ok((checked, runs))
}

/// A chunk that was looked at.
struct Found<'a> {
    damage: Option<Damage>,
    /// Where its text begins in the decrypted file.
    text_offset: u64,
    /// Its text; zeros if that is lost.
    text: &'a [u8],
    /// How many chunks there are, this one among them.
    of: u64,
}

impl Found<'_> {
    /// Its text, unless that is lost.
    fn good(&self) -> Option<&[u8]> {
        (!self.damage.is_some_and(|damage| damage.kind.is_lost())).then_some(self.text)
    }
}

fn each_chunk(
    client: &Client,
    header: &Header,
    keys: FileKeys,
    disk: &dyn Disk,
    mut visit: impl FnMut(Found<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    disk.lock(Access::Read)?;
    let geometry = header.geometry();
    let sealer = Sealer::new(client, header.aead(), keys, Arc::new(NonceSource::new()));
    let (file_len, stored_size) = (disk.len()?, geometry.stored_size() as u64);
    let body = file_len.saturating_sub(geometry.offset(0));
    let last = body.saturating_sub(1) / stored_size;
    let mut stored = SecretVec::with_capacity(geometry.stored_size());
    let mut text = SecretVec::from(vec![0; geometry.chunk_size()]);
    for chunk in 0..=last {
        let (offset, text_offset) = (geometry.offset(chunk), geometry.text_offset(chunk));
        stored.resize((file_len.saturating_sub(offset)).min(stored_size) as usize, 0);
        let text = &mut text[..stored.len().saturating_sub(OVERHEAD)];
        let kind = match disk.read_at(&mut stored, offset) {
            Err(_) => Some(DamageKind::Unreadable),
            Ok(read) if read < stored.len() || read < OVERHEAD || (read == OVERHEAD && chunk > 0) => Some(DamageKind::CutOff),
            Ok(_) => look(&sealer, chunk, Place::last_if(chunk == last), &stored, text)?,
        };
        if kind.is_some_and(DamageKind::is_lost) {
            text.fill(0);
        }
        let damage = kind.map(|kind| Damage { chunk, offset, text_offset, kind });
        if visit(Found { damage, text_offset, text, of: last + 1 })?.is_break() {
            break;
        }
    }
    Ok(())
}

/// What is wrong with a chunk, if something is. `text` is its text, wherever it belongs.
fn look(sealer: &Sealer, chunk: u64, place: Place, stored: &[u8], text: &mut [u8]) -> Result<Option<DamageKind>> {
    if sealer.open_into(chunk, place, stored, text)? {
        return Ok(None);
    }
    let kind = sealer.explain(chunk, place, stored, text)?;
    if !kind.is_lost() {
        sealer.open_into(chunk, Place::last_if(place == Place::Inner), stored, text)?;
    }
    Ok(Some(kind))
}

/// Neighbouring chunks with the same damage: a place that people read about once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRun {
    /// The first of them.
    pub first: Damage,
    /// How many.
    pub chunks: u64,
}

impl DamagedRun {
    /// Adds a damage, in the order of chunks, to the places before it: to the last of them if it is its neighbour.
    fn add_to(runs: &mut Vec<Self>, damage: Damage) {
        let is_next =
            |run: &Self| run.first.kind == damage.kind && run.first.chunk + run.chunks == damage.chunk && damage.kind.of_many().is_some();
        match runs.last_mut().filter(|run| is_next(run)) {
            Some(run) => run.chunks += 1,
            None => runs.push(Self { first: damage, chunks: 1 }),
        }
    }
}

impl fmt::Display for DamagedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first: Damage { chunk, offset, text_offset, kind }, chunks } = self;
        match kind.of_many().filter(|_| *chunks > 1) {
            None => self.first.fmt(f),
            Some(what) => write!(f, "chunks {chunk} to {}, from offset {offset} on (text from {text_offset}), {what}", chunk + chunks - 1),
        }
    }
}
