//! What a modelled card promises besides the bytes: its lanes, its times at least, and what it says when a sheet is none of a card.

use bywash_core::{Algorithm, CostSheet, Data, Direction, Engine, Key, Keyed, Operation, SessionParams};
use bywash_engine_board::{Board, CARDS, Waiting};
use std::thread;
use std::time::{Duration, Instant};

fn sheet(more: &str) -> String {
    format!("engine = \"card\"\nmodelled = true\nlanes = 4\nhandover_ns = 2e6\n{more}[algorithms.\"X25519 public\"]\npoints = [[0, 3e6]]\n")
}

fn card(waiting: Waiting) -> Board {
    Board::new(CostSheet::from_toml(&sheet(""), "test").unwrap(), waiting).unwrap()
}

fn session(card: &Board) -> Box<dyn Keyed> {
    card.open(&SessionParams::new(Algorithm::X25519Public, Key::EcPrivate(vec![7; 32].into())).unwrap()).unwrap()
}

fn run(session: &dyn Keyed) {
    let mut output = [0; 32];
    let data = Data::Copy { input: &[], output: &mut output };
    session.run(&mut Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] }).unwrap();
    assert_ne!(output, [0; 32]);
}

#[test]
fn however_it_is_waited_for_no_answer_comes_before_its_time() {
    for waiting in Waiting::ALL {
        let card = card(waiting);
        let session = session(&card);
        let model = if waiting == Waiting::FixedSleep { Duration::from_millis(5) } else { Duration::from_millis(3) };
        let begun = Instant::now();
        // Three rounds of four lanes.
        thread::scope(|scope| (0..12).for_each(|_| drop(scope.spawn(|| run(&*session)))));
        assert!(begun.elapsed() >= model * 3, "{waiting}: {:?}", begun.elapsed());
        assert_eq!(card.computed().operations, 12, "{waiting}");
        assert!(card.computed().time > Duration::ZERO, "{waiting}");
    }
}

#[test]
fn answers_later_than_the_model_are_counted() {
    let text = sheet("").replace("3e6", "1.0").replace("2e6", "0.0");
    let card = Board::new(CostSheet::from_toml(&text, "test").unwrap(), Waiting::FixedSleep).unwrap();
    let session = session(&card);
    run(&*session);
    assert_eq!((card.computed().late, card.late()), (1, Some(1)), "no processor does that in a nanosecond");
}

/// GMAC is GCM without a text.
#[test]
fn a_message_that_is_only_authenticated_takes_the_time_of_its_bytes() {
    let text = "engine = \"card\"\nmodelled = true\nlanes = 1\n[algorithms.\"AES-256-GCM\"]\npoints = [[0, 1e3], [1000, 2e7]]\n";
    let card = Board::new(CostSheet::from_toml(text, "test").unwrap(), Waiting::FixedSleep).unwrap();
    let session = card.open(&SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[3; 32]).into())).unwrap()).unwrap();
    let begun = Instant::now();
    let (data, tag) = (Data::InPlace(&mut []), &mut [0; 16]);
    session.run(&mut Operation { direction: Direction::Encrypt, iv: &[5; 12], aad: &[1; 1000], data, tag }).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20), "{:?}", begun.elapsed());
}

#[test]
fn the_papers_card_says_what_the_paper_says() {
    let card = Board::find("munetoh-meac32").unwrap();
    let costs = card.cost_sheet().unwrap();
    assert_eq!((card.workers(), card.batch_max(), card.is_modelled(), costs.modelled), (32, 1, true, true));
    assert!(card.describe().contains("modelled"), "{}", card.describe());
    assert_eq!(costs.estimate_ns(Algorithm::Rsa1024Private, 128), Some(40e6), "32 ms, and the sleep ends after 40");
    assert_eq!(costs.estimate_ns(Algorithm::Rsa2048Private, 256), Some((8.0 * 32.0 + 8.0) * 1e6), "the cube of the length");
    assert!(card.supports(Algorithm::Rsa2048Private) && !card.supports(Algorithm::X25519));
}

#[test]
fn the_papers_module_takes_117_us_for_its_1024_bytes_and_tells_sessions_apart() {
    let module = Board::find("ixp425").unwrap();
    let costs = module.cost_sheet().unwrap();
    assert_eq!((module.workers(), module.batch_max(), module.is_modelled(), costs.switch_ns), (1, 1, true, 0.0));
    assert!(costs.estimate_ns(Algorithm::TripleDesCbc, 1024).is_some_and(|ns| (ns - 117e3).abs() < 1.0));
    let dear = Board::find("ixp425-switch").unwrap().cost_sheet().unwrap();
    assert_eq!((dear.switch_ns, &dear.algorithms), (1.17e6, &costs.algorithms), "ten times as long");
    assert!(module.describe().contains("one request at a time"), "{}", module.describe());
}

#[test]
fn whoever_comes_in_turn_with_another_pays_for_every_change() {
    let costs = |switch: &str| {
        let text = sheet(switch).replace("lanes = 4", "lanes = 1").replace("3e6", "1e3").replace("handover_ns = 2e6", "handover_ns = 0.0");
        CostSheet::from_toml(&text, "test").unwrap()
    };
    let module = Board::new(costs("switch_ns = 2e6\n"), Waiting::FixedSleep).unwrap();
    let (one, other) = (session(&module), session(&module));
    let begun = Instant::now();
    for session in [&one, &one, &other, &one] {
        run(&**session);
    }
    assert!(begun.elapsed() >= Duration::from_millis(6), "three changes: {:?}", begun.elapsed());
    assert_eq!(module.switches(), Some(3));
    let refused = CostSheet::from_toml(&sheet("switch_ns = 1.0\n"), "test").unwrap();
    assert!(Board::new(refused, Waiting::FixedSleep).err().unwrap().to_string().contains("lanes = 1"));
    assert_eq!(card(Waiting::FixedSleep).switches(), None, "four lanes hold no session");
}

#[test]
fn every_card_that_comes_along_is_sound_and_bears_its_name() {
    for (name, _) in CARDS {
        let card = Board::find(name).unwrap();
        assert!(card.capabilities().iter().all(|&algorithm| card.cost_sheet().unwrap().estimate_ns(algorithm, 0).unwrap() > 0.0), "{name}");
    }
}

#[test]
fn a_sheet_that_is_of_no_card_is_refused_with_the_way_out() {
    let refused = |text: &str| {
        let sheet = CostSheet::from_toml(text, "test").unwrap();
        Board::new(sheet, Waiting::FixedSleep).err().expect("refused").to_string()
    };
    assert!(refused(&sheet("").replace("modelled = true", "")).contains("modelled = true"));
    assert!(refused(&sheet("batch_max = 8\n")).contains("batch_max"));
    assert!(refused("engine = \"card\"\nmodelled = true\n").contains("algorithms"));
    let absent = Board::find("no-such-card.toml").err().unwrap().to_string();
    assert!(absent.contains("no-such-card.toml") && absent.contains("munetoh-meac32"), "{absent}");
}

#[test]
fn a_file_of_a_users_own_is_a_card() {
    let path = std::env::temp_dir().join(format!("bywash-card-{}.toml", std::process::id()));
    std::fs::write(&path, sheet("")).unwrap();
    let found = Board::find(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found.unwrap().name(), "card");
}
