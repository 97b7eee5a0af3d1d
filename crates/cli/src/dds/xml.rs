//! XML from files that anybody may have written.

use crate::failure::Failure;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file that is read. Real ones have some kilobytes.
const BYTES_MAX: u64 = 1 << 20;
/// The most elements and texts in a document.
const NODES_MAX: u32 = 50_000;
/// The most quotation marks from where one element begins to where the next does. Each attribute has two, and is compared with all before it in its element.
const QUOTES_MAX: usize = 2_000;
/// The most namespaces that are declared. Elements within others have those of all around them, each compared with all.
const NAMESPACES_MAX: usize = 256;
/// How deep elements may stand in each other: who looks below each of many would take their product.
const DEPTH_MAX: usize = 32;

/// Opens a file to read it, and does not wait for anybody: opening a pipe would, for one who writes.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// A file's text.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let unread = |error: std::io::Error| Failure::file("read", path, &error);
    let file = open(path).map_err(unread)?;
    if !file.metadata().map_err(unread)?.is_file() {
        return Err(Failure::config(format!("{}: not a file; name an XML or PEM file", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::config(format!("{}: larger than 1 MiB, which no configuration is; name another file", path.display())));
    }
    String::from_utf8(bytes).map_err(|_| Failure::config(format!("{}: not text (UTF-8); name an XML or PEM file", path.display())))
}

/// Parses it: without a DTD, so that nothing can be expanded.
pub(super) fn parse<'a>(path: &Path, text: &'a str) -> Result<roxmltree::Document<'a>, Failure> {
    let quotes = |part: &str| part.bytes().filter(|byte| matches!(byte, b'"' | b'\'')).count();
    if text.split('<').any(|part| quotes(part) > QUOTES_MAX) {
        let found = format!("{}: more than {QUOTES_MAX} quotation marks before the next '<', which no configuration needs", path.display());
        return Err(Failure::config(found));
    }
    // No reference stands for a part of a name.
    if text.matches("xmlns").nth(NAMESPACES_MAX).is_some() {
        let found = format!("{}: more than {NAMESPACES_MAX} namespaces, which no configuration needs", path.display());
        return Err(Failure::config(found));
    }
    let options = roxmltree::ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| Failure::config(format!("{}: {error}; `xmllint --noout` says where", path.display())))?;
    // In the order of the document, so that a parent comes before its children.
    let mut depths: Vec<usize> = Vec::new();
    for node in document.descendants() {
        let depth = node.parent_element().and_then(|parent| depths.get(parent.id().get_usize())).map_or(0, |depth| depth + 1);
        if depth > DEPTH_MAX {
            let found =
                format!("{}: elements stand in each other more than {DEPTH_MAX} deep, which no configuration needs", path.display());
            return Err(Failure::config(found));
        }
        depths.resize(node.id().get_usize(), 0);
        depths.push(depth);
    }
    Ok(document)
}

/// Whether it is an element of this name, whatever its namespace: people leave it out.
pub(super) fn is_named(node: roxmltree::Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

/// The first element of this name below a node, whatever its namespace.
pub(super) fn find<'a, 'b>(node: roxmltree::Node<'a, 'b>, name: &str) -> Option<roxmltree::Node<'a, 'b>> {
    node.descendants().skip(1).find(|node| is_named(*node, name))
}

/// An element's text, trimmed.
pub(super) fn text(node: roxmltree::Node<'_, '_>) -> String {
    let texts = node.children().filter_map(|child| child.is_text().then(|| child.text()).flatten());
    texts.collect::<String>().trim().to_owned()
}
