# mgcv::gam with offset(), arithmetic, a:b, a*b and cbind() in its formulas. Run in this directory after fits.R: Rscript formulas.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
rows$h <- factor(ifelse(rows$x3 < -.3, "low", ifelse(rows$x3 < .3, "mid", "high")))
rows$e <- exp(rows$off)
record <- function(text, family) {
  b <- gam(as.formula(text), family, rows, method = "REML", control = control)
  p <- predict(b, se.fit = TRUE)
  at <- seq(1, nrow(rows), 5); parametric <- b$coefficients[seq_len(b$nsdf)]
  cat(sprintf("%-70s %.5f AIC %.4f\n", text, b$gcv.ubre, AIC(b)))
  list(formula = text, family = family$family, score = unname(b$gcv.ubre), aic = AIC(b), edf_total = sum(b$edf),
       names = arr(names(parametric)), coefficients = arr(unname(parametric)), rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])))
}
out <- list(
  record("count_off ~ s(x1) + offset(log(e))", poisson()),
  record("y ~ s(log(x1 + .1)) + I(x2^2) + sqrt(x2)", gaussian()),
  record("exp(y / 4) ~ s(x1) + abs(x3)", gaussian()),
  record("y ~ g * lin + s(x1)", gaussian()),
  record("y ~ g + g:lin + s(x1)", gaussian()),
  record("y ~ lin:x3 + s(x1)", gaussian()),
  record("y ~ h * lin * x2 + s(x1)", gaussian()),
  record("y ~ (h + lin):x2 + h + s(x1)", gaussian()),
  record("count ~ 0 + h + h:lin + s(x1, bs = \"cr\")", poisson()),
  record("cbind(successes, trials - successes) ~ s(x1) + s(x2, bs = \"cr\") + h", binomial()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "formulas.json", 9)
