"""Parts of a fit, beside `inference.py` and `model.py`.

| module       | what                                                    |
|--------------|---------------------------------------------------------|
| `warp`       | output warps, of which the evidence chooses one         |
| `structured` | the fit of a kernel with further terms, and whether any |
| `slicing`    | slice sampling with COMBO's priors                      |
"""
