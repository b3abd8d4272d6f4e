# Runs ethereum-etl, whose parser was written for a Python that had getargspec.
import inspect

if not hasattr(inspect, "getargspec"):
    inspect.getargspec = inspect.getfullargspec

from ethereumetl.cli import cli

cli()
