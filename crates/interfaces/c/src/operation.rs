//! Operations: the caller's pointers turned into an [`Operation`], with every overlap that Rust forbids sorted out first.

use crate::pointer::{borrow, borrow_mut, check, overlap, read, write};
use crate::session::SessionHandle;
use crate::status::{Failure, Status, argument, guard};
use bywash_core::{Algorithm, Data, Direction, Kind, Operation, OwnedOperation, SecretBytes};

/// Plaintext in, ciphertext and tag out.
pub const ENCRYPT: u32 = 0;
/// Ciphertext and tag in, plaintext out.
pub const DECRYPT: u32 = 1;
/// Digest, MAC or public-key operation.
pub const COMPUTE: u32 = 2;

/// One operation. For work in place (ciphers only) `output` is `input`; otherwise no buffer may overlap one that is written.
#[repr(C)]
pub struct OperationParts {
    /// `BYWASH_ENCRYPT`, `BYWASH_DECRYPT` or `BYWASH_COMPUTE`.
    pub direction: u32,
    /// IV, nonce, counter block or tweak; null where there is none.
    pub iv: *const u8,
    /// Its length.
    pub iv_len: usize,
    /// Associated data of an AEAD.
    pub aad: *const u8,
    /// Its length.
    pub aad_len: usize,
    /// What is read.
    pub input: *const u8,
    /// Its length.
    pub input_len: usize,
    /// What is written.
    pub output: *mut u8,
    /// Before: the room there is. After: the bytes written.
    pub output_len: usize,
    /// AEAD: written by encryption, read by decryption. ECDSA verification: the signature, read.
    pub tag: *mut u8,
    /// Its length, which must be the session's.
    pub tag_len: usize,
}

impl OperationParts {
    fn direction(&self) -> Result<Direction, Failure> {
        u8::try_from(self.direction)
            .ok()
            .and_then(Direction::from_number)
            .map_or_else(|| argument(format!("direction {} is none of BYWASH_ENCRYPT, _DECRYPT, _COMPUTE", self.direction)), Ok)
    }

    /// Rust's rule, that what is written is reached by nobody else, checked on C's pointers.
    fn check_overlaps(&self, in_place: bool) -> Result<(), Failure> {
        let (output, tag) = ((self.output.cast_const(), self.output_len), (self.tag.cast_const(), self.tag_len));
        let input = (self.input, if in_place { 0 } else { self.input_len });
        let read = [("iv", (self.iv, self.iv_len)), ("aad", (self.aad, self.aad_len)), ("input", input)];
        for (name, buffer) in read {
            if overlap(buffer, output) {
                return argument(format!("{name} overlaps output; only a cipher's input may be its output, and then wholly"));
            }
            if overlap(buffer, tag) {
                return argument(format!("{name} overlaps tag"));
            }
        }
        if overlap(output, tag) { argument("output overlaps tag") } else { Ok(()) }
    }

    /// All buffers: where, how long, and whether they are written.
    pub(crate) fn buffers(&self) -> [(*const u8, usize, bool); 5] {
        [
            (self.iv, self.iv_len, false),
            (self.aad, self.aad_len, false),
            (self.input, self.input_len, false),
            (self.output.cast_const(), self.output_len, true),
            (self.tag.cast_const(), self.tag_len, true),
        ]
    }

    /// # Safety
    /// Every buffer must be valid for its length, or null, and be left alone during `'a`.
    pub(crate) unsafe fn borrow<'a>(&self, kind: Kind) -> Result<Operation<'a>, Failure> {
        let cipher = matches!(kind, Kind::Cipher { .. } | Kind::Aead { .. });
        let in_place = cipher && self.input_len > 0 && self.input == self.output.cast_const();
        if in_place && self.output_len < self.input_len {
            return argument(format!("output_len is {}, input_len {}: work in place needs as much", self.output_len, self.input_len));
        }
        self.check_overlaps(in_place)?;
        // SAFETY: validity is the caller's promise; no written buffer overlaps another by the check above, for in place there is one alone.
        unsafe {
            let data = match in_place {
                true => Data::InPlace(write(self.output, self.input_len, "output")?),
                false => {
                    Data::Copy { input: read(self.input, self.input_len, "input")?, output: write(self.output, self.output_len, "output")? }
                }
            };
            let (iv, aad) = (read(self.iv, self.iv_len, "iv")?, read(self.aad, self.aad_len, "aad")?);
            Ok(Operation { direction: self.direction()?, iv, aad, data, tag: write(self.tag, self.tag_len, "tag")? })
        }
    }

    /// A copy that outlives the caller's buffers; of `output` its length alone is used, as far as the algorithm needs it.
    ///
    /// # Safety
    /// Every buffer that is read must be valid for its length, or null.
    pub(crate) unsafe fn to_owned(&self, algorithm: Algorithm) -> Result<OwnedOperation, Failure> {
        check(self.input, self.input_len, "input")?;
        // A caller may say that there is room without end; memory is not, and a lack of it would end the program.
        let room = self.output_len.min(algorithm.output_len(self.input_len));
        // SAFETY: the caller's promise.
        unsafe {
            Ok(OwnedOperation {
                direction: self.direction()?,
                iv: read(self.iv, self.iv_len, "iv")?.to_vec(),
                aad: read(self.aad, self.aad_len, "aad")?.to_vec(),
                input: read(self.input, self.input_len, "input")?.into(),
                output: SecretBytes::zeroed(room),
                tag: read(self.tag, self.tag_len, "tag")?.to_vec(),
            })
        }
    }

    /// Copies a finished operation into the caller's buffers.
    ///
    /// # Safety
    /// `output` and `tag` must be valid for their lengths, or null.
    pub(crate) unsafe fn deliver(&mut self, done: &OwnedOperation, written: usize) -> Result<(), Failure> {
        if self.output_len < written || self.tag_len != done.tag.len() {
            let (room, tag) = (self.output_len, self.tag_len);
            let needs = done.tag.len();
            return argument(format!(
                "the result needs {written} bytes of output and {needs} of tag, not {room} and {tag}; wait again with room"
            ));
        }
        // SAFETY: the caller's promise; one slice is given up before the next is made.
        unsafe {
            write(self.output, self.output_len, "output")?[..written].copy_from_slice(&done.output[..written]);
            write(self.tag, self.tag_len, "tag")?.copy_from_slice(&done.tag);
        }
        self.output_len = written;
        Ok(())
    }
}

/// Runs one operation to its end, where the routing table says. Bounded: a broker that dies or hangs is replaced by this process itself.
///
/// # Safety
/// `session` and `operation` must be valid or null, every buffer for its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_run(session: *const SessionHandle, operation: *mut OperationParts) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (session, parts) = unsafe { (borrow(session, "session")?, borrow_mut(operation, "operation")?) };
        // SAFETY: the caller's promise.
        let mut operation = unsafe { parts.borrow(session.0.params().algorithm().kind()) }?;
        let written = session.0.run(&mut operation)?;
        parts.output_len = written;
        Ok(Status::Ok)
    })
}
