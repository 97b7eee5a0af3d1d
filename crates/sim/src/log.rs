//! Requests of real machines: web servers' logs and the broker's own recordings.
//!
//! | form | told by |
//! |---|---|
//! | Common Log Format and the combined one: `host ident user [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326 ...` | anything else |
//! | the same with the virtual host first, as Apache's `vhost_combined`: `www.example.com:443 host ident user [...` | a line's fourth word before the time, and a port |
//! | tab-separated with a header line that names at least `host`, `time` (seconds) and `bytes` | a tab in the first line |
//! | what `bywash record` writes | its header line |
//!
//! A web log does not say which cipher a client uses, so the n-th new client gets circuit n modulo their number, as niwa2005 has it (s6). Recordings name
//! their algorithms, and the caller says which circuit computes each.
//!
//! A line that cannot be read is never dropped in silence: it is counted, and the first of them are kept with their numbers and reasons. A request that
//! arrives before the one above it is an error of the whole log. A recording is in the order in which requests ended, and is put in that of arrival.

mod foreign;

pub use foreign::Foreign;

use crate::lines::Lines;
use crate::trace::{Request, Trace};
use bywash_core::trace::{Record, is_header, record};
use bywash_core::{DeviceSheet, Error, Result};
use bywash_policy::reload::Circuit;
use std::collections::HashMap;
use std::io::BufRead;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// How many unreadable lines are kept with their reasons.
pub const KEPT: usize = 10;

/// The time of the Common Log Format.
const CLF_TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]");

/// What a log came to.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Its requests, from time 0 on.
    pub trace: Trace,
    /// Different clients.
    pub clients: usize,
    /// The client, where there is one alone.
    pub only_client: Option<String>,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// The first of them, at most [`KEPT`]: number and reason.
    pub reasons: Vec<(u64, String)>,
    /// Requests of a recording whose algorithm no circuit computes.
    pub foreign: Foreign,
}

/// Reads a log of any of the forms above; `place` (a file name) is named in errors. The circuits are those of the sheet, by which requests are numbered.
///
/// # Errors
/// [`Error::Config`], naming file and line, for a log that cannot be read at all, is out of order, or has no request that the sheet has a circuit for.
pub fn read(lines: impl BufRead, place: &str, sheet: &DeviceSheet) -> Result<Log> {
    let mut reader =
        Reader { place, sheet, form: None, clients: HashMap::new(), begin: None, last: 0.0, recorded: Vec::new(), log: Log::default() };
    let mut lines = Lines::new(lines, place);
    while let Some((number, line)) = lines.next_line()? {
        reader.line(number, &line)?;
    }
    reader.put_recorded();
    reader.log.clients = reader.clients.len();
    reader.log.only_client = (reader.clients.len() == 1).then(|| reader.clients.into_keys().next()).flatten();
    if !reader.log.trace.is_empty() {
        return Ok(reader.log);
    }
    let first = reader.log.reasons.first().map(|(number, reason)| format!("line {number}: {reason}"));
    if reader.log.foreign.total() > 0 {
        let unreadable = first.map_or_else(String::new, |reason| format!("; other lines cannot be read: {reason}"));
        return Err(config(place.to_owned(), reader.log.foreign.none_for(sheet) + &unreadable));
    }
    let why = first.unwrap_or_else(|| if reader.form.is_some() { "a header, and nothing below it" } else { "it is empty" }.to_owned());
    Err(config(
        place.to_owned(),
        format!("no request in it ({why}); Common Log Format, TSV with a header, or what `bywash record` writes is read"),
    ))
}

/// Reads a recording: its requests in the order in which they arrived. `place` (a file name) is named in errors.
///
/// # Errors
/// [`Error::Config`], naming file and line, for one that cannot be read.
pub fn recording(lines: impl BufRead, place: &str) -> Result<Vec<Record>> {
    let (mut lines, mut records) = (Lines::new(lines, place), Vec::new());
    while let Some((number, line)) = lines.next_line()? {
        records.extend(record(&line, place, number)?);
    }
    records.sort_by_key(|record| record.arrival);
    Ok(records)
}

