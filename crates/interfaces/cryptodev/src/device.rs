//! An open file of the device.

use crate::auth::Auth;
use crate::crypt::Crypt;
use crate::errno::Errno;
use crate::memory::{Memory, Program};
use crate::refusal::Refusal;
use crate::ring::Ring;
use crate::table::Table;
use crate::{copy, freebsd as opencrypto, freebsd_crypt, info, key, open};
use bywash_client::{Client, Counts};
use bywash_cryptodev_abi::{freebsd, linux};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What a request that went well answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What `ioctl` returns.
    Value(i32),
    /// The transport makes a new descriptor of the same description and writes its number to the argument, a `u32`, itself.
    NewDescriptor,
}

/// What `poll` says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// A queued operation is done: `CIOCASYNCFETCH` has an answer.
    pub readable: bool,
    /// There is room for another: `CIOCASYNCCRYPT` takes it.
    pub writable: bool,
}

/// One open file description of `/dev/crypto`; its sessions end with it. Shared by threads.
pub struct Device {
    client: Client,
    table: Table,
    ring: Ring,
    /// How often it came into the world by a fork.
    life: AtomicU32,
}

impl Device {
    /// A device that computes with this client.
    pub fn new(client: Client) -> Self {
        Self { client, table: Table::default(), ring: Ring::default(), life: AtomicU32::new(0) }
    }

    /// The same, whose sessions count as this user's: where one process serves all users.
    pub fn of_user(client: Client, counts: Arc<Counts>, uid: u32) -> Self {
        Self { table: Table::counted(counts, uid), ..Self::new(client) }
    }

    /// What `ioctl(descriptor, number, argument)` does, in a program that has this memory.
    ///
    /// # Errors
    /// The error number that the program gets.
    #[inline]
    pub fn request(&self, number: u32, argument: u64, memory: &dyn Memory) -> Result<Answer, Errno> {
        self.explained(number, argument, memory).map_err(|refusal| refusal.errno())
    }

    /// The same, with a sentence of what was wrong.
    ///
    /// # Errors
    /// The error number that the program gets, and why.
    pub fn explained(&self, number: u32, argument: u64, memory: &dyn Memory) -> Result<Answer, Refusal> {
        self.answer(number, argument, Program(memory)).map_err(|refusal| refusal.named(name(number)))
    }

    /// What `poll` says of it.
    pub fn readiness(&self) -> Readiness {
        self.ring.readiness()
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.table.len()
    }

    /// A session, without keeping it.
    #[cfg(test)]
    pub(crate) fn weak(&self, ses: u32) -> std::sync::Weak<crate::session::Session> {
        std::sync::Arc::downgrade(&self.table.get(ses).expect("it is open"))
    }

    /// A device with a copy of each session in its state, for a child of fork that has memory of its own.
    /// In the copy, what [`became_child`](Self::became_child) says is so.
    pub fn copy_for_child(&self) -> Self {
        let child =
            Self { client: self.client.clone(), table: self.table.duplicate(), ring: Ring::default(), life: AtomicU32::new(self.life()) };
        child.became_child();
        child
    }

    /// Says that this process is a child of fork and this device its copy of the parent's. A session opened before does not go on with a counter
    /// where the parent goes on with it, until it is given an IV. No lock, no allocation.
    pub fn became_child(&self) {
        self.life.fetch_add(1, Relaxed);
    }

    fn life(&self) -> u32 {
        self.life.load(Relaxed)
    }

    fn answer(&self, number: u32, argument: u64, program: Program<'_>) -> Result<Answer, Refusal> {
        if number != linux::CIOCCRYPT && freebsd::REQUESTS.iter().any(|(request, _)| *request == number) {
            self.freebsd(number, argument, program)
        } else {
            self.linux(number, argument, program)
        }
    }

