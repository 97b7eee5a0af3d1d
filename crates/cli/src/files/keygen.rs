//! `bywash keygen`: identities and key files.

use super::client;
use super::keys::recipients_of;
use crate::failure::Failure;
use crate::shell::print;
use crate::shown::Shown;
use crate::terminal::say;
use bywash_files::{Identity, KEY_BYTES, nonce, write_secret};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use zeroize::Zeroizing;

/// `bywash keygen`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash keygen -o me.identity           the recipient, for others, goes to stderr
  bywash keygen --hybrid -o me.identity  X25519 and ML-KEM-768: both must be broken to read a file
  bywash keygen --recipient me.identity  the recipients of what is in a file
  bywash keygen --recipient bywash:box   the recipient that a p256 key in the broker's vault is
  bywash keygen --key-file backup.key    32 random bytes for -k

An identity is a private key: who has the file reads what was encrypted for it.")]
pub(crate) struct Args {
    /// Write the identity there, readable by you alone; stdout otherwise
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make one that also withstands quantum computers, as far as ML-KEM-768 does; its texts are long
    #[arg(long)]
    hybrid: bool,
    /// Print the recipients of the identities in this file instead, or of bywash:NAME in the vault
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "hybrid", "key_file"])]
    recipient: Option<PathBuf>,
    /// Make a key file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "hybrid"])]
    key_file: Option<PathBuf>,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let failed = |error: bywash_files::Error| Failure::failed(error.to_string());
    if let Some(path) = &args.recipient {
        let recipients: String = recipients_of(&client()?, path)?.iter().map(|recipient| format!("{recipient}\n")).collect();
        print(recipients.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.key_file {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        nonce::random(&mut *key).map_err(failed)?;
        write_private(path, &*key)?;
        return Ok(ExitCode::SUCCESS);
    }
    let identity = Identity::generate(args.hybrid).map_err(failed)?;
    // Only those that were not made here have no text.
    let secret = identity.to_secret_text().unwrap_or_default();
    let public = format!("# recipient: {}\n", identity.recipient());
    // All the room at once: a text that grows leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(public.len() + secret.len() + 1));
    [public.as_bytes(), &secret, b"\n"].iter().for_each(|part| text.extend_from_slice(part));
    match &args.output {
        Some(path) => {
            write_private(path, &text)?;
            say!("recipient: {}", identity.recipient());
        }
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A new file that nobody else reads.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_secret(path, bytes).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::failed(format!("{}: it exists, and a key is never replaced; name another file", path.shown())),
        _ => Failure::file("write", path, &error),
    })
}
