"""A pool of hosts: jobs that run alone on their host, each counted once."""
