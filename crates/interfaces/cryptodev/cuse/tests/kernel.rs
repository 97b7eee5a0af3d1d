//! The device served to a stand-in for the kernel's side of `/dev/cuse`, in the protocol's real bytes over a socket pair.
//!
//! The stand-in does what `fs/fuse/ioctl.c` does: it sends a request, reads and writes a program's memory as the answers ask for, and sends it again.

use bywash_client::{Clients, Config, Route};
use bywash_cryptodev_abi::Layout;
use bywash_cryptodev_abi::linux::{CIOCKEY, CRK_MOD_EXP, CrParam, CryptKop};
use bywash_cryptodev_cuse::{CUSE, serve};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::thread::JoinHandle;

const BASE: u64 = 0x10_0000;
const EFAULT: i32 = 14;

// SP 800-38A F.2.1: AES-128-CBC, first block.
const KEY: [u8; 16] = [0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c];
const PLAIN: [u8; 16] = [0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a];
const CIPHER: [u8; 16] = [0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d];

const CRIOGET: u32 = 0xc004_6365;
const CIOCGSESSION: u32 = 0xc030_6366;
const CIOCFSESSION: u32 = 0x4004_6367;
const CIOCCRYPT: u32 = 0xc030_6368;

/// The kernel, and the memory of the one program that it runs: bytes from `BASE` on, and nothing else.
struct Kernel {
    channel: OwnedFd,
    server: Option<JoinHandle<()>>,
    unique: u64,
    uid: u32,
    thread: u32,
    memory: Vec<u8>,
    /// How often the last request was sent.
    rounds: u32,
}

