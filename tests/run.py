"""Runs every test of the project, part by part, and closes with 'N passed, N failed'.

    .venv/bin/python tests/run.py [part ...]      # c, python, sanitizers, listings, parity, names; all of them by default

Each part prints a line of its own and what failed. `listings`, `parity` and `names` run where ../shared is there. A test file that
exceeds its time limit counts as one failure. Needs nothing but the standard library; `make test` has built before.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
SHARED = TOP.parent / "shared"
FILE_SECONDS = 300
PART_SECONDS = 900
SANITIZED = ("autograd", "binding", "io", "mindspore", "nn", "ops", "parallel")  # folders of tests/python that run instrumented


def environment(**more):
    """The environment of every test: our tools first on PATH, and the package that was built."""
    return {**os.environ, "PATH": f"{TOP / '.venv' / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(TOP / "build" / "root" / "site"),
            "PYTHONDONTWRITEBYTECODE": "1", **more}


def call(command, seconds=PART_SECONDS, **more):
    """(exit status, text of both streams); status 124 when it took too long."""
    try:
        done = subprocess.run([str(c) for c in command], cwd=TOP, env=environment(**more), timeout=seconds, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        text = error.stdout or b""
        return 124, (text if isinstance(text, str) else text.decode(errors="replace")) + f"\nstopped after {seconds} s\n"


def tail(text, lines=40):
    return "\n".join("    " + line for line in text.strip().splitlines()[-lines:])


def count(text, word):
    """The last 'N word' of a report, or 0."""
    found = re.findall(rf"(\d+) {word}\b", text)
    return int(found[-1]) if found else 0


def meson_tests(folder, *suites, **more):
    """The tests of a build folder as (passed, failed, report)."""
    status, text = call(["meson", "test", "-C", folder, "--print-errorlogs", "--timeout-multiplier", "4", *suites], **more)
    numbers = {key: int(n) for key, n in re.findall(r"^(Ok|Fail|Timeout|Unexpected Pass|Expected Fail):\s+(\d+)", text, re.M)}
    passed = numbers.get("Ok", 0)
    failed = numbers.get("Fail", 0) + numbers.get("Timeout", 0)
    if status and not failed:
        failed = 1
    return passed, failed, text if failed else ""


def run_c():
    return meson_tests("build", "--suite", "c")


def pytest_file(path, *options, **more):
    """One test file in a process of its own, as (passed, failed, skipped, report)."""
    status, text = call([sys.executable, "-m", "pytest", "-q", "--no-header", "-rfE", "--tb=short", *options, path], FILE_SECONDS,
                        OMP_NUM_THREADS="2", **more)
    last = text.strip().splitlines()[-1] if text.strip() else ""
    passed, skipped = count(last, "passed"), count(last, "skipped")
    failed = count(last, "failed") + count(last, "errors?")
    if status not in (0, 5) and not failed:
        failed = 1
    return passed, failed, skipped, f"  {path.relative_to(TOP)}\n{tail(text)}" if failed else ""


def pytest_files(files, *options, **more):
    """(passed, failed, report) of several files, two or more at a time."""
    with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        results = list(pool.map(lambda path: pytest_file(path, *options, **more), files))
    skipped = sum(r[2] for r in results)
    if skipped:
        print(f"python: {skipped} skipped (what they need is not on this machine)")
    return sum(r[0] for r in results), sum(r[1] for r in results), "\n".join(r[3] for r in results if r[3])


def test_files():
    return sorted((TOP / "tests" / "python").rglob("test_*.py"))


def run_python():
    return pytest_files(test_files())


def run_sanitizers():
    """C units, fuzz targets and the Python tests of the extension under the address and undefined-behaviour sanitizers."""
    site = TOP / "build-asan" / "root" / "site"
    if not (TOP / "build-asan" / "build.ninja").exists():
        status, text = call(["meson", "setup", "build-asan", "--prefix", TOP / "build-asan" / "root", f"-Dpython.purelibdir={site}",
                             f"-Dpython.platlibdir={site}", "-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized",
                             "-Doptimization=1"], **compiler())
        if status:
            return 0, 1, tail(text)
    for command in (["ninja", "-C", "build-asan", "all", "meson-test-prereq"], ["meson", "install", "-C", "build-asan", "--no-rebuild", "--quiet"]):
        status, text = call(command)
        if status:
            return 0, 1, tail(text)
    options = {"UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1", "OMP_NUM_THREADS": "2"}
    results = [meson_tests("build-asan", ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1", **options)]
    # The interpreter itself is not instrumented, so the runtime is loaded first, and what it keeps until its end is no leak.
    runtimes = [subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
                for name in ("libasan.so", "libubsan.so")]
    if all(os.path.isabs(path) for path in runtimes):
        del options["OMP_NUM_THREADS"]
        files = [path for path in test_files() if path.relative_to(TOP / "tests" / "python").parts[0] in SANITIZED]
        results.append(pytest_files(files, "-s", LD_PRELOAD=" ".join(runtimes), PYTHONPATH=str(site), PYTHONMALLOC="malloc",
                                    ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1", **options))
    return sum(r[0] for r in results), sum(r[1] for r in results), "\n".join(r[2] for r in results if r[2])


def compiler():
    """ccache where it is installed, as tools/build.sh does."""
    installed = any(os.access(os.path.join(p, "ccache"), os.X_OK) for p in os.environ["PATH"].split(":"))
    if "CC" in os.environ or not installed:
        return {}
    return {"CC": "ccache gcc", "CCACHE_BASEDIR": str(TOP), "CCACHE_NOHASHDIR": "1"}


def run_listings():
    """The manual's listings of chapters 2, 3.1 and 4."""
    script = SHARED / "manual" / "listings" / "run.py"
    if not script.exists():
        return None
    _, text = call([sys.executable, script, "ch2", "ch3_1", "ch4"])
    failed = count(text, "failed")
    if not re.search(r"\d+ passed, \d+ failed", text):
        failed = 1
    return count(text, "passed"), failed, tail(text) if failed else ""


