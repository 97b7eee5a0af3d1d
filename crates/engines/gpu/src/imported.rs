//! Tests of texts in memory that devices reach by themselves: the same comes out as from memory that is copied, wherever a text begins and ends.

use crate::device::Device;
use crate::engine::GpuEngine;
use crate::{cuda, vulkan};
use bywash_core::{Algorithm, Data, Direction, Engine, Error, HostMemory, Key, Keyed, Operation, Result, SessionParams, Task};

const LONGEST: usize = 300_000;
/// Where texts begin in their memory.
const OFFSETS: [usize; 3] = [0, 1, 4096 + 16];

/// What a text is computed with, and its tag.
struct Case<'k> {
    keyed: &'k dyn Keyed,
    iv: Vec<u8>,
    aad: &'static [u8],
    tag: Vec<u8>,
}

impl Case<'_> {
    fn run(&mut self, direction: Direction, data: Data<'_>) -> Result<usize> {
        self.keyed.run(&mut Operation { direction, iv: &self.iv, aad: self.aad, data, tag: &mut self.tag })
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect()
}

fn check(engine: &GpuEngine) {
    for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305, Algorithm::Aes128Xts, Algorithm::Aes192Ctr] {
        let key: Vec<u8> = (0..64).collect();
        let params = SessionParams::new(algorithm, Key::Symmetric(key[..algorithm.key_lengths().0].into())).unwrap();
        let keyed = engine.open(&params).unwrap();
        let (tag, aad) = (vec![0; params.tag_len()], if params.tag_len() > 0 { &b"aad"[..] } else { b"" });
        let mut case = Case { keyed: &*keyed, iv: vec![7; algorithm.usual_iv_len()], aad, tag };
        // About the size from which the device copies by itself, about parts of a stream, and many parts.
        for len in [65_535, 65_536, 65_537, 131_072, 131_099, LONGEST] {
            let clear = text(len);
            let mut sealed = clear.clone();
            case.run(Direction::Encrypt, Data::InPlace(&mut sealed)).unwrap();
            let tag = case.tag.clone();
            for offset in OFFSETS {
                let said = format!("{}, {algorithm}, {len} bytes at {offset}", engine.name());
                let (mut one, mut other) = (HostMemory::zeroed(offset + len + 9), HostMemory::zeroed(offset + len + 9));
                let place = offset..offset + len;
                one[place.clone()].copy_from_slice(&clear);
                // From imported memory to imported memory, to the heap, from the heap, and in place.
                case.tag.fill(0);
                case.run(Direction::Encrypt, Data::Copy { input: &one[place.clone()], output: &mut other[place.clone()] }).unwrap();
                assert!(other[place.clone()] == sealed && case.tag == tag, "{said}");
                assert!(other[..offset].iter().chain(&other[offset + len..]).all(|byte| *byte == 0), "{said}: beside the text");
                let mut heap = vec![0; len];
                case.run(Direction::Decrypt, Data::Copy { input: &other[place.clone()], output: &mut heap }).unwrap();
                assert!(heap == clear, "{said}");
                case.run(Direction::Decrypt, Data::Copy { input: &sealed, output: &mut one[place.clone()] }).unwrap();
                assert!(one[place.clone()] == clear, "{said}");
                case.run(Direction::Encrypt, Data::InPlace(&mut one[place.clone()])).unwrap();
                assert!(one[place.clone()] == sealed && case.tag == tag, "{said}");
                if !tag.is_empty() {
                    case.tag[0] ^= 1;
                    assert_eq!(case.run(Direction::Decrypt, Data::InPlace(&mut one[place.clone()])), Err(Error::Authentication), "{said}");
                    assert!(one.iter().all(|byte| *byte == 0), "{said}: no text of a forgery");
                    case.tag[0] ^= 1;
                }
                assert!(len < 100_000 || engine.0.knows(&one), "{said}: it was imported");
            }
        }
        together(engine, &mut case);
    }
}

