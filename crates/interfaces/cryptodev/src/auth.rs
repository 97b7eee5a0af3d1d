//! `CIOCAUTHCRYPT`: enciphering and authenticating together, as AEADs, TLS and SRTP do.

use crate::crypt::direction;
use crate::errno::Errno;
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::{Session, State};
use crate::table::Table;
use crate::{aead, srtp, tls};
use bywash_client::Client;
use bywash_core::Direction;
use bywash_cryptodev_abi::linux::{COP_FLAG_AEAD_SRTP_TYPE, COP_FLAG_AEAD_TLS_TYPE, COP_FLAG_WRITE_IV, CryptAuthOp};
use std::sync::Arc;

/// Longest associated data: a page, as the module has it.
const AUTH_MAX: usize = 4096;

/// A request on its way: what was asked, and what is to be answered.
pub(crate) struct Auth {
    pub(crate) asked: CryptAuthOp,
    iv: [u8; 16],
    iv_len: usize,
    session: Arc<Session>,
}

/// What each way of authenticating works with.
pub(crate) struct Work<'a> {
    pub(crate) client: &'a Client,
    pub(crate) program: Program<'a>,
    pub(crate) session: &'a Session,
    pub(crate) state: &'a mut State,
    pub(crate) way: Direction,
}

impl Auth {
    /// Reads what the request needs from the program, as far as it is read before it is its turn.
    ///
    /// # Errors
    /// In this order: the argument cannot be read, no such session, TLS or SRTP not in place, the IV cannot be read.
    pub(crate) fn prepare(table: &Table, program: Program<'_>, argument: u64) -> Result<Self, Refusal> {
        let mut asked: CryptAuthOp = program.take::<_, { size_of::<CryptAuthOp>() }>(argument)?;
        let session = table.get(asked.ses)?;
        if asked.flags & (COP_FLAG_AEAD_TLS_TYPE | COP_FLAG_AEAD_SRTP_TYPE) != 0 && asked.src != asked.dst {
            return Err(Refusal::invalid("src and dst differ: TLS and SRTP work in place; give the same address"));
        }
        if asked.tag_len == 0 {
            asked.tag_len = session.full_tag() as u32;
        }
        let iv_len = match (&session.cipher, asked.iv) {
            (Some(cipher), 1..) => cipher.kind.iv,
            _ => 0,
        };
        let mut iv = [0; 16];
        program.read("iv", asked.iv, &mut iv[..iv_len])?;
        Ok(Self { asked, iv, iv_len, session })
    }

    /// Computes.
    ///
    /// # Errors
    /// In this order: no such operation, no cipher; then those of the way.
    pub(crate) fn run(&mut self, client: &Client, life: u32, program: Program<'_>) -> Result<(), Refusal> {
        let way = direction(self.asked.op)?;
        let session = Arc::clone(&self.session);
        let Some(cipher) = &session.cipher else {
            return Err(Refusal::invalid("the session has no cipher; a hash alone takes CIOCCRYPT"));
        };
        let mut state = session.state();
        if session.hash.is_some() {
            state.message.reset()?;
        }
        let mode = cipher.kind.mode;
        let given = (self.iv_len > 0).then_some(&self.iv);
        if mode.is_aead() && given.is_none() && way == Direction::Encrypt {
            let why = format!("iv is null: {} must not use a nonce twice; give one for each message", cipher.kind.name);
            return Err(Refusal::invalid(why));
        }
        state.set_iv(mode, life, given)?;
        let flags = self.asked.flags;
        let mut work = Work { client, program, session: &session, state: &mut state, way };
        if flags & COP_FLAG_AEAD_SRTP_TYPE != 0 {
            srtp::run(&mut work, cipher, &mut self.asked)?;
        } else if flags & COP_FLAG_AEAD_TLS_TYPE != 0 && !mode.is_aead() {
            tls::run(&mut work, cipher, &mut self.asked)?;
        } else if mode.is_aead() {
            aead::run(&mut work, cipher, &mut self.asked)?;
        } else {
            let why = format!("{} is no AEAD; say in flags whether it is for TLS (16) or SRTP (32), or use CIOCCRYPT", cipher.kind.name);
            return Err(Refusal::invalid(why));
        }
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
        program.give::<_, { size_of::<CryptAuthOp>() }>(argument, &self.asked)
    }
}

impl Session {
    /// Length of the tag where the program does not say, in bytes.
    fn full_tag(&self) -> usize {
        match (&self.hash, &self.cipher) {
            (Some(hash), _) => hash.length(),
            (None, Some(cipher)) if cipher.kind.mode.is_aead() => aead::TAG_MAX,
            _ => 0,
        }
    }
}

/// Checks the length of what is authenticated only.
pub(crate) fn check_auth_len(asked: &CryptAuthOp) -> Result<usize, Refusal> {
    let length = asked.auth_len as usize;
    if length > AUTH_MAX {
        return Err(Refusal::invalid(format!("auth_len is {length}; it is at most {AUTH_MAX}")));
    }
    Ok(length)
}

/// Here the module maps the program's pages, and says `EINVAL` of those that are not there.
pub(crate) fn unmapped(refusal: Refusal) -> Refusal {
    if refusal.errno == Errno::EFAULT { Refusal { errno: Errno::EINVAL, ..refusal } } else { refusal }
}

/// Refuses a tag that is longer than what makes it.
pub(crate) fn check_tag_len(asked: &CryptAuthOp, longest: usize) -> Result<usize, Refusal> {
    let length = asked.tag_len as usize;
    if length > longest {
        return Err(Refusal::invalid(format!("tag_len is {length}; this session makes tags of at most {longest} bytes")));
    }
    Ok(length)
}

/// Refuses null where bytes are to be written.
pub(crate) fn check_dst(asked: &CryptAuthOp) -> Result<(), Refusal> {
    if asked.dst == 0 { Err(Refusal::invalid("dst is null; give the address for the result")) } else { Ok(()) }
}
