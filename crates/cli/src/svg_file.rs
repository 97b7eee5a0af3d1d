//! Names of pictures: what is drawn is SVG, and is not put into a file that says it is something else.

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// What files of other pictures' formats end in.
const OTHERS: &[&str] = &[
    "avif", "bmp", "emf", "eps", "gif", "heic", "ico", "jfif", "jpeg", "jpg", "jxl", "pdf", "png", "ps", "svgz", "tif", "tiff", "webp",
    "wmf",
];

/// Parses the name of a picture that is to be drawn.
pub(crate) fn svg_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| check(&path).map(|()| path))
}

fn check(path: &Path) -> Result<(), String> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.filter(|extension| OTHERS.contains(&extension.as_str())) {
        Some(extension) => Err(format!("what is drawn is SVG, not {}; choose a name that ends with .svg", extension.to_uppercase())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_formats_are_refused() {
        for name in ["curve.svg", "curve", "curve.SVG", "png", "a.png/curve", "/dev/stdout", "curve.xml"] {
            assert_eq!(check(Path::new(name)), Ok(()), "{name}");
        }
        for name in ["curve.png", "curve.PNG", "curve.svg.pdf", "/tmp/a.jpeg"] {
            assert!(check(Path::new(name)).unwrap_err().contains("ends with .svg"), "{name}");
        }
    }
}
