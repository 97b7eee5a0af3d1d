//! Texts that the command reads: small ones as a whole, traces line by line, and neither without a bound. One that cannot be read exits alike, whatever it is for.

use crate::failure::{Exit, Failure};
use bywash_sim::lines::STDIN;
use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read};
use std::path::Path;

/// The longest text that is read as a whole, in bytes; a sheet or a broker's settings have some KiB.
const BYTES_MAX: u64 = 16 << 20;

/// A sheet, settings or the like.
pub(crate) fn whole(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > BYTES_MAX {
        let reason = format!("it has more than {} MiB", BYTES_MAX >> 20);
        return Err(unreadable(path, &Error::new(ErrorKind::InvalidData, reason)));
    }
    String::from_utf8(bytes).map_err(|_| unreadable(path, &Error::new(ErrorKind::InvalidData, "it is no text (UTF-8)")))
}

/// A trace, `-` for stdin, and its name in errors.
pub(crate) fn trace(path: &Path) -> Result<(Box<dyn BufRead>, String), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(std::io::stdin().lock()), STDIN.to_owned()));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok((Box::new(BufReader::new(file)), path.display().to_string()))
}

/// Of a trace at a place: the file's name alone.
pub(crate) fn name(path: &Path, place: &str) -> String {
    path.file_name().filter(|_| place != STDIN).map_or_else(|| place.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn unreadable(path: &Path, error: &Error) -> Failure {
    let failure = Failure::file("read", path, error);
    if failure.exit == Exit::Failed { failure.exiting(Exit::Config) } else { failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_pipes_are_read() {
        let failure = whole(Path::new("/dev/zero")).unwrap_err();
        assert!(failure.exit == Exit::Config && failure.message.contains("more than 16 MiB"), "{failure}");
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "text")
        });
        assert_eq!(whole(&pipe).unwrap(), "text");
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_one_failure_whatever_it_is_for() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("nothing");
        assert_eq!((whole(&missing).unwrap_err().exit, trace(&missing).err().unwrap().exit), (Exit::Config, Exit::Config));
        std::fs::write(&missing, b"\xff").unwrap();
        assert!(whole(&missing).unwrap_err().message.contains("no text"));
        assert_eq!(whole(folder.path()).unwrap_err().exit, Exit::Config, "a folder");
    }
}
