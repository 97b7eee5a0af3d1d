//! `/dev/crypto`: bytes become requests with any numbers, addresses, lengths and sessions, at several open files of one program.

use crate::cryptodev_numbers;
use bywash_client::{Client, Config};
use bywash_cryptodev::{Device, Errno, Memory};
use bywash_cryptodev_abi::{Layout, freebsd, linux};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Where the program's memory begins.
const BASE: u64 = 0x10_0000;
/// What it has, of which the last part cannot be written.
const BYTES: usize = 160 * 1024;
const WRITABLE: usize = 128 * 1024;
/// Open files of the program.
const FILES: usize = 4;
/// Sessions of a file, after which it is closed and opened anew.
const SESSIONS_MAX: usize = 256;

/// Steps of one fuzz input: many short lives find more than a few long ones.
const STEPS_MAX: usize = 32;

/// Made-up memory; each thread of the program works in its own.
pub struct Arena(Mutex<Vec<u8>>);

impl Default for Arena {
    fn default() -> Self {
        Self(Mutex::new((0..BYTES).map(|index| index as u8).collect()))
    }
}

impl Arena {
    fn at(address: u64, length: usize, end: usize) -> Result<usize, Errno> {
        let at = address.checked_sub(BASE).and_then(|at| usize::try_from(at).ok()).ok_or(Errno::EFAULT)?;
        if at.checked_add(length).is_some_and(|last| last <= end) { Ok(at) } else { Err(Errno::EFAULT) }
    }
}

impl Memory for Arena {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        assert!(!into.is_empty(), "nothing is asked for a length of 0");
        let at = Self::at(address, into.len(), BYTES)?;
        into.copy_from_slice(&self.0.lock().unwrap_or_else(PoisonError::into_inner)[at..at + into.len()]);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        assert!(!from.is_empty(), "nothing is asked for a length of 0");
        let at = Self::at(address, from.len(), WRITABLE)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }
}

/// Memory that has one number, everywhere.
struct Number(u32);

impl Memory for Number {
    fn read(&self, _: u64, into: &mut [u8]) -> Result<(), Errno> {
        into.copy_from_slice(&self.0.to_ne_bytes());
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::EFAULT)
    }
}

/// An open file with the numbers of the sessions that were opened at it, some of which are closed.
struct File {
    device: Device,
    opened: Mutex<Vec<u32>>,
}

/// A program with open files. Threads may share it.
pub struct World {
    client: Client,
    files: Vec<RwLock<Arc<File>>>,
}

/// Where choices come from: bytes that end, or a generator that does not.
pub trait Choices {
    /// The next byte; none at the end.
    fn byte(&mut self) -> Option<u8>;
}

/// Bytes from outside.
pub struct Bytes<'a>(pub &'a [u8]);

impl Choices for Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

impl Choices for crate::runner::Random {
    fn byte(&mut self) -> Option<u8> {
        Some((self.number() >> 32) as u8)
    }
}

/// One fuzz input: requests until its bytes end, or there were enough.
pub fn requests(bytes: &[u8]) {
    let (world, arena, mut choices) = (World::new(), Arena::default(), Bytes(bytes));
    for _ in 0..STEPS_MAX {
        if world.step(&arena, &mut choices).is_none() {
            break;
        }
    }
    world.close();
}

