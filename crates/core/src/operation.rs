//! One computation on one session, borrowed ([`Operation`]) or owned ([`OwnedOperation`]).

use crate::secret::SecretBytes;
use core::fmt;

/// Which way a cipher runs; everything else has one direction only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// Plaintext in, ciphertext (and tag) out.
    Encrypt = 0,
    /// Ciphertext (and tag) in, plaintext out.
    Decrypt = 1,
    /// Digest, MAC, or public-key operation.
    Compute = 2,
}

impl Direction {
    /// The direction of that number: the check for every number that comes from outside.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Encrypt),
            1 => Some(Self::Decrypt),
            2 => Some(Self::Compute),
            _ => None,
        }
    }
}

/// Where input lies and output goes. The two never overlap in part: either they are one buffer or they are apart.
///
/// Printed, it shows lengths only: plaintexts and shared secrets go through it.
pub enum Data<'a> {
    /// Output replaces input (ciphers only: output has the input's length).
    InPlace(&'a mut [u8]),
    /// Output goes elsewhere; it may be longer than needed.
    Copy {
        /// What is read.
        input: &'a [u8],
        /// What is written, from its first byte.
        output: &'a mut [u8],
    },
}

impl Data<'_> {
    /// What is read.
    pub fn input(&self) -> &[u8] {
        match self {
            Data::InPlace(buffer) => buffer,
            Data::Copy { input, .. } => input,
        }
    }

    /// Where ciphers write: as many bytes as there are of input.
    ///
    /// # Panics
    /// With less room for output than that.
    pub fn output(&mut self) -> &mut [u8] {
        match self {
            Data::InPlace(buffer) => buffer,
            Data::Copy { input, output } => &mut output[..input.len()],
        }
    }

    /// Bytes of input.
    pub fn input_len(&self) -> usize {
        self.input().len()
    }

    /// Room for output in bytes.
    pub fn output_len(&self) -> usize {
        match self {
            Data::InPlace(buffer) => buffer.len(),
            Data::Copy { output, .. } => output.len(),
        }
    }

    /// The same buffers, borrowed again for a shorter time.
    pub fn reborrow(&mut self) -> Data<'_> {
        match self {
            Data::InPlace(buffer) => Data::InPlace(buffer),
            Data::Copy { input, output } => Data::Copy { input, output },
        }
    }
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::InPlace(buffer) => write!(f, "InPlace([{} bytes])", buffer.len()),
            Data::Copy { input, output } => write!(f, "Copy([{} bytes] to [{} bytes])", input.len(), output.len()),
        }
    }
}

/// One computation on one session, in buffers that belong to the caller.
#[derive(Debug)]
pub struct Operation<'a> {
    /// Which way.
    pub direction: Direction,
    /// IV, nonce, initial counter block (big-endian, all 128 bits count) or XTS tweak; empty where there is none.
    pub iv: &'a [u8],
    /// Associated data of an AEAD.
    pub aad: &'a [u8],
    /// Input and output. Public-key operations and digests take [`Data::Copy`].
    pub data: Data<'a>,
    /// AEAD: written by encryption, read by decryption. ECDSA verification: the signature, read.
    pub tag: &'a mut [u8],
}

impl Operation<'_> {
    /// The same operation in the same buffers, borrowed again for a shorter time.
    pub fn reborrow(&mut self) -> Operation<'_> {
        let Self { direction, iv, aad, data, tag } = self;
        Operation { direction: *direction, iv, aad, data: data.reborrow(), tag }
    }

    /// Bytes that an engine goes over, by which it is chosen and accounts are kept: the text, or where an AEAD has none (GMAC) the associated data.
    pub fn work_len(&self) -> usize {
        work_len(self.data.input(), self.aad)
    }

    /// A copy that can wait without its caller's buffers.
    pub fn to_owned(&self) -> OwnedOperation {
        OwnedOperation {
            direction: self.direction,
            iv: self.iv.to_vec(),
            aad: self.aad.to_vec(),
            input: self.data.input().into(),
            output: SecretBytes::zeroed(self.data.output_len()),
            tag: self.tag.to_vec(),
        }
    }
}

fn work_len(text: &[u8], aad: &[u8]) -> usize {
    if text.is_empty() { aad.len() } else { text.len() }
}

/// One computation in buffers of its own: what queues, threads and other processes hand on.
///
/// Input and output are zeroised on drop: an RSA decryption's output or a shared secret is as secret as a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedOperation {
    /// Which way.
    pub direction: Direction,
    /// See [`Operation::iv`].
    pub iv: Vec<u8>,
    /// See [`Operation::aad`].
    pub aad: Vec<u8>,
    /// What is read.
    pub input: SecretBytes,
    /// What is written; its length is the room there is.
    pub output: SecretBytes,
    /// See [`Operation::tag`].
    pub tag: Vec<u8>,
}

impl OwnedOperation {
    /// See [`Operation::work_len`].
    pub fn work_len(&self) -> usize {
        work_len(&self.input, &self.aad)
    }

    /// Borrows it as an [`Operation`].
    pub fn borrow(&mut self) -> Operation<'_> {
        Operation {
            direction: self.direction,
            iv: &self.iv,
            aad: &self.aad,
            data: Data::Copy { input: &self.input, output: &mut self.output },
            tag: &mut self.tag,
        }
    }

    /// Gives the results of a copy back to the operation of which it [is one](Operation::to_owned): `written` bytes of output, and the tag.
    ///
    /// # Panics
    /// For an operation of other lengths.
    pub fn copy_back(&self, written: usize, to: &mut Operation<'_>) {
        let output: &mut [u8] = match &mut to.data {
            Data::InPlace(buffer) => buffer,
            Data::Copy { output, .. } => output,
        };
        output[..written].copy_from_slice(&self.output[..written]);
        to.tag.copy_from_slice(&self.tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_never_printed() {
        let (mut text, mut output) = ([0xAB; 4], [0xAB; 5]);
        assert_eq!(format!("{:?}", Data::InPlace(&mut text)), "InPlace([4 bytes])");
        let data = Data::Copy { input: &text, output: &mut output };
        let operation = Operation { direction: Direction::Encrypt, iv: &[1], aad: &[], data, tag: &mut [] };
        assert!(format!("{operation:?}").contains("Copy([4 bytes] to [5 bytes])"), "{operation:?}");
    }

    #[test]
    fn what_an_engine_goes_over_is_the_text_or_else_what_it_authenticates() {
        let (mut text, mut tag) = ([0; 4], [0; 16]);
        let mut operation =
            Operation { direction: Direction::Encrypt, iv: &[], aad: &[0; 9], data: Data::InPlace(&mut text), tag: &mut tag };
        assert_eq!((operation.work_len(), operation.to_owned().work_len()), (4, 4));
        operation.data = Data::InPlace(&mut []);
        assert_eq!((operation.work_len(), operation.to_owned().work_len()), (9, 9));
    }
}
