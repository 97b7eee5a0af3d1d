//! `CIOCCRYPT`: enciphering, deciphering and hashing.

use crate::bounce::{PIECE, Wiped, with_piece};
use crate::cipher::{Cipher, Mode};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::{Session, State};
use crate::table::Table;
use bywash_client::Client;
use bywash_core::Direction;
use bywash_cryptodev_abi::linux::{COP_DECRYPT, COP_ENCRYPT, COP_FLAG_WRITE_IV, CryptOp};
use std::sync::Arc;

/// Longest XTS data unit: 2^20 blocks (IEEE 1619-2018 s5.1).
const XTS_MAX: usize = 16 << 20;

/// A request on its way: what was asked, and what is to be answered.
pub(crate) struct Crypt {
    pub(crate) asked: CryptOp,
    session: Arc<Session>,
    /// The IV that was given, then the one with which a next request would go on.
    iv: [u8; 16],
    /// How much of it is the program's: 0 if none was given.
    iv_len: usize,
}

impl Crypt {
    /// Reads what the request needs from the program, as far as it is read before it is its turn.
    ///
    /// # Errors
    /// In this order: the argument cannot be read, no such session, the IV cannot be read.
    pub(crate) fn prepare(table: &Table, program: Program<'_>, argument: u64) -> Result<Self, Refusal> {
        let asked: CryptOp = program.take::<_, { size_of::<CryptOp>() }>(argument)?;
        let session = table.get(asked.ses)?;
        let iv_len = match (&session.cipher, asked.iv) {
            (Some(cipher), 1..) => cipher.kind.iv,
            _ => 0,
        };
        let mut iv = [0; 16];
        program.read("iv", asked.iv, &mut iv[..iv_len])?;
        Ok(Self { asked, session, iv, iv_len })
    }

    /// Computes.
    ///
    /// # Errors
    /// In this order: no such operation, a length that the cipher does not take, data that cannot be read or written.
    pub(crate) fn run(&mut self, client: &Client, life: u32, program: Program<'_>) -> Result<(), Refusal> {
        let direction = direction(self.asked.op)?;
        let session = Arc::clone(&self.session);
        let mut state = session.state();
        if let Some(cipher) = &session.cipher {
            self.set_iv(cipher, life, &mut state)?;
        }
        self.data(client, program, &session, &mut state, direction)?;
        self.iv = state.iv;
        Ok(())
    }

    /// Writes the answer.
    ///
    /// # Errors
    /// The IV or the argument cannot be written.
    pub(crate) fn answer(&self, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
        if self.asked.flags & COP_FLAG_WRITE_IV != 0 {
            program.write("iv", self.asked.iv, &self.iv[..self.iv_len])?;
        }
        program.give::<_, { size_of::<CryptOp>() }>(argument, &self.asked)
    }

    /// Checks the length against the cipher, and takes the IV over if one was given.
    fn set_iv(&self, cipher: &Cipher, life: u32, state: &mut State) -> Result<(), Refusal> {
        let (kind, length) = (cipher.kind, self.asked.len as usize);
        if kind.mode.is_aead() {
            return Err(Refusal::invalid(format!("a session of {} takes CIOCAUTHCRYPT", kind.name)));
        }
        if !length.is_multiple_of(kind.block) {
            return Err(Refusal::invalid(format!("len is {length}: {} takes a multiple of {} bytes; pad the data", kind.name, kind.block)));
        }
        if kind.mode == Mode::Xts && length > XTS_MAX {
            return Err(Refusal::invalid(format!("len is {length}: a data unit of {} has at most {XTS_MAX} bytes", kind.name)));
        }
        state.set_iv(kind.mode, life, (self.iv_len > 0).then_some(&self.iv))
    }

    fn data(&self, client: &Client, program: Program<'_>, session: &Session, state: &mut State, way: Direction) -> Result<(), Refusal> {
        let length = self.asked.len as usize;
        let whole = session.cipher.as_ref().is_some_and(|cipher| cipher.kind.mode == Mode::Xts);
        let piece = match &session.cipher {
            _ if length <= PIECE => PIECE,
            Some(_) if whole => length,
            Some(cipher) => cipher.piece(client, length),
            None => PIECE,
        };
        if piece <= PIECE {
            return with_piece(length, |buffer| self.pieces(program, session, state, way, buffer));
        }
        program.probe("src", self.asked.src, length)?;
        self.pieces(program, session, state, way, &mut Wiped::zeroed(piece.min(length))?)
    }

    /// All of the data, as much at once as the buffer holds.
    fn pieces(&self, program: Program<'_>, session: &Session, state: &mut State, way: Direction, buffer: &mut [u8]) -> Result<(), Refusal> {
        let length = self.asked.len as usize;
        let mut done = 0;
        while done < length {
            let text = &mut buffer[..];
            let now = text.len().min(length - done);
            let text = &mut text[..now];
            program.read("src", offset(self.asked.src, done), text)?;
            if let Some(cipher) = &session.cipher {
                cipher.run(way, &mut state.iv, text)?;
                program.write("dst", offset(self.asked.dst, done), text)?;
            }
            done += now;
        }
        Ok(())
    }
}

/// An address so far behind another: a null pointer stays one, and what would wrap around is the last address, which nobody has.
pub(crate) fn offset(address: u64, by: usize) -> u64 {
    if address == 0 { 0 } else { address.saturating_add(by as u64) }
}

/// The direction that a number of Linux's dialect means.
pub(crate) fn direction(op: u16) -> Result<Direction, Refusal> {
    match op {
        COP_ENCRYPT => Ok(Direction::Encrypt),
        COP_DECRYPT => Ok(Direction::Decrypt),
        other => Err(Refusal::invalid(format!("op is {other}; it is 0 (COP_ENCRYPT) or 1 (COP_DECRYPT)"))),
    }
}
