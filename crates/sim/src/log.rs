//! Requests of real machines: web servers' logs and the broker's own recordings.
//!
//! | form | told by |
//! |---|---|
//! | Common Log Format and the combined one: `host ident user [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326 ...` | anything else |
//! | the same with the virtual host first, as Apache's `vhost_combined`: `www.example.com:443 host ident user [...` | a line's fourth word before the time, and a port |
//! | tab-separated with a header line that names at least `host`, `time` (seconds) and `bytes` | a tab in the first line |
//! | what `bywash record` writes | its header line |
//!
//! A web log does not say which cipher a client uses, so for [`read`] the n-th new client gets circuit n modulo their number, as niwa2005 has it (s6). Recordings name
//! their algorithms, and the sheet says which circuit computes each. [`requests`] has operations, as engines with cost sheets compute them.
//!
//! A line that cannot be read is never dropped in silence: it is counted, and the first of them are kept with their numbers and reasons. A request that
//! arrives before the one above it is an error of the whole log. A recording is in the order in which requests ended, and is put in that of arrival; several of them in one file
//! are one after the other.

mod foreign;
mod form;

pub use foreign::Foreign;

use crate::lines::{Line, Lines, RECORDS_MAX, too_many};
use crate::trace::{Request, Trace};
use bywash_core::trace::{self, Record, at_line};
use bywash_core::{DeviceSheet, Error, Result};
use bywash_policy::reload::Circuit;
use form::{Reader, Said};
use std::io::BufRead;

/// How many unreadable lines are kept with their reasons.
pub const KEPT: usize = 10;

/// What a log came to.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Its requests, from time 0 on.
    pub trace: Trace,
    /// Different clients.
    pub clients: usize,
    /// The client, where there is one alone.
    pub only_client: Option<String>,
    /// What is not among its requests, though it was asked.
    pub missing: Missing,
    /// Requests of a recording whose algorithm no circuit computes.
    pub foreign: Foreign,
}

/// What a log has no request for, though something was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Lines that could not be read.
    pub unreadable: u64,
    /// The first of them, at most [`KEPT`]: number and reason.
    pub reasons: Vec<(u64, String)>,
    /// Requests that a recording lost, by its own word.
    pub lost: u64,
    /// Whether it does not say in how many calls a message came: it is of before that was recorded.
    pub calls: bool,
}

impl Missing {
    /// A line that could not be read.
    fn note(&mut self, number: u64, reason: String) {
        self.unreadable += 1;
        if self.reasons.len() < KEPT {
            self.reasons.push((number, reason));
        }
    }

    /// The last line, which no line feed ends.
    fn note_cut(&mut self, number: u64) {
        self.note(number, "it is cut: nothing ends it, as when what wrote it was killed or its disk was full".to_owned());
    }

    /// Why the first of them could not be read.
    fn first(&self) -> Option<String> {
        self.reasons.first().map(|(number, reason)| format!("line {number}: {reason}"))
    }
}

/// Reads a log of any of the forms above; `place` (a file name) is named in errors. The circuits are those of the sheet, by which requests are numbered.
///
/// # Errors
/// [`Error::Config`], naming file and line, for a log that cannot be read at all, is out of order or too long, or has no request that the sheet has a circuit for.
pub fn read(lines: impl BufRead, place: &str, sheet: &DeviceSheet) -> Result<Log> {
    let (mut lines, mut reader) = (Lines::new(lines, place), Reader::new(place));
    let (mut log, mut recorded) = (Log::default(), Vec::new());
    let circuits = sheet.circuits.len().max(1) as u32;
    while let Some((number, said)) = reader.next_said(&mut lines)? {
        match said {
            Said::Answer(answer) => {
                let circuit = Circuit((answer.client % circuits) as u8);
                log.trace.push(Request { arrival: answer.arrival, circuit, bytes: answer.bytes });
            }
            Said::Record(Record { arrival, algorithm, bytes, .. }) => {
                let circuit = sheet.circuits.iter().position(|mode| mode.algorithm == Some(algorithm));
                match (u32::try_from(bytes), circuit) {
                    (Err(_), _) => reader.missing.note(number, format!("{bytes} bytes: more than 4 GiB in one request")),
                    (Ok(_), None) => log.foreign.add(algorithm),
                    (Ok(bytes), Some(circuit)) => {
                        recorded.push(Request { arrival: arrival.0 as f64 / 1e9, circuit: Circuit(circuit as u8), bytes });
                    }
                }
            }
        }
    }
    put_in_order(&mut log.trace, recorded);
    // Circuits are loaded for requests, in however many calls they come.
    log.missing = Missing { calls: false, ..std::mem::take(&mut reader.missing) };
    if log.trace.is_empty() {
        return Err(config(place.to_owned(), nothing_for(sheet, &log, reader.nothing())));
    }
    log.clients = reader.clients.len();
    log.only_client = reader.clients.into_keys().next().filter(|_| log.clients == 1);
    Ok(log)
}

