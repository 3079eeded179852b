"""Holds the engine to what it has reached against the real PyTorch: every task listed in floor.txt passes.

    PYTHONPATH=build/root/site .venv/bin/python tests/parity/run_parity.py [--update]

Runs ../shared/parity/opinfo_parity.py (float32, int64 and bool, the first samples of each operator) in an interpreter that
has both msadapter and the real torch 1.13. --update raises the floor to what passes now; it never takes a task off the
list. Closes with 'N passed, N failed', counting the listed tasks.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parent.parent.parent / "shared" / "parity" / "opinfo_parity.py"
FLOOR = HERE / "floor.txt"


def read_floor():
    lines = FLOOR.read_text(encoding="utf-8").splitlines() if FLOOR.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def outcomes():
    """Task name -> outcome, from one run of the tool."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([sys.executable, str(TOOL), "--quick", "--timeout", "60", "--json", str(report)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if not report.exists():
            sys.exit(f"{done.stdout[-2000:]}\nrun_parity: the tool wrote no report\n0 passed, 1 failed")
        return {name: task["outcome"] for name, task in json.loads(report.read_text())["tasks"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="add what passes now to floor.txt")
    args = parser.parse_args()
    if not TOOL.exists():
        print("run_parity: no parity tool beside the project, skipped")
        return 0
    if subprocess.run([sys.executable, "-c", "import torch; assert torch.__version__.startswith('1.13')"],
                      capture_output=True).returncode:
        print("run_parity: no reference: this interpreter has no torch 1.13, skipped")
        return 0
    result, floor = outcomes(), read_floor()
    passing = {name for name, outcome in result.items() if outcome == "pass"}
    if args.update:
        floor |= passing
        head = "# Tasks of the parity tool that pass. Raised with `run_parity.py --update`; nothing leaves this list.\n"
        FLOOR.write_text(head + "".join(f"{name}\n" for name in sorted(floor)), encoding="utf-8")
    for name in sorted(floor - passing):
        print(f"FAIL {name}: {result.get(name, 'not run')}")
    if passing - floor:
        print(f"{len(passing - floor)} more tasks pass than floor.txt lists")
    print(f"{len(floor & passing)} passed, {len(floor - passing)} failed")
    return int(bool(floor - passing))


if __name__ == "__main__":
    sys.exit(main())
