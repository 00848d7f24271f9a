# SPDX-License-Identifier: MIT
# pyproject.toml has the rest.
from setuptools import setup

setup(
    cffi_modules=["build_twheel.py:ffi"],
    # The C part is for the stable ABI.
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
