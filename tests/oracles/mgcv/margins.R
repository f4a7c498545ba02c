# mgcv::gam with tensor products of thin plates on skewed covariates: by value at even points, as mgcv has them, the columns
# of a margin are nearly collinear on the rows. Run in this directory: Rscript margins.R. Writes margins_rows.csv and
# margins.json. `dropped` as in ranks.R.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(12)
n <- 1000
rows <- data.frame(v = signif(exp(rnorm(n)), 6), z = signif(rexp(n), 6), w = signif(exp(.7 * rnorm(n)), 6))
f <- with(rows, .5 + tanh(w) * sin(2 * log(v)) + .3 * w * tanh(z))
rows$count <- rpois(n, exp(pmin(f, 4))); rows$y <- round(f + .3 * rnorm(n), 4)
write.csv(rows, "margins_rows.csv", row.names = FALSE, quote = FALSE)
rows <- read.csv("margins_rows.csv")
record <- function(text, family) {
  b <- gam(as.formula(text), family, rows, method = "REML", control = control)
  p <- predict(b, se.fit = TRUE)
  at <- unique(round(seq(1, n, length.out = 60)))
  lost <- sum(vapply(b$smooth, function(s) {
    total <- Reduce(`+`, lapply(s$S, function(S) S / sqrt(sum(S * S))))
    values <- eigen(total, symmetric = TRUE)$values
    (ncol(total) - s$null.space.dim) - sum(values > max(values) * .Machine$double.eps^.66)
  }, 0))
  cat(sprintf("%-60s %-8s %.5f edf %.3f lost %d sp %s\n", text, family$family, b$gcv.ubre, sum(b$edf), lost, paste(signif(b$sp, 4), collapse = " ")))
  list(formula = gsub('"', "'", gsub("c(", "(", text, fixed = TRUE)), family = family$family, score = unname(b$gcv.ubre), sp = arr(unname(b$sp)),
       edf_total = sum(b$edf), dropped = lost, rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])))
}
out <- list(
  record("count ~ te(v, z, by = w, k = c(7, 5), bs = c(\"tp\", \"cr\"))", poisson()), record("count ~ te(v, z, by = w, k = 8, bs = \"tp\")", poisson()),
  record("count ~ te(v, z, by = w, k = c(9, 5), bs = c(\"tp\", \"cr\"))", poisson()),
  record("y ~ te(v, z, k = 8, bs = \"tp\")", gaussian()), record("count ~ te(v, z, k = c(8, 6), bs = c(\"tp\", \"ps\"))", poisson()),
  record("y ~ s(v) + s(z) + ti(v, z, k = 9, bs = \"tp\")", gaussian()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "margins.json", 9)
