//! Not yet furnished.
fn main() {}
