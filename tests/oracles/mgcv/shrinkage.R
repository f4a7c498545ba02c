# mgcv::gam with shrinkage bases and select=TRUE. Run in this directory after fits.R: Rscript shrinkage.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
record <- function(text, family, select) {
  b <- gam(as.formula(text), family, rows, method = "REML", control = control, select = select)
  p <- predict(b, se.fit = TRUE)
  cat(sprintf("%-50s %-8s select %-5s %.5f edf %.4f\n", text, family$family, select, b$gcv.ubre, sum(b$edf)))
  list(formula = text, family = family$family, select = select, score = unname(b$gcv.ubre), edf_total = sum(b$edf), sp = arr(unname(b$sp)), eta = arr(unname(p$fit)), se = arr(unname(p$se.fit)))
}
out <- list(record("y ~ s(x1, bs='ts') + s(lin, bs='ts')", gaussian(), FALSE), record("count ~ s(x1, x2, bs='ts', k=20)", poisson(), FALSE),
            record("cls ~ s(x1, bs='ts', k=8) + s(x3, bs='ts')", binomial(), FALSE), record("y ~ s(x1, bs='cs', k=8)", gaussian(), FALSE),
            record("y ~ s(x1) + s(lin) + s(x3)", gaussian(), TRUE), record("count ~ s(x1, bs='cr') + te(x2, x3, k=4)", poisson(), TRUE),
            record("cls ~ s(x1) + s(z)", binomial(), TRUE),
            record("y ~ s(x1, bs='cr') + te(x1, x2, k=4)", gaussian(), TRUE), record("count ~ s(x1) + s(x3) + te(x1, x3, k=4)", poisson(), TRUE))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "shrinkage.json", 9)
