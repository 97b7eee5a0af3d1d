#!/usr/bin/env python3
"""Cyclone DDS' own tests of its security, run with its own cryptographic plug-in and with this one.

cyclone-suites.py [--source FOLDER] [--plugin FILE] [--cache FOLDER] [--only PATTERN]

Fetches Debian's source package of cyclonedds (or takes FOLDER, that source unpacked), builds it with its tests (cmake, Debian's libcunit1-dev) in CACHE (target/cyclone-suites), and runs each test of
`src/security/builtin_plugins/tests` and `src/security/core/tests` that meets a cryptographic plug-in in a process of its own, twice. The tests load the plug-in by name; one line of their loader is
changed so that it can be told, and the tests of the core find it in LD_LIBRARY_PATH. What passes is counted. Tests that read the private structures of the built-in plug-in behind its handles, or
have its words in exceptions, cannot pass with another: they are told apart by what their source calls. Nor can those that read back what they have sent under the key of both sides. The exit status is 1 if another test fails that passes with the built-in one.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(f"{HERE}/../../../../..")
TARGET = os.environ.get("CARGO_TARGET_DIR", f"{ROOT}/target")
# Of the plug-ins' suites those that load a cryptographic one; of the core's those that never do are left out.
PLUGIN_SUITES = re.compile(r"ddssec_builtin_(register|create|set|encode|decode|preprocess)_")
CORE_WITHOUT = {"ddssec_fsm", "ddssec_timed_cb", "ddssec_security_utils", "ddssec_config"}
# What reads the built-in plug-in's own memory.
REACHES_IN = re.compile(r"crypto_factory_get_\w+|\(\s*(?:const\s+)?(?:local|remote)_\w+_crypto\s*\*\s*\)|struct dds_security_crypto_\w+_impl\b|CRYPTO_OBJECT")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", help="the source of cyclonedds 0.10.2, unpacked; else Debian's source package is fetched")
    parser.add_argument("--plugin", help="built by cargo if it is not told")
    parser.add_argument("--cache", default=f"{TARGET}/cyclone-suites")
    parser.add_argument("--only", default="", help="tests whose SUITE/NAME has this pattern")
    return parser.parse_args()


def run(command, log, **more):
    with open(log, "ab") as file:
        if subprocess.run(command, stdout=file, stderr=file, **more).returncode != 0:
            sys.exit(f"cyclone-suites: {command[0]} failed; see {log}")


def fetched():
    """Debian's source package, unpacked."""
    done = subprocess.run([f"{ROOT}/scripts/debian-source", "cyclonedds"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("cyclone-suites: skipped; --source takes an unpacked one", file=sys.stderr)
        sys.exit(77)
    return done.stdout.strip()


def built(options):
    """The tests as ctest has them, each a command with its folder and its seconds."""
    cache, log = options.cache, f"{options.cache}/build.log"
    os.makedirs(cache, exist_ok=True)
    source, build = f"{cache}/source", f"{cache}/build"
    if not os.path.isdir(source):
        shutil.copytree(options.source or fetched(), source)
    loader = f"{source}/src/security/builtin_plugins/tests/common/src/loader.c"
    with open(loader, encoding="utf-8") as file:
        text = file.read()
    if "CRYPTO_PLUGIN" not in text:
        text, count = re.subn(r'"dds_security_crypto",', 'getenv("CRYPTO_PLUGIN") ? getenv("CRYPTO_PLUGIN") : "dds_security_crypto",', text)
        assert count == 1, "the loader of the tests has changed"
        with open(loader, "w", encoding="utf-8") as file:
            file.write(text.replace("#include <stdio.h>", "#include <stdio.h>\n#include <stdlib.h>", 1))
    if not os.path.exists(f"{build}/CMakeCache.txt"):
        print("cyclone-suites: compiling Cyclone DDS and its tests", flush=True)
        flags = ["BUILD_TESTING=ON", "ENABLE_SSL=ON", "ENABLE_SECURITY=ON", "ENABLE_SHM=OFF", "BUILD_DDSPERF=OFF", "WERROR=OFF", "CMAKE_BUILD_TYPE=RelWithDebInfo"]
        run(["cmake", "-S", source, "-B", build, *(f"-D{flag}" for flag in flags)], log)
    targets = ["cunit_security_plugins", "cunit_security_core", "dds_security_auth", "dds_security_ac", "dds_security_crypto"]
    run(["cmake", "--build", build, "--parallel", "--target", *targets], log)
    said = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, capture_output=True, text=True).stdout
    return source, [test for test in json.loads(said)["tests"] if wanted(test.get("command"), options.only)]


def wanted(command, only):
    if not command or len(command) < 5:
        return False
    suite, name = command[2], command[4]
    is_core = command[0].endswith("cunit_security_core") and suite not in CORE_WITHOUT
    is_plugin = command[0].endswith("cunit_security_plugins") and PLUGIN_SUITES.match(suite)
    return bool((is_core or is_plugin) and re.search(only, f"{suite}/{name}"))


def outcome(test, plugin, folder):
    """passed, or how it failed."""
    properties = {one["name"]: one["value"] for one in test["properties"]}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BYWASH_")}
    environment.update(one.split("=", 1) for one in properties.get("ENVIRONMENT", []))
    if plugin:
        environment["CRYPTO_PLUGIN"] = plugin
        # The tests of the core are linked to the plug-in by its library's name; those of the plug-ins need the built-in one's helpers beside ours.
        if test["command"][0].endswith("cunit_security_core"):
            environment["LD_LIBRARY_PATH"] = f"{folder}:{environment['LD_LIBRARY_PATH']}"
    try:
        # Their own seconds are for a machine that does nothing else.
        done = subprocess.run(test["command"], cwd=properties["WORKING_DIRECTORY"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3 * properties.get("TIMEOUT", 20))
    except subprocess.TimeoutExpired:
        return "too long", ""
    said = done.stdout.decode(errors="replace")
    counts = re.search(r"asserts\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", said)
    if done.returncode < 0:
        return f"signal {-done.returncode}", said
    if done.returncode == 0 and counts and counts[1] != "0":
        return "passed", said
    return "failed", said


def reaches_in(source):
    """Names of suites whose source reads the built-in plug-in's memory: SUITE, or SUITE/NAME where the file says it in that test alone."""
    found = {}
    for folder in ("src/security/builtin_plugins/tests", "src/security/core/tests"):
        for place, _, files in os.walk(f"{source}/{folder}"):
            for file in files:
                if file.endswith(".c"):
                    with open(f"{place}/{file}", encoding="utf-8") as text:
                        note_reaching(text.read(), found)
    return found


def note_reaching(text, found):
    """By function: those that read it themselves, and those that call such a one."""
    functions = re.split(r"^(?=(?:static |CU_Test|CU_Theory|CU_Clean|CU_Init|void |int )[^;]*?\n?[^;]*?\{)", text, flags=re.M)
    reaching = {}
    for function in functions:
        head = function.split("{", 1)[0]
        test = re.search(r"CU_Test\s*\(\s*(\w+)\s*,\s*(\w+)", head) or re.search(r"CU_Theory\s*\(\s*\((?:.|\n)*?\)\s*,\s*(\w+)\s*,\s*(\w+)", head)
        name = f"{test[1]}/{test[2]}" if test else (re.findall(r"(\w+)\s*\(", head) or [""])[0]
        reaching[name] = (set(REACHES_IN.findall(function)), set(re.findall(r"\b(\w+)\s*\(", function)))
    changed = True
    while changed:
        changed = False
        for name, (own, calls) in reaching.items():
            for other in calls & reaching.keys() - {name}:
                if reaching[other][0] - own:
                    own |= reaching[other][0]
                    changed = True
    for name, (own, _) in reaching.items():
        if "/" in name and own:
            found[name] = sorted(own)


def explained(said, reaching):
    """Why a test fails with this plug-in alone, and whether that is a fault."""
    if reaching:
        return f"reads the built-in plug-in's memory: {', '.join(reaching[:2])}", False
    if "reflected: this message is our own" in said:
        return "takes what it has sent itself for the other's, under the key of both", False
    first = re.search(r"^ +1\. \S*?([^/\s]+:\d+) +- (.*)$", said, re.M)
    if not first:
        return "see its log", True
    # With this one they begin with `bywash:` and tell more.
    if "exception.message" in first[2]:
        return f"compares the words of an exception: {first[1]}", False
    return f"{first[1]}: {first[2]}", True


def main():
    options = arguments()
    plugin = options.plugin
    if not plugin:
        subprocess.run(["cargo", "build", "--quiet", "-p", "bywash-dds-cyclone"], cwd=ROOT, check=True)
        plugin = f"{TARGET}/debug/libbywash_dds_cyclone.so"
    plugin = os.path.abspath(plugin)
    if not os.path.isfile(plugin):
        sys.exit(f"cyclone-suites: no such file: {plugin}")
    source, tests = built(options)
    reaching = reaches_in(source)
    folder = f"{options.cache}/plugin"
    os.makedirs(folder, exist_ok=True)
    link = f"{folder}/libdds_security_crypto.so"
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(plugin, link)
    table, listed, faults = collections.OrderedDict(), [], 0
    for test in tests:
        suite, name = test["command"][2], test["command"][4]
        stock, _ = outcome(test, None, folder)
        ours, said = outcome(test, plugin, folder)
        row = table.setdefault(suite, [0, 0, 0, 0])
        row[0] += 1
        row[1] += stock == "passed"
        row[2] += ours == "passed"
        if stock == "passed" and ours != "passed":
            why, is_fault = explained(said, reaching.get(f"{suite}/{name}"))
            row[3] += is_fault
            faults += is_fault
            listed.append(f"  {suite}/{name}: {ours}; {why}")
        elif stock != "passed":
            listed.append(f"  {suite}/{name}: with the built-in one {stock}, with this {ours}")
        with open(f"{options.cache}/{suite}-{name}.log", "w", encoding="utf-8") as file:
            file.write(said)
    print(f"{'suite':<60} {'tests':>6} {'built-in':>9} {'this':>6} {'faults':>7}")
    for suite, row in table.items():
        print(f"{suite:<60} {row[0]:>6} {row[1]:>9} {row[2]:>6} {row[3]:>7}")
    sums = [sum(column) for column in zip(*table.values())]
    print(f"{'all':<60} {sums[0]:>6} {sums[1]:>9} {sums[2]:>6} {sums[3]:>7}")
    print("\n".join(listed))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
