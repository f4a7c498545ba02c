# Smooths beside those of levels or with a multiplier, which gam.side leaves as they are. Run in this directory after
# fits.R: Rscript beside.R. `told_apart`: whether penalties tell all functions apart (else mgcv drops a coefficient).
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
record <- function(text, family, told_apart) {
  b <- gam(as.formula(text), family, rows, method = "REML", control = control)
  cat(sprintf("%-50s %-9s %.5f edf %.4f\n", text, family$family, b$gcv.ubre, sum(b$edf)))
  list(formula = text, family = family$family, told_apart = told_apart, reml = as.numeric(b$gcv.ubre), edf_total = sum(b$edf),
       eta = arr(unname(b$linear.predictors)), se = arr(unname(predict(b, se.fit = TRUE)$se.fit)))
}
fits <- list(record("y ~ g + s(x1) + s(x1, by=g)", gaussian(), FALSE),
             record("count ~ g + s(x1, by=g, k=6) + s(x1)", poisson(), FALSE),
             record("count ~ s(x1) + s(x1, by=z, k=6) + s(z)", poisson(), FALSE),
             record("y ~ s(x1) + s(x1, by=g, m=1) + s(g, bs='re')", gaussian(), TRUE),
             record("cls ~ s(x2, bs='cr') + te(x1, x2, by=z, k=4)", binomial(), TRUE))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(fits)), "beside.json", 9)
