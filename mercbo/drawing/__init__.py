"""What a draw is made of, beside `posterior.py` and `quadratic.py`.

| module                | what                                                              |
|-----------------------|-------------------------------------------------------------------|
| `samples`             | drawn functions, at points and around them                        |
| `prediction`          | moments of the posterior, at points and around them               |
| `higher`, `reduction` | terms of order 3 and 4 of a draw; products of bits made quadratic |
| `surrogate`           | what a history says of the objective: the fit and its posteriors  |
"""
