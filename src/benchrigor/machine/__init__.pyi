from benchrigor.machine.alarms import Alarms as Alarms
from benchrigor.machine.host import capabilities as capabilities
from benchrigor.machine.host import provenance as provenance
from benchrigor.machine.states.health_checks import health as health
from benchrigor.machine.states.status_readers import StatusReader as StatusReader
from benchrigor.machine.states.status_readers import status as status
from benchrigor.machine.thresholds import read_thresholds as read_thresholds
