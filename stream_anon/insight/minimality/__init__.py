"""Minimality attacks: read sensitive values out of who was put together, by replaying how groups are made.

After Wong, Fu, Wang and Pei, "Minimality attack in privacy preserving data publishing" (2007): a program that does no
more than its policy asks tells, by what it did, what the policy forced it to do.
"""

from stream_anon.insight.minimality.attack import Found, minimality
from stream_anon.insight.minimality.runs import BatchRun, Published, Run, StreamRun

__all__ = ["BatchRun", "Found", "Published", "Run", "StreamRun", "minimality"]
