# mgcv::gam with smooths that share their smoothing parameters: id=.
# Run in this directory after fits.R: Rscript linked.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
circle <- list(ang = round(c(-pi, pi), 6))
record <- function(text, family, method = "REML", select = FALSE) {
  b <- gam(as.formula(text), family, rows, method = method, control = control, knots = circle, select = select)
  at <- seq(1, nrow(rows), 5); p <- predict(b, se.fit = TRUE); u <- predict(b, se.fit = TRUE, unconditional = method != "GCV.Cp")
  cat(sprintf("%-70s %-9s %.5f AIC %.4f edf %.3f sp %s\n", text, family$family, b$gcv.ubre, AIC(b), sum(b$edf), paste(signif(b$sp, 4), collapse = " ")))
  list(formula = text, family = family$family, method = method, select = select, score = unname(b$gcv.ubre), aic = AIC(b), edf_total = sum(b$edf),
       sp = arr(unname(b$sp)), rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])), se_unconditional = arr(unname(u$se.fit[at])))
}
out <- list(
  record("y ~ s(x1, by = g, id = 1) + g", gaussian()),
  record("count ~ s(x1, by = g, bs = \"cr\", k = 8, id = 1) + g", poisson()),
  record("y ~ s(x1, bs = \"cr\", id = 1) + s(x2, bs = \"cr\", id = 1)", gaussian()),
  record("cls ~ s(x1, id = \"a\") + s(x2, id = \"a\") + s(x3)", binomial()),
  record("count ~ s(x1, bs = \"ps\", id = 1) + s(x2, bs = \"ps\", id = 1) + s(ang, bs = \"cc\")", poisson()),
  record("y ~ s(x1, k = 8, id = 1) + s(x2, id = 1) + s(x3, id = 2) + s(ang, bs = \"cc\")", gaussian(), "ML"),
  record("y ~ s(x1, x2, k = 20, id = 1) + s(x2, x3, id = 1)", gaussian()),
  record("y ~ s(x1, by = z, id = 1) + s(x2, by = g, id = 1) + g", gaussian()),
  record("y ~ s(x1, id = 1) + s(x2, id = 1)", gaussian(), "GCV.Cp"),
  record("count ~ s(x1, id = 1) + s(x3, id = 1)", poisson(), select = TRUE),
  record("y ~ s(x1, bs = \"cr\", id = 1, sp = 3) + s(x2, bs = \"cr\", id = 1)", gaussian()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "linked.json", 9)
