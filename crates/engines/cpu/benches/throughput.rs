//! What one core does: one-shot operations and streams side by side, by size.
//!
//! `cargo bench -p bywash-engine-cpu -- [ALGORITHM...]` prints nanoseconds of one operation and GB/s, as the engine computes and as the
//! library alone does (of AEGIS, which it has not, what needs no instructions); for AES and AEGIS also as the engine would on processors without 512-bit registers, where some of it is the library's.
//! There the library would do without them as well: `OPENSSL_ia32cap=~0:~0xc0030000` has it believe that there are none, and `~0:~0x600c0030000` that
//! there is no VAES either. All contenders of a size take turns within each round, so that whatever else the machine does hits them alike; the time is
//! the thread's CPU time; the figure is the median round.

use bywash_core::{Algorithm, Data, Direction, Engine, Key, Keyed, Kind, Operation, SessionParams, Stream};
use bywash_engine_cpu::{CpuEngine, Path};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

const SIZES: [usize; 7] = [16, 64, 256, 1024, 4096, 16384, 1 << 20];
const ROUNDS: usize = 15;
/// Time of one contender in one round.
const TURN_NS: u64 = 1_000_000;

/// CPU time of this thread in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Something that can be run again and again on a buffer.
type Work<'a> = Box<dyn FnMut(&mut [u8]) + 'a>;

struct Contender<'a> {
    name: String,
    work: Work<'a>,
}

impl<'a> Contender<'a> {
    fn new(name: impl Into<String>, work: impl FnMut(&mut [u8]) + 'a) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Nanoseconds of one run, measured over one turn.
fn turn(contender: &mut Contender<'_>, buffer: &mut [u8]) -> f64 {
    // Reading this clock is a system call of some 200 ns: many runs between two readings.
    let batch = ((1 << 19) / buffer.len().max(1)).clamp(1, 1 << 12);
    let start = now();
    let mut runs = 0;
    loop {
        for _ in 0..batch {
            (contender.work)(black_box(&mut *buffer));
        }
        runs += batch;
        let spent = now() - start;
        if spent >= TURN_NS {
            return spent as f64 / runs as f64;
        }
    }
}

fn keyed(engine: CpuEngine, algorithm: Algorithm) -> Option<Box<dyn Keyed>> {
    let len = match algorithm.kind() {
        Kind::Cipher { key, .. } | Kind::Aead { key, .. } => key,
        _ => return None,
    };
    let key: Vec<u8> = (0..len as u8).collect();
    engine.open(&SessionParams::new(algorithm, Key::Symmetric(key.into())).ok()?).ok()
}

/// A ciphertext with its tag, made anew when the size changes.
#[derive(Default)]
struct Sealed {
    text: Vec<u8>,
    tag: Vec<u8>,
}

fn encrypt(keyed: &dyn Keyed, iv: &[u8], tag: &mut [u8], buffer: &mut [u8]) {
    let mut operation = Operation { direction: Direction::Encrypt, iv, aad: &[], data: Data::InPlace(buffer), tag };
    keyed.run(&mut operation).expect("an operation that fits its session");
}

fn decrypt(keyed: &dyn Keyed, iv: &[u8], sealed: &mut Sealed, buffer: &mut [u8]) {
    if sealed.text.len() != buffer.len() {
        sealed.text = buffer.to_vec();
        encrypt(keyed, iv, &mut sealed.tag, &mut sealed.text);
    }
    let data = Data::Copy { input: &sealed.text, output: buffer };
    let mut operation = Operation { direction: Direction::Decrypt, iv, aad: &[], data, tag: &mut sealed.tag };
    keyed.run(&mut operation).expect("a ciphertext made by the same session");
}

/// What a session of `who` can do.
fn contenders<'a>(who: &str, keyed: &'a dyn Keyed, algorithm: Algorithm) -> Vec<Contender<'a>> {
    let tag_len = if matches!(algorithm.kind(), Kind::Aead { .. }) { 16 } else { 0 };
    let (iv, xts) = (vec![7; algorithm.usual_iv_len()], algorithm.is_xts());
    let mut all: Vec<Contender<'a>> = Vec::new();
    let (encrypt_iv, mut tag) = (iv.clone(), vec![0; tag_len]);
    all.push(Contender::new(format!("{who}, in place"), move |buffer| encrypt(keyed, &encrypt_iv, &mut tag, buffer)));
    let (decrypt_iv, mut sealed) = (iv.clone(), Sealed { tag: vec![0; tag_len], ..Sealed::default() });
    all.push(Contender::new(format!("{who}, decrypt apart"), move |buffer| decrypt(keyed, &decrypt_iv, &mut sealed, buffer)));
    if let Ok(mut stream) = keyed.stream(Direction::Encrypt, &iv) {
        let whole_iv = iv.clone();
        let message = move |buffer: &mut [u8]| whole(&mut *stream, &whole_iv, tag_len > 0, buffer);
        all.push(Contender::new(format!("{who}, whole stream"), message));
    }
    if let (Ok(mut stream), false) = (keyed.stream(Direction::Encrypt, &iv), xts) {
        // What `openssl speed -evp` does: one message without end. GCM ends at 64 GiB.
        let mut left = 1u64 << 35;
        let work = move |buffer: &mut [u8]| {
            let len = buffer.len() as u64;
            if left < len {
                stream.start(&iv).expect("the IV was taken before");
                left = 1 << 35;
            }
            left -= len;
            stream.update(Data::InPlace(buffer)).expect("whole blocks of a message that is not too long");
        };
        all.push(Contender::new(format!("{who}, update alone"), work));
    }
    all
}

