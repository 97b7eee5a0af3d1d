//! Published vectors: `#` comments, `[section]`, `name = value` in hexadecimal, a blank line between records.

/// One case, by the names of its fields.
pub(crate) struct Record {
    /// For messages of failed tests.
    pub(crate) line: usize,
    fields: Vec<(&'static str, Vec<u8>)>,
}

impl Record {
    /// A field that the record must have.
    pub(crate) fn get(&self, name: &str) -> &[u8] {
        self.find(name).unwrap_or_else(|| panic!("line {}: no {name}", self.line))
    }

    /// A field that it may have.
    pub(crate) fn find(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_slice())
    }
}

/// All records of a file; whatever is not understood fails the test.
pub(crate) fn records(text: &'static str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut open: Option<Record> = None;
    for (index, line) in text.lines().enumerate().map(|(index, line)| (index, line.trim())) {
        if line.is_empty() {
            records.extend(open.take());
        } else if !line.starts_with(['#', '[']) {
            let (name, value) = line.split_once(" = ").unwrap_or_else(|| panic!("line {}: {line}", index + 1));
            let record = open.get_or_insert_with(|| Record { line: index + 1, fields: Vec::new() });
            record.fields.push((name, hex(value)));
        }
    }
    records.extend(open);
    assert!(records.len() > 1, "a file of vectors has some");
    records
}

fn hex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits")).collect()
}
