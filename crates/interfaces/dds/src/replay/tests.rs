use super::*;

const REMEMBERED: u64 = latest::REMEMBERED as u64;

/// How implementations count, from anywhere.
const BYWASH: fn(u64) -> u64 = |count| 0xfedc_ba98_ffff_ff00u64.wrapping_add(count);
const CYCLONE: fn(u64) -> u64 = |count| BYWASH(count).rotate_left(32);
const OPENDDS: fn(u64) -> u64 = |count| BYWASH(count).swap_bytes();
const COUNTING: [fn(u64) -> u64; 3] = [BYWASH, CYCLONE, OPENDDS];

/// As Fast DDS has them: drawn, and a session every 32 messages, in a little-endian machine's order.
fn fast_dds(random: &mut fastrand::Rng, messages: u32) -> Vec<(u32, u64)> {
    (0..messages).map(|number| (0xfffe_fff0_u32.wrapping_add(number / 32).swap_bytes(), random.u64(..))).collect()
}

fn noted(seen: &mut Seen, nonces: &[(u32, u64)]) -> usize {
    nonces.iter().filter(|(session, suffix)| seen.note(*session, *suffix)).count()
}

/// Delays some, each by at most so many that overtake it.
fn reordered<T: Clone>(random: &mut fastrand::Rng, nonces: &[T], most: usize) -> Vec<T> {
    let mut order: Vec<(usize, usize)> =
        (0..nonces.len()).map(|at| (at + if random.bool() { random.usize(..most) } else { 0 }, at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| nonces[at].clone()).collect()
}

#[test]
fn copies_of_one_that_counts_are_refused_in_any_order_however_old() {
    let mut random = fastrand::Rng::with_seed(1);
    for count in COUNTING {
        let (mut seen, mut all) = (Seen::default(), Vec::new());
        for number in 0..3000 {
            let nonce = (7, count(number));
            assert!(seen.note(nonce.0, nonce.1), "{number} is new");
            all.push(nonce);
            assert!(!seen.note(nonce.0, nonce.1), "{number} came");
            let old = all[random.usize(..all.len())];
            assert!(!seen.note(old.0, old.1), "an old one, after {number}");
        }
        for _ in 0..4 {
            random.shuffle(&mut all);
            assert_eq!(noted(&mut seen, &all), 0);
        }
        assert!(seen.note(7, count(3000)));
    }
}

/// The two take turns, each in the place that the other left.
#[test]
fn two_old_copies_do_not_make_way_for_each_other() {
    for count in COUNTING {
        let mut seen = Seen::default();
        assert!((0..1000).all(|number| seen.note(7, count(number))));
        for _ in 0..300 {
            assert!(!seen.note(7, count(487)) && !seen.note(7, count(999)) && !seen.note(7, count(743)));
        }
    }
}

#[test]
fn of_drawn_numbers_the_latest_are_known() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut seen = Seen::default();
    let mut nonces: Vec<(u32, u64)> = (0..2000).map(|_| (9, random.u64(..))).collect();
    for nonce in &nonces {
        assert!(seen.note(nonce.0, nonce.1));
        assert!(!seen.note(nonce.0, nonce.1));
    }
    let latest = &mut nonces[2000 - REMEMBERED as usize..];
    random.shuffle(latest);
    assert_eq!(noted(&mut seen, latest), 0);
    assert!(seen.counters.is_empty() && seen.runs.is_empty());
}

#[test]
fn sessions_that_count_tell_the_age_of_drawn_numbers() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut nonces = fast_dds(&mut random, 20_000);
    let mut seen = Seen::default();
    assert_eq!(noted(&mut seen, &nonces), nonces.len());
    // However old, and however often: copies do not keep their session alive.
    for _ in 0..4 {
        random.shuffle(&mut nonces);
        assert_eq!(noted(&mut seen, &nonces), 0);
    }
}

