//! `bywash info`: what files and volumes are sealed with, and who can open them.

use super::keys::KeyArgs;
use super::tree::{Item, Plan, Way, check_paths};
use super::{client, failure, io_failure, volume};
use crate::failure::Failure;
use crate::shell::print;
use crate::terminal::{Style, bytes, say, thousands};
use bywash_client::Client;
use bywash_files::header::VERSION;
use bywash_files::place::open_regular;
use bywash_files::slot::{Slot, SlotKind};
use bywash_files::{Header, Keyring};
use bywash_mount::volume::is_volume;
use bywash_mount::{VOLUME_FILE, Volume};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `bywash info`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash info thesis.pdf.bywash
  bywash info ~/vault                    a volume of `bywash mount`, or of gocryptfs
  bywash info -k backup.key ~/vault      the same, and which slot that key opens
  bywash info -R --json /mnt/backup

Slots are the ways to open a file; `bywash rekey` exchanges them. No key is needed, but without one
nothing of this is proved: who can write to the file can make it say so.")]
pub(crate) struct Args {
    /// Files, folders, and volumes
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Go through folders; files that do not end in .bywash are passed over
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    keys: KeyArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What is told of one file or volume.
#[derive(Default, Serialize)]
struct Told {
    path: String,
    kind: &'static str,
    /// The format's version.
    version: u32,
    made_by: Option<String>,
    cipher: Option<&'static str>,
    chunk_bytes: Option<usize>,
    names: Option<&'static str>,
    text_bytes: Option<u64>,
    chunks: Option<u64>,
    /// Why there is no length of the text.
    truncated: Option<String>,
    slots: Vec<ToldSlot>,
    /// The slot that the keys given open.
    opened_slot: Option<usize>,
}

#[derive(Serialize)]
struct ToldSlot {
    number: usize,
    kind: &'static str,
    #[serde(skip)]
    words: &'static str,
    /// What a passphrase costs who tries one.
    cost: Option<String>,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    check_paths(&args.paths)?;
    let client = client()?;
    let (volumes, others): (Vec<_>, Vec<_>) = args.paths.iter().cloned().partition(|path| is_volume(path) || volume::is_gocryptfs(path));
    let plan = Plan::new(&others, Way::Check, args.recursive, None)?;
    let keyring = if args.keys.is_empty() { None } else { Some(args.keys.keyring(&client)?) };

    let of_volumes = volumes.iter().map(|path| match is_volume(path) {
        true => of_volume(path, keyring.as_ref(), &client),
        false => of_gocryptfs(path),
    });
    let of_files = plan.items.iter().map(|item| of_file(item, keyring.as_ref()));
    let (mut told, mut failures) = (Vec::new(), Vec::new());
    for outcome in of_volumes.chain(of_files) {
        match outcome {
            Ok((one, unopened)) => {
                told.push(one);
                failures.extend(unopened);
            }
            Err(failure) => failures.push(failure),
        }
    }
    failures.extend(plan.obstacles.iter().map(|(path, error)| io_failure(path, error)));

