//! The command line as a whole.

use bywash_policy::mediator::Prefer;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};

/// The exit codes, as `--help` and the manual show them.
const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  it failed, or `doctor` found something broken
    2  the command line is wrong
    3  no broker answers
    4  something may not be read, written or connected to
    5  a configuration file, a sheet or a trace cannot be read or understood
    6  `bench --fail-under`: something is slower than allowed
    7  `decrypt`, `fsck`, `mount`, `rekey`: wrong passphrase, or no key that opens a file
    8  `decrypt`, `fsck`, `mount`: a file is damaged, truncated, or not encrypted at all
  125  `run`: Bywash failed before the command was started
  126  `run`: the command cannot be executed
  127  `run`: there is no such command
  130  Ctrl-C ended it; what was done until then is shown or kept
    n  `run`: the command's own; 128 + n if signal n ended it";

const EXAMPLES: &str = "\
Examples:
  bywash run -- curl https://localhost/      start a program with its cryptography routed
  bywash doctor -- nginx                     would that work for nginx? what is missing?
  bywash encrypt -p thesis.pdf               thesis.pdf.bywash, for whoever has the passphrase
  bywash engines                             what computes here

Each command has its own --help with examples.";

/// Routes the cryptography of unmodified programs to whatever computes it best.
#[derive(Debug, Parser)]
#[command(name = "bywash", version, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands there are.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a program with its cryptography routed; say at its end what ran where
    Run(crate::run::Args),
    /// Serve engines to all programs of this machine: the broker, in the foreground
    Serve(crate::serve::Args),
    /// Make /dev/crypto for all programs of this machine, where the kernel has CUSE
    Cuse(crate::cuse::Args),
    /// Keep private keys in the broker alone: make, import, list, rotate, remove them
    Key(crate::key::Args),
    /// Encrypt files, folders or a stream
    Encrypt(crate::files::encrypt::Args),
    /// Decrypt files, folders or a stream
    Decrypt(crate::files::decrypt::Args),
    /// Tell what files and volumes are sealed with, and who can open them
    Info(crate::files::info::Args),
    /// Exchange a passphrase or another key of files and volumes, add some, remove some
    Rekey(crate::files::rekey::Args),
    /// Make a volume, or show one as the files in it: an encrypted folder under any program
    Mount(crate::files::mount::Args),
    /// Take a mounted volume away; when this returns, all is on the disk
    Umount(crate::files::umount::Args),
    /// Find every damaged place in encrypted files, or in a volume
    Fsck(crate::files::fsck::Args),
    /// Make an identity to decrypt with, or a key file
    Keygen(crate::files::keygen::Args),
    /// Show what can compute here, what each can do, and why one is missing
    Engines(crate::engines::Args),
    /// Measure what operations cost on the engines here
    Calibrate(crate::calibrate::Args),
    /// Compare the places where an algorithm can run, size by size
    Bench(crate::bench::Args),
    /// Record requests as a trace, of the running broker or of a command
    Record(crate::record::Args),
    /// Find out what an engine would be worth on some traffic, and who should decide what it holds
    Simulate(crate::simulate::Args),
    /// Run a paper's experiment again, with real servers and clients
    Reproduce(crate::reproduce::Args),
    /// Watch a broker live: clients, algorithms, engines, rates
    Top(crate::top::Args),
    /// Print a broker's counters
    Stats(crate::stats::Args),
    /// Say why a request went where it went, and who was before it
    Explain(crate::explain::Args),
    /// Find what stands in the way, each finding with the command that mends it
    Doctor(crate::doctor::Args),
    /// Look after DDS Security: a participant's configuration
    Dds(crate::dds::Args),
    /// Write completions for a shell to stdout
    Completions(crate::shell::CompletionsArgs),
    /// Write the manual pages
    Man(crate::shell::ManArgs),
}

/// What the mediator is to prefer.
pub(crate) fn prefer() -> impl TypedValueParser<Value = Prefer> {
    PossibleValuesParser::new(Prefer::ALL.map(Prefer::name)).try_map(|name| name.parse())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_line_below_the_options_is_broken_by_a_terminal_of_100_columns() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let long = help.lines().find(|line| line.chars().count() > 100);
            assert_eq!(long, None, "`bywash {} --help`", command.get_name());
        }
    }

    #[test]
    fn every_command_shows_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("bywash "), "`bywash {} --help` has no example", command.get_name());
        }
    }
}
