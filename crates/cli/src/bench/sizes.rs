//! Sizes as they are given on the command line: `4096`, `64,1k,16k`, `64:2:1M`.

use std::str::FromStr;

/// More sizes than this make a table that nobody reads.
const SIZES_MAX: usize = 64;
/// The largest size, in bytes.
const BYTES_MAX: usize = 1 << 30;

/// A list of sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sizes = match text.split(':').collect::<Vec<_>>()[..] {
            [list] => list.split(',').map(size).collect::<Result<Vec<_>, _>>()?,
            [from, factor, to] => range(size(from)?, factor, size(to)?)?,
            _ => return Err("expected a size, sizes with commas between, or FROM:FACTOR:TO".into()),
        };
        if sizes.len() > SIZES_MAX {
            return Err(format!("{} sizes; at most {SIZES_MAX}", sizes.len()));
        }
        Ok(Self(sizes))
    }
}

fn range(from: usize, factor: &str, to: usize) -> Result<Vec<usize>, String> {
    let factor: usize = factor.parse().map_err(|_| format!("'{factor}' is no whole factor"))?;
    if factor < 2 || from == 0 || from > to {
        return Err("a range needs a factor of 2 or more and 0 < FROM <= TO".into());
    }
    Ok(core::iter::successors(Some(from), |&bytes| bytes.checked_mul(factor)).take_while(|&bytes| bytes <= to).collect())
}

fn size(text: &str) -> Result<usize, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err(format!("'{text}' is no size; units are k, M, G (powers of 1024)")),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is no size"))?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes <= BYTES_MAX).ok_or_else(|| format!("'{text}' is more than 1G"))
}

/// A size as people write it: `64`, `16k`, `1M`.
pub(crate) fn show(bytes: usize) -> String {
    [(30, "G"), (20, "M"), (10, "k")]
        .into_iter()
        .find(|&(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift))
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let of = |text: &str| text.parse::<Sizes>().unwrap().0;
        assert_eq!(of("4096"), [4096]);
        assert_eq!(of("0,64,1k,2M"), [0, 64, 1024, 2 << 20]);
        assert_eq!(of("64:4:1k"), [64, 256, 1024]);
        assert_eq!(of("64:2:1M").len(), 15);
        assert_eq!(of("100:3:1000"), [100, 300, 900]);
    }

    #[test]
    fn nonsense_is_refused_with_what_is_expected() {
        for text in ["", "x", "64:2", "64:1:128", "0:2:8", "128:2:64", "2G", "1q", "64:2:x", "99999999999999999999"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
        assert!("1:2".parse::<Sizes>().unwrap_err().contains("FROM:FACTOR:TO"));
    }

    #[test]
    fn shown_as_they_are_written() {
        assert_eq!([64, 1000, 1024, 16 << 10, 1 << 20].map(show), ["64", "1000", "1k", "16k", "1M"]);
    }
}
