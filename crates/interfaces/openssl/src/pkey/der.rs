//! ECDSA signatures on P-256 between `r || s` and DER (RFC 3279 s2.2.3: `SEQUENCE { INTEGER r, INTEGER s }`).

/// Longest DER form: two integers of 33 bytes.
pub(super) const LENGTH_MAX: usize = 72;

/// One `INTEGER`: no leading zero but the one that keeps it positive.
fn integer(number: &[u8], out: &mut Vec<u8>) {
    let first = number.iter().position(|&byte| byte != 0).unwrap_or(number.len().saturating_sub(1));
    let digits = &number[first..];
    let sign = digits.first().is_none_or(|byte| byte & 0x80 != 0);
    out.extend_from_slice(&[2, (digits.len() + usize::from(sign)) as u8]);
    if sign {
        out.push(0);
    }
    out.extend_from_slice(digits);
}

/// DER of `r || s`. A signature is public, so its length may show.
pub(super) fn encode(signature: &[u8; 64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(LENGTH_MAX);
    out.extend_from_slice(&[0x30, 0]);
    integer(&signature[..32], &mut out);
    integer(&signature[32..], &mut out);
    out[1] = (out.len() - 2) as u8;
    out
}

/// Takes one `INTEGER` of at most 32 bytes off the front; strict.
fn take_integer(der: &[u8]) -> Option<([u8; 32], &[u8])> {
    let [2, length, rest @ ..] = der else { return None };
    let (digits, rest) = rest.split_at_checked(usize::from(*length))?;
    let digits = match digits {
        [0, second, ..] if *second >= 0x80 => &digits[1..],
        [0, _, ..] | [] => return None,
        [first, ..] if *first >= 0x80 => return None,
        digits => digits,
    };
    let mut number = [0; 32];
    number.get_mut(32_usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
    Some((number, rest))
}

/// `r || s` of a DER signature; none if it is not DER to the letter. Who gets none asks the twin, which decides.
pub(super) fn decode(der: &[u8]) -> Option<[u8; 64]> {
    let [0x30, length, body @ ..] = der else { return None };
    if usize::from(*length) != body.len() || *length >= 0x80 {
        return None;
    }
    let (r, rest) = take_integer(body)?;
    let (s, rest) = take_integer(rest)?;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s);
    rest.is_empty().then_some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_round_trip() {
        for length in 0..=32 {
            for top in [1, 0x7F, 0x80, 0xFF] {
                let mut signature = [0; 64];
                signature[32 - length..32].fill(top);
                signature[64 - length..].fill((0xFF - top) | 1);
                let der = encode(&signature);
                assert!(der.len() <= LENGTH_MAX);
                assert_eq!(decode(&der), Some(signature), "{length} {top}");
            }
        }
    }

    #[test]
    fn what_is_not_der_is_refused() {
        let good = [0x30, 6, 2, 1, 5, 2, 1, 7];
        assert!(decode(&good).is_some());
        for bad in [
            &[][..],
            &[0x30, 6, 2, 1, 5, 2, 1],
            &[0x30, 7, 2, 1, 5, 2, 1, 7],
            &[0x30, 6, 2, 1, 5, 2, 1, 7, 0],
            &[0x30, 7, 2, 1, 5, 2, 1, 7, 0],
            &[0x30, 7, 2, 2, 0, 5, 2, 1, 7],
            &[0x30, 5, 2, 0, 2, 1, 7],
            &[0x30, 6, 2, 1, 0x85, 2, 1, 7],
            &[0x30, 6, 2, 5, 5, 2, 1, 7],
            &[0x30, 0x81, 6, 2, 1, 5, 2, 1, 7],
            &[0x31, 6, 2, 1, 5, 2, 1, 7],
        ] {
            assert_eq!(decode(bad), None, "{bad:x?}");
        }
        let mut long = vec![0x30, 38, 2, 33];
        long.extend([1; 33]);
        long.extend([2, 1, 7]);
        assert_eq!(decode(&long), None);
    }
}
