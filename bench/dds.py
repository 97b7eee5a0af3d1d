"""What the benchmarks of DDS share: programs compiled on the spot, keys and documents, configurations."""
import os
import re
import subprocess

GOVERNANCES = ["off", "data", "rtps", "ros2", "all", "origin"]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def compiled(folder, steps, needs):
    """Runs the compilers in the folder; why it cannot be done here, if it cannot. `needs` are Debian's packages."""
    for step in steps:
        try:
            done = subprocess.run(step, cwd=folder, capture_output=True, text=True)
        except FileNotFoundError:
            return f"no {step[0]} (Debian: {needs})"
        if done.returncode != 0:
            return f"{step[0]} failed (Debian: {needs}): {done.stderr.strip().splitlines()[:1]}"
    return None


def material(options, folder, *names):
    """Authorities, documents of the governance that was asked for, and a folder for each participant; by the example `make` of bywash-dds-material."""
    make = [options.make] if options.make else ["cargo", "run", "-q", "-p", "bywash-dds-material", "--example", "make", "--"]
    subprocess.run([*make, folder, options.governance, *names], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def cyclone(folder, name, plugin=None, secured=True):
    """A participant's configuration of Cyclone DDS: with this cryptographic plug-in in place of its own, or without security."""
    with open(f"{folder}/{name}/cyclonedds.xml", encoding="utf-8") as file:
        text = file.read()
    if not secured:
        return re.sub(r"<Security>.*</Security>", "", text, flags=re.S)
    if plugin:
        text, count = re.subn(r'path="dds_security_crypto"', f'path="{os.path.abspath(plugin)}"', text)
        assert count == 1, text
    return text


def written(path, text):
    """Writes a configuration; what CYCLONEDDS_URI wants."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return f"file://{path}"
