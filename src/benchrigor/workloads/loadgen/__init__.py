"""Offers load to a server: requests at given times, whatever becomes of earlier ones."""

from benchrigor.workloads.loadgen.http_requests import HttpRequest as HttpRequest
from benchrigor.workloads.loadgen.http_requests import HttpRequests as HttpRequests
from benchrigor.workloads.loadgen.load_command import LoadCommand as LoadCommand
from benchrigor.workloads.loadgen.open_loop import OpenLoop as OpenLoop
