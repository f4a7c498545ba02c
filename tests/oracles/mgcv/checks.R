# What mgcv says beyond the fit: concurvity, k-index, model comparison, tails of chi-square mixtures. Rscript checks.R, after fits.R.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
circle <- list(ang = round(c(-pi, pi), 6))
set.seed(3); plane <- list(x1 = round(runif(90), 3), x2 = round(rbeta(90, 2, 2), 3))  # thin-plate knots, so that both use the same
python <- function(f) gsub("\"", "'", gsub("c\\(([^()]*)\\)", "(\\1)", paste(deparse(f, 500), collapse = "")))
fit <- function(f, family, knots = circle) gam(f, data = rows, family = family, method = "REML", knots = knots, control = control)

# concurvity is compared where the design has full rank: with a random effect mgcv's QR keeps a direction made of rounding error
look <- function(f, family, knots = circle) {
  b <- fit(f, family, knots)
  set.seed(1); k <- k.check(b); con <- concurvity(b)
  list(formula = python(f), family = family$family, knots = lapply(knots, arr), terms = arr(rownames(k)), size = arr(unname(k[, 1])), edf = arr(unname(k[, 2])),
       k_index = arr(unname(k[, 3])), k_p = arr(unname(k[, 4])), concurvity_terms = arr(colnames(con)),
       worst = arr(unname(con[1, ])), observed = arr(unname(con[2, ])), estimate = arr(unname(con[3, ])),
       residuals = lapply(list(deviance = "deviance", pearson = "pearson", working = "working", response = "response"),
                          function(kind) arr(unname(residuals(b, kind))[1:20])))
}
pair <- function(f0, f1, family) {
  b0 <- fit(f0, family); b1 <- fit(f1, family)
  a <- anova(b0, b1, test = if (family$family == "gaussian") "F" else "Chisq")
  list(small = python(f0), large = python(f1), family = family$family, residual_df = arr(a[["Resid. Df"]]), deviance = arr(a[["Resid. Dev"]]),
       df = a[["Df"]][2], statistic = if (family$family == "gaussian") a[["F"]][2] else a[["Deviance"]][2],
       p = a[[ncol(a)]][2], aic = arr(c(AIC(b0), AIC(b1))))
}
checked <- list(look(y ~ s(x1) + s(x2, bs = "cr") + s(ang, bs = "cc", k = 8), gaussian()),
                look(count ~ s(x1, x2, k = 20) + s(x3, k = 6), poisson(), plane),
                look(cls ~ te(x1, x2) + s(ang, bs = "cc", k = 8), binomial()),
                look(y ~ te(x1, x3, k = c(4, 4)) + s(lin, k = 6), gaussian()))
pairs <- list(pair(y ~ s(x1), y ~ s(x1) + s(x2), gaussian()), pair(count ~ s(x1), count ~ s(x1) + s(ang, bs = "cc", k = 8), poisson()),
              pair(cls ~ s(x1) + s(x2), cls ~ s(x1) + s(x2) + s(x3), binomial()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), checks = arr(checked), pairs = arr(pairs)), "checks.json", 9)
