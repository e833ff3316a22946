"""Starts the processes of a parallel script: ``python -m morel.parallel.launch --worker_num=4 --local_worker_num=4 script.py``.

The flags are those of MindSpore's msrun. Every process runs the script with RANK_ID, RANK_SIZE, MS_WORKER_NUM, MS_SCHED_HOST,
MS_SCHED_PORT and MS_ROLE set; `morel.communication.init` reads them. This program serves the port through which they find each
other, and ends them all when one fails.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

_LAST_LINES = 25  # of a log that are shown of a process that failed


def _flag(text):
    if text.lower() in ("true", "1", "yes"):
        return True
    if text.lower() in ("false", "0", "no"):
        return False
    raise argparse.ArgumentTypeError(f"must be True or False, but is {text!r}")


def _parser():
    parser = argparse.ArgumentParser(prog="msrun", description=__doc__.splitlines()[0])
    parser.add_argument("--worker_num", type=int, default=8, help="number of processes on all machines")
    parser.add_argument("--local_worker_num", type=int, default=8, help="number of processes on this machine")
    parser.add_argument("--master_addr", default="127.0.0.1", help="where the first machine is")
    parser.add_argument("--master_port", type=int, default=8118, help="a port of it that is free")
    parser.add_argument("--node_rank", type=int, default=-1, help="number of this machine")
    parser.add_argument("--log_dir", default="", help="folder for worker_N.log")
    parser.add_argument("--join", type=_flag, default=False, help="whether to wait until all have ended")
    parser.add_argument("--cluster_time_out", type=int, default=600, help="seconds to wait for all processes")
    parser.add_argument("--bind_core", type=_flag, default=False, help="whether each process has cores of its own")
    parser.add_argument(
        "--tail_worker_log", default="-1", help="numbers of the processes whose output is shown: '0,1'; -1: all"
    )
    parser.add_argument("--worker_log_name", default="", help="name of the log files, with {rank}")
    parser.add_argument("task_script", help="script, or a command such as pytest")
    parser.add_argument("task_script_args", nargs=argparse.REMAINDER)
    return parser


def _checked(parser, argv):
    args = parser.parse_args(argv)
    if args.worker_num < 1 or args.local_worker_num < 1:
        raise ValueError(f"there must be at least one worker, but got {args.worker_num} and {args.local_worker_num}")
    if args.local_worker_num > args.worker_num:
        raise ValueError(f"--local_worker_num={args.local_worker_num} is more than --worker_num={args.worker_num}")
    if args.worker_num % args.local_worker_num and args.node_rank < 0:
        raise ValueError("with machines of different numbers of workers, --node_rank is needed")
    if not 1 <= args.master_port <= 65535:
        raise ValueError(f"--master_port must be between 1 and 65535, but is {args.master_port}")
    if args.worker_num > args.local_worker_num and args.node_rank < 0:
        raise ValueError("with several machines each needs its number: --node_rank=0, 1, ...")
    return args


def _command(args):
    if args.task_script.endswith(".py"):
        return [sys.executable, "-m", "morel", args.task_script, *args.task_script_args]
    return [args.task_script, *args.task_script_args]


def _environment(args, local):
    cores = len(os.sched_getaffinity(0))
    rank = max(0, args.node_rank) * args.local_worker_num + local
    out = dict(os.environ)
    out.update(
        RANK_ID=str(rank),
        RANK_SIZE=str(args.worker_num),
        DEVICE_ID=str(local),
        MS_ROLE="MS_WORKER",
        MS_NODE_ID=str(rank),
        MS_WORKER_NUM=str(args.worker_num),
        MS_SCHED_HOST=args.master_addr,
        MS_SCHED_PORT=str(args.master_port),
        MS_TOPO_TIMEOUT=str(args.cluster_time_out),
    )
    out.setdefault("MOREL_NUM_THREADS", str(max(1, cores // args.local_worker_num)))
    return out


def _cores(local, count):
    cores = sorted(os.sched_getaffinity(0))
    own = cores[local * len(cores) // count : (local + 1) * len(cores) // count]
    return set(own or [cores[local % len(cores)]])


def _log_path(args, rank):
    name = args.worker_log_name.format(rank=rank) if args.worker_log_name else f"worker_{rank}"
    return os.path.join(args.log_dir or ".", name + ".log")


class _Workers:
    """The processes of this machine."""

    def __init__(self, args):
        self.args, self.processes = args, []
        shown = {int(number) for number in args.tail_worker_log.split(",")}
        for local in range(args.local_worker_num):
            environment = _environment(args, local)
            rank = int(environment["RANK_ID"])
            output = None
            if args.log_dir or not (args.join and (-1 in shown or rank in shown)):
                os.makedirs(args.log_dir or ".", exist_ok=True)
                output = open(_log_path(args, rank), "w")
            process = subprocess.Popen(
                _command(args), env=environment, stdout=output, stderr=output and subprocess.STDOUT
            )
            if args.bind_core:
                os.sched_setaffinity(process.pid, _cores(local, args.local_worker_num))
            self.processes.append((rank, process))

    def wait(self):
        """The exit code: 0, or that of a process that failed, after which the others are ended."""
        left = list(self.processes)
        while left:
            time.sleep(0.01)
            if first := [rank for rank, process in left if process.poll()]:
                time.sleep(0.5)  # others fail because one did; all of them are named, that one first
                failed = [(rank, process.poll()) for rank, process in left if process.poll()]
                failed.sort(key=lambda entry: entry[0] not in first)
                self.end([entry for entry in left if entry[1].poll() is None])
                for rank, code in failed:
                    self._report(rank, code)
                return failed[0][1] if failed[0][1] > 0 else 128 - failed[0][1]
            left = [entry for entry in left if entry[1].poll() is None]
        return 0

    def _report(self, rank, code):
        how = f"ended with code {code}" if code > 0 else f"was killed by signal {-code}"
        print(f"msrun: rank {rank} {how}", file=sys.stderr)
        path = _log_path(self.args, rank)
        if self.args.log_dir and os.path.exists(path):
            with open(path, errors="replace") as log:
                lines = log.readlines()[-_LAST_LINES:]
            print(f"msrun: the last lines of {path}:\n{''.join(lines)}", file=sys.stderr)

    @staticmethod
    def end(left, seconds=5):
        for _, process in left:
            process.send_signal(signal.SIGTERM)
        limit = time.monotonic() + seconds
        for _, process in left:
            try:
                process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _run(args):
    server = None
    if args.node_rank <= 0 and args.worker_num > 1:
        from morel import _core

        server = _core.dist.StoreServer(args.master_port)
    workers = _Workers(args)
    try:
        return workers.wait()
    except KeyboardInterrupt:
        workers.end([entry for entry in workers.processes if entry[1].poll() is None])
        return 130
    finally:
        del server


def main(argv=None):
    """Runs the command line; the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    args = _checked(_parser(), argv)
    if args.join:
        return _run(args)
    # As msrun does, return at once and let the processes run on.
    if os.fork() == 0:
        os.setsid()
        args.log_dir = args.log_dir or "."
        os._exit(_run(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