impl Kernel {
    fn start() -> Self {
        let (channel, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let server = std::thread::spawn(move || {
            let clients = Clients::new(Config { route: Route::Here, ..Config::default() }).unwrap();
            serve(&theirs, &clients, "crypto").unwrap();
        });
        let mut kernel = Self { channel, server: Some(server), unique: 2, uid: 1000, thread: 77, memory: vec![0; 300_000], rounds: 0 };
        let body: Vec<u8> = [7u32, 38, 0, 1].iter().flat_map(|number| number.to_ne_bytes()).collect();
        let (error, answer) = kernel.ask(4096, &body);
        assert_eq!(error, 0);
        assert_eq!(number(&answer, 0), 7);
        assert!(number(&answer, 4) >= 11 && number(&answer, 12) == 1, "unrestricted requests");
        assert_eq!(&answer[72..], b"DEVNAME=crypto\0");
        kernel
    }

    fn send(&mut self, opcode: u32, body: &[u8]) {
        self.unique += 2;
        let mut message = (40 + body.len() as u32).to_ne_bytes().to_vec();
        message.extend(opcode.to_ne_bytes());
        message.extend(self.unique.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(self.uid.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(self.thread.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        assert_eq!(rustix::io::write(&self.channel, &message), Ok(message.len()));
    }

    /// The next message that answers a question; those that do not are given as they are.
    fn receive(&self) -> (u64, i32, Vec<u8>) {
        let mut buffer = vec![0; 1 << 18];
        let length = rustix::io::read(&self.channel, &mut *buffer).unwrap();
        assert_eq!(number(&buffer, 0) as usize, length);
        (u64::from_ne_bytes(buffer[8..16].try_into().unwrap()), number(&buffer, 4) as i32, buffer[16..length].to_vec())
    }

    fn ask(&mut self, opcode: u32, body: &[u8]) -> (i32, Vec<u8>) {
        self.send(opcode, body);
        let (unique, error, answer) = self.receive();
        assert_eq!(unique, self.unique);
        (error, answer)
    }

    fn open(&mut self) -> u64 {
        self.try_open().unwrap()
    }

    fn try_open(&mut self) -> Result<u64, i32> {
        let (error, answer) = self.ask(14, &[0; 8]);
        if error != 0 {
            return Err(error);
        }
        assert_eq!(answer.len(), 16);
        Ok(u64::from_ne_bytes(answer[..8].try_into().unwrap()))
    }

    /// As the kernel does it, whoever closes.
    fn release(&mut self, fh: u64) {
        let mut body = fh.to_ne_bytes().to_vec();
        body.extend([0; 16]);
        let uid = std::mem::take(&mut self.uid);
        assert_eq!(self.ask(18, &body), (0, vec![]));
        self.uid = uid;
    }

    /// Sends a round of an ioctl, and does not wait for its answer.
    fn send_ioctl(&mut self, fh: u64, request: u32, data: &[u8]) {
        let mut body = fh.to_ne_bytes().to_vec();
        body.extend(2u32.to_ne_bytes());
        body.extend(request.to_ne_bytes());
        body.extend(BASE.to_ne_bytes());
        body.extend((data.len() as u32).to_ne_bytes());
        body.extend([0; 4]);
        body.extend(data);
        self.send(39, &body);
    }

    /// A program's ioctl, as `fuse_do_ioctl` does it; gives what it returns.
    fn ioctl(&mut self, fh: u64, request: u32, argument: u64) -> i32 {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        self.rounds = 0;
        loop {
            self.rounds += 1;
            assert!(self.rounds < 6, "it is asked for again and again");
            let Some(data) = self.copy_in(&reads) else { return -EFAULT };
            let room: u64 = writes.iter().map(|(_, length): &(u64, u64)| *length).sum();
            assert!(data.len() <= 128 << 10 && room <= 128 << 10, "more than the kernel carries");
            let mut body = fh.to_ne_bytes().to_vec();
            body.extend(2u32.to_ne_bytes());
            body.extend(request.to_ne_bytes());
            body.extend(argument.to_ne_bytes());
            body.extend((data.len() as u32).to_ne_bytes());
            body.extend((room as u32).to_ne_bytes());
            body.extend(data);
            let (error, answer) = self.ask(39, &body);
            assert_eq!(error, 0);
            if number(&answer, 4) & 4 == 0 {
                assert!(answer.len() as u64 - 16 <= room);
                return if self.copy_out(&writes, &answer[16..]) { number(&answer, 0) as i32 } else { -EFAULT };
            }
            let ranges: Vec<(u64, u64)> = answer[16..]
                .chunks(16)
                .map(|range| [&range[..8], &range[8..]].map(|part| u64::from_ne_bytes(part.try_into().unwrap())).into())
                .collect();
            let (input, output) = ranges.split_at(number(&answer, 8) as usize);
            assert_eq!(output.len(), number(&answer, 12) as usize);
            (reads, writes) = (input.to_vec(), output.to_vec());
        }
    }

    fn place(&self, address: u64, length: u64) -> Option<core::ops::Range<usize>> {
        let start = usize::try_from(address.checked_sub(BASE)?).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (end <= self.memory.len()).then_some(start..end)
    }

    fn copy_in(&self, ranges: &[(u64, u64)]) -> Option<Vec<u8>> {
        let parts: Option<Vec<&[u8]>> = ranges.iter().map(|(base, length)| Some(&self.memory[self.place(*base, *length)?])).collect();
        Some(parts?.concat())
    }

    fn copy_out(&mut self, ranges: &[(u64, u64)], mut data: &[u8]) -> bool {
        for (base, length) in ranges {
            let part = data.split_off(..data.len().min(*length as usize)).unwrap();
            let Some(place) = self.place(*base, part.len() as u64) else { return false };
            self.memory[place].copy_from_slice(part);
        }
        true
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> u64 {
        let place = self.place(BASE + offset, bytes.len() as u64).unwrap();
        self.memory[place].copy_from_slice(bytes);
        BASE + offset
    }

    fn session(&mut self, fh: u64) -> u32 {
        let key = self.put(0x800, &KEY);
        let mut op = [0; 48];
        op[..4].copy_from_slice(&11u32.to_ne_bytes());
        op[8..12].copy_from_slice(&16u32.to_ne_bytes());
        op[16..24].copy_from_slice(&key.to_ne_bytes());
        let argument = self.put(0x400, &op);
        assert_eq!(self.ioctl(fh, CIOCGSESSION, argument), 0);
        number(&self.memory, 0x400 + 40)
    }

    fn encrypt(&mut self, fh: u64, session: u32, src: u64, length: u32, dst: u64) -> i32 {
        let iv = self.put(0x900, &core::array::from_fn::<u8, 16, _>(|index| index as u8));
        let mut op = session.to_ne_bytes().to_vec();
        op.extend([0; 4]);
        op.extend(length.to_ne_bytes());
        op.extend([0; 4]);
        [src, dst, 0, iv].iter().for_each(|pointer| op.extend(pointer.to_ne_bytes()));
        let argument = self.put(0x480, &op);
        self.ioctl(fh, CIOCCRYPT, argument)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both).unwrap();
        let ended = self.server.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn a_session_encrypts_in_four_rounds_and_ends_with_its_file() {
    let mut kernel = Kernel::start();
    let fh = kernel.open();
    let session = kernel.session(fh);
    let src = kernel.put(0x1000, &PLAIN);
    assert_eq!(kernel.encrypt(fh, session, src, 16, BASE + 0x2000), 0);
    assert_eq!(kernel.memory[0x2000..0x2010], CIPHER);
    assert_eq!(kernel.rounds, 4);
    // In place, and a long one in pieces: the same key stream as block by block.
    assert_eq!(kernel.encrypt(fh, session, src, 16, src), 0);
    assert_eq!(kernel.memory[0x1000..0x1010], CIPHER);
    kernel.memory[0x4000..0x4000 + 100_000].fill(7);
    assert_eq!(kernel.encrypt(fh, session, BASE + 0x4000, 100_000, BASE + 0x4000), 0);
    assert_ne!(kernel.memory[0x4000..0x4010], [7; 16]);
    assert_eq!(kernel.memory[0x4000 + 100_000], 0);

    let other = kernel.open();
    assert_ne!(other, fh);
    assert_eq!(kernel.encrypt(other, session, src, 16, src), -22, "another file does not know the session");
    kernel.release(fh);
    let renewed = kernel.open();
    assert_eq!(kernel.encrypt(renewed, session, src, 16, src), -22);
}

#[test]
fn what_is_wrong_has_its_error_number() {
    let mut kernel = Kernel::start();
    let fh = kernel.open();
    let session = kernel.session(fh);
    let src = kernel.put(0x1000, &PLAIN);
    assert_eq!(kernel.ioctl(fh, CIOCCRYPT, 0), -EFAULT);
    assert_eq!(kernel.ioctl(fh, CIOCCRYPT, 64), -EFAULT);
    assert_eq!(kernel.encrypt(fh, session, 64, 16, src), -EFAULT);
    assert_eq!(kernel.encrypt(fh, session, src, 16, 64), -EFAULT);
    assert_eq!(kernel.encrypt(fh, session, src, 15, src), -22);
    assert_eq!(kernel.encrypt(fh, session, src, 128 << 10, src), -7, "E2BIG");
    assert_eq!(kernel.encrypt(fh, session, u64::MAX - 3, 16, src), -EFAULT);
    assert_eq!(kernel.ioctl(fh, CRIOGET, BASE), -95, "EOPNOTSUPP");
    assert_eq!(kernel.ioctl(fh, 0x5401, BASE), -22, "EINVAL, as the module has it");
    assert_eq!(kernel.ioctl(fh + 1000, CIOCCRYPT, BASE), -5);
    let number = kernel.put(0x700, &session.to_ne_bytes());
    assert_eq!(kernel.ioctl(fh, CIOCFSESSION, number), 0);
    assert_eq!(kernel.encrypt(fh, session, src, 16, src), -22);
    // Opcodes of files: read and write are EINVAL, what is unknown ENOSYS.
    assert_eq!(kernel.ask(15, &[0; 40]).0, -22);
    assert_eq!(kernel.ask(16, &[0; 40]).0, -22);
    assert_eq!(kernel.ask(999, &[]).0, -38);
}

#[test]
fn poll_says_writable_and_is_told_after_the_next_request() {
    let mut kernel = Kernel::start();
    let fh = kernel.open();
    let mut body = fh.to_ne_bytes().to_vec();
    body.extend(4711u64.to_ne_bytes());
    body.extend(1u32.to_ne_bytes());
    body.extend(0x145u32.to_ne_bytes());
    let (error, answer) = kernel.ask(40, &body);
    assert_eq!((error, number(&answer, 0)), (0, 0x104));
    // An interrupt has no answer, a request that is told about has a message before its own.
    kernel.send(36, &2u64.to_ne_bytes());
    let argument = kernel.put(0x700, &9u32.to_ne_bytes());
    let mut body = fh.to_ne_bytes().to_vec();
    body.extend(2u32.to_ne_bytes());
    body.extend(CIOCFSESSION.to_ne_bytes());
    body.extend(argument.to_ne_bytes());
    body.extend(4u32.to_ne_bytes());
    body.extend(0u32.to_ne_bytes());
    body.extend(9u32.to_ne_bytes());
    kernel.send(39, &body);
    assert_eq!(kernel.receive(), (0, 1, 4711u64.to_ne_bytes().to_vec()));
    assert_eq!(kernel.receive().0, kernel.unique);
}

#[test]
fn threads_of_a_program_do_not_mix_their_results() {
    let mut kernel = Kernel::start();
    let fh = kernel.open();
    let session = kernel.session(fh);
    let src = kernel.put(0x1000, &PLAIN);
    for thread in 1..50 {
        kernel.thread = thread;
        assert_eq!(kernel.encrypt(fh, session, src, 16, BASE + 0x2000 + u64::from(thread) * 16), 0);
    }
    assert!(kernel.memory[0x2010..0x2000 + 50 * 16].chunks(16).all(|block| block == CIPHER));
}

#[test]
fn a_thread_without_a_number_is_refused() {
    let mut kernel = Kernel::start();
    let fh = kernel.open();
    let session = kernel.session(fh);
    let src = kernel.put(0x1000, &PLAIN);
    kernel.thread = 0;
    assert_eq!(kernel.encrypt(fh, session, src, 16, src), -95, "EOPNOTSUPP");
    assert_eq!(kernel.memory[0x1000..0x1010], PLAIN);
    kernel.thread = 1;
    assert_eq!(kernel.encrypt(fh, session, src, 16, src), 0);
}

#[test]
fn opens_are_counted_by_user_until_they_are_closed() {
    const ENFILE: i32 = 23;
    let mut kernel = Kernel::start();
    // Root is one of them.
    kernel.uid = 0;
    let first = kernel.open();
    for _ in 1..1024 {
        kernel.open();
    }
    assert_eq!(kernel.try_open(), Err(-ENFILE));
    kernel.uid = 1000;
    let other = kernel.open();
    kernel.session(other);
    kernel.uid = 0;
    kernel.release(first);
    kernel.open();
    assert_eq!(kernel.try_open(), Err(-ENFILE));
}

/// 64 threads of a user ask for powers of numbers of 4096 bits, each of which takes some 20 ms.
#[test]
fn a_user_whose_requests_take_long_holds_up_no_other() {
    const THREADS: u32 = 64;
    let mut kernel = Kernel::start();
    let fh = kernel.open();
    let number = CrParam { crp_p: BASE + 0x1000, crp_nbits: 4096 };
    let mut power = CryptKop { crk_op: CRK_MOD_EXP, crk_iparams: 3, crk_oparams: 1, ..CryptKop::default() };
    power.crk_param[..4].fill(number);
    // Argument, base, exponent, modulus: what the kernel has fetched by the last round.
    let mut data = vec![0xff; CryptKop::SIZE + 3 * 512];
    power.put_bytes(&mut data);
    let began = kernel.unique;
    for thread in 1..=THREADS {
        kernel.thread = thread;
        kernel.send_ioctl(fh, CIOCKEY, &data);
    }
    kernel.uid = 2000;
    let body = [0; 8];
    kernel.send(14, &body);
    let (other, mut computed) = (kernel.unique, 0);
    while kernel.receive().0 != other {
        computed += 1;
    }
    assert!(computed < THREADS / 2, "{computed} of another's came before it");
    let mut left: Vec<u64> = (computed..THREADS).map(|_| kernel.receive().0).collect();
    left.sort_unstable();
    left.dedup();
    assert_eq!(left.len() as u32, THREADS - computed);
    assert!(left.iter().all(|unique| (began + 1..other).contains(unique)));
}

#[test]
fn an_older_protocol_is_refused() {
    let (channel, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let mut message: Vec<u8> = [56u32, 4096, 2, 0, 0, 0, 0, 0, 1, 0].iter().flat_map(|number| number.to_ne_bytes()).collect();
    message.extend([7u32, 11, 0, 1].iter().flat_map(|number| number.to_ne_bytes()));
    rustix::io::write(&channel, &message).unwrap();
    let error = serve(&theirs, &Clients::new(Config::default()).unwrap(), "crypto").unwrap_err().to_string();
    assert!(error.contains("7.11") && error.contains("7.16"), "{error}");
}

#[test]
fn the_real_device() {
    if !std::path::Path::new(CUSE).exists() {
        eprintln!("skipped: there is no {CUSE} here (CONFIG_CUSE)");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root may use {CUSE}");
        return;
    }
    let name = format!("bywash-test-{}", std::process::id());
    let device = std::path::PathBuf::from(format!("/dev/{name}"));
    let clients = Clients::new(Config { route: Route::Here, ..Config::default() }).unwrap();
    // It is served until the process ends.
    std::thread::spawn(move || bywash_cryptodev_cuse::serve_device(&clients, &name));
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let file = loop {
        match std::fs::File::open(&device) {
            Ok(file) => break file,
            Err(error) => assert!(std::time::Instant::now() < end, "{}: {error}", device.display()),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    use std::io::Read;
    assert_eq!((&file).read(&mut [0; 4]).unwrap_err().raw_os_error(), Some(22));
}
