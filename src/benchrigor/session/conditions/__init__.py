"""What the machine did during the rounds of a run: what it lost, and its pace."""
