"""What was learned: `opt.explain()` and what it is made of.

| module                  | what                                                              |
|-------------------------|-------------------------------------------------------------------|
| `explain`               | the explanation that users see                                    |
| `explanatory`, `ridges` | its posteriors; the kernel of effects with variances of their own |
| `anova`                 | a posterior taken apart into effects                              |
| `crossval`, `mixture`   | leave-one-out predictions; quantiles of mixtures of normals       |
"""
