"""The loop behind `minimize`.

| module      | what                                             |
|-------------|--------------------------------------------------|
| `executors` | where evaluations, and the searches of asks, run |
| `progress`  | what is shown of a run                           |
| `campaign`  | the loop itself                                  |
| `driver`    | `minimize` and `maximize`                        |
"""
