//! Copies of cipher contexts (`EVP_CIPHER_CTX_copy`), against the default provider's.

mod common;

use common::pair::{AEAD, PLAIN, Pair, XTS};
use common::*;

/// Two updates, a copy between them, and all ways to begin anew: with the same IV (CBC) or where it stands (CTR), with another, with the same key and with
/// another. What can be asked is asked everywhere.
#[test]
fn plain_modes_begun_anew_and_copied() {
    let library = Library::new("here");
    let mut random = Random::new(41);
    for name in PLAIN.iter().chain(XTS) {
        let pair = Pair::new(&library, name);
        let least = if XTS.contains(name) { 16 } else { 1 };
        for (first, second) in [1, 15, 16, 17, 255, 4096, 16_385].into_iter().flat_map(|first| [1, 31, 4096].map(|second| (first, second)))
        {
            for (encrypt, padding) in [(true, true), (true, false), (false, true), (false, false)] {
                let (key, iv, other) = (random.bytes(pair.key_len()), random.bytes(16), random.bytes(16));
                let (data, more, key_anew) =
                    (random.bytes(first.max(least)), random.bytes(second.max(least)), random.bytes(pair.key_len()));
                let asked = |context: &Context| {
                    let updated = if name.contains("ECB") { None } else { context.octets(c"updated-iv", 16) };
                    (updated, context.octets(c"iv", 16), context.number(c"num"), context.number(c"padding"))
                };
                let run = |context: &Context| {
                    let padded = least > 1 || context.set_padding(padding);
                    let begun = (context.update(&data), asked(context));
                    let copy = context.copy();
                    let went_on = (context.update(&more), asked(context), copy.update(&data), asked(&copy));
                    let again = copy.copy();
                    let ended = (context.finish(), copy.finish().is_some(), again.update(&more), asked(&again));
                    let anew =
                        [(None, None), (None, Some(&other)), (Some(&key), Some(&iv)), (Some(&key_anew), Some(&iv)), (Some(&key), None)];
                    let anew = anew.map(|(key, iv)| {
                        let begun = again.init(None, key.map(Vec::as_slice), iv.map(Vec::as_slice), -1);
                        (begun, again.update(&more), again.update(&data), asked(&again), again.finish().is_some())
                    });
                    (padded, begun, went_on, ended, anew)
                };
                let (ours, theirs) = pair.contexts(&key, &iv, encrypt);
                assert!(run(&ours) == run(&theirs), "{name}: {first} bytes, then {second}; encrypt {encrypt}, padding {padding}");
                take_reason();
            }
        }
    }
}

/// A copy made anywhere in a message goes on as its original would, and neither disturbs the other: with little text and much.
#[test]
fn an_aead_context_copied_in_the_midst_of_a_message() {
    let library = Library::new("here");
    let mut random = Random::new(32);
    for name in AEAD {
        let pair = Pair::new(&library, name);
        for (before, after) in
            [0, 1, 64, 100, 700, 1024, 8000, 9000].into_iter().flat_map(|before| [0, 1, 100, 8000, 9000].map(|after| (before, after)))
        {
            for (encrypt, aad_len) in [(true, 0), (true, 20), (false, 0), (false, 20), (true, 40), (true, 64), (true, 65), (false, 100)] {
                let (key, iv, aad, tag) = (random.bytes(pair.key_len()), random.bytes(12), random.bytes(aad_len), random.bytes(16));
                let (first, second, third) = (random.bytes(before), random.bytes(after), random.bytes(after / 2));
                let end = |context: &Context, text: &[u8]| {
                    let text = context.update(text);
                    let tagged = encrypt || context.set_tag(&tag);
                    (text, tagged, context.finish(), if encrypt { context.tag(16) } else { None })
                };
                let run = |context: &Context| {
                    let begun = (context.aad(&aad), context.update(&first));
                    let copy = context.copy();
                    // Of a copy of what has ended there is nothing to be had; it takes another message.
                    let ends = (end(context, &second), end(&copy, &third));
                    let anew = context.copy();
                    let anew = anew.init(None, None, Some(&iv), -1).then(|| (anew.aad(&aad), end(&anew, &third)));
                    (begun, ends, anew)
                };
                let (ours, theirs) = pair.contexts(&key, &iv, encrypt);
                assert_eq!(run(&ours), run(&theirs), "{name}: {before} bytes, then {after}; {aad_len} associated, encrypt {encrypt}");
                take_reason();
            }
        }
    }
}
