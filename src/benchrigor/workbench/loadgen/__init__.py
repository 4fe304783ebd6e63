"""Offers load to a server: requests at given times, independent of earlier ones."""

from benchrigor.workbench.loadgen.load_command import LoadCommand as LoadCommand
from benchrigor.workbench.loadgen.open_loop import OpenLoop as OpenLoop
from benchrigor.workbench.loadgen.senders import HostSenders as HostSenders
from benchrigor.workbench.loadgen.sending import Answer as Answer
from benchrigor.workbench.loadgen.sending import HttpRequest as HttpRequest
from benchrigor.workbench.loadgen.sending import HttpRequests as HttpRequests
