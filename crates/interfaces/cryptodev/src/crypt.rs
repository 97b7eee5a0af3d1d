//! `CIOCCRYPT`: enciphering, deciphering and hashing.

use crate::bounce::{PIECE, QUEUED_PIECE, Wiped, with_piece, with_read};
use crate::cipher::{Cipher, Mode};
use crate::hash::{Digest, Hash, Message};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::{Session, State};
use crate::table::Table;
use bywash_client::Client;
use bywash_core::Direction;
use bywash_cryptodev_abi::linux::{
    COP_DECRYPT, COP_ENCRYPT, COP_FLAG_FINAL, COP_FLAG_NO_ZC, COP_FLAG_RESET, COP_FLAG_UPDATE, COP_FLAG_WRITE_IV, CryptOp,
};
use std::sync::Arc;

/// Longest XTS data unit: 2^20 blocks (IEEE 1619-2018 s5.1).
const XTS_MAX: usize = 16 << 20;

/// A request on its way.
pub(crate) struct Crypt {
    pub(crate) asked: CryptOp,
    session: Arc<Session>,
    iv: [u8; 16],
    /// How much of it is the program's: 0 if none was given.
    iv_len: usize,
}

/// A request that is computed: what is to be answered. It has no part in the session, so that a key does not outlive its session in answers that nobody fetches.
pub(crate) struct Done {
    asked: CryptOp,
    /// The IV with which a next request would go on.
    iv: [u8; 16],
    iv_len: usize,
    /// The value of the hash, if the message ended here.
    digest: Digest,
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
    pub(crate) fn run(self, client: &Client, life: u32, program: Program<'_>) -> Result<Done, Refusal> {
        let way = direction(self.asked.op)?;
        let session = &*self.session;
        let mut state = session.state();
        let begins = self.asked.flags == 0 || self.asked.flags & COP_FLAG_RESET != 0;
        if session.hash.is_some() && begins {
            state.message.reset()?;
        }
        if let Some(cipher) = &session.cipher {
            self.set_iv(cipher, life, &mut state)?;
        }
        let mut digest = self.data(client, program, session, &mut state, way, begins)?;
        if let Some(hash) = session.hash.as_ref().filter(|_| self.ends() && digest.bytes().is_empty()) {
            digest = state.message.finish(hash)?;
        }
        Ok(Done { asked: self.asked, iv: state.iv, iv_len: self.iv_len, digest })
    }

    /// Whether the message ends with this request, and its digest is to be written.
    fn ends(&self) -> bool {
        let flags = self.asked.flags;
        flags & COP_FLAG_FINAL != 0 || flags & COP_FLAG_UPDATE == 0 || self.asked.len == 0
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

    /// Computes on the data; the value of the hash, if the message was whole and is hashed at once.
    fn data(
        &self,
        client: &Client,
        program: Program<'_>,
        session: &Session,
        state: &mut State,
        way: Direction,
        begins: bool,
    ) -> Result<Digest, Refusal> {
        let length = self.asked.len as usize;
        let unit = session.cipher.as_ref().is_some_and(|cipher| cipher.kind.mode == Mode::Xts);
        let message = begins && self.ends() && length <= QUEUED_PIECE;
        let whole = session.hash.as_ref().filter(|hash| message && hash.is_queued(client, length));
        let piece = match &session.cipher {
            _ if unit || whole.is_some() => length,
            Some(cipher) if length > PIECE => cipher.piece(client, length),
            _ => PIECE,
        };
        let mut pass = Pass { program, session, state, way, whole, digest: Digest::NONE };
        let asked = &self.asked;
        if piece <= PIECE {
            with_piece(length, |buffer| pass.all(asked, buffer))?;
        } else if piece >= length {
            let (what, source) = pass.source(asked);
            let read = |at: usize, text: &mut [u8]| program.read(what, offset(source, at), text);
            with_read(length, 0, read, |text| pass.compute(asked, 0, text))?;
        } else {
            let (what, source) = pass.source(asked);
            program.probe(what, source, length)?;
            pass.all(asked, &mut Wiped::zeroed(piece)?)?;
        }
        Ok(pass.digest)
    }
}

impl Done {
    /// Writes the answer.
    ///
    /// # Errors
    /// The digest, the IV or the argument cannot be written.
    pub(crate) fn answer(&self, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
        program.write("mac", self.asked.mac, self.digest.bytes())?;
        if self.asked.flags & COP_FLAG_WRITE_IV != 0 {
            program.write("iv", self.asked.iv, &self.iv[..self.iv_len])?;
        }
        program.give::<_, { size_of::<CryptOp>() }>(argument, &self.asked)
    }
}

/// The way of the data through cipher and hash.
struct Pass<'a> {
    program: Program<'a>,
    session: &'a Session,
    state: &'a mut State,
    way: Direction,
    /// The hash, if the message comes in one piece and goes where the routing table says.
    whole: Option<&'a Hash>,
    digest: Digest,
}

impl Pass<'_> {
    /// Where the data are, and how that is called: the module, told to decipher by a session that only hashes, hashes what `dst` points to, unless it copies.
    fn source(&self, asked: &CryptOp) -> (&'static str, u64) {
        let backwards = self.session.cipher.is_none() && self.way == Direction::Decrypt && asked.flags & COP_FLAG_NO_ZC == 0;
        if backwards { ("dst", asked.dst) } else { ("src", asked.src) }
    }

    /// All of the data, as much at once as the buffer holds.
    fn all(&mut self, asked: &CryptOp, buffer: &mut [u8]) -> Result<(), Refusal> {
        let (length, (what, source)) = (asked.len as usize, self.source(asked));
        let mut done = 0;
        while done < length {
            let now = buffer.len().min(length - done);
            let text = &mut buffer[..now];
            self.program.read(what, offset(source, done), text)?;
            self.compute(asked, done, text)?;
            done += now;
        }
        Ok(())
    }

    /// The part of the data that begins so far behind the first byte.
    fn compute(&mut self, asked: &CryptOp, at: usize, text: &mut [u8]) -> Result<(), Refusal> {
        if self.way == Direction::Encrypt {
            self.hash(text)?;
        }
        if let Some(cipher) = &self.session.cipher {
            cipher.run(self.way, &mut self.state.iv, text)?;
            self.program.write("dst", offset(asked.dst, at), text)?;
        }
        if self.way == Direction::Decrypt {
            self.hash(text)?;
        }
        Ok(())
    }

    fn hash(&mut self, text: &[u8]) -> Result<(), Refusal> {
        match (&self.session.hash, self.whole) {
            (None, _) => {}
            (Some(_), Some(hash)) => self.digest = Message::whole(hash, text)?,
            (Some(hash), None) => self.state.message.update(hash, text)?,
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
