import os
import signal
import sys

sys.path.insert(0, os.path.dirname(__file__))

# A shell that runs the tests in the background has SIGINT ignored, which child processes inherit; the tests that interrupt
# a script need it as a terminal has it.
signal.signal(signal.SIGINT, signal.default_int_handler)