#[test]
fn late_messages_are_new_once() {
    let mut random = fastrand::Rng::with_seed(4);
    let counted = COUNTING.map(|count| (0..5000).map(|number| (1, count(number))).collect());
    // As this crate's senders are after few blocks, and OpenDDS's after many.
    let short = (0..5000).map(|number| (u32::MAX.wrapping_add(number / 7), BYWASH(number.into()))).collect();
    let anew =
        (0..5000u32).map(|number| ((number / 100).swap_bytes(), OPENDDS(u64::from(number / 100) << 40 | u64::from(number)))).collect();
    let single = (0..5000u32).map(|number| (number.swap_bytes(), random.u64(..))).collect();
    let drawn = fast_dds(&mut random, 5000);
    let senders: Vec<Vec<(u32, u64)>> = counted.into_iter().chain([short, anew, single, drawn]).collect();
    for (sender, nonces) in senders.iter().enumerate() {
        let mut seen = Seen::default();
        let late = reordered(&mut random, nonces, 200);
        assert!(late != *nonces);
        for (at, nonce) in late.iter().enumerate() {
            assert!(seen.note(nonce.0, nonce.1), "sender {sender}: the first of {at} is new");
            let copy = late[at.saturating_sub(random.usize(..REMEMBERED as usize))];
            assert!(!seen.note(copy.0, copy.1), "sender {sender}: a copy after {at}");
        }
        let mut copies = late;
        random.shuffle(&mut copies);
        assert_eq!(noted(&mut seen, &copies), 0, "sender {sender}");
    }
}

#[test]
fn two_senders_of_one_session_are_not_in_each_others_way() {
    let mut random = fastrand::Rng::with_seed(5);
    for count in COUNTING {
        for share in [1, 2, 20, 400] {
            let (mut seen, mut first, mut second) = (Seen::default(), 0u64, 0u64);
            let begin = random.u64(..);
            let apart = |number: u64| count(begin.wrapping_add(number));
            let mut nonces = Vec::new();
            for _ in 0..10_000 {
                let suffix = if random.u32(..share) == 0 {
                    first += 1;
                    apart(first)
                } else {
                    second += 1;
                    count(second)
                };
                assert!(seen.note(3, suffix), "{first} and {second} are new");
                assert!(!seen.note(3, suffix));
                nonces.push((3, suffix));
            }
            random.shuffle(&mut nonces);
            // One of which there are hardly two among 256 is not known to count.
            assert!(share == 400 || noted(&mut seen, &nonces) == 0, "one of {share}");
            assert!(seen.counters.len() <= 2);
        }
    }
}

/// The exchange of keys with Fast DDS: writer and reader have one key, and count their sessions from one number, one faster than the other.
#[test]
fn a_writer_and_a_reader_are_not_in_each_others_way() {
    let header = |session: u32, suffix| Header { kind: crate::Kind::Aes256Gcm, key_id: 0, session: session.swap_bytes(), suffix };
    let mut random = fastrand::Rng::with_seed(6);
    let accepted = Accepted::default();
    let mut all = Vec::new();
    for number in 0..4000u32 {
        let mut note = |number: u32, id: u8| {
            let header = header((number / 32).wrapping_sub(1), random.u64(..));
            assert!(accepted.note(&header, &[id, 1, 0, 0]), "{number}, {id}");
            all.push((header, id));
        };
        note(number, 0x15);
        if number % 50 == 0 {
            note(number / 50, if number % 100 == 0 { ACKNACK } else { NACK_FRAG });
        }
    }
    assert!(all.iter().all(|(header, id)| !accepted.note(header, &[*id, 1, 0, 0])));
}

#[test]
fn numbers_may_begin_anew_in_a_new_session() {
    for count in COUNTING {
        for next in [1u32, 1 << 24, 0x1234_5678] {
            let (mut seen, mut all) = (Seen::default(), Vec::new());
            for step in 0..20u32 {
                let session = step.wrapping_mul(next);
                // From the same number, and from any other.
                let nonces: Vec<_> = (0..300).map(|number| (session, count(number + u64::from(step % 2) * 77_777))).collect();
                assert_eq!(noted(&mut seen, &nonces), 300, "session {session:x}");
                all.extend(nonces);
                assert_eq!(noted(&mut seen, &all), 0, "copies, of old sessions too");
            }
        }
    }
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut seen = Seen::default();
    for _ in 0..20_000 {
        let (session, suffix) = (random.u32(..), random.u64(..));
        assert!(
            (0..3)
                .all(|step| seen.note(session, suffix.wrapping_add(step)) && seen.note(session.wrapping_add(1), suffix.wrapping_add(step)))
        );
    }
    assert_eq!((seen.latest.len(), seen.counters.len(), seen.runs.len()), (latest::REMEMBERED, COUNTERS, RUNS));
}
