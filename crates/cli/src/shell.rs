//! For the shell and the manual: `completions` and `man`.

use crate::args::Cli;
use crate::failure::Failure;
use bywash_protocol::{Standard, was_closed};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// `bywash completions`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash completions bash > /etc/bash_completion.d/bywash
  bywash completions zsh > ~/.zfunc/_bywash
  bywash completions fish > ~/.config/fish/completions/bywash.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

/// Writes a completion script to stdout.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bywash", &mut script);
    print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// `bywash man`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash man | man -l -                       read bywash(1)
  bywash man /usr/local/share/man/man1        write bywash.1, bywash-run.1, ... there")]
pub(crate) struct ManArgs {
    /// Folder to write all pages to; without it bywash(1) goes to stdout
    dir: Option<PathBuf>,
}

/// Writes the manual.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    match &args.dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| Failure::file("create", folder, &error))?;
            clap_mangen::generate_to(Cli::command(), folder).map_err(|error| Failure::file("write to", folder, &error))?;
        }
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|error| Failure::failed(format!("cannot render the manual: {error}")))?;
            print(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to stdout; a reader that has gone away (`| head`) is no failure.
pub(crate) fn print(text: &[u8]) -> Result<(), Failure> {
    if was_closed(Standard::Output) {
        return Err(Failure::failed("cannot write to stdout: it is closed"));
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::failed(format!("cannot write to stdout: {error}"))),
        _ => Ok(()),
    }
}
