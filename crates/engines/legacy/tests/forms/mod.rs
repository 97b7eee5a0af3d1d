//! The forms of a cipher that this processor has.

use bywash_legacy::Form;

/// Each; those that are not here are said. `BYWASH_TEST_WIDEST` leaves the others to a processor that is not emulated (scripts/avx512).
pub(crate) fn forms() -> impl Iterator<Item = Form> {
    let asked = [("AVX-512", Form::vector()), ("AVX2", Form::narrow()), ("portable", Some(Form::PORTABLE))];
    let widest = std::env::var_os("BYWASH_TEST_WIDEST").is_some();
    asked.into_iter().take(if widest { 1 } else { 3 }).filter_map(move |(name, form)| {
        assert!(form.is_some() || !widest, "the one form that was asked for is not here");
        if form.is_none() {
            println!("skipped: the {name} form, which this processor has not");
        }
        form
    })
}
