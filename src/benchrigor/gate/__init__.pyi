from benchrigor.gate.measuring import measure_gate as measure_gate
from benchrigor.gate.ratios import Block as Block
from benchrigor.gate.ratios import Ratios as Ratios
from benchrigor.gate.result import Gate as Gate
from benchrigor.gate.sides import Side as Side
from benchrigor.gate.sides import Sources as Sources
from benchrigor.gate.suite import Pass as Pass
