//! `tls-load`: a TLS client that loads a server, verifies every byte it gets, and reports what it saw.
//!
//! It is no part of Bywash but the other end of its wire: rustls on AWS-LC, so that it shares no code with the OpenSSL server under
//! test. Each concurrent connection is one blocking thread: connect, handshake, check the certificate, fetch, compare, close, again.
//!
//! ```text
//! tls-load --connect 127.0.0.1:8443 --sni demo.test --ca ca.pem --tls 1.3 --connections 16 --seconds 3
//! tls-load --connect 127.0.0.1:8443 --sni demo.test --ca ca.pem --path /16m --expect 16m --requests 8 --count 4 --json
//! ```
//!
//! With `--rate` connections come at random moments, whether or not earlier ones have ended, and latencies count from the moment at which
//! each was due: a server that stalls is charged with everybody whom it keeps waiting.
//!
//! A handshake is a full one unless `--resume` is given. What fails is counted under its kind and the first message of each kind is kept;
//! the exit status is 1 if anything failed or a single byte was wrong, 2 if it could not start.
#![forbid(unsafe_code)]

mod args;
mod arrivals;
mod fetch;
mod load;
mod report;
mod short_rsa;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let plan = match load::Plan::new(&args) {
        Ok(plan) => plan,
        Err(reason) => {
            eprintln!("tls-load: {reason}");
            return ExitCode::from(2);
        }
    };
    let report = load::run(&plan);
    if args.json {
        println!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
