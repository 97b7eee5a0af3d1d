//! Clones of secrets.

/// `Clone` for what holds secrets: `clone_from` copies straight from one place to the other, and `clone` does so into an empty one, so that nothing is left on the stack.
macro_rules! clone_in_place {
    ($type:ty, $($parameter:ident,)? |$to:ident, $of:ident| $empty:expr, $copy:block) => {
        impl$(<$parameter>)? Clone for $type {
            fn clone(&self) -> Self {
                let $of = self;
                let _ = $of;
                let mut new = $empty;
                new.clone_from(self);
                new
            }

            /// The same, in the room that is there.
            fn clone_from(&mut self, $of: &Self) {
                let $to = self;
                $copy
            }
        }
    };
}

pub(crate) use clone_in_place;
