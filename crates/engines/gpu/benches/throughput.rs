//! Throughput on whatever devices are here: in the device's memory, from and to the host's, small files packed and one by one. `cargo bench -p bywash-engine-gpu`
//!
//! Shares of the arithmetic limit go by the instructions of CUDA's kernels for sm_90, shares of the memory limit by text read and written once; both are printed where the driver says
//! what the device can do. A software Vulkan is said to be one: its figures are those of the processor.

use bywash_core::{Algorithm, Data, Direction, Engine, HostMemory, Key, Keyed, Kind, Operation, OwnedOperation, SessionParams, Task};
use bywash_engine_gpu::{Backend, GpuEngine};
use std::time::{Duration, Instant};

/// Algorithm, whether without its tag, bitwise instructions for a byte (README.md), how often a byte is read or written.
const KERNELS: [(&str, Algorithm, bool, f64, f64); 6] = [
    ("AES-128-CTR", Algorithm::Aes128Ctr, true, 42.9, 2.0),
    ("AES-256-CTR", Algorithm::Aes256Ctr, true, 57.8, 2.0),
    ("AES-256-GCM", Algorithm::Aes256Gcm, false, 76.0, 3.0),
    ("AES-128-XTS", Algorithm::Aes128Xts, true, 45.5, 2.0),
    ("ChaCha20", Algorithm::ChaCha20Poly1305, true, 13.3, 2.0),
    ("ChaCha20-Poly1305", Algorithm::ChaCha20Poly1305, false, 22.0, 3.0),
];

/// The longest data unit of XTS (IEEE 1619: 2^20 blocks), in bytes.
const XTS_UNIT: usize = 16 << 20;
/// At least so long is measured.
const LONG: Duration = Duration::from_millis(300);
/// The same where processor time counts, which comes in hundredths of a second.
const HOST_LONG: Duration = Duration::from_secs(2);

fn main() {
    for backend in Backend::ALL {
        match backend.open() {
            Ok(engine) => report(backend, &engine),
            Err(absent) => println!("{}: missing: {}", absent.name, absent.reason),
        }
    }
}

fn report(backend: Backend, engine: &GpuEngine) {
    let is_software = engine.describe().contains("software");
    println!("{}: {}", engine.name(), engine.describe());
    if is_software {
        println!("  a software Vulkan: these are the processor's figures, and say nothing of a GPU");
    }
    // More than a cache of the device holds.
    let large = backend.open_with(if is_software { 4 << 20 } else { 64 << 20 }, 2);
    match large {
        Ok(large) => KERNELS.iter().for_each(|kernel| resident(&large, kernel)),
        Err(absent) => println!("  in the device's memory: {}", absent.reason),
    }
    let limit = engine.copies(if is_software { 1 } else { 64 });
    match &limit {
        Ok([there, back, both]) => println!(
            "  copies of {there:.1} GB/s to it, {back:.1} from it, {both:.1} each way at once",
            there = there / 1e9,
            back = back / 1e9,
            both = both / 1e9
        ),
        Err(error) => println!("  copies: {error}"),
    }
    let both = limit.ok().map(|[.., both]| both);
    let bytes: usize = if is_software { 8 << 20 } else { 1 << 30 };
    for algorithm in [Algorithm::Aes128Ctr, Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305, Algorithm::Aes128Xts] {
        // Those of 16 MiB, which is the longest data unit of XTS, all at once, and one alone, during which hardly anything overlaps.
        let mut counts = if algorithm.is_xts() { vec![bytes.div_ceil(XTS_UNIT), 1] } else { vec![1] };
        counts.dedup();
        for count in counts {
            let bytes = if algorithm.is_xts() { count * bytes.min(XTS_UNIT) } else { bytes };
            host(engine, algorithm, &mut HostMemory::zeroed(bytes), count, both, "imported");
            host(engine, algorithm, &mut vec![0; bytes], count, both, "copied");
        }
    }
    for algorithm in [Algorithm::Aes128Ctr, Algorithm::Aes256Gcm] {
        packed(engine, algorithm, if is_software { 200 } else { 1000 });
    }
}