def run_parity():
    """The tasks of the parity tool that are known to pass (tests/parity/floor.txt)."""
    if not (SHARED / "parity" / "opinfo_parity.py").exists():
        return None
    _, text = call([sys.executable, TOP / "tests" / "parity" / "run_parity.py"])
    if text.rstrip().endswith("skipped"):
        print(text.strip())
        return None
    failed = count(text, "failed")
    if not re.search(r"\d+ passed, \d+ failed", text):
        failed = 1
    return count(text, "passed"), failed, tail(text) if failed else ""


def run_names():
    """How many of the documented names are there with their parameters: at least as many as tests/parity/names_floor.txt says."""
    script = SHARED / "parity" / "api_audit.py"
    if not script.exists():
        return None
    _, text = call([sys.executable, script])
    found, least = count(text, "passed"), int((TOP / "tests" / "parity" / "names_floor.txt").read_text())
    lost = max(0, least - found)
    return min(found, least), lost, f"{found} names are there, {least} were before\n{tail(text)}" if lost else ""


PARTS = {"c": run_c, "python": run_python, "sanitizers": run_sanitizers, "listings": run_listings, "parity": run_parity, "names": run_names}


def main():
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        sys.exit(f"tests/run.py: no part named {', '.join(unknown)}; there are {', '.join(PARTS)}")
    passed = failed = 0
    for name in chosen:
        begun = time.monotonic()
        result = PARTS[name]()
        if result is None:
            print(f"{name}: not run, what it needs is not there", flush=True)
            continue
        if result[2]:
            print(result[2])
        print(f"{name}: {result[0]} passed, {result[1]} failed ({time.monotonic() - begun:.0f} s)", flush=True)
        passed += result[0]
        failed += result[1]
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
