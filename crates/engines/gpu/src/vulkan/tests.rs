//! What the suite does not see: memory of the device's own, parts and many streams, and that no key stays behind.

use super::Vulkan;
use crate::device::{Device, Lies, WINDOWS_MAX};
use crate::engine::GpuEngine;
use crate::launch::Filling;
use crate::message::Message;
use crate::session::Session;
use bywash_conformance::{Area, Options};
use bywash_core::{Algorithm, Data, Direction, Engine, HostMemory, Key, Operation, SessionParams, Task, memory};

/// Opens what is here, or says why nothing is.
fn open(staged: bool, text: usize) -> Option<Vulkan> {
    match Vulkan::open(Some(staged), Some((text, 2))) {
        Ok(found) => Some(found.device),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

#[test]
fn texts_are_cut_and_copied_to_memory_of_the_devices_own() {
    let Some(device) = open(true, 8 << 10) else { return };
    assert!(device.describe().contains("memory of its own"));
    let engine = GpuEngine::new("gpu-staged", Box::new(device));
    let areas = vec![Area::Batches, Area::Forgeries, Area::Threads, Area::Counters];
    bywash_conformance::run(&engine, &Options { areas, ..Options::default() }).assert_passed();
}

#[test]
fn a_text_of_many_parts_is_one_message() {
    let Some(device) = open(false, 64 << 10) else { return };
    let engine = GpuEngine::new("gpu-parts", Box::new(device));
    let text: Vec<u8> = (0..1_000_003u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305, Algorithm::Aes128Xts, Algorithm::Aes192Ctr] {
        let key: Vec<u8> = (0..64).collect();
        let len = algorithm.key_lengths().0;
        let params = SessionParams::new(algorithm, Key::Symmetric(key[..len].into())).unwrap();
        let keyed = engine.open(&params).unwrap();
        let (mut buffer, mut tag, iv) = (text.clone(), vec![0; params.tag_len()], vec![7; algorithm.usual_iv_len()]);
        let mut run = |direction: Direction, buffer: &mut [u8]| {
            keyed.run(&mut Operation { direction, iv: &iv, aad: b"", data: Data::InPlace(buffer), tag: &mut tag })
        };
        assert_eq!(run(Direction::Encrypt, &mut buffer), Ok(text.len()), "{algorithm}");
        assert_ne!(buffer, text, "{algorithm}");
        assert_eq!(run(Direction::Decrypt, &mut buffer), Ok(text.len()), "{algorithm}");
        assert!(buffer == text, "{algorithm}");
    }
}

/// Reads the device's copy of the control buffer before and after: keys are there for the launch alone.
#[test]
fn no_key_stays_on_the_device() {
    for staged in [false, true] {
        let Some(device) = open(staged, 64 << 10) else { return };
        let layout = device.layout();
        let mut stream = device.stream().unwrap();
        let engine = GpuEngine::new("gpu-wiped", Box::new(device));
        let params = SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[0x5A; 32]).into())).unwrap();
        let session = Session::open(&engine.0, &params).unwrap();
        let (mut text, mut tag) = ([1; 4096], [0; 16]);
        let operation = Operation { direction: Direction::Encrypt, iv: &[2; 12], aad: &[], data: Data::InPlace(&mut text), tag: &mut tag };
        let mut message = Message::new(&session, &operation);
        let mut filling = Filling::new(layout, layout.text);
        message.give(&operation, 4096, (Lies::Staged, Lies::Staged), &mut filling, &mut *stream);
        let launch = filling.launch(&mut *stream);
        let keys = session.words.to_vec();
        let holds = |control: &[u32]| control.windows(keys.len()).any(|window| window == keys);
        assert!(holds(stream.control()), "the search finds what is there");
        stream.start(&launch).unwrap();
        stream.wait().unwrap();
        assert!(stream.output()[..4096].iter().any(|byte| *byte != 0), "something was computed");
        assert!(stream.control().iter().all(|word| *word == 0), "the host's copy is wiped");
        let (left, _) = stream.device_memory();
        assert!(left[..launch.control].iter().all(|word| *word == 0) && !holds(&left), "the device's copy is wiped, staged: {staged}");
    }
}

