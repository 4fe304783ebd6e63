"""What a monitor knows of the stages of a program."""
