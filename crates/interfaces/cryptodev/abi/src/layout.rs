//! Structures whose every offset is written down, and their way from and to bytes.

/// A structure of the interface.
pub trait Layout: Sized {
    /// Its size in bytes.
    const SIZE: usize;

    /// Reads it from its bytes.
    ///
    /// # Panics
    /// For fewer than [`SIZE`](Self::SIZE) bytes.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Writes it to bytes; what lies between its fields is left as it is.
    ///
    /// # Panics
    /// For fewer than [`SIZE`](Self::SIZE) bytes.
    fn put_bytes(&self, bytes: &mut [u8]);
}

/// A part of a structure that stands at an offset.
pub trait Field: Sized {
    /// Reads it from the first of these bytes, in the machine's own order.
    fn get(bytes: &[u8]) -> Self;
    /// Writes it to the first of these bytes.
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Field for $number {
            #[inline]
            fn get(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$number>()];
                own.copy_from_slice(&bytes[..size_of::<$number>()]);
                <$number>::from_ne_bytes(own)
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                bytes[..size_of::<$number>()].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
numbers!(u8 u16 u32 u64 i32);

impl<T: Field, const N: usize> Field for [T; N] {
    fn get(bytes: &[u8]) -> Self {
        core::array::from_fn(|index| T::get(&bytes[index * size_of::<T>()..]))
    }
    fn put(&self, bytes: &mut [u8]) {
        for (index, item) in self.iter().enumerate() {
            item.put(&mut bytes[index * size_of::<T>()..]);
        }
    }
}

/// Declares structures with the size of each and the offset of each field; a compiler that lays one out otherwise refuses to compile it.
macro_rules! layout {
    ($($(#[$doc:meta])* $name:ident = $size:literal { $($(#[$field_doc:meta])* $offset:literal $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };

        impl $crate::Layout for $name {
            const SIZE: usize = $size;

            #[inline]
            fn from_bytes(bytes: &[u8]) -> Self {
                let bytes = &bytes[..$size];
                Self { $($field: <$type as $crate::Field>::get(&bytes[$offset..]),)* }
            }

            #[inline]
            fn put_bytes(&self, bytes: &mut [u8]) {
                let bytes = &mut bytes[..$size];
                $($crate::Field::put(&self.$field, &mut bytes[$offset..]);)*
            }
        }

        impl $crate::Field for $name {
            fn get(bytes: &[u8]) -> Self {
                <Self as $crate::Layout>::from_bytes(bytes)
            }
            fn put(&self, bytes: &mut [u8]) {
                $crate::Layout::put_bytes(self, bytes);
            }
        }

        impl Default for $name {
            /// All zeros.
            fn default() -> Self {
                <Self as $crate::Layout>::from_bytes(&[0; $size])
            }
        }
    )*};
}
pub(crate) use layout;
