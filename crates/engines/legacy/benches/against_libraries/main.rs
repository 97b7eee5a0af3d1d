//! The kernels against the libraries of this system, on one core.
//!
//! `cargo bench -p bywash-legacy --bench against_libraries -- [NAME...]` prints one row for each cipher, mode and size whose name contains one of the names. The
//! contenders of a row take turns within each round, so that whatever else the machine does hits them alike; the time is the thread's CPU
//! time. Columns: GB/s, medians over the rounds, of these kernels, their portable form, OpenSSL's libcrypto (with its legacy provider), libgcrypt and Botan; and
//! the median over the rounds of the ratio to the fastest library. `-` is a library that has no such cipher or mode; one that is not
//! installed is named at the start. Keys are set once, for all.

mod botan;
mod gcrypt;
mod openssl;

use bywash_legacy::des::{Des, Stream, StreamKey, TripleDes, encrypt_cbc_streams};
use bywash_legacy::modes::{Cbc, Ctr};
use bywash_legacy::{BlockCipher, Camellia, Form, Rc6, Serpent, Twofish};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 25;
/// Time of one contender in one round.
const TURN_NS: u64 = 1_000_000;
const SIZES: [usize; 7] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 1 << 20];
/// Bytes of a key; shorter keys are its beginning.
const KEY: [u8; 32] = *b"any key will do, of whatever len";
const IV: [u8; 16] = *b"initial vector--";

/// The modes that are measured.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Ecb,
    Ctr,
    CbcDecrypt,
    /// One stream.
    CbcEncrypt,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Ecb => "ecb",
            Mode::Ctr => "ctr",
            Mode::CbcDecrypt => "cbc-decrypt",
            Mode::CbcEncrypt => "cbc-encrypt",
        }
    }
}

/// What transforms a message in place.
type Contender = Box<dyn FnMut(&mut [u8])>;

/// A cipher as each library calls it, and its key's length.
struct Names {
    key: usize,
    block: usize,
    /// Without the mode: `DES-EDE3`.
    openssl: Option<&'static str>,
    /// The number in gcrypt.h.
    gcrypt: Option<i32>,
    botan: Option<&'static str>,
}

/// CPU time of this thread in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn turn(runs: u64, work: &mut Contender, data: &mut [u8]) -> f64 {
    let start = now();
    for _ in 0..runs {
        work(data);
    }
    (now() - start) as f64 / runs as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds of one run of each contender in each round; nothing for those that are missing.
fn measure(contenders: &mut [Option<Contender>], data: &mut [u8]) -> Vec<Vec<f64>> {
    let runs: Vec<u64> = contenders
        .iter_mut()
        .map(|work| work.as_mut().map_or(0, |work| ((TURN_NS as f64 / turn(1, work, data).max(1.0)) as u64).max(1)))
        .collect();
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for ((work, runs), times) in contenders.iter_mut().zip(&runs).zip(&mut times) {
            if let Some(work) = work {
                times.push(turn(*runs, work, data));
            }
        }
    }
    times
}

/// Prints a row. The bytes of all contenders must be the same. `scale` is how much more the first two do in a run than the libraries.
fn row(name: &str, contenders: &mut [Option<Contender>], size: usize, scale: usize) {
    let outputs: Vec<Vec<u8>> = contenders
        .iter_mut()
        .flatten()
        .map(|work| {
            let mut data: Vec<u8> = (0..size).map(|i| (i * 7 + i / 256) as u8).collect();
            work(&mut data);
            data
        })
        .collect();
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]), "{name}: not all give the same bytes");
    let times = measure(contenders, &mut vec![0; size]);
    let bytes = |who: usize| (size * if who < 2 { scale } else { 1 }) as f64;
    let speeds: Vec<String> = times
        .iter()
        .enumerate()
        .map(|(who, times)| if times.is_empty() { "-".into() } else { format!("{:.3}", bytes(who) / median(times.clone())) })
        .collect();
    let fastest = |round: usize| times[2..].iter().filter_map(|times| times.get(round)).map(|ns| size as f64 / ns).reduce(f64::max);
    let ratios: Option<Vec<f64>> = (0..ROUNDS).map(|round| Some(bytes(0) / times[0][round] / fastest(round)?)).collect();
    let ratio = ratios.map_or("-".into(), |ratios| format!("{:.2}", median(ratios)));
    println!("{name:<34} {size:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {ratio:>7}", speeds[0], speeds[1], speeds[2], speeds[3], speeds[4]);
}

fn ours<C: BlockCipher + 'static>(cipher: C, mode: Mode) -> Contender {
    match mode {
        Mode::Ecb => Box::new(move |data| cipher.encrypt_blocks(data)),
        Mode::Ctr => Box::new(move |data| Ctr::new(&IV[..C::BLOCK]).apply(&cipher, data)),
        Mode::CbcDecrypt => Box::new(move |data| Cbc::new(&IV[..C::BLOCK]).decrypt(&cipher, data)),
        Mode::CbcEncrypt => Box::new(move |data| Cbc::new(&IV[..C::BLOCK]).encrypt(&cipher, data)),
    }
}

