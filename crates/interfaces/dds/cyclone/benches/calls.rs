//! What the plug-in's calls for one message cost, without a network or a Cyclone DDS: `cargo bench -p bywash-dds-cyclone --bench calls`.
//!
//! Everything is encrypted. To send is three calls (payload, submessage, message), to receive four (one asks whose submessage it is). Each is timed as it is in a loop, and after more data than
//! the second cache holds has gone through the processor, as between two messages of a program that sleeps. Nanoseconds, the least and the median of 2,000; copies of the message from one call to the
//! next are in them, as a host makes them.
#![allow(clippy::undocumented_unsafe_blocks, reason = "the tables are called as a host calls them, with objects of the benchmark's own")]

#[path = "../tests/sides/mod.rs"]
mod sides;

use bywash_dds::BLOCKS_MAX;
use bywash_dds::wire::MESSAGE_HEADER;
use sides::{Asked, MESSAGE, Side, met_with};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 2_000;
const SIZES: [usize; 4] = [16, 1 << 10, 10 << 10, 60 << 10];
/// More than the second cache of today's processors holds.
const DATA: usize = 2 << 20;
/// Of a DATA submessage, before its payload; and its id and flags.
const BEFORE: usize = 24;
const FLAGS: [u8; 2] = [0x15, 1];
/// Of what begins a protected message's text: who sent it.
const SOURCE: usize = 24;

fn send(side: &Side, text: &[u8]) -> Vec<u8> {
    let payload = side.payload(text).unwrap();
    let length = u16::try_from(BEFORE + payload.len()).unwrap().to_le_bytes();
    let submessage = [&FLAGS[..], &length, &[0; BEFORE], &payload].concat();
    let submessage = side.listed(&submessage, 1, false).unwrap();
    side.listed(&[&MESSAGE[..MESSAGE_HEADER], &submessage].concat(), 1, true).unwrap()
}

fn receive(side: &Side, message: &[u8]) -> Vec<u8> {
    let message = side.message_back(message).unwrap();
    let submessage = side.submessage_back(&message[MESSAGE_HEADER + SOURCE..]).unwrap();
    side.payload_back(&submessage[4 + BEFORE..]).unwrap()
}

/// Least and median of so many, in nanoseconds.
fn timed(data: &mut [u64], mut run: impl FnMut()) -> (u64, u64) {
    let mut times: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            data.iter_mut().step_by(8).for_each(|word| *word += 1);
            black_box(&mut *data);
            let begun = Instant::now();
            run();
            begun.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    (times[0], times[times.len() / 2])
}

fn main() {
    let (alice, bob) = met_with(Asked { encrypts: true, has_origin: false }, BLOCKS_MAX);
    let mut data = vec![0u64; DATA / 8];
    println!(
        "Nanoseconds, least / median of {ROUNDS}: three calls that send a message, four that receive it; cold: after {} MiB of other data",
        DATA >> 20
    );
    println!("{:>8}  {:>16}  {:>16}  {:>16}  {:>16}", "bytes", "send", "receive", "send, cold", "receive, cold");
    for size in SIZES {
        let text = vec![7; size];
        let mut columns = Vec::new();
        for cold in [0, data.len()] {
            columns.push(timed(&mut data[..cold], || drop(send(&alice, black_box(&text)))));
            let messages: Vec<_> = (0..ROUNDS).map(|_| send(&alice, &text)).collect();
            let mut messages = messages.iter();
            columns.push(timed(&mut data[..cold], || {
                let message = messages.next().unwrap();
                assert_eq!(receive(&bob, black_box(message)).len(), size);
            }));
        }
        let shown: Vec<_> = columns.iter().map(|(least, median)| format!("{:>16}", format!("{least} / {median}"))).collect();
        println!("{size:>8}  {}", shown.join("  "));
    }
}
