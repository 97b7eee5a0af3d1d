//! Containers that lie in memory: the same bytes as in a file, sealed straight into what Python gets.

use crate::error::{Failure, Result};
use crate::watch::watch;
use bywash_files::geometry::Geometry;
use bywash_files::sealer::Place;
use bywash_files::{Error, Header, Sealer};

/// Bytes of text between two looks for Ctrl-C.
const LOOK_BYTES: usize = 1 << 20;

/// Bytes of the container of a text.
pub(crate) fn sealed_len(header: &Header, text: &[u8]) -> Result<usize> {
    usize::try_from(header.geometry().file_len(text.len() as u64)).map_err(|_| too_long())
}

/// Seals a text into `sealed`, which has [`sealed_len`] bytes.
pub(crate) fn seal(sealer: &Sealer, header: &Header, text: &[u8], sealed: &mut [u8]) -> Result<()> {
    let (geometry, len) = (header.geometry(), text.len() as u64);
    let (front, stored) = sealed.split_at_mut(header.bytes().len());
    front.copy_from_slice(header.bytes());
    let (last, look) = (geometry.last_chunk(len), look_between(geometry));
    for (chunk, stored) in (0..=last).zip(stored.chunks_mut(geometry.stored_size())) {
        look(chunk)?;
        let at = geometry.text_offset(chunk) as usize;
        let text = &text[at..at + geometry.text_len(chunk, len)];
        sealer.seal_from(chunk, Place::last_if(chunk == last), text, stored)?;
    }
    Ok(())
}

/// Bytes of text in a container.
pub(crate) fn text_len(header: &Header, sealed: &[u8]) -> Result<usize> {
    usize::try_from(header.geometry().text_len_of_file(sealed.len() as u64)?).map_err(|_| too_long())
}

/// Opens a container into `text`, which has [`text_len`] bytes. After an error it holds nothing of the text.
pub(crate) fn open(sealer: &Sealer, header: &Header, sealed: &[u8], text: &mut [u8]) -> Result<()> {
    open_chunks(sealer, header, sealed, text).inspect_err(|_| text.fill(0))
}

fn open_chunks(sealer: &Sealer, header: &Header, sealed: &[u8], text: &mut [u8]) -> Result<()> {
    let (geometry, len) = (header.geometry(), text.len() as u64);
    let (last, look) = (geometry.last_chunk(len), look_between(geometry));
    for (chunk, stored) in (0..=last).zip(sealed[header.bytes().len()..].chunks(geometry.stored_size())) {
        look(chunk)?;
        let (at, place) = (geometry.text_offset(chunk), Place::last_if(chunk == last));
        let text = &mut text[at as usize..at as usize + geometry.text_len(chunk, len)];
        if !sealer.open_into(chunk, place, stored, text)? {
            let kind = sealer.explain(chunk, place, stored, text)?;
            let damage = bywash_files::Damage { chunk, offset: geometry.offset(chunk), text_offset: at, kind };
            return Err(Error::Damaged(damage).into());
        }
    }
    Ok(())
}

/// Looks for Ctrl-C, before some of the chunks.
fn look_between(geometry: Geometry) -> impl Fn(u64) -> Result<()> {
    let (every, watch) = ((LOOK_BYTES / geometry.chunk_size()).max(1) as u64, watch());
    move |chunk| if chunk.is_multiple_of(every) { watch() } else { Ok(()) }
}

fn too_long() -> Failure {
    Failure::Named("BadArgument", "it is too long for this machine's memory".to_owned())
}
