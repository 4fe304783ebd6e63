from benchrigor.machine.alarms import Alarms as Alarms
from benchrigor.machine.alarms import read_thresholds as read_thresholds
from benchrigor.machine.equipment import health as health
from benchrigor.machine.host import capabilities as capabilities
from benchrigor.machine.host import provenance as provenance
from benchrigor.machine.status_readers import StatusReader as StatusReader
from benchrigor.machine.status_readers import status as status
