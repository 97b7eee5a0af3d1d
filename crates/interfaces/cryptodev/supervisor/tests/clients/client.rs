//! A Rust program at `/dev/crypto`, linked statically: nothing can be loaded into it.

use std::ffi::{c_int, c_ulong, c_void};
use std::os::fd::AsRawFd;
use std::ptr::null;

#[repr(C)]
struct SessionOp {
    cipher: u32,
    mac: u32,
    keylen: u32,
    key: *const u8,
    mackeylen: u32,
    mackey: *const u8,
    ses: u32,
}

#[repr(C)]
struct CryptOp {
    ses: u32,
    op: u16,
    flags: u16,
    len: u32,
    src: *const u8,
    dst: *mut u8,
    mac: *mut u8,
    iv: *const u8,
}

unsafe extern "C" {
    fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
}

fn main() {
    let key: [u8; 16] = *b"\x2b\x7e\x15\x16\x28\xae\xd2\xa6\xab\xf7\x15\x88\x09\xcf\x4f\x3c";
    let plain: [u8; 16] = *b"\x6b\xc1\xbe\xe2\x2e\x40\x9f\x96\xe9\x3d\x7e\x11\x73\x93\x17\x2a";
    let iv: [u8; 16] = std::array::from_fn(|index| index as u8);
    let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/crypto").expect("the device opens");
    let fd = file.as_raw_fd();
    let mut session = SessionOp { cipher: 11, mac: 0, keylen: 16, key: key.as_ptr(), mackeylen: 0, mackey: null(), ses: 0 };
    // SAFETY: the argument and what it points to are alive during the call.
    assert_eq!(unsafe { ioctl(fd, 0xc030_6366, (&raw mut session).cast()) }, 0, "CIOCGSESSION");
    let mut out = [0; 16];
    let mut op = CryptOp {
        ses: session.ses,
        op: 0,
        flags: 0,
        len: 16,
        src: plain.as_ptr(),
        dst: out.as_mut_ptr(),
        mac: std::ptr::null_mut(),
        iv: iv.as_ptr(),
    };
    // SAFETY: as above.
    assert_eq!(unsafe { ioctl(fd, 0xc030_6368, (&raw mut op).cast()) }, 0, "CIOCCRYPT");
    assert_eq!(out, *b"\x76\x49\xab\xac\x81\x19\xb2\x46\xce\xe9\x8e\x9b\x12\xe9\x19\x7d");
}