fn resident(engine: &GpuEngine, &(name, algorithm, cipher_alone, instructions, passes): &(&str, Algorithm, bool, f64, f64)) {
    let mut times = 1;
    let best = loop {
        match engine.resident(algorithm, cipher_alone, times) {
            Ok(run) if run.took < LONG && times < 1 << 16 => times *= 2,
            Ok(run) => break run.rate(),
            Err(error) => return println!("  {name}: {error}"),
        }
    };
    let shares = engine.limits().map_or(String::new(), |(arithmetic, memory)| {
        format!(
            ", {:.0} % of the arithmetic limit, {:.0} % of the memory's",
            100.0 * best * instructions / arithmetic,
            100.0 * best * passes / memory
        )
    });
    println!("  {name:<18} in the device's memory: {:8.2} GB/s, {instructions} instructions a byte{shares}", best / 1e9);
}

fn open(engine: &GpuEngine, algorithm: Algorithm) -> Option<Box<dyn Keyed>> {
    let key = Key::Symmetric((0..64).take(algorithm.key_lengths().0).collect::<Vec<u8>>().into());
    let opened = SessionParams::new(algorithm, key).and_then(|params| engine.open(&params));
    opened.inspect_err(|error| println!("  {algorithm}: {error}")).ok()
}

/// Processor seconds of this process, in steps of a hundredth.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// From and to the host's memory, which the device reaches by itself or not, so many texts at once, beside the limit of copies each way at once.
fn host(engine: &GpuEngine, algorithm: Algorithm, texts: &mut [u8], count: usize, limit: Option<f64>, memory: &str) {
    let Some(keyed) = open(engine, algorithm) else { return };
    texts.iter_mut().zip(0u32..).for_each(|(byte, i)| *byte = (i.wrapping_mul(i) >> 7) as u8);
    let tag_bytes = if matches!(algorithm.kind(), Kind::Aead { .. }) { 16 } else { 0 };
    let (iv, bytes) = (vec![3; algorithm.usual_iv_len()], texts.len());
    let mut tags = vec![[0; 16]; count];
    let mut run = || {
        let each = texts.chunks_mut(bytes / count).zip(&mut tags);
        let mut batch: Vec<Task<'_>> = each
            .map(|(text, tag)| {
                let (data, tag) = (Data::InPlace(text), &mut tag[..tag_bytes]);
                Task::new(&*keyed, Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag })
            })
            .collect();
        engine.run(&mut batch);
        batch.into_iter().try_for_each(|task| task.outcome.map(|_| ()))
    };
    if let Err(error) = run() {
        return println!("  {algorithm}: {error}");
    }
    let (before, begin) = (processor(), Instant::now());
    let mut times = 0;
    while begin.elapsed() < HOST_LONG && run().is_ok() {
        times += 1;
    }
    let (took, moved) = (begin.elapsed().as_secs_f64(), (times * bytes) as f64 / 1e9);
    let share = limit.map_or(String::new(), |limit| format!(", {:.0} % of the copies' limit", 100.0 * moved * 1e9 / took / limit));
    println!(
        "  {:<18} from and to the host, {memory:<8}, {count:>2} of {:>4} MiB: {:8.2} GB/s, {:.4} processor seconds a GB{share}",
        algorithm.name(),
        (bytes / count) >> 20,
        moved / took,
        (processor() - before) / moved
    );
}

/// Files of 4 KiB in one batch, and one launch each.
fn packed(engine: &GpuEngine, algorithm: Algorithm, files: usize) {
    let Some(keyed) = open(engine, algorithm) else { return };
    let file = OwnedOperation {
        direction: Direction::Encrypt,
        iv: vec![3; algorithm.usual_iv_len()],
        aad: Vec::new(),
        input: vec![1; 4096].into(),
        output: vec![0; 4096].into(),
        tag: vec![0; if algorithm == Algorithm::Aes256Gcm { 16 } else { 0 }],
    };
    let mut operations = vec![file; files];
    let mut rate = |at_once: usize| {
        let begin = Instant::now();
        for some in operations.chunks_mut(at_once) {
            let mut batch: Vec<_> = some.iter_mut().map(|operation| Task::new(&*keyed, operation.borrow())).collect();
            engine.run(&mut batch);
            if let Some(error) = batch.iter().find_map(|task| task.outcome.as_ref().err()) {
                println!("  {algorithm}: {error}");
            }
        }
        files as f64 / begin.elapsed().as_secs_f64()
    };
    rate(files);
    let (together, singly) = (rate(files), rate(1));
    println!("  {:<18} files of 4 KiB: {together:.0}/s packed, {singly:.0}/s one by one: {:.1} times", algorithm.name(), together / singly);
}
