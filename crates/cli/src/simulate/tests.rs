//! Which options go together: none is taken and then not looked at.

use crate::args::Cli;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

/// What each way of simulating is asked for with.
const MODES: [(&str, &[&str]); 3] = [("circuits", &[]), ("gpu", &["--gpu", "raspberry-pi-4"]), ("module", &["--module", "ixp425"])];

/// Each option with what it needs, and the modes that know it.
const OPTIONS: [(&[&str], &[&str]); 22] = [
    (&["--trace", "t.csv"], &["circuits", "gpu", "module"]),
    (&["--cpu", "here"], &["circuits", "gpu"]),
    (&["--json"], &["circuits", "gpu", "module"]),
    (&["--csv"], &["circuits", "module"]),
    (&["--svg", "plots"], &["circuits", "module"]),
    (&["--engine", "niwa2005"], &["circuits"]),
    (&["--preset", "niwa2005"], &["circuits"]),
    (&["--train", "0.2", "--trace", "t.csv"], &["circuits"]),
    (&["--requests", "10"], &["circuits"]),
    (&["--rate", "5"], &["circuits"]),
    (&["--policy", "tuned"], &["circuits"]),
    (&["--sweep", "slots=1"], &["circuits"]),
    (&["--seeds", "3"], &["circuits"]),
    (&["--side-by-side"], &["circuits"]),
    (&["--gpu", "raspberry-pi-4"], &["gpu"]),
    (&["--prefer", "energy"], &["gpu"]),
    (&["--module", "ixp425"], &["module"]),
    (&["--scheduler", "fifo"], &["module"]),
    (&["--tenants", "broker.toml"], &["module"]),
    (&["--load", "mixed"], &["module"]),
    (&["--as-recorded", "--trace", "t.csv"], &["gpu", "module"]),
    (&["--sheet", "niwa2005"], &["circuits"]),
];

fn parsed(parts: &[&[&str]]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(["bywash", "simulate"].iter().chain(parts.iter().copied().flatten()))
}

#[test]
fn each_mode_takes_its_options_and_no_others() {
    for (mode, asked) in MODES {
        let chooses = |option: &[&str]| MODES.iter().any(|(_, asked)| asked.first() == option.first());
        for (option, modes) in OPTIONS.iter().filter(|(option, modes)| !chooses(option) || !asked.is_empty() && !modes.contains(&mode)) {
            match parsed(&[asked, option]) {
                Ok(_) => assert!(modes.contains(&mode), "{mode} takes {option:?}"),
                Err(error) => {
                    assert!(!modes.contains(&mode), "{mode} does not take {option:?}: {error}");
                    assert!(error.exit_code() == 2 && error.to_string().contains(option[0]), "{mode}, {option:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn options_of_different_modes_are_refused_without_their_modes_as_well() {
    for (one, of_one) in OPTIONS {
        for (other, of_other) in OPTIONS {
            if !of_one.iter().any(|mode| of_other.contains(mode)) {
                assert!(parsed(&[one, other]).is_err(), "{one:?} with {other:?}");
            }
        }
    }
}

#[test]
fn what_is_learnt_of_a_trace_needs_one() {
    for others in [&["--preset", "niwa2005"][..], &["--requests", "10"], &[]] {
        assert!(parsed(&[&["--train", "0.2"], others]).is_err(), "{others:?}");
    }
}

#[test]
fn there_are_no_other_options() {
    let command = Cli::command();
    let simulate = command.find_subcommand("simulate").unwrap();
    let known = |long: &str| OPTIONS.iter().any(|(option, _)| option[0].strip_prefix("--") == Some(long));
    let unknown: Vec<&str> = simulate.get_arguments().filter_map(clap::Arg::get_long).filter(|long| !known(long)).collect();
    assert!(unknown.is_empty(), "write down which modes know {unknown:?}");
}

#[test]
fn completions_offer_the_names_where_nothing_else_is_taken() {
    let command = Cli::command();
    let simulate = command.find_subcommand("simulate").unwrap();
    for (long, name) in [("sheet", "gpu-h200"), ("prefer", "cpu-free")] {
        let option = simulate.get_arguments().find(|option| option.get_long() == Some(long)).unwrap();
        assert!(option.get_possible_values().iter().any(|value| value.get_name() == name), "--{long}");
    }
    assert_eq!(parsed(&[&["--sheet", "nothing"]]).unwrap_err().kind(), ErrorKind::InvalidValue);
}
