# mgcv::gam on covariates and basis sizes for which the penalty's eigenvalues span many orders of magnitude.
# Run in this directory: Rscript ranks.R. Writes ranks_skewed.csv, ranks_mcycle.csv and ranks.json.
# mgcv counts an eigenvalue of the balanced penalty below eps^.66 = 4.7e-11 of the largest as zero (totalPenaltySpace):
# `dropped` says how many it lost so. Where that is not 0 the rank, which is known, is not the one mgcv used.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(5)
n <- 700
skewed <- data.frame(x = signif(exp(1.5 * rnorm(n)), 5), z = signif(exp(rnorm(n)), 5))
f <- with(skewed, sin(2 * log(x)) + .4 * log(z))
skewed$count <- rpois(n, exp(.5 * f + 1)); skewed$cls <- rbinom(n, 1, plogis(f)); skewed$y <- round(f + .5 * rnorm(n), 4)
write.csv(skewed, "ranks_skewed.csv", row.names = FALSE, quote = FALSE)
write.csv(MASS::mcycle, "ranks_mcycle.csv", row.names = FALSE, quote = FALSE)
set.seed(2)  # more than 1,024 distinct values, in six orders of magnitude
lognormal <- data.frame(x = signif(exp(1.5 * rnorm(1500)), 6)); lognormal$count <- rpois(1500, exp(.5 * sin(2 * log(lognormal$x)) + 1))
write.csv(lognormal, "ranks_lognormal.csv", row.names = FALSE, quote = FALSE)
data <- list(skewed = read.csv("ranks_skewed.csv"), mcycle = read.csv("ranks_mcycle.csv"), lognormal = read.csv("ranks_lognormal.csv"))
record <- function(which, text, family) {
  d <- data[[which]]
  b <- gam(as.formula(text), family, d, method = "REML", control = control)
  p <- predict(b, se.fit = TRUE)
  at <- unique(round(seq(1, nrow(d), length.out = 60)))
  lost <- sum(vapply(b$smooth, function(s) {
    total <- Reduce(`+`, lapply(s$S, function(S) S / sqrt(sum(S * S))))
    values <- eigen(total, symmetric = TRUE)$values
    (ncol(total) - s$null.space.dim) - sum(values > max(values) * .Machine$double.eps^.66)
  }, 0))
  cat(sprintf("%-50s %-8s %.5f edf %.3f lost %d\n", text, family$family, b$gcv.ubre, sum(b$edf), lost))
  list(data = which, formula = gsub('"', "'", gsub("c(", "(", text, fixed = TRUE)), family = family$family, score = unname(b$gcv.ubre), sp = arr(unname(b$sp)), edf_total = sum(b$edf),
       dropped = lost, rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])))
}
out <- list(
  record("mcycle", "accel ~ s(times, k=30)", gaussian()), record("mcycle", "accel ~ s(times, k=60)", gaussian()),
  record("mcycle", "accel ~ s(times, k=90)", gaussian()), record("mcycle", "accel ~ s(times, k=60, bs=\"cr\")", gaussian()),
  record("mcycle", "accel ~ s(times, k=60, bs=\"ps\")", gaussian()),
  record("skewed", "count ~ s(x, bs=\"cr\", k=12)", poisson()), record("skewed", "count ~ s(x, bs=\"cr\", k=20)", poisson()),
  record("skewed", "count ~ s(x, bs=\"cr\", k=40)", poisson()), record("skewed", "count ~ s(x, bs=\"cr\", k=60)", poisson()),
  record("skewed", "cls ~ s(x, bs=\"cr\", k=20) + s(z, bs=\"cr\", k=15)", binomial()),
  record("skewed", "y ~ s(x, bs=\"cr\", k=20) + s(z, k=20)", gaussian()),
  record("skewed", "y ~ te(x, z, k=c(8, 6))", gaussian()), record("skewed", "count ~ te(x, z, k=c(6, 5))", poisson()),
  record("skewed", "y ~ s(x, k=20, m=3)", gaussian()), record("skewed", "count ~ s(x, bs=\"ps\", k=40)", poisson()),
  record("lognormal", "count ~ s(x, k=15)", poisson()), record("lognormal", "count ~ s(x, k=41)", poisson()), record("lognormal", "count ~ s(x, k=61)", poisson()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "ranks.json", 9)
