//! One line after another, in whatever form the first says that they have.

use super::Missing;
use crate::lines::{Line, Lines, RECORDS_MAX, too_many};
use bywash_core::trace::{self, Record, ends_in_header};
use bywash_core::{Algorithm, Direction, Error, Result, Time};
use std::collections::HashMap;
use std::io::BufRead;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// The time of the Common Log Format.
const CLF_TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]");

/// One line understood.
pub(super) enum Said {
    /// An answer of a web server.
    Answer(Answer),
    /// A request of a recording.
    Record(Record),
}

/// What a web server's log has of an answer.
pub(super) struct Answer {
    /// Seconds, from the first answer's on.
    pub(super) arrival: f64,
    /// The client, by its number in the order in which they appear.
    pub(super) client: u32,
    pub(super) bytes: u32,
}

/// The most text in a record of TLS (RFC 8446 s5.1), and so in a call of its cipher.
const TLS_RECORD: u64 = 16 << 10;

impl Answer {
    /// As a server encrypts it.
    pub(super) fn encrypted(&self) -> Record {
        let at = Time((self.arrival * 1e9) as u64);
        Record {
            arrival: at,
            client: self.client,
            session: 0,
            algorithm: Algorithm::Aes128Gcm,
            direction: Direction::Encrypt,
            bytes: self.bytes.into(),
            engine: String::new(),
            start: at,
            done: at,
            served: None,
            whose: None,
            calls: u64::from(self.bytes).div_ceil(TLS_RECORD).max(1) as u32,
        }
    }
}

/// How lines are to be read.
#[derive(Clone, Copy)]
enum Form {
    Common,
    /// Columns of host, time and bytes.
    Tabs([usize; 3]),
    Recording,
}

/// A line of a web server's log, before it is held against those above.
struct Entry<'a> {
    seconds: f64,
    host: &'a str,
    bytes: u32,
}

/// Understands lines of any form.
pub(super) struct Reader<'a> {
    place: &'a str,
    form: Option<Form>,
    /// Different clients of a web server's log, with their numbers.
    pub(super) clients: HashMap<String, u32>,
    /// When the first answer was, and how much later the last one.
    begin: Option<f64>,
    last: f64,
    recording: trace::Reader,
    records: u64,
    records_max: u64,
    /// What could not be read so far.
    pub(super) missing: Missing,
}

impl<'a> Reader<'a> {
    /// `place` (a file name) is named in errors.
    pub(super) fn new(place: &'a str) -> Self {
        let (clients, missing) = (HashMap::new(), Missing::default());
        let recording = trace::Reader::default();
        Self { place, form: None, clients, begin: None, last: 0.0, recording, records: 0, records_max: RECORDS_MAX, missing }
    }

    /// The next line that can be read, with its number; none at the end.
    ///
    /// # Errors
    /// [`Error::Config`], naming file and line, for a log that is out of order, too long, or cannot be read at all.
    pub(super) fn next_said(&mut self, lines: &mut Lines<'_, impl BufRead>) -> Result<Option<(u64, Said)>> {
        while let Some(Line { number, text: line, is_cut }) = lines.next_line()? {
            if line.trim().is_empty() {
                continue;
            }
            if is_cut && matches!(self.form, Some(Form::Recording)) {
                self.missing.note_cut(number);
                continue;
            }
            let said = match self.form {
                Some(form) => self.said(form, number, &line)?,
                None => self.first(number, &line)?,
            };
            if let Some(said) = said {
                return Ok(Some((number, said)));
            }
        }
        Ok(None)
    }

    /// Why a log is taken for empty that had no request.
    pub(super) fn nothing(&self) -> &'static str {
        if self.form.is_some() { "a header, and nothing below it" } else { "it is empty" }
    }

    /// The first line says what form the rest has.
    fn first(&mut self, number: u64, line: &str) -> Result<Option<Said>> {
        // Or part of a recording, without its header.
        if ends_in_header(line) || line.parse::<Record>().is_ok() {
            self.form = Some(Form::Recording);
            return self.record(number, line);
        }
        if !line.contains('\t') {
            self.form = Some(Form::Common);
            return self.said(Form::Common, number, line);
        }
        let names: Vec<&str> = line.split('\t').collect();
        let column = |name: &str| {
            let missing =
                || config(format!("{}, line {number}", self.place), format!("no column named '{name}' in the header of a TSV log"));
            names.iter().position(|&other| other == name).ok_or_else(missing)
        };
        self.form = Some(Form::Tabs([column("host")?, column("time")?, column("bytes")?]));
        Ok(None)
    }

    fn said(&mut self, form: Form, number: u64, line: &str) -> Result<Option<Said>> {
        let entry = match form {
            Form::Common => common(line),
            Form::Tabs(columns) => tabs(line, columns),
            Form::Recording => return self.record(number, line),
        };
        match entry {
            Ok(entry) => self.answer(number, line, &entry).map(|answer| Some(Said::Answer(answer))),
            Err(reason) => {
                self.missing.note(number, reason);
                Ok(None)
            }
        }
    }

    fn record(&mut self, number: u64, line: &str) -> Result<Option<Said>> {
        let read = self.recording.read(line);
        (self.missing.lost, self.missing.calls) = (self.recording.lost(), self.recording.lacks_calls());
        match read {
            Ok(Some(record)) => {
                self.records += 1;
                if self.records > self.records_max {
                    return Err(too_many("requests", self.records_max, self.place, number));
                }
                Ok(Some(Said::Record(record)))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.missing.note(number, error.to_string());
                Ok(None)
            }
        }
    }

    fn answer(&mut self, number: u64, line: &str, entry: &Entry<'_>) -> Result<Answer> {
        let arrival = entry.seconds - *self.begin.get_or_insert(entry.seconds);
        if arrival < self.last {
            let reason = format!("time: {} s before the line above; {}", self.last - arrival, self.sorted(line));
            return Err(config(format!("{}, line {number}", self.place), reason));
        }
        self.last = arrival;
        Ok(Answer { arrival, client: self.client(entry.host), bytes: entry.bytes })
    }

    /// How to sort a log that has this line.
    fn sorted(&self, line: &str) -> String {
        if matches!(self.form, Some(Form::Tabs(_))) {
            return "sort what is below its header by its column `time`".to_owned();
        }
        // The time is the fourth word, or a later one where a virtual host stands first or a user has several.
        let before = line.split_once('[').map_or("", |(before, _)| before);
        let word = before.matches(' ').count() + 1;
        let keys = ["9,_.12n", "5,_.7M", "2,_.3n", "14,_.21"].map(|key| format!(" -k{word}.{}", key.replace('_', &word.to_string())));
        format!("sort it first, as servers do not that stamp requests when they begin: LC_ALL=C sort -s -t ' '{}", keys.concat())
    }

    fn client(&mut self, host: &str) -> u32 {
        if let Some(&number) = self.clients.get(host) {
            return number;
        }
        let number = self.clients.len() as u32;
        self.clients.insert(host.to_owned(), number);
        number
    }
}

