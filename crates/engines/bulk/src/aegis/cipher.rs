//! Whole messages and messages in pieces, for any state.

/// The items of a cipher's module.
macro_rules! cipher {
    ($state:ident) => {
        use crate::aegis::{LENGTH_MAX, check};
        use crate::memory::{self, BLOCK, Text};
        use crate::{Error, assert_supported};
        use core::arch::x86_64::*;
        use core::ops::Range;
        use $state::lanes::{self, WIDTH, xor};
        use $state::{KEY, REGISTERS, State};

        /// Bytes that go into the state at once.
        const RATE: usize = REGISTERS * WIDTH;

        /// A key. Wiped when dropped.
        pub struct Key(Box<[u8; KEY]>);

        impl Drop for Key {
            fn drop(&mut self) {
                memory::wipe(&mut *self.0);
            }
        }

        impl Key {
            /// Takes a key.
            pub fn new(key: &[u8; KEY]) -> Self {
                assert_supported();
                Self(Box::new(*key))
            }

            /// Encrypts and writes the tag, which has 16 or 32 bytes.
            pub fn seal(&self, nonce: &[u8; KEY], aad: &[u8], mut text: Text<'_>, tag: &mut [u8]) -> Result<(), Error> {
                check(&text, tag)?;
                #[allow(unsafe_code)]
                // SAFETY: a key exists only where the processor has the features.
                let full = unsafe { whole::<true>(&self.0, nonce, aad, &mut text, tag.len() > BLOCK) };
                tag.copy_from_slice(&full[..tag.len()]);
                Ok(())
            }

            /// Decrypts. If the tag is not the message's, [`Error::Authentication`], and zeros where the text would be.
            pub fn open(&self, nonce: &[u8; KEY], aad: &[u8], mut text: Text<'_>, tag: &[u8]) -> Result<(), Error> {
                check(&text, tag)?;
                #[allow(unsafe_code)]
                // SAFETY: as above.
                let full = unsafe { whole::<false>(&self.0, nonce, aad, &mut text, tag.len() > BLOCK) };
                if memory::are_equal(&full[..tag.len()], tag) {
                    return Ok(());
                }
                text.wipe();
                Err(Error::Authentication)
            }
        }

        /// One message: associated data in any pieces, then text in any pieces, then the tag.
        ///
        /// A message that is decrypted in pieces gives away text before its tag is known. Whoever compares the tag does so in constant time.
        #[derive(Clone)]
        pub struct Message(Box<Progress>);

        #[derive(Clone)]
        struct Progress {
            state: State,
            /// A block that is not whole yet: of associated data, later of plaintext.
            part: [u8; RATE],
            /// What enciphers it.
            stream: [u8; RATE],
            aad_len: u64,
            text_len: u64,
        }

        impl Message {
            /// Begins a message.
            pub fn new(key: &Key, nonce: &[u8; KEY]) -> Self {
                #[allow(unsafe_code)]
                // SAFETY: a key exists only where the processor has the features.
                let state = unsafe { State::begin(&key.0, nonce) };
                Self(Box::new(Progress { state, part: [0; RATE], stream: [0; RATE], aad_len: 0, text_len: 0 }))
            }

            /// Begins another message in the place of this one.
            pub fn restart(&mut self, key: &Key, nonce: &[u8; KEY]) {
                #[allow(unsafe_code)]
                // SAFETY: as above.
                let state = unsafe { State::begin(&key.0, nonce) };
                (self.0.state, self.0.aad_len, self.0.text_len) = (state, 0, 0);
            }

            /// Takes associated data.
            pub fn aad(&mut self, aad: &[u8]) -> Result<(), Error> {
                if self.0.text_len > 0 {
                    return Err(Error::AadAfterText);
                }
                let len = self.0.aad_len.saturating_add(aad.len() as u64);
                if len > LENGTH_MAX {
                    return Err(Error::AadLength(len));
                }
                #[allow(unsafe_code)]
                // SAFETY: a message exists only where the processor has the features.
                unsafe {
                    self.0.absorb(aad);
                }
                self.0.aad_len = len;
                Ok(())
            }

            /// Encrypts a piece.
            pub fn encrypt(&mut self, text: Text<'_>) -> Result<(), Error> {
                self.update::<true>(text)
            }

            /// Decrypts a piece.
            pub fn decrypt(&mut self, text: Text<'_>) -> Result<(), Error> {
                self.update::<false>(text)
            }

            /// The tag of 16 bytes of all that has come; more may follow, and another tag.
            pub fn tag(&self) -> [u8; BLOCK] {
                #[allow(unsafe_code)]
                // SAFETY: as above.
                let full = unsafe { self.0.tag(false) };
                *full.first_chunk().expect("the tag has 16 bytes at least")
            }

            fn update<const SEAL: bool>(&mut self, mut text: Text<'_>) -> Result<(), Error> {
                let len = self.0.text_len.saturating_add(text.len() as u64);
                if len > LENGTH_MAX {
                    return Err(Error::TextLength(len));
                }
                #[allow(unsafe_code)]
                // SAFETY: as above.
                unsafe {
                    self.0.crypt::<SEAL>(&mut text);
                }
                self.0.text_len = len;
                Ok(())
            }
        }

        impl Progress {
            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            fn absorb(&mut self, mut aad: &[u8]) {
                let used = (self.aad_len % RATE as u64) as usize;
                if used > 0 {
                    let (now, later) = aad.split_at(aad.len().min(RATE - used));
                    self.part[used..used + now.len()].copy_from_slice(now);
                    if used + now.len() < RATE {
                        return;
                    }
                    absorb(&mut self.state, &self.part);
                    aad = later;
                }
                let (blocks, rest) = aad.split_at(aad.len() - aad.len() % RATE);
                absorb(&mut self.state, blocks);
                self.part[..rest.len()].copy_from_slice(rest);
            }

            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            fn crypt<const SEAL: bool>(&mut self, text: &mut Text<'_>) {
                if self.text_len == 0 && text.len() > 0 {
                    absorb(&mut self.state, &self.part[..(self.aad_len % RATE as u64) as usize]);
                }
                let used = (self.text_len % RATE as u64) as usize;
                let mut at = 0;
                if used > 0 {
                    at = text.len().min(RATE - used);
                    self.go_on::<SEAL>(text, 0..at, used);
                }
                let end = text.len() - (text.len() - at) % RATE;
                self.state = blocks::<SEAL>(self.state, text, at..end);
                if end < text.len() {
                    for (i, register) in self.state.stream().into_iter().enumerate() {
                        lanes::set_bytes(&mut self.stream, i * WIDTH, register);
                    }
                    let range = end..text.len();
                    self.go_on::<SEAL>(text, range, 0);
                }
            }

            /// Goes on with the block that is not whole, of which so many bytes have been used.
            #[inline]
            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            fn go_on<const SEAL: bool>(&mut self, text: &mut Text<'_>, range: Range<usize>, used: usize) {
                let end = used + range.len();
                if SEAL {
                    self.part[used..end].copy_from_slice(text.given(range.clone()));
                }
                text.xor_bytes(range.start, &self.stream[used..end]);
                if !SEAL {
                    self.part[used..end].copy_from_slice(text.done(range));
                }
                if end == RATE {
                    absorb(&mut self.state, &self.part);
                }
            }

            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            fn tag(&self, long: bool) -> [u8; 2 * BLOCK] {
                let mut state = self.state;
                let in_part = if self.text_len > 0 { self.text_len } else { self.aad_len };
                absorb(&mut state, &self.part[..(in_part % RATE as u64) as usize]);
                finish(state, self.aad_len, self.text_len, long)
            }
        }

        impl Drop for Progress {
            fn drop(&mut self) {
                memory::wipe(&mut self.part);
                memory::wipe(&mut self.stream);
                #[allow(unsafe_code)]
                // SAFETY: a message exists only where the processor has the features.
                unsafe {
                    self.state.wipe();
                }
            }
        }

        /// A whole message; the result is its tag.
        #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
        fn whole<const SEAL: bool>(key: &[u8; KEY], nonce: &[u8; KEY], aad: &[u8], text: &mut Text<'_>, long: bool) -> [u8; 2 * BLOCK] {
            let mut state = State::begin(key, nonce);
            absorb(&mut state, aad);
            let end = text.len() - text.len() % RATE;
            state = blocks::<SEAL>(state, text, 0..end);
            if end < text.len() {
                let range = end..text.len();
                part::<SEAL>(&mut state, text, range);
            }
            finish(state, aad.len() as u64, text.len() as u64, long)
        }

        /// Takes bytes in, the last block filled up with zeros.
        #[inline]
        #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
        fn absorb(state: &mut State, bytes: &[u8]) {
            let mut at = 0;
            while at < bytes.len() {
                let mut block = [lanes::broadcast(_mm_setzero_si128()); REGISTERS];
                for (i, register) in block.iter_mut().enumerate() {
                    *register = lanes::bytes(bytes, at + i * WIDTH);
                }
                state.update(block);
                at += RATE;
            }
        }

        /// Whole blocks. The state goes by value, so that it stays in registers.
        #[inline]
        #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
        fn blocks<const SEAL: bool>(mut state: State, text: &mut Text<'_>, range: Range<usize>) -> State {
            let Range { start: mut at, end } = range;
            while at < end {
                let mut taken = [lanes::broadcast(_mm_setzero_si128()); REGISTERS];
                for (i, stream) in state.stream().into_iter().enumerate() {
                    let given = lanes::load(text, at + i * WIDTH, WIDTH);
                    let done = xor(given, stream);
                    lanes::store(text, at + i * WIDTH, WIDTH, done);
                    taken[i] = if SEAL { given } else { done };
                }
                state.update(taken);
                at += RATE;
            }
            state
        }

        /// The last block, which is not whole.
        #[inline]
        #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
        fn part<const SEAL: bool>(state: &mut State, text: &mut Text<'_>, range: Range<usize>) {
            let mut taken = [lanes::broadcast(_mm_setzero_si128()); REGISTERS];
            for (i, stream) in state.stream().into_iter().enumerate() {
                let (at, len) = (range.start + i * WIDTH, range.len().saturating_sub(i * WIDTH).min(WIDTH));
                if len > 0 {
                    let given = lanes::load(text, at, len);
                    let done = xor(given, stream);
                    lanes::store(text, at, len, done);
                    taken[i] = if SEAL { given } else { lanes::masked(done, len) };
                }
            }
            state.update(taken);
        }

        #[inline]
        #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
        fn finish(state: State, aad_len: u64, text_len: u64, long: bool) -> [u8; 2 * BLOCK] {
            let tag = state.tag(_mm_set_epi64x((text_len * 8) as i64, (aad_len * 8) as i64), long);
            let mut bytes = [0; 2 * BLOCK];
            for (place, block) in bytes.as_chunks_mut().0.iter_mut().zip(tag) {
                memory::set_block(place, block);
            }
            bytes
        }
    };
}
