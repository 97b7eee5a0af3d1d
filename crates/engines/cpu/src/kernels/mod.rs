//! AES by the kernels of `bywash-vaes`, which are as fast as the library at every size or faster, and most so where messages are short.

mod gcm;
mod modes;

use bywash_core::{Algorithm, Data, Keyed, Result, SecretBytes};
use bywash_vaes::Text;

/// Whether the kernels can run here.
pub(crate) fn is_supported() -> bool {
    bywash_vaes::is_supported()
}

/// Whether there is a kernel for the algorithm.
pub(crate) fn has(algorithm: Algorithm) -> bool {
    use Algorithm as A;
    matches!(algorithm, A::Aes128Gcm | A::Aes192Gcm | A::Aes256Gcm | A::Aes128Ctr | A::Aes192Ctr | A::Aes256Ctr)
}

/// Opens a session of an algorithm with a kernel.
pub(crate) fn open(algorithm: Algorithm, key: &SecretBytes, tag_len: usize) -> Result<Box<dyn Keyed>> {
    use Algorithm as A;
    match algorithm {
        A::Aes128Ctr | A::Aes192Ctr | A::Aes256Ctr => modes::open_ctr(algorithm, key),
        _ => gcm::open(algorithm, key, tag_len),
    }
}

/// The buffers as the kernels take them; `None` if the output is shorter than the input.
fn text(data: Data<'_>) -> Option<Text<'_>> {
    match data {
        Data::InPlace(buffer) => Some(Text::in_place(buffer)),
        Data::Copy { input, output } if output.len() >= input.len() => Some(Text::apart(input, output)),
        Data::Copy { .. } => None,
    }
}
