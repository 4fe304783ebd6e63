"""A pool of hosts: jobs run alone on their host, and count once."""
