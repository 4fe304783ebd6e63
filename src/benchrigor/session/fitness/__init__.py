"""Whether the machine is fit to be measured on: its status around rounds, a doctor."""
