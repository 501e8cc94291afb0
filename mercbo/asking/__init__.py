"""How an `ask` chooses its points, beside `acquisition.py`.

| module                            | what                                          |
|-----------------------------------|-----------------------------------------------|
| `choice`                          | `Asking`: what one ask does                   |
| `design`, `trust`                 | points without a model; how far from the best |
| `improvement`, `entropy`, `bound` | what points are scored by                     |
| `scores`                          | which score an acquisition descends           |
| `failures`, `steps`               | where evaluations fail; by banned steps       |
| `seeking`                         | minima of draws, sought here or by workers    |
"""
