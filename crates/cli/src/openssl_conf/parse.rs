//! Reads a configuration file as OpenSSL 3 does (`config(5)`, `crypto/conf/conf_def.c`): sections that may be reopened, later entries
//! that replace earlier ones, quotes, escapes, variables, continued lines, `.include` of files and folders, `.pragma`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// How deep files may include each other; OpenSSL itself has no bound and dies of a loop.
const INCLUDES_MAX: usize = 16;

/// The section entries belong to before the first header, and where variables are looked for last.
pub(crate) const DEFAULT_SECTION: &str = "default";

/// The entries of a section in the order in which OpenSSL goes through them.
type Entries = Vec<(String, String)>;

/// A file as read, variables expanded, includes followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conf {
    sections: BTreeMap<String, Entries>,
}

impl Conf {
    /// The value of an entry of exactly this section.
    pub(crate) fn get(&self, section: &str, name: &str) -> Option<&str> {
        self.section(section)?.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The entries of a section; `None` if there is no such section.
    pub(crate) fn section(&self, section: &str) -> Option<&[(String, String)]> {
        self.sections.get(section).map(Vec::as_slice)
    }

    /// A later entry replaces an earlier one and moves to the end, as in OpenSSL.
    fn set(&mut self, section: &str, name: &str, value: String) {
        let entries = self.sections.entry(section.to_owned()).or_default();
        entries.retain(|(key, _)| key != name);
        entries.push((name.to_owned(), value));
    }
}

/// A file that OpenSSL would not accept either.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}, line {line}: {reason}", file.display())]
pub(crate) struct ParseError {
    /// Which file.
    pub(crate) file: PathBuf,
    /// Where in it.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) reason: String,
}

/// Where text and variables come from: the file system and the environment, or a test's table.
pub(crate) trait Source {
    /// The text of a file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// The files of a folder that `.include` of it takes, sorted; `None` if the path is no folder.
    fn list(&self, path: &Path) -> Option<Vec<PathBuf>>;
    /// A variable of the environment.
    fn env(&self, name: &str) -> Option<String>;
}

/// The real one.
pub(crate) struct System;

impl Source for System {
    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &Path) -> Option<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "cnf" || end == "conf"));
        files.sort();
        Some(files)
    }

    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Reads `text`, which came from `file`.
pub(crate) fn parse(file: &Path, text: &str, source: &dyn Source) -> Result<Conf, ParseError> {
    let mut reader = Reader {
        source,
        conf: Conf::default(),
        section: DEFAULT_SECTION.to_owned(),
        dollar_in_names: false,
        include_dir: source.env("OPENSSL_CONF_INCLUDE").map(PathBuf::from),
    };
    reader.conf.sections.entry(DEFAULT_SECTION.to_owned()).or_default();
    reader.file(file, text, 0)?;
    Ok(reader.conf)
}