fn whole(stream: &mut dyn Stream, iv: &[u8], tagged: bool, buffer: &mut [u8]) {
    stream.start(iv).expect("the IV was taken before");
    stream.update(Data::InPlace(buffer)).expect("whole blocks");
    if tagged {
        black_box(stream.finish().expect("a message was begun"));
    }
}

/// Nanoseconds to open a session and close it again.
fn open_ns(algorithm: Algorithm) -> f64 {
    turn(&mut Contender::new("open", move |_| drop(black_box(keyed(CpuEngine::new(), algorithm)))), &mut [0; 1024])
}

fn bench(algorithm: Algorithm) {
    let Some(keyed) = keyed(CpuEngine::new(), algorithm) else { return println!("{algorithm}: only ciphers and AEADs are measured here") };
    let library = self::keyed(CpuEngine::without_lanes(), algorithm);
    let has_paths = ["AES-", "AEGIS-"].iter().any(|family| algorithm.name().starts_with(family));
    let paths: Vec<_> = Path::ALL.into_iter().filter(|path| has_paths && path.is_supported()).collect();
    let narrow: Vec<_> = paths.into_iter().map(|path| (path, self::keyed(CpuEngine::on_path(path), algorithm))).collect();
    let mut contenders = contenders("engine", &*keyed, algorithm);
    contenders.extend(library.iter().flat_map(|library| self::contenders("library", &**library, algorithm)));
    for (path, keyed) in &narrow {
        contenders.extend(keyed.iter().flat_map(|keyed| self::contenders(&format!("{path:?}"), &**keyed, algorithm)));
    }
    println!("\n{algorithm}: a session opens in {:.0} ns", open_ns(algorithm));
    print!("{:<24}", "bytes");
    SIZES.iter().for_each(|size| print!("{size:>20}"));
    println!();
    let mut figures = vec![Vec::new(); contenders.len()];
    for size in SIZES {
        let mut buffer = vec![0x5A; size];
        let mut rounds = vec![Vec::new(); contenders.len()];
        for _ in 0..ROUNDS {
            for (contender, times) in contenders.iter_mut().zip(&mut rounds) {
                times.push(turn(contender, &mut buffer));
            }
        }
        for (times, figures) in rounds.iter_mut().zip(&mut figures) {
            times.sort_by(f64::total_cmp);
            figures.push(times[ROUNDS / 2]);
        }
    }
    for (contender, figures) in contenders.iter().zip(figures) {
        print!("{:<24}", contender.name);
        SIZES.iter().zip(figures).for_each(|(&size, ns)| print!("{:>20}", format!("{ns:.0} ns {:.2} GB/s", size as f64 / ns)));
        println!();
    }
}

fn main() {
    println!("{}", CpuEngine::new().describe());
    let wanted: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let usual = [
        Algorithm::Aes256Gcm,
        Algorithm::Aes128Gcm,
        Algorithm::ChaCha20Poly1305,
        Algorithm::Aes128Ctr,
        Algorithm::Aes256Ctr,
        Algorithm::Aes256Cbc,
        Algorithm::Aes256Ecb,
        Algorithm::Aes128Xts,
        Algorithm::Aes256Xts,
    ];
    if wanted.is_empty() {
        return usual.into_iter().for_each(bench);
    }
    for name in wanted {
        match name.parse() {
            Ok(algorithm) => bench(algorithm),
            Err(error) => println!("{error}"),
        }
    }
}
