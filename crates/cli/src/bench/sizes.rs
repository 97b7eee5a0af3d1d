//! Sizes as they are given on the command line: `4096`, `64,1K,16K`, `16..16K`, `16..16K*2`, `64:2:1M`.

use bywash_measure::plot;
use std::str::FromStr;

/// More sizes than this make a table that nobody reads.
const SIZES_MAX: usize = 64;
/// The largest size, in bytes.
const BYTES_MAX: usize = 1 << 30;
/// From one size of a range to the next, if nothing else is said.
const FACTOR: usize = 4;

/// A list of sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sizes = text.split(',').map(item).collect::<Result<Vec<_>, _>>()?.concat();
        if sizes.len() > SIZES_MAX {
            return Err(format!("{} sizes; at most {SIZES_MAX}", sizes.len()));
        }
        Ok(Self(sizes))
    }
}

/// A size or a range.
fn item(text: &str) -> Result<Vec<usize>, String> {
    if let Some((from, to)) = text.split_once("..") {
        let (to, factor) = to.split_once('*').map_or((to, None), |(to, factor)| (to, Some(factor)));
        return range(size(from)?, factor.map_or(Ok(FACTOR), whole)?, size(to)?);
    }
    match text.split(':').collect::<Vec<_>>()[..] {
        [one] => Ok(vec![size(one)?]),
        [from, factor, to] => range(size(from)?, whole(factor)?, size(to)?),
        _ => Err("expected a size, FROM..TO, FROM..TO*FACTOR, FROM:FACTOR:TO, or several of them with commas between".into()),
    }
}

fn whole(factor: &str) -> Result<usize, String> {
    factor.parse().map_err(|_| format!("'{factor}' is no whole factor"))
}

fn range(from: usize, factor: usize, to: usize) -> Result<Vec<usize>, String> {
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
        _ => return Err(format!("'{text}' is no size; units are K, M, G (powers of 1024)")),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is no size"))?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes <= BYTES_MAX).ok_or_else(|| format!("'{text}' is more than 1G"))
}

/// A size as people write it: `64`, `1000`, `16K`, `1M`.
pub(crate) fn show(bytes: usize) -> String {
    let round = bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10);
    if round && bytes.is_power_of_two() { plot::size(bytes as f64) } else { bytes.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let of = |text: &str| text.parse::<Sizes>().unwrap().0;
        assert_eq!(of("4096"), [4096]);
        assert_eq!(of("0,64,1k,2M"), [0, 64, 1024, 2 << 20]);
        assert_eq!(of("16..16K"), [16, 64, 256, 1024, 4096, 16384]);
        assert_eq!(of("16..100*2"), [16, 32, 64]);
        assert_eq!(of("13,64..256,1M"), [13, 64, 256, 1 << 20]);
        assert_eq!(of("64:4:1k"), [64, 256, 1024]);
        assert_eq!(of("64:2:1M").len(), 15);
        assert_eq!(of("100:3:1000"), [100, 300, 900]);
    }

    #[test]
    fn nonsense_is_refused_with_what_is_expected() {
        let wrong = [
            "",
            "x",
            "64:2",
            "64:1:128",
            "0:2:8",
            "128:2:64",
            "2G",
            "1q",
            "64:2:x",
            "99999999999999999999",
            "16..",
            "..16",
            "64..16",
            "16..64*1",
        ];
        for text in wrong {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
        assert!("1:2".parse::<Sizes>().unwrap_err().contains("FROM..TO"));
        assert!("1..1M*2,1..1M*2,1..1M*2,1..1M*2".parse::<Sizes>().unwrap_err().contains("at most 64"));
    }

    #[test]
    fn shown_as_they_are_written() {
        assert_eq!([64, 1000, 1024, 1536, 16 << 10, 1 << 20].map(show), ["64", "1000", "1K", "1536", "16K", "1M"]);
    }
}