struct Reader<'a> {
    source: &'a dyn Source,
    conf: Conf,
    section: String,
    dollar_in_names: bool,
    include_dir: Option<PathBuf>,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path, text: &str, depth: usize) -> Result<(), ParseError> {
        for (line, content) in logical_lines(text) {
            let fail = |reason: String| ParseError { file: file.to_owned(), line, reason };
            match statement(&content).map_err(fail)? {
                Statement::Nothing => {}
                Statement::Section(name) => self.open_section(name),
                Statement::Pragma(text) => self.pragma(text),
                Statement::Include(text) => {
                    let path = self.expand(text).map_err(fail)?;
                    if depth == INCLUDES_MAX {
                        return Err(fail(format!("files include each other more than {INCLUDES_MAX} deep")));
                    }
                    self.include(&path, depth + 1)?;
                }
                Statement::Entry { section, name, value } => {
                    let value = self.expand(value).map_err(fail)?;
                    let section = section.map_or_else(|| self.section.clone(), str::to_owned);
                    self.conf.set(&section, name, value);
                }
            }
        }
        Ok(())
    }

    fn open_section(&mut self, name: &str) {
        self.section = name.to_owned();
        self.conf.sections.entry(name.to_owned()).or_default();
    }

    fn pragma(&mut self, text: &str) {
        let Some((name, value)) = text.split_once(':') else { return };
        match name.trim() {
            "dollarid" => self.dollar_in_names = matches!(value.trim(), "on" | "true"),
            "includedir" => self.include_dir = Some(PathBuf::from(value.trim())),
            _ => {}
        }
    }

    /// OpenSSL passes over an included file that is not there; so do we.
    fn include(&mut self, path: &str, depth: usize) -> Result<(), ParseError> {
        let path = self.include_dir.as_ref().map_or_else(|| PathBuf::from(path), |folder| folder.join(path));
        let files = self.source.list(&path).unwrap_or_else(|| vec![path]);
        for file in files {
            if let Ok(text) = self.source.read(&file) {
                self.file(&file, &text, depth)?;
            }
        }
        Ok(())
    }

    /// Takes quotes and escapes out of a value and puts variables in.
    fn expand(&self, raw: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = raw.chars();
        while let Some(next) = rest.next() {
            match next {
                '"' | '\'' | '`' => quoted(next, &mut rest, &mut out),
                '\\' => out.extend(rest.next().map(unescape)),
                '$' if !self.dollar_in_names || rest.as_str().starts_with(['{', '(']) => {
                    let (value, after) = self.variable(rest.as_str())?;
                    out.push_str(&value);
                    rest = after.chars();
                }
                other => out.push(other),
            }
        }
        Ok(out)
    }

    /// `name`, `section::name`, in braces or not; gives the value and what follows.
    fn variable<'t>(&self, text: &'t str) -> Result<(String, &'t str), String> {
        let close = text.chars().next().and_then(|open| match open {
            '{' => Some('}'),
            '(' => Some(')'),
            _ => None,
        });
        let body = if close.is_some() { &text[1..] } else { text };
        let (first, mut after) = word(body);
        let (mut section, mut name) = (self.section.as_str(), first);
        if let Some(rest) = after.strip_prefix("::") {
            section = first;
            (name, after) = word(rest);
        }
        if let Some(close) = close {
            after = after.strip_prefix(close).ok_or_else(|| format!("no closing '{close}' after variable {name}"))?;
        }
        let value = self.conf.get(section, name).map(str::to_owned);
        let value = value.or_else(|| if section == "ENV" { self.source.env(name) } else { None });
        let value = value.or_else(|| self.conf.get(DEFAULT_SECTION, name).map(str::to_owned));
        value.map(|value| (value, after)).ok_or_else(|| format!("variable {section}::{name} has no value"))
    }
}

/// Splits after the letters, digits and underscores at the start.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len()))
}

fn quoted(quote: char, rest: &mut core::str::Chars<'_>, out: &mut String) {
    while let Some(next) = rest.next() {
        match next {
            _ if next == quote => return,
            '\\' => out.extend(rest.next()),
            other => out.push(other),
        }
    }
}

fn unescape(escaped: char) -> char {
    match escaped {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        other => other,
    }
}

/// Lines with the continued ones joined (`\` at the end), each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (index, line) in text.lines().enumerate() {
        let escapes = line.bytes().rev().take_while(|&byte| byte == b'\\').count();
        let open = escapes % 2 == 1;
        let content = if open { &line[..line.len() - 1] } else { line };
        match lines.last_mut() {
            Some((_, before)) if continued => before.push_str(content),
            _ => lines.push((index + 1, content.to_owned())),
        }
        continued = open;
    }
    lines
}

enum Statement<'a> {
    Nothing,
    Section(&'a str),
    Pragma(&'a str),
    Include(&'a str),
    Entry { section: Option<&'a str>, name: &'a str, value: &'a str },
}

fn statement(line: &str) -> Result<Statement<'_>, String> {
    let line = line[..comment_start(line)].trim();
    if line.is_empty() {
        return Ok(Statement::Nothing);
    }
    if let Some(rest) = line.strip_prefix('[') {
        let name = rest.split_once(']').ok_or("no closing ']'")?.0;
        return Ok(Statement::Section(name.trim()));
    }
    if let Some(rest) = directive(line, ".include") {
        return Ok(Statement::Include(rest));
    }
    if let Some(rest) = directive(line, ".pragma") {
        return Ok(Statement::Pragma(rest));
    }
    let (left, value) = line.split_once('=').ok_or("no '=' between name and value")?;
    let (section, name) = match left.split_once("::") {
        Some((section, name)) => (Some(section.trim()), name.trim()),
        None => (None, left.trim()),
    };
    Ok(Statement::Entry { section, name, value: value.trim() })
}

fn directive<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    if !rest.starts_with([' ', '\t', '=']) {
        return None;
    }
    let rest = rest.trim_start();
    Some(rest.strip_prefix('=').unwrap_or(rest).trim())
}

/// Where a comment begins: at a `#` neither quoted nor escaped.
fn comment_start(line: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, next) in line.char_indices() {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\'' | '`' if quote == Some(next) => quote = None,
            '"' | '\'' | '`' if quote.is_none() => quote = Some(next),
            '#' if quote.is_none() => return at,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests;
