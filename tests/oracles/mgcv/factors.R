# mgcv::gam with random effects and by in tensor products, factor-smooths of other bases, and t2.
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
# t2: within a null space of one dimension the model is defined to the last digit; the score has another constant
twos <- list(
  record("y ~ t2(x1, x2, bs = c(\"ps\", \"ps\"), m = list(c(2, 1), c(2, 1)), k = 5)", gaussian(), "y ~ t2(x1, x2, bs='ps', m=((2, 1), (2, 1)), k=5)"),
  record("count ~ t2(x1, ang, bs = c(\"ps\", \"cc\"), m = list(c(2, 1), NA), k = c(6, 6))", poisson(), "count ~ t2(x1, ang, bs=('ps', 'cc'), m=((2, 1), None), k=6)"),
  record("cls ~ t2(x2, x1, bs = c(\"ps\", \"ps\"), m = list(c(1, 1), c(2, 1)), k = c(5, 6)) + s(x3)", binomial(), "cls ~ t2(x2, x1, bs='ps', m=((1, 1), (2, 1)), k=(5, 6)) + s(x3)"),
  record("y ~ t2(x1, x2, k = 5)", gaussian()))
write_json(list(t2 = arr(twos), mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "factors.json", 9)
