//! `bywash key`: the keys of a broker's vault.
//!
//! Commands go to the running broker, which does them for its own user and root ([`place`]); where none runs, they work on the folder. What a key may
//! be used for is said by the options of [`policy`]; where it comes from is read by [`source`].

mod place;
mod policy;
mod show;
mod source;
mod token;

use crate::failure::{Exit, Failure};
use crate::terminal::say;
use bywash_core::KeyReference;
use bywash_protocol::key_file;
use bywash_protocol::keys::{KeyAlgorithm, KeyCommand, KeyUse};
pub(crate) use place::open_vault;
use place::{Place, PlaceArgs};
use policy::PolicyArgs;
pub(crate) use source::first_line;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use token::TokenArgs;

/// `bywash key`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash key generate web --algorithm p256 --allow-uid 33
  bywash key import web --from server.key --allow-uid 33
  bywash key import web --from 'pkcs11:token=T;object=web' --module LIB --pin-file FILE
  bywash key uri web > /etc/nginx/web.key        what nginx is given as ssl_certificate_key
  bywash key list
  bywash key rotate web --grace 30d

A server holds no private key then: its key file names one (bywash:web), our OpenSSL provider reads
that, and the broker signs. Allow the user that the server's workers run as, with --allow-uid here
and for the broker (`bywash serve --allow-uid`).

A certificate for a key in the vault:
  bywash run -- openssl req -new -key bywash:web -subj /CN=www.example.org -out web.csr

