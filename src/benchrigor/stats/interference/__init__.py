"""Interference of a run, after Shah, Mueller, Wolf et al. (Euro-Par 2018), module by module.

The paper is 'Estimating the impact of external interference on application performance'. Its
method, by section:

- `grouping` (2): amounts of computation count as one if their relative distance is below 0.1;
  segments with the same clusters and nominal features form a group of 5 or more; the time of a
  segment beyond median + 4 MAD of its group is interference;
- `one_run` (2, 3): the sum of it in per cent of the wall time; medians against a reference; green,
  yellow, red, and the probability of high interference;
- `benchrigor.interference.profiles` (2): profiles in bounded memory, and of several processes.

Ours: `one_run` takes measured delay off first, and adds it for the light, and says when the
estimate is not reliable; `profiles` joins several runs (future work in section 5).
"""