/// The installed libraries.
struct Libraries {
    openssl: Option<&'static openssl::OpenSsl>,
    gcrypt: Option<&'static gcrypt::Gcrypt>,
    botan: Option<&'static botan::Botan>,
}

impl Libraries {
    fn contenders(&self, names: &Names, mode: Mode) -> [Option<Contender>; 3] {
        let (key, iv) = (&KEY[..names.key], &IV[..names.block]);
        [
            self.openssl.zip(names.openssl).and_then(|(library, name)| library.contender(name, mode, key, iv)),
            self.gcrypt.zip(names.gcrypt).and_then(|(library, algorithm)| library.contender(algorithm, mode, key, iv)),
            self.botan.zip(names.botan).and_then(|(library, name)| library.contender(name, mode, key, iv)),
        ]
    }
}

/// Which rows are wanted, and against whom.
struct Bench {
    wanted: Vec<String>,
    libraries: Libraries,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| name.contains(wanted.as_str()))
    }

    fn cipher<C: BlockCipher + 'static>(&self, names: Names) {
        for mode in [Mode::Ecb, Mode::Ctr, Mode::CbcDecrypt, Mode::CbcEncrypt] {
            let name = format!("{}-{}-{}", C::NAME.to_lowercase(), names.key * 8, mode.name());
            if !self.wants(&name) {
                continue;
            }
            let form = |form| Some(ours(C::with_form(&KEY[..names.key], form).expect("a key"), mode));
            let [openssl, gcrypt, botan] = self.libraries.contenders(&names, mode);
            let mut contenders = [form(Form::best()), form(Form::PORTABLE), openssl, gcrypt, botan];
            for size in SIZES {
                row(&name, &mut contenders, size, 1);
            }
        }
    }

    /// As many streams of one key; all libraries have is one after the other.
    fn streams<C: StreamKey + 'static>(&self, names: Names) {
        for (number, size) in [(16, 16 << 10), (64, 16 << 10), (128, 16 << 10), (512, 1 << 10), (512, 16 << 10)] {
            let name = format!("{}-{}-cbc-encrypt-{number}-streams", C::NAME.to_lowercase(), names.key * 8);
            if !self.wants(&name) {
                continue;
            }
            let form = |form| -> Option<Contender> {
                let key = C::with_form(&KEY[..names.key], form).expect("a key");
                let mut others = vec![vec![0; size]; number - 1];
                Some(Box::new(move |data| {
                    let all = std::iter::once(data).chain(others.iter_mut().map(Vec::as_mut_slice));
                    let mut streams: Vec<_> =
                        all.map(|data| Stream { key: &key, chained: IV[..8].try_into().expect("a block"), data }).collect();
                    encrypt_cbc_streams(&mut streams);
                }))
            };
            let [openssl, gcrypt, botan] = self.libraries.contenders(&names, Mode::CbcEncrypt);
            row(&name, &mut [form(Form::best()), form(Form::PORTABLE), openssl, gcrypt, botan], size, number);
        }
    }
}

fn main() {
    // cargo itself passes --bench.
    let wanted = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let libraries = Libraries { openssl: openssl::OpenSsl::load(), gcrypt: gcrypt::Gcrypt::load(), botan: botan::Botan::load() };
    if !Form::best().is_vector() {
        println!("this processor lacks AVX-512 VBMI or GFNI: but for a few blocks of DES and 3DES both columns are the portable form");
    }
    let bench = Bench { wanted, libraries };
    println!(
        "\n{:<34} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "GB/s", "bytes", "ours", "portable", "OpenSSL", "gcrypt", "Botan", "ratio"
    );
    let des = || Names { key: 8, block: 8, openssl: Some("DES"), gcrypt: Some(302), botan: Some("DES") };
    let triple_des = || Names { key: 24, block: 8, openssl: Some("DES-EDE3"), gcrypt: Some(2), botan: Some("3DES") };
    bench.cipher::<Des>(des());
    bench.cipher::<TripleDes>(triple_des());
    bench.cipher::<Serpent>(Names { key: 32, block: 16, openssl: None, gcrypt: Some(306), botan: Some("Serpent") });
    bench.cipher::<Twofish>(Names { key: 32, block: 16, openssl: None, gcrypt: Some(10), botan: Some("Twofish") });
    for (key, openssl, gcrypt, botan) in [(16, "CAMELLIA-128", 310, "Camellia-128"), (32, "CAMELLIA-256", 312, "Camellia-256")] {
        bench.cipher::<Camellia>(Names { key, block: 16, openssl: Some(openssl), gcrypt: Some(gcrypt), botan: Some(botan) });
    }
    bench.cipher::<Rc6>(Names { key: 16, block: 16, openssl: None, gcrypt: None, botan: None });
    bench.streams::<Des>(des());
    bench.streams::<TripleDes>(triple_des());
}
