"""What was learned: `opt.explain()` and what it is made of.

| module                | what                                                              |
|-----------------------|-------------------------------------------------------------------|
| `explain`             | the explanation that users see                                    |
| `explanatory`         | its posteriors, of a model of its own                             |
| `further`             | the windows and the pooling of that model                         |
| `anova`               | a posterior taken apart into effects                              |
| `ridges`              | the kernel of effects with variances of their own, taken apart    |
| `stacks`, `pooled`    | windows, and what is pooled, taken apart                          |
| `orders`              | what all of these have in common: the parts of order <= 2         |
| `crossval`, `mixture` | leave-one-out predictions; quantiles of mixtures of normals       |
"""