fn config(place: String, reason: String) -> Error {
    Error::Config { place, reason }
}

/// How lines are to be read.
enum Form {
    Common,
    /// Columns of host, time and bytes.
    Tabs([usize; 3]),
    Recording,
}

/// One line understood.
struct Entry {
    seconds: f64,
    circuit: Circuit,
    bytes: u32,
}

struct Reader<'a> {
    place: &'a str,
    sheet: &'a DeviceSheet,
    form: Option<Form>,
    clients: HashMap<String, u8>,
    /// When the first request came.
    begin: Option<f64>,
    last: f64,
    /// A recording's requests, in the order in which they ended.
    recorded: Vec<Entry>,
    log: Log,
}

impl Reader<'_> {
    fn line(&mut self, number: u64, line: &str) -> Result<()> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Some(form) = self.form.take() else {
            return self.first(number, line);
        };
        let entry = match &form {
            Form::Common => self.common(line).map(Some),
            Form::Tabs(columns) => self.tabs(line, columns).map(Some),
            Form::Recording => self.recorded(line),
        };
        let is_recording = matches!(form, Form::Recording);
        self.form = Some(form);
        match entry {
            Ok(Some(entry)) if is_recording => {
                self.recorded.push(entry);
                Ok(())
            }
            Ok(Some(entry)) => self.push(number, &entry),
            Ok(None) => Ok(()),
            Err(reason) => {
                self.log.unreadable += 1;
                if self.log.reasons.len() < KEPT {
                    self.log.reasons.push((number, reason));
                }
                Ok(())
            }
        }
    }

    /// The first line says what form the rest has.
    fn first(&mut self, number: u64, line: &str) -> Result<()> {
        if is_header(line) {
            self.form = Some(Form::Recording);
            return Ok(());
        }
        if !line.contains('\t') {
            self.form = Some(Form::Common);
            return self.line(number, line);
        }
        let names: Vec<&str> = line.split('\t').collect();
        let column = |name: &str| {
            let missing =
                || config(format!("{}, line {number}", self.place), format!("no column named '{name}' in the header of a TSV log"));
            names.iter().position(|&other| other == name).ok_or_else(missing)
        };
        self.form = Some(Form::Tabs([column("host")?, column("time")?, column("bytes")?]));
        Ok(())
    }

    fn push(&mut self, number: u64, entry: &Entry) -> Result<()> {
        let arrival = entry.seconds - *self.begin.get_or_insert(entry.seconds);
        if arrival < self.last {
            let sorted = match self.form {
                Some(Form::Tabs(_)) => "sort what is below its header by its column `time`",
                _ => {
                    "sort it first, as servers do not that stamp requests when they begin: LC_ALL=C sort -s -t ' ' -k4.9,4.12n -k4.5,4.7M -k4.2,4.3n -k4.14,4.21"
                }
            };
            let reason = format!("time: {} s before the line above; {sorted}", self.last - arrival);
            return Err(config(format!("{}, line {number}", self.place), reason));
        }
        self.last = arrival;
        self.log.trace.push(Request { arrival, circuit: entry.circuit, bytes: entry.bytes });
        Ok(())
    }

    /// The requests of a recording, in the order in which they arrived.
    fn put_recorded(&mut self) {
        self.recorded.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let begin = self.recorded.first().map_or(0.0, |entry| entry.seconds);
        for Entry { seconds, circuit, bytes } in self.recorded.drain(..) {
            self.log.trace.push(Request { arrival: seconds - begin, circuit, bytes });
        }
    }

    /// The circuit of a client: that of its number, in order of appearance.
    fn client(&mut self, host: &str) -> Circuit {
        if let Some(&circuit) = self.clients.get(host) {
            return Circuit(circuit);
        }
        let circuit = (self.clients.len() % self.sheet.circuits.len().max(1)) as u8;
        self.clients.insert(host.to_owned(), circuit);
        Circuit(circuit)
    }

    fn tabs(&mut self, line: &str, columns: &[usize; 3]) -> std::result::Result<Entry, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let field = |column: usize| fields.get(column).copied().ok_or_else(|| format!("{} columns only", fields.len()));
        let [host, time, bytes] = [field(columns[0])?, field(columns[1])?, field(columns[2])?];
        let seconds = time.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
        let seconds = seconds.ok_or_else(|| format!("time '{}' is not a number of seconds", short(time)))?;
        let bytes = size(bytes)?;
        Ok(Entry { seconds, circuit: self.client(host), bytes })
    }

    fn common(&mut self, line: &str) -> std::result::Result<Entry, String> {
        let (before, rest) = line.split_once('[').ok_or("no time in brackets")?;
        let host = host(before).ok_or("no host")?;
        let (time, rest) = rest.split_once(']').ok_or("no time in brackets")?;
        let time = OffsetDateTime::parse(time, CLF_TIME)
            .map_err(|_| format!("time '{}' is not of the form 10/Oct/2000:13:55:36 -0700", short(time)))?;
        // The request may hold anything, quotes too; after the last but one pair of them nothing but numbers is looked for.
        let after = rest.split_once('"').and_then(|(_, request)| closing(request)).ok_or("no request in quotes")?;
        let bytes = after.split_ascii_whitespace().nth(1).ok_or("no status and size after the request")?;
        let bytes = size(bytes)?;
        Ok(Entry { seconds: time.unix_timestamp() as f64, circuit: self.client(host), bytes })
    }

    fn recorded(&mut self, line: &str) -> std::result::Result<Option<Entry>, String> {
        let Record { arrival, algorithm, bytes, .. } = line.parse().map_err(|error: Error| error.to_string())?;
        let bytes = u32::try_from(bytes).map_err(|_| format!("{bytes} bytes: more than 4 GiB in one request"))?;
        let Some(place) = self.sheet.circuits.iter().position(|mode| mode.algorithm == Some(algorithm)) else {
            self.log.foreign.add(algorithm);
            return Ok(None);
        };
        Ok(Some(Entry { seconds: arrival.0 as f64 / 1e9, circuit: Circuit(place as u8), bytes }))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::trace::HEADER;

    fn log(text: &str) -> Result<Log> {
        read(text.as_bytes(), "access.log", &DeviceSheet::shipped("niwa2005").unwrap().unwrap())
    }

    fn requests(log: &Log) -> Vec<(f64, u8, u32)> {
        log.trace.iter().map(|request| (request.arrival, request.circuit.0, request.bytes)).collect()
    }

    #[test]
    fn common_log_format() {
        let log = log("a.example - frank [10/Oct/2000:13:55:36 -0700] \"GET /x HTTP/1.0\" 200 2326\n\
             b.example - - [10/Oct/2000:20:55:37 +0000] \"GET /\"quoted\" HTTP/1.0\" 304 -\n\n\
             a.example - - [10/Oct/2000:13:55:40 -0700] \"\" 400 12 \"-\" \"Browser 1.0\"\n")
        .unwrap();
        assert_eq!(requests(&log), [(0.0, 0, 2326), (1.0, 1, 0), (4.0, 0, 12)]);
        assert_eq!((log.clients, log.unreadable), (2, 0));
    }

    #[test]
    fn a_virtual_host_is_no_client() {
        let rest = "[10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5 \"-\" \"Browser\"";
        let clients = |fronts: [&str; 2]| log(&fronts.map(|front| format!("{front} {rest}\n")).concat()).unwrap();
        assert_eq!(clients(["www.example.com:443 10.0.0.1 - -", "www.example.com:443 ::1 - frank smith"]).clients, 2);
        let one = clients(["10.0.0.1 - -", "10.0.0.1 - frank"]);
        assert_eq!((one.clients, one.only_client.as_deref()), (1, Some("10.0.0.1")));
        assert_eq!(clients(["::1 - frank smith", "::1 - -"]).only_client.as_deref(), Some("::1"), "an address is no host with a port");
    }

    #[test]
    fn a_recording_of_other_algorithms_is_called_so() {
        let line = |algorithm: &str| format!("1000,1,7,{algorithm},encrypt,64,here,1000,2000\n");
        let said =
            log(&format!("{HEADER}\n{}{}{}", line("AES-128-GCM"), line("AES-256-GCM"), line("AES-256-GCM"))).unwrap_err().to_string();
        for part in ["access.log", "none of its 3 requests", "AES-256-GCM (2), AES-128-GCM (1)", "RC6-128-ECB, Camellia-128-ECB", "--sheet"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        let broken = log(&format!("{HEADER}\n{}nonsense\n", line("AES-128-GCM"))).unwrap_err().to_string();
        assert!(broken.contains("none of its 1 requests") && broken.contains("line 3"), "{broken}");
    }

    #[test]
    fn a_recording_is_read_in_the_order_of_arrival() {
        let line = |arrival: u64| format!("{arrival},1,7,AES-128-CBC,encrypt,64,here,{arrival},9000\n");
        let records = recording(format!("{HEADER}\n{}\n{}", line(2000), line(1000)).as_bytes(), "t.csv").unwrap();
        assert_eq!(records.iter().map(|record| record.arrival.0).collect::<Vec<_>>(), [1000, 2000]);
        assert!(recording(&b"x\n"[..], "t.csv").unwrap_err().to_string().contains("t.csv, line 1"));
    }

    #[test]
    fn tabs_with_a_header() {
        let log = log("host\tlogname\ttime\tbytes\nh1\t-\t807256800\t1713\nh2\t-\t807256804\t-\nh3\t-\n").unwrap();
        assert_eq!(requests(&log), [(0.0, 0, 1713), (4.0, 1, 0)]);
        assert_eq!(log.reasons, [(4, "2 columns only".to_owned())]);
    }

    #[test]
    fn recordings_by_algorithm() {
        let log = log(&format!(
            "{HEADER}\n1000,1,7,AES-128-CBC,encrypt,64,here,1000,2000\n2000,1,7,AES-256-GCM,encrypt,64,here,2000,3000\nnonsense\n"
        ))
        .unwrap();
        assert_eq!(requests(&log), [(0.0, 5, 64)]);
        assert_eq!((log.foreign.total(), log.unreadable, log.reasons[0].0), (1, 1, 4));
    }

    #[test]
    fn what_ended_last_may_have_arrived_first() {
        let line = |arrival, done| format!("{arrival},1,7,AES-128-CBC,encrypt,{done},here,{arrival},{done}\n");
        let log = log(&format!("{HEADER}\n{}{}", line(2000, 2500), line(1000, 3000))).unwrap();
        assert_eq!(requests(&log), [(0.0, 5, 3000), (1e-6, 5, 2500)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = |text: &str| log(text).unwrap_err().to_string();
        assert!(error("").contains("empty"), "{}", error(""));
        assert!(error("host\ttime\tbytes\n").contains("a header, and nothing below it"));
        assert!(error("hello\n").contains("line 1: no time in brackets"), "{}", error("hello\n"));
        assert!(error("who\ttime\tbytes\n").contains("'host'"));
        let late = error("host\ttime\tbytes\na\t5\t1\na\t4\t1\n");
        assert!(late.contains("access.log, line 3") && late.contains("sort"), "{late}");
        let bad = log("a - - [10/Oct/2000:13:55:36 -0700] \"GET /\" 200 -5\nb - - [1/2/3] \"GET /\" 200 5\nc - - [10/Oct/2000:13:55:36 -0700] \"GET /\" 200 5\n").unwrap();
        assert_eq!((bad.unreadable, bad.trace.len()), (2, 1));
        assert!(bad.reasons[0].1.contains("'-5'") && bad.reasons[1].1.contains("'1/2/3'"), "{:?}", bad.reasons);
    }
}
