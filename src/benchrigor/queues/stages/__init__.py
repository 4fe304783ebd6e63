"""The stages of a program: their periods, their rates, and reports about them."""
