#!/usr/bin/env python3
"""What an extension reaches for, under strict and under standard: one sandbox
a policy, some hundred attempts in each."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attempts import ALWAYS, CARVED, STRICT
from field import *
from zbtest import main, test


@test("strict", needs="sandbox", seconds=80)
def strict(w):
    f = Field(w)
    try:
        judge(f, ALWAYS + STRICT, "--policy", "strict")
        w.check(f.signals() > 0, "the victim heard from the controls")
    finally:
        f.close()


@test("standard", needs="sandbox", seconds=80)
def standard(w):
    f = Field(w)
    try:
        judge(f, ALWAYS + CARVED, "--policy", "standard")
    finally:
        f.close()


main()