    fn freebsd(&self, number: u32, argument: u64, program: Program<'_>) -> Result<Answer, Refusal> {
        match number {
            freebsd::CIOCCRYPT => freebsd_crypt::crypt(&self.table, program, argument)?,
            freebsd::CIOCCRYPTAEAD => freebsd_crypt::aead(&self.table, &self.client, program, argument)?,
            freebsd::CIOCGSESSION => opencrypto::open(&self.table, &self.client, program, self.life(), argument)?,
            freebsd::CIOCGSESSION2 => opencrypto::open2(&self.table, &self.client, program, self.life(), argument)?,
            freebsd::CIOCFSESSION => opencrypto::close(&self.table, program, argument)?,
            freebsd::CIOCFINDDEV => opencrypto::find(program, argument)?,
            freebsd::CIOCKEY | freebsd::CIOCKEY2 => key::key(&self.client, program, argument)?,
            freebsd::CIOCASYMFEAT => program.give_u32(argument, key::FEATURES)?,
            freebsd::CRIOGET => return Ok(Answer::NewDescriptor),
            _ => return Err(Refusal::invalid(format!("{number:#010x} is no request of /dev/crypto"))),
        }
        Ok(Answer::Value(0))
    }

    fn linux(&self, number: u32, argument: u64, program: Program<'_>) -> Result<Answer, Refusal> {
        match number {
            linux::CIOCCRYPT => {
                let crypt = Crypt::prepare(&self.table, program, argument)?;
                crypt.run(&self.client, self.life(), program)?.answer(program, argument)?;
            }
            linux::CIOCGSESSION => self.open(argument, program)?,
            linux::CIOCFSESSION => self.table.remove(program.take_u32(argument)?),
            linux::CIOCAUTHCRYPT => {
                let mut auth = Auth::prepare(&self.table, program, argument)?;
                auth.run(&self.client, self.life(), program)?;
                auth.answer(program, argument)?;
            }
            linux::CIOCASYNCCRYPT => {
                let crypt = Crypt::prepare(&self.table, program, argument)?;
                if crypt.asked.flags & linux::COP_FLAG_NO_ZC != 0 {
                    return Err(Refusal::invalid("flags has NO_ZC (8), which a queued request cannot have; leave it out"));
                }
                self.ring.queue(|| crypt.run(&self.client, self.life(), program))?;
            }
            linux::CIOCASYNCFETCH => self.ring.fetch()?.answer(program, argument)?,
            linux::CIOCGSESSINFO => info::info(&self.table, program, argument)?,
            linux::CIOCCPHASH => copy::copy(&self.table, program, argument)?,
            linux::CIOCKEY => key::key(&self.client, program, argument)?,
            linux::CIOCASYMFEAT => program.give_u32(argument, key::FEATURES)?,
            linux::CRIOGET => return Ok(Answer::NewDescriptor),
            _ => return Err(Refusal::invalid(format!("{number:#010x} is no request of /dev/crypto"))),
        }
        Ok(Answer::Value(0))
    }

    fn open(&self, argument: u64, program: Program<'_>) -> Result<(), Refusal> {
        let mut asked: linux::SessionOp = program.take::<_, { size_of::<linux::SessionOp>() }>(argument)?;
        asked.ses = self.table.add(open::open(&self.client, program, self.life(), &asked)?)?;
        let answered = program.give::<_, { size_of::<linux::SessionOp>() }>(argument, &asked);
        answered.inspect_err(|_| self.table.remove(asked.ses))
    }
}

/// Whether an ioctl number is of `/dev/crypto`, in Linux's or FreeBSD's dialect, for filters.
pub fn is_request(number: u32) -> bool {
    linux::REQUESTS.iter().chain(&freebsd::REQUESTS).any(|(request, _)| *request == number)
}

fn name(number: u32) -> &'static str {
    linux::REQUESTS.iter().chain(&freebsd::REQUESTS).find(|(request, _)| *request == number).map_or("ioctl", |(_, name)| name)
}
