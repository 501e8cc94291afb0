"""Parts of a fit, beside `inference.py` and `model.py`.

| module       | what                                                    |
|--------------|---------------------------------------------------------|
| `warp`       | output warps, of which the evidence chooses one         |
| `kinds`      | the kinds of further terms of a kernel                  |
| `structured` | the fit of a kernel with some of them, and which        |
| `slicing`    | slice sampling with COMBO's priors                      |
"""
