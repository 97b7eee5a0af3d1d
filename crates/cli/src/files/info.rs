//! `bywash info`: what files and volumes are sealed with, and who can open them.

use super::keys::KeyArgs;
use super::tree::{Item, Plan, Way, check_paths};
use super::{client, failure, io_failure, volume};
use crate::failure::Failure;
use crate::shell::print;
use crate::shown::Shown;
use crate::terminal::{Style, bytes, say, thousands};
use bywash_client::Client;
use bywash_core::SecretBytes;
use bywash_files::disk::{FolderJournals, Journals};
use bywash_files::header::VERSION;
use bywash_files::place::open_regular;
use bywash_files::slot::{Slot, SlotKind};
use bywash_files::{Container, Error, FileKeys, Header, Keyring, NonceSource, Sealer, Whole, armor};
use bywash_mount::volume::is_volume;
use bywash_mount::{VOLUME_FILE, Volume};
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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
    /// Empty if that could not be found out.
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
    /// Whether its writer left a journal, by which the text may be another.
    interrupted: bool,
    slots: Vec<ToldSlot>,
    /// The slots that the keys given open.
    opened_slots: Vec<usize>,
    /// What kept it from being read, or from being proved by the keys that were given, and the exit code for that.
    error: Option<String>,
    exit: Option<u8>,
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

struct Run<'a> {
    client: &'a Client,
    /// None if no key was given.
    keyring: Option<Keyring>,
    passphrase: Option<SecretBytes>,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    bywash_protocol::harden_process();
    check_paths(&args.paths)?;
    let client = client()?;
    let mut plan = Plan::new(&args.paths, Way::Check, args.recursive, None)?;
    let volumes: Vec<_> = std::mem::take(&mut plan.volumes).into_iter().map(|met| met.folder).collect();
    // Typed once for both: a volume of gocryptfs is opened by nothing else.
    let (keyring, passphrase) = if args.keys.is_empty() {
        (None, None)
    } else {
        args.keys.keyring_and_passphrase(&client).map(|(one, other)| (Some(one), other))?
    };
    let run = Run { client: &client, keyring, passphrase };
    let of_volumes = volumes.iter().map(|path| (path, if is_volume(path) { run.volume(path) } else { run.gocryptfs(path) }));
    let of_files = plan.items.iter().map(|item| (&item.source, run.file(item)));
    let of_troubles = plan.troubles().map(|(path, failure)| (Told::untold(&path), Some(failure)));
    let outcomes = of_volumes.chain(of_files).map(|(path, outcome)| outcome.unwrap_or_else(|failure| (Told::untold(path), Some(failure))));
    let (told, failures): (Vec<_>, Vec<_>) =
        outcomes.chain(of_troubles).map(|(told, failure)| (told.with(failure.as_ref()), failure)).unzip();
    let failures: Vec<_> = failures.into_iter().flatten().collect();

    let text = match args.json {
        true => serde_json::to_string_pretty(&told).map_err(|error| Failure::failed(error.to_string()))? + "\n",
        false => told.iter().filter(|told| !told.kind.is_empty()).map(Told::to_text).collect(),
    };
    print(text.as_bytes())?;
    failures.iter().for_each(|failure| say!("{} {failure}", Style::of_stderr().bad("bywash:")));
    let worst = failures.iter().map(|failure| failure.exit).max_by_key(|exit| *exit as u8);
    Ok(worst.map_or(ExitCode::SUCCESS, |exit| ExitCode::from(exit as u8)))
}

/// What is told, and what keeps it from being proved by the keys that were given.
type Outcome = (Told, Option<Failure>);