/// Nine texts in one batch, of which every third lies on the heap.
fn together(engine: &GpuEngine, case: &mut Case<'_>) {
    const LEN: usize = 70_003;
    let clear = text(LEN);
    let mut sealed = clear.clone();
    case.run(Direction::Encrypt, Data::InPlace(&mut sealed)).unwrap();
    let (mut heaps, mut memory) = (vec![clear.clone(); 3], Vec::new());
    for _ in 0..6 {
        let mut one = HostMemory::zeroed(LEN);
        one.copy_from_slice(&clear);
        memory.push(one);
    }
    let mut tags = vec![case.tag.clone(); 9];
    let texts = heaps.iter_mut().map(Vec::as_mut_slice).zip(memory.chunks_mut(2)).flat_map(|(heap, two)| {
        let [one, other] = two else { unreachable!("six are three times two") };
        [heap, one, other]
    });
    let mut batch: Vec<_> = texts
        .zip(&mut tags)
        .map(|(text, tag)| {
            tag.fill(0);
            Task::new(case.keyed, Operation { direction: Direction::Encrypt, iv: &case.iv, aad: case.aad, data: Data::InPlace(text), tag })
        })
        .collect();
    engine.run(&mut batch);
    assert!(batch.iter().all(|task| task.outcome == Ok(LEN)), "{}", engine.name());
    drop(batch);
    assert!(heaps.iter().all(|text| *text == sealed) && memory.iter().all(|text| text[..] == sealed), "{}", engine.name());
    assert!(tags.iter().all(|tag| *tag == case.tag));
}

/// What a stream has room for here: so much that texts are cut.
const STREAM: Option<(usize, usize)> = Some((128 << 10, 2));

#[test]
fn texts_of_imported_memory_on_what_vulkan_finds() {
    for staged in [false, true] {
        match vulkan::Vulkan::open(Some(staged), STREAM) {
            Ok(found) if found.device.imports() => check(&GpuEngine::new("gpu-vulkan", Box::new(found.device))),
            Ok(found) => eprintln!("skipped: {} has no VK_EXT_external_memory_host", found.device.describe()),
            Err(reason) => eprintln!("skipped: {reason}"),
        }
    }
}

#[test]
fn texts_of_imported_memory_on_what_cuda_finds() {
    match cuda::Cuda::open(STREAM) {
        Ok(found) => check(&GpuEngine::new("gpu-cuda", Box::new(found.device))),
        Err(reason) => eprintln!("skipped: {reason}"),
    }
}

#[test]
fn texts_of_imported_memory_on_cudas_twin() {
    match cuda::twin::twin(128 << 10) {
        Ok(twin) => check(&GpuEngine::new("gpu-twin", Box::new(twin))),
        Err(reason) => eprintln!("skipped: {reason}"),
    }
}

/// Two devices import one region, and work on it at once: each on a half, and then on the other's.
#[test]
fn a_region_is_imported_by_two_devices() {
    const LEN: usize = 200_000;
    let open = || vulkan::Vulkan::open(None, STREAM);
    let (one, other) = match (open(), open()) {
        (Ok(one), Ok(other)) if one.device.imports() => (one, other),
        (Ok(found), _) => return eprintln!("skipped: {} has no VK_EXT_external_memory_host", found.device.describe()),
        (Err(reason), _) => return eprintln!("skipped: {reason}"),
    };
    let engines = [one, other].map(|found| GpuEngine::new("gpu-vulkan", Box::new(found.device)));
    let key: Vec<u8> = (0..32).collect();
    let params = SessionParams::new(Algorithm::Aes256Ctr, Key::Symmetric(key[..].into())).unwrap();
    let run = |engine: &GpuEngine, direction, text: &mut [u8]| {
        let keyed = engine.open(&params).unwrap();
        let mut case = Case { keyed: &*keyed, iv: vec![7; 16], aad: b"", tag: Vec::new() };
        case.run(direction, Data::InPlace(text)).unwrap();
    };
    let mut sealed = text(LEN);
    run(&engines[0], Direction::Encrypt, &mut sealed);
    let mut memory = HostMemory::zeroed(2 * LEN);
    for half in memory.chunks_mut(LEN) {
        half.copy_from_slice(&text(LEN));
    }
    for (direction, first) in [(Direction::Encrypt, 0), (Direction::Decrypt, 1)] {
        let halves = memory.chunks_mut(LEN).zip([&engines[first], &engines[1 - first]]);
        std::thread::scope(|scope| halves.for_each(|(half, engine)| _ = scope.spawn(move || run(engine, direction, half))));
        let wanted = if direction == Direction::Encrypt { &sealed } else { &text(LEN) };
        assert!(memory.chunks(LEN).all(|half| half == &wanted[..]), "{direction:?}");
    }
    assert!(engines.iter().all(|engine| engine.0.knows(&memory)), "each has imported it");
}
