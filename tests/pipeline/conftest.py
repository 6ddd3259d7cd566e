"""Tests of the pipeline without a JVM; those whose extra is not installed are skipped."""

from extras import pytest_pycollect_makemodule as pytest_pycollect_makemodule