/// The requests of a recording, in the order in which they arrived, from time 0 on.
fn put_in_order(trace: &mut Trace, mut recorded: Vec<Request>) {
    recorded.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
    let begin = recorded.first().map_or(0.0, |request| request.arrival);
    recorded.into_iter().for_each(|request| trace.push(Request { arrival: request.arrival - begin, ..request }));
}

/// What to say of a log of which nothing can be served.
fn nothing_for(sheet: &DeviceSheet, log: &Log, empty: &str) -> String {
    let first = log.missing.first();
    if log.foreign.total() > 0 {
        let unreadable = first.map_or_else(String::new, |reason| format!("; other lines cannot be read: {reason}"));
        return log.foreign.none_for(sheet) + &unreadable;
    }
    no_request(first, empty)
}

fn no_request(first: Option<String>, empty: &str) -> String {
    let why = first.unwrap_or_else(|| empty.to_owned());
    format!("no request in it ({why}); Common Log Format, TSV with a header, or what `bywash record` writes is read")
}

/// Requests of a log, each with all that is known of it.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// In the order in which they arrived.
    pub records: Vec<Record>,
    /// Different clients of a web server's log; none if it is a recording.
    pub clients: Option<usize>,
    /// What the log lacks.
    pub missing: Missing,
}

/// Reads a log of any form as operations. Of a web server's an answer is a message of AES-128-GCM, which browsers ask for first, in a call for each record of TLS; when a client had it is not
/// known. `place` (a file name) is named in errors.
///
/// # Errors
/// [`Error::Config`], naming file and line, for a log that cannot be read at all, is out of order or too long, or has no request.
pub fn requests(lines: impl BufRead, place: &str) -> Result<Requests> {
    let (mut lines, mut reader, mut records) = (Lines::new(lines, place), Reader::new(place), Vec::new());
    while let Some((number, said)) = reader.next_said(&mut lines)? {
        let record = match said {
            Said::Record(record) => record,
            Said::Answer(answer) => answer.encrypted(),
        };
        keep(&mut records, record, place, number)?;
    }
    let missing = std::mem::take(&mut reader.missing);
    if records.is_empty() {
        return Err(config(place.to_owned(), no_request(missing.first(), reader.nothing())));
    }
    records.sort_by_key(|record| record.arrival);
    Ok(Requests { records, clients: (!reader.clients.is_empty()).then_some(reader.clients.len()), missing })
}

/// One more of those that are kept until they are in order, unless it is one too many.
fn keep(records: &mut Vec<Record>, record: Record, place: &str, number: u64) -> Result<()> {
    if records.len() as u64 >= RECORDS_MAX {
        return Err(too_many("requests", RECORDS_MAX, place, number));
    }
    records.push(record);
    Ok(())
}

/// Reads a recording, of which every line has to be understood, but for a last one that is cut. `place` (a file name) is named in errors.
///
/// # Errors
/// [`Error::Config`], naming file and line, for one that cannot be read or is too long.
pub fn recording(lines: impl BufRead, place: &str) -> Result<Requests> {
    let (mut lines, mut records, mut missing) = (Lines::new(lines, place), Vec::new(), Missing::default());
    let mut reader = trace::Reader::default();
    while let Some(Line { number, text, is_cut }) = lines.next_line()? {
        if number > 1 && is_cut {
            missing.note_cut(number);
            continue;
        }
        let bad = |error: Error| match number {
            1 if !trace::ends_in_header(&text) => {
                config(place.to_owned(), "no recording, whose first line names its columns; `bywash record` writes them".to_owned())
            }
            _ => at_line(&error, place, number),
        };
        if let Some(record) = reader.read(&text).map_err(bad)? {
            keep(&mut records, record, place, number)?;
        }
    }
    (missing.lost, missing.calls) = (reader.lost(), reader.lacks_calls());
    records.sort_by_key(|record| record.arrival);
    Ok(Requests { records, clients: None, missing })
}

