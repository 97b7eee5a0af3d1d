//! ECDSA signatures between `r || s` and DER (RFC 3279 s2.2.3: `SEQUENCE { INTEGER r, INTEGER s }`), for scalars of up to 61 bytes: lengths
//! then take one byte.

/// Longest DER form for scalars of so many bytes: two integers with a zero each in front.
pub(super) const fn length_max(scalar: usize) -> usize {
    2 + 2 * (2 + 1 + scalar)
}

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
pub(super) fn encode(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let mut out = Vec::with_capacity(length_max(r.len()));
    out.extend_from_slice(&[0x30, 0]);
    integer(r, &mut out);
    integer(s, &mut out);
    out[1] = (out.len() - 2) as u8;
    out
}

/// Takes one `INTEGER` off the front and fills it up to the length of `number`; strict.
fn take_integer<'a>(der: &'a [u8], number: &mut [u8]) -> Option<&'a [u8]> {
    let [2, length, rest @ ..] = der else { return None };
    let (digits, rest) = rest.split_at_checked(usize::from(*length))?;
    let digits = match digits {
        [0, second, ..] if *second >= 0x80 => &digits[1..],
        [0, _, ..] | [] => return None,
        [first, ..] if *first >= 0x80 => return None,
        digits => digits,
    };
    let zeros = number.len().checked_sub(digits.len())?;
    number[zeros..].copy_from_slice(digits);
    Some(rest)
}

/// `r || s` of a DER signature, each as long as a scalar; none if it is not DER to the letter. Who gets none asks the twin, which decides.
pub(super) fn decode(der: &[u8], scalar: usize) -> Option<Vec<u8>> {
    let [0x30, length, body @ ..] = der else { return None };
    if usize::from(*length) != body.len() || *length >= 0x80 {
        return None;
    }
    let mut signature = vec![0; 2 * scalar];
    let (r, s) = signature.split_at_mut(scalar);
    let rest = take_integer(body, r)?;
    let rest = take_integer(rest, s)?;
    rest.is_empty().then_some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_round_trip() {
        for (scalar, longest) in [(32, 72), (48, 104)] {
            assert_eq!(length_max(scalar), longest);
            for (length, top) in (0..=scalar).flat_map(|length| [1, 0x7F, 0x80, 0xFF].map(|top| (length, top))) {
                let mut signature = vec![0; 2 * scalar];
                signature[scalar - length..scalar].fill(top);
                signature[2 * scalar - length..].fill((0xFF - top) | 1);
                let der = encode(&signature);
                assert!(der.len() <= longest);
                assert_eq!(decode(&der, scalar), Some(signature), "{length} {top}");
            }
        }
    }

    #[test]
    fn what_is_not_der_is_refused() {
        let good = [0x30, 6, 2, 1, 5, 2, 1, 7];
        assert!(decode(&good, 32).is_some());
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
            assert_eq!(decode(bad, 32), None, "{bad:x?}");
        }
        let mut long = vec![0x30, 38, 2, 33];
        long.extend([1; 33]);
        long.extend([2, 1, 7]);
        assert_eq!(decode(&long, 32), None);
        assert!(decode(&long, 48).is_some());
    }
}
