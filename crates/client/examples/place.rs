//! What the routing decision costs: the floor of every operation that stays in place.
//!
//! `cargo run --release -p bywash-client --example place [SOCKET]`: with a socket, the table is a running broker's.

#![forbid(unsafe_code)]

use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Key, SessionParams};
use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 10_000_000;

fn main() -> Result<(), bywash_core::Error> {
    let socket = std::env::args_os().nth(1).map(Into::into);
    let client = Client::new(Config { socket, ..Config::default() });
    // The first session looks for the broker.
    let _session = client.session(SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[7; 32]).into()))?)?;
    println!("{}", client.status());
    println!(
        "place: {:.1} ns",
        each(|bytes| {
            black_box(client.place(Algorithm::Aes256Gcm, bytes));
        })
    );
    println!("count: {:.1} ns", each(|bytes| client.count(Algorithm::Aes256Gcm, 1, bytes as u64)));
    let here = Client::new(Config { route: Route::Here, ..Config::default() });
    println!(
        "place, route here: {:.1} ns",
        each(|bytes| {
            black_box(here.place(Algorithm::Aes256Gcm, bytes));
        })
    );
    Ok(())
}

fn each(mut call: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    for number in 0..CALLS {
        call(black_box(number as usize & 0xffff));
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}
