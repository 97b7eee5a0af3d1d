//! What a modelled FPGA promises besides the bytes: its times at least, and nothing from a circuit that is not loaded.

use bywash_core::{Algorithm, Data, DeviceSheet, Direction, Engine, Key, Keyed, Operation, SessionParams, sheets};
use bywash_engine_board::Fpga;
use bywash_engine_cpu::CpuEngine;
use std::thread;
use std::time::{Duration, Instant};

fn sheet(name: &str) -> DeviceSheet {
    DeviceSheet::shipped(name).unwrap().unwrap()
}

fn session(engine: &dyn Engine, algorithm: Algorithm) -> Box<dyn Keyed> {
    let bywash_core::Kind::Cipher { key, .. } = algorithm.kind() else { panic!("{algorithm} is no cipher") };
    engine.open(&SessionParams::new(algorithm, Key::Symmetric((0..key as u8).collect::<Vec<_>>().into())).unwrap()).unwrap()
}

fn run(session: &dyn Keyed, algorithm: Algorithm, len: usize) -> bywash_core::Result<Vec<u8>> {
    let mut bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
    let iv = vec![7; algorithm.usual_iv_len()];
    let data = Data::InPlace(&mut bytes);
    session.run(&mut Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag: &mut [] }).map(|_| bytes)
}

#[test]
fn all_ten_ciphers_of_the_paper_give_real_ciphertext_once_loaded_and_none_before() {
    let mut sheet = sheet("niwa2005");
    sheet.reconfiguration.end_to_end_ns = 1;
    let fpga = Fpga::new(sheet).unwrap();
    let cpu = CpuEngine::new();
    assert_eq!(fpga.capabilities().len(), 10);
    for &algorithm in fpga.capabilities() {
        let on_fpga = session(&fpga, algorithm);
        let refused = run(&*on_fpga, algorithm, 4800).unwrap_err().to_string();
        assert!(refused.contains("not loaded") && refused.contains(algorithm.name()), "{refused}");
        fpga.load(&[algorithm]).unwrap();
        assert_eq!(fpga.loaded(), [algorithm]);
        assert_eq!(run(&*on_fpga, algorithm, 4800).unwrap(), run(&*session(&cpu, algorithm), algorithm, 4800).unwrap(), "{algorithm}");
    }
    assert_eq!((fpga.loads(), fpga.computed().operations), (10, 10));
}

#[test]
fn no_answer_and_no_circuit_comes_before_its_time() {
    let fpga = Fpga::new(sheet("niwa2005")).unwrap();
    let begun = Instant::now();
    fpga.load(&[Algorithm::TripleDesCbc, Algorithm::DesCbc]).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(60));
    let session = session(&fpga, Algorithm::TripleDesCbc);
    let begun = Instant::now();
    // 95.2 Mbit/s, one after the other.
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| run(&*session, Algorithm::TripleDesCbc, 24_000).unwrap()))));
    assert!(begun.elapsed() >= Duration::from_nanos(4 * 24_000 * 8_000 / 96), "{:?}", begun.elapsed());
}

#[test]
fn a_card_of_lanes_is_no_fpga() {
    let refused = Fpga::find("munetoh").err().unwrap().to_string();
    assert!(refused.contains("key lanes") && refused.contains("board:CARD"), "{refused}");
}

#[test]
fn what_cannot_be_loaded_is_refused_in_words_and_what_is_there_stays() {
    let fpga = Fpga::new(sheet("niwa2005")).unwrap();
    fpga.load(&[Algorithm::DesEcb]).unwrap();
    let refused = fpga.load(&[Algorithm::DesEcb, Algorithm::DesCbc, Algorithm::Aes128Ecb]).unwrap_err().to_string();
    assert!(refused.contains("2 slots"), "{refused}");
    assert_eq!(fpga.loaded(), [Algorithm::DesEcb]);
}

#[test]
fn every_fpga_that_comes_along_is_a_modelled_engine_of_its_name() {
    for name in sheets::fpgas() {
        let fpga = Fpga::find(name).unwrap();
        let costs = fpga.cost_sheet().unwrap();
        assert!(fpga.is_modelled() && costs.modelled && fpga.describe().contains("modelled"), "{name}");
        assert!(fpga.name() == name && fpga.capabilities().iter().all(|&algorithm| costs.estimate_ns(algorithm, 1 << 20).unwrap() > 1e4));
        let des = costs.estimate_ns(Algorithm::DesEcb, 24_000);
        assert_eq!(des.is_some(), name.starts_with("niwa2005"), "{name}");
        assert!(des.is_none_or(|des| (des - 42_503.6).abs() < 1.0), "{name}: 4571 Mbit/s and 500 ns are {des:?} ns");
    }
}

#[test]
fn a_sheet_that_cannot_be_modelled_is_refused_with_the_way_out() {
    let refused = |change: fn(&mut DeviceSheet)| {
        let mut sheet = sheet("niwa2005");
        change(&mut sheet);
        Fpga::new(sheet).err().expect("refused").to_string()
    };
    assert!(refused(|sheet| sheet.modelled = false).contains("modelled = true"));
    assert!(refused(|sheet| sheet.circuits[0].algorithm = None).contains("'RC6-ECB' names no algorithm"));
    let absent = Fpga::find("no-such-device.toml").err().unwrap().to_string();
    assert!(absent.contains("no-such-device.toml") && absent.contains("niwa2005-area"), "{absent}");
}
