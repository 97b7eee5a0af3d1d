//! The unwinder of the libraries that programs load unasked: linked into each of them, and nothing else.
//!
//! `libgcc_s.so.1` would be one more library for the loader to find and map in every process of a run, and it asks the processor for its features when it is
//! loaded, which takes a virtual machine some 100 us together (`bench/startup.py`). An unwinder in each is what `-static-libgcc` gives to C++ libraries.
//!
//! A crate that is part of such a library says `use bywash_unwinder as _;`: without that the linker is not told.
#![no_std]
