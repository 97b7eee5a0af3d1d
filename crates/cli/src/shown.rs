//! Names and texts that are anybody's, as they are shown: what a terminal would obey, and what would begin a line of its own, is written out.

use std::path::Path;

/// How something of somebody else's is shown.
pub(crate) trait Shown {
    /// In one line, read from left to right.
    fn shown(&self) -> String;
}

impl Shown for str {
    fn shown(&self) -> String {
        let is_turned = |letter: char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
        escaped(self, |letter| letter.is_control() || is_turned(letter))
    }
}

impl Shown for Path {
    fn shown(&self) -> String {
        self.to_string_lossy().shown()
    }
}

/// A text of several lines, of which parts may be anybody's.
pub(crate) fn lines_shown(text: &str) -> String {
    escaped(text, |letter| letter.is_control() && letter != '\n' && letter != '\t')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_escaped(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_line() {
        assert_eq!(Path::new("caf\u{e9}\nbywash: good\x1b[2K\u{202e}").shown(), "caf\u{e9}\\nbywash: good\\u{1b}[2K\\u{202e}");
        assert_eq!(lines_shown("one\n\ttwo\x07"), "one\n\ttwo\\u{7}");
    }
}
