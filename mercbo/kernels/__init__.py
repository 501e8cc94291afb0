"""Kernels made from that of `kernel.py`, and which of its terms there are.

| module               | what                                                           |
|----------------------|----------------------------------------------------------------|
| `averaging`          | the kernel averaged over symmetries                            |
| `interactions`       | which variables may interact, as users state it                |
| `windows`, `pooling` | further terms: for neighbours; for how often each value occurs |
| `motifs`, `reading`  | another: for a few letters in a row; how they are read         |
| `stacking`           | the kernels of a sum between points and results, all at once   |
"""
