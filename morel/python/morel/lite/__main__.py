"""``python -m morel.lite c MODEL FOLDER``: a model for devices as C99 for microcontrollers."""

import argparse

from morel.lite import to_c


def main():
    parser = argparse.ArgumentParser(prog="python -m morel.lite", description="Tools for models for devices.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("c", help="write a model as C99 for microcontrollers")
    command.add_argument("model", help="a file that morel.lite.convert wrote")
    command.add_argument("folder", help="where the sources go")
    command.add_argument("--name", default="model", help="prefix of files and names (default: model)")
    options = parser.parse_args()
    made = to_c(options.model, options.folder, options.name)
    print(*made.files, sep="\n")
    print(
        f"RAM: {made.arena_bytes} bytes of arena, {made.variable_bytes} of variables; weights: {made.weight_bytes} bytes"
    )


if __name__ == "__main__":
    main()
