# Nested smooths: what gam.side leaves, and the fits. Rscript side.R, after fits.R; writes side.json.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
set.seed(3); plane <- list(x1 = round(runif(90), 3), x2 = round(rbeta(90, 2, 2), 3))
python <- function(f) gsub("\"", "'", gsub("c\\(([^()]*)\\)", "(\\1)", paste(deparse(f, 500), collapse = "")))
fit <- function(f, family, knots = NULL) {
  b <- gam(f, data = rows, family = family, method = "REML", knots = knots, control = control)
  list(formula = python(f), family = family$family, knots = lapply(knots, arr), size = length(coef(b)), reml = as.numeric(b$gcv.ubre),
       edf = arr(sapply(b$smooth, function(s) sum(b$edf[s$first.para:s$last.para]))), eta = arr(unname(b$linear.predictors)),
       se = arr(unname(predict(b, se.fit = TRUE)$se.fit)))
}
fits <- list(fit(y ~ s(x1, bs = "cr") + s(x2, bs = "cr") + te(x1, x2), gaussian()),
             fit(cls ~ s(x1, bs = "cr", k = 5) + te(x1, x2), binomial()),
             fit(y ~ s(x1) + s(x2) + s(x1, x2, k = 20), gaussian(), plane),
             fit(count ~ te(x1, x3, k = c(4, 4)) + s(x3, bs = "ps", k = 8), poisson()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(fits)), "side.json", 9)
