"""What a space is made of, beside `space.py` and `encoding.py`.

| module                  | what                                                             |
|-------------------------|------------------------------------------------------------------|
| `variables`             | the kinds of variables, as users write them                      |
| `constraints`, `limits` | what is allowed, as users write it; linear limits on bits        |
| `symmetry`, `group`     | what is equally good, as users state it; the group of these maps |
| `region`, `export`      | constraints as arrays; arrays as dimod models                    |
| `feasible`              | feasible rows: listed, random, unseen                            |
"""
