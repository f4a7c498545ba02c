# mgcv's own REML of Boston's s(crim, bs = "cr", k = 20) at other smoothing parameters, that of un.gam (3.991e8) among them.
# criteria_boston.csv: the rows that packages.R keeps. Run in this directory: Rscript criteria.R
library(mgcv)
source("json.R")
d <- read.csv("criteria_boston.csv")
fit <- function(...) gam(medv ~ s(crim, bs = "cr", k = 20), data = d, method = "REML", ...)
own <- fit(control = gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60)))
at <- c(1e-4, 1e-2, 1, 1e2, unname(own$sp), 1e4, 3.991e8); score <- vapply(at, function(sp) unname(fit(sp = sp)$gcv.ubre), 0)
print(cbind(at, score))
write_json(list(mgcv = as.character(packageVersion("mgcv")), own = unname(own$sp), sp = arr(at), score = arr(score)), "criteria.json", 10)
