"""Times msadapter against PyTorch, both sides taking turns, and prints the ratios.

    PYTHONPATH=build/root/site .venv/bin/python bench/run.py [--reference PYTHON] [--threads 2] [lenet] [resnet18] [gpt] [lstm] [calls] [start]

See README.md in this folder. A process of each side waits for requests, one JSON line each, and answers with seconds; only one
works at a time.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

BLOCKS = 7
STEPS = {"lenet": 20, "resnet18": 3, "gpt": 4, "lstm": 6}  # of a block
CALLS = 4000


class Side:
    """A process that has imported one implementation."""

    def __init__(self, python, module, threads, script=os.path.abspath(__file__)):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.command, self.environment = [python, script, "--serve", module, "--threads", str(threads)], environment
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench: {' '.join(self.command)} ended")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(module, threads):
    """Answers requests on standard input until it closes."""
    from models import small_calls, training_step

    torch = importlib.import_module(module)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    things = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["what"] == "names":
            things["calls"] = small_calls(torch)
            answer = list(things["calls"])
        else:
            name, count = request["name"], request["count"]
            if request["what"] == "step":
                function = things.get(name) or things.setdefault(name, training_step(torch, name))
            else:
                function = things["calls"][name]
            begun = time.perf_counter()
            for _ in range(count):
                function()
            answer = (time.perf_counter() - begun) / count
        print(json.dumps(answer), flush=True)


def alternate(ours, theirs, count, **request):
    """Medians of blocks, (ours, theirs), in seconds; one block of each first to warm up."""
    times = ([], [])
    for block in range(BLOCKS + 1):
        for side, seconds in zip((ours, theirs), times):
            took = side.ask(count=count, **request)
            if block:
                seconds.append(took)
    return tuple(statistics.median(t) for t in times)


IMPORT = """
import sys, time
begun = time.perf_counter()
__import__(sys.argv[1])
took = time.perf_counter() - begun
with open("/proc/self/status") as file:
    (kilobytes,) = [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
print(took, kilobytes / 1024)
"""


def start(pythons, modules):
    """Seconds of an import and resident megabytes after it, medians of fresh processes."""
    results = [[], []]
    for turn in range(BLOCKS + 1):
        for i in range(2):
            done = subprocess.run([pythons[i], "-c", IMPORT, modules[i]], capture_output=True, text=True, check=True)
            if turn:
                results[i].append([float(x) for x in done.stdout.split()])
    return [[statistics.median(column) for column in zip(*rows)] for rows in results]


def version_of(reference):
    """Which PyTorch an interpreter has; ends the run where it has none."""
    found = subprocess.run([reference, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if found.returncode:
        sys.exit(f"bench: {reference} has no PyTorch; name an interpreter that has with --reference")
    return found.stdout.strip()


def row(name, ours, theirs, unit):
    print(f"{name:<26}{ours:>10.2f}{theirs:>10.2f} {unit:<3}{ours / theirs:>8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="of lenet, resnet18, gpt, lstm, calls, start; all of them by default")
    parser.add_argument("--reference", default=os.environ.get("REFERENCE") or sys.executable, metavar="PYTHON",
                        help="an interpreter that has PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--serve", metavar="MODULE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve, args.threads)
    what = args.what or [*STEPS, "calls", "start"]
    unknown = set(what) - {*STEPS, "calls", "start"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    version = version_of(args.reference)
    pythons, modules = (sys.executable, args.reference), ("msadapter.pytorch", "torch")
    print(f"msadapter and PyTorch {version}, {args.threads} threads, medians of {BLOCKS} blocks in turns")
    print(f"{'':<26}{'ours':>10}{'PyTorch':>10}{'ratio':>12}")
    ours, theirs = (Side(python, module, args.threads) for python, module in zip(pythons, modules))
    for name in what:
        if name in STEPS:
            a, b = alternate(ours, theirs, STEPS[name], what="step", name=name)
            row(f"{name} step", 1e3 * a, 1e3 * b, "ms")
        elif name == "calls":
            theirs.ask(what="names")
            for call in ours.ask(what="names"):
                a, b = alternate(ours, theirs, CALLS, what="call", name=call)
                row(call, 1e6 * a, 1e6 * b, "us")
    ours.close()
    theirs.close()
    if "start" in what:
        (a, a_mb), (b, b_mb) = start(pythons, modules)
        row("import", 1e3 * a, 1e3 * b, "ms")
        row("resident after import", a_mb, b_mb, "MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
