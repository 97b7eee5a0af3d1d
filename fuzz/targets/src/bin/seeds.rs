//! Writes a target's seeds into a folder, for a fuzzer that coverage guides to begin with:
//!
//!     cargo run -p bywash-fuzz-targets --bin seeds -- encrypted_file fuzz/corpus/encrypted_file

#![forbid(unsafe_code)]

use bywash_fuzz_targets::{kernel_targets, targets};
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [name, folder] = &arguments[..] else {
        eprintln!("usage: seeds TARGET FOLDER");
        return ExitCode::from(2);
    };
    let all = targets().into_iter().chain(kernel_targets());
    let Some((_, _, seeds)) = all.into_iter().find(|(other, _, _)| other == name) else {
        let names: Vec<_> = targets().iter().map(|(name, _, _)| *name).collect();
        eprintln!("seeds: no target '{name}'; there are {}, and the kernels' where the processor has AVX-512 IFMA", names.join(", "));
        return ExitCode::from(2);
    };
    let written = fs::create_dir_all(folder)
        .and_then(|()| seeds.iter().enumerate().try_for_each(|(at, seed)| fs::write(format!("{folder}/seed-{at}"), seed)));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seeds: {folder}: {error}");
            ExitCode::FAILURE
        }
    }
}
