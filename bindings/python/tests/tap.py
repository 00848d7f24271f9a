# SPDX-License-Identifier: MIT
"""Runs unittest's tests, and prints TAP: tap.py MODULE..."""
import sys
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.failed = False

    def say(self, verdict, test, more=""):
        name = test._testMethodName[len("test_"):]
        print(f"{verdict} {self.testsRun} {name}{more}", flush=True)

    def addSuccess(self, test):
        self.say("ok", test)

    def addSkip(self, test, reason):
        self.say("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        self.failed = True
        for line in self._exc_info_to_string(err, test).splitlines():
            print(f"# {line}")
        self.say("not ok", test)

    addError = addFailure


suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
print("TAP version 13", f"1..{suite.countTestCases()}", sep="\n")
result = TapResult()
suite.run(result)
sys.exit(result.failed)
