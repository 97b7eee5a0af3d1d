//! The `bywash` command: programs started with their cryptography routed, and everything around that.
//!
//! | command | what it does |
//! |---|---|
//! | `run` | starts a program with its cryptography routed; says at its end what ran where |
//! | `serve` | the broker: engines shared by all programs of a machine |
//! | `cuse` | `/dev/crypto` for all programs of a machine whose kernel has CUSE |
//! | `top`, `stats`, `record` | a broker watched, counted, recorded |
//! | `key` | the broker's vault: private keys that no server holds |
//! | `encrypt`, `decrypt`, `info`, `rekey`, `fsck`, `keygen` | files that only their readers read |
//! | `mount`, `umount` | a folder of such files, as a file system |
//! | `calibrate`, `bench` | what operations cost, and where they are fastest |
//! | `reproduce` | the papers' experiments, run again |
//! | `simulate` | engines that nobody has to hand, on real traffic |
//! | `doctor` | what stands in the way of that, each finding with the command that mends it |
//! | `dds doctor` | what of a participant's security will hurt (DDS) |
//! | `engines` | what can compute here, what it can do, why something is missing |
//! | `completions`, `man` | for the shell and the manual |
//!
//! # How the folder is laid out
//!
//! One module per command, each with its own `Args` (clap) and a function `run(Args)`. [`openssl_conf`] reads and writes OpenSSL's
//! configuration, [`provider`] finds the shared object, [`failure`] is the error type with the exit codes, [`terminal`] decides on colour, [`shown`] on names that a
//! terminal would obey, [`interrupt`] is Ctrl-C in the midst of long work, [`texts`] reads sheets,
//! settings and traces.
//!
//! # Manners
//!
//! Data goes to stdout, talk to stderr. Errors name the thing and end with the way out. Exit codes are a promise ([`failure::Exit`]).
//! Colour and progress appear only on a terminal, and never with `NO_COLOR`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod broker_link;
mod calibrate;
mod cuse;
mod dds;
mod doctor;
mod engines;
mod explain;
mod failure;
mod files;
mod interrupt;
mod key;
mod openssl_conf;
mod own;
mod provider;
mod record;
mod reproduce;
mod run;
mod serve;
mod shell;
mod shown;
mod simulate;
mod stats;
mod svg_file;
mod terminal;
mod texts;
mod top;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Cuse(args) => cuse::run(&args),
        Command::Encrypt(args) => files::encrypt::run(&args),
        Command::Decrypt(args) => files::decrypt::run(&args),
        Command::Info(args) => files::info::run(&args),
        Command::Rekey(args) => files::rekey::run(&args),
        Command::Mount(args) => files::mount::run(&args),
        Command::Umount(args) => files::umount::run(&args),
        Command::Fsck(args) => files::fsck::run(&args),
        Command::Keygen(args) => files::keygen::run(&args),
        Command::Engines(args) => engines::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Dds(args) => dds::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    };
    outcome.unwrap_or_else(|failure| {
        let style = terminal::Style::of_stderr();
        terminal::say!("{} {failure}", style.bad("bywash:"));
        ExitCode::from(failure.exit as u8)
    })
}