    let text = match args.json {
        true => serde_json::to_string_pretty(&told).map_err(|error| Failure::failed(error.to_string()))? + "\n",
        false => told.iter().map(Told::to_text).collect(),
    };
    print(text.as_bytes())?;
    failures.iter().for_each(|failure| say!("{} {failure}", Style::of_stderr().bad("bywash:")));
    let worst = failures.iter().map(|failure| failure.exit).max_by_key(|exit| *exit as u8);
    Ok(worst.map_or(ExitCode::SUCCESS, |exit| ExitCode::from(exit as u8)))
}

/// What is told, and why the keys given open no slot, if none do.
type Outcome = (Told, Option<Failure>);

fn of_file(item: &Item, keyring: Option<&Keyring>) -> Result<Outcome, Failure> {
    let path = &item.source;
    let (file, metadata) = open_regular(item.source_spot(), item.is_named()).map_err(|error| io_failure(path, &error))?;
    let header = Header::read(&file).map_err(|error| failure(path, &error))?;
    let geometry = header.geometry();
    let (text, truncated) = match geometry.text_len_of_file(metadata.len()) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let told = Told {
        cipher: Some(header.aead().name()),
        chunk_bytes: Some(geometry.chunk_size()),
        text_bytes: text,
        chunks: text.map(|text| geometry.last_chunk(text) + 1),
        truncated,
        ..of_header(path, "file", &header)
    };
    Ok(opened_by(told, path, &header, keyring))
}

fn of_header(path: &Path, kind: &'static str, header: &Header) -> Told {
    let slots = (1..).zip(header.slots()).map(|(number, slot)| ToldSlot::of(number, slot)).collect();
    Told { path: path.display().to_string(), kind, version: VERSION.into(), slots, ..Told::default() }
}

fn opened_by(mut told: Told, path: &Path, header: &Header, keyring: Option<&Keyring>) -> Outcome {
    match keyring.map(|keyring| keyring.open_by(header)) {
        None => (told, None),
        Some(Ok((_, slot))) => {
            told.opened_slot = Some(slot + 1);
            (told, None)
        }
        Some(Err(error)) => (told, Some(failure(path, &error))),
    }
}

/// What a volume's contents are sealed with stands where a key is needed to read it.
fn of_volume(folder: &Path, keyring: Option<&Keyring>, client: &Client) -> Result<Outcome, Failure> {
    let path = folder.join(VOLUME_FILE);
    let (file, _) = open_regular(&path, false).map_err(|error| io_failure(&path, &error))?;
    let header = Header::read(&file).map_err(|error| failure(&path, &error))?;
    let (mut told, unopened) = opened_by(of_header(folder, "volume", &header), &path, &header, keyring);
    if let Some(keyring) = keyring.filter(|_| unopened.is_none()) {
        let volume = Volume::open(client, folder, keyring).map_err(|error| failure(&path, &error))?;
        told.cipher = Some(volume.aead().name());
        told.chunk_bytes = Some(volume.chunk_size());
        told.names = Some(names(volume.has_plain_names()));
    }
    Ok((told, unopened))
}

fn of_gocryptfs(folder: &Path) -> Result<Outcome, Failure> {
    let config = volume::config(folder)?;
    let work = config.scrypt_work();
    let cost = format!("scrypt: N {}, r {}, p {}", work.n, work.r, work.p);
    let told = Told {
        path: folder.display().to_string(),
        kind: "gocryptfs",
        version: bywash_mount::gocryptfs::VERSION,
        made_by: Some(config.creator().to_owned()).filter(|name| !name.is_empty()),
        cipher: Some(config.cipher()),
        names: Some(names(config.has_plain_names())),
        slots: vec![ToldSlot { number: 1, kind: "passphrase", words: SlotKind::Passphrase.describe(), cost: Some(cost) }],
        ..Told::default()
    };
    Ok((told, None))
}

fn names(are_plain: bool) -> &'static str {
    if are_plain { "as they are" } else { "encrypted" }
}

impl ToldSlot {
    fn of(number: usize, slot: &Slot) -> Self {
        let cost = slot.argon2_cost().map(|cost| {
            let memory = if cost.memory_kib.is_multiple_of(1024) {
                format!("{} MiB", cost.memory_kib >> 10)
            } else {
                format!("{} KiB", cost.memory_kib)
            };
            format!("Argon2id: {memory}, {} passes, {} lanes", cost.passes, cost.lanes)
        });
        let (kind, words) = slot.kind().map_or(("unknown", "something of a later version"), |kind| (kind.name(), kind.describe()));
        Self { number, kind, words, cost }
    }
}

impl Told {
    fn to_text(&self) -> String {
        let what = match self.kind {
            "file" => "encrypted file",
            "volume" => "volume",
            _ => "volume of gocryptfs",
        };
        let by = self.made_by.as_ref().map_or_else(String::new, |name| format!(", made by {name}"));
        let mut text = format!("{}: {what}, format version {}{by}\n", self.path, self.version);
        let mut line = |label: &str, says: String| _ = writeln!(text, "  {label:<8}{says}");
        let chunks = self.chunk_bytes.map_or_else(String::new, |size| format!(", {} KiB together", size >> 10));
        match self.cipher {
            Some(cipher) => line("cipher", format!("{cipher}{chunks}")),
            None => line("cipher", "told to whoever has a key: give -p, -k or -i".into()),
        }
        self.names.into_iter().for_each(|names| line("names", names.into()));
        if let (Some(len), Some(chunks)) = (self.text_bytes, self.chunks) {
            line("text", format!("{} bytes ({}) in {} chunks", thousands(len), bytes(len), thousands(chunks)));
        }
        self.truncated.iter().for_each(|why| line("text", why.clone()));
        for slot in &self.slots {
            let cost = slot.cost.as_ref().map_or_else(String::new, |cost| format!(" ({cost})"));
            let opened = if self.opened_slot == Some(slot.number) { ": opened by what was given" } else { "" };
            line(&format!("slot {}", slot.number), format!("{}{cost}{opened}", slot.words));
        }
        crate::failure::shown(text)
    }
}