fn tabs(line: &str, columns: [usize; 3]) -> std::result::Result<Entry<'_>, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let field = |column: usize| fields.get(column).copied().ok_or_else(|| format!("{} columns only", fields.len()));
    let [host, time, bytes] = [field(columns[0])?, field(columns[1])?, field(columns[2])?];
    let seconds = time.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    let seconds = seconds.ok_or_else(|| format!("time '{}' is not a number of seconds", short(time)))?;
    Ok(Entry { seconds, host, bytes: size(bytes)? })
}

fn common(line: &str) -> std::result::Result<Entry<'_>, String> {
    let (before, rest) = line.split_once('[').ok_or("no time in brackets")?;
    let host = host(before).ok_or("no host")?;
    let (time, rest) = rest.split_once(']').ok_or("no time in brackets")?;
    let time = OffsetDateTime::parse(time, CLF_TIME)
        .map_err(|_| format!("time '{}' is not of the form 10/Oct/2000:13:55:36 -0700", short(time)))?;
    // The request may hold anything, quotes too; after the last but one pair of them nothing but numbers is looked for.
    let after = rest.split_once('"').and_then(|(_, request)| closing(request)).ok_or("no request in quotes")?;
    let bytes = after.split_ascii_whitespace().nth(1).ok_or("no status and size after the request")?;
    Ok(Entry { seconds: time.unix_timestamp() as f64, host, bytes: size(bytes)? })
}

/// What follows a quoted request: from the first quote that a status (three digits) comes after.
fn closing(request: &str) -> Option<&str> {
    let quotes = request.match_indices('"').map(|(place, _)| &request[place + 1..]);
    let is_status = |rest: &&str| {
        let word = rest.split_ascii_whitespace().next().unwrap_or_default();
        word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    quotes.into_iter().find(is_status)
}

/// The client, of what a line has before its time: the first word, or the second where the first is a virtual host.
fn host(before: &str) -> Option<&str> {
    let mut words = before.trim_end().split(' ');
    let first = words.next().filter(|host| !host.is_empty())?;
    let is_site = |word: &str| word.rsplit_once(':').is_some_and(|(name, port)| !name.contains(':') && port.parse::<u16>().is_ok());
    match words.next() {
        Some(second) if is_site(first) && words.count() >= 2 => Some(second),
        _ => Some(first),
    }
}

/// Bytes of an answer; `-` is none.
fn size(text: &str) -> std::result::Result<u32, String> {
    match text {
        "-" => Ok(0),
        text => text.parse().map_err(|_| format!("size '{}' is not a number of bytes up to 4 GiB", short(text))),
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn config(place: String, reason: String) -> Error {
    Error::Config { place, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::trace::HEADER;

    #[test]
    fn the_command_that_sorts_a_log_names_the_words_of_its_time() {
        let late = |front: &str| {
            let line = |second: u32| format!("{front} [10/Oct/2000:13:55:{second} -0700] \"GET /\" 200 5\n");
            let text = line(37) + &line(36);
            let (mut reader, mut lines) = (Reader::new("access.log"), Lines::new(text.as_bytes(), "access.log"));
            assert!(reader.next_said(&mut lines).unwrap().is_some());
            reader.next_said(&mut lines).err().map(|error| error.to_string()).unwrap()
        };
        let plain = late("10.0.0.1 - -");
        assert!(plain.contains("access.log, line 2") && plain.ends_with("-k4.9,4.12n -k4.5,4.7M -k4.2,4.3n -k4.14,4.21"), "{plain}");
        let of_a_virtual_host = late("www.example.com:443 10.0.0.1 - -");
        assert!(of_a_virtual_host.ends_with("-k5.9,5.12n -k5.5,5.7M -k5.2,5.3n -k5.14,5.21"), "{of_a_virtual_host}");
    }

    #[test]
    fn a_recording_without_an_end_is_refused() {
        let text = format!("{HEADER}\n{}", "1000,1,7,AES-128-CBC,encrypt,64,here,1000,2000,,,,,,,,,,,1\n".repeat(3));
        let (mut reader, mut lines) = (Reader { records_max: 2, ..Reader::new("t.csv") }, Lines::new(text.as_bytes(), "t.csv"));
        assert!((0..2).all(|_| reader.next_said(&mut lines).unwrap().is_some()));
        let said = reader.next_said(&mut lines).err().unwrap().to_string();
        assert!(said.contains("t.csv, line 4: more than 2 requests") && said.contains("head -n 2 t.csv |"), "{said}");
    }
}
