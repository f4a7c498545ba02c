# mgcv::gam with random effects in tensor products, by in tensor products, and factor-smooths of other bases.
# Run in this directory after fits.R: Rscript factors.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
rows$h <- factor(ifelse(rows$x3 < 0, "low", "high")); rows$gh <- interaction(rows$g, rows$h, lex.order = TRUE)
circle <- list(ang = round(c(-pi, pi), 6))
record <- function(text, family, python = text) {
  b <- gam(as.formula(text), family, rows, method = "REML", control = control, knots = circle)
  at <- seq(1, nrow(rows), 5); p <- predict(b, se.fit = TRUE)
  cat(sprintf("%-70s %-9s %.5f AIC %.4f edf %.3f\n", text, family$family, b$gcv.ubre, AIC(b), sum(b$edf)))
  list(formula = python, family = family$family, score = unname(b$gcv.ubre), aic = AIC(b), edf_total = sum(b$edf), sp = arr(unname(b$sp)),
       rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])))
}
out <- list(
  record("y ~ te(x1, g, bs = c(\"cr\", \"re\"))", gaussian()),
  record("count ~ s(x2) + te(x1, g, bs = c(\"tp\", \"re\"), k = c(5, 6))", poisson(), "count ~ s(x2) + te(x1, g, bs=('tp', 're'), k=5)"),
  record("cls ~ te(x1, x2, g, bs = c(\"cr\", \"ps\", \"re\"), k = c(4, 5, 6))", binomial(), "cls ~ te(x1, x2, g, bs=('cr', 'ps', 're'), k=(4, 5, 1))"),
  record("y ~ s(x2) + ti(x1, g, bs = c(\"cr\", \"re\"))", gaussian()),
  record("y ~ te(x1, x2, by = g, k = 4) + g", gaussian()),
  record("count ~ te(x1, x2, by = z, k = 4)", poisson()),
  record("y ~ s(ang, g, bs = \"fs\", xt = \"cc\", k = 6)", gaussian()),
  record("count ~ s(x1, g, bs = \"fs\", xt = \"ps\", k = 7, m = c(2, 1))", poisson()),
  record("y ~ s(x1, gh, bs = \"fs\", k = 5, m = 1)", gaussian(), "y ~ s(x1, g, h, bs = \"fs\", k = 5, m = 1)"))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "factors.json", 9)
