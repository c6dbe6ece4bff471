"""Tells which versions of the named packages are installed; the least that a script of this folder does."""

import json
import sys
from importlib.metadata import version

asked = json.load(sys.stdin)
json.dump({name: version(name) for name in asked["names"]}, sys.stdout)
