from benchrigor.gate.data import Gate as Gate
from benchrigor.gate.measuring import measure_gate as measure_gate
from benchrigor.gate.sides import Sources as Sources
