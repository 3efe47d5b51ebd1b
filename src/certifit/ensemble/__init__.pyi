# Written by tools/stubs.py from certifit/registry.py.

