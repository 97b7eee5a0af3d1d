//! The forms of a cipher that this processor has.

use bywash_legacy::Form;

/// Each; those that are not here are said.
pub(crate) fn forms() -> impl Iterator<Item = Form> {
    let asked = [("AVX-512", Form::vector()), ("AVX2", Form::narrow()), ("portable", Some(Form::PORTABLE))];
    asked.into_iter().filter_map(|(name, form)| {
        if form.is_none() {
            println!("skipped: the {name} form, which this processor has not");
        }
        form
    })
}