impl Run<'_> {
    fn file(&self, item: &Item) -> Result<Outcome, Failure> {
        let path = &item.source;
        let (file, metadata) = open_regular(item.source_spot(), item.is_named()).map_err(|error| io_failure(path, &error))?;
        if armor::is_armored(&file) {
            return self.text(path, &file).map_err(|error| failure(path, &error));
        }
        (&file).rewind().map_err(|error| io_failure(path, &error))?;
        let header = Header::read(&file).map_err(|error| failure(path, &error))?;
        let journals = FolderJournals::beside(item.source_spot()).map_err(|error| io_failure(path, &error))?;
        // One that cannot be read, as another user's, is one.
        let is_interrupted = journals.find(header.salt()).map_or(true, |journal| journal.is_some());
        let kind = if path.file_name().is_some_and(|name| name == VOLUME_FILE) { "key" } else { "file" };
        let mut told = Told { interrupted: is_interrupted, ..of_file(path, kind, &header, metadata.len()) };
        let proved = self.open(&header).and_then(|opened| {
            let Some((keys, slots)) = opened else { return Ok(()) };
            told.opened_slots = slots;
            // Only the last chunk says that the length is right.
            Container::open(self.client, &header, keys, Arc::new(file), &journals).map(drop)
        });
        Ok((told, proved.err().map(|error| failure(path, &error))))
    }

    /// An encrypted file as text, which is read to its end.
    fn text(&self, path: &Path, mut file: &File) -> Result<Outcome, Error> {
        file.rewind()?;
        let mut reader = armor::reader(file)?;
        let header = Header::read(&mut reader)?;
        let bytes = header.bytes().len() as u64 + std::io::copy(&mut reader, &mut std::io::sink())?;
        let mut told = of_file(path, "text", &header, bytes);
        let proved = self.open(&header).and_then(|opened| {
            let Some((keys, slots)) = opened else { return Ok(()) };
            told.opened_slots = slots;
            file.rewind()?;
            let mut reader = armor::reader(file)?;
            Header::read(&mut reader)?;
            let (sealer, ignored) = (Sealer::new(self.client, header.aead(), keys, Arc::new(NonceSource::new())), AtomicU64::new(0));
            Whole::new(&sealer, &header, 1, &ignored).open_stream(reader, std::io::sink()).map(drop)
        });
        drop(reader);
        Ok((told, proved.err().map(|error| failure(path, &error))))
    }

    /// What a volume's contents are sealed with stands where a key is needed to read it.
    fn volume(&self, folder: &Path) -> Result<Outcome, Failure> {
        let path = folder.join(VOLUME_FILE);
        let (file, _) = open_regular(&path, false).map_err(|error| io_failure(&path, &error))?;
        let header = Header::read(&file).map_err(|error| failure(&path, &error))?;
        let mut told = of_header(folder, "volume", &header);
        let proved = self.open(&header).and_then(|opened| {
            let (Some((_, slots)), Some(keyring)) = (opened, &self.keyring) else { return Ok(()) };
            told.opened_slots = slots;
            let volume = Volume::open(self.client, folder, keyring)?;
            told.cipher = Some(volume.aead().name());
            told.chunk_bytes = Some(volume.chunk_size());
            told.names = Some(names(volume.has_plain_names()));
            Ok(())
        });
        Ok((told, proved.err().map(|error| failure(&path, &error))))
    }

    fn gocryptfs(&self, folder: &Path) -> Result<Outcome, Failure> {
        let config = volume::config(folder)?;
        let work = config.scrypt_work();
        let cost = format!("scrypt: N {}, r {}, p {}", work.n, work.r, work.p);
        let mut told = Told {
            path: folder.display().to_string(),
            kind: "gocryptfs",
            version: bywash_mount::gocryptfs::VERSION,
            made_by: Some(config.creator().to_owned()).filter(|name| !name.is_empty()),
            cipher: Some(config.cipher()),
            names: Some(names(config.has_plain_names())),
            slots: vec![ToldSlot { number: 1, kind: "passphrase", words: SlotKind::Passphrase.describe(), cost: Some(cost) }],
            ..Told::default()
        };
        let opened = self.passphrase.as_ref().map(|passphrase| volume::unlock(folder, passphrase, self.client));
        told.opened_slots.extend(opened.as_ref().is_some_and(Result::is_ok).then_some(1));
        Ok((told, opened.and_then(Result::err)))
    }

    /// The file's keys and the slots that the keys given open, if some were given.
    fn open(&self, header: &Header) -> Result<Option<(FileKeys, Vec<usize>)>, Error> {
        let opened = self.keyring.as_ref().map(|keyring| keyring.open_all(header)).transpose()?;
        Ok(opened.map(|(keys, slots)| (keys, slots.iter().map(|at| at + 1).collect())))
    }
}

fn of_header(path: &Path, kind: &'static str, header: &Header) -> Told {
    let slots = (1..).zip(header.slots()).map(|(number, slot)| ToldSlot::of(number, slot)).collect();
    Told { path: path.display().to_string(), kind, version: VERSION.into(), slots, ..Told::default() }
}

/// An encrypted file of so many bytes.
fn of_file(path: &Path, kind: &'static str, header: &Header, bytes: u64) -> Told {
    let geometry = header.geometry();
    let (text, truncated) = match geometry.text_len_of_file(bytes) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Told {
        cipher: Some(header.aead().name()),
        chunk_bytes: Some(geometry.chunk_size()),
        text_bytes: text,
        chunks: text.map(|text| geometry.last_chunk(text) + 1),
        truncated,
        ..of_header(path, kind, header)
    }
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
    /// What could not be read.
    fn untold(path: &Path) -> Self {
        Self { path: path.display().to_string(), ..Self::default() }
    }

    fn with(self, failure: Option<&Failure>) -> Self {
        Self { error: failure.map(ToString::to_string), exit: failure.map(|failure| failure.exit as u8), ..self }
    }

    fn to_text(&self) -> String {
        let what = match self.kind {
            "file" => "encrypted file",
            "text" => "encrypted file as text",
            "volume" => "volume",
            "key" => "encrypted file, the key of the volume in its folder",
            _ => "volume of gocryptfs",
        };
        let by = self.made_by.as_ref().map_or_else(String::new, |name| format!(", made by {}", name.shown()));
        let mut text = format!("{}: {what}, format version {}{by}\n", self.path.shown(), self.version);
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
        if self.interrupted {
            line("journal", "there is one: its writer was interrupted, and the text may be another; `bywash fsck --recover`".into());
        }
        for slot in &self.slots {
            let cost = slot.cost.as_ref().map_or_else(String::new, |cost| format!(" ({cost})"));
            let opened = if self.opened_slots.contains(&slot.number) { ": opened by what was given" } else { "" };
            line(&format!("slot {}", slot.number), format!("{}{cost}{opened}", slot.words));
        }
        text
    }
}
