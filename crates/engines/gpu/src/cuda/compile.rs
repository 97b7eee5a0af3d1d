//! The kernels' text, and what NVRTC makes of it at run time for the device that is here.

use super::functions::{Compiler, Pointer};
use core::ffi::{CStr, c_int};
use core::ptr::null_mut;
use std::ffi::CString;

/// The text that includes the others.
pub(super) const SOURCE: &str = include_str!("kernels.cu");

macro_rules! included {
    ($($name:literal = $path:literal),*) => { &[$(($name, include_str!($path))),*] };
}

/// What it includes, by name.
pub(super) const INCLUDED: &[(&str, &str)] = included! {
    "dialect.h" = "dialect.h", "record.h" = "../kernels/record.h", "aes.h" = "../kernels/aes.h", "ctr.h" = "../kernels/ctr.h",
    "xts.h" = "../kernels/xts.h", "chacha.h" = "../kernels/chacha.h", "chacha_lane.h" = "../kernels/chacha_lane.h",
    "tree.h" = "../kernels/tree.h", "ghash.h" = "../kernels/ghash.h", "ghash_lane.h" = "../kernels/ghash_lane.h",
    "poly1305.h" = "../kernels/poly1305.h", "poly_lane.h" = "../kernels/poly_lane.h"
};

/// Names of the kernels, by number.
pub(super) const NAMES: [&CStr; crate::device::Kernel::ALL.len()] =
    [c"ghash", c"poly1305", c"ctr", c"xts_encrypt", c"xts_decrypt", c"chacha20"];

/// Machine code for devices of a compute capability, 90 for 9.0.
pub(super) fn compile(compiler: &Compiler, capability: c_int) -> Result<Vec<u8>, String> {
    let string = |text: &str| CString::new(text).map_err(|_| "a kernel's text has a zero byte".to_owned());
    let source = string(SOURCE)?;
    let names = INCLUDED.iter().map(|(name, _)| string(name)).collect::<Result<Vec<_>, _>>()?;
    let texts = INCLUDED.iter().map(|(_, text)| string(text)).collect::<Result<Vec<_>, _>>()?;
    let pointers = |strings: &[CString]| -> Vec<_> { strings.iter().map(|string| string.as_ptr()).collect() };
    let option = string(&format!("--gpu-architecture=sm_{capability}"))?;
    let mut program: Pointer = null_mut();
    // SAFETY: strings end in zeros and live until the program is destroyed; both lists are as long as is said; buffers are as large as NVRTC asks.
    unsafe {
        let (text_pointers, name_pointers) = (pointers(&texts), pointers(&names));
        let count = INCLUDED.len() as c_int;
        let file = c"kernels.cu".as_ptr();
        let created = (compiler.create)(&mut program, source.as_ptr(), file, count, text_pointers.as_ptr(), name_pointers.as_ptr());
        if created != 0 {
            return Err(format!("nvrtcCreateProgram: error {created}"));
        }
        let compiled = (compiler.compile)(program, 1, [option.as_ptr()].as_ptr());
        let (size, read) = if compiled == 0 { (compiler.code_size, compiler.code) } else { (compiler.log_size, compiler.log) };
        let mut len = 0;
        let mut bytes = Vec::new();
        let mut told = size(program, &mut len);
        if told == 0 {
            bytes = vec![0u8; len];
            told = read(program, bytes.as_mut_ptr().cast());
        }
        (compiler.destroy)(&mut program);
        if compiled == 0 && told == 0 && !bytes.is_empty() {
            Ok(bytes)
        } else if compiled == 0 {
            Err(format!("NVRTC gives no machine code for sm_{capability}: error {told}"))
        } else {
            Err(format!("NVRTC: error {compiled}: {}", String::from_utf8_lossy(&bytes).trim_end_matches('\0')))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::first;
    use super::*;

    /// NVRTC needs no GPU.
    #[test]
    fn the_kernels_compile() {
        let compiler = match first("libnvrtc.so", Compiler::each()) {
            Ok(compiler) => compiler,
            Err(reason) => return eprintln!("skipped: {reason}"),
        };
        for capability in [80, 90] {
            let code = compile(&compiler, capability).unwrap();
            assert!(code.starts_with(b"\x7fELF"), "sm_{capability}");
        }
        assert!(compile(&compiler, 1).unwrap_err().contains("NVRTC"));
    }
}
