//! The SPIR-V that is checked in is what the sources give.

use std::path::Path;
use std::process::Command;

/// The version that made it: "11:12.0.0" in Debian 12.
const COMPILER: &str = "11:12.0.0";

#[test]
fn the_shaders_are_those_of_the_sources() {
    let Ok(version) = Command::new("glslangValidator").arg("--version").output() else {
        return eprintln!("skipped: glslangValidator is not installed (apt-get install glslang-tools)");
    };
    let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_owned();
    if !version.ends_with(COMPILER) {
        return eprintln!("skipped: {version} makes other bytes than {COMPILER} does");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = std::env::temp_dir().join(format!("bywash-shaders-{}", std::process::id()));
    std::fs::create_dir_all(&made).unwrap();
    let status = Command::new(root.join("../../../scripts/shaders")).arg(&made).status().unwrap();
    assert!(status.success(), "scripts/shaders: {status}");
    let kept = root.join("src/vulkan/spirv");
    let mut compared = 0;
    for entry in std::fs::read_dir(&kept).unwrap() {
        let name = entry.unwrap().file_name();
        let (kept, made) = (std::fs::read(kept.join(&name)).unwrap(), std::fs::read(made.join(&name)).unwrap_or_default());
        assert!(kept == made, "{} is not what its source gives: run scripts/shaders", name.display());
        compared += 1;
    }
    assert_eq!(compared, 6, "one for each kernel");
    std::fs::remove_dir_all(&made).unwrap();
}
