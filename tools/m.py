"""The command line of `./m`: one function per subcommand, each a few lines over the modules beside this file."""

import argparse
import sys

if sys.version_info < (3, 11):
    sys.exit(f"m: Morel needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]} (PYTHON=... chooses)")

import os
import shutil

import builder
import environment
import lint
import testing
from environment import ROOT, run, venv_python


def setup(options):
    environment.setup(force=options.force)


def build(options):
    environment.setup()
    builder.build(
        options.sanitize, build_dir=options.build_dir, targets=options.target, budget=options.time, jobs=options.jobs
    )


def demo(options):
    environment.setup()
    builder.build(targets=["python_package"])  # not the tests: a fifth of the time
    run([venv_python(), "-m", "morel", "examples/lenet_fashion_mnist.py", *options.args])


def test(options):
    environment.setup()
    sys.exit(testing.test(options))


def bench(options):
    environment.setup()
    builder.build()
    run([venv_python(), "bench/run.py", *options.args])


def fmt(options):
    environment.setup()
    lint.fmt()


def run_lint(options):
    environment.setup()
    sys.exit(lint.lint())


def docs(options):
    problems = lint.check_links()
    print(*problems, sep="\n")
    environment.setup()
    builder.build(targets=["python_package"])
    for maker, folder in (("pages", "build/docs"), ("stubs", "build/stubs")):
        run([venv_python(), "-m", f"morel.tools.{maker}", folder])
    print("docs: API pages in build/docs, types for editors in build/stubs")
    sys.exit(1 if problems else 0)


def prove(options):
    environment.setup()
    builder.build()
    run([venv_python(), "-m", "prove", *options.args], env={**os.environ, "PYTHONPATH": str(ROOT / "tools")})


def op(options):
    environment.setup()
    builder.build()
    run([venv_python(), "-m", "morel.tools.op", *options.args])


def lite_size(options):
    environment.setup()
    builder.build(targets=["python_package"])
    run([venv_python(), "tools/lite_size.py"])


def wheel(options):
    environment.setup()
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run([venv_python(), "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-w", "dist"])
    for path in sorted((ROOT / "dist").glob("*.whl")):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")


def clean(options):
    names = ["build", "build-asan", "build-tsan", "build-wheel", "dist", "demo_out"]
    for name in names + ([".venv"] if options.all else []):
        shutil.rmtree(ROOT / name, ignore_errors=True)


def parser():
    top = argparse.ArgumentParser(prog="./m", description="Everything one does with a checkout of Morel.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, function, help_text):
        sub = commands.add_parser(name, help=help_text, description=help_text)
        sub.set_defaults(function=function)
        return sub

    sub = command("setup", setup, "install Debian packages and the virtual environment .venv (a no-op when done)")
    sub.add_argument("--force", action="store_true", help="do it again even if nothing changed")

    sub = command("build", build, "build the library and the Python package; `import morel` then works in .venv")
    sub.add_argument("--sanitize", choices=["address", "thread"], default="", help="into build-asan or build-tsan")
    sub.add_argument("--time", nargs="?", const=600.0, type=float, metavar="SECONDS",
                     help="fail when the build takes longer (default: 600)")  # fmt: skip
    sub.add_argument("--build-dir", help="build there, and leave .venv alone")
    sub.add_argument("--target", action="append", help="only this target (repeatable)")
    sub.add_argument("-j", "--jobs", type=int, default=os.cpu_count())

    sub = command("test", test, "build, then run the C++ and the Python tests")
    sub.add_argument("-k", default="", metavar="EXPR", help="only tests whose name matches (and/or/not, as in pytest)")
    sub.add_argument("--sanitize", nargs="?", const="all", choices=["all", "address", "thread"], default="",
                     help="address: a part of all tests under ASan+UBSan; thread: threading tests under TSan; all: both")  # fmt: skip
    sub.add_argument("--full", action="store_true", help="all cases of the Python tests, also under a sanitizer")
    sub.add_argument("--cpp", action="store_true", help="only the C++ tests")
    sub.add_argument("--python", action="store_true", help="only the Python tests")
    sub.add_argument("args", nargs="*", help="after --: more arguments for pytest")

    for name, function, help_text in [
        ("demo", demo, "train LeNet on Fashion-MNIST, save, load, draw"),
        ("bench", bench, "measure Morel and its peers (--help lists the cases)"),
        ("op", op, "show one operator: file, rules, kernels, dtypes, tests"),
        ("prove", prove, "run every consumer of the operators' entries over a dozen operators (--json FILE)"),
    ]:
        # Whatever follows goes to the program, --help included.
        sub = commands.add_parser(name, help=help_text, add_help=False)
        sub.set_defaults(function=function)

    command("fmt", fmt, "format C++ and Python sources in place")
    command("lint", run_lint, "check formatting, layers, folder READMEs, sizes and links")
    command("docs", docs, "check the links between the documents; write API pages and types for editors into build/")
    command("lite-size", lite_size, "build the smallest library for devices and print its size")
    command("wheel", wheel, "build a manylinux wheel into dist/")
    sub = command("clean", clean, "remove what was built")
    sub.add_argument("--all", action="store_true", help="the virtual environment too")
    command("help", lambda options: top.print_help(), "print this")
    return top


def main(arguments):
    os.chdir(ROOT)
    sys.stdout.reconfigure(line_buffering=True)
    passing_on = arguments[:1] in (["demo"], ["bench"], ["op"], ["prove"])
    options = parser().parse_args(arguments[:1] if passing_on else arguments)
    if passing_on:
        options.args = arguments[1:]
    options.function(options)


if __name__ == "__main__":
    main(sys.argv[1:] or ["help"])