/// Inputs that open sessions and use them, to start from.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = crate::runner::Random::new(8430);
    (0..8).map(|_| (0..600).map(|_| random.number() as u8).collect()).collect()
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// Files without sessions.
    pub fn new() -> Self {
        let client = Client::new(Config::default());
        let files = (0..FILES).map(|_| RwLock::new(Arc::new(File::new(Device::new(client.clone()))))).collect();
        Self { client, files }
    }

    /// One request, whose name it answers, or another deed; `None` if there are no more choices.
    ///
    /// # Panics
    /// If the device answers what no device answers, or forgets to forget a session.
    pub fn step(&self, arena: &Arena, choices: &mut dyn Choices) -> Option<&'static str> {
        let (deed, place) = (choices.byte()?, usize::from(choices.byte()?) % FILES);
        let file = Arc::clone(&self.files[place].read().unwrap_or_else(PoisonError::into_inner));
        Some(match deed {
            0 => {
                self.replace(place, File::new(Device::new(self.client.clone())));
                "open"
            }
            1 => {
                // Copied while nothing is opened, or the copy might have sessions that are on no list.
                let opened = file.opened();
                let child = File { device: file.device.copy_for_child(), opened: Mutex::new(opened.clone()) };
                drop(opened);
                self.replace((place + 1) % FILES, child);
                "fork"
            }
            2 => {
                file.device.became_child();
                "became a child"
            }
            _ => Self::request(&file, arena, choices)?,
        })
    }

    /// Closes everything, and looks whether nothing is left.
    ///
    /// # Panics
    /// If something is.
    pub fn close(&self) {
        for place in 0..FILES {
            self.replace(place, File::new(Device::new(self.client.clone())));
        }
    }

    fn replace(&self, place: usize, by: File) {
        let old = core::mem::replace(&mut *self.files[place].write().unwrap_or_else(PoisonError::into_inner), Arc::new(by));
        // Whoever is in the midst of a request still has it; then its end is the file's.
        if let Ok(file) = Arc::try_unwrap(old) {
            file.empty();
            assert_eq!(file.device.sessions(), 0, "sessions that nobody knows of");
        }
    }

    fn request(file: &File, arena: &Arena, choices: &mut dyn Choices) -> Option<&'static str> {
        let numbers = linux::REQUESTS.iter().chain(&freebsd::REQUESTS);
        let which = usize::from(choices.byte()?);
        let number = match which % 64 {
            0 => word(choices)?,
            // Most are of the three that do the work.
            1..=15 => linux::CIOCGSESSION,
            16..=35 => linux::CIOCCRYPT,
            36..=45 => linux::CIOCAUTHCRYPT,
            other => numbers.map(|(number, _)| *number).nth(other % 21)?,
        };
        let argument = if choices.byte()? < 8 { address(choices)? } else { BASE + u64::from(choices.byte()?) * 4 };
        let opens = [linux::CIOCGSESSION, freebsd::CIOCGSESSION, freebsd::CIOCGSESSION2].contains(&number);
        let bytes = match number {
            linux::CIOCKEY | freebsd::CIOCKEY | freebsd::CIOCKEY2 => cryptodev_numbers::argument(arena, choices)?,
            _ => argument_of(number, file, choices)?,
        };
        let _ = arena.write(argument, &bytes);
        // The list is held while one is opened, so that nothing is opened that is on no list.
        let mut opened = if opens { Some(file.opened()) } else { None };
        match file.device.explained(number, argument, arena) {
            Ok(_) => {
                if let Some(opened) = &mut opened {
                    let mut ses = [0; 4];
                    arena.read(argument + 40, &mut ses).expect("it was answered there");
                    opened.push(u32::from_ne_bytes(ses));
                }
            }
            Err(refusal) => {
                let known = ["ENOENT", "E2BIG", "EIO", "ENOMEM", "EFAULT", "EBUSY", "EINVAL", "EDEADLK", "EBADMSG", "EOPNOTSUPP"];
                assert!(known.contains(&refusal.errno().name()), "{refusal}");
                assert!(!refusal.why().is_empty() && refusal.errno() != Errno::EIO, "{refusal}");
            }
        }
        let readiness = file.device.readiness();
        assert!(readiness.readable || readiness.writable, "a ring that is neither full nor empty");
        if opened.is_some_and(|opened| opened.len() > SESSIONS_MAX) {
            file.empty();
        }
        Some(
            linux::REQUESTS
                .iter()
                .chain(&freebsd::REQUESTS)
                .find(|(known, _)| *known == number)
                .map_or("an unknown request", |(_, name)| name),
        )
    }
}

/// The bytes of an argument: fields with a meaning, mostly.
fn argument_of(number: u32, file: &File, choices: &mut dyn Choices) -> Option<Vec<u8>> {
    let ses = file.session(choices)?;
    Some(match number {
        linux::CIOCGSESSION | freebsd::CIOCGSESSION => bytes_of(&session_op(choices)?),
        freebsd::CIOCGSESSION2 => {
            let linux::SessionOp { cipher, mac, keylen, key, mackeylen, mackey, .. } = session_op(choices)?;
            let (mackeylen, ivlen, maclen) = (mackeylen as i32, i32::from(choices.byte()? % 20), i32::from(choices.byte()? % 20));
            let ivlen = if ivlen < 15 { 0 } else { ivlen };
            bytes_of(&freebsd::Session2Op { cipher, mac, keylen, key, mackeylen, mackey, ivlen, maclen, ..Default::default() })
        }
        linux::CIOCAUTHCRYPT => {
            let (src, flags) = (address(choices)?, u16::from(choices.byte()? & 0x7f));
            let dst = if choices.byte()? < 200 { src } else { address(choices)? };
            let auth_src = if choices.byte()? < 128 { src.wrapping_sub(u64::from(choices.byte()? % 40)) } else { address(choices)? };
            bytes_of(&linux::CryptAuthOp {
                ses,
                op: operation(choices)?,
                flags,
                len: length(choices)?,
                auth_len: length(choices)?,
                auth_src,
                src,
                dst,
                tag: address(choices)?,
                tag_len: u32::from(choices.byte()? % 24),
                iv: address(choices)?,
                iv_len: 0,
            })
        }
        freebsd::CIOCCRYPTAEAD => {
            let ivlen = if choices.byte()? < 200 { 12 } else { word(choices)? };
            let (op, flags) = (operation(choices)?, u16::from(choices.byte()? % 16));
            let (len, aadlen) = (length(choices)?, length(choices)?);
            let (src, dst, aad) = (address(choices)?, address(choices)?, address(choices)?);
            let (tag, iv) = (address(choices)?, address(choices)?);
            bytes_of(&freebsd::CryptAead { ses, op, flags, len, aadlen, ivlen, src, dst, aad, tag, iv })
        }
        linux::CIOCCPHASH => bytes_of(&linux::CphashOp { dst_ses: file.session(choices)?, src_ses: ses }),
        linux::CIOCFSESSION | freebsd::CIOCFSESSION => ses.to_ne_bytes().to_vec(),
        linux::CIOCGSESSINFO => bytes_of(&linux::SessionInfoOp { ses, ..Default::default() }),
        _ => bytes_of(&linux::CryptOp {
            ses,
            op: operation(choices)?,
            flags: if choices.byte()? < 250 { u16::from(choices.byte()? & 0x4f) } else { word(choices)? as u16 },
            len: length(choices)?,
            src: address(choices)?,
            dst: address(choices)?,
            mac: address(choices)?,
            iv: address(choices)?,
        }),
    })
}