fn config(place: String, reason: String) -> Error {
    Error::Config { place, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_core::Algorithm;
    use bywash_core::trace::HEADER;

    /// What a request of a program's own place has behind its end.
    const TAIL: &str = ",,,,,,,,,,,1";

    fn log(text: &str) -> Result<Log> {
        read(text.as_bytes(), "access.log", &DeviceSheet::shipped("niwa2005").unwrap().unwrap())
    }

    fn served(log: &Log) -> Vec<(f64, u8, u32)> {
        log.trace.iter().map(|request| (request.arrival, request.circuit.0, request.bytes)).collect()
    }

    #[test]
    fn common_log_format() {
        let log = log("a.example - frank [10/Oct/2000:13:55:36 -0700] \"GET /x HTTP/1.0\" 200 2326\n\
             b.example - - [10/Oct/2000:20:55:37 +0000] \"GET /\"quoted\" HTTP/1.0\" 304 -\n\n\
             a.example - - [10/Oct/2000:13:55:40 -0700] \"\" 400 12 \"-\" \"Browser 1.0\"\n")
        .unwrap();
        assert_eq!(served(&log), [(0.0, 0, 2326), (1.0, 1, 0), (4.0, 0, 12)]);
        assert_eq!((log.clients, log.missing.unreadable), (2, 0));
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
        let line = |algorithm: &str| format!("1000,1,7,{algorithm},encrypt,64,here,1000,2000{TAIL}\n");
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
        let line = |arrival: u64| format!("{arrival},1,7,AES-128-CBC,encrypt,64,here,{arrival},9000{TAIL}\n");
        let text = format!("{HEADER}\n{}\n{}# lost: 3\n", line(2000), line(1000));
        let Requests { records, missing, .. } = recording(text.as_bytes(), "t.csv").unwrap();
        assert_eq!((missing.lost, log(&text).unwrap().missing), (3, missing));
        assert_eq!(records.iter().map(|record| record.arrival.0).collect::<Vec<_>>(), [1000, 2000]);
        let said = |text: &str| recording(text.as_bytes(), "t.csv").unwrap_err().to_string();
        assert!(said("x\n").contains("t.csv: no recording"), "{}", said("x\n"));
        assert!(said(&format!("{HEADER}\nx\n")).contains("t.csv, line 2"));
        // Without its header, and of a release that knew nothing of calls.
        assert_eq!(requests(line(1000).as_bytes(), "t.csv").unwrap().clients, None);
        let old = HEADER.split(',').take(9).collect::<Vec<_>>().join(",");
        let of_old = requests(format!("{old}\n1000,1,7,AES-128-CBC,encrypt,64,here,1000,9000\n").as_bytes(), "t.csv").unwrap();
        assert!(of_old.missing.calls && !requests(text.as_bytes(), "t.csv").unwrap().missing.calls);
    }

    #[test]
    fn every_form_has_requests() {
        let web = "a - - [10/Oct/2000:13:55:36 -0700] \"GET /\" 200 40000\nx\nb - - [10/Oct/2000:13:55:38 -0700] \"GET /\" 304 -\n";
        let found = requests(web.as_bytes(), "access.log").unwrap();
        let of = |record: &Record| (record.arrival.0, record.client, record.algorithm, record.bytes, record.calls);
        let all: Vec<_> = found.records.iter().map(of).collect();
        assert_eq!(all, [(0, 0, Algorithm::Aes128Gcm, 40_000, 3), (2_000_000_000, 1, Algorithm::Aes128Gcm, 0, 1)]);
        assert_eq!((found.clients, found.missing.unreadable), (Some(2), 1));
        let line = |arrival: u64| format!("{arrival},1,7,SHA-256,compute,64,here,{arrival},9000{TAIL}\n");
        let text = format!("{HEADER}\n{}nonsense\n{}# lost: 2\n{HEADER}\n", line(2000), line(1000));
        let found = requests(text.as_bytes(), "t.csv").unwrap();
        assert_eq!(found.records.iter().map(|record| record.arrival.0).collect::<Vec<_>>(), [1000, 2000]);
        assert_eq!((found.clients, found.missing.unreadable, found.missing.lost), (None, 1, 2));
        assert!(requests(HEADER.as_bytes(), "t.csv").unwrap_err().to_string().contains("t.csv: no request in it (a header"));
    }

    #[test]
    fn recordings_one_after_the_other_are_read_so() {
        let line = |arrival: u64, client: u32| format!("{arrival},{client},7,AES-128-CBC,encrypt,64,here,{arrival},9000{TAIL}\n");
        let one = format!("{HEADER}\n{}{}", line(1000, 0), line(2000, 1));
        let twice = format!("{one}{one}");
        for found in [recording(twice.as_bytes(), "t.csv").unwrap(), requests(twice.as_bytes(), "t.csv").unwrap()] {
            let of = |record: &Record| (record.arrival.0, record.done.0, record.client);
            let all: Vec<_> = found.records.iter().map(of).collect();
            assert_eq!(all, [(1000, 9000, 0), (2000, 9000, 1), (10_000, 18_000, 2), (11_000, 18_000, 3)]);
        }
        assert_eq!(served(&log(&twice).unwrap()), [(0.0, 5, 64), (1e-6, 5, 64), (1e-5 - 1e-6, 5, 64), (1.1e-5 - 1e-6, 5, 64)]);
    }

    #[test]
    fn a_line_that_is_cut_is_counted_and_no_request() {
        let line = format!("1000,1,7,AES-128-CBC,encrypt,64,here,1000,9000{TAIL}\n");
        let text = format!("{HEADER}\n{line}");
        for part in [&line[..line.len() - 1], "1000,1,7,AES-128-CBC,encrypt,64,here,1000,90", "1000,1"] {
            let cut = format!("{text}{part}");
            let (strict, any) = (recording(cut.as_bytes(), "t.csv").unwrap(), requests(cut.as_bytes(), "t.csv").unwrap());
            for (requests, missing) in
                [(strict.records.len(), strict.missing), (any.records.len(), any.missing), (1, log(&cut).unwrap().missing)]
            {
                assert_eq!((requests, missing.unreadable, missing.reasons[0].0), (1, 1, 3), "{part}");
                assert!(missing.reasons[0].1.contains("it is cut"), "{missing:?}");
            }
        }
        // Of a recording that has not even its header another one is left.
        let behind = format!("arrival_ns,cli{text}");
        let found = requests(behind.as_bytes(), "t.csv").unwrap();
        assert_eq!((found.records.len(), found.missing.unreadable), (1, 1));
        let said = recording(behind.as_bytes(), "t.csv").unwrap_err().to_string();
        assert!(said.contains("t.csv, line 1") && said.contains("another recording begins"), "{said}");
        // It is part of a line whatever comes after it.
        let said = recording(format!("{text}1000,1,7,AES-128-CBC,encrypt,64,here,1000,90\n").as_bytes(), "t.csv").unwrap_err().to_string();
        assert!(said.contains("t.csv, line 3") && said.contains("9 fields, where the header says 20"), "{said}");
    }

    #[test]
    fn tabs_with_a_header() {
        let log = log("host\tlogname\ttime\tbytes\nh1\t-\t807256800\t1713\nh2\t-\t807256804\t-\nh3\t-\n").unwrap();
        assert_eq!(served(&log), [(0.0, 0, 1713), (4.0, 1, 0)]);
        assert_eq!(log.missing.reasons, [(4, "2 columns only".to_owned())]);
    }

    #[test]
    fn recordings_by_algorithm() {
        let log = log(&format!(
            "{HEADER}\n1000,1,7,AES-128-CBC,encrypt,64,here,1000,2000{TAIL}\n2000,1,7,AES-256-GCM,encrypt,64,here,2000,3000{TAIL}\nnonsense\n"
        ))
        .unwrap();
        assert_eq!(served(&log), [(0.0, 5, 64)]);
        assert_eq!((log.foreign.total(), log.missing.unreadable, log.missing.reasons[0].0), (1, 1, 4));
    }

    #[test]
    fn what_ended_last_may_have_arrived_first() {
        let line = |arrival, done| format!("{arrival},1,7,AES-128-CBC,encrypt,{done},here,{arrival},{done}{TAIL}\n");
        let log = log(&format!("{HEADER}\n{}{}", line(2000, 2500), line(1000, 3000))).unwrap();
        assert_eq!(served(&log), [(0.0, 5, 3000), (1e-6, 5, 2500)]);
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
        assert_eq!((bad.missing.unreadable, bad.trace.len()), (2, 1));
        assert!(bad.missing.reasons[0].1.contains("'-5'") && bad.missing.reasons[1].1.contains("'1/2/3'"), "{:?}", bad.missing.reasons);
    }
}