Rotation: `rotate` puts a new key under the name; the old one still serves whoever has its key
file, for the grace. Get a certificate for the new key, write its key file (`bywash key uri`),
put both in place, reload the server.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with keys.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Take a private key over from a file (PKCS#8, PKCS#1 or SEC1, in PEM or DER) or a PKCS#11 token
    Import {
        /// The key's name to be: letters, digits, '.', '_', '-'
        name: String,
        /// The file, `-` for stdin, or a key in a token as `pkcs11:token=T;object=O` (RFC 7512). It is
        /// left as it is: delete it yourself
        #[arg(long, value_name = "FILE|URI")]
        from: String,
        /// A file whose first line is the passphrase of the key
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        token: TokenArgs,
        #[command(flatten)]
        policy: PolicyArgs,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Make a private key that nobody but the broker has ever seen
    #[command(after_help = "\
A certificate request for it, signed in the vault:
  bywash run -- openssl req -new -key bywash:NAME -subj /CN=www.example.org -out NAME.csr")]
    Generate {
        /// The key's name to be: letters, digits, '.', '_', '-'
        name: String,
        /// rsa-2048, rsa-3072, rsa-4096, p256, p384 or ed25519
        #[arg(long, value_name = "KIND", default_value = "p256")]
        algorithm: KeyAlgorithm,
        #[command(flatten)]
        policy: PolicyArgs,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Show the keys: kind, fingerprint, age, who may do what, uses since the broker started
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Print a key's public half as PEM
    Public {
        /// Which key
        name: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Print the file that a server is given instead of the private key
    Uri {
        /// Which key
        name: String,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Put a new key under the same name
    Rotate {
        /// Which key
        name: String,
        /// How long the old key still serves who has its key file: 0s, 12h, 30d
        #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_grace)]
        grace: Duration,
        /// Yes, though files may be encrypted to it
        #[arg(long)]
        yes: bool,
        /// Take the new key from this file or token instead of making one, as `import` does
        #[arg(long, value_name = "FILE|URI")]
        from: Option<String>,
        /// A file whose first line is the passphrase of the new key
        #[arg(long, value_name = "FILE", requires = "from")]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        token: TokenArgs,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Say anew who may do what with a key; what is not said goes back to its default
    Policy {
        /// Which key
        name: String,
        #[command(flatten)]
        policy: PolicyArgs,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Delete a key; servers that use it fail from then on
    Remove {
        /// Which key
        name: String,
        /// Yes, delete it: there is no way back
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Keys and passphrases go through this process. What cannot be had is `doctor`'s to say.
    bywash_protocol::harden_process();
    match &args.command {
        Command::Import { name, from, passphrase_file, token, policy, place } => {
            let private = source::read(from, passphrase_file.as_deref(), token)?;
            let public = Place::find(place, true)?.change(&KeyCommand::Import { name, private: &private, policy: policy.policy() })?;
            told(name, "imported", &public);
            place.warn_of_shut_out(policy.uids());
        }
        Command::Generate { name, algorithm, policy, place } => {
            let command = KeyCommand::Generate { name, algorithm: *algorithm, policy: policy.policy() };
            told(name, "made", &Place::find(place, true)?.change(&command)?);
            place.warn_of_shut_out(policy.uids());
        }
        Command::List { json, place } => print!("{}", show::list(&Place::find(place, false)?.list()?, *json)?),
        Command::Public { name, place } => print!("{}", show::public(&Place::find(place, false)?.public(name)?)?),
        Command::Uri { name, place } => {
            let public = Place::find(place, false)?.public(name)?;
            print!("{}", key_file::write(&KeyReference { name: name.clone(), public })?);
        }
        Command::Rotate { name, grace, from, passphrase_file, token, yes, place } => {
            if !yes && derives(name, place)? {
                return Err(would_close_files(name));
            }
            let private = from.as_deref().map(|from| source::read(from, passphrase_file.as_deref(), token)).transpose()?;
            let command = KeyCommand::Rotate { name, private: private.as_deref(), grace_s: grace.as_secs() };
            told(name, "rotated", &Place::find(place, false)?.change(&command)?);
            say!(
                "bywash: its certificates are for the old key: get one for the new key, and write the key file again (`bywash key uri {name}`)"
            );
        }
        Command::Policy { name, policy, .. } if policy.is_empty() => {
            let why = "nothing is said of who may do what, and it would all go back to its default";
            let way_out = format!("`bywash key list` shows what holds; --allow sign is the default ({name} for its owner alone, to sign)");
            return Err(Failure::new(Exit::Usage, format!("{why}: {way_out}")));
        }
        Command::Policy { name, policy, place } => {
            Place::find(place, false)?.change(&KeyCommand::Policy { name, policy: policy.policy() })?;
            say!("bywash: key bywash:{name} now follows the new policy");
            place.warn_of_shut_out(policy.uids());
        }
        Command::Remove { name, yes: false, place } => {
            let files = if derives(name, place)? { ", and what is encrypted to it is lost" } else { "" };
            let why = format!("removing bywash:{name} cannot be undone, and servers that use it fail{files}; say --yes if that is meant");
            return Err(Failure::new(Exit::Usage, why));
        }
        Command::Remove { name, place, .. } => {
            Place::find(place, false)?.change(&KeyCommand::Remove { name })?;
            say!("bywash: key bywash:{name} is removed");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether files may be encrypted to a key.
fn derives(name: &str, place: &PlaceArgs) -> Result<bool, Failure> {
    Ok(Place::find(place, false)?.find_key(name)?.policy.allows(KeyUse::Derive))
}

/// What a rotation does to who has encrypted files to a key that derives.
fn would_close_files(name: &str) -> Failure {
    let why = format!("files encrypted to bywash:{name} are opened by the old key alone, which goes after the grace, and by its key file");
    let way_out = format!(
        "write that (`bywash key uri {name} > {name}.key`), rotate with --yes, then `bywash rekey -i {name}.key --new-recipient bywash:{name} FILE...`"
    );
    Failure::new(Exit::Usage, format!("{why}: {way_out}"))
}

fn told(name: &str, done: &str, public: &[u8]) {
    say!("bywash: key bywash:{name} {done}, SHA-256 {}", bywash_vault::material::fingerprint(public));
}

fn parse_grace(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err("a time with its unit is expected: 0s, 90m, 12h, 30d".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "a time with its unit is expected: 0s, 90m, 12h, 30d")?;
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(|| "that is longer than any clock runs".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graces_need_a_unit() {
        assert_eq!(parse_grace("30d"), Ok(Duration::from_secs(30 * 86400)));
        assert_eq!(parse_grace("0s"), Ok(Duration::ZERO));
        for bad in ["", "30", "d", "1w", "-1d", "99999999999999999999d"] {
            assert!(parse_grace(bad).is_err(), "{bad}");
        }
    }
}