/// The sum of a known text under no mask tells H, with which whoever has it forges: after an operation neither the sums of parts nor those of lower levels are anywhere.
#[test]
fn no_sum_stays_in_memory() {
    for staged in [false, true] {
        let Some(device) = open(staged, 64 << 10) else { return };
        let layout = device.layout();
        let engine = GpuEngine::new("gpu-sums", Box::new(device));
        for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305] {
            let keyed = engine.open(&SessionParams::new(algorithm, Key::Symmetric((&[0x5A; 32]).into())).unwrap()).unwrap();
            let (mut text, mut tag) = (vec![1; 100_000], [0; 16]);
            let data = Data::InPlace(&mut text);
            keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &[2; 12], aad: &[], data, tag: &mut tag }).unwrap();
            // What the shorter of both parts wrote, of 2154 blocks, whose sums are 135 and of those 9; beyond it a device's memory has what it had before.
            let wiped = |output: &[u8], at: usize, len: usize| output[at..at + len].iter().all(|byte| *byte == 0);
            for mut stream in engine.0.take_idle() {
                assert!(wiped(stream.output(), layout.sums(), 32), "{algorithm}, the host's sum, staged: {staged}");
                let (_, output) = stream.device_memory();
                assert!(wiped(&output, layout.sums(), 32), "{algorithm}, the device's sum, staged: {staged}");
                assert!(wiped(&output, layout.scratch(), 144 * 16), "{algorithm}, sums of lower levels, staged: {staged}");
                assert!(!staged || wiped(&output, 0, 34_464), "{algorithm}, text in the device's own memory");
                engine.0.give_back(stream);
            }
        }
    }
}

/// More texts, each in memory of its own, than a launch has windows.
#[test]
fn kernels_work_in_imported_memory_where_it_is_shared() {
    const LEN: usize = 64 << 10;
    let Some(device) = open(false, 8 << 20) else { return };
    let mut texts: Vec<HostMemory> = (0..WINDOWS_MAX + 9).map(|_| HostMemory::zeroed(LEN)).collect();
    let region = memory::region(&texts[0]).unwrap();
    let Some(window) = device.import(&region) else { return eprintln!("skipped: {} imports no memory", device.describe()) };
    assert!(window.computes, "{}", device.describe());
    drop((window, region));
    let engine = GpuEngine::new("gpu-windows", Box::new(device));
    for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305, Algorithm::Aes128Xts] {
        let params = SessionParams::new(algorithm, Key::Symmetric((0..32).collect::<Vec<u8>>()[..].into())).unwrap();
        let keyed = engine.open(&params).unwrap();
        let iv = vec![7; algorithm.usual_iv_len()];
        let clear = |number: usize| (0..LEN).map(|i| (i * 7 + number) as u8).collect::<Vec<u8>>();
        let mut sealed = Vec::new();
        for (number, text) in texts.iter_mut().enumerate() {
            text.copy_from_slice(&clear(number));
            let (mut heap, mut tag) = (clear(number), vec![0; params.tag_len()]);
            let data = Data::InPlace(&mut heap);
            keyed.run(&mut Operation { direction: Direction::Encrypt, iv: &iv, aad: b"", data, tag: &mut tag }).unwrap();
            sealed.push((heap, tag));
        }
        let mut tags: Vec<Vec<u8>> = vec![vec![0; params.tag_len()]; texts.len()];
        let task = |(text, tag)| {
            Task::new(&*keyed, Operation { direction: Direction::Encrypt, iv: &iv, aad: b"", data: Data::InPlace(text), tag })
        };
        let mut batch: Vec<_> = texts.iter_mut().map(|text| &mut text[..]).zip(tags.iter_mut().map(|tag| &mut tag[..])).map(task).collect();
        engine.run(&mut batch);
        assert!(batch.iter().all(|task| task.outcome == Ok(LEN)), "{algorithm}");
        drop(batch);
        for ((text, tag), (right, right_tag)) in texts.iter().zip(&tags).zip(&sealed) {
            assert!(text[..] == right[..] && tag == right_tag, "{algorithm}");
        }
    }
}