impl File {
    fn new(device: Device) -> Self {
        Self { device, opened: Mutex::default() }
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, choices: &mut dyn Choices) -> Option<u32> {
        let (how, which) = (choices.byte()?, usize::from(choices.byte()?));
        let opened = self.opened();
        Some(if how < 16 || opened.is_empty() { which as u32 } else { opened[opened.len() - 1 - which % opened.len()] })
    }

    /// Closes every session.
    fn empty(&self) {
        for ses in self.opened().drain(..) {
            let _ = self.device.request(linux::CIOCFSESSION, BASE, &Number(ses));
        }
    }
}

pub(crate) fn bytes_of<T: Layout>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; T::SIZE];
    value.put_bytes(&mut bytes);
    bytes
}

pub(crate) fn word(choices: &mut dyn Choices) -> Option<u32> {
    Some(u32::from_ne_bytes([choices.byte()?, choices.byte()?, choices.byte()?, choices.byte()?]))
}

fn operation(choices: &mut dyn Choices) -> Option<u16> {
    let byte = u16::from(choices.byte()?);
    Some(if byte < 250 { byte % 3 } else { byte })
}

/// Mostly somewhere in memory; else null, its very end, or anywhere.
pub(crate) fn address(choices: &mut dyn Choices) -> Option<u64> {
    let (how, a, b) = (choices.byte()?, u64::from(choices.byte()?), u64::from(choices.byte()?));
    Some(match how {
        0..=7 => 0,
        8..=11 => u64::from(word(choices)?) << (a % 33),
        12..=15 => u64::MAX - a,
        16..=23 => BASE + BYTES as u64 - b % 64,
        24..=31 => BASE + WRITABLE as u64 - b % 64,
        _ => BASE + 1024 + (a << 8 | b) % (100 * 1024),
    })
}

/// Mostly short; else long, too long, or of no meaning.
fn length(choices: &mut dyn Choices) -> Option<u32> {
    const EDGES: [u32; 10] = [0, 4095, 4096, 4097, 8192, 8193, 65_536, 0x7fff_ffff, 0xffff_fff0, u32::MAX];
    let (how, a) = (choices.byte()?, u32::from(choices.byte()?));
    Some(match how {
        0..=7 => EDGES[a as usize % EDGES.len()],
        8..=9 => word(choices)?,
        10..=79 => a,
        _ => 16 * (a % 24),
    })
}

/// A session of something that there is, mostly, with a key that fits, mostly.
fn session_op(choices: &mut dyn Choices) -> Option<linux::SessionOp> {
    const CIPHERS: [(u32, u32); 12] =
        [(0, 0), (11, 16), (11, 32), (21, 24), (23, 16), (22, 32), (50, 16), (51, 16), (2, 24), (101, 24), (16, 0), (1, 8)];
    const MACS: [u32; 14] = [0, 7, 14, 13, 6, 8, 18, 20, 102, 103, 104, 106, 107, 105];
    let (cipher, mac, odd) = (choices.byte()?, choices.byte()?, choices.byte()?);
    let (number, keylen) = CIPHERS[usize::from(cipher) % CIPHERS.len()];
    let mac = if mac < 100 { 0 } else { MACS[usize::from(mac) % MACS.len()] };
    let (cipher, mac, keylen) = match odd {
        0..=3 => (word(choices)?, mac, keylen),
        4..=7 => (number, word(choices)?, keylen),
        8..=15 => (number, mac, length(choices)?),
        16..=31 => (u32::from(choices.byte()? % 112), u32::from(choices.byte()? % 112), u32::from(choices.byte()? % 70)),
        _ => (number, mac, keylen),
    };
    // A cipher that makes tags has no second key.
    let mackeylen = match odd {
        250.. => length(choices)?,
        _ if mac == 0 => 0,
        _ => u32::from(odd % 64),
    };
    Some(linux::SessionOp { cipher, mac, keylen, key: address(choices)?, mackeylen, mackey: address(choices)?, ses: 0 })
}
