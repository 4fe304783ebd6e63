"""Whether the machine is fit to be measured on: its status around rounds, its alarms, a doctor."""
