"""What was asked and told: in memory, in a file, in a database.

| module                    | what                                                          |
|---------------------------|---------------------------------------------------------------|
| `streams`, `transaction`  | the random numbers of a run; several changes as one write     |
| `history`, `observations` | what was asked and told, frozen; the same in the user's words |
| `results`, `frames`       | told values as arrays; DataFrames out and in                  |
| `events`, `refusals`      | what happens to a run; what callers ask for, checked          |
| `snapshot`, `store`       | a run as a JSON file; runs in a database                      |
| `schema`, `fits`          | checks of saved values; of saved hyper-parameters             |
| `backup`, `processes`     | a copy of a store; which process wrote, and whether it is gone|
| `suggestions`             | why each point was suggested                                  |
"""
